// SPDX-License-Identifier: MIT
// Constant factors and terms through convolution, convolution_backwards and dot: this is how batch
// normalization disappears into the weights before it.
//
//     conv(x, w) * a    =>  conv(x, w * a)                 a per output channel
//     conv(x * a, w)    =>  conv(x, w * a)                 a per input channel
//     conv(x + b, w)    =>  conv(x, w) + conv(b, w)        without padding
//     (y + b) * a       =>  y * a + b * a                  y linear, so that the first rule follows
//     dot(x, w) * a     =>  dot(x, w * a)                  a per column
//     dot(x * a, w)     =>  dot(x, w * a)                  a per row of w
//     dot(x + b, w)     =>  dot(x, w) + dot(b, w)
//     dot(x * s, y)     =>  dot(x, y) * s                  s one number, x and y both variable
//     dot(x, y) * s     =>  dot(x * s, y)                  where the product's size is open, x's not
// and their mirror images with the constant matrix on the left.
//
// A factor of a dot costs its copy of the weights at compile time and saves little at run time, as
// pointwise work joins the product before or after it: only small weights take one, and a factor
// before the product only moves when nothing else could take it along. A convolution to one
// position reads each weight once, like a product of one row: it takes no factor at all.
//
// Holds: w, a and b are constants; with groups, channel o of group g meets the factor of that
// channel. The products are left to constant folding. Terms move only in float and double: sums of
// many narrow products would lose more than rounding.
#include <math.h>

#include "op/reference/window.h"
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/rules/rules.h"

static struct mgx_ins *weights(const struct mgx_match *m)
{
    return mgx_var(m, 'w');
}

static struct mgx_ins *factor(const struct mgx_match *m)
{
    return mgx_var(m, 'a');
}

static bool is_static(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) > 0;
}

// The weights may be multiplied (divided, by `ins`) by the factor, and it runs along `axis`.
static bool can_scale(const struct mgx_ins *ins, const struct mgx_match *m, int axis)
{
    const enum mgx_type type = weights(m)->shape.type;
    if (!is_static(weights(m)) || !is_static(factor(m)) || !mgx_is_along(factor(m), axis))
        return false;
    return mgx_is(ins, &mgx_op_div) ? mgx_quotient_is_safe(type, weights(m), factor(m))
                                    : mgx_product_is_safe(type, weights(m), factor(m));
}

// w * f or w / f, as `how` (mul or div) says.
static struct mgx_ins *scale(struct mgx_ins *at, const struct mgx_ins *how, struct mgx_ins *w,
                             struct mgx_ins *f)
{
    return mgx_emit_binary(at, how->op, w, f);
}

enum { SMALL_WEIGHTS = 1 << 20 }; // bytes

static bool is_small(const struct mgx_ins *w)
{
    return mgx_shape_is_static(&w->shape) &&
           mgx_shape_elements(&w->shape) * (int64_t)mgx_type_size(w->shape.type) <= SMALL_WEIGHTS;
}

// Will the work on x join the kernel that makes x?
static bool joins_producer(const struct mgx_ins *x)
{
    return (x->op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE)) || mgx_is(x, &mgx_op_dot) ||
           mgx_is(x, &mgx_op_convolution) || mgx_is(x, &mgx_op_convolution_backwards);
}

// --- convolutions ---

// A vector over all channels {groups * n} laid over weights whose `axis` counts the n channels of
// one group and whose other channel axis counts groups * k:
//     {g, n} -> {g, 1, n} -> {g, k, n} -> {g*k, n}
static struct mgx_ins *over_groups(struct mgx_ins *at, struct mgx_ins *vector, int64_t groups,
                                   const struct mgx_shape *w)
{
    const int64_t n = w->lens[1], k = w->lens[0] / groups;
    vector = mgx_emit_reshape(at, vector, (int64_t[]){groups, 1, n}, 3);
    vector = mgx_emit_multibroadcast(at, vector, (int64_t[]){groups, k, n}, 3);
    int64_t lens[MGX_MAX_RANK] = {groups * k, n};
    for (int d = 2; d < w->rank; d++)
        lens[d] = 1;
    vector = mgx_emit_reshape(at, vector, lens, w->rank);
    return mgx_emit_multibroadcast(at, vector, w->lens, w->rank);
}

static struct mgx_ins *spread_over(struct mgx_ins *at, const struct mgx_ins *conv,
                                   struct mgx_ins *vector, bool outputs, const struct mgx_shape *w)
{
    // convolution has weights {outputs, inputs of a group, ...}, convolution_backwards {inputs,
    // outputs of a group, ...}.
    const bool backwards = mgx_is(conv, &mgx_op_convolution_backwards);
    if (outputs != backwards)
        return mgx_emit_spread(at, vector, 0, w);
    return over_groups(at, vector, mgx_ins_int(conv, "group"), w);
}

// A factor behind it is as little beside its work as behind a product of one row. Squeeze and
// excitation ends in such ones.
static bool has_one_position(const struct mgx_ins *conv)
{
    for (int d = 2; d < conv->shape.rank; d++)
        if (mgx_shape_dim(&conv->shape, d).max != 1)
            return false;
    return !conv->shape.unranked;
}

static struct mgx_ins *scale_outputs(struct mgx_rewriter *r, struct mgx_ins *ins,
                                     const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *conv = mgx_var(m, 'c');
    if (has_one_position(conv) || !can_scale(ins, m, 1))
        return NULL;
    struct mgx_ins *vector = mgx_emit_along(ins, factor(m), 1);
    vector = spread_over(ins, conv, vector, true, &weights(m)->shape);
    struct mgx_ins *w = scale(ins, ins, weights(m), vector);
    return mgx_emit_again(ins, conv, (struct mgx_ins *const[]){mgx_var(m, 'x'), w}, 2);
}

static struct mgx_ins *scale_inputs(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *how = mgx_var(m, 'o'); // the mul or div before the convolution
    if (joins_producer(mgx_var(m, 'x')) || !can_scale(how, m, 1))
        return NULL;
    struct mgx_ins *vector = mgx_emit_along(ins, factor(m), 1);
    vector = spread_over(ins, ins, vector, false, &weights(m)->shape);
    struct mgx_ins *w = scale(ins, how, weights(m), vector);
    return mgx_emit_again(ins, ins, (struct mgx_ins *const[]){mgx_var(m, 'x'), w}, 2);
}

static bool is_wide(const struct mgx_ins *ins)
{
    return ins->shape.type == MGX_FLOAT || ins->shape.type == MGX_DOUBLE;
}

// A finite constant term, which may be moved past a sum of products without meeting infinity.
static bool is_finite_term(const struct mgx_ins *b)
{
    struct mgx_range range;
    return mgx_constant_range(b, &range);
}

// One output pixel of the term alone: a constant image just as large as the kernel reaches.
static struct mgx_ins *shift_inputs(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    struct mgx_ins *term = mgx_var(m, 'b'), *how = mgx_var(m, 'o');
    const struct mgx_shape *w = &weights(m)->shape, *x = &term->shape;
    const struct mgx_window_attr window = mgx_window_of(ins);
    if (!is_wide(ins) || !is_static(ins) || !is_static(weights(m)) || !is_static(term) ||
        joins_producer(mgx_var(m, 'x')) || !mgx_window_is_unpadded(&window) ||
        !mgx_is_along(term, 1) || !is_finite_term(term) ||
        mgx_is_constant(r->module, mgx_var(m, 'x')) || window.dilation.count != w->rank - 2)
        return NULL;
    struct mgx_shape image = mgx_shape_make(x->type, x->rank, x->lens);
    image.lens[0] = 1;
    for (int d = 2; d < x->rank; d++)
        image.lens[d] = (w->lens[d] - 1) * window.dilation.v[d - 2] + 1;
    struct mgx_ins *vector = mgx_emit_along(ins, term, 1);
    vector = mgx_emit_spread(ins, vector, 1, &image);
    struct mgx_ins *y =
        mgx_emit_again(ins, ins, (struct mgx_ins *const[]){mgx_var(m, 'x'), weights(m)}, 2);
    struct mgx_ins *z = mgx_emit_again(ins, ins, (struct mgx_ins *const[]){vector, weights(m)}, 2);
    z = mgx_emit_multibroadcast(ins, z, ins->shape.lens, ins->shape.rank);
    return mgx_emit_binary(ins, how->op, y, z);
}

// (y +- b) * a: worth it only if the factor then goes on into the weights.
// Would the weights of y, its input `side`, take a factor along this axis of the result?
static bool takes_factor(struct mgx_rewriter *r, const struct mgx_ins *y, int side, int axis,
                         struct mgx_ins *f)
{
    return mgx_is_constant(r->module, y->in[side]) && mgx_is_along(f, axis) &&
           (!mgx_is(y, &mgx_op_dot) || is_small(y->in[side]));
}

static struct mgx_ins *distribute(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *y = mgx_var(m, 'y'), *how = mgx_var(m, 'o'), *b = mgx_var(m, 'b');
    const bool dot = mgx_is(y, &mgx_op_dot);
    const int left = dot ? y->shape.rank - 2 : 1, right = dot ? y->shape.rank - 1 : 1;
    const enum mgx_type type = ins->shape.type;
    if (!is_static(ins) || !(takes_factor(r, y, 1, right, factor(m)) ||
                             (dot && takes_factor(r, y, 0, left, factor(m)))))
        return NULL;
    if (!(mgx_is(ins, &mgx_op_div) ? mgx_quotient_is_safe(type, b, factor(m))
                                   : mgx_product_is_safe(type, b, factor(m))))
        return NULL;
    struct mgx_ins *p = mgx_emit_binary(ins, ins->op, y, factor(m));
    struct mgx_ins *q = mgx_emit_binary(ins, ins->op, b, factor(m));
    return mgx_emit_binary(ins, how->op, p, q);
}

// --- dot ---

// Emits dot with its constant side scaled along `axis` of that side (from the end: 1 columns, 2
// rows); `side` is the input the constant is.
static struct mgx_ins *scaled_dot(struct mgx_ins *at, const struct mgx_ins *how, int side,
                                  int axis_from_end, int factor_axis, const struct mgx_match *m)
{
    struct mgx_ins *w = weights(m), *x = mgx_var(m, 'x');
    const bool before = how != at;
    if (!is_small(w) || (before && joins_producer(x)) || !can_scale(how, m, factor_axis))
        return NULL;
    struct mgx_ins *vector = mgx_emit_along(at, factor(m), factor_axis);
    vector = mgx_emit_spread(at, vector, w->shape.rank - axis_from_end, &w->shape);
    w = scale(at, how, w, vector);
    struct mgx_ins *const in[] = {side ? x : w, side ? w : x};
    return mgx_emit_binary(at, &mgx_op_dot, in[0], in[1]);
}

static struct mgx_ins *scale_columns(struct mgx_rewriter *r, struct mgx_ins *ins,
                                     const struct mgx_match *m) // dot(x, w) * a
{
    (void)r;
    return scaled_dot(ins, ins, 1, 1, ins->shape.rank - 1, m);
}

static struct mgx_ins *scale_rows(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m) // dot(w, x) * a
{
    (void)r;
    return scaled_dot(ins, ins, 0, 2, ins->shape.rank - 2, m);
}

static struct mgx_ins *scale_before_right(struct mgx_rewriter *r, struct mgx_ins *ins,
                                          const struct mgx_match *m) // dot(x * a, w)
{
    (void)r;
    return scaled_dot(ins, mgx_var(m, 'o'), 1, 2, ins->shape.rank - 1, m);
}

static struct mgx_ins *scale_before_left(struct mgx_rewriter *r, struct mgx_ins *ins,
                                         const struct mgx_match *m) // dot(w, x * a)
{
    (void)r;
    return scaled_dot(ins, mgx_var(m, 'o'), 0, 1, ins->shape.rank - 2, m);
}

// dot(x + b, w): the term's own product is one row, the same for all rows of x.
static struct mgx_ins *shift_rows(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *term = mgx_var(m, 'b'), *how = mgx_var(m, 'o'), *x = mgx_var(m, 'x');
    const int rank = ins->shape.rank;
    if (!is_wide(ins) || !is_static(ins) || !is_static(weights(m)) || !is_static(term) ||
        !mgx_is_along(term, rank - 1) || !is_finite_term(term) || mgx_is_constant(r->module, x))
        return NULL;
    struct mgx_shape row = mgx_shape_make(term->shape.type, rank, term->shape.lens);
    row.lens[rank - 2] = 1;
    struct mgx_ins *vector = mgx_emit_along(ins, term, rank - 1);
    vector = mgx_emit_spread(ins, vector, rank - 1, &row);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dot, x, weights(m));
    struct mgx_ins *z = mgx_emit_binary(ins, &mgx_op_dot, vector, weights(m));
    z = mgx_emit_multibroadcast(ins, z, ins->shape.lens, rank);
    return mgx_emit_binary(ins, how->op, y, z);
}

// --- scores ---

enum { MAX_VIEWS = 6 };

// A factor behind views that nobody else reads: q * s on its way into dot(q, k).
struct scaled {
    struct mgx_ins *x; // what the factor is applied to
    double factor;
    const struct mgx_ins *views[MAX_VIEWS]; // from the product up
    int view_count;
};

static bool find_scaled(struct mgx_ins *in, struct scaled *out)
{
    out->view_count = 0;
    while (mgx_is_reshaper(in) && mgx_used_once(in) && out->view_count < MAX_VIEWS) {
        out->views[out->view_count++] = in;
        in = in->in[0];
    }
    if (!mgx_is(in, &mgx_op_mul) || !mgx_used_once(in) || !mgx_splat_value(in->in[1], &out->factor))
        return false;
    out->x = in->in[0];
    return isfinite(out->factor) && out->factor != 0;
}

static struct mgx_ins *without_factor(struct mgx_ins *at, const struct scaled *s)
{
    struct mgx_ins *x = s->x;
    for (int i = s->view_count - 1; i >= 0; i--)
        x = mgx_emit_again(at, s->views[i], &x, 1);
    return x;
}

// dot(view(x * s), y) => dot(view(x), y) * s: scores are scaled where softmax reads them, in the
// kernel that does it, and what makes queries and keys stays as it was.
static struct mgx_ins *scale_scores(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *in[2] = {ins->in[0], ins->in[1]};
    double factor = 1;
    const struct mgx_ins *reader = mgx_used_once(ins) ? ins->uses->user : NULL;
    if (!is_wide(ins) || !reader ||
        !((reader->op->flags & MGX_OP_POINTWISE) || mgx_is(reader, &mgx_op_softmax)) ||
        mgx_is_constant(r->module, in[0]) || mgx_is_constant(r->module, in[1]))
        return NULL;
    bool found = false;
    struct scaled s[2];
    bool is_scaled[2];
    for (int i = 0; i < 2; i++) {
        is_scaled[i] = find_scaled(in[i], &s[i]);
        factor *= is_scaled[i] ? s[i].factor : 1;
        found |= is_scaled[i];
    }
    if (!found || !(fabs(factor) > 1e-30) || !(fabs(factor) < 1e30))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (is_scaled[i])
            in[i] = without_factor(ins, &s[i]);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dot, in[0], in[1]);
    return mgx_emit_binary(ins, &mgx_op_mul, y, mgx_emit_splat(ins, &ins->shape, factor));
}

// The one number behind a broadcast of whatever size.
static bool find_number(const struct mgx_ins *ins, double *number)
{
    if (mgx_is(ins, &mgx_op_multibroadcast) || mgx_is(ins, &mgx_op_broadcast))
        ins = ins->in[0];
    return ins->literal && mgx_splat_value(ins, number) && isfinite(*number) && *number != 0;
}

// Does nobody else read the product? The number's broadcast does, for its size.
static bool is_read_here(const struct mgx_ins *dot, const struct mgx_ins *by,
                         const struct mgx_ins *broadcast)
{
    for (const struct mgx_use *use = dot->uses; use; use = use->next)
        if (use->user != by && use->user != broadcast)
            return false;
    return mgx_used_once(broadcast);
}

// mul|div(dot(x, y), s) => dot(mul|div(x, s), y): of a decoder the queries have a known size, and
// scores as many columns as its cache has rows, whose every step is chosen in the run.
static struct mgx_ins *scale_known(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *dot = mgx_var(m, 'd'), *x = mgx_var(m, 'x'), *y = mgx_var(m, 'y'),
                   *s = mgx_var(m, 's');
    double number;
    if (!is_wide(ins) || ins->shape.rank != dot->shape.rank || mgx_shape_is_static(&ins->shape) ||
        !is_static(x) || mgx_shape_is_static(&y->shape) || !find_number(s, &number) ||
        !mgx_shape_same_lens(&ins->shape, &dot->shape) || !is_read_here(dot, ins, s))
        return NULL;
    x = mgx_emit_binary(ins, ins->op, x, mgx_emit_splat(ins, &x->shape, number));
    return mgx_emit_binary(ins, &mgx_op_dot, x, y);
}

static const struct mgx_rule rules[] = {
    {"mul(c:convolution|convolution_backwards!(x, w#), a#) ~> conv(x, w * a)",
     .rewrite = scale_outputs},
    {"div(c:convolution|convolution_backwards!(x, w#), a#) ~> conv(x, w / a)", MGX_IF_FLOAT,
     .rewrite = scale_outputs},
    {"convolution|convolution_backwards(o:mul!(x, a#), w#) ~> conv(x, w * a)",
     .rewrite = scale_inputs},
    {"convolution|convolution_backwards(o:div!(x, a#), w#) ~> conv(x, w / a)", MGX_IF_FLOAT,
     .rewrite = scale_inputs},
    {"convolution(o:add!(x, b#), w#) ~> conv(x, w) + conv(b, w)", .rewrite = shift_inputs},
    {"convolution(o:sub!(x, b#), w#) ~> conv(x, w) - conv(b, w)", .rewrite = shift_inputs},
    {"mul|div(o:add|sub!(y:convolution|convolution_backwards|dot!, b#), a#) ~> y * a + b * a",
     MGX_IF_FLOAT, .rewrite = distribute},
    {"mul(dot!(x, w#), a#) ~> dot(x, w * a)", .rewrite = scale_columns},
    {"div(dot!(x, w#), a#) ~> dot(x, w / a)", MGX_IF_FLOAT, .rewrite = scale_columns},
    {"mul(dot!(w#, x), a#) ~> dot(w * a, x)", .rewrite = scale_rows},
    {"div(dot!(w#, x), a#) ~> dot(w / a, x)", MGX_IF_FLOAT, .rewrite = scale_rows},
    {"dot(o:mul!(x, a#), w#) ~> dot(x, w * a)", .rewrite = scale_before_right},
    {"dot(o:div!(x, a#), w#) ~> dot(x, w / a)", MGX_IF_FLOAT, .rewrite = scale_before_right},
    {"dot(w#, o:mul!(x, a#)) ~> dot(w * a, x)", .rewrite = scale_before_left},
    {"dot(w#, o:div!(x, a#)) ~> dot(w / a, x)", MGX_IF_FLOAT, .rewrite = scale_before_left},
    {"dot ~> dot(x, y) * s for dot(x * s, y)", MGX_IF_STATIC, .rewrite = scale_scores},
    {"mul(d:dot(x, y), s) ~> dot(x * s, y)", .rewrite = scale_known},
    {"div(d:dot(x, y), s) ~> dot(x / s, y)", .rewrite = scale_known},
    {"dot(o:add!(x, b#), w#) ~> dot(x, w) + dot(b, w)", .rewrite = shift_rows},
    {"dot(o:sub!(x, b#), w#) ~> dot(x, w) - dot(b, w)", .rewrite = shift_rows},
};

const struct mgx_rules mgx_rules_linear = {rules, MGX_COUNT(rules)};
