// SPDX-License-Identifier: MIT
// The micro-kernel: one tile of the output, held in registers over the whole depth. Matrix
// multiplication, convolution, attention and recurrent layers all end here. A kernel family is one
// const object per element type and instruction set; everything above it is plain C that sees only
// this header.
//
//                     b: depth x 32, one panel          AVX-512, f32: 14 x 32, or 6 x 64
//                    +----------------+                 28 accumulators, 2 of b, 1 broadcast
//                    | k0: 32 columns |                 AVX2: 6 x 16, generic: 6 x 8
//      a             | k1             |
//     +---------+    +----------------+
//     | row 0   |    | c: 14 x 32     |     sum over taps t and k:
//     |  ...    |    |                |       c[i][j] += a[i][taps[t] + k] * b[t][k][j]
//     | row 6   |    |                |
//     +---------+    |                |
//     | row 7   |    |                |     the halves start where they like: two rows of
//     |  ...    |    |                |     a 7 x 7 map, or a[1] = a[0] + 7 rows
//     | row 13  |    |                |
//     +---------+    +----------------+
//
// A tap is an offset added to all row addresses: one tap of 0 for a matrix, one per kernel element
// (or per kernel row, when its pixels are contiguous) for a convolution. Sums run over taps and k
// in order, in one accumulator each, so a result does not depend on how the output was cut into
// tiles.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/kernel/type.h"

// B may lie as it comes, its rows anywhere, for this many rows at most.
enum { MGX_TILE_RAW_ROWS = 4 };

enum { MGX_TILE_MAX_ROWS = 32, MGX_TILE_MAX_COLS = 64, MGX_TILE_MAX_PANELS = 4 };

// What the tile registers of a thread are configured for, of kernels that use such: rows of A, and
// groups of its depth. {0}: they belong to nobody. By the ABI no function keeps them over a call of
// another one, so whoever calls such kernels many times has one of these for that time, hands it to
// every call, and lets the kernel release the registers at its end.
struct mgx_tile_registers {
    int rows, groups;
};

// A panel of chunks (chunk.h): weights of pairs are b, those of single values behind them.
struct mgx_tile_chunks {
    const uint16_t *offsets, *single_offsets;
    const char *single_b;
    int64_t pairs, singles;
};

// Strides and offsets are in bytes, so that the struct serves every element type.
struct mgx_tile_args {
    const char *a[2]; // first row of either half
    int64_t a_row;
    const int64_t *taps;
    int64_t tap_count;
    int64_t depth; // k per tap; b has tap_count * depth rows
    const char *b;
    int64_t b_row;           // columns are contiguous
    int64_t b_panel;         // `few` and `pair` only: from one panel to the next
    const float *bias;       // per column; NULL: none
    const int32_t *start;    // integer sums begin with these, per column; NULL: with 0
    int64_t start_panel;     // `few` and `pair` only: from one panel's to the next
    const float *scale;      // integer sums become sum * scale + bias; NULL: are stored as they are
    const char *residual[2]; // added before the clamp; [0] NULL: none; c itself accumulates
    int64_t residual_row;
    char *c[2];
    int64_t c_row;
    int cols; // 1..panel width: of bias, residual and c; b is always read in full
    bool clamp;
    float low, high;
    bool c_bf16, residual_bf16;    // in memory, of kernels that narrow; else they are floats
    struct mgx_tile_chunks chunks; // of kernels with such, in place of taps and depth
    struct mgx_end_list end;       // of strips, where bytes are made; its operand in residual[0]
    const char *ahead; // brought into L2 meanwhile, `ahead_step` bytes per 4 k: 64..512, or 0
    int64_t ahead_step;
    struct mgx_tile_registers *registers; // of kernels that release; NULL: for this call alone
};

typedef void (*mgx_tile_fn)(const struct mgx_tile_args *args);

struct mgx_gemm_kernel {
    struct mgx_kernel base;
    enum mgx_kernel_type type; // what it is found by: f32, bf16, s8, or u8, the one of chunks
    bool chunks;               // its panels are lists of chunks (chunk.h)
    enum mgx_kernel_type a_type,
        b_type;           // as they lie in memory: s8 may be widened, or made unsigned
    int group;            // k in 32 bits
    bool integer;         // sums are int32
    bool starts;          // a panel begins with a row of int32 that sums begin with
    bool narrows;         // c and the residual may be bf16
    int rows, half, cols; // largest tile, rows of a half, panel width
    int vector;           // floats in a register
    // Another one that reads the same panels, for products of fewer rows than `least_rows`; NULL:
    // there is none.
    const struct mgx_gemm_kernel *few_rows;
    int least_rows;
    // Gives back what `registers` says that this thread has. NULL: the kernel uses no such ones.
    void (*release)(struct mgx_tile_registers *registers);
    // [rows of the tile]. `narrow` computes cols / 2 columns, on panels of that width.
    mgx_tile_fn wide[MGX_TILE_MAX_ROWS + 1], narrow[MGX_TILE_MAX_ROWS + 1];
    // Any number of rows of one panel, a[0], c[0] and residual[0] on; it ends in registers: no
    // activation but a clamp. `ahead_step` is for every tile. NULL: tiles are run one by one.
    void (*strip)(const struct mgx_tile_args *args, int64_t rows);
    // The same of two full panels at once, and whether that takes less time. NULL: there is none.
    bool (*suits_pair)(const struct mgx_tile_args *args, int64_t rows);
    void (*pair)(const struct mgx_tile_args *args, int64_t rows);
    // For one and two rows, `few_panels` full panels at once: independent sums enough to multiply
    // at the speed of L2. NULL elsewhere. args.cols is ignored.
    mgx_tile_fn few[3];
    int few_panels[3];
    // The same of one full panel, where panels come from beyond L2 one behind the other: as a
    // single stream memory gives them up to a quarter sooner. NULL: `few` is for these as well.
    mgx_tile_fn stream[3];
    // c[i][j] = dot(a[i], b[j]) for rows <= 4 rows and cols <= 4 columns whose depth is contiguous
    // in both operands; b_row is from column to column. Honours bias, residual and clamp.
    void (*dot)(const struct mgx_tile_args *args, int rows);
    // panel[k][j] = b[j * stride + k] for k < depth, j < cols; zero for cols <= j < width. Of
    // groups: floats here are any 32 bits.
    void (*pack_transposed)(const float *b, int64_t stride, int64_t depth, int cols, int width,
                            float *panel);
};

extern const struct mgx_kernel *const mgx_gemm_kernels[];

// Whether its panels are lists of chunks (chunk.h).
static inline bool mgx_gemm_in_chunks(const struct mgx_gemm_kernel *kernel)
{
    return kernel->chunks;
}

// Whether it multiplies bytes that were made 16 bits.
static inline bool mgx_gemm_widens(const struct mgx_gemm_kernel *kernel)
{
    return kernel->integer && mgx_kernel_size(kernel->b_type) == 2;
}

// Whether bytes of A have no sign, whatever they were.
static inline bool mgx_gemm_takes_unsigned(const struct mgx_gemm_kernel *kernel)
{
    return mgx_kernel_is_byte(kernel->a_type) && !mgx_kernel_is_signed(kernel->a_type);
}

// Whether it multiplies in tile registers.
static inline bool mgx_gemm_has_tiles(const struct mgx_gemm_kernel *kernel)
{
    return kernel->release != NULL;
}

// Whether chunks, if there are such, can take less time than the usual kernel: than bytes widened
// to 16 bits in vectors no longer than theirs. What multiplies bytes as they are is faster.
static inline bool mgx_chunks_compete(const struct mgx_gemm_kernel *chunks,
                                      const struct mgx_gemm_kernel *usual)
{
    return chunks && mgx_gemm_widens(usual) && usual->vector <= chunks->vector;
}

// How much larger a byte of A is as the kernel sees it: signed ones are made unsigned.
static inline int mgx_kernel_shift(const struct mgx_gemm_kernel *kernel, enum mgx_kernel_type type)
{
    return mgx_gemm_takes_unsigned(kernel) ? mgx_kernel_raise(type) : 0;
}

// The one of two such that is better for so many rows.
static inline const struct mgx_gemm_kernel *
mgx_gemm_kernel_of_rows(const struct mgx_gemm_kernel *kernel, int64_t rows)
{
    return kernel && kernel->few_rows && rows < kernel->least_rows ? kernel->few_rows : kernel;
}

// Whose panels it reads: two kernels with one such name share what is packed.
static inline const char *mgx_panels_name(const struct mgx_gemm_kernel *kernel)
{
    return kernel->few_rows ? kernel->few_rows->base.name : kernel->base.name;
}

// The family that multiplies f32, bf16 or s8: of those that `isa` holds, the best, and of equal
// ones that with the largest tile. NULL when there is none: bf16 without the instruction for it.
const struct mgx_gemm_kernel *mgx_gemm_kernel(enum mgx_kernel_type type, mgx_isa isa);
// Of those for bytes, one that takes operands of these types, B with or without zero points. Where
// none takes B as it is, 16 bits are multiplied; A is made unsigned where none takes it signed.
const struct mgx_gemm_kernel *mgx_integer_kernel(enum mgx_kernel_type type, mgx_isa isa,
                                                 enum mgx_kernel_type a_type,
                                                 enum mgx_kernel_type b_type, bool b_zero);
// The same with panels of so many columns; NULL when there is none.
const struct mgx_gemm_kernel *mgx_gemm_kernel_of(enum mgx_kernel_type type, mgx_isa isa, int cols);
