// SPDX-License-Identifier: MIT
// AMD's matrix instructions on an ordinary processor: which register of which lane holds which
// element, by the formulas that AMD's matrix instruction calculator and ISA documents give.
#pragma once

#include <stdbool.h>

enum { MATRIX_LANES = 64 };

struct matrix_lane { // of one lane
    const void *a, *b;
    const void *c; // floats, or of bytes integers of 32 bits
    void *d;
};

struct matrix_instruction {
    const char *name; // as the compiler's word has it, behind __builtin_amdgcn_
    int wave, m, n, k;
    // Of a's elements and of b's: 'h' half, 'b' bf16, 'f' float, 's' bytes with a sign, 'u' without; fp8
    // 'e' E4M3 and 'v' E5M2, 'E' and 'V' of AMD's kinds.
    char type[2];
    int generation; // 9: MFMA, 11 and 12: WMMA of RDNA 3 and 4
};

const struct matrix_instruction *matrix_find(const char *name);
int matrix_operand_bytes(const struct matrix_instruction *in); // of a or b, a lane
int matrix_sums(const struct matrix_instruction *in);          // a lane
// d = a * b + c for all lanes of a wave. False: lanes that must hold the same do not.
bool matrix_multiply(const struct matrix_instruction *in, const struct matrix_lane *lanes);
