// SPDX-License-Identifier: MIT
// The next token, chosen where the scores are: an operator more at the end of a decoder.
//
//     logits -> choose_token(logits, knobs, seen, bias) -> the last result
//
// For plans on a card (plans.h): a token's number comes to the host, not the scores of all words.
// What of a text the rule wants is put together here; the rule is op/reference/draw.h's.
#pragma once

#include "generate/roles.h"
#include "op/reference/draw.h"
#include "op/rule/choice.h"

enum {
    MGX_CHOICE_WORDS = 1 << 18, // that there is a kernel for
    MGX_CHOICE_INPUTS = 3,      // that a plan has for it
};

#define MGX_CHOICE_KNOBS_NAME "choice_knobs"
#define MGX_CHOICE_SEEN_NAME "choice_seen"
#define MGX_CHOICE_BIAS_NAME "choice_bias"

// The program, which is not compiled, has the parameters and the result from now on, and the roles
// say so.
enum mgx_status mgx_choice_add(struct mgx_program *p, struct mgx_roles *roles,
                               struct mgx_diag *diag) MGX_NODISCARD;

// The tokens of a text, each once, in the order in which they came first. All zero is an empty one.
struct mgx_seen {
    int32_t *list;
    uint64_t *bits;
    int64_t count, room, upto; // tokens of the text that were looked at
};
void mgx_seen_fini(struct mgx_seen *seen);
// The first `length` tokens are looked at, of `words` that there are. Cost: O(those that are new).
enum mgx_status mgx_seen_follow(struct mgx_seen *seen, const int64_t *tokens, int64_t length,
                                int64_t words, struct mgx_diag *diag) MGX_NODISCARD;

// What one text brings to a choice.
struct mgx_choice {
    const struct mgx_sampling *sampling;
    double u;                    // mgx_draw_at
    const struct mgx_seen *seen; // where repetition is not 1
    const float *bias;           // NULL: none
    uint64_t bias_number;        // two biases of one number are the same
};
// Knobs of a text, of none where `choice` is NULL.
void mgx_choice_knobs(const struct mgx_choice *choice, double out[MGX_CHOICE_KNOBS]);
