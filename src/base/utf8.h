// SPDX-License-Identifier: MIT
// UTF-8: one code point at a time, and simple case mapping.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The code point at text[*at], which moves on; a malformed byte counts as a code point of its own
// (0xDC80 + byte).
uint32_t mgx_utf8_next(const char *text, size_t size, size_t *at);
// Writes 1 to 4 bytes, returns how many; undoes mgx_utf8_next, malformed bytes included.
size_t mgx_utf8_put(char *out, uint32_t code);
// One-to-one mappings of Latin, Greek, Cyrillic and Armenian letters; others stay.
uint32_t mgx_utf8_lower(uint32_t code);
uint32_t mgx_utf8_upper(uint32_t code);
