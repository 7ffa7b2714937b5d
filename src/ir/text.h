// SPDX-License-Identifier: MIT
// Writing the words, strings and numbers of the text form; see scan.h for reading them.
#pragma once

#include "ir/shape.h"

// Bare where that reads back as the same string, else in double quotes with JSON's escapes.
void mgx_text_print(struct mgx_str *out, const char *text);
void mgx_text_quote(struct mgx_str *out, const char *text, size_t size);
// %g with six digits, as C++ streams print; NaN without its sign.
void mgx_text_print_double(struct mgx_str *out, double value);
// The fewest of 15 to 17 digits that read back as the same finite double.
void mgx_text_print_exact(struct mgx_str *out, double value);
// "3", "[1..4]", "n[1..4]".
void mgx_text_print_dim(struct mgx_str *out, const struct mgx_dim *d);
