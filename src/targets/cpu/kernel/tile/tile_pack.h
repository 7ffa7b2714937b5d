// SPDX-License-Identifier: MIT
// Packing columns whose depth is contiguous, by 32 bits: `pack_transposed` of tile.h.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/vector/simd.h"

// One group of an operand, of any type and, for bytes, at any address.
typedef float group __attribute__((aligned(1), may_alias));

// Four k of VL columns, whole.
SIMD void pack_quad(const float *b, int64_t stride, int width, float *panel)
{
    vf in[4], out[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        in[i] = vf_load_quads(b + i * stride, stride);
    vf_transpose4(in, out);
    UNROLL
    for (int i = 0; i < 4; i++)
        vf_store(panel + i * width, out[i]);
}

static void pack_transposed(const float *b, int64_t stride, int64_t depth, int cols, int width,
                            float *panel)
{
    const int64_t quads = depth & ~(int64_t)3;
    int whole = 0;
    for (; whole + VL <= cols; whole += VL)
        for (int64_t k = 0; k < quads; k += 4)
            pack_quad(b + whole * stride + k, stride, width, panel + k * width + whole);
    for (int64_t k = 0; k < depth; k++)
        for (int j = k < quads ? whole : 0; j < width; j++)
            panel[k * width + j] = j < cols ? ((const group *)b)[j * stride + k] : 0.0f;
}
