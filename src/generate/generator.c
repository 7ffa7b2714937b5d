// SPDX-License-Identifier: MIT
// Generators: their texts, and the order in which what is pending runs.
//
//     next(texts):  alone, each with more than one token pending     pieces of PIECE tokens
//                   together, all with one token pending             one run
//                   then a choice for each, and all are appended
#include "generate/generator.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/size.h"
#include "generate/state.h"

enum { PIECE = 512 }; // tokens of a prompt in one run, where nobody says how many

struct text {
    MGX_ARRAY(int64_t); // its tokens
    int64_t given;      // up to where the caller gave them; the rest was chosen
    struct mgx_track *track;
    float *logits; // behind the last token, where `scored` says so
    bool scored;
    float *bias; // NULL: none
    struct mgx_sampling sampling;
};

struct mgx_generator {
    pthread_mutex_t lock;
    struct mgx_generator_model *model;
    struct mgx_states *states;
    MGX_ARRAY(struct text *); // by number; NULL: removed
    struct mgx_draw_room room;
    struct mgx_generator_statistics done;
    bool takes_pieces; // a run of several tokens succeeded
    bool one_by_one;   // and none does: the model takes one, though it does not say so
};

// --- models ---

struct mgx_generator_model *mgx_generator_model_create(void)
{
    struct mgx_generator_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    mgx_arena_init(&model->arena);
    model->sampling = mgx_sampling_plain();
    model->piece = PIECE;
    model->holders = 1;
    return model;
}

void mgx_generator_model_release(struct mgx_generator_model *model)
{
    if (!model || --model->holders)
        return;
    mgx_program_destroy(model->program);
    mgx_arena_fini(&model->arena);
    free(model);
}

struct mgx_generator_model *mgx_generator_model_of(const struct mgx_generator *g)
{
    return g->model;
}

// --- generators ---

enum mgx_status mgx_generator_create(struct mgx_generator **out, struct mgx_generator_model *model,
                                     struct mgx_diag *diag)
{
    assert(model->program && model->program->executable);
    const struct mgx_states_source source = {model->program, &model->roles};
    struct mgx_generator *g = calloc(1, sizeof *g);
    if (!g)
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_states_create(&g->states, &source, diag);
    if (status != MGX_OK || pthread_mutex_init(&g->lock, NULL) != 0) {
        mgx_states_destroy(g->states);
        free(g);
        return status != MGX_OK ? status : mgx_fail_memory(diag);
    }
    model->holders++;
    g->model = model;
    *out = g;
    return MGX_OK;
}

static void text_destroy(struct text *t)
{
    if (!t)
        return;
    mgx_track_destroy(t->track);
    free(t->v);
    free(t->logits);
    free(t->bias);
    free(t);
}

void mgx_generator_destroy(struct mgx_generator *g)
{
    if (!g)
        return;
    for (int64_t i = 0; i < g->count; i++)
        text_destroy(g->v[i]);
    free(g->v);
    mgx_states_destroy(g->states);
    mgx_draw_room_fini(&g->room);
    mgx_generator_model_release(g->model);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static enum mgx_status leave(struct mgx_generator *g, enum mgx_status status)
{
    pthread_mutex_unlock(&g->lock);
    return status;
}

static enum mgx_status find(const struct mgx_generator *g, size_t number, struct text **out,
                            struct mgx_diag *diag)
{
    *out = number < (size_t)g->count ? g->v[number] : NULL;
    return *out ? MGX_OK
                : mgx_fail(diag, MGX_NOT_FOUND, "there is no text %zu: %s", number,
                           number < (size_t)g->count ? "it was removed" : "none was added so");
}

// --- texts that come and go ---

static enum mgx_status place_of(struct mgx_generator *g, size_t *out, struct mgx_diag *diag)
{
    for (int64_t i = 0; i < g->count; i++)
        if (!g->v[i]) {
            *out = (size_t)i;
            return MGX_OK;
        }
    if (!MGX_PUSH(g, NULL, NULL))
        return mgx_fail_memory(diag);
    *out = (size_t)g->count - 1;
    return MGX_OK;
}

// An empty one in a free place; on success its track is still to come.
static enum mgx_status new_text(struct mgx_generator *g, size_t *number, struct text **out,
                                struct mgx_diag *diag)
{
    TRY(place_of(g, number, diag));
    struct text *t = calloc(1, sizeof *t);
    if (!t)
        return mgx_fail_memory(diag);
    t->sampling = g->model->sampling;
    *out = t;
    return MGX_OK;
}

static enum mgx_status add(struct mgx_generator *g, size_t *number, struct mgx_diag *diag)
{
    struct text *t;
    TRY(new_text(g, number, &t, diag));
    const enum mgx_status status = mgx_track_create(&t->track, g->states, diag);
    if (status != MGX_OK) {
        text_destroy(t);
        return status;
    }
    g->v[*number] = t;
    return MGX_OK;
}

enum mgx_status mgx_generator_add(struct mgx_generator *g, size_t *text, struct mgx_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    return leave(g, add(g, text, diag));
}

// Of a text of `words` scores, what a fork begins with.
static enum mgx_status copy_into(struct text *t, const struct text *from, size_t size,
                                 int64_t words, struct mgx_diag *diag)
{
    if (!mgx_array_reserve(&t->array, (int64_t)size, sizeof *t->v, NULL))
        return mgx_fail_memory(diag);
    if (size)
        memcpy(t->v, from->v, size * sizeof *t->v);
    t->count = (int64_t)size;
    t->given = mgx_min_i64(from->given, t->count);
    t->sampling = from->sampling;
    if (from->bias) {
        t->bias = malloc((size_t)words * sizeof *t->bias);
        if (!t->bias)
            return mgx_fail_memory(diag);
        memcpy(t->bias, from->bias, (size_t)words * sizeof *t->bias);
    }
    TRY(mgx_track_copy(&t->track, from->track, diag));
    return mgx_track_rewind(t->track, t->count, diag);
}

static enum mgx_status fork_text(struct mgx_generator *g, size_t from, size_t size, size_t *number,
                                 struct mgx_diag *diag)
{
    struct text *t, *old;
    TRY(find(g, from, &old, diag));
    if (size > (size_t)old->count)
        return mgx_fail(diag, MGX_INVALID, "text %zu has %lld tokens, not %zu", from,
                        (long long)old->count, size);
    TRY(new_text(g, number, &t, diag));
    const enum mgx_status status = copy_into(t, old, size, g->model->roles.words, diag);
    if (status != MGX_OK) {
        text_destroy(t);
        return status;
    }
    g->v[*number] = t;
    return MGX_OK;
}

enum mgx_status mgx_generator_fork(struct mgx_generator *g, size_t from, size_t size, size_t *text,
                                   struct mgx_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    return leave(g, fork_text(g, from, size, text, diag));
}

enum mgx_status mgx_generator_remove(struct mgx_generator *g, size_t text, struct mgx_diag *diag)
{
    struct text *t;
    pthread_mutex_lock(&g->lock);
    const enum mgx_status status = find(g, text, &t, diag);
    if (status == MGX_OK) {
        text_destroy(t);
        g->v[text] = NULL;
    }
    return leave(g, status);
}

// --- tokens ---

static enum mgx_status check_tokens(const struct mgx_generator *g, const int64_t *tokens,
                                    size_t size, struct mgx_diag *diag)
{
    for (size_t i = 0; i < size; i++)
        if (tokens[i] < 0 || tokens[i] >= g->model->roles.words)
            return mgx_fail(diag, MGX_INVALID,
                            "token %lld, number %zu of %zu, is none of the model's %lld",
                            (long long)tokens[i], i, size, (long long)g->model->roles.words);
    return MGX_OK;
}

// Is there room in the model's context for `more` tokens?
static enum mgx_status check_context(const struct mgx_generator *g, size_t number,
                                     const struct text *t, size_t more, struct mgx_diag *diag)
{
    const size_t most = g->model->context ? (size_t)g->model->context : INT32_MAX;
    if (more <= most && (size_t)t->count <= most - more)
        return MGX_OK;
    return mgx_fail(diag, MGX_LIMIT,
                    "text %zu of %lld tokens cannot take %zu more: the model's context is %zu",
                    number, (long long)t->count, more, most);
}

static enum mgx_status append(struct mgx_generator *g, size_t number, const int64_t *tokens,
                              size_t size, struct mgx_diag *diag)
{
    struct text *t;
    TRY(find(g, number, &t, diag));
    TRY(check_context(g, number, t, size, diag));
    TRY(check_tokens(g, tokens, size, diag));
    if (!size)
        return MGX_OK;
    if (!mgx_array_reserve(&t->array, (int64_t)size, sizeof *t->v, NULL))
        return mgx_fail_memory(diag);
    memcpy(t->v + t->count, tokens, size * sizeof *t->v);
    t->count += (int64_t)size;
    t->given = t->count;
    t->scored = false;
    return MGX_OK;
}

enum mgx_status mgx_generator_append(struct mgx_generator *g, size_t text, const int64_t *tokens,
                                     size_t size, struct mgx_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    return leave(g, append(g, text, tokens, size, diag));
}

static enum mgx_status rewind_text(struct mgx_generator *g, size_t number, size_t size,
                                   struct mgx_diag *diag)
{
    struct text *t;
    TRY(find(g, number, &t, diag));
    if (size > (size_t)t->count)
        return mgx_fail(diag, MGX_INVALID, "text %zu has %lld tokens, not %zu", number,
                        (long long)t->count, size);
    if (size == (size_t)t->count)
        return MGX_OK;
    TRY(mgx_track_rewind(t->track, (int64_t)size, diag));
    t->count = (int64_t)size;
    t->given = mgx_min_i64(t->given, t->count);
    t->scored = false;
    return MGX_OK;
}

enum mgx_status mgx_generator_rewind(struct mgx_generator *g, size_t text, size_t size,
                                     struct mgx_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    return leave(g, rewind_text(g, text, size, diag));
}

enum mgx_status mgx_generator_size(struct mgx_generator *g, size_t text, size_t *size,
                                   struct mgx_diag *diag)
{
    struct text *t;
    pthread_mutex_lock(&g->lock);
    const enum mgx_status status = find(g, text, &t, diag);
    if (status == MGX_OK)
        *size = (size_t)t->count;
    return leave(g, status);
}

enum mgx_status mgx_generator_tokens(struct mgx_generator *g, size_t text, int64_t *out,
                                     size_t size, struct mgx_diag *diag)
{
    struct text *t;
    pthread_mutex_lock(&g->lock);
    enum mgx_status status = find(g, text, &t, diag);
    if (status == MGX_OK && size > (size_t)t->count)
        status = mgx_fail(diag, MGX_INVALID, "text %zu has %lld tokens, not %zu", text,
                          (long long)t->count, size);
    if (status == MGX_OK && size)
        memcpy(out, t->v, size * sizeof *out);
    return leave(g, status);
}

// --- choosing ---

enum mgx_status mgx_generator_set_sampling(struct mgx_generator *g, size_t text,
                                           const struct mgx_sampling *sampling,
                                           struct mgx_diag *diag)
{
    struct text *t;
    pthread_mutex_lock(&g->lock);
    const enum mgx_status status = find(g, text, &t, diag);
    if (status == MGX_OK)
        t->sampling = *sampling;
    return leave(g, status);
}

static enum mgx_status set_bias(struct mgx_generator *g, size_t number, const float *bias,
                                size_t size, struct mgx_diag *diag)
{
    struct text *t;
    TRY(find(g, number, &t, diag));
    if (bias && size != (size_t)g->model->roles.words)
        return mgx_fail(diag, MGX_INVALID, "a bias of %zu tokens, but the model has %lld", size,
                        (long long)g->model->roles.words);
    float *own = bias ? malloc(size * sizeof *own) : NULL;
    if (bias && !own)
        return mgx_fail_memory(diag);
    if (bias)
        memcpy(own, bias, size * sizeof *own);
    free(t->bias);
    t->bias = own;
    return MGX_OK;
}

enum mgx_status mgx_generator_set_bias(struct mgx_generator *g, size_t text, const float *bias,
                                       size_t size, struct mgx_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    return leave(g, set_bias(g, text, bias, size, diag));
}

// --- running what is pending ---

static void count_run(struct mgx_generator *g, const struct mgx_track_run *run, bool given,
                      double seconds)
{
    struct mgx_generator_statistics *d = &g->done;
    *(given ? &d->prompt_tokens : &d->answer_tokens) += (double)(run->count * run->each);
    *(given ? &d->prompt_seconds : &d->answer_seconds) += seconds;
    d->runs++;
}

// The tracks of these texts go on by `each` tokens.
static enum mgx_status run_texts(struct mgx_generator *g, struct text *const *texts, int64_t count,
                                 int64_t each, struct mgx_diag *diag)
{
    struct mgx_track **tracks = calloc((size_t)count, sizeof *tracks);
    float **logits = calloc((size_t)count, sizeof *logits);
    int64_t *tokens = calloc((size_t)(count * each), sizeof *tokens);
    const struct mgx_track_run run = {tracks, count, each, tokens, logits, g->model->roles.words};
    enum mgx_status status = tracks && logits && tokens ? MGX_OK : mgx_fail_memory(diag);
    bool given = false;
    for (int64_t i = 0; i < count && status == MGX_OK; i++) {
        const int64_t from = mgx_track_length(texts[i]->track);
        tracks[i] = texts[i]->track;
        logits[i] = texts[i]->logits;
        memcpy(tokens + i * each, texts[i]->v + from, (size_t)each * sizeof *tokens);
        given |= from < texts[i]->given;
    }
    const double start = mgx_clock_seconds();
    if (status == MGX_OK)
        status = mgx_states_run(g->states, &run, diag);
    if (status == MGX_OK)
        count_run(g, &run, given, mgx_clock_seconds() - start);
    for (int64_t i = 0; i < count && status == MGX_OK; i++)
        texts[i]->scored = mgx_track_length(texts[i]->track) == texts[i]->count;
    free(tracks);
    free(logits);
    free(tokens);
    return status;
}

static int64_t pending(const struct text *t)
{
    return t->count - mgx_track_length(t->track);
}

// Scores that are not there take the last token once more.
static enum mgx_status need_scores(struct mgx_generator *g, size_t number, struct text *t,
                                   struct mgx_diag *diag)
{
    if (!t->count)
        return mgx_fail(diag, MGX_INVALID, "text %zu is empty: what should go on needs a token",
                        number);
    if (!t->logits)
        t->logits = calloc((size_t)g->model->roles.words, sizeof *t->logits);
    if (!t->logits)
        return mgx_fail_memory(diag);
    return t->scored || pending(t) ? MGX_OK : mgx_track_rewind(t->track, t->count - 1, diag);
}

// The next tokens of one text. Some exporters leave the axis of tokens open in a graph that takes one:
// where several fail and one does not, it is one from now on.
static enum mgx_status run_piece(struct mgx_generator *g, struct text *t, int64_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_diag several, one;
    mgx_diag_clear(&several);
    mgx_diag_clear(&one);
    const enum mgx_status status = run_texts(g, &t, 1, size, &several);
    if (status == MGX_OK) {
        g->takes_pieces |= size > 1;
        return MGX_OK;
    }
    if (size > 1 && !g->takes_pieces && status == MGX_INVALID &&
        run_texts(g, &t, 1, 1, &one) == MGX_OK) {
        g->one_by_one = true;
        return MGX_OK;
    }
    if (diag)
        *diag = several;
    return status;
}

// Alone, until nothing is pending.
static enum mgx_status run_alone(struct mgx_generator *g, struct text *t, struct mgx_diag *diag)
{
    const struct mgx_roles *r = &g->model->roles;
    while (pending(t)) {
        const int64_t most = g->one_by_one ? 1 : r->most ? r->most : g->model->piece;
        TRY(run_piece(g, t, mgx_min_i64(pending(t), mgx_min_i64(most, g->model->piece)), diag));
    }
    return MGX_OK;
}

static enum mgx_status run_pending(struct mgx_generator *g, struct text *const *texts,
                                   int64_t count, struct mgx_diag *diag)
{
    struct text **together = calloc((size_t)count, sizeof *together);
    int64_t n = 0;
    enum mgx_status status = together ? MGX_OK : mgx_fail_memory(diag);
    for (int64_t i = 0; i < count && status == MGX_OK; i++) {
        if (g->model->roles.takes_many && pending(texts[i]) == 1)
            together[n++] = texts[i];
        else
            status = run_alone(g, texts[i], diag);
    }
    if (status == MGX_OK && n)
        status = run_texts(g, together, n, 1, diag);
    free(together);
    return status;
}

// The texts of these numbers, each once, scored.
static enum mgx_status score(struct mgx_generator *g, const size_t *numbers, size_t count,
                             struct text **texts, struct mgx_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        TRY(find(g, numbers[i], &texts[i], diag));
        for (size_t j = 0; j < i; j++)
            if (texts[j] == texts[i])
                return mgx_fail(diag, MGX_INVALID, "text %zu is named twice", numbers[i]);
        TRY(need_scores(g, numbers[i], texts[i], diag));
    }
    return run_pending(g, texts, (int64_t)count, diag);
}

static enum mgx_status choose(struct mgx_generator *g, const struct text *t, int64_t *token,
                              struct mgx_diag *diag)
{
    const struct mgx_draw s = {.sampling = &t->sampling,
                               .scores = t->logits,
                               .bias = t->bias,
                               .size = g->model->roles.words,
                               .text = t->v,
                               .length = t->count};
    return mgx_draw_token(&s, &g->room, token, diag);
}

static enum mgx_status next(struct mgx_generator *g, const size_t *numbers, size_t count,
                            struct text **texts, int64_t *tokens, struct mgx_diag *diag)
{
    TRY(score(g, numbers, count, texts, diag));
    for (size_t i = 0; i < count; i++) {
        TRY(check_context(g, numbers[i], texts[i], 1, diag));
        if (!mgx_array_reserve(&texts[i]->array, 1, sizeof *texts[i]->v, NULL))
            return mgx_fail_memory(diag);
        const enum mgx_status status = choose(g, texts[i], &tokens[i], diag);
        if (status != MGX_OK) {
            mgx_where(diag, "text %zu", numbers[i]);
            return status;
        }
    }
    for (size_t i = 0; i < count; i++) {
        texts[i]->v[texts[i]->count++] = tokens[i];
        texts[i]->scored = false;
    }
    return MGX_OK;
}

enum mgx_status mgx_generator_next(struct mgx_generator *g, const size_t *texts, size_t count,
                                   int64_t *tokens, struct mgx_diag *diag)
{
    if (!count)
        return MGX_OK;
    struct text **found = calloc(count, sizeof *found);
    if (!found)
        return mgx_fail_memory(diag);
    pthread_mutex_lock(&g->lock);
    const enum mgx_status status = leave(g, next(g, texts, count, found, tokens, diag));
    free(found);
    return status;
}

enum mgx_status mgx_generator_logits(struct mgx_generator *g, size_t text, float *out, size_t size,
                                     struct mgx_diag *diag)
{
    struct text *t;
    pthread_mutex_lock(&g->lock);
    enum mgx_status status = MGX_OK;
    if (size != (size_t)g->model->roles.words)
        status = mgx_fail(diag, MGX_INVALID, "room for %zu scores, but the model has %lld tokens",
                          size, (long long)g->model->roles.words);
    if (status == MGX_OK)
        status = score(g, &text, 1, &t, diag);
    if (status == MGX_OK)
        memcpy(out, t->logits, size * sizeof *out);
    return leave(g, status);
}

void mgx_generator_statistics_of(struct mgx_generator *g, struct mgx_generator_statistics *out)
{
    pthread_mutex_lock(&g->lock);
    *out = g->done;
    out->weight_bytes = (double)g->model->roles.weights;
    out->state_bytes = (double)mgx_states_bytes(g->states);
    leave(g, MGX_OK);
}
