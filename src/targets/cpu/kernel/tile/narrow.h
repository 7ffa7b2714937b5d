// SPDX-License-Identifier: MIT
// Packed weights that stay narrower than the floats they are multiplied as: 16 bits, or 8, 4 and 2
// with a scale per block of depth. Products read them instead of float panels (gemm.h).
//
//     panel of `width` columns, 16 bits:    [k][width] halves or bfloat16
//     8, 4, 2 bits, one block of depth after the other:
//         width scales (float)
//         [k / per][width] words, per = 32 / bits: k in the lowest bits, k + 1 above, ...
//     and before the first of every 64 / width blocks, unless all are the middle of the range:
//         a line of cache of their zero points (byte), so that all is read in one stream
//
//     value = (q - zero) * scale
//
// For few rows of A the product is made from the panel as it lies: every column's sum over a block
// is scaled once, and the zero point is taken off as zero * (sum of A over the block). Memory
// brings 1/2 to 1/16 of the bytes. For more rows a panel is unpacked into cache once per block of
// rows and multiplied as floats.
//
// Where `fast` allows it, few rows of A become whole numbers of 15 bits and a sign, with a factor
// for every block, and are multiplied by the packed numbers as integers: half the instructions, and
// an error of at most 2^-16 of the largest value of a block for each of its values. Where a machine
// multiplies fours of bytes at once (VNNI), a whole number is two bytes (narrow_whole.h): half the
// instructions again. Rows with infinities or NaN are left as they are.
//
// Such a machine multiplies many rows so as well, which saves the unpacking and takes half the time
// of floats. Where `bytes` allows it too, many rows become bytes alone: half of that time again,
// and an error of at most 2^-8 of the largest value of a block for each of its values. Weights of
// 4 bits and fewer times bytes suit machines without VNNI as well, whose instruction adds two
// products in 16 bits.
#pragma once

#include <assert.h>

#include "targets/cpu/kernel/tile/tile.h"

enum mgx_narrow_kind { MGX_NARROW_NONE, MGX_NARROW_F16, MGX_NARROW_BF16, MGX_NARROW_BLOCKS };

enum { MGX_NARROW_ROWS = 4 };    // that count as few; `product` takes no more at once but of bytes
enum { MGX_NARROW_MANY = 8 };    // ... of which it takes as many as this
enum { MGX_NARROW_BYTES = 256 }; // whose sum is a word still

struct mgx_narrow {
    enum mgx_narrow_kind kind;
    int bits;      // of blocks: 8, 4 or 2
    int64_t block; // k per scale: whole words
    bool zeros;    // there are zero points
    int64_t depth; // k
    bool fast;     // rows of A may become whole numbers
    bool bytes;    // many of them may become bytes: blocks of MGX_NARROW_BYTES at most
};

// Few rows times one panel, or one row times as many as the kernel says.
struct mgx_narrow_args {
    const struct mgx_narrow *form;
    const char *panel;
    int64_t panel_bytes; // to the next panel
    int width;           // of a panel
    const float *a;      // `rows` rows, contiguous depth
    int64_t a_row;       // floats
    // Of blocks, one row after the other: the sum of A over each block; or, with whole numbers,
    // that sum and the factor they have.
    const float *sums;
    int64_t sums_row;             // floats
    const int32_t *pairs;         // as `whole` makes them; NULL: A as it is
    int64_t pairs_row;            // pairs
    bool bytes;                   // pairs are those, and sums beside them, of `many` rows
    const float *bias, *residual; // at the first column; NULL: none
    int64_t residual_row;         // floats
    float *c;
    int64_t c_row; // floats
    int cols;      // of bias, residual and c
    bool clamp;
    float low, high;
};

struct mgx_narrow_kernel {
    struct mgx_kernel base;
    int vector; // floats: panels have one or two
    // Panels that one row is best multiplied by at once: 1 or 2.
    int (*panels)(const struct mgx_narrow *form);
    void (*product)(const struct mgx_narrow_args *args, int rows, int panels);
    // How many rows `product` is best given at once where there are many; 0: many rows are better
    // multiplied as floats.
    int (*many)(const struct mgx_narrow *form);
    // out[b] = sum of a over block b.
    void (*sums)(const float *a, int64_t depth, int64_t block, float *out);
    // mgx_narrow_whole, as this kernel multiplies it; or as bytes, where it has a `many` for them.
    // Rows of `many` lie together then, a word and two sums of each side by side: this row's are
    // the first.
    bool (*whole)(const struct mgx_narrow *form, const float *a, bool bytes, int32_t *pairs,
                  float *sums);
    // Floats of k .. k + depth of one panel; k is a multiple of 4.
    void (*unpack)(const struct mgx_narrow *form, const char *panel, int width, int64_t k,
                   int64_t depth, float *to);
};

MGX_KERNEL_KIND(narrow)

// For panels of this kernel, on a machine that has these instructions.
static inline const struct mgx_narrow_kernel *mgx_narrow_of(const struct mgx_gemm_kernel *kernel,
                                                            mgx_isa isa)
{
    const struct mgx_narrow_kernel *best = mgx_narrow_kernel(isa);
    return best->vector == kernel->vector ? best : mgx_narrow_kernel(kernel->base.needs);
}

static inline int64_t mgx_narrow_blocks(const struct mgx_narrow *form)
{
    return form->kind == MGX_NARROW_BLOCKS ? (form->depth + form->block - 1) / form->block : 1;
}

// Bytes before the values of a block, and of all of it.
static inline int64_t mgx_narrow_head(const struct mgx_narrow *form, int width)
{
    return form->kind == MGX_NARROW_BLOCKS ? 4 * width : 0;
}

static inline int64_t mgx_narrow_record(const struct mgx_narrow *form, int width)
{
    return form->kind == MGX_NARROW_BLOCKS
               ? mgx_narrow_head(form, width) + form->block * form->bits / 8 * width
               : 2 * form->depth * width;
}

enum { MGX_NARROW_LINE = 64 }; // bytes of zero points that lie together

// Blocks whose zero points do.
static inline int64_t mgx_narrow_shared(int width)
{
    assert(width > 0 && MGX_NARROW_LINE % width == 0);
    return MGX_NARROW_LINE / width;
}

// Where block `b` lies in a panel, and where its zero points do.
static inline int64_t mgx_narrow_at(const struct mgx_narrow *form, int width, int64_t b)
{
    const int64_t lines = form->zeros ? b / mgx_narrow_shared(width) + 1 : 0;
    return mgx_narrow_record(form, width) * b + MGX_NARROW_LINE * lines;
}

static inline int64_t mgx_narrow_zeros(const struct mgx_narrow *form, int width, int64_t b)
{
    const int64_t own = b % mgx_narrow_shared(width);
    return mgx_narrow_at(form, width, b - own) - MGX_NARROW_LINE + own * width;
}

static inline int64_t mgx_narrow_panel(const struct mgx_narrow *form, int width)
{
    const int64_t blocks = mgx_narrow_blocks(form);
    return blocks ? mgx_narrow_at(form, width, blocks - 1) + mgx_narrow_record(form, width) : 0;
}

// Bytes of a matrix of n columns; false when they do not fit.
bool mgx_narrow_bytes(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                      int64_t n, size_t *out);

// Bytes for the sums and pairs of `rows` rows of A.
size_t mgx_narrow_scratch(const struct mgx_narrow *form, int64_t rows, bool bytes);
// Pairs that a row has; words, of a row of bytes.
int64_t mgx_narrow_pairs(const struct mgx_narrow *form, bool bytes);
// A row of A as whole numbers: pairs of k and k + per / 2 of a word's numbers side by side, and
// sums and factors as mgx_narrow_args has them. False where a value is not finite, or all are tiny.
bool mgx_narrow_whole(const struct mgx_narrow *form, const float *a, bool bytes, int32_t *pairs,
                      float *sums);

struct mgx_panel_source; // panel.h

// Packs rows k .. k + depth of floats that 16 bits hold, all panels.
void mgx_narrow_pack(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                     const struct mgx_panel_source *b, int64_t k, int64_t depth, void *packed);

// Weights of n columns as models bring them: bytes [n][blocks][block * bits / 8] with k in the
// lowest bits first, scales and zero points [n][blocks].
struct mgx_narrow_source {
    const uint8_t *values;
    const void *scale; // F32, F16 or BF16
    enum mgx_kernel_type scale_type;
    const void *zero; // U8, or of the scales' type; NULL: none
    bool zero_bytes;
};

// Packs panel `p`.
void mgx_narrow_pack_blocks(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                            const struct mgx_narrow_source *source, int64_t n, int64_t p,
                            void *packed);
