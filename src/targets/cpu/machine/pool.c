// SPDX-License-Identifier: MIT
// Thread pool; see pool.h.
//
// One atomic word says everything a worker must know to join a run:
//
//     job:  [ epoch 32 | threads 15 | open 1 | active 16 ]
//
// The caller fills in the run, then stores a word with the next epoch, open and nobody active. A
// worker below `threads` enters by counting itself into `active` with compare-and-swap, which fails
// once the run is closed: a worker that wakes late can never touch a finished run, and the caller
// never waits for one that has not entered. The caller works too, closes, and waits for `active` to
// fall to 0.
//
//     range of one thread:  [ end 32 | next 32 ]   owner takes next, thieves take end - 1
//
// A scheduler may wake a worker on the caller's CPU and leave it there for milliseconds, with
// another CPU idle: both then take turns on one, and spin against each other. So a worker that
// finds itself where the caller is moves away, and stays off that CPU.
#include "targets/cpu/machine/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/watch.h"
#include "targets/cpu/machine/cpus.h"

#if defined(__x86_64__)
#include <immintrin.h>
static void relax(void)
{
    _mm_pause();
}
typedef unsigned float_mode;
static float_mode float_mode_get(void)
{
    return _mm_getcsr() & ~0x3fu; // without the sticky exception flags
}
static void float_mode_set(float_mode mode)
{
    _mm_setcsr(mode);
}
#else
static void relax(void)
{
}
typedef int float_mode;
static float_mode float_mode_get(void)
{
    return 0;
}
static void float_mode_set(float_mode mode)
{
    (void)mode;
}
#endif

// Spins are of about 20 to 40 ns; while a program runs a worker repeats them HELD_ROUNDS times, and
// after it CALL_ROUNDS times: as long as a binding takes from one call to the next. One that has
// fallen asleep is woken in 60 us.
enum { SPINS = 2000, HELD_ROUNDS = 100, CALL_ROUNDS = 3 };

struct worker {
    struct core *core;
    pthread_t thread;
    int index;               // 1 and up; 0 is the caller
    cpu_set_t allowed, kept; // by others, and what it was cut down to here
    _Atomic bool asleep;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

struct lane {
    _Alignas(64) _Atomic uint64_t range;
};

struct core {
    _Alignas(64) _Atomic uint64_t job;
    mgx_pool_fn fn; // this and the next four: written while no run is open
    void *user;
    float_mode mode;
    struct mgx_cancel *cancel; // what the caller obeys, or NULL
    struct mgx_watch *watch;   // where the caller wants to see who worked when, or NULL
    _Alignas(64) atomic_flag busy;
    _Atomic int worker_count;
    _Atomic bool quit;
    _Atomic int held;            // programs that run: more work is to be expected at once
    _Atomic int spins;           // 0 with more threads than CPUs
    _Atomic int caller_cpu;      // where the last run began
    _Atomic bool caller_waiting; // below: the join that takes long
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct worker *workers[MGX_POOL_MAX_THREADS]; // [1, worker_count]
    struct lane lanes[MGX_POOL_MAX_THREADS];
};

struct mgx_pool {
    struct core *core; // NULL with one thread
    int threads, team;
};

// The process's teams. Guards creation and counting only; runs do not touch it.
static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct team {
        struct core *core;
        int users;
    } teams[MGX_POOL_TEAMS];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

// --- the job word ---

enum { OPEN = 1 << 16, ACTIVE_MASK = OPEN - 1 };

static uint64_t job_word(uint32_t epoch, int threads)
{
    return (uint64_t)epoch << 32 | (uint64_t)threads << 17 | OPEN;
}

static uint32_t job_epoch(uint64_t job)
{
    return (uint32_t)(job >> 32);
}

static int job_threads(uint64_t job)
{
    return (int)(job >> 17 & 0x7fff);
}

static bool enter(struct core *core, int index)
{
    uint64_t job = atomic_load(&core->job);
    while (job & OPEN && index < job_threads(job))
        if (atomic_compare_exchange_weak(&core->job, &job, job + 1))
            return true;
    return false;
}

static void leave(struct core *core)
{
    const uint64_t job = atomic_fetch_sub(&core->job, 1) - 1;
    if (job & (OPEN | ACTIVE_MASK) || !atomic_load(&core->caller_waiting))
        return;
    pthread_mutex_lock(&core->lock);
    pthread_cond_signal(&core->done);
    pthread_mutex_unlock(&core->lock);
}

// --- taking tasks ---

static void lane_fill(struct lane *lane, uint32_t begin, uint32_t end)
{
    atomic_store_explicit(&lane->range, (uint64_t)end << 32 | begin, memory_order_relaxed);
}

// The next task of the range, from its front or its back; -1 when it is empty.
static int lane_take(struct lane *lane, bool back)
{
    uint64_t range = atomic_load_explicit(&lane->range, memory_order_relaxed);
    for (;;) {
        const uint32_t next = (uint32_t)range, end = (uint32_t)(range >> 32);
        if (next >= end)
            return -1;
        const uint64_t rest = back ? range - (UINT64_C(1) << 32) : range + 1;
        if (atomic_compare_exchange_weak_explicit(&lane->range, &range, rest, memory_order_relaxed,
                                                  memory_order_relaxed))
            return back ? (int)(end - 1) : (int)next;
    }
}

static void work(struct core *core, int index, int threads)
{
    for (int i = 0; i < threads; i++) {
        const int victim = index + i < threads ? index + i : index + i - threads;
        for (int task; (task = lane_take(&core->lanes[victim], i > 0)) >= 0;)
            if (!mgx_cancelled())
                core->fn(core->user, task, index);
    }
}

// The share of a worker, and when it was done where somebody watches.
static void help(struct core *core, int index, int threads)
{
    struct mgx_watch *watch = core->watch;
    const double begin = watch ? mgx_clock_seconds() : 0;
    work(core, index, threads);
    if (watch)
        mgx_watch_add(watch, index, begin, mgx_clock_seconds());
}

// --- workers ---

// Moves this worker off the caller's CPU, if it runs there. When the worker's affinity is not what
// this function set last, somebody else has set it, and it stays.
static void step_aside(struct worker *w)
{
    const int cpu = atomic_load_explicit(&w->core->caller_cpu, memory_order_relaxed);
    cpu_set_t now;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu ||
        !atomic_load_explicit(&w->core->spins, memory_order_relaxed) ||
        sched_getaffinity(0, sizeof now, &now) != 0)
        return;
    if (!CPU_EQUAL(&now, &w->kept))
        w->allowed = now;
    cpu_set_t set = w->allowed;
    CPU_CLR((size_t)cpu, &set);
    if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0)
        w->kept = set;
}

static bool spin_for_epoch(const struct core *core, uint32_t seen)
{
    for (int i = atomic_load_explicit(&core->spins, memory_order_relaxed); i > 0; i--) {
        if (job_epoch(atomic_load_explicit(&core->job, memory_order_relaxed)) != seen)
            return true;
        relax();
    }
    return false;
}

static void await_epoch(struct worker *w, uint32_t seen)
{
    struct core *core = w->core;
    int rounds = HELD_ROUNDS, free_rounds = CALL_ROUNDS;
    do {
        if (spin_for_epoch(core, seen))
            return;
        sched_yield(); // to a caller that waits for this CPU
        free_rounds -= atomic_load_explicit(&core->held, memory_order_relaxed) == 0;
    } while (--rounds > 0 && free_rounds > 0 &&
             atomic_load_explicit(&core->spins, memory_order_relaxed) > 0);
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->asleep, true);
    while (job_epoch(atomic_load(&core->job)) == seen)
        pthread_cond_wait(&w->wake, &w->lock);
    atomic_store(&w->asleep, false);
    pthread_mutex_unlock(&w->lock);
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct core *core = w->core;
    uint32_t seen = 0;
    while (!atomic_load(&core->quit)) {
        await_epoch(w, seen);
        step_aside(w);
        const uint64_t job = atomic_load(&core->job);
        seen = job_epoch(job);
        if (!enter(core, w->index))
            continue;
        const float_mode own = float_mode_get();
        float_mode_set(core->mode);
        mgx_cancel_help(core->cancel);
        // The run entered may be newer than `job`: its thread count is read from inside.
        help(core, w->index, job_threads(atomic_load(&core->job)));
        mgx_cancel_help(NULL);
        float_mode_set(own);
        leave(core);
    }
    return NULL;
}

static void wake(struct worker *w)
{
    if (!atomic_load(&w->asleep))
        return;
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static void worker_destroy(struct worker *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static bool worker_create(struct core *core, int index)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    w->core = core;
    w->index = index;
    CPU_ZERO(&w->kept);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (!mgx_thread_start(&w->thread, worker_main, w)) {
        worker_destroy(w);
        return false;
    }
    core->workers[index] = w;
    return true;
}

// --- the core: created by the first handle that needs it, gone with the last ---

static struct core *core_create(void)
{
    struct core *core = aligned_alloc(64, sizeof *core);
    if (!core)
        return NULL;
    memset(core, 0, sizeof *core); // a literal of this size might be built on the stack first
    atomic_flag_clear(&core->busy);
    atomic_store(&core->spins, SPINS);
    pthread_mutex_init(&core->lock, NULL);
    pthread_cond_init(&core->done, NULL);
    return core;
}

static void core_grow(struct core *core, int threads)
{
    int count = atomic_load(&core->worker_count);
    if (threads > count + 1 && threads > mgx_cpus_usable())
        atomic_store(&core->spins, 0);
    while (count + 1 < threads && worker_create(core, count + 1))
        atomic_store(&core->worker_count, ++count);
}

static void core_destroy(struct core *core)
{
    const int count = atomic_load(&core->worker_count);
    atomic_store(&core->quit, true);
    atomic_store(&core->job, (uint64_t)(job_epoch(atomic_load(&core->job)) + 1) << 32);
    for (int i = 1; i <= count; i++) {
        wake(core->workers[i]);
        pthread_join(core->workers[i]->thread, NULL);
        worker_destroy(core->workers[i]);
    }
    pthread_cond_destroy(&core->done);
    pthread_mutex_destroy(&core->lock);
    free(core);
}

// In a forked child only the forking thread lives: handles stay valid and run inline.
static void forget_team(struct core *core)
{
    pthread_mutex_init(&core->lock, NULL);
    pthread_cond_init(&core->done, NULL);
    atomic_store(&core->worker_count, 0);
    atomic_store(&core->held, 0);
    atomic_store(&core->job, (uint64_t)job_epoch(atomic_load(&core->job)) << 32);
    atomic_flag_clear(&core->busy);
}

static void forget_workers(void)
{
    pthread_mutex_init(&shared.lock, NULL);
    for (int i = 0; i < MGX_POOL_TEAMS; i++)
        if (shared.teams[i].core)
            forget_team(shared.teams[i].core);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_workers);
}

static enum mgx_status pool_attach(struct mgx_pool *pool, struct mgx_diag *diag)
{
    pthread_once(&shared.once, watch_forks);
    struct team *team = &shared.teams[pool->team];
    pthread_mutex_lock(&shared.lock);
    if (!team->core)
        team->core = core_create();
    pool->core = team->core;
    if (pool->core) {
        team->users++;
        core_grow(pool->core, pool->threads);
    }
    pthread_mutex_unlock(&shared.lock);
    return pool->core ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status mgx_pool_acquire_team(int team, int threads, struct mgx_pool **out,
                                      struct mgx_diag *diag)
{
    *out = NULL;
    assert(team >= 0);
    if (threads < 0 || threads > MGX_POOL_MAX_THREADS)
        return mgx_fail(diag, MGX_INVALID, "%d threads asked for, at most %d are possible", threads,
                        MGX_POOL_MAX_THREADS);
    if (!threads)
        threads = mgx_cpus_usable();
    struct mgx_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return mgx_fail_memory(diag);
    pool->threads = threads < MGX_POOL_MAX_THREADS ? threads : MGX_POOL_MAX_THREADS;
    pool->team = team % MGX_POOL_TEAMS;
    if (pool->threads > 1) {
        const enum mgx_status status = pool_attach(pool, diag);
        if (status != MGX_OK) {
            free(pool);
            return status;
        }
    }
    *out = pool;
    return MGX_OK;
}

enum mgx_status mgx_pool_acquire(int threads, struct mgx_pool **out, struct mgx_diag *diag)
{
    return mgx_pool_acquire_team(0, threads, out, diag);
}

void mgx_pool_release(struct mgx_pool *pool)
{
    if (!pool)
        return;
    if (pool->core) {
        struct team *team = &shared.teams[pool->team];
        pthread_mutex_lock(&shared.lock);
        if (--team->users == 0) {
            core_destroy(team->core);
            team->core = NULL;
        }
        pthread_mutex_unlock(&shared.lock);
    }
    free(pool);
}

int mgx_pool_threads(const struct mgx_pool *pool)
{
    return pool ? pool->threads : 1;
}

// --- a run ---

static void fork_run(struct core *core, int tasks, int threads)
{
    for (int i = 0; i < threads; i++)
        lane_fill(&core->lanes[i], (uint32_t)mgx_pool_first(tasks, threads, i),
                  (uint32_t)mgx_pool_first(tasks, threads, i + 1));
    const uint64_t job = atomic_load_explicit(&core->job, memory_order_relaxed);
    assert(!(job & (OPEN | ACTIVE_MASK)));
    atomic_store(&core->job, job_word(job_epoch(job) + 1, threads));
    for (int i = 1; i < threads; i++)
        wake(core->workers[i]);
}

static void join_run(struct core *core)
{
    uint64_t job = atomic_fetch_and(&core->job, ~(uint64_t)OPEN);
    for (int i = atomic_load(&core->spins); i > 0 && job & ACTIVE_MASK; i--) {
        relax();
        job = atomic_load(&core->job);
    }
    if (!(job & ACTIVE_MASK))
        return;
    pthread_mutex_lock(&core->lock);
    atomic_store(&core->caller_waiting, true);
    while (atomic_load(&core->job) & ACTIVE_MASK)
        pthread_cond_wait(&core->done, &core->lock);
    atomic_store(&core->caller_waiting, false);
    pthread_mutex_unlock(&core->lock);
}

static bool run_shared(const struct mgx_pool *pool, int tasks, mgx_pool_fn fn, void *user)
{
    struct core *core = pool ? pool->core : NULL;
    if (!core || tasks < 2)
        return false;
    const int available = atomic_load_explicit(&core->worker_count, memory_order_acquire) + 1;
    int threads = pool->threads < available ? pool->threads : available;
    threads = threads < tasks ? threads : tasks;
    if (threads < 2 || atomic_flag_test_and_set_explicit(&core->busy, memory_order_acquire))
        return false;
    core->fn = fn;
    core->user = user;
    core->mode = float_mode_get();
    core->cancel = mgx_cancel_at_work();
    core->watch = mgx_watch_attached();
    atomic_store_explicit(&core->caller_cpu, sched_getcpu(), memory_order_relaxed);
    fork_run(core, tasks, threads);
    work(core, 0, threads);
    join_run(core);
    atomic_flag_clear_explicit(&core->busy, memory_order_release);
    return true;
}

void mgx_pool_begin(struct mgx_pool *pool)
{
    if (pool && pool->core)
        atomic_fetch_add(&pool->core->held, 1);
}

void mgx_pool_end(struct mgx_pool *pool)
{
    if (pool && pool->core)
        atomic_fetch_sub(&pool->core->held, 1);
}

void mgx_pool_run(struct mgx_pool *pool, int tasks, mgx_pool_fn fn, void *user)
{
    assert(tasks >= 0 && fn);
    if (!run_shared(pool, tasks, fn, user))
        for (int task = 0; task < tasks && !mgx_cancelled(); task++)
            fn(user, task, 0);
}
