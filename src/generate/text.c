// SPDX-License-Identifier: MIT
// Texts: coming and going, their tokens, their settings.
#include "generate/text.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "generate/lengths.h"
#include "generate/plans.h"
#include "generate/source.h"
#include "generate/team.h"

enum { PIECE = 512 }; // tokens of a prompt in one run, where nobody says how many

// --- models ---

struct mgx_generator_model *mgx_generator_model_create(void)
{
    struct mgx_generator_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    mgx_arena_init(&model->arena);
    model->sampling = mgx_sampling_plain();
    model->piece = PIECE;
    model->start = -1;
    model->holders = 1;
    return model;
}

void mgx_generator_model_release(struct mgx_generator_model *model)
{
    if (!model || --model->holders)
        return;
    for (int i = 1; model->team && i < mgx_team_count(model->team); i++)
        mgx_generator_model_release(model->others[i - 1]);
    mgx_team_destroy(model->team);
    mgx_plans_destroy(model->plans);
    mgx_lengths_destroy(model->lengths);
    mgx_program_destroy(model->program);
    mgx_encoder_destroy(model->encoder);
    if (model->exchange)
        model->exchange->destroy(model->exchange);
    if (model->turn)
        pthread_mutex_destroy(model->turn);
    free(model->turn);
    free(model->others);
    mgx_arena_fini(&model->arena);
    free(model);
}

enum mgx_status mgx_generator_model_share(struct mgx_generator_model *model, int count,
                                          struct mgx_exchange *take, struct mgx_diag *diag)
{
    model->exchange = take;
    model->others = calloc((size_t)count, sizeof *model->others);
    model->turn = malloc(sizeof *model->turn);
    if (model->turn && pthread_mutex_init(model->turn, NULL) != 0) {
        free(model->turn);
        model->turn = NULL;
    }
    if (!model->others || !model->turn)
        return mgx_fail_memory(diag);
    TRY(mgx_team_create(&model->team, count, diag));
    for (int i = 1; i < count; i++)
        if (!(model->others[i - 1] = mgx_generator_model_create()))
            return mgx_fail_memory(diag);
    return MGX_OK;
}

struct mgx_generator_model *mgx_generator_model_at(struct mgx_generator_model *model, int card)
{
    return card ? model->others[card - 1] : model;
}

// --- sets of texts ---

enum mgx_status mgx_texts_create(struct mgx_texts **out, struct mgx_generator_model *model,
                                 struct mgx_diag *diag)
{
    assert(model->program && model->program->executable);
    const struct mgx_states_source source = {.program = model->program,
                                             .roles = &model->roles,
                                             .plans = model->plans,
                                             .context = model->context,
                                             .scores =
                                                 model->few_scores ? MGX_GENERATOR_SCORES : 0};
    struct mgx_texts *g = calloc(1, sizeof *g);
    if (!g)
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_states_create(&g->states, &source, diag);
    if (status != MGX_OK) {
        free(g);
        return status;
    }
    model->holders++;
    g->model = model;
    *out = g;
    return MGX_OK;
}

static void text_destroy(struct mgx_text *t)
{
    if (!t)
        return;
    mgx_track_destroy(t->track);
    free(t->v);
    free(t->logits);
    free(t->bias);
    mgx_seen_fini(&t->seen);
    free(t);
}

void mgx_texts_destroy(struct mgx_texts *g)
{
    if (!g)
        return;
    for (int64_t i = 0; i < g->count; i++)
        text_destroy(g->v[i]);
    free(g->v);
    mgx_texts_destroy(g->draft);
    mgx_states_destroy(g->states);
    mgx_draw_room_fini(&g->room);
    mgx_generator_model_release(g->model);
    free(g);
}

enum mgx_status mgx_texts_find(const struct mgx_texts *g, size_t number, struct mgx_text **out,
                               struct mgx_diag *diag)
{
    *out = number < (size_t)g->count ? g->v[number] : NULL;
    return *out ? MGX_OK
                : mgx_fail(diag, MGX_NOT_FOUND, "there is no text %zu: %s", number,
                           number < (size_t)g->count ? "it was removed" : "none was added so");
}

// --- texts that come and go ---

static enum mgx_status place_of(struct mgx_texts *g, size_t *out, struct mgx_diag *diag)
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
static enum mgx_status new_text(struct mgx_texts *g, size_t *number, struct mgx_text **out,
                                struct mgx_diag *diag)
{
    TRY(place_of(g, number, diag));
    struct mgx_text *t = calloc(1, sizeof *t);
    if (!t)
        return mgx_fail_memory(diag);
    t->sampling = g->model->sampling;
    *out = t;
    return MGX_OK;
}

enum mgx_status mgx_texts_add(struct mgx_texts *g, size_t *number, struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(new_text(g, number, &t, diag));
    const enum mgx_status status = mgx_track_create(&t->track, g->states, diag);
    if (status != MGX_OK) {
        text_destroy(t);
        return status;
    }
    g->v[*number] = t;
    return MGX_OK;
}

// Of a text of `words` scores, what a fork begins with.
static enum mgx_status copy_into(struct mgx_text *t, const struct mgx_text *from, size_t size,
                                 int64_t words, struct mgx_diag *diag)
{
    if (!mgx_array_reserve(&t->array, (int64_t)size, sizeof *t->v, NULL))
        return mgx_fail_memory(diag);
    if (size)
        memcpy(t->v, from->v, size * sizeof *t->v);
    t->count = (int64_t)size;
    t->given = mgx_min_i64(from->given, t->count);
    t->sampling = from->sampling;
    t->guesses = from->guesses;
    if (from->bias) {
        t->bias = malloc((size_t)words * sizeof *t->bias);
        if (!t->bias)
            return mgx_fail_memory(diag);
        memcpy(t->bias, from->bias, (size_t)words * sizeof *t->bias);
        t->bias_number = from->bias_number;
    }
    TRY(mgx_track_copy(&t->track, from->track, diag));
    return mgx_track_rewind(t->track, t->count, diag);
}

enum mgx_status mgx_texts_fork(struct mgx_texts *g, size_t from, size_t size, size_t *number,
                               struct mgx_diag *diag)
{
    struct mgx_text *t, *old;
    TRY(mgx_texts_find(g, from, &old, diag));
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

// A text's shadow goes with it, or with the draft.
static void drop_shadow(struct mgx_texts *g, struct mgx_text *t)
{
    if (g->draft && t->shadow && t->shadow <= (size_t)g->draft->count) {
        text_destroy(g->draft->v[t->shadow - 1]);
        g->draft->v[t->shadow - 1] = NULL;
    }
    t->shadow = 0;
}

enum mgx_status mgx_texts_remove(struct mgx_texts *g, size_t number, struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    drop_shadow(g, t);
    text_destroy(t);
    g->v[number] = NULL;
    return MGX_OK;
}

// --- what they are about ---

enum mgx_status mgx_texts_set_source(struct mgx_texts *g, size_t number,
                                     const struct mgx_named_tensor *inputs, size_t count,
                                     struct mgx_diag *diag)
{
    struct mgx_text *t;
    struct mgx_source *source;
    TRY(mgx_texts_find(g, number, &t, diag));
    if (!g->model->encoder)
        return mgx_fail(diag, MGX_INVALID, "the model has no encoder: its texts are about nothing");
    const double start = mgx_clock_seconds();
    const enum mgx_status run =
        mgx_encoder_run(&source, g->model->encoder, inputs, (int)count, diag);
    if (run != MGX_OK) {
        mgx_where(diag, "the source of text %zu", number);
        return run;
    }
    g->done.prompt_seconds += mgx_clock_seconds() - start;
    const enum mgx_status status = mgx_track_set_about(t->track, source, diag);
    mgx_source_release(source);
    if (status == MGX_OK)
        t->ahead = t->scored = 0;
    return status;
}

// --- tokens ---

static enum mgx_status check_tokens(const struct mgx_texts *g, const int64_t *tokens, size_t size,
                                    struct mgx_diag *diag)
{
    for (size_t i = 0; i < size; i++)
        if (tokens[i] < 0 || tokens[i] >= g->model->roles.words)
            return mgx_fail(diag, MGX_INVALID,
                            "token %lld, number %zu of %zu, is none of the model's %lld",
                            (long long)tokens[i], i, size, (long long)g->model->roles.words);
    return MGX_OK;
}

// Is there room in the model's context for `more` tokens?
enum mgx_status mgx_texts_check_context(const struct mgx_texts *g, size_t number,
                                        const struct mgx_text *t, size_t more,
                                        struct mgx_diag *diag)
{
    const size_t most = g->model->context ? (size_t)g->model->context : INT32_MAX;
    if (more <= most && (size_t)t->count <= most - more)
        return MGX_OK;
    return mgx_fail(diag, MGX_LIMIT,
                    "text %zu of %lld tokens cannot take %zu more: the model's context is %zu",
                    number, (long long)t->count, more, most);
}

// What was chosen ahead is chosen again: something that it followed from changes.
enum mgx_status mgx_text_drop_ahead(struct mgx_text *t, struct mgx_diag *diag)
{
    TRY(mgx_track_rewind(t->track, t->count, diag));
    t->ahead = 0;
    return MGX_OK;
}

enum mgx_status mgx_texts_append(struct mgx_texts *g, size_t number, const int64_t *tokens,
                                 size_t size, struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    TRY(mgx_texts_check_context(g, number, t, size, diag));
    TRY(check_tokens(g, tokens, size, diag));
    if (!size)
        return MGX_OK;
    if (!mgx_array_reserve(&t->array, (int64_t)size, sizeof *t->v, NULL))
        return mgx_fail_memory(diag);
    TRY(mgx_text_drop_ahead(t, diag));
    memcpy(t->v + t->count, tokens, size * sizeof *t->v);
    t->count += (int64_t)size;
    t->given = t->count;
    t->scored = 0;
    return MGX_OK;
}

enum mgx_status mgx_texts_rewind(struct mgx_texts *g, size_t number, size_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    if (size > (size_t)t->count)
        return mgx_fail(diag, MGX_INVALID, "text %zu has %lld tokens, not %zu", number,
                        (long long)t->count, size);
    if (size == (size_t)t->count)
        return MGX_OK;
    TRY(mgx_track_rewind(t->track, (int64_t)size, diag));
    t->count = (int64_t)size;
    if (t->seen.upto > t->count)
        mgx_seen_fini(&t->seen);
    t->given = mgx_min_i64(t->given, t->count);
    t->ahead = t->scored = 0;
    return MGX_OK;
}

// --- settings ---

enum mgx_status mgx_texts_set_sampling(struct mgx_texts *g, size_t number,
                                       const struct mgx_sampling *sampling, struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    TRY(mgx_text_drop_ahead(t, diag));
    t->sampling = *sampling;
    return MGX_OK;
}

static _Atomic uint64_t biases; // that there ever were

enum mgx_status mgx_texts_set_bias(struct mgx_texts *g, size_t number, const float *bias,
                                   size_t size, struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    if (bias && size != (size_t)g->model->roles.words)
        return mgx_fail(diag, MGX_INVALID, "a bias of %zu tokens, but the model has %lld", size,
                        (long long)g->model->roles.words);
    float *own = bias ? malloc(size * sizeof *own) : NULL;
    const enum mgx_status status =
        bias && !own ? mgx_fail_memory(diag) : mgx_text_drop_ahead(t, diag);
    if (status != MGX_OK) {
        free(own);
        return status;
    }
    if (bias)
        memcpy(own, bias, size * sizeof *own);
    free(t->bias);
    t->bias = own;
    t->bias_number = atomic_fetch_add(&biases, 1) + 1;
    return MGX_OK;
}

enum mgx_status mgx_texts_set_guesses(struct mgx_texts *g, size_t number, size_t most,
                                      struct mgx_diag *diag)
{
    struct mgx_text *t;
    TRY(mgx_texts_find(g, number, &t, diag));
    if (most > MGX_GENERATOR_GUESSES)
        return mgx_fail(diag, MGX_INVALID, "%zu guesses at a time are more than %d", most,
                        (int)MGX_GENERATOR_GUESSES);
    t->guesses = (int64_t)most;
    return MGX_OK;
}

enum mgx_status mgx_texts_set_draft(struct mgx_texts *g, struct mgx_generator_model *model,
                                    struct mgx_diag *diag)
{
    struct mgx_texts *draft = NULL;
    if (model && model->roles.words != g->model->roles.words)
        return mgx_fail(diag, MGX_INVALID, "a draft of %lld tokens for a model of %lld",
                        (long long)model->roles.words, (long long)g->model->roles.words);
    if (model)
        TRY(mgx_texts_create(&draft, model, diag));
    for (int64_t i = 0; i < g->count; i++)
        if (g->v[i])
            drop_shadow(g, g->v[i]);
    mgx_texts_destroy(g->draft);
    g->draft = draft;
    return MGX_OK;
}
