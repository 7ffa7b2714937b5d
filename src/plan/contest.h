// SPDX-License-Identifier: MIT
// Choosing among candidate kernels by measuring them.
//
//     problem -> cache? -> its choice
//             -> compile with exhaustive_tune? -> run every candidate on buffers of its own,
//                                                 note the fastest
//             -> otherwise the cost model decides, as it does for what no candidate can run
//
// A loaded program brings its choices, which count before the cache. A candidate that cannot run is
// none; tuning fails only when it is strict and the cache has no answer.
//
// A candidate is timed as it will run: weights out of the cache, its input in it, threads awake.
// Cost: some ten runs of every candidate per problem, once.
#pragma once

#include "base/str.h"
#include "plan/executable.h"
#include "plan/machine.h"
#include "plan/tuning.h"

struct mgx_plan_tuner {
    const struct mgx_plan_machine *machine;
    struct mgx_tuning tuning;        // what was measured, now or before
    struct mgx_tuning carried, used; // by problem alone: what a file brought; what chose a kernel
    bool exhaustive;
    bool strict;                     // a problem without an answer is an error
    double budget, spent;            // seconds of measuring; 0: as many as it takes
    double share;                    // of the instructions that are planned
    int tuned_count, measured_count; // kernels chosen by it; problems measured just now
    int skipped_count;               // problems that the budget did not reach
    struct mgx_tuning_progress progress;
};

struct mgx_plan_contest {
    void (*describe)(void *user, struct mgx_str *out); // the problem: family and shape
    const char *(*name)(void *user, int number);       // of a candidate; 0 is the cost model's own
    int count;
    // Makes ready, runs, and cleans up candidate `number`; between them `run` is called again and
    // again. False: it cannot run, or diag has a failure.
    bool (*begin)(void *user, int number, struct mgx_diag *diag);
    void (*run)(void *user);
    void (*end)(void *user);
    void (*timed)(void *user, int number, double seconds); // of one that ran; NULL: nobody asks
    void *user;
};

// *choice: a candidate's number, or -1 when the cost model is to decide, as it is without a tuner.
enum mgx_status mgx_plan_tune(struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *contest,
                              int *choice, struct mgx_diag *diag) MGX_NODISCARD;

// The name of the answer that there is without measuring, kept by the tuner; NULL: there is none.
const char *mgx_plan_tuned(const struct mgx_plan_tuner *tuner,
                           const struct mgx_plan_contest *contest);

// Buffers of a contest: filled with small numbers, aligned to 64 bytes, to be freed. NULL: no
// memory.
void *mgx_plan_tune_buffer(size_t bytes);
