// SPDX-License-Identifier: MIT
// How tiles of int32 sums end, AVX2 and AVX-512: as they are, as floats, or as bytes (requant.h).
// Up to eight rows of a vector's columns in registers; rows from the fourth on lie in the second
// half. Shared by the kernels of bytes that end in registers. What most tiles of a network want,
// bytes of whole vectors, with or without a residual, is `end_plainly`: with AVX2 some 15 cycles
// for 64 values, 25 with a residual.
#pragma once

#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/end/requant_step.h"
#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/kernel/vector/lookup.h"

enum { END_ROWS = 8, END_HALF = 4, COLS = VL, GROUP_BYTES = 4 };

// --- what depends on the width of a vector ---

#if defined(__AVX512F__)
typedef __m512i sums;      // of COLS columns
typedef __m512i byte_rows; // of four rows of COLS columns, one behind the other

SIMD sums sums_at(const void *p)
{
    return _mm512_loadu_si512(p);
}

// Four rows of floats that are bytes but for rounding and `zero`.
SIMD byte_rows four_rows(const vf v[4], int to_zero, bool is_signed)
{
    const __m512i zero = _mm512_set1_epi16((short)to_zero);
    const __m512i x = _mm512_adds_epi16(
        _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1])), zero);
    const __m512i y = _mm512_adds_epi16(
        _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3])), zero);
    const __m512i byte = is_signed ? _mm512_packs_epi16(x, y) : _mm512_packus_epi16(x, y);
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), byte);
}

// Row i, in the lower COLS bytes.
SIMD __m128i row_of(byte_rows four, int i)
{
    switch (i) {
    case 0:
        return _mm512_castsi512_si128(four);
    case 1:
        return _mm512_extracti32x4_epi32(four, 1);
    case 2:
        return _mm512_extracti32x4_epi32(four, 2);
    default:
        return _mm512_extracti32x4_epi32(four, 3);
    }
}

SIMD __m128i whole_row(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

SIMD void store_whole_row(char *to, __m128i row)
{
    _mm_storeu_si128((__m128i *)(void *)to, row);
}

SIMD void store_two_rows(char *to, byte_rows four, int i)
{
    const __m256i two = i == 0 ? _mm512_castsi512_si256(four) : _mm512_extracti64x4_epi64(four, 1);
    _mm256_storeu_si256((__m256i *)(void *)to, two);
}

// Whether `end_plainly` takes rows whose last vector is not whole.
enum { TAKES_PARTS = 1 };

SIMD __m128i part_of_row(const char *p, int cols)
{
    return _mm_maskz_loadu_epi8((__mmask16)((1u << cols) - 1), p);
}

// Row i of those of `nv` vectors.
SIMD void store_part_of_row(char *to, int nv, int cols, byte_rows four, int i)
{
    const __m256i two = i == 0 ? _mm512_castsi512_si256(four) : _mm512_extracti64x4_epi64(four, 1);
    if (nv == 2)
        _mm256_mask_storeu_epi8(to, ((__mmask32)1 << cols) - 1, two);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << cols) - 1), row_of(four, i));
}

SIMD vf floats_of(__m128i row, bool is_signed)
{
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(row) : _mm512_cvtepu8_epi32(row));
}
#else
typedef __m256i sums;      // of COLS columns
typedef __m256i byte_rows; // of four rows of COLS columns, one behind the other

SIMD sums sums_at(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

// Four rows of floats that are bytes but for rounding and `zero`.
SIMD byte_rows four_rows(const vf v[4], int to_zero, bool is_signed)
{
    const __m256i zero = _mm256_set1_epi16((short)to_zero);
    const __m256i x = _mm256_adds_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])), zero);
    const __m256i y = _mm256_adds_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3])), zero);
    const __m256i byte = is_signed ? _mm256_packs_epi16(x, y) : _mm256_packus_epi16(x, y);
    return _mm256_permutevar8x32_epi32(byte, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Row i, in the lower COLS bytes.
SIMD __m128i row_of(byte_rows four, int i)
{
    const __m128i two = i < 2 ? _mm256_castsi256_si128(four) : _mm256_extracti128_si256(four, 1);
    return i % 2 ? _mm_unpackhi_epi64(two, two) : two;
}

SIMD __m128i whole_row(const char *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

SIMD void store_whole_row(char *to, __m128i row)
{
    _mm_storel_epi64((__m128i *)(void *)to, row);
}

SIMD void store_two_rows(char *to, byte_rows four, int i)
{
    const __m128i two = i == 0 ? _mm256_castsi256_si128(four) : _mm256_extracti128_si256(four, 1);
    _mm_storeu_si128((__m128i *)(void *)to, two);
}

enum { TAKES_PARTS = 0 };

SIMD __m128i part_of_row(const char *p, int cols)
{
    (void)cols;
    return whole_row(p);
}

SIMD void store_part_of_row(char *to, int nv, int cols, byte_rows four, int i)
{
    (void)to, (void)nv, (void)cols, (void)four, (void)i;
}

SIMD vf floats_of(__m128i row, bool is_signed)
{
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(row) : _mm256_cvtepu8_epi32(row));
}
#endif

// --- tiles in general ---

SIMD char *row_at(char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
}

SIMD const char *residual_row(const char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
}

SIMD vf load_cols(const float *p, int cols)
{
    return cols == COLS ? vf_load(p) : vf_load_some(p, cols);
}

SIMD void store_cols(char *to, int cols, vf v)
{
    if (cols == COLS)
        vf_store((float *)(void *)to, v);
    else
        vf_store_some((float *)(void *)to, v, cols);
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

// Four rows through the table in the middle; see requant.h.
SIMD void through_middle(const struct mgx_requant *q, vf v[4])
{
    const byte_rows rows = looked_up(q->middle, four_rows(v, -q->middle_low, false));
    UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = vf_sub(floats_of(row_of(rows, i), false), vf_set((float)q->middle_zero));
}

SIMD void store_row(char *to, __m128i row, int cols)
{
    if (cols == COLS)
        store_whole_row(to, row);
    else
        memcpy(to, &row, (size_t)cols);
}

SIMD vf load_bytes(const char *p, int cols, bool is_signed)
{
    __m128i row = _mm_setzero_si128();
    if (cols == COLS)
        row = whole_row(p);
    else
        memcpy(&row, p, (size_t)cols);
    return floats_of(row, is_signed);
}

SIMD void second_step(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
{
    const struct mgx_requant *q = args->requant;
    assert(!q->term);
    if (q->middle) {
        UNROLL
        for (int i = 0; i < count; i += 4)
            through_middle(q, v + i);
    } else if (q->rounds) {
        UNROLL
        for (int i = 0; i < count; i++)
            v[i] = vf_round(v[i]);
    }
    UNROLL
    for (int i = 0; i < count; i++) {
        vf residual = vf_zero();
        if (q->residual)
            residual = load_bytes(residual_row(args->residual, args->residual_row, i), cols,
                                  q->residual_signed);
        v[i] = requant_second(q, v[i], residual, vf_zero());
    }
}

// Rows that are bytes but for rounding.
SIMD void store_byte_rows(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = count; i < END_ROWS; i++)
        v[i] = vf_zero();
    UNROLL
    for (int i = 0; i < count; i += 4) {
        byte_rows rows = four_rows(v + i, q->zero, q->is_signed);
        if (q->table)
            rows = looked_up(q->table, rows);
        UNROLL
        for (int r = 0; r < 4; r++)
            if (i + r < count)
                store_row(row_at(args->c, args->c_row, i + r), row_of(rows, r), cols);
    }
}

SIMD void store_bytes(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = 0; i < count; i++) {
        if (args->clamp)
            v[i] = vf_min(vf_set(args->high), vf_max(vf_set(args->low), v[i]));
        v[i] = requant_first(q, v[i]);
    }
    UNROLL
    for (int i = count; i < END_ROWS; i++)
        v[i] = vf_zero();
    if (mgx_requant_has_second(q))
        second_step(count, cols, args, v);
    if (q->floats) {
        UNROLL
        for (int i = 0; i < count; i++)
            store_cols(row_at(args->c, args->c_row, i), cols, requant_float(q, v[i]));
        return;
    }
    store_byte_rows(count, cols, args, v);
}

SIMD void store_sums(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++)
        store_cols(row_at(args->c, args->c_row, i), args->cols, (vf)c[i]);
}

// Finishes `count` rows of sums as the arguments say: all of c, residual, scale, bias, cols, clamp
// and requant.
SIMD void end_tile(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    if (!args->scale) {
        store_sums(count, args, c);
        return;
    }
    vf v[END_ROWS];
    const vf scale = load_cols(args->scale, args->cols);
    const vf bias = args->bias ? load_cols(args->bias, args->cols) : vf_zero();
    UNROLL
    for (int i = 0; i < count; i++)
        v[i] = vf_fma(vf_from_int((vf)c[i]), scale, bias);
    const struct mgx_requant *q = args->requant;
    if (!q)
        store_floats(count, args, v);
    else if (args->cols == COLS && q->saturates && !args->clamp)
        store_byte_rows(count, COLS, args, v);
    else if (args->cols == COLS)
        store_bytes(count, COLS, args, v);
    else
        store_bytes(count, args->cols, args, v);
}

// --- what most strips want ---

// How the tiles of a strip end, which is the same for all of them.
enum ending {
    ANY_END,   // as end_tile has it
    PLAIN_END, // bytes of whole vectors, without a step but rounding and saturation
    TABLE_END, // the same through a table
    ADDED_END, // the same with a residual, added to what was rounded before or was not
    FLOAT_END, // floats, with or without a residual of floats; see ends_in_floats
    ENDINGS
};

// Whether there are columns of the last vector, or all of them where parts are not taken.
static inline bool has_columns(const struct mgx_tile_args *args, int cols)
{
    return args->cols >= (TAKES_PARTS ? cols - COLS + 1 : cols);
}

// What an ending in general may be nearer described as, by who has it.
static inline bool ends_in_floats(const struct mgx_tile_args *args, int cols)
{
    return args->scale && !args->requant && !args->clamp && has_columns(args, cols);
}

static inline enum ending ending_of(const struct mgx_tile_args *args, int cols)
{
    const struct mgx_requant *q = args->requant;
    if (!args->scale || !q || !has_columns(args, cols) || args->clamp || q->divisor != 1 ||
        q->middle || q->floats)
        return ANY_END;
    if (!q->residual)
        return !q->saturates ? ANY_END : q->table ? TABLE_END : PLAIN_END;
    return q->saturates_last && !q->table ? ADDED_END : ANY_END;
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
    const struct mgx_requant *q = args->requant;
    const vf low = vf_set(q->low), high = vf_set(q->high), keep = vf_set(q->keep),
             share = vf_set(q->share), offset = vf_set(mgx_requant_offset(q)),
             magic = vf_set(mgx_requant_magic(q));
    const __m128i raised = _mm_set1_epi8((char)mgx_requant_raised(q));
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
SIMD void end_plainly(int rows, int nv, enum ending ending, const struct mgx_tile_args *args,
                      char *to, const char *residual, const sums *c)
{
    const struct mgx_requant *q = args->requant;
    vf scale[2], bias[2];
    load_columns(nv, args, scale, bias);
    UNROLL
    for (int i = 0; i < rows; i += 4 / nv) {
        const int here = rows - i < 4 / nv ? rows - i : 4 / nv;
        vf v[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
        UNROLL
        for (int j = 0; j < here * nv; j++)
            v[j] = vf_fma(vf_from_int((vf)c[i * nv + j]), scale[j % nv], bias[j % nv]);
        if (ending == ADDED_END)
            add_residual(here, nv, args, residual + i * args->residual_row, v);
        const byte_rows four = four_rows(v, q->zero, q->is_signed);
        store_plainly(here, nv, args->cols, to + i * args->c_row, args->c_row,
                      ending == TABLE_END ? looked_up(q->table, four) : four);
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

// Finishes rows of `nv` vectors of sums as FLOAT_END says.
SIMD void end_floats(int rows, int nv, const struct mgx_tile_args *args, char *to,
                     const char *residual, const sums *c)
{
    if (residual)
        end_floats_with(true, rows, nv, args, to, residual, c);
    else
        end_floats_with(false, rows, nv, args, to, NULL, c);
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

// What is asked for in general, a vector of columns at a time.
static __attribute__((noinline, unused)) void end_rows_anyhow(int rows, int nv,
                                                              const struct mgx_tile_args *args,
                                                              char *to, const char *residual,
                                                              const sums *c)
{
    const struct mgx_requant *q = args->requant;
    const int64_t size = q && !q->floats ? 1 : GROUP_BYTES,
                  residual_size = q && q->residual ? 1 : GROUP_BYTES;
    for (int j = 0; j < nv && j * COLS < args->cols; j++) {
        struct mgx_tile_args own = *args;
        const int left = args->cols - j * COLS;
        int i = 0;
        own.cols = left < COLS ? left : COLS;
        own.scale += own.scale ? j * COLS : 0;
        own.bias += own.bias ? j * COLS : 0;
        own.c[0] = to + j * COLS * size;
        own.residual[0] = residual ? residual + j * COLS * residual_size : NULL;
        for (; i + END_HALF <= rows; i += END_HALF)
            end_vector(END_HALF, nv, j, &own, c + i * nv);
        for (; i < rows; i++)
            end_vector(1, nv, j, &own, c + i * nv);
    }
}
