// SPDX-License-Identifier: MIT
// Requests of decoders, and their responses.
#include <string.h>

#include "decoder.h"

enum { USUAL_TOKENS = 128, MOST_PROMPT = 1 << 24 };

// --- reading ---

// The bytes of an input that has a type and as many elements as *count says, or any number if that
// is 0. NULL where it is absent; free() it.
static TritonError *read_input(TritonRequest *request, const char *name, int want, size_t *count,
                               void **out)
{
    TritonInput *input = NULL;
    const int64_t *lens;
    uint32_t rank, buffers;
    uint64_t size = 0, got = 0;
    int type, memory = TRITON_MEMORY_CPU;
    int64_t device = 0;
    TritonError *absent = TRITONBACKEND_RequestInput(request, name, &input);
    *out = NULL;
    if (absent) {
        TRITONSERVER_ErrorDelete(absent);
        return NULL;
    }
    TRY(TRITONBACKEND_InputProperties(input, NULL, &type, &lens, &rank, &size, &buffers));
    const size_t elements = size / type_bytes(want);
    if (type != want || size > MOST_PROMPT || (*count && elements != *count))
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: input %s is %zu of %s, wanted is %zu of %s",
                    name, elements, type_name(type), *count ? *count : elements, type_name(want));
    char *to = malloc(size + 1);
    if (!to)
        return no_memory();
    *out = to;
    for (uint32_t i = 0; i < buffers; i++) {
        const void *data = NULL;
        uint64_t part = 0;
        memory = TRITON_MEMORY_CPU;
        TRY(TRITONBACKEND_InputBuffer(input, i, &data, &part, &memory, &device));
        if (memory == TRITON_MEMORY_GPU || part > size - got)
            return fail(TRITON_UNSUPPORTED, "migraphx: input %s lies in a card's memory", name);
        memcpy(to + got, data, part);
        got += part;
    }
    *count = elements;
    return NULL;
}

static TritonError *read_integer(TritonRequest *request, const char *name, int64_t *out,
                                 bool *there)
{
    void *data = NULL;
    size_t count = 1;
    TritonError *error = read_input(request, name, TRITON_INT64, &count, &data);
    *there = data && !error;
    if (*there)
        *out = *(int64_t *)data;
    free(data);
    if (!error && *there && *out < 0)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: input %s is %lld", name, (long long)*out);
    return error;
}

typedef migraphx_status set_number(migraphx_sampling_t, double);

static TritonError *read_numbers(TritonRequest *request, migraphx_sampling_t s)
{
    static const struct {
        const char *name;
        set_number *set;
    } rows[] = {{"temperature", migraphx_sampling_set_temperature},
                {"top_p", migraphx_sampling_set_top_p},
                {"min_p", migraphx_sampling_set_min_p},
                {"repetition_penalty", migraphx_sampling_set_repetition_penalty}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *data = NULL;
        size_t count = 1;
        TritonError *error = read_input(request, rows[i].name, TRITON_FP32, &count, &data);
        migraphx_status status = migraphx_status_success;
        if (!error && data)
            status = rows[i].set(s, (double)*(float *)data);
        free(data);
        if (error || status)
            return error ? error : pass_on(rows[i].name, status);
    }
    return NULL;
}

static TritonError *read_sampling(TritonRequest *request, migraphx_sampling_t s)
{
    int64_t value;
    bool there;
    TRY(read_numbers(request, s));
    TRY(read_integer(request, "top_k", &value, &there));
    if (there)
        ENGINE_TRY("top_k", migraphx_sampling_set_top_k(s, (size_t)value));
    TRY(read_integer(request, "seed", &value, &there));
    if (there)
        ENGINE_TRY("seed", migraphx_sampling_set_seed(s, (uint64_t)value));
    return NULL;
}

static TritonError *fill(TritonRequest *request, const_migraphx_sampling_t sampling,
                         struct stream *s)
{
    int64_t most = USUAL_TOKENS;
    void *prompt = NULL;
    bool there;
    TRY(TRITONBACKEND_ResponseFactoryNew(&s->factory, request));
    TritonError *error = read_input(request, "input_ids", TRITON_INT64, &s->prompt_size, &prompt);
    s->prompt = prompt;
    if (error)
        return error;
    if (!s->prompt_size)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: input input_ids has no tokens");
    TRY(read_integer(request, "max_tokens", &most, &there));
    s->left = (size_t)most;
    ENGINE_TRY("sampling", migraphx_sampling_create(&s->sampling));
    ENGINE_TRY("sampling", migraphx_sampling_assign_to(s->sampling, sampling));
    return read_sampling(request, s->sampling);
}

TritonError *stream_read(TritonRequest *request, const_migraphx_sampling_t sampling,
                         struct stream **out)
{
    struct stream *s = calloc(1, sizeof *s);
    *out = s;
    if (s) {
        s->request = request;
        s->start = now();
    }
    return s ? fill(request, sampling, s) : no_memory();
}

void stream_destroy(struct stream *s)
{
    if (!s)
        return;
    if (s->factory)
        drop(TRITONBACKEND_ResponseFactoryDelete(s->factory));
    migraphx_sampling_destroy(s->sampling);
    free(s->prompt);
    free(s->answer);
    free(s);
}

// --- answering ---

static TritonError *write_tokens(TritonResponse *response, const int64_t *tokens, size_t count)
{
    TritonOutput *output = NULL;
    const int64_t lens[] = {(int64_t)count};
    void *to = NULL;
    int memory = TRITON_MEMORY_CPU;
    int64_t device = 0;
    TRY(TRITONBACKEND_ResponseOutput(response, &output, "output_ids", TRITON_INT64, lens, 1));
    TRY(TRITONBACKEND_OutputBuffer(output, &to, count * sizeof *tokens, &memory, &device));
    if (memory == TRITON_MEMORY_GPU)
        return fail(TRITON_UNSUPPORTED, "migraphx: output_ids is wanted in a card's memory");
    if (count)
        memcpy(to, tokens, count * sizeof *tokens);
    return NULL;
}

TritonError *stream_send(struct stream *s, const int64_t *tokens, size_t count, bool final)
{
    TritonResponse *response = NULL;
    TRY(TRITONBACKEND_ResponseNewFromFactory(&response, s->factory));
    TritonError *error = write_tokens(response, tokens, count);
    if (error) {
        drop(TRITONBACKEND_ResponseDelete(response));
        return error;
    }
    return TRITONBACKEND_ResponseSend(response, final ? TRITON_FINAL : 0, NULL);
}

void stream_fail(struct stream *s, TritonError *error)
{
    TritonResponse *response = NULL;
    s->over = s->failed = true;
    TritonError *worse = TRITONBACKEND_ResponseNewFromFactory(&response, s->factory);
    if (!worse)
        worse = TRITONBACKEND_ResponseSend(response, TRITON_FINAL, error);
    drop(worse);
    TRITONSERVER_ErrorDelete(error);
}
