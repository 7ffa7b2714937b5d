// SPDX-License-Identifier: MIT
// How rows of sums that lie in memory end, side by side, `nv` vectors each: the ends of byte_ends.h
// for any number of rows. Tile registers end so, and those tiles of a strip that are too few to
// have code of their own. From L1 a vector of sums costs a store and a load more than from
// registers.
#pragma once

#include "targets/cpu/kernel/tile/byte_ends.h"

// Four rows at a time, then one by one.
SIMD void end_strip(int rows, int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                    char *to, const char *residual, const sums *c)
{
    enum { TOGETHER = 4 };
    const int64_t step = residual ? args->residual_row : 0;
    int i = 0;
    for (; i + TOGETHER <= rows; i += TOGETHER)
        end_plainly(TOGETHER, nv, ending, args, to + i * args->c_row, residual + i * step,
                    c + i * nv);
    for (; i < rows; i++)
        end_plainly(1, nv, ending, args, to + i * args->c_row, residual + i * step, c + i * nv);
}

// A row at a time: floats need no neighbours.
SIMD void end_strip_floats(int rows, int nv, const struct mgx_tile_args *args, char *to,
                           const char *residual, const sums *c)
{
    for (int i = 0; i < rows; i++) {
        end_floats(1, nv, args, to, residual, c + i * nv);
        to += args->c_row;
        residual += residual ? args->residual_row : 0;
    }
}

#define END(name, nv, ending)                                                                      \
    static __attribute__((noinline)) void name(int rows, const struct mgx_tile_args *args,         \
                                               char *to, const char *residual, const sums *c)      \
    {                                                                                              \
        if (ending == MGX_END_ANY)                                                                 \
            end_rows_anyhow(rows, nv, args, to, residual, c);                                      \
        else if (ending == MGX_END_FLOATS)                                                         \
            end_strip_floats(rows, nv, args, to, residual, c);                                     \
        else                                                                                       \
            end_strip(rows, nv, ending, args, to, residual, c);                                    \
    }

END(end_any_1, 1, MGX_END_ANY)
END(end_plain_1, 1, MGX_END_PLAIN)
END(end_table_1, 1, MGX_END_LOOKUP)
END(end_added_1, 1, MGX_END_MIXED)
END(end_floats_1, 1, MGX_END_FLOATS)
END(end_any_2, 2, MGX_END_ANY)
END(end_plain_2, 2, MGX_END_PLAIN)
END(end_table_2, 2, MGX_END_LOOKUP)
END(end_added_2, 2, MGX_END_MIXED)
END(end_floats_2, 2, MGX_END_FLOATS)

typedef void (*end_fn)(int rows, const struct mgx_tile_args *args, char *to, const char *residual,
                       const sums *c);

// [vectors - 1][form]; GRID is among any.
#define OF_ENDS(nv)                                                                                \
    {                                                                                              \
        [MGX_END_ANY] = end_any_##nv, [MGX_END_PLAIN] = end_plain_##nv,                            \
        [MGX_END_LOOKUP] = end_table_##nv, [MGX_END_MIXED] = end_added_##nv,                       \
        [MGX_END_FLOATS] = end_floats_##nv                                                         \
    }
static const end_fn ends[][MGX_END_FORMS] = {OF_ENDS(1), OF_ENDS(2)};
