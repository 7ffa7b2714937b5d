// SPDX-License-Identifier: MIT
#include <string.h>

#include "decoder.h"

struct decoder {
    struct instance *instance;
    migraphx_generator_t generator;
    migraphx_sampling_t sampling;
    size_t context, most; // tokens of a text; texts at a time
    bool decoupled;
    struct stream **streams; // that run
    size_t *texts;
    int64_t *tokens;
    size_t count;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t wake;
    struct stream *first, **last; // that wait
    bool stops;
};

// --- a text's life ---

static TritonError *begin(struct decoder *d, struct stream *s)
{
    ENGINE_TRY("a text", migraphx_generator_add(&s->text, d->generator));
    s->started = true;
    ENGINE_TRY("a text", migraphx_generator_set_sampling(d->generator, s->text, s->sampling));
    ENGINE_TRY("input_ids",
               migraphx_generator_append(d->generator, s->text, s->prompt, s->prompt_size));
    free(s->prompt);
    s->prompt = NULL;
    if (!d->decoupled && s->left) {
        const size_t most = d->context && d->context < s->left ? d->context : s->left;
        s->answer = calloc(most, sizeof *s->answer);
        s->left = most;
        return s->answer ? NULL : no_memory();
    }
    return NULL;
}

static void end(struct decoder *d, struct stream *s)
{
    const uint64_t first = s->first ? s->first : now();
    if (s->started)
        migraphx_generator_remove(d->generator, s->text);
    drop(TRITONBACKEND_ModelInstanceReportStatistics(d->instance->handle, s->request, !s->failed,
                                                     s->start, s->start, first, now()));
    drop(TRITONBACKEND_RequestRelease(s->request, TRITON_RELEASE_ALL));
    stream_destroy(s);
}

static bool is_cancelled(const struct stream *s)
{
    bool cancelled = false;
    drop(TRITONBACKEND_ResponseFactoryIsCancelled(s->factory, &cancelled));
    return cancelled;
}

// The last of all, without a token.
static TritonError *close_stream(const struct decoder *d, struct stream *s)
{
    s->over = true;
    return d->decoupled ? TRITONBACKEND_ResponseFactorySendFlags(s->factory, TRITON_FINAL)
                        : stream_send(s, s->answer, s->answer_size, true);
}

static TritonError *take_token(struct decoder *d, struct stream *s, int64_t token)
{
    bool ends = false;
    size_t size = 0;
    if (!s->first)
        s->first = now();
    ENGINE_TRY("a token", migraphx_generator_is_end(&ends, d->generator, token));
    if (ends)
        return close_stream(d, s);
    ENGINE_TRY("a text", migraphx_generator_size(&size, d->generator, s->text));
    s->left--;
    const bool final = !s->left || (d->context && size >= d->context);
    if (!d->decoupled) {
        s->answer[s->answer_size++] = token;
        return final ? close_stream(d, s) : NULL;
    }
    s->over = final;
    return stream_send(s, &token, 1, final);
}

static void give_token(struct decoder *d, struct stream *s, int64_t token)
{
    TritonError *error = take_token(d, s, token);
    if (error)
        stream_fail(s, error);
}

// --- all of them ---

static void step(struct decoder *d)
{
    const uint64_t start = now();
    for (size_t i = 0; i < d->count; i++)
        d->texts[i] = d->streams[i]->text;
    if (!migraphx_generator_next(d->tokens, d->generator, d->texts, d->count)) {
        const uint64_t computed = now();
        for (size_t i = 0; i < d->count; i++)
            give_token(d, d->streams[i], d->tokens[i]);
        drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(d->instance->handle, d->count, start,
                                                              start, computed, now()));
        return;
    }
    for (size_t i = 0; i < d->count; i++) { // one of them is to blame
        const migraphx_status status =
            migraphx_generator_next(d->tokens, d->generator, &d->texts[i], 1);
        if (status)
            stream_fail(d->streams[i], pass_on("a token", status));
        else
            give_token(d, d->streams[i], *d->tokens);
    }
}

static void sweep(struct decoder *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct stream *s = d->streams[i];
        if (!s->over && is_cancelled(s))
            stream_fail(s, fail(TRITON_CANCELLED, "migraphx: the request is cancelled"));
        if (s->over)
            end(d, s);
        else
            d->streams[kept++] = s;
    }
    d->count = kept;
}

// Waits where nothing is to do. False: it is over.
static bool take_in(struct decoder *d)
{
    size_t old = d->count;
    pthread_mutex_lock(&d->lock);
    while (!d->stops && !d->count && !d->first)
        pthread_cond_wait(&d->wake, &d->lock);
    while (!d->stops && d->first && d->count < d->most) {
        d->streams[d->count++] = d->first;
        d->first = d->first->next;
        if (!d->first)
            d->last = &d->first;
    }
    const bool goes_on = !d->stops;
    pthread_mutex_unlock(&d->lock);
    for (; goes_on && old < d->count; old++) {
        struct stream *s = d->streams[old];
        TritonError *error = begin(d, s);
        if (!error && !s->left)
            error = close_stream(d, s);
        if (error)
            stream_fail(s, error);
    }
    return goes_on;
}

static void *work(void *data)
{
    struct decoder *d = data;
    while (take_in(d)) {
        sweep(d);
        if (d->count)
            step(d);
        sweep(d);
    }
    return NULL;
}

// --- requests ---

static void enqueue(struct decoder *d, struct stream *s)
{
    pthread_mutex_lock(&d->lock);
    *d->last = s;
    d->last = &s->next;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

// Where not even a factory can be had there is nobody to tell.
static void refuse(struct decoder *d, struct stream *s, TritonRequest *request, TritonError *error)
{
    if (s && s->factory)
        stream_fail(s, error);
    else
        drop(error);
    if (s)
        end(d, s);
    else
        drop(TRITONBACKEND_RequestRelease(request, TRITON_RELEASE_ALL));
}

TritonError *decoder_execute(struct instance *n, TritonRequest **requests, uint32_t count)
{
    struct decoder *d = n->decoder;
    for (uint32_t i = 0; i < count; i++) {
        struct stream *s = NULL;
        TritonError *error = stream_read(requests[i], d->sampling, &s);
        if (error)
            refuse(d, s, requests[i], error);
        else
            enqueue(d, s);
    }
    return NULL;
}

// --- its life ---

static TritonError *load(const struct model *m, const char *target, int device,
                         migraphx_generator_t *out)
{
    migraphx_generator_options_t o = NULL;
    migraphx_compile_options_t c = NULL;
    const bool card = strcmp(target, "gpu") == 0;
    migraphx_status status = migraphx_generator_options_create(&o);
    if (!status)
        status = migraphx_compile_options_create(&c);
    if (!status)
        status = program_options(m, false, card ? device : -1, c);
    if (!status && card && device >= 0)
        status = migraphx_compile_options_set_device_id(c, (size_t)device);
    if (!status)
        status = migraphx_generator_options_set_target(o, target);
    if (!status)
        status = migraphx_generator_options_set_compile_options(o, c);
    if (!status && m->options.context)
        status = migraphx_generator_options_set_context(o, m->options.context);
    if (!status)
        status = migraphx_generator_load(out, m->path, o);
    migraphx_compile_options_destroy(c);
    migraphx_generator_options_destroy(o);
    return status ? pass_on(m->path, status) : NULL;
}

// Instances on the processor share the weights of the first; each card has its own.
static TritonError *find_generator(struct model *m, const char *target, int device,
                                   migraphx_generator_t *out)
{
    TritonError *error = NULL;
    if (strcmp(target, "cpu") != 0)
        return load(m, target, device, out);
    pthread_mutex_lock(&m->lock);
    if (!m->generator)
        error = load(m, target, -1, &m->generator);
    if (!error && migraphx_generator_share(out, m->generator))
        error = pass_on(m->name, migraphx_status_unknown_error);
    pthread_mutex_unlock(&m->lock);
    return error;
}

static TritonError *decoder_fill(struct decoder *d, struct model *m, const char *target, int device)
{
    d->most = m->options.texts ? m->options.texts : 1;
    d->decoupled = m->decoupled;
    d->streams = calloc(d->most, sizeof(struct stream *));
    d->texts = calloc(d->most, sizeof *d->texts);
    d->tokens = calloc(d->most, sizeof *d->tokens);
    if (!d->streams || !d->texts || !d->tokens)
        return no_memory();
    TRY(find_generator(m, target, device, &d->generator));
    ENGINE_TRY(m->name, migraphx_generator_sampling(&d->sampling, d->generator));
    ENGINE_TRY(m->name, migraphx_generator_context(&d->context, d->generator));
    if (pthread_create(&d->thread, NULL, work, d) != 0)
        return fail(TRITON_UNAVAILABLE, "migraphx: model %s gets no thread", m->name);
    d->has_thread = true;
    return NULL;
}

TritonError *decoder_create(struct instance *n, const char *target, int device,
                            struct decoder **out)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        return no_memory();
    d->instance = n;
    d->last = &d->first;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wake, NULL);
    TritonError *error = decoder_fill(d, n->model, target, device);
    if (error)
        decoder_destroy(d);
    else
        *out = d;
    return error;
}

static void stop(struct decoder *d)
{
    pthread_mutex_lock(&d->lock);
    d->stops = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    if (d->has_thread)
        pthread_join(d->thread, NULL);
}

static void abandon(struct decoder *d, struct stream *s)
{
    if (!s->over)
        stream_fail(s, fail(TRITON_UNAVAILABLE, "migraphx: the model is unloaded"));
    end(d, s);
}

void decoder_destroy(struct decoder *d)
{
    if (!d)
        return;
    stop(d);
    for (size_t i = 0; i < d->count; i++)
        abandon(d, d->streams[i]);
    while (d->first) {
        struct stream *next = d->first->next;
        abandon(d, d->first);
        d->first = next;
    }
    free(d->streams);
    free(d->texts);
    free(d->tokens);
    migraphx_sampling_destroy(d->sampling);
    migraphx_generator_destroy(d->generator);
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
