// SPDX-License-Identifier: MIT
// The folder of compiled kernels; code.h says what holds of it.
#pragma once

#include <stdint.h>

#include "base/str.h"

struct gpu_store_key {
    const char *card; // architecture and compiler
    const char *text; // the source
};

// 128 bits of a key.
void gpu_store_hash(const struct gpu_store_key *key, uint64_t out[2]);
// The binary kept for this key, appended to *out; false when there is none that fits.
bool gpu_store_read(const char *folder, const struct gpu_store_key *key, struct mgx_str *out);
// Keeps a binary and thins the folder out when it has grown beyond `bound` bytes. Best effort: a
// folder that cannot be written costs time, not results.
void gpu_store_write(const char *folder, const struct gpu_store_key *key, const char *binary,
                     size_t size, size_t bound);
