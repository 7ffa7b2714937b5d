// SPDX-License-Identifier: MIT
// Requests: what a client sent, checked before anything runs, and joined for a batch.
#include <string.h>

#include "run.h"

void item_fail(struct item *t, TritonError *error)
{
    if (t->error)
        drop(error);
    else
        t->error = error;
}

bool item_is_cancelled(const struct item *t)
{
    bool cancelled = false;
    TritonError *error = TRITONBACKEND_RequestIsCancelled(t->request, &cancelled);
    if (error)
        TRITONSERVER_ErrorDelete(error);
    return cancelled;
}

// --- reading ---

static TritonError *find_data(struct part *p, const char *name)
{
    int memory = TRITON_MEMORY_CPU;
    int64_t device = 0;
    uint64_t size = 0;
    for (uint32_t i = 0; i < p->buffers; i++) {
        const void *data = NULL;
        memory = TRITON_MEMORY_CPU;
        TRY(TRITONBACKEND_InputBuffer(p->handle, i, &data, &size, &memory, &device));
        if (memory == TRITON_MEMORY_GPU)
            return fail(TRITON_UNSUPPORTED, "migraphx: input %s lies in a card's memory", name);
        if (p->buffers == 1)
            p->data = data;
    }
    return NULL;
}

static TritonError *read_part(const struct value *v, const struct item *t, struct part *p)
{
    int type = 0;
    uint64_t count = 0;
    TRY(TRITONBACKEND_RequestInput(t->request, v->name, &p->handle));
    TRY(TRITONBACKEND_InputProperties(p->handle, NULL, &type, &p->lens, &p->rank, &p->size,
                                      &p->buffers));
    if (type != v->type)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: input %s is %s, not %s", v->name,
                    type_name(type), type_name(v->type));
    if (p->rank > MOST_RANK || !count_elements(p->lens, p->rank, &count) || count > SIZE_MAX / 16)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: the lengths of input %s fit no memory",
                    v->name);
    if (v->type != TRITON_BYTES && p->size != count * type_bytes(type))
        return fail(TRITON_INVALID_ARGUMENT,
                    "migraphx: input %s has %llu bytes, and its lengths make %llu", v->name,
                    (unsigned long long)p->size, (unsigned long long)(count * type_bytes(type)));
    return find_data(p, v->name);
}

static TritonError *read_wanted(const struct model *m, struct item *t)
{
    uint32_t count = 0;
    TRY(TRITONBACKEND_RequestOutputCount(t->request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = NULL;
        TRY(TRITONBACKEND_RequestOutputName(t->request, i, &name));
        const struct value *v = model_find(m->results, m->result_count, name);
        if (v)
            t->wanted[v - m->results] = true;
    }
    return NULL;
}

// Where requests have a batch, all inputs have the same.
static TritonError *read_rows(const struct model *m, struct item *t)
{
    const char *first = NULL;
    t->rows = 1;
    if (!m->most)
        return NULL;
    for (size_t i = 0; i < m->input_count; i++) {
        const struct part *p = &t->parts[i];
        const size_t rows = p->rank ? (size_t)p->lens[0] : 0;
        if (m->inputs[i].batch_kind)
            continue;
        if (first && rows != t->rows)
            return fail(TRITON_INVALID_ARGUMENT,
                        "migraphx: input %s has a batch of %zu, input %s one of %zu",
                        m->inputs[i].name, rows, first, t->rows);
        t->rows = rows;
        first = m->inputs[i].name;
    }
    return NULL;
}

static TritonError *read_all(const struct model *m, struct item *t)
{
    TRY(TRITONBACKEND_ResponseNew(&t->response, t->request));
    if (item_is_cancelled(t))
        return fail(TRITON_CANCELLED, "migraphx: the request is cancelled");
    for (size_t i = 0; i < m->input_count; i++)
        if (!m->inputs[i].batch_kind)
            TRY(read_part(&m->inputs[i], t, &t->parts[i]));
    TRY(read_wanted(m, t));
    return read_rows(m, t);
}

void item_read(const struct model *m, struct item *t)
{
    item_fail(t, read_all(m, t));
}

// All lengths but the batch.
bool item_agrees(const struct model *m, const struct item *a, const struct item *b)
{
    for (size_t i = 0; i < m->input_count; i++) {
        const struct part *p = &a->parts[i], *q = &b->parts[i];
        if (m->inputs[i].batch_kind)
            continue;
        if (p->rank != q->rank)
            return false;
        for (uint32_t k = 1; !value_is_joined(&m->inputs[i]) && k < p->rank; k++)
            if (p->lens[k] != q->lens[k])
                return false;
    }
    return true;
}

// --- joining ---

static TritonError *copy_part(const struct part *p, char *to)
{
    for (uint32_t i = 0; i < p->buffers; i++) {
        const void *data = NULL;
        uint64_t size = 0;
        int memory = TRITON_MEMORY_CPU;
        int64_t device = 0;
        TRY(TRITONBACKEND_InputBuffer(p->handle, i, &data, &size, &memory, &device));
        if (size)
            memcpy(to, data, size);
        to += size;
    }
    return NULL;
}

TritonError *gather(struct group *g, size_t input, size_t rows, const void **out)
{
    struct scratch *room = &g->instance->inputs[input];
    const struct part *first = &g->items[0]->parts[input];
    if (g->count == 1 && first->data && rows == g->rows) {
        *out = first->data;
        return NULL;
    }
    uint64_t size = 0;
    for (size_t i = 0; i < g->count; i++)
        size += g->items[i]->parts[input].size;
    // Rows of a plan for more are as long as all others; texts and ragged inputs have no such plan.
    const uint64_t whole = rows > g->rows && g->rows ? size / g->rows * rows : size;
    if (!scratch_reserve(room, whole ? whole : 1))
        return no_memory();
    char *to = room->data;
    for (size_t i = 0; i < g->count; i++) {
        TRY(copy_part(&g->items[i]->parts[input], to));
        to += g->items[i]->parts[input].size;
    }
    memset(to, 0, whole - size);
    *out = room->data;
    return NULL;
}
