// SPDX-License-Identifier: MIT
// What planning needs beside the plan, and the stages it goes through, in order. Gone after
// compile.
#pragma once

#include "plan/contest.h"
#include "plan/plan.h"

struct mgx_plan_values {
    MGX_ARRAY(struct mgx_plan_value *);
};

struct mgx_plan_steps {
    MGX_ARRAY(struct mgx_plan_step);
};

struct mgx_build {
    struct mgx_plan *plan;
    struct mgx_plan_tuner tuner;
    struct mgx_plan_values all;  // the plan's values and the temporaries that steps needed
    struct mgx_plan_steps steps; // becomes the plan's
    bool only_steps;             // struct mgx_plan_settings
    bool host_ends;              // parameters and results are the host's
};

// Where a constant's bytes are is known, unless it has none.
static inline bool mgx_plan_is_there(const struct mgx_plan_value *root)
{
    return root->data || !mgx_shape_elements(&root->shape);
}

// --- value.c ---
// All bytes of the value are some of its root's. Nothing is said of one whose size is not known.
bool mgx_plan_lies_inside(struct mgx_plan_value *v);
bool mgx_plan_build_list(struct mgx_build *b, struct mgx_plan_value *v); // false when out of memory
// A root of its own; a slice of another value's bytes. NULL when out of memory.
struct mgx_plan_value *mgx_plan_build_value(struct mgx_build *b, const struct mgx_ins *ins,
                                            const struct mgx_shape *shape, enum mgx_plan_side side);
struct mgx_plan_value *mgx_plan_build_slice(struct mgx_build *b, const struct mgx_ins *ins,
                                            const struct mgx_shape *shape,
                                            struct mgx_plan_value *of, int64_t offset);
// The value where this side reads it: itself, or the same view of its root's twin, which is made,
// and filled by a step, if there is none that is up to date.
enum mgx_status mgx_plan_build_on(struct mgx_build *b, const struct mgx_ins *ins,
                                  struct mgx_plan_value *v, enum mgx_plan_side side,
                                  struct mgx_plan_value **out, struct mgx_diag *diag) MGX_NODISCARD;

// --- step.c ---
// A new step at the end, with room for inputs; NULL when out of memory.
struct mgx_plan_step *mgx_plan_build_step(struct mgx_build *b, const struct mgx_ins *ins,
                                          int in_count, struct mgx_plan_value *out);
// Which kernel computes what, on which values.
enum mgx_status mgx_plan_build_steps(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;

// --- the stages after that, each in the file of its name ---
// Steps whose results nobody reads after all go.
void mgx_plan_build_unread(struct mgx_build *b);
// Brings the steps into an order that keeps few bytes alive.
enum mgx_status mgx_plan_build_schedule(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
// Between which steps bytes stay; results take over bytes of inputs that die; dynamic values get
// their slots.
enum mgx_status mgx_plan_build_live(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
// Constants that steps read as they are: at an address that suits their type, and on the side that
// reads them.
enum mgx_status mgx_plan_build_constants(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
// Offsets in the blocks of both sides.
enum mgx_status mgx_plan_build_memory(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
