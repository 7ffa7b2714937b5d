// SPDX-License-Identifier: MIT
// Macros as a C client uses them; test/python/test_macro.py has their values.
#include "api/support.h"

#include <string.h>

static void parameter(migraphx_instruction_t *out, migraphx_module_t m, const char *name,
                      migraphx_shape_t s)
{
    OK(migraphx_module_add_parameter(out, m, name, s));
}

CASE(a_macro_adds_what_it_stands_for)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_macro_t macro;
    migraphx_instructions_t args, out;
    size_t count;
    const char *name;
    char *text;
    OK(migraphx_program_create(&p));
    OK(migraphx_program_get_main_module(&m, p));
    migraphx_shape_t s = make_shape(migraphx_shape_float_type, 2, SIZES(3, 3));
    migraphx_instruction_t x = NULL, y = NULL;
    parameter(&x, m, "x", s);
    parameter(&y, m, "y", s);
    OK(migraphx_macro_create(&macro, "gemm", "transB: true, alpha: 2.0"));
    OK(migraphx_macro_name(&name, macro));
    CHECK_TEXT(name, "gemm");
    OK(migraphx_macro_options(&text, macro));
    CHECK(strstr(text, "\"alpha\"") && strstr(text, "\"transA\""));
    OK(migraphx_string_destroy(text));
    OK(migraphx_instructions_create(&args, (const_migraphx_instruction_t[]){x, y}, 2));
    OK(migraphx_module_add_macro(&out, m, macro, args, NULL));
    OK(migraphx_instructions_size(&count, out));
    CHECK_INT(count, 1);
    OK(migraphx_module_to_string(&text, m));
    CHECK(strstr(text, "transpose") && strstr(text, "dot"));
    OK(migraphx_string_destroy(text));
    migraphx_instructions_destroy(out);
    FAILS(migraphx_module_insert_macro(&out, m, y, macro, args, NULL),
          migraphx_status_unknown_error, "argument 1 (@param) comes after the place");
    migraphx_instructions_destroy(args);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    migraphx_macro_destroy(macro);
    migraphx_shape_destroy(s);
    migraphx_program_destroy(p);
}

CASE(names_are_listed_in_order)
{
    size_t count;
    const char *before = "", *name;
    OK(migraphx_get_macros_size(&count));
    CHECK(count > 25);
    for (size_t i = 0; i < count; i++) {
        OK(migraphx_get_macro_name_at_index(&name, i));
        CHECK(strcmp(before, name) < 0);
        before = name;
    }
    CHECK_INT(migraphx_get_macro_name_at_index(&name, count), migraphx_status_bad_param);
}

CASE(mistakes_are_refused)
{
    migraphx_macro_t macro;
    CHECK_INT(migraphx_macro_create(NULL, "gemm", NULL), migraphx_status_bad_param);
    CHECK_INT(migraphx_macro_create(&macro, NULL, NULL), migraphx_status_bad_param);
    FAILS(migraphx_macro_create(&macro, "no_such", NULL), migraphx_status_unknown_error,
          "no macro and no operator is named no_such");
    FAILS(migraphx_macro_create(&macro, "celu", "beta: 1"), migraphx_status_unknown_error,
          "No key 'beta' in celu; it has alpha");
    OK(migraphx_macro_destroy(NULL));
    CHECK_INT(migraphx_macro_name(NULL, NULL), migraphx_status_bad_param);
    CHECK_INT(migraphx_module_add_macro(NULL, NULL, NULL, NULL, NULL), migraphx_status_bad_param);
}

TEST_MAIN(ROW(a_macro_adds_what_it_stands_for) ROW(names_are_listed_in_order)
              ROW(mistakes_are_refused))
