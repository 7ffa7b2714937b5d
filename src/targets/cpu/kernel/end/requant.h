// SPDX-License-Identifier: MIT
// The last step of a quantised product or convolution: a tile of floats to bytes, or to floats that
// were bytes, and what a residual of bytes adds on the way.
//
//     v = tile[i][j] / divisor                 in steps of the result; a divisor of 1 is free
//     r = round(clamp(v, low, high))           ties to even; NaN becomes low
//     where there is a second step, and without that rounding unless `rounds`:
//         r = middle[r - middle_low] - middle_zero    where there is such a table; it rounds then
//         r = round(clamp(r * keep + term[j] + (residual[i][j] - residual_zero) * share,
//                         low2, high2))
//     y = r + zero                             a byte, since low and high say so
//     y = table[y]                             where there is a table
//
// A second step is where a residual, a term, a table in the middle or `floats` is. With `floats`
// what follows is y = r * unit, a float, and the last rounding is left out unless `rounds_last`.
//
// Kernels that pack with saturation may leave out clamps that change nothing: the first where
// `saturates`, without a second step, the second's where `saturates_last`.
//
// Costs some four instructions for eight values, eight with a residual, twenty with a table.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_requant {
    bool is_signed;
    float divisor, low, high;
    int zero; // added last
    bool residual, residual_signed, rounds, floats, rounds_last;
    float keep, share, low2, high2, unit;
    int residual_zero;
    const float *term;     // by column; NULL: none. Tiles end in memory then, not in registers
    const uint8_t *middle; // [256]; NULL: none
    int middle_low, middle_zero;
    const uint8_t *table; // [256], by the byte as it lies in memory; NULL: none
    // What is clamped fits 32 bits, and rounded limits are those of the byte: the divisor is 1.
    bool saturates, saturates_last;
};

// Floats to bytes by a scale and a zero point, and no more.
static inline struct mgx_requant mgx_requant_to(float scale, int zero, bool is_signed)
{
    const float low = (float)((is_signed ? -128 : 0) - zero);
    return (struct mgx_requant){
        .is_signed = is_signed, .divisor = scale, .low = low, .high = low + 255, .zero = zero};
}

// A residual is added as an unsigned byte times `share`; its zero point is in an offset that is
// added before, so that no byte is subtracted from, and every kernel does it so: they round alike.
// Signed bytes are unsigned ones that are this much larger.
static inline int mgx_requant_raised(const struct mgx_requant *q)
{
    return q->residual_signed ? 128 : 0;
}

static inline float mgx_requant_offset(const struct mgx_requant *q)
{
    return q->share * (float)-(q->residual_zero + mgx_requant_raised(q));
}

static inline bool mgx_requant_has_second(const struct mgx_requant *q)
{
    return q->residual || q->term || q->middle || q->floats;
}

// Added to a byte's number and taken off again it rounds it, where it is to be rounded.
static inline float mgx_requant_magic(const struct mgx_requant *q)
{
    return q->rounds ? 0x1.8p23F : 0;
}

// For a tile whose first column is this one.
static inline struct mgx_requant mgx_requant_from(const struct mgx_requant *q, int64_t column)
{
    struct mgx_requant from = *q;
    from.term += from.term ? column : 0;
    return from;
}

// rows x cols floats, rows `stride` floats apart, to bytes, or floats, whose rows are `out_row`
// bytes apart. `residual` is read where the description says so.
typedef void (*mgx_requant_fn)(const struct mgx_requant *q, const float *tile, int64_t stride,
                               int rows, int cols, const void *residual, int64_t residual_row,
                               void *out, int64_t out_row);

struct mgx_requant_kernel {
    struct mgx_kernel base;
    mgx_requant_fn run;
};

MGX_KERNEL_KIND(requant)
