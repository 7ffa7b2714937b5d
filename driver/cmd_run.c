// SPDX-License-Identifier: MIT
// run: compile, one evaluation, print the compiled program.
#include "verbs.h"

static bool run_once(const struct options *o, migraphx_program_t program)
{
    migraphx_program_parameters_t params = NULL;
    migraphx_arguments_t results = NULL;
    const bool good =
        make_inputs(o, program, &params) && OK(migraphx_program_run(&results, program, params));
    migraphx_arguments_destroy(results);
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
                      compile_model(o, program, target_name(o), false) && run_once(o, program) &&
                      print_program(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, compile_flags, json_flags, common_flags,
                                           NULL};
const struct verb verb_run = {
    "run", "Compiles a model, runs it once and prints the program.", "[flags] <file>", flags, run,
    true};
