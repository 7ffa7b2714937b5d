// SPDX-License-Identifier: MIT
// How many threads a program gets where nobody says so: what OpenMP's variable says.
#include "api/support.h"

#include <stdlib.h>
#include <string.h>

static void explain(char **out)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_instruction_t x, y;
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    migraphx_shape_t s = make_shape(migraphx_shape_float_type, 1, SIZES(4));
    must(migraphx_module_add_parameter(&x, m, "x", s));
    y = add(m, "relu", NULL, x, NULL);
    add_return(m, y);
    compile_for(p, "cpu");
    must(migraphx_program_explain(out, p));
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    migraphx_shape_destroy(s);
    migraphx_program_destroy(p);
}

// The environment is read once, so this program has one case. The second number is for nesting.
CASE(openmp_says_how_many)
{
    char *text;
    unsetenv("MIGRAPHX_NUM_THREADS");
    setenv("OMP_NUM_THREADS", "3,5", 1);
    explain(&text);
    const bool three = strstr(text, "threads: 3") != NULL;
    migraphx_string_destroy(text);
    CHECK(three);
}

TEST_MAIN(ROW(openmp_says_how_many))
