// SPDX-License-Identifier: MIT
// Body of byte_pool.h, compiled once per instruction set; without vectors of its own the compiler
// makes them of the loops. Signed bytes are compared as unsigned ones, 128 larger.
#include <string.h>

#include "targets/cpu/kernel/image/byte_pool.h"
#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { STRIP = 64 };

// n <= STRIP channels from `c` on; `flip` is 0x80 for signed bytes.
SIMD void strip(const struct mgx_byte_pool_args *a, int64_t c, int n, uint8_t flip)
{
    uint8_t most[STRIP] = {0};
    for (int64_t z = 0; z < a->planes; z++)
        for (int64_t i = 0; i < a->rows; i++) {
            const uint8_t *p = a->x + z * a->plane_stride + i * a->row_stride + c;
            for (int64_t j = 0; j < a->cols; j++, p += a->col_stride)
                for (int k = 0; k < n; k++) {
                    const uint8_t x = p[k] ^ flip;
                    most[k] = x > most[k] ? x : most[k];
                }
        }
    for (int k = 0; k < n; k++)
        a->y[c + k] = most[k] ^ flip;
}

// A run of channels, or the first n.
#if defined(__AVX512F__)
typedef __m512i run;
enum { TAKES_PARTS = 1 };

SIMD run run_at(const uint8_t *p, int64_t n, uint8_t flip)
{
    const run v = n == (int64_t)sizeof(run) ? _mm512_loadu_si512(p)
                                            : _mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1, p);
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)flip));
}

SIMD run run_most(run a, run b)
{
    return _mm512_max_epu8(a, b);
}

SIMD void run_store(uint8_t *p, run v, int64_t n, uint8_t flip)
{
    const run byte = _mm512_xor_si512(v, _mm512_set1_epi8((char)flip));
    if (n == (int64_t)sizeof(run))
        _mm512_storeu_si512(p, byte);
    else
        _mm512_mask_storeu_epi8(p, ((__mmask64)1 << n) - 1, byte);
}
#elif defined(__AVX2__)
typedef __m256i run;
enum { TAKES_PARTS = 0 };

SIMD run run_at(const uint8_t *p, int64_t n, uint8_t flip)
{
    (void)n;
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm256_xor_si256(v, _mm256_set1_epi8((char)flip));
}

SIMD run run_most(run a, run b)
{
    return _mm256_max_epu8(a, b);
}

SIMD void run_store(uint8_t *p, run v, int64_t n, uint8_t flip)
{
    (void)n;
    const __m256i byte = _mm256_xor_si256(v, _mm256_set1_epi8((char)flip));
    _mm256_storeu_si256((__m256i *)(void *)p, byte);
}
#endif

#if defined(__AVX2__)
SIMD void run_of(const struct mgx_byte_pool_args *a, int64_t at, int64_t n, uint8_t flip)
{
    run most = run_at(a->x + at, n, flip);
    for (int64_t z = 0; z < a->planes; z++)
        for (int64_t i = 0; i < a->rows; i++) {
            const uint8_t *p = a->x + z * a->plane_stride + i * a->row_stride + at;
            for (int64_t j = 0; j < a->cols; j++, p += a->col_stride)
                most = run_most(most, run_at(p, n, flip));
        }
    run_store(a->y + at, most, n, flip);
}

// Runs of channels, in registers; the last one ends with the last channel. False: too few channels.
SIMD bool runs(const struct mgx_byte_pool_args *a, uint8_t flip)
{
    const int64_t size = (int64_t)sizeof(run);
    if ((a->channels < size && !TAKES_PARTS) || a->planes < 1 || a->rows < 1 || a->cols < 1)
        return false;
    if (a->channels < size)
        run_of(a, 0, a->channels, flip);
    for (int64_t c = 0; a->channels >= size && c < a->channels; c += size)
        run_of(a, c + size <= a->channels ? c : a->channels - size, size, flip);
    return true;
}
#endif

static void byte_pool(const struct mgx_byte_pool_args *a)
{
    const uint8_t flip = a->is_signed ? 0x80 : 0;
    int64_t c = 0;
#if defined(__AVX2__)
    if (runs(a, flip))
        return;
#endif
    for (; c + STRIP <= a->channels; c += STRIP)
        strip(a, c, STRIP, flip);
    if (c < a->channels)
        strip(a, c, (int)(a->channels - c), flip);
}

const struct mgx_byte_pool_kernel NAME(mgx_u8_pool) = {KERNEL_BASE("u8_pool"), byte_pool};
