// SPDX-License-Identifier: MIT
// Models that import well and ask for the world when they run: loops without end, nests of loops,
// values and strings that double. Each run ends with an error that says what was too much.
#include "import.h"
#include "targets/target.h"

enum { FLOAT = 1, INT64 = 7, STRING = 8, BOOL = 9 };

static const float two[] = {1, 2};
static const struct mgx_eval fresh = {0};

// Loop body (i, c, s) to (c, node of s).
static struct pb body_of(const char *op, const char *in)
{
    struct pb b = {0}, attrs = {0};
    pb_input(&b, "i", INT64, 0, NULL);
    pb_input(&b, "c", BOOL, 0, NULL);
    struct pb s = {0};
    pb_text(&s, 1, "s"); // a value without a type takes that of its argument
    pb_message(&b, 11, &s);
    pb_node(&b, "Identity", "c", "go", NULL);
    if (strcmp(op, "Concat") == 0)
        pb_attr_int(&attrs, "axis", 0);
    pb_node(&b, op, in, "t", &attrs);
    pb_output(&b, "go");
    pb_output(&b, "t");
    return b;
}

static struct pb loop_model(const int64_t *trip, struct pb *take_body)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    if (trip) {
        struct pb m = pb_tensor_raw("m", INT64, 0, NULL, trip, sizeof *trip);
        pb_initializer(&g, &m);
    }
    pb_attr_graph(&attrs, "body", take_body);
    pb_node(&g, "Loop", trip ? "m,,x" : ",,x", "y", &attrs);
    pb_output(&g, "y");
    return pb_model(&g, 17);
}

// Runs on two numbers; on the reference as one that has spent `spent` before.
static enum mgx_status run_from(struct pb *take_model, const char *target, struct mgx_eval spent,
                                struct mgx_diag *diag)
{
    struct mgx_program *p = import_model(take_model, NULL, diag);
    if (!p)
        return diag->status;
    struct mgx_tensor results[1] = {0};
    struct mgx_named_tensor x = {.name = "x", .tensor = floats(two, 1, (int64_t[]){2})};
    enum mgx_status status;
    if (target) {
        const struct mgx_compile_options options = {.offload_copy = true};
        struct mgx_run run = {
            .params = &x, .param_count = 1, .results = results, .result_count = 1};
        status = mgx_program_compile(p, mgx_target_find(target), &options, diag);
        if (status == MGX_OK)
            status = mgx_program_run(p, &run, diag);
    } else {
        struct mgx_arena strings;
        mgx_arena_init(&strings);
        for (int i = 0; i < p->module_count; i++)
            mgx_module_number(p->modules[i]);
        struct mgx_eval e = spent;
        e.strings = &strings;
        e.limit_bytes = 1 << 20;
        status = mgx_eval_module(&e, mgx_program_main(p), &x.tensor, 1, results, diag);
        mgx_arena_fini(&strings);
    }
    mgx_tensor_release(&results[0]);
    mgx_program_destroy(p);
    return status;
}

// Result 0 of a compiled model on two numbers, which the caller releases.
static struct mgx_tensor result_of(struct pb *take_model, const char *target)
{
    struct mgx_diag diag;
    struct mgx_program *p = import_model(take_model, NULL, &diag);
    struct mgx_tensor y = {0};
    struct mgx_named_tensor x = {.name = "x", .tensor = floats(two, 1, (int64_t[]){2})};
    const struct mgx_compile_options options = {.offload_copy = true};
    struct mgx_run run = {.params = &x, .param_count = 1, .results = &y, .result_count = 1};
    if (mgx_program_compile(p, mgx_target_find(target), &options, &diag) != MGX_OK ||
        mgx_program_run(p, &run, &diag) != MGX_OK)
        printf("%s: %s\n", target, diag.text);
    mgx_program_destroy(p);
    return y;
}

CASE(loops_without_end_are_ended)
{
    static const int64_t endless[] = {INT64_MAX, (int64_t)1 << 62, (int64_t)1 << 31};
    static const char *const targets[] = {NULL, "ref", "cpu"};
    struct mgx_diag diag;
    for (int i = 0; i < 4; i++) {
        struct pb body = body_of("Neg", "s");
        struct pb m = loop_model(i < 3 ? &endless[i] : NULL, &body);
        CHECK_INT(run_from(&m, targets[i % 3], fresh, &diag), MGX_LIMIT);
        CHECK(strstr(diag.text, "still running after 65535 iterations"));
    }
    const int64_t none[] = {0, -1, INT64_MIN};
    for (int i = 0; i < 3; i++) {
        struct pb body = body_of("Neg", "s");
        struct pb m = loop_model(&none[i], &body);
        CHECK_INT(run_from(&m, targets[i], fresh, &diag), MGX_OK);
    }
}

CASE(nests_of_loops_have_one_budget)
{
    const int64_t trip = 1000;
    struct pb inner = body_of("Neg", "s");
    for (int depth = 0; depth < 6; depth++) { // 1000^7 rounds
        struct pb attrs = {0}, outer = {0}, s = {0};
        pb_input(&outer, "i", INT64, 0, NULL);
        pb_input(&outer, "c", BOOL, 0, NULL);
        pb_text(&s, 1, "s");
        pb_message(&outer, 11, &s);
        pb_attr_graph(&attrs, "body", &inner);
        pb_node(&outer, "Identity", "c", "go", NULL);
        pb_node(&outer, "Loop", "m,,s", "t", &attrs);
        pb_output(&outer, "go");
        pb_output(&outer, "t");
        inner = outer;
    }
    struct pb m = loop_model(&trip, &inner);
    struct mgx_diag diag;
    const struct mgx_eval late = {.rounds = MGX_EVAL_MAX_ROUNDS - 10000};
    CHECK_INT(run_from(&m, NULL, late, &diag), MGX_LIMIT);
    CHECK(strstr(diag.text, "loop: still running after 2097152 rounds"));
}

CASE(values_that_double_meet_the_limit)
{
    const int64_t trip = 200;
    struct pb body = body_of("Concat", "s,s");
    struct pb m = loop_model(&trip, &body);
    struct mgx_diag diag;
    CHECK_INT(run_from(&m, NULL, fresh, &diag), MGX_LIMIT);
    CHECK(strstr(diag.text, "above the limit of 1048576 bytes"));
}

CASE(strings_that_double_meet_a_limit)
{
    struct pb g = {0}, t = pb_tensor("v0", STRING, 1, (int64_t[]){1});
    char name[16], pair[40];
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_text(&t, 6, "sixteen letters.");
    pb_initializer(&g, &t);
    for (int i = 0; i < 60; i++) {
        snprintf(pair, sizeof pair, "v%d,v%d", i, i);
        snprintf(name, sizeof name, "v%d", i + 1);
        pb_node(&g, "StringConcat", pair, name, NULL);
    }
    pb_output(&g, "v60");
    struct pb m = pb_model(&g, 20);
    struct mgx_diag diag;
    CHECK_INT(run_from(&m, NULL, fresh, &diag), MGX_LIMIT);
    CHECK(strstr(diag.text, "strings of this run are longer than"));
}

// A sequence that starts as (x) and gets another x every round.
static struct pb growing_sequence(const int64_t *trip, const char *added)
{
    struct pb body = body_of("SequenceInsert", added), attrs = {0}, g = {0}, to = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_attr_int(&to, "to", INT64);
    pb_node(&g, "Cast", "x", "i64", &to);
    pb_node(&g, "SequenceConstruct", "x", "s0", NULL);
    pb_attr_graph(&attrs, "body", &body);
    if (trip) {
        struct pb m = pb_tensor_raw("m", INT64, 0, NULL, trip, sizeof *trip);
        pb_initializer(&g, &m);
    }
    pb_node(&g, "Loop", trip ? "m,,s0" : ",,s0", "s1", &attrs);
    pb_node(&g, "SequenceLength", "s1", "y", NULL);
    pb_output(&g, "y");
    return pb_model(&g, 17);
}

CASE(sequences_that_grow_meet_a_limit)
{
    struct pb m = growing_sequence(NULL, "s,x");
    struct mgx_diag diag;
    const struct mgx_eval late = {.members = MGX_EVAL_MAX_MEMBERS - 5000};
    CHECK_INT(run_from(&m, NULL, late, &diag), MGX_LIMIT);
    CHECK(strstr(diag.text, "copied more than 33554432 members"));
    m = growing_sequence(NULL, "s,i64");
    CHECK(refused(&m, MGX_INVALID, "members are float_type, the new one int64_type"));
}

// Members that are appended stay where they are: all copies of an honest loop are far from the
// limit, and one without end meets that of its rounds.
CASE(sequences_grow_in_place)
{
    static const char *const targets[] = {"ref", "cpu"};
    const int64_t trip = 20000;
    struct mgx_diag diag;
    for (int i = 0; i < 2; i++) {
        struct pb m = growing_sequence(&trip, "s,x");
        struct mgx_tensor y = result_of(&m, targets[i]);
        CHECK(y.data && *(int64_t *)y.data == trip + 1);
        mgx_tensor_release(&y);
        m = growing_sequence(NULL, "s,x");
        CHECK_INT(run_from(&m, targets[i], fresh, &diag), MGX_LIMIT);
        CHECK(strstr(diag.text, "still running after 65535 iterations"));
    }
}

// What Scan and Loop stack are tensors; a sequence there has no lengths to stack along.
CASE(rows_that_are_sequences)
{
    const int64_t trip = 3;
    struct pb body = body_of("Neg", "s");
    pb_node(&body, "SequenceConstruct", "s", "q", NULL);
    pb_output(&body, "q");
    struct pb m = loop_model(&trip, &body);
    CHECK(refused(&m, MGX_INVALID, "loop: rows are tensors, the body makes one a sequence"));
    struct pb scan = {0}, attrs = {0}, g = {0}, q = {0};
    pb_text(&q, 1, "q");
    pb_message(&scan, 11, &q);
    pb_node(&scan, "SequenceConstruct", "q", "r", NULL);
    pb_output(&scan, "r");
    pb_attr_graph(&attrs, "body", &scan);
    pb_attr_int(&attrs, "num_scan_inputs", 1);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_node(&g, "Scan", "x", "y", &attrs);
    pb_output(&g, "y");
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "scan: rows are tensors, the body makes one a sequence"));
}

CASE(trip_counts_are_integers)
{
    struct pb body = body_of("Neg", "s"), attrs = {0}, g = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_input(&g, "m", FLOAT, 0, NULL);
    pb_attr_graph(&attrs, "body", &body);
    pb_node(&g, "Loop", "m,,x", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "the trip count is float_type, not an integer"));
}

CASE(a_map_over_an_absent_input)
{
    struct pb body = {0}, attrs = {0}, g = {0};
    pb_input(&body, "q", FLOAT, 1, (int64_t[]){2});
    pb_input(&body, "r", FLOAT, 1, (int64_t[]){2});
    pb_node(&body, "Neg", "q", "p", NULL);
    pb_output(&body, "p");
    pb_attr_graph(&attrs, "body", &body);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_node(&g, "SequenceConstruct", "x,x", "s", NULL);
    pb_node(&g, "SequenceMap", "s,,x", "t", &attrs);
    pb_node(&g, "SequenceLength", "t", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "required input 1 is absent"));
}

CASE(a_scan_over_an_absent_input)
{
    struct pb body = {0}, attrs = {0}, g = {0};
    pb_input(&body, "s", FLOAT, 0, NULL);
    pb_input(&body, "q", FLOAT, 0, NULL);
    pb_node(&body, "Neg", "q", "p", NULL);
    pb_output(&body, "s");
    pb_output(&body, "p");
    pb_attr_graph(&attrs, "body", &body);
    pb_attr_int(&attrs, "num_scan_inputs", 1);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_node(&g, "Scan", ",x", "s1,y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "required input 0 is absent"));
}

CASE(rates_of_linear_attention_have_a_rank)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 3, (int64_t[]){1, 2, 4});
    pb_input(&g, "b", FLOAT, 0, NULL);
    pb_attr_int(&attrs, "q_num_heads", 2);
    pb_attr_int(&attrs, "kv_num_heads", 2);
    pb_attr_text(&attrs, "update_rule", "delta");
    pb_node(&g, "LinearAttention", "x,x,x,,,b", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 26);
    CHECK(refused(&m, MGX_INVALID, "beta has rank 0, not 3"));
}

// Row + k must not wrap: everything is below the diagonal 2^63 - 1, nothing below -2^63.
CASE(diagonals_far_outside)
{
    static const int64_t far[2] = {INT64_MAX, INT64_MIN};
    static const float x[] = {1, 2, 3, 4, 5, 6};
    for (int upper = 0; upper < 2; upper++)
        for (int i = 0; i < 2; i++) {
            struct pb g = {0}, attrs = {0};
            struct pb k = pb_tensor_raw("k", INT64, 0, NULL, &far[i], sizeof far[i]);
            pb_initializer(&g, &k);
            pb_input(&g, "x", FLOAT, 2, (int64_t[]){2, 3});
            pb_attr_int(&attrs, "upper", upper);
            pb_node(&g, "Trilu", "x,k", "y", &attrs);
            pb_output(&g, "y");
            struct pb m = pb_model(&g, 17);
            struct mgx_diag diag;
            struct mgx_program *p = import_model(&m, NULL, &diag);
            CHECK(p);
            double y[6];
            const struct mgx_tensor arg = floats(x, 2, (int64_t[]){2, 3});
            CHECK_INT(run_model(p, &arg, 1, NULL, y, 6), 6);
            for (int e = 0; e < 6; e++)
                CHECK_NEAR(y[e], upper == i ? x[e] : 0, 0);
            mgx_program_destroy(p);
        }
}

// Two scores and a target: classes 0 and 1, or -1 from the end; others are no class.
CASE(targets_must_be_classes)
{
    static const int64_t targets[] = {1, -1, 2, -3, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        struct pb g = {0}, attrs = {0};
        const int64_t shape[] = {1, 2};
        pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
        pb_ints(&g, "s", shape, 2);
        pb_ints(&g, "t", &targets[i], 1);
        pb_node(&g, "Reshape", "x,s", "z", NULL);
        pb_attr_int(&attrs, "ignore_index", -2);
        pb_node(&g, "NegativeLogLikelihoodLoss", "z,t", "y", &attrs);
        pb_output(&g, "y");
        struct pb m = pb_model(&g, 17);
        struct mgx_diag diag;
        if (i > 1) {
            CHECK(run_from(&m, i % 2 ? "cpu" : NULL, fresh, &diag) != MGX_OK);
            char wanted[64];
            snprintf(wanted, sizeof wanted, "index %lld is out of range for a",
                     (long long)targets[i]);
            CHECK(strstr(diag.text, wanted));
            continue;
        }
        struct mgx_program *p = import_model(&m, NULL, &diag);
        const struct mgx_tensor arg = floats(two, 1, (int64_t[]){2});
        double y = 0;
        CHECK_INT(run_model(p, &arg, 1, NULL, &y, 1), 1);
        CHECK_NEAR(y, -2, 0);
        mgx_program_destroy(p);
    }
}

CASE(constants_have_one_value)
{
    struct pb g = {0}, attrs = {0};
    pb_attr_int(&attrs, "value_int", 1);
    pb_attr_float(&attrs, "value_float", 2);
    pb_node(&g, "Constant", "", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "has both value_int and value_float"));
}

// A model over x with the string "2.5" as the constant t.
static struct pb with_text(const char *second)
{
    struct pb g = {0}, to = {0}, t = pb_tensor("t", STRING, 0, NULL);
    pb_text(&t, 6, "2.5");
    pb_initializer(&g, &t);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_attr_int(&to, "to", FLOAT);
    pb_node(&g, "Cast", "t", "k", &to);
    pb_node(&g, "Add", "x,k", "y", NULL);
    pb_output(&g, second);
    return pb_model(&g, 17);
}

CASE(constants_may_be_strings)
{
    static const char *const targets[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        struct pb m = with_text("y");
        struct mgx_tensor y = result_of(&m, targets[i]);
        CHECK_INT(mgx_shape_elements(&y.shape), 2);
        CHECK_NEAR(((float *)y.data)[0], 3.5, 0);
        CHECK_NEAR(((float *)y.data)[1], 4.5, 0);
        mgx_tensor_release(&y);
        m = with_text("t");
        y = result_of(&m, targets[i]);
        CHECK_INT(y.shape.type, MGX_STRING);
        const struct mgx_string *text = y.data;
        CHECK(text->size == 3 && memcmp(text->text, "2.5", 3) == 0);
        mgx_tensor_release(&y);
    }
}

// Twenty functions, each an If that calls the next in both branches: 2^20 bodies.
CASE(bodies_are_counted)
{
    struct pb g = {0}, m;
    char call[16], name[16];
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){1});
    pb_node_of(&g, 1, "d", "f0", "x", "y", NULL);
    pb_output(&g, "y");
    m = pb_model(&g, 17);
    pb_opset(&m, 8, "d", 1);
    for (int i = 0; i <= 20; i++) {
        struct pb f = {0}, attrs = {0}, to = {0};
        snprintf(name, sizeof name, "f%d", i);
        snprintf(call, sizeof call, "f%d", i + 1);
        pb_text(&f, 1, name);
        pb_text(&f, 4, "a");
        pb_text(&f, 5, "r");
        for (int k = 0; k < 2 && i < 20; k++) {
            struct pb branch = {0};
            pb_node_of(&branch, 1, "d", call, "a", "q", NULL);
            pb_output(&branch, "q");
            pb_attr_graph(&attrs, k ? "else_branch" : "then_branch", &branch);
        }
        pb_attr_int(&to, "to", BOOL);
        pb_node_of(&f, 7, "", i < 20 ? "Cast" : "Neg", "a", i < 20 ? "c" : "r", &to);
        if (i < 20)
            pb_node_of(&f, 7, "", "If", "c", "r", &attrs);
        pb_opset(&f, 9, "", 17);
        pb_opset(&f, 9, "d", 1);
        pb_text(&f, 10, "d");
        pb_message(&m, 25, &f);
    }
    CHECK(refused(&m, MGX_LIMIT, "more than 32768 bodies"));
}

// 12 EiB are refused where they are asked for, by import, by compile or by the run.
CASE(results_beyond_all_memory)
{
    static const char *const targets[] = {NULL, "ref", "cpu"};
    for (int i = 0; i < 3; i++) {
        struct pb g = {0};
        const int64_t lens[] = {INT32_MAX, INT32_MAX};
        pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
        pb_ints(&g, "n", lens, 2);
        pb_node(&g, "ConstantOfShape", "n", "z", NULL);
        pb_node(&g, "Exp", "z", "y", NULL);
        pb_output(&g, "y");
        struct pb m = pb_model(&g, 17);
        struct mgx_diag diag;
        CHECK(run_from(&m, targets[i], fresh, &diag) != MGX_OK);
        CHECK(diag.text[0]);

        pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
        pb_ints(&g, "n", lens, 2);
        // By itself a view of one number; results of targets are packed.
        pb_node(&g, "ConstantOfShape", "n", "y", NULL);
        pb_output(&g, "y");
        m = pb_model(&g, 17);
        const enum mgx_status status = run_from(&m, targets[i], fresh, &diag);
        CHECK(i < 1 ? status == MGX_OK : diag.text[0]);
    }
}

static struct pb model_of_inputs(int count)
{
    struct pb g = {0};
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "x%d", i);
        pb_input(&g, name, FLOAT, 0, NULL);
    }
    pb_output(&g, "x7");
    return pb_model(&g, 17);
}

CASE(more_inputs_than_a_run_could_name)
{
    struct mgx_diag diag = {0};
    struct pb m = model_of_inputs(16385);
    CHECK(refused(&m, MGX_LIMIT, "the model has 16385 inputs, above the limit of 16384"));
    m = model_of_inputs(16384);
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p != NULL);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(loops_without_end_are_ended) ROW(nests_of_loops_have_one_budget)
              ROW(values_that_double_meet_the_limit) ROW(strings_that_double_meet_a_limit)
                  ROW(results_beyond_all_memory) ROW(sequences_that_grow_meet_a_limit)
                      ROW(sequences_grow_in_place) ROW(rows_that_are_sequences)
                          ROW(trip_counts_are_integers) ROW(a_map_over_an_absent_input)
                              ROW(diagonals_far_outside) ROW(targets_must_be_classes)
                                  ROW(constants_have_one_value) ROW(constants_may_be_strings)
                                      ROW(bodies_are_counted) ROW(a_scan_over_an_absent_input)
                                          ROW(rates_of_linear_attention_have_a_rank)
                                              ROW(more_inputs_than_a_run_could_name))
