// SPDX-License-Identifier: MIT
// onnx: names of the supported ONNX operators.
#include "verbs.h"

static int run(struct options *o)
{
    size_t count = 0;
    int found = 0;
    if (!OK(migraphx_get_onnx_operators_size(&count)))
        return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) {
        char *name;
        if (!OK(migraphx_get_onnx_operator_name_at_index(&name, i)))
            return EXIT_FAILURE;
        if (!o->file || (o->list ? strstr(name, o->file) != NULL : strcmp(o->file, name) == 0))
            put_name(o, name, found++);
    }
    put_names_end(o, found);
    if (!o->file || found)
        return EXIT_SUCCESS;
    log_error("ONNX operator '%s' is not supported", o->file);
    return EXIT_FAILURE;
}

static const struct flag own[] = {{FLAG_HEADING, NULL, NULL, 0, NULL, "onnx", 0, NULL},
                                  {FLAG_SET, "--list", "-l", OFFSET(list), NULL,
                                   "all of them (the default), or those with <name> in theirs", 0,
                                   NULL},
                                  {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {own, json_flags, common_flags, NULL};
const struct verb verb_onnx = {
    "onnx", "Prints the supported ONNX operators, or whether one is.", "[-l] [<name>]", flags, run,
    false};
