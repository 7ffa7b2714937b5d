// SPDX-License-Identifier: MIT
// What choosing kernels at run time needs, whoever asks: a plan's dynamic steps, or constant
// folding, which has no plan.
#pragma once

#include <pthread.h>

#include "op/eval/eval.h"
#include "plan/kernel.h"
#include "plan/rows.h"

struct mgx_plan_blocks;

struct mgx_plan_late {
    const struct mgx_program *program;
    struct mgx_plan_store *store;   // what is packed may stay here
    struct mgx_map literals;        // address of a literal's bytes -> the same, of all modules
    struct mgx_plan_rows choices;   // under the lock
    struct mgx_plan_blocks *blocks; // memory of large tensors made at run time; NULL: the heap
    pthread_mutex_t lock;
};

void mgx_plan_late_init(struct mgx_plan_late *late, const struct mgx_program *p,
                        struct mgx_plan_store *store);
void mgx_plan_late_fini(struct mgx_plan_late *late);

// What all calls of an instruction that recurs have in common, and the inputs (bits) whose values
// decide, besides lengths, what view its result is.
struct mgx_plan_site {
    uint64_t hash; // mgx_plan_choice_site
    unsigned valued;
};

// mgx_eval's hooks; `user` is one of these.
struct mgx_plan_late_run {
    struct mgx_plan_late *late;
    unsigned dying; // bits of the next operator's inputs that nobody reads after it
    // Of the next operator, where its way of computing it is remembered.
    const struct mgx_plan_site *site;
};

// offer: computes the operator by a kernel if one takes these shapes.
enum mgx_status mgx_plan_late_offer(void *user, struct mgx_compute_call *c,
                                    bool *done) MGX_NODISCARD;
// The same for an instruction that did this with these lengths before: no shape is worked out, and
// nothing is asked. c->out_shape is not set. `literals`: bits of inputs that may be some. `place`:
// where the result is wanted, or NULL; it may come elsewhere. Not done where the instruction did
// not do it before, or something else is in the way.
enum mgx_status mgx_plan_late_again(struct mgx_plan_late_run *run, const struct mgx_plan_site *site,
                                    unsigned literals, const struct mgx_tensor *place,
                                    struct mgx_compute_call *c, bool *done) MGX_NODISCARD;
// Does its result follow from lengths, or, of a view, from lengths and the values of small inputs?
bool mgx_plan_late_recurs(const struct mgx_ins *ins, struct mgx_plan_site *site);
// Remembers a call whose result is a view, for which no kernel was chosen, when it has been
// computed. What the target computed in its own way is remembered by the offer (run->site): only
// there is the shape alive that it was asked for.
void mgx_plan_late_note(struct mgx_plan_late_run *run, const struct mgx_plan_site *site,
                        struct mgx_compute_call *c);
// create: large tensors share the plan's slabs (blocks.h).
enum mgx_status mgx_plan_late_create(void *user, const struct mgx_shape *shape,
                                     struct mgx_tensor *out, struct mgx_diag *diag) MGX_NODISCARD;
// knows: a literal, which a kernel packs, or which is aligned once for it.
bool mgx_plan_late_knows(void *user, const struct mgx_tensor *t);
