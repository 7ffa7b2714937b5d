// SPDX-License-Identifier: MIT
// Thread pool: every task exactly once from any mixture of callers, and what a fork-join costs
// (--bench).
#include "targets/cpu/machine/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "targets/cpu/kernel/bench.h"
#include "targets/cpu/machine/cpus.h"

enum { TASKS = 1000 };

struct count {
    struct mgx_pool *pool;
    _Atomic int done[TASKS];
    _Atomic int bad_thread;
    _Atomic int in_thread[MGX_POOL_MAX_THREADS];
};

static void mark(void *user, int task, int thread)
{
    struct count *c = user;
    if (thread < 0 || thread >= mgx_pool_threads(c->pool) ||
        atomic_fetch_add(&c->in_thread[thread], 1) != 0)
        atomic_store(&c->bad_thread, 1);
    atomic_fetch_add(&c->done[task], 1);
    atomic_fetch_sub(&c->in_thread[thread], 1);
}

static bool each_once(const struct count *c, int tasks, int times)
{
    for (int i = 0; i < TASKS; i++)
        if (c->done[i] != (i < tasks ? times : 0))
            return false;
    return !c->bad_thread;
}

CASE(runs_every_task_once)
{
    static const int threads[] = {0, 1, 2, 3, 7, MGX_POOL_MAX_THREADS}; // every lane there is
    static const int tasks[] = {0, 1, 2, 3, 5, 64, 999, TASKS};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        struct mgx_pool *pool = NULL;
        CHECK_INT(mgx_pool_acquire(threads[t], &pool, NULL), MGX_OK);
        CHECK(!threads[t] || mgx_pool_threads(pool) == threads[t]);
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
            for (int again = 0; again < (threads[t] > 7 ? 3 : 20); again++) {
                struct count c = {.pool = pool};
                mgx_pool_run(pool, tasks[i], mark, &c);
                CHECK(each_once(&c, tasks[i], 1));
            }
        mgx_pool_release(pool);
    }
    struct count c = {0};
    mgx_pool_run(NULL, 10, mark, &c);
    CHECK(each_once(&c, 10, 1));
}

CASE(refuses_absurd_sizes)
{
    struct mgx_pool *pool = NULL;
    CHECK_INT(mgx_pool_acquire(-1, &pool, NULL), MGX_INVALID);
    CHECK_INT(mgx_pool_acquire(MGX_POOL_MAX_THREADS + 1, &pool, NULL), MGX_INVALID);
    CHECK(!pool);
}

static void nest(void *user, int task, int thread)
{
    (void)task, (void)thread;
    struct count *c = user;
    struct count own = {.pool = c->pool};
    mgx_pool_run(c->pool, 50, mark, &own);
    if (!each_once(&own, 50, 1))
        atomic_store(&c->bad_thread, 1);
    atomic_fetch_add(&c->done[0], 1);
}

CASE(nested_runs_are_inline)
{
    struct mgx_pool *pool = NULL;
    CHECK_INT(mgx_pool_acquire(3, &pool, NULL), MGX_OK);
    struct count c = {.pool = pool};
    mgx_pool_run(pool, 40, nest, &c);
    CHECK(each_once(&c, 1, 40));
    mgx_pool_release(pool);
}

static void *many_runs(void *user)
{
    struct mgx_pool *pool = NULL;
    if (mgx_pool_acquire(3, &pool, NULL) != MGX_OK)
        return user;
    void *failed = NULL;
    for (int i = 0; i < 200; i++) {
        struct count c = {.pool = pool};
        mgx_pool_run(pool, i % 30, mark, &c);
        if (!each_once(&c, i % 30, 1))
            failed = user;
        if (i % 50 == 49) // the last handle of all may end and restart the workers
            mgx_pool_release(pool), pool = NULL;
        if (!pool && mgx_pool_acquire(2, &pool, NULL) != MGX_OK)
            return user;
    }
    mgx_pool_release(pool);
    return failed;
}

CASE(serves_several_threads_at_once)
{
    enum { CALLERS = 4 };
    pthread_t callers[CALLERS];
    static int marker;
    for (int i = 0; i < CALLERS; i++)
        CHECK_INT(pthread_create(&callers[i], NULL, many_runs, &marker), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *failed = NULL;
        pthread_join(callers[i], &failed);
        CHECK(!failed);
    }
}

static void slow(void *user, int task, int thread)
{
    (void)thread;
    if (task % 7 == 0)
        usleep(200);
    atomic_fetch_add((_Atomic int *)user, 1);
}

CASE(waits_for_sleepers_and_slow_tasks)
{
    struct mgx_pool *pool = NULL;
    CHECK_INT(mgx_pool_acquire(2, &pool, NULL), MGX_OK);
    _Atomic int done = 0;
    for (int i = 0; i < 20; i++) {
        usleep(i * 50); // workers are spinning, or asleep
        mgx_pool_run(pool, 8, slow, &done);
        CHECK_INT(done, 8 * (i + 1));
    }
    mgx_pool_release(pool);
}

#if !defined(__SANITIZE_THREAD__)
CASE(forked_child_runs_inline)
{
    struct mgx_pool *pool = NULL;
    CHECK_INT(mgx_pool_acquire(2, &pool, NULL), MGX_OK);
    struct count c = {.pool = pool};
    mgx_pool_run(pool, 10, mark, &c);
    const pid_t child = fork();
    if (child == 0) {
        mgx_pool_run(pool, 20, mark, &c);
        _exit(each_once(&c, 20, 1) || c.done[0] != 2 || c.done[19] != 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    mgx_pool_release(pool);
}
#else
CASE(forked_child_runs_inline)
{
}
#endif

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

CASE(reads_cgroup_quotas)
{
    char dir[] = "/tmp/mgx_cpus_XXXXXX", command[128], list[64];
    CHECK(mkdtemp(dir));
    snprintf(command, sizeof command, "mkdir -p %s/a/b %s/cpu/x", dir, dir);
    CHECK_INT(system(command), 0);
    snprintf(list, sizeof list, "%s/list", dir);
    write_file(dir, "list", "0::/a/b\n");
    CHECK_INT(mgx_cpus_quota(list, dir), 0);
    write_file(dir, "a/cpu.max", "350000 100000\n");
    write_file(dir, "a/b/cpu.max", "max 100000\n");
    CHECK_INT(mgx_cpus_quota(list, dir), 3);
    write_file(dir, "a/b/cpu.max", "50000 100000\n");
    CHECK_INT(mgx_cpus_quota(list, dir), 1);
    write_file(dir, "list", "3:cpuset:/q\n7:cpuacct,cpu:/x/absent\n0::/\n");
    write_file(dir, "cpu/x/cpu.cfs_quota_us", "800000\n");
    write_file(dir, "cpu/x/cpu.cfs_period_us", "100000\n");
    CHECK_INT(mgx_cpus_quota(list, dir), 8);
    write_file(dir, "cpu/cpu.cfs_quota_us", "-1\n");
    write_file(dir, "cpu/cpu.cfs_period_us", "100000\n");
    CHECK_INT(mgx_cpus_quota(list, dir), 8);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK_INT(system(command), 0);
    CHECK(mgx_cpus_usable() >= 1);
}

// Both tasks of a run wait for each other, so both threads must have come.
struct meeting {
    struct mgx_pool *pool;
    _Atomic int here;
};

static void meet(void *user, int task, int thread)
{
    (void)task, (void)thread;
    _Atomic int *here = user;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 2)
        ;
}

static void one_run(void *user)
{
    struct meeting *m = user;
    atomic_store(&m->here, 0);
    mgx_pool_run(m->pool, 2, meet, &m->here);
}

// What a worker finds, after it has gone to `there` with `mask` to choose from.
struct visit {
    _Atomic int here;
    bool go;
    cpu_set_t there, mask, found;
};

static void visit(void *user, int task, int thread)
{
    struct visit *v = user;
    meet(&v->here, task, thread);
    if (!thread)
        return;
    sched_getaffinity(0, sizeof v->found, &v->found);
    if (v->go && sched_setaffinity(0, sizeof v->there, &v->there) == 0)
        sched_setaffinity(0, sizeof v->mask, &v->mask);
}

// The mask of a worker that was put on the caller's CPU, after two more runs.
static cpu_set_t mask_of_visitor(struct mgx_pool *pool, struct visit *v)
{
    for (int i = 0; i < 3; i++) {
        v->here = 0;
        v->go = i == 0;
        mgx_pool_run(pool, 2, visit, v);
    }
    return v->found;
}

// Left alone the two take turns there, and a program may take twice the time of one thread.
CASE(workers_leave_the_callers_cpu)
{
    cpu_set_t all;
    struct mgx_pool *pool = NULL;
    if (mgx_cpus_usable() < 2 || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    CHECK_INT(mgx_pool_acquire(2, &pool, NULL), MGX_OK);
    struct visit v = {.mask = all};
    const size_t cpu = (size_t)sched_getcpu();
    CPU_ZERO(&v.there);
    CPU_SET(cpu, &v.there);
    CHECK_INT(sched_setaffinity(0, sizeof v.there, &v.there), 0);
    cpu_set_t found = mask_of_visitor(pool, &v);
    // The system may move it away by itself before it is found there.
    for (int i = 0; i < 100 && CPU_ISSET(cpu, &found); i++)
        found = mask_of_visitor(pool, &v);
    CHECK(!CPU_ISSET(cpu, &found) && CPU_COUNT(&found) == CPU_COUNT(&all) - 1);
    v.mask = v.there; // the host program's wish
    found = mask_of_visitor(pool, &v);
    CHECK(CPU_EQUAL(&found, &v.there));
    CHECK_INT(sched_setaffinity(0, sizeof all, &all), 0);
    mgx_pool_release(pool);
}

// Two tasks of one run that wait for each other for some seconds: two threads must be there.
struct both {
    struct mgx_pool *other;
    _Atomic int there;
    _Atomic bool met;
};

static void wait_for_both(void *user, int task, int thread)
{
    struct both *b = user;
    (void)task, (void)thread;
    if (atomic_fetch_add(&b->there, 1) == 1)
        atomic_store(&b->met, true);
    for (int i = 0; i < 20000 && !atomic_load(&b->met); i++)
        usleep(100);
    atomic_fetch_sub(&b->there, 1);
}

static void run_the_other(void *user, int task, int thread)
{
    struct both *b = user;
    (void)thread;
    if (task == 0)
        mgx_pool_run(b->other, 2, wait_for_both, b);
}

// What one team is at does not leave another's runs to one thread.
CASE(teams_work_beside_each_other)
{
    struct mgx_pool *pool = NULL;
    struct both b = {0};
    CHECK_INT(mgx_pool_acquire(2, &pool, NULL), MGX_OK);
    CHECK_INT(mgx_pool_acquire_team(MGX_POOL_TEAMS + 1, 2, &b.other, NULL), MGX_OK);
    mgx_pool_run(pool, 2, run_the_other, &b);
    CHECK(atomic_load(&b.met));
    mgx_pool_release(pool);
    mgx_pool_release(b.other);
}

static int bench(void)
{
    struct mgx_pool *pool = NULL;
    if (mgx_pool_acquire(2, &pool, NULL) != MGX_OK)
        return 1;
    struct meeting m = {.pool = pool};
    printf("fork, meet and join of 2 threads: %.0f ns\n", 1e9 * bench_time(one_run, &m, 50));
    mgx_pool_release(pool);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(runs_every_task_once) ROW(refuses_absurd_sizes) ROW(nested_runs_are_inline)
            ROW(serves_several_threads_at_once) ROW(waits_for_sleepers_and_slow_tasks)
                ROW(forked_child_runs_inline) ROW(reads_cgroup_quotas)
                    ROW(workers_leave_the_callers_cpu)
                        ROW(teams_work_beside_each_other){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : check_run(cases, argc, argv);
}
