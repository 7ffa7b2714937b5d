// SPDX-License-Identifier: MIT
// Operators outside the standard; expected values by formula.
#include "import.h"
#include "tiny.h"

static double out[512];

static int64_t run_line(const char *line, const struct mgx_tensor *args, int count,
                        struct mgx_shape *shape)
{
    struct pb m = tiny_model(line);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s: %s\n", line, diag.text);
    const int64_t n = p ? run_model(p, args, count, shape, out, 512) : -1;
    mgx_program_destroy(p);
    return n;
}

CASE(image_scaler)
{
    float v[12];
    for (int i = 0; i < 12; i++)
        v[i] = (float)i - 5;
    const struct mgx_tensor x = floats(v, 4, (int64_t[]){1, 3, 2, 2});
    CHECK_INT(run_line("ImageScaler(x:f[1,3,2,2]) scale=0.5 bias=[1.0,-2.0,3.0]", &x, 1, NULL), 12);
    static const double bias[] = {1, -2, 3};
    for (int i = 0; i < 12; i++)
        CHECK_NEAR(out[i], v[i] * 0.5 + bias[i / 4], 0);
}

CASE(constant_fill)
{
    struct mgx_shape shape;
    CHECK_INT(run_line("ConstantFill() shape=[2,3] extra_shape=[2] value=1.5", NULL, 0, &shape),
              12);
    CHECK_INT(shape.rank, 3);
    CHECK_NEAR(out[11], 1.5, 0);
    CHECK_INT(
        run_line("ConstantFill(s:i{3,2}) input_as_shape=1 dtype=7 value=4.0", NULL, 0, &shape), 6);
    CHECK_INT(shape.type, MGX_INT64);
    CHECK_NEAR(out[5], 4, 0);
    const float v[4] = {0};
    const struct mgx_tensor x = floats(v, 2, (int64_t[]){4, 1});
    CHECK_INT(run_line("ConstantFill(x:f[4,1]) value=-1.0", &x, 1, &shape), 4);
    CHECK_INT(shape.rank, 2);
}

// Rows of a table, three bags of which the second is empty.
CASE(embedding_bag)
{
    float v[10];
    for (int i = 0; i < 10; i++)
        v[i] = (float)(i * i);
    const struct mgx_tensor x = floats(v, 2, (int64_t[]){5, 2});
    const char *line = "org.pytorch.aten.ATen(w:f[5,2], i:i{4,0,2}, o:i{0,2,2}) "
                       "operator='embedding_bag' mode=%d";
    for (int mode = 0; mode < 3; mode++) {
        char text[160];
        snprintf(text, sizeof text, line, mode);
        CHECK_INT(run_line(text, &x, 1, NULL), 6);
        for (int k = 0; k < 2; k++) {
            const double a = v[8 + k], b = v[k], sum = a + b;
            const double want = mode == 0 ? sum : mode == 1 ? sum / 2 : fmax(a, b);
            CHECK_NEAR(out[k], want, 0);
            CHECK_NEAR(out[2 + k], 0, 0);
            CHECK_NEAR(out[4 + k], v[4 + k], 0);
        }
    }
}

// Values of fp4 times a power of two per block come back as they are; others as the nearest.
CASE(mx_round_trip)
{
    static const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    float v[80];
    for (int i = 0; i < 80; i++)
        v[i] = (float)(fp4[(i * 5 + 7) % 8] * (i % 3 ? 1 : -1) * (i < 32 ? 4 : 0.25));
    const struct mgx_tensor x = floats(v, 2, (int64_t[]){1, 80});
    const char *line = "com.amd.quark.MXQuantizeDequantize(x:f[1,80]) axis=1 block_size=32";
    CHECK_INT(run_line(line, &x, 1, NULL), 80);
    for (int i = 0; i < 80; i++)
        CHECK_NEAR(out[i], v[i], 0);
    v[0] = 24; // the largest of its block: scale 4
    v[1] = 9.9f;
    CHECK_INT(run_line(line, &x, 1, NULL), 80);
    CHECK_NEAR(out[1], 8, 0); // 9.9 / 4 = 2.475 lies nearer to 2 than to 3
    CHECK_INT(
        run_line("com.amd.quark.DynamicScale(x:f[1,80]) group_dim=-1 group_size=32", &x, 1, NULL),
        3);
    CHECK_NEAR(out[0], 4, 0);
    CHECK_NEAR(out[1], 0.25, 0);
}

TEST_MAIN(ROW(image_scaler) ROW(constant_fill) ROW(embedding_bag) ROW(mx_round_trip))
