// SPDX-License-Identifier: MIT
// Generators: a set of texts and a lock, by which calls take turns.
#include "generate/generator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "generate/next.h"

struct mgx_generator {
    pthread_mutex_t lock;
    struct mgx_texts *texts;
};

struct mgx_generator_model *mgx_generator_model_of(const struct mgx_generator *g)
{
    return g->texts->model;
}

enum mgx_status mgx_generator_create(struct mgx_generator **out, struct mgx_generator_model *model,
                                     struct mgx_diag *diag)
{
    struct mgx_generator *g = calloc(1, sizeof *g);
    if (!g)
        return mgx_fail_memory(diag);
    enum mgx_status status = mgx_texts_create(&g->texts, model, diag);
    if (status == MGX_OK && pthread_mutex_init(&g->lock, NULL) != 0) {
        mgx_texts_destroy(g->texts);
        status = mgx_fail_memory(diag);
    }
    if (status != MGX_OK)
        free(g);
    else
        *out = g;
    return status;
}

void mgx_generator_destroy(struct mgx_generator *g)
{
    if (!g)
        return;
    mgx_texts_destroy(g->texts);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static struct mgx_texts *enter(struct mgx_generator *g)
{
    pthread_mutex_lock(&g->lock);
    return g->texts;
}

static enum mgx_status leave(struct mgx_generator *g, enum mgx_status status)
{
    pthread_mutex_unlock(&g->lock);
    return status;
}

// --- texts ---

enum mgx_status mgx_generator_add(struct mgx_generator *g, size_t *text, struct mgx_diag *diag)
{
    return leave(g, mgx_texts_add(enter(g), text, diag));
}

enum mgx_status mgx_generator_fork(struct mgx_generator *g, size_t from, size_t size, size_t *text,
                                   struct mgx_diag *diag)
{
    return leave(g, mgx_texts_fork(enter(g), from, size, text, diag));
}

enum mgx_status mgx_generator_remove(struct mgx_generator *g, size_t text, struct mgx_diag *diag)
{
    return leave(g, mgx_texts_remove(enter(g), text, diag));
}

enum mgx_status mgx_generator_append(struct mgx_generator *g, size_t text, const int64_t *tokens,
                                     size_t size, struct mgx_diag *diag)
{
    return leave(g, mgx_texts_append(enter(g), text, tokens, size, diag));
}

enum mgx_status mgx_generator_rewind(struct mgx_generator *g, size_t text, size_t size,
                                     struct mgx_diag *diag)
{
    return leave(g, mgx_texts_rewind(enter(g), text, size, diag));
}

enum mgx_status mgx_generator_size(struct mgx_generator *g, size_t text, size_t *size,
                                   struct mgx_diag *diag)
{
    struct mgx_text *t;
    const enum mgx_status status = mgx_texts_find(enter(g), text, &t, diag);
    if (status == MGX_OK)
        *size = (size_t)t->count;
    return leave(g, status);
}

enum mgx_status mgx_generator_tokens(struct mgx_generator *g, size_t text, int64_t *out,
                                     size_t size, struct mgx_diag *diag)
{
    struct mgx_text *t;
    enum mgx_status status = mgx_texts_find(enter(g), text, &t, diag);
    if (status == MGX_OK && size > (size_t)t->count)
        status = mgx_fail(diag, MGX_INVALID, "text %zu has %lld tokens, not %zu", text,
                          (long long)t->count, size);
    if (status == MGX_OK && size)
        memcpy(out, t->v, size * sizeof *out);
    return leave(g, status);
}

// --- settings ---

enum mgx_status mgx_generator_set_sampling(struct mgx_generator *g, size_t text,
                                           const struct mgx_sampling *sampling,
                                           struct mgx_diag *diag)
{
    return leave(g, mgx_texts_set_sampling(enter(g), text, sampling, diag));
}

enum mgx_status mgx_generator_set_bias(struct mgx_generator *g, size_t text, const float *bias,
                                       size_t size, struct mgx_diag *diag)
{
    return leave(g, mgx_texts_set_bias(enter(g), text, bias, size, diag));
}

enum mgx_status mgx_generator_set_guesses(struct mgx_generator *g, size_t text, size_t most,
                                          struct mgx_diag *diag)
{
    return leave(g, mgx_texts_set_guesses(enter(g), text, most, diag));
}

enum mgx_status mgx_generator_set_draft(struct mgx_generator *g, struct mgx_generator_model *model,
                                        struct mgx_diag *diag)
{
    return leave(g, mgx_texts_set_draft(enter(g), model, diag));
}

// --- running ---

enum mgx_status mgx_generator_next(struct mgx_generator *g, const size_t *texts, size_t count,
                                   int64_t *tokens, struct mgx_diag *diag)
{
    if (!count)
        return MGX_OK;
    struct mgx_text **found = calloc(count, sizeof *found);
    if (!found)
        return mgx_fail_memory(diag);
    const enum mgx_status status =
        leave(g, mgx_texts_next(enter(g), texts, count, found, tokens, diag));
    free(found);
    return status;
}

enum mgx_status mgx_generator_logits(struct mgx_generator *g, size_t text, float *out, size_t size,
                                     struct mgx_diag *diag)
{
    return leave(g, mgx_texts_logits(enter(g), text, out, size, diag));
}

void mgx_generator_statistics_of(struct mgx_generator *g, struct mgx_generator_statistics *out)
{
    const struct mgx_texts *texts = enter(g);
    *out = texts->done;
    out->weight_bytes = (double)texts->model->roles.weights;
    out->state_bytes = (double)mgx_states_bytes(texts->states);
    if (texts->draft) {
        out->weight_bytes += (double)texts->draft->model->roles.weights;
        out->state_bytes += (double)mgx_states_bytes(texts->draft->states);
    }
    leave(g, MGX_OK);
}
