// SPDX-License-Identifier: MIT
// Every rule of docs/ir.md, "What must hold".
//
// First the lists and links, since everything else walks them. Then modules together: they are
// taken bodies first (an order exists unless a module contains itself), and of each the values it
// reads from outside are gathered; where a module is used, each of them must be defined earlier, or
// is handed on as a value that the using module reads from outside. Then each module by itself:
// builtins and shapes. Reads the program, writes
// nothing. Cost: linear in instructions and edges, plus per use of a module the number of values it
// captures, plus the shape rules.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "ir/link.h"

struct module_state {
    const struct mgx_module *m;
    int users;          // uses of this module not yet passed by the walk over modules
    bool used;          // as a body, at all
    struct mgx_map out; // captured values: instruction -> itself
};

struct verify {
    const struct mgx_program *p;
    struct mgx_map positions; // instruction -> position + 1
    struct mgx_map states;    // module -> struct module_state
    struct mgx_map kept;      // storages that the program has a share in
    struct mgx_arena arena;   // states, and what shape rules allocate
    struct mgx_diag *diag;
};

// "main:@3 (add)" is wrong: the message follows.
static enum mgx_status broken(struct verify *v, const struct mgx_ins *ins, const char *fmt, ...)
    MGX_PRINTF(3, 4);

static enum mgx_status broken(struct verify *v, const struct mgx_ins *ins, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    mgx_number_vformat(text, sizeof text, fmt, args);
    va_end(args);
    struct mgx_str name = {0};
    mgx_ins_print_name(&name, ins);
    mgx_fail(v->diag, MGX_INVALID, "%.200s (%s): %s", mgx_str_text(&name), ins->op->name, text);
    mgx_str_fini(&name);
    return MGX_INVALID;
}

static intptr_t position(const struct verify *v, const struct mgx_ins *ins)
{
    return (intptr_t)mgx_map_find_pointer(&v->positions, ins);
}

static struct module_state *state_of(const struct verify *v, const struct mgx_module *m)
{
    return mgx_map_find_pointer(&v->states, m);
}

// --- one module: its list ---

static enum mgx_status number(struct verify *v, const struct mgx_module *m)
{
    int count = 0;
    const struct mgx_ins *before = NULL;
    for (const struct mgx_ins *ins = m->first; ins; before = ins, ins = ins->next) {
        if (ins->owner != m || ins->prev != before || !ins->op || count == m->count)
            return mgx_fail(v->diag, MGX_INVALID, "module \"%.200s\": its list is broken after %d",
                            m->name, count);
        if (!mgx_map_put_pointer(&v->positions, ins, (void *)(intptr_t)++count))
            return mgx_fail_memory(v->diag);
    }
    if (before != m->last || count != m->count)
        return mgx_fail(v->diag, MGX_INVALID, "module \"%.200s\" counts %d instructions, not %d",
                        m->name, m->count, count);
    return MGX_OK;
}

static enum mgx_status check_edges(struct verify *v, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_ins *in = ins->in[i];
        if (!in || !position(v, in))
            return broken(v, ins, "input %d is not in the program", i);
        if (in->owner == ins->owner && position(v, in) >= position(v, ins))
            return broken(v, ins, "input %d comes later", i);
        if (in->op == &mgx_op_return || in->op == &mgx_op_comment)
            return broken(v, ins, "input %d is %s, which has no value", i, in->op->name);
        const struct mgx_use *use = &ins->in_uses[i];
        const struct mgx_use *back = use->prev ? use->prev->next : in->uses;
        if (use->user != ins || use->slot != i || back != use)
            return broken(v, ins, "input %d does not list this use", i);
    }
    const struct mgx_use *before = NULL;
    for (const struct mgx_use *use = ins->uses; use; before = use, use = use->next) {
        const struct mgx_ins *user = use->user;
        if (use->prev != before || !position(v, user) || use->slot >= user->in_count ||
            user->in[use->slot] != ins || use != &user->in_uses[use->slot])
            return broken(v, ins, "it lists a use that does not read it");
    }
    return MGX_OK;
}

// --- one module: builtins ---

static enum mgx_status check_literal(struct verify *v, const struct mgx_ins *ins)
{
    const struct mgx_tensor *t = ins->literal;
    if (!t)
        return broken(v, ins, "it has no value");
    if (!mgx_shape_equal(&t->shape, &ins->shape))
        return broken(v, ins, "its value has another shape");
    if (t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE)
        return MGX_OK;
    const size_t bytes = mgx_shape_bytes(&t->shape);
    if (!bytes)
        return MGX_OK;
    const struct mgx_storage *storage = t->storage;
    if (!t->data || !storage)
        return broken(v, ins, "it owns no share in its %zu bytes", bytes);
    const uintptr_t begin = (uintptr_t)storage->data, at = (uintptr_t)t->data;
    if (at < begin || at - begin > storage->bytes || bytes > storage->bytes - (at - begin))
        return broken(v, ins, "its %zu bytes are not inside its storage of %zu", bytes,
                      storage->bytes);
    if (!mgx_map_find_pointer(&v->kept, storage))
        return broken(v, ins, "the program has no share in its %zu bytes", bytes);
    return MGX_OK;
}

static enum mgx_status check_builtin(struct verify *v, const struct mgx_ins *ins,
                                     struct mgx_map *parameters)
{
    if (ins->mod_count || (ins->in_count && ins->op != &mgx_op_return))
        return broken(v, ins, "it takes neither inputs nor modules");
    if (ins->op == &mgx_op_return && ins->next)
        return broken(v, ins, "it is not the last instruction");
    if (ins->op == &mgx_op_literal)
        return check_literal(v, ins);
    if (ins->op != &mgx_op_param)
        return MGX_OK;
    const char *name = mgx_parameter_name(ins);
    if (mgx_map_find(parameters, name))
        return broken(v, ins, "another parameter is called \"%.200s\" as well", name);
    return mgx_map_put(parameters, name, (void *)(uintptr_t)ins) ? MGX_OK
                                                                 : mgx_fail_memory(v->diag);
}

// --- one module: shapes ---

static bool strides_agree(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (mgx_shape_elements(a) == 0)
        return true;
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] > 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

// Ranges that contain what the rule says; nothing known contains everything.
static bool contains(const struct mgx_shape *declared, const struct mgx_shape *found)
{
    if (declared->unranked)
        return true;
    if (!declared->dims || found->unranked || declared->rank != found->rank)
        return false;
    for (int i = 0; i < declared->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(found, i);
        if (d.min < declared->dims[i].min || d.max > declared->dims[i].max)
            return false;
    }
    return true;
}

bool mgx_shape_admits(const struct mgx_shape *declared, const struct mgx_shape *found)
{
    if (mgx_shape_equal(declared, found))
        return true;
    if (declared->type != found->type)
        return false;
    if (declared->type == MGX_TUPLE || declared->type == MGX_SEQUENCE) {
        bool good = declared->sub_count == found->sub_count;
        for (int i = 0; good && i < declared->sub_count; i++)
            good = mgx_shape_admits(&declared->sub[i], &found->sub[i]);
        return good;
    }
    if (declared->dims || declared->unranked)
        return contains(declared, found);
    return mgx_shape_is_static(found) && declared->rank == found->rank &&
           mgx_shape_same_lens(declared, found) && strides_agree(declared, found);
}

static enum mgx_status shapes_differ(struct verify *v, const struct mgx_ins *ins,
                                     const struct mgx_shape *found)
{
    struct mgx_str a = {0}, b = {0};
    mgx_shape_print(&a, &ins->shape);
    mgx_shape_print(&b, found);
    broken(v, ins, "its shape is %.200s, its rule says %.200s", mgx_str_text(&a), mgx_str_text(&b));
    mgx_str_fini(&a);
    mgx_str_fini(&b);
    return MGX_INVALID;
}

static enum mgx_status check_shape(struct verify *v, const struct mgx_ins *ins)
{
    if (mgx_shape_check(&ins->shape, v->diag) != MGX_OK) {
        mgx_where(v->diag, "the shape of %s", ins->op->name);
        return v->diag ? v->diag->status : MGX_INVALID;
    }
    if (ins->op->flags & MGX_OP_BUILTIN)
        return MGX_OK;
    const struct mgx_arena_mark mark = mgx_arena_mark(&v->arena);
    struct mgx_shape found;
    enum mgx_status status = mgx_infer(&v->arena, ins->op, ins->attr, ins->in, ins->in_count,
                                       ins->mod, ins->mod_count, &found, v->diag);
    if (status != MGX_OK) {
        struct mgx_str name = {0};
        mgx_ins_print_name(&name, ins);
        mgx_where(v->diag, "%s (%s)", mgx_str_text(&name), ins->op->name);
        mgx_str_fini(&name);
    } else if (!mgx_shape_admits(&ins->shape, &found)) {
        status = shapes_differ(v, ins, &found);
    }
    mgx_arena_rewind(&v->arena, mark);
    return status;
}

static enum mgx_status check_module(struct verify *v, const struct mgx_module *m)
{
    struct mgx_map parameters = {0};
    enum mgx_status status = MGX_OK;
    for (const struct mgx_ins *ins = m->first; ins && status == MGX_OK; ins = ins->next) {
        assert(mgx_shape_lies_in(&ins->shape, &v->p->arena)); // of a scratch arena it would go
        if (ins->op->flags & MGX_OP_BUILTIN)
            status = check_builtin(v, ins, &parameters);
        if (status == MGX_OK)
            status = check_shape(v, ins);
    }
    mgx_map_fini(&parameters);
    return status;
}

// --- modules together ---

static enum mgx_status list_modules(struct verify *v)
{
    const struct mgx_program *p = v->p;
    if (!p->module_count || strcmp(p->modules[0]->name, "main") != 0)
        return mgx_fail(v->diag, MGX_INVALID, "the first module is not \"main\"");
    for (int i = 0; i < p->module_count; i++) {
        const struct mgx_module *m = p->modules[i];
        if (m->program != p || mgx_program_find_module(p, m->name) != m)
            return mgx_fail(v->diag, MGX_INVALID, "module \"%.200s\" is not the one of its name",
                            m->name);
        struct module_state *state = MGX_NEW(&v->arena, struct module_state);
        if (!state || !mgx_map_put_pointer(&v->states, m, state))
            return mgx_fail_memory(v->diag);
        state->m = m;
        TRY(number(v, m));
    }
    return MGX_OK;
}

static enum mgx_status count_users(struct verify *v, const struct mgx_module *m)
{
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        for (int i = 0; i < ins->mod_count; i++) {
            struct module_state *body = ins->mod[i] ? state_of(v, ins->mod[i]) : NULL;
            if (!body)
                return broken(v, ins, "module %d is not in the program", i);
            if (ins->mod[i] == v->p->modules[0])
                return broken(v, ins, "main is used as a body");
            body->users++;
            body->used = true;
        }
    return MGX_OK;
}

// An order in which every module comes after those that use it; short if one contains itself.
static int users_first(struct verify *v, struct module_state **order)
{
    int count = 0;
    for (int i = 0; i < v->p->module_count; i++) {
        struct module_state *state = state_of(v, v->p->modules[i]);
        if (!state->users)
            order[count++] = state;
    }
    for (int i = 0; i < count; i++)
        for (const struct mgx_ins *ins = order[i]->m->first; ins; ins = ins->next)
            for (int j = 0; j < ins->mod_count; j++) {
                struct module_state *body = state_of(v, ins->mod[j]);
                if (--body->users == 0)
                    order[count++] = body;
            }
    return count;
}

// `ins` reads `value`, itself or through a body: it must be defined by then, here or outside.
static enum mgx_status reach(struct verify *v, struct module_state *state,
                             const struct mgx_ins *ins, const struct mgx_ins *value)
{
    if (value->owner != state->m)
        return mgx_map_put_pointer(&state->out, value, (void *)(uintptr_t)value)
                   ? MGX_OK
                   : mgx_fail_memory(v->diag);
    if (position(v, value) < position(v, ins))
        return MGX_OK;
    struct mgx_str name = {0};
    mgx_ins_print_name(&name, value);
    broken(v, ins, "its module reads %.200s, which comes later", mgx_str_text(&name));
    mgx_str_fini(&name);
    return MGX_INVALID;
}

static enum mgx_status gather_captures(struct verify *v, struct module_state *state)
{
    for (const struct mgx_ins *ins = state->m->first; ins; ins = ins->next) {
        for (int i = 0; i < ins->in_count; i++)
            TRY(reach(v, state, ins, ins->in[i]));
        for (int i = 0; i < ins->mod_count; i++) {
            const struct mgx_map *captured = &state_of(v, ins->mod[i])->out;
            for (uint32_t k = 0; k < captured->count; k++)
                TRY(reach(v, state, ins, captured->entries[k].value));
        }
    }
    if (state->m == v->p->modules[0] && state->out.count) {
        const struct mgx_ins *value = state->out.entries[0].value;
        return broken(v, value, "main reads it out of module \"%.200s\"", value->owner->name);
    }
    return MGX_OK;
}

static enum mgx_status check_captures(struct verify *v)
{
    const int count = v->p->module_count;
    struct module_state **order = MGX_NEW_ARRAY(&v->arena, struct module_state *, count);
    if (!order)
        return mgx_fail_memory(v->diag);
    for (int i = 0; i < count; i++)
        TRY(count_users(v, v->p->modules[i]));
    const int found = users_first(v, order);
    if (found < count)
        return mgx_fail(v->diag, MGX_INVALID, "%d modules contain one another", count - found);
    for (int i = count - 1; i >= 0; i--)
        TRY(gather_captures(v, order[i]));
    return MGX_OK;
}

static enum mgx_status list_storages(struct verify *v)
{
    const struct mgx_kept *kept = &v->p->literals;
    for (int64_t i = 0; i < kept->count; i++)
        if (!mgx_map_put_pointer(&v->kept, kept->v[i], kept->v[i]))
            return mgx_fail_memory(v->diag);
    return MGX_OK;
}

static enum mgx_status check_program(struct verify *v)
{
    TRY(list_modules(v));
    TRY(list_storages(v));
    for (int i = 0; i < v->p->module_count; i++)
        for (const struct mgx_ins *ins = v->p->modules[i]->first; ins; ins = ins->next)
            TRY(check_edges(v, ins));
    TRY(check_captures(v));
    for (int i = 0; i < v->p->module_count; i++)
        TRY(check_module(v, v->p->modules[i]));
    return MGX_OK;
}

enum mgx_status mgx_program_verify(const struct mgx_program *p, struct mgx_diag *diag)
{
    struct verify v = {.p = p, .diag = diag};
    mgx_arena_init(&v.arena);
    const enum mgx_status status = check_program(&v);
    for (uint32_t i = 0; i < v.states.count; i++)
        mgx_map_fini(&((struct module_state *)v.states.entries[i].value)->out);
    mgx_map_fini(&v.states);
    mgx_map_fini(&v.kept);
    mgx_map_fini(&v.positions);
    mgx_arena_fini(&v.arena);
    return status;
}
