// SPDX-License-Identifier: MIT
// What reduces between bytes is written as reductions, where the target multiplies bytes.
//
//     quantizelinear(softmax[a](x), ...)   =>  quantizelinear(e broadcast(1 / reduce_sum[a](e)), ...)
//                                              e = exp(x - broadcast(reduce_max[a](x)))
//     quantizelinear(softmax[a](x) c, ...) =>  likewise
//     pooling[average, the whole image](dequantizelinear(x, ...))
//                                          =>  reduce_mean[spatial axes](dequantizelinear(x, ...))
//
// Then it is one reduction with what is quantized around it (fuse_reduce), from bytes to bytes. Of
// few large images lines are averaged first: a block sums up few channels. The GPU target runs it,
// before that.
#include "op/reference/pool.h"
#include "pass/engine/byte_attention.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static const struct mgx_ins *only_user(const struct mgx_ins *ins)
{
    return mgx_used_once(ins) ? ins->uses->user : NULL;
}

static bool is_quantized(const struct mgx_ins *ins)
{
    const struct mgx_ins *user = only_user(ins);
    if (user && user->op == &mgx_op_mul)
        user = only_user(ins = user);
    return user && user->op == &mgx_op_quantizelinear && user->in[0] == ins &&
           mgx_type_bits(user->shape.type) == 8;
}

static struct mgx_ins *reduced(struct mgx_ins *at, const struct mgx_op *reduce, struct mgx_ins *x)
{
    const int64_t given = mgx_ins_int(at, "axis"),
                  axis = given < 0 ? given + at->shape.rank : given;
    return mgx_emit_before(at, reduce, MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(x));
}

static struct mgx_ins *write_out(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)m;
    if (!r->call->options->target.multiplies_bytes || ins->shape.type != MGX_FLOAT ||
        !is_quantized(ins) || mgx_in_byte_attention(r->call->options, ins))
        return NULL;
    const struct mgx_shape like = ins->shape;
    struct mgx_ins *x = ins->in[0], *most = reduced(ins, &mgx_op_reduce_max, x);
    most = mgx_emit_multibroadcast(ins, most, like.lens, like.rank);
    struct mgx_ins *e =
        mgx_emit_unary(ins, &mgx_op_exp, mgx_emit_binary(ins, &mgx_op_sub, x, most));
    struct mgx_ins *sum = e ? reduced(ins, &mgx_op_reduce_sum, e) : NULL;
    sum = mgx_emit_unary(ins, &mgx_op_recip, sum);
    return mgx_emit_binary(ins, &mgx_op_mul, e,
                           mgx_emit_multibroadcast(ins, sum, like.lens, like.rank));
}

static struct mgx_ins *mean_along(struct mgx_ins *at, struct mgx_ins *x, int first, int end)
{
    int64_t axes[MGX_MAX_RANK];
    for (int d = first; d < end; d++)
        axes[d - first] = d;
    return mgx_emit_before(at, &mgx_op_reduce_mean, MGX_ATTRS(mgx_ints("axes", axes, end - first)),
                           MGX_IN(x));
}

static struct mgx_ins *mean(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    enum { AVERAGE = 0, SMALL = 1024, MANY = 4096 };
    (void)m;
    struct mgx_ins *x = ins->in[0];
    const int rank = x->shape.rank;
    if (!r->call->options->target.multiplies_bytes || x->op != &mgx_op_dequantizelinear ||
        x->shape.type != MGX_FLOAT || mgx_ins_int(ins, "mode") != AVERAGE ||
        !mgx_pool_sees_all(ins))
        return NULL;
    const int64_t channels = x->shape.lens[0] * x->shape.lens[1];
    const bool large = mgx_shape_elements(&x->shape) / mgx_max_i64(channels, 1) > SMALL;
    if (!large || channels >= MANY || rank == 3)
        return mean_along(ins, x, 2, rank);
    x = mean_along(ins, x, rank - 1, rank);
    return x ? mean_along(ins, x, 2, rank - 1) : NULL;
}

static const struct mgx_rule rules[] = {
    {"pooling ~> reduce_mean", MGX_IF_STATIC, .rewrite = mean},
    {"softmax ~> e (1 / sum e), e = exp(x - max x)", MGX_IF_STATIC, .rewrite = write_out},
};

const struct mgx_pass mgx_pass_reduce_bytes = {
    .name = "reduce_bytes",
    .meaning = "writes softmax and means between bytes as reductions",
    .rules = {rules, MGX_COUNT(rules)},
};
