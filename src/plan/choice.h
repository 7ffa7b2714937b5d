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

enum {
    MGX_PLAN_CHOICE_INPUTS = 8,      // of a kernel; operators that expand may have more
    MGX_PLAN_CHOICE_BEHIND = 4096,   // bytes behind a copy of an input, which kernels may read
    MGX_PLAN_CHOICE_BYTES = 64 << 20 // of all choices of a plan, at most
};

// What becomes of one input. A new length makes a choice of every operator that it reaches: so
// there is memory for what an input has, and no more.
struct mgx_plan_choice_in {
    const void *constant;     // address of a literal of the program, or NULL
    struct mgx_tensor *value; // of a small integer input, if values are part of the key, or NULL
    const void *aligned; // bytes of a constant that lies at an odd address and is read, or NULL
    void *pack;          // state of a copy that comes first, or NULL
    struct mgx_shape *packed; // its result
};

// Who computes it.
enum mgx_plan_way {
    MGX_PLAN_KERNEL, // the kernel, or the reference where there is none, or the program
    MGX_PLAN_VIEW,   // nobody: a view of input 0
    MGX_PLAN_TARGETS // the target's own way (mgx_plan_target.late)
};

// What every call looks at comes first, together: a model's weights push it out of the caches.
struct mgx_plan_choice {
    struct mgx_plan_row row; // its users are runs
    // The key: the instruction, with ins below, and words that say what comes in (choice.c).
    uint64_t *word;
    int word_count;
    unsigned valued; // bits of inputs: small integers among them count by their values too
    // What was chosen.
    enum mgx_plan_way way;
    bool prepares;                        // some input is not read where it comes
    int in_place;                         // input whose bytes the result may take over, -1 none
    const struct mgx_plan_kernel *kernel; // NULL: the reference, or another way
    void *state;
    int64_t offset;         // of a view, in bytes
    size_t workspace, room; // room: with what inputs are copied into
    size_t out_bytes;
    struct mgx_shape out;
    struct mgx_ins ins; // made up: operator, attributes, bodies, and inputs that have but a shape;
                        // of what is no kernel and no program, operator and attributes alone
    struct mgx_plan_choice_in *in; // NULL then
    struct mgx_plan_store own;     // states, packed constants and clean-up of its own
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
// What all calls of an instruction have in common of the key, as a number.
uint64_t mgx_plan_choice_site(const struct mgx_op *op, const void *attr,
                              struct mgx_module *const *mod, int mod_count);
// The choice that such a call got before, held like that; NULL: none did, or it is gone. The shape
// of the result is not looked at: it follows from the key. Only inputs whose bits are set may be
// literals. Not found where the site's values count and are not small integers.
struct mgx_plan_choice *mgx_plan_choice_find(struct mgx_plan_late *late,
                                             const struct mgx_plan_site *site,
                                             const struct mgx_compute_call *c, unsigned literals);
// Remembers how such a call was computed without a kernel: c->out is a view of input 0, or the
// target's own. Nothing is said of too little memory.
void mgx_plan_choice_note(struct mgx_plan_late *late, const struct mgx_plan_site *site,
                          const struct mgx_compute_call *c, bool is_view);
void mgx_plan_choice_release(struct mgx_plan_late *late, struct mgx_plan_choice *choice);

void mgx_plan_choices_destroy(struct mgx_plan_late *late);
