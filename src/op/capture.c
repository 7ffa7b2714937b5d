// SPDX-License-Identifier: MIT
// capture: its input, marked as worth watching. Calibration puts one behind every value that it
// wants to see and tells them apart by ins_index; the run itself passes the value through.
#include "op/rule/rule.h"

struct capture {
    int64_t ins_index;
};

static const struct mgx_field fields[] = {MGX_INT(struct capture, ins_index), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    *out = *c->in[0];
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    *c->out = mgx_tensor_share(c->in[0]);
    return MGX_OK;
}

const struct mgx_op mgx_op_capture = {
    .name = "capture",
    .meaning = "y = x, watched",
    .fields = fields,
    .attr_size = sizeof(struct capture),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW | MGX_OP_EFFECT,
    .shape = shape,
    .compute = compute,
};
