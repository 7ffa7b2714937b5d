// SPDX-License-Identifier: MIT
// A canonical order of a module: parameters by name, literals, operators, @return; literals and
// operators in the order in which a walk from the results through the inputs first completes them,
// what no result needs after that. Two modules that differ in order only become the same text.
//
// The walk keeps its own stack, so depth of the graph costs no C stack. An instruction with bodies
// depends on what they capture. Out of memory leaves the order as it was. Cost: linear in edges,
// plus the sizes of bodies per use; parameters n log n.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ir/link.h"

enum { UNSEEN, OPEN, DONE };

struct frame {
    struct mgx_ins *ins;
    struct mgx_ins **needs; // inputs, then captures of bodies
    int count, next;
};

struct sort {
    struct mgx_module *m;
    struct mgx_ins *result; // the last instruction stays the last
    struct mgx_arena arena;
    struct frame *stack;
    int depth;
    struct mgx_ins **order; // completed, in order
    int count;
};

// --- what an instruction depends on inside its module ---

struct needs {
    MGX_ARRAY(struct mgx_ins *);
};

static bool need(struct sort *s, struct needs *n, struct mgx_ins *ins)
{
    return ins->owner != s->m || MGX_PUSH(n, &s->arena, ins);
}

// Bodies and the bodies in them, each looked at once.
static bool need_captures(struct sort *s, struct needs *n, const struct mgx_ins *ins)
{
    struct mgx_map bodies = {0};
    bool good = true;
    for (int i = 0; i < ins->mod_count; i++)
        good = good && mgx_map_put_pointer(&bodies, ins->mod[i], ins->mod[i]);
    for (uint32_t b = 0; good && b < bodies.count; b++) {
        const struct mgx_module *body = bodies.entries[b].value;
        for (const struct mgx_ins *inner = body->first; inner && good; inner = inner->next) {
            for (int i = 0; i < inner->in_count; i++)
                good = good && need(s, n, inner->in[i]);
            for (int i = 0; i < inner->mod_count; i++)
                good = good && mgx_map_put_pointer(&bodies, inner->mod[i], inner->mod[i]);
        }
    }
    mgx_map_fini(&bodies);
    return good;
}

// --- the walk ---

static bool open_frame(struct sort *s, struct mgx_ins *ins)
{
    assert(ins->mark == UNSEEN && ins->owner == s->m && s->depth < s->m->count);
    struct needs n = {0};
    for (int i = 0; i < ins->in_count; i++)
        if (!need(s, &n, ins->in[i]))
            return false;
    if (ins->mod_count && !need_captures(s, &n, ins))
        return false;
    ins->mark = OPEN;
    s->stack[s->depth++] = (struct frame){ins, n.v, n.count, 0};
    return true;
}

static bool walk_from(struct sort *s, struct mgx_ins *root)
{
    if (root->mark != UNSEEN)
        return true;
    if (!open_frame(s, root))
        return false;
    while (s->depth) {
        struct frame *top = &s->stack[s->depth - 1];
        while (top->next < top->count && top->needs[top->next]->mark != UNSEEN)
            top->next++;
        if (top->next < top->count) {
            if (!open_frame(s, top->needs[top->next]))
                return false;
            continue;
        }
        assert(top->ins->mark == OPEN && s->count < s->m->count);
        top->ins->mark = DONE;
        s->order[s->count++] = top->ins;
        s->depth--;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct mgx_ins *const *x = a, *const *y = b;
    return strcmp(mgx_parameter_name(*x), mgx_parameter_name(*y));
}

// 0 parameters, 1 literals, 2 operators, 3 the result, @return or not: the order of the blocks.
static int block_of(const struct sort *s, const struct mgx_ins *ins)
{
    return ins == s->result ? 3 : ins->op == &mgx_op_param ? 0 : ins->op == &mgx_op_literal ? 1 : 2;
}

static bool walk_all(struct sort *s)
{
    if (!walk_from(s, s->result))
        return false;
    for (struct mgx_ins *ins = s->m->first; ins; ins = ins->next)
        if (!walk_from(s, ins))
            return false;
    return true;
}

// Has every instruction of the module its inputs before it? Uses the marks, as the walk did.
__attribute__((unused)) static bool inputs_come_first(const struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        ins->mark = UNSEEN;
    for (struct mgx_ins *ins = m->first; ins; ins->mark = DONE, ins = ins->next)
        for (int i = 0; i < ins->in_count; i++)
            if (ins->in[i]->owner == m && ins->in[i]->mark != DONE)
                return false;
    return true;
}

static void relink(struct sort *s, struct mgx_ins **parameters)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        if (block_of(s, s->order[i]) == 0)
            parameters[count++] = s->order[i];
    qsort(parameters, (size_t)count, sizeof *parameters, by_name);
    struct mgx_module *m = s->m;
    const int before = m->count;
    assert(s->count == before); // every instruction was completed once
    m->first = m->last = NULL;
    m->count = 0;
    for (int i = 0; i < count; i++)
        mgx_link_ins(m, parameters[i], NULL);
    for (int block = 1; block <= 3; block++)
        for (int i = 0; i < s->count; i++)
            if (block_of(s, s->order[i]) == block)
                mgx_link_ins(m, s->order[i], NULL);
    assert(m->count == before && m->last == s->result);
    assert(inputs_come_first(m));
    (void)before;
}

void mgx_module_sort(struct mgx_module *m)
{
    struct sort s = {.m = m, .result = m->last};
    int count = 0;
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        ins->mark = UNSEEN;
        count++;
    }
    if (!count)
        return;
    mgx_arena_init(&s.arena);
    s.stack = MGX_NEW_ARRAY(&s.arena, struct frame, count);
    s.order = MGX_NEW_ARRAY(&s.arena, struct mgx_ins *, count);
    struct mgx_ins **parameters = MGX_NEW_ARRAY(&s.arena, struct mgx_ins *, count);
    if (s.stack && s.order && parameters && walk_all(&s))
        relink(&s, parameters);
    mgx_arena_fini(&s.arena);
}
