// SPDX-License-Identifier: MIT
// Many calls of a program of one instruction: they leave nothing behind, and threads that share the
// program get the results that belong to them. What a call costs is printed (CPU time, the best of
// many rounds): on an idle machine of 3 GHz some 0.7 us, kernel included.
#include "test_malloc.h"

#include <pthread.h>
#include <time.h>

#include "support.h"

enum { COUNT = 64, THREADS = 8, ROUND = 1000 };

static migraphx_program_t make(void)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> float_type, {8, 8}, {8, 1}\n"
                               "@1 = relu(x)\n"
                               "@2 = @return(@1)\n";
    migraphx_program_t p;
    must(migraphx_program_parse(&p, text, sizeof text - 1));
    compile_for(p, "cpu");
    return p;
}

static double cpu_microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// The result's first value; NAN when the call fails.
static float call(migraphx_program_t p, migraphx_program_parameters_t params)
{
    migraphx_arguments_t results;
    const_migraphx_argument_t value;
    char *data;
    if (migraphx_program_run(&results, p, params) != migraphx_status_success)
        return NAN;
    migraphx_arguments_get(&value, results, 0);
    migraphx_argument_buffer(&data, value);
    const float first = *(const float *)(void *)data;
    migraphx_arguments_destroy(results);
    return first;
}

struct caller {
    migraphx_program_t p;
    pthread_t thread;
    int rounds, wrong;
    double best; // microseconds a call
};

// Every call gives another number.
static void *call_often(void *user)
{
    struct caller *c = user;
    float x[COUNT] = {0};
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(8, 8), x);
    c->best = INFINITY;
    for (int round = 0; round < c->rounds; round++) {
        const double begin = cpu_microseconds();
        for (int i = 0; i < ROUND; i++) {
            x[0] = (float)(round * ROUND + i + 1);
            c->wrong += call(c->p, params) != x[0];
        }
        c->best = fmin(c->best, (cpu_microseconds() - begin) / ROUND);
    }
    migraphx_program_parameters_destroy(params);
    return NULL;
}

CASE(a_hundred_thousand_calls_leave_nothing)
{
    struct caller c = {.p = make(), .rounds = 1};
    call_often(&c); // what the first run makes stays
    const long before = test_malloc_live();
    c.rounds = 100;
    call_often(&c);
    CHECK_INT(c.wrong, 0);
    CHECK(test_malloc_live() <= before); // another thread may have let go of something
    printf("%.2f us a call\n", c.best);
    migraphx_program_destroy(c.p);
}

CASE(eight_threads_share_a_program)
{
    struct caller c[THREADS];
    migraphx_program_t p = make();
    double best = INFINITY;
    for (int i = 0; i < THREADS; i++) {
        c[i] = (struct caller){.p = p, .rounds = 10};
        CHECK_INT(pthread_create(&c[i].thread, NULL, call_often, &c[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(c[i].thread, NULL);
        CHECK_INT(c[i].wrong, 0);
        best = fmin(best, c[i].best);
    }
    printf("%.2f us a call, of eight threads at once\n", best);
    migraphx_program_destroy(p);
}

TEST_MAIN(ROW(a_hundred_thousand_calls_leave_nothing) ROW(eight_threads_share_a_program))
