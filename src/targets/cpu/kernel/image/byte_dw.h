// SPDX-License-Identifier: MIT
// Depthwise convolution of bytes, one row of output pixels: several pixels of a vector of channels
// in registers.
//
//     lines 0 and 1   a0 b0 a1 b1 ...  of a pixel: one channel's two values side by side in 16 bits
//     their weights   v0 w0 v1 w1 ...  of a kernel column
//     vpmaddwd        a0 v0 + b0 w0, ...   two taps of a channel at once, in int32
//
// That is AVX2, with eight channels; with VNNI four lines' bytes lie side by side, where weights
// less their zero point are signed bytes. A group of lines is widened once for all outputs that it
// is a tap of; the last line of an odd kernel goes alone. AVX2: some 20 instructions for eight
// outputs of a 3 x 3 kernel, and their step to bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile/tile.h"

enum { MGX_BYTE_DW_LINES = 11 };

struct mgx_byte_dw_args {
    // Of the first channel, from the first output's first tap on, padded: all that outputs reach is
    // there, and a vector of bytes more behind the last channel.
    const uint8_t *lines[MGX_BYTE_DW_LINES];
    int64_t pixel; // bytes between pixels
    int height, kernel, stride, dilation;
    int zero;
    bool is_signed;
    // [vector of channels]: the sums of each channel's weights as int32, then [group of
    // lines][kernel] [channel][lines of a group] as int16 or int8, together 32 bits; zeros where
    // there is no channel or line.
    const char *weights;
    int64_t channels, count; // count: output pixels
    // Of the first channel and pixel: c[0], residual[0], scale, bias, clamp, end; c_row and
    // residual_row are the distance from pixel to pixel.
    struct mgx_tile_args tile;
    int64_t c_size, residual_size; // bytes of a value
};

struct mgx_byte_dw_kernel {
    struct mgx_kernel base;
    int channels, lines;       // of a vector; of a group: 4 for weights of eight bits, else 2
    int (*place)(int channel); // of a channel in a vector
    void (*row)(const struct mgx_byte_dw_args *args);
};

// Bytes of a vector's weights.
static inline int64_t mgx_byte_dw_vector(const struct mgx_byte_dw_kernel *kernel, int64_t height,
                                         int64_t width)
{
    return (int64_t)kernel->channels * 4 *
           (1 + (height + kernel->lines - 1) / kernel->lines * width);
}

// Where there is none, depthwise convolutions of bytes are computed in floats. The best one is for
// weights of eight bits alone; mgx_byte_dw_of asks whether they are such.
MGX_KERNEL_KIND(byte_dw)

static inline const struct mgx_byte_dw_kernel *mgx_byte_dw_of(mgx_isa isa, bool eight_bits)
{
    for (const struct mgx_kernel *const *k = mgx_byte_dw_kernels; *k; k++) {
        const struct mgx_byte_dw_kernel *kernel = (const struct mgx_byte_dw_kernel *)*k;
        if (mgx_isa_holds(isa, (*k)->needs) && (eight_bits || kernel->lines == 2))
            return kernel;
    }
    return NULL;
}
