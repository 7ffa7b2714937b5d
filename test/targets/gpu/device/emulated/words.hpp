// SPDX-License-Identifier: MIT
// What hiprtc's headers and AMD's compiler give a kernel, on an ordinary processor: the words of the
// language, and the builtins that the engine's texts use. emulated.c puts the text behind this and
// compiles both with clang; it runs the threads of a block, who meet where a word makes them.
#define __HIP__ 1
#include <math.h>
#include <stddef.h>

extern "C" {
struct emulated_machine {
    const unsigned *thread, *block, *threads, *blocks; // x, y, z each
    void (*barrier)(void);
    // All threads of a wave come with `bytes` of operands; each leaves with its part of the result.
    void (*meet)(const char *what, const void *in, unsigned bytes, void *out);
    void (*pause)(void);
};
extern const struct emulated_machine *emulated;
const struct emulated_machine *emulated;
// Where shared memory lies; both NULL where there is none.
extern char __start_shared[] __attribute__((weak)), __stop_shared[] __attribute__((weak));
extern char *const emulated_shared[2];
char *const emulated_shared[2] = {__start_shared, __stop_shared};
}

struct emulated_place {
    unsigned x, y, z;
};
static inline emulated_place emulated_at(const unsigned *v) { return {v[0], v[1], v[2]}; }
#define threadIdx emulated_at(emulated->thread)
#define blockIdx emulated_at(emulated->block)
#define blockDim emulated_at(emulated->threads)
#define gridDim emulated_at(emulated->blocks)
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// In a section of its own, which is filled with NaN before every block.
#define __shared__ static __attribute__((section("shared")))
#define __syncthreads() emulated->barrier()
#define __builtin_amdgcn_s_sleep(n) emulated->pause()

// C's functions, of floats under the same names.
#define OF_FLOAT(name) static inline float name(float x) { return name##f(x); }
#define OF_FLOATS(name) static inline float name(float x, float y) { return name##f(x, y); }
OF_FLOAT(acos) OF_FLOAT(acosh) OF_FLOAT(asin) OF_FLOAT(asinh) OF_FLOAT(atan) OF_FLOAT(atanh)
OF_FLOAT(ceil) OF_FLOAT(cos) OF_FLOAT(cosh) OF_FLOAT(erf) OF_FLOAT(exp) OF_FLOAT(expm1)
OF_FLOAT(fabs) OF_FLOAT(floor) OF_FLOAT(log) OF_FLOAT(log1p) OF_FLOAT(log2) OF_FLOAT(rint)
OF_FLOAT(round) OF_FLOAT(sin) OF_FLOAT(sinh) OF_FLOAT(sqrt) OF_FLOAT(tan) OF_FLOAT(tanh)
OF_FLOAT(trunc) OF_FLOATS(copysign) OF_FLOATS(fmax) OF_FLOATS(fmin) OF_FLOATS(fmod) OF_FLOATS(pow)
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
template <class T> static inline T min(T x, T y) { return y < x ? y : x; }
template <class T> static inline T max(T x, T y) { return x < y ? y : x; }

static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
template <class T> static inline T atomicAdd(T *p, T x)
{
    const T old = *p;
    *p = old + x;
    return old;
}
static inline int atomicMax(int *p, int x)
{
    const int old = *p;
    *p = old < x ? x : old;
    return old;
}

struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

template <class T> struct emulated_shuffle {
    T value;
    int mask;
};
template <class T> static inline T __shfl_xor(T x, int mask)
{
    const emulated_shuffle<T> in = {x, mask};
    T out;
    emulated->meet(sizeof(T) == 8 ? "shuffle 8" : "shuffle 4", &in, sizeof in, &out);
    return out;
}

// Four products of bytes and a sum: the byte of a word with a sign or without, c with nothing cut off.
static inline int emulated_byte(bool has_sign, unsigned word, int i)
{
    const unsigned byte = word >> (8 * i) & 0xff;
    return has_sign && byte > 127 ? (int)byte - 256 : (int)byte;
}
static inline int emulated_dot4(bool a_signed, unsigned a, bool b_signed, unsigned b, int c)
{
    long long sum = c;
    for (int i = 0; i < 4; i++)
        sum += emulated_byte(a_signed, a, i) * emulated_byte(b_signed, b, i);
    return (int)(unsigned)sum;
}
#define __builtin_amdgcn_sdot4(a, b, c, clamp) emulated_dot4(true, a, true, b, c)
#define __builtin_amdgcn_udot4(a, b, c, clamp) (unsigned)emulated_dot4(false, a, false, b, (int)(c))
#define __builtin_amdgcn_sudot4(a_signed, a, b_signed, b, c, clamp)                                \
    emulated_dot4(a_signed, a, b_signed, b, c)

// Matrix instructions: a and b as the compiler packs them, then the sums.
template <class A, class S> struct emulated_operands {
    A a, b;
    S sums;
};
template <class A, class S> static inline S emulated_multiply(const char *what, A a, A b, S sums)
{
    const emulated_operands<A, S> in = {a, b, sums};
    S out;
    emulated->meet(what, &in, sizeof in, &out);
    return out;
}
#define MFMA(name, a, b, sums, ...) emulated_multiply(name, a, b, sums)
#define __builtin_amdgcn_mfma_f32_16x16x16f16(...) MFMA("mfma_f32_16x16x16f16", __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x8bf16(...) MFMA("mfma_f32_16x16x8bf16", __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(...) MFMA("mfma_f32_16x16x16bf16_1k", __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x4f32(...) MFMA("mfma_f32_16x16x4f32", __VA_ARGS__)
#define __builtin_amdgcn_mfma_i32_16x16x16i8(...) MFMA("mfma_i32_16x16x16i8", __VA_ARGS__)
#define __builtin_amdgcn_mfma_i32_16x16x32_i8(...) MFMA("mfma_i32_16x16x32_i8", __VA_ARGS__)
// The same words stand for AMD's kinds of fp8 before gfx950, for OCP's there.
#ifdef __gfx950__
#define KIND_OF_FP8 " ocp"
#else
#define KIND_OF_FP8 ""
#endif
#define __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(...) MFMA("mfma_f32_16x16x32_fp8_fp8" KIND_OF_FP8, __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(...) MFMA("mfma_f32_16x16x32_fp8_bf8" KIND_OF_FP8, __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(...) MFMA("mfma_f32_16x16x32_bf8_fp8" KIND_OF_FP8, __VA_ARGS__)
#define __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(...) MFMA("mfma_f32_16x16x32_bf8_bf8" KIND_OF_FP8, __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(...)                                 \
    emulated_multiply("wmma_f32_16x16x16_fp8_fp8_w32_gfx12", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_fp8_bf8_w32_gfx12(...)                                 \
    emulated_multiply("wmma_f32_16x16x16_fp8_bf8_w32_gfx12", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf8_fp8_w32_gfx12(...)                                 \
    emulated_multiply("wmma_f32_16x16x16_bf8_fp8_w32_gfx12", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf8_bf8_w32_gfx12(...)                                 \
    emulated_multiply("wmma_f32_16x16x16_bf8_bf8_w32_gfx12", __VA_ARGS__)
#define WMMA_BYTES(name, a_signed, a, b_signed, b, sums, clamp)                                    \
    emulated_multiply((a_signed)   ? (b_signed) ? name " ss" : name " su"                          \
                      : (b_signed) ? name " us"                                                    \
                                   : name " uu",                                                   \
                      a, b, sums)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(...)                                            \
    WMMA_BYTES("wmma_i32_16x16x16_iu8_w32", __VA_ARGS__)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(...)                                      \
    WMMA_BYTES("wmma_i32_16x16x16_iu8_w32_gfx12", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(...)                                            \
    emulated_multiply("wmma_f32_16x16x16_f16_w32", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(...)                                           \
    emulated_multiply("wmma_f32_16x16x16_bf16_w32", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(...)                                      \
    emulated_multiply("wmma_f32_16x16x16_f16_w32_gfx12", __VA_ARGS__)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(...)                                     \
    emulated_multiply("wmma_f32_16x16x16_bf16_w32_gfx12", __VA_ARGS__)

// A kernel as emulated.c calls it: by addresses of its parameters, whose sizes are told.
extern "C" {
struct emulated_entry {
    void (*call)(void **params);
    int count;
    unsigned sizes[64];
};
}
template <class T, T... i> struct emulated_numbers {
};
template <auto kernel> struct emulated_entry_of;
template <class... P, void (*kernel)(P...)> struct emulated_entry_of<kernel> {
    template <size_t... i> static void call_with(void **params, emulated_numbers<size_t, i...>)
    {
        kernel(*(P *)params[i]...);
    }
    static void call(void **params) { call_with(params, __make_integer_seq<emulated_numbers, size_t, sizeof...(P)>()); }
    static constexpr emulated_entry entry = {call, sizeof...(P), {sizeof(P)...}};
};
#define EMULATED_ENTRY(name) EMULATED_ENTRY_2(name)
#define EMULATED_ENTRY_2(name)                                                                     \
    extern "C" const emulated_entry emulated_##name;                                               \
    const emulated_entry emulated_##name = emulated_entry_of<name>::entry;
