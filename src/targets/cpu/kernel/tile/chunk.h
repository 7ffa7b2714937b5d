// SPDX-License-Identifier: MIT
// Weights of bytes in an order in which vpmaddubsw never saturates, so that products of bytes run
// at its speed and their sums are exact, whatever the weights.
//
// The instruction multiplies unsigned bytes of A by signed ones of B and adds two neighbouring
// products in 16 bits. With A up to 255 that is exact as long as the positive weights that meet in
// one sum are together no more than 128, and the negative ones no less than -128. Most pairs of
// trained weights keep this, and many fours of them.
//
//     chunk    four values of A side by side, from any byte on, times 8 columns of weights: in
//              every column two sums of two products
//              offset in A | 32 weights
//     pair     two chunks that keep the limit together: their sums are added in 16 bits before
//              they are widened, which takes three multiplications for 64 products in place of four
//
// A panel of 8 columns is a list of chunks that adds up to its weights: a weight that does not fit
// beside its neighbour waits, wholly or in part, for the next chunk, which begins earlier then.
// Values whose weights are 0 in all 8 columns are left out. Of normally distributed weights whose
// largest is 127 there are 1.00 to 1.10 chunks for every four values, and 70 to 100 % of them find
// a partner.
//
//     panel:  header with what sums begin with | offsets | weights; of both the pairs' from the
//             front, the others' from the end on
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile/tile.h"

enum { MGX_CHUNK_COLS = 8, MGX_CHUNK_VALUES = 4 };

struct mgx_chunk_header {
    int32_t pairs, singles;
    int32_t unused[6];
    int32_t starts[MGX_CHUNK_COLS];
};

// What is packed: columns of weights whose depth is a number of taps, each a run of values that lie
// side by side in A. A run is one kernel element's channels, or several elements' with `inner`
// values each, of which only the first `valid` have weights. Strides are in elements.
struct mgx_chunk_matrix {
    const void *b;
    enum mgx_kernel_type type; // S8 or U8
    const int32_t *zero;       // [columns] or NULL: taken off the weights
    int64_t columns, taps, run, inner, valid;
    int64_t row, col;            // of B, from value to value of an element, and between columns
    int64_t kernel[3], space[3]; // kernel elements, in the order of taps, and their strides
    const int64_t *offset;       // of every tap in A, in bytes; NULL: 0
    int shift;                   // A is larger by this
};

// Whether chunks can say where all values are, in 16 bits, and runs are long enough.
bool mgx_chunk_fits(const struct mgx_chunk_matrix *m);
// The number of chunks of the largest panel. It reads all weights.
int64_t mgx_chunk_count(const struct mgx_chunk_matrix *m);
// Whether so many chunks are worth it beside bytes widened to 16 bits: where they are half more
// than the depth needs, those are as fast in any case, and from a quarter on (few chunks find a
// partner then) where A is `quickly` widened and serves many columns.
bool mgx_chunk_pays(const struct mgx_chunk_matrix *m, int64_t most, bool quickly);

// Bytes of a panel of `most` chunks, and where its weights begin.
int64_t mgx_chunk_panel_bytes(int64_t most);
static inline int64_t mgx_chunk_weights_at(int64_t most)
{
    return (int64_t)sizeof(struct mgx_chunk_header) +
           (most * (int64_t)sizeof(uint16_t) + 31) / 32 * 32;
}

// Room in which panels are put in order before they are packed, one after the other; starts as
// zeros. Without memory for it they are packed as they lie.
struct mgx_chunk_stripe {
    uint64_t *values;
    int64_t room, first; // values; the first panel that is there
    const void *of;      // B
};

// Packs columns 8 p and on. `stripe` may be NULL.
void mgx_chunk_pack(const struct mgx_chunk_matrix *m, int64_t p, int64_t most,
                    struct mgx_chunk_stripe *stripe, void *panel);
void mgx_chunk_stripe_free(struct mgx_chunk_stripe *stripe);

// Points the arguments of a tile at a panel.
static inline void mgx_chunk_set(const char *panel, int64_t most, struct mgx_tile_args *args)
{
    const struct mgx_chunk_header *h = (const struct mgx_chunk_header *)(const void *)panel;
    const int64_t single = most - h->singles;
    args->chunks.offsets = (const uint16_t *)(const void *)(panel + sizeof *h);
    args->chunks.pairs = h->pairs;
    args->chunks.singles = h->singles;
    args->chunks.single_offsets = args->chunks.offsets + single;
    args->start = h->starts;
    args->b = panel + mgx_chunk_weights_at(most);
    args->chunks.single_b = args->b + single * MGX_CHUNK_COLS * MGX_CHUNK_VALUES;
}
