// SPDX-License-Identifier: MIT
// Reading and matching patterns; see match.h.
#include "pass/engine/match.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "pass/engine/constant.h"

// --- reading ---

static int read_node(struct mgx_pattern *p, const char **text);

static bool skip(const char **text, char c)
{
    while (**text == ' ')
        ++*text;
    if (**text != c)
        return false;
    ++*text;
    return true;
}

static size_t word_length(const char *text)
{
    size_t n = 0;
    while (mgx_is_word_byte(text[n]))
        n++;
    return n;
}

static bool read_class(struct mgx_pattern_node *n, const char **text)
{
    assert(n->kind != MGX_MATCH_OP);
    static const struct {
        const char *name;
        unsigned flags;
        int args;
    } classes[] = {{"pointwise", MGX_OP_POINTWISE, -1},
                   {"unary", MGX_OP_POINTWISE, 1},
                   {"reduce", MGX_OP_REDUCE, -1},
                   {"view", MGX_OP_VIEW, -1}};
    const size_t size = word_length(*text);
    for (int i = 0; i < MGX_COUNT(classes); i++)
        if (strlen(classes[i].name) == size && memcmp(classes[i].name, *text, size) == 0) {
            n->kind = MGX_MATCH_CLASS;
            n->flags = classes[i].flags;
            n->op_count = classes[i].args; // the number of inputs it asks for, -1 any
            *text += size;
            return true;
        }
    return false;
}

static bool read_ops(struct mgx_pattern_node *n, const char **text)
{
    n->kind = MGX_MATCH_OP;
    do {
        const size_t size = word_length(*text);
        if (!size || n->op_count == MGX_PATTERN_OPS)
            return false;
        n->ops[n->op_count] = mgx_ops.find(&mgx_ops, *text, size);
        if (!n->ops[n->op_count++])
            return false;
        *text += size;
    } while (skip(text, '|'));
    return true;
}

static bool read_value(struct mgx_pattern_node *n, const char **text)
{
    char *end;
    n->kind = MGX_MATCH_VALUE;
    n->value = mgx_number_read(*text, &end);
    const bool ok = end != *text;
    *text = end;
    return ok;
}

static bool read_args(struct mgx_pattern *p, struct mgx_pattern_node *n, const char **text)
{
    assert(n >= p->node && n < p->node + p->count);
    n->arg_count = 0;
    int *link = &n->child;
    do {
        const int child = read_node(p, text);
        if (child < 0)
            return false;
        *link = child;
        link = &p->node[child].sibling;
        n->arg_count++;
    } while (skip(text, ','));
    return skip(text, ')');
}

// A single letter is a variable; `c:` in front of an operator binds it too.
static bool read_head(struct mgx_pattern_node *n, const char **text)
{
    const char c = **text;
    if (islower((unsigned char)c) && !mgx_is_word_byte((*text)[1])) {
        n->letter = c;
        ++*text;
        if (!skip(text, ':')) {
            n->kind = MGX_MATCH_ANY;
            return true;
        }
    }
    if (skip(text, '%'))
        return read_class(n, text);
    return isalpha((unsigned char)**text) ? read_ops(n, text) : read_value(n, text);
}

// Returns the node's index, -1 when the text is no pattern.
static int read_node(struct mgx_pattern *p, const char **text)
{
    if (p->count == MGX_PATTERN_NODES)
        return -1;
    const int index = p->count++;
    struct mgx_pattern_node *n = &p->node[index];
    *n = (struct mgx_pattern_node){.arg_count = -1, .child = -1, .sibling = -1};
    while (**text == ' ')
        ++*text;
    if (!read_head(n, text))
        return -1;
    for (;; ++*text) {
        if (**text == '#')
            n->constant = true;
        else if (**text == '!')
            n->once = true;
        else
            break;
    }
    if (**text == '(') {
        ++*text;
        if (n->kind < MGX_MATCH_OP || !read_args(p, n, text))
            return -1;
    }
    return index;
}

bool mgx_pattern_parse(struct mgx_pattern *out, const char **text)
{
    out->count = 0;
    return read_node(out, text) == 0;
}

const struct mgx_pattern *mgx_pattern_keep(struct mgx_arena *arena, const struct mgx_pattern *p)
{
    assert(p->count > 0 && p->count <= MGX_PATTERN_NODES);
    const size_t bytes = offsetof(struct mgx_pattern, node) + (size_t)p->count * sizeof p->node[0];
    return mgx_arena_memdup(arena, p, bytes);
}

// --- matching ---

static bool match_node(const struct mgx_pattern *p, int index, struct mgx_ins *ins,
                       const struct mgx_module *m, struct mgx_match *match);

static bool may_be(const struct mgx_pattern_node *n, const struct mgx_op *op)
{
    if (n->kind == MGX_MATCH_CLASS)
        return op->flags & n->flags;
    for (int i = 0; i < n->op_count; i++)
        if (n->ops[i] == op)
            return true;
    return false;
}

static bool matches_op(const struct mgx_pattern_node *n, const struct mgx_op *op, int in_count)
{
    return may_be(n, op) &&
           (n->kind != MGX_MATCH_CLASS || n->op_count < 0 || n->op_count == in_count);
}

static bool match_args(const struct mgx_pattern *p, const struct mgx_pattern_node *n,
                       struct mgx_ins *ins, bool swapped, const struct mgx_module *m,
                       struct mgx_match *match)
{
    int child = n->child;
    for (int i = 0; i < n->arg_count; i++, child = p->node[child].sibling)
        if (!match_node(p, child, ins->in[swapped ? 1 - i : i], m, match))
            return false;
    return true;
}

static bool bind(char letter, struct mgx_ins *ins, struct mgx_match *match)
{
    if (!letter)
        return true;
    struct mgx_ins **slot = &match->var[letter - 'a'];
    if (*slot)
        return *slot == ins;
    *slot = ins;
    return true;
}

static bool match_node(const struct mgx_pattern *p, int index, struct mgx_ins *ins,
                       const struct mgx_module *m, struct mgx_match *match)
{
    const struct mgx_pattern_node *n = &p->node[index];
    if (n->kind == MGX_MATCH_VALUE)
        return mgx_is_splat(ins, n->value);
    if (n->kind >= MGX_MATCH_OP && (ins->owner != m || !matches_op(n, ins->op, ins->in_count)))
        return false;
    if ((n->once && !mgx_used_once(ins)) || (n->constant && !mgx_is_constant(m, ins)) ||
        !bind(n->letter, ins, match))
        return false;
    if (n->arg_count < 0)
        return true;
    if (n->arg_count != ins->in_count)
        return false;
    const struct mgx_match before = *match;
    if (match_args(p, n, ins, false, m, match))
        return true;
    *match = before;
    return n->arg_count == 2 && (ins->op->flags & MGX_OP_COMMUTATIVE) &&
           match_args(p, n, ins, true, m, match);
}

bool mgx_pattern_may_begin(const struct mgx_pattern *p, const struct mgx_op *op)
{
    return may_be(&p->node[0], op);
}

bool mgx_pattern_may_match(const struct mgx_pattern *p, const struct mgx_ins *ins)
{
    return matches_op(&p->node[0], ins->op, ins->in_count);
}

bool mgx_pattern_match(const struct mgx_pattern *p, struct mgx_ins *ins, struct mgx_match *m)
{
    assert(p->count > 0);
    if (!mgx_pattern_may_match(p, ins)) // the common case, before anything else
        return false;
    *m = (struct mgx_match){0};
    return match_node(p, 0, ins, ins->owner, m);
}
