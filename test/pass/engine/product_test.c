// SPDX-License-Identifier: MIT
// Roles of what a product takes: read from groups as the pass made them, and refused of other bodies.
#include "pass/engine/product.h"

#include "check.h"
#include "pass/engine/region.h"
#include "pass/pass.h"

static bool takes_all(void *user, const struct mgx_product_roles *roles)
{
    return !user && roles;
}

static bool supports_all(void *user, const char *tag, const struct mgx_region *region)
{
    return !user && tag && region;
}

// The program whose lines these are, with its products and what they take in groups.
static struct mgx_program *fused(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_pass *const passes[] = {&mgx_pass_fuse_epilogue, NULL};
    const struct mgx_pass_options options = {
        .target = {.takes = takes_all, .supports = supports_all}, .verify = true};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK ||
        mgx_run_passes(p, passes, &options, &diag) != MGX_OK)
        printf("%s\n", diag.text);
    return p;
}

static const struct mgx_ins *group_of(const struct mgx_program *p)
{
    const struct mgx_ins *ins = mgx_program_main(p)->first;
    while (ins && ins->op != &mgx_op_group)
        ins = ins->next;
    return ins;
}

#define OF_GROUP(text)                                                                             \
    struct mgx_program *p = fused(text);                                                           \
    const struct mgx_ins *group = group_of(p);                                                     \
    struct mgx_product_roles roles;                                                                \
    CHECK(group &&mgx_read_product(group, &roles) && roles.body == group->mod[0])

CASE(a_product_and_what_reads_it)
{
    OF_GROUP("module: \"main\"\n"
             "r = @param:r -> float_type, {4, 6}, {6, 1}\n"
             "x = @param:x -> float_type, {4, 5}, {5, 1}\n"
             "w = @param:w -> float_type, {5, 6}, {6, 1}\n"
             "y = dot(x, w)\n"
             "z = add(r, y)\n"
             "@9 = @return(z)\n");
    CHECK(roles.product->op == &mgx_op_dot && roles.end && roles.end->op == &mgx_op_add);
    CHECK(!roles.factor && !roles.make && !roles.pad);
    for (int i = 0; i < 2; i++)
        CHECK(group->in[mgx_product_operand(&roles, i)]->shape.lens[i] == (i ? 6 : 4));
    mgx_program_destroy(p);
}

CASE(a_padded_image_that_is_made)
{
    OF_GROUP("module: \"main\"\n"
             "x = @param:x -> float_type, {1, 2, 4, 4}, {32, 16, 4, 1}\n"
             "w = @literal{1, 2, 3, 4} -> int8_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
             "m = convert[target_type=6](x)\n"
             "p = pad[pads={0, 0, 1, 1, 0, 0, 1, 1},value=3](m)\n"
             "y = quant_convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](p, w)\n"
             "z = convert[target_type=2](y)\n"
             "@9 = @return(z)\n");
    CHECK(roles.make && roles.make->op == &mgx_op_convert && roles.pad &&
          roles.pad->in[0] == roles.make && roles.product->in[0] == roles.pad);
    CHECK(roles.end && roles.end->in[0] == roles.product && !roles.factor);
    const int image = mgx_product_operand(&roles, 0);
    CHECK(image >= 0);
    CHECK(group->in[image]->op == &mgx_op_param && group->in[image]->shape.type == MGX_FLOAT);
    mgx_program_destroy(p);
}

CASE(an_image_that_is_padded_for_two)
{
    struct mgx_program *p =
        fused("module: \"main\"\n"
              "x = @param:x -> uint8_type, {1, 2, 4, 4}, {32, 16, 4, 1}\n"
              "w = @literal{1, 2, 3, 4} -> int8_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
              "v = @literal{4, 3, 2, 1} -> int8_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
              "p = pad[pads={0, 0, 1, 1, 0, 0, 1, 1},value=3](x)\n"
              "y = quant_convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](p, w)\n"
              "z = quant_convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](p, v)\n"
              "a = convert[target_type=2](y)\n"
              "b = convert[target_type=2](z)\n"
              "@9 = @return(a, b)\n");
    int groups = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next) {
        struct mgx_product_roles roles;
        CHECK(ins->op != &mgx_op_pad);
        if (ins->op == &mgx_op_group) {
            groups++;
            CHECK(mgx_read_product(ins, &roles) && roles.pad && roles.end && !roles.make);
        }
    }
    CHECK(groups == 2);
    mgx_program_destroy(p);
}

CASE(a_factor_of_every_channel)
{
    OF_GROUP("module: \"main\"\n"
             "x = @param:x -> float_type, {1, 2, 4, 4}, {32, 16, 4, 1}\n"
             "f = @param:f -> float_type, {1, 2, 1, 1}, {2, 1, 1, 1}\n"
             "w = @literal{1, 2, 3, 4} -> float_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
             "b = multibroadcast[out_lens={1, 2, 4, 4}](f)\n"
             "m = mul(x, b)\n"
             "y = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](m, w)\n"
             "z = relu(y)\n"
             "@9 = @return(z)\n");
    CHECK(roles.factor && roles.factor->op == &mgx_op_mul && !roles.make && !roles.pad);
    CHECK(group->in[mgx_product_operand(&roles, 1)]->op == &mgx_op_literal);
    mgx_program_destroy(p);
}

CASE(other_bodies_have_no_roles)
{
    struct mgx_program *p = fused("module: \"main\"\n"
                                  "x = @param:x -> float_type, {4, 4}, {4, 1}\n"
                                  "e = exp(x)\n"
                                  "y = dot(e, x)\n"
                                  "z = relu(y)\n"
                                  "a = tanh(z)\n"
                                  "@9 = @return(a)\n");
    const struct mgx_ins *group = group_of(p);
    struct mgx_product_roles roles;
    CHECK(group && mgx_read_product(group, &roles));
    CHECK(!mgx_read_product(mgx_program_main(p)->first, &roles));       // a parameter
    CHECK(!mgx_read_product(mgx_program_main(p)->first->next, &roles)); // no product
    // A second instruction behind the product.
    struct mgx_module *body = group->mod[0];
    struct mgx_ins *last = mgx_module_result(body, 0);
    struct mgx_ins *more = mgx_insert(body, body->last, &mgx_op_abs, NULL, &last, 1, NULL, 0);
    mgx_set_input(body->last, 0, more);
    CHECK(!mgx_read_product(group, &roles));
    mgx_program_destroy(p);
}

CASE(who_is_not_asked_takes_what_is_behind)
{
    const struct mgx_pass_options options = {.verify = true};
    struct mgx_ins ins = {.op = &mgx_op_relu, .shape = {.type = MGX_HALF}};
    CHECK(mgx_target_takes(&options, &(struct mgx_product_roles){.factor = &ins}));
    CHECK(!mgx_target_takes(&options, &(struct mgx_product_roles){.make = &ins}));
    CHECK(!mgx_target_takes(&options, &(struct mgx_product_roles){.pad = &ins}));
    CHECK(!mgx_target_takes(&options, &(struct mgx_product_roles){.end = &ins}));
    ins.shape.type = MGX_FLOAT;
    CHECK(mgx_target_takes(&options, &(struct mgx_product_roles){.end = &ins}));
}

TEST_MAIN(ROW(a_product_and_what_reads_it) ROW(a_padded_image_that_is_made)
              ROW(an_image_that_is_padded_for_two) ROW(a_factor_of_every_channel)
                  ROW(other_bodies_have_no_roles) ROW(who_is_not_asked_takes_what_is_behind))
