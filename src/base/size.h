// SPDX-License-Identifier: MIT
// Checked arithmetic on sizes. Every product or sum whose operands come from outside goes through
// here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each returns false, leaving *out unspecified, when the exact result does not fit.
static inline bool mgx_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool mgx_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mgx_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool mgx_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mgx_sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

static inline int64_t mgx_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mgx_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define MGX_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
