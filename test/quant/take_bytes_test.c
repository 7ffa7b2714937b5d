// SPDX-License-Identifier: MIT
// Inputs that come as bytes: their lengths in both orders, ranges kept, and what becomes of the
// bytes, reckoned here one by one.
#include "quant/take_bytes.h"

#include "op/op.h"
#include "targets/target.h"

#include "check.h"

enum { N = 2, C = 3, H = 4, W = 5, COUNT = N * C * H * W };

static const double scale[C] = {0.5, 0.25, -2}, offset[C] = {1, -3, 0.125};

static struct mgx_program *parse(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    return mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK ? p : NULL;
}

// The input's shape in text after its bytes are taken; "" if that fails.
static void taken_as(const char *text, bool channels_last, char *shape, size_t size)
{
    struct mgx_program *p = parse(text);
    struct mgx_diag diag = {0};
    struct mgx_str out = {0};
    const struct mgx_bytes_input input = {"x", scale, offset, C, channels_last};
    if (p && mgx_take_bytes(p, &input, &diag) == MGX_OK)
        mgx_shape_print(&out, &mgx_find_parameter(mgx_program_main(p), "x")->shape);
    snprintf(shape, size, "%s", mgx_str_text(&out));
    mgx_str_fini(&out);
    mgx_program_destroy(p);
}

CASE(channels_come_behind_the_others)
{
    static const char fixed[] =
        "module: \"main\"\nx = @param:x -> float_type, {2, 3, 4, 5}, {60, 20, 5, 1}\n"
        "y = relu(x)\n@0 = @return(y)\n";
    static const char open[] =
        "module: \"main\"\nx = @param:x -> dynamic, float_type, {[1..8], 3, [4..9], 5}\n"
        "y = relu(x)\n@0 = @return(y)\n";
    char shape[160];
    taken_as(fixed, false, shape, sizeof shape);
    CHECK_TEXT(shape, "uint8_type, {2, 3, 4, 5}, {60, 20, 5, 1}");
    taken_as(fixed, true, shape, sizeof shape);
    CHECK_TEXT(shape, "uint8_type, {2, 4, 5, 3}, {60, 15, 3, 1}");
    taken_as(open, true, shape, sizeof shape);
    CHECK_TEXT(shape, "dynamic, uint8_type, {[1..8], [4..9], 5, 3}");
}

static void check_values(bool channels_last)
{
    struct mgx_program *p =
        parse("module: \"main\"\nx = @param:x -> float_type, {2, 3, 4, 5}, {60, 20, 5, 1}\n"
              "y = neg(x)\n@0 = @return(y)\n");
    struct mgx_diag diag = {0};
    const struct mgx_bytes_input input = {"x", scale, offset, C, channels_last};
    CHECK(p && mgx_take_bytes(p, &input, &diag) == MGX_OK);
    unsigned char bytes[COUNT];
    float want[COUNT];
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < H * W; i++) {
                const int at = (n * C + c) * H * W + i;
                const int from = channels_last ? (n * H * W + i) * C + c : at;
                bytes[from] = (unsigned char)(37 * at % 251);
                want[at] = (float)-(bytes[from] * scale[c] + offset[c]);
            }
    const struct mgx_shape *shape = &mgx_find_parameter(mgx_program_main(p), "x")->shape;
    const struct mgx_named_tensor x = {"x", mgx_tensor_borrow(shape, bytes)};
    struct mgx_tensor result = {.data = NULL};
    struct mgx_run r = {.params = &x, .param_count = 1, .results = &result, .result_count = 1};
    CHECK(mgx_program_compile(p, mgx_target_find("ref"), NULL, &diag) == MGX_OK);
    CHECK(mgx_program_run(p, &r, &diag) == MGX_OK);
    for (int i = 0; i < COUNT; i++) // all are dyadic: exact
        CHECK_NEAR(((const float *)result.data)[mgx_shape_index(&result.shape, i)], want[i], 0);
    mgx_tensor_release(&result);
    mgx_program_destroy(p);
}

CASE(bytes_are_scaled_by_their_channel)
{
    check_values(false);
    check_values(true);
}

TEST_MAIN(ROW(channels_come_behind_the_others) ROW(bytes_are_scaled_by_their_channel))
