// SPDX-License-Identifier: MIT
// Tracks over one program with open sizes.
//
//     tracks' places  --rows.h-->  rows of a bundle  --run-->  the same rows of the next bundle
//
// The program's results are taken as they come and handed on as they came, so that it may write new
// rows behind old ones instead of copying.
#include "generate/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "generate/state_card.h"
#include "targets/target.h"

enum mgx_status mgx_states_create(struct mgx_states **out, const struct mgx_states_source *source,
                                  struct mgx_diag *diag)
{
    const struct mgx_roles *r = source->roles;
    struct mgx_states *s = calloc(1, sizeof *s);
    if (!s)
        return mgx_fail_memory(diag);
    s->source = *source;
    s->params =
        calloc((size_t)(r->carried_count + r->given_count + r->said_count + r->result_count) +
                   MGX_FEED_MOST + MGX_CHOICE_INPUTS,
               sizeof *s->params);
    s->results = calloc((size_t)r->result_count + 1, sizeof *s->results);
    enum mgx_status status = s->params && s->results ? MGX_OK : mgx_fail_memory(diag);
    if (status == MGX_OK && source->plans)
        status = mgx_card_create(&s->card, source, diag);
    if (status == MGX_OK)
        *out = s;
    else
        mgx_states_destroy(s);
    return status;
}

void mgx_states_destroy(struct mgx_states *states)
{
    if (!states)
        return;
    assert(!states->bundles);
    mgx_card_destroy(states->card);
    free(states->params);
    free(states->results);
    free(states);
}

size_t mgx_states_bytes(const struct mgx_states *states)
{
    return mgx_bundles_bytes(states->bundles);
}

// --- inputs ---

struct feed {
    struct mgx_feed base;
    const struct mgx_states *s;
    int count; // of params
    struct mgx_diag *diag;
};

static enum mgx_status put_inputs(struct feed *f)
{
    struct mgx_feed_input list[MGX_FEED_MOST];
    const int count = mgx_feed_inputs(&f->base, list);
    for (int i = 0; i < count; i++) {
        struct mgx_named_tensor *to = &f->s->params[f->count];
        *to = (struct mgx_named_tensor){.name = list[i].role->name};
        TRY(mgx_tensor_create(&to->tensor, &list[i].shape, f->diag));
        f->count++;
        mgx_feed_write(&f->base, &list[i], to->tensor.data);
    }
    return MGX_OK;
}

static void put_states(struct feed *f)
{
    const struct mgx_roles *r = f->s->source.roles;
    for (int i = 0; i < r->carried_count; i++)
        f->s->params[f->count++] =
            (struct mgx_named_tensor){.name = r->carried[i].past,
                                      .tensor = mgx_tensor_share(&f->base.rows->bundle->values[i])};
}

// Of the one track of a run.
static void put_given(struct feed *f)
{
    const struct mgx_roles *r = f->s->source.roles;
    const struct mgx_source *source = f->base.run->tracks[0]->about;
    assert(!r->given_count || (source && source->count == r->given_count));
    for (int i = 0; i < r->given_count; i++)
        f->s->params[f->count++] = (struct mgx_named_tensor){
            .name = r->given[i], .tensor = mgx_tensor_share(&source->values[i])};
}

static void drop_inputs(struct feed *f)
{
    while (f->count)
        mgx_tensor_release(&f->s->params[--f->count].tensor);
}

// --- results ---

static void drop_results(struct mgx_states *s)
{
    for (int i = 0; i < s->source.roles->result_count; i++)
        mgx_tensor_release(&s->results[i]);
}

static enum mgx_status check_logits(const struct mgx_shape *shape, const struct feed *f)
{
    const struct mgx_track_run *run = f->base.run;
    const int last = shape->rank - 1;
    const int64_t rows = last == 2 ? shape->lens[1] : 1;
    if ((last == 1 || last == 2) && shape->lens[0] == f->base.rows->count &&
        shape->lens[last] == run->words && rows >= run->scores)
        return MGX_OK;
    return mgx_fail(f->diag, MGX_INVALID,
                    "scores of rank %d, %lld texts, %lld tokens and %lld words came from a run of "
                    "%lld texts, where %lld tokens of %lld words were wanted",
                    shape->rank, last < 1 ? 0LL : (long long)shape->lens[0], (long long)rows,
                    last < 1 ? 0LL : (long long)shape->lens[last], (long long)f->base.rows->count,
                    (long long)run->scores, (long long)run->words);
}

// The scores behind the last tokens of each track.
static enum mgx_status read_logits(const struct feed *f)
{
    const struct mgx_track_run *run = f->base.run;
    const struct mgx_tensor *t = &f->s->results[f->s->source.roles->logits];
    const struct mgx_shape *shape = &t->shape;
    const int last = shape->rank - 1;
    TRY(check_logits(shape, f));
    for (int64_t i = 0; i < run->count * run->scores; i++) {
        const int64_t row = i % run->scores;
        const int64_t at[3] = {f->base.rows->row_of[i / run->scores],
                               last == 2 ? shape->lens[1] - run->scores + row : 0, 0};
        const int64_t from = mgx_shape_offset(shape, at);
        float *to = run->logits[i / run->scores] + row * run->words;
        for (int64_t j = 0; j < run->words; j++)
            to[j] = (float)mgx_load_double(shape->type, t->data, from + j * shape->strides[last]);
    }
    return MGX_OK;
}

// Does a state have the lengths that the next run takes?
static enum mgx_status check_state(const struct mgx_carried *c, const struct mgx_tensor *t,
                                   const struct feed *f)
{
    const int64_t tokens =
        c->kind == MGX_CARRIED_ROOM ? f->base.rows->bundle->room : f->base.columns;
    if (t->shape.type != c->shape.type || t->shape.rank != c->shape.rank ||
        (c->axis >= 0 && t->shape.lens[c->axis] != tokens))
        return mgx_fail(f->diag, MGX_INVALID,
                        "state \"%s\" came back with %lld of %lld rows after %lld tokens", c->past,
                        c->axis >= 0 && c->axis < t->shape.rank ? (long long)t->shape.lens[c->axis]
                                                                : -1LL,
                        (long long)tokens, (long long)f->base.columns);
    return MGX_OK;
}

static enum mgx_status take_states(struct mgx_states *s, struct feed *f, struct mgx_bundle **out)
{
    const struct mgx_roles *r = s->source.roles;
    const struct mgx_bundle *before = f->base.rows->bundle;
    for (int i = 0; i < r->carried_count; i++)
        TRY(check_state(&r->carried[i], &s->results[r->carried[i].result], f));
    struct mgx_bundle *b =
        mgx_bundle_create(&s->bundles, r->carried_count, before->rows, before->room);
    if (!b)
        return mgx_fail_memory(f->diag);
    for (int i = 0; i < r->carried_count; i++)
        b->values[i] = mgx_tensor_share(&s->results[r->carried[i].result]);
    for (int64_t i = 0; i < b->rows; i++)
        b->lengths[i] = mgx_feed_length(&f->base, i) + f->base.run->each;
    *out = b;
    return MGX_OK;
}

static void advance(const struct feed *f, struct mgx_bundle *bundle)
{
    const struct mgx_track_run *run = f->base.run;
    const bool marks = f->s->source.roles->has_kind[MGX_CARRIED_FIXED] && run->each > 1;
    for (int64_t i = 0; i < run->count; i++) {
        struct mgx_track *track = run->tracks[i];
        if (marks)
            mgx_track_mark(track, track->at);
        mgx_place_set(&track->at, (struct mgx_place){bundle, f->base.rows->row_of[i],
                                                     track->at.length + run->each});
        if (marks)
            mgx_track_mark(track, track->at);
    }
}

static enum mgx_status run_program(struct mgx_states *s, struct feed *f)
{
    struct mgx_run run = {.params = s->params,
                          .results = s->results,
                          .result_count = s->source.roles->result_count,
                          .takes_growing = true};
    TRY(put_inputs(f));
    put_states(f);
    put_given(f);
    run.param_count = f->count;
    return mgx_program_run(s->source.program, &run, f->diag);
}

enum mgx_status mgx_states_run(struct mgx_states *states, const struct mgx_track_run *run,
                               struct mgx_diag *diag)
{
    struct mgx_rows rows;
    struct mgx_bundle *after = NULL;
    assert(run->count > 0 && run->each > 0);
    if (states->card)
        return mgx_card_run(states, run, diag);
    const int64_t longest = mgx_run_longest(run) + run->each;
    struct feed f = {.base = {.roles = states->source.roles,
                              .run = run,
                              .rows = &rows,
                              .given = run->each,
                              .each = run->each,
                              .columns = longest},
                     .s = states,
                     .diag = diag};
    enum mgx_status status = mgx_run_rows(states, run, NULL, longest, &rows, diag);
    if (status == MGX_OK)
        status = run_program(states, &f);
    drop_inputs(&f);
    if (status == MGX_OK)
        status = read_logits(&f);
    if (status == MGX_OK)
        status = take_states(states, &f, &after);
    drop_results(states);
    if (status == MGX_OK)
        advance(&f, after);
    mgx_bundle_release(after);
    mgx_rows_fini(&rows);
    return status;
}
