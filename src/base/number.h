// SPDX-License-Identifier: MIT
// Numbers as text, the same under every locale: a program that has set one with a decimal comma
// still reads and writes models, rules and caches with a point. Everything in src/ that reads a
// real number or formats one goes through here; mgx_str_printf, mgx_fail and mgx_where do.
//
// Cost: where the locale has a decimal point, what strtod and vsnprintf cost; else a switch of the
// thread's locale there and back.
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/status.h"

double mgx_number_read(const char *text, char **end);                         // strtod
int mgx_number_vformat(char *to, size_t size, const char *fmt, va_list args); // vsnprintf
int mgx_number_format(char *to, size_t size, const char *fmt, ...) MGX_PRINTF(3, 4);
