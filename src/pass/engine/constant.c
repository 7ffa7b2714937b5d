// SPDX-License-Identifier: MIT
// Which instructions are constants and what they hold; see constant.h.
#include "pass/engine/constant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "pass/engine/walk.h"

// --- marks ---

static bool inputs_constant(const struct mgx_module *m, struct mgx_ins *ins, int depth);

static bool is_constant(const struct mgx_module *m, struct mgx_ins *ins, int depth)
{
    assert(depth >= 0);
    if (ins->literal || ins->owner != m)
        return ins->literal != NULL;
    if (ins->mark == MGX_MARK_UNKNOWN)
        ins->mark = inputs_constant(m, ins, depth) ? MGX_MARK_CONSTANT : MGX_MARK_VARIABLE;
    return ins->mark == MGX_MARK_CONSTANT;
}

static bool inputs_constant(const struct mgx_module *m, struct mgx_ins *ins, int depth)
{
    assert(depth >= 0 && ins->owner == m);
    if (!mgx_is_pure(ins) || !ins->in_count || !depth)
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!is_constant(m, ins->in[i], depth - 1))
            return false;
    return true;
}

enum { MAX_DEPTH = 16 }; // of instructions made since the marks were set

bool mgx_is_constant(const struct mgx_module *m, struct mgx_ins *ins)
{
    return is_constant(m, ins, MAX_DEPTH);
}

void mgx_mark_constants(struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        ins->mark = MGX_MARK_UNKNOWN;
        if (!ins->literal) // in order: every input is marked already
            ins->mark = inputs_constant(m, ins, 2) ? MGX_MARK_CONSTANT : MGX_MARK_VARIABLE;
    }
}

// --- values ---

const struct mgx_ins *mgx_strip_views(const struct mgx_ins *ins)
{
    static const struct mgx_op *const views[] = {
        &mgx_op_multibroadcast, &mgx_op_broadcast, &mgx_op_scalar,    &mgx_op_reshape,
        &mgx_op_unsqueeze,      &mgx_op_squeeze,   &mgx_op_transpose, &mgx_op_contiguous,
        &mgx_op_flatten,        &mgx_op_identity,  &mgx_op_slice};
    for (;;) {
        bool view = false;
        for (int i = 0; i < MGX_COUNT(views) && !view; i++)
            view = ins->op == views[i];
        if (!view || !ins->in_count)
            return ins;
        ins = ins->in[0];
    }
}

bool mgx_is_joined(const struct mgx_ins *ins)
{
    enum { LARGE = 1 << 20 };
    return ins->op == &mgx_op_concat && mgx_shape_is_static(&ins->shape) &&
           mgx_type_is_number(ins->shape.type) && mgx_shape_bytes(&ins->shape) >= LARGE;
}

static bool widens(const struct mgx_ins *ins)
{
    assert(ins->in_count || ins->op != &mgx_op_convert);
    if (ins->op != &mgx_op_convert || ins->shape.type != MGX_FLOAT || !ins->in[0]->literal)
        return false;
    const enum mgx_type from = ins->in[0]->shape.type;
    return mgx_type_is_half_or_bf16(from);
}

static bool has_literals(const struct mgx_ins *ins)
{
    bool known = true;
    for (int i = 0; i < ins->in_count && known; i++)
        known = ins->in[i]->literal != NULL;
    return known;
}

// Scales are small beside what they scale.
static bool only_scales(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op != &mgx_op_dequantize_blocks)
            return false;
    return ins->uses != NULL;
}

bool mgx_is_widened(const struct mgx_ins *ins)
{
    enum { LARGE = 64 << 10 };
    return mgx_shape_is_static(&ins->shape) && mgx_shape_bytes(&ins->shape) >= LARGE &&
           (ins->op == &mgx_op_dequantize_blocks || (widens(ins) && !only_scales(ins)));
}

bool mgx_is_joined_weights(const struct mgx_ins *ins)
{
    if (mgx_is_widened(ins))
        return has_literals(ins);
    if (!mgx_is_joined(ins))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!ins->in[i]->literal && !widens(ins->in[i]))
            return false;
    return true;
}

// The literal behind views, if it holds numbers; and how many elements its memory spans. Every
// element counts, gaps between strides included, which is on the safe side.
static const struct mgx_tensor *numbers(const struct mgx_ins *ins, int64_t *count)
{
    if (!mgx_shape_is_static(&ins->shape))
        return NULL;
    const struct mgx_tensor *t = mgx_strip_views(ins)->literal;
    if (!t || !mgx_type_is_number(t->shape.type))
        return NULL;
    *count = mgx_shape_space(&t->shape);
    return *count && mgx_shape_elements(&ins->shape) ? t : NULL;
}

// Are all elements the first, bit by bit?
static bool repeats(const struct mgx_tensor *t, int64_t count)
{
    const size_t size = mgx_type_size(t->shape.type);
    const char *data = t->data;
    return memcmp(data, data + size, (size_t)(count - 1) * size) == 0;
}

bool mgx_is_spread_literal(const struct mgx_ins *ins)
{
    while ((ins->op == &mgx_op_multibroadcast || ins->op == &mgx_op_broadcast) &&
           ins->in_count == 1)
        ins = ins->in[0];
    return ins->literal != NULL;
}

const struct mgx_tensor *mgx_scalar_constant(const struct mgx_ins *ins)
{
    while ((ins->op == &mgx_op_multibroadcast || ins->op == &mgx_op_broadcast ||
            ins->op == &mgx_op_scalar) &&
           ins->in_count >= 1) // a second input gives lengths only
        ins = ins->in[0];
    if (!ins->literal || !mgx_type_is_number(ins->shape.type) || !mgx_shape_elements(&ins->shape))
        return NULL;
    return mgx_shape_space(&ins->shape) == 1 ? ins->literal : NULL;
}

bool mgx_splat_value(const struct mgx_ins *ins, double *value)
{
    int64_t count = 0;
    const struct mgx_tensor *t = numbers(ins, &count);
    if (!t)
        return false;
    const enum mgx_type type = t->shape.type;
    if (mgx_type_size(type) == 8 && !mgx_type_is_float(type)) { // doubles cannot tell them apart
        const int64_t first = mgx_load_int(type, t->data, 0);
        for (int64_t i = 1; i < count; i++)
            if (mgx_load_int(type, t->data, i) != first)
                return false;
        *value = (double)first;
        return (int64_t)*value == first && (type != MGX_UINT64 || first >= 0);
    }
    *value = mgx_load_double(type, t->data, 0);
    if (repeats(t, count)) // the common case of many, whole words at a time
        return count == 1 || *value == *value;
    for (int64_t i = 1; i < count; i++)
        if (mgx_load_double(type, t->data, i) != *value)
            return false;
    return true;
}

bool mgx_has_splats(const struct mgx_ins *ins, int first)
{
    double value;
    for (int i = first; i < ins->in_count; i++)
        if (!mgx_splat_value(ins->in[i], &value))
            return false;
    return true;
}

bool mgx_is_splat(const struct mgx_ins *ins, double value)
{
    double found;
    return mgx_splat_value(ins, &found) && found == value;
}

static void widen(struct mgx_range *r, double v)
{
    const double size = fabs(v);
    r->low = v < r->low ? v : r->low;
    r->high = v > r->high ? v : r->high;
    r->large = size > r->large ? size : r->large;
    r->small = size > 0 && size < r->small ? size : r->small;
}

// Weights are many and mostly float: their loop has no call in it. They may lie at any address.
typedef float loose_float __attribute__((aligned(1), may_alias));

static bool range_of_floats(const loose_float *v, int64_t count, struct mgx_range *r)
{
    assert(count >= 0 && (v || !count));
    float low = INFINITY, high = -INFINITY, small = INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const float size = fabsf(v[i]);
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
        small = size > 0 && size < small ? size : small;
        sum += v[i] * 0; // becomes NaN with the first value that is not finite
    }
    r->low = low;
    r->high = high;
    r->small = small;
    r->large = fmax(-(double)low, high);
    return sum == 0;
}

// Of all that a concat joins, which are literals behind views.
static bool joined_range(const struct mgx_ins *concat, struct mgx_range *out)
{
    assert(concat->op == &mgx_op_concat && concat->in_count > 0);
    *out = (struct mgx_range){INFINITY, -INFINITY, INFINITY, 0};
    for (int i = 0; i < concat->in_count; i++) {
        struct mgx_range r;
        if (mgx_strip_views(concat->in[i])->op == &mgx_op_concat ||
            !mgx_constant_range(concat->in[i], &r))
            return false;
        out->low = fmin(out->low, r.low);
        out->high = fmax(out->high, r.high);
        out->large = fmax(out->large, r.large);
        if (r.small > 0)
            out->small = fmin(out->small, r.small);
    }
    if (out->large == 0)
        out->small = 0;
    return true;
}

bool mgx_constant_range(const struct mgx_ins *ins, struct mgx_range *out)
{
    int64_t count = 0;
    const struct mgx_ins *core = mgx_strip_views(ins);
    if (core->op == &mgx_op_concat && mgx_is_joined(core))
        return joined_range(core, out);
    if (mgx_is_widened(core))
        return core->op == &mgx_op_convert && mgx_constant_range(core->in[0], out);
    const struct mgx_tensor *t = numbers(ins, &count);
    if (!t)
        return false;
    bool finite = true;
    *out = (struct mgx_range){INFINITY, -INFINITY, INFINITY, 0};
    if (t->shape.type == MGX_FLOAT)
        finite = range_of_floats(t->data, count, out);
    for (int64_t i = 0; t->shape.type != MGX_FLOAT && finite && i < count; i++) {
        const double v = mgx_load_double(t->shape.type, t->data, i);
        widen(out, v);
        finite = isfinite(v);
    }
    if (out->large == 0)
        out->small = 0;
    return finite;
}

// --- signs ---

// Is no window of it all padding, whose maximum is minus infinity?
static bool sees_values(const struct mgx_ins *pool)
{
    const struct mgx_ints padding = mgx_ins_ints(pool, "padding");
    const struct mgx_ints lengths = mgx_ins_ints(pool, "lengths");
    bool sees = mgx_ints_all(mgx_ins_ints(pool, "dilations"), 1) && lengths.count > 0;
    for (int i = 0; i < padding.count && sees; i++)
        sees = padding.v[i] < lengths.v[i % lengths.count];
    return sees;
}

// Is each result some of the first input's values, or their mean, or their sum?
static bool gathers(const struct mgx_ins *ins)
{
    const struct mgx_op *op = ins->op;
    if (op == &mgx_op_pooling)
        return mgx_ins_int(ins, "mode") != 1 || sees_values(ins);
    return op == &mgx_op_reduce_sum || op == &mgx_op_reduce_mean || op == &mgx_op_reduce_max ||
           op == &mgx_op_broadcast || op == &mgx_op_reshape || op == &mgx_op_contiguous ||
           (op->flags & MGX_OP_VIEW && ins->in_count == 1);
}

static bool is_nonnegative(const struct mgx_ins *x, int depth)
{
    const struct mgx_op *op = x->op;
    struct mgx_range range;
    if (mgx_constant_range(x, &range))
        return range.low >= 0;
    if (op == &mgx_op_abs || op == &mgx_op_exp || op == &mgx_op_relu || op == &mgx_op_sigmoid ||
        op == &mgx_op_sqrt || op == &mgx_op_sqdiff || mgx_type_is_unsigned(x->shape.type))
        return true;
    if (op == &mgx_op_mul && x->in[0] == x->in[1])
        return true;
    if (op == &mgx_op_clip && x->in_count > 1)
        return mgx_constant_range(x->in[1], &range) && range.low >= 0;
    if (!depth || !x->in_count)
        return false;
    if (gathers(x))
        return is_nonnegative(x->in[0], depth - 1);
    bool all = op == &mgx_op_add || op == &mgx_op_mul || op == &mgx_op_concat;
    for (int i = 0; i < x->in_count && all; i++)
        all = is_nonnegative(x->in[i], depth - 1);
    return all;
}

bool mgx_is_nonnegative(const struct mgx_ins *ins)
{
    enum { DEPTH = 4 };
    assert(ins);
    return is_nonnegative(ins, DEPTH);
}

// Smallest number of full precision.
static double smallest_normal(enum mgx_type type)
{
    assert(mgx_type_is_float(type));
    switch (type) {
    case MGX_DOUBLE:
        return 0x1p-1022;
    case MGX_FLOAT:
    case MGX_BF16:
        return 0x1p-126;
    case MGX_HALF:
        return 0x1p-14;
    default:
        return 0x1p-6; // fp8 and narrower
    }
}

// How far above the smallest normal number the largest element of `a` must stay under every factor
// of `b`: elements that then fall below it are a thousandth of their neighbours.
enum { HEADROOM = 1024 };

bool mgx_product_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b)
{
    if (!mgx_type_is_float(type))
        return mgx_type_is_integral(type); // wraps alike in any order
    struct mgx_range x, y;
    if (!mgx_constant_range(a, &x) || !mgx_constant_range(b, &y))
        return false;
    if (x.large == 0 || y.large == 0)
        return true;
    return x.large * y.large <= mgx_type_highest(type) &&
           x.large * y.small >= smallest_normal(type) * HEADROOM;
}

bool mgx_quotient_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b)
{
    struct mgx_range x, y;
    if (!mgx_type_is_float(type) || !mgx_constant_range(a, &x) || !mgx_constant_range(b, &y) ||
        (y.low <= 0 && y.high >= 0))
        return false;
    return x.large == 0 || (x.large / y.small <= mgx_type_highest(type) &&
                            x.large / y.large >= smallest_normal(type) * HEADROOM);
}

bool mgx_sum_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b)
{
    if (!mgx_type_is_float(type))
        return mgx_type_is_integral(type);
    struct mgx_range x, y;
    return mgx_constant_range(a, &x) && mgx_constant_range(b, &y) &&
           x.large + y.large <= mgx_type_highest(type);
}
