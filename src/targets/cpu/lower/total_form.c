// SPDX-License-Identifier: MIT
// The forms of total.h, found in the body that the passes leave:
//
//     low   min(reduce_min(x), 0)
//     step  (relu(reduce_max(x)) - low) / 255
//     scale where(step == 0, 1, step)
//     zero  byte of clip(nearbyint(-low / scale), 0, 255)
//
// A value may be there twice: passes give each reader its own.
#include <assert.h>

#include "op/op.h"
#include "pass/engine/region.h"
#include "targets/cpu/lower/total.h"

static bool is_number(const struct mgx_ins *node, double value)
{
    const struct mgx_tensor *t = node->literal;
    return t && mgx_shape_space(&t->shape) == 1 &&
           mgx_load_double(t->shape.type, t->data, 0) == value;
}

static bool is_reduction(const struct mgx_ins *f, const struct mgx_ins *node,
                         const struct mgx_op *op)
{
    const struct mgx_ins *from = mgx_group_gives(f, node);
    return from && from->op == op;
}

static bool is_low(const struct mgx_ins *f, const struct mgx_ins *node)
{
    return node->op == &mgx_op_min && is_number(node->in[1], 0) &&
           is_reduction(f, node->in[0], &mgx_op_reduce_min);
}

static bool is_step(const struct mgx_ins *f, const struct mgx_ins *node)
{
    if (node->op != &mgx_op_div || !is_number(node->in[1], 255) || node->in[0]->op != &mgx_op_sub)
        return false;
    const struct mgx_ins *high = node->in[0]->in[0], *low = node->in[0]->in[1];
    return high->op == &mgx_op_relu && is_reduction(f, high->in[0], &mgx_op_reduce_max) &&
           is_low(f, low);
}

static bool is_scale(const struct mgx_ins *f, const struct mgx_ins *node)
{
    if (node->op != &mgx_op_where || !is_number(node->in[1], 1) || !is_step(f, node->in[2]))
        return false;
    const struct mgx_ins *test = node->in[0];
    if (test->op == &mgx_op_convert)
        test = test->in[0];
    return test->op == &mgx_op_equal && is_step(f, test->in[0]) && is_number(test->in[1], 0);
}

// The scale that a zero point is made with, as a parameter of the group; NULL: not a zero point.
static const struct mgx_ins *scale_of_zero(const struct mgx_ins *f, const struct mgx_ins *node)
{
    if (node->op != &mgx_op_convert || node->shape.type != MGX_UINT8)
        return NULL;
    node = node->in[0];
    if (node->op != &mgx_op_clip || !is_number(node->in[1], 0) || !is_number(node->in[2], 255))
        return NULL;
    node = node->in[0];
    if (node->op != &mgx_op_nearbyint || node->in[0]->op != &mgx_op_div)
        return NULL;
    const struct mgx_ins *low = node->in[0]->in[0], *scale = mgx_group_gives(f, node->in[0]->in[1]);
    return low->op == &mgx_op_neg && is_low(f, low->in[0]) && scale && scale->op == &mgx_op_param
               ? scale
               : NULL;
}

struct cpu_total cpu_total_form(const struct mgx_ins *f, int x)
{
    assert(x >= 0);
    struct cpu_total found = {CPU_TOTAL_ANY, x, -1};
    if (f->mod_count != 1 || mgx_module_result_count(f->mod[0]) != 1)
        return found;
    const struct mgx_ins *root = mgx_module_result(f->mod[0], 0), *scale = scale_of_zero(f, root);
    if (scale && scale->shape.type == MGX_FLOAT)
        found = (struct cpu_total){CPU_TOTAL_ZERO, x, mgx_parameter_index(scale)};
    else if (root->shape.type == MGX_FLOAT && is_scale(f, root))
        found.form = CPU_TOTAL_SCALE;
    return found;
}
