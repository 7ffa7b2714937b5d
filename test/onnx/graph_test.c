// SPDX-License-Identifier: MIT
// The walk: order, names, options, bodies, functions. Every model is written here.
#include "import.h"
#include "targets/target.h"
#include "tiny.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static const int64_t two_three[] = {2, 3};

static struct pb relu_model(int64_t opset)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 2, two_three);
    pb_node(&g, "Relu", "x", "y", NULL);
    pb_output(&g, "y");
    return pb_model(&g, opset);
}

static const float six[] = {-3, -2, -1, 0, 1, 2};

CASE(imports_and_runs_one_node)
{
    struct pb m = relu_model(17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_INT(p->output_names.count, 1);
    CHECK_TEXT(p->output_names.v[0], "y");
    struct mgx_tensor x = floats(six, 2, two_three);
    double y[6];
    struct mgx_shape shape;
    CHECK_INT(run_model(p, &x, 1, &shape, y, 6), 6);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(y[i], six[i] > 0 ? six[i] : 0, 0);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_program_destroy(p);
}

CASE(names_nodes_as_origin)
{
    struct pb g = {0}, name = {0};
    pb_input(&g, "x", FLOAT, 2, two_three);
    struct pb n = {0};
    pb_names(&n, 1, "x");
    pb_names(&n, 2, "y");
    pb_text(&n, 3, "act_1");
    pb_text(&n, 4, "Relu");
    pb_message(&g, 1, &n);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    const struct mgx_ins *y = mgx_module_result(mgx_program_main(p), 0);
    CHECK_INT(y->origin.count, 1);
    CHECK_TEXT(y->origin.v[0], "act_1 (Relu)");
    mgx_program_destroy(p);
    pb_free(&name);
}

// --- order ---

// A chain x -> v0 -> v1 -> ... written forwards or backwards.
static struct pb chain(int count, bool backwards)
{
    struct pb g = {0};
    char in[24], out[24];
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    for (int k = 0; k < count; k++) {
        const int i = backwards ? count - 1 - k : k;
        snprintf(in, sizeof in, "v%d", i - 1);
        snprintf(out, sizeof out, "v%d", i);
        pb_node(&g, "Neg", i ? in : "x", out, NULL);
    }
    snprintf(out, sizeof out, "v%d", count - 1);
    pb_output(&g, out);
    return pb_model(&g, 17);
}

CASE(sorts_unsorted_nodes)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        struct pb m = chain(1001, backwards);
        struct mgx_diag diag;
        struct mgx_program *p = import_model(&m, NULL, &diag);
        CHECK(p);
        struct mgx_tensor x = floats(six + 4, 1, (int64_t[]){2});
        double y[2];
        CHECK_INT(run_model(p, &x, 1, NULL, y, 2), 2);
        CHECK_NEAR(y[0], -1, 0);
        CHECK_NEAR(y[1], -2, 0);
        CHECK_INT(mgx_program_main(p)->count, 1001 + 2);
        mgx_program_destroy(p);
    }
}

CASE(a_wide_unsorted_node_is_linear)
{
    enum { WIDE = 20000 };
    struct pb g = {0}, n = {0};
    char name[24];
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){1});
    for (int i = 0; i < WIDE; i++) {
        snprintf(name, sizeof name, "v%d", i);
        pb_text(&n, 1, name);
    }
    pb_text(&n, 2, "y");
    pb_text(&n, 4, "Concat");
    pb_attr_int(&n, "axis", 0);
    pb_message(&g, 1, &n);
    for (int i = 0; i < WIDE; i++) {
        snprintf(name, sizeof name, "v%d", i);
        pb_node(&g, "Neg", "x", name, NULL);
    }
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_INT(mgx_module_result(mgx_program_main(p), 0)->shape.lens[0], WIDE);
    mgx_program_destroy(p);
}

CASE(names_cycles_and_missing_producers)
{
    struct pb g = {0};
    pb_node(&g, "Add", "b,x", "a", NULL);
    pb_node(&g, "Neg", "a", "b", NULL);
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_output(&g, "b");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "cycle"));

    pb_node(&g, "Neg", "a", "a", NULL);
    pb_output(&g, "a");
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "cycle"));

    pb_node(&g, "Neg", "nowhere", "a", NULL);
    pb_output(&g, "a");
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"nowhere\" is produced by no node"));

    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_output(&g, "nothing");
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"nothing\" is produced by no node"));
}

CASE(refuses_names_defined_twice)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node(&g, "Neg", "x", "a", NULL);
    pb_node(&g, "Abs", "x", "a", NULL);
    pb_output(&g, "a");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"a\" is defined twice"));

    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node(&g, "Neg", "x", "x", NULL);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"x\" is defined twice"));

    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_input(&g, "x", FLOAT, 0, NULL);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"x\" is defined twice"));

    pb_ints(&g, "w", two_three, 2);
    pb_ints(&g, "w", two_three, 2);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"w\" is defined twice"));

    pb_ints(&g, "w", two_three, 2);
    pb_node(&g, "Neg", "w", "w", NULL);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "\"w\" is defined twice"));
}

CASE(an_initialiser_that_is_an_input_is_a_constant)
{
    struct pb g = {0};
    pb_input(&g, "w", INT64, 1, (int64_t[]){2});
    pb_ints(&g, "w", two_three, 2);
    pb_node(&g, "Neg", "w", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK(!mgx_find_parameter(mgx_program_main(p), "w"));
    double y[2];
    CHECK_INT(run_model(p, NULL, 0, NULL, y, 2), 2);
    CHECK(y[0] == -2 && y[1] == -3);
    mgx_program_destroy(p);
}

// --- versions ---

CASE(versions_are_checked)
{
    struct pb m = relu_model(0);
    CHECK(refused(&m, MGX_INVALID, "opset version 0"));
    m = relu_model(-5);
    CHECK(refused(&m, MGX_INVALID, "opset version -5"));
    m = relu_model(1000000000);
    CHECK(refused(&m, MGX_UNSUPPORTED, "opset version 1000000000 is newer"));
    m = relu_model(17);
    pb_opset(&m, 8, "ai.onnx", 13); // the same domain under its other name
    CHECK(refused(&m, MGX_INVALID, "in versions 17 and 13"));
    m = relu_model(17);
    pb_int(&m, 1, 999);
    CHECK(refused(&m, MGX_UNSUPPORTED, "ir_version 999"));
    m = relu_model(17);
    pb_int(&m, 1, -1);
    CHECK(refused(&m, MGX_INVALID, "ir_version -1"));
}

CASE(absent_versions_have_defaults)
{
    struct pb g = {0}, m = {0};
    struct mgx_diag diag;
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node(&g, "Relu", "x", "y", NULL);
    pb_output(&g, "y");
    pb_message(&m, 7, &g); // neither ir_version nor opset
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    mgx_program_destroy(p);
}

// --- splits ---

// Sizes that add up, one of them below nothing.
CASE(no_part_of_a_split_is_negative)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){4});
    pb_ints(&g, "sizes", (int64_t[]){-1, 5}, 2);
    pb_node(&g, "Split", "x,sizes", "a,b", NULL);
    pb_output(&g, "a");
    pb_output(&g, "b");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "split size -1 of output 0 does not fit in 4"));
}

// --- bodies ---

CASE(a_map_over_a_sequence)
{
    struct pb g = {0}, body = {0}, attrs = {0}, along = {0};
    const float numbers[] = {2, 3};
    struct pb w = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){2}, numbers, sizeof numbers);
    pb_input(&body, "member", FLOAT, 1, (int64_t[]){2});
    pb_node(&body, "Neg", "member", "negative", NULL);
    pb_output(&body, "negative");
    pb_initializer(&g, &w);
    pb_node(&g, "Add", "w,w", "twice", NULL);
    pb_node(&g, "SequenceConstruct", "w,twice", "s", NULL);
    pb_attr_graph(&attrs, "body", &body);
    pb_node(&g, "SequenceMap", "s", "mapped", &attrs);
    pb_attr_int(&along, "axis", 0);
    pb_node(&g, "ConcatFromSequence", "mapped", "y", &along);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    double y[4];
    CHECK_INT(run_model(p, NULL, 0, NULL, y, 4), 4);
    for (int k = 0; k < 4; k++)
        CHECK(y[k] == -numbers[k % 2] * (1 + k / 2));
    mgx_program_destroy(p);
}

// --- unsupported operators ---

// An operator of a domain that is nobody's means what the standard one of its name does; one of a
// domain that has operators here is missing there.
static bool negates(const char *domain)
{
    struct pb g = {0}, none = {0};
    double y[2] = {0, 0};
    pb_input(&g, "w", INT64, 1, (int64_t[]){2});
    pb_ints(&g, "w", two_three, 2);
    pb_node_of(&g, 1, domain, "Neg", "w", "y", &none);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    pb_opset(&m, 8, domain, 1);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    const bool good = p && run_model(p, NULL, 0, NULL, y, 2) == 2 && y[0] == -2 && y[1] == -3;
    mgx_program_destroy(p);
    return good;
}

CASE(operators_of_domains_that_are_nobodys)
{
    CHECK(negates("some.house"));
    CHECK(!negates("com.microsoft"));
}

CASE(operators_are_listed_in_order_and_once)
{
    const int count = mgx_onnx_operator_count();
    CHECK(count > 200 && !mgx_onnx_operator_name(count) && !mgx_onnx_operator_name(-1));
    for (int i = 1; i < count; i++) // rules are found by bisection over this order
        CHECK(strcmp(mgx_onnx_operator_name(i - 1), mgx_onnx_operator_name(i)) < 0);
}

CASE(lists_all_operators_that_are_missing)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node(&g, "NoSuchOp", "x", "a", NULL);
    pb_node(&g, "Relu", "a", "b", NULL);
    pb_node_of(&g, 1, "acme", "OtherOp", "b", "c", NULL);
    pb_node(&g, "NoSuchOp", "c", "d", NULL);
    pb_output(&g, "d");
    struct pb m = pb_model(&g, 17), again = {0};
    pb_raw(&again, m.data, m.size);
    struct mgx_diag diag;
    CHECK(!import_model(&m, NULL, &diag));
    CHECK_INT(diag.status, MGX_UNSUPPORTED);
    CHECK(strstr(diag.text, "2 operators are not supported"));
    CHECK(strstr(diag.text, "NoSuchOp (opset 17)"));
    CHECK(strstr(diag.text, "2 nodes, first \"a\""));
    CHECK(strstr(diag.text, "acme::OtherOp"));

    const struct mgx_onnx_options quick = {.quick_reject = true};
    m = again;
    CHECK(refused_with(&m, &quick, MGX_UNSUPPORTED, "NoSuchOp"));
}

CASE(unknown_operators_may_be_kept)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 2, two_three);
    pb_node(&g, "NoSuchOp", "x", "a", NULL);
    pb_node(&g, "Relu", "a", "b", NULL);
    pb_output(&g, "b");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    const struct mgx_onnx_options keep = {.skip_unknown_operators = true};
    struct mgx_program *p = import_model(&m, &keep, &diag);
    CHECK(p);
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    CHECK(strstr(mgx_str_text(&text), "unknown") && strstr(mgx_str_text(&text), "NoSuchOp"));
    mgx_str_fini(&text);
    mgx_program_destroy(p);
}

// --- shapes of inputs ---

static bool input_is(struct pb *m, const struct mgx_onnx_options *options, const char *expected)
{
    struct mgx_diag diag;
    struct mgx_program *p = import_model(m, options, &diag);
    struct mgx_str text = {0};
    if (p)
        mgx_shape_print(&text, &mgx_find_parameter(mgx_program_main(p), "x")->shape);
    const bool ok = p && strcmp(mgx_str_text(&text), expected) == 0;
    if (!ok)
        printf("input is %s, expected %s\n", p ? mgx_str_text(&text) : diag.text, expected);
    mgx_str_fini(&text);
    mgx_program_destroy(p);
    return ok;
}

// x of {N, 3, ?, 0}.
static struct pb free_model(void)
{
    struct pb g = {0}, shape = {0}, tensor = {0}, type = {0}, info = {0}, dim = {0};
    pb_text(&dim, 2, "N");
    pb_message(&shape, 1, &dim);
    pb_int(&dim, 1, 3);
    pb_message(&shape, 1, &dim);
    pb_message(&shape, 1, &dim); // says nothing
    pb_int(&dim, 1, 0);
    pb_message(&shape, 1, &dim);
    pb_int(&tensor, 1, FLOAT);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_text(&info, 1, "x");
    pb_message(&info, 2, &type);
    pb_message(&g, 11, &info);
    pb_output(&g, "x");
    return pb_model(&g, 17);
}

// A caller that gives other sizes than those that were assumed is told so, and what to do.
CASE(assumed_sizes_are_explained)
{
    static float values[16];
    struct mgx_diag diag;
    struct pb m = free_model();
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    const struct mgx_compile_options options = {.offload_copy = true};
    CHECK_OK(mgx_program_compile(p, mgx_target_find("ref"), &options, &diag), diag);
    const struct mgx_named_tensor given = {"x", floats(values, 4, (int64_t[]){4, 3, 1, 1})};
    struct mgx_tensor results[1] = {0};
    struct mgx_run run = {
        .params = &given, .param_count = 1, .results = results, .result_count = 1};
    CHECK(mgx_program_run(p, &run, &diag) != MGX_OK);
    CHECK(strstr(diag.text, "should be: float_type, {1, 3, 1, 0}"));
    CHECK(strstr(diag.text, "\n  the model leaves axes 0 (\"N\"), 2 open, and they were set to 1: "
                            "default_dim_value"));
    mgx_program_destroy(p);

    const struct mgx_onnx_options asked = {.default_dim_value = 5};
    m = free_model();
    p = import_model(&m, &asked, &diag);
    CHECK(p && !mgx_program_find_hint(p, "x"));
    mgx_program_destroy(p);
}

// An image of 1 x 1 that nobody asked for is too small for most models.
CASE(assumed_sizes_that_do_not_fit_are_explained)
{
    struct pb g = {0}, attrs = {0};
    pb_attr_ints(&attrs, "kernel_shape", (int64_t[]){2, 2}, 2);
    pb_input(&g, "x", FLOAT, 4, (int64_t[]){1, 3, -1, -1});
    pb_node(&g, "MaxPool", "x", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused_with(&m, NULL, MGX_INVALID,
                       "in a program with assumed sizes: of x the model leaves axes 2, 3 open, and "
                       "they were set to 1: default_dim_value"));
}

// Sizes of another rank than the model declares are named where they do not work out.
CASE(sizes_of_another_rank_are_named)
{
    const struct mgx_dim dims[] = {{.min = 2, .max = 2}};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 1}};
    const struct mgx_onnx_options o = {.inputs = inputs, .input_count = 1};
    struct pb g = {0}, attrs = {0};
    pb_attr_ints(&attrs, "perm", (int64_t[]){1, 0}, 2);
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){2, 3});
    pb_node(&g, "Transpose", "x", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused_with(&m, &o, MGX_INVALID,
                       "a model whose input \"x\" was given 1 sizes where it declares 2"));
}

// Rank of the result of a graph that makes {3} and declares these lengths, 0 for an open one.
static int rank_of_declared(int rank, const int64_t *lens)
{
    struct mgx_diag diag;
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){3});
    pb_node(&g, "Relu", "x", "y", NULL);
    struct pb y = pb_value("y", FLOAT, rank, lens);
    pb_message(&g, 12, &y);
    struct pb m = pb_model(&g, 17);
    struct mgx_program *p = import_model(&m, NULL, &diag);
    const int found = p ? mgx_module_result(mgx_program_main(p), 0)->shape.rank : -1;
    mgx_program_destroy(p);
    return found;
}

CASE(declared_axes_of_length_1_are_added_behind)
{
    CHECK_INT(rank_of_declared(1, (int64_t[]){3}), 1);
    CHECK_INT(rank_of_declared(2, (int64_t[]){2, 1}), 2); // whatever it says of what is there
    CHECK_INT(rank_of_declared(3, (int64_t[]){3, 1, 1}), 3);
    CHECK_INT(rank_of_declared(2, (int64_t[]){1, 3}), 1);
    CHECK_INT(rank_of_declared(2, (int64_t[]){3, -1}), 1);
}

CASE(options_settle_free_dimensions)
{
    struct pb m = free_model();
    CHECK(input_is(&m, NULL, "float_type, {1, 3, 1, 0}, {0, 0, 0, 1}"));

    struct mgx_onnx_options o = {.default_dim_value = 5};
    m = free_model();
    CHECK(input_is(&m, &o, "float_type, {5, 3, 5, 5}, {75, 25, 5, 1}"));

    o = (struct mgx_onnx_options){.default_dyn_dim = {.min = 2, .max = 4}};
    m = free_model();
    CHECK(input_is(&m, &o, "dynamic, float_type, {[2..4], 3, [2..4], [2..4]}"));

    const struct mgx_onnx_dim_param params[] = {{"N", {.min = 7, .max = 7}}};
    o = (struct mgx_onnx_options){.dim_params = params, .dim_param_count = 1};
    m = free_model();
    CHECK(input_is(&m, &o, "float_type, {7, 3, 1, 0}, {0, 0, 0, 1}"));

    const struct mgx_onnx_dim_param behind[] = {{"M", {.min = 9, .max = 9}}, params[0]};
    o = (struct mgx_onnx_options){.dim_params = behind, .dim_param_count = 2};
    m = free_model();
    CHECK(input_is(&m, &o, "float_type, {7, 3, 1, 0}, {0, 0, 0, 1}"));

    const struct mgx_dim dims[] = {{.min = 2, .max = 2}, {.min = 1, .max = 9}};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 2}};
    o = (struct mgx_onnx_options){.inputs = inputs, .input_count = 1};
    m = free_model();
    CHECK(input_is(&m, &o, "dynamic, float_type, {2, [1..9]}"));

    const struct mgx_onnx_dims scalar[] = {{"x", NULL, 0}};
    o = (struct mgx_onnx_options){.inputs = scalar, .input_count = 1};
    m = free_model();
    CHECK(input_is(&m, &o, "float_type, {1}, {0}"));

    o = (struct mgx_onnx_options){.default_dim_value = 3, .default_dyn_dim = {.min = 2, .max = 4}};
    m = free_model();
    CHECK(refused_with(&m, &o, MGX_INVALID, "both set"));
}

// An image whose lengths a run brings, and one of which the model has them.
CASE(pools_over_all_of_an_open_image_take_its_lengths_from_the_run)
{
    const struct mgx_dim open[] = {
        {.min = 1, .max = 1}, {.min = 2, .max = 2}, {.min = 3, .max = 3}, {.min = 4, .max = 9}};
    const struct mgx_onnx_dims inputs[] = {{"x", open, 4}};
    const struct mgx_onnx_options o = {.inputs = inputs, .input_count = 1};
    for (int i = 0; i < 2; i++) {
        struct mgx_diag diag;
        struct pb m = tiny_model("GlobalAveragePool(x:f[1,2,3,4])");
        struct mgx_program *p = import_model(&m, i ? &o : NULL, &diag);
        CHECK(p);
        const struct mgx_ins *ins = mgx_program_main(p)->first;
        while (ins && ins->op != &mgx_op_pooling)
            ins = ins->next;
        CHECK(ins);
        CHECK_INT(mgx_ins_int(ins, "dyn_global"), i);
        mgx_program_destroy(p);
    }
}

CASE(free_dimensions_keep_their_names)
{
    const struct mgx_onnx_options o = {.dynamic_dims = true};
    struct pb m = free_model();
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, &o, &diag);
    CHECK(p);
    const struct mgx_shape *x = &mgx_find_parameter(mgx_program_main(p), "x")->shape;
    CHECK(x->dims && x->dims[0].name && strcmp(x->dims[0].name, "N") == 0);
    CHECK(x->dims[0].min == 0 && x->dims[0].max == MGX_DIM_ANY);
    CHECK(x->dims[1].min == 3 && x->dims[1].max == 3);
    CHECK(!x->dims[2].name);
    mgx_program_destroy(p);
}

// --- functions ---

// f(a) = -(-(a * alpha)) through g, alpha by reference.
static void put_functions(struct pb *model)
{
    struct pb g = {0}, f = {0}, attrs = {0};
    pb_text(&g, 1, "g");
    pb_text(&g, 10, "local");
    pb_names(&g, 4, "a,unused");
    pb_names(&g, 5, "r");
    pb_text(&g, 6, "slope");
    pb_attr_ref(&attrs, "alpha", PB_FLOAT, "slope");
    pb_node_of(&g, 7, "", "LeakyRelu", "a", "r", &attrs);
    pb_opset(&g, 9, "", 17);
    pb_message(model, 25, &g);

    pb_text(&f, 1, "f");
    pb_text(&f, 10, "local");
    pb_names(&f, 4, "x");
    pb_names(&f, 5, "y");
    pb_text(&f, 6, "k");
    pb_attr_ref(&attrs, "slope", PB_FLOAT, "k");
    pb_node_of(&f, 7, "local", "g", "x", "t", &attrs);
    pb_node_of(&f, 7, "", "Neg", "t", "y", NULL);
    pb_opset(&f, 9, "", 17);
    pb_opset(&f, 9, "local", 1);
    pb_message(model, 25, &f);
}

CASE(functions_expand_with_their_attributes)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 2, two_three);
    pb_attr_float(&attrs, "k", 0.5f);
    pb_node_of(&g, 1, "local", "f", "x", "t", &attrs); // the caller's name equals an inner one
    pb_attr_float(&attrs, "k", 0.25f);
    pb_node_of(&g, 1, "local", "f", "t", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    put_functions(&m);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    struct mgx_tensor x = floats(six, 2, two_three);
    double y[6];
    CHECK_INT(run_model(p, &x, 1, NULL, y, 6), 6);
    for (int i = 0; i < 6; i++) {
        const double once = -(six[i] < 0 ? 0.5 * six[i] : six[i]);
        CHECK_NEAR(y[i], -(once < 0 ? 0.25 * once : once), 1e-6);
    }
    mgx_program_destroy(p);
}

// fK calls f(K-1) `calls` times; f0 is one node.
static struct pb tower(int levels, int calls)
{
    struct pb g = {0};
    char name[16], below[16], in[16], out[16];
    pb_input(&g, "x", FLOAT, 0, NULL);
    snprintf(name, sizeof name, "f%d", levels);
    pb_node_of(&g, 1, "local", name, "x", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    for (int i = 0; i <= levels; i++) {
        struct pb f = {0};
        snprintf(name, sizeof name, "f%d", i);
        snprintf(below, sizeof below, "f%d", i - 1);
        pb_text(&f, 1, name);
        pb_text(&f, 10, "local");
        pb_names(&f, 4, "v0");
        const int count = i ? calls : 1;
        for (int k = 0; k < count; k++) {
            snprintf(in, sizeof in, "v%d", k);
            snprintf(out, sizeof out, "v%d", k + 1);
            pb_node_of(&f, 7, i ? "local" : "", i ? below : "Neg", in, out, NULL);
        }
        snprintf(out, sizeof out, "v%d", count);
        pb_names(&f, 5, out);
        pb_opset(&f, 9, "", 17);
        pb_message(&m, 25, &f);
    }
    return m;
}

CASE(expansion_has_a_budget)
{
    struct pb m = tower(30, 2); // 2^30 nodes
    CHECK(refused(&m, MGX_LIMIT, "after the expansion of functions"));
    m = tower(5, 2);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_INT(mgx_program_main(p)->count, 32 + 2);
    mgx_program_destroy(p);
    m = tower(100, 1);
    CHECK(refused(&m, MGX_LIMIT, "nested deeper than 64"));
}

CASE(functions_that_reach_themselves_are_refused)
{
    for (int mutual = 0; mutual < 2; mutual++) {
        struct pb g = {0};
        pb_input(&g, "x", FLOAT, 0, NULL);
        pb_node_of(&g, 1, "local", "a", "x", "y", NULL);
        pb_output(&g, "y");
        struct pb m = pb_model(&g, 17);
        for (int i = 0; i <= mutual; i++) {
            struct pb f = {0};
            pb_text(&f, 1, i ? "b" : "a");
            pb_text(&f, 10, "local");
            pb_names(&f, 4, "x");
            pb_names(&f, 5, "y");
            pb_node_of(&f, 7, "local", mutual && !i ? "b" : "a", "x", "y", NULL);
            pb_message(&m, 25, &f);
        }
        CHECK(refused(&m, MGX_INVALID, "calls itself"));
    }
}

CASE(calls_must_fit_their_function)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node_of(&g, 1, "local", "f", "x,x", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    put_functions(&m);
    CHECK(refused(&m, MGX_INVALID, "takes 1 inputs, given 2"));
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_node_of(&g, 1, "local", "f", "x", "y,z", NULL);
    pb_output(&g, "y");
    m = pb_model(&g, 17);
    put_functions(&m);
    CHECK(refused(&m, MGX_INVALID, "gives 1 outputs, asked for 2"));
    pb_input(&g, "x", FLOAT, 0, NULL);
    m = pb_model(&g, 17);
    put_functions(&m);
    put_functions(&m);
    CHECK(refused(&m, MGX_INVALID, "is defined twice"));
}

// --- size ---

CASE(long_chains_need_no_stack)
{
    struct pb m = chain(200000, true);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_INT(mgx_program_main(p)->count, 200000 + 2);
    mgx_program_destroy(p);
}

CASE(limits_are_kept)
{
    struct pb m = chain(1000, false);
    const struct mgx_onnx_options few = {.limit_nodes = 999};
    CHECK(refused_with(&m, &few, MGX_LIMIT, "more than 999 nodes"));
    m = chain(100000, false);
    const struct mgx_onnx_options hasty = {.limit_seconds = 1e-9};
    CHECK(refused_with(&m, &hasty, MGX_LIMIT, "import takes longer"));
    struct pb g = {0};
    pb_ints(&g, "w", two_three, 2);
    m = pb_model(&g, 17);
    const struct mgx_onnx_options small = {.limit_bytes = 15};
    CHECK(refused_with(&m, &small, MGX_LIMIT, "tensor of 16 bytes"));
}

TEST_MAIN(ROW(no_part_of_a_split_is_negative) ROW(a_map_over_a_sequence) ROW(
    operators_of_domains_that_are_nobodys) ROW(imports_and_runs_one_node) ROW(names_nodes_as_origin)
              ROW(sorts_unsorted_nodes) ROW(a_wide_unsorted_node_is_linear) ROW(
                  names_cycles_and_missing_producers) ROW(refuses_names_defined_twice)
                  ROW(an_initialiser_that_is_an_input_is_a_constant) ROW(versions_are_checked) ROW(
                      absent_versions_have_defaults) ROW(operators_are_listed_in_order_and_once)
                      ROW(lists_all_operators_that_are_missing) ROW(unknown_operators_may_be_kept)
                          ROW(declared_axes_of_length_1_are_added_behind) ROW(
                              options_settle_free_dimensions) ROW(assumed_sizes_are_explained)
                              ROW(assumed_sizes_that_do_not_fit_are_explained)
                                  ROW(sizes_of_another_rank_are_named) ROW(
                                      pools_over_all_of_an_open_image_take_its_lengths_from_the_run)
                                      ROW(free_dimensions_keep_their_names)
                                          ROW(functions_expand_with_their_attributes)
                                              ROW(expansion_has_a_budget)
                                                  ROW(functions_that_reach_themselves_are_refused)
                                                      ROW(calls_must_fit_their_function)
                                                          ROW(long_chains_need_no_stack)
                                                              ROW(limits_are_kept))
