// SPDX-License-Identifier: MIT
// dot, quant_dot: matrix products over equal batch axes.
//
//     y[b..., i, j] = sum over k of  a[b..., i, k] * b[b..., k, j]
//
// quant_dot sums products of narrow integers into int32 (fp8 and bf16 into float), each less its
// zero point where there are such:
//
//     y[b..., i, j] = sum over k of  (a[b..., i, k] - p) * (b[b..., k, j] - q[j])
//
// p is one value, q one or one for every column. Cost: the product plus one scratch copy of the two
// matrices of a batch entry.
#include "op/reference/gemm.h"

#include <assert.h>

// --- shape ---

static enum mgx_status result_shape(struct mgx_shape_call *c, enum mgx_type type,
                                    struct mgx_shape *out)
{
    const struct mgx_shape *a = c->in[0], *b = c->in[1];
    const int rank = a->rank;
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, rank, rank));
    struct mgx_dim *dims = mgx_edit_dims(c, a, rank);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim inner = dims[rank - 1];
    mgx_dim_meet(&inner, mgx_shape_dim(b, rank - 2));
    bool matches = inner.min <= inner.max;
    for (int i = 0; i < rank - 2; i++) {
        mgx_dim_meet(&dims[i], mgx_shape_dim(b, i));
        matches &= dims[i].min <= dims[i].max;
    }
    if (!matches)
        return mgx_fail_lens(c, 0, 1);
    dims[rank - 1] = mgx_shape_dim(b, rank - 1);
    *out = mgx_shape_from_dims(type, rank, dims);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_same_type(c));
    return result_shape(c, c->in[0]->type, out);
}

static enum mgx_status quant_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    enum mgx_type type;
    TRY(mgx_quant_result(c, &type));
    TRY(result_shape(c, type, out));
    const struct mgx_dim columns = mgx_shape_dim(out, out->rank - 1);
    return mgx_quant_zeros(c, &columns);
}

// --- compute ---

// Matrix at a batch position, borrowed.
static struct mgx_tensor matrix_at(const struct mgx_tensor *t, const int64_t *at)
{
    const struct mgx_shape *s = &t->shape;
    int64_t offset = 0;
    for (int i = 0; i < s->rank - 2; i++)
        offset += at[i] * s->strides[i];
    return (struct mgx_tensor){
        .shape = mgx_shape_strided(s->type, 2, s->lens + s->rank - 2, s->strides + s->rank - 2),
        .data = (char *)t->data + offset * (int64_t)mgx_type_size(s->type)};
}

static enum mgx_status multiply(struct mgx_compute_call *c, const int64_t *at)
{
    assert(c->out->shape.rank >= 2);
    const bool ints = mgx_computes_as_int(c->in[0]->shape.type);
    const struct mgx_tensor a = matrix_at(c->in[0], at), b = matrix_at(c->in[1], at);
    struct mgx_tensor y = matrix_at(c->out, at);
    const int64_t m = a.shape.lens[0], k = a.shape.lens[1], n = b.shape.lens[1];
    union mgx_word *left = mgx_scratch_words(c, &a, ints);
    union mgx_word *right = mgx_scratch_words(c, &b, ints);
    union mgx_word *sum = mgx_zero_words(c, m * n);
    if (!left || !right || !sum || !mgx_quant_shift(c, 2, left, m * k, 1) ||
        !mgx_quant_shift(c, 3, right, k * n, 1))
        return MGX_NO_MEMORY;
    mgx_gemm_words(ints, m, n, k, left, k, right, n, sum, n);
    mgx_write_words(&y, sum, ints);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    assert(c->in[0]->shape.rank == c->out->shape.rank &&
           c->in[1]->shape.rank == c->out->shape.rank);
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const int batch_rank = c->out->shape.rank - 2;
    const struct mgx_shape batch = mgx_shape_make(MGX_BOOL, batch_rank, c->out->shape.lens);
    int64_t at[MGX_MAX_RANK] = {0};
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    do {
        TRY(multiply(c, at));
        mgx_arena_rewind(c->scratch, mark);
    } while (mgx_shape_next(&batch, at));
    return MGX_OK;
}

const struct mgx_op mgx_op_dot = {
    .name = "dot",
    .meaning = "y = a b, the matrix product",
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_PRODUCT | MGX_OP_MATRICES,
    .shape = shape,
    .compute = compute,
};

const struct mgx_op mgx_op_quant_dot = {
    .name = "quant_dot",
    .meaning =
        "y = (a - p) (b - q) of narrow integers, summed in int32; of fp8, bf16 a b, in float",
    .in_min = 2,
    .in_max = 4,
    .flags = MGX_OP_PRODUCT | MGX_OP_MATRICES,
    .shape = quant_shape,
    .unranked_type = mgx_quant_unranked,
    .compute = compute,
};
