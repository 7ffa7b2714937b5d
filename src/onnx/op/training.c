// SPDX-License-Identifier: MIT
// Steps of optimisers (ai.onnx.preview.training): Adagrad, Adam, Momentum. Inputs are the rate R,
// the update count T, then for k tensors all X, all gradients G and the states, all of one kind
// together; results are the new X and states in the same order.
#include <math.h>
#include <string.h>

#include "onnx/build.h"

struct step {
    struct mgx_node *n;
    int count; // tensors
    struct mgx_ins *rate, *t;
};

static struct mgx_ins *times(const struct step *s, struct mgx_ins *x, double factor)
{
    return mgx_build_with(s->n, &mgx_op_mul, x, factor);
}

static struct mgx_ins *add(const struct step *s, struct mgx_ins *a, struct mgx_ins *b)
{
    return mgx_build_add(s->n, a, b);
}

// Input or output `i` of kind `kind` (X 0, G 1, states 2 on).
static struct mgx_ins *in(const struct step *s, int kind, int i)
{
    return s->n->in[2 + kind * s->count + i];
}

static enum mgx_status start(struct mgx_node *n, int kinds, int results, struct step *s)
{
    TRY(mgx_node_need(n, 2 + kinds, -1));
    s->n = n;
    s->count = (n->in_count - 2) / kinds;
    s->rate = n->in[0];
    s->t = n->in[1];
    if (s->count * kinds + 2 != n->in_count || s->count * results != n->out_count)
        return mgx_node_invalid(n, "%d inputs and %d outputs do not make whole steps", n->in_count,
                                n->out_count);
    for (int i = 0; i < n->in_count; i++)
        if (!n->in[i])
            return mgx_node_invalid(n, "input %d is absent", i);
    return MGX_OK;
}

// norm_coefficient * X + G
static struct mgx_ins *gradient(const struct step *s, int i)
{
    const double norm = mgx_onnx_real(s->n, "norm_coefficient", 0);
    return norm ? add(s, times(s, in(s, 0, i), norm), in(s, 1, i)) : in(s, 1, i);
}

static enum mgx_status adagrad(struct mgx_node *n)
{
    struct step s;
    TRY(start(n, 3, 2, &s));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const double epsilon = mgx_onnx_real(n, "epsilon", 1e-6);
    struct mgx_ins *t = mgx_build_convert(n, s.t, s.rate->shape.type);
    struct mgx_ins *decay =
        mgx_build_with(n, &mgx_op_add, times(&s, t, mgx_onnx_real(n, "decay_factor", 0)), 1);
    struct mgx_ins *rate = mgx_build_div(n, s.rate, decay);
    for (int i = 0; i < s.count; i++) {
        struct mgx_ins *g = gradient(&s, i);
        struct mgx_ins *h = add(&s, in(&s, 2, i), mgx_build_mul(n, g, g));
        struct mgx_ins *scale = mgx_build_with(n, &mgx_op_add, mgx_build_sqrt(n, h), epsilon);
        struct mgx_ins *move = mgx_build_div(n, mgx_build_mul(n, rate, g), scale);
        n->out[i] = mgx_build_sub(n, in(&s, 0, i), move);
        n->out[s.count + i] = h;
    }
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_adagrad = {
    .name = "Adagrad", .domain = "ai.onnx.preview.training", .import = adagrad};

// a * x + b * y
static struct mgx_ins *blend(const struct step *s, struct mgx_ins *x, double a, struct mgx_ins *y,
                             double b)
{
    return add(s, times(s, x, a), times(s, y, b));
}

// The rate once the averages are no longer pulled to zero: R sqrt(1 - beta^T) / (1 - alpha^T).
static struct mgx_ins *adam_rate(const struct step *s, double alpha, double beta)
{
    struct mgx_node *n = s->n;
    struct mgx_ins *t = mgx_build_convert(n, s->t, s->rate->shape.type), *rest[2];
    const double base[2] = {alpha, beta};
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *power = mgx_build_pow(n, mgx_build_like(n, t, base[i]), t);
        rest[i] = mgx_build_sub(n, mgx_build_like(n, t, 1), power);
    }
    struct mgx_ins *rate =
        mgx_build_div(n, mgx_build_mul(n, s->rate, mgx_build_sqrt(n, rest[1])), rest[0]);
    return mgx_build_where(n, mgx_build_greater(n, t, mgx_build_like(n, t, 0)), rate, s->rate);
}

static enum mgx_status adam(struct mgx_node *n)
{
    struct step s;
    TRY(start(n, 4, 3, &s));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const double alpha = mgx_onnx_real(n, "alpha", 0.9), beta = mgx_onnx_real(n, "beta", 0.999);
    const double epsilon = mgx_onnx_real(n, "epsilon", 1e-6);
    const double after = mgx_onnx_real(n, "norm_coefficient_post", 0);
    struct mgx_ins *rate = adam_rate(&s, alpha, beta);
    for (int i = 0; i < s.count; i++) {
        struct mgx_ins *g = gradient(&s, i);
        struct mgx_ins *v = blend(&s, in(&s, 2, i), alpha, g, 1 - alpha);
        struct mgx_ins *h = blend(&s, in(&s, 3, i), beta, mgx_build_mul(n, g, g), 1 - beta);
        struct mgx_ins *scale = mgx_build_with(n, &mgx_op_add, mgx_build_sqrt(n, h), epsilon);
        struct mgx_ins *x =
            mgx_build_sub(n, in(&s, 0, i), mgx_build_div(n, mgx_build_mul(n, rate, v), scale));
        n->out[i] = after ? times(&s, x, 1 - after) : x;
        n->out[s.count + i] = v;
        n->out[2 * s.count + i] = h;
    }
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_adam = {
    .name = "Adam", .domain = "ai.onnx.preview.training", .import = adam};

static enum mgx_status momentum(struct mgx_node *n)
{
    struct step s;
    TRY(start(n, 3, 2, &s));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const double alpha = mgx_onnx_real(n, "alpha", 0), beta = mgx_onnx_real(n, "beta", 0);
    const bool nesterov = strcmp(mgx_onnx_text(n, "mode", "standard"), "nesterov") == 0;
    for (int i = 0; i < s.count; i++) {
        struct mgx_ins *g = gradient(&s, i), *one = mgx_build_like(n, g, 1);
        struct mgx_ins *begun =
            mgx_build_greater(n, s.t, mgx_build_like(n, s.t, 0)); // no dampening at first
        struct mgx_ins *factor = mgx_build_where(n, begun, mgx_build_like(n, g, beta), one);
        struct mgx_ins *v = add(&s, times(&s, in(&s, 2, i), alpha), mgx_build_mul(n, factor, g));
        struct mgx_ins *move = nesterov ? add(&s, g, times(&s, v, alpha)) : v;
        n->out[i] = mgx_build_sub(n, in(&s, 0, i), mgx_build_mul(n, s.rate, move));
        n->out[s.count + i] = v;
    }
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_momentum = {
    .name = "Momentum", .domain = "ai.onnx.preview.training", .import = momentum};
