// SPDX-License-Identifier: MIT
// Depthwise convolution of bytes, one row of output pixels: eight pixels of eight channels in
// registers.
//
//     lines 0 and 1   a0 b0 a1 b1 ...  of a pixel: one channel's two values side by side in 16 bits
//     their weights   v0 w0 v1 w1 ...  of a kernel column
//     vpmaddwd        a0 v0 + b0 w0, ...   two taps of a channel at once, in int32
//
// A pair of lines is widened once for all outputs that it is a tap of; the last line of an odd
// kernel goes alone. Costs some 20 instructions for eight outputs of a 3 x 3 kernel, and their step
// to bytes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile.h"

enum { MGX_BYTE_DW_CHANNELS = 8, MGX_BYTE_DW_LINES = 11 };

struct mgx_byte_dw_args {
    // Of the first channel, from the first output's first tap on, padded: all that outputs reach is
    // there, and eight bytes more behind the last channel.
    const uint8_t *lines[MGX_BYTE_DW_LINES];
    int64_t pixel; // bytes between pixels
    int height, kernel, stride, dilation;
    int zero;
    bool is_signed;
    // [vector of channels]: the sums of each channel's weights as int32, then [pair of lines][kernel]
    // [channel][2] as int16; zeros where there is no channel or no second line.
    const char *weights;
    int64_t channels, count; // count: output pixels
    // Of the first channel and pixel: c[0], residual[0], scale, bias, clamp, requant; c_row and
    // residual_row are the distance from pixel to pixel.
    struct mgx_tile_args tile;
    int64_t c_size, residual_size; // bytes of a value
};

// Bytes of a vector's weights.
static inline int64_t mgx_byte_dw_vector(int64_t height, int64_t kernel)
{
    return MGX_BYTE_DW_CHANNELS * 4 * (1 + (height + 1) / 2 * kernel);
}

struct mgx_byte_dw_kernel {
    struct mgx_kernel base;
    void (*row)(const struct mgx_byte_dw_args *args);
};

// Where there is none, depthwise convolutions of bytes are computed in floats.
MGX_KERNEL_KIND(byte_dw)
