// SPDX-License-Identifier: MIT
// read: load, rewrite as asked, print or save; never compiles.
#include "verbs.h"

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = write_program(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, output_flags, common_flags, NULL};
const struct verb verb_read = {"read",
                               "Loads a model and prints or saves it, without compiling.",
                               "[flags] <file>",
                               flags,
                               run,
                               true};
