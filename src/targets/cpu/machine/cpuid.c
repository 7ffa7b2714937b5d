// SPDX-License-Identifier: MIT
// CPU detection; see cpuid.h. A feature counts only if the operating system saves its registers
// (XCR0), so a kernel without AVX-512 support is met as a machine without it.
#include "targets/cpu/machine/cpuid.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>

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

// Register sets that the operating system saves, as bits of XCR0: SSE and AVX; opmask and both
// halves of ZMM besides; the tiles and how they are laid out.
enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60006 };

// None without OSXSAVE.
static unsigned saved_registers(void)
{
    if (!(leaf_of(1, 0).c & 1u << 27))
        return 0;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Whether the tiles are those that kernels count on: eight of 16 rows of 64 bytes, all of which the
// unit multiplies.
static bool tiles_are_usual(void)
{
    const struct leaf palette = leaf_of(0x1d, 1), unit = leaf_of(0x1e, 0);
    return (palette.b & 0xffff) >= 64 && palette.b >> 16 >= 8 && (palette.c & 0xffff) >= 16 &&
           (unit.b & 0xff) >= 16 && (unit.b >> 8 & 0xffff) >= 64;
}

// Linux lends tiles to a process that asks, for all of its threads and for good. Its signal frames
// become larger by 8 KiB, so it is asked only for kernels that need them, and it refuses where a
// thread's alternate signal stack has no room for that.
static bool may_use_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return (mgx_isa_needed() & MGX_HAS(AMX_TILE)) && tiles_are_usual() &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static mgx_isa detect_isa(void)
{
    unsigned saved = saved_registers();
    const bool has_tiles = leaf_of(7, 0).d >> 24 & 1;
    if ((saved & TILES) == TILES && !(has_tiles && may_use_tiles()))
        saved &= ~(unsigned)TILES | YMM;
    mgx_isa isa = 0;
#define X(name, text, option, number, sub, word, bit, registers)                                   \
    if ((saved & registers) == registers && (leaf_of(number, sub).word >> bit & 1))                \
        isa |= MGX_HAS(name);
    MGX_X86_FEATURES(X)
#undef X
    return isa;
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
#elif defined(__aarch64__)
#include <stdio.h>
#include <sys/auxv.h>

static mgx_isa detect_isa(void)
{
    mgx_isa isa = 0;
#define X(name, text, option, word, bit) isa |= getauxval(word) >> bit & 1 ? MGX_HAS(name) : 0;
    MGX_ARM_FEATURES(X)
#undef X
    return isa;
}

// ARM processors have a number, which Linux tells where it knows it.
static void detect_name(char name[49])
{
    char number[32] = "";
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "re");
    if (file && !fgets(number, sizeof number, file))
        number[0] = '\0';
    if (file)
        fclose(file);
    number[strcspn(number, "\n")] = '\0';
    snprintf(name, 49, "arm %s", number);
}
#else
static mgx_isa detect_isa(void)
{
    return 0;
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

int64_t mgx_cpu_l1(void)
{
    enum { USUAL = 32 << 10 };
    return mgx_cpu()->l1 ? (int64_t)mgx_cpu()->l1 : USUAL;
}

int64_t mgx_cpu_l2(void)
{
    enum { USUAL = 1 << 20 };
    return mgx_cpu()->l2 ? (int64_t)mgx_cpu()->l2 : USUAL;
}
