// SPDX-License-Identifier: MIT
// What vectors of floats and of doubles have alike, on every set: functions that differ in the
// element and the size of a register alone. V is the vector, and the beginning of their names.
//
//     V_set(x), V_load(p), V_store(p, v), V_add, V_sub, V_mul, V_div
//     V_fma(a, b, c)     a * b + c       V_min(limit, v), V_max(limit, v)    v if that is NaN
//     V_fnma(a, b, c)    c - a * b
#pragma once

#include <string.h>

#define SIMD static inline __attribute__((always_inline))

#define VECTOR_ARITHMETIC(V)                                                                       \
    SIMD V V##_add(V a, V b)                                                                       \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    SIMD V V##_sub(V a, V b)                                                                       \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    SIMD V V##_mul(V a, V b)                                                                       \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    SIMD V V##_div(V a, V b)                                                                       \
    {                                                                                              \
        return a / b;                                                                              \
    }

// Of registers whose intrinsics are SIZE_..._SUFFIX: _mm512_add_ps.
#define VECTOR_OF(V, REAL, SIZE, SUFFIX)                                                           \
    VECTOR_ARITHMETIC(V)                                                                           \
    SIMD V V##_set(REAL x)                                                                         \
    {                                                                                              \
        return SIZE##_set1_##SUFFIX(x);                                                            \
    }                                                                                              \
    SIMD V V##_load(const REAL *p)                                                                 \
    {                                                                                              \
        return SIZE##_loadu_##SUFFIX(p);                                                           \
    }                                                                                              \
    SIMD void V##_store(REAL *p, V v)                                                              \
    {                                                                                              \
        SIZE##_storeu_##SUFFIX(p, v);                                                              \
    }                                                                                              \
    SIMD V V##_fma(V a, V b, V c)                                                                  \
    {                                                                                              \
        return SIZE##_fmadd_##SUFFIX(a, b, c);                                                     \
    }                                                                                              \
    SIMD V V##_fnma(V a, V b, V c)                                                                 \
    {                                                                                              \
        return SIZE##_fnmadd_##SUFFIX(a, b, c);                                                    \
    }                                                                                              \
    SIMD V V##_min(V limit, V v)                                                                   \
    {                                                                                              \
        return SIZE##_min_##SUFFIX(limit, v);                                                      \
    }                                                                                              \
    SIMD V V##_max(V limit, V v)                                                                   \
    {                                                                                              \
        return SIZE##_max_##SUFFIX(limit, v);                                                      \
    }

// Of what every compiler has, BITS the integers of its lanes: V_fma rounds twice.
#define VECTOR_PLAIN(V, REAL, BITS)                                                                \
    VECTOR_ARITHMETIC(V)                                                                           \
    SIMD V V##_load(const REAL *p)                                                                 \
    {                                                                                              \
        V v;                                                                                       \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    SIMD void V##_store(REAL *p, V v)                                                              \
    {                                                                                              \
        memcpy(p, &v, sizeof v);                                                                   \
    }                                                                                              \
    SIMD V V##_fma(V a, V b, V c)                                                                  \
    {                                                                                              \
        return a * b + c;                                                                          \
    }                                                                                              \
    SIMD V V##_fnma(V a, V b, V c)                                                                 \
    {                                                                                              \
        return c - a * b;                                                                          \
    }                                                                                              \
    SIMD V V##_choose(BITS mask, V yes, V no)                                                      \
    {                                                                                              \
        return (V)((mask & (BITS)yes) | (~mask & (BITS)no));                                       \
    }                                                                                              \
    SIMD V V##_min(V limit, V v)                                                                   \
    {                                                                                              \
        return V##_choose((BITS)(limit < v), limit, v);                                            \
    }                                                                                              \
    SIMD V V##_max(V limit, V v)                                                                   \
    {                                                                                              \
        return V##_choose((BITS)(limit > v), limit, v);                                            \
    }                                                                                              \
    SIMD V V##_below(V a, V b, V yes, V no)                                                        \
    {                                                                                              \
        return V##_choose((BITS)(a < b), yes, no);                                                 \
    }
