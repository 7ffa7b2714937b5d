// SPDX-License-Identifier: MIT
// What a model remembers of texts between runs, behind one interface.
//
// A track is the remembered beginning of one text: so many tokens, and the caches and states that a
// run with them left. Who generates decides which tracks run together and by how many tokens each
// goes on; this decides how: by one program with open sizes, whose results are handed back as they
// come (docs/sizes.md, "Growing state"), or by plans of fixed sizes over caches in a card's memory
// (state_card.c).
//
//     track  ->  bundle, row, length          bundle: the values of one run, {rows, ...} each
//
// Tracks that ran together share a bundle, a row each. A bundle never changes: a run makes a new
// one, and the old one goes with the last track that holds it. So a run that fails leaves every
// track as it was, and a second track of the same beginning costs nothing until both go on. What is
// written on the way lies behind the tokens of whoever has the old one, or in memory of its own;
// the engine's kernels see to that (targets/cpu/lower/cache_append.c). On a card a bundle's memory
// stays the same and is written behind the tokens of all who hold it (slab.h).
//
// Holds: tracks end before their states. One thread at a time for all tracks of one `struct
// mgx_states`; several of these may share a program. Cost of a run: the program's, and a copy of
// the caches where tracks come together that were apart, part, or outgrow their room, which then
// doubles.
#pragma once

#include "generate/choice.h"
#include "generate/roles.h"

struct mgx_plans;  // plans.h
struct mgx_source; // source.h
struct mgx_states;
struct mgx_track;

// What runs are made of: a compiled program and what its inputs are for; outlives the states.
struct mgx_states_source {
    const struct mgx_program *program;
    const struct mgx_roles *roles;
    struct mgx_plans *plans; // the card's way; NULL: the program's steps for any size
    int64_t context;         // most tokens of a text; 0: no limit
    int64_t scores;          // a run gives those of so many last rows at most; 0: of all
};
enum mgx_status mgx_states_create(struct mgx_states **out, const struct mgx_states_source *source,
                                  struct mgx_diag *diag) MGX_NODISCARD;
void mgx_states_destroy(struct mgx_states *states); // NULL is allowed, as in every destroy

// A track without tokens.
enum mgx_status mgx_track_create(struct mgx_track **out, struct mgx_states *states,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_track_destroy(struct mgx_track *track);
// A second track with all that this one has.
enum mgx_status mgx_track_copy(struct mgx_track **out, const struct mgx_track *track,
                               struct mgx_diag *diag) MGX_NODISCARD;
int64_t mgx_track_length(const struct mgx_track *track);
// What the given inputs are for this track, which holds it; all tokens will have to run again. It
// runs only when it has it, where roles->given_count is not 0.
enum mgx_status mgx_track_set_about(struct mgx_track *track, struct mgx_source *source,
                                    struct mgx_diag *diag) MGX_NODISCARD;
bool mgx_track_is_about(const struct mgx_track *track); // something
// Goes back to `length` tokens, or to as many fewer as it takes where states cannot go back to any
// length; what lies between is run again. On failure nothing has changed.
enum mgx_status mgx_track_rewind(struct mgx_track *track, int64_t length,
                                 struct mgx_diag *diag) MGX_NODISCARD;

// Every track goes on by `each` tokens, row by row in `tokens`; logits[i] gets the scores behind
// the last `scores` ones of track i, of so many words each. `count` above 1 only where
// roles->takes_many. On failure no track has changed.
struct mgx_track_run {
    struct mgx_track *const *tracks;
    int64_t count, each;
    const int64_t *tokens;
    float *const *logits;
    int64_t scores, words;
    // Of each track, for one token each: chosen[i] is the token that follows, and no scores come;
    // or below 0, and they do. `choices` NULL: scores come. Only where roles->chooses.
    const struct mgx_choice *choices;
    int64_t *chosen;
};
enum mgx_status mgx_states_run(struct mgx_states *states, const struct mgx_track_run *run,
                               struct mgx_diag *diag) MGX_NODISCARD;
// Bytes of all caches and states that tracks hold.
size_t mgx_states_bytes(const struct mgx_states *states);
