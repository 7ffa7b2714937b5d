// SPDX-License-Identifier: MIT
// How tiles of int32 sums end, AVX2 and AVX-512: as they are, as floats, or as bytes (end.h).
// Up to eight rows of a vector's columns in registers; rows from the fourth on lie in the second
// half. Shared by the kernels of bytes that end in registers. What most tiles of a network want,
// bytes of whole vectors, with or without a residual, is `end_plainly`: with AVX2 some 15 cycles
// for 64 values, 25 with a residual.
#pragma once

#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/end/end_body.h"
#include "targets/cpu/kernel/tile/tile.h"

enum { END_ROWS = 8, END_HALF = 4, GROUP_BYTES = 4 };

// --- tiles in general ---

SIMD char *row_at(char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
}

SIMD const char *residual_row(const char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
}

SIMD void store_floats(int count, const struct mgx_tile_args *args, const vf v[END_ROWS])
{
    const int cols = args->cols;
    UNROLL
    for (int i = 0; i < count; i++) {
        vf x = v[i];
        if (args->residual[0])
            x = vf_add(x, load_cols((const float *)(const void *)residual_row(
                                        args->residual, args->residual_row, i),
                                    cols));
        if (args->clamp)
            x = vf_min(vf_set(args->high), vf_max(vf_set(args->low), x));
        store_cols(row_at(args->c, args->c_row, i), cols, x);
    }
}

// For lists of the form MIXED.
SIMD const struct mgx_end_step *mix_of(const struct mgx_tile_args *args)
{
    return args->end.last - 2;
}

// Added to a byte's number and taken off again it rounds it, where it is to be rounded.
SIMD float magic_of(const struct mgx_tile_args *args)
{
    return args->end.step[1].kind == MGX_END_ROUND ? 0x1.8p23F : 0;
}

SIMD void store_sums(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++)
        store_cols(row_at(args->c, args->c_row, i), args->cols, (vf)c[i]);
}

// --- what most strips want ---

// Whether there are columns of the last vector, or all of them where parts are not taken.
static inline bool has_columns(const struct mgx_tile_args *args, int cols)
{
    return args->cols >= (TAKES_PARTS ? cols - COLS + 1 : cols);
}

// Whether tiles end in floats of whole vectors, which strips have a way for.
static inline bool ends_in_floats(const struct mgx_tile_args *args, int cols)
{
    return args->scale && !args->end.step && !args->clamp && has_columns(args, cols);
}

// How the tiles of a strip end, which is the same for all of them: as end_tile has it where it is
// none of the lists that have a way of their own, or columns are missing.
static inline enum mgx_end_form ending_of(const struct mgx_tile_args *args, int cols)
{
    const bool own = args->scale && args->end.step && args->end.form <= MGX_END_MIXED;
    return own && has_columns(args, cols) ? args->end.form : MGX_END_ANY;
}

// The columns of vector j of a row of `nv`.
SIMD int cols_of(const struct mgx_tile_args *args, int nv, int j)
{
    return TAKES_PARTS && j + 1 == nv ? args->cols - j * COLS : COLS;
}

SIMD __m128i residual_of(const char *p, int cols)
{
    return cols == COLS ? whole_row(p) : part_of_row(p, cols);
}

// Adds the residual to rows of `nv` vectors that are bytes but for rounding.
SIMD void add_residual(int rows, int nv, const struct mgx_tile_args *args, const char *residual,
                       vf *v)
{
    const struct mgx_end_step *first = args->end.step, *mix = mix_of(args);
    const vf low = vf_set(first->clamp.low), high = vf_set(first->clamp.high),
             keep = vf_set(mix->mix.keep), share = vf_set(mix->mix.share),
             offset = vf_set(mgx_end_offset(mix)), magic = vf_set(magic_of(args));
    const __m128i raised = _mm_set1_epi8((char)mgx_end_raised(mix));
    UNROLL
    for (int i = 0; i < rows * nv; i++) {
        const vf x = vf_sub(vf_add(vf_min(high, vf_max(v[i], low)), magic), magic);
        const char *from = residual + i / nv * args->residual_row + i % nv * COLS;
        const __m128i other = _mm_xor_si128(residual_of(from, cols_of(args, nv, i % nv)), raised);
        v[i] = vf_fma(floats_of(other, false), share, vf_fma(x, keep, offset));
    }
}

// Row i of the four vectors of bytes in one.
SIMD void store_plain_row(int i, int nv, int cols, char *to, byte_rows four)
{
    if (TAKES_PARTS && cols != nv * COLS)
        store_part_of_row(to, nv, cols, four, i);
    else if (nv == 2)
        store_two_rows(to, four, i);
    else
        store_whole_row(to, row_of(four, i));
}

// Those that there are. (No loop: of one row a compiler could not unroll it.)
SIMD void store_plainly(int rows, int nv, int cols, char *to, int64_t step, byte_rows four)
{
    store_plain_row(0, nv, cols, to, four);
    if (rows > 1)
        store_plain_row(1, nv, cols, to + step, four);
    if (rows > 2)
        store_plain_row(2, nv, cols, to + 2 * step, four);
    if (rows > 3)
        store_plain_row(3, nv, cols, to + 3 * step, four);
}

// What sums of `nv` vectors are multiplied by, and what is added.
SIMD void load_columns(int nv, const struct mgx_tile_args *args, vf scale[2], vf bias[2])
{
    UNROLL
    for (int j = 0; j < nv; j++) {
        const int cols = cols_of(args, nv, j);
        scale[j] = load_cols(args->scale + j * COLS, cols);
        bias[j] = args->bias ? load_cols(args->bias + j * COLS, cols) : vf_zero();
    }
}

// Finishes rows of `nv` vectors of sums, side by side in `c`, as `ending` says: four vectors after
// four, which need few registers beside those of the sums.
SIMD void end_plainly(int rows, int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                      char *to, const char *residual, const sums *c)
{
    const struct mgx_end_step *last = args->end.last;
    vf scale[2], bias[2];
    load_columns(nv, args, scale, bias);
    UNROLL
    for (int i = 0; i < rows; i += 4 / nv) {
        const int here = rows - i < 4 / nv ? rows - i : 4 / nv;
        vf v[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
        UNROLL
        for (int j = 0; j < here * nv; j++)
            v[j] = vf_fma(vf_from_int((vf)c[i * nv + j]), scale[j % nv], bias[j % nv]);
        if (ending == MGX_END_MIXED)
            add_residual(here, nv, args, residual + i * args->residual_row, v);
        const byte_rows four = four_rows(v, last->byte.zero, last->byte.is_signed);
        store_plainly(here, nv, args->cols, to + i * args->c_row, args->c_row,
                      ending == MGX_END_LOOKUP ? looked_up(last->byte.table, four) : four);
    }
}

SIMD void end_floats_with(bool adds, int rows, int nv, const struct mgx_tile_args *args, char *to,
                          const char *residual, const sums *c)
{
    enum { SIZE = (int)sizeof(float) };
    vf scale[2], bias[2];
    load_columns(nv, args, scale, bias);
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            const int cols = cols_of(args, nv, j);
            vf v = vf_fma(vf_from_int((vf)c[i * nv + j]), scale[j], bias[j]);
            if (adds)
                v = vf_add(v, load_cols((const float *)(const void *)residual + j * COLS, cols));
            store_cols(to + j * COLS * SIZE, cols, v);
        }
        to += args->c_row;
        residual += adds ? args->residual_row : 0;
    }
}

// Finishes rows of `nv` vectors of sums as MGX_END_FLOATS says.
SIMD void end_floats(int rows, int nv, const struct mgx_tile_args *args, char *to,
                     const char *residual, const sums *c)
{
    if (residual)
        end_floats_with(true, rows, nv, args, to, residual, c);
    else
        end_floats_with(false, rows, nv, args, to, NULL, c);
}

// Bytes of a result, and of a residual's value.
SIMD int64_t stored_size(const struct mgx_tile_args *args)
{
    return mgx_end_list_makes_bytes(&args->end) ? 1 : GROUP_BYTES;
}

SIMD int64_t residual_size_of(const struct mgx_tile_args *args)
{
    return args->end.step ? 1 : GROUP_BYTES; // such lists read nothing else
}

// What vectors that end by a list are made of: rows of `nv` vectors of sums, of which `real` have
// columns.
struct listed {
    const sums *c;
    const char *residual;
    char *to;
    int64_t residual_row, c_row, size;
    int nv, real, cols;
    vf scale[2], bias[2];
};

// Vector j of row i.
SIMD vf listed_vector(const struct listed *l, int i, int j, int cols, struct end_slot *at)
{
    *at = (struct end_slot){.operand =
                                l->residual ? l->residual + i * l->residual_row + j * COLS : NULL,
                            .to = l->to + i * l->c_row + j * COLS * l->size,
                            .cols = cols};
    return vf_fma(vf_from_int((vf)l->c[i * l->nv + j]), l->scale[j], l->bias[j]);
}

// Four whole vectors from vector n on, `real` in a row.
SIMD void listed_whole(const struct listed *l, int real, int n, struct end_slot at[END_VECTORS],
                       vf v[END_VECTORS])
{
    UNROLL
    for (int k = 0; k < END_VECTORS; k++)
        v[k] = listed_vector(l, n / real + k / real, k % real, COLS, &at[k]);
}

// Fewer, or such as are not whole; the last one again where one is missing, which changes nothing.
SIMD void listed_some(const struct listed *l, int n, int all, struct end_slot at[END_VECTORS],
                      vf v[END_VECTORS])
{
    UNROLL
    for (int k = 0; k < END_VECTORS; k++) {
        const int m = n + k < all ? n + k : all - 1, j = l->real == 1 ? 0 : m % 2;
        const int left = l->cols - j * COLS;
        v[k] = listed_vector(l, m / l->real, j, left < COLS ? left : COLS, &at[k]);
    }
}

SIMD vf end_on_grid(const struct mgx_tile_args *args, vf v)
{
    return vf_mul(vf_round(end_clamp(args->end.step, v)), vf_set(args->end.last->scale));
}

// Floats that were bytes, a vector at a time.
SIMD void end_grid(int rows, int real, const struct mgx_tile_args *args, const struct listed *l)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < real; j++) {
            struct end_slot at;
            const int left = l->cols - j * COLS, cols = left < COLS ? left : COLS;
            const vf v = end_on_grid(args, listed_vector(l, i, j, cols, &at));
            store_cols(at.to, cols, v);
        }
}

// By their list, step by step, four vectors after four.
static __attribute__((noinline, unused)) void end_rows_listed(int rows, int nv,
                                                              const struct mgx_tile_args *args,
                                                              char *to, const char *residual,
                                                              const sums *c)
{
    struct listed l = {.c = c,
                       .residual = residual,
                       .to = to,
                       .residual_row = args->residual_row,
                       .c_row = args->c_row,
                       .size = stored_size(args),
                       .nv = nv,
                       .real = args->cols > COLS ? 2 : 1,
                       .cols = args->cols};
    const int all = rows * l.real;
    const bool whole = l.cols == l.real * COLS;
    for (int j = 0; j < l.real; j++) {
        const int left = l.cols - j * COLS, cols = left < COLS ? left : COLS;
        l.scale[j] = load_cols(args->scale + j * COLS, cols);
        l.bias[j] = args->bias ? load_cols(args->bias + j * COLS, cols) : vf_zero();
    }
    if (args->end.form == MGX_END_GRID) {
        end_grid(rows, l.real, args, &l);
        return;
    }
    for (int n = 0; n < all; n += END_VECTORS) {
        struct end_slot at[END_VECTORS];
        vf v[END_VECTORS];
        if (!whole || n + END_VECTORS > all)
            listed_some(&l, n, all, at, v);
        else if (l.real == 1)
            listed_whole(&l, 1, n, at, v);
        else
            listed_whole(&l, 2, n, at, v);
        end_steps(args->end.step, args->end.last + 1, at, v);
    }
}

// Four rows of one vector or fewer, step by step.
static __attribute__((noinline, unused)) void end_half_listed(int count,
                                                              const struct mgx_tile_args *args,
                                                              char *to, const char *residual,
                                                              const sums *c)
{
    const int cols = args->cols;
    const vf scale = load_cols(args->scale, cols),
             bias = args->bias ? load_cols(args->bias, cols) : vf_zero();
    struct end_slot at[END_VECTORS];
    vf v[END_VECTORS];
    UNROLL
    for (int k = 0; k < END_VECTORS; k++) { // the last one again, which changes nothing
        const int64_t row = k < count ? k : count - 1;
        at[k] = (struct end_slot){.operand = residual + row * args->residual_row,
                                  .to = to + row * args->c_row,
                                  .cols = cols};
        v[k] = vf_fma(vf_from_int((vf)c[row]), scale, bias);
    }
    end_steps(args->end.step, args->end.last + 1, at, v);
}

// Rows of one vector from row `first` on, all in one half: a list that has a way of its own, or
// step by step.
SIMD void end_half(int first, int count, const struct mgx_tile_args *args, const sums *c)
{
    const enum mgx_end_form form = ending_of(args, COLS);
    char *to = row_at(args->c, args->c_row, first);
    const char *residual =
        args->residual[0] ? residual_row(args->residual, args->residual_row, first) : NULL;
    if (form == MGX_END_PLAIN)
        end_plainly(count, 1, MGX_END_PLAIN, args, to, residual, c);
    else if (form == MGX_END_LOOKUP)
        end_plainly(count, 1, MGX_END_LOOKUP, args, to, residual, c);
    else
        end_half_listed(count, args, to, residual, c);
}

// Finishes `count` rows of sums as the arguments say: all of c, residual, scale, bias, cols, clamp
// and end.
SIMD void end_tile(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    if (!args->scale) {
        store_sums(count, args, c);
    } else if (!args->end.step || args->end.form == MGX_END_GRID) {
        vf v[END_ROWS];
        const vf scale = load_cols(args->scale, args->cols);
        const vf bias = args->bias ? load_cols(args->bias, args->cols) : vf_zero();
        UNROLL
        for (int i = 0; i < count; i++)
            v[i] = vf_fma(vf_from_int((vf)c[i]), scale, bias);
        UNROLL
        for (int i = 0; i < count; i++)
            v[i] = args->end.step ? end_on_grid(args, v[i]) : v[i];
        store_floats(count, args, v);
    } else {
        sums own[END_ROWS]; // so that the sums themselves stay in registers
        UNROLL
        for (int i = 0; i < count; i++)
            own[i] = c[i];
        end_half(0, count < END_HALF ? count : END_HALF, args, own);
        if (count > END_HALF)
            end_half(END_HALF, count - END_HALF, args, own + END_HALF);
    }
}

// Rows of vector j: as end_tile has it.
SIMD void end_vector(int rows, int nv, int j, struct mgx_tile_args *own, const sums *c)
{
    sums part[END_ROWS];
    for (int i = 0; i < rows; i++)
        part[i] = c[i * nv + j];
    end_tile(rows, own, part);
    own->c[0] += rows * own->c_row;
    own->residual[0] += own->residual[0] ? rows * own->residual_row : 0;
}

// What is asked for in general: floats and sums a vector of columns at a time.
static __attribute__((noinline, unused)) void end_rows_anyhow(int rows, int nv,
                                                              const struct mgx_tile_args *args,
                                                              char *to, const char *residual,
                                                              const sums *c)
{
    if (args->scale && args->end.step) {
        end_rows_listed(rows, nv, args, to, residual, c);
        return;
    }
    for (int j = 0; j < nv && j * COLS < args->cols; j++) {
        struct mgx_tile_args own = *args;
        const int left = args->cols - j * COLS;
        int i = 0;
        own.cols = left < COLS ? left : COLS;
        own.scale += own.scale ? j * COLS : 0;
        own.bias += own.bias ? j * COLS : 0;
        own.c[0] = to + j * COLS * GROUP_BYTES;
        own.residual[0] = residual ? residual + j * COLS * GROUP_BYTES : NULL;
        for (; i + END_HALF <= rows; i += END_HALF)
            end_vector(END_HALF, nv, j, &own, c + i * nv);
        for (; i < rows; i++)
            end_vector(1, nv, j, &own, c + i * nv);
    }
}
