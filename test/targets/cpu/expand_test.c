// SPDX-License-Identifier: MIT
// Inverted residuals become one step where the wide image does not fit the L2 cache, with the
// reference's values; where others read that image, or it is small, they stay two.
#include <math.h>

#include "targets/cpu/machine/cpuid.h"
#include "targets/cpu/program.h"

enum { NARROW = 6, WIDE = 20, WIDTH = 40 };

static int height; // of a wide image a little larger than the cache

static void put_literal(struct mgx_str *s, const char *name, int count, const char *shape)
{
    mgx_str_printf(s, "%s = @literal{", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(s, "%s%g", i ? ", " : "", (i * 7 % 13 - 6) * 0.125);
    mgx_str_printf(s, "} -> float_type, %s\n", shape);
}

// x, weights w and v, biases b and c over all of the wide image and of the result.
static void put_head(struct mgx_str *s, int rows, int stride)
{
    const int out = (rows - 1) / stride + 1, across = (WIDTH - 1) / stride + 1;
    mgx_str_printf(s,
                   "module: \"main\"\nx = @param:x -> float_type, {1, %d, %d, %d}, {%d, %d, %d, "
                   "1}\n",
                   NARROW, rows, WIDTH, NARROW * rows * WIDTH, rows * WIDTH, WIDTH);
    put_literal(s, "@1", WIDE * NARROW, "{20, 6, 1, 1}, {6, 1, 1, 1}");
    put_literal(s, "@2", WIDE * 9, "{20, 1, 3, 3}, {9, 9, 3, 1}");
    put_literal(s, "@3", WIDE, "{20}, {1}");
    mgx_str_printf(s, "@4 = broadcast[axis=1,out_lens={1, 20, %d, %d}](@3)\n", rows, WIDTH);
    mgx_str_printf(s, "@5 = broadcast[axis=1,out_lens={1, 20, %d, %d}](@3)\n", out, across);
    mgx_str_printf(s, "@6 = convolution[padding={0, 0},stride={1, 1},dilation={1, "
                      "1},group=1,padding_mode=0](x,@1)\n@7 = add(@6,@4)\n");
}

static void put_depthwise(struct mgx_str *s, int stride, const char *x)
{
    mgx_str_printf(s,
                   "@20 = convolution[padding={1, 1},stride={%d, %d},dilation={1, "
                   "1},group=20,padding_mode=0](%s,@2)\n@21 = add(@20,@5)\n",
                   stride, stride, x);
}

// How many steps the plan has fed, and none by the reference.
static int fed_of(const struct mgx_program *p)
{
    struct mgx_str text = {0};
    int fed = 0;
    mgx_target_cpu.explain(p, &text);
    for (const char *at = mgx_str_text(&text); (at = strstr(at, "fed by the one before")); at++)
        fed++;
    mgx_str_fini(&text);
    return fed;
}

static bool agrees(struct mgx_str *text, int fed)
{
    bool good = true;
    for (int threads = 1; threads < 4; threads++) {
        struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
        struct mgx_program *ref = program_compile(mgx_str_text(text), "ref", 1),
                           *cpu = program_compile(mgx_str_text(text), "cpu", threads);
        good = good && ref && cpu && fed_of(cpu) == fed && program_run(ref, &expected) &&
               program_run(cpu, &actual) && program_distance(&actual, &expected).relative < 1e-6;
        mgx_tensor_release(&expected);
        mgx_tensor_release(&actual);
        mgx_program_destroy(ref);
        mgx_program_destroy(cpu);
    }
    mgx_str_fini(text);
    return good;
}

CASE(clamps_and_strides)
{
    for (int stride = 1; stride < 3; stride++) {
        struct mgx_str s = {0};
        put_head(&s, height, stride);
        mgx_str_printf(&s, "@8 = relu(@7)\n");
        put_depthwise(&s, stride, "@8");
        mgx_str_printf(&s, "@22 = relu(@21)\n@23 = @return(@22)\n");
        CHECK(agrees(&s, 1));
    }
}

CASE(activations_over_the_tile)
{
    struct mgx_str s = {0};
    put_head(&s, height, 1);
    mgx_str_printf(&s, "@8 = sigmoid(@7)\n@9 = mul(@7,@8)\n");
    put_depthwise(&s, 1, "@9");
    mgx_str_printf(&s, "@22 = sigmoid(@21)\n@23 = mul(@21,@22)\n@24 = @return(@23)\n");
    CHECK(agrees(&s, 1));
}

// Neither is an activation that the kernels know: block programs over every tile, of both stages.
CASE(any_epilogue)
{
    struct mgx_str s = {0};
    put_head(&s, height, 1);
    mgx_str_printf(&s, "@8 = tanh(@7)\n@9 = mul(@8,@4)\n@10 = abs(@9)\n");
    put_depthwise(&s, 1, "@10");
    mgx_str_printf(&s, "@22 = tanh(@21)\n@23 = mul(@22,@5)\n@24 = abs(@23)\n@25 = @return(@24)\n");
    CHECK(agrees(&s, 1));
}

CASE(without_any_epilogue)
{
    struct mgx_str s = {0};
    put_head(&s, height, 1);
    put_depthwise(&s, 1, "@6");
    mgx_str_printf(&s, "@22 = @return(@20)\n");
    CHECK(agrees(&s, 1));
}

// Three planes of an image, as they lie: the strips of a 3 x 3 convolution of stride 2 feed.
CASE(first_layer)
{
    struct mgx_str s = {0};
    const int rows = 2 * height, width = 2 * WIDTH;
    mgx_str_printf(&s,
                   "module: \"main\"\nx = @param:x -> float_type, {1, 3, %d, %d}, {%d, %d, %d, "
                   "1}\n",
                   rows, width, 3 * rows * width, rows * width, width);
    put_literal(&s, "@1", WIDE * 27, "{20, 3, 3, 3}, {27, 9, 3, 1}");
    put_literal(&s, "@2", WIDE * 9, "{20, 1, 3, 3}, {9, 9, 3, 1}");
    put_literal(&s, "@3", WIDE, "{20}, {1}");
    mgx_str_printf(&s, "@5 = broadcast[axis=1,out_lens={1, 20, %d, %d}](@3)\n", height, WIDTH);
    mgx_str_printf(&s, "@6 = convolution[padding={1, 1},stride={2, 2},dilation={1, "
                       "1},group=1,padding_mode=0](x,@1)\n@7 = relu(@6)\n");
    put_depthwise(&s, 1, "@7");
    mgx_str_printf(&s, "@22 = relu(@21)\n@23 = @return(@22)\n");
    CHECK(agrees(&s, 1));
}

CASE(small_or_shared_images_stay_two_steps)
{
    struct mgx_str small = {0}, shared = {0};
    put_head(&small, 30, 1);
    put_depthwise(&small, 1, "@7");
    mgx_str_printf(&small, "@22 = @return(@21)\n");
    CHECK(agrees(&small, 0));
    put_head(&shared, height, 1);
    put_depthwise(&shared, 1, "@7");
    mgx_str_printf(&shared, "@22 = add(@21,@7)\n@23 = @return(@22)\n");
    CHECK(agrees(&shared, 0));
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(clamps_and_strides) ROW(activations_over_the_tile) ROW(any_epilogue)
            ROW(without_any_epilogue) ROW(first_layer)
                ROW(small_or_shared_images_stay_two_steps){NULL, NULL}};
    const size_t l2 = mgx_cpu()->l2 ? mgx_cpu()->l2 : 1 << 20;
    height = (int)(l2 / (WIDE * WIDTH * sizeof(float)));
    return check_run(cases, argc, argv);
}
