// SPDX-License-Identifier: MIT
// get_tuple_elem: member `index` of a tuple, sharing its bytes.
#include <inttypes.h>

#include "op/rule/rule.h"

struct get_tuple_elem {
    int64_t index;
};

static const struct mgx_field fields[] = {MGX_INT(struct get_tuple_elem, index), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct get_tuple_elem *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    if (s->type != MGX_TUPLE)
        return mgx_fail(c->diag, MGX_INVALID, "get_tuple_elem: input is %s, not a tuple",
                        mgx_type_name(s->type));
    if (a->index < 0 || a->index >= s->sub_count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "get_tuple_elem: index %" PRId64 " is out of range for %d members",
                        a->index, s->sub_count);
    *out = s->sub[a->index];
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct get_tuple_elem *a = c->attr;
    *c->out = mgx_tensor_share(&c->in[0]->sub[a->index]);
    return MGX_OK;
}

const struct mgx_op mgx_op_get_tuple_elem = {
    .name = "get_tuple_elem",
    .meaning = "member `index` of a tuple",
    .fields = fields,
    .attr_size = sizeof(struct get_tuple_elem),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_VIEW,
    .shape = shape,
    .compute = compute,
};
