// SPDX-License-Identifier: MIT
// A program as steps over bytes: what a compiled target's executable is.
//
//   program --passes--> fused program --layout--> physical shapes --kernels--> steps
//   --order--> schedule --memory--> plan --context--> runs
//
// A step is one call of one kernel on planned bytes. docs/plan.md goes through the stages.
//
// Holds: after compile everything here is immutable but the pool of contexts and what is chosen at
// run time, each under its lock. A context belongs to one run at a time. A run allocates nothing
// once its context exists, but for what sizes known only at run time need.
#pragma once

#include <pthread.h>

#include "plan/late.h"
#include "plan/value.h"

struct mgx_context;
struct mgx_plan_body;
struct mgx_plan_stretch;

// Steps of one side, one behind the other, that the target does in one call. Whoever looks at what
// single steps leave has them run one by one, and so has a call that leaves them undone. As far as
// memory goes a bundle that is found in time (mgx_plan_target.gather) is one step: what any of its
// steps reads, writes or works in is there for all of them.
enum { MGX_PLAN_BUNDLE_MOST = 16 };
struct mgx_plan_bundle {
    int count; // at most MGX_PLAN_BUNDLE_MOST
    enum mgx_status (*run)(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag);
    const void *state;
};

struct mgx_plan_step {
    const struct mgx_plan_kernel *kernel;
    const struct mgx_ins *ins;
    void *state;
    struct mgx_plan_ref *in;
    struct mgx_plan_value **in_value; // for shapes and dynamic steps
    int in_count;
    bool *skip;    // inputs that run does not read
    int own_count; // of them the instruction's inputs; the rest are what its bodies capture
    bool copies;   // whatever ins says, the result is in[0] in another layout
    struct mgx_plan_ref out;
    struct mgx_plan_value *out_value;
    enum mgx_plan_side side;             // where its kernel works
    int in_place;                        // input whose bytes the result may take over, -1 none
    size_t workspace, workspace_scratch; // bytes and offset in the block of its side
    int *drop;                           // dynamic slots to release afterwards
    int drop_count;
    const struct mgx_plan_bundle *bundle; // of this step and those behind it; NULL: none
    const void *next;         // the target's own: what a step soon after reads first; or NULL
    const char *detail, *why; // for the explanation
    double flops;             // of products: multiplications and additions
    struct mgx_plan_weight weight;
    size_t packed_bytes; // of constants, that are read in place of inputs it skips
};

struct mgx_plan_result {
    struct mgx_plan_value *value; // its place is MGX_PLAN_RESULT, or it is dynamic
    struct mgx_shape shape;
    int param; // number of the parameter that brings its bytes, -1: the run allocates them
};

// One block of scratch memory, as planned.
struct mgx_plan_block {
    size_t bytes, lower_bound_bytes;
};

struct mgx_plan {
    struct mgx_executable base;
    struct mgx_plan_machine *machine;
    const struct mgx_program *program;
    struct mgx_plan_store store;   // what kernels keep, and the plan's own arena
    struct mgx_plan_value *values; // by ins->index of main
    int value_count;
    struct mgx_plan_step *steps;
    int step_count;
    int dynamic_count, max_in;
    struct mgx_plan_stretch *stretches; // in order of steps (record.h)
    int stretch_count;
    struct mgx_plan_block block[MGX_PLAN_SIDES];
    struct mgx_plan_result *results;
    int result_count;
    struct mgx_ins **params; // in order of creation
    int param_count;
    bool device_only;             // no step and no result touches bytes of the host
    bool on_host;                 // there are steps that machine->host may do
    struct mgx_plan_body *bodies; // those with plans of their own (body.h)
    int body_count;
    struct mgx_map body_of;        // module -> body
    const struct mgx_plan *around; // whose body this is; the machine is that one's. NULL: of none
    struct mgx_plan_late late;
    struct mgx_plan_store host_store; // of what machine->host chooses at run time, if there is one
    pthread_mutex_t lock;             // of the pool of contexts
    struct mgx_context *contexts;
    // For the explanation:
    size_t given_peak_bytes, order_peak_bytes; // most bytes alive in the program's order, and ours
    int tuned_count, measured_count; // kernels chosen by measuring; problems measured just now
    int skipped_count;               // problems that the time for tuning did not reach
    const char *tuning_lost;         // why the cache could not be written; NULL: it could
    const char *tuning;              // entries that chose a kernel, as in a cache; NULL: none did
    size_t uploaded_bytes;           // of constants that were copied into the machine's memory
};

struct mgx_plan_shared; // shared.h

// What a plan that somebody waits for does without: kernels that gave way to others whose constants
// are packed already.
struct mgx_plan_makeshift {
    double lost_seconds;  // that a run is expected to take longer
    double saved_seconds; // of packing
};

struct mgx_plan_settings {
    bool offload_copy;    // parameters and results are the host's, whatever memory the machine has
    bool output_params;   // the caller brings the bytes of results, as parameters main:#output_<n>
    bool exhaustive_tune; // every candidate kernel is measured
    bool only_steps;      // to be looked at (mgx_plan_weigh): kernels are chosen, nothing is made
    struct mgx_tuning_options tune;
    struct mgx_plan_shared *shared; // packed constants of other plans of the model; NULL: none
    struct mgx_plan_makeshift *makeshift; // NULL: the best kernels, whatever they have to pack
    const struct mgx_plan *around;        // the program is a body of this one's; NULL: of none
};

// Plans a program that the target's passes have rewritten, and hangs the plan on it. The machine is
// the plan's from here on, also on failure: it is handed back to target->release. That of a body
// stays with the plan around it.
enum mgx_status mgx_plan_compile(struct mgx_program *p, struct mgx_plan_machine *machine,
                                 const struct mgx_plan_settings *settings,
                                 struct mgx_diag *diag) MGX_NODISCARD;

// The functions of a target (targets/target.h) whose executables are plans.
enum mgx_status mgx_plan_run(const struct mgx_program *p, struct mgx_run *run,
                             struct mgx_diag *diag) MGX_NODISCARD;
void mgx_plan_destroy(struct mgx_executable *executable); // NULL is allowed
void mgx_plan_explain(const struct mgx_program *p, struct mgx_str *out);
void mgx_plan_list(const struct mgx_program *p, struct mgx_str *out); // in list.c
// What the steps with a weight are made of, and weigh.
void mgx_plan_weigh(const struct mgx_program *p, mgx_weight_told *tell, void *to); // in list.c
// What a file is to bring beside the program (plan/carried.h); borrowed from the plan.
enum mgx_status mgx_plan_carry(const struct mgx_program *p, struct mgx_carry *out,
                               struct mgx_diag *diag) MGX_NODISCARD;

// What a plan holds for itself: instructions, steps, one run's results, and its scratch unless
// plans share that; not packed constants.
size_t mgx_plan_bytes(const struct mgx_program *p);

// The first and the last step of the bundle that step s belongs to; s where there is none.
int mgx_plan_bundle_first(const struct mgx_plan *plan, int s); // in live.c
int mgx_plan_bundle_last(const struct mgx_plan *plan, int s);
// NULL for an instruction of another module.
struct mgx_plan_value *mgx_plan_value_of(const struct mgx_plan *plan, const struct mgx_ins *ins);
