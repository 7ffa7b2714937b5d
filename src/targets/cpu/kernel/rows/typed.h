// SPDX-License-Identifier: MIT
// Loops over blocks of values of any number type, for element-wise bodies that are not float alone.
//
// A block lives in lanes: int64 for bool and all integers, float for float, half and bfloat16,
// double for double. Loading widens, an operation works on whole lanes, and what it made is cut
// back to the value's own type, so that results are those of the reference bit for bit. The table
// holds one entry per instruction set.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ir/type.h"
#include "op/pointwise.h"
#include "targets/cpu/kernel/kernel.h"

// x, y, z can be read whatever the row's arity.
typedef void (*mgx_typed_fn)(void *out, const void *x, const void *y, const void *z,
                             const struct mgx_line_attr *a, int n);

struct mgx_typed_kernel {
    struct mgx_kernel base;
    // One for every row of the table of scalar operators; NULL where a row has no such text.
    mgx_typed_fn ints[MGX_PW_COUNT], doubles[MGX_PW_COUNT];
    // n values side by side of a type into its lanes and back; NULL: none. Stores cut back.
    void (*load[MGX_TYPE_COUNT])(const void *from, void *lanes, int n);
    void (*store[MGX_TYPE_COUNT])(const void *lanes, void *to, int n);
    // z = x != 0 ? y : z over lanes of 4 or 8 bytes; x in int64.
    void (*where4)(void *out, const int64_t *x, const void *y, const void *z, int n);
    void (*where8)(void *out, const int64_t *x, const void *y, const void *z, int n);
};

MGX_KERNEL_KIND(typed)
