// SPDX-License-Identifier: MIT
// Conversions between float and the narrow floats: IEEE half, bfloat16, the fp8 kinds, fp4, e8m0.
// All round to nearest, ties to even, and keep NaN a NaN. `saturate` chooses what a value beyond
// the largest finite one becomes: that largest value, or infinity (NaN where the format has no
// infinity).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mgx_fp8 { MGX_F8_E4M3FNUZ, MGX_F8_E4M3FN, MGX_F8_E5M2, MGX_F8_E5M2FNUZ };

float mgx_half_to_float(uint16_t bits);
uint16_t mgx_half_from_double(double value); // from double directly: rounding twice would be wrong
// The same of many floats, by arithmetic that compilers do for several at once.
void mgx_half_from_floats(const float *from, int64_t count, uint16_t *to);
void mgx_half_to_floats(const uint16_t *from, int64_t count, float *to);
float mgx_bf16_to_float(uint16_t bits);
uint16_t mgx_bf16_from_double(double value);
float mgx_fp8_to_float(enum mgx_fp8 kind, uint8_t bits);
uint8_t mgx_fp8_from_double(enum mgx_fp8 kind, double value, bool saturate);
float mgx_fp4_to_float(
    uint8_t bits); // e2m1 in the low four bits; no infinity, no NaN: always saturates
uint8_t mgx_fp4_from_double(double value);
float mgx_e8m0_to_float(uint8_t bits); // a power of two; 255 is NaN
// Rounding of e8m0: 'u' up, 'd' down, 'n' to nearest.
uint8_t mgx_e8m0_from_double(double value, char rounding, bool saturate);
