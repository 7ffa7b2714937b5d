// SPDX-License-Identifier: MIT
// Measuring candidates; see tune.h.
#include "targets/cpu/tune.h"

#include <math.h>
#include <migraphx/version.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cancel.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define VERSION                                                                                    \
    TEXT(MIGRAPHX_VERSION_MAJOR)                                                                   \
    "." TEXT(MIGRAPHX_VERSION_MINOR) "." TEXT(MIGRAPHX_VERSION_PATCH)

enum {
    ROUNDS = 9,
    SWEEP_BYTES = 32 << 20, // pushes weights out of the caches
};

static const double MARGIN = 0.97; // to be faster than the first by: timings scatter
static const double BUDGET = 0.05; // seconds per candidate, beyond the first rounds

void *cpu_tune_buffer(size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes + 64) != 0)
        return NULL;
    memset(data, 0x3c, bytes + 64); // 0.0115 as a float, and no page of zeros
    return data;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nothing(void *user, int task, int thread)
{
    (void)user, (void)task, (void)thread;
}

// The least of several runs; each begins with cold weights and awake threads.
static double time_candidate(struct cpu_plan *plan, const struct cpu_contest *c, char *sweep)
{
    double least = INFINITY;
    const double begin = now();
    c->run(c->user); // pages in
    for (int i = 0; i < ROUNDS && (i < 3 || now() - begin < BUDGET) && !mgx_cancelled(); i++) {
        if (sweep)
            memset(sweep, i, SWEEP_BYTES);
        mgx_pool_run(plan->pool, plan->threads, nothing, NULL);
        const double start = now();
        c->run(c->user);
        least = fmin(least, now() - start);
    }
    return least;
}

static enum mgx_status measure(struct cpu_plan *plan, const struct cpu_contest *c, int *best,
                               double *seconds, struct mgx_diag *diag)
{
    char *sweep = cpu_tune_buffer(SWEEP_BYTES); // does without, if there is no memory
    *best = -1;
    *seconds = INFINITY;
    for (int i = 0; i < c->count; i++) {
        if (c->begin(c->user, i, diag)) {
            const double time = time_candidate(plan, c, sweep);
            if (time < *seconds * (*best == 0 ? MARGIN : 1)) {
                *seconds = time;
                *best = i;
            }
        }
        c->end(c->user);
        if (diag->status != MGX_OK || mgx_cancel_check(diag) != MGX_OK)
            break;
    }
    free(sweep);
    return diag->status;
}

static int number_of(const struct cpu_contest *c, const char *name)
{
    for (int i = 0; name && i < c->count; i++)
        if (strcmp(c->name(c->user, i), name) == 0)
            return i;
    return -1;
}

enum mgx_status cpu_tune(struct cpu_plan *plan, const struct cpu_contest *c, int *choice,
                         struct mgx_diag *diag)
{
    *choice = -1;
    if (c->count < 2 || (!plan->exhaustive_tune && !plan->tuning.map.count))
        return MGX_OK;
    struct mgx_str problem = {0};
    mgx_str_printf(&problem, "cpu %s %d " VERSION " %s", mgx_isa_name(plan->isa), plan->threads,
                   mgx_str_text(c->problem));
    enum mgx_status status = problem.failed || c->problem->failed ? mgx_fail_memory(diag) : MGX_OK;
    if (status == MGX_OK)
        *choice = number_of(c, mgx_tuning_find(&plan->tuning, mgx_str_text(&problem)));
    if (status == MGX_OK && *choice < 0 && plan->exhaustive_tune) {
        double seconds;
        status = measure(plan, c, choice, &seconds, diag);
        plan->measured_count++;
        if (status == MGX_OK && *choice >= 0)
            status = mgx_tuning_put(&plan->tuning, problem.text, c->name(c->user, *choice),
                                    seconds * 1e6, diag);
    }
    plan->tuned_count += *choice >= 0;
    mgx_str_fini(&problem);
    return status;
}
