// SPDX-License-Identifier: MIT
// Measuring candidates; see contest.h.
#include "plan/contest.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "plan/kernel_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 9,
    SWEEP_BYTES = 32 << 20, // pushes weights out of the caches
};

static const double MARGIN = 0.97; // to be faster than the first by: timings scatter
static const double BUDGET = 0.05; // seconds per candidate, beyond the first rounds

void *mgx_plan_tune_buffer(size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes + 64) != 0)
        return NULL;
    memset(data, 0x3c, bytes + 64); // 0.0115 as a float, and no page of zeros
    return data;
}

static void nothing(void *user, int task, int thread)
{
    (void)user, (void)task, (void)thread;
}

// The least of several runs; each begins with cold weights and awake threads.
static double time_candidate(struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c,
                             char *sweep)
{
    double least = INFINITY;
    const double begin = mgx_clock_seconds();
    c->run(c->user); // pages in
    for (int i = 0;
         i < ROUNDS && (i < 3 || mgx_clock_seconds() - begin < BUDGET) && !mgx_cancelled(); i++) {
        if (sweep)
            memset(sweep, i, SWEEP_BYTES);
        mgx_plan_spread(tuner->machine, tuner->machine->threads, nothing, NULL);
        const double start = mgx_clock_seconds();
        c->run(c->user);
        least = fmin(least, mgx_clock_seconds() - start);
    }
    return least;
}

static enum mgx_status measure(struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c,
                               int *best, double *seconds, struct mgx_diag *diag)
{
    char *sweep = mgx_plan_tune_buffer(SWEEP_BYTES); // does without, if there is no memory
    const double begin = mgx_clock_seconds();
    *best = -1;
    *seconds = INFINITY;
    for (int i = 0; i < c->count && mgx_cancel_check(diag) == MGX_OK; i++) {
        struct mgx_diag mine = {.status = MGX_OK}; // one that cannot run takes no part
        if (c->begin(c->user, i, &mine)) {
            const double time = time_candidate(tuner, c, sweep);
            if (c->timed)
                c->timed(c->user, i, time);
            if (time < *seconds * (*best == 0 ? MARGIN : 1)) {
                *seconds = time;
                *best = i;
            }
        }
        c->end(c->user);
    }
    tuner->spent += mgx_clock_seconds() - begin;
    free(sweep);
    return mgx_cancel_check(diag);
}

static const char *kept_answer(const struct mgx_plan_tuner *tuner, const char *problem,
                               const char *alone)
{
    const char *name = mgx_tuning_find(&tuner->carried, alone);
    return name ? name : mgx_tuning_find(&tuner->tuning, problem);
}

static int number_of(const struct mgx_plan_contest *c, const char *name)
{
    for (int i = 0; name && i < c->count; i++)
        if (strcmp(c->name(c->user, i), name) == 0)
            return i;
    return -1;
}

// The answer that there is, or the one that measuring gives.
static enum mgx_status decide(struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c,
                              const char *problem, const char *alone, int *choice,
                              struct mgx_diag *diag)
{
    double seconds = 0;
    *choice = number_of(c, mgx_tuning_find(&tuner->carried, alone));
    if (*choice < 0)
        *choice = number_of(c, mgx_tuning_find(&tuner->tuning, problem));
    if (*choice < 0 && tuner->strict)
        return mgx_fail(diag, MGX_NOT_FOUND, "the tuning cache has no answer for: %s", problem);
    const bool measures = *choice < 0 && tuner->exhaustive;
    if (measures && tuner->budget > 0 && tuner->spent >= tuner->budget) {
        tuner->skipped_count++;
    } else if (measures) {
        TRY(measure(tuner, c, choice, &seconds, diag));
        tuner->measured_count++;
        if (tuner->progress.tell)
            tuner->progress.tell(tuner->progress.user, problem, (size_t)tuner->measured_count,
                                 tuner->spent, tuner->share);
        if (*choice >= 0)
            TRY(mgx_tuning_put(&tuner->tuning, problem, c->name(c->user, *choice), seconds * 1e6,
                               diag));
    }
    return *choice < 0 ? MGX_OK
                       : mgx_tuning_put(&tuner->used, alone, c->name(c->user, *choice),
                                        seconds * 1e6, diag);
}

static void describe(const struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c,
                     struct mgx_str *alone, struct mgx_str *problem)
{
    c->describe(c->user, alone);
    tuner->machine->target->print(tuner->machine, problem);
    mgx_str_printf(problem, " %s %s", mgx_kernel_set(), mgx_str_text(alone));
}

const char *mgx_plan_tuned(const struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c)
{
    if (!tuner || (!tuner->tuning.map.count && !tuner->carried.map.count))
        return NULL;
    struct mgx_str alone = {0}, problem = {0};
    describe(tuner, c, &alone, &problem);
    const char *name = kept_answer(tuner, mgx_str_text(&problem), mgx_str_text(&alone));
    mgx_str_fini(&alone);
    mgx_str_fini(&problem);
    return name;
}

enum mgx_status mgx_plan_tune(struct mgx_plan_tuner *tuner, const struct mgx_plan_contest *c,
                              int *choice, struct mgx_diag *diag)
{
    *choice = -1;
    if (!tuner || c->count < 2 ||
        (!tuner->exhaustive && !tuner->strict && !tuner->tuning.map.count &&
         !tuner->carried.map.count))
        return MGX_OK;
    struct mgx_str alone = {0}, problem = {0};
    describe(tuner, c, &alone, &problem);
    const enum mgx_status status =
        problem.failed || alone.failed
            ? mgx_fail_memory(diag)
            : decide(tuner, c, mgx_str_text(&problem), mgx_str_text(&alone), choice, diag);
    tuner->tuned_count += *choice >= 0;
    mgx_str_fini(&alone);
    mgx_str_fini(&problem);
    return status;
}
