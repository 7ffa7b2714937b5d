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
#include "generate/rows.h"
#include "targets/target.h"

enum {
    MARKS = 4, // places that states of fixed lengths can go back to, for each track
    OTHERS = 6 // inputs that are no states
};

struct mgx_states {
    struct mgx_states_source source;
    struct mgx_bundle *bundles; // all that live
    struct mgx_named_tensor *params;
    struct mgx_tensor *results;
};

struct mgx_track {
    struct mgx_states *states;
    struct mgx_place at;
    struct mgx_place marks[MARKS]; // oldest first
    int mark_count;
};

enum mgx_status mgx_states_create(struct mgx_states **out, const struct mgx_states_source *source,
                                  struct mgx_diag *diag)
{
    const struct mgx_roles *r = source->roles;
    struct mgx_states *s = calloc(1, sizeof *s);
    if (!s)
        return mgx_fail_memory(diag);
    s->source = *source;
    s->params = calloc((size_t)r->carried_count + OTHERS, sizeof *s->params);
    s->results = calloc((size_t)r->result_count + 1, sizeof *s->results);
    if (!s->params || !s->results) {
        mgx_states_destroy(s);
        return mgx_fail_memory(diag);
    }
    *out = s;
    return MGX_OK;
}

void mgx_states_destroy(struct mgx_states *states)
{
    if (!states)
        return;
    assert(!states->bundles);
    free(states->params);
    free(states->results);
    free(states);
}

size_t mgx_states_bytes(const struct mgx_states *states)
{
    return mgx_bundles_bytes(states->bundles);
}

// --- tracks ---

static void place_set(struct mgx_place *place, struct mgx_place by)
{
    mgx_bundle_hold(by.bundle);
    mgx_bundle_release(place->bundle);
    *place = by;
}

enum mgx_status mgx_track_create(struct mgx_track **out, struct mgx_states *states,
                                 struct mgx_diag *diag)
{
    struct mgx_track *track = calloc(1, sizeof *track);
    if (!track)
        return mgx_fail_memory(diag);
    track->states = states;
    *out = track;
    return MGX_OK;
}

void mgx_track_destroy(struct mgx_track *track)
{
    if (!track)
        return;
    place_set(&track->at, (struct mgx_place){0});
    for (int i = 0; i < track->mark_count; i++)
        place_set(&track->marks[i], (struct mgx_place){0});
    free(track);
}

enum mgx_status mgx_track_copy(struct mgx_track **out, const struct mgx_track *track,
                               struct mgx_diag *diag)
{
    TRY(mgx_track_create(out, track->states, diag));
    place_set(&(*out)->at, track->at);
    for (int i = 0; i < track->mark_count; i++)
        place_set(&(*out)->marks[i], track->marks[i]);
    (*out)->mark_count = track->mark_count;
    return MGX_OK;
}

int64_t mgx_track_length(const struct mgx_track *track)
{
    return track->at.length;
}

// --- going back ---

static void forget_marks_after(struct mgx_track *track, int64_t length)
{
    while (track->mark_count && track->marks[track->mark_count - 1].length > length)
        place_set(&track->marks[--track->mark_count], (struct mgx_place){0});
}

// A place to go back to; the oldest makes room.
static void add_mark(struct mgx_track *track, struct mgx_place place)
{
    if (!place.length ||
        (track->mark_count && track->marks[track->mark_count - 1].length >= place.length))
        return;
    if (track->mark_count == MARKS) {
        place_set(&track->marks[0], (struct mgx_place){0});
        memmove(&track->marks[0], &track->marks[1], (MARKS - 1) * sizeof track->marks[0]);
        track->marks[--track->mark_count] = (struct mgx_place){0};
    }
    place_set(&track->marks[track->mark_count++], place);
}

enum mgx_status mgx_track_rewind(struct mgx_track *track, int64_t length, struct mgx_diag *diag)
{
    const struct mgx_roles *r = track->states->source.roles;
    assert(length >= 0);
    if (length >= track->at.length)
        return MGX_OK;
    if (length == 0 || r->has_kind[MGX_CARRIED_FIXED]) {
        forget_marks_after(track, length);
        place_set(&track->at,
                  track->mark_count ? track->marks[track->mark_count - 1] : (struct mgx_place){0});
        return MGX_OK;
    }
    if (r->has_kind[MGX_CARRIED_GROWING]) {
        struct mgx_bundle *shorter = NULL;
        TRY(mgx_bundle_shorten(&shorter, track->at.bundle, r, length, diag));
        mgx_bundle_release(track->at.bundle);
        track->at.bundle = shorter;
    }
    track->at.length = length;
    return MGX_OK;
}

// --- the rows of a run ---

static int64_t longest_of(const struct mgx_track_run *run)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < run->count; i++)
        longest = mgx_max_i64(longest, run->tracks[i]->at.length);
    return longest;
}

static enum mgx_status find_rows(struct mgx_states *s, const struct mgx_track_run *run,
                                 struct mgx_rows *out, struct mgx_diag *diag)
{
    struct mgx_place *places = calloc((size_t)run->count, sizeof *places);
    if (!places)
        return mgx_fail_memory(diag);
    for (int64_t i = 0; i < run->count; i++)
        places[i] = run->tracks[i]->at;
    const enum mgx_status status =
        mgx_rows_find(out, &s->bundles, s->source.roles, places, run->count, run->each, diag);
    free(places);
    return status;
}

// --- inputs ---

struct feed {
    const struct mgx_states *s;
    const struct mgx_track_run *run;
    const struct mgx_rows *rows;
    int64_t longest; // with the new tokens
    int count;       // of params
    struct mgx_diag *diag;
};

// What element (i, j) of an input is.
typedef int64_t (*feed_value)(const struct feed *f, int64_t i, int64_t j);

// Tokens that row i has; a row that is nobody's has none, and runs with token 0.
static int64_t length_of(const struct feed *f, int64_t i)
{
    const int64_t track = f->rows->track[i];
    return track < 0 ? 0 : f->run->tracks[track]->at.length;
}

static int64_t token_at(const struct feed *f, int64_t i, int64_t j)
{
    const int64_t track = f->rows->track[i];
    return track < 0 ? 0 : f->run->tokens[track * f->run->each + j];
}

static int64_t is_token(const struct feed *f, int64_t i, int64_t j)
{
    return j < length_of(f, i) + f->run->each;
}

static int64_t position_at(const struct feed *f, int64_t i, int64_t j)
{
    return length_of(f, i) + j;
}

static int64_t last_of(const struct feed *f, int64_t i, int64_t j)
{
    (void)j;
    return length_of(f, i) + f->run->each - 1;
}

static int64_t total_of(const struct feed *f, int64_t i, int64_t j)
{
    (void)i, (void)j;
    return f->longest;
}

static int64_t is_later(const struct feed *f, int64_t i, int64_t j)
{
    (void)i, (void)j;
    return f->longest > f->run->each;
}

// An input of the run, of rows by columns as far as its rank goes.
static enum mgx_status put(struct feed *f, const struct mgx_role *role, int64_t rows,
                           int64_t columns, feed_value value)
{
    if (!role->name)
        return MGX_OK;
    const int64_t lens[2] = {role->rank == 1 ? rows * columns : rows, columns};
    const struct mgx_shape shape = mgx_shape_make(role->type, role->rank, lens);
    struct mgx_named_tensor *to = &f->s->params[f->count];
    *to = (struct mgx_named_tensor){.name = role->name};
    TRY(mgx_tensor_create(&to->tensor, &shape, f->diag));
    f->count++;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            mgx_store_int(role->type, to->tensor.data, i * columns + j, value(f, i, j));
    return MGX_OK;
}

static enum mgx_status put_inputs(struct feed *f)
{
    const struct mgx_roles *r = f->s->source.roles;
    const int64_t rows = f->rows->count, each = f->run->each;
    TRY(put(f, &r->tokens, rows, each, token_at));
    TRY(put(f, &r->mask, rows, f->longest, is_token));
    TRY(put(f, &r->positions, rows, each, position_at));
    TRY(put(f, &r->lengths, rows, 1, last_of));
    TRY(put(f, &r->total, 1, 1, total_of));
    return put(f, &r->branch, 1, 1, is_later);
}

static void put_states(struct feed *f)
{
    const struct mgx_roles *r = f->s->source.roles;
    for (int i = 0; i < r->carried_count; i++)
        f->s->params[f->count++] = (struct mgx_named_tensor){
            .name = r->carried[i].past, .tensor = mgx_tensor_share(&f->rows->bundle->values[i])};
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
    const struct mgx_track_run *run = f->run;
    const int last = shape->rank - 1;
    const int64_t rows = last == 2 ? shape->lens[1] : 1;
    if ((last == 1 || last == 2) && shape->lens[0] == f->rows->count &&
        shape->lens[last] == run->words && rows >= run->scores)
        return MGX_OK;
    return mgx_fail(f->diag, MGX_INVALID,
                    "scores of rank %d, %lld texts, %lld tokens and %lld words came from a run of "
                    "%lld texts, where %lld tokens of %lld words were wanted",
                    shape->rank, last < 1 ? 0LL : (long long)shape->lens[0], (long long)rows,
                    last < 1 ? 0LL : (long long)shape->lens[last], (long long)f->rows->count,
                    (long long)run->scores, (long long)run->words);
}

// The scores behind the last tokens of each track.
static enum mgx_status read_logits(const struct feed *f)
{
    const struct mgx_track_run *run = f->run;
    const struct mgx_tensor *t = &f->s->results[f->s->source.roles->logits];
    const struct mgx_shape *shape = &t->shape;
    const int last = shape->rank - 1;
    TRY(check_logits(shape, f));
    for (int64_t i = 0; i < run->count * run->scores; i++) {
        const int64_t row = i % run->scores;
        const int64_t at[3] = {f->rows->row_of[i / run->scores],
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
    const int64_t tokens = c->kind == MGX_CARRIED_ROOM ? f->rows->bundle->room : f->longest;
    if (t->shape.type != c->shape.type || t->shape.rank != c->shape.rank ||
        (c->axis >= 0 && t->shape.lens[c->axis] != tokens))
        return mgx_fail(f->diag, MGX_INVALID,
                        "state \"%s\" came back with %lld of %lld rows after %lld tokens", c->past,
                        c->axis >= 0 && c->axis < t->shape.rank ? (long long)t->shape.lens[c->axis]
                                                                : -1LL,
                        (long long)tokens, (long long)f->longest);
    return MGX_OK;
}

static enum mgx_status take_states(struct mgx_states *s, struct feed *f, struct mgx_bundle **out)
{
    const struct mgx_roles *r = s->source.roles;
    const struct mgx_bundle *before = f->rows->bundle;
    for (int i = 0; i < r->carried_count; i++)
        TRY(check_state(&r->carried[i], &s->results[r->carried[i].result], f));
    struct mgx_bundle *b =
        mgx_bundle_create(&s->bundles, r->carried_count, before->rows, before->room);
    if (!b)
        return mgx_fail_memory(f->diag);
    for (int i = 0; i < r->carried_count; i++)
        b->values[i] = mgx_tensor_share(&s->results[r->carried[i].result]);
    for (int64_t i = 0; i < b->rows; i++)
        b->lengths[i] = length_of(f, i) + f->run->each;
    *out = b;
    return MGX_OK;
}

static void advance(const struct feed *f, struct mgx_bundle *bundle)
{
    const struct mgx_track_run *run = f->run;
    const bool marks = f->s->source.roles->has_kind[MGX_CARRIED_FIXED] && run->each > 1;
    for (int64_t i = 0; i < run->count; i++) {
        struct mgx_track *track = run->tracks[i];
        if (marks)
            add_mark(track, track->at);
        place_set(&track->at,
                  (struct mgx_place){bundle, f->rows->row_of[i], track->at.length + run->each});
        if (marks)
            add_mark(track, track->at);
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
    run.param_count = f->count;
    return mgx_program_run(s->source.program, &run, f->diag);
}

enum mgx_status mgx_states_run(struct mgx_states *states, const struct mgx_track_run *run,
                               struct mgx_diag *diag)
{
    struct mgx_rows rows;
    struct mgx_bundle *after = NULL;
    struct feed f = {.s = states,
                     .run = run,
                     .rows = &rows,
                     .longest = longest_of(run) + run->each,
                     .diag = diag};
    assert(run->count > 0 && run->each > 0);
    enum mgx_status status = find_rows(states, run, &rows, diag);
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
