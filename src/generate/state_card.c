// SPDX-License-Identifier: MIT
// Tracks in a card's memory: plans of fixed sizes, whose caches stay where they are.
//
//     inputs  --one copy-->  card:  plan(rows, tokens, room) over a bundle's caches, in place
//                                   scores  --the last row of each text-->  host
//
// A piece of n tokens runs by a plan of the next length of a few (lengths[]), filled up with rows
// that lie behind the text and that later tokens overwrite (feed.h). A model may give the scores of
// its last rows alone: then the last tokens run by a shorter plan, in which theirs are among these.
// Where there is no place for rows that fill up, a piece is cut into lengths that fit; rows that
// fill up have none among states of fixed lengths, which all rows change.
//
//     such states     a run of several steps     the bundle's -> [1] -> [0] -> [1] -> the bundle's
//
// Holds: nothing is on the queue between calls. On failure no track has changed: rows are written
// behind the tokens of all who hold a bundle, and states come back when all steps are done. Cost of
// a step: the plan's run, a copy in and a copy out, and one of the states within the card's memory.
#include "generate/card.h"

#include <assert.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/size.h"
#include "generate/heard.h"
#include "generate/lengths.h"
#include "generate/plans.h"
#include "generate/state_card.h"
#include "targets/target.h"

// Each is as many kernels as the model has kinds of layers; a few of them are compiled once.
static const int64_t lengths[] = {1, 16, 64, 256, 512, 1024, 2048, 4096};

enum mgx_status mgx_card_create(struct mgx_card **out, const struct mgx_states_source *source,
                                struct mgx_diag *diag)
{
    const struct mgx_memory *memory = mgx_plans_memory(source->plans);
    struct mgx_card *card = calloc(1, sizeof *card);
    if (!card)
        return mgx_fail_memory(diag);
    card->memory = memory;
    card->queue = memory->queue_create(memory);
    card->scores = source->roles->logits_rank == 2 ? 1
                   : source->scores                ? source->scores
                                                   : INT64_MAX;
    if (!card->queue) {
        free(card);
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a queue of %s", memory->name);
    }
    *out = card;
    return MGX_OK;
}

void mgx_card_destroy(struct mgx_card *card)
{
    if (!card)
        return;
    mgx_tensor_release(&card->inputs);
    mgx_tensor_release(&card->logits);
    mgx_tensor_release(&card->seen);
    mgx_tensor_release(&card->bias);
    mgx_tensor_release(&card->chosen);
    mgx_tensor_release(&card->fixed[0]);
    mgx_tensor_release(&card->fixed[1]);
    free(card->bias_numbers);
    card->memory->queue_destroy(card->queue);
    free(card->host);
    free(card);
}

// --- steps ---

// Tokens of a step whose scores are wanted: the last ones of the run.
static int64_t wanted_of(const struct mgx_track_run *run, struct mgx_card_step step)
{
    return mgx_max_i64(0, step.from + step.given - mgx_max_i64(step.from, run->each - run->scores));
}

// Are they among those that a plan gives, which are of its last `scores` rows?
static bool gives(const struct mgx_track_run *run, struct mgx_card_step step, int64_t scores)
{
    const int64_t wanted = wanted_of(run, step);
    return !wanted ||
           (wanted <= scores && step.given - wanted >= step.each - mgx_min_i64(scores, step.each));
}

// The shortest length for all `left` tokens where rows that fill up have a place, else the longest
// that they fill.
static struct mgx_card_step fit(const struct mgx_states *s, int64_t longest, int64_t from,
                                int64_t left)
{
    const int64_t most = s->source.roles->most, context = s->source.context;
    const bool exact = s->source.roles->has_kind[MGX_CARRIED_FIXED];
    struct mgx_card_step best = {from, 1, 1};
    for (int i = 0; i < MGX_COUNT(lengths) && best.given < left; i++) {
        const int64_t n = lengths[i];
        const bool fills_up = n > left && (exact || (context && longest + from + n > context));
        if ((most && n > most) || fills_up || (n > 1 && s->card->one_by_one))
            break;
        best = (struct mgx_card_step){from, mgx_min_i64(n, left), n};
    }
    return best;
}

// The step from a token on.
static struct mgx_card_step step_at(const struct mgx_states *s, const struct mgx_track_run *run,
                                    int64_t longest, int64_t from)
{
    const int64_t left = run->each - from, known = s->card->scores;
    int64_t tail = 1; // the longest length all of whose scores are given
    for (int i = 0; i < MGX_COUNT(lengths) && lengths[i] <= known; i++)
        tail = lengths[i];
    struct mgx_card_step step = fit(s, longest, from, left);
    if (gives(run, step, known))
        return step;
    if (left > tail)
        return fit(s, longest, from, left - tail);
    return (struct mgx_card_step){from, 1, 1};
}

// How many rows the caches need.
static int64_t rows_for(const struct mgx_states *s, const struct mgx_track_run *run)
{
    const int64_t longest = mgx_run_longest(run);
    int64_t needed = 0;
    if (!s->source.roles->has_kind[MGX_CARRIED_ROOM])
        return 0;
    for (int64_t from = 0; from < run->each;) {
        const struct mgx_card_step step = step_at(s, run, longest, from);
        needed = mgx_max_i64(needed, longest + from + step.each);
        from += step.given;
    }
    return needed;
}

static void advance(const struct mgx_track_run *run, const struct mgx_rows *rows)
{
    struct mgx_bundle *b = rows->bundle;
    for (int64_t row = 0; row < rows->count; row++)
        b->lengths[row] =
            rows->track[row] < 0 ? 0 : run->tracks[rows->track[row]]->at.length + run->each;
    for (int64_t i = 0; i < run->count; i++)
        mgx_place_set(&run->tracks[i]->at,
                      (struct mgx_place){b, rows->row_of[i], b->lengths[rows->row_of[i]]});
}

// --- one step ---

static const struct mgx_carried *carried_as(const struct mgx_roles *r, int result, int *at)
{
    for (*at = 0; *at < r->carried_count; ++*at)
        if (r->carried[*at].result == result)
            return &r->carried[*at];
    return NULL;
}

// State k of a bundle; those of fixed lengths as they lie in a block like the bundle's.
static struct mgx_tensor state_in(const struct mgx_card_call *c, const struct mgx_tensor *block,
                                  int k)
{
    const struct mgx_tensor *own = &c->feed.rows->bundle->values[k];
    if (!block || c->s->source.roles->carried[k].kind != MGX_CARRIED_FIXED)
        return mgx_tensor_share(own);
    return mgx_tensor_view(block, &own->shape, (const char *)own->data - c->fixed);
}

static bool is_last(const struct mgx_card_call *c)
{
    return c->step.from + c->step.given == c->feed.run->each;
}

// The states behind a step: where the next one reads them, or the bundle has them.
static enum mgx_status keep_states(const struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    if (!c->fixed_bytes)
        return MGX_OK;
    void *to = is_last(c) ? c->fixed : card->fixed[0].data;
    return mgx_card_settle(
        card, card->memory->copy(card->queue, to, card->fixed[1].data, c->fixed_bytes, c->diag),
        c->diag);
}

// Caches go back where they came from; what nobody reads has a place of its own.
static enum mgx_status put_results(struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    const struct mgx_roles *r = c->s->source.roles;
    const struct mgx_module *main = mgx_program_main(c->plan->program);
    TRY(mgx_card_reserve(card, &card->logits, mgx_shape_bytes(&c->plan->logits), c->diag));
    for (int k = 0, i; k < r->result_count; k++) {
        struct mgx_tensor t = {0};
        if (k == r->logits)
            t = mgx_tensor_view(&card->logits, &c->plan->logits, 0);
        else if (r->chooses && k == r->result_count - 1)
            TRY(mgx_card_view(c, &card->chosen, MGX_INT64, 1, (int64_t[]){c->plan->rows}, &t));
        else if (carried_as(r, k, &i))
            t = state_in(c, &card->fixed[1], i);
        else
            TRY(mgx_tensor_create_on(&t, &mgx_module_result(main, k)->shape, card->memory,
                                     c->diag));
        mgx_card_put(c, c->plan->places[k], t);
    }
    return MGX_OK;
}

static enum mgx_status put_params(struct mgx_card_call *c)
{
    const struct mgx_roles *r = c->s->source.roles;
    struct mgx_card *card = c->s->card;
    TRY(mgx_card_bring_inputs(c));
    for (int i = 0; i < r->given_count; i++)
        mgx_card_put(c, r->given[i], mgx_tensor_share(&c->about->held[i]));
    for (int i = 0; i < 2 && c->fixed_bytes; i++)
        TRY(mgx_card_reserve(card, &card->fixed[i], c->fixed_bytes, c->diag));
    for (int i = 0; i < r->carried_count; i++)
        mgx_card_put(c, r->carried[i].past, state_in(c, c->step.from ? &card->fixed[0] : NULL, i));
    return put_results(c);
}

static enum mgx_status run_plan(struct mgx_card_call *c)
{
    struct mgx_states *s = c->s;
    struct mgx_run run = {
        .params = s->params, .results = s->results, .result_count = s->source.roles->result_count};
    enum mgx_status status = put_params(c);
    run.param_count = c->count;
    if (status == MGX_OK)
        status = mgx_program_run(c->plan->program, &run, c->diag);
    for (int i = 0; i < run.result_count && status == MGX_OK; i++)
        mgx_tensor_release(&s->results[i]);
    while (c->count)
        mgx_tensor_release(&s->params[--c->count].tensor);
    return status;
}

// --- scores ---

static void widen(enum mgx_type type, const void *from, int64_t count, float *to)
{
    if (type == MGX_HALF)
        mgx_half_to_floats(from, count, to);
    else
        for (int64_t j = 0; j < count; j++)
            to[j] = (float)mgx_load_double(type, from, j);
}

// Are the plan's scores for the rows of this run?
static enum mgx_status check_logits(const struct mgx_card_call *c)
{
    const struct mgx_shape *shape = &c->plan->logits;
    const int last = shape->rank - 1;
    if ((last == 1 || last == 2) && shape->lens[0] == c->plan->rows &&
        shape->lens[last] == c->feed.run->words)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "scores of rank %d and %lld words come from a plan of %lld texts, where %lld "
                    "words are wanted",
                    shape->rank, last < 0 ? 0LL : (long long)shape->lens[last],
                    (long long)c->plan->rows, (long long)c->feed.run->words);
}

static int64_t rows_of_scores(const struct mgx_fixed_plan *plan)
{
    return plan->logits.rank == 3 ? plan->logits.lens[1] : 1;
}

// Of each text those wanted of the tokens of this step; nothing else leaves the card.
static enum mgx_status read_logits(struct mgx_card_call *c)
{
    struct mgx_card *card = c->s->card;
    const struct mgx_track_run *run = c->feed.run;
    const enum mgx_type type = c->plan->logits.type;
    const int64_t wanted = wanted_of(run, c->step), all = rows_of_scores(c->plan),
                  first = all - c->step.each + c->step.given - wanted; // row of the plan's scores
    const int64_t place = c->step.from + c->step.given - wanted - (run->each - run->scores);
    const bool floats = type == MGX_FLOAT; // they go where they are wanted
    const size_t bytes = (size_t)(wanted * run->words) * mgx_type_size(type);
    enum mgx_status status =
        floats ? MGX_OK : mgx_card_reserve_host(card, bytes * (size_t)run->count, c->diag);
    assert(first >= 0 && place >= 0);
    for (int64_t i = 0; i < run->count && status == MGX_OK; i++) {
        const int64_t at = (c->feed.rows->row_of[i] * all + first) * run->words;
        float *to = run->logits[i] + place * run->words;
        status = card->memory->copy_out(
            card->queue, floats ? (void *)to : card->host + (size_t)i * bytes,
            (const char *)card->logits.data + (size_t)at * mgx_type_size(type), bytes, c->diag);
    }
    status = mgx_card_settle(card, status, c->diag);
    for (int64_t i = 0; i < run->count && status == MGX_OK && !floats; i++)
        widen(type, card->host + (size_t)i * bytes, wanted * run->words,
              run->logits[i] + place * run->words);
    return status;
}

// --- tokens ---

// The tokens that were chosen. *all: each text has one.
static enum mgx_status read_chosen(const struct mgx_card_call *c, bool *all)
{
    struct mgx_card *card = c->s->card;
    const struct mgx_track_run *run = c->feed.run;
    const size_t bytes = (size_t)c->plan->rows * sizeof(int64_t);
    TRY(mgx_card_reserve_host(card, bytes, c->diag));
    TRY(mgx_card_settle(
        card, card->memory->copy_out(card->queue, card->host, card->chosen.data, bytes, c->diag),
        c->diag));
    *all = true;
    for (int64_t i = 0; i < run->count; i++) {
        run->chosen[i] = ((const int64_t *)(const void *)card->host)[c->feed.rows->row_of[i]];
        *all = *all && run->chosen[i] >= 0;
    }
    return MGX_OK;
}

// What the run was for: tokens, or scores where they were not chosen here.
static enum mgx_status read_results_of(struct mgx_card_call *c)
{
    bool all = false;
    if (c->feed.run->choices)
        TRY(read_chosen(c, &all));
    return all || !wanted_of(c->feed.run, c->step) ? MGX_OK : read_logits(c);
}

// --- runs ---

// By a plan that is there. *given: 0 when it does not give the scores that were expected of it.
static enum mgx_status run_step(struct mgx_card_call *c, int64_t *given)
{
    struct mgx_states *s = c->s;
    *given = 0;
    TRY(check_logits(c));
    const int64_t all = rows_of_scores(c->plan);
    if (!gives(c->feed.run, c->step, all)) {
        if (all >= s->card->scores)
            return mgx_fail(c->diag, MGX_INVALID,
                            "a run of %lld tokens gives the scores of %lld, where %lld were wanted",
                            (long long)c->step.each, (long long)all,
                            (long long)c->feed.run->scores);
        s->card->scores = all;
        return MGX_OK;
    }
    TRY(run_plan(c));
    *given = c->step.given;
    TRY(read_results_of(c));
    return keep_states(c);
}

static enum mgx_status run_from(struct mgx_states *s, const struct mgx_track_run *run,
                                const struct mgx_rows *rows, int64_t from, int64_t *given,
                                struct mgx_diag *diag)
{
    const struct mgx_card_step step = step_at(s, run, mgx_run_longest(run), from);
    struct mgx_card_call c = {.s = s,
                              .feed = {.roles = s->source.roles,
                                       .run = run,
                                       .rows = rows,
                                       .from = from,
                                       .given = step.given,
                                       .each = step.each,
                                       .columns = rows->bundle->room},
                              .step = step,
                              .about = run->tracks[0]->about,
                              .diag = diag};
    if (c.about)
        TRY(mgx_heard_bring(c.about, s->source.roles, s->card->memory, s->card->queue, diag));
    const struct mgx_slab slab = {s->card->memory, s->card->queue, s->source.roles};
    c.fixed = mgx_slab_fixed(&slab, rows->bundle, &c.fixed_bytes);
    const struct mgx_fixed_plan sizes = {.rows = rows->count,
                                         .tokens = step.each,
                                         .room = rows->bundle->room,
                                         .heard = c.about ? c.about->heard : 0};
    enum mgx_status status = mgx_plans_take(s->source.plans, &sizes, &c.plan, diag);
    if (status == MGX_INVALID && step.each > 1 && s->source.roles->has_kind[MGX_CARRIED_FIXED]) {
        *given = 0; // a graph of one token, though it leaves their number open
        s->card->one_by_one = true;
        if (diag)
            mgx_diag_clear(diag);
        return MGX_OK;
    }
    if (status == MGX_OK)
        status = run_step(&c, given);
    mgx_plans_give(s->source.plans, c.plan);
    return status;
}

enum mgx_status mgx_card_run_rows(struct mgx_states *s, const struct mgx_track_run *run,
                                  const struct mgx_rows *rows, struct mgx_diag *diag)
{
    for (int64_t from = 0, given; from < run->each; from += given)
        TRY(run_from(s, run, rows, from, &given, diag));
    return MGX_OK;
}

// A copy of where a track stands, to go back to: states of fixed lengths change as a whole. Without
// memory for it there is none, and whoever goes back goes further.
static void mark(struct mgx_states *s, const struct mgx_slab *slab, struct mgx_track *track)
{
    const struct mgx_place at = track->at;
    struct mgx_bundle *copy = NULL;
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!at.length || mgx_track_is_marked(track) ||
        mgx_slab_gather(&copy, &s->bundles, slab, &at, 1, at.length, &quiet) != MGX_OK)
        return;
    mgx_track_mark(track, (struct mgx_place){copy, 0, at.length});
    mgx_bundle_release(copy);
}

// Before and behind what is more than a token.
static void mark_all(struct mgx_states *s, const struct mgx_track_run *run,
                     const struct mgx_slab *slab)
{
    if (s->source.roles->has_kind[MGX_CARRIED_FIXED] && run->each > 1)
        for (int64_t i = 0; i < run->count; i++)
            mark(s, slab, run->tracks[i]);
}

enum mgx_status mgx_card_run(struct mgx_states *s, const struct mgx_track_run *run,
                             struct mgx_diag *diag)
{
    const struct mgx_slab slab = {s->card->memory, s->card->queue, s->source.roles};
    struct mgx_rows rows;
    mark_all(s, run, &slab);
    enum mgx_status status = mgx_run_rows(s, run, &slab, rows_for(s, run), &rows, diag);
    if (status == MGX_OK)
        status = mgx_card_run_rows(s, run, &rows, diag);
    if (status == MGX_OK) {
        advance(run, &rows);
        mark_all(s, run, &slab);
    }
    mgx_rows_fini(&rows);
    return status;
}
