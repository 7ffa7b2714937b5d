// SPDX-License-Identifier: MIT
// Products of bytes lose their zero points, so that kernels multiply the bytes as they are.
//
//     quant_dot(a, b, p, q)         =>  quant_dot(a, b) - p (sum b - k q) - q sum a      k: the depth
//     quant_dot(a, b#, p, q#)       =>  quant_dot(a, b) - quant_dot(a, q ones) - p (sum b - k q)
//     quant_convolution(x, w#, p, q#)
//                                   =>  quant_convolution(x, w) - quant_convolution(x, q ones)
//                                       - p (sum w - k q)
//     quant_convolution(x, w#, p, q#), depthwise, dilated across, wide or of several results a channel
//                                   =>  quant_convolution(x, w - q) - p (sum w - k q), w - q in 16 bits
//     quant_convolution(x, w#, p), padded
//                                   =>  the same of pad[value=p](x), without padding; of what is
//                                       quantized by a p that the run finds: of quantized zeros
//     int8 with a zero point of -128, uint8 with one of 128
//                                   =>  the other type's, with one of 0: the same values
//
// The last one goes before the others: through what only chooses or moves values, up to where they
// were quantized. Sums of constants are taken here. Sums wrap like those of the product, so the
// result is the same, bit for bit. What does not fit any of these keeps its zero points, and
// so does attention that the target takes as a whole, and a product of two that are computed whose
// kernel takes them off.
//
// The GPU target runs it, after simplify_qdq.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "pass/engine/byte_attention.h"
#include "pass/engine/emit.h"
#include "pass/engine/product.h"
#include "pass/engine/rewrite.h"

enum { DEEPEST = 12 }; // moves from where a value was quantized to where it is read

// --- the other type of a byte ---

static enum mgx_type other(enum mgx_type type)
{
    return type == MGX_INT8 ? MGX_UINT8 : MGX_INT8;
}

// Is this zero point the middle of the other type, or its end?
static bool is_turned(const struct mgx_ins *zero)
{
    return zero && ((zero->shape.type == MGX_INT8 && mgx_is_splat(zero, -128)) ||
                    (zero->shape.type == MGX_UINT8 && mgx_is_splat(zero, 128)));
}

static struct mgx_ins *turn_literal(struct mgx_ins *at, const struct mgx_tensor *from)
{
    struct mgx_tensor to;
    struct mgx_shape shape = from->shape;
    shape.type = other(shape.type);
    if (mgx_tensor_create(&to, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    const int64_t count = mgx_shape_space(&shape);
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)to.data)[i] = (uint8_t)(((const uint8_t *)from->data)[i] ^ 0x80);
    struct mgx_ins *literal = mgx_add_literal(at->owner, &to);
    mgx_tensor_release(&to);
    return literal;
}

// The same with a zero point of 0, in the other type.
static struct mgx_ins *quantize_turned(struct mgx_ins *at, const struct mgx_ins *q)
{
    const struct mgx_shape *s = &q->shape;
    struct mgx_ins *zero = mgx_literal_double(at->owner, other(s->type), 0);
    zero = mgx_emit_multibroadcast(at, zero, s->lens, s->rank);
    return mgx_emit_before(at, &mgx_op_quantizelinear, NULL, MGX_IN(q->in[0], q->in[1], zero));
}

static bool moves(const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_pooling)
        return mgx_ins_int(ins, "mode") == 1;
    return ins->op == &mgx_op_slice || ins->op == &mgx_op_concat || ins->op == &mgx_op_reshape ||
           ins->op == &mgx_op_squeeze || ins->op == &mgx_op_unsqueeze ||
           ins->op == &mgx_op_transpose || ins->op == &mgx_op_contiguous ||
           ins->op == &mgx_op_multibroadcast;
}

static bool can_turn(const struct mgx_ins *ins, int depth)
{
    if (ins->literal)
        return mgx_shape_is_static(&ins->shape);
    if (ins->op == &mgx_op_quantizelinear)
        return ins->in_count == 3 && is_turned(ins->in[2]) &&
               ins->in[2]->shape.type == ins->shape.type;
    bool can = depth > 0 && ins->in_count > 0 && moves(ins) && mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count && can; i++)
        can = can_turn(ins->in[i], depth - 1);
    return can;
}

static struct mgx_ins *turn(struct mgx_ins *at, struct mgx_ins *ins)
{
    enum { MOST = 64 };
    struct mgx_ins *in[MOST];
    if (ins->literal)
        return turn_literal(at, ins->literal);
    if (ins->op == &mgx_op_quantizelinear)
        return quantize_turned(at, ins);
    assert(ins->in_count <= MOST);
    for (int i = 0; i < ins->in_count; i++)
        if (!(in[i] = turn(at, ins->in[i])))
            return NULL;
    return mgx_emit_again(at, ins, in, ins->in_count);
}

static struct mgx_ins *zero_of(const struct mgx_ins *product, int operand)
{
    return operand + 2 < product->in_count ? product->in[operand + 2] : NULL;
}

// One operand of a product, where it is none of the other type yet.
static struct mgx_ins *turn_operand(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)m;
    if (mgx_in_byte_attention(r->call->options, ins))
        return NULL;
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *in[4], *zero = zero_of(ins, i);
        if (!is_turned(zero) || !can_turn(ins->in[i], DEEPEST))
            continue;
        memcpy(in, ins->in, (size_t)ins->in_count * sizeof *in);
        in[i] = turn(ins, ins->in[i]);
        in[i + 2] = mgx_literal_double(ins->owner, other(zero->shape.type), 0);
        if (zero->shape.lens[0] > 1)
            in[i + 2] = mgx_emit_multibroadcast(ins, in[i + 2], zero->shape.lens, 1);
        return in[i] ? mgx_emit_again(ins, ins, in, ins->in_count) : NULL;
    }
    return NULL;
}

static struct mgx_ins *turn_dequantized(struct mgx_rewriter *r, struct mgx_ins *ins,
                                        const struct mgx_match *m)
{
    (void)r, (void)m;
    if (ins->in_count != 3 || !is_turned(ins->in[2]) || ins->in[0]->literal ||
        !can_turn(ins->in[0], DEEPEST))
        return NULL;
    struct mgx_ins *x = turn(ins, ins->in[0]);
    return x ? mgx_emit_binary(ins, &mgx_op_dequantizelinear, x, ins->in[1]) : NULL;
}

// --- sums ---

// Of a literal's values, for every place along `axis`, times -`factor`, as 32 bits that wrap.
static struct mgx_ins *sum_literal(struct mgx_ins *at, const struct mgx_tensor *t, int axis,
                                   int64_t factor)
{
    const struct mgx_shape *s = &t->shape, vector = mgx_shape_vector(MGX_INT32, s->lens[axis]);
    struct mgx_tensor sums;
    int64_t place[MGX_MAX_RANK] = {0};
    if (mgx_tensor_create(&sums, &vector, &at->owner->program->diag) != MGX_OK)
        return NULL;
    uint32_t *to = sums.data;
    memset(to, 0, (size_t)s->lens[axis] * sizeof *to);
    const bool wide = s->type == MGX_UINT8;
    do {
        int64_t offset = 0;
        for (int i = 0; i < s->rank; i++)
            offset += place[i] * s->strides[i];
        const uint8_t byte = ((const uint8_t *)t->data)[offset];
        to[place[axis]] += (uint32_t)(wide ? byte : (int8_t)byte);
    } while (mgx_shape_next(s, place));
    for (int64_t i = 0; i < s->lens[axis]; i++)
        to[i] *= (uint32_t)-factor;
    struct mgx_ins *literal = mgx_add_literal(at->owner, &sums);
    mgx_tensor_release(&sums);
    return literal;
}

// A zero point's value, where it is known and one.
static bool known(const struct mgx_ins *zero, int64_t *value)
{
    double x;
    const bool is = mgx_splat_value(zero, &x);
    *value = is ? (int64_t)x : 0;
    return is;
}

static struct mgx_ins *spread_single(struct mgx_ins *at, struct mgx_ins *single,
                                     const struct mgx_shape *like)
{
    const int64_t one = 1;
    single = mgx_emit_convert(at, single, MGX_INT32);
    return mgx_emit_multibroadcast(at, single ? mgx_emit_reshape(at, single, &one, 1) : NULL,
                                   like->lens, like->rank);
}

// y - p sum(w): w a literal, its places along `axis` those of y along `to`.
static struct mgx_ins *less_known(struct mgx_ins *at, struct mgx_ins *y, struct mgx_ins *p,
                                  const struct mgx_tensor *w, int axis, int to)
{
    int64_t value;
    if (!y)
        return NULL;
    const struct mgx_shape like = y->shape;
    const bool fixed = known(p, &value);
    if (fixed && value == 0)
        return y;
    struct mgx_ins *sums = sum_literal(at, w, axis, fixed ? value : -1);
    sums = mgx_emit_spread(at, sums, to, &like);
    if (fixed)
        return mgx_emit_binary(at, &mgx_op_add, y, sums);
    return mgx_emit_binary(at, &mgx_op_sub, y,
                           mgx_emit_binary(at, &mgx_op_mul, sums, spread_single(at, p, &like)));
}

static struct mgx_ins *sum_along(struct mgx_ins *at, struct mgx_ins *x, int axis)
{
    const int64_t axes = axis;
    x = mgx_emit_convert(at, x, MGX_INT32);
    return mgx_emit_before(at, &mgx_op_reduce_sum, MGX_ATTRS(mgx_ints("axes", &axes, 1)),
                           MGX_IN(x));
}

// y - factor sum, both spread over y.
static struct mgx_ins *less(struct mgx_ins *at, struct mgx_ins *y, struct mgx_ins *factor,
                            struct mgx_ins *sum)
{
    const struct mgx_shape like = y->shape;
    sum = mgx_emit_multibroadcast(at, sum, like.lens, like.rank);
    return mgx_emit_binary(at, &mgx_op_sub, y, mgx_emit_binary(at, &mgx_op_mul, factor, sum));
}

// --- products ---

static bool multiplies_bytes(const struct mgx_ins *ins)
{
    return mgx_type_is_byte(ins->in[0]->shape.type) && mgx_type_is_byte(ins->in[1]->shape.type);
}

static bool is_nothing(const struct mgx_ins *zero)
{
    return !zero || mgx_is_splat(zero, 0);
}

// q, one value or one for every column, over y.
static struct mgx_ins *spread_columns(struct mgx_ins *at, struct mgx_ins *q,
                                      const struct mgx_shape *like)
{
    return mgx_shape_elements(&q->shape) == 1
               ? spread_single(at, q, like)
               : mgx_emit_spread(at, mgx_emit_convert(at, q, MGX_INT32), like->rank - 1, like);
}

// The one matrix that a right operand is in every batch entry; NULL: it is computed, or several.
static const struct mgx_tensor *matrix_of(const struct mgx_ins *b)
{
    const int rank = b->shape.rank;
    const struct mgx_ins *core = b;
    while (core->op == &mgx_op_multibroadcast && core->in_count == 1)
        core = core->in[0];
    const int own = core->shape.rank;
    const bool same =
        own >= 2 && core->literal && core->shape.lens[own - 1] == b->shape.lens[rank - 1] &&
        core->shape.lens[own - 2] == b->shape.lens[rank - 2] &&
        mgx_shape_elements(&core->shape) == b->shape.lens[rank - 1] * b->shape.lens[rank - 2];
    return same ? core->literal : NULL;
}

// q times what a's rows sum up to: a product by one column.
static struct mgx_ins *weigh_rows(struct mgx_ins *at, struct mgx_ins *a, enum mgx_type type,
                                  int64_t q)
{
    const int rank = a->shape.rank;
    struct mgx_shape wide = a->shape;
    const int64_t lens[] = {wide.lens[rank - 1], 1};
    const struct mgx_shape shape = mgx_shape_make(type, 2, lens);
    struct mgx_tensor column;
    if (mgx_tensor_create(&column, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    memset(column.data, (uint8_t)q, (size_t)lens[0]);
    struct mgx_ins *b = mgx_add_literal(at->owner, &column);
    mgx_tensor_release(&column);
    wide.lens[rank - 2] = lens[0];
    wide.lens[rank - 1] = 1;
    if (rank > 2)
        b = mgx_emit_multibroadcast(at, b, wide.lens, rank);
    return mgx_emit_binary(at, &mgx_op_quant_dot, a, b);
}

// By one matrix that is known, as q is: y - q sum(a) - p (sum(w) - k q).
static struct mgx_ins *less_rows(struct mgx_ins *at, struct mgx_ins *y, struct mgx_ins *p,
                                 const struct mgx_tensor *w, enum mgx_type type, int64_t q)
{
    struct mgx_ins *rows = weigh_rows(at, at->in[0], type, q);
    if (!y || !rows)
        return NULL;
    const struct mgx_shape like = y->shape;
    const int axis = w->shape.rank - 1;
    y = mgx_emit_binary(at, &mgx_op_sub, y,
                        mgx_emit_multibroadcast(at, rows, like.lens, like.rank));
    if (is_nothing(p) || !y)
        return y;
    struct mgx_ins *sums = sum_literal(at, w, axis, -1);
    for (int64_t i = 0; sums && i < w->shape.lens[axis]; i++)
        ((uint32_t *)sums->literal->data)[i] -= (uint32_t)(w->shape.lens[axis - 1] * q);
    sums = mgx_emit_spread(at, sums, like.rank - 1, &like);
    return mgx_emit_binary(at, &mgx_op_sub, y,
                           mgx_emit_binary(at, &mgx_op_mul, sums, spread_single(at, p, &like)));
}

static struct mgx_ins *bare_dot(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *a = ins->in[0], *b = ins->in[1], *p = zero_of(ins, 0), *q = zero_of(ins, 1);
    const int rank = ins->shape.rank;
    const struct mgx_shape like = ins->shape;
    if (ins->in_count == 2 || !multiplies_bytes(ins) || !mgx_shape_is_static(&a->shape) ||
        mgx_in_byte_attention(r->call->options, ins) || mgx_keeps_zeros(r->call->options, ins))
        return NULL;
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_quant_dot, a, b);
    const struct mgx_tensor *w = matrix_of(b);
    int64_t value;
    if (!is_nothing(q) && w && known(q, &value) && (!p || mgx_shape_elements(&p->shape) == 1))
        return less_rows(ins, y, p, w, q->shape.type, value);
    if (!is_nothing(q) && y) {
        struct mgx_ins *columns = spread_columns(ins, q, &like);
        y = less(ins, y, columns, sum_along(ins, a, rank - 1));
        if (!is_nothing(p) && y) { // ... + k p q
            struct mgx_ins *both =
                mgx_emit_binary(ins, &mgx_op_mul, columns, spread_single(ins, p, &like));
            struct mgx_ins *depth = mgx_emit_splat(ins, &like, (double)a->shape.lens[rank - 1]);
            y = mgx_emit_binary(ins, &mgx_op_add, y,
                                mgx_emit_binary(ins, &mgx_op_mul, both, depth));
        }
    }
    if (is_nothing(p) || !y)
        return y;
    if (w)
        return less_known(ins, y, p, w, w->shape.rank - 1, rank - 1);
    return less(ins, y, spread_single(ins, p, &like), sum_along(ins, b, rank - 2));
}

static struct mgx_ins *emit_pad(struct mgx_ins *at, struct mgx_ins *x, double value);

// Of a large image that is put together of several by their channels: each is padded on its way
// there, instead of all once more.
static struct mgx_ins *pad_parts(struct mgx_ins *at, const struct mgx_ins *x, double value)
{
    enum { PARTS = 8 };
    struct mgx_ins *part[PARTS];
    for (int i = 0; i < x->in_count; i++)
        if (!(part[i] = emit_pad(at, x->in[i], value)))
            return NULL;
    return mgx_emit_again(at, x, part, x->in_count);
}

static bool has_parts(const struct mgx_ins *x)
{
    enum { LARGE = 1 << 22, PARTS = 8 };
    const int64_t axis = x->op == &mgx_op_concat ? mgx_ins_int(x, "axis") : 0;
    return x->op == &mgx_op_concat && mgx_used_once(x) && x->in_count <= PARTS &&
           (axis == 1 || axis == 1 - x->shape.rank) && mgx_shape_elements(&x->shape) >= LARGE;
}

static struct mgx_ins *pad_whole(struct mgx_ins *at, struct mgx_ins *x, double value)
{
    const struct mgx_ints padding = mgx_ins_ints(at, "padding");
    const int rank = at->in[0]->shape.rank, spatial = rank - 2;
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    for (int d = 0; d < spatial; d++) {
        pads[d + 2] = padding.v[d];
        pads[d + 2 + rank] = padding.v[padding.count == spatial ? d : d + spatial];
    }
    return mgx_emit_before(at, &mgx_op_pad,
                           MGX_ATTRS(mgx_ints("pads", pads, 2 * rank), mgx_real("value", value)),
                           MGX_IN(x));
}

static struct mgx_ins *emit_pad(struct mgx_ins *at, struct mgx_ins *x, double value)
{
    return has_parts(x) ? pad_parts(at, x, value) : pad_whole(at, x, value);
}

// Does the target's product do that padding on its way? `alone`: nothing else reads what is padded.
static bool is_padded_on_the_way(const struct mgx_rewriter *r, struct mgx_ins *at,
                                 struct mgx_ins *x, double value, bool alone)
{
    struct mgx_ins *whole = alone ? pad_whole(at, x, value) : NULL;
    const struct mgx_product_roles roles = {.product = at, .pad = whole};
    const bool takes = whole && mgx_target_takes(r->call->options, &roles);
    if (whole)
        mgx_remove(whole);
    return takes;
}

// The one value that is spread over all places, whatever its rank; NULL: there are several.
static struct mgx_ins *spread_value(struct mgx_ins *ins)
{
    while ((ins->op == &mgx_op_multibroadcast && ins->in_count == 1) ||
           ins->op == &mgx_op_reshape || ins->op == &mgx_op_squeeze || ins->op == &mgx_op_unsqueeze)
        ins = ins->in[0];
    return mgx_shape_elements(&ins->shape) == 1 ? ins : NULL;
}

static bool rearranges(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_reshape || ins->op == &mgx_op_squeeze ||
           ins->op == &mgx_op_unsqueeze || ins->op == &mgx_op_transpose ||
           ins->op == &mgx_op_contiguous;
}

// What x was quantized of, rearranged as x is.
static struct mgx_ins *before_quantized(struct mgx_ins *at, struct mgx_ins *x)
{
    if (!rearranges(x))
        return x->in[0];
    struct mgx_ins *in = before_quantized(at, x->in[0]);
    return in ? mgx_emit_again(at, x, &in, 1) : NULL;
}

// The image with the padding in it, of the zero point's value. Where only the run knows that, zeros
// go around what is quantized to it.
static struct mgx_ins *pad(const struct mgx_rewriter *r, struct mgx_ins *at, struct mgx_ins *x,
                           struct mgx_ins *p, bool alone)
{
    int64_t value;
    if (known(p, &value))
        return is_padded_on_the_way(r, at, x, (double)value, alone)
                   ? pad_whole(at, x, (double)value)
                   : emit_pad(at, x, (double)value);
    struct mgx_ins *in[3], *q = x;
    while (rearranges(q))
        q = q->in[0];
    if (q->op != &mgx_op_quantizelinear || q->in_count != 3 || !spread_value(q->in[1]) ||
        spread_value(q->in[2]) != spread_value(p) || !(in[0] = before_quantized(at, x)) ||
        !(in[0] = emit_pad(at, in[0], 0)))
        return NULL;
    const struct mgx_shape like = in[0]->shape;
    for (int i = 1; i < 3; i++)
        in[i] = mgx_emit_multibroadcast(at, spread_value(q->in[i]), like.lens, like.rank);
    return mgx_emit_again(at, q, in, 3);
}

// The same convolution by other weights, of so many groups; `padded`: x has the padding in it.
static struct mgx_ins *convolve(struct mgx_rewriter *r, struct mgx_ins *ins, struct mgx_ins *x,
                                struct mgx_ins *w, int64_t groups, bool padded)
{
    static const int64_t zeros[2 * MGX_MAX_RANK];
    void *attr = mgx_edit_attr(r->call->program, ins);
    if (padded && attr &&
        !mgx_edit_ints(r->call->program, ins->op, attr, "padding", zeros, ins->shape.rank - 2))
        return NULL;
    if (attr)
        mgx_edit_int(ins->op, attr, "group", groups);
    struct mgx_ins *in[] = {x, w};
    return x && w ? mgx_emit_edited(ins, ins->op, attr, in, 2) : NULL;
}

// q times what a convolution's windows sum up to: a convolution by q wherever w has a weight. Of
// one group and one q its results are the same for every column, and it has one.
static struct mgx_ins *weigh_windows(struct mgx_rewriter *r, struct mgx_ins *ins, struct mgx_ins *x,
                                     const struct mgx_tensor *q, bool padded)
{
    const int64_t groups = mgx_ins_int(ins, "group"), values = mgx_shape_elements(&q->shape);
    struct mgx_shape shape = ins->in[1]->shape;
    struct mgx_tensor all;
    shape.lens[0] = groups == 1 && values == 1 ? 1 : shape.lens[0];
    shape = mgx_shape_make(q->shape.type, shape.rank, shape.lens);
    if (mgx_tensor_create(&all, &shape, &ins->owner->program->diag) != MGX_OK)
        return NULL;
    const int64_t depth = mgx_shape_elements(&shape) / shape.lens[0];
    for (int64_t i = 0; i < shape.lens[0]; i++) {
        const int64_t at = mgx_shape_index(&q->shape, values == 1 ? 0 : i);
        memset((uint8_t *)all.data + i * depth, ((const uint8_t *)q->data)[at], (size_t)depth);
    }
    struct mgx_ins *w = mgx_add_literal(ins->owner, &all);
    mgx_tensor_release(&all);
    return convolve(r, ins, x, w, groups, padded);
}

// Is it depthwise, and none of those whose kernel takes the zero point off weights on its way? The
// windows' sums would cost as much as the convolution.
static bool is_odd_depthwise(const struct mgx_ins *ins)
{
    enum { MOST = 49, LONGEST = 11 };
    const struct mgx_shape *w = &ins->in[1]->shape;
    const struct mgx_ints dilation = mgx_ins_ints(ins, "dilation");
    const int64_t groups = mgx_ins_int(ins, "group"), taps = mgx_shape_elements(w) / w->lens[0];
    bool odd = w->rank != 4 || w->lens[0] != groups || taps > MOST ||
               (dilation.count && dilation.v[dilation.count - 1] != 1);
    for (int i = 2; i < w->rank; i++)
        odd = odd || w->lens[i] > LONGEST;
    return odd && groups > 1 && ins->in[0]->shape.lens[1] == groups && taps < 1 << 8;
}

// w - q as a literal of 16 bits.
static struct mgx_ins *shift_weights(struct mgx_ins *at, const struct mgx_tensor *w,
                                     const struct mgx_tensor *q)
{
    struct mgx_tensor all;
    const struct mgx_shape shape = mgx_shape_make(MGX_INT16, w->shape.rank, w->shape.lens);
    if (mgx_tensor_create(&all, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    const bool one = mgx_shape_elements(&q->shape) == 1;
    const int64_t count = mgx_shape_elements(&shape), depth = count / shape.lens[0];
    for (int64_t i = 0; i < count; i++) {
        const int64_t zero =
            mgx_load_int(q->shape.type, q->data, mgx_shape_index(&q->shape, one ? 0 : i / depth));
        ((int16_t *)all.data)[i] =
            (int16_t)(mgx_load_int(w->shape.type, w->data, mgx_shape_index(&w->shape, i)) - zero);
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &all);
    mgx_tensor_release(&all);
    return literal;
}

// Sum w - k q for every column, as a literal of 32 bits that wraps.
static struct mgx_ins *sum_weights(struct mgx_ins *at, const struct mgx_tensor *w,
                                   const struct mgx_tensor *q)
{
    struct mgx_ins *sums = sum_literal(at, w, 0, -1);
    const int64_t columns = w->shape.lens[0], depth = mgx_shape_elements(&w->shape) / columns;
    const bool one = mgx_shape_elements(&q->shape) == 1;
    for (int64_t i = 0; sums && i < columns; i++) {
        const int64_t zero =
            mgx_load_int(q->shape.type, q->data, mgx_shape_index(&q->shape, one ? 0 : i));
        ((uint32_t *)sums->literal->data)[i] -= (uint32_t)(depth * zero);
    }
    return sums;
}

// y - p (sum w - k q)
static struct mgx_ins *less_sums(struct mgx_ins *at, struct mgx_ins *y, struct mgx_ins *p,
                                 const struct mgx_tensor *q)
{
    if (is_nothing(p) || !y)
        return y;
    const struct mgx_shape like = y->shape;
    struct mgx_ins *sums = mgx_emit_spread(at, sum_weights(at, at->in[1]->literal, q), 1, &like);
    return mgx_emit_binary(at, &mgx_op_sub, y,
                           mgx_emit_binary(at, &mgx_op_mul, sums, spread_single(at, p, &like)));
}

// y - windows - p (sum w - k q), where y is of the bytes as they are.
static struct mgx_ins *less_both(struct mgx_ins *at, struct mgx_ins *y, struct mgx_ins *windows,
                                 struct mgx_ins *p, const struct mgx_tensor *q)
{
    if (!y || !windows)
        return NULL;
    const struct mgx_shape like = y->shape;
    y = mgx_emit_binary(at, &mgx_op_sub, y,
                        mgx_emit_multibroadcast(at, windows, like.lens, like.rank));
    return less_sums(at, y, p, q);
}

static struct mgx_ins *bare_convolution(struct mgx_rewriter *r, struct mgx_ins *ins,
                                        const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *x = ins->in[0], *w = ins->in[1], *p = zero_of(ins, 0), *q = zero_of(ins, 1);
    const int64_t groups = mgx_ins_int(ins, "group");
    const bool padded = !is_nothing(p) && !mgx_ints_all(mgx_ins_ints(ins, "padding"), 0);
    if (ins->in_count == 2 || !multiplies_bytes(ins) || !mgx_shape_is_static(&x->shape))
        return NULL;
    if (is_nothing(p) && is_nothing(q))
        return convolve(r, ins, x, w, groups, false);
    if (!w->literal || mgx_ins_int(ins, "padding_mode") != 0 ||
        (p && mgx_shape_elements(&p->shape) != 1) || (!is_nothing(q) && !q->literal))
        return NULL;
    const bool odd = !is_nothing(q) && is_odd_depthwise(ins);
    x = padded ? pad(r, ins, x, p, odd || is_nothing(q)) : x;
    if (odd) {
        w = shift_weights(ins, w->literal, q->literal);
        return less_sums(ins, convolve(r, ins, x, w, groups, padded), p, q->literal);
    }
    struct mgx_ins *y = convolve(r, ins, x, w, groups, padded);
    if (is_nothing(q))
        return less_known(ins, y, p, w->literal, 0, 1);
    return less_both(ins, y, weigh_windows(r, ins, x, q->literal, padded), p, q->literal);
}

static const struct mgx_rule rules[] = {
    {"quant_dot ~> quant_dot(turned a, ...)", MGX_IF_STATIC, .rewrite = turn_operand},
    {"quant_convolution ~> quant_convolution(turned x, ...)", MGX_IF_STATIC,
     .rewrite = turn_operand},
    {"dequantizelinear ~> dequantizelinear(turned x, s)", MGX_IF_STATIC,
     .rewrite = turn_dequantized},
    {"quant_dot ~> quant_dot(a, b) - p (sum b - k q) - q sum a", MGX_IF_STATIC,
     .rewrite = bare_dot},
    {"quant_convolution ~> quant_convolution(x, w) - q sum x - p (sum w - k q)", MGX_IF_STATIC,
     .rewrite = bare_convolution},
};

const struct mgx_pass mgx_pass_bare_products = {
    .name = "bare_products",
    .meaning = "takes the zero points out of products of bytes",
    .rules = {rules, MGX_COUNT(rules)},
};
