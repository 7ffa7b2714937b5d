// SPDX-License-Identifier: MIT
// Conversions against base/half.h, over all 16-bit values and random floats, at every length.
#include "targets/cpu/kernel/move/convert.h"

#include "base/half.h"
#include "targets/cpu/kernel/harness.h"

CASE(sixteen_bits_widen_exactly)
{
    static uint16_t in[65536];
    static float half[65536], brain[65536];
    for (int i = 0; i < 65536; i++)
        in[i] = (uint16_t)i;
    EACH_ISA(isa)
    {
        mgx_convert(isa, MGX_KERNEL_F16, MGX_KERNEL_F32)(in, half, 65536);
        mgx_convert(isa, MGX_KERNEL_BF16, MGX_KERNEL_F32)(in, brain, 65536);
        for (int i = 0; i < 65536; i++) {
            CHECK_NEAR(half[i], mgx_half_to_float(in[i]), 0);
            CHECK_NEAR(brain[i], mgx_bf16_to_float(in[i]), 0);
        }
    }
}

static float any_float(struct rng *r)
{
    const uint32_t bits = rng_next(r);
    float x;
    memcpy(&x, &bits, sizeof x);
    return rng_below(r, 2) ? x : ldexpf(rng_float(r), rng_below(r, 60) - 30);
}

CASE(floats_narrow_to_nearest)
{
    struct rng r = {8};
    EACH_ISA(isa)
    {
        for (int n = 0; n < 70; n++) {
            float x[70];
            uint16_t half[71], brain[71];
            for (int i = 0; i < n; i++)
                x[i] = any_float(&r);
            half[n] = brain[n] = 0x5a5a;
            mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_F16)(x, half, n);
            mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_BF16)(x, brain, n);
            CHECK(half[n] == 0x5a5a && brain[n] == 0x5a5a);
            for (int i = 0; i < n; i++) {
                CHECK_NEAR(mgx_half_to_float(half[i]),
                           mgx_half_to_float(mgx_half_from_double(x[i])), 0);
                CHECK_NEAR(mgx_bf16_to_float(brain[i]),
                           mgx_bf16_to_float(mgx_bf16_from_double(x[i])), 0);
            }
        }
    }
}

CASE(bytes)
{
    uint8_t in[256], u8[256];
    int16_t s16[256];
    for (int i = 0; i < 256; i++)
        in[i] = (uint8_t)i;
    EACH_ISA(isa)
    {
        mgx_convert(isa, MGX_KERNEL_S8, MGX_KERNEL_U8)(in, u8, 256);
        mgx_convert(isa, MGX_KERNEL_S8, MGX_KERNEL_S16)(in, s16, 256);
        for (int i = 0; i < 256; i++) {
            CHECK_INT(u8[i], (int8_t)in[i] + 128);
            CHECK_INT(s16[i], (int8_t)in[i]);
        }
        mgx_convert(isa, MGX_KERNEL_U8, MGX_KERNEL_S16)(in, s16, 256);
        for (int i = 0; i < 256; i++)
            CHECK_INT(s16[i], i);
        float f32[256];
        int32_t s32[256];
        mgx_convert(isa, MGX_KERNEL_S8, MGX_KERNEL_F32)(in, f32, 256);
        mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_S32)(f32, s32, 256);
        for (int i = 0; i < 256; i++)
            CHECK(f32[i] == (int8_t)in[i] && s32[i] == (int8_t)in[i]);
        mgx_convert(isa, MGX_KERNEL_U8, MGX_KERNEL_F32)(in, f32, 256);
        for (int i = 0; i < 256; i++)
            CHECK_INT(f32[i], i);
        uint8_t back[256];
        mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_U8)(f32, back, 256);
        CHECK(memcmp(back, in, 256) == 0);
        mgx_convert(isa, MGX_KERNEL_S32, MGX_KERNEL_F32)(s32, f32, 256);
        mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_S8)(f32, back, 256);
        CHECK(memcmp(back, in, 256) == 0);
        CHECK(!mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_S16));
    }
}

// --- --bench ---

struct timed {
    mgx_convert_fn fn;
    const void *from;
    void *to;
};

enum { TIMED = 4096 };

static void run_timed(void *user)
{
    const struct timed *t = user;
    t->fn(t->from, t->to, TIMED);
}

static int bench(void)
{
    static const struct {
        const char *name;
        enum mgx_kernel_type from, to;
    } pairs[] = {{"f16 to f32", MGX_KERNEL_F16, MGX_KERNEL_F32},
                 {"f32 to f16", MGX_KERNEL_F32, MGX_KERNEL_F16},
                 {"bf16 to f32", MGX_KERNEL_BF16, MGX_KERNEL_F32},
                 {"f32 to bf16", MGX_KERNEL_F32, MGX_KERNEL_BF16},
                 {"s8 to s16", MGX_KERNEL_S8, MGX_KERNEL_S16},
                 {"u8 to f32", MGX_KERNEL_U8, MGX_KERNEL_F32}};
    static float from[TIMED], to[TIMED];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        printf("%-12s", pairs[i].name);
        EACH_ISA(isa)
        {
            struct timed t = {mgx_convert(isa, pairs[i].from, pairs[i].to), from, to};
            printf("  %s %6.2f values/ns", mgx_isa_name(isa),
                   TIMED * 1e-9 / bench_time(run_timed, &t, 7));
        }
        printf("\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(sixteen_bits_widen_exactly) ROW(floats_narrow_to_nearest) ROW(bytes){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : check_run(cases, argc, argv);
}
