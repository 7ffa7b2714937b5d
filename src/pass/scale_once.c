// SPDX-License-Identifier: MIT
// What is multiplied on its way to bytes is multiplied once.
//
//     quantizelinear(x, s#, z)            =>  quantizelinear(x f, 1, z)         f = 1 / s
//     dequantizelinear(x, t#) f           =>  dequantizelinear(x, t f)
//     (a + b) f                           =>  a f + b f       where both take the factor
//     relu(x) f                           =>  relu(x f)
//     quantizelinear(relu(x), 1, lowest)  =>  quantizelinear(x, 1, lowest)
//
// f is one positive value. A quotient becomes a product, and products of constants are rounded ahead
// of time, so a byte differs by one step where the value lies between two steps to a ten-millionth.
//
// The GPU target runs it, where a division takes as long as the rest of a product's end.
#include <math.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { DEEPEST = 8 };

static bool is_plain_scale(const struct mgx_ins *scale, double *value)
{
    return mgx_splat_value(scale, value) && *value > 1e-30 && *value < 1e30;
}

// A known value of which a multiple may be taken ahead of time: not many, for it is a bias as a rule.
static const struct mgx_tensor *constant_of(const struct mgx_ins *ins)
{
    const struct mgx_ins *core = ins;
    while ((core->op == &mgx_op_multibroadcast || core->op == &mgx_op_broadcast) &&
           core->in_count == 1)
        core = core->in[0];
    enum { MANY = 1 << 16 };
    return core->literal && core->shape.type == MGX_FLOAT &&
                   mgx_shape_elements(&core->shape) <= MANY && mgx_shape_elements(&core->shape) > 0
               ? core->literal
               : NULL;
}

// Does nothing of x f remain to be done in a run?
static bool takes(const struct mgx_ins *x, int depth)
{
    double scale;
    if (constant_of(x))
        return true;
    if (x->op == &mgx_op_dequantizelinear)
        return x->in_count == 2 && x->shape.type == MGX_FLOAT && constant_of(x->in[1]) &&
               (mgx_used_once(x) || !mgx_splat_value(x->in[0], &scale));
    if (depth == 0 || !mgx_used_once(x) || x->shape.type != MGX_FLOAT)
        return false;
    if (x->op == &mgx_op_relu)
        return takes(x->in[0], depth - 1);
    return x->op == &mgx_op_add && takes(x->in[0], depth - 1) && takes(x->in[1], depth - 1);
}

// The constant times f, spread as it was.
static struct mgx_ins *multiply(struct mgx_ins *at, struct mgx_ins *x, double f)
{
    if (!x->literal) {
        struct mgx_ins *core = multiply(at, x->in[0], f);
        return core ? mgx_emit_again(at, x, &core, 1) : NULL;
    }
    struct mgx_tensor t;
    const struct mgx_shape packed = mgx_shape_make(MGX_FLOAT, x->shape.rank, x->shape.lens);
    if (mgx_tensor_create(&t, &packed, &at->owner->program->diag) != MGX_OK)
        return NULL;
    const int64_t count = mgx_shape_elements(&packed);
    for (int64_t i = 0; i < count; i++)
        ((float *)t.data)[i] = (float)(mgx_load_double(MGX_FLOAT, x->literal->data,
                                                       mgx_shape_index(&x->literal->shape, i)) *
                                       f);
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return literal;
}

static struct mgx_ins *scaled(struct mgx_ins *at, struct mgx_ins *x, double f)
{
    if (constant_of(x))
        return multiply(at, x, f);
    if (x->op == &mgx_op_dequantizelinear) {
        struct mgx_ins *s = multiply(at, x->in[1], f);
        return mgx_emit_binary(at, &mgx_op_dequantizelinear, x->in[0], s);
    }
    struct mgx_ins *a = scaled(at, x->in[0], f);
    if (x->op == &mgx_op_relu)
        return mgx_emit_unary(at, &mgx_op_relu, a);
    return mgx_emit_binary(at, &mgx_op_add, a, scaled(at, x->in[1], f));
}

static struct mgx_ins *by_product(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    double s;
    (void)r, (void)m;
    struct mgx_ins *x = ins->in[0];
    if (!is_plain_scale(ins->in[1], &s) || s == 1 || x->shape.type != MGX_FLOAT)
        return NULL;
    const struct mgx_shape like = x->shape;
    struct mgx_ins *y = takes(x, DEEPEST)
                            ? scaled(ins, x, 1 / s)
                            : mgx_emit_binary(ins, &mgx_op_mul, x, mgx_emit_splat(ins, &like, 1 / s));
    struct mgx_ins *one = mgx_emit_splat(ins, &like, 1), *in[] = {y, one, NULL};
    if (ins->in_count == 3)
        in[2] = ins->in[2];
    return y && one ? mgx_emit_again(ins, ins, in, ins->in_count) : NULL;
}

static struct mgx_ins *without_relu(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r, (void)m;
    double zero = 0;
    if (ins->in[0]->op != &mgx_op_relu || !mgx_is_splat(ins->in[1], 1) ||
        (ins->in_count == 3 && !mgx_splat_value(ins->in[2], &zero)) ||
        zero != mgx_type_lowest(ins->shape.type))
        return NULL;
    struct mgx_ins *in[] = {ins->in[0]->in[0], ins->in[1], NULL};
    if (ins->in_count == 3)
        in[2] = ins->in[2];
    return mgx_emit_again(ins, ins, in, ins->in_count);
}

static const struct mgx_rule rules[] = {
    {"quantizelinear => quantizelinear(x f, 1, z)", MGX_IF_STATIC, .rewrite = by_product},
    {"quantizelinear => quantizelinear(x, 1, z), of relu(x)", MGX_IF_STATIC,
     .rewrite = without_relu},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_scale_once = {
    .name = "scale_once",
    .meaning = "multiplies once on the way to bytes, and divides never",
    .module = run,
};
