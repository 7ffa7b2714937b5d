// SPDX-License-Identifier: MIT
// What the CPU says its products take; that it is taken is of quantized_test and
// epilogue_test.
#include "op/op.h"
#include "targets/cpu/lower/epilogue.h"

#include "check.h"
#include "plan/table.h"

// q1(x) and q2(y) are both read by `meet`, and q(meet) is what all comes to.
static bool goes_on(const char *meet, bool both)
{
    char text[512];
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {4}, {1}\n"
             "s = @param:s -> float_type, {4}, {1}\n"
             "a = quantizelinear(x, s)\n"
             "b = quantizelinear(x, s)\n"
             "c = dequantizelinear(a, s)\n"
             "d = dequantizelinear(b, s)\n"
             "e = %s(c, d)\n"
             "f = quantizelinear(e, s)\n"
             "@9 = @return(f)\n",
             meet);
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK)
        return printf("%s\n", diag.text), false;
    struct mgx_ins *f = mgx_program_main(p)->last->in[0], *e = f->in[0], *c = e->in[0],
                   *d = e->in[1];
    struct mgx_ins *const steps[] = {f, e, c, d, d->in[0]};
    const struct mgx_product_roles roles = {
        .steps = steps, .step_count = both ? 5 : 4, .bytes = c->in[0], .meet = e};
    const bool takes = cpu_takes(NULL, &roles);
    mgx_program_destroy(p);
    return takes;
}

CASE(behind_bytes_one_operand_is_mixed_in)
{
    CHECK(goes_on("add", false));
    CHECK(!goes_on("mul", false));
    CHECK(!goes_on("add", true)); // bytes of two lines
}

// A function of bytes with so many steps, and as many constants.
static bool is_table(int steps, int constants)
{
    enum { MOST = 80 };
    static struct mgx_ins ins[MOST], constant[MOST];
    static struct mgx_ins *in[MOST][2], *list[MOST];
    static struct mgx_tensor one = {.shape = {.type = MGX_FLOAT}};
    for (int i = 0; i < steps; i++) {
        constant[i] =
            (struct mgx_ins){.op = &mgx_op_literal, .shape = {.type = MGX_FLOAT}, .literal = &one};
        in[i][0] = &ins[i + 1 < MOST ? i + 1 : 0];
        in[i][1] = i < constants ? &constant[i] : &constant[0];
        ins[i] = (struct mgx_ins){.op = &mgx_op_add, .in = in[i], .in_count = 2};
        list[i] = &ins[i];
    }
    ins[steps] = (struct mgx_ins){.op = &mgx_op_param, .shape = {.type = MGX_UINT8}};
    const struct mgx_product_roles roles = {
        .product = &ins[steps], .steps = list, .step_count = steps};
    return cpu_takes(NULL, &roles);
}

CASE(a_function_of_bytes_is_as_long_as_its_table_can_be_made)
{
    CHECK(is_table(MGX_PLAN_TABLE_STEPS, 4));
    CHECK(!is_table(MGX_PLAN_TABLE_STEPS + 1, 4));
    CHECK(is_table(50, 32));
    CHECK(!is_table(50, 33)); // a program that runs, not a table
}

CASE(nothing_is_done_before_a_product_but_a_factor)
{
    struct mgx_ins ins = {.op = &mgx_op_relu, .shape = {.type = MGX_BF16}};
    CHECK(cpu_takes(NULL, &(struct mgx_product_roles){.factor = &ins}));
    CHECK(!cpu_takes(NULL, &(struct mgx_product_roles){.make = &ins}));
    CHECK(!cpu_takes(NULL, &(struct mgx_product_roles){.pad = &ins}));
    CHECK(!cpu_takes(NULL, &(struct mgx_product_roles){.end = &ins}));
}

TEST_MAIN(ROW(behind_bytes_one_operand_is_mixed_in)
              ROW(a_function_of_bytes_is_as_long_as_its_table_can_be_made)
                  ROW(nothing_is_done_before_a_product_but_a_factor))
