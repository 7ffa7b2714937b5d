// SPDX-License-Identifier: MIT
// The text form: forms that are read, what is printed of them, random programs there and back,
// and texts that are wrong.
#include "ir/module.h"

#include "check.h"
#include "ir_ops.h"
#include "op/op.h"

static struct mgx_diag diag;

static struct mgx_program *parse_with(const struct mgx_op_set *ops, const char *text)
{
    struct mgx_program *p = NULL;
    mgx_diag_clear(&diag);
    const size_t size = strlen(text);
    char *exact = malloc(size + 1); // no terminator, so that a read past the end is seen
    memcpy(exact, text, size);
    if (mgx_program_parse(&p, ops, exact, size, &diag) != MGX_OK)
        p = NULL;
    free(exact);
    return p;
}

static struct mgx_program *parse(const char *text)
{
    return parse_with(&test_ops, text);
}

static const char *printed(const struct mgx_program *p)
{
    static char text[1 << 16];
    struct mgx_str out = {0};
    mgx_program_print(&out, p);
    snprintf(text, sizeof text, "%s", mgx_str_text(&out));
    mgx_str_fini(&out);
    return text;
}

// What `text` prints as once read; the failure otherwise.
static const char *again(const char *text)
{
    struct mgx_program *p = parse(text);
    const char *result = p ? printed(p) : diag.text;
    mgx_program_destroy(p);
    return result;
}

#define CHECK_STABLE(text) CHECK_TEXT(again(text), text)

CASE(a_program_prints_as_it_was_read)
{
    CHECK_STABLE("module: \"main\"\n"
                 "main:@0 = @literal{1, 2.5, -3} -> float_type, {3}, {1}\n"
                 "input = @param:input -> float_type, {3}, {1}\n"
                 "main:@2 = sum(input,main:@0) -> float_type, {3}, {1}\n"
                 "main:@3 = join[weight=7,label=a b,axes={0, -1},kind=fancy](main:@2,input) -> "
                 "float_type, {3}, {1}\n"
                 "main:@4 = @comment: what (a remark), with everything -> in it\n"
                 "main:@5 = @return(main:@3,input)\n"
                 "\n");
    CHECK_STABLE("module: \"main\"\n\n");
}

CASE(bodies_captures_and_lists_of_modules)
{
    CHECK_STABLE("module: \"main\"\n"
                 "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                 "main:@1 = sum(x,x) -> float_type, {2, 3}, {3, 1}\n"
                 "main:@2 = call(x), [left, main:right] -> float_type, {2, 3}, {3, 1}\n"
                 "main:@3 = call, [left] -> float_type, {2, 3}, {3, 1}\n"
                 "main:@4 = @return(main:@2,main:@3)\n"
                 "\n"
                 "module: \"left\"\n"
                 "left:x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                 "left:@1 = sum(left:x,main:@1) -> float_type, {2, 3}, {3, 1}\n"
                 "left:@2 = call, [inner] -> float_type, {2, 3}, {3, 1}\n"
                 "\n"
                 "module: \"main:right\"\n"
                 "main:right:@0 = @literal{1} -> float_type, {1}, {0}\n"
                 "main:right:@1 = @return(main:right:@0)\n"
                 "\n"
                 "module: \"inner\"\n"
                 "inner:@0 = sum(left:x,x) -> float_type, {2, 3}, {3, 1}\n"
                 "\n"
                 "module: \"unused\"\n"
                 "unused:@0 = sum(x,main:@1) -> float_type, {2, 3}, {3, 1}\n"
                 "\n");
}

CASE(other_releases_and_wrapped_lines_are_read)
{
    const char *const expected =
        "module: \"main\"\n"
        "main:@0 = @literal{1} -> float_type, {1, 1}, {1, 1}\n"
        "input = @param:input -> float_type, {1, 1}, {1, 1}\n"
        "main:@2 = join[weight=1,label=,axes={1, 1},kind=plain](input,main:@0)"
        " -> float_type, {1, 1}, {1, 1}\n"
        "main:@3 = @return(main:@2)\n"
        "\n";
    CHECK_TEXT(
        again("@0 = @literal{1} -> float_type, {1, 1}, {1, 1}, target_id=0\r\n"
              "input = @param:input -> float_type, {1, 1}, {1, 1}, target_id=0\r\n"
              "@2 = join[axes={1, 1}](input,@0) -> float_type, {1, 1}, {1, 1}, target_id=0\r\n"
              "@3 = @return(@2), target_id=0"),
        expected);
    CHECK_TEXT(again("\nmodule: \"main\"\n"
                     "main:@0 = @literal{1} -> float_type, {1, 1}, {1,\n1}\n"
                     "input = @param:input -\n> float_type, {1, 1}, {1, 1}\n"
                     "main:@2 = "
                     "join[axes={1,\n1},weight=1,use_dynamic_same_auto_pad=0](input,\nmain:@0) ->\n"
                     "float_type, {1, 1}, {1, 1}\n"
                     "main:@3 =\n@return(main:@2)\n"),
               expected);
    CHECK_TEXT(again("w=@literal{1}->float_type,{1,1}\n"
                     "input=@param:input->float_type,{1,1}\n"
                     "y=join[axes=[1,1]](input , w)\n"
                     "z=@return(y)\n"),
               expected);
}

CASE(the_guide_s_example_with_the_real_operators)
{
    struct mgx_program *p = parse_with(
        &mgx_ops, "module: \"main\"\n"
                  "main:@0 = @literal{1} -> float_type, {1, 1, 1, 1}, {1, 1, 1, 1}\n"
                  "input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
                  "main:@2 = convolution[padding={0, 0},stride={1, 1},dilation={1,\n"
                  "1},group=1,padding_mode=0,use_dynamic_same_auto_pad=0](input,main:@0) ->\n"
                  "float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
                  "main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](main:@2) -> float_type,\n"
                  "{1, 1, 4, 3}, {24, 24, 6, 1}\n"
                  "main:@4 = contiguous(main:@3) -> float_type, {1, 1, 4, 3}, {12, 12, 3, 1}\n"
                  "main:@5 = flatten[axis=1](main:@4) -> float_type, {1, 12}, {12, 1}\n"
                  "main:@6 = @return(main:@5)\n");
    if (!p)
        CHECK_FAIL("%s", diag.text);
    CHECK_INT(p->modules[0]->count, 7);
    struct mgx_str out = {0};
    mgx_ins_print(&out, p->modules[0]->first->next->next->next);
    CHECK_TEXT(mgx_str_text(&out), "main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](main:@2)"
                                   " -> float_type, {1, 1, 4, 3}, {24, 24, 6, 1}");
    mgx_str_fini(&out);
    mgx_program_destroy(p);
}

CASE(symbols_are_origins)
{
    const char *text = "module: \"main\"\n"
                       "x = @param:x -> float_type, {2}, {1} # x\n"
                       "main:@1 = sum(x,x) -> float_type, {2}, {1} # conv1 (Conv), relu1 (Relu)\n"
                       "main:@2 = @return(main:@1)\n"
                       "\n";
    CHECK_STABLE(text);
    struct mgx_program *p = parse(text);
    CHECK(p && p->modules[0]->first->next->origin.count == 2);
    mgx_program_destroy(p);
}

CASE(shapes_of_all_kinds)
{
    CHECK_STABLE("module: \"main\"\n"
                 "g = @param:g -> sequence[unranked, string_type]\n"
                 "f = @param:f -> unranked, int64_type\n"
                 "e = @param:e -> [float_type, {2}, {1}, []]\n"
                 "d = @param:d -> dynamic, half_type, {batch[1..4], 3, \"x y\"[0..]}\n"
                 "c = @param:c -> bool_type, {2, 0, 3}, {0, 3, 1}\n"
                 "b = @param:b -> int8_type, {1}, {0}\n"
                 "a = @param:a -> float_type, {2, 3, 4, 5}, {60, 1, 15, 3}\n"
                 "main:@7 = join[weight=1,label=,axes={},kind=plain](d) -> "
                 "dynamic, half_type, {batch[1..4], 3, \"x y\"[0..]}\n"
                 "\n");
}

CASE(literals_of_all_types)
{
    CHECK_STABLE("module: \"main\"\n"
                 "main:@0 = @literal{18446744073709551615, 0} -> uint64_type, {2}, {1}\n"
                 "main:@1 = @literal{-9223372036854775808} -> int64_type, {1}, {1}\n"
                 "main:@2 = @literal{0, 1} -> bool_type, {2}, {1}\n"
                 "main:@3 = @literal{-128, 127} -> int8_type, {2}, {1}\n"
                 "main:@4 = @literal{inf, -inf, nan, 0.5} -> half_type, {4}, {1}\n"
                 "main:@5 = @literal{\"a, b\", \"\", \"}\\\"\"} -> string_type, {3}, {1}\n"
                 "main:@6 = @literal{(1,-2.5), (0,inf)} -> complex64_type, {2}, {1}\n"
                 "main:@7 = @literal{1, 2, 3, 4} -> int32_type, {2, 2}, {1, 2}\n"
                 "main:@8 = @literal{} -> float_type, {0}, {1}\n"
                 "main:@9 = @literal{33, 255} -> fp4x2_type, {2}, {1}\n"
                 "main:@10 = @literal{ ... } -> float_type, {11}, {1}\n"
                 "main:@11 = @literal{ ... } -> [float_type, {2}, {1}, int8_type, {1}, {0}]\n"
                 "main:@12 = @literal{5, 5} -> int8_type, {2}, {0}\n"
                 "\n");
    struct mgx_program *p =
        parse("@0 = @literal{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} -> int8_type, {12}, {1}");
    CHECK(p && ((int8_t *)p->modules[0]->first->literal->data)[11] == 12);
    mgx_program_destroy(p);
}

CASE(awkward_names_are_quoted)
{
    CHECK_STABLE(
        "module: \"main\"\n"
        "\"body:x\" = @param:body:x -> float_type, {1}, {1}\n"
        "\"main:@0\" = @param:main:@0 -> float_type, {1}, {1}\n"
        "\"a,b\" = @param:\"a,b\" -> float_type, {1}, {1}\n"
        "\"\" = @param:\"\" -> float_type, {1}, {1}\n"
        "\"a = b\" = @param:\"a = b\" -> float_type, {1}, {1}\n"
        "\"line\\u000aend\" = @param:\"line\\u000aend\" -> float_type, {1}, {1}\n"
        "module:x = @param:module:x -> float_type, {1}, {1}\n"
        "\"#rois\" = @param:\"#rois\" -> float_type, {1}, {1}\n"
        "\"//slash\" = @param:\"//slash\" -> float_type, {1}, {1}\n"
        "main:#output_0 = @param:main:#output_0 -> float_type, {1}, {1}\n"
        "input 0/x.1:0 = @param:input 0/x.1:0 -> float_type, {1}, {1}\n"
        "main:@11 = join[weight=1,label=,axes={},kind=plain](\"a,b\",\"\",\"a = b\","
        "main:#output_0,input 0/x.1:0,\"main:@0\") -> float_type, {1}, {1}\n"
        "main:@12 = call(\"line\\u000aend\"), [body, \"odd, name\"] -> float_type, {1}, {1}\n"
        "\n"
        "module: \"body\"\n"
        "body:x = @param:x -> float_type, {1}, {1}\n"
        "body:@1 = sum(body:x,\"body:x\") -> float_type, {1}, {1}\n"
        "\n"
        "module: \"odd, name\"\n"
        "\"odd, name\":\"a,b\" = @param:\"a,b\" -> float_type, {1}, {1}\n"
        "\"odd, name\":@1 = sum(\"a,b\",\"odd, name\":\"a,b\") -> float_type, {1}, {1}\n"
        "\n");
}

CASE(parameters_keep_their_order)
{
    struct mgx_program *p = parse("c = @param:c -> float_type, {1}\n"
                                  "b = @param:b -> float_type, {1}\n"
                                  "a = @param:a -> float_type, {1}\n");
    CHECK(p);
    struct mgx_ins *list[3];
    CHECK_INT(mgx_module_parameters(p->modules[0], list, 3), 3);
    CHECK_TEXT(mgx_parameter_name(list[0]), "a");
    CHECK_TEXT(mgx_parameter_name(list[1]), "b");
    CHECK_TEXT(mgx_parameter_name(list[2]), "c");
    mgx_program_destroy(p);
}

CASE(a_wider_declared_shape_is_kept)
{
    CHECK_STABLE("module: \"main\"\n"
                 "x = @param:x -> float_type, {4}, {1}\n"
                 "main:@1 = test::open(x) -> dynamic, float_type, {[0..9]}\n"
                 "main:@2 = test::open(x) -> dynamic, float_type, {[0..5]}\n"
                 "main:@3 = sum(x,x) -> unranked, float_type\n"
                 "\n");
    CHECK(!parse("x = @param:x -> float_type, {4}\n"
                 "y = test::open(x) -> dynamic, float_type, {[0..4]}\n"));
}

CASE(bad_texts_say_where_and_what)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"x = @param:x -> float_type, {2}\ny = sum(x,z)",
         "line 2, column 11: 'z' is not defined before it is used"},
        {"y = nosuch(x)", "line 1, column 5: Operator not found: nosuch"},
        {"y = @outline", "Operator not found: @outline"},
        {"x = @param:x -> float_type, {2}\n y = sum(x) -> float_type, {2}, {1}",
         "sum: Wrong number of arguments: expected 2 but given 1\n  in line 2"},
        {"x = @param:x -> float_type, {2}\nx = @param:y -> float_type, {2}",
         "line 2, column 1: 'x' is defined twice"},
        {"x = @param:x -> float_type, {2}\ny = @param:x -> float_type, {2}",
         "another parameter is called \"x\" as well"},
        {"x = @param:x -> float_type, {2}\ny = sum(x,x) -> float_type, {3}, {1}",
         "line 2, column 1: the result of sum is float_type, {2}, {1}, not float_type, {3}, {1}"},
        {"x = @param:x", "line 1, column 13: expected '->' but the text ends"},
        {"x @param:x -> float_type, {2}", "expected '=' but the text ends"},
        {"nonsense\nx = @param:x -> float_type, {2}",
         "line 2, column 1: expected '=' but found 'x'"},
        {"y = @literal{1, 2} -> float_type, {3}, {1}", "expected ',' but found '}'"},
        {"y = @literal{1, 2, 3} -> float_type, {2}, {1}", "expected '}' but found ','"},
        {"y = @literal{1} -> float_type, {1000}, {1}", "lists fewer than 1000 values"},
        {"y = @literal{1} -> dynamic, float_type, {[1..2]}", "cannot have a dynamic shape"},
        {"y = @literal{ ... } -> float_type, {1099511627776}, {1}", "is above the limit of"},
        {"y = @return\nz = @return", "line 2, column 1: an instruction follows @return"},
        {"y = call, [b]", "line 1, column 12: there is no module \"b\""},
        {"module: \"main\"\ny = call, [b]\nmodule: \"b\"\nz = call, [b]",
         "line 4, column 13: module \"b\" contains itself"},
        {"module: \"main\"\ny = call, [b]\nmodule: \"b\"\n",
         "call: its module has no result\n  in line 2"},
        {"module: \"other\"\n", "the first module is \"other\", not \"main\""},
        {"module: \"main\"\nmodule: \"main\"\n",
         "line 2, column 1: module \"main\" is defined twice"},
        {"module: \"main", "the string that starts here does not end"},
        {"x = @param:x -> float_type, {2}\ny = join[axes={1](x)",
         "line 2, column 17: expected ',' or '}' but found '](x)'"},
        {"x = @param:x -> float_type, {2}\ny = join[axis=1](x)",
         "No key 'axis' in join\n  in line 2"},
        {"x = @param:x -> float_type, {2}, target=1", "expected 'target_id' but found 'target=1'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mgx_program *p = parse(rows[i].text);
        const bool accepted = p != NULL;
        mgx_program_destroy(p);
        if (accepted || !strstr(diag.text, rows[i].message))
            CHECK_FAIL("%s\n  gives %s\n  expected %s", rows[i].text, diag.text, rows[i].message);
    }
}

CASE(a_body_that_captures_too_early_is_refused)
{
    CHECK(!parse("module: \"main\"\n"
                 "x = @param:x -> float_type, {2}\n"
                 "a = call, [b]\n"
                 "c = sum(x,x)\n"
                 "d = call, [b]\n"
                 "module: \"b\"\n"
                 "y = sum(c,c)\n"));
    CHECK(strstr(diag.text, "'c' is not defined before it is used"));
}

// --- random programs ---

static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

struct pool {
    struct mgx_ins *v[256];
    int count;
};

static void fill(struct mgx_program *p, struct mgx_module *m, struct pool seen, int depth)
{
    static const char *const names[] = {"x", "a:b", "a,b", "@1", "", "input.0", "main:x", "->"};
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 4);
    const int outside = seen.count;
    for (int i = 0, first = below(8); i < 1 + below(3); i++)
        seen.v[seen.count++] = mgx_add_parameter(m, names[(first + i) % 8], &shape);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, &diag) == MGX_OK) {
        mgx_tensor_generate(&t, (uint64_t)below(1000));
        seen.v[seen.count++] = mgx_add_literal(m, &t);
        mgx_tensor_release(&t);
    }
    for (int i = below(7); i >= 0; i--) {
        struct mgx_ins *a = seen.v[below(seen.count)], *b = seen.v[below(seen.count)];
        struct mgx_ins *made;
        if (depth < 3 && below(4) == 0) {
            struct mgx_module *bodies[2];
            const int count = 1 + below(2);
            for (int k = 0; k < count; k++) {
                bodies[k] = mgx_program_add_module(p, below(2) ? "body" : "the, body");
                fill(p, bodies[k], seen, depth + 1);
            }
            made = mgx_insert(m, NULL, &op_call, NULL, &a, 1, bodies, count);
        } else if (below(2)) {
            made = mgx_emit(m, &op_sum, NULL, MGX_IN(a, b));
        } else {
            made = mgx_emit(m, &op_join,
                            MGX_ATTRS(mgx_text("label", names[below(8)]),
                                      mgx_int("weight", below(99)), mgx_text("kind", "fancy")),
                            MGX_IN(a, b, a));
        }
        mgx_add_origin(made, names[below(3)]);
        seen.v[seen.count++] = made;
    }
    if (below(3))
        mgx_add_return(m, &seen.v[outside], seen.count - outside);
}

CASE(random_programs_there_and_back)
{
    for (int round = 0, rounds = check_rounds(300); round < rounds; round++) {
        struct mgx_program *p, *q, *r;
        CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
        p->print_origins = below(2);
        fill(p, mgx_program_main(p), (struct pool){.count = 0}, 0);
        CHECK_OK(mgx_program_status(p, &diag), diag);
        CHECK_OK(mgx_program_verify(p, &diag), diag);
        struct mgx_str text = {0};
        mgx_program_print(&text, p);
        if (mgx_program_parse(&q, &test_ops, text.text, text.size, &diag) != MGX_OK)
            CHECK_FAIL("%.4000s\n%s", text.text, diag.text);
        CHECK(mgx_program_equal(p, q));
        CHECK_OK(mgx_program_clone(&r, q, &diag), diag);
        CHECK_OK(mgx_program_verify(r, &diag), diag);
        CHECK(mgx_program_equal(p, r));
        mgx_str_fini(&text);
        mgx_program_destroy(p);
        mgx_program_destroy(q);
        mgx_program_destroy(r);
    }
}

// Cut anywhere, or with any byte changed, a text is read or refused, never more.
CASE(damaged_texts_are_survived)
{
    struct mgx_program *p, *q;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    do
        fill(p, mgx_program_main(p), (struct pool){.count = 0}, 2);
    while (p->module_count < 3);
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    mgx_program_destroy(p);
    for (size_t cut = 0; cut < text.size; cut++) {
        char *exact = malloc(cut + 1);
        memcpy(exact, text.text, cut);
        if (mgx_program_parse(&q, &test_ops, exact, cut, NULL) == MGX_OK)
            mgx_program_destroy(q);
        free(exact);
    }
    for (int round = 0, rounds = check_rounds(5000); round < rounds; round++) {
        const size_t at = (size_t)below((int)text.size);
        const char old = text.text[at];
        text.text[at] = (char)(below(3) ? ",(){}[]\"=->@:\n#\\09"[below(19)] : below(256));
        if (mgx_program_parse(&q, &test_ops, text.text, text.size, NULL) == MGX_OK)
            mgx_program_destroy(q);
        text.text[at] = old;
    }
    mgx_str_fini(&text);
}

CASE(deep_nesting_is_bounded)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\ny = call, [m0]\n");
    for (int i = 0; i < 5000; i++)
        mgx_str_printf(&text, "module: \"m%d\"\ny = call, [m%d]\n", i, i + 1);
    mgx_str_put(&text, "module: \"m5000\"\ny = @literal{1} -> float_type, {1}\n");
    CHECK(!parse(text.text));
    CHECK(strstr(diag.text, "modules are nested deeper than 64"));
    mgx_str_fini(&text);
}

TEST_MAIN(ROW(a_program_prints_as_it_was_read) ROW(bodies_captures_and_lists_of_modules)
              ROW(other_releases_and_wrapped_lines_are_read)
                  ROW(the_guide_s_example_with_the_real_operators) ROW(symbols_are_origins)
                      ROW(shapes_of_all_kinds) ROW(literals_of_all_types)
                          ROW(awkward_names_are_quoted) ROW(parameters_keep_their_order)
                              ROW(a_wider_declared_shape_is_kept) ROW(bad_texts_say_where_and_what)
                                  ROW(a_body_that_captures_too_early_is_refused)
                                      ROW(random_programs_there_and_back)
                                          ROW(damaged_texts_are_survived)
                                              ROW(deep_nesting_is_bounded))
