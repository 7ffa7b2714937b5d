// SPDX-License-Identifier: MIT
// The verbs: verb_<name> is defined in cmd_<name>.c.
#pragma once

#include "driver.h"

// In the order of the help.
// clang-format off
#define VERBS(X)                                                                                   \
    X(read) X(compile) X(run) X(time) X(perf) X(verify) X(plan) X(quantize) X(diff) X(params)      \
    X(generate) X(roctx) X(op) X(onnx) X(tf) X(passes)
// clang-format on

#define VERB(name) extern const struct verb verb_##name;
VERBS(VERB)
#undef VERB
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
