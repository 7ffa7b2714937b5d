// SPDX-License-Identifier: MIT
// The table of verbs, in the order of the help.
#include "verbs.h"

const struct verb *const driver_verbs[] = {&verb_read, &verb_compile, &verb_run,   &verb_time,
                                           &verb_perf, &verb_verify,  &verb_plan,  &verb_quantize,
                                           &verb_diff, &verb_params,  &verb_roctx, &verb_op,
                                           &verb_onnx, &verb_tf,      NULL};

const struct verb *find_verb(const char *name)
{
    for (const struct verb *const *v = driver_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}
