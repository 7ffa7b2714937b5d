// SPDX-License-Identifier: MIT
// if: one of two bodies, chosen by a boolean; the result is the tuple of the body's results.
//
//     y = cond ? then(args...) : else(args...)
//
// Branches may differ in shape: what is declared is what is true of both. Only the chosen branch
// runs.
#include "op/rule/body.h"

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->mod_count != 2)
        return mgx_fail(c->diag, MGX_INVALID, "if: takes two modules, given %d", c->mod_count);
    for (int i = 0; i < 2; i++)
        TRY(mgx_body_takes(c, c->mod[i], c->in + 1, c->in_count - 1));
    const int count = mgx_module_result_count(c->mod[0]),
              other = mgx_module_result_count(c->mod[1]);
    if (count != other)
        return mgx_fail(c->diag, MGX_INVALID, "if: one branch has %d results, the other %d", count,
                        other);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *a = mgx_body_result(c->mod[0], i),
                               *b = mgx_body_result(c->mod[1], i);
        if (a->type != b->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "if: result %d is %s in one branch, %s in the other", i,
                            mgx_type_name(a->type), mgx_type_name(b->type));
        if (!mgx_shape_join(c->arena, a, b, &sub[i]))
            return mgx_fail_memory(c->diag);
    }
    *out = mgx_shape_tuple(sub, count);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    if (mgx_shape_elements(&c->in[0]->shape) != 1)
        return mgx_fail(c->diag, MGX_INVALID, "if: condition has %lld elements, not one",
                        (long long)mgx_shape_elements(&c->in[0]->shape));
    const bool yes = mgx_load_int(c->in[0]->shape.type, c->in[0]->data, 0) != 0;
    struct mgx_tensor *args = mgx_body_args(c, 1), *results;
    int count;
    if (!args)
        return MGX_NO_MEMORY;
    TRY(mgx_body_run(c, yes ? 0 : 1, args, c->in_count - 1, &results, &count));
    return mgx_body_give(c, results, count);
}

const struct mgx_op mgx_op_if = {
    .name = "if",
    .meaning = "results of the first body where the condition holds, else of the second",
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = shape,
    .compute = compute,
};
