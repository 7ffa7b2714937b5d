// SPDX-License-Identifier: MIT
// Runs of a program with free sizes: a plan of its own for every size that keeps coming.
//
//     met once       the steps that take any size (plan/late.h): nothing is made, unless making the
//                    plan is expected to cost this very run less than it saves, as it does in the
//                    first run of all, which packs the weights
//     met again      a plan for it is made, by a thread of the program's own or in the call;
//                    meanwhile runs go on as before
//     after that     that plan. If a run waited for it, it may lack kernels whose weights would have
//                    had to be packed first; it is made anew once that has cost enough
//
// A program that hands its state round (a decoder whose cache grows by a row in every run) meets no
// size again before the next text, and its steps for any size append in place. Its plans leave open
// how long the state is, and whatever else goes on by one as it does (a mask as long), unless sizes
// are named as optimal or the options say where plans are made: then they fix everything.
//
// A plan is what the model with fixed sizes would have (specialise.h); all of them share packed
// weights (plan/shared.h). They are kept by size within a bound of bytes; the least recently used
// goes first, and one that a run holds stays until it is given back. Against streams of more sizes
// than there is room for, a plan only takes another's place when its size came more often.
//
// Holds: no lock is held while anything runs or is made. The thread ends when nothing is to do, and
// with the program. Cost of a run: a hash of the lengths and a lock for its look-up.
#pragma once

#include "targets/target.h"

struct mgx_sizes;
struct mgx_size;

// Takes the simplified program (specialise.h), also on failure. `seconds` is about what making a
// plan will take. Sizes that are named as optimal get their plans now, unless they are very many.
enum mgx_status mgx_sizes_create(struct mgx_sizes **out, struct mgx_program *take_simplified,
                                 const struct mgx_target *target,
                                 const struct mgx_compile_options *options, double seconds,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_sizes_destroy(struct mgx_sizes *sizes); // NULL is allowed; waits for what is being made

// The program for a run with these parameters (as targets see them). NULL: there is none, the
// program for any size takes it. `held`, also then, is given back with how long the run took, by a
// plan of its own or not; negative: it failed.
const struct mgx_program *mgx_sizes_take(struct mgx_sizes *sizes,
                                         const struct mgx_named_tensor *params,
                                         struct mgx_size **held);
// Does the plan of what is held have a parameter of one size? Others it takes as they come.
bool mgx_sizes_fix_input(const struct mgx_sizes *sizes, const struct mgx_size *held, int param);
void mgx_sizes_give(struct mgx_sizes *sizes, struct mgx_size *held, bool own, double seconds);

// The plan that the last run of all took, for a caller without others at work; NULL: it took none.
const struct mgx_program *mgx_sizes_last(const struct mgx_sizes *sizes);

// Lengths of an input, by name.
struct mgx_named_lens {
    const char *name;
    const int64_t *lens;
    int rank;
};

// The lengths of all free axes from those of some inputs: axes of one name have one length. Refuses
// what is not in its range, and when one remains open. `lens` has room for mgx_sizes_axes().
int mgx_sizes_axes(const struct mgx_sizes *sizes);
enum mgx_status mgx_sizes_lens(const struct mgx_sizes *sizes, const struct mgx_named_lens *given,
                               int count, int64_t *lens, struct mgx_diag *diag) MGX_NODISCARD;
// A program of its own for these lengths, as from mgx_specialise; with `offload_copy` or without,
// whichever the others have.
enum mgx_status mgx_sizes_fix(const struct mgx_sizes *sizes, const int64_t *lens, bool offload_copy,
                              struct mgx_program **out, struct mgx_diag *diag) MGX_NODISCARD;

// Which sizes have plans, which were only seen, and what they take.
void mgx_sizes_explain(struct mgx_sizes *sizes, struct mgx_str *out);
