// SPDX-License-Identifier: MIT
// nonzero: positions of the elements that are not 0, one row per axis, in row-major order. How many
// there are is known at run time only: the result is a range up to the number of elements.
//
// nonzero_list: the same as a list of fixed length (reference/listed.h), a part for every axis.
#include <string.h>

#include "op/op.h"
#include "op/reference/listed.h"

static enum mgx_type index_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_INT64;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    if (!mgx_type_is_number(s->type))
        return mgx_fail(c->diag, MGX_INVALID, "nonzero: type %s is not a number",
                        mgx_type_name(s->type));
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 2);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[0].min = dims[0].max = s->rank;
    dims[1] = (struct mgx_dim){.min = 0, .max = mgx_elements_max(s)};
    *out = mgx_shape_from_dims(MGX_INT64, 2, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    const double *x = mgx_scratch_doubles(c, c->in[0]);
    const int64_t elements = mgx_shape_elements(s);
    int64_t count = 0;
    if (!x)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < elements; i++)
        count += x[i] != 0;
    const struct mgx_shape result = mgx_shape_make(MGX_INT64, 2, (int64_t[]){s->rank, count});
    mgx_tensor_release(c->out); // an empty input has a static result, made already
    TRY(mgx_eval_create(c, &result));
    int64_t *out = c->out->data, at[MGX_MAX_RANK];
    for (int64_t i = 0, k = 0; i < elements; i++) {
        if (x[i] == 0)
            continue;
        mgx_shape_multi(s, i, at);
        for (int axis = 0; axis < s->rank; axis++)
            out[axis * count + k] = at[axis];
        k++;
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_nonzero = {
    .name = "nonzero",
    .meaning = "positions of the elements that are not 0",
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = index_type,
    .compute = compute,
};

// --- nonzero_list ---

static enum mgx_status list_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    struct mgx_shape plain;
    TRY(shape(c, &plain));
    const struct mgx_shape *s = c->in[0];
    const int64_t most = mgx_elements_max(s), rank = s->rank > 0 ? s->rank : 1;
    return mgx_listed_shape(c, mgx_shape_is_static(s) ? most * s->rank : 0,
                            most < MGX_DIM_ANY / rank ? most * s->rank : MGX_DIM_ANY, out);
}

static enum mgx_status list_compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    const int64_t elements = mgx_shape_elements(s);
    struct mgx_tensor value;
    TRY(mgx_listed_value(c, &mgx_op_nonzero, &value));
    memset(c->out->data, 0, mgx_shape_bytes(&c->out->shape));
    mgx_listed_put(c->out->data, &value, s->rank, value.shape.lens[1], elements);
    ((int64_t *)c->out->data)[s->rank * elements] = value.shape.lens[1];
    mgx_tensor_release(&value);
    return MGX_OK;
}

const struct mgx_op mgx_op_nonzero_list = {
    .name = "nonzero_list",
    .meaning = "nonzero, zeros up to its largest size for every axis, and how many there are",
    .in_min = 1,
    .in_max = 1,
    .shape = list_shape,
    .unranked_type = index_type,
    .compute = list_compute,
};
