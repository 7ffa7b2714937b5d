// SPDX-License-Identifier: MIT
// Work on quantized values is done on the narrow values themselves.
//
//     dot(dq(a, s, p), dq(b, t, q))           =>  dq(quant_dot(a, b, p, q), s t)
//     convolution(dq(x, s, p), dq(w, t, q))   =>  dq(quant_convolution(x, w, p, q), s t)
//     convolution_backwards, likewise         =>  dq(quant_convolution_backwards(x, w, p, q), s t)
//     q(dq(x, s, z), s, z)                    =>  x
//     dot(dq(a, s), dq(b, t)) of fp8          =>  quant_dot(a, b) s t       convolution alike
//     max pooling, slice, step, nearest resize (dq(x, s, z))
//                                             =>  dq(max pooling, slice, step, resize (x), s, z)
//     q(pad[value=0](dq(x, s, z)))            =>  q(dq(pad[value=z](x), s, z))
//     q(concat(dq(x)...), s, z)               =>  concat(q(dq(x), s, z)...)
//     q(concat(dq(x, t, p)...), s, z)         =>  q(dq(concat(x...), T, P), s, z)    T, P: for each place
//                                                 along the axis, where element-wise work alone reads it
//                                                 and some x others too
//
// with dq dequantizelinear and q quantizelinear. x and a have one scale and one zero point, known
// before the run or not; b and w one, or one for each column or output channel; a may have a scale
// for every row. Views between dq and a product are taken over to the narrow values. Sums are then
// exact in int32 instead of rounded in float; where they might not fit, nothing is changed. fp8 is
// for targets that multiply it.
// q after dq is exact: x is the only integer within half a step of what it was dequantized to. The
// pair in the other order loses digits, which is what a quantized model says; it stays.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/rewrite.h"
#include "pass/engine/view.h"

enum { MAX_VIEWS = 8 };

// --- scales and zero points ---

// The instruction that a scale or zero point is spread from, where it is one value; else NULL.
static struct mgx_ins *single(struct mgx_ins *ins)
{
    struct mgx_spread s;
    if (!mgx_shape_is_static(&ins->shape))
        return NULL;
    while (mgx_shape_elements(&ins->shape) != 1) {
        if (!mgx_spread_of(ins, &s))
            return NULL;
        ins = s.core;
    }
    return ins;
}

static bool same_value(struct mgx_ins *a, struct mgx_ins *b)
{
    double x, y;
    struct mgx_ins *p = single(a), *q = single(b);
    return a == b || (p && p == q) || (mgx_splat_value(a, &x) && mgx_splat_value(b, &y) && x == y);
}

static bool is_zero(const struct mgx_ins *zero)
{
    return mgx_is_splat(zero, 0);
}

// Are two instructions' scales and zero points the same?
static bool same_step(const struct mgx_ins *a, const struct mgx_ins *b)
{
    assert(a->in_count >= 2 && b->in_count >= 2);
    if (!same_value(a->in[1], b->in[1]))
        return false;
    if (a->in_count == 2 || b->in_count == 2)
        return (a->in_count == 2 || is_zero(a->in[2])) && (b->in_count == 2 || is_zero(b->in[2]));
    return same_value(a->in[2], b->in[2]);
}

// A scale for which x / s neither over- nor underflows where |x| is a byte times s.
static bool is_plain(const struct mgx_ins *scale)
{
    double value;
    return mgx_splat_value(scale, &value) && fabs(value) > 1e-30 && fabs(value) < 1e30;
}

// --- operands of products ---

struct operand {
    struct mgx_ins *views[MAX_VIEWS]; // the product reads views[0]
    int view_count;
    const struct mgx_ins *dq;
    int axis; // of the values: scales and zero points may vary along it
};

// The axis before a view that is `axis` behind it; -1 where there is none.
static int axis_before(const struct mgx_ins *view, int axis)
{
    if (axis >= 0 && mgx_is(view, &mgx_op_transpose))
        return (int)mgx_ins_ints(view, "permutation").v[axis];
    if (axis >= 0 && mgx_is(view, &mgx_op_multibroadcast))
        return axis - (view->shape.rank - view->in[0]->shape.rank);
    if (axis >= 0 && mgx_is(view, &mgx_op_contiguous))
        return axis;
    return -1;
}

static bool varies_along(struct mgx_ins *v, int axis)
{
    return single(v) || (axis >= 0 && mgx_is_along(v, axis));
}

static bool is_multiplied(const struct mgx_rewriter *r, enum mgx_type type)
{
    return mgx_type_is_byte(type) ||
           (mgx_type_is_fp8(type) && r->call->options->target.multiplies_fp8);
}

static bool find_operand(const struct mgx_rewriter *r, struct mgx_ins *ins, int axis,
                         struct operand *o)
{
    *o = (struct operand){.axis = axis};
    while (mgx_is_reshaper(ins) && mgx_shape_is_static(&ins->shape) && o->view_count < MAX_VIEWS) {
        o->axis = axis_before(ins, o->axis);
        o->views[o->view_count++] = ins;
        ins = ins->in[0];
    }
    o->dq = ins;
    return ins->op == &mgx_op_dequantizelinear && is_multiplied(r, ins->in[0]->shape.type) &&
           ins->shape.type == MGX_FLOAT && mgx_shape_is_static(&ins->shape) &&
           varies_along(ins->in[1], o->axis);
}

static struct mgx_ins *narrow(struct mgx_ins *at, const struct operand *o)
{
    struct mgx_ins *x = o->dq->in[0];
    for (int i = o->view_count - 1; i >= 0; i--)
        x = mgx_emit_again(at, o->views[i], &x, 1);
    return x;
}

// One value as a vector of one; several as they lie along the operand's axis.
static struct mgx_ins *values(struct mgx_ins *at, struct mgx_ins *v, int axis)
{
    assert(axis >= -1);
    const int64_t one = 1;
    struct mgx_ins *core = single(v);
    return core ? mgx_emit_reshape(at, core, &one, 1) : mgx_emit_along(at, v, axis);
}

static bool has_zero(const struct operand *o)
{
    return o->dq->in_count == 3 && !is_zero(o->dq->in[2]);
}

static bool is_fp8(const struct operand *o)
{
    return mgx_type_is_fp8(o->dq->in[0]->shape.type);
}

// Two of bytes, or two of fp8, which has no zero points.
static bool go_together(const struct operand *a, const struct operand *b)
{
    return is_fp8(a) == is_fp8(b) && !(is_fp8(a) && (has_zero(a) || has_zero(b)));
}

// The largest magnitude of a value less its zero point.
static int64_t reach(const struct operand *o)
{
    return has_zero(o) || o->dq->in[0]->shape.type == MGX_UINT8 ? 255 : 128;
}

// The inputs of the product in integers; returns how many.
static int product_inputs(struct mgx_ins *at, const struct operand *a, const struct operand *b,
                          struct mgx_ins *in[4])
{
    in[0] = narrow(at, a);
    in[1] = narrow(at, b);
    if (has_zero(a))
        in[2] = values(at, a->dq->in[2], a->axis);
    else if (has_zero(b) && in[0])
        in[2] = mgx_literal_double(at->owner, in[0]->shape.type, 0);
    if (has_zero(b))
        in[3] = values(at, b->dq->in[2], b->axis);
    return has_zero(b) ? 4 : has_zero(a) ? 3 : 2;
}

// The only scale of an operand times those of the other, in the result's lengths.
static struct mgx_ins *common_scale(struct mgx_ins *at, const struct operand *a, struct mgx_ins *t,
                                    int axis)
{
    int64_t lens[MGX_MAX_RANK];
    for (int d = 0; d < at->shape.rank; d++)
        lens[d] = d == axis ? t->shape.lens[0] : 1;
    const struct mgx_shape laid = t->shape.lens[0] == 1
                                      ? mgx_shape_vector(MGX_FLOAT, 1)
                                      : mgx_shape_make(MGX_FLOAT, at->shape.rank, lens);
    struct mgx_ins *s = mgx_emit_known_product(at, &laid, t, a->dq->in[1]);
    if (s)
        return mgx_emit_multibroadcast(at, s, at->shape.lens, at->shape.rank);
    if (!(s = values(at, a->dq->in[1], a->axis)))
        return NULL;
    s = mgx_emit_multibroadcast(at, s, t->shape.lens, 1);
    return mgx_emit_spread(at, mgx_emit_binary(at, &mgx_op_mul, s, t), axis, &at->shape);
}

static struct mgx_ins *times(struct mgx_ins *at, struct mgx_ins *sums, struct mgx_ins *scale)
{
    const bool whole = mgx_type_is_integral(sums->shape.type);
    return mgx_emit_binary(at, whole ? &mgx_op_dequantizelinear : &mgx_op_mul, sums, scale);
}

// Sums times the scale of one operand, which lies along `axis` of the result, and that of the
// other.
static struct mgx_ins *scaled(struct mgx_ins *at, struct mgx_ins *sums, const struct operand *a,
                              const struct operand *b, int axis)
{
    struct mgx_ins *s, *t = values(at, b->dq->in[1], b->axis);
    if (!sums || !t)
        return NULL;
    if (single(a->dq->in[1])) {
        s = common_scale(at, a, t, axis);
        return s ? times(at, sums, s) : NULL;
    }
    if (!(s = values(at, a->dq->in[1], a->axis)))
        return NULL;
    t = mgx_shape_elements(&t->shape) == 1
            ? mgx_emit_multibroadcast(at, t, at->shape.lens, at->shape.rank)
            : mgx_emit_spread(at, t, axis, &at->shape);
    s = mgx_emit_spread(at, s, at->shape.rank - 2, &at->shape);
    return t ? mgx_emit_binary(at, &mgx_op_mul, times(at, sums, t), s) : NULL;
}

static bool sums_fit(const struct operand *a, const struct operand *b, int64_t depth)
{
    assert(depth >= 0);
    return is_fp8(a) || depth <= INT32_MAX / (reach(a) * reach(b));
}

static struct mgx_ins *quant_dot(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    const int rank = ins->shape.rank;
    struct operand a, b;
    struct mgx_ins *in[4];
    (void)m;
    if (ins->shape.type != MGX_FLOAT || !find_operand(r, ins->in[0], rank - 2, &a) ||
        !find_operand(r, ins->in[1], rank - 1, &b) || !go_together(&a, &b) ||
        (has_zero(&a) && !single(a.dq->in[2])) ||
        (has_zero(&b) && !varies_along(b.dq->in[2], b.axis)) ||
        !sums_fit(&a, &b, ins->in[0]->shape.lens[rank - 1]))
        return NULL;
    const int count = product_inputs(ins, &a, &b, in);
    struct mgx_ins *sums =
        mgx_emit_before(ins, &mgx_op_quant_dot, NULL, (struct mgx_ins_list){in, count});
    return scaled(ins, sums, &a, &b, rank - 1);
}

// The convolution of narrow values as `op`, its transpose or not: output channels are axis
// `channels` of the weights.
static struct mgx_ins *narrowly(const struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_op *op, int channels)
{
    struct operand x, w;
    struct mgx_ins *in[4];
    if (ins->shape.type != MGX_FLOAT || !find_operand(r, ins->in[0], -1, &x) ||
        !find_operand(r, ins->in[1], channels, &w) || !go_together(&x, &w) ||
        (is_fp8(&x) && op != &mgx_op_quant_convolution) || (has_zero(&x) && !single(x.dq->in[2])) ||
        (has_zero(&w) && !varies_along(w.dq->in[2], w.axis)))
        return NULL;
    const struct mgx_shape *k = &ins->in[1]->shape;
    if (!sums_fit(&x, &w, mgx_shape_elements(k) / mgx_max_i64(k->lens[channels], 1)))
        return NULL;
    const int count = product_inputs(ins, &x, &w, in);
    struct mgx_ins *sums = mgx_emit_as(ins, op, ins, (struct mgx_ins_list){in, count});
    return scaled(ins, sums, &x, &w, 1);
}

static struct mgx_ins *quant_convolution(struct mgx_rewriter *r, struct mgx_ins *ins,
                                         const struct mgx_match *m)
{
    (void)m;
    return narrowly(r, ins, &mgx_op_quant_convolution, 0);
}

// Of several groups, the weights' axis has the channels of one.
static struct mgx_ins *quant_backwards(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)m;
    return mgx_ins_int(ins, "group") == 1 ? narrowly(r, ins, &mgx_op_quant_convolution_backwards, 1)
                                          : NULL;
}

// --- pairs ---

// Is it what dequantized it, undone?
static struct mgx_ins *requantized(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    const struct mgx_ins *dq = ins->in[0];
    (void)m;
    return dq->op == &mgx_op_dequantizelinear && dq->in[0]->shape.type == ins->shape.type &&
                   is_multiplied(r, ins->shape.type) && dq->shape.type == MGX_FLOAT &&
                   is_plain(ins->in[1]) && same_step(dq, ins)
               ? dq->in[0]
               : NULL;
}

// --- what only chooses values ---

// A dequantization by one positive scale of bytes.
static bool is_single(const struct mgx_ins *dq)
{
    double scale;
    return dq->op == &mgx_op_dequantizelinear && mgx_type_is_byte(dq->in[0]->shape.type) &&
           mgx_splat_value(dq->in[1], &scale) && scale > 0 &&
           (dq->in_count == 2 || single(dq->in[2]));
}

// The same dequantization, or quantization, of another tensor.
static struct mgx_ins *again(struct mgx_ins *at, const struct mgx_ins *model, struct mgx_ins *x)
{
    struct mgx_ins *in[3] = {x};
    for (int i = 1; x && i < model->in_count; i++)
        in[i] = mgx_emit_multibroadcast(at, single(model->in[i]), x->shape.lens, x->shape.rank);
    return x ? mgx_emit_again(at, model, in, model->in_count) : NULL;
}

// Whether every value of the result is one of the input's.
static bool only_chooses(const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_pooling)
        return mgx_ins_int(ins, "mode") == 1;
    if (ins->op != &mgx_op_resize)
        return true;
    return ins->in_count == 1 &&
           strcmp(mgx_attr_text(ins->op, ins->attr, "mode"), "nearest") == 0 &&
           strcmp(mgx_attr_text(ins->op, ins->attr, "coordinate_transformation_mode"),
                  "tf_crop_and_resize") != 0;
}

static struct mgx_ins *chosen(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    struct mgx_ins *dq = ins->in[0];
    (void)r, (void)m;
    if (!is_single(dq) || !mgx_shape_elements(&ins->shape) || !only_chooses(ins))
        return NULL;
    return again(ins, dq, mgx_emit_again(ins, ins, &dq->in[0], 1));
}

// Zeros around what is quantized again, wherever it is read: the zero point's byte.
static struct mgx_ins *padded(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    struct mgx_ins *dq = ins->in[0];
    double zero = 0;
    (void)r, (void)m;
    if (ins->in_count != 1 || mgx_ins_int(ins, "mode") != 0 || !is_single(dq) ||
        mgx_attr_real(ins->op, ins->attr, "value") != 0 || !mgx_shape_elements(&ins->shape) ||
        (dq->in_count == 3 && !mgx_splat_value(dq->in[2], &zero)))
        return NULL;
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op != &mgx_op_quantizelinear || use->slot != 0)
            return NULL;
    const struct mgx_ints pads = mgx_ins_ints(ins, "pads");
    return again(
        ins, dq,
        mgx_emit_before(ins, &mgx_op_pad,
                        MGX_ATTRS(mgx_ints("pads", pads.v, pads.count), mgx_real("value", zero)),
                        MGX_IN(dq->in[0])));
}

// --- parts of a growing list ---

// Does element-wise work alone read what is quantized here?
static bool is_widened(const struct mgx_ins *q)
{
    for (const struct mgx_use *use = q->uses; use; use = use->next) {
        const struct mgx_ins *dq = use->user;
        if (dq->op != &mgx_op_dequantizelinear || use->slot != 0 || !dq->uses)
            return false;
        for (const struct mgx_use *wide = dq->uses; wide; wide = wide->next)
            if (!mgx_is_elementwise(wide->user))
                return false;
    }
    return q->uses != NULL;
}

// Is it worth leaving the parts as they are? What others read too would be quantized again by
// itself; but views of others are no parts that lie where the list does.
static bool has_shared_part(const struct mgx_ins *parts, enum mgx_type type)
{
    bool shared = false;
    for (int i = 0; i < parts->in_count; i++) {
        const struct mgx_ins *dq = parts->in[i];
        double value;
        if (!is_single(dq) || dq->in[0]->shape.type != type || dq->shape.type != MGX_FLOAT ||
            (dq->in[0]->op->flags & (MGX_OP_VIEW | MGX_OP_REGROUP)) || dq->in[0]->literal ||
            !mgx_splat_value(dq->in[1], &value) ||
            (dq->in_count == 3 && !mgx_splat_value(dq->in[2], &value)))
            return false;
        shared = shared || !mgx_used_once(dq) || !mgx_used_once(dq->in[0]);
    }
    return shared;
}

// Operand 1 or 2 of each part, for every place along the axis.
static struct mgx_ins *for_places(struct mgx_ins *at, const struct mgx_ins *parts, int axis,
                                  int operand, enum mgx_type type)
{
    const struct mgx_shape vector = mgx_shape_vector(type, parts->shape.lens[axis]);
    struct mgx_tensor values;
    if (mgx_tensor_create(&values, &vector, &at->owner->program->diag) != MGX_OK)
        return NULL;
    int64_t place = 0;
    for (int i = 0; i < parts->in_count; i++) {
        double value = 0;
        if (operand < parts->in[i]->in_count)
            mgx_splat_value(parts->in[i]->in[operand], &value);
        for (int64_t k = 0; k < parts->in[i]->shape.lens[axis]; k++)
            mgx_store_double(type, values.data, place++, value);
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &values);
    mgx_tensor_release(&values);
    return mgx_emit_spread(at, literal, axis, &parts->shape);
}

static struct mgx_ins *joined_parts(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    enum { MAX_PARTS = 128, IMAGE = 4 };
    const struct mgx_ins *parts = ins->in[0];
    struct mgx_ins *in[MAX_PARTS], *operand[3];
    (void)m;
    if (!r->call->options->target.multiplies_bytes || parts->op != &mgx_op_concat ||
        parts->in_count < 2 || parts->in_count > MAX_PARTS || parts->shape.rank < IMAGE ||
        !mgx_used_once(parts) || !mgx_type_is_byte(ins->shape.type) ||
        !mgx_shape_is_static(&parts->shape) || !is_widened(ins) ||
        !has_shared_part(parts, parts->in[0]->in[0]->shape.type))
        return NULL;
    const int axis = mgx_wrap_axis(mgx_ins_int(parts, "axis"), parts->shape.rank);
    const enum mgx_type type = parts->in[0]->in[0]->shape.type;
    for (int i = 0; i < parts->in_count; i++)
        in[i] = parts->in[i]->in[0];
    operand[0] = mgx_emit_again(ins, parts, in, parts->in_count);
    operand[1] = for_places(ins, parts, axis, 1, MGX_FLOAT);
    operand[2] = for_places(ins, parts, axis, 2, type);
    if (!operand[0] || !operand[1] || !operand[2])
        return NULL;
    struct mgx_ins *y =
        mgx_emit_before(ins, &mgx_op_dequantizelinear, NULL, (struct mgx_ins_list){operand, 3});
    operand[0] = y;
    for (int i = 1; i < ins->in_count; i++)
        operand[i] = ins->in[i];
    return y ? mgx_emit_again(ins, ins, operand, ins->in_count) : NULL;
}

static struct mgx_ins *quantized_parts(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    enum { MAX_PARTS = 128 }; // DenseNet-201 has concats of 49
    const struct mgx_ins *parts = ins->in[0];
    struct mgx_ins *part[MAX_PARTS];
    (void)r, (void)m;
    if (parts->op != &mgx_op_concat || parts->in_count > MAX_PARTS || !mgx_used_once(parts) ||
        !mgx_type_is_byte(ins->shape.type) || !single(ins->in[1]) ||
        (ins->in_count == 3 && !single(ins->in[2])))
        return NULL;
    for (int i = 0; i < parts->in_count; i++)
        if (!is_single(parts->in[i]))
            return NULL;
    for (int i = 0; i < parts->in_count; i++)
        if (!(part[i] = again(ins, ins, parts->in[i])))
            return NULL;
    return mgx_emit_again(ins, parts, part, parts->in_count);
}

static const struct mgx_rule rules[] = {
    {"dot ~> dequantizelinear(quant_dot(a, b, p, q), s t)", MGX_IF_STATIC, .rewrite = quant_dot},
    {"convolution ~> dequantizelinear(quant_convolution(x, w, p, q), s t)", MGX_IF_STATIC,
     .rewrite = quant_convolution},
    {"convolution_backwards ~> dequantizelinear(quant_convolution_backwards(x, w, p, q), s t)",
     MGX_IF_STATIC, .rewrite = quant_backwards},
    {"quantizelinear ~> x, of dequantizelinear(x)", MGX_IF_STATIC, .rewrite = requantized},
    {"quantizelinear ~> quantizelinear(dequantizelinear(concat(x...))), of a growing list",
     MGX_IF_STATIC, .rewrite = joined_parts},
    {"quantizelinear ~> concat(quantizelinear(x)...), of concat(dequantizelinear(x)...)",
     MGX_IF_STATIC, .rewrite = quantized_parts},
    {"pooling|slice|step|resize(dequantizelinear) ~> dequantizelinear(pooling(x))", MGX_IF_STATIC,
     .rewrite = chosen},
    {"pad(dequantizelinear) ~> dequantizelinear(pad(x))", MGX_IF_STATIC, .rewrite = padded},
};

const struct mgx_pass mgx_pass_simplify_qdq = {
    .name = "simplify_qdq",
    .meaning = "works on quantized values as integers",
    .rules = {rules, MGX_COUNT(rules)},
};
