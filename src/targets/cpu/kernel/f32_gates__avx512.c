// SPDX-License-Identifier: MIT
// Gates of recurrent layers, AVX-512; the body is f32_gates.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/f32_gates.h"

extern const struct mgx_gates_kernel NAME(mgx_f32_gates);

const struct mgx_gates_kernel NAME(mgx_f32_gates) = {
    .name = "f32_gates__" ISA_TEXT,
    .isa = MGX_ISA_AVX512,
    .plain = plain,
    .lstm = lstm,
    .gru = gru,
    .gru_reset = gru_reset,
    .gru_last = gru_last,
};
#endif
