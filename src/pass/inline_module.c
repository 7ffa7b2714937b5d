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

static bool only_members_read(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!mgx_is(use->user, &mgx_op_get_tuple_elem))
            return false;
    return ins->uses != NULL;
}

// Does the body's parameter list fit what it is given, whatever that turns out to be?
static bool fits(struct mgx_arena *scratch, const struct mgx_ins *ins, const struct mgx_module *m,
                 int first)
{
    const int count = ins->in_count - first;
    struct mgx_ins **params = MGX_NEW_ARRAY(scratch, struct mgx_ins *, count);
    if (!params || mgx_module_parameters(m, params, count) != count)
        return false;
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *want = &params[i]->shape, *have = &ins->in[first + i]->shape;
        if (want->type != have->type || want->rank != have->rank ||
            !mgx_shape_same_lens(want, have))
            return false;
    }
    return true;
}

// The body that runs and where its arguments start; NULL if that is open.
static struct mgx_module *certain_body(struct mgx_arena *scratch, const struct mgx_ins *ins,
                                       int *first)
{
    double condition;
    if (mgx_is(ins, &mgx_op_if) && mgx_splat_value(ins->in[0], &condition)) {
        *first = 1;
        struct mgx_module *m = ins->mod[condition == 0];
        return fits(scratch, ins, m, 1) ? m : NULL;
    }
    *first = 0;
    if (mgx_is(ins, &mgx_op_select_module) && ins->mod_count == 1)
        return fits(scratch, ins, ins->mod[0], 0) ? ins->mod[0] : NULL;
    return NULL;
}

static struct mgx_ins *move(struct mgx_ins *ins, struct mgx_ins *before)
{
    if (ins->literal)
        return mgx_add_literal(before->owner, ins->literal);
    struct mgx_ins *moved = mgx_insert(before->owner, before, ins->op, ins->attr, ins->in,
                                       ins->in_count, ins->mod, ins->mod_count);
    return moved;
}

// Every instruction of the body is made again before `ins`, and its readers, bodies within
// included, read that one.
static enum mgx_status splice(struct mgx_pass_call *c, struct mgx_ins *ins, struct mgx_module *m,
                              int first)
{
    const int count = ins->in_count - first;
    struct mgx_ins **params = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, count);
    if (!params)
        return mgx_fail_memory(c->diag);
    mgx_module_parameters(m, params, count);
    for (int i = 0; i < count; i++)
        mgx_replace_uses(params[i], ins->in[first + i]);
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
            int first = 0;
            struct mgx_module *m = ins->mod_count && only_members_read(ins)
                                       ? certain_body(c->scratch, ins, &first)
                                       : NULL;
            if (!m || (intptr_t)mgx_map_find_pointer(users, m) != 1)
                continue;
            TRY(splice(c, ins, m, first));
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
