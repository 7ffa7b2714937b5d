// SPDX-License-Identifier: MIT
// Rules "pattern => replacement", applied until none matches.
//
// A table row is an equation in the notation of match.h. Behind "=>" stands what is emitted, where
// operators without attributes say it all. Behind "~>" stands what `rewrite` makes, told to the
// reader and read by nobody else. `guard` and `when` say when the equation holds.
//
// Holds: a rewrite has the type and the lengths (not always the strides) of what it replaces, and
// makes new instructions with mgx_emit_before(ins, ...) only, so that data still flows forward.
// Cost: every instruction is looked at once, and again only when something next to it changed.
#pragma once

#include "pass/engine/constant.h"
#include "pass/engine/match.h"

struct mgx_rewriter;

enum mgx_when {
    MGX_ALWAYS = 0,
    MGX_IF_FLOAT = 1 << 0,    // the result is of a floating type
    MGX_IF_INTEGRAL = 1 << 1, // ... of an integral type
    MGX_IF_FAST = 1 << 2,     // fast_math: special values and the last bits may change
    MGX_IF_STATIC = 1 << 3,   // the result's shape is static
    MGX_IF_NUMBER = 1 << 4,   // the result is no bool, whose sums saturate
};

struct mgx_rule {
    const char *equation;
    unsigned when;
    bool (*guard)(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m);
    // The replacement; NULL when the equation does not apply after all (nothing emitted then).
    struct mgx_ins *(*rewrite)(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m);
};

struct mgx_compiled_table;

// Tables that were read already, by address: an equation is read once for a pipeline, not for every
// module and round.
struct mgx_rule_cache {
    struct mgx_arena arena;
    struct mgx_map tables; // the first rule -> struct mgx_compiled_table
};
void mgx_rule_cache_init(struct mgx_rule_cache *cache);
void mgx_rule_cache_fini(struct mgx_rule_cache *cache);

struct mgx_rewriter {
    struct mgx_pass_call *call;
    struct mgx_module *module;
    struct mgx_compiled_table **tables;
    int table_count;
    struct mgx_ins **queue; // ring of instructions to look at; queued ones have index 1
    size_t head, queued, capacity;
};

enum mgx_status mgx_apply_rules(struct mgx_pass_call *c, struct mgx_module *m,
                                const struct mgx_rule *rules, int count) MGX_NODISCARD;
// Several tables at once; of two rules that match the earlier one is applied.
enum mgx_status mgx_apply_tables(struct mgx_pass_call *c, struct mgx_module *m,
                                 const struct mgx_rules *const *tables, int count) MGX_NODISCARD;
