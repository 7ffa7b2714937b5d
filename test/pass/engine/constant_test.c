// SPDX-License-Identifier: MIT
// One value everywhere: of literals behind broadcasts, of no elements none.
#include "pass/engine/constant.h"

#include "check.h"
#include "op/op.h"

static const char text[] = "module: \"main\"\n"
                           "a = @literal{3} -> float_type, {1}, {1}\n"
                           "b = @literal{3, 3, 4} -> float_type, {3}, {1}\n"
                           "c = multibroadcast[out_lens={2, 3}](a)\n"
                           "d = multibroadcast[out_lens={0, 3}](a)\n"
                           "e = multibroadcast[out_lens={2, 3}](b)\n"
                           "@1 = @return(c, d, e)\n";

CASE(a_value_is_everywhere_or_nowhere)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    double value = 0;
    CHECK_OK(mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag), diag);
    struct mgx_ins *const *results = mgx_program_main(p)->last->in;
    CHECK(mgx_splat_value(results[0], &value) && value == 3);
    CHECK(!mgx_splat_value(results[1], &value)); // of no element
    CHECK(!mgx_splat_value(results[2], &value));
    CHECK(mgx_scalar_constant(results[0]) && !mgx_scalar_constant(results[2]));
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(a_value_is_everywhere_or_nowhere))
