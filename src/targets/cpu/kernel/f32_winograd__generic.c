// SPDX-License-Identifier: MIT
// Winograd transforms, vectors of 128 bits; the body is f32_winograd.h.
#include "targets/cpu/kernel/f32_winograd.h"

extern const struct mgx_winograd_kernel NAME(mgx_f32_winograd);

const struct mgx_winograd_kernel NAME(mgx_f32_winograd) = {
    .name = "f32_winograd__" ISA_TEXT,
    .isa = MGX_ISA_GENERIC,
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
