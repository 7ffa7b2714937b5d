// SPDX-License-Identifier: MIT
// The loops of block programs, compiled once per instruction set; see block.h.
//
// Every row of the table of scalar operators gets a loop over its own expression, which the
// compiler vectorises (an operand that is one value for the block is spread first, so every loop
// has one form). What an expression calls without there being an instruction for it, exp or tanh,
// would be libm's, element by element: such rows have a FAST_<name> below, of vmath.h and
// vmath_f64.h, as have those that multiply some elements alone, which compilers do one by one.
// Remainders of division stay libm's.
#include "base/half.h"
#include "targets/cpu/kernel/rows/block.h"

#include <string.h>
#include <tgmath.h>

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath_f64.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// y = e over x: out may be x itself, element by element, which INDEPENDENT allows.
#define LOOP_1(code, e)                                                                            \
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
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

#define SPREAD_LOOP(x_, y_, e)                                                                     \
    INDEPENDENT                                                                                    \
    for (int i = 0; i < n; i++) {                                                                  \
        const float x = x_, y = y_;                                                                \
        out[i] = (e);                                                                              \
    }

#define LOOP_2(code, e)                                                                            \
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        const float *px = in[0].data, *py = in[1].data;                                            \
        if (in[1].scalar) {                                                                        \
            const float v = *py;                                                                   \
            if (in[0].scalar) {                                                                    \
                const float u = *px;                                                               \
                SPREAD_LOOP(u, v, e)                                                               \
            } else {                                                                               \
                SPREAD_LOOP(px[i], v, e)                                                           \
            }                                                                                      \
        } else if (in[0].scalar) {                                                                 \
            const float u = *px;                                                                   \
            SPREAD_LOOP(u, py[i], e)                                                               \
        } else {                                                                                   \
            SPREAD_LOOP(px[i], py[i], e)                                                           \
        }                                                                                          \
    }

// Any mix of blocks and single values by steps of 0 and 1.
#define LOOP_3(code, e)                                                                            \
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
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
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        const float *px = in[0].data;                                                              \
        const vf va = vf_set(a), vb = vf_set(b);                                                   \
        (void)va, (void)vb;                                                                        \
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
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
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

// --- rows of the table with a faster loop than their expression would give ---

#define FAST_acos , VECTOR, vf_acos(x)
#define FAST_acosh , VECTOR, vf_acosh(x)
#define FAST_asin , VECTOR, vf_asin(x)
#define FAST_asinh , VECTOR, vf_asinh(x)
#define FAST_atan , VECTOR, vf_atan(x)
#define FAST_atanh , VECTOR, vf_atanh(x)
#define FAST_cosh , VECTOR, vf_cosh(x)
#define FAST_elu , VECTOR, vf_act(MGX_ACT_ELU, x, va, vb)
#define FAST_erf , VECTOR, vf_erf(x)
#define FAST_exp , VECTOR, vf_exp(x)
#define FAST_gelu , VECTOR, vf_halved(x, vf_erf(vf_mul(x, vf_set(0.70710678f))))
#define FAST_gelu_tanh , VECTOR, vf_halved(x, vf_tanh(vf_gelu_inner(x)))
#define FAST_leaky_relu , VECTOR, vf_act(MGX_ACT_LEAKY_RELU, x, va, vb)
#define FAST_log , VECTOR, vf_log(x)
#define FAST_log2 , VECTOR, vf_log2(x)
#define FAST_mish , VECTOR, vf_mish(x)
#define FAST_mod , LOOP_2, modulo(x, y)
#define FAST_prelu , VECTOR2, vf_act(MGX_ACT_LEAKY_RELU, x, y, y)
#define FAST_sigmoid , VECTOR, vf_sigmoid(x)
#define FAST_silu , VECTOR, vf_mul(x, vf_sigmoid(x))
#define FAST_sinh , VECTOR, vf_sinh(x)
#define FAST_softplus , VECTOR, vf_softplus(x)
#define FAST_swish , VECTOR, vf_mul(x, vf_sigmoid(vf_mul(va, x)))
#define FAST_tan , VECTOR, vf_tan(x)
#define FAST_tanh , VECTOR, vf_tanh(x)
#if defined(__AVX2__) || defined(__AVX512F__) // two doubles at a time are slower than libm
#define FAST_cos , VECTOR, vf_cos(x)
#define FAST_pow , VECTOR2, vf_pow(x, y)
#define FAST_sin , VECTOR, vf_sin(x)
#endif

// The kind of loop and the expression: of FAST_<name> if there is one, else the row's own.
#define ROW_LOOP(name, arity, e) CHOOSE(row_##name, FAST_##name, LOOP_##arity, e, )
#define CHOOSE(...) SECOND(__VA_ARGS__)
#define SECOND(code, first, loop, e, ...) loop(code, e)

#define PRELUDE(...)
#define ROW_REAL(name, n, e) ROW_LOOP(name, n, e)
#define ROW_ALL(name, n, order, result, e, s, u) ROW_LOOP(name, n, e)
#define ROW_WRAP(name, n, order, e) ROW_LOOP(name, n, e)
#define ROW_INT(...)
#define ROW_ALPHA(name, alpha, e) ROW_LOOP(name, 1, e)
#define ROW_LINE(name, alpha, beta, e) ROW_LOOP(name, 1, e)
#define ROW_WHERE(name, e) ROW_LOOP(name, 3, e)
#include "op/pointwise_rows.h"

// --- lines that are no row ---

LOOP_1(copy, x)
LOOP_3(dequant, (x - z) * y)

// The byte nearest to x / y + z, as a float; the lowest one for NaN. `plain`: there is no z.
SIMD void quantize(float *out, const struct mgx_block_operand *in, bool plain, float least,
                   float most, int n)
{
    const bool same = in[1].scalar && (plain || in[2].scalar);
    const vf low = vf_set(least), high = vf_set(most);
    vf y = lanes_of(&in[1], 0, n), z = plain ? vf_zero() : lanes_of(&in[2], 0, n);
    for (int i = 0; i < n; i += VL) {
        if (!same) {
            y = lanes_of(&in[1], i, n);
            z = plain ? z : lanes_of(&in[2], i, n);
        }
        const vf near = vf_add(vf_round(vf_div(lanes_of(&in[0], i, n), y)), z);
        const vf byte = vf_min(high, vf_max(near, low)); // low where near is NaN
        if (n - i >= VL)
            vf_store(out + i, byte);
        else
            vf_store_some(out + i, byte, n - i);
    }
}
#define QUANT(code, low, high)                                                                     \
    static void code(float *out, const struct mgx_block_operand *in, float a, float b, int n)      \
    {                                                                                              \
        (void)b;                                                                                   \
        quantize(out, in, a != 0, low, high, n);                                                   \
    }
QUANT(quant_u8, 0.0f, 255.0f)
QUANT(quant_s8, -128.0f, 127.0f)
QUANT(quant_u16, 0.0f, 65535.0f)
QUANT(quant_s16, -32768.0f, 32767.0f)

// The float of eight bits nearest to x / y, ties to even; NaN stays.
//
// Adding 1.5 times 2^23 of the last digit that stays, and taking it away again, rounds to that
// digit; below `least`, the smallest number with a digit before the point, it is the same for all.
static void quant_f8(float *out, const struct mgx_block_operand *in, float a, float b, int n)
{
    static const struct {
        float most, least, magic;
    } kinds[] = {[MGX_F8_E4M3FNUZ] = {240, 0x1p-7f, 0x1.8p20f},
                 [MGX_F8_E4M3FN] = {448, 0x1p-6f, 0x1.8p20f},
                 [MGX_F8_E5M2] = {57344, 0x1p-14f, 0x1.8p21f},
                 [MGX_F8_E5M2FNUZ] = {57344, 0x1p-15f, 0x1.8p21f}};
    const int kind = (int)b;
    const vf high = vf_set(kinds[kind].most), low = vf_set(-kinds[kind].most),
             least = vf_set(kinds[kind].least), magic = vf_set(kinds[kind].magic);
    (void)a;
    for (int i = 0; i < n; i += VL) {
        const vf q = vf_div(lanes_of(&in[0], i, n), lanes_of(&in[1], i, n));
        const vf x = vf_min(high, vf_max(low, q));
        const vf shift = vf_mul(vf_max(least, vf_first_digit(x)), magic);
        const vf near = vf_nan_or(q, vf_with_sign(vf_abs(vf_sub(vf_add(x, shift), shift)), q));
        if (n - i >= VL)
            vf_store(out + i, near);
        else
            vf_store_some(out + i, near, n - i);
    }
}

#if defined(__AVX512F__)
SIMD vf as_half(vf x)
{
    return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__)
SIMD vf as_half(vf x)
{
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#else
SIMD vf as_half(vf x)
{
    float v[VL];
    vf_store(v, x);
    for (int i = 0; i < VL; i++)
        v[i] = mgx_half_to_float(mgx_half_from_double((double)v[i]));
    return vf_load(v);
}
#endif

SIMD vf as_brain(vf x)
{
    uint32_t v[VL];
    float y[VL];
    vf_store(y, x);
    memcpy(v, y, sizeof v);
    for (int i = 0; i < VL; i++)
        v[i] = ((v[i] & 0x7fffffff) > 0x7f800000 ? v[i] : v[i] + 0x7fff + (v[i] >> 16 & 1)) &
               0xffff0000;
    memcpy(y, v, sizeof v);
    return vf_nan_or(x, vf_load(y));
}
VECTOR(round_f16, as_half(x))
VECTOR(round_bf16, as_brain(x))

const struct mgx_block_kernel NAME(mgx_f32_block) = {KERNEL_BASE("f32_block"),
                                                     {
#define PRELUDE(...)
#define ROW_REAL(name, ...) [MGX_PW_##name] = row_##name,
#define ROW_ALL(name, ...) [MGX_PW_##name] = row_##name,
#define ROW_WRAP(name, ...) [MGX_PW_##name] = row_##name,
#define ROW_INT(...)
#define ROW_ALPHA(name, ...) [MGX_PW_##name] = row_##name,
#define ROW_LINE(name, ...) [MGX_PW_##name] = row_##name,
#define ROW_WHERE(name, ...) [MGX_PW_##name] = row_##name,
#include "op/pointwise_rows.h"
                                                         [MGX_BLOCK_COPY] = copy,
                                                         [MGX_BLOCK_DEQUANT] = dequant,
                                                         [MGX_BLOCK_QUANT_U8] = quant_u8,
                                                         [MGX_BLOCK_QUANT_S8] = quant_s8,
                                                         [MGX_BLOCK_QUANT_U16] = quant_u16,
                                                         [MGX_BLOCK_QUANT_S16] = quant_s16,
                                                         [MGX_BLOCK_QUANT_F8] = quant_f8,
                                                         [MGX_BLOCK_ROUND_F16] = round_f16,
                                                         [MGX_BLOCK_ROUND_BF16] = round_bf16}};
