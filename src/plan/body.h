// SPDX-License-Identifier: MIT
// Bodies of if, loop and scan as plans of their own.
//
//     loop(trip, cond, x...) { body }     main's step: the operator's compute, which runs the body
//                                         again and again
//     body, a program of its own          planned once; a round is a run of that plan in a context
//                                         that the outer run's has by it
//
// So a round costs what its steps do: kernels are chosen and operands placed ahead of time, and no
// shape is worked out where none changes. What a body reads of main becomes parameters of its
// program, bound once for each step of main; results that are parameters are handed on.
//
// Holds: the machine is the outer plan's, which has no memory of its own, and packed constants are
// shared with it (shared.h). Sequences, tuples and strings that come in or go out keep a body with
// evaluation (op/eval), as does a value of another module than main; so does a call that a body was
// not declared for, which evaluation answers in words.
// Cost: planning of every body once; a context for each body that a run meets.
#pragma once

#include "op/eval/eval.h"
#include "plan/plan.h"

struct mgx_plan_body {
    const struct mgx_module *module;
    struct mgx_program *program; // with its plan
    struct mgx_plan *plan;
    int own_count, outside_count; // parameters: the body's own, then what it reads of main
    const struct mgx_ins **outside;
    int result_count, made_count; // of the body, and of the program
    int *from; // of each result: which of the program's, or -1 - the parameter it is
};

// Does main have bodies? Then its plan shares what it packs.
bool mgx_plan_has_bodies(const struct mgx_program *p);
// Plans the bodies of a plan that is complete, each by `compile`, which hangs the plan on the
// program.
typedef enum mgx_status (*mgx_plan_compile_body)(struct mgx_program *p,
                                                 struct mgx_plan_machine *machine,
                                                 const struct mgx_plan_settings *settings,
                                                 struct mgx_diag *diag);
enum mgx_status mgx_plan_build_bodies(struct mgx_plan *plan,
                                      const struct mgx_plan_settings *settings,
                                      mgx_plan_compile_body compile,
                                      struct mgx_diag *diag) MGX_NODISCARD;
void mgx_plan_drop_bodies(struct mgx_plan *plan);

// A call of a body in a run whose context is x. `round` runs the body's plan in a context of that.
struct mgx_plan_body_call {
    const struct mgx_module *module;
    const struct mgx_tensor *args;
    int arg_count;
    struct mgx_tensor *results;
    enum mgx_status (*round)(struct mgx_context *x, struct mgx_run *run, struct mgx_eval *outer,
                             struct mgx_diag *diag);
};
// Not done where the body has no plan, or what is handed to it does not fit.
enum mgx_status mgx_plan_run_body(struct mgx_context *x, const struct mgx_plan_body_call *call,
                                  bool *done, struct mgx_diag *diag) MGX_NODISCARD;
