// SPDX-License-Identifier: MIT
// A tile unit in software: with it the machine code of kernels for Intel AMX runs on any x86-64.
// The processor refuses a tile instruction (SIGILL), the handler decodes it, computes what the
// manual says, and goes on behind it. Every thread has tiles of its own. About a microsecond for a
// load or a store, a few for a product.
//
// It is stricter than a test can be otherwise: what a processor would answer by a fault (shapes
// that do not go together, tiles that are not configured, rows and columns beyond the palette) and
// what no kernel of ours means (a restart row, an instruction that is encoded oddly) ends the
// process with a message.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Installs the handler; again: nothing. Before the first tile instruction of the process.
void amx_emulate(void);

// What has been executed since the start, by all threads.
struct amx_counts {
    int64_t products;   // TDP..., all of them
    int64_t by_kind[5]; // TDPBUUD, TDPBUSD, TDPBSUD, TDPBSSD, TDPBF16PS
    int64_t configured; // LDTILECFG
    int64_t in_use;     // threads whose tiles are configured now
};
struct amx_counts amx_counts(void);

// Multiplies by what any x86-64 has, not by the vectors of this one: the second opinion.
void amx_emulate_plainly(bool plainly);
