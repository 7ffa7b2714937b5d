// SPDX-License-Identifier: MIT
// Editing instructions that are linked already, and asking about them; see module.h.
#include <assert.h>
#include <string.h>

#include "ir/link.h"

void mgx_set_input(struct mgx_ins *ins, int slot, struct mgx_ins *by)
{
    assert(slot >= 0 && slot < ins->in_count);
    if (!by || ins->in[slot] == by) // no `by`: emitting it failed, and the program says so
        return;
    mgx_unlink_use(ins, slot);
    ins->in[slot] = by;
    ins->stale = true;
    mgx_link_use(ins, slot);
    assert(ins->in_uses[slot].user == ins && by->uses == &ins->in_uses[slot]);
}

// Is every use that `old` still has one of `by`?
__attribute__((unused)) static bool is_read_by_itself_only(const struct mgx_ins *old,
                                                           const struct mgx_ins *by)
{
    for (const struct mgx_use *use = old->uses; use; use = use->next)
        if (use->user != by || by->in[use->slot] != old)
            return false;
    return true;
}

void mgx_replace_uses(struct mgx_ins *old, struct mgx_ins *by)
{
    assert(by && old != by);
    assert(by->owner->program == old->owner->program);
    for (struct mgx_use *use = old->uses, *next; use; use = next) {
        next = use->next;
        if (use->user != by)
            mgx_set_input(use->user, use->slot, by);
    }
    assert(is_read_by_itself_only(old, by));
    mgx_copy_origin(by, old);
}

void mgx_move_before(struct mgx_ins *ins, struct mgx_ins *where)
{
    assert(where->owner == ins->owner && mgx_is_linked(ins) && mgx_is_linked(where));
    if (ins == where || ins->next == where)
        return;
    mgx_unlink_ins(ins);
    mgx_link_ins(where->owner, ins, where);
}

enum mgx_status mgx_rewrite(struct mgx_ins *ins, const struct mgx_op *op, void *keep_attr,
                            struct mgx_ins *const *in, int in_count, struct mgx_diag *diag)
{
    assert(op && in_count >= 0 && mgx_is_linked(ins));
    assert(!ins->literal || !ins->in_count);
    // Unlink first: the new inputs may be the old ones, read from ins->in itself, which stays
    // intact.
    for (int i = 0; i < ins->in_count; i++)
        mgx_unlink_use(ins, i);
    ins->op = op;
    ins->attr = keep_attr;
    assert(!ins->uses || ins->uses->user); // its readers stay as they are
    ins->literal = NULL;
    if (!mgx_link_inputs(ins, in, in_count)) {
        ins->in_count = 0; // all edges are gone; the program is good for destruction only
        return mgx_fail_memory(diag);
    }
    return mgx_update_shape(ins, diag);
}

// --- origins ---

void mgx_add_origin(struct mgx_ins *ins, const char *name)
{
    assert(!ins || ins->owner);
    if (!ins || !name || !*name)
        return;
    for (int i = 0; i < ins->origin.count; i++)
        if (strcmp(ins->origin.v[i], name) == 0)
            return;
    struct mgx_arena *arena = &ins->owner->program->arena;
    const char **list = MGX_NEW_ARRAY(arena, const char *, ins->origin.count + 1);
    const char *copy = mgx_arena_strdup(arena, name);
    if (!list || !copy)
        return; // the arena's failure is sticky
    int at = 0; // sorted, as they print
    while (at < ins->origin.count && strcmp(ins->origin.v[at], name) < 0) {
        list[at] = ins->origin.v[at];
        at++;
    }
    list[at] = copy;
    for (int i = at; i < ins->origin.count; i++)
        list[i + 1] = ins->origin.v[i];
    assert(at == ins->origin.count || strcmp(copy, list[at + 1]) < 0); // sorted, no duplicates
    ins->origin.v = list;
    ins->origin.count++;
}

enum {
    MAX_ORIGINS = 32
}; // of one instruction: merging thousands of nodes must not become quadratic

void mgx_copy_origin(struct mgx_ins *to, const struct mgx_ins *from)
{
    if (!to || to == from || !from->origin.count)
        return;
    if (!to->origin.count) {
        to->origin = from->origin; // immutable lists are shared
        return;
    }
    if (to->origin.v == from->origin.v)
        return;
    for (int i = 0; i < from->origin.count && to->origin.count < MAX_ORIGINS; i++)
        mgx_add_origin(to, from->origin.v[i]);
}

// --- asking ---

bool mgx_is(const struct mgx_ins *ins, const struct mgx_op *op)
{
    return ins && ins->op == op;
}

int mgx_use_count(const struct mgx_ins *ins)
{
    int count = 0;
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        count++;
    return count;
}

bool mgx_used_once(const struct mgx_ins *ins)
{
    assert(!ins->uses || !ins->uses->prev);
    return ins->uses && !ins->uses->next;
}

int mgx_module_result_count(const struct mgx_module *m)
{
    const struct mgx_ins *ret = mgx_module_return(m);
    return ret ? ret->in_count : m->last ? 1 : 0;
}

struct mgx_ins *mgx_module_result(const struct mgx_module *m, int i)
{
    const struct mgx_ins *ret = mgx_module_return(m);
    assert(i >= 0 && i < mgx_module_result_count(m));
    return ret ? ret->in[i] : m->last;
}

const char *mgx_parameter_name(const struct mgx_ins *param)
{
    assert(param && param->attr);
    assert(param->op == &mgx_op_param);
    return ((const struct mgx_param_attr *)param->attr)->parameter;
}

// Parameters and literals stand at the front of a module, but passes may move things: look at all.
// A name that is new, which adding one thousands of times asks about, costs no search.
struct mgx_ins *mgx_find_parameter(const struct mgx_module *m, const char *name)
{
    if (!mgx_map_find(&m->program->parameter_names, name))
        return NULL;
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_param && strcmp(mgx_parameter_name(ins), name) == 0)
            return ins;
    return NULL;
}

static int64_t order_of(const struct mgx_ins *param)
{
    return ((const struct mgx_param_attr *)param->attr)->order;
}

int mgx_parameter_index(const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_param)
        return -1;
    int before = 0;
    for (const struct mgx_ins *i = ins->owner->first; i; i = i->next)
        before += i->op == &mgx_op_param && order_of(i) < order_of(ins);
    return before;
}

int mgx_module_parameters(const struct mgx_module *m, struct mgx_ins **out, int capacity)
{
    assert(capacity >= 0 && (out || !capacity));
    int count = 0;
    for (struct mgx_ins *ins = m->last; ins; ins = ins->prev) { // front insertion: last is oldest
        if (ins->op != &mgx_op_param)
            continue;
        const int64_t order = order_of(ins);
        int at = count < capacity ? count : capacity;
        while (at > 0 && order_of(out[at - 1]) > order) {
            if (at < capacity)
                out[at] = out[at - 1];
            at--;
        }
        assert(order >= 0 && order < m->program->parameter_count);
        if (at < capacity)
            out[at] = ins;
        count++;
    }
    return count;
}

struct mgx_ins **mgx_module_parameter_list(const struct mgx_module *m, struct mgx_arena *arena,
                                           int *count)
{
    *count = mgx_module_parameters(m, NULL, 0);
    struct mgx_ins **list = MGX_NEW_ARRAY(arena, struct mgx_ins *, *count);
    if (list)
        mgx_module_parameters(m, list, *count);
    return list;
}

void mgx_module_number(struct mgx_module *m)
{
    int index = 0;
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        ins->index = index++;
    assert(m->count == index);
}

int64_t mgx_ins_int(const struct mgx_ins *ins, const char *name)
{
    return mgx_attr_int(ins->op, ins->attr, name);
}

double mgx_ins_real(const struct mgx_ins *ins, const char *name)
{
    return mgx_attr_real(ins->op, ins->attr, name);
}

struct mgx_ints mgx_ins_ints(const struct mgx_ins *ins, const char *name)
{
    return mgx_attr_ints(ins->op, ins->attr, name);
}
