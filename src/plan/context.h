// SPDX-License-Identifier: MIT
// What one run of a plan works in. A context is made by the first run that finds none free and goes
// back to the pool, so steady runs allocate nothing: even results are reused once the caller has
// let go of those of an earlier run.
//
// Holds: between runs nothing is on the queue.
#pragma once

#include "plan/plan.h"

// What a run keeps for a body that it has met (body.h).
struct mgx_body_state {
    bool ready;
    struct mgx_context *context; // of the body's plan; NULL between runs
    uint64_t call;               // of main's step that the values of main are bound for; 0: of none
    struct mgx_named_tensor *params;
    struct mgx_tensor *bound; // values of main that lie otherwise than the body reads them, packed
    int bound_count;
    struct mgx_tensor *made; // a round's results
};

struct mgx_context {
    struct mgx_context *next; // in the pool
    struct mgx_plan *plan;
    unsigned char *scratch[MGX_PLAN_SIDES]; // a side that needs none has NULL
    struct mgx_queue *queue;                // NULL without a memory of the machine's own
    bool busy;                              // something was given to the queue since it was empty
    bool ran;                               // all steps once: a witness hears the first (witness.h)
    void **in;                              // room for a step's addresses
    struct mgx_tensor *dynamic;             // slots
    struct mgx_tensor *values;              // frame for bodies: by ins->index, borrowed
    struct mgx_storage **results;           // reused when the caller has let go of the last run's
    void **out;                             // where each result is written; NULL for dynamic ones
    const struct mgx_named_tensor *params;
    const struct mgx_run *run;              // the one that goes on, or the last one
    struct mgx_plan_recordings *recordings; // by stretch (record.h); NULL before the first
    struct mgx_plan_late_run late;
    struct mgx_arena strings;
    struct mgx_arena work; // of steps that the reference takes, one after the other
    struct mgx_eval eval;
    uint64_t call;                 // counts steps that evaluate
    struct mgx_body_state *bodies; // by plan->bodies (body.h); NULL before the first is met
};

enum mgx_status mgx_context_take(struct mgx_plan *plan, struct mgx_context **out,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_context_give(struct mgx_context *x);
void mgx_context_destroy(struct mgx_context *x); // NULL is allowed

// Where an operand lies; NULL for one whose size is known only at run time.
void *mgx_context_address(const struct mgx_context *x, const struct mgx_plan_ref *ref);
// The tensor of such a one: strings, tuples and sequences may be literals too.
const struct mgx_tensor *mgx_context_dynamic(const struct mgx_context *x,
                                             const struct mgx_plan_value *v);
// The values of main that are bound go.
void mgx_body_state_unbind(struct mgx_body_state *s);
void mgx_body_state_fini(struct mgx_body_state *s);
// All that was given to the queue is done.
enum mgx_status mgx_context_wait(struct mgx_context *x, struct mgx_diag *diag) MGX_NODISCARD;
