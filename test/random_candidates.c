// SPDX-License-Identifier: MIT
// What random programs are made of: single operators and the patterns models are full of.
//
// A candidate draws its operands from the pool and returns the index of its result, -1 when it
// found none or the judge refused. The table at the end gives each its weight.
#include <string.h>

#include "base/size.h"
#include "random_builder.h"

static const struct mgx_shape *shape_of(const struct random_builder *b, int v)
{
    return random_shape(b, v);
}

static bool any_number(const struct mgx_shape *s)
{
    return mgx_type_is_number(s->type);
}

static bool is_float(const struct mgx_shape *s)
{
    return mgx_type_is_float(s->type);
}

static bool has_axis(const struct mgx_shape *s)
{
    return any_number(s) && s->rank > 0;
}

static bool is_matrix(const struct mgx_shape *s)
{
    return any_number(s) && s->type != MGX_BOOL && s->rank >= 2;
}

static bool is_image(const struct mgx_shape *s)
{
    return any_number(s) && s->type != MGX_BOOL && s->rank == 4 && mgx_shape_elements(s) > 0;
}

static int unary(struct random_builder *b, const struct mgx_op *op, int x)
{
    return random_emit(b, op, NULL, &x, 1);
}

static int binary(struct random_builder *b, const struct mgx_op *op, int x, int y)
{
    return random_emit(b, op, NULL, (const int[]){x, y}, 2);
}

static int with_axes(struct random_builder *b, const struct mgx_op *op, int x, const int64_t *axes,
                     int count)
{
    return random_emit(b, op, MGX_ATTRS(mgx_ints("axes", axes, count)), &x, 1);
}

static int reshaped(struct random_builder *b, int x, const int64_t *lens, int rank)
{
    return random_emit(b, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", lens, rank)), &x, 1);
}

static int broadcast_to(struct random_builder *b, int x, const struct mgx_shape *s)
{
    return random_emit(b, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", s->lens, s->rank)),
                       &x, 1);
}

static int sliced(struct random_builder *b, int x, int64_t axis, int64_t start, int64_t end)
{
    return random_emit(b, &mgx_op_slice,
                       MGX_ATTRS(mgx_ints("axes", &axis, 1), mgx_ints("starts", &start, 1),
                                 mgx_ints("ends", &end, 1)),
                       &x, 1);
}

static int concat(struct random_builder *b, const int *in, int count, int axis)
{
    return random_emit(b, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", axis)), in, count);
}

// A vector literal laid along one axis.
static int along(struct random_builder *b, const struct mgx_shape *like, int axis, double low,
                 double high)
{
    struct mgx_shape s = mgx_shape_vector(like->type, like->lens[axis]);
    const struct mgx_shape full = *like;
    const int v = random_literal(b, &s, low, high);
    return v < 0 ? v
                 : random_emit(
                       b, &mgx_op_broadcast,
                       MGX_ATTRS(mgx_int("axis", axis), mgx_ints("out_lens", full.lens, full.rank)),
                       &v, 1);
}

// --- pointwise ---

static int draw_unary(struct random_builder *b)
{
    static const struct mgx_op *const ops[] = {
        &mgx_op_abs,  &mgx_op_neg,       &mgx_op_relu,  &mgx_op_sigmoid, &mgx_op_tanh,
        &mgx_op_exp,  &mgx_op_sqrt,      &mgx_op_recip, &mgx_op_erf,     &mgx_op_floor,
        &mgx_op_ceil, &mgx_op_log,       &mgx_op_rsqrt, &mgx_op_sign,    &mgx_op_nearbyint,
        &mgx_op_neg,  &mgx_op_isnan,     &mgx_op_not,   &mgx_op_sin,     &mgx_op_identity,
        &mgx_op_relu, &mgx_op_contiguous};
    return unary(b, ops[random_below(b, MGX_COUNT(ops))], random_pick(b, any_number));
}

static const struct mgx_op *draw_binary_op(struct random_builder *b)
{
    static const struct mgx_op *const ops[] = {
        &mgx_op_add,   &mgx_op_add,        &mgx_op_mul,   &mgx_op_mul,    &mgx_op_sub,
        &mgx_op_sub,   &mgx_op_div,        &mgx_op_max,   &mgx_op_min,    &mgx_op_pow,
        &mgx_op_less,  &mgx_op_greater,    &mgx_op_equal, &mgx_op_sqdiff, &mgx_op_mod,
        &mgx_op_prelu, &mgx_op_logical_and};
    return ops[random_below(b, MGX_COUNT(ops))];
}

static int draw_binary(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    const int y = random_operand(b, &like, random_chance(b, 10) ? -1 : x);
    const struct mgx_op *op = draw_binary_op(b);
    return random_chance(b, 50) ? binary(b, op, x, y) : binary(b, op, y, x);
}

// Constants in a row, for the rules that bring them together.
static int draw_affine(struct random_builder *b)
{
    int x = random_pick(b, any_number);
    static const struct mgx_op *const ops[] = {&mgx_op_add, &mgx_op_mul, &mgx_op_sub,
                                               &mgx_op_div, &mgx_op_max, &mgx_op_min};
    for (int i = 1 + random_below(b, 3); i >= 0 && x >= 0; i--) {
        static const double numbers[] = {0, 1, 2, 3, -1, 0.5, -0.25, 4};
        const struct mgx_shape like = *shape_of(b, x);
        const int a = like.rank && random_chance(b, 30)
                          ? along(b, &like, random_below(b, like.rank), 1, 3)
                          : random_splat(b, &like, numbers[random_below(b, MGX_COUNT(numbers))]);
        const struct mgx_op *op = ops[random_below(b, MGX_COUNT(ops))];
        const int y = random_chance(b, 70) ? binary(b, op, x, a) : binary(b, op, a, x);
        x = y >= 0 ? y : x;
    }
    return x;
}

static int draw_where(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    const int y = random_operand(b, &like, x), z = random_operand(b, &like, -1);
    const int condition = z < 0 ? -1 : binary(b, &mgx_op_less, x, z);
    return random_emit(b, &mgx_op_where, NULL, (const int[]){condition, x, y}, 3);
}

static int draw_clip(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    const int low = random_splat(b, &like, random_below(b, 3));
    const int high = random_splat(b, &like, 2 + random_below(b, 3));
    if (random_chance(b, 50))
        return binary(b, &mgx_op_min, binary(b, &mgx_op_max, x, low), high);
    return random_emit(b, &mgx_op_clip, NULL, (const int[]){x, low, high}, 3);
}

static int draw_convert(struct random_builder *b)
{
    static const enum mgx_type types[] = {MGX_FLOAT, MGX_DOUBLE, MGX_INT32, MGX_INT64,
                                          MGX_INT8,  MGX_HALF,   MGX_UINT8, MGX_BOOL};
    int x = random_pick(b, any_number);
    for (int i = random_below(b, 2); i >= 0 && x >= 0; i--) {
        const enum mgx_type to =
            random_chance(b, 40) ? b->type : types[random_below(b, MGX_COUNT(types))];
        x = random_emit(b, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", to)), &x, 1);
    }
    return x;
}

// --- views ---

static int draw_transpose(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    int64_t p[MGX_MAX_RANK];
    if (x < 0)
        return -1;
    const int rank = shape_of(b, x)->rank;
    for (int d = 0; d < rank; d++)
        p[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        const int other = random_below(b, d + 1);
        const int64_t was = p[d];
        p[d] = p[other];
        p[other] = was;
    }
    return random_emit(b, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", p, rank)), &x, 1);
}

// Random lengths with the same product: prime factors dealt out again.
static int draw_reshape(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0 || !mgx_shape_elements(shape_of(b, x)))
        return -1;
    const struct mgx_shape s = *shape_of(b, x);
    int64_t lens[MGX_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < s.rank; d++) { // merge with the axis before, split, or keep
        const int way = random_below(b, 4);
        if (way == 0 && rank > 0) {
            lens[rank - 1] *= s.lens[d];
        } else if (way == 1 && s.lens[d] % 2 == 0 && rank < 5) {
            lens[rank++] = 2;
            lens[rank++] = s.lens[d] / 2;
        } else {
            lens[rank++] = s.lens[d];
        }
        if (random_chance(b, 10) && rank < 6)
            lens[rank++] = 1;
    }
    return rank > 6 ? -1 : reshaped(b, x, lens, rank);
}

static int draw_squeeze(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0)
        return -1;
    const int rank = shape_of(b, x)->rank;
    if (rank < 5 && random_chance(b, 50)) {
        const int64_t axis = random_below(b, rank + 1);
        return with_axes(b, &mgx_op_unsqueeze, x, &axis, 1);
    }
    for (int64_t d = 0; d < rank; d++)
        if (shape_of(b, x)->lens[d] == 1)
            return with_axes(b, &mgx_op_squeeze, x, &d, 1);
    return -1;
}

static int draw_flatten(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    return random_emit(b, &mgx_op_flatten,
                       MGX_ATTRS(mgx_int("axis", random_below(b, shape_of(b, x)->rank + 1))), &x,
                       1);
}

static int draw_broadcast(struct random_builder *b)
{
    const int x = random_pick(b, any_number);
    if (x < 0)
        return -1;
    struct mgx_shape s = *shape_of(b, x);
    for (int d = 0; d < s.rank; d++)
        if (s.lens[d] == 1 && random_chance(b, 60))
            s.lens[d] = 1 + random_below(b, 4);
    if (s.rank < 4 && random_chance(b, 40)) {
        memmove(s.lens + 1, s.lens, (size_t)s.rank * sizeof *s.lens);
        s.lens[0] = 1 + random_below(b, 4);
        s.rank++;
    }
    return broadcast_to(b, x, &s);
}

static int draw_slice(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    const int axis = random_below(b, shape_of(b, x)->rank);
    const int64_t length = shape_of(b, x)->lens[axis];
    if (length < 1)
        return -1;
    const int64_t start = random_below(b, (int)length);
    const int64_t end = start + 1 + random_below(b, (int)(length - start));
    return random_chance(b, 20) ? sliced(b, x, axis - shape_of(b, x)->rank, start - length, end)
                                : sliced(b, x, axis, start, end);
}

// Parts of one value, some of them worked on, put together again.
static int draw_split(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    const int axis = random_below(b, shape_of(b, x)->rank);
    const int64_t length = shape_of(b, x)->lens[axis];
    int part[RANDOM_IN], count = 0;
    for (int64_t at = 0; at < length && count < RANDOM_IN;) {
        const int64_t end =
            count + 1 == RANDOM_IN ? length : at + 1 + random_below(b, (int)(length - at));
        part[count++] = sliced(b, x, axis, at, end);
        at = end;
    }
    const int work = random_below(b, 4); // on all, on one, or on none
    const struct mgx_op *op = random_chance(b, 50) ? &mgx_op_neg : &mgx_op_relu;
    for (int i = 0; i < count && work < 2; i++)
        if (work == 0 || i == 0) {
            const struct mgx_shape like = *shape_of(b, part[i] < 0 ? x : part[i]);
            part[i] = random_chance(b, 50)
                          ? unary(b, op, part[i])
                          : binary(b, &mgx_op_add, part[i], along(b, &like, axis, -1, 2));
        }
    if (count == 0 || random_chance(b, 20))
        return count ? part[0] : -1;
    return concat(b, part, count, axis);
}

static int draw_concat(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    int in[3] = {x, random_operand(b, &like, -1), x};
    return concat(b, in, 1 + random_below(b, 3), random_below(b, like.rank));
}

static int draw_gather(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    const int axis = random_below(b, shape_of(b, x)->rank);
    const int64_t length = shape_of(b, x)->lens[axis];
    struct mgx_shape s = mgx_shape_vector(MGX_INT64, 1 + random_below(b, 4));
    if (length < 1 || random_chance(b, 20))
        s = mgx_shape_scalar(MGX_INT64);
    const int i = random_literal(b, &s, 0, (double)length);
    return random_emit(b, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", axis)), (const int[]){x, i}, 2);
}

// Indices in a row, which are a slice in truth.
static int draw_even_gather(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    const int axis = random_below(b, shape_of(b, x)->rank);
    const int64_t length = shape_of(b, x)->lens[axis];
    if (length < 2)
        return -1;
    struct mgx_shape s = mgx_shape_vector(MGX_INT64, 2);
    const int first = random_literal(b, &s, 0, 0);
    const int64_t start = random_below(b, (int)length - 1);
    struct mgx_shape one = mgx_shape_vector(MGX_INT64, 1);
    const int low = random_literal(b, &one, (double)start, (double)start);
    const int high = random_literal(b, &one, (double)start + 1, (double)start + 1);
    int i = random_chance(b, 20) ? first : concat(b, (const int[]){low, high}, 2, 0);
    return random_emit(b, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", axis)), (const int[]){x, i}, 2);
}

static int draw_pad(struct random_builder *b)
{
    const int x = random_pick(b, has_axis);
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    if (x < 0)
        return -1;
    const int rank = shape_of(b, x)->rank;
    for (int d = rank > 2 ? 2 : 0; d < rank; d++) {
        pads[d] = random_below(b, 2);
        pads[d + rank] = random_below(b, 3);
        if (random_chance(b, 10) && shape_of(b, x)->lens[d] > 1)
            pads[d + rank] = -1;
    }
    const int64_t mode = random_chance(b, 50) ? random_below(b, 4) : 0;
    return random_emit(b, &mgx_op_pad,
                       MGX_ATTRS(mgx_ints("pads", pads, 2 * rank), mgx_int("mode", mode),
                                 mgx_real("value", mode ? 0 : (double)random_below(b, 3))),
                       &x, 1);
}

// --- reductions ---

static int draw_reduce(struct random_builder *b)
{
    static const struct mgx_op *const ops[] = {&mgx_op_reduce_sum, &mgx_op_reduce_mean,
                                               &mgx_op_reduce_max, &mgx_op_reduce_min,
                                               &mgx_op_reduce_sum, &mgx_op_reduce_prod};
    const int x = random_pick(b, has_axis);
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    if (x < 0 || shape_of(b, x)->type == MGX_BOOL)
        return -1;
    for (int d = 0; d < shape_of(b, x)->rank; d++)
        if (random_chance(b, 40))
            axes[count++] = d;
    const int y = with_axes(b, ops[random_below(b, MGX_COUNT(ops))], x, axes, count);
    if (y < 0 || random_chance(b, 50))
        return y;
    const struct mgx_shape like = *shape_of(b, x);
    return binary(b, &mgx_op_sub, x, broadcast_to(b, y, &like));
}

static int draw_softmax(struct random_builder *b)
{
    static const struct mgx_op *const ops[] = {&mgx_op_softmax, &mgx_op_logsoftmax, &mgx_op_argmax,
                                               &mgx_op_prefix_scan_sum};
    const int x = random_pick(b, has_axis);
    if (x < 0)
        return -1;
    return random_emit(b, ops[random_below(b, MGX_COUNT(ops))],
                       MGX_ATTRS(mgx_int("axis", random_below(b, shape_of(b, x)->rank))), &x, 1);
}

static bool is_float_axis(const struct mgx_shape *s)
{
    return is_float(s) && s->rank > 0 && mgx_shape_elements(s) > 0;
}

// (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta
static int draw_layer_norm(struct random_builder *b)
{
    const int x = random_pick(b, is_float_axis);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    const int64_t axis = like.rank - 1;
    const int mean = with_axes(b, &mgx_op_reduce_mean, x, &axis, 1);
    const int centred = binary(b, &mgx_op_sub, x, mean < 0 ? -1 : broadcast_to(b, mean, &like));
    const int square = centred < 0 ? -1
                       : random_chance(b, 50)
                           ? binary(b, &mgx_op_mul, centred, centred)
                           : binary(b, &mgx_op_pow, centred, random_splat(b, &like, 2));
    const int variance = square < 0 ? -1 : with_axes(b, &mgx_op_reduce_mean, square, &axis, 1);
    if (variance < 0)
        return -1;
    const struct mgx_shape narrow = *shape_of(b, variance);
    const int safe = binary(b, &mgx_op_add, variance, random_splat(b, &narrow, 0.5));
    const int root = safe < 0 ? -1 : unary(b, &mgx_op_sqrt, safe);
    const int y = binary(b, &mgx_op_div, centred, root < 0 ? -1 : broadcast_to(b, root, &like));
    if (y < 0)
        return -1;
    const int z = binary(b, &mgx_op_mul, y, along(b, &like, (int)axis, 0.5, 2));
    return z < 0 ? y : binary(b, &mgx_op_add, z, along(b, &like, (int)axis, -1, 1));
}

static int draw_gelu(struct random_builder *b)
{
    const int x = random_pick(b, is_float);
    if (x < 0)
        return -1;
    const struct mgx_shape like = *shape_of(b, x);
    const int way = random_below(b, 3);
    if (way == 0) { // x * sigmoid(1.702 x)
        const int t = binary(b, &mgx_op_mul, x, random_splat(b, &like, 1.702));
        return binary(b, &mgx_op_mul, x, t < 0 ? -1 : unary(b, &mgx_op_sigmoid, t));
    }
    int t;
    if (way == 1) { // erf(x / sqrt 2)
        t = binary(b, &mgx_op_div, x, random_splat(b, &like, 1.4142135623730951));
        t = t < 0 ? -1 : unary(b, &mgx_op_erf, t);
    } else { // tanh(sqrt(2/pi) (x + 0.044715 x^3))
        const int cube = binary(b, &mgx_op_pow, x, random_splat(b, &like, 3));
        t = cube < 0 ? -1 : binary(b, &mgx_op_mul, cube, random_splat(b, &like, 0.044715));
        t = t < 0 ? -1 : binary(b, &mgx_op_add, x, t);
        t = t < 0 ? -1 : binary(b, &mgx_op_mul, t, random_splat(b, &like, 0.7978845608028654));
        t = t < 0 ? -1 : unary(b, &mgx_op_tanh, t);
    }
    t = t < 0 ? -1 : binary(b, &mgx_op_add, t, random_splat(b, &like, 1));
    if (t < 0)
        return -1;
    if (random_chance(b, 50))
        return binary(b, &mgx_op_mul, binary(b, &mgx_op_mul, x, random_splat(b, &like, 0.5)), t);
    t = binary(b, &mgx_op_mul, x, t);
    return t < 0 ? -1 : binary(b, &mgx_op_mul, t, random_splat(b, &like, 0.5));
}

// --- products ---

static int product(struct random_builder *b, int x, int64_t columns)
{
    struct mgx_shape s = *shape_of(b, x);
    const int64_t rows = s.lens[s.rank - 1];
    s.lens[s.rank - 2] = rows;
    s.lens[s.rank - 1] = columns;
    struct mgx_shape flat = mgx_shape_make(s.type, 2, s.lens + s.rank - 2);
    if (s.rank == 2 || random_chance(b, 30))
        return binary(b, &mgx_op_dot, x, random_literal(b, &s, -1, 2));
    const int w = random_literal(b, &flat, -1, 2);
    return binary(b, &mgx_op_dot, x, w < 0 ? -1 : broadcast_to(b, w, &s));
}

static int scaled(struct random_builder *b, int y, int axis)
{
    static const struct mgx_op *const ops[] = {&mgx_op_mul, &mgx_op_add, &mgx_op_sub, &mgx_op_div};
    for (int i = random_below(b, 3); i > 0 && y >= 0; i--) {
        const struct mgx_shape like = *shape_of(b, y);
        const int a = random_chance(b, 80) ? along(b, &like, axis, 1, 3)
                                           : random_splat(b, &like, 1 + random_below(b, 3));
        const int z = binary(b, ops[random_below(b, MGX_COUNT(ops))], y, a);
        y = z >= 0 ? z : y;
    }
    return y;
}

static int draw_dot(struct random_builder *b)
{
    int x = random_pick(b, is_matrix);
    if (x < 0)
        return -1;
    const int rank = shape_of(b, x)->rank;
    x = scaled(b, x, random_chance(b, 70) ? rank - 1 : rank - 2);
    if (random_chance(b, 30)) { // a constant on the left
        struct mgx_shape s = *shape_of(b, x);
        s.lens[rank - 1] = s.lens[rank - 2];
        s.lens[rank - 2] = 1 + random_below(b, 4);
        const int y = binary(b, &mgx_op_dot, random_literal(b, &s, -1, 2), x);
        return scaled(b, y, random_chance(b, 30) ? rank - 1 : rank - 2);
    }
    const int y = product(b, x, 1 + random_below(b, 5));
    return scaled(b, y, random_chance(b, 70) ? rank - 1 : rank - 2);
}

// Several products of one input, each with its bias: the start of attention.
static int draw_projections(struct random_builder *b)
{
    const int x = random_pick(b, is_matrix);
    int y[3];
    if (x < 0)
        return -1;
    const int axis = shape_of(b, x)->rank - 1;
    const int64_t columns = 2 * (1 + random_below(b, 2));
    const bool bias = random_chance(b, 60);
    for (int i = 0; i < 3; i++) {
        y[i] = product(b, x, columns);
        if (y[i] >= 0 && bias) {
            const struct mgx_shape like = *shape_of(b, y[i]);
            y[i] = binary(b, &mgx_op_add, y[i], along(b, &like, axis, -1, 2));
        }
    }
    const int z = binary(b, &mgx_op_mul, y[0], y[1]);
    return z < 0 ? y[2] : binary(b, &mgx_op_add, z, y[2]);
}

static int convolution(struct random_builder *b, int x, int64_t outputs, int64_t kernel,
                       int64_t group)
{
    const int64_t channels = shape_of(b, x)->lens[1];
    const int64_t pad = random_chance(b, 50) ? kernel / 2 : 0, stride = 1 + random_chance(b, 20);
    struct mgx_shape s = {.type = shape_of(b, x)->type, .rank = 4};
    const int64_t lens[] = {outputs, channels / group, kernel, kernel};
    const int64_t padding[] = {pad, pad}, strides[] = {stride, stride};
    s = mgx_shape_make(s.type, 4, lens);
    const int w = random_literal(b, &s, -1, 2);
    return random_emit(b, &mgx_op_convolution,
                       MGX_ATTRS(mgx_ints("padding", padding, 2), mgx_ints("stride", strides, 2),
                                 mgx_int("group", group)),
                       (const int[]){x, w}, 2);
}

static int draw_convolution(struct random_builder *b)
{
    int x = random_pick(b, is_image);
    if (x < 0)
        return -1;
    x = scaled(b, x, 1);
    const int64_t channels = shape_of(b, x)->lens[1];
    int64_t group = 1;
    for (int64_t g = 2; g <= channels; g++)
        if (channels % g == 0 && random_chance(b, 30))
            group = g;
    const int64_t outputs = group * (1 + random_below(b, 3));
    const int y = convolution(b, x, outputs, random_chance(b, 50) ? 1 : 2, group);
    return scaled(b, y, 1);
}

static int draw_deconvolution(struct random_builder *b)
{
    int x = random_pick(b, is_image);
    if (x < 0)
        return -1;
    x = scaled(b, x, 1);
    const int64_t channels = shape_of(b, x)->lens[1];
    const int64_t group = channels % 2 == 0 && random_chance(b, 50) ? 2 : 1;
    const int64_t lens[] = {channels, 1 + random_below(b, 3), 2, 2};
    const struct mgx_shape s = mgx_shape_make(shape_of(b, x)->type, 4, lens);
    const int w = random_literal(b, &s, -1, 2);
    const int y = random_emit(b, &mgx_op_convolution_backwards, MGX_ATTRS(mgx_int("group", group)),
                              (const int[]){x, w}, 2);
    return scaled(b, y, 1);
}

static int draw_branches(struct random_builder *b)
{
    const int x = random_pick(b, is_image);
    int y[2];
    if (x < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        const int64_t lens[] = {1 + random_below(b, 3), shape_of(b, x)->lens[1], 1, 1};
        const struct mgx_shape s = mgx_shape_make(shape_of(b, x)->type, 4, lens);
        const int w = random_literal(b, &s, -1, 2);
        y[i] = scaled(b, random_emit(b, &mgx_op_convolution, NULL, (const int[]){x, w}, 2), 1);
        if (y[i] >= 0 && random_chance(b, 50))
            y[i] = unary(b, &mgx_op_relu, y[i]);
    }
    return concat(b, y, 2, 1);
}

static int draw_pooling(struct random_builder *b)
{
    const int x = random_pick(b, is_image);
    if (x < 0)
        return -1;
    const bool global = random_chance(b, 30);
    const int64_t lengths[] = {global ? shape_of(b, x)->lens[2] : 2,
                               global ? shape_of(b, x)->lens[3] : 2};
    const int64_t padding[] = {random_chance(b, 20) && !global, 0};
    return random_emit(b, &mgx_op_pooling,
                       MGX_ATTRS(mgx_ints("lengths", lengths, 2), mgx_ints("padding", padding, 2),
                                 mgx_text("mode", random_chance(b, 50) ? "average" : "max"),
                                 mgx_int("count_include_pad", random_chance(b, 50))),
                       &x, 1);
}

// --- bodies ---

// One branch reads a value from outside and works on it; the other has the same shape.
static int draw_if(struct random_builder *b)
{
    const struct mgx_op *element = mgx_op_find("get_tuple_elem");
    const int x = random_pick(b, any_number);
    if (x < 0 || !element || b->options->no_bodies || b->depth > 1)
        return -1;
    const struct mgx_shape like = *shape_of(b, x), bit = mgx_shape_scalar(MGX_BOOL);
    const int y = random_operand(b, &like, x);
    int condition = random_literal(b, &bit, 0, 1);
    struct mgx_module *const outer = b->module, *mods[2];
    const int base = b->count;
    if (y < 0 || condition < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        mods[i] = mgx_program_add_module(b->program, i ? "else" : "then");
        b->module = mods[i];
        b->depth++;
        int v = binary(b, draw_binary_op(b), i ? y : x, i ? x : y);
        if (v < 0 || shape_of(b, v)->type != like.type)
            v = i ? y : x;
        if (mods[i])
            mgx_add_return(mods[i], &b->pool[v].ins, 1);
        b->depth--;
        b->count = base; // values of the body are out of reach
    }
    b->module = outer;
    const int tuple = random_emit_bodies(b, &mgx_op_if, NULL, &condition, 1, mods, 2);
    return random_emit(b, element, MGX_ATTRS(mgx_int("index", 0)), &tuple, 1);
}

static const struct candidate {
    int weight;
    int (*draw)(struct random_builder *b);
} table[] = {
    {10, draw_unary},        {14, draw_binary},  {10, draw_affine},     {3, draw_where},
    {3, draw_clip},          {5, draw_convert},  {7, draw_transpose},   {6, draw_reshape},
    {4, draw_squeeze},       {1, draw_flatten},  {4, draw_broadcast},   {4, draw_slice},
    {5, draw_split},         {4, draw_concat},   {2, draw_gather},      {2, draw_even_gather},
    {3, draw_pad},           {6, draw_reduce},   {2, draw_softmax},     {3, draw_layer_norm},
    {3, draw_gelu},          {7, draw_dot},      {3, draw_projections}, {7, draw_convolution},
    {3, draw_deconvolution}, {3, draw_branches}, {3, draw_pooling},     {3, draw_if},
};

void random_step(struct random_builder *b)
{
    int total = 0;
    for (int i = 0; i < MGX_COUNT(table); i++)
        total += table[i].weight;
    int at = random_below(b, total), i = 0;
    while (at >= table[i].weight)
        at -= table[i++].weight;
    table[i].draw(b);
}
