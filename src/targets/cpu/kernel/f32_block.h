// SPDX-License-Identifier: MIT
// The loops of block programs, compiled once per instruction set; see block.h.
//
// Cheap expressions are plain loops that the compiler vectorises for the set at hand (an operand
// that is one value for the block is spread first, so every loop has one form); functions without a
// vector instruction use vmath.h and vmath_f64.h. Remainders of division call
// libm element by element.
#include "targets/cpu/kernel/block.h"

#include <math.h>

#include "targets/cpu/kernel/simd.h"
#include "targets/cpu/kernel/vmath_f64.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// y = e over x: out may be x itself, element by element, which INDEPENDENT allows.
#define UNARY(code, e)                                                                             \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        (void)a;                                                                                   \
        const float *px = in[0].data;                                                              \
        if (in[0].scalar) {                                                                        \
            const float x = *px, r = (e);                                                          \
            for (int i = 0; i < n; i++)                                                            \
                out[i] = r;                                                                        \
            return;                                                                                \
        }                                                                                          \
        INDEPENDENT                                                                                \
        for (int i = 0; i < n; i++) {                                                              \
            const float x = px[i];                                                                 \
            out[i] = (e);                                                                          \
        }                                                                                          \
    }

#define BINARY_LOOP(x_, y_, e)                                                                     \
    INDEPENDENT                                                                                    \
    for (int i = 0; i < n; i++) {                                                                  \
        const float x = x_, y = y_;                                                                \
        out[i] = (e);                                                                              \
    }

#define BINARY(code, e)                                                                            \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        (void)a;                                                                                   \
        const float *px = in[0].data, *py = in[1].data;                                            \
        if (in[1].scalar) {                                                                        \
            const float v = *py;                                                                   \
            if (in[0].scalar) {                                                                    \
                const float u = *px;                                                               \
                BINARY_LOOP(u, v, e)                                                               \
            } else {                                                                               \
                BINARY_LOOP(px[i], v, e)                                                           \
            }                                                                                      \
        } else if (in[0].scalar) {                                                                 \
            const float u = *px;                                                                   \
            BINARY_LOOP(u, py[i], e)                                                               \
        } else {                                                                                   \
            BINARY_LOOP(px[i], py[i], e)                                                           \
        }                                                                                          \
    }

// Any mix of blocks and single values by steps of 0 and 1.
#define TERNARY(code, e)                                                                           \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        (void)a;                                                                                   \
        const float *px = in[0].data, *py = in[1].data, *pz = in[2].data;                          \
        if (!in[0].scalar && in[1].scalar && in[2].scalar) {                                       \
            const float y = *py, z = *pz;                                                          \
            INDEPENDENT                                                                            \
            for (int i = 0; i < n; i++) {                                                          \
                const float x = px[i];                                                             \
                out[i] = (e);                                                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        const int sx = !in[0].scalar, sy = !in[1].scalar, sz = !in[2].scalar;                      \
        for (int i = 0; i < n; i++) {                                                              \
            const float x = px[i * sx], y = py[i * sy], z = pz[i * sz];                            \
            out[i] = (e);                                                                          \
        }                                                                                          \
    }

// A function of vectors; `a` is the line's constant.
#define VECTOR(code, f)                                                                            \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        const float *px = in[0].data;                                                              \
        const vf va = vf_set(a);                                                                   \
        (void)va;                                                                                  \
        int i = 0;                                                                                 \
        if (in[0].scalar) {                                                                        \
            float one[VL];                                                                         \
            const vf x = vf_set(*px);                                                              \
            vf_store(one, f);                                                                      \
            for (; i < n; i++)                                                                     \
                out[i] = one[0];                                                                   \
            return;                                                                                \
        }                                                                                          \
        for (; i + VL <= n; i += VL) {                                                             \
            const vf x = vf_load(px + i);                                                          \
            vf_store(out + i, f);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            const vf x = vf_load_some(px + i, n - i);                                              \
            vf_store_some(out + i, f, n - i);                                                      \
        }                                                                                          \
    }

// Lanes of an operand from element i on, whichever kind it is.
SIMD vf lanes_of(const struct mgx_block_operand *x, int i, int n)
{
    if (x->scalar)
        return vf_set(*x->data);
    return n - i >= VL ? vf_load(x->data + i) : vf_load_some(x->data + i, n - i);
}

#define VECTOR2(code, f)                                                                           \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        (void)a;                                                                                   \
        for (int i = 0; i < n; i += VL) {                                                          \
            const vf x = lanes_of(&in[0], i, n), y = lanes_of(&in[1], i, n);                       \
            if (n - i >= VL)                                                                       \
                vf_store(out + i, f);                                                              \
            else                                                                                   \
                vf_store_some(out + i, f, n - i);                                                  \
        }                                                                                          \
    }

static inline float modulo(float x, float y)
{
    const float r = fmodf(x, y);
    return r == 0 ? copysignf(r, y) : (r < 0) != (y < 0) ? r + y : r;
}

UNARY(COPY, x)
BINARY(ADD, x + y)
BINARY(SUB, x - y)
BINARY(MUL, x *y)
BINARY(DIV, x / y)
BINARY(MIN, ((x != x) | (x < y)) ? x : y)
BINARY(MAX, ((x != x) | (x > y)) ? x : y)
#if defined(__AVX2__) || defined(__AVX512F__)
VECTOR2(POW, vf_pow(x, y))
VECTOR(SIN, vf_sin(x))
VECTOR(COS, vf_cos(x))
#else // two doubles at a time are slower than libm
BINARY(POW, powf(x, y))
UNARY(SIN, sinf(x))
UNARY(COS, cosf(x))
#endif
BINARY(FMOD, fmodf(x, y))
BINARY(MOD, modulo(x, y))
BINARY(SQDIFF, (x - y) * (x - y))
BINARY(PRELU, x < 0 ? x * y : x)
BINARY(EQUAL, x == y ? 1.0f : 0.0f)
BINARY(GREATER, x > y ? 1.0f : 0.0f)
BINARY(LESS, x < y ? 1.0f : 0.0f)
BINARY(AND, ((x != 0) & (y != 0)) ? 1.0f : 0.0f)
BINARY(OR, ((x != 0) | (y != 0)) ? 1.0f : 0.0f)
BINARY(XOR, ((x != 0) ^ (y != 0)) ? 1.0f : 0.0f)
TERNARY(WHERE, x != 0 ? y : z)
TERNARY(CLIP, (x < y ? y : x) > z ? z : x < y ? y : x)
UNARY(ABS, fabsf(x))
UNARY(NEG, -x)
VECTOR(EXP, vf_exp(x))
VECTOR(LOG, vf_log(x))
VECTOR(LOG2, vf_log2(x))
UNARY(SQRT, sqrtf(x))
UNARY(RSQRT, 1 / sqrtf(x))
UNARY(RECIP, 1 / x)
UNARY(RELU, x < 0 ? 0 : x)
VECTOR(SIGMOID, vf_sigmoid(x))
VECTOR(TANH, vf_tanh(x))
VECTOR(ERF, vf_erf(x))
UNARY(SIGN, x != x ? x : (float)((x > 0) - (x < 0)))
UNARY(FLOOR, floorf(x))
UNARY(CEIL, ceilf(x))
UNARY(ROUND, rintf(x))
UNARY(TRUNC, truncf(x))
UNARY(NOT, x == 0 ? 1.0f : 0.0f)
UNARY(ISNAN, x != x ? 1.0f : 0.0f)
UNARY(ISINF, fabsf(x) == INFINITY ? 1.0f : 0.0f)
VECTOR(TAN, vf_tan(x))
VECTOR(ASIN, vf_asin(x))
VECTOR(ACOS, vf_acos(x))
VECTOR(ATAN, vf_atan(x))
VECTOR(SINH, vf_sinh(x))
VECTOR(COSH, vf_cosh(x))
VECTOR(ASINH, vf_asinh(x))
VECTOR(ACOSH, vf_acosh(x))
VECTOR(ATANH, vf_atanh(x))
VECTOR(ELU, vf_act(MGX_ACT_ELU, x, va, va))
UNARY(LEAKY_RELU, x > 0 ? x : a * x)

TERNARY(DEQUANT, (x - z) * y)

// The byte nearest to `v`, as a float; the lowest one for NaN.
static inline float within(float v, float low, float high)
{
    v = v > low ? v : low;
    return v < high ? v : high;
}
#define QUANT(code, low, high)                                                                     \
    static inline float code##_of(float x, float y, float z)                                       \
    {                                                                                              \
        return within(rintf(x / y) + z, low, high);                                                \
    }                                                                                              \
    TERNARY(code##_ZERO, code##_of(x, y, z))                                                       \
    BINARY(code##_PLAIN, code##_of(x, y, 0))                                                       \
    static void code(float *out, const struct mgx_block_operand *in, float a, int n)               \
    {                                                                                              \
        (a != 0 ? code##_PLAIN : code##_ZERO)(out, in, 0, n);                                      \
    }
QUANT(QUANT_U8, 0.0f, 255.0f)
QUANT(QUANT_S8, -128.0f, 127.0f)

const mgx_block_fn NAME(mgx_block_table)[MGX_BLOCK_CODES] = {
#define X(name, arity) [MGX_BLOCK_##name] = name,
    MGX_BLOCK_LIST(X)
#undef X
};
