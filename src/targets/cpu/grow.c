// SPDX-License-Identifier: MIT
// Pages that were small for the first answer's sake (base/memory.h) become huge while a program
// runs: 4 to 6 % of a run with weights that no cache holds. A thread of the plan's own does it,
// half of the time at most, and ends with it; no run waits for more than the page it reads.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "targets/cpu/cpu.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(double seconds)
{
    const struct timespec t = {.tv_nsec = seconds < 0.1 ? (long)(seconds * 1e9) : 100000000};
    nanosleep(&t, NULL);
}

// Constants of a chunk, as far as there were any when it began, or behind them the first context's
// scratch. NULL: that was all. No lock is taken: a child forked meanwhile would find it held.
static void *block_of(const struct cpu_plan *plan, size_t number, size_t *bytes)
{
    const struct cpu_growth *g = &plan->growth;
    *bytes = plan->scratch_bytes;
    if (number >= g->chunks)
        return number == g->chunks ? g->scratch : NULL;
    unsigned char *data = g->packed[number]->data, *end = data + g->packed[number]->bytes;
    if (g->end >= data && g->end < end)
        end = g->end;
    *bytes = (size_t)(end - data);
    return data;
}

static void *grow(void *user)
{
    struct cpu_plan *plan = user;
    size_t bytes, done = 0;
    void *block;
    for (size_t i = 0; (block = block_of(plan, i, &bytes)); i++, done = 0) {
        double start = now();
        while (!atomic_load(&plan->growth.stop) && mgx_memory_grow(block, bytes, &done)) {
            rest(now() - start);
            start = now();
        }
    }
    return NULL;
}

// Signals are for the host program's threads.
static bool start(struct cpu_plan *plan)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool good = pthread_create(&plan->growth.thread, NULL, grow, plan) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}

void cpu_grow(struct cpu_plan *plan, struct cpu_context *x)
{
    enum { RUNS_BEFORE = 2 };
    struct cpu_growth *g = &plan->growth;
    if (!mgx_memory_grows() || atomic_load(&g->begun))
        return;
    pthread_mutex_lock(&plan->lock);
    const bool mine = ++g->runs > RUNS_BEFORE && !atomic_exchange(&g->begun, true);
    if (mine) {
        g->packed = plan->packed.v;
        g->chunks = plan->packed.count;
        g->end = plan->chunk;
        g->scratch = x->scratch;
        g->process = getpid();
    }
    pthread_mutex_unlock(&plan->lock);
    if (mine && !start(plan))
        g->process = 0;
}

// A forked child has no such thread.
void cpu_grow_end(struct cpu_plan *plan)
{
    struct cpu_growth *g = &plan->growth;
    atomic_store(&g->stop, true);
    if (g->process && g->process == getpid())
        pthread_join(g->thread, NULL);
}
