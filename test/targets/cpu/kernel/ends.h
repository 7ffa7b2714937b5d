// SPDX-License-Identifier: MIT
// Lists of steps that tiles end by, drawn at random, and what they mean in double. The meaning is
// written from the table in end.h, not from the kernels.
#pragma once

#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/kernel/harness.h"

// What a list makes of x, in column `col`; `block`: what a test's block program adds.
static inline double end_meaning(const struct mgx_end *end, double x, int64_t col, double operand,
                                 double block)
{
    for (const struct mgx_end_step *s = end->step; s < end->step + end->count; s++)
        switch (s->kind) {
        case MGX_END_ADD:
            x += operand;
            break;
        case MGX_END_MULTIPLY:
            x *= operand;
            break;
        case MGX_END_ACT:
            x = act_meaning(s->act.act, x, s->act.column ? s->act.column[col] : s->act.a, s->act.b);
            break;
        case MGX_END_COLUMNS:
            x = x * s->columns.factor[col] + s->columns.term[col];
            break;
        case MGX_END_BLOCK:
            x += block;
            break;
        case MGX_END_CLAMP:
            x = fmin(fmax(x / s->clamp.divisor, s->clamp.low), s->clamp.high);
            break;
        case MGX_END_ROUND:
            x = nearbyint(x);
            break;
        case MGX_END_TABLE:
            x = s->table.table[(int)nearbyint(x) - s->table.low] - s->table.zero;
            break;
        case MGX_END_MIX:
            x = x * s->mix.keep + (s->mix.reads ? (operand - s->mix.zero) * s->mix.share : 0) +
                (s->mix.term ? s->mix.term[col] : 0);
            break;
        case MGX_END_SCALE:
            x *= s->scale;
            break;
        case MGX_END_BYTE:
            x = nearbyint(x) + s->byte.zero;
            if (s->byte.table)
                x = s->byte.table[(uint8_t)(int)x];
            break;
        }
    return x;
}

static inline void end_act_then(struct mgx_end *end, enum mgx_act act, float a, float b)
{
    if (act != MGX_ACT_NONE)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ACT, .act = {act, a, b, NULL}});
}

// An operand of this type first, behind the activation, multiplied, or none; an activation below
// `acts`; factors and terms where `factor` is not NULL; `block` where that is not NULL.
static inline struct mgx_end end_random(struct rng *r, enum mgx_kernel_type type, int acts,
                                        const float *factor, const float *term, mgx_tile_hook block)
{
    struct mgx_end end = {.count = 0};
    enum mgx_act act = (enum mgx_act)(rng_below(r, 2) ? rng_below(r, acts) : MGX_ACT_NONE);
    const int place = rng_below(r, 4);
    if (act == MGX_ACT_THRESHOLDED_RELU) // jumps, where rounding decides
        act = MGX_ACT_NONE;
    if (place == 1)
        mgx_end_then(&end, (struct mgx_end_step){.kind = MGX_END_ADD, .type = type});
    end_act_then(&end, act, act == MGX_ACT_CLIP ? -0.25f : 0.2f, 0.5f);
    if (factor)
        mgx_end_then(&end,
                     (struct mgx_end_step){.kind = MGX_END_COLUMNS, .columns = {factor, term}});
    if (place > 1)
        mgx_end_then(&end, (struct mgx_end_step){
                               .kind = place == 2 ? MGX_END_ADD : MGX_END_MULTIPLY, .type = type});
    if (block)
        mgx_end_then(&end, (struct mgx_end_step){.kind = MGX_END_BLOCK, .block = block});
    return end;
}

static inline enum mgx_kernel_type end_operand_type(struct rng *r, enum mgx_kernel_type result)
{
    const int type = rng_below(r, 4);
    return type == 3 ? result : (enum mgx_kernel_type)type;
}

// --- bytes ---

struct end_bytes {
    bool is_signed, adds, from_signed, rounds, floats, rounds_last;
    float divisor, low, high;
    int zero;
    bool spare, spare_last;
    const uint8_t *middle, *table;
};

static const int END_OPERAND_ZERO = 7, END_MIDDLE_ZERO = 11;

static inline bool end_has_second(const struct end_bytes *q)
{
    return q->adds || q->floats || q->middle;
}

static inline void end_bytes_then(struct mgx_end *end, const struct end_bytes *q)
{
    mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_CLAMP,
                                            .clamp = {q->divisor, q->low, q->high, q->spare}});
    if (end_has_second(q)) {
        if (q->middle)
            mgx_end_then(end,
                         (struct mgx_end_step){.kind = MGX_END_TABLE,
                                               .table = {q->middle, (int)q->low, END_MIDDLE_ZERO}});
        else if (q->rounds)
            mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ROUND});
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_MIX,
                                                .mix = {.keep = 0.5f,
                                                        .share = 0.25f,
                                                        .reads = q->adds,
                                                        .is_signed = q->from_signed,
                                                        .zero = END_OPERAND_ZERO}});
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_CLAMP,
                                                .clamp = {1, q->low, q->high, q->spare_last}});
    }
    if (!q->floats) {
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_BYTE,
                                                .byte = {q->table, q->is_signed, q->zero}});
        return;
    }
    if (q->rounds_last)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ROUND});
    mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_SCALE, .scale = 0.125f});
}

// Some way to bytes, or to floats that were such; [2][256] tables.
static inline struct end_bytes end_bytes_random(struct rng *r, const uint8_t tables[2][256])
{
    const bool is_signed = rng_below(r, 2);
    const int zero = rng_below(r, 3) * 127 - (is_signed ? 127 : 0);
    const float low = (float)((is_signed ? -128 : 0) - zero);
    struct end_bytes q = {.is_signed = is_signed,
                          .adds = rng_below(r, 2),
                          .from_signed = rng_below(r, 2),
                          .rounds = rng_below(r, 4) > 0,
                          .floats = rng_below(r, 4) == 0,
                          .rounds_last = rng_below(r, 2),
                          .divisor = 1,
                          .low = low,
                          .high = low + 255,
                          .zero = zero};
    q.middle = rng_below(r, 4) == 0 ? tables[0] : NULL;
    q.table = !q.floats && rng_below(r, 3) == 0 ? tables[1] : NULL;
    return q;
}
