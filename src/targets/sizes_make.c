// SPDX-License-Identifier: MIT
// Plans for sizes: whether one pays, making it, and the thread that does; see sizes_own.h.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"
#include "targets/sizes_own.h"

// --- what things cost ---

// Of the lengths, each name once.
double mgx_sizes_volume(const struct mgx_sizes *s, const struct mgx_size *k)
{
    double product = 1;
    for (int i = 0; i < s->len_count; i++)
        product *= (double)(k->lens[i] > 0 && !s->follows[i] ? k->lens[i] : 1);
    return product;
}

// Follows what is measured: down at once, since packing and other work slow some runs, up slowly.
double mgx_sizes_follow(double was, double is)
{
    return was > 0 && is > was ? 0.9 * was + 0.1 * is : is;
}

// Does a plan save its run as much as making it takes? The steps for any size take half as long
// again as a plan, so a plan saves a third of their time. The first run of all packs the weights,
// which the steps for any size do in a form of their own: a plan from the start packs them once,
// and so do more plans behind it, until a run has been by these steps. Till then one may take twice
// what its run takes; more than that it takes where texts grow by a token.
bool mgx_sizes_pays(const struct mgx_sizes *s, const struct mgx_size *k)
{
    if (s->unit_seconds > 0)
        return 3 * s->plan_seconds <= s->unit_seconds * mgx_sizes_volume(s, k);
    return s->own_seconds == 0 || s->plan_seconds <= 2 * s->own_seconds * mgx_sizes_volume(s, k);
}

// --- making a plan ---

// Would a plan stay? While there is room, yes. Else it takes the place of the least recently used
// one if its size came more often; that one has less to say against the next.
bool mgx_sizes_has_room(struct mgx_sizes *s, const struct mgx_size *k)
{
    const size_t each = s->plans ? s->bytes / (size_t)s->plans : 0;
    struct mgx_size *victim = s->oldest;
    if (s->bytes + each <= s->limit)
        return true;
    while (victim && (victim->state != MGX_SIZE_READY || victim->users))
        victim = victim->newer;
    return !victim || k->meetings > victim->meetings--;
}

// What makes sizes alike: which lengths are 0 and 1, since axes of these come and go, and values.
static uint64_t kind_of(const struct mgx_sizes *s, const struct mgx_size *k)
{
    int64_t like[MGX_SIZES_MOST_LENS];
    memcpy(like, k->lens, mgx_sizes_key_bytes(s));
    for (int i = 0; i < s->len_count; i++)
        like[i] = like[i] < 2 ? like[i] : 2;
    return mgx_hash_bytes(like, mgx_sizes_key_bytes(s), 0);
}

// How many there are of a kind; as many are put into `out`.
static int find_histories(const struct mgx_sizes *s, uint64_t kind,
                          const struct mgx_pass_history **out)
{
    int count = 0;
    for (int i = 0; i < s->known_count; i++)
        if (s->known[i].kind == kind)
            out[count++] = s->known[i].history;
    return count;
}

// Takes the history, and keeps it if it led to a plan on a way of its own.
static void keep_history(struct mgx_sizes *s, uint64_t kind, struct mgx_pass_history *history,
                         bool good)
{
    if (history && good && s->known_count < MGX_SIZES_HISTORIES)
        s->known[s->known_count++] = (struct mgx_size_known){kind, history};
    else
        free(history);
}

// With a makeshift a run waits for it, and what others packed is there to be taken.
static struct mgx_program *make(const struct mgx_sizes *s, struct mgx_size *k,
                                struct mgx_plan_makeshift *makeshift, struct mgx_pass_trail *trail)
{
    struct mgx_compile_options options = s->options;
    struct mgx_diag quiet = {.status = MGX_OK};
    struct mgx_program *p = NULL;
    const double start = mgx_clock_seconds();
    options.makeshift = makeshift;
    options.pass.trail = trail;
    mgx_cancel_pause(); // it serves later runs too
    const enum mgx_status status =
        mgx_specialise(&p, s->simplified, s->target, &options, &s->values, k->lens, &quiet);
    mgx_cancel_resume();
    k->seconds = mgx_clock_seconds() - start;
    return status == MGX_OK ? p : NULL; // what is wrong, the run will say
}

void mgx_sizes_weigh(struct mgx_sizes *s, struct mgx_size *k, size_t bytes)
{
    k->bytes += bytes - k->plan_bytes;
    s->bytes += bytes - k->plan_bytes;
    k->plan_bytes = bytes;
}

// Hangs a new plan, or none, on a row; the old one is handed back.
static struct mgx_program *replace(struct mgx_sizes *s, struct mgx_size *k, struct mgx_program *p,
                                   size_t bytes)
{
    struct mgx_program *old = k->program;
    if (!p && old) { // it stays as it is
        k->state = MGX_SIZE_READY;
        return NULL;
    }
    k->program = p;
    k->state = p ? MGX_SIZE_READY : MGX_SIZE_FAILED;
    mgx_sizes_weigh(s, k, bytes);
    s->plans += (p != NULL) - (old != NULL);
    s->made += p != NULL;
    return old;
}

// The best kernels of one size are packed: what the hasty plans of others would have to pack is
// mostly there now.
void mgx_sizes_settle(struct mgx_sizes *s, double packed_seconds)
{
    s->lost_seconds = 0;
    for (struct mgx_size *k = s->newest; k; k = k->older)
        k->makeshift.saved_seconds = fmax(0, k->makeshift.saved_seconds - packed_seconds);
}

// Makes the plan of a row that its caller holds, and nobody else's run if it has one already. The
// lock is held before and after.
void mgx_sizes_fill(struct mgx_sizes *s, struct mgx_size *k, bool soon)
{
    assert(k->users && k->state != MGX_SIZE_MAKING &&
           (k->state != MGX_SIZE_READY || k->users == 1));
    struct mgx_plan_makeshift makeshift = {0};
    const uint64_t kind = kind_of(s, k);
    const struct mgx_pass_history *known[MGX_SIZES_HISTORIES];
    struct mgx_pass_trail trail = {.known = known, .known_count = find_histories(s, kind, known)};
    k->state = MGX_SIZE_MAKING;
    pthread_mutex_unlock(&s->lock);
    trail.made = calloc(1, sizeof *trail.made); // without it all passes run
    struct mgx_program *p = make(s, k, soon ? &makeshift : NULL, &trail);
    const size_t bytes = p ? s->target->bytes(p) : 0;
    pthread_mutex_lock(&s->lock);
    keep_history(s, kind, trail.made, p && trail.lost);
    k->makeshift = makeshift;
    if (p)
        s->plan_seconds = mgx_sizes_follow(s->plan_seconds, k->seconds);
    struct mgx_program *old = replace(s, k, p, bytes);
    struct mgx_size *gone = mgx_sizes_shrink(s);
    if (!gone && !old)
        return;
    pthread_mutex_unlock(&s->lock);
    mgx_sizes_destroy_rows(gone);
    mgx_program_destroy(old);
    pthread_mutex_lock(&s->lock);
}

// --- the thread ---

static void *work(void *user)
{
    struct mgx_sizes *s = user;
    enum { POLITE = 10 };
    setpriority(PRIO_PROCESS, 0, POLITE); // of this thread alone, on Linux
    pthread_mutex_lock(&s->lock);
    while (s->first_waiting && !s->stop) {
        struct mgx_size *k = s->first_waiting;
        s->first_waiting = k->waiting;
        if (!s->first_waiting)
            s->last_waiting = NULL;
        mgx_sizes_fill(s, k, false);
        k->users--;
    }
    s->at_work = false;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void mgx_sizes_join(struct mgx_sizes *s)
{
    if (s->process && s->process == getpid()) // a forked child has no such thread
        pthread_join(s->thread, NULL);
    s->process = 0;
}

// The lock is held.
static bool start(struct mgx_sizes *s)
{
    if (s->at_work && s->process == getpid())
        return true;
    mgx_sizes_join(s); // it has ended but for its last step
    s->at_work = mgx_thread_start(&s->thread, work, s);
    s->process = s->at_work ? getpid() : 0;
    return s->at_work;
}

void mgx_sizes_put_off(struct mgx_sizes *s, struct mgx_size *k)
{
    k->state = MGX_SIZE_WAITING;
    k->waiting = NULL;
    k->users++;
    *(s->last_waiting ? &s->last_waiting->waiting : &s->first_waiting) = k;
    s->last_waiting = k;
    if (start(s))
        return;
    s->first_waiting = s->last_waiting = NULL; // no thread: nothing waits, the next meeting tries
    k->state = MGX_SIZE_SEEN;
    k->users--;
}
