// SPDX-License-Identifier: MIT
// Types narrower than a byte: the host packs their elements, low bits first; the engine has a byte
// for each. What crosses is copied either way.
#include <stdlib.h>

#include "plugin.h"

// By the host's number of the element type.
int narrow_bits(int element)
{
    enum { UINT4 = 21, INT4 = 22, FP4 = 23, UINT2 = 24, INT2 = 25 };
    return element == UINT4 || element == INT4 || element == FP4 ? 4
           : element == UINT2 || element == INT2                 ? 2
                                                                 : 0;
}

static bool is_signed(int element)
{
    enum { INT4 = 22, INT2 = 25 };
    return element == INT4 || element == INT2;
}

void *narrow_unpack(const void *packed, size_t count, int element)
{
    const int bits = narrow_bits(element), sign = 1 << (bits - 1), mask = (1 << bits) - 1;
    const size_t each = 8u / (unsigned)bits;
    unsigned char *out = malloc(count + 1);
    for (size_t i = 0; out && i < count; i++) {
        const unsigned char byte = ((const unsigned char *)packed)[i / each];
        const int value = byte >> (i % each * (size_t)bits) & mask;
        out[i] = (unsigned char)(is_signed(element) && value & sign ? value - 2 * sign : value);
    }
    return out;
}

void narrow_pack(const void *values, size_t count, int element, void *packed)
{
    const int bits = narrow_bits(element), mask = (1 << bits) - 1;
    const size_t each = 8u / (unsigned)bits;
    unsigned char *out = packed;
    for (size_t i = 0; i < count; i++) {
        if (i % each == 0)
            out[i / each] = 0;
        const int value = ((const unsigned char *)values)[i] & mask;
        out[i / each] |= (unsigned char)(value << (i % each * (size_t)bits));
    }
}
