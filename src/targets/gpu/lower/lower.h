// SPDX-License-Identifier: MIT
// What the GPU target's kernels share: from source text to a step, and the step's launch.
//
// A kernel family writes source text for one instruction with all sizes as constants. Equal texts
// are one unit, so a network's repeated layers compile once. Units are made when the plan is
// complete, several at a time (gpu_finish).
#pragma once

#include "plan/kernel.h"
#include "plan/plan.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/machine/machine.h"

struct mgx_product_roles; // pass/engine/product.h

enum { GPU_CALL_INPUTS = 32, GPU_THREADS = 256 };

struct gpu_call { // state of a step
    struct gpu_unit *unit;
    void *kernel; // set by gpu_finish
    struct gpu_launch how;
    int in_count;
    unsigned char in[GPU_CALL_INPUTS]; // which inputs are passed, behind the result
    // How many ranges of its results it leaves (ranged.h), 0: none; where in its workspace, or, where somebody
    // joins them, in the card's block of a run.
    int ranges;
    size_t ranges_at, kept_at;
    bool kept, ranges_alone;
};

// On the device, and all of what it seems.
static inline bool gpu_step_is_plain(const struct mgx_plan_step *step)
{
    return !step->copies && !step->drop_count && step->side == MGX_PLAN_DEVICE;
}

// Where it leaves them.
void *gpu_ranges_place(const struct gpu_call *call, const struct mgx_plan_args *args);

static inline bool gpu_has_double(const struct mgx_plan_offer *c)
{
    return gpu_machine(c->machine)->device->properties.features & GPU_DOUBLE;
}

// The text, with the prelude, as a unit that the machine keeps; NULL when out of memory.
struct gpu_unit *gpu_unit_of(struct gpu_machine *m, const char *name, const struct mgx_str *text);
// Takes the offer with the kernel `run` of `text` (without the prelude; emptied). Parameters of the
// kernel are the result and the inputs in[0..in_count), or all of them when `in` is NULL.
enum mgx_plan_answer gpu_take(struct mgx_plan_offer *c, struct mgx_str *text,
                              const struct gpu_launch *how, const int *in, int in_count);
// The same for a state that begins with a call, whose kernel is found by a family's finish.
enum mgx_plan_answer gpu_take_call(struct mgx_plan_offer *c, struct gpu_call *call,
                                   struct mgx_str *text, const struct gpu_launch *how,
                                   const int *in, int in_count);
// What a kernel family does itself when all units are made: mgx_plan_kernel.more.
struct gpu_family {
    enum mgx_status (*finish)(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag);
};
// Do kernels compute with values of this type, on this card?
static inline bool gpu_computes(const struct mgx_plan_offer *c, enum mgx_type type)
{
    return gpu_type_class(type) != GPU_NONE && (type != MGX_DOUBLE || gpu_has_double(c));
}

// The same everywhere.
static inline bool gpu_is_number(const struct mgx_shape *s)
{
    bool same = true;
    for (int axis = 0; axis < s->rank; axis++)
        same = same && (s->lens[axis] <= 1 || s->strides[axis] == 0);
    return same;
}

// A step as its kernel was offered it, for a text that does more; shapes of its inputs come into `in`.
struct mgx_plan_offer gpu_offer_of(const struct mgx_plan *plan, const struct mgx_plan_step *step,
                                   struct mgx_shape in[GPU_CALL_INPUTS]);

// The answer "declined", with a reason.
enum mgx_plan_answer gpu_decline(struct mgx_plan_offer *c, const char *why);

// Writes the function `body` of an element-wise instruction (op/source.h): operands by value, the
// result by pointer. Why it cannot be written, static text; NULL if it can.
const char *gpu_emit_body(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct mgx_ins *ins);
// The same of two instructions that one text calls: `body`, and `make` of what makes an operand; NULL
// for the one that there is not.
// `real`: operands of the body that come as floats (op/source.h), a bit each.
const char *gpu_emit_bodies(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct mgx_ins *body, const struct mgx_ins *make, uint64_t real);
// The same of any number of them. looks_up: what is a function of one byte may be a table, of one
// function of a text.
struct gpu_function {
    const char *name;
    const struct mgx_ins *ins; // NULL: it is not written
    uint64_t real;
    bool looks_up;
    bool stored, cut; // its result is stored, which rounds it to fp8, and cuts it off (op/source.h)
    bool steps;       // its result is a number of steps above 1.5 * 2^23 (mgx_source_step)
};
const char *gpu_emit_functions(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_function *f, int count);
// Which operands of an element-wise instruction are bytes, or (product) sums of 32 bits, that may come as
// floats: a bit each. `place`: the product's among them, -1: there is none.
uint64_t gpu_real_operands(const struct mgx_ins *ins, int place);
// Statements: y = body(v0, v1, ...).
void gpu_emit_body_call(struct mgx_str *out, enum mgx_type result, int operands);
void gpu_emit_call(struct mgx_str *out, const char *name, enum mgx_type result, int operands);

// How many of so many elements a thread may take before threads become too few.
int gpu_vector_for(int64_t elements);
// Threads for `count` elements, one each.
struct gpu_launch gpu_launch_for(int64_t count);
// "KERNEL void run(GLOBAL float *out, const GLOBAL float *in0, ...)": types of result and inputs.
void gpu_emit_head(struct mgx_str *out, enum mgx_type result, const enum mgx_type *in,
                   int in_count);
// The same, open: ")\n" is missing.
void gpu_emit_parameters(struct mgx_str *out, enum mgx_type result, const enum mgx_type *in,
                         int in_count);
// The same, open: the body goes on with o0, o1, ..., the coordinates of the thread's element of the
// result, and at0, its offset.
void gpu_emit_start(struct mgx_str *out, const struct mgx_shape *result, const enum mgx_type *in,
                    int in_count);

enum mgx_status gpu_run_call(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                             struct mgx_diag *diag);
// Makes all units and finds the kernels.
enum mgx_status gpu_finish(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
// Finds the kernels of the bundles that `run` runs, whose states begin with a struct gpu_call.
typedef enum mgx_status gpu_bundle_run(const void *state, const struct mgx_context *x, bool *done,
                                       struct mgx_diag *diag);
enum mgx_status gpu_bundles_find(struct mgx_plan *plan, gpu_bundle_run *run,
                                 struct mgx_diag *diag) MGX_NODISCARD;

// Whether the attention kernel takes this pair of products, of floats or fp8, wherever their operands lie.
bool gpu_attention_supports(const struct gpu_device *d, const struct mgx_ins *scores,
                            const struct mgx_ins *weigh);

// The same of products of bytes.
bool gpu_attention_bytes_supports(const struct gpu_device *d, const struct mgx_ins *scores,
                                  const struct mgx_ins *weigh);
// Whether either takes what the scores are combined with, and leaves what comes last.
bool gpu_attention_bytes_reads(const struct mgx_ins *between, const struct mgx_ins *last);

// Whether a kernel here takes this operator of a decoder's caches, wherever its operands lie.
bool gpu_cache_supports(const struct gpu_device *d, const struct mgx_ins *ins);

// Whether a kernel here takes this product by experts, wherever its operands lie.
bool gpu_experts_supports(const struct mgx_ins *ins);

// Whether the Hopper kernel packs this image before it multiplies, so that it may as well make it.
bool gpu_wgmma_packs(const struct gpu_device *d, const struct mgx_ins *make,
                     const struct mgx_ins *conv);

// Whether a product of bytes that are computed sums up its rows and columns on its matrix units, for their zero points.
bool gpu_product_takes_zeros(const struct gpu_device *d, const struct mgx_ins *dot);

// Whether depthwise convolutions of bytes take what puts bytes around their image.
bool gpu_direct_pads(const struct mgx_ins *pad, const struct mgx_ins *conv);
// Whether the Hopper kernel does what this puts around a convolution's image of bytes: wgmma_border.c.
bool gpu_wgmma_pads(const struct gpu_device *d, const struct mgx_ins *pad,
                    const struct mgx_ins *conv);
// What products take (takes.c, pass/engine/product.h); `user` is the device.
struct mgx_product_roles;
bool gpu_takes(void *user, const struct mgx_product_roles *roles);

// The plan in MIGraphX's words: print.c.
void gpu_print_program(const struct mgx_program *p, struct mgx_str *out);

// --- kernels.c ---
extern const struct mgx_plan_kernel *const gpu_kernels[];

// In order of trial. A family's file defines gpu_kernel_<name>; this is the one place that lists it.
// clang-format off
#define GPU_KERNELS(X)                                                                             \
    X(copy) X(depthwise) X(direct) X(few) X(vendor) X(wgmma) X(attention) X(attention_bytes)               \
    X(product) X(pointwise) X(reduce) X(softmax) X(pool_plane) X(pooling) X(fused_reduce) X(gather)           \
    X(resize) X(pick) X(scan) X(scatter) X(lrn) X(grid_sample) X(topk) X(linear_attention)         \
    X(rnn_cluster) X(rnn) X(col2im) X(deform) X(pool_indices) X(max_unpool) X(roialign) X(det)     \
    X(tfidf) X(trees) X(nonzero) X(byte_range) X(suppression) X(unique) X(cache_append) X(rotary)                \
    X(cache_attention) X(paged_append) X(inverse) X(choose_token) X(sum_over_cards) X(bits) X(expert_dot)                \
    X(absent)
// clang-format on
#define X(name) extern const struct mgx_plan_kernel gpu_kernel_##name;
GPU_KERNELS(X)
#undef X

// Microseconds of a launch that does nothing but move so many bytes; fits to H200s.
#define GPU_BYTES_A_MICROSECOND 3e6
static inline double gpu_moving(double bytes)
{
    return 1.1 + bytes / GPU_BYTES_A_MICROSECOND;
}
