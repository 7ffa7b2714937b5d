// SPDX-License-Identifier: MIT
// ai.onnx.ml: features and linear models. What needs maps (ZipMap, CastMap, DictVectorizer) has no
// place in programs of tensors; models are exported without them.
#include <math.h>
#include <string.h>

#include "onnx/ml.h"

// --- lists of attributes ---

// A list as a float vector.
static struct mgx_ins *row_of(struct mgx_node *n, struct mgx_doubles v)
{
    const struct mgx_shape s = mgx_shape_vector(MGX_FLOAT, v.count);
    return mgx_build_doubles(n, &s, v.v);
}

// A list that is one value for all features or one for each.
static enum mgx_status check_per_feature(struct mgx_node *n, const char *name, int count,
                                         const struct mgx_ins *x)
{
    const struct mgx_shape *s = &x->shape;
    const struct mgx_dim last = mgx_shape_dim(s, s->rank - 1);
    if (count == 1 || (count >= last.min && count <= last.max))
        return MGX_OK;
    return mgx_node_invalid(n, "%s has %d values for %lld features", name, count,
                            (long long)last.max);
}

// --- features ---

static enum mgx_status array_feature_extractor(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    const int rank = mgx_build_rank(n->in[0]);
    if (!mgx_build_ranked(n) || rank == 0)
        return rank == 0 ? mgx_node_invalid(n, "a scalar has no features") : mgx_onnx_defer(n);
    struct mgx_ins *at = mgx_build_reshape(n, n->in[1], (const int64_t[]){-1}, 1);
    struct mgx_ins *y = mgx_build_gather(n, n->in[0], at, rank - 1);
    n->out[0] = rank == 1 ? mgx_build_unsqueeze(n, y, (const int64_t[]){0}, 1) : y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_array_feature_extractor = {.name = "ArrayFeatureExtractor",
                                                             .domain = "ai.onnx.ml",
                                                             .import = array_feature_extractor,
                                                             .takes = MGX_ONNX_TEXT};

static enum mgx_status binarizer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    // 1 where x > threshold; an integer exceeds the threshold where it exceeds its floor
    struct mgx_ins *threshold = mgx_build_like(n, x, floor(mgx_onnx_real(n, "threshold", 0)));
    if (mgx_type_is_float(x->shape.type))
        threshold = mgx_build_like(n, x, mgx_onnx_real(n, "threshold", 0));
    n->out[0] = mgx_build_convert(n, mgx_build_greater(n, x, threshold), x->shape.type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_binarizer = {
    .name = "Binarizer", .domain = "ai.onnx.ml", .import = binarizer};

static enum mgx_status scaler(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 1)
        return mgx_onnx_defer(n);
    const struct mgx_doubles offset = mgx_onnx_reals(n, "offset");
    const struct mgx_doubles scale = mgx_onnx_reals(n, "scale");
    struct mgx_ins *x = mgx_build_convert(n, n->in[0], MGX_FLOAT);
    if (!x)
        return MGX_OK; // the failure is in the program
    if (offset.count) {
        TRY(check_per_feature(n, "offset", offset.count, x));
        x = mgx_build_sub(n, x, row_of(n, offset));
    }
    if (scale.count) {
        TRY(check_per_feature(n, "scale", scale.count, n->in[0]));
        x = mgx_build_mul(n, x, row_of(n, scale));
    }
    n->out[0] = x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_scaler = {
    .name = "Scaler", .domain = "ai.onnx.ml", .import = scaler, .result = "f"};

// x / norm along the last axis; a row of norm 0 stays.
static enum mgx_status normalizer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 1)
        return mgx_onnx_defer(n);
    const char *norm = mgx_onnx_text(n, "norm", "MAX");
    const int64_t axis = rank - 1;
    struct mgx_ins *x = mgx_build_convert(n, n->in[0], MGX_FLOAT), *size;
    if (strcmp(norm, "MAX") == 0)
        size = mgx_build_reduce(n, &mgx_op_reduce_max, x, &axis, 1, true);
    else if (strcmp(norm, "L1") == 0)
        size = mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_abs(n, x), &axis, 1, true);
    else if (strcmp(norm, "L2") == 0)
        size = mgx_build_sqrt(
            n, mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_mul(n, x, x), &axis, 1, true));
    else
        return mgx_node_invalid(n, "norm \"%s\" is unknown", norm);
    struct mgx_ins *zero = mgx_build_equal(n, size, mgx_build_scalar(n, MGX_FLOAT, 0));
    size = mgx_build_where(n, zero, mgx_build_scalar(n, MGX_FLOAT, 1), size);
    n->out[0] = mgx_build_div(n, x, size);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_normalizer = {
    .name = "Normalizer", .domain = "ai.onnx.ml", .import = normalizer, .result = "f"};

static enum mgx_status imputer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0], *missing, *by;
    if (mgx_build_rank(x) < 1)
        return mgx_onnx_defer(n);
    const struct mgx_doubles reals = mgx_onnx_reals(n, "imputed_value_floats");
    const struct mgx_ints ints = mgx_onnx_ints(n, "imputed_value_int64s");
    const bool is_float = mgx_type_is_float(x->shape.type);
    const int count = is_float ? reals.count : ints.count;
    TRY(check_per_feature(n, "the list of imputed values", count, x));
    const struct mgx_shape row = mgx_shape_vector(x->shape.type, count);
    if (is_float) {
        const double what = mgx_onnx_real(n, "replaced_value_float", 0);
        missing = isnan(what) ? mgx_build_convert(n, mgx_build_unary(n, &mgx_op_isnan, x), MGX_BOOL)
                              : mgx_build_equal(n, x, mgx_build_like(n, x, what));
        by = mgx_build_doubles(n, &row, reals.v);
    } else {
        const int64_t what = mgx_onnx_int(n, "replaced_value_int64", 0);
        const struct mgx_shape one = mgx_shape_vector(x->shape.type, 1);
        missing = mgx_build_equal(n, x, mgx_build_ints(n, &one, &what));
        by = mgx_build_ints(n, &row, ints.v);
    }
    n->out[0] = mgx_build_where(n, missing, by, x);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_imputer = {
    .name = "Imputer", .domain = "ai.onnx.ml", .import = imputer};

// Columns of all inputs side by side, each cut or filled with zeros to its declared width.
static enum mgx_status feature_vectorizer(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const struct mgx_ints widths = mgx_onnx_ints(n, "inputdimensions");
    if (widths.count != n->in_count)
        return mgx_node_invalid(n, "%d inputdimensions for %d inputs", widths.count, n->in_count);
    struct mgx_ins **part = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    if (!part)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < n->in_count; i++) {
        struct mgx_ins *x = mgx_build_convert(n, n->in[i], MGX_FLOAT);
        if (x && x->shape.rank == 1)
            x = mgx_build_unsqueeze(n, x, (const int64_t[]){0}, 1);
        if (!x || x->shape.rank != 2 || widths.v[i] < 0)
            return mgx_node_invalid(n, "input %d is no matrix, or its width is negative", i);
        const int64_t have = x->shape.lens[1], want = widths.v[i];
        if (want > INT32_MAX)
            return mgx_node_invalid(n, "width %lld of input %d is out of range", (long long)want,
                                    i);
        const int64_t pads[] = {0, 0, 0, want > have ? want - have : 0};
        part[i] = have > want ? mgx_build_slice(n, x, 1, 0, want) : mgx_build_pad(n, x, pads, 0);
    }
    n->out[0] = mgx_build_concat(n, 1, part, n->in_count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_feature_vectorizer = {.name = "FeatureVectorizer",
                                                        .domain = "ai.onnx.ml",
                                                        .import = feature_vectorizer,
                                                        .result = "f"};

// --- linear models ---

// Scores {rows, classes} by the attribute post_transform: NONE, LOGISTIC or SOFTMAX.
static struct mgx_ins *transform(struct mgx_node *n, struct mgx_ins *scores, const char *how)
{
    if (strcmp(how, "LOGISTIC") == 0)
        return mgx_build_sigmoid(n, scores);
    if (strcmp(how, "SOFTMAX") == 0)
        return mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", -1)), MGX_IN(scores));
    if (strcmp(how, "NONE") == 0)
        return scores;
    mgx_node_unsupported(n, "post_transform \"%s\"", how);
    return NULL;
}

// x W' + b as {rows, count}; W holds `count` rows of coefficients.
static enum mgx_status linear(struct mgx_node *n, int64_t count, struct mgx_ins **out)
{
    struct mgx_ins *x = mgx_build_convert(n, n->in[0], MGX_FLOAT);
    if (x && x->shape.rank == 1)
        x = mgx_build_unsqueeze(n, x, (const int64_t[]){0}, 1);
    const struct mgx_doubles w = mgx_onnx_reals(n, "coefficients");
    const struct mgx_doubles b = mgx_onnx_reals(n, "intercepts");
    if (count < 1 || w.count == 0 || w.count % count != 0 || (b.count && b.count != count))
        return mgx_node_invalid(n, "%d coefficients and %d intercepts for %lld targets", w.count,
                                b.count, (long long)count);
    const int64_t lens[] = {count, w.count / count};
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, lens);
    struct mgx_ins *weights = mgx_build_doubles(n, &s, w.v);
    weights = mgx_build_transpose(n, weights, (const int64_t[]){1, 0}, 2);
    struct mgx_ins *y = mgx_build_dot(n, x, weights);
    *out = b.count ? mgx_build_add(n, y, row_of(n, b)) : y;
    return MGX_OK;
}

static enum mgx_status linear_regressor(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 1)
        return mgx_onnx_defer(n);
    struct mgx_ins *y;
    TRY(linear(n, mgx_onnx_int(n, "targets", 1), &y));
    n->out[0] = transform(n, y, mgx_onnx_text(n, "post_transform", "NONE"));
    return n->out[0] ? MGX_OK : n->diag->status;
}
const struct mgx_onnx_op mgx_onnx_linear_regressor = {
    .name = "LinearRegressor", .domain = "ai.onnx.ml", .import = linear_regressor, .result = "f"};

struct mgx_ins *mgx_ml_labels(struct mgx_node *n, struct mgx_ins *index)
{
    struct mgx_ints ints = mgx_onnx_ints(n, "classlabels_int64s");
    if (!ints.count)
        ints = mgx_onnx_ints(n, "classlabels_ints");
    const struct mgx_strings texts = mgx_onnx_texts(n, "classlabels_strings");
    const int count = texts.count ? texts.count : ints.count;
    int64_t *keys = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    for (int i = 0; keys && i < count; i++)
        keys[i] = i;
    if (!keys) {
        mgx_fail_memory(n->diag);
        return NULL;
    }
    const struct mgx_attr values = texts.count ? mgx_texts("values_strings", texts.v, texts.count)
                                               : mgx_ints("values_int64s", ints.v, ints.count);
    return mgx_build_emit(n, &mgx_op_label_encoder,
                          MGX_ATTRS(mgx_ints("keys_int64s", keys, count), values), MGX_IN(index));
}

int mgx_ml_label_count(const struct mgx_node *n)
{
    const int texts = mgx_onnx_texts(n, "classlabels_strings").count;
    const int ints = mgx_onnx_ints(n, "classlabels_int64s").count;
    return texts ? texts : ints ? ints : mgx_onnx_ints(n, "classlabels_ints").count;
}

struct mgx_ins *mgx_ml_best(struct mgx_node *n, struct mgx_ins *scores)
{
    struct mgx_ins *best =
        mgx_build_emit(n, &mgx_op_argmax, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(scores));
    return mgx_build_squeeze(n, best, (const int64_t[]){1}, 1);
}

struct mgx_ins *mgx_ml_both_scores(struct mgx_node *n, struct mgx_ins *s, enum mgx_ml_score is)
{
    struct mgx_ins *other = is == MGX_ML_PROBABILITY ? mgx_build_sub(n, mgx_build_like(n, s, 1), s)
                                                     : mgx_build_neg(n, s);
    struct mgx_ins *both = mgx_build_concat(n, 1, (struct mgx_ins *const[]){other, s}, 2);
    return is == MGX_ML_LOGIT ? mgx_build_sigmoid(n, both) : both;
}

static enum mgx_status linear_classifier(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 1)
        return mgx_onnx_defer(n);
    const char *how = mgx_onnx_text(n, "post_transform", "NONE");
    const int intercepts = mgx_onnx_reals(n, "intercepts").count;
    const int labels = mgx_ml_label_count(n);
    struct mgx_ins *y;
    TRY(linear(n, intercepts ? intercepts : labels, &y));
    if (intercepts == 1 && labels == 2) { // one score, that of the second class
        struct mgx_ins *index = mgx_build_greater(n, y, mgx_build_scalar(n, MGX_FLOAT, 0));
        index = mgx_build_convert(n, index, MGX_INT64);
        n->out[0] = mgx_ml_labels(n, mgx_build_squeeze(n, index, (const int64_t[]){1}, 1));
        if (n->out_count > 1)
            n->out[1] = mgx_ml_both_scores(
                n, y, strcmp(how, "LOGISTIC") == 0 ? MGX_ML_LOGIT : MGX_ML_PROBABILITY);
        return n->diag->status;
    }
    if (intercepts && labels != intercepts)
        return mgx_node_invalid(n, "%d intercepts for %d labels", intercepts, labels);
    n->out[0] = mgx_ml_labels(n, mgx_ml_best(n, y));
    if (n->out_count > 1)
        n->out[1] = transform(n, y, how);
    return n->diag->status;
}
const struct mgx_onnx_op mgx_onnx_linear_classifier = {.name = "LinearClassifier",
                                                       .domain = "ai.onnx.ml",
                                                       .import = linear_classifier,
                                                       .result = "cf"};
