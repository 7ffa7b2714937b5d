// SPDX-License-Identifier: MIT
// The CPU target's own structures: how a program becomes a plan, and what runs it.
//
//   program --passes--> fused program --layout--> physical shapes --kernels--> steps
//   --schedule--> order --memory--> plan
//
// A value is what an instruction makes; its physical shape (strides) is the planner's choice, the
// logical lengths are the instruction's. A view is a value without bytes of its own: root + offset.
// A step is one call of one kernel.
//
// Holds: after compile everything here is immutable but the pool of contexts; a context belongs to
// one run at a time and holds the scratch block, the kernels' workspaces lie in that block too. run
// allocates nothing once its context exists, but for what dynamic steps (sizes known only at run
// time) need.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "targets/cpu/cpuid.h"
#include "targets/cpu/kernel/ahead.h"
#include "targets/cpu/pool.h"
#include "targets/target.h"
#include "targets/tuning.h"

struct cpu_plan;
struct cpu_step;

enum cpu_place {
    CPU_SCRATCH, // offset into the context's block
    CPU_CONST,   // absolute address of immutable bytes
    CPU_PARAM,   // caller's bytes
    CPU_RESULT,  // the run's result number `index`
    CPU_DYNAMIC, // tensor slot `index` of the context: shape known at run time
};

struct cpu_value {
    const struct mgx_ins *ins;
    struct mgx_shape shape; // physical; of a dynamic value: what is known
    struct cpu_value
        *root;      // itself, or the value this one is a view of (which may be a view again)
    int64_t offset; // bytes from the root's first byte
    bool dynamic;
    bool bound; // a root that was placed inside another value before it was computed (concat)
    // Of a root:
    enum cpu_place place;
    int index;        // of parameter, result or dynamic slot
    const void *data; // CPU_CONST
    size_t bytes;     // CPU_SCRATCH
    size_t scratch;   // CPU_SCRATCH: offset in the block
    int first, last;  // steps between which the bytes must stay
};

struct cpu_result {
    struct cpu_value *value; // its place is CPU_RESULT, or it is dynamic
    struct mgx_shape shape;
};

// Where a kernel finds an operand at run time.
struct cpu_ref {
    enum cpu_place place;
    int index;
    int64_t offset;
    const void *data;
};

struct cpu_args { // resolved operands of one call
    void **in;    // in_count pointers; NULL for inputs the kernel said it does not read
    void *out;
    void *workspace;
    struct cpu_context *context;
};

// A kernel family as the planner sees it: a const object cpu_kernel_<name> in lower/<name>.c.
// Candidates for an instruction are tried in order of the table in kernels.c; `prepare` accepts by
// filling c->state (and may pack constants), or declines with a reason, which the plan's
// explanation prints.
enum cpu_want {
    CPU_AS_IT_IS,
    CPU_ROW_MAJOR,
    CPU_LIKE_RESULT, // in the result's order of memory, packed
};

// A constant of this many bytes or more may lie at any address; smaller ones suit their type.
enum { CPU_WEIGHT_BYTES = 16 << 10 };

struct cpu_prepare {
    struct cpu_plan *plan;
    const struct mgx_ins *ins;
    const struct mgx_shape *in; // physical shapes, in_count
    int in_count;
    const struct mgx_tensor *const *constant; // value of a literal input, or NULL
    const struct mgx_shape *out;              // physical shape of the result
    bool dynamic;                             // sizes are known only at run time
    bool copy_only; // whatever ins says, copy in[0] to out (relayouts, pieces of a concat)
    // What prepare says:
    void *state;      // immutable, in plan->arena
    size_t workspace; // bytes of scratch during the call
    bool *skip_in; // inputs that run does not read (packed constants); in_count flags, all false at
                   // first
    unsigned char *want_in; // enum cpu_want: decline, and be asked again with that input copied so
    int in_place;           // input whose bytes the result may reuse (same physical shape), -1 none
    const char *why;        // reason of a refusal, static text
    const char
        *detail; // what was chosen, for the explanation ("winograd 4x4"), static or in plan->arena
    double flops;
    struct mgx_diag *diag;
};

struct cpu_kernel {
    const char *name;
    bool (*prepare)(
        struct cpu_prepare *c); // false: declined (c->why), or failed (c->diag has a status)
    enum mgx_status (*run)(const struct cpu_step *step, const struct cpu_args *args,
                           struct mgx_diag *diag);
    // What `thread` reads first of packed weights; NULL: of none, or too little to matter.
    struct mgx_ahead (*first_read)(const void *state, int thread);
};

struct cpu_step {
    const struct cpu_kernel *kernel;
    const struct mgx_ins *ins;
    void *state;
    struct cpu_ref *in;
    struct cpu_value **in_value; // for shapes and dynamic steps
    int in_count;
    bool *skip;    // inputs that run does not read
    int own_count; // of them the instruction's inputs; the rest are what its bodies capture
    struct cpu_ref out;
    struct cpu_value *out_value;
    int in_place;                        // input whose bytes the result may take over, -1 none
    size_t workspace, workspace_scratch; // bytes and offset in the block
    int *drop;                           // dynamic slots to release afterwards
    int drop_count;
    const struct mgx_ahead *next; // by thread: what a step soon after reads first; NULL: not known
    const char *detail, *why;     // for the explanation
    double flops;                 // of products: multiplications and additions
};

struct cpu_context {
    struct cpu_context *next; // in the pool
    struct cpu_plan *plan;
    unsigned char *scratch;
    void **in;                    // room for a step's pointers
    struct mgx_tensor *dynamic;   // slots
    struct mgx_tensor *values;    // frame for bodies: by ins->index, borrowed
    struct mgx_storage **results; // reused when the caller has let go of the last run's
    const struct mgx_named_tensor *params;
    struct mgx_tensor *out;
    unsigned dying; // bits of the step's inputs that nobody reads after it, while it starts
    struct mgx_arena strings;
    struct mgx_eval eval;
};

// The tensor of a dynamic value: strings, tuples and sequences may be literals too.
static inline const struct mgx_tensor *cpu_dynamic_tensor(const struct cpu_context *x,
                                                          const struct cpu_value *v)
{
    return v->place == CPU_PARAM   ? &x->params[v->index].tensor
           : v->place == CPU_CONST ? v->ins->literal
                                   : &x->dynamic[v->index];
}

struct cpu_end {
    struct cpu_end *next;
    void (*fn)(void *user);
    void *user;
};

struct cpu_choices;
struct cpu_blocks;
struct cpu_join;
struct cpu_folder;

// How a constant is packed: `fill` writes its share of the packed bytes from the source, the shares
// in any order and by any thread. `kernel` is what the kernel family needs to know for it.
struct cpu_fill {
    void (*fill)(const struct cpu_fill *f, int part, int parts);
    const void *kernel;
    const void *source[4]; // [0] is what counts: its pages may leave memory behind the packer
    size_t source_bytes;   // of [0]
    void *packed;
    size_t packed_bytes;
    struct cpu_fill *next;
};

// The thread that makes huge pages of small ones; see grow.c.
struct cpu_growth {
    _Atomic bool begun, stop;
    int64_t runs;  // before it begins; under the plan's lock
    pid_t process; // that it belongs to; 0: there is none
    pthread_t thread;
    // As they were when it began: chunks of constants, the last one's end, a context's scratch.
    struct mgx_storage *const *packed;
    size_t chunks;
    unsigned char *end;
    void *scratch;
};

struct cpu_plan {
    struct mgx_executable base;
    struct cpu_plan *parent; // of a kernel chosen at run time (choice.h): the plan it belongs to
    struct mgx_arena arena;
    const struct mgx_program *program;
    enum mgx_isa isa;
    struct mgx_pool *pool;
    int threads;
    bool fast_math, exhaustive_tune;
    struct mgx_tuning tuning;        // what was measured, now or before
    int tuned_count, measured_count; // kernels chosen by it; problems measured by this compilation
    const char *tuning_lost;         // why the cache could not be written; NULL: it could
    struct cpu_value *values;        // by ins->index of main
    int value_count;
    struct cpu_value **all; // the same and the temporaries that steps needed
    int all_count, all_capacity;
    struct cpu_step *steps;
    int step_count, step_capacity;
    int dynamic_count, max_in;
    size_t scratch_bytes, lower_bound_bytes;
    size_t given_peak_bytes, order_peak_bytes; // most bytes alive in the program's order, and ours
    struct cpu_result *results;
    int result_count;
    struct mgx_ins **params; // in order of creation
    int param_count;
    struct mgx_kept packed; // storages that packed constants lie in
    size_t packed_bytes;
    unsigned char *chunk; // where the next packed constant goes, and the room there
    size_t chunk_left;
    struct mgx_map packs; // key -> packed data, so that equal weights are packed once
    struct cpu_fill *first_fill, *last_fill; // not done yet
    bool fill_later;                         // by cpu_fill_all, all together
    struct cpu_join *joins;                  // joined weights that have addresses
    struct mgx_map literals;     // address of a literal's bytes -> the same, of all modules
    struct cpu_choices *choices; // kernels chosen at run time, under the lock
    struct cpu_blocks *blocks;   // memory of large tensors made at run time; NULL: the heap
    size_t late_bytes;           // packed for them, of packed_bytes
    struct cpu_end *ends;        // what kernels want done when the plan goes
    pthread_mutex_t lock;        // of the pool of contexts and of what is chosen at run time
    struct cpu_context *pool_of_contexts;
    struct cpu_growth growth;
};

// --- fuse.c: groups of instructions that one kernel computes ---
extern const struct mgx_pass *const cpu_pipeline[]; // ends with NULL
// --- expand.c ---
extern const struct mgx_pass cpu_pass_fuse_expand;
// --- softmax.c ---
extern const struct mgx_pass cpu_pass_find_softmax;

// --- target.c ---
// An empty plan: instruction set, threads, options.
enum mgx_status cpu_plan_create(const struct mgx_program *p,
                                const struct mgx_compile_options *options, struct cpu_plan **out,
                                struct mgx_diag *diag) MGX_NODISCARD;
void cpu_plan_destroy(struct cpu_plan *plan);

// --- fold.c ---
// Sets what folding is offered in `pass`, for as long as the folder lives. NULL when out of memory.
struct cpu_folder *cpu_folder_create(const struct mgx_program *p,
                                     const struct mgx_compile_options *options,
                                     struct mgx_pass_options *pass);
void cpu_folder_destroy(struct cpu_folder *folder); // NULL is allowed

// --- layout.c ---
// Physical shapes of all values; view values get root and offset.
enum mgx_status cpu_choose_layouts(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
// The view operator's result over a physical input, or false when it needs a copy.
bool cpu_view(const struct mgx_ins *ins, const struct mgx_shape *in, struct mgx_arena *arena,
              struct mgx_shape *out, int64_t *offset_bytes);

// The order of memory an instruction's result has by nature, given its lengths and its inputs'
// shapes: channels last for convolutions and their kind, that of the largest input for what follows
// its inputs, else row-major.
struct mgx_shape cpu_natural_layout(const struct mgx_ins *ins, const struct mgx_shape *lens,
                                    const struct mgx_shape *in, int in_count);
// Strides for the lengths of *to over the bytes of `from`, in the same row-major order of elements;
// false where an axis would have to jump.
bool cpu_reshape_view(const struct mgx_shape *from, struct mgx_shape *to);

// --- plan.c ---
enum mgx_status cpu_build_steps(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
// NULL for an instruction of another module.
struct cpu_value *cpu_value_of(const struct cpu_plan *plan, const struct mgx_ins *ins);
// Follows views to the value that owns the bytes; adds up the offsets.
struct cpu_value *cpu_root(struct cpu_value *v, int64_t *offset);

// --- schedule.c ---
// Brings the steps into an order that keeps few bytes alive.
enum mgx_status cpu_schedule(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- ahead.c ---
// Tells every step which weights are read after it. What is told are addresses alone.
enum mgx_status cpu_look_ahead(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- memory.c ---
enum mgx_status cpu_plan_memory(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- run.c ---
enum mgx_status cpu_run(const struct mgx_program *p, struct mgx_run *run, struct mgx_diag *diag);
void cpu_context_destroy(struct cpu_context *context);

// --- grow.c ---
// After every run: where pages were left small, lets them grow from the third one on.
void cpu_grow(struct cpu_plan *plan, struct cpu_context *x);
// Before anything of the plan goes.
void cpu_grow_end(struct cpu_plan *plan);

// --- pack.c ---
// Where a constant is packed, 64-byte aligned, kept by the plan; the bytes are there before the
// first run, not at once. `key` (kernel, literal, parameters) finds one packed before, which then
// serves again. NULL on failure.
void *cpu_pack(struct cpu_plan *plan, const void *key, size_t key_size, size_t bytes,
               const struct cpu_fill *how, struct mgx_diag *diag);
// Fills all that was put off, by all threads of the plan's pool.
enum mgx_status cpu_fill_all(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
// Constants that steps read as they are, at an address that suits their type.
enum mgx_status cpu_align_constants(struct cpu_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- join.c ---
// A large concat of literals that stays one, to be packed piece by piece.
bool cpu_is_join(const struct mgx_ins *ins);
// Makes literals of those that anything but a planned product reads.
enum mgx_status cpu_settle_joins(struct mgx_program *p, struct mgx_diag *diag) MGX_NODISCARD;
// Addresses for a concat in this physical shape; no memory lies behind them. NULL on failure.
const void *cpu_join(struct cpu_plan *plan, const struct mgx_ins *ins,
                     const struct mgx_shape *shape, struct mgx_diag *diag);
// If `data` lies in a joined constant: its bytes are there until dropped, or (keep) to the end.
void cpu_join_fill(struct cpu_plan *plan, const void *data, bool keep);
void cpu_join_drop(struct cpu_plan *plan, const void *data);

// fn(user) when the plan is destroyed; at once, with a failure, when that cannot be noted.
bool cpu_at_end(struct cpu_plan *plan, void (*fn)(void *user), void *user, struct mgx_diag *diag);

// --- kernels.c ---
extern const struct cpu_kernel
    *const cpu_kernels[]; // in order of trial; ends with NULL; `ref` takes everything
extern const struct cpu_kernel cpu_kernel_ref, cpu_kernel_copy, cpu_kernel_pointwise,
    cpu_kernel_gemm, cpu_kernel_attention, cpu_kernel_conv, cpu_kernel_softmax, cpu_kernel_reduce,
    cpu_kernel_pooling, cpu_kernel_norm, cpu_kernel_rnn, cpu_kernel_gather, cpu_kernel_resize,
    cpu_kernel_pad, cpu_kernel_gathernd, cpu_kernel_scatter, cpu_kernel_roialign;
