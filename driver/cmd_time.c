// SPDX-License-Identifier: MIT
// time: one warm-up, n runs in a row, the mean.
#include "verbs.h"

static bool run_many(migraphx_program_t program, migraphx_program_parameters_t params, int count)
{
    for (int i = 0; i < count; i++) {
        migraphx_arguments_t results = NULL;
        const bool good = OK(migraphx_program_run(&results, program, params));
        migraphx_arguments_destroy(results);
        if (!good)
            return false;
    }
    return true;
}

static bool measure(const struct options *o, migraphx_program_t program)
{
    migraphx_program_parameters_t params = NULL;
    const int count = o->iterations;
    bool good = make_inputs(o, program, &params) && run_many(program, params, 1);
    const double start = now_ms();
    good = good && run_many(program, params, count);
    if (good)
        printf(o->format ? "{\"total_ms\": %g}\n" : "Total time: %gms\n",
               (now_ms() - start) / count);
    migraphx_program_parameters_destroy(params);
    return good;
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
