// SPDX-License-Identifier: MIT
// pack_int4, unpack_int4, pack_fp4, unpack_fp4: two 4-bit values a byte along an axis, the lower
// half first.
//
//     pack:   y[.., i, ..] = x[.., 2i, ..] | x[.., 2i + 1, ..] << 4        unpack is its inverse
//
// int4 lives in int8 (sign-extended) or uint8; fp4 packs floats as e2m1 into fp4x2 and unpacks to
// float.
#include "base/half.h"

#include <assert.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct pack {
    int64_t axis;
};

static const struct mgx_field fields[] = {MGX_INT(struct pack, axis), {0}};
static const struct pack defaults = {.axis = -1};

static enum mgx_status resized(struct mgx_shape_call *c, enum mgx_type type, bool packs,
                               struct mgx_shape *out)
{
    int axis;
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_rank(c, 0, 1, MGX_MAX_RANK));
    TRY(mgx_normalize_axis(c, ((const struct pack *)c->attr)->axis, x->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    if (packs && mgx_dim_is_fixed(&dims[axis]) && dims[axis].min % 2)
        return mgx_fail(c->diag, MGX_INVALID, "%s: axis %d has odd length %lld", c->op->name, axis,
                        (long long)dims[axis].min);
    dims[axis] = packs ? (struct mgx_dim){.min = dims[axis].min / 2, .max = dims[axis].max / 2}
                       : (struct mgx_dim){.min = dims[axis].min * 2, .max = dims[axis].max * 2};
    *out = mgx_shape_from_dims(type, x->rank, dims);
    return MGX_OK;
}

static enum mgx_status require_byte(struct mgx_shape_call *c)
{
    const enum mgx_type type = c->in[0]->type;
    if (mgx_type_is_byte(type))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: takes int8 or uint8, given %s", c->op->name,
                    mgx_type_name(type));
}

static enum mgx_status pack_int4_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_byte(c));
    return resized(c, c->in[0]->type, true, out);
}

static enum mgx_status unpack_int4_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_byte(c));
    return resized(c, c->in[0]->type, false, out);
}

static enum mgx_status pack_fp4_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_float(c, 0));
    return resized(c, MGX_FP4X2, true, out);
}

static enum mgx_status unpack_fp4_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->in[0]->type != MGX_FP4X2)
        return mgx_fail(c->diag, MGX_INVALID, "unpack_fp4: takes fp4x2_type, given %s",
                        mgx_type_name(c->in[0]->type));
    return resized(c, MGX_FLOAT, false, out);
}

static enum mgx_type packed_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_FP4X2;
}

static enum mgx_type float_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_FLOAT;
}

// Walks the packed side; `wide` is the other. Calls back with byte offset and the two element
// offsets.
struct pair {
    const struct mgx_tensor *packed, *wide;
    int axis;
};

static int64_t wide_offset(const struct pair *p, const int64_t *at, int half)
{
    assert(half == 0 || half == 1);
    int64_t offset = 0;
    for (int i = 0; i < p->wide->shape.rank; i++)
        offset += (i == p->axis ? 2 * at[i] + half : at[i]) * p->wide->shape.strides[i];
    return offset;
}

static struct pair pair_of(const struct mgx_compute_call *c, bool packs)
{
    const int64_t axis = ((const struct pack *)c->attr)->axis;
    const int rank = c->in[0]->shape.rank;
    return (struct pair){.packed = packs ? c->out : c->in[0],
                         .wide = packs ? c->in[0] : c->out,
                         .axis = mgx_wrap_axis(axis, rank)};
}

// Integers beyond four bits become the nearest of those.
static unsigned nibble(const struct mgx_tensor *wide, int64_t offset)
{
    assert(offset >= 0);
    const enum mgx_type type = wide->shape.type;
    if (mgx_type_is_float(type))
        return mgx_fp4_from_double(mgx_load_double(type, wide->data, offset)) & 15u;
    const int64_t value = mgx_load_int(type, wide->data, offset);
    const int64_t low = type == MGX_INT8 ? -8 : 0, high = type == MGX_INT8 ? 7 : 15;
    return (unsigned)mgx_max_i64(mgx_min_i64(value, high), low) & 15u;
}

static enum mgx_status pack(struct mgx_compute_call *c)
{
    const struct pair p = pair_of(c, true);
    int64_t at[MGX_MAX_RANK] = {0};
    if (!mgx_shape_elements(&p.packed->shape))
        return MGX_OK;
    do {
        const unsigned low = nibble(p.wide, wide_offset(&p, at, 0)),
                       high = nibble(p.wide, wide_offset(&p, at, 1));
        ((unsigned char *)p.packed->data)[mgx_shape_offset(&p.packed->shape, at)] =
            (unsigned char)(low | high << 4);
    } while (mgx_shape_next(&p.packed->shape, at));
    return MGX_OK;
}

static void put(const struct mgx_tensor *wide, int64_t offset, unsigned value)
{
    assert(offset >= 0 && value < 16);
    if (wide->shape.type == MGX_FLOAT)
        ((float *)wide->data)[offset] = mgx_fp4_to_float((uint8_t)value);
    else if (wide->shape.type == MGX_INT8)
        ((int8_t *)wide->data)[offset] = (int8_t)((int)(value ^ 8u) - 8);
    else
        ((uint8_t *)wide->data)[offset] = (uint8_t)value;
}

static enum mgx_status unpack(struct mgx_compute_call *c)
{
    const struct pair p = pair_of(c, false);
    int64_t at[MGX_MAX_RANK] = {0};
    if (!mgx_shape_elements(&p.packed->shape))
        return MGX_OK;
    do {
        const unsigned byte =
            ((const unsigned char *)p.packed->data)[mgx_shape_offset(&p.packed->shape, at)];
        put(p.wide, wide_offset(&p, at, 0), byte & 15u);
        put(p.wide, wide_offset(&p, at, 1), byte >> 4);
    } while (mgx_shape_next(&p.packed->shape, at));
    return MGX_OK;
}

#define PACK(name_, meaning_, shape_, compute_, unranked_)                                         \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .fields = fields, .attr_size = sizeof(struct pack),    \
        .defaults = &defaults, .in_min = 1, .in_max = 1, .shape = shape_, .compute = compute_,     \
        .unranked_type = unranked_,                                                                \
    }

const struct mgx_op mgx_op_pack_int4 =
    PACK("pack_int4", "two 4-bit integers a byte", pack_int4_shape, pack, NULL);
const struct mgx_op mgx_op_unpack_int4 =
    PACK("unpack_int4", "4-bit integers, one a byte", unpack_int4_shape, unpack, NULL);
const struct mgx_op mgx_op_pack_fp4 =
    PACK("pack_fp4", "two e2m1 floats a byte", pack_fp4_shape, pack, packed_type);
const struct mgx_op mgx_op_unpack_fp4 =
    PACK("unpack_fp4", "e2m1 floats as float", unpack_fp4_shape, unpack, float_type);
