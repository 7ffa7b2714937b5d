// SPDX-License-Identifier: MIT
// Computes equal things once.
//
//     y = op[a](x...), z = op[a](x...)   =>   y, with z's readers reading y
//
// In order, so that what becomes equal by a merge is merged in the same sweep. Inputs of
// commutative operators are compared in either order; literals by their bytes. Never merged: what
// is impure, has effects or bodies that differ, and parameters. Expected O(instructions + bytes of
// literals).
#include <assert.h>
#include <string.h>

#include "pass/engine/match.h"
#include "pass/engine/walk.h"

struct entry {
    uint64_t hash;
    struct mgx_ins *ins; // NULL: free
};

struct table {
    struct entry *entries; // open addressing, at most half full
    size_t mask;
};

// --- equality ---

enum { SAMPLE = 256 }; // bytes of a literal that are hashed; equality looks at all

static uint64_t mix(uint64_t seed, uint64_t value)
{
    return mgx_hash_bytes(&value, sizeof value, seed);
}

static bool is_mergeable(const struct mgx_ins *ins)
{
    if (ins->literal)
        return ins->literal->storage && mgx_type_is_number(ins->shape.type);
    return !(ins->op->flags & (MGX_OP_BUILTIN | MGX_OP_IMPURE | MGX_OP_EFFECT)) &&
           strcmp(ins->op->name, "allocate") != 0; // equal buffers are still two buffers
}

static uint64_t hash_literal(const struct mgx_tensor *t)
{
    assert(t && mgx_shape_is_static(&t->shape));
    const size_t bytes = mgx_shape_bytes(&t->shape);
    uint64_t h = mix((uint64_t)t->shape.type, bytes);
    for (int i = 0; i < t->shape.rank; i++)
        h = mix(h, (uint64_t)t->shape.lens[i]);
    return mgx_hash_bytes(t->data, bytes < SAMPLE ? bytes : SAMPLE, h);
}

static uint64_t hash_of(const struct mgx_ins *ins)
{
    if (ins->literal)
        return hash_literal(ins->literal);
    uint64_t h = mix((uint64_t)(uintptr_t)ins->op, (uint64_t)ins->in_count);
    h = mgx_attr_hash(ins->op, ins->attr, h);
    uint64_t unordered = 0;
    for (int i = 0; i < ins->in_count; i++) {
        const uint64_t id = (uint64_t)(uintptr_t)ins->in[i];
        if (ins->op->flags & MGX_OP_COMMUTATIVE)
            unordered += mix(7, id);
        else
            h = mix(h, id);
    }
    for (int i = 0; i < ins->mod_count; i++)
        h = mix(h, (uint64_t)(uintptr_t)ins->mod[i]);
    return mix(h, unordered);
}

static bool equal_literals(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    assert(a && b);
    if (!mgx_shape_equal(&a->shape, &b->shape))
        return false;
    return a->data == b->data || memcmp(a->data, b->data, mgx_shape_bytes(&a->shape)) == 0;
}

static bool equal_inputs(const struct mgx_ins *a, const struct mgx_ins *b)
{
    assert(a->in_count >= 0 && b->in_count >= 0);
    bool same = true, crossed = a->in_count == 2 && (a->op->flags & MGX_OP_COMMUTATIVE);
    for (int i = 0; i < a->in_count; i++) {
        same &= a->in[i] == b->in[i];
        crossed = crossed && a->in[i] == b->in[1 - i];
    }
    return same || crossed;
}

static bool equal(const struct mgx_ins *a, const struct mgx_ins *b)
{
    if (a->op != b->op || a->in_count != b->in_count || a->mod_count != b->mod_count)
        return false;
    if (a->literal)
        return equal_literals(a->literal, b->literal);
    for (int i = 0; i < a->mod_count; i++)
        if (a->mod[i] != b->mod[i])
            return false;
    return equal_inputs(a, b) && mgx_attr_equal(a->op, a->attr, b->attr);
}

// --- the sweep ---

// The earlier equal instruction, or NULL after entering this one.
static struct mgx_ins *find_or_enter(struct table *t, struct mgx_ins *ins)
{
    const uint64_t hash = hash_of(ins);
    size_t at = hash & t->mask;
    for (; t->entries[at].ins; at = (at + 1) & t->mask)
        if (t->entries[at].hash == hash && equal(t->entries[at].ins, ins))
            return t->entries[at].ins;
    t->entries[at] = (struct entry){hash, ins};
    return NULL;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    size_t size = 16;
    while (size < (size_t)m->count * 2)
        size *= 2;
    struct table t = {MGX_NEW_ARRAY(c->scratch, struct entry, size), size - 1};
    if (!t.entries)
        return mgx_fail_memory(c->diag);
    MGX_EACH (ins, m) {
        struct mgx_ins *same = is_mergeable(ins) ? find_or_enter(&t, ins) : NULL;
        if (!same)
            continue;
        // Dead code elimination takes `ins`: its inputs may be the table's keys.
        if (ins == m->last)
            mgx_add_return(m, &same, 1);
        mgx_replace_uses(ins, same);
        c->changed = true;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_eliminate_common_subexpression = {
    .name = "eliminate_common_subexpression",
    .meaning = "merges equal instructions",
    .module = run,
};
