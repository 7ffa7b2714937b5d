// SPDX-License-Identifier: MIT
// Choosing the next token of a text from its scores.
//
// The rule, step by step, in double arithmetic; docs/generation.md says the same to users:
//
//     1  s[i]           the score of token i, plus the caller's bias of it
//     2  s[i]           of a token that the text has: s / r where s > 0, else s * r   (repetition r)
//     3  order          by s, largest first; of equal ones the smaller token first
//     4  temperature 0  the first of the order, and nothing else is done
//     5  w[i]           exp((s[i] - s[first]) / temperature)
//     6  top_k          only the first k of the order stay
//     7  top_p          the shortest beginning of these stays whose w sum to top_p of theirs or more
//     8  min_p          of these, whose w is min_p times w[first] or more
//     9  the draw       u in [0, 1) from seed and position; tokens that stay in the order of their
//                       numbers: the first whose w, with all before it, is above u times the sum
//
// Holds: the same scores, text, settings and position give the same token, on every machine whose
// exp agrees, up to the rounding of sums at a cut. A score of minus infinity is never chosen. Cost:
// O(tokens), where a cut is asked for too; no allocation once the room is as large as the
// vocabulary.
#pragma once

#include <stdint.h>

#include "base/status.h"

struct mgx_sampling {
    double temperature; // 0: the best token
    int64_t top_k;      // 0: all
    double top_p;       // 1: all
    double min_p;       // 0: all
    double repetition;  // 1: none
    uint64_t seed;
};

// What every text begins with: the best token, no other rule.
struct mgx_sampling mgx_sampling_plain(void);

// What choosing needs besides the scores; all zero is an empty room.
struct mgx_draw_room {
    double *weights;
    int32_t *order;
    int64_t size; // of both
};
void mgx_draw_room_fini(struct mgx_draw_room *room);

struct mgx_draw {
    const struct mgx_sampling *sampling;
    const float *scores;
    const float *bias; // as many as scores, added to them; NULL: none
    int64_t size;
    const int64_t *text; // tokens so far; what lies outside the scores is passed over
    int64_t length;      // of it: the position of the token that is chosen
    double u;            // of step 9: mgx_draw_at, in [0, 1)
};
// What a seed draws for a position.
double mgx_draw_at(uint64_t seed, int64_t position);
// MGX_INVALID where a score is no number, or no token may be chosen.
enum mgx_status mgx_draw_token(const struct mgx_draw *s, struct mgx_draw_room *room, int64_t *out,
                               struct mgx_diag *diag) MGX_NODISCARD;
