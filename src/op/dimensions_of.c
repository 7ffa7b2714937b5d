// SPDX-License-Identifier: MIT
// dimensions_of: the lengths of x from axis `start` to before axis `end`, as a vector. Negative
// axes count from the end, both are clipped to the rank; an end of 0 stands for the rank.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct dimensions_of {
    int64_t start, end;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct dimensions_of, start), MGX_INT(struct dimensions_of, end), {0}};

static int64_t clip(int64_t axis, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    return mgx_min_i64(mgx_max_i64(axis < 0 ? axis + rank : axis, 0), rank);
}

static void span(const struct dimensions_of *a, int rank, int64_t *start, int64_t *end)
{
    *start = clip(a->start, rank);
    *end = a->end == 0 ? rank : clip(a->end, rank);
    *end = mgx_max_i64(*end, *start);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    int64_t start, end;
    if (c->in[0]->unranked)
        return mgx_shape_any(c, MGX_INT64, 1, MGX_MAX_RANK, out);
    span(c->attr, c->in[0]->rank, &start, &end);
    *out = mgx_shape_vector(MGX_INT64, end - start);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    int64_t start, end;
    span(c->attr, c->in[0]->shape.rank, &start, &end);
    for (int64_t i = start; i < end; i++)
        mgx_store_int(MGX_INT64, c->out->data, i - start, c->in[0]->shape.lens[i]);
    return MGX_OK;
}

const struct mgx_op mgx_op_dimensions_of = {
    .name = "dimensions_of",
    .meaning = "the lengths of axes start <= i < end",
    .fields = fields,
    .attr_size = sizeof(struct dimensions_of),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_ANY_STRIDE | MGX_OP_UNRANKED,
    .shape = shape,
    .compute = compute,
};
