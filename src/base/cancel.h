// SPDX-License-Identifier: MIT
// Ending long work before it is done: a flag that anybody raises and that the work looks at.
//
//     other thread, signal handler:   mgx_cancel_request(&c)
//     thread that works:              mgx_cancel_attach(&c), then any call
//                                     call: enter .. check, check, check: MGX_CANCELLED .. leave
//
// A flag is attached to threads, not handed from function to function: what a call does passes
// through layers (kernels, thread pool, tables of rewrites) that have nothing to say about it. It
// is looked at between steps, passes, measurements, tasks of the pool, and within the reference's
// long loops, so that a call ends within milliseconds.
//
// Holds: a flag that is raised stays so until the calls under it have ended (reset is refused
// before). Loops that return nothing may therefore stop half-way and leave garbage: whoever called
// them checks afterwards, and no result leaves. Without a flag a look costs one load of
// thread-local memory.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

struct mgx_cancel {
    _Atomic unsigned state;    // 2 * calls at work, + 1 when it is raised
    _Atomic unsigned attached; // threads
    // Asked by the threads it is attached to, every few milliseconds while they work: true raises
    // the flag. NULL: nobody is asked.
    bool (*poll)(void *user);
    void *user;
    _Atomic int64_t next_poll; // nanoseconds of the steady clock
};

// Safe in signal handlers.
void mgx_cancel_request(struct mgx_cancel *c);
bool mgx_cancel_requested(const struct mgx_cancel *c);
// Lowers the flag. False, and nothing happens, while a call is at work under it.
bool mgx_cancel_reset(struct mgx_cancel *c);

// Calls of this thread obey this flag from now on; NULL: none. False, and nothing happens, while a
// call of this thread is at work.
bool mgx_cancel_attach(struct mgx_cancel *c);
struct mgx_cancel *mgx_cancel_attached(void); // NULL: none

// Around a call that can be ended; calls nest. Outside of one nothing is ever cancelled.
void mgx_cancel_enter(void);
void mgx_cancel_leave(void);

// Between these two, work that would be kept half-done runs to its end.
void mgx_cancel_pause(void);
void mgx_cancel_resume(void);

// What this thread's work obeys; NULL outside of calls and while paused.
struct mgx_cancel *mgx_cancel_at_work(void);
// A thread that helps another one obeys what that one obeys, and polls nobody; NULL ends it.
void mgx_cancel_help(struct mgx_cancel *c);

// Whether the work should stop.
bool mgx_cancelled(void);
// The same as a status.
enum mgx_status mgx_cancel_check(struct mgx_diag *diag) MGX_NODISCARD;
