// SPDX-License-Identifier: MIT
// Transposition and scaling of rows, against their definitions, on random sizes and strides, with
// guards around what is written.
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/scale.h"
#include "targets/cpu/kernel/transpose.h"

static const int SIZES[] = {0, 1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 58};

enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static void check_transpose(struct rng *r, mgx_isa isa)
{
    const int rows = rng_size(r, SIZES, SIZE_COUNT), cols = rng_size(r, SIZES, SIZE_COUNT);
    const int to_row = cols + (rng_below(r, 2) ? 0 : rng_below(r, 4)),
              from_col = rows + (rng_below(r, 2) ? 0 : rng_below(r, 4));
    struct buffer from = buffer_random((int64_t)from_col * cols, r),
                  to = buffer_new((int64_t)to_row * rows);
    mgx_transpose_kernel(isa)->run(from.data, from_col, to.data, to_row, rows, cols);
    int wrong = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < to_row; j++) {
            const float *value = &to.data[i * to_row + j];
            wrong += j < cols ? *value != from.data[j * from_col + i] : !is_guard(value);
        }
    if (wrong || !buffer_intact(to))
        CHECK_FAIL("%d x %d, rows of %d from columns of %d on %s: %d wrong", rows, cols, to_row,
                   from_col, mgx_isa_name(isa), wrong);
    buffer_free(from);
    buffer_free(to);
}

CASE(transposes_any_size)
{
    struct rng r = {11};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 400 && !check_failures; i++)
            check_transpose(&r, isa);
    }
}

CASE(scales_rows)
{
    struct rng r = {12};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 100 && !check_failures; i++) {
            const int rows = rng_below(&r, 9), width = 4 * rng_below(&r, 12);
            struct buffer from = buffer_random((int64_t)rows * width, &r),
                          factor = buffer_random(rows, &r), to = buffer_new((int64_t)rows * width);
            mgx_scale_kernel(isa)->run(from.data, factor.data, to.data, rows, width);
            for (int64_t k = 0; k < to.count; k++)
                CHECK(to.data[k] == from.data[k] * factor.data[k / width]);
            CHECK(buffer_intact(to));
            buffer_free(from);
            buffer_free(factor);
            buffer_free(to);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(transposes_any_size)
                                                  ROW(scales_rows){NULL, NULL}};
    return check_run(cases, argc, argv);
}
