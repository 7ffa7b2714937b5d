// SPDX-License-Identifier: MIT
// Seeing which threads help with a call, and when.
//
//     calling thread:      mgx_watch_attach(&w), then work that forks
//     every helper:        mgx_watch_add(w, thread, begin, end), once per fork
//     calling thread:      reads w.spans between forks, mgx_watch_attach(NULL)
//
// As with what cancels a call (cancel.h), the list belongs to the calling thread and is not handed
// from function to function: whoever forks asks for it and passes it to the helpers.
//
// Holds: the list's owner reads and empties it only while none of its forks is open. Spans beyond
// the room are dropped.
// Cost: without a list a fork costs one load of thread-local memory and a helper one branch.
#pragma once

#include <stdatomic.h>

struct mgx_span {
    int thread;
    double begin, end; // seconds of mgx_clock_seconds
};

struct mgx_watch {
    struct mgx_span *spans;
    int room;
    _Atomic int count; // that were added, those without room included
};

// Forks of this thread tell this list from now on; NULL: none.
void mgx_watch_attach(struct mgx_watch *w);
struct mgx_watch *mgx_watch_attached(void);
// By any helper.
void mgx_watch_add(struct mgx_watch *w, int thread, double begin, double end);
// How many spans there are to read.
int mgx_watch_count(const struct mgx_watch *w);
