// SPDX-License-Identifier: MIT
// Ranges and what they make; see byte_range.h.
#include "targets/cpu/kernel/rows/byte_range.h"

#include <math.h>

#include "targets/cpu/kernel/rows/rows.h"

void mgx_byte_range_widen(mgx_isa isa, const float *x, int64_t n, struct mgx_byte_range *range)
{
    const struct mgx_rows_kernel *rows = mgx_rows_kernel(isa);
    if (n == 0)
        return;
    const float low = rows->fold(MGX_FOLD_MIN, x, n), high = rows->fold(MGX_FOLD_MAX, x, n);
    range->low = low >= range->low ? range->low : low; // and where it is NaN
    range->high = high <= range->high ? range->high : high;
}

float mgx_byte_range_scale(const struct mgx_byte_range *range)
{
    const float step = (range->high - range->low) / 255;
    return step == 0 ? 1 : step;
}

int mgx_byte_range_zero(const struct mgx_byte_range *range, float scale)
{
    const float zero = nearbyintf(-range->low / scale);
    return zero > 0 ? (int)fminf(zero, 255) : 0; // 0 for NaN
}

struct mgx_range_bytes mgx_byte_range_bytes(const struct mgx_byte_range *range)
{
    const float scale = mgx_byte_range_scale(range);
    struct mgx_range_bytes how = {.scale = scale, .zero = mgx_byte_range_zero(range, scale)};
    mgx_end_to_byte(scale, how.zero, false, how.step);
    return how;
}

void mgx_byte_range_run(mgx_isa isa, const struct mgx_range_bytes *how, const float *x, int64_t n,
                        uint8_t *to)
{
    const struct mgx_end_rows rows = {.from = x, .rows = 1, .cols = n, .to = (char *)to};
    mgx_end_kernel(isa)->run(how->step, 2, &rows);
}
