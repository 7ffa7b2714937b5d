// SPDX-License-Identifier: MIT
// Texts that a model continues, token by token.
//
// A generator has texts, known by numbers; a text has its tokens, and a track (state.h) that
// remembers a beginning of them. Tokens behind it are pending: they run when scores are asked for,
// those of many texts together where the model takes that.
//
//     tokens   p r o m p t a n s w
//     track     [remembered ] pending          rewind: a shorter text; the track follows when it must
//
// Holds: what a caller sees of a text, its tokens, changes only when a call succeeds; what a call
// that failed has remembered meanwhile stays, and is not done again. Calls on one generator take
// turns. Cost of the next token: one run for all texts that need one, and a choice for each.
#pragma once

#include <pthread.h>

#include "generate/encoder.h"
#include "generate/roles.h"
#include "op/reference/draw.h"
#include "plan/exchange.h"

enum { MGX_GENERATOR_SCORES = 16 };

// What generators of one model share; counted.
struct mgx_generator_model {
    struct mgx_program *program; // compiled
    struct mgx_plans *plans;     // of fixed sizes, where the target has memory of its own; or NULL
    struct mgx_lengths *lengths; // of a decoder that is told what follows from them; or NULL
    struct mgx_roles roles;
    struct mgx_arena arena; // of roles and ends
    const int64_t *ends;    // tokens that end an answer
    int end_count;
    struct mgx_encoder *encoder;  // compiled; NULL: texts are about nothing
    int64_t start;                // the token that a text begins with; -1: nobody says
    int64_t context;              // most tokens of a text; 0: no limit
    int64_t piece;                // most tokens of a prompt in one run
    bool few_scores;              // a run gives the scores of MGX_GENERATOR_SCORES tokens at most
    struct mgx_sampling sampling; // of new texts
    // Of several cards: one model for each, this one the first card's; their exchange, and the
    // threads that run them, for one generator at a time.
    struct mgx_generator_model **others;
    struct mgx_exchange *exchange;
    struct mgx_team *team; // NULL: one card
    pthread_mutex_t *turn;
    _Atomic bool apart; // one card did what another could not: they are of no use any more
    _Atomic int holders;
};
struct mgx_generator_model *mgx_generator_model_create(void); // NULL when out of memory
void mgx_generator_model_release(struct mgx_generator_model *model);
// The model becomes that of the first of `count` cards: models of the others are made, to be filled
// by the model's team. Takes the exchange, also on failure.
enum mgx_status mgx_generator_model_share(struct mgx_generator_model *model, int count,
                                          struct mgx_exchange *take,
                                          struct mgx_diag *diag) MGX_NODISCARD;
// The one of a card.
struct mgx_generator_model *mgx_generator_model_at(struct mgx_generator_model *model, int card);

struct mgx_generator;
struct mgx_named_tensor;

// Holds the model.
enum mgx_status mgx_generator_create(struct mgx_generator **out, struct mgx_generator_model *model,
                                     struct mgx_diag *diag) MGX_NODISCARD;
void mgx_generator_destroy(struct mgx_generator *g);
struct mgx_generator_model *mgx_generator_model_of(const struct mgx_generator *g); // borrowed

// --- texts ---
enum mgx_status mgx_generator_add(struct mgx_generator *g, size_t *text,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// A new one with the first `size` tokens of another, and with what is remembered of them.
enum mgx_status mgx_generator_fork(struct mgx_generator *g, size_t from, size_t size, size_t *text,
                                   struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_generator_remove(struct mgx_generator *g, size_t text,
                                     struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_generator_append(struct mgx_generator *g, size_t text, const int64_t *tokens,
                                     size_t size, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_generator_rewind(struct mgx_generator *g, size_t text, size_t size,
                                     struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_generator_size(struct mgx_generator *g, size_t text, size_t *size,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// The first `size` tokens.
enum mgx_status mgx_generator_tokens(struct mgx_generator *g, size_t text, int64_t *out,
                                     size_t size, struct mgx_diag *diag) MGX_NODISCARD;

// What the text is about: the encoder runs with these inputs, which are lent, and the text's tokens
// are to run again.
enum mgx_status mgx_generator_set_source(struct mgx_generator *g, size_t text,
                                         const struct mgx_named_tensor *inputs, size_t count,
                                         struct mgx_diag *diag) MGX_NODISCARD;

// --- choosing ---
enum mgx_status mgx_generator_set_sampling(struct mgx_generator *g, size_t text,
                                           const struct mgx_sampling *sampling,
                                           struct mgx_diag *diag) MGX_NODISCARD;
// Added to the scores of every later token, a value for each; NULL: none.
enum mgx_status mgx_generator_set_bias(struct mgx_generator *g, size_t text, const float *bias,
                                       size_t size, struct mgx_diag *diag) MGX_NODISCARD;

// --- guessing ---
// A run may take tokens that were guessed: those that the text would have had, by the rule of
// draw.h, are kept for later calls, the others are taken back. Nothing but time changes.
enum { MGX_GENERATOR_GUESSES = MGX_GENERATOR_SCORES - 1 };
// Guesses up to `most` tokens at a time: what followed the last ones of the text where it had them
// before, or what the draft says. 0: none.
enum mgx_status mgx_generator_set_guesses(struct mgx_generator *g, size_t text, size_t most,
                                          struct mgx_diag *diag) MGX_NODISCARD;
// A smaller model of the same tokens, whose best ones are the guesses; NULL: none. Holds the model.
enum mgx_status mgx_generator_set_draft(struct mgx_generator *g, struct mgx_generator_model *model,
                                        struct mgx_diag *diag) MGX_NODISCARD;

// --- running ---
// The next token of each, which is appended to it.
enum mgx_status mgx_generator_next(struct mgx_generator *g, const size_t *texts, size_t count,
                                   int64_t *tokens, struct mgx_diag *diag) MGX_NODISCARD;
// The scores behind the last token.
enum mgx_status mgx_generator_logits(struct mgx_generator *g, size_t text, float *out, size_t size,
                                     struct mgx_diag *diag) MGX_NODISCARD;

// What has been done so far, and what it holds.
struct mgx_generator_statistics {
    double prompt_tokens, prompt_seconds; // in runs with tokens that the caller gave
    double answer_tokens, answer_seconds; // in runs with chosen tokens alone
    double guessed_tokens, right_tokens;  // and those of them that were kept
    double runs, weight_bytes, state_bytes;
};
void mgx_generator_statistics_of(struct mgx_generator *g, struct mgx_generator_statistics *out);
