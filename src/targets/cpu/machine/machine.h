// SPDX-License-Identifier: MIT
// The machine that the CPU target plans for: instruction set, threads, and the thread that makes
// huge pages of small ones while a program runs.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "plan/machine.h"
#include "targets/cpu/machine/cpuid.h"
#include "targets/cpu/machine/pool.h"

// The thread that makes huge pages of small ones; see grow.c.
struct cpu_growth {
    _Atomic int64_t runs; // before it begins
    // Under the plan's lock for late kernels:
    pid_t process; // that the thread belongs to; 0: there is none
    pthread_t thread;
    bool scratch_done;
    // As they were when the thread began: chunks of constants, the last one's end, a context's
    // scratch (NULL: none is to grow).
    struct mgx_storage *const *packed;
    int64_t chunks;
    unsigned char *end;
    void *scratch;
    size_t scratch_bytes;
    // The thread's own: how far the chunks are done.
    int64_t chunk;
    size_t done;
    _Atomic bool stop, ended;
};

struct cpu_machine {
    struct mgx_plan_machine base;
    mgx_isa isa;
    bool fast_math; // sums may be taken in other ways than the operators say
    struct mgx_pool *pool;
    struct cpu_growth growth;
};

static inline const struct cpu_machine *cpu_machine(const struct mgx_plan_machine *machine)
{
    return (const struct cpu_machine *)machine;
}

// --- grow.c ---
// After every run: where pages were left small, lets them grow from the third one on, and what is
// packed later from then on.
void cpu_grow(struct mgx_plan *plan, struct mgx_context *x);
// Before anything of the plan goes.
void cpu_grow_end(struct mgx_plan_machine *machine);
