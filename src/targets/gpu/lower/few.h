// SPDX-License-Identifier: MIT
// Products of a few rows by constant weights: what their lowering's parts share. few.c reads an offer and
// makes the step, few_text.c divides the work and writes the text, few_pack.c packs the weights.
#pragma once

#include "targets/gpu/lower/product.h"

enum { GPU_FEW_ROWS = 16 };                                     // most rows
enum { GPU_FEW_W, GPU_FEW_SCALE, GPU_FEW_ZERO, GPU_FEW_PARTS }; // what weights are made of

// Weights as the model has them, and as they are packed.
struct gpu_few_weights {
    int bits;                     // 32 or 16: values as they are; else numbers with scales
    int64_t n, k;                 // columns of the product, depth
    struct mgx_tensor values;     // as they are: the product's right operand
    const struct mgx_ins *blocks; // numbers: dequantize_blocks; NULL
    const struct mgx_tensor *source[GPU_FEW_PARTS]; // its inputs; the last may be NULL
    int64_t block, blocks_of_row; // numbers with one scale; how many blocks a row has
    bool units;                   // in the order of matrix units
    bool zeros;                   // zero points are packed too
    int64_t row;                  // as they are: from column to column, in values
    size_t bytes[GPU_FEW_PARTS];  // packed
};

struct gpu_few {
    struct gpu_product p;
    struct gpu_few_weights w;
    enum mgx_type type; // of x and of the weights
    int64_t rows;       // all of them
    int64_t pitch;      // from row to row of x
    bool wide;          // rows of x can be read by 16 bytes
    // How matrix units share the work (kernel/few_units.gpu); of others `grid` alone:
    int parts, side, loads, pieces, ahead, flush, grid;
    bool held;
};

// --- few_text.c ---
// Divides the work among `multiprocessors`.
void gpu_few_divide(struct gpu_few *f, int multiprocessors);
// The kernel's text. Why it cannot be written; NULL if it can.
const char *gpu_few_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_few *f);
struct gpu_launch gpu_few_launch(const struct gpu_few *f);

// --- few_pack.c ---
// Sets the packed bytes.
void gpu_few_size(struct gpu_few_weights *w);
// SCALED of the kernel: over how many numbers of a step one scale reaches.
int64_t gpu_few_scaled(const struct gpu_few_weights *w);
// Zero points, if they are numbers that the weights could be too: matrix units subtract these alone.
bool gpu_few_zeros_are_numbers(const struct gpu_few_weights *w);
// Packs one part of the weights.
void gpu_few_pack(const struct mgx_plan_machine *machine, const struct gpu_few_weights *w, int part,
                  void *to);
