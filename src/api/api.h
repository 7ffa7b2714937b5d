// SPDX-License-Identifier: MIT
// What the bodies of migraphx.h and extensions.h share: the handles, and how failures leave.
//
// Every body has the same three steps: API_NEED checks the pointers, an internal function does the
// work with a diagnosis of its own on the stack (callbacks may re-enter the interface), and
// mgx_api_leave keeps the text for migraphx_get_last_error and translates the status.
//
// Modules and contexts are borrowed by nature: migraphx_module_t is the struct mgx_module itself,
// and there is one migraphx_context_t, the host's. Handles hold no pointers into themselves, so
// they move by assignment.
#pragma once

#include <migraphx/extensions.h>

#include "base/size.h"
#include "ir/module.h"
#include "onnx/onnx.h"
#include "targets/target.h"

// --- handles ---

struct migraphx_optimals {
    int64_t *values; // sorted
    size_t count;
};

struct migraphx_dynamic_dimension {
    struct mgx_dim dim; // name and optimals belong to this handle
};

struct migraphx_dynamic_dimensions {
    struct migraphx_dynamic_dimension *items;
    size_t count;
};

struct migraphx_shape {
    struct mgx_shape value;
    struct mgx_arena arena; // of dims and sub; empty in a shape that is part of an argument
};

struct migraphx_argument {
    struct mgx_tensor value;
    // A result with room to grow (plan/blocks.h) shows itself as row-major: the copy that is so,
    // made when somebody asks for its address, and the value from then on, as it may be written to.
    _Atomic(struct mgx_tensor *) packed;
    struct migraphx_shape shape;       // the value's as a handle
    struct migraphx_argument *members; // of a tuple or sequence, made with the argument
};

struct migraphx_target {
    const struct mgx_target *target;
};

struct migraphx_program_parameter_shapes {
    struct mgx_arena arena; // of names
    const char **names;
    struct migraphx_shape *shapes;
    struct mgx_map by_name; // name -> its shape
    size_t count;
};

struct migraphx_program_parameters {
    MGX_ARRAY(struct mgx_named_tensor); // names on the heap
    struct mgx_map by_name; // name -> place in items + 1; used when they are more than a few
};

struct migraphx_arguments {
    struct migraphx_argument *items;
    size_t count;
};

struct migraphx_shapes {
    struct migraphx_shape *items;
    size_t count;
};

// Compiling exchanges the instructions of a program: handles from before say so when they are used.
struct mgx_api_epoch {
    const struct mgx_program *program; // NULL: of no instruction
    unsigned generation;
};

struct migraphx_instruction {
    struct mgx_ins *ins;
    struct mgx_api_epoch epoch;
};

struct migraphx_instructions {
    struct mgx_ins **items;
    size_t count;
    struct mgx_api_epoch epoch;
};

struct migraphx_modules {
    struct mgx_module **items;
    size_t count;
};

struct migraphx_operation {
    const struct mgx_op *op;
    void *attr;
    struct mgx_arena arena; // of attr
};

// What its runs are held to.
struct mgx_api_manner {
    bool seeded;
    uint64_t seed;
    size_t limit_bytes; // 0: none
};

struct migraphx_program {
    struct mgx_program *p;
    struct mgx_api_manner manner;
};

struct migraphx_compile_options {
    struct mgx_compile_options values; // strings and lists in the arena
    struct mgx_arena arena;
    migraphx_pass_callback_t trace;
    void *trace_data;
};

struct migraphx_trace_info {
    size_t index;
    char *name;
    struct migraphx_argument result;
};

static inline bool mgx_api_is_live(const struct mgx_api_epoch *e)
{
    return !e->program || e->program->generation == e->generation;
}

// "Unknown pass: <name>; there are ..."
enum mgx_status mgx_api_no_pass(const char *name, struct mgx_diag *diag);
// What a compiled program is saved with; *out is NULL of one that is not compiled. `whole`: with
// packed constants.
enum mgx_status mgx_api_carry(const struct mgx_program *p, bool whole, struct mgx_carry **out,
                              struct mgx_diag *diag) MGX_NODISCARD;

// --- statuses ---

// The text of the last failed call of this thread.
void mgx_api_keep_error(const char *text);
// "<function>: <what> is NULL", and bad_param.
migraphx_status mgx_api_null(const char *function, const char *what);
migraphx_status mgx_api_bad(const char *fmt, ...) MGX_PRINTF(1, 2);
migraphx_status mgx_api_leave(enum mgx_status status, const struct mgx_diag *diag);

#define API_NEED(pointer)                                                                          \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return mgx_api_null(__func__, #pointer);                                               \
    } while (0)

// An instruction or a list of them from before a compilation is of no use.
#define API_NEED_LIVE(handle)                                                                      \
    do {                                                                                           \
        API_NEED(handle);                                                                          \
        if (!mgx_api_is_live(&(handle)->epoch))                                                    \
            return mgx_api_bad("%s: %s is from before its program was compiled; get it anew",      \
                               __func__, #handle);                                                 \
    } while (0)

// What changes a program is refused once that is compiled.
#define API_NEED_UNCOMPILED(program)                                                               \
    do {                                                                                           \
        API_NEED(program);                                                                         \
        if ((program)->p->executable)                                                              \
            return mgx_api_bad("%s: the program is compiled", __func__);                           \
    } while (0)

#define API_DIAG(name)                                                                             \
    struct mgx_diag name;                                                                          \
    mgx_diag_clear(&name)

// Hands the text to the caller as a string of the interface.
enum mgx_status mgx_api_take_text(struct mgx_str *text, char **out,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// Zeroed memory of a handle.
#define API_NEW(type) ((type *)calloc(1, sizeof(type)))

// Defines <T>_destroy and <T>_assign_to over `T_fini(T *)` and `T_copy(T *out, const T *in, diag)`.
#define API_HANDLE(T)                                                                              \
    migraphx_status migraphx_##T##_destroy(migraphx_##T##_t T)                                     \
    {                                                                                              \
        if (T)                                                                                     \
            T##_fini(T);                                                                           \
        free(T);                                                                                   \
        return migraphx_status_success;                                                            \
    }                                                                                              \
    migraphx_status migraphx_##T##_assign_to(migraphx_##T##_t output,                              \
                                             const_migraphx_##T##_t input)                         \
    {                                                                                              \
        API_NEED(output);                                                                          \
        API_NEED(input);                                                                           \
        API_DIAG(diag);                                                                            \
        struct migraphx_##T copy = {0};                                                            \
        const enum mgx_status status = T##_copy(&copy, input, &diag);                              \
        if (status == MGX_OK) {                                                                    \
            T##_fini(output);                                                                      \
            *output = copy;                                                                        \
        }                                                                                          \
        return mgx_api_leave(status, &diag);                                                       \
    }

// --- types ---
bool mgx_api_type_in(migraphx_shape_datatype_t type, enum mgx_type *out);
migraphx_shape_datatype_t mgx_api_type_out(enum mgx_type type);

// --- shapes and arguments ---
enum mgx_status mgx_api_shape_init(struct migraphx_shape *out, const struct mgx_shape *value,
                                   struct mgx_diag *diag) MGX_NODISCARD;
void mgx_api_shape_fini(struct migraphx_shape *shape);
enum mgx_status mgx_api_shape_new(migraphx_shape_t *out, const struct mgx_shape *value,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// Takes the tensor's share over, also on failure.
enum mgx_status mgx_api_argument_init(struct migraphx_argument *out, struct mgx_tensor *take,
                                      struct mgx_diag *diag) MGX_NODISCARD;
void mgx_api_argument_fini(struct migraphx_argument *argument);
// What it holds, of any strides; as its shape says once it is packed, which asks for memory.
const struct mgx_tensor *mgx_api_argument_value(const struct migraphx_argument *argument);
enum mgx_status mgx_api_argument_pack(const struct migraphx_argument *argument,
                                      struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_argument_new(migraphx_argument_t *out, struct mgx_tensor *take,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// A tensor over a caller's buffer; `release(owner)` is called when nothing needs the bytes any
// more, but not when this fails.
enum mgx_status mgx_api_tensor_own(struct mgx_tensor *out, const struct mgx_shape *shape,
                                   void *buffer, void (*release)(void *owner), void *owner,
                                   struct mgx_diag *diag) MGX_NODISCARD;
void mgx_api_tensor_disown(struct mgx_tensor *t); // undoes it, without the call
enum mgx_status mgx_api_dim_copy(struct migraphx_dynamic_dimension *out, const struct mgx_dim *dim,
                                 struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_arguments_new(migraphx_arguments_t *out, struct mgx_tensor *take,
                                      size_t count, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_shapes_new(migraphx_shapes_t *out, const struct mgx_shape *values,
                                   size_t count, struct mgx_diag *diag) MGX_NODISCARD;
// Of a module's parameters.
enum mgx_status mgx_api_parameter_shapes(migraphx_program_parameter_shapes_t *out,
                                         const struct mgx_module *m,
                                         struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_named_shapes_new(migraphx_program_parameter_shapes_t *out,
                                         const char *const *names,
                                         const struct mgx_shape *const *shapes, size_t count,
                                         struct mgx_diag *diag) MGX_NODISCARD;
// The dimensions of a handle as an array in an arena, names and optimals too.
enum mgx_status mgx_api_dims_gather(struct mgx_arena *arena,
                                    const struct migraphx_dynamic_dimensions *dims,
                                    struct mgx_dim **out, struct mgx_diag *diag) MGX_NODISCARD;

// --- modules and programs ---
static inline struct mgx_module *mgx_api_module(const_migraphx_module_t module)
{
    return (struct mgx_module *)module;
}

static inline migraphx_module_t mgx_api_module_out(struct mgx_module *module)
{
    return (migraphx_module_t)module;
}

// What callers built may break rules that no single call can check (a value of another body, a body
// within itself): whatever walks a whole program asks here first. Costs nothing for other programs.
static inline enum mgx_status mgx_api_prove(const struct mgx_program *p, struct mgx_diag *diag)
{
    return p->by_hand ? mgx_program_verify(p, diag) : MGX_OK;
}

// The built-in operators and the registered custom ones.
extern const struct mgx_op_set mgx_api_ops;
// A registered custom operator; NULL if there is none of that name.
const struct mgx_op *mgx_api_custom_find(const char *name, size_t size);
enum mgx_status mgx_api_program_new(migraphx_program_t *out, struct mgx_program *take,
                                    struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_instruction_new(migraphx_instruction_t *out, struct mgx_ins *ins,
                                        struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_instructions_new(migraphx_instructions_t *out, struct mgx_ins *const *items,
                                         size_t count, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_modules_new(migraphx_modules_t *out, struct mgx_module *const *items,
                                    size_t count, struct mgx_diag *diag) MGX_NODISCARD;

// What every call that adds to a module asks first: may it change, are these values and bodies of
// its program?
enum mgx_status mgx_api_require_open(const struct mgx_module *m,
                                     struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_require_inputs(const struct mgx_module *m,
                                       const struct migraphx_instructions *args,
                                       struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_require_modules(const struct mgx_module *m,
                                        const struct migraphx_modules *mods,
                                        struct mgx_diag *diag) MGX_NODISCARD;

// Attributes of an operator from their text, NULL for the defaults.
enum mgx_status mgx_api_attributes(const struct mgx_op *op, const char *text,
                                   struct mgx_arena *arena, void **out,
                                   struct mgx_diag *diag) MGX_NODISCARD;

// What the target's model says of each step of the program, with the default options and what the
// environment adds; the target has such a model.
enum mgx_status mgx_api_weigh(struct mgx_program *p, const struct mgx_target *target,
                              mgx_weight_told *tell, void *to, struct mgx_diag *diag) MGX_NODISCARD;
// Compiles with the options (NULL: the defaults) and what the environment adds.
enum mgx_status mgx_api_compile(struct mgx_program *p, const struct mgx_target *target,
                                const struct migraphx_compile_options *options,
                                struct mgx_diag *diag) MGX_NODISCARD;

// For one run: another one each time, unless the caller has set one.
uint64_t mgx_api_seed(const struct mgx_api_manner *manner);
struct mgx_run;
// A run that tells who worked at what and when; `tell` may be NULL.
enum mgx_status mgx_api_run_told(const struct mgx_program *p, struct mgx_run *r,
                                 migraphx_span_callback_t tell, void *data,
                                 struct mgx_diag *diag) MGX_NODISCARD;
struct mgx_onnx_options;
// The options of a call, the defaults for NULL; refuses those that contradict each other.
enum mgx_status mgx_api_onnx_options(migraphx_onnx_options_t options,
                                     const struct mgx_onnx_options **out,
                                     struct mgx_diag *diag) MGX_NODISCARD;

// --- printing, in print.c alone ---
void mgx_api_print(const char *text); // to stdout, flushed
void mgx_api_print_program(const struct mgx_program *p);

// --- traces asked for by the environment, on stdout ---
// Prints one instruction's result as MIGRAPHX_TRACE_EVAL asks for it (level 1 and above).
void mgx_api_trace_eval(int level, const struct mgx_ins *ins, const struct mgx_tensor *value,
                        double milliseconds);
double mgx_api_milliseconds(void); // of a steady clock

// "host" is NULL; NULL and "" are the card that target("gpu") takes.
enum mgx_status mgx_api_find_memory(const char *device, const struct mgx_memory **out,
                                    struct mgx_diag *diag) MGX_NODISCARD;

// The one context of host targets.
migraphx_context_t mgx_api_host_context(void);

// --- environment: read once, in environment.c alone ---
struct mgx_api_environment {
    bool trace_compile;                 // MIGRAPHX_TRACE_COMPILE
    bool trace_passes;                  // MIGRAPHX_TRACE_PASSES
    bool time_passes;                   // MIGRAPHX_TIME_PASSES
    int trace_eval;                     // MIGRAPHX_TRACE_EVAL; above 2: all values
    int threads;                        // MIGRAPHX_NUM_THREADS; 0 = not set
    const char *isa;                    // MIGRAPHX_CPU_ISA
    const char *tuning_cache;           // MIGRAPHX_PROBLEM_CACHE
    const char *gpu_device;             // MIGRAPHX_GPU_DEVICE
    bool gpu_tf32;                      // MIGRAPHX_GPU_TF32
    const char *gemm_provider;          // MIGRAPHX_SET_GEMM_PROVIDER
    const char *kernel_folder;          // MIGRAPHX_KERNEL_CACHE, or one below the user's cache
    const char *const *disabled_passes; // MIGRAPHX_DISABLE_PASSES, split at commas
    int disabled_count;
};
const struct mgx_api_environment *mgx_api_environment(void);
