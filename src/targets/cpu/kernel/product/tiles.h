// SPDX-License-Identifier: MIT
// The loop around a micro-kernel: runs of rows of A meet a panel of B, tile by tile, and what
// registers leave of a tile's end is done while it is in L1.
//
//     source of rows             its runs
//     a matrix (gemm.c)          one: the rows of a block
//     an image (conv_tile.c)     one for each row of output pixels; two of half a tile make a tile
//     Winograd's transforms      one for each element, whose sums are transformed before they end
//
// Rows of a run follow each other, in A, in C and in the operand of the end. A run is cut in tiles
// as equal as can be; results do not depend on where.
//
// Cost beside the micro-kernel's: some ten instructions for a tile that ends in registers, as only
// addresses change from one to the next.
#pragma once

#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/kernel/product/ahead.h"
#include "targets/cpu/kernel/tile/tile.h"

struct mgx_tile_run {
    const char *a;
    char *c; // its first row, in column 0; NULL: there is no C, a block program takes the values
    const char *operand; // the same; NULL: none is read
    int64_t number;      // of the first row in the output seen as a matrix
    int64_t rows;
};

// What holds for all rows that meet a panel. Strides are in bytes.
struct mgx_tiles {
    const struct mgx_gemm_kernel *kernel;
    const struct mgx_end *end;
    const struct mgx_end_kernel *ends; // of tiles in memory
    mgx_isa isa;
    enum mgx_kernel_type c_type;
    bool converts; // tiles are finished in scratch, then stored
    bool has_c;
    int64_t c_size, operand_size; // of a value
    int64_t c_row, operand_row;
    int64_t step; // from a row's number to the next one's
    void *hook_user;
    int thread;
    // Of the panel: its first column in C, and in the output seen as a matrix; how many.
    int64_t col, number_col;
    int cols;
    // Of the depth that is multiplied now: whether sums begin with it, and whether they are whole
    // behind it. The caller leaves bias and clamp out of the arguments where it is not so.
    bool first, last;
};

// Tiles that do not end in C as they are, and their operands as floats.
struct mgx_tile_scratch {
    _Alignas(64) float values[MGX_TILE_MAX_ROWS * MGX_TILE_MAX_COLS];
    _Alignas(64) float operand[MGX_TILE_MAX_ROWS * MGX_TILE_MAX_COLS];
};

// A tile: its rows lie in two halves, consecutive in one run, or one run each.
struct mgx_tile_at {
    bool whole; // the second half follows the first one
    int count[2];
    int64_t number[2];
    char *c[2];
    const char *operand[2]; // in memory
    const char *floats[2];  // the same as the registers read it, unless it is of bytes
};

// What tiles bring into L2 for what follows: a share each, as long as there is something left.
struct mgx_fetch {
    struct mgx_ahead_step share;
    int64_t taps, left;
};

// `tiles` tiles of so many groups of depth for each tap bring `ahead`. Sets args->ahead.
struct mgx_fetch mgx_fetch_of(struct mgx_ahead ahead, int64_t depth, int64_t taps, int64_t tiles,
                              struct mgx_tile_args *args);

// Sums alone, without an end: `rows` rows from a[0] and c[0] on; c accumulates where residual[0] is
// c[0].
void mgx_tiles_of_rows(const struct mgx_gemm_kernel *kernel, int64_t rows, struct mgx_fetch *fetch,
                       struct mgx_tile_args *args);
// All rows of a run, or of two runs that make one tile.
void mgx_tiles_run(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                   const struct mgx_tile_run *second, struct mgx_fetch *fetch,
                   struct mgx_tile_args *args);
// The same by the kernel's strip, of one panel or a pair. What is behind its activation is done for
// the whole run.
void mgx_tiles_strip(const struct mgx_tiles *t, const struct mgx_tile_run *run, int panels,
                     struct mgx_tile_args *args);
// Whether the kernel likes this panel and the next one at once for this run.
bool mgx_tiles_pair_suits(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                          struct mgx_tile_args *args);

// For kernels with loops of their own: points the arguments at rows x, x + 1, ... of a run; does
// what is left when the sums are there.
void mgx_tiles_begin(const struct mgx_tiles *t, const struct mgx_tile_run *run, int64_t x, int rows,
                     struct mgx_tile_at *at, struct mgx_tile_scratch *scratch,
                     struct mgx_tile_args *args);
void mgx_tiles_end(const struct mgx_tiles *t, const struct mgx_tile_at *at,
                   const struct mgx_tile_args *args);
