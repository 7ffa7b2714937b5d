// SPDX-License-Identifier: MIT
// Random valid programs with inputs, results and tolerances, for comparing two ways of running one
// program: before and after a pass, the reference and a target.
//
// A program grows instruction by instruction: a candidate is drawn, evaluated by the reference on
// the program's own inputs, and kept only if its result is finite, of moderate size, and changes
// little when its inputs do. So whatever reorders roundings must give nearly the same results, and
// how nearly follows from the measured sensitivities: `tolerance` is that bound, per result.
// Equal seeds and options give equal programs, on every machine whose libm agrees.
#pragma once

#include "op/eval/eval.h"
#include "op/op.h"

enum { RANDOM_MAX_ARGS = 8, RANDOM_MAX_RESULTS = 4 };

struct random_options {
    int steps;      // instructions aimed at; 0 draws 4 to 24
    bool no_bodies; // no pointwise modules, no if
    bool no_empty;  // no lengths of 0
    // MGX_TUPLE (17) draws one; else the type most values have.
    bool fixed_type;
    enum mgx_type type;
};

struct random_program {
    struct mgx_program *program;
    int arg_count;
    struct mgx_tensor args[RANDOM_MAX_ARGS]; // in order of creation
    int result_count;
    struct mgx_tensor results[RANDOM_MAX_RESULTS];
    double tolerance[RANDOM_MAX_RESULTS]; // absolute, for every element; 0 asks for equality
};

// `options` may be NULL.
enum mgx_status random_program_make(struct random_program *out, uint64_t seed,
                                    const struct random_options *options, struct mgx_diag *diag);
void random_program_free(struct random_program *r);

// Runs main of a program (parameters in order of creation) on the reference. `results` has room for
// RANDOM_MAX_RESULTS.
enum mgx_status random_program_run(struct mgx_program *p, const struct random_program *r,
                                   struct mgx_tensor *results, struct mgx_diag *diag);
// Largest difference beyond the tolerance, as a text into `why`; true if results agree.
bool random_program_agrees(const struct random_program *r, const struct mgx_tensor *results,
                           char *why, size_t size);
