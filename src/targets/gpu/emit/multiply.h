// SPDX-License-Identifier: MIT
// The matrix instruction of Hopper's warpgroups as a function of a kernel's text.
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct gpu_multiply {
    const char *name; // of the function
    const char *type; // of the operands: "f16", "bf16", "tf32"; of a "s8", "u8", "e4m3", "e5m2"
    const char *of_b; // of eight bits, what b has of those; NULL: `type`
    int columns;      // of b and of the sums, a multiple of 8
    bool registers;   // a is four words a thread, else it lies in shared memory
    bool whole;       // sums are integers of 32 bits, as those of bytes are
    bool turned;      // b's columns are lines in shared memory, else its depth is
};

// "FUNCTION void NAME(float (&d)[columns / 2], a, u64 b, int more)": 64 rows by the columns, 32 bytes
// deep, added to d if there is `more`. a and b in shared memory are given by their descriptors.
void gpu_emit_multiply(struct mgx_str *out, const struct gpu_multiply *m);
