// SPDX-License-Identifier: MIT
// CPU detection; see cpuid.h. A feature counts only if the operating system saves its registers
// (XCR0), so a kernel without AVX-512 support is met as a machine without it.
#include "targets/cpu/machine/cpuid.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <stdint.h>

struct leaf {
    unsigned a, b, c, d;
};

static struct leaf leaf_of(unsigned number, unsigned sub)
{
    struct leaf leaf = {0};
    if (!__get_cpuid_count(number, sub, &leaf.a, &leaf.b, &leaf.c, &leaf.d))
        return (struct leaf){0};
    return leaf;
}

static bool bits(unsigned value, unsigned mask)
{
    return (value & mask) == mask;
}

// Register sets the operating system saves; 0 without OSXSAVE.
static unsigned saved_registers(void)
{
    if (!bits(leaf_of(1, 0).c, 1u << 27))
        return 0;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static enum mgx_isa detect_isa(void)
{
    const unsigned ymm = 6, zmm = 0xe6; // SSE and AVX; and opmask, both halves of ZMM
    const unsigned saved = saved_registers();
    const struct leaf one = leaf_of(1, 0), seven = leaf_of(7, 0), seven1 = leaf_of(7, 1);
    const bool fma_f16c_avx = bits(one.c, 1u << 12 | 1u << 29 | 1u << 28);
    if (!bits(saved, ymm) || !fma_f16c_avx || !bits(seven.b, 1u << 5))
        return MGX_ISA_GENERIC;
    if (!bits(saved, zmm) || !bits(seven.b, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31))
        return MGX_ISA_AVX2;
    if (!bits(seven.c, 1u << 11))
        return MGX_ISA_AVX512;
    return bits(seven1.a, 1u << 5) ? MGX_ISA_AVX512_BF16 : MGX_ISA_AVX512_VNNI;
}

static void detect_name(char name[49])
{
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u)
        return;
    for (unsigned i = 0; i < 3; i++) {
        const struct leaf leaf = leaf_of(0x80000002u + i, 0);
        memcpy(name + 16 * i, &leaf, 16);
    }
}
#else
static enum mgx_isa detect_isa(void)
{
    return MGX_ISA_GENERIC;
}

static void detect_name(char name[49])
{
    strcpy(name, "unknown");
}
#endif

static size_t cache_size(int name)
{
    const long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : 0;
}

static struct mgx_cpu cpu;
static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

static void detect(void)
{
    cpu.isa = detect_isa();
    detect_name(cpu.name);
    cpu.l1 = cache_size(_SC_LEVEL1_DCACHE_SIZE);
    cpu.l2 = cache_size(_SC_LEVEL2_CACHE_SIZE);
    cpu.l3 = cache_size(_SC_LEVEL3_CACHE_SIZE);
}

const struct mgx_cpu *mgx_cpu(void)
{
    pthread_once(&cpu_once, detect);
    return &cpu;
}

int64_t mgx_cpu_l2(void)
{
    enum { USUAL = 1 << 20 };
    return mgx_cpu()->l2 ? (int64_t)mgx_cpu()->l2 : USUAL;
}

static const char *const isa_names[] = {
#define X(name, text, meaning) text,
    MGX_ISA_LIST(X)
#undef X
};

const char *mgx_isa_name(enum mgx_isa isa)
{
    return isa_names[isa];
}

enum mgx_status mgx_isa_require(const char *name, enum mgx_isa *out, struct mgx_diag *diag)
{
    *out = mgx_cpu()->isa;
    if (!name)
        return MGX_OK;
    int isa = 0;
    while (isa < MGX_ISA_COUNT && strcmp(isa_names[isa], name) != 0)
        isa++;
    if (isa == MGX_ISA_COUNT)
        return mgx_fail(diag, MGX_INVALID, "unknown instruction set \"%s\"", name);
    if (isa > (int)*out)
        return mgx_fail(diag, MGX_UNSUPPORTED, "instruction set %s is beyond this machine's %s",
                        name, isa_names[*out]);
    *out = (enum mgx_isa)isa;
    return MGX_OK;
}
