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

// The byte behind so many others; of nothing, which has no address, nothing.
static inline void *mgx_behind(const void *p, int64_t bytes)
{
    return bytes ? (char *)p + bytes : (void *)p;
}

// Where part `i` of `parts` of `count` begins; it ends where the next one begins.
static inline int64_t mgx_part_begin(int64_t count, int i, int parts)
{
    return count / parts * i + count % parts * i / parts;
}

// Of lengths that were checked together: it does not overflow.
static inline int64_t mgx_product(const int64_t *v, int count)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        product *= v[i];
    return product;
}

static inline int64_t mgx_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline size_t mgx_align64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#define MGX_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
