// SPDX-License-Identifier: MIT
// The card's way of running tracks: plans of fixed sizes over caches in its memory.
#pragma once

#include "generate/tracks.h"

// Of a source with plans.
enum mgx_status mgx_card_create(struct mgx_card **out, const struct mgx_states_source *source,
                                struct mgx_diag *diag) MGX_NODISCARD;
void mgx_card_destroy(struct mgx_card *card); // NULL is allowed
// As mgx_states_run, for states that have a card.
enum mgx_status mgx_card_run(struct mgx_states *states, const struct mgx_track_run *run,
                             struct mgx_diag *diag) MGX_NODISCARD;
// The scores behind a token whose caches have `rows` made-up rows, each the same for every room,
// and something else behind them. For asking a model what it looks at (hold.h).
enum mgx_status mgx_card_try(struct mgx_states *states, int64_t rows, int64_t room, float *scores,
                             struct mgx_diag *diag) MGX_NODISCARD;
