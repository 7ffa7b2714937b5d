// SPDX-License-Identifier: MIT
// What the parts of range_bundle.c share: what is done with each step of a plan that is quantized while it runs.
#pragma once

#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/wgmma.h"

enum { GPU_RANGE_PRODUCERS = 2 };

enum gpu_range_how {
    GPU_RANGE_AS_IT_IS,
    GPU_RANGE_LEFT_OUT,   // somebody else does it
    GPU_RANGE_JOINED,     // a range, of what the steps in front have left
    GPU_RANGE_BYTES,      // makes bytes, by a range that it may join itself: kernel/range_bytes.gpu
    GPU_RANGE_QUANTIZING, // a product that makes its bytes itself
    GPU_RANGE_SUMMING,    // a product that sums up its rows itself
};

struct gpu_range_action {
    enum gpu_range_how how;
    int until; // the last step of what begins here
    // Of a range: steps in front that leave it, in order, 0: it is a kernel's own; how many ranges they leave, and
    // the first.
    int producers, producer[GPU_RANGE_PRODUCERS], parts, first_parts;
    // Of bytes and of products that make them: their kernel, the step that has the floats as input x, and that
    // of the range.
    struct gpu_call call; // of a join too
    struct gpu_wgmma_call *product;
    int from, x, range;
    bool unread;      // of a producer: its range is all that is asked for
    int summed, zero; // of a product: as struct gpu_wgmma_product has them
    bool said;        // the step's detail is of this; before it was `before`
    const char *before;
};

struct gpu_range_plan {
    struct mgx_plan *plan;
    struct gpu_range_action *actions; // by steps
};

// The call that a step's kernel is launched by, if it leaves ranges; NULL: it does not.
const struct gpu_call *gpu_range_call(const struct gpu_range_plan *p, int s);
// How many ranges the producers of step `range` leave, and the first one of them alone.
int gpu_range_parts(const struct gpu_range_plan *p, int range, int *first);
// Behind step s, before step `end`: the one that is the instruction's; 0: there is none.
int gpu_range_step_of(const struct gpu_range_plan *p, const struct mgx_ins *ins, int s, int end);
// What is said of a step that is done so; `detail` in the arena, or static.
void gpu_range_say(const struct gpu_range_plan *p, int s, const char *detail);
// The same, behind what was said: static text.
void gpu_range_add(const struct gpu_range_plan *p, int s, const char *more);
// Room for what the step's new call works in.
static inline void gpu_range_reserve(struct mgx_plan_step *step, const struct gpu_call *call)
{
    const size_t bytes = call->ranges_at + (size_t)call->ranges * 2 * sizeof(float);
    step->workspace = step->workspace > bytes ? step->workspace : bytes;
}
// All from the steps' own first to their last is one bundle.
void gpu_range_tie(const struct gpu_range_plan *p, int first, int last);

// --- range_sums.c ---
// If step s is sums of windows, which products take off: they sum up themselves.
void gpu_range_sums(const struct gpu_range_plan *p, int s);
// The kernel of a product that does, and nothing else.
enum mgx_status gpu_range_sum(const struct gpu_range_plan *p, int s,
                              struct mgx_diag *diag) MGX_NODISCARD;

// --- range_bytes.c ---
// If step s makes bytes by a range: by whom, and how.
enum mgx_status gpu_range_bytes(const struct gpu_range_plan *p, int s,
                                struct mgx_diag *diag) MGX_NODISCARD;
