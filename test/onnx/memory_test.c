// SPDX-License-Identifier: MIT
// Import with every allocation failing in turn: MGX_NO_MEMORY (or success, where a lack of memory
// only costs an optimisation), nothing leaked, and the next import works.
#include "import.h"
#include "test_arena.h"
#include "test_import_memory.h"
#include "tiny.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

struct model {
    const struct pb *bytes;
    const struct mgx_onnx_options *options;
};

static enum mgx_status import(const void *given, bool copy, struct mgx_program **out,
                              struct mgx_diag *diag)
{
    const struct model *m = given;
    return mgx_onnx_import_buffer(out, m->bytes->data, m->bytes->size, copy, m->options, diag);
}

static bool survives(struct pb *take_model, const struct mgx_onnx_options *options)
{
    const struct model m = {take_model, options};
    const bool ok = import_survives(import, &m);
    pb_free(take_model);
    return ok;
}

static const char *const lines[] = {
    "Conv(x:f[1,4,5,5], w:f[6,2,3,3], b:f[6]) group=2 auto_pad='SAME_UPPER'",
    "Gemm(a:f[2,3], b:f[3,4], c:f[4]) alpha=0.5 transB=0",
    "Reshape(x:f[2,3], s:i{3,-1})",
    "Reshape(x:f[2,3], s:i[2])", // deferred, or dynamic
    "Split(x:f[4], k:i[2]) ->2", // deferred, with two results
    "Resize(x:f[1,1,4,4], -, s:f{1,1,2,2}) mode='linear'",
    "LSTM(x:f[2,1,3], w:f[1,8,3], r:f[1,8,2]) hidden_size=2 ->3",
    "Einsum(a:f[2,3], b:f[3,4]) equation='ij,jk->ik'",
    "Softmax(x:f[2,3]) axis=-1 @12",
    "NoSuchOperator(x:f[2,3])",
};

CASE(operators)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct pb m = tiny_model(lines[i]);
        const struct mgx_onnx_options keep = {.skip_unknown_operators = true};
        if (!survives(&m, &keep))
            CHECK_FAIL("%s", lines[i]);
    }
}

CASE(a_list_of_missing_operators)
{
    struct pb m = tiny_model("NoSuchOperator(x:f[2,3])");
    for (long n = 0, again = 1; again; n++) {
        struct mgx_program *p = NULL;
        struct mgx_diag diag;
        mgx_diag_clear(&diag);
        const long live = test_malloc_live();
        test_malloc_fail_after(n);
        const enum mgx_status status =
            mgx_onnx_import_buffer(&p, m.data, m.size, false, NULL, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        CHECK(!p && (status == MGX_NO_MEMORY || status == MGX_UNSUPPORTED));
        CHECK_INT(test_malloc_live(), live);
    }
    pb_free(&m);
}

CASE(tensors_of_all_kinds)
{
    struct pb g = {0}, s = {0};
    struct pb w = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){3}, "abcdefghijkl", 12);
    pb_initializer(&g, &w);
    w = pb_tensor_raw("narrow", 22, 1, (int64_t[]){3}, "ab", 2);
    pb_initializer(&g, &w);
    w = pb_tensor("typed", INT64, 1, (int64_t[]){2});
    pb_int(&w, 7, 1);
    pb_int(&w, 7, 2);
    pb_initializer(&g, &w);
    w = pb_tensor("text", 8, 1, (int64_t[]){1});
    pb_text(&w, 6, "word");
    pb_initializer(&g, &w);
    w = pb_tensor_raw("sparse", FLOAT, 1, (int64_t[]){1}, "abcd", 4);
    pb_message(&s, 1, &w);
    w = pb_tensor_raw("", INT64, 1, (int64_t[]){1}, "\1\0\0\0\0\0\0\0", 8);
    pb_message(&s, 2, &w);
    pb_int(&s, 3, 4);
    pb_message(&g, 15, &s);
    pb_output(&g, "sparse");
    struct pb m = pb_model(&g, 17);
    CHECK(survives(&m, NULL));
}

CASE(bodies_and_functions)
{
    struct pb g = {0}, attrs = {0}, yes = {0}, no = {0}, f = {0};
    pb_node(&yes, "Neg", "late", "r", NULL);
    pb_output(&yes, "r");
    pb_node(&no, "Abs", "x", "r", NULL);
    pb_output(&no, "r");
    pb_input(&g, "c", BOOL, 0, NULL);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){2});
    pb_attr_graph(&attrs, "then_branch", &yes);
    pb_attr_graph(&attrs, "else_branch", &no);
    pb_node(&g, "If", "c", "y", &attrs);
    pb_node_of(&g, 1, "local", "f", "x", "late", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    pb_text(&f, 1, "f");
    pb_text(&f, 10, "local");
    pb_names(&f, 4, "a");
    pb_names(&f, 5, "b");
    pb_node_of(&f, 7, "", "Relu", "a", "b", NULL);
    pb_opset(&f, 9, "", 17);
    pb_message(&m, 25, &f);
    CHECK(survives(&m, NULL));
}

CASE(constants_folded_on_the_way)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){2, 3});
    pb_ints(&g, "a", (int64_t[]){1, 1}, 2);
    pb_ints(&g, "b", (int64_t[]){2, 1}, 2);
    pb_node(&g, "Add", "a,b", "s", NULL);
    pb_node(&g, "Mul", "s,b", "t", NULL); // {6, 2} ... a size that does not fit
    pb_node(&g, "Sub", "t,s", "u", NULL); // {3, 0}: 3 rows, the rest as it was
    pb_node(&g, "Reshape", "x,u", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17), once = {0};
    pb_raw(&once, m.data, m.size);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&once, NULL, &diag);
    mgx_program_destroy(p);
    if (p)
        CHECK(survives(&m, NULL));
    pb_free(&m);
}

CASE(free_dimensions)
{
    struct pb g = {0};
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){-1, 3});
    pb_input(&g, "s", INT64, 1, (int64_t[]){-1});
    pb_node(&g, "Relu", "x", "r", NULL);
    pb_node(&g, "Expand", "r,s", "e", NULL);
    pb_node(&g, "Add", "e,x", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    const struct mgx_onnx_options dynamic = {.dynamic_dims = true};
    CHECK(survives(&m, &dynamic));
}

// A deferred node imports and evaluates a model of its own while it runs.
CASE(deferred_nodes_at_run_time)
{
    struct pb m = tiny_model("Split(x:f[4], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    const bool deferred = strstr(mgx_str_text(&text), "onnx::deferred");
    mgx_str_fini(&text);
    CHECK(deferred);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    static const float x[] = {3, 1, 4, 1};
    static const int64_t k[] = {1, 3};
    const struct mgx_shape one = mgx_shape_vector(MGX_INT64, 2);
    const struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){4}), mgx_tensor_borrow(&one, k)};
    bool again = true;
    for (long n = 0; again; n++) {
        struct mgx_tensor out[2] = {0};
        struct mgx_arena strings;
        const long live = test_malloc_live();
        mgx_diag_clear(&diag);
        mgx_arena_init(&strings);
        struct mgx_eval e = {.strings = &strings};
        test_malloc_fail_after(n);
        const enum mgx_status status =
            mgx_eval_module(&e, mgx_program_main(p), args, 2, out, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        const bool right = status == MGX_OK && mgx_shape_elements(&out[1].shape) == 3 &&
                           ((float *)out[0].data)[0] == 3 && ((float *)out[1].data)[1] == 4;
        mgx_tensor_release(&out[0]);
        mgx_tensor_release(&out[1]);
        mgx_arena_fini(&strings);
        CHECK(again ? status == MGX_NO_MEMORY || right : right);
        CHECK_INT(test_malloc_live(), live);
    }
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(operators) ROW(a_list_of_missing_operators) ROW(tensors_of_all_kinds)
              ROW(bodies_and_functions) ROW(deferred_nodes_at_run_time)
                  ROW(constants_folded_on_the_way) ROW(free_dimensions))
