// SPDX-License-Identifier: MIT
// A queue with a thread of its own; see far.h.
#include "far/far.h"

#include "plan/machine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    struct command *next;
    far_work work;
    _Alignas(16) char arguments[];
};

struct recording { // commands in order
    struct command **v;
    size_t *sizes;
    int count;
};

struct mgx_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct command *first, *last;
    bool late;    // runs nothing before it is waited for
    bool awaited; // somebody waits
    bool running; // a command is out of the list and not done
    bool over;
    bool records; // commands are kept in `recording` and not run
    struct recording *recording;
    unsigned count;
    struct mgx_diag diag; // of the first command that failed since the last wait
};

static bool may_run(const struct mgx_queue *q)
{
    return q->first && (!q->late || q->awaited || q->over);
}

static void run_one(struct mgx_queue *q)
{
    struct command *c = q->first;
    q->first = c->next;
    q->last = q->first ? q->last : NULL;
    q->running = true;
    const bool skip = q->diag.status != MGX_OK;
    pthread_mutex_unlock(&q->lock);
    struct mgx_diag diag = {.status = MGX_OK};
    if (!q->late && q->count++ % 8 == 0)
        usleep(20);
    if (!skip && c->work(c->arguments, &diag) != MGX_OK && diag.status == MGX_OK)
        (void)!mgx_fail_memory(&diag);
    free(c);
    pthread_mutex_lock(&q->lock);
    if (!skip)
        q->diag = diag.status != MGX_OK ? diag : q->diag;
    q->running = false;
    pthread_cond_broadcast(&q->changed);
}

static void *work(void *user)
{
    struct mgx_queue *q = user;
    pthread_mutex_lock(&q->lock);
    while (!q->over || q->first) {
        if (may_run(q))
            run_one(q);
        else
            pthread_cond_wait(&q->changed, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

struct mgx_queue *far_queue_create(const struct mgx_memory *m)
{
    static atomic_uint number;
    (void)m;
    struct mgx_queue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->late = atomic_fetch_add(&number, 1) % 2 == 0;
    if (pthread_create(&q->thread, NULL, work, q) == 0)
        return q;
    free(q);
    return NULL;
}

void far_queue_destroy(struct mgx_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->over = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

// --- recordings ---

int far_recordings, far_refusals;

static enum mgx_status keep(struct recording *r, struct command *c, size_t size,
                            struct mgx_diag *diag)
{
    struct command **v = reallocarray(r->v, (size_t)r->count + 1, sizeof *v);
    r->v = v ? v : r->v;
    size_t *sizes = reallocarray(r->sizes, (size_t)r->count + 1, sizeof *sizes);
    r->sizes = sizes ? sizes : r->sizes;
    if (!v || !sizes) {
        free(c);
        return mgx_fail_memory(diag);
    }
    r->v[r->count] = c;
    r->sizes[r->count++] = size;
    return MGX_OK;
}

static void drop(const struct mgx_plan_machine *machine, void *graph)
{
    struct recording *r = graph;
    (void)machine;
    for (int i = 0; i < r->count; i++)
        free(r->v[i]);
    free(r->v);
    free(r->sizes);
    free(r);
    __atomic_fetch_sub(&far_recordings, 1, __ATOMIC_SEQ_CST);
}

static enum mgx_status begin(struct mgx_queue *q, struct mgx_diag *diag)
{
    if (q->records)
        abort(); // begun twice
    if (far_refusals > 0) {
        far_refusals--;
        return mgx_fail(diag, MGX_UNSUPPORTED, "no recordings");
    }
    q->recording = calloc(1, sizeof *q->recording);
    if (!q->recording)
        return mgx_fail_memory(diag);
    __atomic_fetch_add(&far_recordings, 1, __ATOMIC_SEQ_CST);
    q->records = true;
    return MGX_OK;
}

static enum mgx_status end(struct mgx_queue *q, void **graph, struct mgx_diag *diag)
{
    (void)diag;
    if (!q->records)
        abort(); // nothing was begun
    q->records = false;
    *graph = q->recording;
    return MGX_OK;
}

static enum mgx_status play(struct mgx_queue *q, void *graph, struct mgx_diag *diag)
{
    const struct recording *r = graph;
    for (int i = 0; i < r->count; i++)
        TRY(far_submit(q, r->v[i]->work, r->v[i]->arguments, r->sizes[i], diag));
    return MGX_OK;
}

const struct mgx_plan_recorder far_recorder = {begin, end, play, drop};

// --- work ---

enum mgx_status far_submit(struct mgx_queue *q, far_work fn, const void *arguments, size_t size,
                           struct mgx_diag *diag)
{
    struct command *c = calloc(1, sizeof *c + size);
    if (!c)
        return mgx_fail_memory(diag);
    c->work = fn;
    memcpy(c->arguments, arguments, size);
    if (q->records)
        return keep(q->recording, c, size, diag);
    pthread_mutex_lock(&q->lock);
    *(q->last ? &q->last->next : &q->first) = c;
    q->last = c;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return MGX_OK;
}

enum mgx_status far_queue_wait(struct mgx_queue *q, struct mgx_diag *diag)
{
    pthread_mutex_lock(&q->lock);
    q->awaited = true;
    pthread_cond_broadcast(&q->changed);
    while (q->first || q->running)
        pthread_cond_wait(&q->changed, &q->lock);
    q->awaited = false;
    const struct mgx_diag failed = q->diag;
    mgx_diag_clear(&q->diag);
    pthread_mutex_unlock(&q->lock);
    return failed.status == MGX_OK ? MGX_OK : mgx_fail(diag, failed.status, "%s", failed.text);
}
