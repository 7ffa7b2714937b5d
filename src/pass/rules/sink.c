// SPDX-License-Identifier: MIT
// Views sink past other work, towards the results, so that opposite ones meet and cancel, and so
// that pointwise work stands next to the product or convolution before it.
//
//     op(view(x), view(y), c)   =>  view(op(x, y, view^-1(c)))     pointwise; view moves no values
//     reduce(view(x))           =>  view(reduce(x))                along axes that x has too
//     softmax(view(x))          =>  view(softmax(x))               also logsoftmax; argmax, argmin
//                                                                  under a transpose
//     concat(transpose(x)...)   =>  transpose(concat(x...))
//     slice(view(x))            =>  view(slice(x))                 along an axis the view keeps
//     pad(transpose(x))         =>  transpose(pad(x))
//
// view is transpose, reshape, squeeze, unsqueeze or flatten. Other operands of the pointwise
// operator must be constants, or broadcasts that stay broadcasts under the inverse; constants
// that a broadcast makes large are not written out for it, but for one of the view's last axes
// that are one axis before it (scales of queries, keys and values). Where the view only adds
// axes to a product, any row-major operand will do.
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/rules/rules.h"

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

// The first of the view's axes that its source has as its last one, together; -1: there is none.
// Only where what is spread is a constant that varies along those axes alone, and is few values.
static int columns_of(const struct mgx_ins *ins, const struct mgx_ins *view)
{
    enum { FEW = 1 << 16 };
    const struct mgx_shape *x = &view->in[0]->shape, *y = &view->shape;
    const bool spreads = mgx_is(ins, &mgx_op_multibroadcast) || mgx_is(ins, &mgx_op_broadcast);
    int64_t columns = 1;
    int first = y->rank;
    if (!spreads || !ins->in[0]->literal || mgx_is(view, &mgx_op_transpose) || x->rank == 0 ||
        x->lens[x->rank - 1] > FEW || !same_lens(&ins->shape, y))
        return -1;
    while (first > 0 && columns < x->lens[x->rank - 1])
        columns *= y->lens[--first];
    bool alone = columns == x->lens[x->rank - 1] && y->rank - first > 1;
    for (int d = 0; d < first; d++)
        alone = alone && (ins->shape.lens[d] == 1 || ins->shape.strides[d] == 0);
    return alone ? first : -1;
}

// Such a constant, a value for each column.
static struct mgx_ins *undo_columns(struct mgx_ins *at, const struct mgx_ins *ins,
                                    const struct mgx_ins *view, int first)
{
    const struct mgx_shape *x = &view->in[0]->shape, *from = &ins->shape;
    const struct mgx_shape vector = mgx_shape_vector(from->type, x->lens[x->rank - 1]);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &vector, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t c = 0; c < vector.lens[0]; c++) {
        int64_t rest = c, place = 0;
        for (int d = from->rank - 1; d >= first; rest /= from->lens[d--])
            place += rest % from->lens[d] * from->strides[d];
        mgx_store_double(from->type, t.data, c,
                         mgx_load_double(from->type, ins->in[0]->literal->data, place));
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return mgx_emit_multibroadcast(at, literal, x->lens, x->rank);
}

static struct mgx_ins *undo(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_ins *view)
{
    struct mgx_view v;
    struct mgx_view_plan plan;
    double value;
    const int first = columns_of(ins, view);
    if (is_like(ins, view))
        return ins->in[0];
    if (mgx_splat_value(ins, &value)) {
        struct mgx_shape like = mgx_shape_retype(&view->in[0]->shape, ins->shape.type);
        return mgx_emit_splat(at, &like, value);
    }
    if (undo_spread(ins, view, &v, &plan))
        return mgx_view_emit(at, ins->in[0], &v, &plan);
    if (first >= 0)
        return undo_columns(at, ins, view, first);
    if (!mgx_view_start(&v, &ins->shape) || !mgx_view_apply_inverse(&v, view) ||
        !mgx_view_plan(&v, &plan))
        return NULL;
    return mgx_view_emit(at, ins, &v, &plan);
}

// Does the view only add axes to the result of work that others join, so that any row-major operand
// may just as well be seen without them? Towards fewer axes only: so this ends.
static bool adds_axes(const struct mgx_ins *view)
{
    const struct mgx_ins *x = view->in[0];
    return !mgx_is(view, &mgx_op_transpose) && x->shape.rank < view->shape.rank &&
           ((x->op->flags & MGX_OP_POINTWISE) || mgx_is(x, &mgx_op_dot));
}

// A constant that a broadcast makes large, and that would have to be written out to be seen through
// the view: repeated values would be joined to one axis with others (a scale of channels, under a
// reshape that puts groups of them in one row with their pixels).
static bool grows(struct mgx_ins *ins, const struct mgx_ins *view)
{
    enum { SMALL = 4096 };
    struct mgx_view v;
    struct mgx_view_plan plan;
    while ((ins->op->flags & MGX_OP_POINTWISE) && ins->in_count) // clipped and converted, say
        ins = ins->in[0];
    const bool spreads = mgx_is(ins, &mgx_op_multibroadcast) || mgx_is(ins, &mgx_op_broadcast);
    return spreads && mgx_shape_elements(&ins->shape) > SMALL && mgx_is_reshaper(ins) &&
           mgx_view_start(&v, &ins->in[0]->shape) && mgx_view_apply(&v, ins) &&
           mgx_view_apply_inverse(&v, view) && mgx_view_plan(&v, &plan) && plan.join_after;
}

static bool can_undo(const struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_ins *view)
{
    struct mgx_view v;
    struct mgx_view_plan plan;
    double value;
    if (is_like(ins, view) || mgx_splat_value(ins, &value) || undo_spread(ins, view, &v, &plan))
        return true;
    if (mgx_is_constant(r->module, ins) && columns_of(ins, view) >= 0)
        return true;
    const bool seen_without = adds_axes(view) && mgx_shape_is_standard(&ins->shape);
    return (seen_without || mgx_is_constant(r->module, ins)) && !grows(ins, view) &&
           mgx_view_start(&v, &ins->shape) && mgx_view_apply_inverse(&v, view) &&
           mgx_view_plan(&v, &plan);
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
    return mgx_wrap_axis(axis, rank);
}

// The source axis that axis d of the view is, whole and alone; -1 if there is none.
static int source_axis(const struct mgx_view *v, int d)
{
    if (v->begin[d + 1] != v->begin[d] + 1)
        return -1;
    const struct mgx_factor f = v->factor[v->begin[d]];
    for (int e = 0; e < v->source.rank; e++)
        if (v->source.lens[e] == f.length && v->source.strides[e] == f.stride && f.stride)
            return e;
    return -1;
}

static bool describe(struct mgx_view *v, const struct mgx_ins *view)
{
    return mgx_is_reshaper(view) && mgx_view_start(v, &view->in[0]->shape) &&
           mgx_view_apply(v, view);
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

// The axes of the source that axis d of the view is made of, flagged; false if it takes parts of
// them.
static bool flag_source_axes(const struct mgx_view *v, int d, bool *flags)
{
    for (int i = v->begin[d]; i < v->begin[d + 1]; i++) {
        bool whole = false;
        for (int e = 0; e < v->source.rank; e++)
            if (v->source.lens[e] == v->factor[i].length &&
                v->source.strides[e] == v->factor[i].stride)
                whole = flags[e] = true;
        if (!whole)
            return false;
    }
    return true;
}

// A reduction over axes that the source has too.
static struct mgx_ins *sink_reduce_view(struct mgx_rewriter *r, struct mgx_ins *ins,
                                        const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *view = mgx_var(m, 't');
    struct mgx_view v;
    bool reduced[MGX_MAX_RANK] = {false}, flags[MGX_MAX_RANK] = {false};
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    const struct mgx_ints old = mgx_ins_ints(ins, "axes");
    if (ins->in_count != 1 || !describe(&v, view))
        return NULL;
    for (int i = 0; i < old.count; i++)
        reduced[from_end(old.v[i], view->shape.rank)] = true;
    for (int d = 0; d < view->shape.rank; d++)
        if ((reduced[d] || !old.count) && !flag_source_axes(&v, d, flags))
            return NULL;
    for (int e = 0; e < v.source.rank; e++)
        if (flags[e])
            axes[count++] = e;
    if (!count) // lengths of 1 alone; another rule takes that
        return NULL;
    struct mgx_ins *y = mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_ints("axes", axes, count)),
                                        MGX_IN(view->in[0]));
    return mgx_emit_reshape(ins, y, ins->shape.lens, ins->shape.rank);
}

// softmax and its like along an axis that the source has too.
static struct mgx_ins *sink_axis_view(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *view = mgx_var(m, 't');
    struct mgx_view v;
    if (ins->in_count != 1 || !describe(&v, view))
        return NULL;
    const int axis = source_axis(&v, (int)from_end(mgx_ins_int(ins, "axis"), view->shape.rank));
    if (axis < 0)
        return NULL;
    struct mgx_ins *y =
        mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(view->in[0]));
    return mgx_emit_reshape(ins, y, ins->shape.lens, ins->shape.rank);
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

// What is put around an image of bytes stays beside the convolution, which may do it on its way.
static bool pads_an_image(const struct mgx_ins *pad)
{
    for (const struct mgx_use *use = pad->uses; use; use = use->next)
        if (use->user->op == &mgx_op_quant_convolution && use->user->in[0] == pad)
            return true;
    return false;
}

static struct mgx_ins *sink_pad(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)r;
    int permutation[MGX_MAX_RANK];
    int64_t pads[2 * MGX_MAX_RANK];
    struct mgx_ins *t = mgx_var(m, 't');
    const struct mgx_ints old = mgx_ins_ints(ins, "pads");
    const int rank = t->shape.rank;
    if (ins->in_count != 1 || t->in_count != 1 || old.count != 2 * rank || pads_an_image(ins) ||
        !read_permutation(t, permutation))
        return NULL;
    for (int i = 0; i < old.count; i++)
        pads[permutation[i % rank] + i / rank * rank] = old.v[i];
    struct mgx_ins *y = mgx_emit_before(ins, &mgx_op_pad,
                                        MGX_ATTRS(mgx_int("mode", mgx_ins_int(ins, "mode")),
                                                  mgx_ints("pads", pads, old.count),
                                                  mgx_real("value", mgx_ins_real(ins, "value"))),
                                        MGX_IN(t->in[0]));
    return mgx_emit_again(ins, t, &y, 1);
}

static bool is_outermost(const struct mgx_shape *s, int axis)
{
    for (int d = 0; d < axis; d++)
        if (s->lens[d] != 1)
            return false;
    return true;
}

// A slice of a reshape along an axis that the reshape leaves whole, unless the slice would then be
// no contiguous piece and the reshape would have to copy it.
static struct mgx_ins *sink_reshape(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *view = mgx_var(m, 't');
    struct mgx_view v;
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes"), starts = mgx_ins_ints(ins, "starts"),
                          ends = mgx_ins_ints(ins, "ends");
    if (ins->in_count != 1 || axes.count != 1 || starts.count != 1 || ends.count != 1 ||
        !describe(&v, view))
        return NULL;
    const int64_t at = from_end(axes.v[0], view->shape.rank), length = view->shape.lens[at];
    const int axis = source_axis(&v, (int)at);
    const bool free = mgx_is(view, &mgx_op_squeeze) || mgx_is(view, &mgx_op_unsqueeze) ||
                      !mgx_shape_is_standard(&view->in[0]->shape);
    if (axis < 0 || !(free || is_outermost(&view->in[0]->shape, axis)))
        return NULL;
    const int64_t start = starts.v[0] < 0 ? mgx_max_i64(starts.v[0] + length, 0) : starts.v[0];
    struct mgx_ins *y = mgx_emit_slice(ins, view->in[0], axis, start, start + ins->shape.lens[at]);
    return mgx_emit_reshape(ins, y, ins->shape.lens, ins->shape.rank);
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
    {"%pointwise ~> view(op(x, y, view^-1(c))) for op(view(x), view(y), c)", MGX_IF_STATIC,
     .rewrite = sink_pointwise},
    {"softmax|logsoftmax|argmax|argmin(t:transpose) ~> transpose(op(x))", .rewrite = sink_axis},
    {"softmax|logsoftmax(t:reshape|squeeze|unsqueeze|flatten) ~> reshape(op(x))", MGX_IF_STATIC,
     .rewrite = sink_axis_view},
    {"%reduce(t:transpose) ~> transpose(op(x))", .rewrite = sink_reduce},
    {"%reduce(t:reshape|squeeze|unsqueeze|flatten) ~> reshape(op(x))", MGX_IF_STATIC,
     .rewrite = sink_reduce_view},
    {"slice(t:transpose) ~> transpose(slice(x))", .rewrite = sink_slice},
    {"pad(t:transpose) ~> transpose(pad(x))", .rewrite = sink_pad},
    {"slice(t:reshape|squeeze|unsqueeze|flatten) ~> reshape(slice(x))", MGX_IF_STATIC,
     .rewrite = sink_reshape},
    {"concat ~> transpose(concat(x...)) for concat(transpose(x)...)", .rewrite = sink_concat},
};

const struct mgx_rules mgx_rules_sink = {rules, MGX_COUNT(rules)};
