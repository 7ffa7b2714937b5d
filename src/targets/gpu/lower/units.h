// SPDX-License-Identifier: MIT
// The matrix units of a card, as kernel/gemm_units.gpu and its kin use them: which instruction
// multiplies values of a type, and the text that puts its words into the dialect.
#pragma once

#include "base/str.h"
#include "ir/type.h"
#include "targets/gpu/device/device.h"

struct gpu_units {
    const char *name; // of the instructions: "mma", "mfma", "wmma"
    unsigned cards;   // what the row is of, to units.c alone
    enum mgx_type type;
    int wave; // threads that multiply together
    // Of AMD's: the compiler's word for the instruction, values of the depth that a thread holds, and
    // how many of them one instruction takes.
    const char *instruction;
    int held, taken;
};

// How products of two operands of that type are computed, MGX_INT8 for bytes with or without a sign; NULL:
// on the ordinary units.
const struct gpu_units *gpu_units_find(const struct gpu_device *d, enum mgx_type type);
// Of fp8 of these kinds, as they lie. A row of E4M3FN is of OCP's kinds, one of E4M3FNUZ of AMD's, which can
// be made of OCP's E4M3 on the way. NULL: they are taken as half.
const struct gpu_units *gpu_units_find_fp8(const struct gpu_device *d, enum mgx_type a,
                                           enum mgx_type b);
// How many values of fewer bits the units take for one: 1, or of a float on NVIDIA's cards 3, or 2 if
// TF32 will do.
int gpu_units_pieces(const struct gpu_units *u, bool tf32);
// The words that the head of kernel/gemm_units.gpu lists. Of bytes and fp8 gpu_emit_units_operands stands
// before it.
void gpu_emit_units(struct mgx_str *out, const struct gpu_units *u, int pieces);
void gpu_emit_units_operands(struct mgx_str *out, const struct gpu_units *u, enum mgx_type a,
                             enum mgx_type b);
