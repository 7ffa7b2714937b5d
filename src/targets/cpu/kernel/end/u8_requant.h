// SPDX-License-Identifier: MIT
// Body of requant.h, compiled once per instruction set: 16 columns at a time.
#include <assert.h>
#include <string.h>

#include "targets/cpu/kernel/end/requant_step.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { STEP = 16, VECTORS = STEP / VL };

#if defined(__AVX512F__)
SIMD vf load_bytes(const uint8_t *p, bool is_signed)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b));
}

SIMD void store_bytes(void *to, const vf v[VECTORS], int zero, bool is_signed)
{
    const __m512i r = _mm512_add_epi32(_mm512_cvtps_epi32(v[0]), _mm512_set1_epi32(zero));
    (void)is_signed; // in range either way
    _mm_storeu_si128(to, _mm512_cvtepi32_epi8(r));
}
#elif defined(__AVX2__)
SIMD vf load_bytes(const uint8_t *p, bool is_signed)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

SIMD void store_bytes(void *to, const vf v[VECTORS], int zero, bool is_signed)
{
    const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    const __m256i r =
        _mm256_add_epi16(_mm256_permute4x64_epi64(pairs, 0xd8), _mm256_set1_epi16((short)zero));
    const __m128i low = _mm256_castsi256_si128(r), high = _mm256_extracti128_si256(r, 1);
    _mm_storeu_si128(to, is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
}
#else
SIMD vf load_bytes(const uint8_t *p, bool is_signed)
{
    float v[VL];
    for (int i = 0; i < VL; i++)
        v[i] = is_signed ? (float)(int8_t)p[i] : (float)p[i];
    return vf_load(v);
}

SIMD void store_bytes(void *to, const vf v[VECTORS], int zero, bool is_signed)
{
    float x[STEP];
    (void)is_signed; // in range either way
    for (int i = 0; i < VECTORS; i++)
        vf_store(x + i * VL, vf_round(v[i]));
    for (int i = 0; i < STEP; i++)
        ((uint8_t *)to)[i] = (uint8_t)((int)x[i] + zero);
}
#endif

// Rounds, looks up what that is, and makes floats of it.
SIMD void through_middle(const struct mgx_requant *q, vf v[VECTORS])
{
    float x[STEP];
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        vf_store(x + i * VL, vf_sub(vf_round(v[i]), vf_set((float)q->middle_low)));
    for (int i = 0; i < STEP; i++)
        x[i] = (float)(q->middle[(int)x[i]] - q->middle_zero);
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        v[i] = vf_load(x + i * VL);
}

SIMD void second_step(const struct mgx_requant *q, const uint8_t *residual, const float *term,
                      vf v[VECTORS])
{
    if (q->middle)
        through_middle(q, v);
    UNROLL
    for (int i = 0; i < VECTORS; i++) {
        const vf r = q->residual ? load_bytes(residual + i * VL, q->residual_signed) : vf_zero();
        const vf t = q->term ? vf_load(term + i * VL) : vf_zero();
        v[i] = requant_second(q, q->rounds ? vf_round(v[i]) : v[i], r, t);
    }
}

SIMD void some(const struct mgx_requant *q, bool second, const vf x[VECTORS],
               const uint8_t *residual, const float *term, void *to)
{
    vf v[VECTORS];
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        v[i] = requant_first(q, x[i]);
    if (second)
        second_step(q, residual, term, v);
    if (!second || !q->floats) {
        store_bytes(to, v, q->zero, q->is_signed);
        return;
    }
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        vf_store((float *)to + i * VL, requant_float(q, v[i]));
}

// n <= STEP columns.
static __attribute__((noinline)) void end_of_row(const struct mgx_requant *q, const float *tile,
                                                 const uint8_t *residual, const float *term, int n,
                                                 void *to)
{
    float room[STEP] = {0}, terms[STEP] = {0}, out[STEP];
    uint8_t byte[2 * STEP] = {0};
    vf x[VECTORS];
    memcpy(room, tile, (size_t)n * sizeof *room);
    if (q->residual)
        memcpy(byte, residual, (size_t)n);
    if (q->term)
        memcpy(terms, term, (size_t)n * sizeof *terms);
    for (int i = 0; i < VECTORS; i++)
        x[i] = vf_load(room + i * VL);
    some(q, mgx_requant_has_second(q), x, byte, terms, out);
    memcpy(to, out, (size_t)n * (q->floats ? sizeof *out : 1));
}

// A row; what the description says is in registers here.
SIMD void row_of(const struct mgx_requant *q, bool second, const float *tile, int cols,
                 const uint8_t *r, char *restrict to)
{
    const uint8_t *table = q->table;
    const float *term = q->term;
    const int size = second && q->floats ? (int)sizeof(float) : 1;
    int j = 0;
    for (; j + STEP <= cols; j += STEP) {
        vf x[VECTORS];
        uint8_t byte[STEP * sizeof(float)]; // with a table no floats leave, but compilers ask
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            x[v] = vf_load(tile + j + v * VL);
        some(q, second, x, r ? r + j : NULL, term ? term + j : NULL,
             table ? (char *)byte : to + j * size);
        if (!table)
            continue;
        UNROLL
        for (int k = 0; k < STEP; k++)
            to[j + k] = (char)table[byte[k]];
    }
    if (j == cols)
        return;
    end_of_row(q, tile + j, r ? r + j : NULL, term ? term + j : NULL, cols - j, to + j * size);
    for (; table && j < cols; j++)
        to[j] = (char)table[(uint8_t)to[j]];
}

// Rows of one vector, which is what tiles of narrow registers have: several make one step. Returns
// how many are done.
SIMD int narrow_rows(const struct mgx_requant *q, bool second, const float *tile, int64_t stride,
                     int rows, const uint8_t *r, int64_t residual_row, char *to, int64_t out_row)
{
    const uint8_t *table = q->table;
    const size_t size = VL * (second && q->floats ? sizeof(float) : 1);
    int i = 0;
    for (; i + VECTORS <= rows; i += VECTORS) {
        vf x[VECTORS];
        uint8_t byte[STEP] = {0}, out[STEP * sizeof(float)];
        UNROLL
        for (int v = 0; v < VECTORS; v++) {
            x[v] = vf_load(tile + (i + v) * stride);
            if (r)
                memcpy(byte + v * VL, r + (i + v) * residual_row, VL);
        }
        some(q, second, x, byte, NULL, out);
        UNROLL
        for (int k = 0; table && k < STEP; k++)
            out[k] = table[out[k]];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            memcpy(to + (i + v) * out_row, out + v * size, size);
    }
    return i;
}

static void requant(const struct mgx_requant *q, const float *tile, int64_t stride, int rows,
                    int cols, const void *residual, int64_t residual_row, void *out,
                    int64_t out_row)
{
    struct mgx_requant own = *q; // which nothing that is stored can change
    own.saturates_last = false;  // stores do not
    const uint8_t *r = own.residual ? residual : NULL;
    const bool second = mgx_requant_has_second(q);
    char *to = out;
    int i = 0;
    assert(!own.floats || !own.table);
    if (VECTORS > 1 && cols == VL && !own.term)
        i = second ? narrow_rows(&own, true, tile, stride, rows, r, residual_row, to, out_row)
                   : narrow_rows(&own, false, tile, stride, rows, NULL, 0, to, out_row);
    for (; i < rows; i++) {
        const uint8_t *added = r ? r + i * residual_row : NULL;
        if (second)
            row_of(&own, true, tile + i * stride, cols, added, to + i * out_row);
        else
            row_of(&own, false, tile + i * stride, cols, NULL, to + i * out_row);
    }
}

const struct mgx_requant_kernel NAME(mgx_u8_requant) = {KERNEL_BASE("u8_requant"), requant};
