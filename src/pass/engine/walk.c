// SPDX-License-Identifier: MIT
// Visiting modules in order, erasing dead instructions; see walk.h.
#include "pass/engine/walk.h"

#include <assert.h>
#include <string.h>

// --- modules ---

struct visit { // a module half-way through: where the search goes on
    struct mgx_module *module;
    struct mgx_ins *at;
    int body;
};

struct search {
    struct mgx_map seen;
    struct visit *stack;
    int depth;
    struct mgx_module **out;
    int count;
};

static bool enter(struct search *s, struct mgx_module *m)
{
    if (mgx_map_find_pointer(&s->seen, m))
        return true;
    s->stack[s->depth++] = (struct visit){m, m->first, 0};
    return mgx_map_put_pointer(&s->seen, m, m);
}

// One step: into the next body, on to the next instruction, or out.
static bool step(struct search *s)
{
    struct visit *v = &s->stack[s->depth - 1];
    if (!v->at) {
        s->out[s->count++] = v->module;
        s->depth--;
        return true;
    }
    if (v->body < v->at->mod_count)
        return enter(s, v->at->mod[v->body++]);
    v->at = v->at->next;
    v->body = 0;
    return true;
}

struct mgx_module **mgx_modules_bodies_first(const struct mgx_program *p, struct mgx_arena *arena,
                                             int *count)
{
    struct search s = {.stack = MGX_NEW_ARRAY(arena, struct visit, p->module_count),
                       .out = MGX_NEW_ARRAY(arena, struct mgx_module *, p->module_count)};
    if (s.out && p->module_count == 1) { // nothing to look for
        s.out[0] = mgx_program_main(p);
        *count = 1;
        return s.out;
    }
    bool ok = s.stack && s.out && enter(&s, mgx_program_main(p));
    while (ok && s.depth)
        ok = step(&s);
    mgx_map_fini(&s.seen);
    *count = s.count;
    return ok ? s.out : NULL;
}

// --- shapes ---

// Bodies of groups are made once, before what they are bodies of, and no pass goes into them.
static bool is_up_to_date(const struct mgx_ins *ins)
{
    bool fixed = !ins->stale;
    for (int i = 0; i < ins->mod_count && fixed; i++)
        fixed = ins->mod[i]->bypass;
    return fixed;
}

static enum mgx_status refresh(struct mgx_ins *ins, struct mgx_diag *diag)
{
    if (is_up_to_date(ins))
        return MGX_OK;
    const struct mgx_shape before = ins->shape;
    if (mgx_update_shape(ins, diag) != MGX_OK) {
        mgx_where(diag, "%s, whose inputs changed", ins->op->name);
        return diag->status;
    }
    if (before.type != ins->shape.type || !mgx_shape_may_match(&before, &ins->shape)) {
        struct mgx_str old = {0}, now = {0};
        mgx_shape_print(&old, &before);
        mgx_shape_print(&now, &ins->shape);
        mgx_fail(diag, MGX_INTERNAL, "%s: result changed from %s to %s", ins->op->name,
                 mgx_str_text(&old), mgx_str_text(&now));
        mgx_str_fini(&old);
        mgx_str_fini(&now);
        return MGX_INTERNAL;
    }
    return MGX_OK;
}

// A body is brought up to date when its first user is reached: what it captures comes earlier.
enum mgx_status mgx_refresh_shapes(struct mgx_program *p, struct mgx_arena *scratch,
                                   struct mgx_diag *diag)
{
    struct search s = {.stack = MGX_NEW_ARRAY(scratch, struct visit, p->module_count),
                       .out = MGX_NEW_ARRAY(scratch, struct mgx_module *, p->module_count)};
    bool ok = s.stack && s.out && enter(&s, mgx_program_main(p));
    enum mgx_status status = MGX_OK;
    while (ok && s.depth && status == MGX_OK) {
        const struct visit *v = &s.stack[s.depth - 1];
        if (v->at && v->body == v->at->mod_count)
            status = refresh(v->at, diag);
        ok = step(&s);
    }
    mgx_map_fini(&s.seen);
    return ok ? status : mgx_fail_memory(diag);
}

int mgx_first_reduced(const struct mgx_ins *reduce)
{
    const struct mgx_ints axes = mgx_ins_ints(reduce, "axes");
    const int rank = reduce->in[0]->shape.rank, first = rank - axes.count;
    unsigned set = 0;
    for (int i = 0; i < axes.count; i++)
        set |= 1u << mgx_wrap_axis(axes.v[i], rank);
    const bool last = axes.count > 0 && first >= 0 && set == (1u << rank) - (1u << first);
    return last ? first : -1;
}

bool mgx_is_removable(const struct mgx_ins *ins)
{
    return !ins->uses && !(ins->op->flags & MGX_OP_EFFECT) && ins->op != &mgx_op_param &&
           ins->op != &mgx_op_return && ins->op != &mgx_op_comment &&
           ins != ins->owner->last; // the result of a module without @return
}

bool mgx_is_pure(const struct mgx_ins *ins)
{
    return !(ins->op->flags & (MGX_OP_IMPURE | MGX_OP_EFFECT | MGX_OP_BUILTIN)) && !ins->mod_count;
}

// Dead instructions are linked through `mark` into a stack, so depth costs nothing.
static void push_dead(struct mgx_ins **stack, struct mgx_ins *ins)
{
    ins->index = MGX_REMOVED;
    ins->mark = (int64_t)(intptr_t)*stack;
    *stack = ins;
}

void mgx_erase_dead(struct mgx_ins *ins)
{
    struct mgx_ins *stack = NULL;
    if (ins->index != MGX_REMOVED && mgx_is_removable(ins))
        push_dead(&stack, ins);
    while (stack) {
        struct mgx_ins *dead = stack;
        stack = (struct mgx_ins *)(intptr_t)dead->mark;
        struct mgx_ins *const *in = dead->in;
        const int count = dead->in_count;
        mgx_remove(dead);
        for (int i = 0; i < count; i++)
            if (in[i]->owner == dead->owner && in[i]->index != MGX_REMOVED &&
                mgx_is_removable(in[i]))
                push_dead(&stack, in[i]);
    }
}

void mgx_replace(struct mgx_ins *old, struct mgx_ins *by)
{
    assert(old != by && old->shape.type == by->shape.type);
    assert(mgx_shape_may_match(&old->shape, &by->shape));
    struct mgx_module *m = old->owner;
    mgx_replace_uses(old, by);
    if (old == m->last) // the result of a module without @return: now it needs one
        mgx_add_return(m, &by, 1);
    mgx_erase_dead(old);
}
