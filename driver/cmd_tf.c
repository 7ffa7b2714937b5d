// SPDX-License-Identifier: MIT
// tf: names of the supported TensorFlow operators. There are none as long as the engine reads no
// TensorFlow graphs: the list is empty, and the log says why.
#include "verbs.h"

static int run(struct options *o)
{
    if (o->file) {
        log_error("TensorFlow operator '%s' is not supported: no TensorFlow graph is", o->file);
        return EXIT_FAILURE;
    }
    log_warn("this build reads no TensorFlow graphs, so the list is empty");
    return EXIT_SUCCESS;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "tf", 0, NULL},
    {FLAG_SET, "--list", "-l", OFFSET(list), NULL, "all of them (the default)", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {own, common_flags, NULL};
const struct verb verb_tf = {
    "tf", "Prints the supported TensorFlow operators: none yet.", "[-l] [<name>]", flags, run,
    false};
