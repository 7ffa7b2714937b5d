// SPDX-License-Identifier: MIT
// Which matrix units cards have, by their architecture's name.
#include "targets/gpu/lower/units.h"

#include "check.h"

static const char *name_of(const char *arch, int version, int warp, enum mgx_type type)
{
    struct gpu_device d = {.properties = {.version = version, .warp = warp}};
    snprintf(d.properties.arch, sizeof d.properties.arch, "%s", arch);
    const struct gpu_units *u = gpu_units_find(&d, type);
    return !u ? "none" : u->instruction ? u->instruction : u->name;
}

CASE(units_follow_from_the_architecture)
{
    static const struct {
        const char *arch;
        int version, warp;
        const char *of_half, *of_bf16, *of_float, *of_bytes;
    } cards[] = {
        {"sm_70", 70, 32, "none", "none", "none", "none"},
        {"sm_75", 75, 32, "mma", "none", "none", "mma"},
        {"sm_90a", 90, 32, "mma", "mma", "mma", "mma"},
        {"gfx906:sramecc+:xnack-", 0, 64, "none", "none", "none", "none"},
        {"gfx908:sramecc+:xnack-", 0, 64, "mfma_f32_16x16x16f16", "mfma_f32_16x16x8bf16",
         "mfma_f32_16x16x4f32", "mfma_i32_16x16x16i8"},
        {"gfx90a:sramecc+:xnack-", 0, 64, "mfma_f32_16x16x16f16", "mfma_f32_16x16x16bf16_1k",
         "mfma_f32_16x16x4f32", "mfma_i32_16x16x16i8"},
        {"gfx942", 0, 64, "mfma_f32_16x16x16f16", "mfma_f32_16x16x16bf16_1k", "mfma_f32_16x16x4f32",
         "mfma_i32_16x16x32_i8"},
        {"gfx928", 0, 64, "none", "none", "none", "none"}, // a DCU card
        {"gfx1030", 0, 32, "none", "none", "none", "none"},
        {"gfx1100", 0, 32, "wmma_f32_16x16x16_f16_w32", "wmma_f32_16x16x16_bf16_w32", "none",
         "wmma_i32_16x16x16_iu8_w32"},
        {"gfx1100", 0, 64, "none", "none", "none", "none"}, // waves of another size than the text's
        {"gfx1201", 0, 32, "wmma_f32_16x16x16_f16_w32_gfx12", "wmma_f32_16x16x16_bf16_w32_gfx12",
         "none", "wmma_i32_16x16x16_iu8_w32_gfx12"},
        {"gfx1250", 0, 32, "none", "none", "none", "none"},
        {"OpenCL 3.0", 0, 1, "none", "none", "none", "none"},
    };
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const char *arch = cards[i].arch;
        const int version = cards[i].version, warp = cards[i].warp;
        CHECK_TEXT(name_of(arch, version, warp, MGX_HALF), cards[i].of_half);
        CHECK_TEXT(name_of(arch, version, warp, MGX_BF16), cards[i].of_bf16);
        CHECK_TEXT(name_of(arch, version, warp, MGX_FLOAT), cards[i].of_float);
        CHECK_TEXT(name_of(arch, version, warp, MGX_INT8), cards[i].of_bytes);
    }
}

CASE(fp8_is_taken_as_it_lies_where_units_know_its_kind)
{
    static const struct {
        const char *arch;
        int version, warp;
        enum mgx_type a, b;
        bool there;
    } cards[] = {
        {"sm_80", 80, 32, MGX_FP8E4M3FN, MGX_FP8E4M3FN, false},
        {"sm_89", 89, 32, MGX_FP8E4M3FN, MGX_FP8E5M2, true},
        {"sm_89", 89, 32, MGX_FP8E4M3FNUZ, MGX_FP8E4M3FN, false},
        {"gfx90a", 0, 64, MGX_FP8E4M3FN, MGX_FP8E4M3FN, false},
        {"gfx942", 0, 64, MGX_FP8E4M3FN, MGX_FP8E5M2FNUZ, true},
        {"gfx942", 0, 64, MGX_FP8E5M2, MGX_FP8E4M3FN, false},
        {"gfx950", 0, 64, MGX_FP8E5M2, MGX_FP8E4M3FN, true},
        {"gfx950", 0, 64, MGX_FP8E4M3FNUZ, MGX_FP8E4M3FN, false},
        {"gfx1100", 0, 32, MGX_FP8E4M3FN, MGX_FP8E4M3FN, false},
        {"gfx1201", 0, 32, MGX_FP8E4M3FN, MGX_FP8E5M2, true},
    };
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        struct gpu_device d = {.properties = {.version = cards[i].version, .warp = cards[i].warp}};
        snprintf(d.properties.arch, sizeof d.properties.arch, "%s", cards[i].arch);
        CHECK((gpu_units_find_fp8(&d, cards[i].a, cards[i].b) != NULL) == cards[i].there);
    }
}

TEST_MAIN(ROW(units_follow_from_the_architecture)
              ROW(fp8_is_taken_as_it_lies_where_units_know_its_kind))
