// SPDX-License-Identifier: MIT
// See team.h. A task has a number; a thread does the next one, and says which it has done.
#include "generate/team.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"

#define LOOKING 2e-4 // seconds that a thread looks for its next task before it sleeps

struct worker {
    struct mgx_team *team;
    pthread_t thread;
    int card;
    _Atomic unsigned done; // the last task's number
    struct mgx_diag diag;
    enum mgx_status status;
};

struct mgx_team {
    int count; // with the calling thread
    struct worker *workers;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t given;
    _Atomic unsigned number; // of the task that is given, or was last
    mgx_team_task task;
    void (*failed)(void *user, int card);
    void *user;
    bool ending;
};

int mgx_team_count(const struct mgx_team *team)
{
    return team->count;
}

static void look_until(const _Atomic unsigned *number, unsigned seen)
{
    const double until = mgx_clock_seconds() + LOOKING;
    while (atomic_load(number) == seen && mgx_clock_seconds() < until)
        sched_yield();
}

static unsigned await_task(struct mgx_team *t, unsigned seen)
{
    look_until(&t->number, seen);
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->number) == seen)
        pthread_cond_wait(&t->given, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->number);
}

static enum mgx_status do_task(const struct mgx_team *t, int card, struct mgx_diag *diag)
{
    const enum mgx_status status = t->task(t->user, card, diag);
    if (status != MGX_OK && t->failed)
        t->failed(t->user, card);
    return status;
}

static void *work(void *user)
{
    struct worker *w = user;
    struct mgx_team *t = w->team;
    for (unsigned seen = 0;;) {
        seen = await_task(t, seen);
        if (t->ending)
            return NULL;
        mgx_diag_clear(&w->diag);
        w->status = do_task(t, w->card, &w->diag);
        atomic_store(&w->done, seen);
    }
}

static void give(struct mgx_team *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->number, 1);
    pthread_cond_broadcast(&t->given);
    pthread_mutex_unlock(&t->lock);
}

static void await_all(struct mgx_team *t)
{
    const unsigned number = atomic_load(&t->number);
    for (int i = 0; i < t->started; i++)
        while (atomic_load(&t->workers[i].done) != number)
            sched_yield(); // the calling thread has done as much itself: it is not long
}

enum mgx_status mgx_team_create(struct mgx_team **out, int count, struct mgx_diag *diag)
{
    assert(count > 0);
    struct mgx_team *t = calloc(1, sizeof *t);
    if (t)
        t->workers = calloc((size_t)count, sizeof *t->workers);
    if (!t || !t->workers) {
        free(t);
        return mgx_fail_memory(diag);
    }
    t->count = count;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->given, NULL);
    for (; t->started < count - 1; t->started++) {
        struct worker *w = &t->workers[t->started];
        w->team = t;
        w->card = t->started + 1;
        if (!mgx_thread_start(&w->thread, work, w)) {
            mgx_team_destroy(t);
            return mgx_fail(diag, MGX_NO_MEMORY, "the system refuses another thread");
        }
    }
    *out = t;
    return MGX_OK;
}

void mgx_team_destroy(struct mgx_team *t)
{
    if (!t)
        return;
    t->ending = true;
    give(t);
    for (int i = 0; i < t->started; i++)
        pthread_join(t->workers[i].thread, NULL);
    pthread_cond_destroy(&t->given);
    pthread_mutex_destroy(&t->lock);
    free(t->workers);
    free(t);
}

enum mgx_status mgx_team_run(struct mgx_team *t, mgx_team_task task,
                             void (*failed)(void *user, int card), void *user, bool *apart,
                             struct mgx_diag *diag)
{
    struct mgx_diag own;
    mgx_diag_clear(&own);
    t->task = task;
    t->failed = failed;
    t->user = user;
    give(t);
    mgx_cancel_pause();
    enum mgx_status status = do_task(t, 0, &own);
    const enum mgx_status first = status;
    const char *const text = own.text; // of the first card, as long as that has failed
    mgx_cancel_resume();
    await_all(t);
    *apart = false;
    for (int i = 0; i < t->started; i++) {
        const struct worker *w = &t->workers[i];
        *apart = *apart || w->status != first || (first && strcmp(w->diag.text, text) != 0);
        if (status == MGX_OK && w->status != MGX_OK) {
            status = w->status;
            own = w->diag;
        }
    }
    if (status != MGX_OK && diag)
        *diag = own;
    return status;
}
