// SPDX-License-Identifier: MIT
// Floats that become bytes by one scale, known before the run or not: the formula's bytes, in float, of
// dense tensors and of those with gaps, of values far away, infinite, and no numbers.
#include "base/size.h"
#include "targets/cpu/program.h"

#include <math.h>

// What q(x) is. NaN is the lowest byte.
static int meaning(float x, float scale, int zero, bool is_signed)
{
    const float low = is_signed ? -128 : 0, y = rintf(x / scale) + (float)zero;
    return (int)fminf(y > low ? y : low, low + 255);
}

// Values of all sizes, many halfway between two bytes.
static void fill(struct mgx_tensor *x, float scale)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0, -0.0F};
    float *v = x->data;
    const int64_t n = mgx_shape_space(&x->shape);
    mgx_tensor_generate(x, 11);
    for (int64_t i = 0; i < n; i++)
        v[i] = i % 5 == 0   ? (float)(i % 301 - 150) * scale / 2
               : i % 7 == 0 ? odd[i / 7 % 7]
                            : v[i] * (float)(i % 400) * scale;
}

struct bench {
    const char *type;
    bool is_signed, has_zero, known;
    int rows, cols, gap, threads;
};

static struct mgx_program *compile(const struct bench *b, float scale, int zero)
{
    char text[1024], number[64];
    snprintf(number, sizeof number, "@literal{%.9g}", (double)scale);
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "s = %s -> float_type, {1}, {%d}\n"
             "z = @literal{%d} -> %s, {1}, {0}\n"
             "sm = multibroadcast[out_lens={%d, %d}](s)\n"
             "zm = multibroadcast[out_lens={%d, %d}](z)\n"
             "y = quantizelinear[out_type=%d](x, sm%s)\n"
             "@out = @return(y)\n",
             b->rows, b->cols, b->cols + b->gap, b->known ? number : "@param:s", b->known ? 0 : 1,
             zero, b->type, b->rows, b->cols, b->rows, b->cols, b->is_signed ? 5 : 4,
             b->has_zero ? ", zm" : "");
    return program_compile(text, "cpu", b->threads);
}

static int64_t first_wrong(const struct bench *b, const float *x, const void *y, float scale,
                           int zero)
{
    for (int64_t i = 0; i < (int64_t)b->rows * b->cols; i++) {
        const float v = x[i / b->cols * (b->cols + b->gap) + i % b->cols];
        const int is = b->is_signed ? ((const int8_t *)y)[i] : ((const uint8_t *)y)[i];
        if (is != meaning(v, scale, zero, b->is_signed))
            return i;
    }
    return -1;
}

static void check(const struct bench *b)
{
    const float scale = 0.0371F;
    const int zero = !b->has_zero ? 0 : b->is_signed ? -7 : 131;
    const int64_t lens[] = {b->rows, b->cols}, strides[] = {b->cols + b->gap, 1};
    const struct mgx_shape shape = mgx_shape_strided(MGX_FLOAT, 2, lens, strides),
                           one = mgx_shape_vector(MGX_FLOAT, 1);
    struct mgx_diag diag = {0};
    struct mgx_tensor x, s, y = {0};
    struct mgx_program *p = compile(b, scale, zero);
    CHECK(p && mgx_tensor_create(&x, &shape, &diag) == MGX_OK &&
          mgx_tensor_create(&s, &one, &diag) == MGX_OK);
    *(float *)s.data = scale;
    fill(&x, scale);
    const struct mgx_named_tensor params[] = {{"x", x}, {"s", s}};
    struct mgx_run r = {
        .params = params, .param_count = b->known ? 1 : 2, .results = &y, .result_count = 1};
    CHECK_INT(mgx_program_run(p, &r, &diag), MGX_OK);
    CHECK_INT(first_wrong(b, x.data, y.data, scale, zero), -1);
    mgx_tensor_release(&x);
    mgx_tensor_release(&s);
    mgx_tensor_release(&y);
    mgx_program_destroy(p);
}

CASE(bytes_are_the_formulas)
{
    static const int sizes[][3] = {{1, 1, 0},    {3, 40, 0},    {3, 40, 5},
                                   {2, 1000, 3}, {300, 300, 0}, {70, 700, 1}}; // rows, cols, gap
    for (int i = 0; i < MGX_COUNT(sizes) * 16; i++) {
        const int *size = sizes[i / 16];
        const struct bench b = {.type = i % 2 ? "int8_type" : "uint8_type",
                                .is_signed = i % 2,
                                .has_zero = i / 2 % 2 || i % 2 == 0,
                                .known = i / 4 % 2,
                                .threads = 1 + i / 8 % 2,
                                .rows = size[0],
                                .cols = size[1],
                                .gap = size[2]};
        check(&b);
    }
}

TEST_MAIN(ROW(bytes_are_the_formulas))
