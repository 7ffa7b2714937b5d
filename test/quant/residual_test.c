// SPDX-License-Identifier: MIT
// What is never negative has all steps of uint8; sums behind narrow convolutions read what is
// quantized anyway, others keep their floats.
#include "op/op.h"
#include "world.h"

enum { PLACES = 2 * 4 * 4 };

#define CONV "convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0]"

// Two convolutions around which x goes, and one more.
static const char block[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {1, 2, 4, 4}, {32, 16, 4, 1}\n"
    "u = @literal{1, -0.5, 0.25, 0.75} -> float_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
    "v = @literal{-1, 0.5, 0.3, -0.7} -> float_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
    "w = @literal{0.5, 2, -0.25, 1} -> float_type, {2, 2, 1, 1}, {2, 1, 1, 1}\n"
    "b = @literal{0.125, -0.25} -> float_type, {2}, {1}\n"
    "bb = broadcast[axis=1,out_lens={1, 2, 4, 4}](b)\n"
    "c = " CONV "(x, u)\n"
    "r = relu(c)\n";

static void quantize(struct world *world, const char *tail, double *in_float,
                     struct mgx_program **out)
{
    static float data[PLACES];
    static struct mgx_shape shape;
    static uint64_t state = 0x9e3779b97f4a7c15;
    shape = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){1, 2, 4, 4});
    for (int i = 0; i < PLACES; i++)
        data[i] = (float)(4 * world_random(&state));
    *world = (struct world){.target = mgx_target_find("ref")};
    world_give(world, "x", &shape, data);
    struct mgx_str text = {0};
    mgx_str_printf(&text, "%s%s", block, tail);
    *out = world_parse(mgx_str_text(&text));
    mgx_str_fini(&text);
    CHECK(world_result(world, *out, 0, in_float));
    const struct mgx_quant_options options = world_options();
    CHECK(world_quantize(world, *out, &options, NULL));
}

static const struct mgx_ins *find(const struct mgx_program *p, const struct mgx_op *op, int number)
{
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (ins->op == op && number-- == 0)
            return ins;
    return NULL;
}

static void check_close(struct world *world, const struct mgx_program *p, const double *want)
{
    double got[PLACES];
    static const char *const targets[] = {"ref", "cpu"};
    for (int t = 0; t < 2; t++) {
        world->target = mgx_target_find(targets[t]);
        CHECK(world_result(world, p, 0, got));
        for (int i = 0; i < PLACES; i++)
            CHECK_NEAR(got[i], want[i], 0.2); // some steps of 4 / 127
    }
}

CASE(a_sum_reads_the_bytes_of_a_residual)
{
    struct world world;
    double want[PLACES];
    struct mgx_program *p = NULL;
    quantize(&world,
             "d = " CONV "(r, v)\n"
             "e = add(d, bb)\n"
             "s = add(e, r)\n"
             "y = relu(s)\n"
             "f = " CONV "(y, w)\n"
             "z = @return(f)\n",
             want, &p);
    CHECK_INT(world_count(p, "quantizelinear"), 3);
    const struct mgx_ins *sum = find(p, &mgx_op_add, 1);
    CHECK(sum && sum->in[1]->op == &mgx_op_dequantizelinear);
    CHECK_INT(find(p, &mgx_op_quantizelinear, 0)->shape.type, MGX_INT8); // x has both signs
    for (int i = 1; i < 3; i++) {
        CHECK_INT(find(p, &mgx_op_quantizelinear, i)->shape.type, MGX_UINT8);
        CHECK_INT(find(p, &mgx_op_quantizelinear, i)->in_count, 2);
    }
    check_close(&world, p, want);
    mgx_program_destroy(p);
}

CASE(other_sums_keep_their_floats)
{
    static const char *const tails[] = {
        // before r is quantized
        "s = add(c, r)\nd = " CONV "(r, v)\ne = add(d, s)\nz = @return(e)\n",
        // of what was no convolution
        "d = " CONV "(r, v)\ng = exp(x)\ns = add(g, r)\ne = add(s, d)\nz = @return(e)\n",
        // of what was one, but through another operator
        "d = " CONV "(r, v)\ng = softmax[axis=1](d)\ns = add(g, r)\nz = @return(s)\n",
        // of a convolution and of what is none
        "d = " CONV "(r, v)\ng = exp(x)\nh = mul(d, g)\ns = add(h, r)\nz = @return(s)\n"};
    for (int i = 0; i < 4; i++) {
        struct world world;
        double want[PLACES];
        struct mgx_program *p = NULL;
        quantize(&world, tails[i], want, &p);
        for (int k = 0; find(p, &mgx_op_add, k); k++)
            for (int j = 0; j < 2; j++)
                CHECK(find(p, &mgx_op_add, k)->in[j]->op != &mgx_op_dequantizelinear);
        mgx_program_destroy(p);
    }
}

TEST_MAIN(ROW(a_sum_reads_the_bytes_of_a_residual) ROW(other_sums_keep_their_floats))
