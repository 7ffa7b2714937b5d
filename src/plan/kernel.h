// SPDX-License-Identifier: MIT
// A kernel family as the planner sees it: a const object that is offered instructions.
//
//     offer --prepare--> taken:    state, workspace, what it does not read, where it may work
//                        declined: a reason, or a wish for inputs in another order of memory
//                        failed:   the diagnosis says why
//
// Holds: `state` is immutable after compile, so that any number of runs may use it at once. `run`
// allocates nothing and, but for the reference, does not fail on the host.
#pragma once

#include "ir/module.h"
#include "plan/machine.h"
#include "plan/store.h"

struct mgx_context;
struct mgx_plan_step;
struct mgx_plan_tuner;

enum mgx_plan_want {
    MGX_PLAN_AS_IT_IS,
    MGX_PLAN_ROW_MAJOR,
    MGX_PLAN_LIKE_RESULT, // in the result's order of memory, packed
};

enum mgx_plan_answer { MGX_PLAN_DECLINED, MGX_PLAN_TAKEN, MGX_PLAN_FAILED };

// A constant of this many bytes or more may lie at any address; smaller ones suit their type.
enum { MGX_PLAN_WEIGHT_BYTES = 16 << 10 };

// Microseconds of a step by the target's model: as it is, with factors of 8 bits, and if its values
// had 16. 0 and 0: the model does not say.
struct mgx_plan_weight {
    double narrow, wide;
};

struct mgx_plan_offer {
    // The call:
    const struct mgx_ins *ins;
    const struct mgx_shape *in; // physical shapes, in_count
    int in_count;
    const int64_t *in_offset; // bytes from where their roots begin; NULL: not known yet
    const struct mgx_tensor *const *constant; // value of a literal input, on the host; or NULL
    const struct mgx_shape *out;              // physical shape of the result
    bool dynamic;                             // sizes are known only at run time
    bool late;      // asked at run time: what is packed serves calls of other sizes too
    bool copy_only; // whatever ins says, copy in[0] to out (relayouts, pieces of a concat)
    // What there is to work with:
    struct mgx_arena *arena; // the store's
    struct mgx_plan_store *store;
    const struct mgx_plan_machine *machine;
    struct mgx_plan_tuner *tuner; // NULL: nothing is measured
    // What prepare says:
    void *state;      // immutable, in the arena
    size_t workspace; // bytes of scratch during the call, on the kernel's side
    bool *skip_in; // inputs that run does not read (packed constants); in_count flags, all false at
                   // first
    unsigned char *want_in; // enum mgx_plan_want: decline, and be asked again with that input so
    int in_place;           // input whose bytes the result may reuse (same physical shape), -1 none
    const char *why;        // reason of a refusal, static text
    const char *detail;     // what was chosen ("winograd 4x4"), static or in the arena
    double flops;
    struct mgx_plan_weight weight;
    size_t packed_bytes; // of packed constants, that run reads in place of inputs it skips
    struct mgx_diag *diag;
};

struct mgx_plan_args { // one call
    void **in;         // in_count addresses; NULL for inputs the kernel said it does not read
    void *out;
    void *workspace;
    const struct mgx_plan_machine *machine;
    struct mgx_queue *queue;     // NULL on hosts
    struct mgx_context *context; // the run, for kernels that evaluate bodies; NULL when late
};

struct mgx_plan_kernel {
    const char *name;
    bool host;            // works on the host, at once, whatever memory the target has
    unsigned any_address; // bits of inputs that it takes at any address
    enum mgx_plan_answer (*prepare)(struct mgx_plan_offer *c);
    enum mgx_status (*run)(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag);
    const void *more; // for the target alone
};

// The answer of a prepare that goes no further: failed if the diagnosis says so, else declined.
enum mgx_plan_answer mgx_plan_refuse(const struct mgx_plan_offer *c);
// The same, of no memory.
enum mgx_plan_answer mgx_plan_no_memory(const struct mgx_plan_offer *c);
// The same, with a reason.
enum mgx_plan_answer mgx_plan_decline(struct mgx_plan_offer *c, const char *why);
// Notes the reason in a check that a prepare asks; false.
bool mgx_plan_unfit(struct mgx_plan_offer *c, const char *why);
// The same, and wishes for that input in another order.
bool mgx_plan_wish(struct mgx_plan_offer *c, int input, enum mgx_plan_want want, const char *why);

// Asks once, with all answers reset.
enum mgx_plan_answer mgx_plan_ask(const struct mgx_plan_kernel *kernel, struct mgx_plan_offer *c);
// The shape that the kernel wants input i in; false if it has it.
bool mgx_plan_wanted(const struct mgx_plan_offer *c, int i, struct mgx_shape *shape);
// Puts a copy with these strides in the place of *constant, for a kernel that asked for its input
// in another order: the value must lie as the input does. False when out of memory.
bool mgx_plan_repack_constant(struct mgx_plan_store *store, const struct mgx_shape *shape,
                              const struct mgx_tensor **constant, struct mgx_diag *diag);
