// SPDX-License-Identifier: MIT
// Pages that were small for the first answer's sake (base/memory.h) become huge while a program
// runs on: 4 to 6 % of a run with weights that no cache holds. After every run but the first few, a
// page or more for a sixteenth of the time it took.
#include <time.h>

#include "base/memory.h"
#include "target/cpu/cpu.h"

enum { RUNS_BEFORE = 3, SHARE = 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Constants of a chunk, as far as there are any; kernels chosen at run time add some.
static size_t used_bytes(struct cpu_plan *plan, size_t chunk, void **data)
{
    pthread_mutex_lock(&plan->lock);
    const struct mgx_storage *s = chunk < plan->packed.count ? plan->packed.v[chunk] : NULL;
    size_t bytes = s ? s->bytes : 0;
    *data = s ? s->data : NULL;
    if (s && plan->chunk >= (unsigned char *)s->data &&
        plan->chunk < (unsigned char *)s->data + bytes)
        bytes = (size_t)(plan->chunk - (unsigned char *)s->data);
    pthread_mutex_unlock(&plan->lock);
    return bytes;
}

// One page of the plan's constants, or of a context's scratch. False: none is left.
static bool grow_one(struct cpu_plan *plan, struct cpu_context *x)
{
    struct cpu_growth *g = &plan->growth;
    void *data;
    for (size_t bytes; (bytes = used_bytes(plan, g->chunk, &data)), data; g->chunk++, g->done = 0)
        if (mgx_memory_grow(data, bytes, &g->done))
            return true;
    return mgx_memory_grow(x->scratch, plan->scratch_bytes, &x->grown);
}

static bool begin(struct cpu_plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    struct cpu_growth *g = &plan->growth;
    const bool mine = !g->busy && ++g->runs > RUNS_BEFORE;
    g->busy |= mine;
    pthread_mutex_unlock(&plan->lock);
    return mine;
}

double cpu_grow_start(void)
{
    return mgx_memory_grows() ? now() : 0;
}

void cpu_grow(struct cpu_plan *plan, struct cpu_context *x, double start)
{
    if (start == 0 || x->is_grown || !begin(plan))
        return;
    const double end = now(), until = end + (end - start) / SHARE;
    do
        x->is_grown = !grow_one(plan, x);
    while (!x->is_grown && now() < until);
    pthread_mutex_lock(&plan->lock);
    plan->growth.busy = false;
    pthread_mutex_unlock(&plan->lock);
}
