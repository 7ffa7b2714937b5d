// SPDX-License-Identifier: MIT
// expert_dot: every row is multiplied by one of several matrices.
//
//     x {rows / per, depth}, which {rows}, w {experts, columns, depth}  ->  {rows, columns}
//
//     y[r][c] = sum over k of x[r / per][k] * w[which[r]][c][k]
//
// With `bits` 2, 4 or 8 the matrices are packed as those of dequantize_blocks are: bytes {experts,
// columns, blocks, block * bits / 8}, scales {experts, columns, blocks}[, zero points of that
// shape: bytes, or of the scales' type; the middle of the range without]. Scales may be of another
// float type than x. The reference sums in double.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

enum { X, WHICH, W, SCALE, ZERO };

struct expert_dot {
    int64_t bits; // of packed weights; 0: they are floats
    int64_t per;  // rows of the result that a row of x has
};

static const struct mgx_field fields[] = {
    MGX_INT(struct expert_dot, bits), MGX_INT(struct expert_dot, per), {0}};
static const struct expert_dot defaults = {.per = 1};

// --- shape ---

static enum mgx_status check_types(struct mgx_shape_call *c)
{
    const struct expert_dot *a = c->attr;
    const int wanted = a->bits ? (c->in_count == 5 ? 5 : 4) : 3;
    if (a->bits != 0 && a->bits != 2 && a->bits != 4 && a->bits != 8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: bits is %" PRId64 ", not 0, 2, 4 or 8",
                        c->op->name, a->bits);
    if (a->per < 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: per is %" PRId64 ", below 1", c->op->name,
                        a->per);
    if (c->in_count != wanted)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected %d, given %d", c->op->name, wanted,
                        c->in_count);
    TRY(mgx_require_float(c, X));
    TRY(mgx_require_integral(c, WHICH));
    TRY(mgx_require_float(c, a->bits ? SCALE : W));
    if (a->bits && c->in[W]->type != MGX_UINT8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: packed weights are %s, not uint8_type",
                        c->op->name, mgx_type_name(c->in[W]->type));
    if (c->in_count > ZERO && c->in[ZERO]->type != MGX_UINT8 &&
        c->in[ZERO]->type != c->in[SCALE]->type)
        return mgx_fail(c->diag, MGX_INVALID, "%s: zero points are %s, scales %s", c->op->name,
                        mgx_type_name(c->in[ZERO]->type), mgx_type_name(c->in[SCALE]->type));
    return MGX_OK;
}

// Depth of a row, from the bytes of its blocks where they are packed.
static enum mgx_status check_depth(struct mgx_shape_call *c)
{
    const struct expert_dot *a = c->attr;
    struct mgx_dim depth = mgx_shape_dim(c->in[X], 1);
    if (!a->bits)
        return mgx_require_length(c, W, 2, &depth);
    const struct mgx_dim blocks = mgx_shape_dim(c->in[W], 2), bytes = mgx_shape_dim(c->in[W], 3);
    int64_t block, whole;
    if (!mgx_dim_is_fixed(&blocks) || !mgx_dim_is_fixed(&bytes) || !mgx_dim_is_fixed(&depth))
        return MGX_OK;
    if (!mgx_mul_i64(bytes.min, 8 / a->bits, &block) || !mgx_mul_i64(block, blocks.min, &whole) ||
        whole != depth.min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " blocks of %" PRId64
                        " bytes do not make a depth of %" PRId64,
                        c->op->name, blocks.min, bytes.min, depth.min);
    return MGX_OK;
}

// Rows of the result, of which each row of x has as many.
static enum mgx_status check_rows(struct mgx_shape_call *c, struct mgx_dim *rows)
{
    const struct expert_dot *a = c->attr;
    const struct mgx_dim x = mgx_shape_dim(c->in[X], 0);
    int64_t all;
    *rows = mgx_shape_dim(c->in[WHICH], 0);
    if (!mgx_dim_is_fixed(&x) || !mgx_dim_is_fixed(rows))
        return MGX_OK;
    if (!mgx_mul_i64(x.min, a->per, &all) || all != rows->min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " rows for %" PRId64 " indices, %" PRId64 " each",
                        c->op->name, x.min, rows->min, a->per);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct expert_dot *a = c->attr;
    TRY(check_types(c));
    TRY(mgx_require_rank(c, X, 2, 2));
    TRY(mgx_require_rank(c, WHICH, 1, 1));
    TRY(mgx_require_rank(c, W, a->bits ? 4 : 3, a->bits ? 4 : 3));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[X], 2);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(check_rows(c, &dims[0]));
    TRY(check_depth(c));
    for (int i = SCALE; i < c->in_count; i++) {
        TRY(mgx_require_rank(c, i, 3, 3));
        for (int k = 0; k < 3; k++) {
            struct mgx_dim d = mgx_shape_dim(c->in[W], k);
            TRY(mgx_require_length(c, i, k, &d));
        }
    }
    dims[1] = mgx_shape_dim(c->in[W], 1);
    *out = mgx_shape_from_dims(c->in[X]->type, 2, dims);
    return MGX_OK;
}

// --- compute ---

struct run {
    const struct mgx_tensor *const *in;
    int64_t bits, per, depth, columns;
    double *row; // of a matrix
};

// Row c of matrix e as it is.
static void load_row(const struct run *r, int64_t e, int64_t c)
{
    const struct mgx_tensor *w = r->in[W];
    const int64_t *s = w->shape.strides;
    for (int64_t k = 0; k < r->depth; k++)
        r->row[k] = mgx_load_double(w->shape.type, w->data, e * s[0] + c * s[1] + k * s[2]);
}

static double element(const struct mgx_tensor *t, int64_t e, int64_t c, int64_t b)
{
    const int64_t *s = t->shape.strides;
    return mgx_load_double(t->shape.type, t->data, e * s[0] + c * s[1] + b * s[2]);
}

static void unpack_row(const struct run *r, int64_t e, int64_t c)
{
    const struct mgx_tensor *w = r->in[W], *zeros = r->in[ZERO];
    const int64_t *s = w->shape.strides, *lens = w->shape.lens, per = 8 / r->bits;
    const uint8_t *bytes = (const uint8_t *)w->data + e * s[0] + c * s[1];
    double *to = r->row;
    for (int64_t b = 0; b < lens[2]; b++) {
        const double scale = element(r->in[SCALE], e, c, b);
        const double zero = zeros ? element(zeros, e, c, b) : 1 << (r->bits - 1);
        for (int64_t i = 0; i < lens[3] * per; i++) {
            const int q = bytes[b * s[2] + i / per * s[3]] >> (i % per * r->bits);
            *to++ = ((double)(q & ((1 << r->bits) - 1)) - zero) * scale;
        }
    }
}

// Column c of all rows that go through matrix e.
static void multiply(const struct run *r, const double *x, const int64_t *which, int64_t rows,
                     int64_t e, int64_t c, double *y)
{
    if (r->bits)
        unpack_row(r, e, c);
    else
        load_row(r, e, c);
    for (int64_t i = 0; i < rows; i++) {
        if (which[i] != e)
            continue;
        double sum = 0;
        for (int64_t k = 0; k < r->depth; k++)
            sum += x[i / r->per * r->depth + k] * r->row[k];
        y[i * r->columns + c] = sum;
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct expert_dot *a = c->attr;
    const struct mgx_shape *out = &c->out->shape;
    const int64_t rows = out->lens[0], experts = c->in[W]->shape.lens[0];
    const struct mgx_tensor *in[5] = {NULL};
    for (int i = 0; i < c->in_count; i++)
        in[i] = c->in[i];
    struct run r = {.in = in,
                    .bits = a->bits,
                    .per = a->per,
                    .depth = c->in[X]->shape.lens[1],
                    .columns = out->lens[1]};
    if (mgx_shape_elements(out) == 0)
        return MGX_OK;
    const double *x = mgx_scratch_doubles(c, c->in[X]);
    const int64_t *which = mgx_scratch_ints(c, c->in[WHICH]);
    double *y = mgx_arena_array(c->scratch, (size_t)mgx_shape_elements(out), sizeof *y);
    r.row = mgx_arena_array(c->scratch, (size_t)r.depth + 1, sizeof *r.row);
    bool *used = MGX_NEW_ARRAY(c->scratch, bool, experts + 1);
    if (!x || !which || !y || !r.row || !used)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < rows; i++) {
        if (which[i] < 0 || which[i] >= experts)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: index %" PRId64 " is out of range for %" PRId64 " matrices",
                            c->op->name, which[i], experts);
        used[which[i]] = true;
    }
    for (int64_t e = 0; e < experts; e++)
        for (int64_t n = 0; used[e] && n < r.columns; n++)
            multiply(&r, x, which, rows, e, n, y);
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_expert_dot = {
    .name = "expert_dot",
    .meaning = "y = x times one of several matrices, row by row",
    .fields = fields,
    .attr_size = sizeof(struct expert_dot),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 5,
    .shape = shape,
    .compute = compute,
};
