// SPDX-License-Identifier: MIT
// The loops of typed.h, compiled once per instruction set; the compiler makes vectors of them.
#include "targets/cpu/kernel/typed.h"

#include <math.h>

#include "targets/cpu/kernel/simd.h"

// --- operations ---

#define LOOP(name, type, e)                                                                        \
    static void name(void *out, const void *px, const void *py, const void *pz, int n)             \
    {                                                                                              \
        const type *a = px, *b = py, *c = pz;                                                      \
        type *o = out;                                                                             \
        for (int i = 0; i < n; i++) {                                                              \
            const type x = a[i], y = b[i], z = c[i];                                               \
            (void)y, (void)z;                                                                      \
            o[i] = (type)(e);                                                                      \
        }                                                                                          \
    }
#define INT(name, e) LOOP(int_##name, int64_t, e)
#define REAL(name, e) LOOP(real_##name, double, e)
#define BOTH(name, e) INT(name, e) REAL(name, e)

INT(ADD, (uint64_t)x + (uint64_t)y)
INT(SUB, (uint64_t)x - (uint64_t)y)
INT(MUL, (uint64_t)x *(uint64_t)y)
INT(SQDIFF, ((uint64_t)x - (uint64_t)y) * ((uint64_t)x - (uint64_t)y))
INT(MIN, x < y ? x : y)
INT(MAX, x > y ? x : y)
INT(ABS, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
INT(NEG, 0 - (uint64_t)x)
INT(SIGN, (x > 0) - (x < 0))
INT(BITWISE_AND, x &y)
INT(BITWISE_OR, x | y)
INT(BITWISE_XOR, x ^ y)
INT(BITWISE_NOT, ~x)
REAL(ADD, x + y)
REAL(SUB, x - y)
REAL(MUL, x *y)
REAL(DIV, x / y)
REAL(SQDIFF, (x - y) * (x - y))
REAL(MIN, ((x != x) | (x < y)) ? x : y)
REAL(MAX, ((x != x) | (x > y)) ? x : y)
REAL(ABS, fabs(x))
REAL(NEG, -x)
REAL(SIGN, x != x ? x : (double)((x > 0) - (x < 0)))
REAL(SQRT, sqrt(x))
REAL(RECIP, 1 / x)
BOTH(EQUAL, x == y)
BOTH(GREATER, x > y)
BOTH(LESS, x < y)
BOTH(LOGICAL_AND, (x != 0) & (y != 0))
BOTH(LOGICAL_OR, (x != 0) | (y != 0))
BOTH(LOGICAL_XOR, (x != 0) ^ (y != 0))
BOTH(NOT, x == 0)
BOTH(RELU, x < 0 ? 0 : x)
BOTH(CLIP, (x < y ? y : x) > z ? z : x < y ? y : x)

#define WHERE(name, type)                                                                          \
    static void name(void *out, const int64_t *x, const void *py, const void *pz, int n)           \
    {                                                                                              \
        const type *y = py, *z = pz;                                                               \
        type *o = out;                                                                             \
        for (int i = 0; i < n; i++)                                                                \
            o[i] = x[i] != 0 ? y[i] : z[i];                                                        \
    }
WHERE(where4, uint32_t)
WHERE(where8, uint64_t)

// --- loading and storing ---

#define MOVE(name, type, lane, load, store)                                                        \
    static void load_##name(const void *from, void *lanes, int n)                                  \
    {                                                                                              \
        const type *f = from;                                                                      \
        lane *t = lanes;                                                                           \
        for (int i = 0; i < n; i++) {                                                              \
            const type v = f[i];                                                                   \
            t[i] = (lane)(load);                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void store_##name(const void *lanes, void *to, int n)                                   \
    {                                                                                              \
        const lane *f = lanes;                                                                     \
        type *t = to;                                                                              \
        for (int i = 0; i < n; i++) {                                                              \
            const lane v = f[i];                                                                   \
            t[i] = (type)(store);                                                                  \
        }                                                                                          \
    }
MOVE(bool, uint8_t, int64_t, v != 0, v != 0)
MOVE(u8, uint8_t, int64_t, v, v)
MOVE(s8, int8_t, int64_t, v, v)
MOVE(u16, uint16_t, int64_t, v, v)
MOVE(s16, int16_t, int64_t, v, v)
MOVE(u32, uint32_t, int64_t, v, v)
MOVE(s32, int32_t, int64_t, v, v)
MOVE(s64, int64_t, int64_t, v, v)
MOVE(f32, float, float, v, v)
MOVE(f64, double, double, v, v)

// --- the table ---

#define I(name) [MGX_TYPED_##name] = int_##name
#define D(name) [MGX_TYPED_##name] = real_##name

const struct mgx_typed_kernel NAME(mgx_typed) = {
    .ints = {I(ADD),         I(SUB),     I(MUL),         I(MIN),         I(MAX),
             I(EQUAL),       I(GREATER), I(LESS),        I(LOGICAL_AND), I(LOGICAL_OR),
             I(LOGICAL_XOR), I(NOT),     I(ABS),         I(NEG),         I(RELU),
             I(SIGN),        I(CLIP),    I(BITWISE_AND), I(BITWISE_OR),  I(BITWISE_XOR),
             I(BITWISE_NOT), I(SQDIFF)},
    .doubles = {D(ADD),     D(SUB),   D(MUL),         D(MIN),        D(MAX),         D(EQUAL),
                D(GREATER), D(LESS),  D(LOGICAL_AND), D(LOGICAL_OR), D(LOGICAL_XOR), D(NOT),
                D(ABS),     D(NEG),   D(RELU),        D(SIGN),       D(CLIP),        D(DIV),
                D(SQRT),    D(RECIP), D(SQDIFF)},
    .load = {[MGX_BOOL] = load_bool,
             [MGX_UINT8] = load_u8,
             [MGX_INT8] = load_s8,
             [MGX_UINT16] = load_u16,
             [MGX_INT16] = load_s16,
             [MGX_UINT32] = load_u32,
             [MGX_INT32] = load_s32,
             [MGX_INT64] = load_s64,
             [MGX_FLOAT] = load_f32,
             [MGX_DOUBLE] = load_f64},
    .store = {[MGX_BOOL] = store_bool,
              [MGX_UINT8] = store_u8,
              [MGX_INT8] = store_s8,
              [MGX_UINT16] = store_u16,
              [MGX_INT16] = store_s16,
              [MGX_UINT32] = store_u32,
              [MGX_INT32] = store_s32,
              [MGX_INT64] = store_s64,
              [MGX_FLOAT] = store_f32,
              [MGX_DOUBLE] = store_f64},
    .where4 = where4,
    .where8 = where8,
};
