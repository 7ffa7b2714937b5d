// SPDX-License-Identifier: MIT
// Gathers whose indices are known and evenly spaced are views.
//
//     gather(x, {s, s+1, s+2})    =>  slice[s : s+3](x)
//     gather(x, {s, s+k, s+2k})   =>  step[k](slice(x))
//     gather(x, {s, s, s})        =>  multibroadcast(slice(x))
//     gather(x, s)                =>  reshape(slice(x))          a scalar index removes the axis
//
// Holds: all indices lie within the axis; those that do not must fail when the program runs.
#include "pass/engine/emit.h"

#include <assert.h>

#include "pass/rules/rules.h"

// start, start + step, ... of the indices, counted from the front. False if they are not even.
static bool is_even(const int64_t *v, int64_t count, int64_t *start, int64_t *step)
{
    assert(count >= 0 && (v || !count));
    *start = v[0];
    *step = count > 1 ? v[1] - v[0] : 1;
    for (int64_t i = 1; i < count; i++)
        if (v[i] - v[i - 1] != *step)
            return false;
    return true;
}

static const int64_t *read_indices(struct mgx_rewriter *r, const struct mgx_ins *indices,
                                   int64_t length, int64_t count)
{
    int64_t *v = MGX_NEW_ARRAY(r->call->scratch, int64_t, count);
    if (!v)
        return NULL;
    mgx_tensor_to_ints(indices->literal, v);
    for (int64_t i = 0; i < count; i++) {
        if (v[i] < -length || v[i] >= length)
            return NULL;
        v[i] += v[i] < 0 ? length : 0;
    }
    return v;
}

static struct mgx_ins *take_slice(struct mgx_ins *at, struct mgx_ins *x, int axis, int64_t start,
                                  int64_t step, int64_t count)
{
    assert(axis >= 0 && axis < x->shape.rank);
    const int64_t axes[] = {axis};
    if (step == 0) {
        struct mgx_shape wide = mgx_shape_make(x->shape.type, x->shape.rank, x->shape.lens);
        wide.lens[axis] = count;
        x = mgx_emit_slice(at, x, axis, start, start + 1);
        return mgx_emit_multibroadcast(at, x, wide.lens, wide.rank);
    }
    x = mgx_emit_slice(at, x, axis, start, start + (count - 1) * step + 1);
    if (step == 1)
        return x;
    return mgx_emit_before(at, &mgx_op_step,
                           MGX_ATTRS(mgx_ints("axes", axes, 1), mgx_ints("steps", &step, 1)),
                           MGX_IN(x));
}

static struct mgx_ins *gather(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    struct mgx_ins *x = mgx_var(m, 'x'), *indices = mgx_var(m, 'i');
    if (!indices->literal || !mgx_shape_is_static(&x->shape) || x->shape.rank == 0)
        return NULL;
    int64_t axis = mgx_ins_int(ins, "axis"), start, step;
    const int64_t count = mgx_shape_elements(&indices->shape);
    axis += axis < 0 ? x->shape.rank : 0;
    if (axis < 0 || axis >= x->shape.rank || count == 0)
        return NULL;
    const int64_t *v = read_indices(r, indices, x->shape.lens[axis], count);
    if (!v || !is_even(v, count, &start, &step) || step < 0 ||
        (step != 1 && indices->shape.rank != 1))
        return NULL;
    x = take_slice(ins, x, (int)axis, start, step, count);
    return mgx_emit_reshape(ins, x, ins->shape.lens, ins->shape.rank);
}

static const struct mgx_rule rules[] = {
    {"gather(x, i) ~> slice(x), for even i", MGX_IF_STATIC, .rewrite = gather},
};

const struct mgx_rules mgx_rules_index = {rules, MGX_COUNT(rules)};
