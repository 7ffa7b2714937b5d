// SPDX-License-Identifier: MIT
// Strips whose tiles end late: their sums wait in memory, and two rows of them at a time end between
// the products of the next tile. An end with a residual or a table is as long as the products of 64
// channels, and uses other parts of the core; behind its tile's products it had them to itself.
//
//     tile t      products k, k + 1 | end rows 0, 1 of tile t - 1 | products k + 2, k + 3 | rows 2, 3
//
// Twelve rows of two vectors, so that five registers are left to end with; what an end reads lies in
// memory, spread over vectors. Signed bytes are unsigned ones, 128 larger, their highest bit flipped.
// The including file is s8_strip.h, with AVX-512. A row of a panel of 64 channels costs 23.5 cycles
// with a residual, where it took 27.5.
#pragma once

enum { LATE_ROWS = 12, LATE_LEAST_ROWS = 9, LATE_LEAST_DEPTH = 12 };

// How every row ends.
struct late_end {
    sums scale[NV], bias[NV], low, high, keep, share, residual_zero, zero, flip, order;
    __m128i residual_flip;
    const uint8_t *table;
    int64_t c_row, residual_row;
};

SIMD sums spread(float x)
{
    return (sums)vf_set(x);
}

static void set_late(const struct mgx_tile_args *args, struct late_end *e)
{
    const struct mgx_requant *q = args->requant;
    const int from_signed = q->residual_signed ? 128 : 0, to_signed = q->is_signed ? 128 : 0;
    *e = (struct late_end){
        .low = spread(q->low),
        .high = spread(q->high),
        .keep = spread(q->keep),
        .share = spread(q->share),
        .residual_zero = spread((float)(q->residual_zero + from_signed)),
        .residual_flip = _mm_set1_epi8((char)from_signed),
        .zero = _mm512_set1_epi16((short)(q->zero + to_signed)),
        .flip = _mm512_set1_epi8((char)to_signed),
        .order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        .table = q->table,
        .c_row = args->c_row,
        .residual_row = args->residual[0] ? args->residual_row : 0,
    };
    for (int j = 0; j < NV; j++) {
        e->scale[j] = sums_at(args->scale + j * COLS);
        e->bias[j] = args->bias ? sums_at(args->bias + j * COLS) : spread(0);
    }
}

// Rows of sums that have not ended.
struct late {
    const char *sums, *residual;
    char *to;
    int64_t rows;
};

SIMD vf with_residual(const struct late_end *e, const char *residual, vf v)
{
    const vf x = vf_round(vf_min((vf)e->high, vf_max(v, (vf)e->low)));
    const __m128i bytes = _mm_xor_si128(whole_row(residual), e->residual_flip);
    const vf other = vf_sub(floats_of(bytes, false), (vf)e->residual_zero);
    return vf_fma(other, (vf)e->share, vf_mul(x, (vf)e->keep));
}

// Of two vectors.
SIMD sums bytes_of_row(const struct late_end *e, const char *from, const char *residual, bool adds)
{
    vf v[NV];
    UNROLL
    for (int j = 0; j < NV; j++) {
        v[j] = vf_fma(vf_from_int((vf)sums_at(from + j * (int)sizeof(sums))), (vf)e->scale[j],
                      (vf)e->bias[j]);
        if (adds)
            v[j] = with_residual(e, residual + j * COLS, v[j]);
    }
    return _mm512_adds_epi16(_mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1])),
                             e->zero);
}

// Two rows, or the last one twice: what the second makes is stored first.
SIMD void end_two_rows(enum ending ending, const struct late_end *end, struct late *late)
{
    const struct late_end *e = end;
    __asm__("" : "+r"(e)); // nothing of it waits in registers
    const int64_t second = late->rows > 1 ? e->c_row : 0,
                  second_residual = late->rows > 1 ? e->residual_row : 0;
    const bool adds = ending == ADDED_END;
    const sums x = bytes_of_row(e, late->sums, late->residual, adds),
               y = bytes_of_row(e, late->sums + NV * sizeof(sums), late->residual + second_residual,
                                adds);
    sums byte =
        _mm512_xor_si512(_mm512_permutexvar_epi32(e->order, _mm512_packus_epi16(x, y)), e->flip);
    if (ending == TABLE_END)
        byte = looked_up(e->table, byte);
    store_two_rows(late->to + second, byte, 2);
    store_two_rows(late->to, byte, 0);
    late->sums += 2 * NV * sizeof(sums);
    late->to += 2 * e->c_row;
    late->residual += 2 * e->residual_row;
    late->rows -= 2;
}

// The products of a tile; what waits ends between them.
SIMD void sum_late(int rows, enum ending ending, const struct mgx_tile_args *args,
                   const struct strip_at *at, const struct late_end *end, struct late *late,
                   vf c[][NV])
{
    struct mgx_tile_args own = {.a = {at->a, at->a + HALF * args->a_row}, .start = args->start};
    struct sums s = {.a = {.one = args->a_row, .three = args->a_row * 3},
                     .b = args->b,
                     .ahead = at->ahead,
                     .b_row = NV * VL * GROUP_BYTES,
                     .ahead_step = at->step,
                     .k = args->depth};
    start(rows, NV, &own, c);
    start_rows(&s.a, &own, args->taps[0]);
    for (; s.k >= 2 && late->rows > 0; s.k -= 2) {
        if (s.k % 4 == 0) {
            prefetch_ahead(s.ahead, s.ahead_step);
            s.ahead += s.ahead_step;
        }
        step(rows, NV, &s.a, 0, s.b, c);
        step(rows, NV, &s.a, 1, s.b + s.b_row, c);
        end_two_rows(ending, end, late);
        s.b += 2 * s.b_row;
        advance_rows(&s.a, 2 * GROUP_BYTES);
    }
    while (s.k >= 4)
        four_steps(rows, NV, &s, c);
    for (; s.k > 0; s.k--) {
        step(rows, NV, &s.a, 0, s.b, c);
        s.b += s.b_row;
        advance_rows(&s.a, GROUP_BYTES);
    }
}

SIMD void run_late(int rows, enum ending ending, const struct mgx_tile_args *args,
                   const struct strip_at *at, const struct late_end *end, struct late *late,
                   char *room)
{
    vf c[LATE_ROWS][NV];
    sum_late(rows, ending, args, at, end, late, c);
    assert(late->rows <= 0);
    UNROLL
    for (int i = 0; i < rows * NV; i++)
        vf_store((float *)(void *)(room + i * (int)sizeof(vf)), c[i / NV][i % NV]);
    *late = (struct late){room, at->residual, at->c, rows};
}

// Whether a strip is worth it, and its tiles have room to end in.
SIMD bool suits_late(enum ending ending, const struct mgx_tile_args *args, int64_t rows)
{
    return (ending == TABLE_END || ending == ADDED_END) && args->cols == NV * COLS &&
           args->tap_count == 1 && args->depth >= LATE_LEAST_DEPTH &&
           rows / ((rows + LATE_ROWS - 1) / LATE_ROWS) >= LATE_LEAST_ROWS;
}

SIMD void late_strip(enum ending ending, const struct mgx_tile_args *args, int64_t rows)
{
    char room[LATE_ROWS * NV * sizeof(vf)] __attribute__((aligned(64))) = {0};
    struct late_end end;
    struct strip_at at = strip_start(args, rows, LATE_ROWS);
    struct late late = {.rows = 0};
    set_late(args, &end);
    strip_spread(args, &at, (rows + ROWS - 1) / ROWS);
    for (int64_t count; (count = strip_rows(&at)) > 0; strip_advance_spread(args, &at, count)) {
        if (count == 12)
            run_late(12, ending, args, &at, &end, &late, room);
        else if (count == 11)
            run_late(11, ending, args, &at, &end, &late, room);
        else if (count == 10)
            run_late(10, ending, args, &at, &end, &late, room);
        else
            run_late(9, ending, args, &at, &end, &late, room);
    }
    while (late.rows > 0)
        end_two_rows(ending, &end, &late);
}

static void late_table(const struct mgx_tile_args *args, int64_t rows)
{
    late_strip(TABLE_END, args, rows);
}

static void late_added(const struct mgx_tile_args *args, int64_t rows)
{
    late_strip(ADDED_END, args, rows);
}
