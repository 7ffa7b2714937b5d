// SPDX-License-Identifier: MIT
// Making chunks of weights; see chunk.h. Some 10 ns for most chunks, 30 for one that leaves something,
// and as much again for its partner.
#include "targets/cpu/kernel/chunk.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    COLS = MGX_CHUNK_COLS,
    VALUES = MGX_CHUNK_VALUES,
    LANES = 2 * COLS,     // sums of a chunk
    MOST = 128,           // of the weights of one sign in a sum: 255 * 128 <= 32767
    MOST_OFFSET = 0xffff, // in 16 bits
    AHEAD = 32,           // values read at once
};

typedef int16_t cols __attribute__((vector_size(16))); // one value of every column
typedef uint8_t lanes __attribute__((vector_size(16)));

static bool is_zero(const void *v16)
{
    uint64_t half[2];
    memcpy(half, v16, sizeof half);
    return !(half[0] | half[1]);
}

// Every x86-64 has an instruction for these, which the compiler does not see in the other form.
static cols least(cols a, cols b)
{
#if defined(__SSE2__)
    return (cols)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    const cols less = a < b;
    return (a & less) | (b & ~less);
#endif
}

static cols most(cols a, cols b)
{
#if defined(__SSE2__)
    return (cols)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    const cols more = a > b;
    return (a & more) | (b & ~more);
#endif
}

// --- a walk over the chunks of a panel ---

struct chunk {
    int64_t offset; // in A
    int8_t weight[COLS * VALUES];
    lanes above, below; // what the weights of either sign add up to, by sum
};

struct walk {
    const struct mgx_chunk_matrix *m;
    int64_t col;
    int count;          // columns there are
    int64_t tap, at;    // the first value that is not packed wholly
    cols rest[VALUES];  // what is left of it and of the next ones
    int known;          // of rest
    int64_t first, end; // the tap's values that are in `ahead`; more of them are 0
    cols ahead[AHEAD];
};

// Where kernel element `i` has its first weight, in elements from B.
static int64_t element_at(const struct mgx_chunk_matrix *m, int64_t i)
{
    const int64_t x = i % m->kernel[2], y = i / m->kernel[2] % m->kernel[1];
    return i / m->kernel[2] / m->kernel[1] * m->space[0] + y * m->space[1] + x * m->space[2];
}

#if defined(__SSE2__)
// Eight signed values side by side of each of eight columns, `col` apart: value by value.
static void transpose_bytes(const int8_t *b, int64_t col, cols *to)
{
    __m128i v[COLS], a[4], c[4];
    for (int j = 0; j < COLS; j++)
        v[j] = _mm_loadl_epi64((const __m128i *)(const void *)(b + j * col));
    for (int j = 0; j < 4; j++)
        a[j] = _mm_unpacklo_epi8(v[2 * j], v[2 * j + 1]); // columns 2 j and 2 j + 1
    for (int j = 0; j < 2; j++) {                         // four columns, four values each
        c[2 * j] = _mm_unpacklo_epi16(a[2 * j], a[2 * j + 1]);
        c[2 * j + 1] = _mm_unpackhi_epi16(a[2 * j], a[2 * j + 1]);
    }
    for (int k = 0; k < 2; k++) { // all columns, two values each
        const __m128i low = _mm_unpacklo_epi32(c[k], c[2 + k]),
                      high = _mm_unpackhi_epi32(c[k], c[2 + k]);
        to[4 * k] = (cols)_mm_srai_epi16(_mm_unpacklo_epi8(low, low), 8);
        to[4 * k + 1] = (cols)_mm_srai_epi16(_mm_unpackhi_epi8(low, low), 8);
        to[4 * k + 2] = (cols)_mm_srai_epi16(_mm_unpacklo_epi8(high, high), 8);
        to[4 * k + 3] = (cols)_mm_srai_epi16(_mm_unpackhi_epi8(high, high), 8);
    }
}

// Columns that lie side by side: eight values of a row at once, less their zero points.
static void read_rows(struct walk *w, int64_t from, int count)
{
    const struct mgx_chunk_matrix *m = w->m;
    const char *b = (const char *)m->b + from + w->col;
    cols zero = {0};
    for (int j = 0; j < COLS && m->zero; j++)
        zero[j] = (int16_t)m->zero[w->col + j];
    for (int i = 0; i < count; i++, b += m->row) {
        const __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)b);
        w->ahead[i] = m->type == MGX_KERNEL_S8 ? (cols)_mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8)
                                               : (cols)_mm_unpacklo_epi8(v, _mm_setzero_si128());
        w->ahead[i] -= zero;
    }
}

// The usual weights of a product, whole vectors of them; or nothing is done.
static bool read_whole(struct walk *w, int64_t from, int count)
{
    const struct mgx_chunk_matrix *m = w->m;
    if (w->count == COLS && m->col == 1) {
        read_rows(w, from, count);
        return true;
    }
    if (m->row != 1 || m->type != MGX_KERNEL_S8 || m->zero || w->count < COLS || count % COLS)
        return false;
    for (int i = 0; i < count; i += COLS)
        transpose_bytes((const int8_t *)m->b + from + w->col * m->col + i, m->col, w->ahead + i);
    return true;
}
#else
static bool read_whole(struct walk *w, int64_t from, int count)
{
    (void)w, (void)from, (void)count;
    return false;
}
#endif

// The values of one kernel element from `value` on, column by column, as weights lie in memory.
static void read_ahead(struct walk *w, int64_t value)
{
    const struct mgx_chunk_matrix *m = w->m;
    const int64_t element = value / m->inner, channel = value - element * m->inner;
    const int64_t from = element_at(m, w->tap * (m->run / m->inner) + element) + channel * m->row;
    const int count = (int)mgx_min_i64(AHEAD, m->valid - channel);
    memset(w->ahead, 0, sizeof w->ahead);
    w->first = value;
    w->end = value + (count > 0 ? count : m->inner - channel);
    if (count > 0 && read_whole(w, from, count))
        return;
    for (int j = 0; j < w->count && count > 0; j++) {
        const int zero = m->zero ? m->zero[w->col + j] : 0;
        const int8_t *b = (const int8_t *)m->b + from + (w->col + j) * m->col;
        const uint8_t *u = (const uint8_t *)b;
        int16_t *to = (int16_t *)w->ahead + j;
        if (m->type == MGX_KERNEL_S8)
            for (int i = 0; i < count; i++, to += COLS)
                *to = (int16_t)(b[i * m->row] - zero);
        else
            for (int i = 0; i < count; i++, to += COLS)
                *to = (int16_t)(u[i * m->row] - zero);
    }
}

static cols load(struct walk *w, int64_t value)
{
    if (value >= w->end)
        read_ahead(w, value);
    return value - w->first < AHEAD ? w->ahead[value - w->first] : (cols){0};
}

static void look(struct walk *w, int count)
{
    const int64_t left = w->m->run - w->at;
    for (; w->known < count; w->known++)
        w->rest[w->known] = w->known < left ? load(w, w->at + w->known) : (cols){0};
}

static void step(struct walk *w, int count)
{
    for (int i = 0; i + count < w->known; i++)
        w->rest[i] = w->rest[i + count];
    w->known = w->known > count ? w->known - count : 0;
    w->at += count;
}

static void enter_tap(struct walk *w)
{
    w->at = 0;
    w->known = 0;
    w->end = 0;
}

static void start_walk(struct walk *w, const struct mgx_chunk_matrix *m, int64_t p)
{
    const int64_t left = m->columns - p * COLS;
    w->m = m;
    w->col = p * COLS;
    w->count = left < COLS ? (int)left : COLS;
    w->tap = 0;
    enter_tap(w);
}

// A chunk that begins `back` values before the first one that is left: its weights, and what is left
// then. Returns how many values have nothing left.
static int take(const struct walk *w, int back, cols taken[VALUES], cols rest[VALUES])
{
    const cols most_of_byte = {127, 127, 127, 127, 127, 127, 127, 127};
    int done = 0;
    cols above = {0}, below = {0};
    for (int i = 0; i < VALUES; i++) {
        if (i % 2 == 0) {
            above = (cols){0} + MOST;
            below = (cols){0} - MOST;
        }
        taken[i] = (cols){0};
        if (i < back)
            continue;
        taken[i] = most(below, least(least(above, most_of_byte), w->rest[i - back]));
        above -= most(taken[i], (cols){0});
        below -= least(taken[i], (cols){0});
        rest[i - back] = w->rest[i - back] - taken[i];
        done += done == i - back && is_zero(&rest[i - back]);
    }
    return done;
}

// Two values of every column: the bytes of the second behind those of the first, as x86 has 16 bits.
static cols side_by_side(cols first, cols second)
{
    return (first & 0xff) | (second << 8);
}

static void put_columns(int8_t *weight, cols low, cols high)
{
#if defined(__SSE2__)
    _mm_storeu_si128((__m128i *)(void *)weight, _mm_unpacklo_epi16((__m128i)low, (__m128i)high));
    _mm_storeu_si128((__m128i *)(void *)(weight + 16),
                     _mm_unpackhi_epi16((__m128i)low, (__m128i)high));
#else
    for (int j = 0; j < COLS; j++) {
        memcpy(weight + j * VALUES, &(int16_t){low[j]}, 2);
        memcpy(weight + j * VALUES + 2, &(int16_t){high[j]}, 2);
    }
#endif
}

// What the weights of a chunk add up to, sum by sum.
struct totals {
    cols above[2], below[2];
};

static struct totals total(const cols taken[VALUES])
{
    const cols zero = {0};
    struct totals t;
    for (int l = 0; l < 2; l++) {
        const cols a = taken[2 * l], b = taken[2 * l + 1];
        t.above[l] = most(a, zero) + most(b, zero);
        t.below[l] = -(least(a, zero) + least(b, zero));
    }
    return t;
}

static void fill(struct chunk *chunk, const struct walk *w, int64_t begin, const cols taken[VALUES],
                 const struct totals *t)
{
    const int64_t *offset = w->m->offset;
    chunk->offset = (offset ? offset[w->tap] : 0) + begin;
    put_columns(chunk->weight, side_by_side(taken[0], taken[1]), side_by_side(taken[2], taken[3]));
    // The sums of both halves side by side: at most 128 each.
    const cols sums = t->above[0] | t->above[1] << 8, other = t->below[0] | t->below[1] << 8;
    memcpy(&chunk->above, &sums, sizeof sums);
    memcpy(&chunk->below, &other, sizeof other);
}

// The usual chunk: four values of which nothing was taken before, and nothing is left. False: it is
// not, and nothing is done. `chunk` NULL: it is only counted.
static bool next_whole(struct walk *w, struct chunk *chunk)
{
    if (w->known || w->m->run - w->at < VALUES)
        return false;
    load(w, w->at);
    const int64_t at = w->at - w->first;
    if (at + VALUES > AHEAD || w->at + VALUES > w->end)
        return false;
    const cols *v = w->ahead + at;
    const struct totals t = total(v);
    const cols full = (cols){0} + MOST, largest = most(most(v[0], v[1]), most(v[2], v[3])),
               over = (most(most(t.above[0], t.above[1]), most(t.below[0], t.below[1])) > full) |
                      (largest > full - 1);
    if (!is_zero(&over) || is_zero(&v[0]))
        return false;
    if (chunk)
        fill(chunk, w, w->at, v, &t);
    w->at += VALUES;
    return true;
}

// False when all values are packed. `chunk` NULL: it is only counted.
static bool next(struct walk *w, struct chunk *chunk)
{
    if (w->tap < w->m->taps && next_whole(w, chunk))
        return true;
    for (; w->tap < w->m->taps; w->tap++, enter_tap(w)) {
        for (; w->at < w->m->run; step(w, 1)) {
            look(w, 1);
            if (!is_zero(&w->rest[0]))
                break;
        }
        if (w->at < w->m->run)
            break;
    }
    if (w->tap == w->m->taps)
        return false;
    look(w, VALUES);
    cols taken[VALUES], rest[VALUES], other[VALUES], other_rest[VALUES];
    const int64_t begin = mgx_min_i64(w->at, w->m->run - VALUES);
    int back = (int)(w->at - begin), done = take(w, back, taken, rest);
    if (done < VALUES - 1 && begin > 0 && back + 1 < VALUES) {
        const int instead = take(w, back + 1, other, other_rest);
        if (instead > done) {
            done = instead;
            back++;
            memcpy(taken, other, sizeof taken);
            memcpy(rest, other_rest, sizeof rest);
        }
    }
    if (chunk) {
        const struct totals t = total(taken);
        fill(chunk, w, w->at - back, taken, &t);
    }
    memcpy(w->rest, rest, (size_t)(VALUES - back) * sizeof *rest);
    step(w, done);
    return true;
}

// --- sizes ---

bool mgx_chunk_fits(const struct mgx_chunk_matrix *m)
{
    int64_t last = 0;
    for (int64_t t = 0; t < m->taps && m->offset; t++)
        last = mgx_max_i64(last, m->offset[t]);
    return m->taps > 0 && m->run >= VALUES && last + m->run <= MOST_OFFSET;
}

int64_t mgx_chunk_count(const struct mgx_chunk_matrix *m)
{
    int64_t largest = 0;
    for (int64_t p = 0; p * COLS < m->columns; p++) {
        struct walk w;
        int64_t count = 0;
        start_walk(&w, m, p);
        while (next(&w, NULL))
            count++;
        largest = mgx_max_i64(largest, count);
    }
    return mgx_max_i64(largest, 1);
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

// Chunks that wait for a partner: bit i of `used` says that there is one in place i.
enum { WAITING = 64 };

struct packer {
    lanes room_above[WAITING], room_below[WAITING]; // what their partner's sums may be
    struct chunk waiting[WAITING];
    uint64_t used;
    int next_out; // who goes alone when all places are taken
    int64_t pairs, singles, most;
    uint16_t *offset;
    char *weight;
};

static void put(struct packer *k, int64_t at, const struct chunk *chunk)
{
    assert(2 * k->pairs + k->singles <= k->most);
    assert(chunk->offset >= 0 && chunk->offset <= MOST_OFFSET);
    k->offset[at] = (uint16_t)chunk->offset;
    memcpy(k->weight + at * COLS * VALUES, chunk->weight, sizeof chunk->weight);
}

static bool fits_beside(const struct packer *k, int i, const struct chunk *chunk)
{
#if defined(__SSE2__)
    const __m128i over =
        _mm_or_si128(_mm_subs_epu8((__m128i)chunk->above, (__m128i)k->room_above[i]),
                     _mm_subs_epu8((__m128i)chunk->below, (__m128i)k->room_below[i]));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(over, _mm_setzero_si128())) == 0xffff;
#else
    const lanes over =
        (lanes)(chunk->above > k->room_above[i]) | (lanes)(chunk->below > k->room_below[i]);
    return is_zero(&over);
#endif
}

// The place of a partner, -1: nobody fits.
static int partner_of(const struct packer *k, const struct chunk *chunk)
{
    for (uint64_t left = k->used; left; left &= left - 1) {
        const int i = __builtin_ctzll(left);
        if (fits_beside(k, i, chunk))
            return i;
    }
    return -1;
}

static void put_single(struct packer *k, int i)
{
    put(k, k->most - ++k->singles, &k->waiting[i]);
    k->used &= ~(UINT64_C(1) << i);
}

static void add(struct packer *k, const struct chunk *chunk)
{
    const int partner = partner_of(k, chunk);
    if (partner >= 0) {
        put(k, 2 * k->pairs, &k->waiting[partner]);
        put(k, 2 * k->pairs++ + 1, chunk);
        k->used &= ~(UINT64_C(1) << partner);
        return;
    }
    if (!~k->used)
        put_single(k, k->next_out++ % WAITING);
    const int i = __builtin_ctzll(~k->used);
    const lanes full = (lanes){0} + MOST;
    k->waiting[i] = *chunk;
    k->room_above[i] = full - chunk->above;
    k->room_below[i] = full - chunk->below;
    k->used |= UINT64_C(1) << i;
}

// Adds a chunk's weights, column by column.
static void add_totals(const struct chunk *chunk, int32_t totals[COLS])
{
    for (int j = 0; j < COLS; j++)
        totals[j] += chunk->above[2 * j] + chunk->above[2 * j + 1] - chunk->below[2 * j] -
                     chunk->below[2 * j + 1];
}

void mgx_chunk_pack(const struct mgx_chunk_matrix *m, int64_t p, int64_t largest, void *panel)
{
    char *to = panel;
    struct packer k = {.most = largest,
                       .offset = (uint16_t *)(void *)(to + sizeof(struct mgx_chunk_header)),
                       .weight = to + mgx_chunk_weights_at(largest)};
    int32_t totals[COLS] = {0};
    struct chunk chunk;
    memset(panel, 0, (size_t)mgx_chunk_panel_bytes(largest));
    struct walk w;
    start_walk(&w, m, p);
    while (next(&w, &chunk)) {
        if (m->shift)
            add_totals(&chunk, totals);
        add(&k, &chunk);
    }
    while (k.used)
        put_single(&k, __builtin_ctzll(k.used));
    struct mgx_chunk_header header = {.pairs = (int32_t)k.pairs, .singles = (int32_t)k.singles};
    for (int j = 0; j < COLS; j++) // wraps as the instruction's sums do
        header.starts[j] = (int32_t) - ((uint32_t)m->shift * (uint32_t)totals[j]);
    memcpy(panel, &header, sizeof header);
}
