// SPDX-License-Identifier: MIT
// Winograd transforms, AVX-512; the body is f32_winograd.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/f32_winograd.h"

extern const struct mgx_winograd_kernel NAME(mgx_f32_winograd);

const struct mgx_winograd_kernel NAME(mgx_f32_winograd) = {
    .name = "f32_winograd__" ISA_TEXT,
    .isa = MGX_ISA_AVX512,
    .vector = VL,
    .input2 = input2,
    .input4 = input4,
    .output2 = output2,
    .output4 = output4,
    .weights2 = weights2,
    .weights4 = weights4,
    .half4 = half4,
    .expand4 = expand4,
};
#endif
