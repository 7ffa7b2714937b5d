// SPDX-License-Identifier: MIT
// What both ways of running tracks know of them (state.c, state_card.c); for these two alone.
#pragma once

#include "generate/feed.h"
#include "generate/source.h"

enum { MGX_TRACK_MARKS = 4 }; // places that states of fixed lengths can go back to, for each track

struct mgx_card;

struct mgx_states {
    struct mgx_states_source source;
    struct mgx_bundle *bundles; // all that live
    struct mgx_named_tensor *params;
    struct mgx_tensor *results;
    struct mgx_card *card; // NULL: one program with open sizes
};

struct mgx_track {
    struct mgx_states *states;
    struct mgx_source *about; // NULL: nothing
    struct mgx_place at;
    struct mgx_place marks[MGX_TRACK_MARKS]; // oldest first
    int mark_count;
};

void mgx_place_set(struct mgx_place *place, struct mgx_place by);
// Is there a way back to where the track stands?
bool mgx_track_is_marked(const struct mgx_track *track);
// A place to go back to; the oldest makes room.
void mgx_track_mark(struct mgx_track *track, struct mgx_place place);

int64_t mgx_run_longest(const struct mgx_track_run *run);
// Rows for the tracks of a run, whose caches with room should have `needed` ones.
enum mgx_status mgx_run_rows(struct mgx_states *states, const struct mgx_track_run *run,
                             const struct mgx_slab *slab, int64_t needed, struct mgx_rows *out,
                             struct mgx_diag *diag) MGX_NODISCARD;
