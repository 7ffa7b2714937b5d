// SPDX-License-Identifier: MIT
// MatMulNBits, MatMulBnb4 and GatherBlockQuantized of com.microsoft: weights of a few bits,
// quantized block by block. MatMulNBits becomes a product with dequantize_blocks, which targets may
// multiply by as it lies. Elsewhere the numbers are unpacked, dequantized and handed to the
// standard operator; with constant weights all of that may be folded.
#include "base/size.h"
#include "onnx/build.h"
#include "onnx/quantize.h"

static struct mgx_ins *unpack(struct mgx_node *n, struct mgx_ins *x, int64_t bits)
{
    return bits == 8 ? x
                     : mgx_build_emit(n, &mgx_op_unpack_nbits, MGX_ATTRS(mgx_int("bits", bits)),
                                      MGX_IN(x));
}

// --- MatMulNBits ---

struct nbits {
    int64_t rows, columns; // of the weights: N, K
    int64_t bits, block, blocks;
    int64_t accuracy; // 4: x may become bytes
};

static enum mgx_status read_nbits(struct mgx_node *n, struct nbits *w)
{
    *w = (struct nbits){.rows = mgx_onnx_int(n, "N", 0),
                        .columns = mgx_onnx_int(n, "K", 0),
                        .bits = mgx_onnx_int(n, "bits", 4),
                        .block = mgx_onnx_int(n, "block_size", 0),
                        .accuracy = mgx_onnx_int(n, "accuracy_level", 0)};
    if (w->bits != 2 && w->bits != 4 && w->bits != 8)
        return mgx_node_unsupported(n, "weights of %lld bits, not 2, 4 or 8", (long long)w->bits);
    if (mgx_onnx_int(n, "weight_prepacked", 0))
        return mgx_node_unsupported(n, "weights packed for one device");
    if (w->block < 16 || w->block > 1 << 20 || (w->block & (w->block - 1)) != 0)
        return mgx_node_invalid(n, "block_size %lld is no power of 2 from 16 on",
                                (long long)w->block);
    if (w->rows < 1 || w->columns < 1 || w->rows > INT32_MAX || w->columns > INT32_MAX)
        return mgx_node_invalid(n, "N %lld and K %lld", (long long)w->rows, (long long)w->columns);
    w->blocks = (w->columns + w->block - 1) / w->block;
    return MGX_OK;
}

static enum mgx_status require_count(struct mgx_node *n, const struct mgx_ins *x, const char *what,
                                     int64_t wanted)
{
    const int64_t count = mgx_shape_elements(&x->shape);
    if (count != wanted)
        return mgx_node_invalid(n, "%s has %lld elements, not %lld", what, (long long)count,
                                (long long)wanted);
    return MGX_OK;
}

// {rows, blocks}: given in the scales' type, or packed row by row into bytes that they become. NULL
// where they are the middle of the range.
static enum mgx_status zero_points(struct mgx_node *n, const struct nbits *w, struct mgx_ins **out)
{
    struct mgx_ins *zero = mgx_node_in(n, 3);
    *out = NULL;
    if (!zero)
        return MGX_OK;
    const bool packed = zero->shape.type == MGX_UINT8;
    const int64_t each = packed ? (w->blocks * w->bits + 7) / 8 : w->blocks;
    TRY(require_count(n, zero, "zero_points", w->rows * each));
    zero = mgx_build_reshape(n, zero, (int64_t[]){w->rows, each}, 2);
    if (packed) {
        zero = unpack(n, zero, w->bits);
        if (each * 8 / w->bits > w->blocks)
            zero = mgx_build_slice(n, zero, 1, 0, w->blocks);
    }
    *out = zero;
    return mgx_node_status(n);
}

// (q - zero) * scale where g_idx says of every column which group it is of.
static enum mgx_status grouped(struct mgx_node *n, const struct nbits *w, struct mgx_ins *q,
                               struct mgx_ins *scale, struct mgx_ins *zero, struct mgx_ins **out)
{
    struct mgx_ins *group = mgx_node_in(n, 4);
    const enum mgx_type type = scale->shape.type;
    const int64_t flat[2] = {w->rows, w->blocks * w->block};
    TRY(require_count(n, group, "g_idx", w->columns));
    q = mgx_build_convert(n, unpack(n, q, w->bits), type);
    q = mgx_build_slice(n, mgx_build_reshape(n, q, flat, 2), 1, 0, w->columns);
    scale = mgx_build_gather(n, scale, group, 1);
    zero = zero ? mgx_build_gather(n, mgx_build_convert(n, zero, type), group, 1)
                : mgx_build_scalar(n, type, (double)(1 << (w->bits - 1)));
    *out = mgx_build_mul(n, mgx_build_sub(n, q, zero), scale);
    return mgx_node_status(n);
}

// {N, K} of the scales' type.
static enum mgx_status weights(struct mgx_node *n, const struct nbits *w, struct mgx_ins **out)
{
    struct mgx_ins *zero = NULL;
    const int64_t bytes = w->block * w->bits / 8;
    TRY(require_count(n, n->in[1], "B", w->rows * w->blocks * bytes));
    TRY(require_count(n, n->in[2], "scales", w->rows * w->blocks));
    TRY(zero_points(n, w, &zero));
    struct mgx_ins *scale = mgx_build_reshape(n, n->in[2], (int64_t[]){w->rows, w->blocks}, 2);
    struct mgx_ins *q = mgx_build_reshape(n, n->in[1], (int64_t[]){w->rows, w->blocks, bytes}, 3);
    TRY(mgx_node_status(n));
    if (mgx_node_in(n, 4))
        return grouped(n, w, q, scale, zero, out);
    const struct mgx_attr *attrs =
        MGX_ATTRS(mgx_int("bits", w->bits), mgx_int("columns", w->columns),
                  mgx_int("accuracy_level", w->accuracy));
    *out = zero ? mgx_build_emit(n, &mgx_op_dequantize_blocks, attrs, MGX_IN(q, scale, zero))
                : mgx_build_emit(n, &mgx_op_dequantize_blocks, attrs, MGX_IN(q, scale));
    return mgx_node_status(n);
}

static enum mgx_status matmul_nbits(struct mgx_node *n)
{
    struct nbits w;
    struct mgx_ins *y = NULL, *bias = mgx_node_in(n, 5);
    TRY(mgx_node_need(n, 3, 6));
    TRY(read_nbits(n, &w));
    for (int i = 1; i < n->in_count; i++)
        if (n->in[i] && !mgx_build_is_static(n->in[i]))
            return mgx_onnx_defer(n);
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    TRY(weights(n, &w, &y));
    y = mgx_build_convert(n, y, n->in[0]->shape.type);
    y = mgx_build_matmul(n, &mgx_op_dot, n->in[0], mgx_build_transpose(n, y, (int64_t[]){1, 0}, 2));
    n->out[0] = bias ? mgx_build_add(n, y, bias) : y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_matmul_nbits = {
    .name = "MatMulNBits", .domain = "com.microsoft", .import = matmul_nbits};

// --- MatMulBnb4 ---

// What the sixteen codes stand for, before the block's scale: values of a float of four bits, and
// quantiles of the normal distribution (NF4).
static const double fp4_codes[16] = {
    0,    5.208333333e-03,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
    -0.0, -5.208333333e-03, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
static const double nf4_codes[16] = {-1.0,
                                     -0.6961928009986877,
                                     -0.5250730514526367,
                                     -0.39491748809814453,
                                     -0.28444138169288635,
                                     -0.18477343022823334,
                                     -0.09105003625154495,
                                     0.0,
                                     0.07958029955625534,
                                     0.16093020141124725,
                                     0.24611230194568634,
                                     0.33791524171829224,
                                     0.44070982933044434,
                                     0.5626170039176941,
                                     0.7229568362236023,
                                     1.0};

struct bnb4 {
    int64_t rows, columns, block, kind;
};

static enum mgx_status read_bnb4(struct mgx_node *n, struct bnb4 *w)
{
    *w = (struct bnb4){.rows = mgx_onnx_int(n, "N", 0),
                       .columns = mgx_onnx_int(n, "K", 0),
                       .block = mgx_onnx_int(n, "block_size", 0),
                       .kind = mgx_onnx_int(n, "quant_type", -1)};
    if (w->kind != 0 && w->kind != 1)
        return mgx_node_invalid(n, "quant_type is %lld, not 0 (FP4) or 1 (NF4)",
                                (long long)w->kind);
    if (w->block < 16 || w->block > 1 << 20 || (w->block & (w->block - 1)) != 0)
        return mgx_node_invalid(n, "block_size %lld is no power of 2 from 16 on",
                                (long long)w->block);
    if (w->rows < 1 || w->columns < 1 || w->rows > INT32_MAX || w->columns > INT32_MAX)
        return mgx_node_invalid(n, "N %lld and K %lld", (long long)w->rows, (long long)w->columns);
    return MGX_OK;
}

// The codes in order: two a byte, the first in the upper half.
static struct mgx_ins *unpack_codes(struct mgx_node *n, struct mgx_ins *x, int64_t count)
{
    const int64_t bytes = (count + 1) / 2;
    x = unpack(n, mgx_build_reshape(n, x, (int64_t[]){bytes, 1}, 2), 4);
    x = mgx_build_emit(n, &mgx_op_reverse, MGX_ATTRS(mgx_ints("axes", (int64_t[]){1}, 1)),
                       MGX_IN(x));
    x = mgx_build_reshape(n, x, (int64_t[]){2 * bytes}, 1);
    return 2 * bytes > count ? mgx_build_slice(n, x, 0, 0, count) : x;
}

// {N, K}: what each code stands for times the scale of its block; blocks run on over rows.
static enum mgx_status bnb4_weights(struct mgx_node *n, const struct bnb4 *w, struct mgx_ins **out)
{
    const int64_t count = w->rows * w->columns, blocks = (count + w->block - 1) / w->block;
    const enum mgx_type type = n->in[2]->shape.type;
    const struct mgx_shape codes = mgx_shape_vector(type, 16);
    TRY(require_count(n, n->in[1], "B", (count + 1) / 2));
    TRY(require_count(n, n->in[2], "absmax", blocks));
    struct mgx_ins *table = mgx_build_doubles(n, &codes, w->kind ? nf4_codes : fp4_codes);
    struct mgx_ins *y = mgx_build_gather(n, table, unpack_codes(n, n->in[1], count), 0);
    struct mgx_ins *scale = mgx_build_reshape(n, n->in[2], (int64_t[]){blocks, 1}, 2);
    scale = mgx_build_expand(n, scale, 2, (int64_t[]){blocks, w->block});
    scale = mgx_build_reshape(n, scale, (int64_t[]){blocks * w->block}, 1);
    if (blocks * w->block > count)
        scale = mgx_build_slice(n, scale, 0, 0, count);
    *out = mgx_build_reshape(n, mgx_build_mul(n, y, scale), (int64_t[]){w->rows, w->columns}, 2);
    return mgx_node_status(n);
}

static enum mgx_status matmul_bnb4(struct mgx_node *n)
{
    struct bnb4 w;
    struct mgx_ins *y = NULL;
    TRY(mgx_node_need(n, 3, 3));
    TRY(read_bnb4(n, &w));
    if (!mgx_build_is_static(n->in[1]) || !mgx_build_is_static(n->in[2]) ||
        mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    TRY(bnb4_weights(n, &w, &y));
    y = mgx_build_convert(n, y, n->in[0]->shape.type);
    if (mgx_onnx_int(n, "transB", 1))
        y = mgx_build_transpose(n, y, (int64_t[]){1, 0}, 2);
    n->out[0] = mgx_build_matmul(n, &mgx_op_dot, n->in[0], y);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_matmul_bnb4 = {
    .name = "MatMulBnb4", .domain = "com.microsoft", .import = matmul_bnb4};

// --- GatherBlockQuantized ---

struct table {
    struct mgx_ins *x, *scale, *zero; // zero: NULL where there is none
    int64_t bits, block;
    int from, along; // axes: of look-up, of blocks
    bool packed;
};

static enum mgx_status read_table(struct mgx_node *n, struct table *t)
{
    *t = (struct table){.x = n->in[0],
                        .scale = n->in[2],
                        .zero = mgx_node_in(n, 3),
                        .bits = mgx_onnx_int(n, "bits", 4),
                        .block = mgx_onnx_int(n, "block_size", 128),
                        .packed = n->in[0]->shape.type == MGX_UINT8};
    if (t->packed && t->bits != 2 && t->bits != 4 && t->bits != 8)
        return mgx_node_unsupported(n, "%lld bits", (long long)t->bits);
    if (t->block < 16 || t->block > 1 << 20)
        return mgx_node_invalid(n, "block_size is %lld", (long long)t->block);
    const int rank = t->x->shape.rank;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "gather_axis", 0), rank, &t->from));
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "quantize_axis", 1), rank, &t->along));
    if (t->from == t->along || t->scale->shape.rank != rank ||
        (t->zero && t->zero->shape.rank != rank))
        return mgx_node_invalid(n, "gather_axis and quantize_axis are %d and %d, scales of rank %d",
                                t->from, t->along, t->scale->shape.rank);
    return MGX_OK;
}

static void look_up(struct mgx_node *n, struct table *t)
{
    struct mgx_ins **v[3] = {&t->x, &t->scale, &t->zero};
    for (int i = 0; i < 3; i++)
        if (*v[i] && i != 1 && t->packed)
            *v[i] = unpack(n, *v[i], t->bits);
    for (int i = 0; i < 3; i++)
        *v[i] = *v[i] ? mgx_build_gather(n, *v[i], n->in[1], t->from) : NULL;
}

// Zero points broadcast against what was looked up, without what fills their last byte; packed
// numbers without any have the middle of the range.
static enum mgx_status spread_zero(struct mgx_node *n, struct table *t, int at)
{
    if (!t->zero) {
        if (t->packed)
            t->zero = mgx_build_scalar(n, MGX_UINT8, (double)(1 << (t->bits - 1)));
        return MGX_OK;
    }
    const int64_t have = t->zero->shape.lens[at], length = t->x->shape.lens[at];
    const int64_t blocks = (length + t->block - 1) / t->block;
    if (have < blocks || have - blocks >= 8 / t->bits)
        return mgx_node_invalid(n, "%lld zero points for %lld", (long long)have, (long long)length);
    if (have > blocks)
        t->zero = mgx_build_slice(n, t->zero, at, 0, blocks);
    return mgx_quantize_spread(n, t->x, at, t->block, &t->zero);
}

// Rows are gathered before they are dequantized: a table is large, what is looked up in it small.
static enum mgx_status gather_quantized(struct mgx_node *n)
{
    struct table t;
    TRY(mgx_node_need(n, 3, 4));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(read_table(n, &t));
    look_up(n, &t);
    if (!t.x || !t.scale)
        return mgx_node_status(n);
    const int at = t.along > t.from ? t.along + n->in[1]->shape.rank - 1 : t.along;
    TRY(mgx_quantize_spread(n, t.x, at, t.block, &t.scale));
    TRY(spread_zero(n, &t, at));
    const enum mgx_type type = n->in[2]->shape.type;
    struct mgx_ins *x = mgx_build_convert(n, t.x, type);
    if (t.zero)
        x = mgx_build_sub(n, x, mgx_build_convert(n, t.zero, type));
    n->out[0] = mgx_build_mul(n, x, t.scale);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gather_block_quantized = {.name = "GatherBlockQuantized",
                                                               .domain = "com.microsoft",
                                                               .import = gather_quantized,
                                                               .result = "2"};
