// SPDX-License-Identifier: MIT
// rotary_embedding: turns heads by the positions of their tokens.
//
//     x {batch, heads, tokens, size}, cos and sin {positions, turned / 2},
//     at {batch}, where each entry ends: positions max(at - tokens, 0) + i,
//     or {batch, tokens}, the positions; below 0 is 0        ->  the same as x
//
// The first `turned` numbers of a head are pairs (x, y) that become (x cos - y sin, y cos + x sin):
// neighbours when interleaved, else the two halves.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/cache.h"
#include "op/rule/rule.h"

enum { X, COS, SIN, AT };

struct rotary_embedding {
    bool interleaved;
};

static const struct mgx_field fields[] = {MGX_FLAG(struct rotary_embedding, interleaved), {0}};

static enum mgx_status require_tables(struct mgx_shape_call *c)
{
    struct mgx_dim half = {.min = 0, .max = mgx_shape_dim(c->in[X], 3).max / 2};
    for (int i = COS; i <= SIN; i++) {
        TRY(mgx_require_rank(c, i, 2, 2));
        if (c->in[i]->type != c->in[X]->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Types do not match: input 0 is %s, input %d is %s", c->op->name,
                            mgx_type_name(c->in[X]->type), i, mgx_type_name(c->in[i]->type));
        TRY(mgx_require_length(c, i, 1, &half));
    }
    return mgx_shape_may_match(c->in[COS], c->in[SIN]) ? MGX_OK : mgx_fail_lens(c, COS, SIN);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_float(c, X));
    TRY(mgx_require_rank(c, X, 4, 4));
    TRY(mgx_require_integral(c, AT));
    TRY(mgx_require_rank(c, AT, 1, 2));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[X], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(mgx_require_length(c, AT, 0, &dims[0]));
    if (c->in[AT]->rank == 2)
        TRY(mgx_require_length(c, AT, 1, &dims[2]));
    TRY(require_tables(c));
    *out = mgx_shape_from_dims(c->in[X]->type, 4, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct rotary_embedding *a = c->attr;
    const int64_t *lens = c->in[X]->shape.lens, *table = c->in[COS]->shape.lens;
    const int64_t heads = lens[1], tokens = lens[2], size = lens[3];
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    double *x = mgx_scratch_doubles(c, c->in[X]);
    const double *cosines = mgx_scratch_doubles(c, c->in[COS]),
                 *sines = mgx_scratch_doubles(c, c->in[SIN]);
    const int64_t *given = mgx_scratch_ints(c, c->in[AT]);
    if (!x || !given || !cosines || !sines)
        return MGX_NO_MEMORY;
    for (int64_t b = 0; b < lens[0]; b++)
        for (int64_t i = 0; i < tokens; i++) {
            const int64_t at = c->in[AT]->shape.rank == 2 ? mgx_max_i64(given[b * tokens + i], 0)
                                                          : mgx_cache_before(given[b], tokens) + i;
            if (at >= table[0])
                return mgx_fail(c->diag, MGX_INVALID,
                                "%s: position %" PRId64 " is out of range for a table of %" PRId64,
                                c->op->name, at, table[0]);
            for (int64_t h = 0; h < heads; h++)
                mgx_turn_head(x + ((b * heads + h) * tokens + i) * size, cosines + at * table[1],
                              sines + at * table[1], table[1], a->interleaved);
        }
    mgx_write_doubles(c->out, x);
    return MGX_OK;
}

const struct mgx_op mgx_op_rotary_embedding = {
    .name = "rotary_embedding",
    .meaning = "y = x with its heads turned by the positions of their tokens",
    .fields = fields,
    .attr_size = sizeof(struct rotary_embedding),
    .in_min = 4,
    .in_max = 4,
    .shape = shape,
    .compute = compute,
};
