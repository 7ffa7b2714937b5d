// SPDX-License-Identifier: MIT
// What a step brings to the card: tokens and lengths, what follows from lengths, and what texts
// bring to the choice of a token there.
#include <stdlib.h>

#include "generate/card.h"
#include "generate/lengths.h"
#include "generate/plans.h"

// --- what is chosen by ---

// What the text of row `row` brings to its choice; NULL: nobody chooses.
static const struct mgx_choice *choice_of(const struct mgx_card_call *c, int64_t row)
{
    const int64_t track = c->feed.rows->track[row];
    return c->feed.run->choices && track >= 0 ? &c->feed.run->choices[track] : NULL;
}

static void put_knobs(struct mgx_card_call *c, size_t at, const struct mgx_shape *shape)
{
    struct mgx_card *card = c->s->card;
    for (int64_t i = 0; i < c->plan->rows; i++)
        mgx_choice_knobs(choice_of(c, i),
                         (double *)(void *)(card->host + at) + i * MGX_CHOICE_KNOBS);
    mgx_card_put(c, MGX_CHOICE_KNOBS_NAME, mgx_tensor_view(&card->inputs, shape, (int64_t)at));
}

// The tokens that penalised texts have.
static enum mgx_status put_seen(struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    const int64_t lens[2] = {c->plan->rows, c->plan->room};
    struct mgx_tensor t;
    TRY(mgx_card_view(c, &card->seen, MGX_INT32, 2, lens, &t));
    mgx_card_put(c, MGX_CHOICE_SEEN_NAME, t);
    for (int64_t i = 0; i < lens[0]; i++) {
        const struct mgx_choice *choice = choice_of(c, i);
        if (choice && choice->seen && choice->seen->count)
            TRY(card->memory->copy_in(card->queue, (int32_t *)t.data + i * lens[1],
                                      choice->seen->list,
                                      (size_t)choice->seen->count * sizeof(int32_t), c->diag));
    }
    return MGX_OK;
}

// Room for the biases of so many rows; in one that is new, none lies.
static enum mgx_status reserve_biases(struct mgx_card_call *c, struct mgx_tensor *t)
{
    struct mgx_card *card = c->s->card;
    const int64_t lens[2] = {c->plan->rows, c->s->source.roles->words};
    TRY(mgx_card_view(c, &card->bias, MGX_FLOAT, 2, lens, t));
    if (card->bias_rows >= lens[0])
        return MGX_OK;
    free(card->bias_numbers);
    card->bias_numbers = calloc((size_t)lens[0], sizeof *card->bias_numbers);
    card->bias_rows = card->bias_numbers ? lens[0] : 0;
    return card->bias_numbers ? MGX_OK : mgx_fail_memory(c->diag);
}

// Biases are large and seldom change: one that lies there already stays.
static enum mgx_status put_biases(struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    const int64_t words = c->s->source.roles->words;
    struct mgx_tensor t;
    TRY(reserve_biases(c, &t));
    mgx_card_put(c, MGX_CHOICE_BIAS_NAME, t);
    for (int64_t i = 0; i < c->plan->rows; i++) {
        const struct mgx_choice *choice = choice_of(c, i);
        if (!choice || !choice->bias || card->bias_numbers[i] == choice->bias_number)
            continue;
        card->bias_numbers[i] = 0;
        TRY(card->memory->copy_in(card->queue, (float *)t.data + i * words, choice->bias,
                                  (size_t)words * sizeof(float), c->diag));
        card->bias_numbers[i] = choice->bias_number;
    }
    return MGX_OK;
}

// --- what follows from lengths ---

// What follows from how long the caches are, behind `at` of the other inputs.
struct said {
    struct mgx_shape shapes[MGX_LENGTHS_MOST];
    size_t at[MGX_LENGTHS_MOST + 1];
};

static enum mgx_status place_said(const struct mgx_card_call *c, size_t at, struct said *said)
{
    const struct mgx_roles *r = c->s->source.roles;
    said->at[0] = at;
    if (r->of_lengths)
        mgx_lengths_shapes(r->of_lengths, c->plan->room, said->shapes);
    for (int k = 0; k < r->said_count; k++)
        said->at[k + 1] = mgx_slab_align(said->at[k] + mgx_shape_bytes(&said->shapes[k]));
    return MGX_OK;
}

static enum mgx_status put_said(struct mgx_card_call *c, const struct said *said)
{
    const struct mgx_roles *r = c->s->source.roles;
    struct mgx_card *card = c->s->card;
    for (int k = 0; k < r->said_count; k++) {
        mgx_card_put(c, r->said[k],
                     mgx_tensor_view(&card->inputs, &said->shapes[k], (int64_t)said->at[k]));
        TRY(mgx_lengths_write(r->of_lengths, k, mgx_feed_length(&c->feed, 0), c->plan->room,
                              card->host + said->at[k], c->diag));
    }
    return MGX_OK;
}

// --- all of it ---

// All inputs side by side, brought by one copy, knobs behind them, and what is said behind these.
static enum mgx_status put_inputs(struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    const struct mgx_roles *r = c->s->source.roles;
    struct mgx_feed_input list[MGX_FEED_MOST];
    struct said said;
    size_t at[MGX_FEED_MOST + 2] = {0};
    const int count = mgx_feed_inputs(&c->feed, list);
    const int64_t lens[2] = {c->plan->rows, MGX_CHOICE_KNOBS};
    const struct mgx_shape knobs = mgx_shape_make(MGX_DOUBLE, 2, lens);
    for (int i = 0; i < count; i++)
        at[i + 1] = mgx_slab_align(at[i] + mgx_shape_bytes(&list[i].shape));
    const size_t before = at[count] + (r->chooses ? mgx_shape_bytes(&knobs) : 0);
    TRY(place_said(c, mgx_slab_align(before), &said));
    const size_t bytes = r->said_count ? said.at[r->said_count] : before;
    TRY(mgx_card_reserve_host(card, bytes, c->diag));
    TRY(mgx_card_reserve(card, &card->inputs, bytes, c->diag));
    for (int i = 0; i < count; i++) {
        mgx_feed_write(&c->feed, &list[i], card->host + at[i]);
        mgx_card_put(c, list[i].role->name,
                     mgx_tensor_view(&card->inputs, &list[i].shape, (int64_t)at[i]));
    }
    if (r->chooses)
        put_knobs(c, at[count], &knobs);
    TRY(put_said(c, &said));
    return card->memory->copy_in(card->queue, card->inputs.data, card->host, bytes, c->diag);
}

// The plan runs on a queue of its own: what comes from the host is there before.
enum mgx_status mgx_card_bring_inputs(struct mgx_card_call *c)
{
    enum mgx_status status = put_inputs(c);
    if (status == MGX_OK && c->s->source.roles->chooses)
        status = put_seen(c);
    if (status == MGX_OK && c->s->source.roles->chooses)
        status = put_biases(c);
    return mgx_card_settle(c->s->card, status, c->diag);
}
