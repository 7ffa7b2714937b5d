// SPDX-License-Identifier: MIT
// Memory without a value of its own.
//   undefined   an absent operand: no elements
//   outline     a tensor of a shape, of no particular value (here zeros)
//   allocate    the same; with an input its values are the lengths, of type buf_type
//   fill        the second operand's shape, filled with the first one's value
//   fixed_pad   x in the front of zeros, with output_lens, or else with the largest lengths that its
//               ranges allow (passes write those down: in a plan for one size x has no ranges)
//   load        a shape over the bytes of a buffer from `offset` on, a view
//   unknown     an operator that no rule imports: it passes shapes on and cannot run
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/rule/rule.h"

static enum mgx_status zero_compute(struct mgx_compute_call *c)
{
    if (c->out->data)
        memset(c->out->data, 0, mgx_shape_bytes(&c->out->shape));
    return MGX_OK;
}

// --- undefined ---

static enum mgx_status undefined_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    (void)c;
    *out = mgx_shape_vector(MGX_FLOAT, 0);
    return MGX_OK;
}

const struct mgx_op mgx_op_undefined = {
    .name = "undefined",
    .meaning = "an operand that is not given",
    .shape = undefined_shape,
    .compute = zero_compute,
};

// --- outline, allocate ---

struct allocate {
    struct mgx_shape shape;
    int64_t buf_type;
};

static const struct mgx_field outline_fields[] = {MGX_SHAPE(struct allocate, shape), {0}};
static const struct mgx_field allocate_fields[] = {
    MGX_SHAPE(struct allocate, shape), MGX_OPTIONAL_TYPE(struct allocate, buf_type), {0}};
static const struct allocate allocate_defaults = {.shape = {.type = MGX_FLOAT},
                                                  .buf_type = MGX_NONE};

static enum mgx_status given_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct allocate *a = c->attr;
    *out = a->shape;
    return MGX_OK;
}

static enum mgx_status create_compute(struct mgx_compute_call *c)
{
    if (!mgx_shape_is_static(c->out_shape))
        return mgx_fail(c->diag, MGX_INVALID, "%s: the shape is not known before the run",
                        c->op->name);
    if (!c->out->data && c->out_shape->type == MGX_TUPLE)
        return mgx_eval_create(c, c->out_shape);
    return zero_compute(c);
}

const struct mgx_op mgx_op_outline = {
    .name = "outline",
    .meaning = "a tensor of a shape, without a value",
    .fields = outline_fields,
    .attr_size = sizeof(struct allocate),
    .defaults = &allocate_defaults,
    .shape = given_shape,
    .compute = create_compute,
};

static enum mgx_type buffer_type(const struct mgx_shape_call *c)
{
    const struct allocate *a = c->attr;
    return a->buf_type == MGX_NONE ? a->shape.type : (enum mgx_type)a->buf_type;
}

static enum mgx_status allocate_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->in_count == 0)
        return given_shape(c, out);
    if (mgx_type_size(buffer_type(c)) == 0)
        return mgx_fail(c->diag, MGX_INVALID, "allocate: %s has no elements to allocate",
                        mgx_type_name(buffer_type(c)));
    struct mgx_ints lens;
    bool known;
    TRY(mgx_known_ints(c, 0, &known, &lens));
    if (known) {
        struct mgx_dim *dims;
        int rank;
        TRY(mgx_dims_of_ints(c, lens, &dims, &rank));
        *out = mgx_shape_from_dims(buffer_type(c), rank, dims);
        return MGX_OK;
    }
    const struct mgx_dim rank = mgx_shape_dim(c->in[0], 0);
    if (c->in[0]->rank == 1 && rank.min == rank.max)
        return mgx_shape_any(c, buffer_type(c), (int)rank.max, MGX_DIM_ANY, out);
    *out = mgx_shape_unranked(buffer_type(c));
    return MGX_OK;
}

const struct mgx_op mgx_op_allocate = {
    .name = "allocate",
    .meaning = "memory of a shape, or of the lengths in input 0",
    .fields = allocate_fields,
    .attr_size = sizeof(struct allocate),
    .defaults = &allocate_defaults,
    .in_max = 1,
    .flags = MGX_OP_IMPURE,
    .shape = allocate_shape,
    .unranked_type = buffer_type,
    .compute = create_compute,
    .sized_by = mgx_sized_by_first,
};

// --- fill ---

static enum mgx_status fill_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_same_type(c));
    if (mgx_shape_is_static(c->in[0]) && mgx_shape_elements(c->in[0]) != 1)
        return mgx_fail(c->diag, MGX_INVALID,
                        "fill: default value must have one element, not %" PRId64,
                        mgx_shape_elements(c->in[0]));
    *out = mgx_shape_is_packed(c->in[1]) ? *c->in[1] : mgx_shape_retype(c->in[1], c->in[1]->type);
    return MGX_OK;
}

static enum mgx_status fill_compute(struct mgx_compute_call *c)
{
    struct mgx_shape repeated = c->out->shape;
    for (int i = 0; i < repeated.rank; i++)
        repeated.strides[i] = 0;
    const struct mgx_tensor value = mgx_tensor_part(c->in[0], &repeated, 0);
    mgx_tensor_copy(&value, c->out);
    return MGX_OK;
}

const struct mgx_op mgx_op_fill = {
    .name = "fill",
    .meaning = "the shape of input 1 filled with the value of input 0",
    .in_min = 2,
    .in_max = 2,
    .shape = fill_shape,
    .compute = fill_compute,
};

// --- fixed_pad ---

struct fixed_pad {
    struct mgx_ints output_lens;
};

static const struct mgx_field fixed_pad_fields[] = {MGX_INTS(struct fixed_pad, output_lens), {0}};

static enum mgx_status fixed_pad_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    const struct mgx_ints lens = ((const struct fixed_pad *)c->attr)->output_lens;
    if (lens.count && lens.count != x->rank)
        return mgx_fail(c->diag, MGX_INVALID, "fixed_pad: output_lens has %d lengths for %d axes",
                        lens.count, x->rank);
    for (int i = 0; i < lens.count; i++)
        if (lens.v[i] < mgx_shape_dim(x, i).min)
            return mgx_fail(c->diag, MGX_INVALID,
                            "fixed_pad: axis %d of length %" PRId64 " is above %" PRId64, i,
                            mgx_shape_dim(x, i).min, lens.v[i]);
    // lens of a dynamic shape are the largest ones
    *out = mgx_shape_make(x->type, x->rank, lens.count ? lens.v : x->lens);
    return MGX_OK;
}

static enum mgx_status fixed_pad_compute(struct mgx_compute_call *c)
{
    const struct mgx_tensor *x = c->in[0];
    const struct mgx_shape *want = c->declared;
    if (want && mgx_shape_is_static(want) && want->rank == x->shape.rank &&
        !mgx_shape_same_lens(want, &c->out->shape)) {
        for (int i = 0; i < want->rank; i++)
            if (want->lens[i] < x->shape.lens[i])
                return mgx_fail(c->diag, MGX_INVALID,
                                "fixed_pad: axis %d of length %" PRId64 " is above %" PRId64, i,
                                x->shape.lens[i], want->lens[i]);
        mgx_tensor_release(c->out);
        TRY(mgx_eval_create(c, want));
    }
    if (!mgx_shape_same_lens(&x->shape, &c->out->shape))
        TRY(zero_compute(c));
    const struct mgx_shape front =
        mgx_shape_strided(x->shape.type, x->shape.rank, x->shape.lens, c->out->shape.strides);
    struct mgx_tensor part = mgx_tensor_part(c->out, &front, 0);
    mgx_tensor_copy(x, &part);
    return MGX_OK;
}

const struct mgx_op mgx_op_fixed_pad = {
    .name = "fixed_pad",
    .meaning = "x padded with zeros to its largest lengths",
    .fields = fixed_pad_fields,
    .attr_size = sizeof(struct fixed_pad),
    .in_min = 1,
    .in_max = 1,
    .shape = fixed_pad_shape,
    .compute = fixed_pad_compute,
};

// --- load ---

struct load {
    struct mgx_shape shape;
    int64_t offset;
};

static const struct mgx_field load_fields[] = {
    MGX_SHAPE(struct load, shape), MGX_INT(struct load, offset), {0}};

static enum mgx_status load_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct load *a = c->attr;
    *out = a->shape;
    TRY(mgx_shape_check(out, c->diag));
    const size_t size = mgx_type_size(out->type);
    if (!mgx_shape_is_static(out) || size == 0 || out->type == MGX_STRING || a->offset < 0 ||
        (size_t)a->offset % size != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "load: offset %" PRId64 " of %s is no place for its elements", a->offset,
                        mgx_type_name(out->type));
    size_t end;
    const bool fits = mgx_add_size((size_t)a->offset, mgx_shape_bytes(out), &end);
    if (mgx_shape_is_static(c->in[0]) && (!fits || end > mgx_shape_bytes(c->in[0])))
        return mgx_fail(c->diag, MGX_INVALID,
                        "load: Load access is out of bounds: %zu bytes at %" PRId64
                        " of a buffer of %zu",
                        mgx_shape_bytes(out), a->offset, mgx_shape_bytes(c->in[0]));
    return MGX_OK;
}

static enum mgx_type load_type(const struct mgx_shape_call *c)
{
    return ((const struct load *)c->attr)->shape.type;
}

static enum mgx_status load_compute(struct mgx_compute_call *c)
{
    const struct load *a = c->attr;
    *c->out = mgx_tensor_view(c->in[0], c->out_shape, a->offset);
    return MGX_OK;
}

const struct mgx_op mgx_op_load = {
    .name = "load",
    .meaning = "a shape over the bytes of a buffer",
    .fields = load_fields,
    .attr_size = sizeof(struct load),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = load_shape,
    .unranked_type = load_type,
    .compute = load_compute,
};

// --- unknown ---

struct unknown {
    const char *op;
};

static const struct mgx_field unknown_fields[] = {MGX_TEXT(struct unknown, op), {0}};

static enum mgx_status unknown_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    *out = c->in_count ? *c->in[0] : mgx_shape_scalar(MGX_FLOAT);
    return MGX_OK;
}

const struct mgx_op mgx_op_unknown = {
    .name = "unknown",
    .meaning = "an operator that could not be imported",
    .fields = unknown_fields,
    .attr_size = sizeof(struct unknown),
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_IMPURE,
    .shape = unknown_shape,
};
