// SPDX-License-Identifier: MIT
// What is multiplied on its way to bytes is multiplied once.
//
//     quantizelinear(x, s#, z)            =>  quantizelinear(x f, 1, z)         f = 1 / s, of fp8 also
//                                                                               along one axis
//     quantizelinear(x, s#, z#), along one axis
//                                         =>  quantizelinear(x f / 255 + (z - lowest) / 255, 1 / 255, lowest)
//     dequantizelinear(x, t#) f           =>  dequantizelinear(x, t f)          of other factors too, before
//                                                                               a sum
//     dequantizelinear(x + c#, t#)        =>  dequantizelinear(x, t) + c t        x: sums of 32 bits
//     dequantizelinear(x - c#, t#)        =>  dequantizelinear(x, t) + -c t
//     (a + b#) + c#                       =>  a + (b + c)                         where the above made them
//     dequantizelinear(x, t#, z#) + c#    =>  dequantizelinear(x, t) + (c - z t)      x: bytes
//     (dequantizelinear(x, t#, z#) + b) + c#
//                                         =>  (dequantizelinear(x, t) + (c - z t)) + b
//     (a + b) f                           =>  a f + b f       where both take the factor
//     relu(x) f                           =>  relu(x f)
//     quantizelinear(relu(x), 1, lowest)  =>  quantizelinear(x, 1, lowest)
//     quantizelinear(x, 1, z#)            =>  quantizelinear(x / 255 + (z - lowest) / 255, 1 / 255, lowest)
//     quantizelinear(dequantizelinear(x, t#, z#) f# + c#, 1 / 255, lowest)
//                                         =>  x                 where every byte stays what it is
//
// f is one positive value. A quotient becomes a product, and products of constants are rounded
// ahead of time, so a byte differs by one step where the value lies between two steps to a ten-
// millionth. In the last rule's form a byte's range is that of 0 to 1, to which a card cuts off
// what it multiplies or adds up at no cost.
//
// The GPU target runs it, where a division takes as long as the rest of a product's end.
#include <float.h>
#include <math.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { DEEPEST = 8 };

// Scales of masks are as large as what masks hold, the lowest float, by a byte's steps: what one is
// over those is a normal float still.
static bool is_plain_scale(const struct mgx_ins *scale, double *value)
{
    return mgx_splat_value(scale, value) && *value > 1e-30 && *value < 1 / (double)FLT_MIN;
}

// A known value of which a multiple may be taken ahead of time: few, for it is a bias as a rule.
static const struct mgx_tensor *constant_of(const struct mgx_ins *ins)
{
    const struct mgx_ins *core = ins;
    while ((core->op == &mgx_op_multibroadcast || core->op == &mgx_op_broadcast) &&
           core->in_count == 1)
        core = core->in[0];
    enum { MANY = 1 << 16 };
    return core->literal && core->shape.type == MGX_FLOAT &&
                   mgx_shape_elements(&core->shape) <= MANY && mgx_shape_elements(&core->shape) > 0
               ? core->literal
               : NULL;
}

// Does nothing of x f remain to be done in a run?
static bool takes(const struct mgx_ins *x, int depth)
{
    double scale;
    if (constant_of(x))
        return true;
    if (x->op == &mgx_op_dequantizelinear)
        return x->shape.type == MGX_FLOAT && constant_of(x->in[1]) &&
               (mgx_used_once(x) || !mgx_splat_value(x->in[0], &scale));
    if (depth == 0 || !mgx_used_once(x) || x->shape.type != MGX_FLOAT)
        return false;
    if (x->op == &mgx_op_relu)
        return takes(x->in[0], depth - 1);
    if (x->op == &mgx_op_mul && constant_of(x->in[1]))
        return true;
    return x->op == &mgx_op_add && takes(x->in[0], depth - 1) && takes(x->in[1], depth - 1);
}

// The constant times f, spread as it was.
static struct mgx_ins *multiply(struct mgx_ins *at, struct mgx_ins *x, double f)
{
    if (!x->literal) {
        struct mgx_ins *core = multiply(at, x->in[0], f);
        return core ? mgx_emit_again(at, x, &core, 1) : NULL;
    }
    struct mgx_tensor t;
    const struct mgx_shape packed = mgx_shape_make(MGX_FLOAT, x->shape.rank, x->shape.lens);
    if (mgx_tensor_create(&t, &packed, &at->owner->program->diag) != MGX_OK)
        return NULL;
    const int64_t count = mgx_shape_elements(&packed);
    for (int64_t i = 0; i < count; i++)
        ((float *)t.data)[i] = (float)(mgx_load_double(MGX_FLOAT, x->literal->data,
                                                       mgx_shape_index(&x->literal->shape, i)) *
                                       f);
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return literal;
}

static struct mgx_ins *scaled(struct mgx_ins *at, struct mgx_ins *x, double f)
{
    if (constant_of(x))
        return multiply(at, x, f);
    if (x->op == &mgx_op_mul)
        return mgx_emit_binary(at, &mgx_op_mul, x->in[0], multiply(at, x->in[1], f));
    if (x->op == &mgx_op_dequantizelinear) {
        struct mgx_ins *in[3] = {x->in[0], multiply(at, x->in[1], f)};
        if (x->in_count == 3)
            in[2] = x->in[2];
        return in[1] ? mgx_emit_again(at, x, in, x->in_count) : NULL;
    }
    struct mgx_ins *a = scaled(at, x->in[0], f);
    if (x->op == &mgx_op_relu)
        return mgx_emit_unary(at, &mgx_op_relu, a);
    return mgx_emit_binary(at, &mgx_op_add, a, scaled(at, x->in[1], f));
}

// Does 0 stand for the lowest byte and 1 for the highest?
static bool is_share(const struct mgx_ins *q)
{
    const double low = mgx_type_lowest(q->shape.type), high = mgx_type_highest(q->shape.type);
    double zero = 0, scale;
    return mgx_type_bits(q->shape.type) == 8 && mgx_splat_value(q->in[1], &scale) &&
           scale == (float)(1 / (high - low)) &&
           (q->in_count < 3 || mgx_splat_value(q->in[2], &zero)) && zero == low;
}

// One over each of a constant's values, spread as it was; NULL where one is no plain scale.
static struct mgx_ins *reciprocal(struct mgx_ins *at, struct mgx_ins *x)
{
    if (!x->literal) {
        struct mgx_ins *core = reciprocal(at, x->in[0]);
        return core ? mgx_emit_again(at, x, &core, 1) : NULL;
    }
    struct mgx_tensor t;
    const struct mgx_shape packed = mgx_shape_make(MGX_FLOAT, x->shape.rank, x->shape.lens);
    const int64_t count = mgx_shape_elements(&packed);
    bool plain = mgx_tensor_create(&t, &packed, &at->owner->program->diag) == MGX_OK;
    if (!plain)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        const double s =
            mgx_load_double(MGX_FLOAT, x->literal->data, mgx_shape_index(&x->literal->shape, i));
        plain = plain && s > 1e-30 && s < 1e30;
        ((float *)t.data)[i] = plain ? (float)(1 / s) : 0;
    }
    struct mgx_ins *literal = plain ? mgx_add_literal(at->owner, &t) : NULL;
    mgx_tensor_release(&t);
    return literal;
}

// --- terms that lie along one axis ---

// The literal that a constant is spread from, and the axis of the result along which it varies, -1:
// none.
static const struct mgx_ins *core_of(struct mgx_ins *ins, int *axis)
{
    struct mgx_spread s;
    *axis = -1;
    const bool spread = mgx_spread_of(ins, &s);
    const struct mgx_ins *core = spread ? s.core : ins;
    const int rank = ins->shape.rank;
    if (!core->literal)
        return NULL;
    for (int d = 0; d < rank; d++) {
        const int from = spread ? s.axis[d] : d;
        if (from < 0 || core->shape.lens[from] == 1)
            continue;
        if (*axis >= 0)
            return NULL;
        *axis = d;
    }
    return core;
}

static double value_of(const struct mgx_ins *core, int64_t i)
{
    const bool one = mgx_shape_elements(&core->shape) == 1;
    return mgx_load_double(core->shape.type, core->literal->data,
                           mgx_shape_index(&core->literal->shape, one ? 0 : i));
}

enum how { SUM, PRODUCT, LESS_PRODUCT };

// Their sum or product, or minus that, where both are constants that vary along one axis at most,
// the same one; NULL: they are not.
static struct mgx_ins *combine(struct mgx_ins *at, struct mgx_ins *a, struct mgx_ins *b,
                               enum how how)
{
    int axis, other;
    const struct mgx_ins *x = core_of(a, &axis), *y = core_of(b, &other);
    if (!x || !y || (axis >= 0 && other >= 0 && axis != other))
        return NULL;
    axis = axis >= 0 ? axis : other >= 0 ? other : 0;
    const bool one = mgx_shape_elements(&x->shape) == 1 && mgx_shape_elements(&y->shape) == 1;
    const struct mgx_shape like = at->shape;
    int64_t lens[MGX_MAX_RANK];
    for (int d = 0; d < like.rank; d++)
        lens[d] = d == axis && !one ? like.lens[axis] : 1;
    const struct mgx_shape laid = mgx_shape_make(MGX_FLOAT, like.rank, lens);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &laid, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < lens[axis]; i++) {
        const double v = value_of(x, i), w = value_of(y, i);
        ((float *)t.data)[i] = (float)(how == SUM ? v + w : how == PRODUCT ? v * w : -v * w);
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return mgx_emit_multibroadcast(at, literal, like.lens, like.rank);
}

static struct mgx_ins *fp8_by_columns(struct mgx_ins *ins)
{
    struct mgx_ins *x = ins->in[0], *s = ins->in[1];
    const struct mgx_shape like = x->shape;
    struct mgx_ins *f = ins->in_count == 2 && mgx_type_is_fp8(ins->shape.type) && constant_of(s) &&
                                x->shape.type == MGX_FLOAT
                            ? reciprocal(ins, s)
                            : NULL;
    if (!f)
        return NULL;
    return mgx_emit_again(ins, ins,
                          (struct mgx_ins *[]){mgx_emit_binary(ins, &mgx_op_mul, x, f),
                                               mgx_emit_splat(ins, &like, 1)},
                          2);
}

// x f + c, of columns; where x is made of bytes or sums f goes into their scale, and a zero point
// into c.
static struct mgx_ins *times_plus(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *f,
                                  struct mgx_ins *c)
{
    const bool made = x->op == &mgx_op_dequantizelinear && mgx_used_once(x);
    struct mgx_ins *t = made ? combine(at, x->in[1], f, PRODUCT) : NULL;
    struct mgx_ins *less = t && x->in_count == 3 ? combine(at, x->in[2], t, LESS_PRODUCT) : NULL;
    struct mgx_ins *both = less ? combine(at, c, less, SUM) : NULL;
    const bool fits = t && (both || x->in_count == 2);
    struct mgx_ins *y = fits ? mgx_emit_before(at, x->op, NULL, MGX_IN(x->in[0], t))
                             : mgx_emit_binary(at, &mgx_op_mul, x, f);
    return mgx_emit_binary(at, &mgx_op_add, y, fits && both ? both : c);
}

// Bytes whose scale or zero point differs from column to column, as a share of their range.
static struct mgx_ins *bytes_by_columns(struct mgx_ins *ins)
{
    const enum mgx_type type = ins->shape.type;
    const double low = mgx_type_lowest(type), steps = mgx_type_highest(type) - low;
    struct mgx_ins *x = ins->in[0], *s = ins->in[1], *zero = ins->in_count == 3 ? ins->in[2] : NULL;
    const struct mgx_shape like = x->shape;
    int axis, other;
    if (!zero || !mgx_type_is_byte(type) || like.type != MGX_FLOAT || constant_of(x) ||
        !constant_of(s) || !core_of(s, &axis) || !core_of(zero, &other) ||
        (axis >= 0 && other >= 0 && axis != other))
        return NULL;
    struct mgx_ins *f = reciprocal(ins, s);
    if (!f)
        return NULL;
    struct mgx_ins *share = mgx_emit_splat(ins, &like, 1 / steps);
    struct mgx_ins *c = combine(ins, zero, share, PRODUCT);
    c = c ? combine(ins, c, mgx_emit_splat(ins, &like, -low / steps), SUM) : NULL;
    f = multiply(ins, f, 1 / steps);
    x = f && c ? times_plus(ins, x, f, c) : NULL;
    struct mgx_ins *lowest = mgx_literal_double(ins->owner, type, low);
    lowest = mgx_emit_multibroadcast(ins, lowest, like.lens, like.rank);
    return x ? mgx_emit_again(ins, ins, (struct mgx_ins *[]){x, share, lowest}, 3) : NULL;
}

static struct mgx_ins *by_product(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    double s, zero;
    (void)r, (void)m;
    struct mgx_ins *x = ins->in[0];
    if (!mgx_splat_value(ins->in[1], &s) ||
        (ins->in_count == 3 && !mgx_splat_value(ins->in[2], &zero)))
        return mgx_type_is_fp8(ins->shape.type) ? fp8_by_columns(ins) : bytes_by_columns(ins);
    if (!is_plain_scale(ins->in[1], &s) || s == 1 || is_share(ins) || x->shape.type != MGX_FLOAT)
        return NULL;
    const struct mgx_shape like = x->shape;
    struct mgx_ins *y =
        takes(x, DEEPEST) ? scaled(ins, x, 1 / s)
                          : mgx_emit_binary(ins, &mgx_op_mul, x, mgx_emit_splat(ins, &like, 1 / s));
    struct mgx_ins *one = mgx_emit_splat(ins, &like, 1), *in[] = {y, one, NULL};
    if (ins->in_count == 3)
        in[2] = ins->in[2];
    return y && one ? mgx_emit_again(ins, ins, in, ins->in_count) : NULL;
}

static struct mgx_ins *term_out(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)r, (void)m;
    struct mgx_ins *sum = ins->in[0];
    const bool less = sum->op == &mgx_op_sub;
    if (ins->in_count != 2 || (sum->op != &mgx_op_add && !less) || sum->shape.type != MGX_INT32 ||
        ins->shape.type != MGX_FLOAT)
        return NULL;
    for (int i = 0; i < (less ? 1 : 2); i++) {
        struct mgx_ins *term =
            combine(ins, sum->in[1 - i], ins->in[1], less ? LESS_PRODUCT : PRODUCT);
        if (!term)
            continue;
        struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dequantizelinear, sum->in[i], ins->in[1]);
        return mgx_emit_binary(ins, &mgx_op_add, y, term);
    }
    return NULL;
}

static struct mgx_ins *join_terms(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r, (void)m;
    struct mgx_ins *inner = ins->in[0];
    if (inner->op != &mgx_op_add || !mgx_used_once(inner) || ins->shape.type != MGX_FLOAT ||
        inner->in[0]->op != &mgx_op_dequantizelinear ||
        inner->in[0]->in[0]->shape.type != MGX_INT32)
        return NULL;
    struct mgx_ins *both = combine(ins, inner->in[1], ins->in[1], SUM);
    return both ? mgx_emit_binary(ins, &mgx_op_add, inner->in[0], both) : NULL;
}

// A byte's zero point, as a part of what is added anyway: dequantizelinear(x, t) + (c - z t).
// NULL: x has none.
static struct mgx_ins *without_zero(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *c)
{
    if (x->op != &mgx_op_dequantizelinear || x->in_count != 3 ||
        !mgx_type_is_byte(x->in[0]->shape.type) || x->shape.type != MGX_FLOAT || !constant_of(c))
        return NULL;
    struct mgx_ins *less = combine(at, x->in[2], x->in[1], LESS_PRODUCT);
    struct mgx_ins *term = less ? combine(at, c, less, SUM) : NULL;
    if (!term)
        return NULL;
    struct mgx_ins *y = mgx_emit_before(at, x->op, NULL, MGX_IN(x->in[0], x->in[1]));
    return mgx_emit_binary(at, &mgx_op_add, y, term);
}

// Do its bytes lie in memory, for others?
static bool is_kept(const struct mgx_ins *bytes)
{
    return bytes->op != &mgx_op_quantizelinear || !mgx_used_once(bytes);
}

static struct mgx_ins *zero_out(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)r, (void)m;
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *x = ins->in[i], *c = ins->in[1 - i], *y = without_zero(ins, x, c);
        if (y)
            return y;
        if (x->op != &mgx_op_add || !mgx_used_once(x))
            continue;
        for (int k = 0; k < 2; k++)
            if (x->in[k]->in_count == 3 && is_kept(x->in[k]->in[0]) &&
                (y = without_zero(ins, x->in[k], c)))
                return mgx_emit_binary(ins, &mgx_op_add, y, x->in[1 - k]);
    }
    return NULL;
}

// On the way to bytes alone: what an activation is made of is recognised by its factors later.
static struct mgx_ins *into_what_takes(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)r, (void)m;
    double f;
    if (!mgx_used_once(ins) || ins->shape.type != MGX_FLOAT ||
        (ins->uses->user->op != &mgx_op_add && ins->uses->user->op != &mgx_op_quantizelinear))
        return NULL;
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *x = ins->in[i];
        if (mgx_used_once(x) && !constant_of(x) && takes(x, DEEPEST) &&
            is_plain_scale(ins->in[1 - i], &f))
            return scaled(ins, x, f);
    }
    return NULL;
}

static struct mgx_ins *without_relu(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r, (void)m;
    double zero = 0;
    if (ins->in[0]->op != &mgx_op_relu || !(mgx_is_splat(ins->in[1], 1) || is_share(ins)) ||
        (ins->in_count == 3 && !mgx_splat_value(ins->in[2], &zero)) ||
        zero != mgx_type_lowest(ins->shape.type))
        return NULL;
    struct mgx_ins *in[] = {ins->in[0]->in[0], ins->in[1], NULL};
    if (ins->in_count == 3)
        in[2] = ins->in[2];
    return mgx_emit_again(ins, ins, in, ins->in_count);
}

// x + value, as a part of a constant that is added anyway, where there is one.
static struct mgx_ins *plus(struct mgx_ins *at, struct mgx_ins *x, double value, int depth)
{
    struct mgx_ins *term = value == 0 ? NULL : mgx_emit_splat(at, &at->in[0]->shape, value);
    if (value == 0)
        return x;
    for (int i = 0; i < 2 && depth > 0 && x->op == &mgx_op_add && mgx_used_once(x); i++) {
        struct mgx_ins *both = combine(at, x->in[i], term, SUM);
        if (both)
            return mgx_emit_binary(at, &mgx_op_add, x->in[1 - i], both);
    }
    for (int i = 0; i < 2 && depth > 0 && x->op == &mgx_op_add && mgx_used_once(x); i++)
        if (x->in[i]->op == &mgx_op_add)
            return mgx_emit_binary(at, &mgx_op_add, x->in[1 - i],
                                   plus(at, x->in[i], value, depth - 1));
    return mgx_emit_binary(at, &mgx_op_add, x, term);
}

// Is it multiplied by something so small that a part of that is no normal float?
static bool is_tiny_product(const struct mgx_ins *x, double steps)
{
    double f;
    return x->op == &mgx_op_mul && mgx_splat_value(x->in[1], &f) && fabs(f) < steps * FLT_MIN;
}

static struct mgx_ins *to_share(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)r, (void)m;
    const enum mgx_type type = ins->shape.type;
    const double low = mgx_type_lowest(type), steps = mgx_type_highest(type) - low;
    double zero = 0;
    struct mgx_ins *x = ins->in[0];
    if (!mgx_is_splat(ins->in[1], 1) || !mgx_type_is_byte(type) || x->shape.type != MGX_FLOAT ||
        (ins->in_count == 3 && !mgx_splat_value(ins->in[2], &zero)) || constant_of(x) ||
        !takes(x, DEEPEST) || is_tiny_product(x, steps))
        return NULL;
    const struct mgx_shape like = x->shape;
    x = scaled(ins, x, 1 / steps);
    x = x ? plus(ins, x, (zero - low) / steps, DEEPEST) : NULL;
    struct mgx_ins *lowest = mgx_literal_double(ins->owner, type, low);
    struct mgx_ins *in[] = {x, mgx_emit_splat(ins, &like, (float)(1 / steps)),
                            mgx_emit_multibroadcast(ins, lowest, like.lens, like.rank)};
    if (!x || !in[1] || !in[2])
        return NULL;
    // It may have had no zero point so far.
    return mgx_insert(ins->owner, ins, ins->op, ins->attr, in, 3, NULL, 0);
}

// Is each byte made of itself, with certainty?
static bool all_stay(enum mgx_type type, double zero, double t, double c)
{
    enum { CERTAIN = 4 };
    const double low = mgx_type_lowest(type), high = mgx_type_highest(type);
    bool stay = true;
    for (double k = low; k <= high; k++)
        stay = stay && fabs(((k - zero) * t + c) * (high - low) + low - k) * CERTAIN < 1;
    return stay;
}

// Scales of one range that differ in their last digits.
static struct mgx_ins *twice_the_same(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)r, (void)m;
    double t, zero = 0, f = 1, c = 0;
    struct mgx_ins *x = ins->in[0];
    if (x->op == &mgx_op_add && mgx_splat_value(x->in[1], &c))
        x = x->in[0];
    if (x->op == &mgx_op_mul && mgx_splat_value(x->in[1], &f))
        x = x->in[0];
    return is_share(ins) && x->op == &mgx_op_dequantizelinear &&
                   x->in[0]->shape.type == ins->shape.type && mgx_splat_value(x->in[1], &t) &&
                   (x->in_count < 3 || mgx_splat_value(x->in[2], &zero)) &&
                   all_stay(ins->shape.type, zero, t * f, c)
               ? x->in[0]
               : NULL;
}

static const struct mgx_rule rules[] = {
    {"dequantizelinear ~> dequantizelinear(x, t) + c t, of x + c", MGX_IF_STATIC,
     .rewrite = term_out},
    {"add ~> a + (b + c), of (a + b) + c", MGX_IF_STATIC, .rewrite = join_terms},
    {"add ~> dequantizelinear(x, t) + (c - z t), of dequantizelinear(x, t, z) + c", MGX_IF_STATIC,
     .rewrite = zero_out},
    {"mul ~> x f, of x that takes f", MGX_IF_STATIC, .rewrite = into_what_takes},
    {"quantizelinear ~> quantizelinear(x f, 1, z)", MGX_IF_STATIC, .rewrite = by_product},
    {"quantizelinear ~> quantizelinear(x, 1, z), of relu(x)", MGX_IF_STATIC,
     .rewrite = without_relu},
    {"quantizelinear ~> quantizelinear(x / 255 + c, 1 / 255, lowest)", MGX_IF_STATIC,
     .rewrite = to_share},
    {"quantizelinear ~> x, of dequantizelinear(x, t, z), each of whose bytes stays", MGX_IF_STATIC,
     .rewrite = twice_the_same},
};

const struct mgx_pass mgx_pass_scale_once = {
    .name = "scale_once",
    .meaning = "multiplies once on the way to bytes, and divides never",
    .rules = {rules, MGX_COUNT(rules)},
};
