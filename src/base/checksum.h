// SPDX-License-Identifier: MIT
// A checksum for files: 64 bits, the same on every machine, at the speed of memory.
//
// Holds: it tells damage, not forgery. Any change inside one 8-byte word changes it for certain,
// other changes but for a chance of 2^-64. Cost: a multiplication per 8 bytes, eight at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t mgx_checksum(const void *data, size_t size);
