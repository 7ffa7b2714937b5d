// SPDX-License-Identifier: MIT
// Packing B into panels; panel.h has the layout. Costs one pass over B. Columns whose depth is
// contiguous are transposed in registers, 32 bits at a time; anything else goes line by line.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/split.h"
#include "targets/cpu/kernel/tile/panel.h"
#include "targets/cpu/machine/cpuid.h"

int mgx_panel_width(const struct mgx_gemm_kernel *kernel, int64_t n, int64_t p)
{
    assert(n > 0 && p >= 0 && p * kernel->cols < n);
    const int64_t left = n - p * kernel->cols;
    return left <= kernel->cols / 2 ? kernel->cols / 2 : kernel->cols;
}

int64_t mgx_panel_rows(const struct mgx_gemm_kernel *kernel, int64_t depth)
{
    assert(depth >= 0);
    return mgx_ceil_div(depth, kernel->group);
}

bool mgx_panels_bytes(const struct mgx_gemm_kernel *kernel, int64_t rows, int64_t n, size_t *out)
{
    assert(rows >= 0 && n >= 0);
    const size_t cols = (size_t)kernel->cols;
    size_t bytes;
    if (!mgx_add_size((size_t)n, cols - 1, &bytes) ||
        !mgx_mul_size(bytes / cols, cols * sizeof(float), &bytes) ||
        !mgx_mul_size(bytes, (size_t)rows, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    if (n % kernel->cols && n % kernel->cols <= kernel->cols / 2)
        bytes -= (size_t)rows * cols / 2 * sizeof(float);
    *out = bytes;
    return true;
}

// What is packed: part of a matrix, at its first column.
struct source {
    const struct mgx_gemm_kernel *kernel;
    const char *b;
    int64_t row, col, depth; // strides in bytes
    int64_t size;            // bytes of an element
    int cols;
    mgx_convert_fn convert;
};

// The columns of a row that are not there.
static inline void clear_rest(void *row, int cols, int width)
{
    if (cols < width)
        memset((uint32_t *)row + cols, 0, (size_t)(width - cols) * sizeof(uint32_t));
}

// A line of values with any stride to one without gaps.
static void gather(const char *from, int64_t step, int64_t size, int count, void *to)
{
    assert(count > 0 && size > 0);
    char *out = to;
    for (int i = 0; i < count; i++, from += step, out += size)
        memcpy(out, from, (size_t)size);
}

// Row k of the columns, of the kernel's type; zeros behind the depth.
static void load_line(const struct source *s, int64_t k, void *to)
{
    assert(k >= 0);
    char line[MGX_TILE_MAX_COLS * 4];
    const char *from = s->b + k * s->row;
    if (k >= s->depth) {
        memset(to, 0, (size_t)(s->cols * mgx_kernel_size(s->kernel->b_type)));
        return;
    }
    if (s->col != s->size) {
        gather(from, s->col, s->size, s->cols, line);
        from = line;
    }
    s->convert(from, to, s->cols);
}

// Two rows of bytes as pairs of 16 bits; `next` NULL: zeros.
static void pair_unsigned(const uint8_t *restrict a, const uint8_t *restrict next, int cols,
                          uint32_t *restrict to)
{
    for (int j = 0; j < cols; j++)
        to[j] = a[j] | (next ? (uint32_t)next[j] << 16 : 0);
}

static void pair_signed(const int8_t *restrict a, const int8_t *restrict next, int cols,
                        uint32_t *restrict to)
{
    for (int j = 0; j < cols; j++)
        to[j] = (uint16_t)a[j] | (next ? (uint32_t)next[j] << 16 : 0);
}

// Rows of bytes, to be multiplied as 16 bits.
static void pack_bytes(const struct source *s, bool is_signed, int width, uint32_t *panel)
{
    assert(s->kernel->group == 2 && s->size == 1 && s->col == 1);
    for (int64_t k = 0; k < s->depth; k += 2, panel += width) {
        const char *a = s->b + k * s->row, *next = k + 1 < s->depth ? a + s->row : NULL;
        if (is_signed)
            pair_signed((const int8_t *)a, (const int8_t *)next, s->cols, panel);
        else
            pair_unsigned((const uint8_t *)a, (const uint8_t *)next, s->cols, panel);
        clear_rest(panel, s->cols, width);
    }
}

// Two rows of 16 bits as pairs; `next` NULL: zeros.
static void pair_words(const uint16_t *restrict a, const uint16_t *restrict next, int cols,
                       uint32_t *restrict to)
{
    if (!next)
        for (int j = 0; j < cols; j++)
            to[j] = a[j];
    else
        for (int j = 0; j < cols; j++)
            to[j] = a[j] | (uint32_t)next[j] << 16;
}

// Rows of 16 bits that are multiplied as they are.
static void pack_words(const struct source *s, int width, uint32_t *panel)
{
    enum { USUAL = 32 };
    assert(s->kernel->group == 2 && s->size == 2 && s->col == 2);
    for (int64_t k = 0; k < s->depth; k += 2, panel += width) {
        const uint16_t *a = (const uint16_t *)(const void *)(s->b + k * s->row);
        const uint16_t *next = k + 1 < s->depth ? a + s->row / 2 : NULL;
        if (s->cols == USUAL && next) // of known size: in registers
            pair_words(a, next, USUAL, panel);
        else
            pair_words(a, next, s->cols, panel);
        clear_rest(panel, s->cols, width);
    }
}

// One row of the panel for each group of rows of the matrix, value by value side by side.
static void pack_lines(const struct source *s, int width, uint32_t *panel)
{
    assert(width >= 0);
    const int group = s->kernel->group;
    union {
        uint32_t whole[MGX_TILE_MAX_COLS];
        uint16_t pair[MGX_TILE_MAX_COLS];
        uint8_t byte[MGX_TILE_MAX_COLS];
    } line[4];
    const bool as_it_is = group == 1 && s->col == 4 && s->size == 4 && s->cols == width;
    for (int64_t k = 0; k < s->depth; k += group, panel += width) {
        if (as_it_is) {
            memcpy(panel, s->b + k * s->row, (size_t)width * sizeof *panel);
            continue;
        }
        for (int i = 0; i < group; i++)
            load_line(s, k + i, &line[i]);
        for (int j = 0; j < s->cols; j++)
            panel[j] = group == 1 ? line[0].whole[j]
                       : group == 2
                           ? line[0].pair[j] | (uint32_t)line[1].pair[j] << 16
                           : line[0].byte[j] | (uint32_t)line[1].byte[j] << 8 |
                                 (uint32_t)line[2].byte[j] << 16 | (uint32_t)line[3].byte[j] << 24;
        clear_rest(panel, s->cols, width);
    }
}

// `count` values of a column, `step` bytes apart, side by side.
static inline uint32_t group_at(const char *from, int64_t step, int size, int count)
{
    uint32_t group = 0;
    for (int i = 0; i < count; i++) {
        uint32_t value = 0;
        memcpy(&value, from + i * step, (size_t)size);
        group |= value << 8 * size * i;
    }
    return group;
}

// Values of `size` bytes that only move, from wherever the columns are.
static inline void pack_moved(const struct source *s, int size, int width, uint32_t *panel)
{
    const int group = 4 / size;
    for (int64_t k = 0; k < s->depth; k += group, panel += width) {
        const char *from = s->b + k * s->row;
        const int64_t left = s->depth - k;
        if (left >= group)
            for (int j = 0; j < s->cols; j++)
                panel[j] = group_at(from + j * s->col, s->row, size, group);
        else
            for (int j = 0; j < s->cols; j++)
                panel[j] = group_at(from + j * s->col, s->row, size, (int)left);
        clear_rest(panel, s->cols, width);
    }
}

static void pack_anywhere(const struct source *s, int width, uint32_t *panel)
{
    if (s->size == 1)
        pack_moved(s, 1, width, panel);
    else if (s->size == 2)
        pack_moved(s, 2, width, panel);
    else
        pack_moved(s, 4, width, panel);
}

// Rows that only move.
static void copy_lines(const struct source *s, int width, float *panel)
{
    assert(width >= 0);
    enum { USUAL = 32 };
    const char *from = s->b;
    for (int64_t k = 0; k < s->depth; k++, from += s->row, panel += width) {
        if (s->cols == 2 * USUAL) // of known size: in registers
            memcpy(panel, from, 2 * USUAL * sizeof *panel);
        else if (s->cols == USUAL)
            memcpy(panel, from, USUAL * sizeof *panel);
        else if (s->cols == USUAL / 2)
            memcpy(panel, from, USUAL / 2 * sizeof *panel);
        else
            memcpy(panel, from, (size_t)s->cols * sizeof *panel);
        clear_rest(panel, s->cols, width);
    }
}

// Columns whose depth is contiguous, some groups at a time: converted, then transposed.
static void pack_columns(const struct source *s, int width, float *panel)
{
    assert(width >= 0);
    enum { GROUPS = 32 };
    const int64_t to = mgx_kernel_size(s->kernel->b_type), piece = GROUPS * s->kernel->group;
    float columns[MGX_TILE_MAX_COLS * GROUPS];
    for (int64_t k = 0; k < s->depth; k += piece) {
        const int64_t count = mgx_min_i64(piece, s->depth - k);
        const int64_t groups = mgx_ceil_div(count, s->kernel->group);
        for (int j = 0; j < s->cols; j++) {
            char *column = (char *)(columns + j * GROUPS);
            s->convert(s->b + j * s->col + k * s->size, column, count);
            memset(column + count * to, 0, (size_t)(groups * 4 - count * to));
        }
        s->kernel->pack_transposed(columns, GROUPS, groups, s->cols, width,
                                   panel + k / s->kernel->group * width);
    }
}

// Columns whose depth is contiguous lie a power of two apart as a rule, where the lines of sixteen
// of them push each other out of L1 and memory is asked for them one by one: so what follows each
// other in memory is read in that order first, as much as stays in L2.
static void pack_whole(const struct source *s, int width, float *panel)
{
    enum { LINE = 64 };
    const int64_t bytes = s->cols * s->col;
    if (bytes <= mgx_cpu_l2() / 2 && s->col <= 2 * s->depth * s->size)
        for (int64_t at = 0; at < bytes - s->col + s->depth * s->size; at += LINE)
            (void)*(const volatile char *)(s->b + at);
    s->kernel->pack_transposed((const float *)(const void *)s->b, s->col / 4,
                               s->depth / s->kernel->group, s->cols, width, panel);
}

void mgx_panel_pack(const struct mgx_gemm_kernel *kernel, const struct mgx_panel_source *b,
                    int64_t p, void *panel)
{
    const enum mgx_kernel_type type = b->type;
    const int width = mgx_panel_width(kernel, b->n, p);
    const int64_t left = b->n - p * kernel->cols, size = mgx_kernel_size(type);
    const struct source s = {
        .kernel = kernel,
        .b = (const char *)b->at + p * kernel->cols * b->col * size,
        .row = b->row * size,
        .col = b->col * size,
        .depth = b->depth,
        .size = size,
        .cols = left < width ? (int)left : width,
        .convert = mgx_convert(kernel->base.needs, type, kernel->b_type),
    };
    const bool whole = type == kernel->b_type && b->depth % kernel->group == 0 && s.col % 4 == 0;
    if (b->col == 1 && type == kernel->b_type && mgx_kernel_is_plain(type))
        copy_lines(&s, width, panel);
    else if (b->col == 1 && size == 1 && mgx_gemm_widens(kernel))
        pack_bytes(&s, mgx_kernel_is_signed(type), width, panel);
    else if (b->col == 1 && mgx_kernel_is_float(type) && kernel->b_type == type)
        pack_words(&s, width, panel);
    else if (b->row != 1 && b->col != 1 && type == kernel->b_type && size * kernel->group == 4)
        pack_anywhere(&s, width, panel);
    else if (b->row != 1 || b->col == 1)
        pack_lines(&s, width, panel);
    else if (whole)
        pack_whole(&s, width, panel);
    else
        pack_columns(&s, width, panel);
}

// One row of 32 bits a column: two k. Whole rows at once, which compilers make vectors of.
static void shift_rows(int16_t *restrict pair, int64_t rows, int values,
                       const int16_t *restrict zero)
{
    for (int64_t r = 0; r < rows; r++, pair += values)
        for (int j = 0; j < values; j++)
            pair[j] = (int16_t)(pair[j] - zero[j]);
}

void mgx_panel_shift(void *panel, int64_t depth, int width, int cols, const int32_t *zero)
{
    assert(depth >= 0 && width > 0 && width <= MGX_TILE_MAX_COLS && cols >= 0 && cols <= width);
    int16_t both[2 * MGX_TILE_MAX_COLS] = {0}, first[2 * MGX_TILE_MAX_COLS] = {0};
    for (int j = 0; j < cols; j++)
        both[2 * j] = both[2 * j + 1] = first[2 * j] = (int16_t)zero[j];
    shift_rows(panel, depth / 2, 2 * width, both);
    shift_rows((int16_t *)panel + depth / 2 * 2 * width, depth % 2, 2 * width, first);
}

// sums[j] += every value of column j, of 16 bits and of 8 with or without a sign.
static void sum_pairs(const int16_t *restrict pair, int64_t rows, int values,
                      uint32_t *restrict sums)
{
    for (int64_t r = 0; r < rows; r++, pair += values)
        for (int j = 0; j < values; j++)
            sums[j] += (uint32_t)pair[j];
}

static void sum_bytes(const int8_t *restrict byte, int64_t rows, int values,
                      uint32_t *restrict sums)
{
    for (int64_t r = 0; r < rows; r++, byte += values)
        for (int j = 0; j < values; j++)
            sums[j] += (uint32_t)byte[j];
}

static void sum_unsigned(const uint8_t *restrict byte, int64_t rows, int values,
                         uint32_t *restrict sums)
{
    for (int64_t r = 0; r < rows; r++, byte += values)
        for (int j = 0; j < values; j++)
            sums[j] += byte[j];
}

void mgx_panel_starts(const struct mgx_gemm_kernel *kernel, const void *panel, int64_t rows,
                      int width, int shift, int32_t *starts)
{
    enum { GROUP = 4 }; // values of 32 bits at most
    uint32_t sums[MGX_TILE_MAX_COLS * GROUP] = {0};
    const int group = kernel->group;
    assert(rows >= 0 && width <= MGX_TILE_MAX_COLS && group <= GROUP);
    assert(mgx_gemm_widens(kernel) || mgx_kernel_is_byte(kernel->b_type));
    if (shift && mgx_kernel_is_signed(kernel->b_type))
        sum_bytes(panel, rows, width * group, sums);
    else if (shift && mgx_kernel_is_byte(kernel->b_type))
        sum_unsigned(panel, rows, width * group, sums);
    else if (shift)
        sum_pairs(panel, rows, width * group, sums);
    for (int j = 0; j < width; j++) { // wraps as the instruction's sums do
        uint32_t sum = 0;
        for (int i = 0; i < group; i++)
            sum += sums[j * group + i];
        starts[j] = (int32_t)(0u - (uint32_t)shift * sum);
    }
}
