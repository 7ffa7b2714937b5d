// SPDX-License-Identifier: MIT
// dequantize_blocks: weights of 2, 4 or 8 bits with a scale per block of a row.
//
//     y[r][c] = (q(x, r, c) - zero[r][b]) * scale[r][b],  b = c / block
//
// x is {rows, blocks, block * bits / 8} bytes; within a block the numbers follow each other, low
// bits first. Scales and zero points are {rows, blocks}; zero points are bytes, or of the scales'
// type, and the middle of the range, 2^(bits - 1), where there are none. The result is {rows,
// columns} in the scales' type; columns end in the last block.
//
// Targets may multiply by the packed numbers and never make the result. accuracy_level 4, as files
// have it, lets them make bytes of what they multiply by, with a factor for every block.
#include <assert.h>
#include <inttypes.h>

#include "base/half.h"
#include "base/size.h"
#include "op/rule/rule.h"

struct dequantize_blocks {
    int64_t bits, columns, accuracy_level;
};

static const struct mgx_field fields[] = {MGX_INT(struct dequantize_blocks, bits),
                                          MGX_INT(struct dequantize_blocks, columns),
                                          MGX_INT(struct dequantize_blocks, accuracy_level),
                                          {0}};
static const struct dequantize_blocks defaults = {.bits = 4};

static enum mgx_status check_types(const struct mgx_shape_call *c)
{
    const struct mgx_shape *x = c->in[0], *scale = c->in[1];
    if (x->type != MGX_UINT8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: takes uint8_type, not %s", c->op->name,
                        mgx_type_name(x->type));
    if (c->in_count == 3 && c->in[2]->type != MGX_UINT8 && c->in[2]->type != scale->type)
        return mgx_fail(c->diag, MGX_INVALID, "%s: zero points are %s, scales %s", c->op->name,
                        mgx_type_name(c->in[2]->type), mgx_type_name(scale->type));
    return MGX_OK;
}

static enum mgx_status check_columns(const struct mgx_shape_call *c, const struct mgx_dim *dims)
{
    const struct dequantize_blocks *a = c->attr;
    int64_t block, whole;
    if (dims[1].min != dims[1].max || dims[2].min != dims[2].max)
        return MGX_OK;
    const bool fits = mgx_mul_i64(dims[2].min, 8 / a->bits, &block) &&
                      mgx_mul_i64(block, dims[1].min, &whole) && a->columns >= 0 &&
                      a->columns <= whole && (a->columns > whole - block || !whole);
    if (fits)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: %" PRId64 " columns do not end in the last of %" PRId64
                    " blocks of %" PRId64 " bytes",
                    c->op->name, a->columns, dims[1].min, dims[2].min);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct dequantize_blocks *a = c->attr;
    TRY(mgx_require_rank(c, 0, 3, 3));
    TRY(mgx_require_float(c, 1));
    TRY(check_types(c));
    if (a->bits != 2 && a->bits != 4 && a->bits != 8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: bits is %" PRId64 ", not 2, 4 or 8", c->op->name,
                        a->bits);
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 3);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 1; i < c->in_count; i++) {
        TRY(mgx_require_rank(c, i, 2, 2));
        TRY(mgx_require_length(c, i, 0, &dims[0]));
        TRY(mgx_require_length(c, i, 1, &dims[1]));
    }
    TRY(check_columns(c, dims));
    dims[1] = (struct mgx_dim){.min = a->columns, .max = a->columns};
    *out = mgx_shape_from_dims(c->in[1]->type, 2, dims);
    return MGX_OK;
}

// Element {i, j} of a matrix.
static double at(const struct mgx_tensor *t, int64_t i, int64_t j)
{
    assert(i >= 0 && j >= 0 && t->shape.rank >= 1);
    return mgx_load_double(t->shape.type, t->data,
                           i * t->shape.strides[0] + j * t->shape.strides[1]);
}

// One block of a row: `count` numbers, side by side in x. Floats, as weights mostly are, are stored
// as they come.
static void put_block(int bits, const uint8_t *x, int64_t stride, double zero, double scale,
                      const struct mgx_tensor *y, int64_t to, int64_t count)
{
    const int per = 8 / bits, mask = (1 << bits) - 1;
    const int64_t step = y->shape.strides[1];
    assert(per * bits == 8 && count >= 0);
    for (int64_t i = 0; i < count; i++) {
        const int q = x[i / per * stride] >> (i % per * bits) & mask;
        const double value = ((double)q - zero) * scale;
        if (y->shape.type == MGX_FLOAT)
            ((float *)y->data)[to + i * step] = (float)value;
        else
            mgx_store_double(y->shape.type, y->data, to + i * step, value);
    }
}

static bool is_byte(double zero)
{
    return zero >= 0 && zero < 256 && zero == (double)(int)zero;
}

// The same of bytes whose zero point is one, to halves: a float holds the products, of nine bits
// and the eleven of a half, exactly, and is rounded once.
static void put_bytes(const uint8_t *x, double zero, double scale, uint16_t *to, int64_t count)
{
    enum { STEP = 64 };
    float values[STEP];
    for (int64_t i = 0; i < count; i += STEP) {
        const int64_t n = mgx_min_i64(STEP, count - i);
        for (int64_t k = 0; k < n; k++)
            values[k] = ((float)x[i + k] - (float)zero) * (float)scale;
        mgx_half_from_floats(values, n, to + i);
    }
}

// The same of few bits into a row that is contiguous: a block has sixteen values at most, which are
// looked up, some of them in a byte.
#define LOOK_UP(name, type, bits)                                                                  \
    static void name(const uint8_t *x, const type *value, type *to, int64_t count)                 \
    {                                                                                              \
        for (int64_t i = 0; i < count; i += 8 / (bits))                                            \
            for (int e = 0; e < 8 / (bits) && i + e < count; e++)                                  \
                to[i + e] = value[x[i * (bits) / 8] >> (e * (bits)) & ((1 << (bits)) - 1)];        \
    }
LOOK_UP(fours_of_16, uint16_t, 4)
LOOK_UP(twos_of_16, uint16_t, 2)
LOOK_UP(fours_of_32, uint32_t, 4)
LOOK_UP(twos_of_32, uint32_t, 2)

static void put_few(int bits, const uint8_t *x, double zero, double scale,
                    const struct mgx_tensor *y, int64_t to, int64_t count)
{
    enum { MOST = 16 };
    static const uint8_t numbers[MOST] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint32_t wide[MOST];
    uint16_t narrow[MOST];
    const bool floats = y->shape.type == MGX_FLOAT;
    assert(bits <= 4 && (floats || mgx_type_size(y->shape.type) == sizeof *narrow));
    if (y->shape.type == MGX_HALF && is_byte(zero))
        put_bytes(numbers, zero, scale, narrow, 1 << bits);
    else
        for (int q = 0; q < 1 << bits; q++)
            mgx_store_double(y->shape.type, floats ? (void *)wide : (void *)narrow, q,
                             ((double)q - zero) * scale);
    if (floats)
        (bits == 4 ? fours_of_32 : twos_of_32)(x, wide, (uint32_t *)y->data + to, count);
    else
        (bits == 4 ? fours_of_16 : twos_of_16)(x, narrow, (uint16_t *)y->data + to, count);
}

// How the numbers lie decides: those of weights lie so.
static void put(int bits, const uint8_t *x, int64_t stride, double zero, double scale,
                const struct mgx_tensor *y, int64_t to, int64_t count)
{
    const enum mgx_type type = y->shape.type;
    const bool lines = stride == 1 && y->shape.strides[1] == 1;
    if (lines && bits < 8 && (type == MGX_FLOAT || mgx_type_is_half_or_bf16(type)))
        put_few(bits, x, zero, scale, y, to, count);
    else if (lines && type == MGX_HALF && is_byte(zero))
        put_bytes(x, zero, scale, (uint16_t *)y->data + to, count);
    else
        put_block(bits, x, stride, zero, scale, y, to, count);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct dequantize_blocks *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape, *y = &c->out->shape;
    const uint8_t *bytes = c->in[0]->data;
    const int64_t block = x->lens[2] * 8 / a->bits, middle = 1 << (a->bits - 1);
    for (int64_t r = 0; r < x->lens[0]; r++)
        for (int64_t b = 0; b < x->lens[1]; b++) {
            const double scale = at(c->in[1], r, b);
            const double zero = c->in_count == 3 ? at(c->in[2], r, b) : (double)middle;
            const int64_t begin = b * block, end = mgx_min_i64(a->columns, begin + block);
            put((int)a->bits, bytes + r * x->strides[0] + b * x->strides[1], x->strides[2], zero,
                scale, c->out, r * y->strides[0] + begin * y->strides[1], end - begin);
        }
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return c->in[1]->type;
}

const struct mgx_op mgx_op_dequantize_blocks = {
    .name = "dequantize_blocks",
    .meaning = "y = (q - zero_point) * scale of packed weights, block by block",
    .fields = fields,
    .attr_size = sizeof(struct dequantize_blocks),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 3,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
