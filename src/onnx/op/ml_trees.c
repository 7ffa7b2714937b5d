// SPDX-License-Identifier: MIT
// ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
//
// All become the IR's tree_ensemble. Its nodes stand in the order of a walk from the roots, parents
// first, which also finds cycles and nodes that do not exist. The older operators name nodes by
// tree and node number and list the weights of leaves apart.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "onnx/ml.h"

// The IR's attributes, under construction. Children: a node, or -1 - leaf.
struct forest {
    int nodes, leaves;
    int64_t *mode, *feature, *yes, *no, *missing;
    double *split;
    int64_t *roots;
    int root_count;
    int64_t *begin, *target; // of leaves
    double *weight;
    int weights;
    double *members;
    int member_count;
};

enum { MEMBER = 6 };

static bool make_room(struct mgx_node *n, struct forest *f, int nodes, int weights)
{
    assert(nodes >= 0 && weights >= 0);
    f->mode = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->feature = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->yes = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->no = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->missing = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->split = MGX_NEW_ARRAY(n->scratch, double, nodes);
    f->roots = MGX_NEW_ARRAY(n->scratch, int64_t, nodes);
    f->begin = MGX_NEW_ARRAY(n->scratch, int64_t, (size_t)nodes + (size_t)weights + 1);
    f->target = MGX_NEW_ARRAY(n->scratch, int64_t, weights);
    f->weight = MGX_NEW_ARRAY(n->scratch, double, weights);
    f->nodes = nodes;
    f->weights = weights;
    return !n->scratch->failed;
}

// --- order ---

// Walks from every root and numbers nodes as they are met; place[i] is the new number of node i.
static enum mgx_status number_nodes(struct mgx_node *n, const struct forest *f, int64_t *place,
                                    int64_t *order, int *count)
{
    int64_t *stack = MGX_NEW_ARRAY(n->scratch, int64_t, 2 * (size_t)f->nodes + 2);
    if (!stack)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < f->nodes; i++)
        place[i] = -1;
    *count = 0;
    for (int r = 0; r < f->root_count; r++) {
        int top = 0;
        stack[top++] = f->roots[r];
        while (top > 0) {
            const int64_t at = stack[--top];
            if (at < 0)
                continue; // a leaf
            if (at >= f->nodes || place[at] >= 0)
                return mgx_node_invalid(n, "node %lld %s", (long long)at,
                                        at >= f->nodes ? "does not exist" : "has two parents");
            place[at] = *count;
            order[(*count)++] = at;
            stack[top++] = f->no[at];
            stack[top++] = f->yes[at];
        }
    }
    return MGX_OK;
}

static int64_t moved(const int64_t *place, int64_t child)
{
    return child < 0 ? child : place[child];
}

// The forest with parents before children and without nodes that no root leads to.
static enum mgx_status sort_nodes(struct mgx_node *n, struct forest *f)
{
    int64_t *place = MGX_NEW_ARRAY(n->scratch, int64_t, f->nodes);
    int64_t *order = MGX_NEW_ARRAY(n->scratch, int64_t, f->nodes);
    int count;
    if (!place || !order)
        return mgx_fail_memory(n->diag);
    TRY(number_nodes(n, f, place, order, &count));
    struct forest sorted = *f;
    if (!make_room(n, &sorted, count, 0))
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < count; i++) {
        const int64_t from = order[i];
        sorted.mode[i] = f->mode[from];
        sorted.feature[i] = f->feature[from];
        sorted.split[i] = f->split[from];
        sorted.missing[i] = f->missing[from];
        sorted.yes[i] = moved(place, f->yes[from]);
        sorted.no[i] = moved(place, f->no[from]);
    }
    sorted.roots = f->roots;
    for (int r = 0; r < f->root_count; r++)
        f->roots[r] = moved(place, f->roots[r]);
    sorted.begin = f->begin;
    sorted.target = f->target;
    sorted.weight = f->weight;
    sorted.weights = f->weights;
    *f = sorted;
    return MGX_OK;
}

// --- emitting ---

static struct mgx_ins *emit(struct mgx_node *n, const struct forest *f, int64_t targets,
                            const char *aggregate, struct mgx_doubles base, const char *post)
{
    const struct mgx_attr attrs[] = {
        mgx_ints("nodes_modes", f->mode, f->nodes),
        mgx_ints("nodes_features", f->feature, f->nodes),
        mgx_reals("nodes_splits", f->split, f->nodes),
        mgx_ints("nodes_true", f->yes, f->nodes),
        mgx_ints("nodes_false", f->no, f->nodes),
        mgx_ints("nodes_missing", f->missing, f->nodes),
        mgx_ints("roots", f->roots, f->root_count),
        mgx_ints("leaf_begin", f->begin, f->leaves + 1),
        mgx_ints("leaf_targets", f->target, f->weights),
        mgx_reals("leaf_weights", f->weight, f->weights),
        mgx_reals("members", f->members, f->member_count),
        mgx_int("targets", targets),
        mgx_text("aggregate", aggregate),
        mgx_reals("base_values", base.v, base.count),
        mgx_text("post_transform", post),
        {0},
    };
    return mgx_build_emit(n, &mgx_op_tree_ensemble, attrs, MGX_IN(n->in[0]));
}

static const char *const posts[][2] = {{"NONE", "none"},
                                       {"SOFTMAX", "softmax"},
                                       {"LOGISTIC", "logistic"},
                                       {"SOFTMAX_ZERO", "softmax_zero"},
                                       {"PROBIT", "probit"}};
static const char *const aggregates[][2] = {
    {"AVERAGE", "average"}, {"SUM", "sum"}, {"MIN", "min"}, {"MAX", "max"}};

static const char *translate(const char *const (*table)[2], int count, const char *name)
{
    assert(count > 0 && name);
    for (int i = 0; i < count; i++)
        if (strcmp(table[i][0], name) == 0)
            return table[i][1];
    return NULL;
}

static enum mgx_status find_post(struct mgx_node *n, const char **out)
{
    const char *name = mgx_onnx_text(n, "post_transform", "NONE");
    *out = translate(posts, MGX_COUNT(posts), name);
    return *out ? MGX_OK : mgx_node_invalid(n, "post_transform \"%s\" is unknown", name);
}

// A tensor attribute as doubles.
static enum mgx_status tensor_reals(struct mgx_node *n, const char *name, struct mgx_doubles *out)
{
    const struct mgx_ins *literal = mgx_onnx_has(n, name) ? mgx_onnx_tensor(n, name) : NULL;
    *out = (struct mgx_doubles){0};
    if (!literal)
        return n->diag->status;
    if (!mgx_type_is_number(literal->shape.type) ||
        mgx_shape_elements(&literal->shape) > INT32_MAX / 4)
        return mgx_node_invalid(n, "%s is no list of numbers", name);
    const int count = (int)mgx_shape_elements(&literal->shape);
    double *v = MGX_NEW_ARRAY(n->scratch, double, count);
    if (!v)
        return mgx_fail_memory(n->diag);
    mgx_tensor_to_doubles(literal->literal, v);
    *out = (struct mgx_doubles){v, count};
    return MGX_OK;
}

// A list of floats, or the tensor that newer versions have instead.
static enum mgx_status find_reals(struct mgx_node *n, const char *name, struct mgx_doubles *out)
{
    char tensor[48];
    *out = mgx_onnx_reals(n, name);
    snprintf(tensor, sizeof tensor, "%s_as_tensor", name);
    return out->count ? MGX_OK : tensor_reals(n, tensor, out);
}

// --- TreeEnsemble ---

static int64_t child(int64_t is_leaf, int64_t number)
{
    return !is_leaf ? number : number < 0 || number >= INT32_MAX ? INT64_MAX : -1 - number;
}

// Nodes of mode MEMBER own the next list of members each, in order; a NaN ends a list.
static enum mgx_status share_members(struct mgx_node *n, struct forest *f,
                                     struct mgx_doubles members)
{
    int at = 0;
    f->members = (double *)members.v;
    f->member_count = members.count;
    for (int i = 0; i < f->nodes; i++) {
        if (f->mode[i] != MEMBER)
            continue;
        if (at >= members.count)
            return mgx_node_invalid(n, "membership_values end before node %d", i);
        f->split[i] = at;
        while (at < members.count && !isnan(members.v[at]))
            at++;
        at++;
    }
    return MGX_OK;
}

static enum mgx_status read_nodes(struct mgx_node *n, struct forest *f)
{
    struct mgx_doubles modes, splits;
    TRY(tensor_reals(n, "nodes_modes", &modes));
    TRY(tensor_reals(n, "nodes_splits", &splits));
    const struct mgx_ints feature = mgx_onnx_ints(n, "nodes_featureids");
    const struct mgx_ints yes = mgx_onnx_ints(n, "nodes_truenodeids");
    const struct mgx_ints no = mgx_onnx_ints(n, "nodes_falsenodeids");
    const struct mgx_ints yes_leaf = mgx_onnx_ints(n, "nodes_trueleafs");
    const struct mgx_ints no_leaf = mgx_onnx_ints(n, "nodes_falseleafs");
    const struct mgx_ints missing = mgx_onnx_ints(n, "nodes_missing_value_tracks_true");
    if (splits.count != f->nodes || modes.count != f->nodes || yes.count != f->nodes ||
        no.count != f->nodes || yes_leaf.count != f->nodes || no_leaf.count != f->nodes ||
        feature.count != f->nodes || (missing.count && missing.count != f->nodes))
        return mgx_node_invalid(n, "lists of nodes differ in length");
    for (int i = 0; i < f->nodes; i++) {
        f->mode[i] = (int64_t)modes.v[i]; // of an integer tensor
        f->feature[i] = feature.v[i];
        f->split[i] = splits.v[i];
        f->missing[i] = missing.count ? missing.v[i] : 0;
        f->yes[i] = child(yes_leaf.v[i], yes.v[i]);
        f->no[i] = child(no_leaf.v[i], no.v[i]);
    }
    return MGX_OK;
}

// Leaves, each with one weight, and the trees' roots.
static enum mgx_status read_leaves(struct mgx_node *n, struct forest *f, struct mgx_doubles weights)
{
    const struct mgx_ints targets = mgx_onnx_ints(n, "leaf_targetids");
    const struct mgx_ints roots = mgx_onnx_ints(n, "tree_roots");
    const int nodes = mgx_onnx_ints(n, "nodes_featureids").count;
    if (targets.count != weights.count || roots.count > nodes)
        return mgx_node_invalid(n, "%d leaf_targetids for %d leaf_weights, %d roots of %d nodes",
                                targets.count, weights.count, roots.count, nodes);
    if (!make_room(n, f, nodes, weights.count))
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < roots.count; i++)
        f->roots[f->root_count++] = roots.v[i] < 0 ? INT64_MAX : roots.v[i];
    for (int i = 0; i < weights.count; i++) {
        f->begin[i + 1] = i + 1;
        f->target[i] = targets.v[i];
        f->weight[i] = weights.v[i];
    }
    f->leaves = weights.count;
    return MGX_OK;
}

static enum mgx_status tree_ensemble(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct forest f = {0};
    struct mgx_doubles weights, members;
    TRY(tensor_reals(n, "leaf_weights", &weights));
    TRY(tensor_reals(n, "membership_values", &members));
    TRY(read_leaves(n, &f, weights));
    TRY(read_nodes(n, &f));
    TRY(share_members(n, &f, members));
    TRY(sort_nodes(n, &f));
    const int64_t aggregate = mgx_onnx_int(n, "aggregate_function", 1);
    const int64_t post = mgx_onnx_int(n, "post_transform", 0);
    if (aggregate < 0 || aggregate >= MGX_COUNT(aggregates) || post < 0 || post >= MGX_COUNT(posts))
        return mgx_node_invalid(n, "aggregate_function %lld or post_transform %lld is unknown",
                                (long long)aggregate, (long long)post);
    n->out[0] = emit(n, &f, mgx_onnx_int(n, "n_targets", 1), aggregates[aggregate][1],
                     (struct mgx_doubles){0}, posts[post][1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_tree_ensemble = {.name = "TreeEnsemble",
                                                   .domain = "ai.onnx.ml",
                                                   .since = 5,
                                                   .import = tree_ensemble,
                                                   .result = "0"};

// --- the older operators ---

struct address { // of a node
    int64_t tree, node;
};

// Nodes by address; values are pointers into `address`.
struct index {
    struct mgx_map map;
    struct address *address;
};

static int64_t look_up(const struct index *x, int64_t tree, int64_t node)
{
    assert(x);
    const struct address key = {tree, node};
    const struct address *found = mgx_map_findn(&x->map, (const char *)&key, sizeof key);
    return found ? found - x->address : INT64_MAX;
}

static bool fill_index(struct mgx_node *n, struct mgx_ints trees, struct mgx_ints nodes,
                       struct index *x)
{
    x->address = MGX_NEW_ARRAY(n->scratch, struct address, nodes.count);
    bool ok = x->address;
    for (int i = 0; i < nodes.count && ok; i++) {
        x->address[i] = (struct address){trees.v[i], nodes.v[i]};
        ok =
            mgx_map_putn(&x->map, (const char *)&x->address[i], sizeof *x->address, &x->address[i]);
    }
    return ok;
}

static const char *const branches[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
enum { LEAF = MGX_COUNT(branches) };

// Modes of all nodes, LEAF among them; *out as long as the list.
static enum mgx_status read_modes(struct mgx_node *n, struct mgx_strings names, int64_t *out)
{
    for (int i = 0; i < names.count; i++) {
        out[i] = 0;
        while (out[i] < LEAF && strcmp(branches[out[i]], names.v[i]) != 0)
            out[i]++;
        if (out[i] == LEAF && strcmp(names.v[i], "LEAF") != 0)
            return mgx_node_invalid(n, "mode \"%s\" of node %d is unknown", names.v[i], i);
    }
    return MGX_OK;
}

// Branches with children as node numbers, leaves not yet told apart; marks who has a parent.
static enum mgx_status read_branches(struct mgx_node *n, const struct index *x, struct forest *f,
                                     bool *has_parent)
{
    struct mgx_doubles splits;
    TRY(find_reals(n, "nodes_values", &splits));
    const struct mgx_ints feature = mgx_onnx_ints(n, "nodes_featureids");
    const struct mgx_ints yes = mgx_onnx_ints(n, "nodes_truenodeids");
    const struct mgx_ints no = mgx_onnx_ints(n, "nodes_falsenodeids");
    const struct mgx_ints missing = mgx_onnx_ints(n, "nodes_missing_value_tracks_true");
    if (splits.count != f->nodes || feature.count != f->nodes || yes.count != f->nodes ||
        no.count != f->nodes || (missing.count && missing.count != f->nodes))
        return mgx_node_invalid(n, "lists of nodes differ in length");
    for (int i = 0; i < f->nodes; i++) {
        if (f->mode[i] == LEAF)
            continue;
        f->feature[i] = feature.v[i];
        f->split[i] = splits.v[i];
        f->missing[i] = missing.count ? missing.v[i] : 0;
        f->yes[i] = look_up(x, x->address[i].tree, yes.v[i]);
        f->no[i] = look_up(x, x->address[i].tree, no.v[i]);
        if (f->yes[i] == INT64_MAX || f->no[i] == INT64_MAX)
            return mgx_node_invalid(n, "node %lld of tree %lld has a child that does not exist",
                                    (long long)x->address[i].node, (long long)x->address[i].tree);
        has_parent[f->yes[i]] = has_parent[f->no[i]] = true;
    }
    return MGX_OK;
}

// Puts weights behind each other by the leaf `of` which each is; f->begin holds how many each leaf
// has, one place on.
static bool sort_weights(struct mgx_node *n, struct forest *f, const int64_t *of,
                         struct mgx_doubles weights, struct mgx_ints ids)
{
    int64_t *next = MGX_NEW_ARRAY(n->scratch, int64_t, f->leaves);
    for (int i = 0; i < f->leaves && next; i++) {
        f->begin[i + 1] += f->begin[i];
        next[i] = f->begin[i];
    }
    for (int i = 0; i < weights.count && next; i++) {
        const int64_t to = next[of[i]]++;
        f->target[to] = ids.v[i];
        f->weight[to] = weights.v[i];
    }
    return next != NULL;
}

// Weights sorted by leaf; leaf[i] is the number of node i's leaf.
static enum mgx_status read_weights(struct mgx_node *n, const struct index *x, const char *prefix,
                                    const int64_t *leaf, struct forest *f,
                                    struct mgx_doubles weights, struct mgx_ints ids)
{
    char name[32];
    snprintf(name, sizeof name, "%s_treeids", prefix);
    const struct mgx_ints trees = mgx_onnx_ints(n, name);
    snprintf(name, sizeof name, "%s_nodeids", prefix);
    const struct mgx_ints nodes = mgx_onnx_ints(n, name);
    if (trees.count != weights.count || nodes.count != weights.count || ids.count != weights.count)
        return mgx_node_invalid(n, "lists of weights differ in length");
    int64_t *of = MGX_NEW_ARRAY(n->scratch, int64_t, weights.count);
    if (!of)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < weights.count; i++) {
        const int64_t node = look_up(x, trees.v[i], nodes.v[i]);
        if (node == INT64_MAX || f->mode[node] != LEAF)
            return mgx_node_invalid(n, "weight %d is of node %lld of tree %lld, which is no leaf",
                                    i, (long long)nodes.v[i], (long long)trees.v[i]);
        of[i] = leaf[node];
        f->begin[of[i] + 1]++;
    }
    return sort_weights(n, f, of, weights, ids) ? MGX_OK : mgx_fail_memory(n->diag);
}

// Turns nodes of mode LEAF into leaves.
static enum mgx_status cut_leaves(struct mgx_node *n, struct forest *f, const int64_t *leaf)
{
    for (int i = 0; i < f->nodes; i++) {
        if (f->mode[i] == LEAF)
            continue;
        f->yes[i] = f->mode[f->yes[i]] == LEAF ? -1 - leaf[f->yes[i]] : f->yes[i];
        f->no[i] = f->mode[f->no[i]] == LEAF ? -1 - leaf[f->no[i]] : f->no[i];
    }
    for (int i = 0; i < f->root_count; i++)
        if (f->mode[f->roots[i]] == LEAF)
            f->roots[i] = -1 - leaf[f->roots[i]];
    return sort_nodes(n, f);
}

static enum mgx_status build(struct mgx_node *n, struct index *x, const char *prefix,
                             struct mgx_doubles weights, struct mgx_ints ids, struct forest *f)
{
    const struct mgx_ints trees = mgx_onnx_ints(n, "nodes_treeids");
    const struct mgx_ints nodes = mgx_onnx_ints(n, "nodes_nodeids");
    const struct mgx_strings modes = mgx_onnx_texts(n, "nodes_modes");
    if (trees.count != nodes.count || modes.count != nodes.count)
        return mgx_node_invalid(n, "lists of nodes differ in length");
    int64_t *leaf = MGX_NEW_ARRAY(n->scratch, int64_t, nodes.count);
    bool *has_parent = MGX_NEW_ARRAY(n->scratch, bool, nodes.count);
    if (!make_room(n, f, nodes.count, weights.count) || !leaf || !has_parent ||
        !fill_index(n, trees, nodes, x))
        return mgx_fail_memory(n->diag);
    TRY(read_modes(n, modes, f->mode));
    TRY(read_branches(n, x, f, has_parent));
    for (int i = 0; i < f->nodes; i++) {
        leaf[i] = f->mode[i] == LEAF ? f->leaves++ : -1;
        if (!has_parent[i])
            f->roots[f->root_count++] = i;
    }
    TRY(read_weights(n, x, prefix, leaf, f, weights, ids));
    return cut_leaves(n, f, leaf);
}

static enum mgx_status build_forest(struct mgx_node *n, const char *prefix,
                                    struct mgx_doubles weights, struct mgx_ints ids,
                                    struct forest *f)
{
    struct index x = {0};
    *f = (struct forest){0};
    const enum mgx_status status = build(n, &x, prefix, weights, ids, f);
    mgx_map_fini(&x.map);
    return status;
}

static enum mgx_status tree_regressor(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct forest f;
    struct mgx_doubles weights, base;
    const char *post, *name = mgx_onnx_text(n, "aggregate_function", "SUM");
    TRY(find_reals(n, "target_weights", &weights));
    TRY(find_reals(n, "base_values", &base));
    TRY(find_post(n, &post));
    TRY(build_forest(n, "target", weights, mgx_onnx_ints(n, "target_ids"), &f));
    const char *aggregate = translate(aggregates, MGX_COUNT(aggregates), name);
    if (!aggregate)
        return mgx_node_invalid(n, "aggregate_function \"%s\" is unknown", name);
    struct mgx_ins *y = emit(n, &f, mgx_onnx_int(n, "n_targets", 1), aggregate, base, post);
    n->out[0] = mgx_build_convert(n, y, MGX_FLOAT);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_tree_ensemble_regressor = {.name = "TreeEnsembleRegressor",
                                                             .domain = "ai.onnx.ml",
                                                             .import = tree_regressor,
                                                             .result = "f"};

// Two classes of which only one has weights: its score s decides, against 0.5 when all weights are
// positive (a probability), else against 0.
struct lone_class {
    bool is;       // weights name one class of two
    int64_t class; // which
    bool positive; // all weights are
};

static struct lone_class find_lone_class(struct mgx_ints ids, struct mgx_doubles weights,
                                         int classes)
{
    struct lone_class c = {.is = classes == 2 && ids.count > 0, .positive = true};
    c.class = ids.count ? ids.v[0] : 0;
    for (int i = 0; i < ids.count && i < weights.count; i++) {
        c.is &= ids.v[i] == c.class;
        c.positive &= weights.v[i] >= 0;
    }
    return c;
}

static enum mgx_status emit_lone_class(struct mgx_node *n, const struct forest *f,
                                       const struct lone_class *lone, struct mgx_doubles base,
                                       bool one_base, const char *post)
{
    struct mgx_ins *all = emit(n, f, 2, "sum", base, "none");
    struct mgx_ins *s = mgx_build_slice(n, all, 1, lone->class, lone->class + 1);
    struct mgx_ins *over = mgx_build_greater(n, s, mgx_build_like(n, s, lone->positive ? 0.5 : 0));
    struct mgx_ins *index = mgx_build_convert(n, over, MGX_INT64);
    const enum mgx_ml_score is = strcmp(post, "logistic") == 0 ? MGX_ML_LOGIT
                                 : lone->positive              ? MGX_ML_PROBABILITY
                                                               : MGX_ML_MARGIN;
    n->out[0] = mgx_ml_labels(n, mgx_build_squeeze(n, index, (const int64_t[]){1}, 1));
    if (n->out_count > 1 && lone->class == 0 && (base.count == 0 || one_base))
        n->out[1] = mgx_build_convert(n, mgx_ml_both_scores(n, s, is), MGX_FLOAT);
    else if (n->out_count > 1)
        n->out[1] = mgx_build_convert(n, emit(n, f, 2, "sum", base, post), MGX_FLOAT);
    return MGX_OK;
}

static enum mgx_status tree_classifier(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct forest f;
    struct mgx_doubles weights, base;
    const char *post;
    TRY(find_reals(n, "class_weights", &weights));
    TRY(find_reals(n, "base_values", &base));
    TRY(find_post(n, &post));
    const struct mgx_ints ids = mgx_onnx_ints(n, "class_ids");
    TRY(build_forest(n, "class", weights, ids, &f));
    const int classes = mgx_ml_label_count(n);
    const struct lone_class lone = find_lone_class(ids, weights, classes);
    const double first_alone[] = {base.count ? base.v[0] : 0, 0};
    const bool one_base = base.count == 1 && classes == 2; // it is the first class's
    if (one_base)
        base = (struct mgx_doubles){first_alone, 2};
    if (one_base && lone.is && lone.class == 1)
        base.count = 0; // the first class has no score to add it to
    if (lone.is && (lone.class == 0 || lone.class == 1))
        return emit_lone_class(n, &f, &lone, base, one_base, post);
    struct mgx_ins *scores = emit(n, &f, classes, "sum", base, "none");
    n->out[0] = mgx_ml_labels(n, mgx_ml_best(n, scores));
    if (n->out_count > 1)
        n->out[1] = mgx_build_convert(n, emit(n, &f, classes, "sum", base, post), MGX_FLOAT);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_tree_ensemble_classifier = {.name = "TreeEnsembleClassifier",
                                                              .domain = "ai.onnx.ml",
                                                              .import = tree_classifier,
                                                              .result = "cf"};
