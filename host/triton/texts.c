// SPDX-License-Identifier: MIT
// Texts, which the server has as bytes behind their number of four bytes.
#include <string.h>

#include "run.h"

struct texts {
    const char **at;
    size_t *sizes;
    size_t count, room;
};

static void texts_fini(struct texts *t)
{
    free(t->at);
    free(t->sizes);
}

static TritonError *take_texts(struct texts *t, const char *name, const char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        uint32_t length;
        if (t->count == t->room || size - at < sizeof length)
            break;
        memcpy(&length, data + at, sizeof length);
        at += sizeof length;
        if (length > size - at)
            return fail(TRITON_INVALID_ARGUMENT,
                        "migraphx: text %zu of input %s has %u bytes, and %zu are there", t->count,
                        name, length, size - at);
        t->at[t->count] = data + at;
        t->sizes[t->count++] = length;
        at += length;
    }
    return NULL;
}

static TritonError *make_argument(const struct texts *t, const size_t *lens, size_t rank,
                                  migraphx_argument_t *out)
{
    migraphx_shape_datatype_t type;
    migraphx_shape_t shape = NULL;
    ENGINE_TRY("texts", migraphx_type_find(&type, "string"));
    ENGINE_TRY("texts", migraphx_shape_create(&shape, type, (size_t *)lens, rank));
    const migraphx_status status =
        migraphx_argument_create_strings(out, shape, t->at, t->sizes, t->count);
    migraphx_shape_destroy(shape);
    return status ? pass_on("texts", status) : NULL;
}

TritonError *gather_texts(struct group *g, size_t input, const size_t *lens, size_t rank,
                          migraphx_argument_t *out)
{
    const char *name = g->instance->model->inputs[input].name;
    const void *data = NULL;
    uint64_t size = 0, count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= lens[i];
    TRY(gather(g, input, g->rows, &data));
    for (size_t i = 0; i < g->count; i++)
        size += g->items[i]->parts[input].size;
    if (count > size / sizeof(uint32_t))
        return fail(TRITON_INVALID_ARGUMENT,
                    "migraphx: input %s has %llu bytes, and its lengths want %llu texts", name,
                    (unsigned long long)size, (unsigned long long)count);
    struct texts t = {.at = calloc(count + 1, sizeof *t.at),
                      .sizes = calloc(count + 1, sizeof *t.sizes),
                      .room = count};
    TritonError *error = t.at && t.sizes ? take_texts(&t, name, data, size) : no_memory();
    if (!error && t.count != count)
        error = fail(TRITON_INVALID_ARGUMENT, "migraphx: input %s has %zu texts, not %llu", name,
                     t.count, (unsigned long long)count);
    if (!error)
        error = make_argument(&t, lens, rank, out);
    texts_fini(&t);
    return error;
}

// --- results ---

static TritonError *give_texts(struct item *t, const struct value *v, const int64_t *lens,
                               size_t rank, const_migraphx_argument_t result, size_t first,
                               size_t count)
{
    uint64_t size = 0;
    void *data = NULL;
    for (size_t i = first; i < first + count; i++) {
        const char *text;
        size_t length;
        ENGINE_TRY(v->name, migraphx_argument_string(&text, &length, result, i));
        size += sizeof(uint32_t) + length;
    }
    TRY(item_output(t, v, lens, rank, size, &data));
    char *to = data;
    for (size_t i = first; to && i < first + count; i++) {
        const char *text;
        size_t length;
        ENGINE_TRY(v->name, migraphx_argument_string(&text, &length, result, i));
        const uint32_t shown = (uint32_t)length;
        memcpy(to, &shown, sizeof shown);
        memcpy(to + sizeof shown, text, length);
        to += sizeof shown + length;
    }
    return NULL;
}

TritonError *scatter_texts(struct group *g, size_t index, const_migraphx_argument_t result)
{
    const struct value *v = &g->instance->model->results[index];
    const_migraphx_shape_t shape = NULL;
    const size_t *lens;
    size_t shown, rank, first = 0;
    int64_t own[MOST_RANK];
    ENGINE_TRY(v->name, migraphx_argument_shape(&shape, result));
    ENGINE_TRY(v->name, migraphx_shape_lengths(&lens, &shown, shape));
    ENGINE_TRY(v->name, migraphx_shape_rank(&rank, shape));
    for (size_t i = 0; i < rank; i++)
        own[i] = (int64_t)lens[i];
    for (size_t i = 0; i < g->count; i++) {
        struct item *t = g->items[i];
        uint64_t count = 1;
        if (rank && g->instance->model->most)
            own[0] = (int64_t)t->rows;
        count_elements(own, rank, &count);
        if (t->wanted[index])
            item_fail(t, give_texts(t, v, own, rank, result, first, count));
        first += count;
    }
    return NULL;
}
