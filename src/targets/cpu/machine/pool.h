// SPDX-License-Identifier: MIT
// The thread pool: one team of workers for the whole process, shared through counted handles. What
// serves a card beside others has a team of its own: it copies while the card computes, and would
// have to do so alone whenever another card's copies have the workers.
//
//     mgx_pool_acquire(0, &pool, diag);
//     mgx_pool_run(pool, tiles, multiply_tile, &job);      fork, work along, join
//     mgx_pool_release(pool);
//
// A run deals its tasks out in equal consecutive ranges, one per thread; a thread that is done
// takes single tasks from the far end of others' ranges, so a descheduled worker costs one task,
// not its share. What a task computes must not depend on who runs it; then results do not depend on
// the number of threads. The caller's thread always takes part. A run from inside a task, and a run
// while another thread uses the workers, happen inline on the calling thread; no caller ever waits
// for another one.
//
// Cost: under 1 us for a fork and join while workers spin; they do so for some tens of microseconds
// and then sleep, after which a wake-up costs a system call per worker. With one thread a run is a
// plain loop and the handle owns no thread at all. Rounding and denormal modes of the caller hold
// in the workers too, and so does what cancels its call
// (base/cancel.h): tasks that have not begun by then are left out. Who watches the call sees when
// each worker was at it (base/watch.h). A worker stays off the CPU that
// the caller was on when they last met there. After fork() the child has no workers and runs
// everything inline.
#pragma once

#include <stdint.h>

#include "base/status.h"

enum { MGX_POOL_MAX_THREADS = 256 };

struct mgx_pool;

// `thread` is below mgx_pool_threads(pool) and not in use by another task of the same run: an index
// into per-thread scratch memory. Inline runs use 0.
typedef void (*mgx_pool_fn)(void *user, int task, int thread);

// A handle for at most `threads` threads, the caller's included; 0: as many as the process may use
// (see cpus.h). Workers are started when missing; when the system refuses, the pool has fewer.
enum mgx_status mgx_pool_acquire(int threads, struct mgx_pool **out,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// The same of another team than 0; numbers beyond the last team's begin at 0 again.
enum { MGX_POOL_TEAMS = 8 };
enum mgx_status mgx_pool_acquire_team(int team, int threads, struct mgx_pool **out,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// The last release ends the workers. NULL is allowed. Not from inside a task.
void mgx_pool_release(struct mgx_pool *pool);

// Of a NULL pool: 1.
int mgx_pool_threads(const struct mgx_pool *pool);

// Between begin and end runs follow each other closely: workers spin on through the pauses, up to
// some milliseconds each, since waking one may take longer than what it is woken for. Calls pair.
void mgx_pool_begin(struct mgx_pool *pool);
void mgx_pool_end(struct mgx_pool *pool);

// The tasks of thread `thread`, unless others take them, are those from this one to that of
// thread + 1. With more threads than tasks the last ones have none.
static inline int mgx_pool_first(int tasks, int threads, int thread)
{
    const int used = threads < 1 ? 1 : threads > tasks ? tasks : threads;
    return thread < used ? (int)((int64_t)tasks * thread / used) : tasks;
}

// Calls fn(user, task, thread) once for every task in [0, tasks) and returns when all are done. A
// NULL pool runs inline.
void mgx_pool_run(struct mgx_pool *pool, int tasks, mgx_pool_fn fn, void *user);
