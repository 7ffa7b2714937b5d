// SPDX-License-Identifier: MIT
// Pages that were small for the first answer's sake (base/memory.h) become huge while a program
// runs: 4 to 6 % of a run with weights that no cache holds, a third of a token on a busy host. A
// thread of the plan's own does it, half of the time at most, and ends with it; no run waits for
// more than the page it reads.
//
// Holds: of several plans of a model each grows what it packed itself, whichever of them run. What
// a plan packs after the thread has ended, as kernels chosen at run time do, gets another thread.
// Cost: a run that finds nothing new takes a lock that is free, or goes on where it is not.
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

// Constants of a chunk, as far as there were any when the thread began.
static void *constants(const struct cpu_growth *g, int64_t chunk, size_t *bytes)
{
    unsigned char *data = g->packed[chunk]->data, *end = data + g->packed[chunk]->bytes;
    if (g->end >= data && g->end < end)
        end = g->end;
    *bytes = (size_t)(end - data);
    return data;
}

// False when the plan goes.
static bool grow_block(struct cpu_growth *g, void *block, size_t bytes, size_t *done)
{
    double start = mgx_clock_seconds();
    while (!atomic_load(&g->stop) && mgx_memory_grow(block, bytes, done)) {
        rest(mgx_clock_seconds() - start);
        start = mgx_clock_seconds();
    }
    return !atomic_load(&g->stop);
}

// The last chunk may get more: the next thread goes on in it.
static void *grow(void *user)
{
    struct cpu_growth *g = user;
    size_t bytes, scratch_done = 0;
    bool good = true;
    for (; good && g->chunk < g->chunks; g->chunk++, g->done = 0) {
        void *block = constants(g, g->chunk, &bytes);
        good = grow_block(g, block, bytes, &g->done);
        if (g->chunk + 1 == g->chunks)
            break;
    }
    if (good && g->scratch)
        grow_block(g, g->scratch, g->scratch_bytes, &scratch_done);
    atomic_store(&g->ended, true);
    return NULL;
}

// The child of a fork has no such thread, and what it had begun stays as it is.
static bool is_idle(struct cpu_growth *g)
{
    if (!g->process)
        return true;
    if (g->process != getpid() || !atomic_load(&g->ended))
        return false;
    pthread_join(g->thread, NULL);
    g->process = 0;
    return true;
}

static void begin(struct cpu_growth *g, const struct mgx_plan *plan, struct mgx_context *x)
{
    const struct mgx_plan_store *store = &plan->store;
    const bool shared = store->sharing != NULL; // the scratch is another's in turn
    const bool scratch = !g->scratch_done && !shared && plan->block[MGX_PLAN_HOST].bytes;
    if (!scratch && g->chunks == store->packed.count && g->end == store->chunk)
        return;
    // A lock is not taken in the thread: a child forked meanwhile would find it held.
    g->packed = store->packed.v;
    g->chunks = store->packed.count;
    g->end = store->chunk;
    g->scratch = scratch ? x->scratch[MGX_PLAN_HOST] : NULL;
    g->scratch_bytes = plan->block[MGX_PLAN_HOST].bytes;
    g->scratch_done = true;
    atomic_store(&g->ended, false);
    if (mgx_thread_start(&g->thread, grow, g))
        g->process = getpid();
}

void cpu_grow(struct mgx_plan *plan, struct mgx_context *x)
{
    enum { RUNS_BEFORE = 2 };
    struct cpu_growth *g = &((struct cpu_machine *)plan->machine)->growth;
    if (!mgx_memory_grows() || atomic_fetch_add(&g->runs, 1) < RUNS_BEFORE ||
        pthread_mutex_trylock(&plan->late.lock) != 0) // constants may be packed at this moment
        return;
    if (is_idle(g))
        begin(g, plan, x);
    pthread_mutex_unlock(&plan->late.lock);
}

void cpu_grow_end(struct mgx_plan_machine *machine)
{
    struct cpu_growth *g = &((struct cpu_machine *)machine)->growth;
    atomic_store(&g->stop, true);
    if (g->process && g->process == getpid())
        pthread_join(g->thread, NULL);
}
