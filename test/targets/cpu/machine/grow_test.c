// SPDX-License-Identifier: MIT
// Pages of weights and scratch that become huge ones beside runs: every run gives the same, also
// beside others.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "plan/shared.h"
#include "targets/cpu/program.h"

enum { ROWS = 700, DEPTH = 1024, COLS = 2560, RUNS = 12, THREADS = 2 }; // 10 MiB of weights, 7 of x

static struct mgx_program *build(void)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    const struct mgx_shape in = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){ROWS, DEPTH}),
                           by = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){DEPTH, COLS});
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in), *b = program_literal(m, &by, 1);
    x = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(mgx_emit(m, &mgx_op_tanh, NULL, MGX_IN(x)), b));
    const int64_t axis = 1;
    x = mgx_emit(m, &mgx_op_reduce_max, MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(x));
    mgx_add_return(m, &x, 1);
    return p;
}

static struct mgx_program *build_ready(void)
{
    struct mgx_program *p = build();
    return p ? program_ready(p) : NULL;
}

struct job {
    const struct mgx_program *p;
    const struct mgx_tensor *first;
    bool same;
};

static void *run_often(void *user)
{
    struct job *job = user;
    job->same = true;
    for (int i = 0; i < check_rounds(RUNS); i++) {
        struct mgx_tensor again = {.data = NULL};
        job->same = program_run(job->p, &again) &&
                    program_distance(&again, job->first).largest == 0 && job->same;
        mgx_tensor_release(&again);
    }
    return NULL;
}

CASE(runs_give_the_same_while_pages_grow)
{
    mgx_memory_grows_from_now();
    struct mgx_program *p = build_ready();
    struct mgx_tensor first = {.data = NULL};
    CHECK(p && program_run(p, &first));
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){p, &first, false};
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(jobs[i].same);
    mgx_tensor_release(&first);
    mgx_program_destroy(p);
}

CASE(a_program_may_go_while_its_pages_grow)
{
    mgx_memory_grows_from_now();
    struct mgx_program *p = build_ready();
    struct mgx_tensor last = {.data = NULL};
    for (int i = 0; i < 4; i++) {
        CHECK(p && program_run(p, &last));
        mgx_tensor_release(&last);
    }
    mgx_program_destroy(p);
}

// MiB of this process's memory that lie on huge pages.
static long huge(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "AnonHugePages: %ld kB", &kib) != 1)
        continue;
    if (file)
        fclose(file);
    return kib >> 10;
}

// Until they are `most` or ten seconds are over.
static bool become_huge(const struct mgx_program *p, long most)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    for (int i = 0; i < 500 && huge() < most; i++) {
        struct mgx_tensor result = {.data = NULL};
        const bool good = program_run(p, &result);
        mgx_tensor_release(&result);
        if (!good)
            return false;
        nanosleep(&moment, NULL);
    }
    return huge() >= most;
}

// As the plan of one size has them whose program takes any: nobody runs the other one.
CASE(weights_that_plans_share_grow_whichever_runs)
{
    mgx_memory_grows_from_now();
    if (!mgx_memory_grows())
        return;
    const long before = huge();
    struct mgx_diag diag = {0};
    struct mgx_plan_shared *shared = mgx_plan_shared_create(); // compiling takes it
    const struct mgx_compile_options options = {.threads = 1, .shared = shared};
    struct mgx_program *p = build();
    CHECK(shared && p);
    CHECK_INT(mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag), MGX_OK);
    CHECK(become_huge(p, before + 8)); // of ten
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(runs_give_the_same_while_pages_grow) ROW(a_program_may_go_while_its_pages_grow)
              ROW(weights_that_plans_share_grow_whichever_runs))
