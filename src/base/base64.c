// SPDX-License-Identifier: MIT
// Base64; see base64.h. Three bytes are four digits; what is left at the end is two or three.
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *mgx_base64_encode(struct mgx_arena *arena, const void *bytes, size_t size)
{
    const uint8_t *data = bytes;
    char *text = mgx_arena_alloc(arena, (size + 2) / 3 * 4 + 1);
    char *p = text;
    for (size_t i = 0; text && i < size; i += 3) {
        const uint32_t a = data[i], b = i + 1 < size ? data[i + 1] : 0,
                       c = i + 2 < size ? data[i + 2] : 0, bits = a << 16 | b << 8 | c;
        const size_t used = size - i < 3 ? size - i + 1 : 4; // no padding: the length says it
        for (size_t k = 0; k < used; k++)
            *p++ = digits[bits >> (18 - 6 * k) & 63];
    }
    return text;
}

static int digit(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool mgx_base64_decode(struct mgx_arena *arena, const char *text, void **data, size_t *size)
{
    const size_t length = strlen(text);
    uint8_t *out = mgx_arena_alloc(arena, length / 4 * 3 + 3);
    uint32_t bits = 0;
    size_t count = 0;
    for (size_t i = 0; out && i < length; i++) {
        const int value = digit(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4)
            out[count++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *data = out;
    *size = count;
    return out != NULL;
}
