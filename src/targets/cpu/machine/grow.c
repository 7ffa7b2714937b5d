// SPDX-License-Identifier: MIT
// Pages that were small for the first answer's sake (base/memory.h) become huge while a program
// runs: 4 to 6 % of a run with weights that no cache holds. A thread of the plan's own does it,
// half of the time at most, and ends with it; no run waits for more than the page it reads.
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "plan/context.h"
#include "targets/cpu/machine/machine.h"

static void rest(double seconds)
{
    const struct timespec t = {.tv_nsec = seconds < 0.1 ? (long)(seconds * 1e9) : 100000000};
    nanosleep(&t, NULL);
}

// Constants of a chunk, as far as there were any when it began, or behind them the first context's
// scratch. NULL: that was all. No lock is taken: a child forked meanwhile would find it held.
static void *block_of(const struct cpu_growth *g, int64_t number, size_t *bytes)
{
    *bytes = g->scratch_bytes;
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
    struct cpu_growth *g = user;
    size_t bytes, done = 0;
    void *block;
    for (int64_t i = 0; (block = block_of(g, i, &bytes)); i++, done = 0) {
        double start = mgx_clock_seconds();
        while (!atomic_load(&g->stop) && mgx_memory_grow(block, bytes, &done)) {
            rest(mgx_clock_seconds() - start);
            start = mgx_clock_seconds();
        }
    }
    return NULL;
}

void cpu_grow(struct mgx_plan *plan, struct mgx_context *x)
{
    enum { RUNS_BEFORE = 2 };
    struct cpu_growth *g = &((struct cpu_machine *)plan->machine)->growth;
    if (!mgx_memory_grows() || atomic_load(&g->begun) ||
        atomic_fetch_add(&g->runs, 1) < RUNS_BEFORE)
        return;
    pthread_mutex_lock(&plan->late.lock); // constants may be packed at this moment
    const bool mine = !atomic_exchange(&g->begun, true);
    if (mine) {
        g->packed = plan->store.packed.v;
        g->chunks = plan->store.packed.count;
        g->end = plan->store.chunk;
        g->scratch = plan->store.sharing ? NULL : x->scratch[MGX_PLAN_HOST]; // another's in turn
        g->scratch_bytes = plan->block[MGX_PLAN_HOST].bytes;
        g->process = getpid();
    }
    pthread_mutex_unlock(&plan->late.lock);
    if (mine && !mgx_thread_start(&g->thread, grow, g))
        g->process = 0;
}

// A forked child has no such thread.
void cpu_grow_end(struct mgx_plan_machine *machine)
{
    struct cpu_growth *g = &((struct cpu_machine *)machine)->growth;
    atomic_store(&g->stop, true);
    if (g->process && g->process == getpid())
        pthread_join(g->thread, NULL);
}
