// SPDX-License-Identifier: MIT
// The loops of typed.h, compiled once per instruction set; the compiler makes vectors of those that
// call nothing.
#include "targets/cpu/kernel/rows/typed.h"

#include <math.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

// --- the rows of the table of scalar operators ---

typedef int64_t i64;
typedef uint64_t u64;
#define PW_FN static inline

#define LOOP(name, lane, type, e)                                                                  \
    static void name(void *out, const void *px, const void *py, const void *pz,                    \
                     const struct mgx_line_attr *attr, int n)                                      \
    {                                                                                              \
        const lane *in[3] = {px, py, pz};                                                          \
        const double a = attr->alpha, b = attr->beta;                                              \
        lane *o = out;                                                                             \
        (void)a, (void)b;                                                                          \
        for (int i = 0; i < n; i++) {                                                              \
            const type x = (type)in[0][i], y = (type)in[1][i], z = (type)in[2][i];                 \
            (void)x, (void)y, (void)z;                                                             \
            o[i] = (lane)(e);                                                                      \
        }                                                                                          \
    }
#define REAL(name, e) LOOP(real_##name, double, double, e)

#define PRELUDE(...) __VA_ARGS__
#define ROW_REAL(name, n, e) REAL(name, e)
#define ROW_ALL(name, n, order, result, e, s, u)                                                   \
    LOOP(int_##name, i64, i64, s)                                                                  \
    REAL(name, e)
#define ROW_WRAP(name, n, order, e)                                                                \
    LOOP(int_##name, i64, u64, e)                                                                  \
    REAL(name, e)
#define ROW_INT(name, n, order, s, u) LOOP(int_##name, i64, i64, s)
#define ROW_ALPHA(name, alpha, e) REAL(name, e)
#define ROW_LINE(name, alpha, beta, e) REAL(name, e)
#define ROW_WHERE(name, e)
#include "op/pointwise_rows.h"

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

const struct mgx_typed_kernel NAME(mgx_x_typed) = {
    KERNEL_BASE("x_typed"),
    .ints =
        {
#define PRELUDE(...)
#define ROW_REAL(...)
#define ROW_ALL(name, ...) [MGX_PW_##name] = int_##name,
#define ROW_WRAP(name, ...) [MGX_PW_##name] = int_##name,
#define ROW_INT(name, ...) [MGX_PW_##name] = int_##name,
#define ROW_ALPHA(...)
#define ROW_LINE(...)
#define ROW_WHERE(...)
#include "op/pointwise_rows.h"
        },
    .doubles =
        {
#define PRELUDE(...)
#define ROW_REAL(name, ...) [MGX_PW_##name] = real_##name,
#define ROW_ALL(name, ...) [MGX_PW_##name] = real_##name,
#define ROW_WRAP(name, ...) [MGX_PW_##name] = real_##name,
#define ROW_INT(...)
#define ROW_ALPHA(name, ...) [MGX_PW_##name] = real_##name,
#define ROW_LINE(name, ...) [MGX_PW_##name] = real_##name,
#define ROW_WHERE(...)
#include "op/pointwise_rows.h"
        },
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
