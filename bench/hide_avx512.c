// SPDX-License-Identifier: MIT
// A library to preload: the process sees a processor without AVX-512, so that peers which have no
// switch for it can be measured on AVX2.
//
// The kernel makes CPUID fault in each thread (ARCH_SET_CPUID; new threads inherit it), the handler
// of the fault executes the instruction itself and clears the bits of AVX-512, of its companions
// and of AMX. Where the processor cannot fault on CPUID nothing happens but a line on stderr, and
// the process ends: a wrong measurement is worse than none.
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 }; // ARCH_SET_CPUID: 0 faults, 1 does not

static struct sigaction before;

static long let_cpuid(long works)
{
    return syscall(SYS_arch_prctl, SET_CPUID, works);
}

// What must not be seen of leaf 7: subleaf 0 in EBX, ECX and EDX, subleaf 1 in EAX.
static const unsigned hidden_b = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 |
                                 1u << 30 | 1u << 31,
                      hidden_c = 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14,
                      hidden_d =
                          1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25,
                      hidden_a1 = 1u << 4 | 1u << 5 | 1u << 21 | 1u << 22 | 1u << 23;

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    static const unsigned char cpuid[] = {0x0f, 0xa2};
    if (info->si_code != SI_KERNEL || memcmp((const void *)r[REG_RIP], cpuid, sizeof cpuid) != 0) {
        sigaction(SIGSEGV, &before, NULL); // somebody else's: it faults again there
        return;
    }
    (void)number;
    const unsigned leaf = (unsigned)r[REG_RAX], sub = (unsigned)r[REG_RCX];
    unsigned a, b, c, d;
    let_cpuid(1);
    __cpuid_count(leaf, sub, a, b, c, d);
    let_cpuid(0);
    if (leaf == 7 && sub == 0) {
        b &= ~hidden_b;
        c &= ~hidden_c;
        d &= ~hidden_d;
    }
    if (leaf == 7 && sub == 1)
        a &= ~hidden_a1;
    r[REG_RAX] = a;
    r[REG_RBX] = b;
    r[REG_RCX] = c;
    r[REG_RDX] = d;
    r[REG_RIP] += (greg_t)sizeof cpuid;
}

__attribute__((constructor)) static void hide(void)
{
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSEGV, &action, &before) == 0 && let_cpuid(0) == 0)
        return;
    fputs("hide_avx512: this machine cannot fault on CPUID\n", stderr);
    exit(77);
}
