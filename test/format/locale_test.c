// SPDX-License-Identifier: MIT
// Every form that a program, a value tree, a rule or a tuning cache has as text: the same bytes
// under a locale with a decimal comma as without, and read back to the same.
#include "format/format.h"

#include "check.h"
#include "format/tree.h"
#include "op/op.h"
#include "pass/engine/match.h"
#include "plan/tuning.h"
#include "targets/target.h"
#include "test_locale.h"

static const char PROGRAM[] =
    "x = @param:x -> float_type, {2, 2}, {2, 1}\n"
    "main:@1 = @literal{0.1, -2.5, 1e-30, 12345.6} -> float_type, {2, 2}, {2, 1}\n"
    "main:@2 = leaky_relu[alpha=0.015625](x) -> float_type, {2, 2}, {2, 1}\n"
    "main:@3 = add(main:@2,main:@1) -> float_type, {2, 2}, {2, 1}\n"
    "main:@4 = @return(main:@3)\n";

static enum mgx_status append(struct mgx_sink *sink, const void *data, size_t size,
                              struct mgx_diag *diag)
{
    (void)diag;
    mgx_str_putn(sink->user, data, size);
    return MGX_OK;
}

// PROGRAM read and printed again, then in every other form.
static void put_program(struct mgx_str *out, struct mgx_diag *diag)
{
    struct mgx_program *p;
    int count;
    const struct mgx_format *const *formats = mgx_format_all(&count);
    CHECK_OK(mgx_program_parse(&p, &mgx_ops, PROGRAM, strlen(PROGRAM), diag), *diag);
    mgx_program_print(out, p);
    for (int i = 0; i < count; i++)
        CHECK_OK(formats[i]->print(out, p, diag), *diag);
    mgx_program_destroy(p);
}

static void put_tree(struct mgx_str *out, struct mgx_diag *diag)
{
    static const char text[] = "[0.1,2.5e-300,-7.0,3]";
    struct mgx_arena arena;
    struct mgx_value *v;
    mgx_arena_init(&arena);
    CHECK_OK(mgx_json_read(&arena, text, strlen(text), &v, diag), *diag);
    struct mgx_sink sink = {.write = append, .user = out};
    CHECK_OK(mgx_json_write(&sink, v, diag), *diag);
    mgx_arena_fini(&arena);
}

static void put_tuning(struct mgx_str *out, struct mgx_diag *diag)
{
    static const char text[] = "migraphx-tuning 1\nproblem\tchoice\t12.125\n";
    struct mgx_tuning t;
    mgx_tuning_init(&t);
    CHECK_OK(mgx_tuning_read(&t, text, strlen(text), diag), *diag);
    mgx_tuning_print(&t, out);
    mgx_tuning_fini(&t);
}

static void put_rule(struct mgx_str *out)
{
    struct mgx_pattern p;
    const char *text = "mul(a, 0.70710678)";
    CHECK(mgx_pattern_parse(&p, &text));
    for (int i = 0; i < p.count; i++)
        if (p.node[i].kind == MGX_MATCH_VALUE)
            mgx_str_printf(out, "rule: %.9g\n", p.node[i].value);
}

// Numbers to strings and back: what the operator does, not only what prints it.
static void put_converted(struct mgx_str *out, struct mgx_diag *diag)
{
    char text[256];
    snprintf(text, sizeof text,
             "main:@0 = @literal{0.1, -2.5} -> double_type, {2}, {1}\n"
             "main:@1 = convert[target_type=%d](main:@0)\n"
             "main:@2 = convert[target_type=%d](main:@1)\n"
             "main:@3 = @return(main:@2)\n",
             MGX_STRING, MGX_DOUBLE);
    struct mgx_program *p;
    struct mgx_tensor result = {.data = NULL};
    const struct mgx_compile_options options = {.threads = 1};
    CHECK_OK(mgx_program_parse(&p, &mgx_ops, text, strlen(text), diag), *diag);
    CHECK_OK(mgx_program_compile(p, mgx_target_find("ref"), &options, diag), *diag);
    struct mgx_run call = {.results = &result, .result_count = 1};
    CHECK_OK(mgx_program_run(p, &call, diag), *diag);
    const double *v = (const double *)result.data;
    mgx_str_printf(out, "converted: %.17g %.17g\n", v[0], v[1]);
    mgx_tensor_release(&result);
    mgx_program_destroy(p);
}

static void put_all(struct mgx_str *out)
{
    struct mgx_diag diag = {0};
    put_program(out, &diag);
    put_tree(out, &diag);
    put_tuning(out, &diag);
    put_rule(out);
    put_converted(out, &diag);
}

CASE(texts_are_the_same_under_a_comma)
{
    struct mgx_str plain = {0}, comma = {0};
    put_all(&plain);
    CHECK(strstr(mgx_str_text(&plain), "alpha=0.015625"));
    CHECK(strstr(mgx_str_text(&plain), "[0.10000000000000001,2.5"));
    CHECK(strstr(mgx_str_text(&plain), "problem\tchoice\t12.125\n"));
    CHECK(strstr(mgx_str_text(&plain), "rule: 0.70710678\n"));
    CHECK(strstr(mgx_str_text(&plain), "converted: 0.10000000000000001 -2.5\n"));
    if (test_locale_enter_comma()) {
        put_all(&comma);
        CHECK_TEXT(mgx_str_text(&comma), mgx_str_text(&plain));
    } else
        printf("skipped: no locale with a decimal comma, and none could be made\n");
    mgx_str_fini(&plain);
    mgx_str_fini(&comma);
}

TEST_MAIN(ROW(texts_are_the_same_under_a_comma))
