// SPDX-License-Identifier: MIT
// Results: written into the memory of the response where one request runs, cut into those of
// several where they ran together.
#include <string.h>

#include "run.h"

// --- room ---

TritonError *item_output(struct item *t, const struct value *v, const int64_t *lens, size_t rank,
                         uint64_t size, void **out)
{
    static const int64_t one[] = {1}; // as the server has values without axes
    TritonOutput *output = NULL;
    int memory = TRITON_MEMORY_CPU;
    int64_t device = 0;
    *out = NULL;
    lens = rank ? lens : one;
    rank = rank ? rank : 1;
    TRY(TRITONBACKEND_ResponseOutput(t->response, &output, v->name, v->type, lens, (uint32_t)rank));
    TRY(TRITONBACKEND_OutputBuffer(output, out, size, &memory, &device));
    if (memory == TRITON_MEMORY_GPU)
        return fail(TRITON_UNSUPPORTED, "migraphx: output %s is wanted in a card's memory",
                    v->name);
    return NULL;
}

// What the next request of the sequence gets; it counts when it is complete.
static TritonError *item_state(struct item *t, const struct value *v, const int64_t *lens,
                               size_t rank, const void *data, uint64_t size)
{
    TritonState *state = NULL;
    void *to = NULL;
    int memory = TRITON_MEMORY_CPU;
    int64_t device = 0;
    TRY(TRITONBACKEND_StateNew(&state, t->request, v->name, v->type, lens, (uint32_t)rank));
    TRY(TRITONBACKEND_StateBuffer(state, &to, size, &memory, &device));
    if (memory == TRITON_MEMORY_GPU)
        return fail(TRITON_UNSUPPORTED, "migraphx: state %s lies in a card's memory", v->name);
    if (size)
        memcpy(to, data, size);
    return TRITONBACKEND_StateUpdate(state);
}

static bool is_state(const struct model *m, size_t index)
{
    for (size_t i = 0; i < m->state_count; i++)
        if (m->states[i].result == index)
            return true;
    return false;
}

// --- while it runs ---

static void *own_place(struct group *g, size_t index, uint64_t size)
{
    struct scratch *room = &g->instance->results[index];
    if (scratch_reserve(room, size ? size : 1))
        return room->data;
    g->error = no_memory();
    return NULL;
}

void *group_place(void *data, size_t index, migraphx_shape_datatype_t type, const size_t *lens,
                  size_t rank)
{
    struct group *g = data;
    const struct model *m = g->instance->model;
    const struct value *v = &m->results[index];
    struct item *t = g->items[0];
    uint64_t count = 0;
    void *out = NULL;
    if (g->error)
        return NULL;
    for (size_t i = 0; i < rank && i < MOST_RANK; i++)
        g->lens[index][i] = (int64_t)lens[i];
    g->ranks[index] = rank;
    g->numbers[index] = true;
    if (rank > MOST_RANK || type_server(type) != v->type ||
        !count_elements(g->lens[index], rank, &count)) {
        g->error = fail(TRITON_INTERNAL,
                        "migraphx: output %s is of another kind than the model "
                        "says",
                        v->name);
        return NULL;
    }
    const uint64_t size = count * type_bytes(v->type);
    const bool whole = !m->most || (rank && lens[0] == t->rows);
    if (g->count != 1 || !whole || v->follows || !t->wanted[index] || is_state(m, index))
        return own_place(g, index, size);
    g->error = item_output(t, v, g->lens[index], rank, size, &out);
    g->placed[index] = !g->error;
    return size ? out : own_place(g, index, size);
}

// --- when it has run ---

static TritonError *give(struct group *g, struct item *t, size_t index, const int64_t *lens,
                         size_t rank, const char *from, uint64_t size)
{
    const struct model *m = g->instance->model;
    const struct value *v = &m->results[index];
    void *to = NULL;
    if (t->wanted[index]) {
        TRY(item_output(t, v, lens, rank, size, &to));
        if (size)
            memcpy(to, from, size);
    }
    return is_state(m, index) ? item_state(t, v, lens, rank, from, size) : NULL;
}

// The lengths of one item's share.
static size_t cut(const struct value *v, const struct model *m, const struct item *t, int64_t *lens,
                  size_t rank)
{
    if (v->follows) {
        const struct part *p = &t->parts[v->source];
        memcpy(lens, p->lens, p->rank * sizeof *lens);
        return p->rank;
    }
    if (m->most)
        lens[0] = (int64_t)t->rows;
    return rank;
}

static TritonError *check_share(const struct group *g, size_t index)
{
    const struct model *m = g->instance->model;
    const struct value *v = &m->results[index];
    uint64_t count = 0;
    count_elements(g->lens[index], g->ranks[index], &count);
    if (v->follows && count != ragged_elements(g, v->source))
        return fail(TRITON_INTERNAL, "migraphx: output %s has %llu elements, input %s has %zu",
                    v->name, (unsigned long long)count, m->inputs[v->source].name,
                    ragged_elements(g, v->source));
    if (v->follows || !m->most || (g->ranks[index] && (uint64_t)g->lens[index][0] >= g->rows))
        return NULL;
    return fail(TRITON_INTERNAL,
                "migraphx: output %s has a first axis of %lld, and the batch is %zu: the model "
                "cannot be batched, set max_batch_size to 0",
                v->name, g->ranks[index] ? (long long)g->lens[index][0] : 0ll, g->rows);
}

static void scatter(struct group *g, size_t index)
{
    const struct model *m = g->instance->model;
    const struct value *v = &m->results[index];
    const char *from = g->instance->results[index].data;
    int64_t lens[MOST_RANK];
    uint64_t count = 0;
    memcpy(lens, g->lens[index], sizeof lens);
    for (size_t i = 0; i < g->count; i++) {
        const size_t rank = cut(v, m, g->items[i], lens, g->ranks[index]);
        count_elements(lens, rank, &count);
        const uint64_t size = count * type_bytes(v->type);
        item_fail(g->items[i], give(g, g->items[i], index, lens, rank, from, size));
        from += size;
    }
}

TritonError *group_scatter(struct group *g, migraphx_arguments_t results)
{
    const struct model *m = g->instance->model;
    for (size_t i = 0; i < m->result_count; i++) // before any response has a part of them
        if (!g->placed[i] && g->numbers[i])
            TRY(check_share(g, i));
    for (size_t i = 0; i < m->result_count; i++) {
        const_migraphx_argument_t result = NULL;
        if (g->placed[i])
            continue;
        if (g->numbers[i]) {
            scatter(g, i);
            continue;
        }
        ENGINE_TRY(m->results[i].name, migraphx_arguments_get(&result, results, i));
        TRY(scatter_texts(g, i, result));
    }
    return NULL;
}
