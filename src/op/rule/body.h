// SPDX-License-Identifier: MIT
// What operators with bodies share: results of a body, running it, members of tuples.
#pragma once

#include "op/rule/rule.h"

// Shape of a module's i-th result.
const struct mgx_shape *mgx_body_result(const struct mgx_module *m, int i);
// A tuple shape of all of them, in the call's arena.
enum mgx_status mgx_body_tuple(struct mgx_shape_call *c, const struct mgx_module *m,
                               struct mgx_shape *out) MGX_NODISCARD;
// A body is handed values of these shapes, in order of its parameters; fails with "<op>: module
// \"body\" takes x0 as <shape>, given <shape>", or when there are more or fewer.
enum mgx_status mgx_body_takes(struct mgx_shape_call *c, const struct mgx_module *m,
                               const struct mgx_shape *const *given, int count) MGX_NODISCARD;
// A body of work that is fused into one reads nothing but its parameters and literals, so that
// whoever compiles it need not look outside.
enum mgx_status mgx_body_closed(struct mgx_shape_call *c, const struct mgx_module *m) MGX_NODISCARD;
// Values of these static shapes, which the body takes: do its instructions agree about them? Where
// parameters leave lengths open that is not yet known. *result is what its one result then is; of
// several nothing is said.
enum mgx_status mgx_body_agrees(struct mgx_shape_call *c, const struct mgx_module *m,
                                const struct mgx_shape *const *given,
                                struct mgx_shape *result) MGX_NODISCARD;
// Runs body `which` of the call. `args` in order of its parameters; *results is a scratch array of
// mgx_module_result_count values, to be released (or taken) by the caller.
enum mgx_status mgx_body_run(struct mgx_compute_call *c, int which, const struct mgx_tensor *args,
                             int arg_count, struct mgx_tensor **results, int *count) MGX_NODISCARD;
// The same without computing anything: the shapes of results for parameters of these shapes, by the
// shape rules and what the body reads from around it, a scratch array. What only values say is
// ranges; where the rules do not agree the shapes are those that are declared.
enum mgx_status mgx_body_foresee(struct mgx_compute_call *c, int which,
                                 const struct mgx_shape *const *given,
                                 const struct mgx_shape **results) MGX_NODISCARD;
// The tuple of `results` as the operator's value, each lying as it is declared; takes them over,
// also on failure.
enum mgx_status mgx_body_give(struct mgx_compute_call *c, struct mgx_tensor *take_results,
                              int count) MGX_NODISCARD;
void mgx_tensors_release(struct mgx_tensor *t, int count);
// Scratch copy of the inputs from `first` on as a plain array (shares nothing: borrowed).
struct mgx_tensor *mgx_body_args(struct mgx_compute_call *c, int first);
// Which of the `given` inputs behind an if's condition its body `which` of two takes: their
// numbers, in order of its parameters, an array of the arena. *count is how many it is given; where
// that is not the number of its parameters the two do not fit. NULL when there is no memory.
int *mgx_if_arguments(struct mgx_arena *arena, struct mgx_module *const *mod, int which, int given,
                      int *count) MGX_NODISCARD;
