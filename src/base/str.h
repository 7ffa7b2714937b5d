// SPDX-License-Identifier: MIT
// A growable string with sticky failure: append as often as you like, check `failed` once.
// Holds: `text` is NUL-terminated whenever it is not NULL; after a failure the content is what
// fitted.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct mgx_str {
    char *text; // heap, owned; NULL while empty
    size_t size;
    size_t capacity;
    bool failed;
};

// A letter, a digit or an underscore.
static inline bool mgx_is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

void mgx_str_fini(struct mgx_str *s); // {0} is an empty string; fini makes it one again
void mgx_str_put(struct mgx_str *s, const char *text);
void mgx_str_putn(struct mgx_str *s, const char *text, size_t size);
void mgx_str_putc(struct mgx_str *s, char c);
void mgx_str_printf(struct mgx_str *s, const char *fmt, ...) MGX_PRINTF(2, 3);
void mgx_str_vprintf(struct mgx_str *s, const char *fmt, va_list args);

// The text, "" when empty; never NULL.
const char *mgx_str_text(const struct mgx_str *s);

// Hands the heap text to the caller (free() it) and empties s; NULL if any append failed.
char *mgx_str_take(struct mgx_str *s);
