// SPDX-License-Identifier: MIT
// See listed.h.
#include "op/reference/listed.h"

#include <assert.h>

#include "op/eval/eval.h"

enum mgx_status mgx_listed_shape(struct mgx_shape_call *c, int64_t least, int64_t most,
                                 struct mgx_shape *out)
{
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 1);
    if (!dims)
        return MGX_NO_MEMORY;
    assert(least >= 0 && least <= most);
    dims[0] = (struct mgx_dim){.min = least + 1, .max = most < MGX_DIM_ANY ? most + 1 : most};
    *out = mgx_shape_from_dims(MGX_INT64, 1, dims);
    return MGX_OK;
}

enum mgx_status mgx_listed_value(struct mgx_compute_call *c, const struct mgx_op *op,
                                 struct mgx_tensor *out)
{
    *out = (struct mgx_tensor){0};
    return mgx_eval_op(c->eval, op, c->attr, c->in, c->in_count, NULL, 0, NULL, out, c->diag);
}

void mgx_listed_put(int64_t *to, const struct mgx_tensor *from, int64_t lines, int64_t length,
                    int64_t pitch)
{
    const int64_t *v = from->data;
    assert(length <= pitch && mgx_shape_elements(&from->shape) == lines * length);
    for (int64_t i = 0; i < lines * length; i++)
        to[i / length * pitch + i % length] = v[mgx_shape_index(&from->shape, i)];
}
