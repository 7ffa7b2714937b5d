// SPDX-License-Identifier: MIT
// Unpacking deflated bytes (RFC 1951).
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Writes exactly `size` bytes; false if `packed` does not hold them.
bool inflate(const unsigned char *packed, size_t packed_size, unsigned char *out, size_t size);
