// SPDX-License-Identifier: MIT
// gqa_rotary_embedding: turns queries and keys by their positions, for grouped-query attention.
//
//     qkv {batch, num_heads + 2 * kv_num_heads, steps, size}, seqlens_k {batch} or {batch, 1},
//     cos and sin {positions, turned / 2}  ->  the same as qkv, values untouched
//
// The first `turned` numbers of a head are pairs (x, y) that become (x cos - y sin, y cos + x sin):
// neighbours when interleaved, else the two halves. A prompt (more than one step) has positions
// 0, 1, ...; a single step has position seqlens_k.
#include <assert.h>
#include <inttypes.h>

#include "op/rule/cache.h"
#include "op/rule/rule.h"

struct gqa_rotary_embedding {
    int64_t num_heads, kv_num_heads;
    bool interleaved;
};

static const struct mgx_field fields[] = {MGX_INT(struct gqa_rotary_embedding, num_heads),
                                          MGX_INT(struct gqa_rotary_embedding, kv_num_heads),
                                          MGX_FLAG(struct gqa_rotary_embedding, interleaved),
                                          {0}};
static const struct gqa_rotary_embedding defaults = {.kv_num_heads = 1};

// --- shape ---

static enum mgx_status require_ranks(struct mgx_shape_call *c)
{
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 0, 4, 4));
    TRY(mgx_require_rank(c, 1, 1, 2));
    TRY(mgx_require_rank(c, 2, 2, 2));
    return mgx_require_rank(c, 3, 2, 2);
}

static enum mgx_status require_heads(struct mgx_shape_call *c)
{
    const struct gqa_rotary_embedding *a = c->attr;
    if (a->num_heads < 0 || a->num_heads > INT32_MAX || a->kv_num_heads < 0 ||
        a->kv_num_heads > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %" PRId64 " and %" PRId64 " heads", c->op->name,
                        a->num_heads, a->kv_num_heads);
    return mgx_require_fixed(c, 0, 1, a->num_heads + 2 * a->kv_num_heads);
}

static enum mgx_status require_tables(struct mgx_shape_call *c)
{
    const enum mgx_type type = c->in[0]->type;
    struct mgx_dim half = {.min = 0, .max = mgx_shape_dim(c->in[0], 3).max / 2};
    for (int i = 2; i < 4; i++) {
        if (c->in[i]->type != type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Types do not match: input 0 is %s, input %d is %s", c->op->name,
                            mgx_type_name(type), i, mgx_type_name(c->in[i]->type));
        TRY(mgx_require_length(c, i, 1, &half));
    }
    return mgx_shape_may_match(c->in[2], c->in[3]) ? MGX_OK : mgx_fail_lens(c, 2, 3);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_ranks(c));
    TRY(require_heads(c));
    struct mgx_dim batch = mgx_shape_dim(c->in[0], 0);
    TRY(mgx_require_length(c, 1, 0, &batch));
    if (c->in[1]->rank == 2)
        TRY(mgx_require_fixed(c, 1, 1, 1));
    TRY(require_tables(c));
    const struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(c->in[0]->type, 4, dims);
    return MGX_OK;
}

// --- compute ---

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct gqa_rotary_embedding *a = c->attr;
    const int64_t *lens = c->in[0]->shape.lens, *table = c->in[2]->shape.lens;
    const int64_t heads = a->num_heads + a->kv_num_heads, steps = lens[2], size = lens[3];
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    double *x = mgx_scratch_doubles(c, c->in[0]);
    const int64_t *seqlens = mgx_scratch_ints(c, c->in[1]);
    const double *cosines = mgx_scratch_doubles(c, c->in[2]);
    const double *sines = mgx_scratch_doubles(c, c->in[3]);
    if (!x || !seqlens || !cosines || !sines)
        return MGX_NO_MEMORY;
    for (int64_t b = 0; b < lens[0]; b++)
        for (int64_t s = 0; s < steps; s++) {
            const int64_t at = steps == 1 ? seqlens[b] : s;
            if (at < 0 || at >= table[0])
                return mgx_fail(c->diag, MGX_INVALID,
                                "%s: position %" PRId64 " is out of range for a table of %" PRId64,
                                c->op->name, at, table[0]);
            for (int64_t h = 0; h < heads; h++)
                mgx_turn_head(x + ((b * lens[1] + h) * steps + s) * size, cosines + at * table[1],
                              sines + at * table[1], table[1], a->interleaved);
        }
    mgx_write_doubles(c->out, x);
    return MGX_OK;
}

const struct mgx_op mgx_op_gqa_rotary_embedding = {
    .name = "gqa_rotary_embedding",
    .meaning = "y = qkv with queries and keys turned by their positions",
    .fields = fields,
    .attr_size = sizeof(struct gqa_rotary_embedding),
    .defaults = &defaults,
    .in_min = 4,
    .in_max = 4,
    .shape = shape,
    .compute = compute,
};
