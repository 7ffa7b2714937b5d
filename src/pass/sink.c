// SPDX-License-Identifier: MIT
// Views sink past other work, towards the results, so that opposite ones meet and cancel, and so
// that pointwise work stands next to the product or convolution before it.
//
//     op(view(x), view(y), c)   =>  view(op(x, y, view^-1(c)))     pointwise; view moves no values
//     reduce(transpose(x))      =>  transpose(reduce(x))
//     softmax(transpose(x))     =>  transpose(softmax(x))          also logsoftmax, argmax, argmin
//     concat(transpose(x)...)   =>  transpose(concat(x...))
//     slice(transpose(x))       =>  transpose(slice(x))
//
// view is transpose, reshape, squeeze, unsqueeze or flatten. Other operands of the pointwise
// operator must be constants, or broadcasts that stay broadcasts under the inverse.
#include "pass/algebra.h"
#include "pass/emit.h"
#include "pass/view.h"

enum { MAX_INPUTS = 16 };

// --- pointwise ---

static bool is_movable(const struct mgx_ins *ins, const struct mgx_module *m)
{
    return ins->owner == m && mgx_is_reshaper(ins) && !mgx_is(ins, &mgx_op_multibroadcast) &&
           !mgx_is(ins, &mgx_op_broadcast) && !mgx_is(ins, &mgx_op_identity) &&
           !mgx_is(ins, &mgx_op_contiguous) && mgx_shape_elements(&ins->shape) > 0;
}

static bool same_lens(const struct mgx_shape *a, const struct mgx_shape *b)
{
    return a->rank == b->rank && mgx_shape_same_lens(a, b);
}

static bool is_like(const struct mgx_ins *ins, const struct mgx_ins *view)
{
    if (ins->in_count != 1 || !is_movable(ins, view->owner) ||
        !same_lens(&ins->in[0]->shape, &view->in[0]->shape))
        return false;
    // Two transposes may give the same lengths and yet differ.
    const bool transposes = mgx_is(ins, &mgx_op_transpose) || mgx_is(view, &mgx_op_transpose);
    return !transposes || (ins->op == view->op && mgx_attr_equal(ins->op, ins->attr, view->attr));
}

// A broadcast seen through the inverse of the view, if that is a broadcast again.
static bool undo_spread(struct mgx_ins *ins, const struct mgx_ins *view, struct mgx_view *v,
                        struct mgx_view_plan *plan)
{
    return (mgx_is(ins, &mgx_op_multibroadcast) || mgx_is(ins, &mgx_op_broadcast)) &&
           mgx_is_reshaper(ins) && mgx_view_start(v, &ins->in[0]->shape) &&
           mgx_view_apply(v, ins) && mgx_view_apply_inverse(v, view) && mgx_view_plan(v, plan) &&
           !mgx_view_copies(plan);
}

static struct mgx_ins *undo(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_ins *view)
{
    struct mgx_view v;
    struct mgx_view_plan plan;
    double value;
    if (is_like(ins, view))
        return ins->in[0];
    if (mgx_splat_value(ins, &value)) {
        struct mgx_shape like = mgx_shape_retype(&view->in[0]->shape, ins->shape.type);
        return mgx_emit_splat(at, &like, value);
    }
    if (undo_spread(ins, view, &v, &plan))
        return mgx_view_emit(at, ins->in[0], &v, &plan);
    if (!mgx_view_start(&v, &ins->shape) || !mgx_view_apply_inverse(&v, view) ||
        !mgx_view_plan(&v, &plan))
        return NULL;
    return mgx_view_emit(at, ins, &v, &plan);
}

static bool can_undo(const struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_ins *view)
{
    struct mgx_view v;
    struct mgx_view_plan plan;
    double value;
    if (is_like(ins, view) || mgx_splat_value(ins, &value) || undo_spread(ins, view, &v, &plan))
        return true;
    return mgx_is_constant(r->module, ins) && mgx_view_start(&v, &ins->shape) &&
           mgx_view_apply_inverse(&v, view) && mgx_view_plan(&v, &plan);
}

// The view that sinks: the one of an input that is no constant. With a reshape and a transpose
// among the inputs neither is like the other.
static struct mgx_ins *find_view(const struct mgx_rewriter *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++)
        if (ins->in[i]->in_count == 1 && is_movable(ins->in[i], ins->owner) &&
            !mgx_is_constant(r->module, ins->in[i]))
            return ins->in[i];
    return NULL;
}

static struct mgx_ins *place(struct mgx_ins *at, struct mgx_ins *y, const struct mgx_ins *view)
{
    return mgx_is(view, &mgx_op_transpose)
               ? mgx_emit_again(at, view, &y, 1)
               : mgx_emit_reshape(at, y, view->shape.lens, view->shape.rank);
}

static struct mgx_ins *sink_pointwise(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *in[MAX_INPUTS];
    struct mgx_ins *view = find_view(r, ins);
    if (!view || ins->in_count > MAX_INPUTS || ins->mod_count || mgx_is(ins, &mgx_op_contiguous) ||
        mgx_is(ins, &mgx_op_layout))
        return NULL;
    for (int i = 0; i < ins->in_count; i++)
        if (!can_undo(r, ins->in[i], view))
            return NULL;
    for (int i = 0; i < ins->in_count; i++)
        if (!(in[i] = undo(ins, ins->in[i], view)))
            return NULL;
    return place(ins, mgx_emit_again(ins, ins, in, ins->in_count), view);
}

// --- operators with axes, under a transpose ---

static bool read_permutation(const struct mgx_ins *t, int *out)
{
    const struct mgx_ints p = mgx_ins_ints(t, "permutation");
    for (int i = 0; i < p.count; i++)
        out[i] = (int)(p.v[i] < 0 ? p.v[i] + p.count : p.v[i]);
    return p.count == t->shape.rank;
}

static int64_t from_end(int64_t axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

static struct mgx_ins *sink_axis(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)r;
    int permutation[MGX_MAX_RANK];
    struct mgx_ins *t = mgx_var(m, 't');
    if (t->in_count != 1 || ins->shape.rank != t->shape.rank || !read_permutation(t, permutation))
        return NULL;
    const int64_t axis = permutation[from_end(mgx_ins_int(ins, "axis"), t->shape.rank)];
    struct mgx_attr attrs[] = {mgx_int("axis", axis), {0}, {0}};
    if (mgx_field_find(ins->op, "select_last_index")) // of argmax and argmin
        attrs[1] = mgx_int("select_last_index", mgx_ins_int(ins, "select_last_index"));
    struct mgx_ins *y = mgx_emit_before(ins, ins->op, attrs, MGX_IN(t->in[0]));
    return mgx_emit_again(ins, t, &y, 1);
}

static struct mgx_ins *sink_reduce(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    int permutation[MGX_MAX_RANK];
    int64_t axes[MGX_MAX_RANK];
    struct mgx_ins *t = mgx_var(m, 't');
    const struct mgx_ints old = mgx_ins_ints(ins, "axes");
    if (ins->in_count != 1 || t->in_count != 1 || !read_permutation(t, permutation))
        return NULL;
    bool reduced[MGX_MAX_RANK] = {false};
    for (int i = 0; i < old.count; i++)
        reduced[permutation[from_end(old.v[i], t->shape.rank)]] = true;
    int count = 0; // in rising order, so that equal reductions look equal
    for (int d = 0; d < t->shape.rank; d++)
        if (reduced[d])
            axes[count++] = d;
    struct mgx_ins *y =
        mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_ints("axes", axes, count)), MGX_IN(t->in[0]));
    return mgx_emit_again(ins, t, &y, 1);
}

static struct mgx_ins *sink_slice(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r;
    int permutation[MGX_MAX_RANK];
    int64_t axes[MGX_MAX_RANK];
    struct mgx_ins *t = mgx_var(m, 't');
    const struct mgx_ints old = mgx_ins_ints(ins, "axes"), starts = mgx_ins_ints(ins, "starts"),
                          ends = mgx_ins_ints(ins, "ends");
    if (ins->in_count != 1 || t->in_count != 1 || old.count != starts.count ||
        !read_permutation(t, permutation))
        return NULL;
    for (int i = 0; i < old.count; i++)
        axes[i] = permutation[from_end(old.v[i], t->shape.rank)];
    struct mgx_ins *y = mgx_emit_before(ins, &mgx_op_slice,
                                        MGX_ATTRS(mgx_ints("axes", axes, old.count),
                                                  mgx_ints("starts", starts.v, starts.count),
                                                  mgx_ints("ends", ends.v, ends.count)),
                                        MGX_IN(t->in[0]));
    return mgx_emit_again(ins, t, &y, 1);
}

static struct mgx_ins *sink_concat(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)m;
    int permutation[MGX_MAX_RANK];
    struct mgx_ins *first = ins->in[0];
    if (!mgx_is(first, &mgx_op_transpose) || !read_permutation(first, permutation))
        return NULL;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_is(ins->in[i], &mgx_op_transpose) ||
            !mgx_attr_equal(first->op, first->attr, ins->in[i]->attr))
            return NULL;
    struct mgx_ins **in = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, ins->in_count);
    for (int i = 0; in && i < ins->in_count; i++)
        in[i] = ins->in[i]->in[0];
    if (!in)
        return NULL;
    const int axis = permutation[from_end(mgx_ins_int(ins, "axis"), ins->shape.rank)];
    struct mgx_ins *y = mgx_emit_concat(ins, in, ins->in_count, axis);
    return mgx_emit_again(ins, first, &y, 1);
}

static const struct mgx_rule rules[] = {
    {"%pointwise => view(op(x, y, view^-1(c))) for op(view(x), view(y), c)", MGX_IF_STATIC,
     .rewrite = sink_pointwise},
    {"softmax|logsoftmax|argmax|argmin(t:transpose) => transpose(op(x))", .rewrite = sink_axis},
    {"%reduce(t:transpose) => transpose(op(x))", .rewrite = sink_reduce},
    {"slice(t:transpose) => transpose(slice(x))", .rewrite = sink_slice},
    {"concat => transpose(concat(x...)) for concat(transpose(x)...)", .rewrite = sink_concat},
};

const struct mgx_rules mgx_rules_sink = {rules, MGX_COUNT(rules)};
