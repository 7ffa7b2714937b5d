// SPDX-License-Identifier: MIT
// Hostile models: containers, structure and resources. Each one must end in an error that says why,
// quickly, with everything given back (the sanitizer builds see to the latter).
// Hostile operators are in hostile_op_test.c, tensors and files in tensor_test.c and
// external_test.c, order and functions in graph_test.c.
#include <time.h>

#include "import.h"
#include "targets/target.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static double seconds_now(void) // of the processor: a busy machine fails nothing
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct pb small_model(void)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){2, 3});
    struct pb w = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){3}, "abcdefghijkl", 12);
    pb_initializer(&g, &w);
    pb_attr_float(&attrs, "alpha", 0.5f);
    pb_node(&g, "LeakyRelu", "x", "a", &attrs);
    pb_node(&g, "Add", "a,w", "y", NULL);
    pb_output(&g, "y");
    return pb_model(&g, 17);
}

// Whatever comes of it, a failure has a text and nothing crashes.
static bool survives(const void *data, size_t size)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    uint8_t *exact = malloc(size ? size : 1);
    if (size)
        memcpy(exact, data, size);
    const enum mgx_status status = mgx_onnx_import_buffer(&p, exact, size, false, NULL, &diag);
    mgx_program_destroy(p);
    free(exact);
    return (status == MGX_OK) == (p != NULL) && (p || diag.text[0]);
}

// --- container ---

static bool not_a_model(const void *data, size_t size)
{
    struct pb m = {0};
    pb_raw(&m, data, size);
    return refused(&m, MGX_INVALID, "not an ONNX model");
}

CASE(other_files_are_not_models)
{
    static const char text[] = "This is a text file.\nIt has lines.\n";
    static const uint8_t gzip[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 4, 0};
    CHECK(not_a_model("", 0));
    CHECK(not_a_model("\0", 1));
    CHECK(not_a_model("\x08", 1));
    CHECK(not_a_model("\x3A", 1));
    CHECK(not_a_model(text, sizeof text - 1));
    CHECK(not_a_model(gzip, sizeof gzip));
    CHECK(not_a_model("\x3A\xFF\xFF\xFF\xFF\x0F", 6)); // a graph of 4 GiB
}

static bool taken_for(const char *text, size_t size, const char *what)
{
    struct pb m = {0};
    pb_raw(&m, text, size);
    return refused(&m, MGX_INVALID, what);
}

CASE(what_people_take_for_models_is_named)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:12";
    CHECK(taken_for(lfs, sizeof lfs - 1, "git lfs pull"));
    CHECK(taken_for("<!DOCTYPE html>", 15, "a web page"));
    CHECK(taken_for("PK\x03\x04\x14\0\0\0", 8, "a zip archive"));
    CHECK(taken_for("{\"graph\": 1}", 12, "JSON"));
    CHECK(taken_for("\xFF\xD8\xFF\xE0\0\x10JFIF", 10, "a JPEG image, which is an input"));
    CHECK(taken_for("\x89PNG\r\n\x1A\n", 8, "a PNG image"));
    CHECK(taken_for("PK\x03\x04\0\0\0\0archive/data.pkl", 24, "a PyTorch file (torch.onnx.export"));
    CHECK(taken_for("PK\x03\x04\0\0\0\0metadata.json", 21, "a Keras model (Keras' model.export"));
    CHECK(taken_for("PK\x03\x04\0\0\0\0x.npy", 13, "an archive of NumPy arrays"));
    CHECK(taken_for("\x80\x02\x8A\nl\xFC", 6, "a Python pickle, as older PyTorch"));
    CHECK(taken_for("\x40\0\0\0\0\0\0\0{\"w\":", 13, "weights in safetensors"));
    CHECK(taken_for("\x1C\0\0\0TFL3", 8, "a TensorFlow Lite model"));
    CHECK(taken_for("%PDF-1.7", 8, "a PDF document"));
    CHECK(taken_for("just words", 10, "text"));
}

CASE(cut_off_anywhere)
{
    struct pb m = small_model();
    for (size_t i = 0; i < m.size; i++)
        if (!survives(m.data, i))
            CHECK_FAIL("cut at %zu of %zu", i, m.size);
    pb_free(&m);
}

CASE(any_byte_changed)
{
    struct pb m = small_model();
    srand(11);
    for (size_t i = 0; i < m.size; i++)
        for (int k = 0; k < 6; k++) {
            const uint8_t old = m.data[i];
            m.data[i] = (uint8_t)(k == 0 ? 0xFF : k == 1 ? 0 : k == 2 ? old + 1 : rand());
            const bool ok = survives(m.data, m.size);
            m.data[i] = old;
            if (!ok)
                CHECK_FAIL("byte %zu", i);
        }
    pb_free(&m);
}

CASE(trailing_bytes_are_an_error)
{
    struct pb m = small_model();
    pb_raw(&m, "\0\0\0\0", 4);
    CHECK(refused(&m, MGX_INVALID, "not an ONNX model"));
    m = small_model();
    struct pb twice = small_model();
    pb_raw(&m, twice.data, twice.size);
    pb_free(&twice);
    CHECK(refused(&m, MGX_INVALID, "occurs twice"));
}

CASE(wrong_wire_types)
{
    struct pb m = {0};
    pb_int(&m, 7, 5); // graph as a number
    CHECK(refused(&m, MGX_INVALID, "should be a message"));
    struct pb g = {0};
    pb_int(&g, 1, 5); // node as a number
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "is a number"));
    struct pb n = {0};
    pb_int(&n, 4, 5); // op_type as a number
    pb_message(&g, 1, &n);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "should be text"));
    pb_text(&g, 99, "unknown fields are skipped");
    pb_input(&g, "x", FLOAT, 0, NULL);
    pb_output(&g, "x");
    m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    mgx_program_destroy(p);
}

// --- names ---

static bool refuses_name(const char *name, size_t size, enum mgx_status status)
{
    struct pb g = {0}, n = {0};
    pb_bytes(&n, 2, name, size);
    pb_text(&n, 4, "Constant");
    pb_message(&g, 1, &n);
    struct pb m = pb_model(&g, 17);
    return refused(&m, status, "name");
}

CASE(names_must_be_text)
{
    CHECK(refuses_name("a\0b", 3, MGX_INVALID));
    CHECK(refuses_name("\xFF\xFE", 2, MGX_INVALID));
    CHECK(refuses_name("\xC0\x80", 2, MGX_INVALID));
    const size_t huge = (size_t)64 << 20;
    char *name = malloc(huge);
    memset(name, 'n', huge);
    CHECK(refuses_name(name, huge, MGX_LIMIT));
    free(name);
}

// --- depth and breadth ---

// Graph -> node -> attribute -> graph -> ..., written from the inside out: each level is a header
// before what is there already.
static struct pb nested(int depth)
{
    const size_t room = (size_t)depth * 64;
    uint8_t *buffer = malloc(room), *p = buffer + room;
    for (int i = 0; i < 3 * depth; i++) {
        static const int fields[] = {6, 5, 1}; // graph of an attribute of a node of a graph
        struct pb head = {0};
        if (i % 3 == 2)
            pb_text(&head, 4, "If");
        const size_t size = (size_t)(buffer + room - p) + head.size;
        struct pb whole = {0};
        pb_varint(&whole, (uint64_t)fields[i % 3] << 3 | 2);
        pb_varint(&whole, size);
        pb_raw(&whole, head.data, head.size);
        p -= whole.size;
        memcpy(p, whole.data, whole.size);
        pb_free(&head);
        pb_free(&whole);
    }
    struct pb g = {0};
    pb_raw(&g, p, (size_t)(buffer + room - p));
    free(buffer);
    return pb_model(&g, 17);
}

CASE(deep_nests_stop_at_the_limit)
{
    struct pb m = nested(100000);
    CHECK(refused(&m, MGX_LIMIT, "nested deeper than 64"));
    m = nested(65);
    CHECK(refused(&m, MGX_LIMIT, "nested deeper than 64"));
}

CASE(a_million_inputs_on_one_node)
{
    struct pb g = {0}, n = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){1});
    for (int i = 0; i < 1000000; i++)
        pb_text(&n, 1, "x");
    pb_text(&n, 2, "y");
    pb_text(&n, 4, "Concat");
    pb_attr_int(&n, "axis", 0);
    pb_message(&g, 1, &n);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    const double start = seconds_now();
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_INT(mgx_module_result(mgx_program_main(p), 0)->shape.lens[0], 1000000);
    mgx_program_destroy(p);
    CHECK(seconds_now() - start < 20);
}

CASE(a_million_attributes)
{
    struct pb g = {0}, n = {0};
    char name[16];
    for (int i = 0; i < 1000000; i++) {
        snprintf(name, sizeof name, "a%d", i);
        pb_attr_int(&n, name, i);
    }
    pb_text(&n, 2, "y");
    pb_text(&n, 4, "Constant");
    pb_message(&g, 1, &n);
    struct pb m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_LIMIT, "1000000 attributes"));
    struct pb attrs = {0};
    pb_attr_int(&attrs, "axis", 0);
    pb_attr_int(&attrs, "axis", 1);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){4});
    pb_node(&g, "Softmax", "x", "y", &attrs);
    m = pb_model(&g, 17);
    CHECK(refused(&m, MGX_INVALID, "given twice"));
}

CASE(many_consumers_are_linear)
{
    enum { MANY = 100000 };
    struct pb g = {0};
    char name[16];
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){1});
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "v%d", i);
        pb_node(&g, "Neg", "x", name, NULL);
    }
    pb_output(&g, "v0");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    const double start = seconds_now();
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    mgx_program_destroy(p);
    CHECK(seconds_now() - start < 10);
}

// --- bodies ---

// If over the given branches on input c.
static struct pb if_model(struct pb *take_then, struct pb *take_else)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "c", BOOL, 0, NULL);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_node(&g, "Neg", "x", "outer", NULL);
    pb_attr_graph(&attrs, "then_branch", take_then);
    pb_attr_graph(&attrs, "else_branch", take_else);
    pb_node(&g, "If", "c", "y", &attrs);
    pb_output(&g, "y");
    return pb_model(&g, 17);
}

static struct pb branch(const char *op, const char *in, const char *out)
{
    struct pb g = {0};
    pb_node(&g, op, in, out, NULL);
    pb_output(&g, out);
    return g;
}

static double run_if(struct mgx_program *p, bool condition)
{
    static const float x[] = {3, 4};
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_BOOL);
    const uint8_t c = condition;
    double y[2] = {NAN, NAN};
    struct mgx_tensor args[] = {mgx_tensor_borrow(&scalar, &c), floats(x, 1, (int64_t[]){2})};
    run_model(p, args, 2, NULL, y, 2);
    return y[0];
}

CASE(bodies_capture_and_shadow)
{
    struct pb yes = branch("Abs", "outer", "r");     // captures a node's result
    struct pb no = branch("Identity", "x", "outer"); // makes a name of the outer graph its own
    struct pb m = if_model(&yes, &no);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s\n", diag.text);
    CHECK(p);
    CHECK_NEAR(run_if(p, true), 3, 0);
    CHECK_NEAR(run_if(p, false), 3, 0);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_program_destroy(p);
}

CASE(captures_are_found_before_their_reader)
{
    // The node that makes "late" stands after the If that captures it.
    struct pb yes = branch("Abs", "late", "r"), no = branch("Neg", "late", "r"), g = {0},
              attrs = {0};
    pb_input(&g, "c", BOOL, 0, NULL);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_attr_graph(&attrs, "then_branch", &yes);
    pb_attr_graph(&attrs, "else_branch", &no);
    pb_node(&g, "If", "c", "y", &attrs);
    pb_node(&g, "Neg", "x", "late", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK_NEAR(run_if(p, true), 3, 0);
    CHECK_NEAR(run_if(p, false), 3, 0);
    mgx_program_destroy(p);
}

CASE(cycles_through_captures_are_seen)
{
    struct pb yes = branch("Abs", "y", "r"), no = branch("Neg", "x", "r");
    struct pb m = if_model(&yes, &no);
    CHECK(refused(&m, MGX_INVALID, "cycle"));
    yes = branch("Abs", "nowhere", "r");
    no = branch("Neg", "x", "r");
    m = if_model(&yes, &no);
    CHECK(refused(&m, MGX_INVALID, "\"nowhere\" is produced by no node"));
}

CASE(branches_must_agree)
{
    struct pb yes = branch("Abs", "x", "r"), no = branch("Neg", "x", "r");
    pb_output(&no, "r"); // one result more
    struct pb m = if_model(&yes, &no);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(!p);
    CHECK(diag.text[0]);
    struct pb attrs = {0};
    pb_attr_int(&attrs, "to", INT64);
    yes = branch("Abs", "x", "r");
    no = (struct pb){0};
    pb_node(&no, "Cast", "x", "r", &attrs); // another type
    pb_output(&no, "r");
    m = if_model(&yes, &no);
    p = import_model(&m, NULL, &diag);
    CHECK(!p);
    CHECK(diag.text[0]);
}

// A branch of nodes that cannot have these sizes: x {2} by a constant of three, behind an If of its
// own that is well.
static struct pb misfit(void)
{
    struct pb g = {0}, attrs = {0}, yes = branch("Abs", "x", "r"), no = branch("Neg", "x", "r");
    struct pb t = pb_tensor_raw("three", FLOAT, 1, (int64_t[]){3}, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    pb_initializer(&g, &t);
    pb_attr_graph(&attrs, "then_branch", &yes);
    pb_attr_graph(&attrs, "else_branch", &no);
    pb_node(&g, "If", "c", "inner", &attrs);
    pb_node(&g, "Add", "inner,three", "r", NULL);
    pb_output(&g, "r");
    return g;
}

// Compiles for the target, which takes the program over, and runs; false with the text in *diag.
static bool run_on(struct mgx_program *p, const char *target, bool condition, float *out,
                   struct mgx_diag *diag)
{
    static float x[] = {3, 4};
    uint8_t c = condition;
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_BOOL);
    const struct mgx_named_tensor in[] = {{"c", mgx_tensor_borrow(&scalar, &c)},
                                          {"x", floats(x, 1, (int64_t[]){2})}};
    struct mgx_tensor results[1] = {0};
    struct mgx_run run = {.params = in, .param_count = 2, .results = results, .result_count = 1};
    mgx_diag_clear(diag);
    const struct mgx_compile_options options = {.offload_copy = true};
    if (!p->executable && mgx_program_compile(p, mgx_target_find(target), &options, diag) != MGX_OK)
        return false;
    if (mgx_program_run(p, &run, diag) != MGX_OK)
        return false;
    *out = *(const float *)results[0].data;
    mgx_tensor_release(&results[0]);
    return true;
}

CASE(a_branch_that_does_not_fit_fails_when_it_runs)
{
    static const char *const targets[] = {"ref", "cpu"};
    for (int i = 0; i < 4; i++) {
        const bool other = i / 2; // which of the branches fits
        struct pb yes = other ? misfit() : branch("Abs", "x", "r");
        struct pb no = other ? branch("Abs", "x", "r") : misfit();
        struct pb m = if_model(&yes, &no);
        struct mgx_diag diag;
        struct mgx_program *p = import_model(&m, NULL, &diag);
        float y = 0;
        if (!p)
            CHECK_FAIL("%s", diag.text);
        CHECK_INT(mgx_module_result(mgx_program_main(p), 0)->shape.lens[0], 2);
        CHECK_OK(mgx_program_verify(p, &diag), diag);
        CHECK(run_on(p, targets[i % 2], !other, &y, &diag));
        CHECK_NEAR(y, 3, 0);
        CHECK(!run_on(p, targets[i % 2], other, &y, &diag));
        CHECK(strstr(diag.text, "shapes {2} and {3} do not broadcast"));
        CHECK(strstr(diag.text, other ? "then_branch" : "else_branch"));
        mgx_program_destroy(p);
    }
    struct pb yes = misfit(), no = misfit();
    struct pb m = if_model(&yes, &no);
    CHECK(refused(&m, MGX_INVALID, "shapes {2} and {3} do not broadcast"));
}

// --- resources ---

CASE(constants_that_want_the_world)
{
    static const int64_t sizes[] = {(int64_t)1 << 40, (int64_t)1 << 50, INT64_MAX, -1};
    for (int i = 0; i < 4; i++) {
        struct pb g = {0};
        pb_ints(&g, "n", &sizes[i], 1);
        pb_node(&g, "ConstantOfShape", "n", "v", NULL);
        pb_node(&g, "Reshape", "v,n", "y", NULL);
        pb_output(&g, "y");
        struct pb m = pb_model(&g, 17);
        struct mgx_diag diag;
        const double start = seconds_now();
        struct mgx_program *p = import_model(&m, NULL, &diag);
        mgx_program_destroy(p); // 2^40 elements that nobody asks for may be described
        CHECK(p || diag.text[0]);
        CHECK(seconds_now() - start < 1);
    }
}

CASE(folding_has_a_budget)
{
    struct pb g = {0}, attrs = {0};
    pb_ints(&g, "n", (int64_t[]){1 << 20}, 1);
    pb_node(&g, "ConstantOfShape", "n", "v0", NULL);
    // Each stage doubles a constant; a reshape then asks for the last one's value.
    char in[16], pair[40], out[16];
    for (int i = 0; i < 40; i++) {
        snprintf(in, sizeof in, "v%d", i);
        snprintf(pair, sizeof pair, "%s,%s", in, in);
        snprintf(out, sizeof out, "v%d", i + 1);
        pb_attr_int(&attrs, "axis", 0);
        pb_node(&g, "Concat", pair, out, &attrs);
    }
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){4});
    pb_attr_int(&attrs, "to", INT64);
    pb_node(&g, "Cast", "v40", "shape", &attrs);
    pb_node(&g, "Reshape", "x,shape", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    const double start = seconds_now();
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p || diag.text[0]);
    mgx_program_destroy(p);
    CHECK(seconds_now() - start < 10);
}

CASE(usable_after_a_refusal)
{
    for (int i = 0; i < 3; i++) {
        struct pb m = small_model();
        const struct mgx_onnx_options tight = {.limit_bytes = 4};
        CHECK(refused_with(&m, &tight, MGX_LIMIT, "above the limit"));
        m = small_model();
        struct mgx_diag diag;
        struct mgx_program *p = import_model(&m, NULL, &diag);
        CHECK(p);
        mgx_program_destroy(p);
    }
}

TEST_MAIN(ROW(other_files_are_not_models) ROW(what_people_take_for_models_is_named)
              ROW(cut_off_anywhere) ROW(any_byte_changed) ROW(trailing_bytes_are_an_error)
                  ROW(wrong_wire_types) ROW(names_must_be_text) ROW(deep_nests_stop_at_the_limit)
                      ROW(a_million_inputs_on_one_node) ROW(a_million_attributes)
                          ROW(many_consumers_are_linear) ROW(bodies_capture_and_shadow)
                              ROW(captures_are_found_before_their_reader)
                                  ROW(cycles_through_captures_are_seen) ROW(branches_must_agree)
                                      ROW(a_branch_that_does_not_fit_fails_when_it_runs)
                                          ROW(constants_that_want_the_world)
                                              ROW(folding_has_a_budget) ROW(usable_after_a_refusal))
