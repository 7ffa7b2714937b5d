// SPDX-License-Identifier: MIT
// What whoever computes cache_append, cache_attention or a rotation of heads knows of them.
#pragma once

#include <inttypes.h>
#include <stdbool.h>

#include "base/map.h"
#include "op/rule/rule.h"

struct mgx_cache_attention {
    double scale, cap;
    int64_t window; // keys that a token sees, itself included; 0: all before it
    int64_t kept;   // bits of what the cache has of a number, 8 or 4; 0: elements
    bool bias, sink;
    bool whole; // a token sees all of its entry, later tokens too
};

struct mgx_paged_attention {
    double scale, cap;
    int64_t window, kept; // as above
    bool sink;
    bool whole; // a token sees all of its text, later tokens too
};

// The tokens [from, to) of the text behind one that ended at `from`: sums[s + 1] says where it
// ends, as far as that is in order; the last one has all that are left.
static inline int64_t mgx_paged_end(const int64_t *sums, int64_t texts, int64_t tokens,
                                    int64_t text, int64_t from)
{
    const int64_t end = text + 1 < texts && sums[text + 1] < tokens ? sums[text + 1] : tokens;
    return end > from ? end : from;
}

// What is in a cache with room, as a mark (plan/blocks.h): its four lengths, and then one entry
// after the other how many tokens it has. Not 0.
static inline uint64_t mgx_cache_mark(const int64_t *lens)
{
    return mgx_hash_bytes(lens, 4 * sizeof *lens, 0) | 1;
}

static inline uint64_t mgx_cache_mark_entry(uint64_t mark, int64_t count)
{
    return mgx_hash_bytes(&count, sizeof count, mark) | 1;
}

// Heads of queries share those of keys evenly, as far as both numbers are known.
static inline enum mgx_status mgx_require_shared_heads(struct mgx_shape_call *c,
                                                       struct mgx_dim heads, struct mgx_dim shared)
{
    if (mgx_dim_is_fixed(&heads) && mgx_dim_is_fixed(&shared) &&
        (shared.min < 1 ? heads.min > 0 : heads.min % shared.min != 0))
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " query heads do not share %" PRId64 " key heads",
                        c->op->name, heads.min, shared.min);
    return MGX_OK;
}

// Where the new tokens of an entry begin.
static inline int64_t mgx_cache_before(int64_t ends, int64_t tokens)
{
    return ends > tokens ? ends - tokens : 0;
}

// The keys [from, to) that new token i of an entry sees.
static inline void mgx_cache_visible(const struct mgx_cache_attention *a, int64_t ends,
                                     int64_t tokens, int64_t keys, int64_t i, int64_t *from,
                                     int64_t *to)
{
    const int64_t at = a->whole ? (ends > 1 ? ends - 1 : 0) : mgx_cache_before(ends, tokens) + i;
    *to = at < keys ? at + 1 : keys;
    *from = a->window > 0 && at >= a->window ? at + 1 - a->window : 0;
    *from = *from < *to ? *from : *to;
}

// Turns the pairs (x, y) of a head: neighbours when interleaved, else its first and second `half`.
static inline void mgx_turn_head(double *head, const double *cosines, const double *sines,
                                 int64_t half, bool interleaved)
{
    for (int64_t i = 0; i < half; i++) {
        double *x = &head[interleaved ? 2 * i : i], *y = &head[interleaved ? 2 * i + 1 : half + i];
        const double old = *x;
        *x = old * cosines[i] - *y * sines[i];
        *y = *y * cosines[i] + old * sines[i];
    }
}
