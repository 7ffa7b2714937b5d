// SPDX-License-Identifier: MIT
// The operators of the IR itself: @param, @literal, @return, @comment.
#include "ir/op.h"

const struct mgx_op mgx_op_param = {
    .name = "@param",
    .meaning = "an input of the module",
    .attr_size = sizeof(struct mgx_param_attr),
    .flags = MGX_OP_BUILTIN | MGX_OP_EFFECT,
};

const struct mgx_op mgx_op_literal = {
    .name = "@literal",
    .meaning = "a constant",
    .flags = MGX_OP_BUILTIN,
};

const struct mgx_op mgx_op_return = {
    .name = "@return",
    .meaning = "the results of the module",
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_BUILTIN | MGX_OP_EFFECT,
};

struct comment {
    const char *text;
};

static const struct mgx_field comment_fields[] = {MGX_TEXT(struct comment, text), {0}};

static enum mgx_status comment_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    (void)c;
    *out = mgx_shape_tuple(NULL, 0);
    return MGX_OK;
}

const struct mgx_op mgx_op_comment = {
    .name = "@comment",
    .meaning = "a remark",
    .fields = comment_fields,
    .attr_size = sizeof(struct comment),
    .flags = MGX_OP_BUILTIN | MGX_OP_EFFECT,
    .shape = comment_shape,
};
