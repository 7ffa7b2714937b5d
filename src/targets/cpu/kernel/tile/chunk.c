// SPDX-License-Identifier: MIT
// Counting and packing chunks of weights; see chunk.h. To find a chunk a partner and to put it
// there takes twice as long as to make it.
#include "targets/cpu/kernel/tile/chunk.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/tile/chunk_walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    COLS = MGX_CHUNK_COLS,
    VALUES = MGX_CHUNK_VALUES,
    MOST = MGX_CHUNK_MOST,
    MOST_OFFSET = 0xffff, // in 16 bits
};

// --- sizes ---

bool mgx_chunk_fits(const struct mgx_chunk_matrix *m)
{
    int64_t last = 0;
    for (int64_t t = 0; t < m->taps && m->offset; t++)
        last = mgx_max_i64(last, m->offset[t]);
    return m->taps > 0 && m->run >= VALUES && last + m->run <= MOST_OFFSET;
}

// Before the chunks of panel p, which lives in `panel` where it was put in order.
static void start(struct mgx_chunk_walk *w, const struct mgx_chunk_matrix *m, int64_t p,
                  struct mgx_chunk_stripe *stripe, struct mgx_chunk_matrix *panel)
{
    if (mgx_chunk_turn(stripe, m, p, panel))
        mgx_chunk_walk_start(w, panel, 0);
    else
        mgx_chunk_walk_start(w, m, p);
}

int64_t mgx_chunk_count(const struct mgx_chunk_matrix *m)
{
    int64_t largest = 1;
    struct mgx_chunk_stripe stripe = {.of = NULL};
    for (int64_t p = 0; p * COLS < m->columns; p++) {
        struct mgx_chunk_matrix panel;
        struct mgx_chunk_walk w;
        int64_t count = 0;
        start(&w, m, p, &stripe, &panel);
        while (mgx_chunk_walk_next(&w, NULL))
            count++;
        largest = mgx_max_i64(largest, count);
    }
    mgx_chunk_stripe_free(&stripe);
    return largest;
}

bool mgx_chunk_pays(const struct mgx_chunk_matrix *m, int64_t largest, bool quickly)
{
    enum { MANY_COLUMNS = 32 };
    const int64_t least_chunks = m->taps * mgx_ceil_div(m->run, VALUES);
    const int64_t more =
        quickly && m->columns >= MANY_COLUMNS ? least_chunks / 4 : least_chunks / 2 + 1;
    return largest <= least_chunks + more;
}

int64_t mgx_chunk_panel_bytes(int64_t largest)
{
    return mgx_chunk_weights_at(largest) + largest * COLS * VALUES;
}

// --- packing ---

typedef int16_t cols __attribute__((vector_size(2 * MGX_CHUNK_COLS)));
typedef uint8_t half __attribute__((vector_size(MGX_CHUNK_COLS)));

// Weights of every column, added up: of some chunks in 16 bits, to which a chunk adds at most 256.
struct totals {
    cols some;
    int chunks;
    int32_t all[COLS];
};

static void flush_totals(struct totals *t)
{
    for (int j = 0; j < COLS; j++)
        t->all[j] += t->some[j];
    t->some = (cols){0};
    t->chunks = 0;
}

static cols of_columns(mgx_chunk_lanes lanes)
{
    half h[2];
    memcpy(h, &lanes, sizeof h);
    return __builtin_convertvector(h[0], cols) + __builtin_convertvector(h[1], cols);
}

static void add_totals(struct totals *t, const struct mgx_chunk *chunk)
{
    enum { MOST_CHUNKS = INT16_MAX / (2 * MOST) };
    t->some += of_columns(chunk->above) - of_columns(chunk->below);
    if (++t->chunks == MOST_CHUNKS)
        flush_totals(t);
}

// Chunks that wait for a partner.
enum { WAITING = 64 };

// What a partner's sums may be.
struct room {
    mgx_chunk_lanes above, below;
};

struct waiting {
    int64_t offset;
    int8_t weight[COLS * VALUES];
};

struct packer {
    struct room room[WAITING];
    struct waiting waiting[WAITING];
    int count, next_out; // who waits; who goes alone when all places are taken
    int64_t pairs, singles, most;
    uint16_t *offset;
    char *weight;
};

static void put(struct packer *k, int64_t at, int64_t offset, const int8_t *weight)
{
    assert(2 * k->pairs + k->singles <= k->most);
    assert(offset >= 0 && offset <= MOST_OFFSET);
    k->offset[at] = (uint16_t)offset;
    memcpy(k->weight + at * COLS * VALUES, weight, COLS * VALUES);
}

static bool chunk_fits(const struct room *room, const struct mgx_chunk *chunk)
{
#if defined(__SSE2__)
    const __m128i over = _mm_or_si128(_mm_subs_epu8((__m128i)chunk->above, (__m128i)room->above),
                                      _mm_subs_epu8((__m128i)chunk->below, (__m128i)room->below));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(over, _mm_setzero_si128())) == 0xffff;
#else
    for (int l = 0; l < MGX_CHUNK_LANES; l++)
        if (chunk->above[l] > room->above[l] || chunk->below[l] > room->below[l])
            return false;
    return true;
#endif
}

static void remove_waiting(struct packer *k, int i)
{
    k->count--;
    k->waiting[i] = k->waiting[k->count];
    k->room[i] = k->room[k->count];
}

static void put_single(struct packer *k, int i)
{
    put(k, k->most - ++k->singles, k->waiting[i].offset, k->waiting[i].weight);
    remove_waiting(k, i);
}

static void add(struct packer *k, const struct mgx_chunk *chunk)
{
    const int count = k->count;
    int i = 0;
    while (i < count && !chunk_fits(&k->room[i], chunk))
        i++;
    if (i < count) {
        put(k, 2 * k->pairs, k->waiting[i].offset, k->waiting[i].weight);
        put(k, 2 * k->pairs++ + 1, chunk->offset, chunk->weight);
        remove_waiting(k, i);
        return;
    }
    if (count == WAITING)
        put_single(k, k->next_out++ % WAITING);
    const mgx_chunk_lanes full = (mgx_chunk_lanes){0} + MOST;
    k->waiting[k->count].offset = chunk->offset;
    memcpy(k->waiting[k->count].weight, chunk->weight, sizeof chunk->weight);
    k->room[k->count++] = (struct room){full - chunk->above, full - chunk->below};
}

// Bytes of a panel that nobody reads are always the same, for a saved program's sake.
static void clear_unused(struct packer *k)
{
    const int64_t at = 2 * k->pairs, left = k->most - at - k->singles;
    char *end = (char *)(k->offset + k->most);
    memset(k->offset + at, 0, (size_t)left * sizeof *k->offset);
    memset(end, 0, (size_t)(k->weight - end));
    memset(k->weight + at * COLS * VALUES, 0, (size_t)(left * COLS * VALUES));
}

void mgx_chunk_pack(const struct mgx_chunk_matrix *m, int64_t p, int64_t largest,
                    struct mgx_chunk_stripe *stripe, void *panel)
{
    char *to = panel;
    struct packer k;
    k.count = k.next_out = 0;
    k.pairs = k.singles = 0;
    k.most = largest;
    k.offset = (uint16_t *)(void *)(to + sizeof(struct mgx_chunk_header));
    k.weight = to + mgx_chunk_weights_at(largest);
    struct totals totals = {0};
    struct mgx_chunk chunk;
    struct mgx_chunk_matrix own;
    struct mgx_chunk_walk w;
    start(&w, m, p, stripe, &own);
    while (mgx_chunk_walk_next(&w, &chunk)) {
        if (m->shift)
            add_totals(&totals, &chunk);
        add(&k, &chunk);
    }
    while (k.count)
        put_single(&k, k.count - 1);
    flush_totals(&totals);
    clear_unused(&k);
    struct mgx_chunk_header header = {.pairs = (int32_t)k.pairs, .singles = (int32_t)k.singles};
    for (int j = 0; j < COLS; j++) // wraps as the instruction's sums do
        header.starts[j] = (int32_t) - ((uint32_t)m->shift * (uint32_t)totals.all[j]);
    memcpy(panel, &header, sizeof header);
}
