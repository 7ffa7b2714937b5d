// SPDX-License-Identifier: MIT
// Kernels chosen at run time, remembered: by operator, attributes, shapes and constants of a call.
//
// The planner decides ahead of time where sizes are known; this is the same decision for the rest
// (sizes that follow from values, bodies of loops, nodes that wait for the run). A choice holds
// what `prepare` made of it in memory of its own, so that it can go when the plan's choices exceed
// MGX_PLAN_CHOICE_BYTES: the least recently used go first, never one that is running.
//
// An operator that stands for others (mgx_op.expand: a model's node that waited for its inputs) is
// expanded once for its shapes, and where that does not suffice for the values of its small integer
// inputs; the program it becomes is remembered and evaluated.
//
// Cost: a call seen before takes a hash of its shapes; a new one plans its kernel, microseconds.
#pragma once

#include "plan/late.h"

enum { MGX_PLAN_CHOICE_INPUTS = 8 }; // of a kernel; operators that expand may have more

// One input: the key, and what becomes of it.
struct mgx_plan_choice_in {
    struct mgx_shape shape;
    const void *constant;    // address of a literal of the program, or NULL
    struct mgx_tensor value; // of a small integer input, if values are part of the key
    const void *aligned;     // bytes of a constant that lies at an odd address and is read, or NULL
    void *pack;              // state of a copy that comes first, or NULL
    struct mgx_shape packed; // its result
};

struct mgx_plan_choice {
    struct mgx_plan_choice *next;          // in its bucket
    struct mgx_plan_choice *newer, *older; // by use
    uint64_t hash;
    int users; // runs that hold it
    // The key. `ins` is made up: operator, attributes, bodies, and inputs that have but a shape.
    struct mgx_ins ins;
    struct mgx_plan_choice_in *in;
    bool by_value; // small integer inputs by their values too
    // What was chosen.
    struct mgx_plan_store own; // states, packed constants and clean-up of its own
    struct mgx_shape out;
    const struct mgx_plan_kernel *kernel; // NULL: the reference
    void *state;
    size_t workspace;
    int in_place; // input whose bytes the result may take over, -1 none
    // Of an operator that expands: what it stands for, as a program of the inputs without a value.
    struct mgx_program *program;
    bool wants_value; // nothing: the values of small inputs would be needed
};

// The choice for a call, held until mgx_plan_choice_release. NULL in *out: too little memory to
// remember one.
enum mgx_status mgx_plan_choice_require(struct mgx_plan_late *late,
                                        const struct mgx_compute_call *c, bool by_value,
                                        struct mgx_plan_choice **out,
                                        struct mgx_diag *diag) MGX_NODISCARD;
void mgx_plan_choice_release(struct mgx_plan_late *late, struct mgx_plan_choice *choice);

void mgx_plan_choices_destroy(struct mgx_plan_late *late);
