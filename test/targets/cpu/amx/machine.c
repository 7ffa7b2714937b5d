// SPDX-License-Identifier: MIT
// A machine with tiles: linked over mgx_cpu() (the linker's --wrap) into tests, and into a library
// that the driver is run with. What has AVX-512 besides is believed to have AMX too, and its tile
// instructions are computed by emulator.h. The engine itself has no way to be told so.
//
// A process that asked for the machine and then ran no product on tiles, or left tiles configured in
// a thread, ends with 1, whatever else it found.
#include "targets/cpu/amx/emulator.h"
#include "targets/cpu/machine/cpuid.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

// Names that the linker makes.
const struct mgx_cpu *__real_mgx_cpu(void);
const struct mgx_cpu *__wrap_mgx_cpu(void);

static struct mgx_cpu cpu;
static bool pretends;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void pretend(void)
{
    cpu = *__real_mgx_cpu();
    if (mgx_isa_holds(cpu.isa, MGX_ISA_AMX) || !mgx_isa_holds(cpu.isa, MGX_ISA_AVX512_BF16))
        return;
    cpu.isa |= MGX_ISA_AMX;
    amx_emulate();
    pretends = true;
}

__attribute__((destructor)) static void look_back(void)
{
    const struct amx_counts c = amx_counts();
    if (!pretends)
        return;
    fprintf(stderr, "amx: products uu %lld, us %lld, su %lld, ss %lld, bf16 %lld;",
            (long long)c.by_kind[0], (long long)c.by_kind[1], (long long)c.by_kind[2],
            (long long)c.by_kind[3], (long long)c.by_kind[4]);
    fprintf(stderr, " %lld configurations, %lld threads with tiles at the end\n",
            (long long)c.configured, (long long)c.in_use);
    fflush(NULL);
    if (!c.products || c.in_use)
        _exit(1);
}

const struct mgx_cpu *__wrap_mgx_cpu(void)
{
    pthread_once(&once, pretend);
    return &cpu;
}
