// SPDX-License-Identifier: MIT
// What printing and reading of the text form share: quoting, and a scanner over bytes that counts
// lines. Nothing here allocates but the strings it returns, in the caller's arena.
#pragma once

#include "ir/shape.h"

// Bare where that reads back as the same string, else in double quotes with JSON's escapes.
void mgx_text_print(struct mgx_str *out, const char *text);
// The same, but only a name of letters, digits and underscores stays bare.
void mgx_text_print_word(struct mgx_str *out, const char *text);
void mgx_text_quote(struct mgx_str *out, const char *text, size_t size);
// %g with six digits, as C++ streams print; NaN without its sign.
void mgx_text_print_double(struct mgx_str *out, double value);
