// SPDX-License-Identifier: MIT
// UTF-8 and simple case mapping; see utf8.h.
//
// Case is a table of ranges: upper-case letters first..last, the distance to the lower-case ones,
// and a step: 1 for alphabets that lie side by side, 2 where upper and lower case alternate.
#include "base/utf8.h"

uint32_t mgx_utf8_next(const char *text, size_t size, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text + *at;
    const size_t left = size - *at;
    const unsigned lead = p[0];
    const unsigned length = lead < 0x80                   ? 1
                            : lead >= 0xC2 && lead < 0xE0 ? 2
                            : lead >= 0xE0 && lead < 0xF0 ? 3
                            : lead >= 0xF0 && lead < 0xF5 ? 4
                                                          : 0;
    uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    unsigned good = length > 0 && length <= left;
    for (unsigned i = 1; good && i < length; i++) {
        good = (p[i] & 0xC0) == 0x80;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    if (!good) {
        (*at)++;
        return 0xDC80u + lead;
    }
    *at += length;
    return code;
}

size_t mgx_utf8_put(char *out, uint32_t code)
{
    unsigned char *p = (unsigned char *)out;
    if (code < 0x80) {
        p[0] = (unsigned char)code;
        return 1;
    }
    if (code >= 0xDC80 && code <= 0xDC80 + 0xFF) {
        p[0] = (unsigned char)(code - 0xDC80);
        return 1;
    }
    const unsigned length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = length; i-- > 1; code >>= 6)
        p[i] = (unsigned char)(0x80 | (code & 0x3F));
    p[0] = (unsigned char)((0xF00u >> length) | code);
    return length;
}

struct range {
    uint32_t first, last, distance, step;
};

static const struct range ranges[] = {
    {'A', 'Z', 32, 1},      {0xC0, 0xD6, 32, 1},    {0xD8, 0xDE, 32, 1},   {0x100, 0x12E, 1, 2},
    {0x132, 0x136, 1, 2},   {0x139, 0x147, 1, 2},   {0x14A, 0x176, 1, 2},  {0x179, 0x17D, 1, 2},
    {0x386, 0x386, 38, 1},  {0x388, 0x38A, 37, 1},  {0x38C, 0x38C, 64, 1}, {0x38E, 0x38F, 63, 1},
    {0x391, 0x3A1, 32, 1},  {0x3A3, 0x3AB, 32, 1},  {0x400, 0x40F, 80, 1}, {0x410, 0x42F, 32, 1},
    {0x460, 0x480, 1, 2},   {0x48A, 0x4BE, 1, 2},   {0x4D0, 0x52E, 1, 2},  {0x531, 0x556, 48, 1},
    {0x1E00, 0x1E94, 1, 2}, {0x1EA0, 0x1EFE, 1, 2},
};

uint32_t mgx_utf8_lower(uint32_t code)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct range *r = &ranges[i];
        if (code >= r->first && code <= r->last && (code - r->first) % r->step == 0)
            return code + r->distance;
    }
    return code;
}

uint32_t mgx_utf8_upper(uint32_t code)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct range *r = &ranges[i];
        const uint32_t upper = code - r->distance;
        if (code >= r->distance && upper >= r->first && upper <= r->last &&
            (upper - r->first) % r->step == 0)
            return upper;
    }
    return code;
}
