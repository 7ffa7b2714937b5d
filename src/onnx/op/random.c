// SPDX-License-Identifier: MIT
// Random numbers: RandomUniform, RandomNormal and their Like forms, Multinomial, Bernoulli,
// Dropout.
//
// A node with a seed gives the same numbers in every run; one without takes a new seed per run.
// Which numbers a seed stands for the standard leaves open. Dropout takes those that the standard's
// reference implementation takes, numpy's, so that training steps can be compared with it; the
// other seeds, floats of any value, stand for numbers of this engine's own.
#include <math.h>
#include <string.h>

#include "onnx/build.h"

// The bits of a float seed, so that 1.5 and 1 differ, an integer one (of Dropout) as it is; else a
// seed per run.
static struct mgx_ins *seed(struct mgx_node *n, bool integer)
{
    if (!mgx_onnx_has(n, "seed"))
        return mgx_build_emit_n(n, &mgx_op_random_seed, NULL, NULL, 0);
    const double value = integer ? 0 : mgx_onnx_real(n, "seed", 0);
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT64, 1);
    int64_t bits = integer ? mgx_onnx_int(n, "seed", 0) : 0;
    if (!integer) {
        memcpy(&bits, &value, sizeof bits);
        bits ^= (int64_t)((uint64_t)bits >> 32); // random_uniform reads the lower half
    }
    return mgx_build_ints(n, &shape, &bits);
}

// [0, 1) over the lengths of `like`, as float or double.
static struct mgx_ins *uniform(struct mgx_node *n, struct mgx_ins *like)
{
    if (!like)
        return NULL;
    const enum mgx_type type = like->shape.type == MGX_DOUBLE ? MGX_DOUBLE : MGX_FLOAT;
    return mgx_build_emit(n, &mgx_op_random_uniform, NULL,
                          MGX_IN(seed(n, false), mgx_build_convert(n, like, type)));
}

// Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v), u and v the two halves of twice as many numbers.
static struct mgx_ins *normal(struct mgx_node *n, struct mgx_ins *like)
{
    struct mgx_ins *first = like ? mgx_build_unsqueeze(n, like, (int64_t[]){0}, 1) : NULL;
    struct mgx_ins *both =
        uniform(n, mgx_build_concat(n, 0, (struct mgx_ins *const[]){first, first}, 2));
    struct mgx_ins *part[2];
    for (int i = 0; i < 2; i++)
        part[i] = mgx_build_squeeze(n, mgx_build_slice(n, both, 0, i, i + 1), (int64_t[]){0}, 1);
    struct mgx_ins *rest = mgx_build_sub(n, mgx_build_like(n, part[0], 1), part[0]);
    struct mgx_ins *radius =
        mgx_build_sqrt(n, mgx_build_with(n, &mgx_op_mul, mgx_build_log(n, rest), -2));
    return mgx_build_mul(n, radius,
                         mgx_build_cos(n, mgx_build_with(n, &mgx_op_mul, part[1], 2 * M_PI)));
}

static enum mgx_status dtype(struct mgx_node *n, enum mgx_type fallback, enum mgx_type *out)
{
    *out = fallback;
    return mgx_onnx_has(n, "dtype") ? mgx_onnx_type(n, mgx_onnx_int(n, "dtype", 1), out) : MGX_OK;
}

static enum mgx_status emit(struct mgx_node *n, struct mgx_ins *like, enum mgx_type type,
                            bool is_normal)
{
    if (!mgx_type_is_float(type))
        return mgx_node_invalid(n, "random numbers of type %s, not of floats", mgx_type_name(type));
    const double low = mgx_onnx_real(n, is_normal ? "mean" : "low", 0);
    const double high = mgx_onnx_real(n, is_normal ? "scale" : "high", 1);
    struct mgx_ins *y = is_normal ? normal(n, like) : uniform(n, like);
    y = mgx_build_with(n, &mgx_op_mul, y, is_normal ? high : high - low);
    n->out[0] = mgx_build_convert(n, mgx_build_with(n, &mgx_op_add, y, low), type);
    return MGX_OK;
}

static enum mgx_status by_example(struct mgx_node *n, bool is_normal);

// Shape and type from attributes; without a shape from an input, as the Like forms have it.
static enum mgx_status by_shape(struct mgx_node *n, bool is_normal)
{
    enum mgx_type type = MGX_FLOAT;
    const struct mgx_ints shape = mgx_onnx_ints(n, "shape");
    if (mgx_node_in(n, 0) && !mgx_onnx_has(n, "shape"))
        return by_example(n, is_normal);
    TRY(mgx_node_need(n, 0, 0));
    if (!mgx_onnx_has(n, "shape"))
        return mgx_node_invalid(n, "no shape given");
    TRY(dtype(n, MGX_FLOAT, &type));
    if (shape.count >= MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", shape.count, MGX_MAX_RANK - 1);
    return emit(n,
                mgx_build_filled(n, type == MGX_DOUBLE ? type : MGX_FLOAT, shape.count, shape.v, 0),
                type, is_normal);
}

// Shape, and type unless given, from the input.
static enum mgx_status by_example(struct mgx_node *n, bool is_normal)
{
    enum mgx_type type = MGX_FLOAT;
    TRY(mgx_node_need(n, 1, 1));
    TRY(dtype(n, n->in[0]->shape.type, &type));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *like = n->in[0];
    if (!mgx_type_is_number(like->shape.type)) // of strings and the like, lengths alone
        like = mgx_build_emit(n, &mgx_op_multibroadcast, NULL,
                              MGX_IN(mgx_build_scalar(n, MGX_FLOAT, 0), like));
    return emit(n, like, type, is_normal);
}

static enum mgx_status random_uniform(struct mgx_node *n)
{
    return by_shape(n, false);
}
const struct mgx_onnx_op mgx_onnx_random_uniform = {
    .name = "RandomUniform", .import = random_uniform, .result = "@f", .result_attribute = "dtype"};

static enum mgx_status random_uniform_like(struct mgx_node *n)
{
    return by_example(n, false);
}
const struct mgx_onnx_op mgx_onnx_random_uniform_like = {.name = "RandomUniformLike",
                                                         .import = random_uniform_like,
                                                         .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                                         .result = "@0",
                                                         .result_attribute = "dtype"};

static enum mgx_status random_normal(struct mgx_node *n)
{
    return by_shape(n, true);
}
const struct mgx_onnx_op mgx_onnx_random_normal = {
    .name = "RandomNormal", .import = random_normal, .result = "@f", .result_attribute = "dtype"};

static enum mgx_status random_normal_like(struct mgx_node *n)
{
    return by_example(n, true);
}
const struct mgx_onnx_op mgx_onnx_random_normal_like = {.name = "RandomNormalLike",
                                                        .import = random_normal_like,
                                                        .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                                        .result = "@0",
                                                        .result_attribute = "dtype"};

// Classes by the running sum of exp(logits), largest taken out first.
static enum mgx_status multinomial(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    enum mgx_type type = MGX_INT32;
    TRY(dtype(n, MGX_INT32, &type));
    const int64_t samples = mgx_onnx_int(n, "sample_size", 1);
    if (x->shape.rank != 2 || samples < 1 || samples > INT32_MAX)
        return mgx_node_invalid(n, "input of rank %d, %lld samples", x->shape.rank,
                                (long long)samples);
    struct mgx_ins *top = mgx_build_reduce(n, &mgx_op_reduce_max, x, (int64_t[]){1}, 1, true);
    struct mgx_ins *weights = mgx_build_exp(n, mgx_build_sub(n, x, top));
    struct mgx_ins *sums =
        mgx_build_emit(n, &mgx_op_prefix_scan_sum, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(weights));
    const int64_t lens[2] = {x->shape.lens[0], samples};
    struct mgx_ins *u = uniform(n, mgx_build_filled(n, MGX_FLOAT, 2, lens, 0));
    n->out[0] =
        mgx_build_emit(n, &mgx_op_multinomial, MGX_ATTRS(mgx_int("dtype", type)), MGX_IN(sums, u));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_multinomial = {
    .name = "Multinomial", .import = multinomial, .result = "@i", .result_attribute = "dtype"};

static enum mgx_status bernoulli(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    enum mgx_type type = MGX_FLOAT;
    TRY(dtype(n, x->shape.type, &type));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *u = uniform(n, x);
    struct mgx_ins *p = u ? mgx_build_convert(n, x, u->shape.type) : NULL;
    n->out[0] = mgx_build_convert(n, mgx_build_less(n, u, p), type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_bernoulli = {
    .name = "Bernoulli", .import = bernoulli, .result = "@0", .result_attribute = "dtype"};

// --- Dropout ---

// Is this a training run? is_test (default 0, yet a lone result means test) before opset 7, never
// in 7 to 11, an input since.
static enum mgx_status is_training(struct mgx_node *n, bool *yes, bool *later)
{
    int64_t mode = 0;
    *yes = false;
    if (n->opset < 7)
        *yes = n->out_count > 1 && !mgx_onnx_int(n, "is_test", 0);
    if (n->opset < 12 || !mgx_node_in(n, 2))
        return MGX_OK;
    *later = !mgx_build_constant_int(n, 2, &mode);
    *yes = mode != 0;
    return MGX_OK;
}

// Where x is kept: a random number is not below the ratio.
static struct mgx_ins *draw(struct mgx_node *n, struct mgx_ins *x, double ratio)
{
    struct mgx_ins *u = mgx_build_emit(n, &mgx_op_random_mersenne, NULL,
                                       MGX_IN(seed(n, true), mgx_build_convert(n, x, MGX_DOUBLE)));
    return mgx_build_not(n, mgx_build_less(n, u, mgx_build_like(n, u, ratio)));
}

static enum mgx_status dropout(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, n->opset < 12 ? 1 : 3));
    struct mgx_ins *x = n->in[0], *kept = NULL;
    bool training = false, later = false;
    double ratio = n->opset < 12 ? mgx_onnx_real(n, "ratio", 0.5) : 0.5;
    mgx_node_ask(n, 1, 2);
    TRY(is_training(n, &training, &later));
    if (training && n->opset >= 12 && mgx_node_in(n, 1))
        later |= !mgx_build_constant_double(n, 1, &ratio);
    if (later || (mgx_build_rank(x) < 0 && (training || n->out_count > 1)))
        return mgx_onnx_defer(n);
    if (training && (ratio < 0 || ratio >= 1))
        return mgx_node_invalid(n, "ratio %g is not in [0, 1)", ratio);
    if (training && ratio > 0) {
        kept = draw(n, x, ratio);
        struct mgx_ins *y = mgx_build_mul(n, x, mgx_build_convert(n, kept, x->shape.type));
        n->out[0] = mgx_build_with(n, &mgx_op_div, y, 1 - ratio);
    } else {
        n->out[0] = mgx_build_unary(n, &mgx_op_identity, x);
    }
    if (n->out_count < 2)
        return MGX_OK;
    if (!kept) // all of x's lengths, whatever they turn out to be
        kept = mgx_build_emit(n, &mgx_op_multibroadcast, NULL,
                              MGX_IN(mgx_build_scalar(n, MGX_BOOL, 1), x));
    n->out[1] = n->opset < 10 ? mgx_build_convert(n, kept, x->shape.type) : kept;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_dropout = {
    .name = "Dropout", .since = 10, .import = dropout, .result = "0b"};
const struct mgx_onnx_op mgx_onnx_dropout_9 = {.name = "Dropout", .until = 9, .import = dropout};
