// SPDX-License-Identifier: MIT
// tree_ensemble: decision trees over feature rows, their leaves' weights gathered per target (the
// tree operators of ONNX-ML).
//
//     x {n, features}  ->  y {n, targets}
//
// A node compares x[feature] with its split by its mode and goes on to `true` or `false`: a node if
// not negative, else leaf -1 - value. A NaN goes to `true` where nodes_missing says so, else where
// the comparison takes it. Mode member asks whether x[feature] is among members[split ...], a list
// that ends with a NaN. Leaf l adds leaf_weights to leaf_targets from leaf_begin[l] up to
// leaf_begin[l + 1]. Comparisons are of doubles. Nodes come before their children, so that every
// walk ends. Cost: the depth of every tree per row.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/rule/rule.h"

enum mode { LESS_OR_EQUAL, LESS, GREATER_OR_EQUAL, GREATER, EQUAL, NOT_EQUAL, MEMBER };
enum aggregate { AVERAGE, SUM, MIN, MAX };
enum post { NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT };

struct tree_ensemble {
    struct mgx_ints nodes_modes, nodes_features;
    struct mgx_doubles nodes_splits;
    struct mgx_ints nodes_true, nodes_false, nodes_missing, roots, leaf_begin, leaf_targets;
    struct mgx_doubles leaf_weights, members;
    int64_t targets, aggregate;
    struct mgx_doubles base_values;
    int64_t post_transform;
};

static const char *const aggregates[] = {"average", "sum", "min", "max", NULL};
static const char *const posts[] = {"none", "softmax", "logistic", "softmax_zero", "probit", NULL};
static const struct mgx_field fields[] = {MGX_INTS(struct tree_ensemble, nodes_modes),
                                          MGX_INTS(struct tree_ensemble, nodes_features),
                                          MGX_REALS(struct tree_ensemble, nodes_splits),
                                          MGX_INTS(struct tree_ensemble, nodes_true),
                                          MGX_INTS(struct tree_ensemble, nodes_false),
                                          MGX_INTS(struct tree_ensemble, nodes_missing),
                                          MGX_INTS(struct tree_ensemble, roots),
                                          MGX_INTS(struct tree_ensemble, leaf_begin),
                                          MGX_INTS(struct tree_ensemble, leaf_targets),
                                          MGX_REALS(struct tree_ensemble, leaf_weights),
                                          MGX_REALS(struct tree_ensemble, members),
                                          MGX_INT(struct tree_ensemble, targets),
                                          MGX_ENUM(struct tree_ensemble, aggregate, aggregates),
                                          MGX_REALS(struct tree_ensemble, base_values),
                                          MGX_ENUM(struct tree_ensemble, post_transform, posts),
                                          {0}};
static const struct tree_ensemble defaults = {.targets = 1, .aggregate = SUM};

// --- shape ---

static enum mgx_status bad(struct mgx_shape_call *c, const char *what, int64_t at, int64_t value)
{
    return mgx_fail(c->diag, MGX_INVALID, "%s: %s %" PRId64 " is %" PRId64 ", out of range",
                    c->op->name, what, at, value);
}

static enum mgx_status check_sizes(struct mgx_shape_call *c)
{
    const struct tree_ensemble *a = c->attr;
    const int n = a->nodes_modes.count;
    if (a->nodes_features.count != n || a->nodes_splits.count != n || a->nodes_true.count != n ||
        a->nodes_false.count != n || (a->nodes_missing.count != n && a->nodes_missing.count != 0))
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %d modes, %d features, %d splits, %d and %d children, %d for missing",
                        c->op->name, n, a->nodes_features.count, a->nodes_splits.count,
                        a->nodes_true.count, a->nodes_false.count, a->nodes_missing.count);
    if (a->leaf_targets.count != a->leaf_weights.count || a->leaf_begin.count < 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %d leaf targets, %d weights, %d begins",
                        c->op->name, a->leaf_targets.count, a->leaf_weights.count,
                        a->leaf_begin.count);
    if (a->targets < 1 || a->targets > INT32_MAX ||
        (a->base_values.count != 0 && a->base_values.count != a->targets))
        return mgx_fail(c->diag, MGX_INVALID, "%s: %" PRId64 " targets, %d base values",
                        c->op->name, a->targets, a->base_values.count);
    return a->aggregate < AVERAGE || a->aggregate > MAX ? bad(c, "aggregate", 0, a->aggregate)
           : a->post_transform < NONE || a->post_transform > PROBIT
               ? bad(c, "post_transform", 0, a->post_transform)
               : MGX_OK;
}

// A node or leaf that exists; a node only behind `parent`.
static bool is_child(const struct tree_ensemble *a, int64_t child, int64_t parent)
{
    return child < 0 ? -1 - child < a->leaf_begin.count - 1
                     : child > parent && child < a->nodes_modes.count;
}

static enum mgx_status check_leaves(struct mgx_shape_call *c)
{
    const struct tree_ensemble *a = c->attr;
    for (int i = 0; i < a->leaf_begin.count; i++) {
        const int64_t begin = a->leaf_begin.v[i];
        if (begin < (i ? a->leaf_begin.v[i - 1] : 0) || begin > a->leaf_targets.count)
            return bad(c, "leaf_begin", i, begin);
    }
    for (int i = 0; i < a->leaf_targets.count; i++)
        if (a->leaf_targets.v[i] < 0 || a->leaf_targets.v[i] >= a->targets)
            return bad(c, "leaf target", i, a->leaf_targets.v[i]);
    return MGX_OK;
}

static enum mgx_status check_nodes(struct mgx_shape_call *c, struct mgx_dim features)
{
    const struct tree_ensemble *a = c->attr;
    for (int i = 0; i < a->nodes_modes.count; i++) {
        const int64_t mode = a->nodes_modes.v[i], feature = a->nodes_features.v[i];
        if (mode < LESS_OR_EQUAL || mode > MEMBER)
            return bad(c, "mode of node", i, mode);
        if (feature < 0 || feature >= features.max)
            return bad(c, "feature of node", i, feature);
        if (!is_child(a, a->nodes_true.v[i], i))
            return bad(c, "child of node", i, a->nodes_true.v[i]);
        if (!is_child(a, a->nodes_false.v[i], i))
            return bad(c, "child of node", i, a->nodes_false.v[i]);
        const double split = a->nodes_splits.v[i];
        if (mode == MEMBER && !(split >= 0 && split < a->members.count))
            return mgx_fail(c->diag, MGX_INVALID, "%s: node %d begins its members at %g of %d",
                            c->op->name, i, split, a->members.count);
    }
    for (int i = 0; i < a->roots.count; i++)
        if (!is_child(a, a->roots.v[i], -1))
            return bad(c, "root", i, a->roots.v[i]);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct tree_ensemble *a = c->attr;
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, 2, 2));
    TRY(check_sizes(c));
    TRY(check_leaves(c));
    TRY(check_nodes(c, mgx_shape_dim(c->in[0], 1)));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 2);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[1] = (struct mgx_dim){.min = a->targets, .max = a->targets};
    const enum mgx_type type = c->in[0]->type;
    *out = mgx_shape_from_dims(mgx_type_is_float(type) ? type : MGX_FLOAT, 2, dims);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return mgx_type_is_float(c->in[0]->type) ? c->in[0]->type : MGX_FLOAT;
}

// --- walking a tree ---

static bool is_member(const struct tree_ensemble *a, int64_t at, double x)
{
    assert(at >= 0);
    for (; at < a->members.count && !isnan(a->members.v[at]); at++)
        if (a->members.v[at] == x)
            return true;
    return false;
}

static bool goes_true(const struct tree_ensemble *a, int64_t node, double x)
{
    assert(node >= 0 && node < a->nodes_modes.count);
    const double split = a->nodes_splits.v[node];
    if (isnan(x) && a->nodes_missing.count && a->nodes_missing.v[node])
        return true;
    switch ((enum mode)a->nodes_modes.v[node]) {
    case LESS_OR_EQUAL:
        return x <= split;
    case LESS:
        return x < split;
    case GREATER_OR_EQUAL:
        return x >= split;
    case GREATER:
        return x > split;
    case EQUAL:
        return x == split;
    case NOT_EQUAL:
        return x != split;
    case MEMBER:
        break;
    }
    return is_member(a, (int64_t)split, x);
}

static int64_t find_leaf(const struct tree_ensemble *a, int64_t at, const double *row)
{
    while (at >= 0)
        at = goes_true(a, at, row[a->nodes_features.v[at]]) ? a->nodes_true.v[at]
                                                            : a->nodes_false.v[at];
    return -1 - at;
}

// seen[t] tells whether target t has got anything yet.
static void add_leaf(const struct tree_ensemble *a, int64_t leaf, double *y, bool *seen)
{
    assert(leaf >= 0);
    for (int64_t i = a->leaf_begin.v[leaf]; i < a->leaf_begin.v[leaf + 1]; i++) {
        const int64_t t = a->leaf_targets.v[i];
        const double w = a->leaf_weights.v[i];
        if (!seen[t])
            y[t] = w;
        else if (a->aggregate == MIN)
            y[t] = fmin(y[t], w);
        else if (a->aggregate == MAX)
            y[t] = fmax(y[t], w);
        else
            y[t] += w;
        seen[t] = true;
    }
}

// --- afterwards ---

// Quantile of the normal distribution, by Newton's steps on erfc from a rough start.
static double probit(double p)
{
    if (!(p > 0 && p < 1))
        return p == 0 ? (double)-INFINITY : p == 1 ? (double)INFINITY : (double)NAN;
    const double tail = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(tail));
    double x = t - (2.30753 + 0.27061 * t) / (1 + (0.99229 + 0.04481 * t) * t);
    for (int i = 0; i < 4; i++) {
        const double error = 0.5 * erfc(x * M_SQRT1_2) - tail;
        x += error / (exp(-x * x / 2) / sqrt(2 * M_PI));
    }
    return p < 0.5 ? -x : x;
}

static void soften(double *y, int64_t n, bool keep_zeros)
{
    assert(n >= 0);
    double most = y[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        most = fmax(most, y[i]);
    for (int64_t i = 0; i < n; i++) {
        const bool keep = keep_zeros && y[i] == 0;
        y[i] = keep ? 0 : exp(y[i] - most);
        sum += y[i];
    }
    for (int64_t i = 0; i < n && sum > 0; i++)
        y[i] /= sum;
}

static void finish(const struct tree_ensemble *a, double *y)
{
    const int64_t n = a->targets;
    for (int64_t i = 0; i < n; i++) {
        if (a->aggregate == AVERAGE && a->roots.count)
            y[i] /= a->roots.count;
        y[i] += a->base_values.count ? a->base_values.v[i] : 0;
        if (a->post_transform == LOGISTIC)
            y[i] = 1 / (1 + exp(-y[i]));
        else if (a->post_transform == PROBIT)
            y[i] = probit(y[i]);
    }
    if (a->post_transform == SOFTMAX || a->post_transform == SOFTMAX_ZERO)
        soften(y, n, a->post_transform == SOFTMAX_ZERO);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct tree_ensemble *a = c->attr;
    const int64_t rows = c->out->shape.lens[0], features = c->in[0]->shape.lens[1];
    const double *x = mgx_scratch_doubles(c, c->in[0]);
    double *y = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(&c->out->shape));
    bool *seen = MGX_NEW_ARRAY(c->scratch, bool, a->targets);
    if (!x || !y || !seen)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < rows; i++) {
        double *row = y + i * a->targets;
        for (int64_t t = 0; t < a->targets; t++)
            seen[t] = false;
        for (int r = 0; r < a->roots.count; r++)
            add_leaf(a, find_leaf(a, a->roots.v[r], x + i * features), row, seen);
        finish(a, row);
    }
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_tree_ensemble = {
    .name = "tree_ensemble",
    .meaning = "y = weights of the leaves that each tree leads x to",
    .fields = fields,
    .attr_size = sizeof(struct tree_ensemble),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
