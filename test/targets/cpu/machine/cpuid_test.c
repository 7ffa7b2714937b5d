// SPDX-License-Identifier: MIT
#include "targets/cpu/machine/cpuid.h"

#include "check.h"

CASE(levels_are_overridable_downwards)
{
    const enum mgx_isa best = mgx_cpu()->isa;
    enum mgx_isa isa;
    CHECK_INT(mgx_isa_require(NULL, &isa, NULL), MGX_OK);
    CHECK_INT(isa, best);
    for (int i = 0; i < MGX_ISA_COUNT; i++) {
        const enum mgx_status expected = i <= (int)best ? MGX_OK : MGX_UNSUPPORTED;
        CHECK_INT(mgx_isa_require(mgx_isa_name((enum mgx_isa)i), &isa, NULL), expected);
        CHECK(expected != MGX_OK || (int)isa == i);
    }
    struct mgx_diag diag = {0};
    CHECK_INT(mgx_isa_require("sse9", &isa, &diag), MGX_INVALID);
    CHECK_TEXT(diag.text, "unknown instruction set \"sse9\"");
}

#if defined(__x86_64__)
// The compiler's own detection is the second opinion.
CASE(agrees_with_the_compiler)
{
    const enum mgx_isa isa = mgx_cpu()->isa;
    CHECK_INT(isa >= MGX_ISA_AVX2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    CHECK_INT(isa >= MGX_ISA_AVX512,
              __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
    CHECK_INT(isa >= MGX_ISA_AVX512_VNNI,
              isa >= MGX_ISA_AVX512 && __builtin_cpu_supports("avx512vnni"));
}
#else
CASE(agrees_with_the_compiler)
{
}
#endif

TEST_MAIN(ROW(levels_are_overridable_downwards) ROW(agrees_with_the_compiler))
