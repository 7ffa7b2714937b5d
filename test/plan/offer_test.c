// SPDX-License-Identifier: MIT
// A kernel that is asked finds nothing of what the one before it said, and what it wishes for is
// written down.
#include "op/op.h"
#include "plan/kernel.h"

#include "check.h"

enum { INPUTS = 3 };

static bool was_clean;

static enum mgx_plan_answer looks(struct mgx_plan_offer *c)
{
    was_clean = !c->state && !c->workspace && c->in_place == -1 && c->flops == 0 &&
                !c->packed_bytes && !c->why && !c->detail;
    for (int i = 0; i < c->in_count; i++)
        was_clean &= !c->skip_in[i] && !c->want_in[i];
    return mgx_plan_decline(c, "it only looks");
}

static enum mgx_plan_answer wishes(struct mgx_plan_offer *c)
{
    c->workspace = 64;
    c->in_place = 0;
    c->flops = 3;
    c->packed_bytes = 5;
    c->skip_in[2] = true;
    c->detail = "some";
    c->state = &was_clean;
    (void)mgx_plan_wish(c, 1, MGX_PLAN_ROW_MAJOR, "rows are in pieces");
    return mgx_plan_refuse(c);
}

CASE(what_one_kernel_said_is_not_the_next_ones)
{
    static const struct mgx_plan_kernel first = {.name = "first", .prepare = wishes},
                                        second = {.name = "second", .prepare = looks};
    struct mgx_arena arena;
    struct mgx_diag diag = {0};
    const struct mgx_plan_machine machine = {0};
    const struct mgx_shape out = mgx_shape_vector(MGX_FLOAT, 4);
    const struct mgx_shape in[INPUTS] = {out, out, out};
    bool skip[INPUTS] = {false};
    unsigned char want[INPUTS] = {0};
    struct mgx_plan_offer c = {.in = in,
                               .in_count = INPUTS,
                               .out = &out,
                               .arena = &arena,
                               .machine = &machine,
                               .skip_in = skip,
                               .want_in = want,
                               .diag = &diag};
    mgx_arena_init(&arena);
    CHECK_INT(mgx_plan_ask(&first, &c), MGX_PLAN_DECLINED);
    CHECK_TEXT(c.why, "rows are in pieces");
    CHECK_INT(want[1], MGX_PLAN_ROW_MAJOR);
    CHECK(!want[0] && !want[2]);
    CHECK_INT(mgx_plan_ask(&second, &c), MGX_PLAN_DECLINED);
    CHECK(was_clean);
    mgx_arena_fini(&arena);
}

TEST_MAIN(ROW(what_one_kernel_said_is_not_the_next_ones))
