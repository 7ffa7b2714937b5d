// SPDX-License-Identifier: MIT
// What happens to a tile of results before it leaves the L1 cache: bias and residual, an
// activation, and whatever else was fused. Shared by matrix multiplication and convolution.
//
//     y = act(sum + bias[col] + residual)          residual before the activation (ResNet)
//     y = act(sum + bias[col]) + residual          MGX_RESIDUAL_AFTER (YOLO)
//     y = act(sum + bias[col]) * residual          MGX_RESIDUAL_TIMES (gates: Llama's silu(a) * b)
//     y = act(...) * factor[col] + term[col] ...   batch normalization behind it (ConvMixer)
//
// then hook(tile) if there is one, then, where the result is one of bytes, requant.h. Bias,
// residual and a clamp are applied in registers; other activations and the hook run over the tile
// just stored.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/end/requant.h"
#include "targets/cpu/kernel/vector/act.h"

// BYTES: of the result's size, for the step to bytes.
enum mgx_residual {
    MGX_RESIDUAL_NONE,
    MGX_RESIDUAL_BEFORE,
    MGX_RESIDUAL_AFTER,
    MGX_RESIDUAL_TIMES,
    MGX_RESIDUAL_BYTES
};

// What a residual lies as in memory, where floats are multiplied.
enum mgx_residual_form {
    MGX_RESIDUAL_AS_RESULT,
    MGX_RESIDUAL_F32,
    MGX_RESIDUAL_BF16,
    MGX_RESIDUAL_F16
};

// A rectangle of finished results, rows `row`, `row + row_step`, ... of the output seen as a matrix
// [outer dimensions][columns]: rows of all batches of a multiplication, pixels of a convolution.
struct mgx_tile {
    float *data; // [rows][cols], rows `stride` floats apart; to be changed in place
    int64_t stride;
    int64_t row, row_step, col; // place in the output
    int rows, cols;
    int thread; // that runs it: an index into per-thread scratch memory
};

typedef void (*mgx_tile_hook)(void *user, const struct mgx_tile *tile);

struct mgx_epilogue {
    enum mgx_act act;
    float a, b;            // of the activation
    const float *a_column; // [columns] in place of a; NULL: none. Must outlive what uses it
    // [columns]: what the activation's value is multiplied by, and what is added then, before a
    // residual that comes late; both or none. Must outlive what uses them.
    const float *factor, *term;
    enum mgx_residual residual;
    enum mgx_residual_form residual_form;
    mgx_tile_hook hook;                // NULL: none; its `user` is given with each run
    const struct mgx_requant *requant; // of results of bytes. Must outlive what uses it
};
