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
    // Done with it where a plan's steps are gathered (few_bundle.c):
    bool gated;     // two products of one x, whose sums the tail reads
    int64_t second; // the column where the second begins; 0: it has its own weights
    bool norm;      // x is normalised by its root mean square
    double eps;
    enum mgx_type gain; // type of what it is multiplied by then
    // How matrix units share the work (kernel/few_units.gpu); of others `grid` alone:
    int parts, side, loads, pieces, ahead, flush, grid;
    bool held;
};

struct gpu_few_call {     // state of a step
    struct gpu_call base; // first: its unit and its kernel
    struct gpu_few f;
    void *packed[GPU_FEW_PARTS]; // on the card
};

// A normalisation by the root mean square: y = x / sqrt(mean of x^2 + eps) * gain, along the last axis.
struct gpu_few_norm {
    int x, gain; // inputs of the instruction
    double eps;
};

// --- few.c ---
// Are its rows a few, whatever their strides?
bool gpu_few_supports(const struct mgx_ins *dot);
// Arguments of the weights' parts from list[count] on; how many there are then.
int gpu_few_weight_args(const struct gpu_few_weights *w, void *const *packed, struct gpu_arg *list,
                        int count);

// A right operand of half or bf16 on the card, as it is: columns x depth, a column's depth filled up to
// blocks of 64, columns to groups of 8. Plans of one model share it. NULL on failure.
void *gpu_few_place_rows(struct mgx_plan_offer *c, const struct mgx_tensor *weights,
                         int64_t columns, int64_t depth);

// --- few_norm.c ---
bool gpu_few_norm_read(const struct mgx_ins *ins, struct gpu_few_norm *norm);

// --- few_text.c ---
// Divides the work among the device's multiprocessors.
void gpu_few_divide(struct gpu_few *f, const struct gpu_device *device);
// The kernel's text; p and c's operands are those of the last instruction. Why it cannot be written; NULL if it can.
const char *gpu_few_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_few *f);
// What kernel/few_rows.gpu wants: an element as a float, and scales and zero points of blocks.
const char *gpu_few_reader(enum mgx_type type);
void gpu_few_emit_scales(struct mgx_str *out, int64_t block, int64_t blocks_of_row,
                         enum mgx_type scale, enum mgx_type zero);
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

// --- few_bundle.c ---
// Steps that are one call: found when they have their order, their kernels when units are made.
enum mgx_status gpu_few_bundles(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_few_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
