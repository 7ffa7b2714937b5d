// SPDX-License-Identifier: MIT
#include "targets/cpu/machine/cpuid.h"

#include <string.h>

#include "check.h"
#include "targets/cpu/kernel/kernel.h"

static const struct {
    const char *name;
    mgx_isa set;
} named[] = {
#define X(name, text) {text, MGX_ISA_##name},
    MGX_ISA_LIST(X)
#undef X
};

enum { NAMED = sizeof named / sizeof *named };

CASE(a_name_is_taken_where_the_machine_has_it)
{
    const mgx_isa machine = mgx_cpu()->isa;
    mgx_isa isa;
    CHECK_INT(mgx_isa_require(NULL, &isa, NULL), MGX_OK);
    CHECK(isa == (machine & mgx_isa_needed()));
    for (int i = 0; i < NAMED; i++) {
        const bool has = mgx_isa_holds(machine, named[i].set);
        CHECK_INT(mgx_isa_require(named[i].name, &isa, NULL), has ? MGX_OK : MGX_UNSUPPORTED);
        CHECK(!has || isa == (named[i].set & mgx_isa_needed()));
        CHECK_TEXT(mgx_isa_name(named[i].set), named[i].name);
    }
}

// What is printed is read back, of every set that a kernel needs.
CASE(every_set_of_a_kernel_has_a_text)
{
    mgx_isa set, isa, last = 0;
    int i = 0;
    for (; mgx_kernel_isa(i, &set); i++) {
        CHECK_INT(mgx_isa_require(mgx_isa_name(set), &isa, NULL), MGX_OK);
        CHECK(isa == set && (i == 0 || set > last));
        last = set;
    }
    CHECK(i >= 1);
    CHECK_TEXT(mgx_isa_name(MGX_ISA_AVX512 | MGX_HAS(AVX_VNNI)), "avx512+avx_vnni");
    CHECK_TEXT(mgx_isa_name(MGX_HAS(AVX)), "generic+avx");
}

CASE(features_come_and_go)
{
    const mgx_isa machine = mgx_cpu()->isa;
    mgx_isa isa;
    CHECK_INT(mgx_isa_require("native", &isa, NULL), MGX_OK);
    CHECK(isa == (machine & mgx_isa_needed()));
    CHECK_INT(mgx_isa_require("native-avx2", &isa, NULL), MGX_OK);
    CHECK(!(isa & MGX_HAS(AVX2)));
    struct mgx_diag diag = {0};
    if (mgx_isa_holds(machine, MGX_ISA_AVX2)) {
        CHECK_INT(mgx_isa_require("generic+avx2-avx2+avx", &isa, &diag), MGX_OK);
        CHECK(isa == MGX_HAS(AVX));
    }
    CHECK_INT(mgx_isa_require("sse9", &isa, &diag), MGX_INVALID);
    CHECK(strstr(diag.text, "unknown instruction set \"sse9\"; there are generic "));
    CHECK(strstr(diag.text, " avx2 "));
    diag = (struct mgx_diag){0};
    CHECK_INT(mgx_isa_require("generic+native", &isa, &diag), MGX_INVALID);
    CHECK(strstr(diag.text, "unknown instruction set \"native\"; there are "));
    CHECK(strstr(diag.text, " fma"));
    CHECK_INT(mgx_isa_require("", &isa, NULL), MGX_INVALID);
    CHECK_INT(mgx_isa_require("generic+", &isa, NULL), MGX_INVALID);
    // No machine has the features of two families.
    CHECK_INT(mgx_isa_require("generic+avx+neon", &isa, NULL), MGX_UNSUPPORTED);
}

#if defined(__x86_64__)
// The compiler's own detection is the second opinion.
CASE(agrees_with_the_compiler)
{
    const mgx_isa isa = mgx_cpu()->isa;
#define SAME(feature, text)                                                                        \
    CHECK_INT((isa & MGX_HAS(feature)) != 0, __builtin_cpu_supports(text) != 0)
    SAME(AVX, "avx");
    SAME(FMA, "fma");
    SAME(AVX2, "avx2");
    SAME(AVX512F, "avx512f");
    SAME(AVX512DQ, "avx512dq");
    SAME(AVX512BW, "avx512bw");
    SAME(AVX512VL, "avx512vl");
    SAME(AVX512_VNNI, "avx512vnni");
    SAME(AVX512_BF16, "avx512bf16");
}
#else
CASE(agrees_with_the_compiler)
{
}
#endif

TEST_MAIN(ROW(a_name_is_taken_where_the_machine_has_it) ROW(every_set_of_a_kernel_has_a_text)
              ROW(features_come_and_go) ROW(agrees_with_the_compiler))
