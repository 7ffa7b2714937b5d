// SPDX-License-Identifier: MIT
// The steps of end.h on four vectors at once, whether they come from memory or from registers: the
// meaning of an end, for each instruction set. Vectors may be of one row or of several; each has
// its place.
#pragma once

#include <assert.h>
#include <math.h>

#include "targets/cpu/kernel/end/byte_rows.h"
#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/kernel/vector/simd.h"

enum { END_VECTORS = 4 };

// Where a vector's first column is: of arrays of columns, of the operand, of the results.
struct end_slot {
    int64_t col;
    const char *operand;
    char *to;
    int cols; // 1..COLS
};

SIMD vf load_cols(const float *p, int cols)
{
    return cols == COLS ? vf_load(p) : vf_load_some(p, cols);
}

SIMD void store_cols(char *to, int cols, vf v)
{
    if (cols == COLS)
        vf_store((float *)(void *)to, v);
    else
        vf_store_some((float *)(void *)to, v, cols);
}

SIMD vf end_clamped(vf v, float low, float high)
{
    return vf_min(vf_set(high), vf_max(v, vf_set(low))); // the second operand where one is NaN
}

SIMD vf end_clamp(const struct mgx_end_step *s, vf v)
{
    return end_clamped(s->clamp.divisor == 1 ? v : vf_div(v, vf_set(s->clamp.divisor)),
                       s->clamp.low, s->clamp.high);
}

// An activation that is a clamp; the others are done before, a tile at a time (f32_end.h).
SIMD vf end_act(const struct mgx_end_step *s, vf v)
{
    const bool clips = s->act.act == MGX_ACT_CLIP;
    return vf_min(vf_set(clips ? s->act.b : INFINITY), vf_max(vf_set(clips ? s->act.a : 0), v));
}

// Rounds, looks up what that is, and makes floats of it.
SIMD void end_table(const struct mgx_end_step *s, vf v[END_VECTORS])
{
    const byte_rows found = looked_up(s->table.table, four_rows(v, -s->table.low, false));
    UNROLL
    for (int i = 0; i < END_VECTORS; i++)
        v[i] = vf_sub(floats_of(row_of(found, i), false), vf_set((float)s->table.zero));
}

SIMD vf end_mixed(const struct mgx_end_step *s, const struct end_slot *at, vf v)
{
    const vf r = floats_of(some_of_row(at->operand, at->cols), s->mix.is_signed),
             raised = vf_add(r, vf_set((float)mgx_end_raised(s)));
    return vf_fma(raised, vf_set(s->mix.share),
                  vf_fma(v, vf_set(s->mix.keep), vf_set(mgx_end_offset(s))));
}

SIMD vf end_term(const struct mgx_end_step *s, const struct end_slot *at)
{
    return load_cols(s->mix.term + at->col, at->cols);
}

SIMD void end_mix(const struct mgx_end_step *s, const struct end_slot at[END_VECTORS],
                  vf v[END_VECTORS])
{
    const vf keep = vf_set(s->mix.keep);
    const bool adds = s->mix.term;
    if (s->mix.reads) {
        UNROLL
        for (int i = 0; i < END_VECTORS; i++) {
            v[i] = end_mixed(s, &at[i], v[i]);
            v[i] = adds ? vf_add(v[i], end_term(s, &at[i])) : v[i];
        }
        return;
    }
    UNROLL
    for (int i = 0; i < END_VECTORS; i++)
        v[i] = adds ? vf_fma(v[i], keep, end_term(s, &at[i])) : vf_mul(v[i], keep);
}

SIMD void end_as_bytes(const struct mgx_end_step *s, const struct end_slot at[END_VECTORS],
                       const vf v[END_VECTORS])
{
    byte_rows rows = four_rows(v, s->byte.zero, s->byte.is_signed);
    if (s->byte.table)
        rows = looked_up(s->byte.table, rows);
    UNROLL
    for (int i = 0; i < END_VECTORS; i++)
        store_some_of_row(at[i].to, row_of(rows, i), at[i].cols);
}

#define EACH_VECTOR(expression)                                                                    \
    UNROLL                                                                                         \
    for (int i = 0; i < END_VECTORS; i++)                                                          \
        v[i] = expression;                                                                         \
    break

// All of them up to `stop`, and stores what comes out.
SIMD void end_steps(const struct mgx_end_step *s, const struct mgx_end_step *stop,
                    const struct end_slot at[END_VECTORS], vf v[END_VECTORS])
{
    for (; s < stop; s++)
        switch (s->kind) {
        case MGX_END_ADD:
            EACH_VECTOR(
                vf_add(v[i], load_cols((const float *)(const void *)at[i].operand, at[i].cols)));
        case MGX_END_MULTIPLY:
            EACH_VECTOR(
                vf_mul(v[i], load_cols((const float *)(const void *)at[i].operand, at[i].cols)));
        case MGX_END_ACT:
            EACH_VECTOR(end_act(s, v[i]));
        case MGX_END_COLUMNS:
            EACH_VECTOR(vf_fma(v[i], load_cols(s->columns.factor + at[i].col, at[i].cols),
                               load_cols(s->columns.term + at[i].col, at[i].cols)));
        case MGX_END_CLAMP:
            EACH_VECTOR(end_clamp(s, v[i]));
        case MGX_END_ROUND:
            EACH_VECTOR(vf_round(v[i]));
        case MGX_END_TABLE:
            end_table(s, v);
            break;
        case MGX_END_MIX:
            end_mix(s, at, v);
            break;
        case MGX_END_SCALE:
            EACH_VECTOR(vf_mul(v[i], vf_set(s->scale)));
        case MGX_END_BYTE:
            end_as_bytes(s, at, v);
            return;
        case MGX_END_BLOCK:
            break; // not here
        }
    UNROLL
    for (int i = 0; i < END_VECTORS; i++)
        store_cols(at[i].to, at[i].cols, v[i]);
}
