// SPDX-License-Identifier: MIT
// Writing of words, strings and numbers; see text.h.
#include "ir/text.h"

#include <math.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"

void mgx_text_quote(struct mgx_str *out, const char *text, size_t size)
{
    mgx_str_putc(out, '"');
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            mgx_str_putc(out, '\\');
        if (c < 0x20 || c == 0x7f)
            mgx_str_printf(out, "\\u%04x", c);
        else
            mgx_str_putc(out, (char)c);
    }
    mgx_str_putc(out, '"');
}

void mgx_text_print_word(struct mgx_str *out, const char *text)
{
    const bool bare = *text && !strchr(DIGITS, *text) && !text[strspn(text, LETTERS DIGITS)];
    if (bare)
        mgx_str_put(out, text);
    else
        mgx_text_quote(out, text, strlen(text));
}

void mgx_text_print(struct mgx_str *out, const char *text)
{
    const size_t size = strlen(text);
    bool bare = size == 0 || (text[0] != ' ' && text[size - 1] != ' ');
    for (size_t i = 0; i < size; i++)
        bare &=
            (unsigned char)text[i] >= 0x20 && text[i] != 0x7f && !strchr(",[]{}()\"#\\", text[i]);
    if (bare)
        mgx_str_put(out, text);
    else
        mgx_text_quote(out, text, size);
}

void mgx_text_print_double(struct mgx_str *out, double value)
{
    if (isnan(value))
        mgx_str_put(out, "nan"); // the sign of a NaN is noise
    else
        mgx_str_printf(out, "%g", value);
}
