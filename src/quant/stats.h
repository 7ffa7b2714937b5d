// SPDX-License-Identifier: MIT
// What was seen of a value while the program ran: extremes, a histogram, sums by channel.
//
// The histogram covers [-reach, reach) in bins of one width. Reach is a power of two that doubles
// when a value lies beyond, pairs of bins becoming one, so that nothing has to be known before and
// nothing is seen twice. Values that are not finite are counted and otherwise left out; exact zeros
// are no element of a bin, since every scale keeps them. Cost: a few nanoseconds per value, 32 KiB.
#pragma once

#include "quant/quant.h"

enum { MGX_STATS_BINS = 4096 };

struct mgx_stats {
    double low, high;              // of finite values, 0 among them
    int64_t count, zeros, strange; // finite values, zeros among them; those that are not finite
    double reach;                  // 0: no bins yet
    int64_t *bins;                 // MGX_STATS_BINS
    int64_t channels;              // 0: not by channel
    int64_t per_channel;           // values of a channel
    double *lows, *highs, *sums, *squares; // by channel
};

// Bins, and rooms for channels if there are any, in the arena.
enum mgx_status mgx_stats_init(struct mgx_stats *s, struct mgx_arena *arena, int64_t channels,
                               struct mgx_diag *diag) MGX_NODISCARD;
// All elements of a tensor of numbers; its channels lie along `axis`.
enum mgx_status mgx_stats_add(struct mgx_stats *s, const struct mgx_tensor *t, int axis,
                              struct mgx_diag *diag) MGX_NODISCARD;
// Between which values `levels` steps are to lie (127: each side of zero; 255: from low to high).
// *known is false when no finite value was seen.
struct mgx_recipe_input mgx_stats_range(const struct mgx_stats *s, enum mgx_quant_method method,
                                        double percentile, int levels);
