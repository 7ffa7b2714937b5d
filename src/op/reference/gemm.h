// SPDX-License-Identifier: MIT
// Matrix products of the reference: c += a b, row-major, with leading dimensions.
//
// Doubles for every float type, 64-bit integers that wrap for every integer type. Cost: a quarter
// of a nanosecond per multiplication on one core of 2020, plain C.
#pragma once

#include "op/rule/rule.h"

// a is m x k, b is k x n, c is m x n; lda, ldb, ldc are elements from one row to the next.
void mgx_gemm_doubles(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda,
                      const double *b, int64_t ldb, double *c, int64_t ldc);
void mgx_gemm_ints(int64_t m, int64_t n, int64_t k, const int64_t *a, int64_t lda, const int64_t *b,
                   int64_t ldb, int64_t *c, int64_t ldc);

// --- either kind of number in one code path ---
union mgx_word {
    double f;
    int64_t i;
};

// A whole tensor in row-major order as words; `ints` says which member. NULL when out of memory.
union mgx_word *mgx_scratch_words(struct mgx_compute_call *c, const struct mgx_tensor *t,
                                  bool ints);
union mgx_word *mgx_zero_words(struct mgx_compute_call *c, int64_t count); // zeroed
void mgx_write_words(struct mgx_tensor *t, const union mgx_word *values, bool ints);
void mgx_gemm_words(bool ints, int64_t m, int64_t n, int64_t k, const union mgx_word *a,
                    int64_t lda, const union mgx_word *b, int64_t ldb, union mgx_word *c,
                    int64_t ldc);
// Entry `index` of a tensor along its first axis, borrowed, keeping that axis with length 1.
struct mgx_tensor mgx_borrow_entry(const struct mgx_tensor *t, int64_t index);

// Result type of a quantised product: int32 for integers of up to 32 bits, which may differ, and
// float for fp8 and bf16. Fails for anything else.
enum mgx_status mgx_quant_result(struct mgx_shape_call *c, enum mgx_type *out) MGX_NODISCARD;
// The same where nothing but the types is known.
enum mgx_type mgx_quant_unranked(const struct mgx_shape_call *c);
// The zero points of a quantised product, inputs 2 and 3: none, or each of its operand's type and
// integral; the first of one value, the second of one or of `columns`, a vector.
enum mgx_status mgx_quant_zeros(struct mgx_shape_call *c,
                                const struct mgx_dim *columns) MGX_NODISCARD;
// Takes zero point `input` off values: one for all, or one after the other, each for `each` values
// in a row. Nothing where there is no such input. False when out of memory.
bool mgx_quant_shift(struct mgx_compute_call *c, int input, union mgx_word *values, int64_t count,
                     int64_t each);
