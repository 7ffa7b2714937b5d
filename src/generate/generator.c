// SPDX-License-Identifier: MIT
// Generators: a set of texts and a lock, by which calls take turns.
//
// On several cards each has a set of its own, and every call goes to all of them, at the same time:
// they hold the same texts, and choose the same tokens by the same scores. A call that one card
// could do and another could not is the last one.
#include "generate/generator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "generate/next.h"
#include "generate/team.h"

struct mgx_generator {
    pthread_mutex_t lock;
    struct mgx_generator_model *model; // the first card's, which its texts hold
    int count;                         // of cards
    struct mgx_texts *texts[MGX_EXCHANGE_CARDS];
};

// One call, for any card.
struct call {
    struct mgx_generator *g;
    enum mgx_status (*act)(struct mgx_texts *texts, struct call *c, int card,
                           struct mgx_diag *diag);
    size_t text, size;
    const void *in;                  // what the call is given
    size_t made[MGX_EXCHANGE_CARDS]; // the text that it makes
    int64_t *tokens;                 // of each card, `size` of them
    struct mgx_text **found;         // as many
    struct mgx_generator_model *draft;
};

static enum mgx_status act(void *user, int card, struct mgx_diag *diag)
{
    struct call *c = user;
    return c->act(c->g->texts[card], c, card, diag);
}

static void fails(void *user, int card)
{
    const struct call *c = user;
    (void)card;
    c->g->model->exchange->stop(c->g->model->exchange);
}

static enum mgx_status act_together(struct call *c, struct mgx_diag *diag)
{
    struct mgx_generator_model *m = c->g->model;
    bool apart = false;
    if (m->apart)
        return mgx_fail(diag, MGX_DEVICE,
                        "an earlier call failed on one of %d cards: this generator is of no use",
                        c->g->count);
    TRY(mgx_cancel_check(diag));
    pthread_mutex_lock(m->turn);
    const enum mgx_status status = mgx_team_run(m->team, act, fails, c, &apart, diag);
    if (status != MGX_OK && !apart) // by all alike, as of a context that is full
        apart = m->exchange->restart(m->exchange, NULL) != MGX_OK;
    m->apart = m->apart || apart;
    pthread_mutex_unlock(m->turn);
    return status;
}

static enum mgx_status each(struct call *c, struct mgx_diag *diag)
{
    return c->g->count == 1 ? c->act(c->g->texts[0], c, 0, diag) : act_together(c, diag);
}

static struct mgx_texts *enter(struct mgx_generator *g)
{
    pthread_mutex_lock(&g->lock);
    return g->texts[0];
}

static enum mgx_status leave(struct mgx_generator *g, enum mgx_status status)
{
    pthread_mutex_unlock(&g->lock);
    return status;
}

static enum mgx_status call(struct call *c, struct mgx_diag *diag)
{
    (void)enter(c->g);
    return leave(c->g, each(c, diag));
}

// --- coming and going ---

struct mgx_generator_model *mgx_generator_model_of(const struct mgx_generator *g)
{
    return g->model;
}

static enum mgx_status create(struct mgx_texts *texts, struct call *c, int card,
                              struct mgx_diag *diag)
{
    (void)texts;
    return mgx_texts_create(&c->g->texts[card], mgx_generator_model_at(c->g->model, card), diag);
}

static void destroy_texts(struct mgx_generator *g)
{
    for (int i = g->count - 1; i >= 0; i--) // the first card's hold the others' models
        mgx_texts_destroy(g->texts[i]);
}

enum mgx_status mgx_generator_create(struct mgx_generator **out, struct mgx_generator_model *model,
                                     struct mgx_diag *diag)
{
    struct mgx_generator *g = calloc(1, sizeof *g);
    if (!g)
        return mgx_fail_memory(diag);
    g->model = model;
    g->count = model->team ? mgx_team_count(model->team) : 1;
    enum mgx_status status = each(&(struct call){.g = g, .act = create}, diag);
    if (status == MGX_OK && pthread_mutex_init(&g->lock, NULL) != 0)
        status = mgx_fail_memory(diag);
    if (status == MGX_OK) {
        *out = g;
        return MGX_OK;
    }
    destroy_texts(g);
    free(g);
    return status;
}

void mgx_generator_destroy(struct mgx_generator *g)
{
    if (!g)
        return;
    destroy_texts(g);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

// --- texts ---

static enum mgx_status add(struct mgx_texts *texts, struct call *c, int card, struct mgx_diag *diag)
{
    return mgx_texts_add(texts, &c->made[card], diag);
}

enum mgx_status mgx_generator_add(struct mgx_generator *g, size_t *text, struct mgx_diag *diag)
{
    struct call c = {.g = g, .act = add};
    TRY(call(&c, diag));
    *text = c.made[0];
    return MGX_OK;
}

static enum mgx_status fork_text(struct mgx_texts *texts, struct call *c, int card,
                                 struct mgx_diag *diag)
{
    return mgx_texts_fork(texts, c->text, c->size, &c->made[card], diag);
}

enum mgx_status mgx_generator_fork(struct mgx_generator *g, size_t from, size_t size, size_t *text,
                                   struct mgx_diag *diag)
{
    struct call c = {.g = g, .act = fork_text, .text = from, .size = size};
    TRY(call(&c, diag));
    *text = c.made[0];
    return MGX_OK;
}

static enum mgx_status remove_text(struct mgx_texts *texts, struct call *c, int card,
                                   struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_remove(texts, c->text, diag);
}

enum mgx_status mgx_generator_remove(struct mgx_generator *g, size_t text, struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = remove_text, .text = text}, diag);
}

static enum mgx_status set_source(struct mgx_texts *texts, struct call *c, int card,
                                  struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_set_source(texts, c->text, c->in, c->size, diag);
}

enum mgx_status mgx_generator_set_source(struct mgx_generator *g, size_t text,
                                         const struct mgx_named_tensor *inputs, size_t count,
                                         struct mgx_diag *diag)
{
    return call(
        &(struct call){.g = g, .act = set_source, .text = text, .in = inputs, .size = count}, diag);
}

static enum mgx_status append(struct mgx_texts *texts, struct call *c, int card,
                              struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_append(texts, c->text, c->in, c->size, diag);
}

enum mgx_status mgx_generator_append(struct mgx_generator *g, size_t text, const int64_t *tokens,
                                     size_t size, struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = append, .text = text, .in = tokens, .size = size},
                diag);
}

static enum mgx_status rewind_text(struct mgx_texts *texts, struct call *c, int card,
                                   struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_rewind(texts, c->text, c->size, diag);
}

enum mgx_status mgx_generator_rewind(struct mgx_generator *g, size_t text, size_t size,
                                     struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = rewind_text, .text = text, .size = size}, diag);
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

static enum mgx_status set_sampling(struct mgx_texts *texts, struct call *c, int card,
                                    struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_set_sampling(texts, c->text, c->in, diag);
}

enum mgx_status mgx_generator_set_sampling(struct mgx_generator *g, size_t text,
                                           const struct mgx_sampling *sampling,
                                           struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = set_sampling, .text = text, .in = sampling}, diag);
}

static enum mgx_status set_bias(struct mgx_texts *texts, struct call *c, int card,
                                struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_set_bias(texts, c->text, c->in, c->size, diag);
}

enum mgx_status mgx_generator_set_bias(struct mgx_generator *g, size_t text, const float *bias,
                                       size_t size, struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = set_bias, .text = text, .in = bias, .size = size},
                diag);
}

static enum mgx_status set_guesses(struct mgx_texts *texts, struct call *c, int card,
                                   struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_set_guesses(texts, c->text, c->size, diag);
}

enum mgx_status mgx_generator_set_guesses(struct mgx_generator *g, size_t text, size_t most,
                                          struct mgx_diag *diag)
{
    return call(&(struct call){.g = g, .act = set_guesses, .text = text, .size = most}, diag);
}

// Every card has a draft of its own: all of them guess the same.
static enum mgx_status set_draft(struct mgx_texts *texts, struct call *c, int card,
                                 struct mgx_diag *diag)
{
    (void)card;
    return mgx_texts_set_draft(texts, c->draft, diag);
}

enum mgx_status mgx_generator_set_draft(struct mgx_generator *g, struct mgx_generator_model *model,
                                        struct mgx_diag *diag)
{
    if (model && model->team)
        return mgx_fail(diag, MGX_UNSUPPORTED, "a draft on %d cards: it should be on one",
                        mgx_team_count(model->team));
    return call(&(struct call){.g = g, .act = set_draft, .draft = model}, diag);
}

// --- running ---

static enum mgx_status next(struct mgx_texts *texts, struct call *c, int card,
                            struct mgx_diag *diag)
{
    return mgx_texts_next(texts, c->in, c->size, c->found + (size_t)card * c->size,
                          c->tokens + (size_t)card * c->size, diag);
}

// The cards' scores are the same to the last bit.
static enum mgx_status check_tokens(const struct call *c, struct mgx_diag *diag)
{
    for (int i = 1; i < c->g->count; i++)
        if (memcmp(c->tokens, c->tokens + (size_t)i * c->size, c->size * sizeof *c->tokens) != 0) {
            c->g->model->apart = true;
            return mgx_fail(diag, MGX_DEVICE, "card %d has chosen other tokens than the first", i);
        }
    return MGX_OK;
}

enum mgx_status mgx_generator_next(struct mgx_generator *g, const size_t *texts, size_t count,
                                   int64_t *tokens, struct mgx_diag *diag)
{
    if (!count)
        return MGX_OK;
    const size_t all = count * (size_t)g->count;
    struct call c = {.g = g, .act = next, .in = texts, .size = count};
    c.found = calloc(all, sizeof *c.found);
    c.tokens = calloc(all, sizeof *c.tokens);
    enum mgx_status status = c.found && c.tokens ? MGX_OK : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = call(&c, diag);
    if (status == MGX_OK)
        status = check_tokens(&c, diag);
    if (status == MGX_OK)
        memcpy(tokens, c.tokens, count * sizeof *tokens);
    free(c.found);
    free(c.tokens);
    return status;
}

static enum mgx_status logits(struct mgx_texts *texts, struct call *c, int card,
                              struct mgx_diag *diag)
{
    float **out = (float **)(uintptr_t)c->in;
    return mgx_texts_logits(texts, c->text, out[card], c->size, diag);
}

enum mgx_status mgx_generator_logits(struct mgx_generator *g, size_t text, float *out, size_t size,
                                     struct mgx_diag *diag)
{
    float *all[MGX_EXCHANGE_CARDS] = {out};
    enum mgx_status status = MGX_OK;
    for (int i = 1; i < g->count && status == MGX_OK; i++)
        if (!(all[i] = calloc(size ? size : 1, sizeof *out)))
            status = mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = call(&(struct call){.g = g, .act = logits, .text = text, .in = all, .size = size},
                      diag);
    for (int i = 1; i < g->count; i++)
        free(all[i]);
    return status;
}

static void add_bytes(const struct mgx_texts *texts, struct mgx_generator_statistics *out)
{
    out->weight_bytes += (double)texts->model->roles.weights;
    out->state_bytes += (double)mgx_states_bytes(texts->states);
    if (texts->draft)
        add_bytes(texts->draft, out);
}

void mgx_generator_statistics_of(struct mgx_generator *g, struct mgx_generator_statistics *out)
{
    *out = enter(g)->done;
    out->weight_bytes = out->state_bytes = 0;
    for (int i = 0; i < g->count; i++)
        add_bytes(g->texts[i], out);
    leave(g, MGX_OK);
}
