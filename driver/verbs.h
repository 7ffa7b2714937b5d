// SPDX-License-Identifier: MIT
// The verbs, each defined in cmd_<name>.c and listed in verbs.c.
#pragma once

#include "driver.h"

extern const struct verb verb_read, verb_compile, verb_run, verb_time, verb_perf, verb_verify,
    verb_plan, verb_quantize, verb_diff, verb_params, verb_roctx, verb_op, verb_onnx, verb_tf;
extern const struct verb *const driver_verbs[]; // up to NULL
const struct verb *find_verb(const char *name); // or NULL

// An environment variable that the engine reads, and what it sets.
struct variable {
    const char *name, *help;
};
extern const struct variable driver_variables[]; // up to one without a name
void log_environment(void);                      // those that are set

// What the driver says of itself, from the tables above: its man page in roff, and completions for
// "bash", "zsh" or "fish"; false where the shell is another.
void print_manual(const char *version);
bool print_completion(const char *shell);
