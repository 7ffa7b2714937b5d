// SPDX-License-Identifier: MIT
// params: the inputs of a model, one "name: shape" a line.
#include "verbs.h"

static bool print_one(const struct options *o, migraphx_program_parameter_shapes_t shapes,
                      const char *name, bool first)
{
    const_migraphx_shape_t shape;
    char *text = NULL;
    const bool good = OK(migraphx_program_parameter_shapes_get(&shape, shapes, name)) &&
                      OK(migraphx_shape_to_string(&text, shape));
    if (good && o->format) {
        printf("%s", first ? "" : ", ");
        put_json_text(stdout, name);
        printf(": ");
        put_json_text(stdout, text);
    } else if (good)
        printf("%s: %s\n", name, text);
    migraphx_string_destroy(text);
    return good;
}

static bool print_all(const struct options *o, migraphx_program_t program)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    const char **names = calloc(count + 1, sizeof *names);
    good = good && names && OK(migraphx_program_parameter_shapes_names(names, shapes));
    printf("%s", o->format ? "{" : "");
    for (size_t i = 0; good && i < count; i++)
        good = print_one(o, shapes, names[i], i == 0);
    printf("%s", o->format ? "}\n" : "");
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = print_all(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, json_flags, common_flags, NULL};
const struct verb verb_params = {
    "params", "Prints the inputs of a model.", "[flags] <file>", flags, run, true};
