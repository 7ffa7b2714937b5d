// SPDX-License-Identifier: MIT
// Quantization: rewrites of an uncompiled program that trade digits for speed and memory.
// Parameters and results keep their types.
#pragma once

#include "pass/pass.h"

// Computes in half or bfloat16 what is float or double: the instructions whose operators are named,
// or all of them ("all", or no names). Constants are folded before they lose digits.
enum mgx_status mgx_quantize_float(struct mgx_program *p, enum mgx_type type,
                                   const char *const *names, size_t count,
                                   struct mgx_diag *diag) MGX_NODISCARD;
