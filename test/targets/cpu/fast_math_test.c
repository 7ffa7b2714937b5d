// SPDX-License-Identifier: MIT
// What fast_math allows: without it an output is not finite only where one of its own inputs is.
#include "targets/cpu/program.h"

enum { CHANNELS = 64, SIZE = 28 };

static struct mgx_ins *convolution(struct mgx_module *m, struct mgx_ins *x, int64_t kernel)
{
    const struct mgx_shape w =
        mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){CHANNELS, CHANNELS, kernel, kernel});
    const int64_t padding[] = {kernel / 2, kernel / 2}, one[] = {1, 1};
    return mgx_emit(m, &mgx_op_convolution,
                    MGX_ATTRS(mgx_ints("padding", padding, 2), mgx_ints("stride", one, 2),
                              mgx_ints("dilation", one, 2)),
                    MGX_IN(x, program_literal(m, &w, (uint64_t)kernel)));
}

// A convolution that Winograd's method suits, behind one that puts its image in order.
static struct mgx_program *build(bool fast_math)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {
        .fast_math = fast_math, .pass.fast_math = fast_math, .threads = 1};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){1, CHANNELS, SIZE, SIZE});
    struct mgx_ins *y = convolution(m, convolution(m, mgx_add_parameter(m, "x", &x), 1), 3);
    mgx_add_return(m, &y, 1);
    if (mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static bool uses_winograd(const struct mgx_program *p)
{
    struct mgx_str text = {0};
    p->executable->target->explain(p, &text);
    const bool uses = strstr(mgx_str_text(&text), "winograd") != NULL;
    mgx_str_fini(&text);
    return uses;
}

// Outputs that are not finite when one input is `value`; -1 when the run fails.
static int spoilt(const struct mgx_program *p, float value)
{
    static float data[CHANNELS * SIZE * SIZE];
    for (int i = 0; i < CHANNELS * SIZE * SIZE; i++)
        data[i] = (float)(i % 7) - 3;
    data[7 * SIZE + 8] = value;
    const struct mgx_shape shape =
        mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){1, CHANNELS, SIZE, SIZE});
    const struct mgx_named_tensor x = {"x", mgx_tensor_borrow(&shape, data)};
    struct mgx_tensor y = {.data = NULL};
    struct mgx_run r = {.params = &x, .param_count = 1, .results = &y, .result_count = 1};
    struct mgx_diag diag = {0};
    int count = 0;
    if (mgx_program_run(p, &r, &diag) != MGX_OK)
        return -1;
    for (int i = 0; i < CHANNELS * SIZE * SIZE; i++)
        count += !isfinite(((const float *)y.data)[i]);
    mgx_tensor_release(&y);
    return count;
}

CASE(without_it_a_value_spoils_its_own_outputs_alone)
{
    struct mgx_program *p = build(false);
    CHECK(p != NULL);
    CHECK(!uses_winograd(p));
    CHECK_INT(spoilt(p, NAN), 9 * CHANNELS);
    CHECK_INT(spoilt(p, INFINITY), 9 * CHANNELS);
    CHECK_INT(spoilt(p, 1), 0);
    mgx_program_destroy(p);
}

// Else the case above would show nothing.
CASE(with_it_this_convolution_is_winograds)
{
    struct mgx_program *p = build(true);
    CHECK(p != NULL);
    CHECK(uses_winograd(p));
    CHECK(spoilt(p, NAN) > 9 * CHANNELS);
    CHECK_INT(spoilt(p, 1), 0);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(without_it_a_value_spoils_its_own_outputs_alone)
              ROW(with_it_this_convolution_is_winograds))
