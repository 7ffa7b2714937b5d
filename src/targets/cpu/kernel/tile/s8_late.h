// SPDX-License-Identifier: MIT
// Strips whose tiles end late: their sums wait in memory, and four vectors of them at a time end
// between the products of the next tile. An end with a residual or a table is as long as the
// products of 64 channels, and uses other parts of the core; behind its tile's products it had them
// to itself.
//
//     tile t      products k, k + 1 | row 0 of tile t - 1 ends | products k + 2, k + 3 | row 1
//
// Five rows of two panels, or ten of one. Twenty sums leave registers for what all ends read; with
// 24 that came from memory, and what limits the products beside an end is loads: two panels at once
// need nine for twenty, one panel twelve. Shallow products gain by two panels even where they end
// plainly. Signed bytes are unsigned ones, 128 larger, their highest bit flipped.
//
// The including file is s8_strip.h, with AVX-512. A row of 64 channels of two panels costs some 15
// cycles with a residual beside its products, 27.5 behind them.
#pragma once

enum {
    LATE_PANELS = 2,
    LATE_VECTORS = 4, // that end at once
    LATE_SUMS = 20,
    LATE_LEAST_DEPTH = LATE_SUMS / LATE_VECTORS * 2,
    LATE_MOST_PLAIN_DEPTH = 128 // a deep product has little to gain, and deep panels want L1 alone
};

// How every row ends.
struct late_end {
    sums scale[LATE_PANELS * NV], bias[LATE_PANELS * NV], low, high, magic, keep, share, offset,
        zero, flip, order;
    __m128i raised;
    const uint8_t *table;
    int64_t c_row, residual_row;
};

SIMD sums spread(float x)
{
    return (sums)vf_set(x);
}

// Field by field: what clears all of it first takes as long as the rest.
static void set_late(const struct mgx_tile_args *args, int nv, enum mgx_end_form ending,
                     struct late_end *e)
{
    const struct mgx_end_step *last = args->end.last;
    const int to_signed = last->byte.is_signed ? 128 : 0;
    for (int j = 0; j < nv; j++) {
        e->scale[j] = sums_at(args->scale + j * COLS);
        e->bias[j] = args->bias ? sums_at(args->bias + j * COLS) : spread(0);
    }
    if (ending == MGX_END_MIXED) {
        const struct mgx_end_step *first = args->end.step, *mix = mix_of(args);
        e->low = spread(first->clamp.low);
        e->high = spread(first->clamp.high);
        e->magic = spread(magic_of(args));
        e->keep = spread(mix->mix.keep);
        e->share = spread(mix->mix.share);
        e->offset = spread(mgx_end_offset(mix));
        e->raised = _mm_set1_epi8((char)mgx_end_raised(mix));
    }
    e->zero = _mm512_set1_epi16((short)(last->byte.zero + to_signed));
    e->flip = _mm512_set1_epi8((char)to_signed);
    e->order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    e->table = last->byte.table;
    e->c_row = args->c_row;
    e->residual_row = args->residual[0] ? args->residual_row : 0;
}

// Rows of sums that have not ended.
struct late {
    const char *sums, *residual;
    char *to;
    int64_t rows;
};

SIMD vf with_residual(const struct late_end *e, const char *residual, vf v)
{
    const vf near = vf_min((vf)e->high, vf_max(v, (vf)e->low));
    const vf x = vf_sub(vf_add(near, (vf)e->magic), (vf)e->magic);
    const vf kept = vf_fma(x, (vf)e->keep, (vf)e->offset);
    const __m128i bytes = _mm_xor_si128(whole_row(residual), e->raised);
    return vf_fma(floats_of(bytes, false), (vf)e->share, kept);
}

SIMD sums two_packed(const struct late_end *e, const vf v[2])
{
    return _mm512_adds_epi16(_mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1])),
                             e->zero);
}

// A row of two panels, or two rows of one; the last one twice where it is alone: what the second
// makes is stored first.
SIMD void end_four(int nv, enum mgx_end_form ending, const struct late_end *end, struct late *late)
{
    const struct late_end *e = end;
    __asm__("" : "+r"(e)); // what it holds is read anew
    const int rows = LATE_VECTORS / nv;
    const bool both = rows == 1 || late->rows > 1;
    const int64_t second_row = rows > 1 && both ? e->c_row : 0,
                  second_residual = rows > 1 && both ? e->residual_row : 0;
    const char *second = late->sums + (both ? 2 * sizeof(sums) : 0);
    vf v[LATE_VECTORS];
    UNROLL
    for (int i = 0; i < LATE_VECTORS; i++) {
        const int j = i % nv;
        const char *from = i < 2 ? late->sums : second,
                   *residual = late->residual + (i < nv ? 0 : second_residual);
        v[i] = vf_fma(vf_from_int((vf)sums_at(from + i % 2 * (int)sizeof(sums))), (vf)e->scale[j],
                      (vf)e->bias[j]);
        if (ending == MGX_END_MIXED)
            v[i] = with_residual(e, residual + j * COLS, v[i]);
    }
    sums byte =
        _mm512_xor_si512(_mm512_permutexvar_epi32(
                             e->order, _mm512_packus_epi16(two_packed(e, v), two_packed(e, v + 2))),
                         e->flip);
    if (ending == MGX_END_LOOKUP)
        byte = looked_up(e->table, byte);
    if (rows == 1) {
        _mm512_storeu_si512(late->to, byte);
    } else {
        store_two_rows(late->to + second_row, byte, 2);
        store_two_rows(late->to, byte, 0);
    }
    late->sums += LATE_VECTORS * sizeof(sums);
    late->to += rows * e->c_row;
    late->residual += rows * e->residual_row;
    late->rows -= rows;
}

// One k of `nv` vectors, of one panel or of two.
SIMD void late_step(int rows, int nv, const struct sums *s, int k, int64_t b_panel, vf *c)
{
    const char *b = s->b + k * s->b_row;
    vf bv[LATE_PANELS * NV];
    UNROLL
    for (int v = 0; v < nv; v++)
        bv[v] = vf_load((const float *)(const void *)(b + v / NV * b_panel) + v % NV * VL);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const vf a = vf_set(*at_row(&s->a, i, k));
        UNROLL
        for (int v = 0; v < nv; v++)
            c[i * nv + v] = mac(a, bv[v], c[i * nv + v]);
    }
}

SIMD void late_steps(int count, int rows, int nv, struct sums *s, int64_t b_panel, vf *c)
{
    UNROLL
    for (int u = 0; u < count; u++)
        late_step(rows, nv, s, u, b_panel, c);
    s->b += count * s->b_row;
    advance_rows(&s->a, count * GROUP_BYTES);
    s->k -= count;
}

SIMD void late_ahead(struct sums *s)
{
    prefetch_ahead(s->ahead, s->ahead_step);
    s->ahead += s->ahead_step;
}

// The lines that a tile stores, and adds, one each: few enough to be asked for at once, before the
// products behind which they are wanted. 64 > 256 channels of 56 x 56 take a fifth less time so.
SIMD void fetch_ends(int rows, const struct mgx_tile_args *args, const struct strip_at *at)
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(at->c + i * args->c_row, 1, 3);
        if (at->residual)
            __builtin_prefetch(at->residual + i * args->residual_row, 0, 3);
    }
}

// The products of a tile; what waits ends between them.
SIMD void sum_late(int rows, int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                   const struct strip_at *at, const struct late_end *end, struct late *late, vf *c)
{
    const struct mgx_tile_args own = {.a = {at->a, at->a + HALF * args->a_row}};
    const int64_t b_panel = args->b_panel;
    struct sums s = {.a = {.one = args->a_row, .three = args->a_row * 3},
                     .b = args->b,
                     .ahead = at->ahead,
                     .b_row = NV * VL * GROUP_BYTES,
                     .ahead_step = at->step,
                     .k = args->depth};
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        c[i] = (vf)sums_at((const char *)(args->start + i % NV * COLS) +
                           i % nv / NV * args->start_panel);
    start_rows(&s.a, &own, args->taps[0]);
    fetch_ends(rows, args, at);
    while (s.k >= 2 && late->rows > 0) {
        if (s.k % 4 == 0)
            late_ahead(&s);
        late_steps(2, rows, nv, &s, b_panel, c);
        end_four(nv, ending, end, late);
    }
    while (s.k >= 4) {
        late_ahead(&s);
        late_steps(4, rows, nv, &s, b_panel, c);
    }
    while (s.k > 0)
        late_steps(1, rows, nv, &s, b_panel, c);
}

SIMD void run_late(int rows, int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                   const struct strip_at *at, const struct late_end *end, struct late *late,
                   char *room)
{
    vf c[LATE_SUMS];
    sum_late(rows, nv, ending, args, at, end, late, c);
    assert(late->rows <= 0);
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        vf_store((float *)(void *)(room + i * (int)sizeof(vf)), c[i]);
    *late = (struct late){room, at->residual, at->c, rows};
}

// The least rows of a tile: with fewer the products of one do not have the time for another's end.
SIMD int64_t late_most_rows(int nv)
{
    return LATE_SUMS / nv;
}

SIMD int64_t late_least_rows(int nv)
{
    return nv > NV ? 3 : 7;
}

// Whether a strip is worth it, and its tiles have room to end in.
static bool suits_late(int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                       int64_t rows)
{
    const int64_t most = late_most_rows(nv);
    const int64_t depth = ending == MGX_END_PLAIN ? LATE_MOST_PLAIN_DEPTH : INT64_MAX;
    return ending != MGX_END_ANY && args->tap_count == 1 && args->depth >= LATE_LEAST_DEPTH &&
           args->depth <= depth && rows / ((rows + most - 1) / most) >= late_least_rows(nv);
}

SIMD void run_late_rows(int64_t rows, int nv, enum mgx_end_form ending,
                        const struct mgx_tile_args *args, const struct strip_at *at,
                        const struct late_end *end, struct late *late, char *room)
{
    switch (rows) {
#define CASE(count)                                                                                \
    case count:                                                                                    \
        if (count >= late_least_rows(nv) && count <= late_most_rows(nv))                           \
            run_late(count, nv, ending, args, at, end, late, room);                                \
        break;
        CASES(CASE)
#undef CASE
    }
}

SIMD void late_strip(int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                     int64_t rows)
{
    char room[LATE_SUMS * sizeof(vf)] __attribute__((aligned(64)));
    struct late_end end;
    struct strip_at at = strip_start(args, rows, (int)late_most_rows(nv));
    struct late late = {.rows = 0};
    set_late(args, nv, ending, &end);
    strip_spread(args, &at, (rows + ROWS - 1) / ROWS);
    for (int64_t count; (count = strip_rows(&at)) > 0; strip_advance_spread(args, &at, count))
        run_late_rows(count, nv, ending, args, &at, &end, &late, room);
    while (late.rows > 0)
        end_four(nv, ending, &end, &late);
}

#define LATE(name, nv, ending)                                                                     \
    static void name(const struct mgx_tile_args *args, int64_t rows)                               \
    {                                                                                              \
        late_strip(nv, ending, args, rows);                                                        \
    }

LATE(late_table, NV, MGX_END_LOOKUP)
LATE(late_added, NV, MGX_END_MIXED)
LATE(pair_plain, LATE_PANELS *NV, MGX_END_PLAIN)
LATE(pair_table, LATE_PANELS *NV, MGX_END_LOOKUP)
LATE(pair_added, LATE_PANELS *NV, MGX_END_MIXED)

static bool suits_pair(const struct mgx_tile_args *args, int64_t rows)
{
    return args->cols == NV * COLS && args->start &&
           suits_late(LATE_PANELS * NV, ending_of(args, NV * COLS), args, rows);
}

static void pair(const struct mgx_tile_args *args, int64_t rows)
{
    static void (*const strips[MGX_END_FORMS])(const struct mgx_tile_args *, int64_t) = {
        [MGX_END_PLAIN] = pair_plain, [MGX_END_LOOKUP] = pair_table, [MGX_END_MIXED] = pair_added};
    strips[ending_of(args, NV * COLS)](args, rows);
}
