// SPDX-License-Identifier: MIT
// Where operands lie in a run: behind the place that they count from, each kind in its own memory.
#include "plan/context.h"

#include "check.h"

static unsigned char scratch[64], constant[64], param[64], result[64];

CASE(an_operand_lies_behind_where_its_place_begins)
{
    struct mgx_plan plan = {.param_count = 1, .result_count = 1};
    plan.block[MGX_PLAN_HOST].bytes = sizeof scratch;
    const struct mgx_named_tensor given = {.tensor = {.data = param}};
    void *out[1] = {result};
    const struct mgx_context x = {
        .plan = &plan, .scratch = {[MGX_PLAN_HOST] = scratch}, .out = out, .params = &given};
    const struct mgx_plan_ref of[] = {
        {.place = MGX_PLAN_SCRATCH, .side = MGX_PLAN_HOST, .offset = 24},
        {.place = MGX_PLAN_CONST, .data = constant, .offset = 8},
        {.place = MGX_PLAN_PARAM, .index = 0, .offset = 16},
        {.place = MGX_PLAN_RESULT, .index = 0, .offset = 32},
        {.place = MGX_PLAN_DYNAMIC, .offset = 0},
    };
    CHECK(mgx_context_address(&x, &of[0]) == scratch + 24);
    CHECK(mgx_context_address(&x, &of[1]) == constant + 8);
    CHECK(mgx_context_address(&x, &of[2]) == param + 16);
    CHECK(mgx_context_address(&x, &of[3]) == result + 32);
    CHECK(mgx_context_address(&x, &of[4]) == NULL);
}

TEST_MAIN(ROW(an_operand_lies_behind_where_its_place_begins))
