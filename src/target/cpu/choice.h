// SPDX-License-Identifier: MIT
// Kernels chosen at run time, remembered: by operator, attributes, shapes and constants of a call.
//
// The planner decides ahead of time where sizes are known; this is the same decision for the rest
// (sizes that follow from values, bodies of loops, nodes that wait for the run). A choice holds
// what `prepare` made of it in memory of its own, so that it can go when the plan's choices exceed
// CPU_CHOICE_BYTES: the least recently used go first, never one that is running.
//
// Cost: a call seen before takes a hash of its shapes; a new one plans its kernel, microseconds.
#pragma once

#include "target/cpu/cpu.h"

enum { CPU_CHOICE_INPUTS = 8 };

struct cpu_choice {
    struct cpu_choice *next;          // in its bucket
    struct cpu_choice *newer, *older; // by use
    uint64_t hash;
    int users; // runs that hold it
    // The key. `ins` is made up: operator, attributes, bodies, and inputs that have but a shape.
    struct mgx_ins ins;
    struct mgx_shape in[CPU_CHOICE_INPUTS];
    const void *constant[CPU_CHOICE_INPUTS]; // address of a literal of the plan, or NULL
    // What was chosen.
    struct cpu_plan own; // what prepare sees: arena, packed constants and clean-up of its own
    struct mgx_shape out;
    const struct cpu_kernel *kernel; // NULL: the reference
    void *state;
    size_t workspace;
    void *pack[CPU_CHOICE_INPUTS]; // state of a copy that comes first, or NULL
    struct mgx_shape packed[CPU_CHOICE_INPUTS];
};

struct cpu_choices; // of a plan

// The choice for a call, held until cpu_choice_release. NULL in *out: too little memory to remember
// one.
enum mgx_status cpu_choice_require(struct cpu_plan *plan, const struct mgx_compute_call *c,
                                   struct cpu_choice **out, struct mgx_diag *diag) MGX_NODISCARD;
void cpu_choice_release(struct cpu_plan *plan, struct cpu_choice *choice);

void cpu_choices_destroy(struct cpu_plan *plan);
