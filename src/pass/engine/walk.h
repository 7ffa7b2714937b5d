// SPDX-License-Identifier: MIT
// What passes share: visiting modules, erasing what died, running other passes.
#pragma once

#include "base/size.h"
#include "pass/engine/pass.h"

// All modules reachable from main, bodies before the modules that use them, main last. In `arena`;
// NULL when out of memory. Cost: O(instructions).
struct mgx_module **mgx_modules_bodies_first(const struct mgx_program *p, struct mgx_arena *arena,
                                             int *count);

// Infers the shapes of stale instructions, and of those with bodies, in the order of execution: a
// pass may have changed strides upstream of instructions that it does not touch. Fails, naming the
// instruction, when lengths or type of a result would change.
enum mgx_status mgx_refresh_shapes(struct mgx_program *p, struct mgx_arena *scratch,
                                   struct mgx_diag *diag) MGX_NODISCARD;

// The first of the axes that a reduction takes out, when those are all from there to the last; else
// -1.
int mgx_first_reduced(const struct mgx_ins *reduce);
// May this instruction go when nobody reads it? Not parameters, results, or what has effects.
bool mgx_is_removable(const struct mgx_ins *ins);
// Equal inputs give equal results and it has no bodies: may be merged, folded, evaluated early.
bool mgx_is_pure(const struct mgx_ins *ins);
// Is a tuple read, and member by member alone?
static inline bool mgx_only_members_read(const struct mgx_ins *tuple)
{
    for (const struct mgx_use *use = tuple->uses; use; use = use->next)
        if (!mgx_is(use->user, &mgx_op_get_tuple_elem))
            return false;
    return tuple->uses != NULL;
}

// Removes `ins` if nobody reads it, and then whatever only it kept alive; without recursion.
// Removed instructions have index MGX_REMOVED. Instructions of other modules stay (their passes
// remove them).
enum { MGX_REMOVED = -1 };
void mgx_erase_dead(struct mgx_ins *ins);
// Removes everything in the program that nobody reads, unused modules too; dead.c.
enum mgx_status mgx_remove_dead(struct mgx_pass_call *c) MGX_NODISCARD;

// `by` takes the place of `old`, as a module's result too, and `old` goes with what dies with it.
// Types and lengths must agree.
void mgx_replace(struct mgx_ins *old, struct mgx_ins *by);

// Runs a pass, or passes up to NULL that are not disabled, from inside another one, with the
// manager's housekeeping. c->changed is set if any of them changed something.
enum mgx_status mgx_pass_apply(struct mgx_pass_call *c, const struct mgx_pass *pass) MGX_NODISCARD;
enum mgx_status mgx_pass_apply_all(struct mgx_pass_call *c,
                                   const struct mgx_pass *const *passes) MGX_NODISCARD;
