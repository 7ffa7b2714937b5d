// SPDX-License-Identifier: MIT
// A convolution's weights in the order that its kernel reads.
//
// Constant weights are packed once, when the plan is made, and found again by key. Weights that the
// run computes (experts mixed for every sample, generated filters) are packed at the beginning of
// every call into room behind the kernel's own workspace: one move for each weight, where the
// convolution multiplies each by every pixel of its result.
#pragma once

#include "targets/cpu/kernel/image/conv.h"
#include "targets/cpu/lower/lower.h"

struct cpu_conv_weights {
    int input;          // of the offer, then of the step
    const void *packed; // NULL: in every run
    size_t at;          // where, in the step's workspace
    int parts;          // that threads pack
};

// What the keys of packed weights are made of beside the plan. `zero` is the constant that the
// weights' zero points are, or NULL.
struct cpu_conv_source {
    const struct mgx_conv_desc *desc;
    const void *zero;
};

// Packs constant weights; of others it notes that the run is to. False when out of memory.
bool cpu_conv_weights_pack(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                           const struct cpu_conv_source *source, struct cpu_conv_weights *w);
// Room behind what c->workspace has already, where the run packs.
void cpu_conv_weights_room(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                           struct cpu_conv_weights *w);
// The seconds that packing for this plan would take; 0 if that is done.
double cpu_conv_weights_seconds(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                                const struct cpu_conv_source *source,
                                const struct cpu_conv_weights *w);
// Where a run finds them packed.
const void *cpu_conv_weights_ready(const struct cpu_conv_weights *w,
                                   const struct mgx_conv_plan *plan,
                                   const struct mgx_plan_args *args);
