// SPDX-License-Identifier: MIT
// Body of scale.h, compiled once per instruction set: whole vectors, then one that is masked.
#include "targets/cpu/kernel/end/scale.h"

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

static void scale_rows(const float *from, const float *factor, float *to, int64_t rows, int width)
{
    for (int64_t i = 0; i < rows; i++, from += width, to += width) {
        const vf f = vf_set(factor[i]);
        int j = 0;
        for (; j + VL <= width; j += VL)
            vf_store(to + j, vf_mul(f, vf_load(from + j)));
        if (j < width)
            vf_store_some(to + j, vf_mul(f, vf_load_some(from + j, width - j)), width - j);
    }
}

const struct mgx_scale_kernel NAME(mgx_f32_scale) = {KERNEL_BASE("f32_scale"), scale_rows};
