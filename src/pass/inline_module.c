// SPDX-License-Identifier: MIT
// Bodies that certainly run, once, join the module around them.
//
//     if(true, a...), [then, else]              =>  what then does
//     select_module(a...), [only one body]      =>  what it does
//     get_tuple_elem[i] of it                   =>  its i-th result
//
// Holds: nobody else uses the body (its instructions move), and a select_module's only body fits
// its inputs for certain. Members are handed to whoever takes them out of the tuple; who reads the
// tuple itself keeps the instruction as it is. From the outermost module inwards, so nested ones
// follow in the next round of the loop below. O(instructions) per level.
#include "op/rule/body.h"

#include <assert.h>

#include "pass/engine/constant.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"

// How many instructions use each module, by module.
static bool count_users(const struct mgx_program *p, struct mgx_map *users)
{
    for (int i = 0; i < p->module_count; i++)
        for (const struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            for (int k = 0; k < ins->mod_count; k++) {
                const intptr_t n = (intptr_t)mgx_map_find_pointer(users, ins->mod[k]);
                if (!mgx_map_put_pointer(users, ins->mod[k], (void *)(n + 1)))
                    return false;
            }
    return true;
}

// A body that certainly runs, and what its parameters are given.
struct certain {
    struct mgx_module *body; // NULL if it is open which one runs
    struct mgx_ins **params, **given;
    int count;
};

// Does the body's parameter list fit what it is given, whatever that turns out to be?
static bool certain_fits(const struct certain *s)
{
    for (int i = 0; i < s->count; i++) {
        const struct mgx_shape *want = &s->params[i]->shape, *have = &s->given[i]->shape;
        if (want->type != have->type || want->rank != have->rank ||
            !mgx_shape_same_lens(want, have))
            return false;
    }
    return true;
}

// The inputs from `first` on, those numbered by `position` if it is there, go to the body.
static struct certain certain_body(struct mgx_arena *scratch, const struct mgx_ins *ins,
                                   struct mgx_module *body, const int *position, int first,
                                   int count)
{
    struct certain s = {.count = count};
    s.params = MGX_NEW_ARRAY(scratch, struct mgx_ins *, count);
    s.given = MGX_NEW_ARRAY(scratch, struct mgx_ins *, count);
    if (!s.params || !s.given || mgx_module_parameters(body, s.params, count) != count)
        return s;
    for (int i = 0; i < count; i++)
        s.given[i] = ins->in[first + (position ? position[i] : i)];
    s.body = certain_fits(&s) ? body : NULL;
    return s;
}

static struct certain find_certain(struct mgx_arena *scratch, const struct mgx_ins *ins)
{
    double condition;
    if (mgx_is(ins, &mgx_op_if) && mgx_splat_value(ins->in[0], &condition)) {
        const int which = condition == 0;
        int count;
        const int *position = mgx_if_arguments(scratch, ins->mod, which, ins->in_count - 1, &count);
        return position ? certain_body(scratch, ins, ins->mod[which], position, 1, count)
                        : (struct certain){0};
    }
    if (mgx_is(ins, &mgx_op_select_module) && ins->mod_count == 1)
        return certain_body(scratch, ins, ins->mod[0], NULL, 0, ins->in_count);
    return (struct certain){0};
}

static struct mgx_ins *move(struct mgx_ins *ins, struct mgx_ins *before)
{
    assert(ins != before);
    if (ins->literal)
        return mgx_add_literal(before->owner, ins->literal);
    struct mgx_ins *moved = mgx_insert(before->owner, before, ins->op, ins->attr, ins->in,
                                       ins->in_count, ins->mod, ins->mod_count);
    return moved;
}

// Every instruction of the body is made again before `ins`, and its readers, bodies within
// included, read that one.
static enum mgx_status splice(struct mgx_pass_call *c, struct mgx_ins *ins,
                              const struct certain *certain)
{
    struct mgx_module *m = certain->body;
    for (int i = 0; i < certain->count; i++)
        mgx_replace_uses(certain->params[i], certain->given[i]);
    MGX_EACH (from, m) {
        if (from->op == &mgx_op_param || from->op == &mgx_op_return || from->op == &mgx_op_comment)
            continue;
        struct mgx_ins *to = move(from, ins);
        if (!to)
            return mgx_program_status(c->program, c->diag);
        if (from == m->last)
            mgx_add_return(m, &to, 1);
        mgx_replace_uses(from, to);
    }
    for (struct mgx_use *use = ins->uses, *next; use; use = next) {
        next = use->next;
        struct mgx_ins *by = mgx_module_result(m, (int)mgx_ins_int(use->user, "index"));
        if (use->user == use->user->owner->last)
            mgx_add_return(use->user->owner, &by, 1);
        mgx_replace_uses(use->user, by);
    }
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status inline_all(struct mgx_pass_call *c, struct mgx_map *users, bool *again)
{
    int count = 0;
    struct mgx_module **modules = mgx_modules_bodies_first(c->program, c->scratch, &count);
    if (!modules)
        return mgx_fail_memory(c->diag);
    for (int i = count - 1; i >= 0; i--)
        MGX_EACH (ins, modules[i]) {
            if (!ins->mod_count || !mgx_only_members_read(ins))
                continue;
            const struct certain s = find_certain(c->scratch, ins);
            if (!s.body || (intptr_t)mgx_map_find_pointer(users, s.body) != 1)
                continue;
            TRY(splice(c, ins, &s));
            *again = true;
        }
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status run(struct mgx_pass_call *c)
{
    enum mgx_status status = MGX_OK;
    for (bool again = true; again && status == MGX_OK;) {
        struct mgx_map users = {0};
        again = false;
        status = count_users(c->program, &users) ? inline_all(c, &users, &again)
                                                 : mgx_fail_memory(c->diag);
        mgx_map_fini(&users);
        // What was spliced is dead now, and so are the bodies that did not run.
        if (status == MGX_OK && again)
            status = mgx_pass_dead_code_elimination.program(c);
    }
    return status;
}

const struct mgx_pass mgx_pass_inline_module = {
    .name = "inline_module",
    .meaning = "puts bodies that certainly run into the module around them",
    .program = run,
};
