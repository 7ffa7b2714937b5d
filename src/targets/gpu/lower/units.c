// SPDX-License-Identifier: MIT
// Which matrix units a card has, from its version (CUDA) or its architecture's name (HIP).
//
//     mma     NVIDIA, half and bytes from sm_75 on; bf16 from sm_80 on, and floats as pieces of bf16;
//             fp8 from sm_89 on
//     mfma    AMD's CDNA: gfx908, gfx90a, gfx940 to gfx950; half, bf16, true float and bytes; fp8 from
//             gfx940 on, of AMD's own kinds before gfx950
//     wmma    AMD's RDNA 3 and 4: gfx110x, gfx115x, gfx120x; half, bf16 and bytes, fp8 on gfx120x
//
// Other cards multiply on their ordinary units: gfx906, RDNA 1 and 2, and DCU cards, whose units have
// instructions of their own.
#include "targets/gpu/lower/units.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"

enum { SM_75 = 1 << 0, SM_80 = 1 << 1, CDNA_1 = 1 << 2, CDNA_2 = 1 << 3, CDNA_3 = 1 << 4 };
enum { RDNA_3 = 1 << 5, RDNA_4 = 1 << 6, SM_89 = 1 << 7, CDNA_4 = 1 << 8 };
enum { CDNA_34 = CDNA_3 | CDNA_4, CDNA_234 = CDNA_2 | CDNA_34, CDNA = CDNA_1 | CDNA_234 };

static const struct gpu_units rows[] = {
    {"mma", SM_75 | SM_80 | SM_89, MGX_HALF, 32, NULL, 0, 0},
    {"mma", SM_80 | SM_89, MGX_BF16, 32, NULL, 0, 0},
    {"mma", SM_80 | SM_89, MGX_FLOAT, 32, NULL, 0, 0},
    {"mma", SM_75 | SM_80 | SM_89, MGX_INT8, 32, NULL, 0, 0},
    {"mma", SM_89, MGX_FP8E4M3FN, 32, NULL, 0, 0},
    {"mfma", CDNA, MGX_HALF, 64, "mfma_f32_16x16x16f16", 4, 4},
    {"mfma", CDNA_1, MGX_BF16, 64, "mfma_f32_16x16x8bf16", 4, 2},
    {"mfma", CDNA_234, MGX_BF16, 64, "mfma_f32_16x16x16bf16_1k", 4, 4},
    {"mfma", CDNA, MGX_FLOAT, 64, "mfma_f32_16x16x4f32", 4, 1},
    {"mfma", CDNA_1 | CDNA_2, MGX_INT8, 64, "mfma_i32_16x16x16i8", 4, 4},
    {"mfma", CDNA_34, MGX_INT8, 64, "mfma_i32_16x16x32_i8", 8, 8},
    {"mfma", CDNA_3, MGX_FP8E4M3FNUZ, 64, "mfma_f32_16x16x32_fp8_fp8", 8, 8},
    {"mfma", CDNA_4, MGX_FP8E4M3FN, 64, "mfma_f32_16x16x32_fp8_fp8", 8, 8},
    {"wmma", RDNA_3, MGX_HALF, 32, "wmma_f32_16x16x16_f16_w32", 16, 16},
    {"wmma", RDNA_3, MGX_BF16, 32, "wmma_f32_16x16x16_bf16_w32", 16, 16},
    {"wmma", RDNA_4, MGX_HALF, 32, "wmma_f32_16x16x16_f16_w32_gfx12", 8, 8},
    {"wmma", RDNA_4, MGX_BF16, 32, "wmma_f32_16x16x16_bf16_w32_gfx12", 8, 8},
    {"wmma", RDNA_3, MGX_INT8, 32, "wmma_i32_16x16x16_iu8_w32", 16, 16},
    {"wmma", RDNA_4, MGX_INT8, 32, "wmma_i32_16x16x16_iu8_w32_gfx12", 8, 8},
    {"wmma", RDNA_4, MGX_FP8E4M3FN, 32, "wmma_f32_16x16x16_fp8_fp8_w32_gfx12", 8, 8},
};

static const struct {
    const char *begins; // the architecture's name
    unsigned cards;
} names[] = {{"gfx908", CDNA_1}, {"gfx90a", CDNA_2}, {"gfx94", CDNA_3}, {"gfx950", CDNA_4},
             {"gfx110", RDNA_3}, {"gfx115", RDNA_3}, {"gfx120", RDNA_4}};

static unsigned cards_of(const struct gpu_properties *p)
{
    if (p->version)
        return p->version >= 89 ? SM_89 : p->version >= 80 ? SM_80 : p->version >= 75 ? SM_75 : 0;
    for (int i = 0; i < MGX_COUNT(names); i++)
        if (strncmp(p->arch, names[i].begins, strlen(names[i].begins)) == 0)
            return names[i].cards;
    return 0;
}

const struct gpu_units *gpu_units_find(const struct gpu_device *d, enum mgx_type type)
{
    const unsigned cards = cards_of(&d->properties);
    for (int i = 0; i < MGX_COUNT(rows); i++)
        if ((rows[i].cards & cards) && rows[i].type == type && rows[i].wave == d->properties.warp)
            return &rows[i];
    return NULL;
}

static bool is_e4m3(enum mgx_type type)
{
    return type == MGX_FP8E4M3FN || type == MGX_FP8E4M3FNUZ;
}

static bool is_ocp(enum mgx_type type)
{
    return type == MGX_FP8E4M3FN || type == MGX_FP8E5M2;
}

// OCP's E5M2 has infinities, which AMD's kind has no number for.
static bool can_be_fnuz(enum mgx_type type)
{
    return type != MGX_FP8E5M2;
}

const struct gpu_units *gpu_units_find_fp8(const struct gpu_device *d, enum mgx_type a,
                                           enum mgx_type b)
{
    const struct gpu_units *u = NULL;
    if (is_ocp(a) && is_ocp(b))
        u = gpu_units_find(d, MGX_FP8E4M3FN);
    return u || !can_be_fnuz(a) || !can_be_fnuz(b) ? u : gpu_units_find(d, MGX_FP8E4M3FNUZ);
}

int gpu_units_pieces(const struct gpu_units *u, bool tf32)
{
    return u->type != MGX_FLOAT || u->instruction ? 1 : tf32 ? 2 : 3;
}

static void emit_mma(struct mgx_str *out, enum mgx_type type)
{
    GPU_PUT(out, lines);
    GPU_PUT(out, tiles);
    if (type == MGX_INT8 || mgx_type_is_fp8(type)) {
        mgx_str_put(out, type == MGX_INT8 ? "#define MMA_SUM \"s32\"\n#define MMA_HELD \"+r\"\n"
                                          : "#define MMA_SUM \"f32\"\n#define MMA_HELD \"+f\"\n");
        GPU_PUT(out, units_mma_bytes);
        return;
    }
    mgx_str_printf(out, "#define MMA_TYPE \"%s\"\n#define pair_bits %s\n",
                   type == MGX_HALF ? "f16" : "bf16", type == MGX_HALF ? "pair_half" : "pair_bf16");
    GPU_PUT(out, units_mma);
}

static const char *element_of(enum mgx_type type)
{
    return type == MGX_HALF        ? "half_bits_t"
           : type == MGX_BF16      ? "short"
           : type == MGX_INT8      ? "i8"
           : mgx_type_is_fp8(type) ? "u8"
                                   : "float";
}

// How an instruction takes the bytes of a lane.
static void emit_packed(struct mgx_str *out, const struct gpu_units *u)
{
    if (u->wave == 64)
        mgx_str_printf(out, "#define PACKED %s\n", u->taken == 8 ? "long" : "int");
    else
        mgx_str_printf(out, "#define PACKED int __attribute__((ext_vector_type(%d)))\n",
                       u->taken / 4);
}

// UNITS_MULTIPLY. One of fp8 is named after its operands' kinds.
static void emit_instruction(struct mgx_str *out, const struct gpu_units *u)
{
    static const char kinds[] = "fp8_fp8";
    const char *at = strstr(u->instruction, kinds);
    if (at)
        mgx_str_printf(out, "#define UNITS_OF(a, b) __builtin_amdgcn_%.*s##a##_##b%s%s\n",
                       (int)(at - u->instruction), u->instruction, at[strlen(kinds)] ? "##" : "",
                       at + strlen(kinds));
    mgx_str_printf(out, "#define UNITS_MULTIPLY(a, b, sums) %s%s",
                   at ? "UNITS_OF_KINDS(A_KIND, B_KIND)" : "__builtin_amdgcn_",
                   at ? "" : u->instruction);
    mgx_str_put(out, u->wave == 64         ? "(a, b, sums, 0, 0, 0)\n"
                     : u->type == MGX_INT8 ? "(A_SIGNED, a, B_SIGNED, b, sums, false)\n"
                                           : "(a, b, sums)\n");
    if (at)
        mgx_str_put(out, "#define UNITS_OF_KINDS(a, b) UNITS_OF(a, b)\n");
}

static void emit_amd(struct mgx_str *out, const struct gpu_units *u)
{
    const bool bytes = u->type == MGX_INT8;
    mgx_str_printf(out,
                   "#define WAVE %d\n#define TOTAL %s\n#define MEMORY %s\n#define ELEMENT %s\n"
                   "#define to_element(x) (ELEMENT)%s(x)\n#define HELD %d\n#define TAKEN %d\n"
                   "#define ROWS_APART %d\n",
                   u->wave, bytes ? "i32" : "float", gpu_type_memory(u->type), element_of(u->type),
                   u->type == MGX_BF16 ? "to_bf16" : "", u->held, u->taken,
                   u->cards == RDNA_3 ? 2 : 1);
    emit_instruction(out, u);
    if (bytes || mgx_type_is_fp8(u->type))
        emit_packed(out, u);
    GPU_PUT(out, units_amd);
}

// Bytes of which MFMA takes those with a sign alone, and fp8 of OCP's kind of which it takes AMD's.
void gpu_emit_units_operands(struct mgx_str *out, const struct gpu_units *u, enum mgx_type a,
                             enum mgx_type b)
{
    for (int i = 0; i < 2; i++) {
        const enum mgx_type type = i ? b : a;
        const bool fp8 = mgx_type_is_fp8(type), has_sign = type == MGX_INT8;
        const bool amd = u->instruction != NULL;
        if (fp8)
            mgx_str_printf(out, "#define MMA_%c \"%s\"\n#define %c_KIND %s\n", "AB"[i],
                           is_e4m3(type) ? "e4m3" : "e5m2", "AB"[i], is_e4m3(type) ? "fp8" : "bf8");
        else
            mgx_str_printf(out, "#define MMA_%c \"%s\"\n#define %c_SIGNED %d\n", "AB"[i],
                           has_sign ? "s8" : "u8", "AB"[i], has_sign);
        mgx_str_printf(out, "#define TURN_%c %d\n#define FNUZ_%c %d\n", "AB"[i],
                       amd && u->wave == 64 && !fp8 && !has_sign, "AB"[i],
                       amd && u->type == MGX_FP8E4M3FNUZ && is_ocp(type));
    }
}

void gpu_emit_units(struct mgx_str *out, const struct gpu_units *u, int pieces)
{
    assert(pieces >= 1 && pieces <= 3);
    mgx_str_printf(out, "#define PIECES %d\n", pieces);
    if (u->instruction)
        emit_amd(out, u);
    else
        emit_mma(out, u->type);
}
