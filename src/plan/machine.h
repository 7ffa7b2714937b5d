// SPDX-License-Identifier: MIT
// What a target brings to the plan: one const object that says how, and a machine that says where.
//
// The plan never asks which target it is. Everything that only the target knows (instruction set,
// threads, device, modules) is behind `struct mgx_plan_machine`, the first member of a struct of
// the target's own, which kernels and hooks get back.
//
// docs/plan.md tells how to bring one.
#pragma once

#include "base/str.h"
#include "ir/memory.h"
#include "plan/executable.h"

struct mgx_compute_call;
struct mgx_context;
struct mgx_plan;
struct mgx_plan_blocks;
struct mgx_plan_kernel;
struct mgx_plan_machine;

typedef void (*mgx_plan_task)(void *user, int task, int thread);

// Hooks that are NULL have nothing to do.
struct mgx_plan_target {
    const struct mgx_target *target; // what explains, traces and messages name
    // Candidates for an instruction, in order of trial; the list ends with NULL, and its last
    // kernel takes everything (mgx_plan_reference, plan/reference.h).
    const struct mgx_plan_kernel *const *kernels;
    // The same for sizes known only at run time, without the one that takes everything; all of them
    // work on the host at once. NULL: there are none.
    const struct mgx_plan_kernel *const *late_kernels;
    // Copies between any two layouts of one type and lengths, on the machine's own side. It is
    // asked with offer->copy_only and takes whatever it is asked.
    const struct mgx_plan_kernel *copy;
    // Do products of bytes leave their results in any order of axes at no cost?
    bool any_order;
    // Pixels of images of bytes had better begin at multiples of so many bytes (0: anywhere).
    int line_bytes;
    // Operators that size their result themselves, at run time, before late_kernels are asked.
    enum mgx_status (*late)(const struct mgx_plan_machine *machine, struct mgx_plan_blocks *blocks,
                            struct mgx_compute_call *c, bool *done);
    // Calls fn for every task below `tasks`, by several threads at once. NULL: one after the other.
    void (*spread)(const struct mgx_plan_machine *machine, int tasks, mgx_plan_task fn, void *user);
    // Steps have their order and no memory yet: which of them are done together (struct
    // mgx_plan_bundle).
    enum mgx_status (*gather)(struct mgx_plan *plan, struct mgx_diag *diag);
    // The plan is complete and not yet immutable: last touches to its steps.
    enum mgx_status (*finish)(struct mgx_plan *plan, struct mgx_diag *diag);
    // Around the steps of every run; `after` when its results are handed out.
    void (*begin)(const struct mgx_plan_machine *machine);
    void (*end)(const struct mgx_plan_machine *machine);
    void (*after)(struct mgx_plan *plan, struct mgx_context *x);
    // Before anything of the plan goes, and when all of it is gone.
    void (*stop)(struct mgx_plan_machine *machine);
    void (*release)(struct mgx_plan_machine *machine);
    // "cpu avx2 2": what besides the problem decides which candidate is the fastest.
    void (*print)(const struct mgx_plan_machine *machine, struct mgx_str *out);
    // "threads: 2, isa: avx2", for the explanation.
    void (*explain)(const struct mgx_plan_machine *machine, struct mgx_str *out);
};

// What keeps work instead of running it (plan/record.h). Between begin and end the queue takes what
// it is given and does nothing; `end` hands it out as a graph, or fails and loses it.
struct mgx_plan_recorder {
    enum mgx_status (*begin)(struct mgx_queue *queue, struct mgx_diag *diag);
    enum mgx_status (*end)(struct mgx_queue *queue, void **graph, struct mgx_diag *diag);
    enum mgx_status (*play)(struct mgx_queue *queue, void *graph, struct mgx_diag *diag);
    void (*drop)(const struct mgx_plan_machine *machine, void *graph); // nothing plays it
};

struct mgx_plan_machine { // first member of the target's own
    const struct mgx_plan_target *target;
    const struct mgx_memory *memory;          // NULL: the host's
    const struct mgx_plan_recorder *recorder; // NULL: every step is given to the queue in every run
    // Whose late kernels do what falls to the host, before the reference does: it has no memory,
    // and this one's release ends it. NULL: there is none but this one.
    struct mgx_plan_machine *host;
    int threads; // that `spread` uses, at least 1
};

// spread, or a loop.
void mgx_plan_spread(const struct mgx_plan_machine *machine, int tasks, mgx_plan_task fn,
                     void *user);
