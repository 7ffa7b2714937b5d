// SPDX-License-Identifier: MIT
// Batches whose requests differ in length, as models take them that are told where each begins.
//
// An input that may be ragged and has one axis in the model is all requests' elements one behind the
// other. What the model must know beside it is made here (batch_input of the configuration), and a
// result that has as many elements is cut like an input (batch_output).
#include <string.h>

#include "config.h"
#include "run.h"

enum kind { NONE, COUNT, ENDS, BOUNDS, MOST, SHAPES, FLAT };

static const char *const kinds[] = {
    [NONE] = "",
    [COUNT] = "BATCH_ELEMENT_COUNT",
    [ENDS] = "BATCH_ACCUMULATED_ELEMENT_COUNT",
    [BOUNDS] = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    [MOST] = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
    [SHAPES] = "BATCH_ITEM_SHAPE",
    [FLAT] = "BATCH_ITEM_SHAPE_FLATTEN",
};

bool value_is_joined(const struct value *v)
{
    return v->ragged && v->rank == 1;
}

// --- the configuration ---

static TritonError *find_source(const struct model *m, const struct json_list *l,
                                const struct json *of, size_t *out)
{
    const struct json *sources = json_find(l, of, "source_input");
    char *name = json_copy(json_step(l, sources, NULL));
    const struct value *v = name ? model_find(m->inputs, m->input_count, name) : NULL;
    TritonError *error = v ? NULL
                           : fail(TRITON_INVALID_ARGUMENT,
                                  "migraphx: model %s has no input %s that lengths come from",
                                  m->name, name ? name : "");
    free(name);
    *out = v ? (size_t)(v - m->inputs) : 0;
    return error;
}

static TritonError *read_target(struct model *m, const struct json_list *l, const struct json *of,
                                const struct json *target, int kind)
{
    struct value *values = kind ? m->inputs : m->results;
    char *name = json_copy(target);
    struct value *v =
        name ? model_find(values, kind ? m->input_count : m->result_count, name) : NULL;
    TritonError *error = NULL;
    if (!v)
        error = fail(TRITON_INVALID_ARGUMENT, "migraphx: model %s has no %s %s", m->name,
                     kind ? "input" : "output", name ? name : "");
    else if (kind && v->type != TRITON_INT32 && v->type != TRITON_FP32)
        error = fail(TRITON_UNSUPPORTED, "migraphx: model %s: batch input %s is %s, not %s or %s",
                     m->name, name, type_name(v->type), type_name(TRITON_INT32),
                     type_name(TRITON_FP32));
    free(name);
    if (error)
        return error;
    v->batch_kind = kind;
    v->follows = !kind;
    return find_source(m, l, of, &v->source);
}

static TritonError *read_targets(struct model *m, const struct json_list *l, const struct json *of,
                                 int kind)
{
    const struct json *targets = json_find(l, of, "target_name");
    for (const struct json *t = NULL; (t = json_step(l, targets, t));)
        TRY(read_target(m, l, of, t, kind));
    return NULL;
}

TritonError *ragged_read(struct model *m, const struct json_list *l)
{
    const struct json *inputs = json_find(l, l->values, "batch_input");
    const struct json *results = json_find(l, l->values, "batch_output");
    for (const struct json *v = NULL; (v = json_step(l, inputs, v));) {
        int kind = NONE + 1;
        while (kind <= FLAT && !json_equal(json_find(l, v, "kind"), kinds[kind]))
            kind++;
        if (kind > FLAT)
            kind = COUNT; // the first of them, which the server leaves out
        TRY(read_targets(m, l, v, kind));
    }
    for (const struct json *v = NULL; (v = json_step(l, results, v));)
        TRY(read_targets(m, l, v, NONE));
    return NULL;
}

// --- what the model is told ---

static uint64_t count_of(const struct item *t, size_t source)
{
    uint64_t count = 0;
    count_elements(t->parts[source].lens, t->parts[source].rank, &count);
    return count;
}

static size_t values_of(int kind, const struct group *g, size_t source)
{
    const size_t axes = g->items[0]->parts[source].rank - 1;
    uint64_t most = 0;
    switch (kind) {
    case BOUNDS:
        return g->count + 1;
    case MOST:
        for (size_t i = 0; i < g->count; i++)
            if (count_of(g->items[i], source) > most)
                most = count_of(g->items[i], source);
        return most;
    case SHAPES:
    case FLAT:
        return g->count * axes;
    default:
        return g->count;
    }
}

static void put(void *to, int type, size_t index, uint64_t value)
{
    if (type == TRITON_INT32)
        ((int32_t *)to)[index] = (int32_t)value;
    else
        ((float *)to)[index] = (float)value;
}

static void fill(struct group *g, const struct value *v, void *to)
{
    const size_t axes = g->items[0]->parts[v->source].rank - 1;
    uint64_t sum = 0;
    size_t at = 0;
    if (v->batch_kind == BOUNDS)
        put(to, v->type, at++, 0);
    for (size_t i = 0; v->batch_kind != MOST && i < g->count; i++) {
        const uint64_t count = count_of(g->items[i], v->source);
        sum += count;
        if (v->batch_kind == COUNT)
            put(to, v->type, at++, count);
        else if (v->batch_kind == ENDS || v->batch_kind == BOUNDS)
            put(to, v->type, at++, sum);
        for (size_t k = 0; v->batch_kind >= SHAPES && k < axes; k++)
            put(to, v->type, at++, (uint64_t)g->items[i]->parts[v->source].lens[k + 1]);
    }
}

TritonError *ragged_input(struct group *g, size_t input, size_t *lens, size_t *rank,
                          const void **out)
{
    const struct value *v = &g->instance->model->inputs[input];
    struct scratch *room = &g->instance->inputs[input];
    const size_t count = values_of(v->batch_kind, g, v->source);
    if (!scratch_reserve(room, count * sizeof(int32_t) + 1))
        return no_memory();
    memset(room->data, 0, count * sizeof(int32_t));
    fill(g, v, room->data);
    *out = room->data;
    *rank = v->batch_kind == SHAPES ? 2 : 1;
    lens[0] = v->batch_kind == SHAPES ? g->count : count;
    if (v->batch_kind == SHAPES)
        lens[1] = count / g->count;
    return NULL;
}

size_t ragged_elements(const struct group *g, size_t input)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < g->count; i++)
        sum += count_of(g->items[i], input);
    return sum;
}
