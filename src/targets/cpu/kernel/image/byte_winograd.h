// SPDX-License-Identifier: MIT
// The transforms of Winograd's convolution F(4 x 4, 3 x 3) in whole numbers, exact: see winograd.h
// for the matrices. Rows of G are taken 24, 6, 6, 24, 24 and 6 times, so that they are whole:
//
//     G =  6  0  0        24 A' =   s0 + 4 (s1 + s2) + (s3 + s4)
//         -1 -1 -1        12 A' =   2 (s1 - s2) + (s3 - s4)
//         -1  1 -1         6 A' =   (s1 + s2) + (s3 + s4)
//          1  2  4         6 A' =   (s1 - s2) + 2 (s3 - s4) + s5
//          1 -2  4
//          0  0  6
//
// so output (i, j) is what comes out, divided by 9 and by a power of two up to 64. Sums are kept
// modulo 2^32, where the division by 9 is a multiplication; what is left is the output if that fits
// 26 bits. Transformed bytes less their zero point are at most 68 x 255 = 17,340 in size: no output
// of B' d B has coefficients of one sign that add up to more than 68, and so also where a zero
// point cuts the range in two. Weights less theirs become at most 49 x 255. Both fit 16 bits, and
// vpmaddwd or vpdpwssd multiply them at half the pace of bytes, but a quarter as many: twice as
// fast and more.
//
// A tile at the end of a line or a column of which two pixels or fewer exist is short that way: it
// is one of F(2, 3), whose points 0, 1, -1 and infinity have the same transformed weights, with
//
//     o = d0 - d2, d1 + d2, d2 - d1, -, -, d1 - d3          24 y0 =  4 (s0 - 3 (s1 + s2))
//                                                           12 y1 = -2 (3 (s1 - s2) + s5)
//
// and has no products at the points 2 and -2. Of 14 x 14 pixels that is a sixth of all.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile/tile.h"

enum {
    MGX_BYTE_WINOGRAD_ELEMENTS = 36,
    MGX_BYTE_WINOGRAD_SHORT = 2, // outputs that a short tile has at most
    MGX_BYTE_WINOGRAD_BITS = 26,
    MGX_BYTE_WINOGRAD_ROWS = 14,
    MGX_BYTE_WINOGRAD_SUMS = 37 // rows from tile to tile of the sums: off multiples of 4096 bytes
};

// One patch of the input, 6 x 6 pixels. Rows y in [y_begin, y_end) and columns x in [x_begin,
// x_end) of it exist, the others are `zero`; `x` points at row 0, column 0, which need not.
struct mgx_byte_winograd_input {
    const uint8_t *x;
    int64_t line, pixel; // strides
    int y_begin, y_end, x_begin, x_end;
    bool short_y, short_x; // no line, no column of elements 3 and 4 is asked for
    int64_t channels;
    int zero;
    bool is_signed;
    int16_t *v; // v[e * element + c], written in whole vectors of channels
    int64_t element;
};

// A tile of 4 x 4 pixels, up to a vector's columns of it.
struct mgx_byte_winograd_output {
    const int32_t *sums; // sums[e * 2 * cols + c], c < cols
    int lines, pixels;   // that exist: two or fewer are those of a short tile
    // Of the first pixel; c_row and residual_row are the distance from pixel to pixel.
    struct mgx_tile_args tile;
    int64_t line, residual_line; // bytes
    // The sums of other channels: what they come to is added, and where this is not the last of
    // them the outputs stay there as they are. [4][4][cols], NULL: there are none.
    int32_t *others;
    bool adds, stays;
};

// What products of a panel have in common.
struct mgx_byte_winograd_panel {
    int64_t a_row;       // bytes
    int64_t depth;       // pairs of int16
    int64_t ahead_lines; // that are brought along for every four pairs
    bool ahead_far;      // into L2, not into L1
};

// Some rows of V times a panel of U, whose rows are as long as it is wide. Rows of c, of 36, are a
// tile's sums apart (MGX_BYTE_WINOGRAD_SUMS). (No struct for the pointers: what is stored in halves
// and loaded whole waits.)
typedef void (*mgx_byte_winograd_product_fn)(const struct mgx_byte_winograd_panel *panel,
                                             const char *a, const char *b, char *c,
                                             const char *ahead);

// Cycles on the scale of other methods' costs: a pair of channels of a tile's row, for a panel; the
// start and end of a group of rows; a vector's channels of a patch, and columns of a tile. `bytes`
// of weights that a cycle brings from where they are.
struct mgx_byte_winograd_pace {
    double pair, group, input, output, bytes;
};

struct mgx_byte_winograd_kernel {
    struct mgx_kernel base;
    int channels, cols; // of a vector
    struct mgx_byte_winograd_pace pace;
    // [rows] of a panel of two vectors, and of one. NULL: the tiles of tile.h do it, which no
    // machine has that multiplies bytes in one instruction.
    mgx_byte_winograd_product_fn wide[MGX_BYTE_WINOGRAD_ROWS + 1],
        narrow[MGX_BYTE_WINOGRAD_ROWS + 1];
    void (*input)(const struct mgx_byte_winograd_input *in);
    void (*output)(const struct mgx_byte_winograd_output *out);
};

// Where there is none, another method takes the convolution.
MGX_KERNEL_KIND(byte_winograd)
