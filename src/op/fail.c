// SPDX-License-Identifier: MIT
// fail: gives no value; running it is the error that `message` tells.
//
// It stands for what an importer found to be impossible in a body that may never run: the branch of
// an If for other sizes than those given. `shape` is what the rest of the program takes the result
// to be. It is impure, so that nothing computes it ahead or moves it out of its body.
#include "op/rule/rule.h"

struct fail {
    struct mgx_shape shape;
    const char *message;
};

static const struct mgx_field fields[] = {
    MGX_SHAPE(struct fail, shape), MGX_TEXT(struct fail, message), {0}};
static const struct fail defaults = {.shape = {.type = MGX_FLOAT}, .message = ""};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    *out = ((const struct fail *)c->attr)->shape;
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const char *message = ((const struct fail *)c->attr)->message;
    return mgx_fail(c->diag, MGX_INVALID, "%s",
                    *message ? message : "fail: an operator that has no value was run");
}

const struct mgx_op mgx_op_fail = {
    .name = "fail",
    .meaning = "no value: running it is an error with this message",
    .fields = fields,
    .attr_size = sizeof(struct fail),
    .defaults = &defaults,
    .flags = MGX_OP_IMPURE,
    .shape = shape,
    .compute = compute,
};
