// SPDX-License-Identifier: MIT
// The way from the scores back to the product, and the slice before it.
#include "generate/last.h"

#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"
#include "pass/engine/constant.h"
#include "pass/engine/walk.h"

enum { STEPS = 12 }; // element-wise operators behind the product, at most

static bool is_elementwise(const struct mgx_ins *ins)
{
    return mgx_pointwise_find(ins->op) || mgx_is(ins, &mgx_op_convert);
}

// Has it one value for all tokens? A constant, or one that is broadcast to a shape.
static bool is_same_for_all(const struct mgx_module *m, struct mgx_ins *ins)
{
    return mgx_is_constant(m, ins) ||
           (mgx_is(ins, &mgx_op_multibroadcast) && mgx_is_constant(m, ins->in[0]));
}

// Is it read by `by` alone, whatever else asks for its shape?
static bool feeds_only(const struct mgx_ins *ins, const struct mgx_ins *by)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user != by && !(mgx_is(use->user, &mgx_op_multibroadcast) && use->slot > 0))
            return false;
    return true;
}

// The one input of an element-wise instruction that differs from token to token; NULL: several do.
static struct mgx_ins *varying_input(const struct mgx_module *m, struct mgx_ins *ins)
{
    struct mgx_ins *found = NULL;
    for (int i = 0; i < ins->in_count; i++) {
        if (is_same_for_all(m, ins->in[i]))
            continue;
        if (found)
            return NULL;
        found = ins->in[i];
    }
    return found && feeds_only(found, ins) ? found : NULL;
}

static struct mgx_ins *find_product(const struct mgx_module *m, struct mgx_ins *ins)
{
    for (int i = 0; ins && i < STEPS && is_elementwise(ins); i++)
        ins = varying_input(m, ins);
    return ins && mgx_is(ins, &mgx_op_dot) ? ins : NULL;
}

// What is multiplied, before it was broadcast for the product.
static struct mgx_ins *left_of(const struct mgx_ins *dot)
{
    return mgx_is(dot->in[0], &mgx_op_broadcast_for_dot) ? dot->in[0]->in[0] : dot->in[0];
}

static bool suits(const struct mgx_module *m, const struct mgx_ins *dot)
{
    const struct mgx_ins *x = left_of(dot);
    struct mgx_ins *w = dot->in[1];
    if (mgx_is(w, &mgx_op_broadcast_for_dot))
        w = w->in[0];
    return x->shape.rank == 3 && !x->shape.unranked && !mgx_shape_is_static(&x->shape) &&
           x->shape.dims[1].min != x->shape.dims[1].max && mgx_is_constant(m, w);
}

static void insert_slice(struct mgx_ins *dot, int64_t count)
{
    struct mgx_ins *x = left_of(dot), *where = x == dot->in[0] ? dot : dot->in[0];
    if (mgx_is(dot->in[1], &mgx_op_broadcast_for_dot) && dot->in[1]->in[1] == x)
        mgx_move_before(dot->in[1], dot); // it may stand before the first
    struct mgx_ins *last = mgx_emit_before(where, &mgx_op_slice,
                                           MGX_ATTRS(mgx_ints("axes", (int64_t[]){1}, 1),
                                                     mgx_ints("starts", &(int64_t){-count}, 1),
                                                     mgx_ints("ends", &(int64_t){INT64_MAX}, 1)),
                                           MGX_IN(x));
    if (!last)
        return;
    mgx_copy_origin(last, dot);
    for (int i = 0; i < 2; i++) {
        if (dot->in[i] == x)
            mgx_set_input(dot, i, last);
        for (int k = 0; mgx_is(dot->in[i], &mgx_op_broadcast_for_dot) && k < 2; k++)
            if (dot->in[i]->in[k] == x)
                mgx_set_input(dot->in[i], k, last);
    }
}

static enum mgx_status refresh(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_arena scratch;
    mgx_arena_init(&scratch);
    enum mgx_status status = mgx_program_status(p, diag);
    if (status == MGX_OK)
        status = mgx_refresh_shapes(p, &scratch, diag);
    mgx_arena_fini(&scratch);
    return status;
}

enum mgx_status mgx_keep_last_scores(struct mgx_program *p, int result, int64_t count, bool *done,
                                     struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_program *backup = NULL;
    *done = false;
    mgx_mark_constants(m);
    struct mgx_ins *dot = find_product(m, mgx_module_result(m, result));
    if (!dot || mgx_use_count(dot) == 0 || !suits(m, dot))
        return MGX_OK;
    TRY(mgx_program_backup(&backup, p, diag));
    struct mgx_diag own;
    mgx_diag_clear(&own);
    insert_slice(dot, count);
    const enum mgx_status status = refresh(p, &own);
    if (status == MGX_OK) {
        mgx_program_destroy(backup);
        *done = true;
        return MGX_OK;
    }
    mgx_program_restore(p, backup);
    return mgx_status_is_final(status) ? mgx_fail(diag, status, "%s", own.text) : MGX_OK;
}
