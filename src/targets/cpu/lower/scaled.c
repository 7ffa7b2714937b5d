// SPDX-License-Identifier: MIT
// Finds bodies that are bytes times a factor; see scaled.h.
#include "targets/cpu/lower/scaled.h"

#include "op/op.h"

// The one value of a literal.
static bool constant_of(const struct mgx_ins *ins, double *value)
{
    const bool good = ins->literal && mgx_shape_space(&ins->literal->shape) == 1;
    if (good)
        *value = mgx_load_double(ins->literal->shape.type, ins->literal->data, 0);
    return good;
}

// A quantization or dequantization by one scale and zero point; `byte` is its type of 8 bits.
static bool read_step(const struct mgx_ins *ins, const struct mgx_op *op, enum mgx_type byte,
                      float *scale, int *zero, bool *is_signed)
{
    double s, z = 0;
    if (ins->op != op || !mgx_type_is_byte(byte) || !constant_of(ins->in[1], &s) ||
        (ins->in_count > 2 && !constant_of(ins->in[2], &z)))
        return false;
    *scale = (float)s;
    *zero = (int)z;
    *is_signed = byte == MGX_INT8;
    return ins->in[1]->shape.type == MGX_FLOAT;
}

// The byte that a value is made of, less a shift or as it is.
static bool read_value(const struct mgx_ins *value, struct cpu_scaled *s)
{
    struct mgx_byte_scale *step = &s->step;
    s->shift = -1;
    if (value->op == &mgx_op_sub) {
        s->shift = mgx_parameter_index(value->in[1]);
        if (s->shift < 0 || value->in[1]->shape.type != MGX_FLOAT)
            return false;
        value = value->in[0];
    }
    if (value->op != &mgx_op_dequantizelinear || value->shape.type != MGX_FLOAT ||
        !read_step(value, &mgx_op_dequantizelinear, value->in[0]->shape.type, &step->x_scale,
                   &step->x_zero, &step->x_signed))
        return false;
    s->x = mgx_parameter_index(value->in[0]);
    return s->x >= 0;
}

static bool match(const struct mgx_module *body, struct cpu_scaled *s)
{
    const struct mgx_ins *root = mgx_module_result(body, 0);
    struct mgx_byte_scale *step = &s->step;
    if (!read_step(root, &mgx_op_quantizelinear, root->shape.type, &step->y_scale, &step->y_zero,
                   &step->y_signed) ||
        root->in[0]->op != &mgx_op_mul)
        return false;
    const struct mgx_ins *product = root->in[0];
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *factor = product->in[1 - i];
        s->factor = mgx_parameter_index(factor);
        if (s->factor >= 0 && factor->shape.type == MGX_FLOAT && read_value(product->in[i], s))
            return true;
    }
    return false;
}

const struct cpu_scaled *cpu_scaled_of(struct mgx_plan_offer *c, const struct mgx_module *body)
{
    struct cpu_scaled s = {.run = mgx_byte_scale_kernel(cpu_offered(c)->isa)->run};
    struct cpu_scaled *kept = match(body, &s) && c->in_count == (s.shift < 0 ? 2 : 3)
                                  ? MGX_NEW(c->arena, struct cpu_scaled)
                                  : NULL;
    if (kept)
        *kept = s;
    return kept;
}
