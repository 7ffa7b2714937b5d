// SPDX-License-Identifier: MIT
// Depthwise kernel, AVX-512; the body is f32_dw.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/f32_dw.h"

extern const struct mgx_dw_kernel NAME(mgx_f32_dw);

const struct mgx_dw_kernel NAME(mgx_f32_dw) = {
    .name = "f32_dw__" ISA_TEXT,
    .isa = MGX_ISA_AVX512,
    .vector = VL,
    .rows = rows_of_any,
};
#endif
