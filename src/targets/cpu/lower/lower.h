// SPDX-License-Identifier: MIT
// What the CPU target's kernels share: their list, and the way to the machine they work on.
#pragma once

#include "base/size.h"
#include "plan/kernel.h"
#include "plan/plan.h"
#include "targets/cpu/kernel/product/ahead.h"
#include "targets/cpu/machine/machine.h"

static inline const struct cpu_machine *cpu_offered(const struct mgx_plan_offer *c)
{
    return cpu_machine(c->machine);
}

static inline struct mgx_pool *cpu_pool(const struct mgx_plan_args *args)
{
    return cpu_machine(args->machine)->pool;
}

// A kernel's own axes go from an operand's first element to its last and no farther: what they
// reach when each stands at its end. For assertions.
static inline bool cpu_reaches(const struct mgx_shape *s, int64_t reach)
{
    return !mgx_shape_elements(s) || reach + 1 == mgx_shape_space(s);
}

static inline int64_t cpu_reach(const int64_t *lens, const int64_t *strides, int count)
{
    int64_t reach = 0;
    for (int i = 0; i < count; i++)
        reach += lens[i] > 1 ? (lens[i] - 1) * strides[i] : 0;
    return reach;
}

// Number i of integers that are int64 or, where not `wide`, int32.
static inline int64_t cpu_integer(const void *data, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

// Tasks that `pieces` are dealt in: one where there is less than `least` to do, else one for every
// thread.
static inline int cpu_tasks(const struct mgx_plan_offer *c, int64_t todo, int64_t least,
                            int64_t pieces)
{
    return todo < least ? 1 : (int)mgx_min_i64(pieces, c->machine->threads);
}

// Sorts axes by their strides in s, the outermost in memory first; equal ones keep their order.
static inline void cpu_sort_axes(const struct mgx_shape *s, int *axes, int count)
{
    for (int i = 1; i < count; i++) { // insertion sort: ranks are small
        const int axis = axes[i];
        int at = i;
        for (; at > 0 && s->strides[axes[at - 1]] < s->strides[axis]; at--)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
}

// Has the step's workspace room for every thread? For assertions.
static inline bool cpu_has_room(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                size_t bytes_of_thread)
{
    return step->workspace >= bytes_of_thread * (size_t)args->machine->threads &&
           (!step->workspace || (uintptr_t)args->workspace % 64 == 0);
}

// What a kernel says for the sake of the step before it (mgx_plan_kernel.more).
struct cpu_reader {
    // What `thread` reads first of packed weights.
    struct mgx_ahead (*first_read)(const void *state, int thread);
};

// --- target.c: what the CPU brings to the plan ---
extern const struct mgx_plan_target cpu_plan_target;

// --- ahead.c ---
// Tells every step which weights are read after it. What is told are addresses alone.
enum mgx_status cpu_look_ahead(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- bundle.c ---
// Finds steps that are one call.
enum mgx_status cpu_bundle(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;

// --- kernels that size their result themselves, or give several; *done stays false for what they
// do not take ---
enum mgx_status cpu_concat_append(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                                  bool *done) MGX_NODISCARD;
enum mgx_status cpu_cache_append(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                                 bool *done) MGX_NODISCARD;
enum mgx_status cpu_linear_attention(const struct mgx_plan_machine *machine,
                                     struct mgx_compute_call *c, bool *done) MGX_NODISCARD;
enum mgx_status cpu_topk(struct mgx_compute_call *c, bool *done) MGX_NODISCARD;
enum mgx_status cpu_nonzero(struct mgx_compute_call *c, bool *done) MGX_NODISCARD;
enum mgx_status cpu_nonmaxsuppression(mgx_isa isa, struct mgx_compute_call *c,
                                      bool *done) MGX_NODISCARD;

// --- conv.c ---
// mgx_pass_options.floats_pay: a convolution of bfloat16 that has a method of fewer products for
// floats, by the cost model. `user` is a struct cpu_floats.
struct cpu_floats {
    mgx_isa isa;
    int threads;
    bool fast_math;
};
bool cpu_floats_pay(void *user, const struct mgx_ins *product);

// --- kernels.c: in order of trial ---
extern const struct mgx_plan_kernel *const cpu_kernels[];      // the last one is the reference
extern const struct mgx_plan_kernel *const cpu_late_kernels[]; // without it
// A line CPU_KERNEL(conv, 20) before the object cpu_kernel_conv has the build put it on the lists;
// the number is its place among the others, the most specific first. Order is meaning, so it is
// said, and no number twice.
#define CPU_KERNEL(name, place)

#define KERNEL(name) extern const struct mgx_plan_kernel cpu_kernel_##name;
#include "cpu_kernel_list.inc"
#undef KERNEL
