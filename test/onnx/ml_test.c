// SPDX-License-Identifier: MIT
// Rules of ai.onnx.ml: values worked out by hand, and models whose trees are no trees.
#include "import.h"

enum { FLOAT = 1, MAX_VALUES = 16 };

static struct pb model_of(struct pb *take_graph)
{
    struct pb m = {0};
    pb_int(&m, 1, 8);
    pb_opset(&m, 8, "", 15);
    pb_opset(&m, 8, "ai.onnx.ml", 3);
    pb_message(&m, 7, take_graph);
    return m;
}

// One node on float x {rows, columns}.
static struct pb one_node(const char *op, int64_t rows, int64_t columns, const char *out,
                          struct pb *take_attributes)
{
    struct pb g = {0};
    pb_text(&g, 2, "g");
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){rows, columns});
    pb_node_of(&g, 1, "ai.onnx.ml", op, "x", out, take_attributes);
    for (const char *c = out; *c; c += *c != 0) {
        char name[2] = {*c, 0};
        if (*c != ',')
            pb_output(&g, name);
    }
    return model_of(&g);
}

static void attr_floats(struct pb *list, const char *name, const float *values, int count)
{
    struct pb v = {0};
    for (int i = 0; i < count; i++)
        pb_float(&v, 7, values[i]);
    pb_attribute(list, name, PB_FLOATS, &v);
}

static void attr_texts(struct pb *list, const char *name, const char *names)
{
    struct pb v = {0};
    pb_names(&v, 9, names);
    pb_attribute(list, name, PB_STRINGS, &v);
}

#define INTS(list, name, ...)                                                                      \
    pb_attr_ints(list, name, (int64_t[]){__VA_ARGS__},                                             \
                 (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define FLOATS(list, name, ...)                                                                    \
    attr_floats(list, name, (float[]){__VA_ARGS__},                                                \
                (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))

// The first result's values, or -1.
static int64_t values_of(struct pb *take_model, const float *x, int64_t rows, int64_t columns,
                         double *out)
{
    struct mgx_diag diag;
    struct mgx_program *p = import_model(take_model, NULL, &diag);
    if (!p) {
        printf("%s\n", diag.text);
        return -1;
    }
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){rows, columns});
    const struct mgx_tensor in = mgx_tensor_borrow(&s, x);
    struct mgx_shape shape;
    const int64_t count = run_model(p, &in, 1, &shape, out, MAX_VALUES);
    mgx_program_destroy(p);
    return count;
}

static bool gives(struct pb *take_model, const float *x, int64_t rows, int64_t columns,
                  const double *expected, int64_t count)
{
    double out[MAX_VALUES];
    if (values_of(take_model, x, rows, columns, out) != count)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(out[i] - expected[i]) <= 1e-6 * (1 + fabs(expected[i])))) {
            printf("element %d is %.9g, expected %.9g\n", (int)i, out[i], expected[i]);
            return false;
        }
    return true;
}

CASE(features_are_scaled_normalized_and_imputed)
{
    const float x[] = {3, 4, 0, 0, NAN, -1};
    struct pb a = {0};
    FLOATS(&a, "offset", 1);
    FLOATS(&a, "scale", 2, 3);
    struct pb m = one_node("Scaler", 2, 2, "y", &a);
    CHECK(gives(&m, x, 2, 2, (const double[]){4, 9, -2, -3}, 4));

    a = (struct pb){0};
    pb_attr_text(&a, "norm", "L2");
    m = one_node("Normalizer", 2, 2, "y", &a);
    CHECK(gives(&m, x, 2, 2, (const double[]){0.6, 0.8, 0, 0}, 4));

    a = (struct pb){0};
    FLOATS(&a, "imputed_value_floats", 7, 8);
    pb_attr_float(&a, "replaced_value_float", NAN);
    m = one_node("Imputer", 3, 2, "y", &a);
    CHECK(gives(&m, x, 3, 2, (const double[]){3, 4, 0, 0, 7, -1}, 6));

    a = (struct pb){0};
    FLOATS(&a, "offset", 1, 2, 3);
    m = one_node("Scaler", 2, 2, "y", &a);
    CHECK(refused(&m, MGX_INVALID, "offset has 3 values for 2 features"));
}

CASE(one_score_of_two_classes_is_the_second_ones)
{
    const float x[] = {1, 2, 1, -2};
    struct pb a = {0};
    FLOATS(&a, "coefficients", 1, 0.25f);
    FLOATS(&a, "intercepts", -1);
    INTS(&a, "classlabels_ints", 5, 6);
    struct pb m = one_node("LinearClassifier", 2, 2, "l,s", &a);
    CHECK(gives(&m, x, 2, 2, (const double[]){6, 5}, 2));
}

// x0 <= 1 ? leaf 1 : (x1 <= 2 ? leaf 3 : leaf 4), nodes numbered 0, 1, 2, 3, 4 in one tree.
static struct pb small_tree(void)
{
    struct pb a = {0};
    INTS(&a, "nodes_treeids", 0, 0, 0, 0, 0);
    INTS(&a, "nodes_nodeids", 0, 1, 2, 3, 4);
    INTS(&a, "nodes_featureids", 0, 0, 1, 0, 0);
    attr_texts(&a, "nodes_modes", "BRANCH_LEQ,LEAF,BRANCH_LEQ,LEAF,LEAF");
    FLOATS(&a, "nodes_values", 1, 0, 2, 0, 0);
    return a;
}

CASE(a_regressor_sums_the_weights_of_leaves_per_target)
{
    const float x[] = {0, 0, 2, 0, 2, 3};
    struct pb a = small_tree();
    INTS(&a, "nodes_truenodeids", 1, 0, 3, 0, 0);
    INTS(&a, "nodes_falsenodeids", 2, 0, 4, 0, 0);
    INTS(&a, "target_treeids", 0, 0, 0, 0);
    INTS(&a, "target_nodeids", 4, 1, 3, 4);
    INTS(&a, "target_ids", 1, 0, 1, 0);
    FLOATS(&a, "target_weights", 8, 1, 4, 16);
    FLOATS(&a, "base_values", 0.5f, 0.25f);
    pb_attr_int(&a, "n_targets", 2);
    struct pb m = one_node("TreeEnsembleRegressor", 3, 2, "y", &a);
    CHECK(gives(&m, x, 3, 2, (const double[]){1.5, 0.25, 0.5, 4.25, 16.5, 8.25}, 6));
}

CASE(a_classifier_with_weights_of_one_class_compares_with_a_half)
{
    const float x[] = {0, 0, 2, 0, 2, 3};
    struct pb a = small_tree();
    INTS(&a, "nodes_truenodeids", 1, 0, 3, 0, 0);
    INTS(&a, "nodes_falsenodeids", 2, 0, 4, 0, 0);
    INTS(&a, "class_treeids", 0, 0, 0);
    INTS(&a, "class_nodeids", 1, 3, 4);
    INTS(&a, "class_ids", 0, 0, 0);
    FLOATS(&a, "class_weights", 0.25f, 0.75f, 0.5f);
    INTS(&a, "classlabels_int64s", 10, 20);
    struct pb m = one_node("TreeEnsembleClassifier", 3, 2, "l,s", &a);
    CHECK(gives(&m, x, 3, 2, (const double[]){10, 20, 10}, 3));
}

static struct pb regressor(int64_t yes_of_root, int64_t yes_of_inner, int64_t leaf)
{
    struct pb a = small_tree();
    INTS(&a, "nodes_truenodeids", yes_of_root, 0, yes_of_inner, 0, 0);
    INTS(&a, "nodes_falsenodeids", 2, 0, 4, 0, 0);
    INTS(&a, "target_treeids", 0);
    INTS(&a, "target_nodeids", leaf);
    INTS(&a, "target_ids", 0);
    FLOATS(&a, "target_weights", 8);
    return one_node("TreeEnsembleRegressor", 3, 2, "y", &a);
}

CASE(what_is_no_tree_is_refused)
{
    struct pb m = regressor(7, 3, 1);
    CHECK(refused(&m, MGX_INVALID, "node 0 of tree 0 has a child that does not exist"));
    m = regressor(2, 3, 1);
    CHECK(refused(&m, MGX_INVALID, "has two parents"));
    m = regressor(1, 2, 1);
    CHECK(refused(&m, MGX_INVALID, "has two parents"));
    m = regressor(1, 3, 2);
    CHECK(refused(&m, MGX_INVALID, "weight 0 is of node 2 of tree 0, which is no leaf"));
    m = regressor(1, 3, 9);
    CHECK(refused(&m, MGX_INVALID, "which is no leaf"));
}

TEST_MAIN(ROW(features_are_scaled_normalized_and_imputed)
              ROW(one_score_of_two_classes_is_the_second_ones)
                  ROW(a_regressor_sums_the_weights_of_leaves_per_target)
                      ROW(a_classifier_with_weights_of_one_class_compares_with_a_half)
                          ROW(what_is_no_tree_is_refused))
