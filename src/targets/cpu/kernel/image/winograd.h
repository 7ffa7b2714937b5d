// SPDX-License-Identifier: MIT
// The transforms of Winograd's convolution F(m x m, 3 x 3), on vectors of channels:
//
//     Y = A' [ (G g G') * (B' d B) ] A        d: (m+2) x (m+2) inputs, Y: m x m outputs;
//                                             * multiplies element by element
//
// For F(4, 3), from the points 0, 1, -1, 2, -2 and infinity:
//
//     B' =  4  0 -5  0  1  0      A' =  1  1  1  1  1  0     G =  1/4     0     0
//           0 -4 -4  1  1  0            0  1 -1  2 -2  0         -1/6  -1/6  -1/6
//           0  4 -4 -1  1  0            0  1  1  4  4  0         -1/6   1/6  -1/6
//           0 -2 -1  2  1  0            0  1 -1  8 -8  1         1/24  1/12   1/6
//           0  2 -1 -2  1  0                                     1/24 -1/12   1/6
//           0  4  0 -5  0  1                                        0     0     1
//
// F(2, 3) uses 0, 1, -1 and infinity. Rounding errors of F(2, 3) are about those of a direct
// convolution, of F(4, 3) about ten times larger.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

// One patch of the input. Rows y in [y_begin, y_end) and columns x in [x_begin, x_end) of it exist,
// the others are zero; `x` points at row 0, column 0, which need not.
struct mgx_winograd_input {
    const float *x;
    int64_t line, pixel; // strides in floats
    int y_begin, y_end, x_begin, x_end;
    int64_t channels;
    float *v; // v[e * element + c] for the elements e of the transformed patch; written in whole
    int64_t element; // vectors
};

// One tile of the output, `cols` channels of it.
struct mgx_winograd_output {
    const float *sums; // sums[e * element + c], whole vectors
    int64_t element;
    const float *bias, *residual; // NULL: none
    int64_t residual_line, residual_pixel;
    float *y;
    int64_t line, pixel;
    int lines, pixels; // that exist
    int cols;
    bool clamp;
    float low, high;
};

struct mgx_winograd_kernel {
    struct mgx_kernel base;
    int vector;
    void (*input2)(const struct mgx_winograd_input *in);
    void (*input4)(const struct mgx_winograd_input *in);
    void (*output2)(const struct mgx_winograd_output *out);
    void (*output4)(const struct mgx_winograd_output *out);
    // u[e * element + j] = (G g G')[e] for the columns j < width, a multiple of `vector`; tap i of
    // column j's kernel is taps[i * stride + j].
    void (*weights2)(const float *taps, int64_t stride, int width, float *u, int64_t element);
    void (*weights4)(const float *taps, int64_t stride, int width, float *u, int64_t element);
    // The first half of it, 3 values for each of the 6 rows: u[i * row + x * width + j] = (G
    // g)[i][x].
    void (*half4)(const float *taps, int64_t stride, int width, float *u, int64_t row);
    // The second half of row i for `depth` channels, one after the other in `half`:
    // u[k * element + (c * width + j)] = (half[c] G')[k] for the 6 columns k.
    void (*expand4)(const float *half, int64_t depth, int width, float *u, int64_t element);
};

MGX_KERNEL_KIND(winograd)
