// SPDX-License-Identifier: MIT
// Constants of an import, and its budget of bytes and seconds.
//
// A rule that needs a value (axes, sizes, a scalar bound) asks for it (mgx_node_constant).
// Instructions whose inputs are all literals are evaluated by the reference, each at most once;
// "not a constant" is remembered as well, so all questions of an import together cost
// O(instructions).
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "ir/module.h"

struct mgx_fold_strings;

struct mgx_fold {
    struct mgx_arena arena;           // of the values' heads
    struct mgx_map values;            // instruction -> struct mgx_tensor *, NULL: not a constant
    struct mgx_fold_strings *strings; // bytes of folded strings; NULL until there are any
    size_t bytes, limit;
    double start, seconds; // by the clock; how long the import may take
};

// limit_bytes 0 and limit_seconds 0 mean 256 MiB and 60 s.
void mgx_fold_init(struct mgx_fold *fold, size_t limit_bytes, double limit_seconds);
// Drops the values; strings that a literal may show go to the program (NULL: there is none).
void mgx_fold_fini(struct mgx_fold *fold, struct mgx_program *program);
// Takes bytes from the budget.
enum mgx_status mgx_fold_spend(struct mgx_fold *fold, size_t bytes, const char *what,
                               struct mgx_diag *diag) MGX_NODISCARD;
// MGX_LIMIT when the import has taken too long; MGX_CANCELLED when its caller gave up.
enum mgx_status mgx_fold_check_time(const struct mgx_fold *fold,
                                    struct mgx_diag *diag) MGX_NODISCARD;
