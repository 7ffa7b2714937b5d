// SPDX-License-Identifier: MIT
// Removes what nobody reads: instructions first, then modules that nobody uses.
//
//     y = op(x), y unread, op without effects   =>   (nothing)
//
// Parameters stay: they are the signature. Backwards over each module, so one sweep finds chains of
// any length; bodies before their users, because a body reads values of the modules around it.
// O(instructions + modules), times the depth of bodies that die.
#include "pass/engine/walk.h"

#include <assert.h>

static bool sweep(struct mgx_module *m)
{
    assert(m->program);
    bool changed = false;
    for (struct mgx_ins *ins = m->last, *prev = NULL; ins; ins = prev) {
        prev = ins->prev;
        if (!mgx_is_removable(ins))
            continue;
        mgx_remove(ins);
        ins->index = MGX_REMOVED;
        changed = true;
    }
    return changed;
}

// Drops the instructions of unused modules, users first: a body reads values of modules around it.
static void empty_modules(struct mgx_module *const *dead, int count)
{
    assert(count >= 0);
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < count; i++) {
            while (dead[i]->last && !dead[i]->last->uses)
                mgx_remove(dead[i]->last);
            again |= dead[i]->last != NULL;
        }
    }
}

static enum mgx_status remove_unused_modules(struct mgx_pass_call *c, bool *removed)
{
    *removed = false;
    struct mgx_program *p = c->program;
    int used_count = 0, dead_count = 0;
    struct mgx_module **used = mgx_modules_bodies_first(p, c->scratch, &used_count);
    struct mgx_module **dead = MGX_NEW_ARRAY(c->scratch, struct mgx_module *, p->module_count);
    if (!used || !dead)
        return mgx_fail_memory(c->diag);
    if (used_count == p->module_count)
        return MGX_OK;
    struct mgx_map live = {0};
    bool ok = true;
    for (int i = 0; i < used_count && ok; i++)
        ok = mgx_map_put_pointer(&live, used[i], used[i]);
    for (int i = p->module_count - 1; i > 0 && ok; i--) // newest first: cheapest to take out
        if (!mgx_map_find_pointer(&live, p->modules[i]))
            dead[dead_count++] = p->modules[i];
    mgx_map_fini(&live);
    if (!ok)
        return mgx_fail_memory(c->diag);
    empty_modules(dead, dead_count);
    for (int i = 0; i < dead_count; i++)
        mgx_program_remove_module(p, dead[i]);
    c->changed = *removed = true;
    return MGX_OK;
}

enum mgx_status mgx_remove_dead(struct mgx_pass_call *c)
{
    for (bool again = true; again;) { // a module that went may have been the last reader of others
        int count = 0;
        struct mgx_module **modules = mgx_modules_bodies_first(c->program, c->scratch, &count);
        if (!modules)
            return mgx_fail_memory(c->diag);
        for (int i = 0; i < count; i++)
            c->changed |= sweep(modules[i]);
        TRY(remove_unused_modules(c, &again));
    }
    return MGX_OK;
}
