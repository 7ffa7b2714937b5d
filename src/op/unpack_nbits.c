// SPDX-License-Identifier: MIT
// unpack_nbits: bytes along the last axis as a stream of bits, cut into unsigned numbers of `bits`
// bits, low bits first: {..., n} bytes give {..., n * 8 / bits} numbers of one byte each.
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct unpack_nbits {
    int64_t bits;
};

static const struct mgx_field fields[] = {MGX_INT(struct unpack_nbits, bits), {0}};
static const struct unpack_nbits defaults = {.bits = 4};

static int64_t unpacked(int64_t bytes, int64_t bits)
{
    return bytes > INT64_MAX / 8 ? INT64_MAX : bytes * 8 / bits;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const int64_t bits = ((const struct unpack_nbits *)c->attr)->bits;
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_rank(c, 0, 1, MGX_MAX_RANK));
    if (x->type != MGX_UINT8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: takes uint8_type, not %s", c->op->name,
                        mgx_type_name(x->type));
    if (bits < 1 || bits > 8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: bits %" PRId64 " is out of range 1..8",
                        c->op->name, bits);
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim *last = &dims[x->rank - 1];
    *last = (struct mgx_dim){.min = unpacked(last->min, bits), .max = unpacked(last->max, bits)};
    *out = mgx_shape_from_dims(MGX_UINT8, x->rank, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const int64_t bits = ((const struct unpack_nbits *)c->attr)->bits;
    const struct mgx_shape *s = &c->out->shape;
    const int64_t count = mgx_shape_elements(s);
    if (count == 0)
        return MGX_OK;
    const int64_t per_row = s->lens[s->rank - 1];
    const int64_t bytes = c->in[0]->shape.lens[s->rank - 1];
    const int64_t *x = mgx_scratch_ints(c, c->in[0]);
    int64_t *y = MGX_NEW_ARRAY(c->scratch, int64_t, count);
    if (!x || !y)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++) {
        const int64_t *row = x + i / per_row * bytes;
        const int64_t bit = i % per_row * bits, at = bit / 8;
        const int64_t next = at + 1 < bytes ? row[at + 1] : 0;
        y[i] = ((row[at] | next << 8) >> (bit % 8)) & ((1 << bits) - 1);
    }
    mgx_write_ints(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_unpack_nbits = {
    .name = "unpack_nbits",
    .meaning = "y = the numbers of `bits` bits that the bytes x hold, low bits first",
    .fields = fields,
    .attr_size = sizeof(struct unpack_nbits),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
