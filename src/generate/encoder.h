// SPDX-License-Identifier: MIT
// What a text is about: the encoder of a model, and what it makes of a caller's inputs.
//
//     inputs  --encoder-->  hidden states  --crossing-->  keys and values of them, of every layer
//             --beforehand-->  what the decoder computes of these alone (beforehand.h)
//
// A decoder takes these as inputs that stay the same for all tokens of a text: the hidden states
// themselves, or keys and values. Where the encoder does not give those, the crossing is the part
// of the decoder that makes them; Optimum's decoders come in two for that, one for first tokens
// and one for later ones, as two files or as the branches of a merged one. Only the second is kept
// as the decoder: from no tokens on it gives what the first would.
//
// Holds: an encoder does not change once it is linked and its stages are compiled (by whoever makes
// it). Cost: O(instructions of the decoder).
#pragma once

#include "generate/roles.h"

#define MGX_ENCODER_MASK "attention_mask"

enum { MGX_ENCODER_STAGES = 3 };

// Where an input comes from: the result of a stage by its number, or one of these. Keys and values
// are of no token, but the decoder takes the number of texts from its tokens' shape.
enum { MGX_GIVEN_BY_CALLER = -1, MGX_GIVEN_ANY_TOKEN = -2 };

struct mgx_given {
    const char *name;
    int stage, at; // which result, or which of the encoder's inputs
};

struct mgx_encoder {
    struct mgx_program *stages[MGX_ENCODER_STAGES]; // the second and third may be NULL
    struct mgx_given *given;
    int given_count;
    struct mgx_given *inputs[MGX_ENCODER_STAGES]; // of the second and third
    int input_count[MGX_ENCODER_STAGES];
    size_t weights; // bytes of literals
    bool by_one;    // the decoder that is left takes one token at a time
    struct mgx_arena arena;
};

struct mgx_encoder_parts {
    struct mgx_program *encoder; // taken, also on failure
    struct mgx_program *decoder; // the caller's; rewritten, where it has two branches
    struct mgx_program *first;   // of first tokens; taken, also on failure; NULL: there is none
    // How the encoder's results are called where the decoder takes them; others are guessed.
    const struct mgx_state_names *names;
    int name_count;
};
// Nothing is compiled yet.
enum mgx_status mgx_encoder_link(struct mgx_encoder **out, const struct mgx_encoder_parts *parts,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_encoder_destroy(struct mgx_encoder *encoder); // NULL is allowed
