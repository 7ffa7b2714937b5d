// SPDX-License-Identifier: MIT
// roctx: one warm-up, one run whose instructions are marked. MIGraphX hands the marks to AMD's
// profiler; here they are printed, each with the time of its range.
#include "verbs.h"

static bool print_mark(const struct options *o, migraphx_instructions_t list, size_t index,
                       double microseconds, int *marks)
{
    migraphx_instruction_t ins = NULL;
    const char *name = "";
    const bool good = OK(migraphx_instructions_get(&ins, list, index)) &&
                      OK(migraphx_instruction_name(&name, ins));
    if (good && name[0] != '@' && o->format)
        printf("%s\n  {\"index\": %zu, \"marker\": \"%s\", \"ms\": %g}", *marks ? "," : "", index,
               name, microseconds / 1000);
    else if (good && name[0] != '@')
        printf("Marker start: %s: %gms\n", name, microseconds / 1000);
    *marks += name[0] != '@';
    migraphx_instruction_destroy(ins);
    return good;
}

static bool marked_run(const struct options *o, migraphx_program_t program,
                       migraphx_program_parameters_t params, migraphx_instructions_t list,
                       size_t count)
{
    migraphx_arguments_t warm = NULL, results = NULL;
    double *microseconds = calloc(count + 1, sizeof *microseconds);
    bool good = microseconds && OK(migraphx_program_run(&warm, program, params)) &&
                OK(migraphx_program_run_profile(&results, program, params, microseconds, count));
    int marks = 0;
    printf("%s", o->format ? "[" : "");
    for (size_t i = 0; good && i < count; i++)
        good = print_mark(o, list, i, microseconds[i], &marks);
    printf("%s", o->format ? "]\n" : "");
    migraphx_arguments_destroy(results);
    migraphx_arguments_destroy(warm);
    free(microseconds);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    migraphx_program_parameters_t params = NULL;
    migraphx_module_t main_module;
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    o->on_card = true;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good =
        quantize_model(o, program) && compile_model(o, program, target_name(o), false) &&
        make_inputs(o, program, &params) &&
        OK(migraphx_program_get_main_module(&main_module, program)) &&
        OK(migraphx_module_instructions(&list, main_module)) &&
        OK(migraphx_instructions_size(&count, list)) && marked_run(o, program, params, list, count);
    migraphx_instructions_destroy(list);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, compile_flags, json_flags, common_flags,
                                           NULL};
const struct verb verb_roctx = {"roctx",
                                "Runs a model once and prints a marker for every instruction.",
                                "[flags] <file>",
                                flags,
                                run,
                                true};
