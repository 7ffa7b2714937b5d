// SPDX-License-Identifier: MIT
// Runs in flight on one compiled program, from host memory to host memory, without Python between:
//
//     flight FILE.mxr THREADS SECONDS      prints runs a second, all threads together
//
// The file holds a program compiled with offload_copy. Each thread has inputs of its own, made once.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <migraphx/extensions.h>
#include <migraphx/migraphx.h>

static migraphx_program_t program;
static atomic_bool stop;
static atomic_long runs;

static void need(migraphx_status status, const char *what)
{
    if (status == migraphx_status_success)
        return;
    fprintf(stderr, "flight: %s failed\n", what);
    exit(1);
}

static migraphx_program_parameters_t make_inputs(void)
{
    migraphx_program_parameters_t params = NULL;
    migraphx_program_parameter_shapes_t shapes = NULL;
    const char *names[32];
    size_t count = 0;
    need(migraphx_program_parameters_create(&params), "making parameters");
    need(migraphx_program_get_parameter_shapes(&shapes, program), "reading shapes");
    need(migraphx_program_parameter_shapes_size(&count, shapes), "counting them");
    if (count > 32)
        need(migraphx_status_bad_param, "taking more than 32 parameters");
    need(migraphx_program_parameter_shapes_names(names, shapes), "naming them");
    for (size_t i = 0; i < count; i++) {
        const_migraphx_shape_t shape = NULL;
        migraphx_argument_t value = NULL;
        need(migraphx_program_parameter_shapes_get(&shape, shapes, names[i]), "a shape");
        need(migraphx_argument_generate(&value, (migraphx_shape_t)shape, i), "making an input");
        need(migraphx_program_parameters_add(params, names[i], value), "adding it");
    }
    return params;
}

static void *work(void *unused)
{
    migraphx_program_parameters_t params = make_inputs();
    (void)unused;
    while (!atomic_load(&stop)) {
        migraphx_arguments_t results = NULL;
        need(migraphx_program_run(&results, program, params), "a run");
        migraphx_arguments_destroy(results);
        atomic_fetch_add(&runs, 1);
    }
    return NULL;
}

static void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    const double seconds = argc > 3 ? atof(argv[3]) : 3;
    pthread_t ids[64];
    struct timespec from, to;
    if (argc < 2 || threads < 1 || threads > 64)
        return fprintf(stderr, "usage: flight FILE.mxr THREADS SECONDS\n"), 2;
    need(migraphx_load(&program, argv[1], NULL), "loading");
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, NULL))
            need(migraphx_status_unknown_error, "starting a thread");
    rest(1); // warm
    clock_gettime(CLOCK_MONOTONIC, &from);
    const long before = atomic_load(&runs);
    rest(seconds);
    const long after = atomic_load(&runs);
    clock_gettime(CLOCK_MONOTONIC, &to);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("%.1f\n", (double)(after - before) / ((double)(to.tv_sec - from.tv_sec) +
                                                 1e-9 * (double)(to.tv_nsec - from.tv_nsec)));
    return 0;
}
