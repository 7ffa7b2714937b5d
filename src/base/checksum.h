// SPDX-License-Identifier: MIT
// Checksums for files: 64 bits, the same on every machine.
//
// Holds: they tell damage, not forgery. A change inside one word (4 bytes; of mgx_checksum_old 8)
// changes the sum for certain, other changes but for a chance of 2^-32 where they meet one lane,
// and of 2^-64 where they meet many.
// Cost: on Zen 3 a 30th of a nanosecond per byte of mgx_checksum in the cache with AVX2 (bytes from
// memory take three times as long to come), an eighth without; a tenth of mgx_checksum_old.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t mgx_checksum(const void *data, size_t size);
// The same without the vector registers that not every machine has: for tests.
uint64_t mgx_checksum_plain(const void *data, size_t size);
uint64_t mgx_checksum_avx2(const void *data, size_t size); // where the machine has AVX2
// Of files that were written before mgx_checksum was as it is.
uint64_t mgx_checksum_old(const void *data, size_t size);
