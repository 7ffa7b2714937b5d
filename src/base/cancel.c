// SPDX-License-Identifier: MIT
// Ending long work before it is done; see cancel.h.
#include "base/cancel.h"

#include <assert.h>

#include "base/clock.h"

enum { RAISED = 1, CALL = 2 };

static const int64_t POLL_EVERY = 2000000; // nanoseconds

// What this thread obeys. `helps`: for the time of another thread's call.
static _Thread_local struct {
    struct mgx_cancel *cancel;
    int depth, paused;
    bool helps;
} here;

void mgx_cancel_request(struct mgx_cancel *c)
{
    atomic_fetch_or(&c->state, RAISED);
}

bool mgx_cancel_requested(const struct mgx_cancel *c)
{
    return atomic_load_explicit(&c->state, memory_order_relaxed) & RAISED;
}

bool mgx_cancel_reset(struct mgx_cancel *c)
{
    unsigned state = RAISED; // and no call
    return atomic_compare_exchange_strong(&c->state, &state, 0) || state == 0;
}

bool mgx_cancel_attach(struct mgx_cancel *c)
{
    if (here.depth)
        return false;
    if (here.cancel)
        atomic_fetch_sub(&here.cancel->attached, 1);
    if (c)
        atomic_fetch_add(&c->attached, 1);
    here.cancel = c;
    return true;
}

struct mgx_cancel *mgx_cancel_attached(void)
{
    return here.cancel;
}

void mgx_cancel_enter(void)
{
    if (here.cancel && !here.helps)
        atomic_fetch_add(&here.cancel->state, CALL);
    here.depth++;
}

void mgx_cancel_leave(void)
{
    assert(here.depth > 0);
    here.depth--;
    if (here.cancel && !here.helps)
        atomic_fetch_sub(&here.cancel->state, CALL);
}

void mgx_cancel_pause(void)
{
    here.paused++;
}

void mgx_cancel_resume(void)
{
    assert(here.paused > 0);
    here.paused--;
}

struct mgx_cancel *mgx_cancel_at_work(void)
{
    return here.depth && !here.paused ? here.cancel : NULL;
}

void mgx_cancel_help(struct mgx_cancel *c)
{
    here.cancel = c;
    here.helps = c != NULL;
    here.depth = c != NULL;
}

// The poll may take long (a lock of an interpreter), so of several threads one asks.
static bool poll(struct mgx_cancel *c)
{
    const int64_t now = (int64_t)(mgx_clock_coarse() * 1e9);
    int64_t due = atomic_load_explicit(&c->next_poll, memory_order_relaxed);
    if (now < due || !atomic_compare_exchange_strong(&c->next_poll, &due, now + POLL_EVERY) ||
        !c->poll(c->user))
        return false;
    mgx_cancel_request(c);
    return true;
}

bool mgx_cancelled(void)
{
    struct mgx_cancel *c = mgx_cancel_at_work();
    if (!c)
        return false;
    return mgx_cancel_requested(c) || (c->poll && !here.helps && poll(c));
}

enum mgx_status mgx_cancel_check(struct mgx_diag *diag)
{
    return mgx_cancelled() ? mgx_fail(diag, MGX_CANCELLED, "cancelled") : MGX_OK;
}
