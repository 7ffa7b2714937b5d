// SPDX-License-Identifier: MIT
// Body of byte_pool.h, compiled once per instruction set; the compiler makes vectors of the loops.
// Signed bytes are compared as unsigned ones, 128 larger.
#include <string.h>

#include "targets/cpu/kernel/byte_pool.h"
#include "targets/cpu/kernel/simd.h"

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

static void byte_pool(const struct mgx_byte_pool_args *a)
{
    const uint8_t flip = a->is_signed ? 0x80 : 0;
    int64_t c = 0;
    for (; c + STRIP <= a->channels; c += STRIP)
        strip(a, c, STRIP, flip);
    if (c < a->channels)
        strip(a, c, (int)(a->channels - c), flip);
}

const struct mgx_byte_pool_kernel NAME(mgx_u8_pool) = {KERNEL_BASE("u8_pool"), byte_pool};
