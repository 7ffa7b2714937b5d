// SPDX-License-Identifier: MIT
// The chunks of a panel (chunk.h), one after the other, as packing and counting take them. Two
// walks make the same of any weights: one of 16 bits, and one of bytes where weights are signed
// bytes with no zero points, as nearly all are, which takes half the time.
#pragma once

#include "base/size.h"
#include "targets/cpu/kernel/tile/chunk.h"

enum {
    MGX_CHUNK_MOST = 128,                 // of the weights of one sign in a sum: 255 * 128 <= 32767
    MGX_CHUNK_AHEAD = 64,                 // values read at once
    MGX_CHUNK_LANES = 2 * MGX_CHUNK_COLS, // sums of a chunk
};

typedef uint8_t mgx_chunk_lanes __attribute__((vector_size(16)));

struct mgx_chunk {
    int64_t offset;                                   // in A
    int8_t weight[MGX_CHUNK_COLS * MGX_CHUNK_VALUES]; // column by column
    // What the weights of either sign add up to: the first two of every column, then the last two.
    mgx_chunk_lanes above, below;
};

typedef int16_t mgx_chunk_value __attribute__((vector_size(16))); // one of every column

// Where a walk is. Values are 64 bits in the walk of bytes.
struct mgx_chunk_walk {
    const struct mgx_chunk_matrix *m;
    int64_t col;
    int count;          // columns there are
    int known;          // of rest
    int64_t tap, at;    // the first value that is not packed wholly
    int64_t first, end; // the tap's values that are in `ahead`; more of them are 0
    bool bytes;
    union {
        struct {
            mgx_chunk_value rest[MGX_CHUNK_VALUES]; // what is left of it and of the next ones
            mgx_chunk_value ahead[MGX_CHUNK_AHEAD];
        } wide;
        struct {
            uint64_t rest[MGX_CHUNK_VALUES];
            const uint64_t *ahead; // in `room`, or where they lie in order
            int64_t known;         // values there
            uint64_t room[MGX_CHUNK_AHEAD];
        } byte;
    };
};

// Before the chunks of columns 8 p and on.
void mgx_chunk_walk_start(struct mgx_chunk_walk *w, const struct mgx_chunk_matrix *m, int64_t p);
// False when all values are packed. `chunk` NULL: it is only counted.
bool mgx_chunk_walk_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk);

// Puts panel p in order and describes it as a matrix of its own. False: it is to be read as it
// lies.
bool mgx_chunk_turn(struct mgx_chunk_stripe *stripe, const struct mgx_chunk_matrix *m, int64_t p,
                    struct mgx_chunk_matrix *panel);

// --- the two walks ---

static inline void mgx_chunk_enter_tap(struct mgx_chunk_walk *w)
{
    w->at = 0;
    w->known = 0;
    w->end = 0;
}

// Where kernel element `i` has its first weight, in elements from B.
static inline int64_t mgx_chunk_element(const struct mgx_chunk_matrix *m, int64_t i)
{
    const int64_t x = i % m->kernel[2], y = i / m->kernel[2] % m->kernel[1];
    return i / m->kernel[2] / m->kernel[1] * m->space[0] + y * m->space[1] + x * m->space[2];
}

// Sets the values that are to be read, those of one kernel element from `value` on: where they
// begin, in elements from B, and how many of them have weights.
static inline int64_t mgx_chunk_read_at(struct mgx_chunk_walk *w, int64_t value, int *count)
{
    const struct mgx_chunk_matrix *m = w->m;
    const int64_t element = value / m->inner, channel = value - element * m->inner;
    const int64_t known = mgx_max_i64(0, mgx_min_i64(MGX_CHUNK_AHEAD, m->valid - channel));
    *count = (int)known;
    w->first = value;
    w->end = value + (known ? known : m->inner - channel);
    return mgx_chunk_element(m, w->tap * (m->run / m->inner) + element) + channel * m->row;
}

bool mgx_chunk_bytes_fit(const struct mgx_chunk_matrix *m);
bool mgx_chunk_bytes_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk);
