// SPDX-License-Identifier: MIT
// Copies of programs, and of bodies as programs: only what is live, deep, into a fresh arena.
//
// Modules are copied in the order of the list; an instruction may read one of an enclosing module,
// which may come later in the list, so edges are set in a second sweep once every instruction has
// its twin.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/link.h"

struct copy {
    struct mgx_program *to;
    struct mgx_map twins;   // old instruction -> new instruction
    struct mgx_map modules; // old module -> new module
    struct mgx_diag *diag;
};

static enum mgx_status copy_literal(struct copy *c, const struct mgx_ins *ins, struct mgx_ins *twin)
{
    assert(!ins->literal == (ins->op != &mgx_op_literal));
    if (!ins->literal)
        return MGX_OK;
    twin->literal = MGX_NEW(&c->to->arena, struct mgx_tensor);
    if (!twin->literal)
        return mgx_fail_memory(c->diag);
    *twin->literal = *ins->literal;
    twin->literal->shape = twin->shape;
    return mgx_keep(&c->to->literals, ins->literal->storage) ? MGX_OK : mgx_fail_memory(c->diag);
}

static enum mgx_status copy_origin(struct copy *c, const struct mgx_ins *ins, struct mgx_ins *twin)
{
    const int count = ins->origin.count;
    const char **names = MGX_NEW_ARRAY(&c->to->arena, const char *, count);
    for (int i = 0; names && i < count; i++)
        names[i] = mgx_arena_strdup(&c->to->arena, ins->origin.v[i]);
    if (c->to->arena.failed)
        return mgx_fail_memory(c->diag);
    twin->origin = (struct mgx_strings){names, count};
    return MGX_OK;
}

static enum mgx_status copy_attr(struct copy *c, const struct mgx_ins *ins, struct mgx_ins *twin)
{
    if (ins->op != &mgx_op_param)
        return mgx_attr_copy(ins->op, ins->attr, &c->to->arena, &twin->attr, c->diag);
    const struct mgx_param_attr *from = ins->attr;
    struct mgx_param_attr *to = mgx_arena_memdup(&c->to->arena, from, sizeof *from);
    twin->attr = to;
    if (!to || !(to->parameter = mgx_arena_strdup(&c->to->arena, from->parameter)) ||
        !mgx_map_put(&c->to->parameter_names, to->parameter, c->to))
        return mgx_fail_memory(c->diag);
    return MGX_OK;
}

static enum mgx_status copy_ins(struct copy *c, const struct mgx_ins *ins, struct mgx_module *m)
{
    struct mgx_ins *twin = MGX_NEW(&c->to->arena, struct mgx_ins);
    if (!twin || !mgx_shape_copy(&c->to->arena, &ins->shape, &twin->shape) ||
        !mgx_map_put_pointer(&c->twins, ins, twin))
        return mgx_fail_memory(c->diag);
    assert(mgx_shape_equal(&twin->shape, &ins->shape));
    twin->op = ins->op;
    twin->owner = m;
    twin->stale = ins->stale;
    TRY(copy_attr(c, ins, twin));
    TRY(copy_literal(c, ins, twin));
    TRY(copy_origin(c, ins, twin));
    mgx_link_ins(m, twin, NULL);
    return MGX_OK;
}

static enum mgx_status copy_edges(struct copy *c, const struct mgx_ins *ins)
{
    struct mgx_ins *twin = mgx_map_find_pointer(&c->twins, ins);
    assert(twin && twin->op == ins->op && twin->owner->program == c->to);
    struct mgx_ins **in = MGX_NEW_ARRAY(&c->to->arena, struct mgx_ins *, ins->in_count);
    struct mgx_module **mod = MGX_NEW_ARRAY(&c->to->arena, struct mgx_module *, ins->mod_count);
    if (!in || !mod)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < ins->in_count; i++)
        in[i] = mgx_map_find_pointer(&c->twins, ins->in[i]);
    for (int i = 0; i < ins->mod_count; i++) {
        mod[i] = mgx_map_find_pointer(&c->modules, ins->mod[i]);
        assert(mod[i] && mod[i]->program == c->to);
    }
    twin->mod = mod;
    twin->mod_count = ins->mod_count;
    return mgx_link_inputs(twin, in, ins->in_count) ? MGX_OK : mgx_fail_memory(c->diag);
}

static enum mgx_status copy_modules(struct copy *c, const struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++) {
        const struct mgx_module *from = p->modules[i];
        struct mgx_module *to =
            i ? mgx_program_add_module(c->to, from->name) : mgx_program_main(c->to);
        if (!to || !mgx_map_put_pointer(&c->modules, from, to))
            return mgx_fail_memory(c->diag);
        to->bypass = from->bypass;
        for (const struct mgx_ins *ins = from->first; ins; ins = ins->next)
            TRY(copy_ins(c, ins, to));
        assert(to->count == from->count);
    }
    for (int i = 0; i < p->module_count; i++)
        for (const struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            TRY(copy_edges(c, ins));
    return MGX_OK;
}

static enum mgx_status copy_program(struct copy *c, const struct mgx_program *p)
{
    TRY(copy_modules(c, p));
    const int count = p->output_names.count;
    const char **names = MGX_NEW_ARRAY(&c->to->arena, const char *, count);
    for (int i = 0; names && i < count; i++)
        names[i] = mgx_arena_strdup(&c->to->arena, p->output_names.v[i]);
    c->to->output_names = (struct mgx_strings){names, count};
    assert(p->hints.count % 2 == 0); // pairs
    for (int64_t i = 0; i + 1 < p->hints.count; i += 2)
        TRY(mgx_program_hint(c->to, p->hints.v[i], p->hints.v[i + 1], c->diag));
    c->to->print_origins = p->print_origins;
    c->to->parameter_count = p->parameter_count;
    for (int64_t i = 0; i < p->pinned.count; i++)
        mgx_program_pin(c->to, p->pinned.v[i]);
    return mgx_program_status(c->to, c->diag);
}

// Has the program a share in the bytes of all its literals? Shares are taken in the order of the
// literals, one for several that follow each other, so one walk over both lists tells.
__attribute__((unused)) static bool keeps_literals(const struct mgx_program *p)
{
    const struct mgx_storage *last = NULL;
    int64_t next = 0;
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next) {
            const struct mgx_storage *storage = ins->literal ? ins->literal->storage : NULL;
            if (!storage || storage == last)
                continue;
            if (next == p->literals.count || p->literals.v[next++] != storage)
                return false;
            last = storage;
        }
    return next == p->literals.count;
}

enum mgx_status mgx_program_clone(struct mgx_program **out, const struct mgx_program *p,
                                  struct mgx_diag *diag)
{
    *out = NULL;
    struct copy c = {.diag = diag};
    TRY(mgx_program_create(&c.to, p->ops, diag));
    const enum mgx_status status = copy_program(&c, p);
    mgx_map_fini(&c.twins);
    mgx_map_fini(&c.modules);
    if (status != MGX_OK) {
        mgx_program_destroy(c.to);
        return status;
    }
    assert(keeps_literals(c.to) && c.to->module_count == p->module_count);
    *out = c.to;
    return MGX_OK;
}

// --- a body alone ---

struct body {
    struct copy c;
    MGX_ARRAY(const struct mgx_module *); // it, and those that it has
    struct mgx_arena *arena;
    const struct mgx_ins **outside;
    int outside_count;
};

// Adds a module to the program, and what its instructions have.
static enum mgx_status add_body(struct body *b, const struct mgx_module *m, struct mgx_module *twin)
{
    if (!twin || !mgx_map_put_pointer(&b->c.modules, m, twin) || !MGX_PUSH(b, b->arena, m))
        return mgx_fail_memory(b->c.diag);
    twin->bypass = m->bypass;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        for (int i = 0; i < ins->mod_count; i++)
            if (!mgx_map_find_pointer(&b->c.modules, ins->mod[i]))
                TRY(add_body(b, ins->mod[i], mgx_program_add_module(b->c.to, ins->mod[i]->name)));
    return MGX_OK;
}

static bool is_constant(const struct mgx_ins *ins)
{
    const bool view = (ins->op->flags & MGX_OP_VIEW) && ins->in_count == 1 && !ins->mod_count;
    return ins->literal || (view && ins->in[0]->literal);
}

// What an instruction of another module is here.
static enum mgx_status bring(struct body *b, const struct mgx_ins *ins)
{
    struct mgx_module *main = mgx_program_main(b->c.to);
    if (mgx_map_find_pointer(&b->c.twins, ins))
        return MGX_OK;
    if (is_constant(ins)) {
        for (int i = 0; i < ins->in_count; i++)
            TRY(bring(b, ins->in[i]));
        TRY(copy_ins(&b->c, ins, main));
        return copy_edges(&b->c, ins);
    }
    char name[32];
    snprintf(name, sizeof name, "#outside_%d", b->outside_count);
    struct mgx_ins *param = mgx_add_parameter(main, name, &ins->shape);
    b->outside[b->outside_count++] = ins;
    return param && mgx_map_put_pointer(&b->c.twins, ins, param) ? MGX_OK
                                                                 : mgx_fail_memory(b->c.diag);
}

static enum mgx_status bring_all(struct body *b)
{
    int most = 0;
    for (int64_t k = 0; k < b->count; k++)
        for (const struct mgx_ins *ins = b->v[k]->first; ins; ins = ins->next)
            most += ins->in_count;
    b->outside = MGX_NEW_ARRAY(b->arena, const struct mgx_ins *, most);
    if (!b->outside)
        return mgx_fail_memory(b->c.diag);
    for (int64_t k = 0; k < b->count; k++)
        for (const struct mgx_ins *ins = b->v[k]->first; ins; ins = ins->next)
            for (int i = 0; i < ins->in_count; i++)
                if (!mgx_map_find_pointer(&b->c.modules, ins->in[i]->owner))
                    TRY(bring(b, ins->in[i]));
    return MGX_OK;
}

static enum mgx_status copy_body(struct body *b, const struct mgx_module *m)
{
    TRY(add_body(b, m, mgx_program_main(b->c.to)));
    b->c.to->parameter_count = m->program->parameter_count; // those brought come behind its own
    TRY(bring_all(b));
    for (int64_t k = 0; k < b->count; k++)
        for (const struct mgx_ins *ins = b->v[k]->first; ins; ins = ins->next)
            TRY(copy_ins(&b->c, ins, mgx_map_find_pointer(&b->c.modules, b->v[k])));
    for (int64_t k = 0; k < b->count; k++)
        for (const struct mgx_ins *ins = b->v[k]->first; ins; ins = ins->next)
            TRY(copy_edges(&b->c, ins));
    return mgx_program_status(b->c.to, b->c.diag);
}

enum mgx_status mgx_program_of_body(struct mgx_program **out, const struct mgx_module *body,
                                    struct mgx_arena *arena, const struct mgx_ins ***outside,
                                    int *count, struct mgx_diag *diag)
{
    *out = NULL;
    struct body b = {.c = {.diag = diag}, .arena = arena};
    TRY(mgx_program_create(&b.c.to, body->program->ops, diag));
    const enum mgx_status status = copy_body(&b, body);
    mgx_map_fini(&b.c.twins);
    mgx_map_fini(&b.c.modules);
    if (status != MGX_OK) {
        mgx_program_destroy(b.c.to);
        return status;
    }
    assert(keeps_literals(b.c.to));
    *outside = b.outside;
    *count = b.outside_count;
    *out = b.c.to;
    return MGX_OK;
}

// --- compaction and backups ---

// What was inside the copy's modules is inside their homes.
static void move_home(struct mgx_program *copy, struct mgx_module *const *homes)
{
    for (int i = 0; i < copy->module_count; i++)
        copy->modules[i]->home = homes[i];
    for (int i = 0; i < copy->module_count; i++)
        for (struct mgx_ins *ins = copy->modules[i]->first; ins; ins = ins->next) {
            ins->owner = ins->owner->home;
            for (int k = 0; k < ins->mod_count; k++)
                ins->mod[k] = ins->mod[k]->home;
        }
}

static void settle(struct mgx_program *p, struct mgx_program *copy, int i, struct mgx_module *home)
{
    assert(home->program == p); // a module stays where it is
    *home = *copy->modules[i];
    home->program = p;
    home->home = NULL;
    copy->modules[i] = home;
    mgx_map_put(&copy->module_names, home->name, home); // overwriting cannot fail
}

// The content of `copy` becomes that of p: module i moves into homes[i], and what is not part of
// the IR stays. Takes the copy; cannot fail.
static void adopt(struct mgx_program *p, struct mgx_program *copy, struct mgx_module *const *homes)
{
    assert(copy != p && copy->module_count > 0);
    move_home(copy, homes);
    for (int i = 0; i < copy->module_count; i++)
        settle(p, copy, i, homes[i]);
    struct mgx_program old = *p;
    copy->executable = p->executable;
    copy->destroy_executable = p->destroy_executable;
    copy->carry = p->carry;
    copy->generation = p->generation + 1;
    old.executable = NULL;
    old.carry = NULL;
    old.module_arena = copy->module_arena;
    copy->module_arena = p->module_arena;
    *p = *copy;
    *copy = old;
    mgx_program_destroy(copy);
}

enum mgx_status mgx_program_compact(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_program *copy;
    TRY(mgx_program_clone(&copy, p, diag));
    adopt(p, copy, p->modules);
    return MGX_OK;
}

enum mgx_status mgx_program_backup(struct mgx_program **out, const struct mgx_program *p,
                                   struct mgx_diag *diag)
{
    TRY(mgx_program_clone(out, p, diag));
    struct mgx_program *copy = *out;
    copy->homes =
        mgx_arena_memdup(&copy->arena, p->modules, (size_t)p->module_count * sizeof *copy->homes);
    if (copy->homes)
        return MGX_OK;
    mgx_program_destroy(copy);
    *out = NULL;
    return mgx_fail_memory(diag);
}

void mgx_program_restore(struct mgx_program *p, struct mgx_program *backup)
{
    assert(backup->homes && backup->module_count <= p->module_count);
    struct mgx_module **homes = backup->homes;
    for (int i = 0; i < p->module_count; i++) { // those that came since end as empty shells
        struct mgx_module *m = p->modules[i];
        m->name = "";
        m->first = m->last = NULL;
        m->count = 0;
    }
    backup->homes = NULL;
    adopt(p, backup, homes);
}
