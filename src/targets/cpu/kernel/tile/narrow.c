// SPDX-License-Identifier: MIT
// Packing narrow weights; see narrow.h. One pass over them, a panel or some rows at a time.
#include "targets/cpu/kernel/tile/narrow.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/size.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/tile/panel.h"

bool mgx_narrow_bytes(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                      int64_t n, size_t *out)
{
    const int64_t panels = mgx_ceil_div(n, kernel->cols);
    int64_t wide, all;
    *out = 0;
    if (!mgx_mul_i64(form->depth + form->block, 8 * kernel->cols, &wide) ||
        !mgx_mul_i64(wide, panels, &all) || (uint64_t)all > PTRDIFF_MAX / 2)
        return false;
    if (panels)
        *out = (size_t)((panels - 1) * mgx_narrow_panel(form, kernel->cols) +
                        mgx_narrow_panel(form, mgx_panel_width(kernel, n, panels - 1)));
    return true;
}

void mgx_narrow_pack(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                     const struct mgx_panel_source *b, int64_t k, int64_t depth, void *packed)
{
    enum { ROWS = 32 };
    const bool half = form->kind == MGX_NARROW_F16;
    const mgx_convert_fn convert =
        mgx_convert(kernel->base.needs, MGX_KERNEL_F32, half ? MGX_KERNEL_F16 : MGX_KERNEL_BF16);
    _Alignas(64) float rows[ROWS * MGX_TILE_MAX_COLS];
    const int64_t panels = mgx_ceil_div(b->n, kernel->cols);
    struct mgx_panel_source some = *b;
    for (const int64_t end = k + depth; k < end; k += ROWS) {
        some.at = (const float *)b->at + k * b->row;
        some.depth = mgx_min_i64(ROWS, end - k);
        for (int64_t p = 0; p < panels; p++) {
            const int width = mgx_panel_width(kernel, b->n, p);
            char *to = (char *)packed + p * mgx_narrow_panel(form, kernel->cols) + 2 * k * width;
            mgx_panel_pack(kernel, &some, p, rows);
            convert(rows, to, some.depth * width);
        }
    }
}

// --- A as whole numbers ---

int64_t mgx_narrow_pairs(const struct mgx_narrow *form, bool bytes)
{
    return (form->depth + 15) / 16 * (bytes ? 4 : 8);
}

size_t mgx_narrow_scratch(const struct mgx_narrow *form, int64_t rows, bool bytes)
{
    const int64_t sums = 2 * mgx_narrow_blocks(form);
    return form->kind == MGX_NARROW_BLOCKS
               ? 4 * (size_t)rows * (size_t)(sums + mgx_narrow_pairs(form, bytes))
               : 0;
}

// The largest magnitude; a NaN, or infinity, gives one that is not below infinity.
static float largest(const float *a, int64_t count)
{
    float most = 0;
    bool finite = true;
    for (int64_t i = 0; i < count; i++) {
        const float x = fabsf(a[i]);
        finite &= x < INFINITY;
        most = x > most ? x : most;
    }
    return finite ? most : INFINITY;
}

// `count` values times `up` as whole numbers, into the pairs of their words; returns their sum.
// A block begins with a word.
static int64_t pair_up(const float *a, int64_t count, float up, int half, int16_t *to)
{
    int64_t sum = 0;
    for (int64_t first = 0; first < count; first += 2 * half, to += 2 * half)
        for (int side = 0; side < 2; side++) {
            const float *x = a + first + side * half;
            const int64_t left = count - first - side * half;
            const int n = left < half ? (int)left : half;
            for (int i = 0; i < n; i++) {
                const float y = x[i] * up;
                const int v = (int)(y + copysignf(0.5f, y)); // up to 32767: y is no larger
                to[2 * i + side] = (int16_t)v;
                sum += v;
            }
        }
    return sum;
}

bool mgx_narrow_whole(const struct mgx_narrow *form, const float *a, bool bytes, int32_t *pairs,
                      float *sums)
{
    assert(!bytes);
    (void)bytes;
    memset(pairs, 0, (size_t)mgx_narrow_pairs(form, false) * sizeof *pairs);
    for (int64_t k = 0; k < form->depth; k += form->block, sums += 2) {
        const int64_t count = mgx_min_i64(form->block, form->depth - k);
        const float most = largest(a + k, count);
        if (!(most < INFINITY) || (most > 0 && most < 0x1p-100f))
            return false;
        const float up = most > 0 ? 32767 / most : 0;
        int16_t *to = (int16_t *)(void *)(pairs + k / 2);
        sums[0] = (float)(form->bits == 8   ? pair_up(a + k, count, up, 2, to)
                          : form->bits == 4 ? pair_up(a + k, count, up, 4, to)
                                            : pair_up(a + k, count, up, 8, to));
        sums[1] = most / 32767;
    }
    return true;
}

// --- packing ---

static float load(const void *from, enum mgx_kernel_type type, int64_t i)
{
    if (mgx_kernel_is_plain(type)) {
        float v;
        memcpy(&v, (const char *)from + i * (int64_t)sizeof v, sizeof v);
        return v;
    }
    uint16_t bits;
    memcpy(&bits, (const char *)from + i * (int64_t)sizeof bits, sizeof bits);
    return type == MGX_KERNEL_F16 ? mgx_half_to_float(bits) : mgx_bf16_to_float(bits);
}

void mgx_narrow_pack_blocks(const struct mgx_narrow *form, const struct mgx_gemm_kernel *kernel,
                            const struct mgx_narrow_source *source, int64_t n, int64_t p,
                            void *packed)
{
    enum { WORD = 4 };
    const int width = mgx_panel_width(kernel, n, p);
    const int64_t blocks = mgx_narrow_blocks(form), bytes = form->block * form->bits / 8;
    assert(bytes % WORD == 0);
    const int64_t first = p * kernel->cols, cols = mgx_min_i64(n - first, width);
    char *panel = (char *)packed + p * mgx_narrow_panel(form, kernel->cols);
    memset(panel, 0, (size_t)mgx_narrow_panel(form, width));
    for (int64_t b = 0; b < blocks; b++) {
        char *record = panel + mgx_narrow_at(form, width, b);
        char *values = record + mgx_narrow_head(form, width);
        for (int64_t j = 0; j < cols; j++) {
            const int64_t at = (first + j) * blocks + b;
            const uint8_t *from = source->values + at * bytes;
            const float scale = load(source->scale, source->scale_type, at);
            memcpy(record + j * (int64_t)sizeof scale, &scale, sizeof scale);
            if (form->zeros)
                panel[mgx_narrow_zeros(form, width, b) + j] =
                    source->zero_bytes ? ((const char *)source->zero)[at]
                                       : (char)(uint8_t)load(source->zero, source->scale_type, at);
            for (int64_t i = 0; i < bytes; i += WORD) // a block is words, whatever its bits
                memcpy(values + (i * width + j * WORD), from + i, WORD);
        }
    }
}
