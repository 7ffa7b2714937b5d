// SPDX-License-Identifier: MIT
// paged_append: new rows go to their places in a cache of blocks that texts share.
//
//     now {1, heads, tokens, size}, rows {tokens}, past {blocks, block, heads, size}
//         ->  {blocks, block, heads, size}
//
//     y[rows[t] / block, rows[t] % block, h] = now[0, h, t]          everything else as in past
//
// A token whose row is below 0, or behind the last one, is left out. Of tokens with the same row
// one is kept, and nobody says which. Where past and result are one memory only the new rows move.
#include "base/size.h"
#include "op/rule/rule.h"

enum { NOW, ROWS, PAST };

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_rank(c, NOW, 4, 4));
    TRY(mgx_require_integral(c, ROWS));
    TRY(mgx_require_rank(c, ROWS, 1, 1));
    TRY(mgx_require_rank(c, PAST, 4, 4));
    if (c->in[NOW]->type != c->in[PAST]->type)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Types do not match: input 0 is %s, input 2 is %s", c->op->name,
                        mgx_type_name(c->in[NOW]->type), mgx_type_name(c->in[PAST]->type));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[PAST], 4);
    struct mgx_dim tokens = mgx_shape_dim(c->in[NOW], 2);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(mgx_require_fixed(c, NOW, 0, 1));
    TRY(mgx_require_length(c, NOW, 1, &dims[2]));
    TRY(mgx_require_length(c, NOW, 3, &dims[3]));
    TRY(mgx_require_length(c, ROWS, 0, &tokens));
    *out = mgx_shape_from_dims(c->in[PAST]->type, 4, dims);
    return MGX_OK;
}

// Token t of all heads, {heads, size}; and the row of the cache where it goes.
static void copy_token(const struct mgx_tensor *now, int64_t t, struct mgx_tensor *out, int64_t row)
{
    const int64_t block = out->shape.lens[1], *x = now->shape.strides, *y = out->shape.strides;
    const struct mgx_shape from =
        mgx_shape_strided(now->shape.type, 2, (int64_t[]){now->shape.lens[1], now->shape.lens[3]},
                          (int64_t[]){x[1], x[3]});
    const struct mgx_shape to =
        mgx_shape_strided(out->shape.type, 2, (int64_t[]){out->shape.lens[2], out->shape.lens[3]},
                          (int64_t[]){y[2], y[3]});
    const struct mgx_tensor a = mgx_tensor_part(now, &from, t * x[2]);
    struct mgx_tensor b = mgx_tensor_part(out, &to, row / block * y[0] + row % block * y[1]);
    mgx_tensor_copy(&a, &b);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const int64_t count = c->out->shape.lens[0] * c->out->shape.lens[1];
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const int64_t *rows = mgx_scratch_ints(c, c->in[ROWS]);
    if (!rows)
        return MGX_NO_MEMORY;
    mgx_tensor_copy(c->in[PAST], c->out);
    for (int64_t t = 0; t < c->in[NOW]->shape.lens[2]; t++)
        if (rows[t] >= 0 && rows[t] < count)
            copy_token(c->in[NOW], t, c->out, rows[t]);
    return MGX_OK;
}

const struct mgx_op mgx_op_paged_append = {
    .name = "paged_append",
    .meaning = "y = past with each new token's rows at the row of the blocks that it is given",
    .in_min = 3,
    .in_max = 3,
    .shape = shape,
    .compute = compute,
};
