// SPDX-License-Identifier: MIT
// Depthwise kernel, vectors of 128 bits; the body is f32_dw.h.
#define VECTOR_OF_4 // too short for groups of 8
#include "targets/cpu/kernel/f32_dw.h"

extern const struct mgx_dw_kernel NAME(mgx_f32_dw);

const struct mgx_dw_kernel NAME(mgx_f32_dw) = {
    .name = "f32_dw__" ISA_TEXT,
    .isa = MGX_ISA_GENERIC,
    .vector = VL,
    .rows = rows_of_any,
};
