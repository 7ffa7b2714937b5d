// SPDX-License-Identifier: MIT
// scalar: one value under the lengths scalar_bcst_dims, all strides 0. A view.
#include <inttypes.h>

#include "op/rule/rule.h"

struct scalar {
    struct mgx_ints scalar_bcst_dims;
};

static const struct mgx_field fields[] = {MGX_INTS(struct scalar, scalar_bcst_dims), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct scalar *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    struct mgx_dim *dims;
    int rank;
    if (mgx_shape_is_static(s) && mgx_shape_elements(s) != 1)
        return mgx_fail(c->diag, MGX_INVALID, "scalar: the input has %" PRId64 " elements, not 1",
                        mgx_shape_elements(s));
    TRY(mgx_dims_of_ints(c, a->scalar_bcst_dims, &dims, &rank));
    *out = mgx_shape_from_dims(s->type, rank, dims);
    for (int i = 0; i < rank; i++)
        out->strides[i] = 0;
    return MGX_OK;
}

const struct mgx_op mgx_op_scalar = {
    .name = "scalar",
    .meaning = "one value repeated to scalar_bcst_dims",
    .fields = fields,
    .attr_size = sizeof(struct scalar),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = mgx_compute_view,
};
