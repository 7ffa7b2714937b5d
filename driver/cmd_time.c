// SPDX-License-Identifier: MIT
// time: one warm-up, n runs in a row, the mean. Of runs that Ctrl-C ends, that of those before.
#include "verbs.h"

// How many were done: fewer than asked for if one failed (then *good is false) or Ctrl-C came.
static int run_many(migraphx_program_t program, migraphx_program_parameters_t params, int count,
                    bool *good)
{
    int done = 0;
    while (*good && done < count && work_step(done)) {
        migraphx_arguments_t results = NULL;
        const migraphx_status status = migraphx_program_run(&results, program, params);
        migraphx_arguments_destroy(results);
        if (status == migraphx_status_cancelled && work_stopped())
            break;
        *good = OK(status);
        done += *good;
    }
    return done;
}

static bool measure(const struct options *o, migraphx_program_t program)
{
    migraphx_program_parameters_t params = NULL;
    bool good = make_inputs(o, program, &params);
    work_begin("timing", o->iterations);
    run_many(program, params, 1, &good);
    const double start = now_ms();
    const int done = run_many(program, params, o->iterations, &good);
    const double passed = now_ms() - start;
    work_end();
    if (good && !done)
        log_error("Interrupted before the first run had ended");
    else if (good && done < o->iterations)
        log_warn("Interrupted: %d of %d runs", done, o->iterations);
    if (good && done)
        printf(o->format ? "{\"total_ms\": %g}\n" : "Total time: %gms\n", passed / done);
    migraphx_program_parameters_destroy(params);
    return good && done;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    o->on_card = true;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = quantize_model(o, program) &&
                      compile_model(o, program, target_name(o), false) && measure(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "time", 0, NULL},
    {FLAG_INT, "--iterations", "-n", OFFSET(iterations), "N", "number of runs [100]", 0, NULL, 1},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own,
                                           json_flags,   common_flags,  NULL};
const struct verb verb_time = {
    "time", "Prints the mean time of a run.", "[flags] <file>", flags, run, true};
