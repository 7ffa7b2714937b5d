// SPDX-License-Identifier: MIT
// Weights of 4 bits against the formula, block by block, at lengths that blocks do not divide.
#include "world.h"

enum { COLUMNS = 3 };

static uint64_t state = 0x853c49e6748fea9b;

// The weights as the program has them, found by feeding it the unit matrix.
static bool weights_of(struct world *w, struct mgx_program *p, double *out)
{
    return world_result(w, p, 0, out);
}

static void check(int length, int block, bool symmetric)
{
    static float unit[300 * 300], w[300 * COLUMNS];
    static double got[300 * COLUMNS];
    struct world world = {.target = mgx_target_find("cpu")};
    struct mgx_diag diag = {0};
    struct mgx_str text = {0};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){length, length});
    memset(unit, 0, sizeof unit);
    for (int i = 0; i < length; i++)
        unit[i * length + i] = 1;
    mgx_str_printf(&text,
                   "module: \"main\"\nx = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
                   "w = @literal{",
                   length, length, length);
    for (int i = 0; i < length * COLUMNS; i++) {
        w[i] = i / COLUMNS < 3 ? 0 : (float)(world_random(&state) + (i % 2 ? 0.5 : -0.25));
        mgx_str_printf(&text, "%s%.9g", i ? ", " : "", (double)w[i]);
    }
    mgx_str_printf(&text, "} -> float_type, {%d, 3}, {3, 1}\ny = dot(x, w)\nz = @return(y)\n",
                   length);
    struct mgx_program *p = world_parse(text.text);
    mgx_str_fini(&text);
    world_give(&world, "x", &shape, unit);
    CHECK_OK(mgx_quantize_weights4(p, block, symmetric, &diag), diag);
    CHECK_INT(world_count(p, "dequantizelinear"), 1);
    CHECK(weights_of(&world, p, got));
    const int size = block && block < length ? block : length;
    for (int from = 0; from < length; from += size)
        for (int j = 0; j < COLUMNS; j++) {
            const int to = from + size < length ? from + size : length;
            double low = 0, high = 0;
            for (int k = from; k < to; k++) {
                low = fmin(low, (double)w[k * COLUMNS + j]);
                high = fmax(high, (double)w[k * COLUMNS + j]);
            }
            const double step = symmetric ? fmax(-low, high) / 7 : (high - low) / 15;
            const float s = step > 0 ? (float)step : 1;
            const double z = symmetric ? 0 : nearbyint(-low / (double)s);
            for (int k = from; k < to; k++) {
                double q = nearbyint((double)w[k * COLUMNS + j] / (double)s) + z;
                q = symmetric ? fmin(fmax(q, -7), 7) : fmin(fmax(q, 0), 15);
                CHECK_NEAR(got[k * COLUMNS + j], (q - z) * (double)s, 1e-6);
            }
        }
    mgx_program_destroy(p);
}

CASE(blocks_are_rounded_by_the_formula)
{
    static const int lengths[] = {32, 64, 128, 33, 100, 257};
    for (int i = 0; i < 6; i++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            check(lengths[i], 32, symmetric);
            check(lengths[i], 0, symmetric);
            if (lengths[i] >= 128)
                check(lengths[i], 128, symmetric);
        }
}

CASE(few_weights_and_unknown_ones_stay)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p =
        world_parse("module: \"main\"\nx = @param:x -> float_type, {2, 2}, {2, 1}\n"
                    "w = @literal{1, 2, 3, 4} -> float_type, {2, 2}, {2, 1}\n"
                    "a = dot(x, w)\nb = dot(a, x)\nc = @return(b)\n");
    CHECK_OK(mgx_quantize_weights4(p, 32, false, &diag), diag);
    CHECK_INT(world_count(p, "dequantizelinear"), 0);
    CHECK_OK(mgx_quantize_weights4(p, 0, false, &diag), diag);
    CHECK_INT(world_count(p, "dequantizelinear"), 1);
    mgx_program_destroy(p);
}

CASE(convolutions_have_blocks_of_channels)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = world_parse(
        "module: \"main\"\nx = @param:x -> float_type, {1, 4, 3, 3}, {36, 9, 3, 1}\n"
        "w = @literal{1, 2, 3, 4, 5, 6, 7, 8} -> float_type, {2, 4, 1, 1}, {4, 1, 1, 1}\n"
        "a = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](x, w)\n"
        "b = @return(a)\n");
    CHECK_OK(mgx_quantize_weights4(p, 2, false, &diag), diag);
    CHECK_INT(world_count(p, "dequantizelinear"), 1);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(blocks_are_rounded_by_the_formula) ROW(few_weights_and_unknown_ones_stay)
              ROW(convolutions_have_blocks_of_channels))
