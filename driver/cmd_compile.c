// SPDX-License-Identifier: MIT
// compile: load, quantize, compile, print or save what came out.
#include "verbs.h"

static bool explain(migraphx_program_t program)
{
    char *text = NULL;
    const bool good = OK(migraphx_program_explain(&text, program));
    if (good)
        fputs(text, stdout);
    migraphx_string_destroy(text);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = quantize_model(o, program) &&
                      compile_model(o, program, target_name(o), false) &&
                      (o->explain ? explain(program) : write_program(o, program));
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {{FLAG_HEADING, NULL, NULL, 0, NULL, "compile", 0, NULL},
                                  {FLAG_SET, "--explain", NULL, OFFSET(explain), NULL,
                                   "print kernel, layout and threads of every instruction instead",
                                   0, NULL},
                                  {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, output_flags,
                                           own,          common_flags,  NULL};
const struct verb verb_compile = {
    "compile", "Compiles a model and prints or saves the result.", "[flags] <file>", flags, run,
    true};
