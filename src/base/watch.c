// SPDX-License-Identifier: MIT
// Seeing which threads help with a call; see watch.h.
#include "base/watch.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local struct mgx_watch *here;

void mgx_watch_attach(struct mgx_watch *w)
{
    assert(!w || w->room >= 0);
    here = w;
}

struct mgx_watch *mgx_watch_attached(void)
{
    return here;
}

void mgx_watch_add(struct mgx_watch *w, int thread, double begin, double end)
{
    assert(thread >= 0 && begin <= end);
    const int at = atomic_fetch_add_explicit(&w->count, 1, memory_order_relaxed);
    if (at < w->room)
        w->spans[at] = (struct mgx_span){thread, begin, end};
}

int mgx_watch_count(const struct mgx_watch *w)
{
    const int count = atomic_load_explicit(&w->count, memory_order_relaxed);
    return count < w->room ? count : w->room;
}
