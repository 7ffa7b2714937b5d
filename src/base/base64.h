// SPDX-License-Identifier: MIT
// Bytes as text: the URL-safe alphabet (A-Z a-z 0-9 - _), no padding. Cost: O(size).
#pragma once

#include <stdint.h>

#include "base/arena.h"

// NULL when out of memory.
char *mgx_base64_encode(struct mgx_arena *arena, const void *data, size_t size);
// False on text that is not base64, or when out of memory (arena->failed).
bool mgx_base64_decode(struct mgx_arena *arena, const char *text, void **data, size_t *size);
