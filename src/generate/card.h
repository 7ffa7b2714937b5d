// SPDX-License-Identifier: MIT
// What running tracks on a card (state_card.c, card_inputs.c, card.c) and asking a model there
// (card_try.c) share; for these alone.
#pragma once

#include "generate/rows.h"
#include "generate/tracks.h"

struct mgx_card {
    const struct mgx_memory *memory;
    struct mgx_queue *queue;
    // Bytes on the card, as many as any run wanted.
    struct mgx_tensor inputs, logits, seen, bias, chosen, fixed[2];
    uint64_t *bias_numbers; // of each row of `bias`, which one lies there; 0: none
    int64_t bias_rows;
    unsigned char *host; // what goes in, and what comes out
    size_t host_bytes;
    int64_t scores;  // a plan gives those of so many last rows at least, as far as is known
    bool one_by_one; // no plan was to be made of several tokens
};

// One step of a run, by one plan.
struct mgx_card_step {
    int64_t from, given, each; // tokens of the run, and rows with those that fill up
};

struct mgx_card_call {
    struct mgx_states *s;
    struct mgx_feed feed;
    struct mgx_card_step step;
    const struct mgx_fixed_plan *plan;
    struct mgx_source *about; // what the one text of the run is about; NULL: nothing
    char *fixed;              // the bundle's states of fixed lengths
    size_t fixed_bytes;
    int count; // of params
    struct mgx_diag *diag;
};

// All that was given to the queue is done, also what came before a failure.
enum mgx_status mgx_card_settle(struct mgx_card *card, enum mgx_status status,
                                struct mgx_diag *diag) MGX_NODISCARD;
// card->host has so many bytes.
enum mgx_status mgx_card_reserve_host(struct mgx_card *card, size_t bytes,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// A block on the card has so many bytes.
enum mgx_status mgx_card_reserve(struct mgx_card *card, struct mgx_tensor *block, size_t bytes,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// A parameter of the plan; and a block as a tensor of this shape.
void mgx_card_put(struct mgx_card_call *c, const char *name, struct mgx_tensor tensor);
enum mgx_status mgx_card_view(const struct mgx_card_call *c, struct mgx_tensor *block,
                              enum mgx_type type, int rank, const int64_t *lens,
                              struct mgx_tensor *out) MGX_NODISCARD;
// All inputs but states and what is given.
enum mgx_status mgx_card_bring_inputs(struct mgx_card_call *c) MGX_NODISCARD;
// The steps of a run whose tracks have rows.
enum mgx_status mgx_card_run_rows(struct mgx_states *states, const struct mgx_track_run *run,
                                  const struct mgx_rows *rows, struct mgx_diag *diag) MGX_NODISCARD;
