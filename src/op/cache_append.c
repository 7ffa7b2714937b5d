// SPDX-License-Identifier: MIT
// cache_append: new keys or values behind those of a cache, for every batch entry at its own place.
//
//     now {batch, heads, tokens, size}, ends {batch}, total {} or {1}[, past {batch, heads, room, size}]
//         ->  {batch, heads, max(room, total), size}
//
//     entry b:   past's rows | now's rows | 0 ...
//                            ^            ^
//                 max(ends - tokens, 0)   ends
//
// A cache with room keeps its length; one without grows by what `total`, the longest entry's tokens
// with the new ones, asks for. Rows that find no place are left out.
//
// `masked` is a promise of pasts of so many rows or more (0: of none): new rows find their places,
// and whoever else reads past, joined with now, does not look at its rows that are no entry's.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/reference/gemm.h"
#include "op/rule/cache.h"

enum { NOW, ENDS, TOTAL, PAST };

struct cache_append {
    int64_t masked;
};

static const struct mgx_field fields[] = {MGX_INT(struct cache_append, masked), {0}};

static enum mgx_status require_operands(struct mgx_shape_call *c)
{
    TRY(mgx_require_rank(c, NOW, 4, 4));
    TRY(mgx_require_integral(c, ENDS));
    TRY(mgx_require_rank(c, ENDS, 1, 1));
    TRY(mgx_require_integral(c, TOTAL));
    TRY(mgx_require_rank(c, TOTAL, 0, 1));
    if (c->in_count <= PAST)
        return MGX_OK;
    TRY(mgx_require_rank(c, PAST, 4, 4));
    if (c->in[NOW]->type != c->in[PAST]->type)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Types do not match: input 0 is %s, input 3 is %s", c->op->name,
                        mgx_type_name(c->in[NOW]->type), mgx_type_name(c->in[PAST]->type));
    return MGX_OK;
}

// How long the result is, with the room that there is.
static enum mgx_status find_keys(struct mgx_shape_call *c, struct mgx_dim room,
                                 struct mgx_dim *keys)
{
    bool known;
    struct mgx_ints total;
    TRY(mgx_known_ints(c, TOTAL, &known, &total));
    if (!known) {
        *keys = (struct mgx_dim){.min = room.min, .max = MGX_DIM_ANY};
        return MGX_OK;
    }
    if (total.count != 1 || total.v[0] < 0 || total.v[0] > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: input 2 says %lld tokens in total", c->op->name,
                        total.count == 1 ? (long long)total.v[0] : -1LL);
    if (total.v[0] < mgx_shape_dim(c->in[NOW], 2).min)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %lld new tokens, but input 2 says %lld in total",
                        c->op->name, (long long)mgx_shape_dim(c->in[NOW], 2).min,
                        (long long)total.v[0]);
    *keys = room.min >= total.v[0]
                ? room
                : (struct mgx_dim){.min = total.v[0], .max = mgx_max_i64(room.max, total.v[0])};
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_operands(c));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[NOW], 4), room = {.min = 0, .max = 0};
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < 4 && c->in_count > PAST; i++)
        if (i != 2)
            TRY(mgx_require_length(c, PAST, i, &dims[i]));
    TRY(mgx_require_length(c, ENDS, 0, &dims[0]));
    if (c->in_count > PAST)
        room = mgx_shape_dim(c->in[PAST], 2);
    TRY(find_keys(c, room, &dims[2]));
    *out = mgx_shape_from_dims(c->in[NOW]->type, 4, dims);
    return MGX_OK;
}

// Rows [from, from + count) of entry b.
static struct mgx_tensor rows_of(const struct mgx_tensor *t, int64_t b, int64_t from, int64_t count)
{
    assert(t->shape.rank == 4 && from >= 0 && from + count <= t->shape.lens[2]);
    struct mgx_tensor part = mgx_borrow_entry(t, b);
    part.shape.lens[2] = count;
    part.data =
        (char *)part.data + from * t->shape.strides[2] * (int64_t)mgx_type_size(t->shape.type);
    return part;
}

// The first `count` rows of entry b, to row `to` on.
static void copy_rows(const struct mgx_tensor *from, struct mgx_tensor *out, int64_t to, int64_t b,
                      int64_t count)
{
    if (count <= 0)
        return;
    const struct mgx_tensor x = rows_of(from, b, 0, count);
    struct mgx_tensor y = rows_of(out, b, to, count);
    mgx_tensor_copy(&x, &y);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_tensor *now = c->in[NOW], *past = c->in_count > PAST ? c->in[PAST] : NULL;
    const int64_t tokens = now->shape.lens[2], keys = c->out->shape.lens[2];
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const int64_t *ends = mgx_scratch_ints(c, c->in[ENDS]);
    if (!ends)
        return MGX_NO_MEMORY;
    memset(c->out->data, 0, mgx_shape_bytes(&c->out->shape));
    for (int64_t b = 0; b < c->out->shape.lens[0]; b++) {
        const int64_t before = mgx_cache_before(ends[b], tokens);
        if (past)
            copy_rows(past, c->out, 0, b, mgx_min_i64(before, past->shape.lens[2]));
        copy_rows(now, c->out, before, b, mgx_min_i64(tokens, keys - before));
    }
    return MGX_OK;
}

static uint32_t sized_by(const struct mgx_ins *ins)
{
    (void)ins;
    return 1u << TOTAL;
}

const struct mgx_op mgx_op_cache_append = {
    .name = "cache_append",
    .meaning = "y = past with now's rows behind each entry's own, up to `ends`",
    .fields = fields,
    .attr_size = sizeof(struct cache_append),
    .in_min = 3,
    .in_max = 4,
    .shape = shape,
    .compute = compute,
    .sized_by = sized_by,
};
