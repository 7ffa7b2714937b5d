// SPDX-License-Identifier: MIT
// Writing of words, strings and numbers; see text.h.
#include "ir/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

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

// As mgx_text_print, but only a name of letters, digits and underscores stays bare.
static void print_word(struct mgx_str *out, const char *text)
{
    const bool bare = *text && !strchr(DIGITS, *text) && !text[strspn(text, LETTERS DIGITS)];
    if (bare)
        mgx_str_put(out, text);
    else
        mgx_text_quote(out, text, strlen(text));
}

// True if the text survives between separators unquoted. A lone '#' does ("main:#output_0"), one
// that could start a list of symbols does not.
static bool is_plain(const char *text, size_t size)
{
    if (size && (text[0] == ' ' || text[size - 1] == ' '))
        return false;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f || strchr(",[]{}()\"'\\", c))
            return false;
    }
    return !strstr(text, " #") && !strstr(text, " = ") && !strstr(text, "->") &&
           !strstr(text, "  ");
}

void mgx_text_print(struct mgx_str *out, const char *text)
{
    const size_t size = strlen(text);
    if (is_plain(text, size))
        mgx_str_put(out, text);
    else
        mgx_text_quote(out, text, size);
}

void mgx_text_print_double(struct mgx_str *out, double value)
{
    if (isnan(value))
        mgx_str_put(out, "nan"); // its sign is noise
    else
        mgx_str_printf(out, "%g", value);
}

void mgx_text_print_exact(struct mgx_str *out, double value)
{
    char digits[64];
    for (int precision = 15; precision <= 17; precision++) {
        mgx_number_format(digits, sizeof digits, "%.*g", precision, value);
        if (mgx_number_read(digits, NULL) == value)
            break;
    }
    mgx_str_put(out, digits);
}

void mgx_text_print_dim(struct mgx_str *out, const struct mgx_dim *d)
{
    if (mgx_dim_is_fixed(d)) {
        mgx_str_printf(out, "%lld", (long long)d->max);
        return;
    }
    if (d->name && d->name[0] != '=') // a formula follows from the names again
        print_word(out, d->name);
    if (d->max == MGX_DIM_ANY) // no end that anybody chose
        mgx_str_printf(out, "[%lld..]", (long long)d->min);
    else
        mgx_str_printf(out, "[%lld..%lld]", (long long)d->min, (long long)d->max);
}
