// SPDX-License-Identifier: MIT
// The texts of a generator, without its lock: one thread at a time.
//
//     v   t e x t a n s w e r s
//         <- count -><- ahead ->      chosen already, for later calls: no caller sees them yet
//
// Holds: a track is never longer than count + ahead tokens, but between a run of guesses and the
// choice that follows it. A text with tokens ahead goes back to `count` before anything that they
// followed from changes.
#pragma once

#include "base/array.h"
#include "generate/choice.h"
#include "generate/generator.h"
#include "generate/state.h"

struct mgx_text {
    MGX_ARRAY(int64_t); // its tokens
    int64_t ahead;      // chosen already, behind them
    int64_t given;      // up to where the caller gave them; the rest was chosen
    struct mgx_track *track;
    float *logits;        // behind the last token and those guessed, `scored` rows
    int64_t rows;         // that there is room for
    int64_t scored;       // 0: not run yet
    int64_t guesses;      // at a time
    size_t shadow;        // its number in the draft, + 1; 0: none
    float *bias;          // NULL: none
    uint64_t bias_number; // of two texts the same where the bias is
    struct mgx_seen seen; // where repetition is penalised
    struct mgx_sampling sampling;
};

struct mgx_texts {
    struct mgx_generator_model *model;
    struct mgx_states *states;
    MGX_ARRAY(struct mgx_text *); // by number; NULL: removed
    struct mgx_draw_room room;
    struct mgx_generator_statistics done;
    struct mgx_texts *draft; // NULL: none
    bool takes_pieces;       // a run of several tokens succeeded
    bool one_by_one;         // and none does: the model takes one, though it does not say so
};

// What generator.h says of the functions of these names. Create holds the model.
enum mgx_status mgx_texts_create(struct mgx_texts **out, struct mgx_generator_model *model,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_texts_destroy(struct mgx_texts *g);
enum mgx_status mgx_texts_find(const struct mgx_texts *g, size_t number, struct mgx_text **out,
                               struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_add(struct mgx_texts *g, size_t *number,
                              struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_fork(struct mgx_texts *g, size_t from, size_t size, size_t *number,
                               struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_remove(struct mgx_texts *g, size_t number,
                                 struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_set_source(struct mgx_texts *g, size_t number,
                                     const struct mgx_named_tensor *inputs, size_t count,
                                     struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_append(struct mgx_texts *g, size_t number, const int64_t *tokens,
                                 size_t size, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_rewind(struct mgx_texts *g, size_t number, size_t size,
                                 struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_set_sampling(struct mgx_texts *g, size_t number,
                                       const struct mgx_sampling *sampling,
                                       struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_set_bias(struct mgx_texts *g, size_t number, const float *bias,
                                   size_t size, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_set_guesses(struct mgx_texts *g, size_t number, size_t most,
                                      struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_set_draft(struct mgx_texts *g, struct mgx_generator_model *model,
                                    struct mgx_diag *diag) MGX_NODISCARD;

// Is there room in the model's context for `more` tokens?
enum mgx_status mgx_texts_check_context(const struct mgx_texts *g, size_t number,
                                        const struct mgx_text *t, size_t more,
                                        struct mgx_diag *diag) MGX_NODISCARD;
// What was chosen ahead is chosen again: something that it followed from changes.
enum mgx_status mgx_text_drop_ahead(struct mgx_text *t, struct mgx_diag *diag) MGX_NODISCARD;
