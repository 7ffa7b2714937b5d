// SPDX-License-Identifier: MIT
// Bytes on tile registers: amx_body.h, and strips, any number of rows of one panel, whose sums end
// out of L1 (strip_ends.h) as those of the AVX-512 kernels do out of registers. The including file
// defines PRODUCT.
#pragma once

#define INTEGER 1

#include "targets/cpu/kernel/tile/amx_body.h"

#include "targets/cpu/kernel/tile/strip_ends.h"

// What is read next comes a share with every step of every block.
static int64_t share_of(const struct mgx_tile_args *args, int groups)
{
    const int64_t steps = args->tap_count * (args->depth / groups);
    return steps > 0 ? (args->ahead_step + steps * LINE - 1) / (steps * LINE) * LINE : 0;
}

// Tiles t and, if there is one, t + 1 of `count`, each of k->rows.
static void run_pair(const struct mgx_tile_args *args, int64_t rows, int64_t t, int64_t count,
                     int nv, end_fn end, struct block *k)
{
    _Alignas(LINE) sums c[ROWS * NV];
    const int64_t last = rows - k->rows, begin = t * k->rows, next = begin + k->rows,
                  first = begin < last ? begin : last, second = next < last ? next : last;
    const int tiles = t + 1 < count ? 2 : 1;
    const int64_t behind = tiles == 2 ? second + k->rows : first + k->rows;
    k->a[0] = args->a[0] + first * args->a_row;
    k->a[1] = args->a[0] + second * args->a_row;
    k->second = second - first;
    sum(tiles, nv, args, k, (char *)c);
    end((int)(behind - begin), args, args->c[0] + begin * args->c_row,
        args->residual[0] ? args->residual[0] + begin * args->residual_row : NULL,
        c + (begin - first) * nv);
}

static void strip(const struct mgx_tile_args *args, int64_t rows)
{
    struct mgx_tile_registers own = {0, 0}, *r = args->registers ? args->registers : &own;
    const int nv = (int)(args->b_row / LINE);
    const int64_t count = (rows + TILE_ROWS - 1) / TILE_ROWS;
    const end_fn end = ends[nv - 1][ending_of(args, nv * COLS)];
    struct block k = {.rows = tile_rows(r, rows, count),
                      .groups = tile_groups(args->depth),
                      .first = args->start,
                      .ahead = args->ahead};
    assert(nv >= 1 && nv <= NV && args->cols <= nv * COLS && args->start && rows > 0);
    k.ahead_step = share_of(args, k.groups);
    configure(r, k.rows, k.groups);
    for (int64_t t = 0; t < count; t += 2) {
        run_pair(args, rows, t, count, nv, end, &k);
        k.ahead += args->ahead_step;
    }
    if (r == &own)
        release(r);
}

#define OF_BYTES .group = 4, .integer = true, .starts = true, .strip = strip, OF_TILE_REGISTERS
