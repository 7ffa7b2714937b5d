// SPDX-License-Identifier: MIT
// Nodes that wait for the run: what they compute, what they are as text, and where they may stand.
#include "import.h"
#include "onnx/node.h"
#include "pass/pass.h"
#include "tiny.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static bool is_deferred(const struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++)
        MGX_EACH (ins, p->modules[i])
            if (strcmp(ins->op->name, "onnx::deferred") == 0)
                return true;
    return false;
}

static struct mgx_tensor ints(const int64_t *values, int64_t count)
{
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, count);
    return mgx_tensor_borrow(&shape, values);
}

static const float x[] = {1, 2, 3, 4, 5, 6};

CASE(sizes_come_with_the_run)
{
    struct pb m = tiny_model("Split(x:f[6], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p && is_deferred(p));
    for (int64_t first = 0; first <= 6; first++) { // the same program, other sizes each time
        const int64_t sizes[] = {first, 6 - first};
        struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints(sizes, 2)};
        double y[6];
        CHECK_INT(run_model(p, args, 2, NULL, y, 6), first);
        for (int i = 0; i < first; i++)
            CHECK_NEAR(y[i], x[i], 0);
    }
    mgx_program_destroy(p);
}

CASE(the_type_is_known_beforehand)
{
    struct pb m = tiny_model("Split(x:h[6], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    for (int i = 0; i < 2; i++) {
        const struct mgx_shape *s = &mgx_module_result(mgx_program_main(p), i)->shape;
        CHECK(s->unranked && s->type == MGX_HALF);
    }
    mgx_program_destroy(p);
}

// A row whose type lies in an attribute names it: the promise is read of any node of that row.
CASE(promises_by_an_attribute_name_it)
{
    int count;
    const struct mgx_onnx_op *const *rules = mgx_onnx_rules(&count);
    for (int i = 0; i < count; i++)
        if (rules[i]->result && strpbrk(rules[i]->result, "@vBC") && !rules[i]->result_attribute) {
            printf("%s of \"%s\"\n", rules[i]->name, rules[i]->domain ? rules[i]->domain : "");
            CHECK(!"without the attribute's name");
        }
    struct pb m = tiny_model("com.microsoft.QuantizeLinear(x:f[1,2], s:f{1,2}, z:u{0,0}) axis=1");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p && mgx_module_result(mgx_program_main(p), 0)->shape.type == MGX_UINT8);
    mgx_program_destroy(p);
}

static const struct mgx_ins *find_deferred(const struct mgx_program *p, int from_end)
{
    const struct mgx_ins *found = NULL;
    for (const struct mgx_ins *ins = mgx_program_main(p)->last; ins; ins = ins->prev)
        if (strcmp(ins->op->name, "onnx::deferred") == 0 && from_end-- == 0)
            found = ins;
    return found;
}

// Lengths without values tell the lengths of a result that no value decides.
CASE(lengths_alone_tell_lengths)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){6});
    pb_input(&g, "k", INT64, 1, (int64_t[]){2});
    pb_attr_int(&attrs, "axis", 0);
    pb_node(&g, "Split", "x,k", "a,b", &attrs);
    pb_attr_ints(&attrs, "kernel_shape", (int64_t[]){2, 2}, 2);
    pb_node(&g, "MaxPool", "a", "y,i", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    const struct mgx_ins *pool = p ? find_deferred(p, 0) : NULL;
    CHECK(pool && pool->in_count == 1);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    const struct mgx_shape known = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){1, 2, 5, 5});
    const struct mgx_shape *in[] = {&known};
    struct mgx_shape out;
    struct mgx_shape_call call = {.op = pool->op,
                                  .attr = pool->attr,
                                  .in = in,
                                  .in_count = 1,
                                  .arena = &arena,
                                  .diag = &diag};
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_op_shape(&call, &out), diag);
    CHECK(out.type == MGX_TUPLE && out.sub_count == 2 && mgx_shape_is_static(&out.sub[0]) &&
          out.sub[0].lens[3] == 4);
    mgx_arena_fini(&arena);
    mgx_program_destroy(p);
}

CASE(errors_of_the_run_name_the_node)
{
    struct pb m = tiny_model("Split(x:f[6], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    const int64_t sizes[] = {3, 4};
    struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints(sizes, 2)}, out[2] = {0};
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    mgx_module_number(mgx_program_main(p));
    struct mgx_eval e = {.strings = &strings};
    mgx_diag_clear(&diag);
    CHECK_INT(mgx_eval_module(&e, mgx_program_main(p), args, 2, out, &diag), MGX_INVALID);
    CHECK(strstr(diag.text, "Split"));
    mgx_arena_fini(&strings);
    mgx_program_destroy(p);
}

// The node travels as text: printing, parsing, cloning and simplifying keep its meaning.
CASE(text_and_clones_keep_it)
{
    struct pb m = tiny_model("Split(x:f[6], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag), *q = NULL, *c = NULL;
    CHECK(p);
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    CHECK_OK(mgx_program_parse(&q, &mgx_onnx_ops, text.text, text.size, &diag), diag);
    CHECK(mgx_program_equal(p, q));
    CHECK_OK(mgx_program_clone(&c, q, &diag), diag);
    CHECK_OK(mgx_run_passes(c, mgx_pipeline_simplify, NULL, &diag), diag);
    mgx_program_destroy(p);
    mgx_program_destroy(q);
    const int64_t sizes[] = {2, 4};
    struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints(sizes, 2)};
    double y[6];
    CHECK_INT(run_model(c, args, 2, NULL, y, 6), 2);
    CHECK_NEAR(y[1], 2, 0);
    mgx_str_fini(&text);
    mgx_program_destroy(c);
}

// Once its inputs are known the node becomes ordinary instructions, in place.
CASE(known_inputs_expand_it)
{
    struct pb m = tiny_model("Split(x:f[6], k:i[2]) axis=0 ->2");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p && is_deferred(p));
    CHECK_OK(mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag), diag);
    CHECK(is_deferred(p)); // nothing more is known
    const int64_t sizes[] = {2, 4};
    struct mgx_module *main = mgx_program_main(p);
    struct mgx_ins *known = mgx_literal_ints(main, sizes, 2);
    CHECK(known);
    mgx_replace_uses(mgx_find_parameter(main, "k"), known);
    CHECK_OK(mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag), diag);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    CHECK(!is_deferred(p));
    CHECK_INT(mgx_module_result(main, 0)->shape.lens[0], 2);
    CHECK_INT(mgx_module_result(main, 1)->shape.lens[0], 4);
    struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints(sizes, 2)};
    double y[6];
    CHECK_INT(run_model(p, args, 2, NULL, y, 6), 2);
    CHECK_NEAR(y[1], 2, 0);
    mgx_program_destroy(p);
}

CASE(a_broken_model_attribute_is_refused)
{
    static const char text[] =
        "module: \"main\"\n"
        "x = @param:x -> float_type, {2}, {1}\n"
        "main:@1 = onnx::deferred[op_type=Relu,node=,opset=17,types={2},max_loop=10,"
        "limit_loop=10,model=CAg*](x) -> dynamic, float_type, {}\n";
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status =
        mgx_program_parse(&p, &mgx_onnx_ops, text, sizeof text - 1, &diag);
    CHECK(status != MGX_OK && diag.text[0]);
    mgx_program_destroy(p);
}

// --- inside functions and bodies ---

// local.f(x, k) with attribute `along`: Split(x, k) axis=@along.
CASE(attributes_of_functions_travel_along)
{
    struct pb g = {0}, attrs = {0}, f = {0};
    pb_input(&g, "in", FLOAT, 2, (int64_t[]){2, 3});
    pb_input(&g, "sizes", INT64, 1, (int64_t[]){2});
    pb_attr_int(&attrs, "along", 1);
    pb_node_of(&g, 1, "local", "f", "in,sizes", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    pb_text(&f, 1, "f");
    pb_text(&f, 10, "local");
    pb_names(&f, 4, "x,k,never");
    pb_names(&f, 5, "a");
    pb_text(&f, 6, "along");
    pb_attr_ref(&attrs, "axis", PB_INT, "along");
    pb_node_of(&f, 7, "", "Split", "x,k", "a,b", &attrs);
    pb_opset(&f, 9, "", 17);
    pb_message(&m, 25, &f);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p && is_deferred(p));
    const int64_t sizes[] = {1, 2};
    struct mgx_tensor args[] = {floats(x, 2, (int64_t[]){2, 3}), ints(sizes, 2)};
    double y[6];
    struct mgx_shape shape;
    CHECK_INT(run_model(p, args, 2, &shape, y, 6), 2);
    CHECK(shape.lens[0] == 2 && shape.lens[1] == 1);
    CHECK_NEAR(y[1], 4, 0);
    mgx_program_destroy(p);
}

// The captured names of a body become inputs of the deferred node.
CASE(bodies_with_captures_may_hold_deferred_nodes)
{
    struct pb yes = {0}, no = {0}, g = {0}, attrs = {0};
    pb_attr_int(&attrs, "axis", 0);
    pb_node(&yes, "Split", "x,k", "a,b", &attrs);
    pb_output(&yes, "b");
    pb_node(&no, "Neg", "x", "n", NULL);
    pb_output(&no, "n");
    pb_input(&g, "c", BOOL, 0, NULL);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){6});
    pb_input(&g, "k", INT64, 1, (int64_t[]){2});
    pb_attr_graph(&attrs, "then_branch", &yes);
    pb_attr_graph(&attrs, "else_branch", &no);
    pb_node(&g, "If", "c", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s\n", diag.text);
    CHECK(p && is_deferred(p));
    const int64_t sizes[] = {4, 2};
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_BOOL);
    for (uint8_t c = 0; c < 2; c++) {
        struct mgx_tensor args[] = {mgx_tensor_borrow(&scalar, &c), floats(x, 1, (int64_t[]){6}),
                                    ints(sizes, 2)};
        double y[6];
        CHECK_INT(run_model(p, args, 3, NULL, y, 6), c ? 2 : 6);
        CHECK_NEAR(y[0], c ? 5 : -1, 0);
    }
    mgx_program_destroy(p);
}

// What follows a deferred node keeps working without knowing a rank.
CASE(nodes_after_it_take_what_comes)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){6});
    pb_input(&g, "k", INT64, 1, (int64_t[]){2});
    pb_attr_int(&attrs, "axis", 0);
    pb_node(&g, "Split", "x,k", "a,b", &attrs);
    pb_node(&g, "Exp", "a", "e", NULL);
    pb_node(&g, "ReduceSum", "e", "s", NULL);
    pb_node(&g, "Div", "e,s", "p", NULL);
    pb_node(&g, "Shape", "p", "n", NULL);
    pb_attr_int(&attrs, "axis", 0);
    pb_node(&g, "Softmax", "a", "q", &attrs);
    pb_node(&g, "Sub", "p,q", "y", NULL);
    pb_output(&g, "y");
    pb_output(&g, "n");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s\n", diag.text);
    CHECK(p);
    for (int64_t first = 1; first < 6; first++) {
        const int64_t sizes[] = {first, 6 - first};
        struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints(sizes, 2)};
        double y[6];
        CHECK_INT(run_model(p, args, 2, NULL, y, 6), first);
        for (int i = 0; i < first; i++)
            CHECK_NEAR(y[i], 0, 1e-6);
    }
    mgx_program_destroy(p);
}

// Padding of what has no known rank waits, however much of the padding is known.
CASE(padding_waits_for_the_rank)
{
    struct pb g = {0}, attrs = {0};
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){6});
    pb_input(&g, "k", INT64, 1, (int64_t[]){2});
    pb_attr_int(&attrs, "axis", 0);
    pb_node(&g, "Split", "x,k", "a,b", &attrs);
    pb_attr_ints(&attrs, "pads", (int64_t[]){1, 2}, 2);
    pb_node(&g, "Pad", "a", "y", &attrs);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 10);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s\n", diag.text);
    CHECK(p);
    struct mgx_tensor args[] = {floats(x, 1, (int64_t[]){6}), ints((int64_t[]){4, 2}, 2)};
    double y[7];
    CHECK_INT(run_model(p, args, 2, NULL, y, 7), 7);
    for (int i = 0; i < 7; i++) // one place before, two behind
        CHECK_NEAR(y[i], i > 0 && i < 5 ? x[i - 1] : 0, 0);
    mgx_program_destroy(p);
}

// Pieces of a split by constants, beside an axis that is open: the node behind them waits for nothing.
CASE(known_pieces_wait_for_nothing)
{
    struct pb g = {0}, split = {0}, pool = {0};
    pb_input(&g, "x", FLOAT, 4, (int64_t[]){-1, 3, 2, 2});
    pb_ints(&g, "sizes", (int64_t[]){2, 1}, 2);
    pb_ints(&g, "one", (int64_t[]){1}, 1);
    pb_attr_int(&split, "axis", 1);
    pb_node(&g, "SplitToSequence", "x,sizes", "s", &split);
    pb_node(&g, "Sub", "one,one", "zero", NULL);
    pb_node(&g, "SequenceErase", "s,zero", "t", NULL);
    pb_node(&g, "SequenceAt", "t,zero", "piece", NULL);
    pb_attr_ints(&pool, "kernel_shape", (int64_t[]){2, 2}, 2);
    pb_node(&g, "MaxPool", "piece", "y", &pool);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    const struct mgx_onnx_options open = {.dynamic_dims = true};
    struct mgx_program *p = import_model(&m, &open, &diag);
    CHECK(p && !is_deferred(p));
    const struct mgx_shape *s = &mgx_module_result(mgx_program_main(p), 0)->shape;
    CHECK(!s->unranked && s->rank == 4 && !mgx_shape_is_static(s));
    float values[24];
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    struct mgx_tensor args[] = {floats(values, 4, (int64_t[]){2, 3, 2, 2})};
    double y[2];
    CHECK_INT(run_model(p, args, 1, NULL, y, 2), 2);
    CHECK_NEAR(y[0], 11, 0);
    CHECK_NEAR(y[1], 23, 0);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(known_pieces_wait_for_nothing) ROW(sizes_come_with_the_run)
              ROW(the_type_is_known_beforehand) ROW(errors_of_the_run_name_the_node)
                  ROW(text_and_clones_keep_it) ROW(known_inputs_expand_it)
                      ROW(a_broken_model_attribute_is_refused)
                          ROW(attributes_of_functions_travel_along)
                              ROW(bodies_with_captures_may_hold_deferred_nodes)
                                  ROW(nodes_after_it_take_what_comes)
                                      ROW(padding_waits_for_the_rank)
                                          ROW(promises_by_an_attribute_name_it)
                                              ROW(lengths_alone_tell_lengths))
