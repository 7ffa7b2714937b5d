// SPDX-License-Identifier: MIT
// A mask that grows by a column with every token, filled up to the room of the caches.
//
//     attention_mask -- ReduceSum ----------> how many tokens there are
//                    -- Shape, Gather, Cast -> total_sequence_length of GroupQueryAttention
//
// is how exporters for ONNX Runtime GenAI write decoders. Columns of zeros change no sum, and no
// kernel reads the total where caches have room (docs/gpu.md). So with the mask as long as the
// caches every token is of one size, and one plan serves them all. Where a mask is read in any
// other way it stays as it comes.
//
// Cost: nodes x readers of the mask, once; in a run a copy of the mask (card_fill.c: two within the
// card).
#include <stdlib.h>
#include <string.h>

#include "fused.h"

struct seen {
    const struct host *host;
    const OrtNode **nodes;
    size_t count;
};

enum { TOTAL = 6, PAST = 3 }; // operands of GroupQueryAttention

static const char *operator_of(const struct seen *s, size_t node)
{
    const char *op = NULL;
    OrtStatus *status = s->host->Node_GetOperatorType(s->nodes[node], &op);
    if (status)
        s->host->ReleaseStatus(status);
    return op ? op : "";
}

static bool is(const struct seen *s, size_t node, const char *op)
{
    return strcmp(operator_of(s, node), op) == 0;
}

typedef OrtStatus *(*list_fn)(const struct host *, const OrtNode *, const OrtValueInfo ***,
                              size_t *);

// Where among a node's values the name is, from place `from` on; `count` of them: nowhere. NULL or
// the value in *value.
static size_t find(const struct seen *s, list_fn list, size_t node, const char *name, size_t from,
                   size_t *count)
{
    const OrtValueInfo **values;
    *count = 0;
    OrtStatus *status = list(s->host, s->nodes[node], &values, count);
    if (status) {
        s->host->ReleaseStatus(status);
        return *count = 0;
    }
    while (from < *count && strcmp(value_name(s->host, values[from]), name) != 0)
        from++;
    free(values);
    return from < *count ? from : *count;
}

static bool reads(const struct seen *s, size_t node, const char *name, size_t *place)
{
    size_t count;
    *place = find(s, list_Node_GetInputs, node, name, 0, &count);
    return *place < count;
}

// The operand or result at a place; NULL: there is none.
static const OrtValueInfo *value_at(const struct seen *s, list_fn list, size_t node, size_t place)
{
    const OrtValueInfo **values;
    size_t count = 0;
    OrtStatus *status = list(s->host, s->nodes[node], &values, &count);
    if (status) {
        s->host->ReleaseStatus(status);
        return NULL;
    }
    const OrtValueInfo *value = place < count ? values[place] : NULL;
    free(values);
    return value;
}

static bool is_read_by_bodies(const struct seen *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        size_t count;
        const size_t place = find(s, list_Node_GetImplicitInputs, i, name, 0, &count);
        if (place < count)
            return true;
    }
    return false;
}

// Does nothing read it but, in the end, attention as its total?
static bool is_total_alone(const struct seen *s, const char *name, int depth)
{
    static const char *const hands_on[] = {"Gather", "Cast", "Squeeze", "Unsqueeze", "Slice"};
    enum { DEEP = 8 };
    if (depth > DEEP || is_read_by_bodies(s, name))
        return false;
    for (size_t i = 0; i < s->count; i++) {
        size_t place, count;
        bool hands = false;
        if (!reads(s, i, name, &place))
            continue;
        if (find(s, list_Node_GetInputs, i, name, place + 1, &count) < count)
            return false; // twice
        for (size_t k = 0; k < sizeof hands_on / sizeof *hands_on; k++)
            hands |= place == 0 && is(s, i, hands_on[k]);
        const OrtValueInfo *out = hands ? value_at(s, list_Node_GetOutputs, i, 0) : NULL;
        if (hands ? !out || !is_total_alone(s, value_name(s->host, out), depth + 1)
                  : place != TOTAL || !is(s, i, "GroupQueryAttention"))
            return false;
    }
    return true;
}

// Is the axis of that name among those of the value? Unknown lengths may be it.
static bool may_have_axis(const struct host *h, const OrtValueInfo *value, const char *name)
{
    struct value_type type;
    OrtStatus *status = value_type_read(h, value, &type);
    if (status) {
        h->ReleaseStatus(status);
        return true;
    }
    for (int i = 0; i < type.type.rank; i++)
        if (type.lens[i] < 0 && (!type.names[i] || strcmp(type.names[i], name) == 0))
            return true;
    return type.type.rank < 0;
}

static bool is_counted_alone(const struct seen *s, const char *name, const char *axis)
{
    bool is_total = false;
    if (is_read_by_bodies(s, name))
        return false;
    for (size_t i = 0; i < s->count; i++) {
        size_t place;
        if (!reads(s, i, name, &place))
            continue;
        const OrtValueInfo *out = value_at(s, list_Node_GetOutputs, i, 0);
        const bool sums = is(s, i, "ReduceSum") && place == 0;
        if (!out || !(sums || is(s, i, "Shape")))
            return false;
        if (sums ? may_have_axis(s->host, out, axis)
                 : !is_total_alone(s, value_name(s->host, out), 0))
            return false;
        is_total |= !sums;
    }
    return is_total;
}

// --- the caches ---

static bool same_room(const struct value_type *a, const struct value_type *b)
{
    enum { ROOM = 2 };
    if (a->type.rank != 4 || b->type.rank != 4 || a->lens[ROOM] != b->lens[ROOM])
        return false;
    return a->lens[ROOM] >= 0 ||
           (a->names[ROOM] && b->names[ROOM] && strcmp(a->names[ROOM], b->names[ROOM]) == 0);
}

static size_t place_of(const struct host *h, const OrtValueInfo *const *inputs, size_t count,
                       const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(value_name(h, inputs[i]), name) != 0)
        i++;
    return i;
}

// The place of one whose room is that of all; `count`: there is none.
static size_t find_caches(const struct seen *s, const OrtValueInfo *const *inputs, size_t count)
{
    struct value_type first = {0}, type;
    size_t place = count;
    for (size_t i = 0; i < s->count; i++) {
        if (!is(s, i, "GroupQueryAttention"))
            continue;
        const OrtValueInfo *past = value_at(s, list_Node_GetInputs, i, PAST);
        OrtStatus *status = past ? value_type_read(s->host, past, &type) : NULL;
        if (status)
            s->host->ReleaseStatus(status);
        if (!past || status)
            return count;
        if (place == count) {
            place = place_of(s->host, inputs, count, value_name(s->host, past));
            first = type;
        }
        if (place == count || !same_room(&first, &type))
            return count;
    }
    return place;
}

static bool is_mask(const struct seen *s, const OrtValueInfo *value)
{
    enum { INT32 = 6, INT64 = 7 };
    struct value_type type;
    OrtStatus *status = value_type_read(s->host, value, &type);
    if (status)
        s->host->ReleaseStatus(status);
    return !status && type.known && type.type.rank == 2 && type.lens[1] < 0 && type.names[1] &&
           *type.names[1] && (type.type.element == INT32 || type.type.element == INT64) &&
           is_counted_alone(s, value_name(s->host, value), type.names[1]);
}

// Inputs that the program does not read are handed to nobody.
static size_t place_read(const struct fused *f, size_t input)
{
    size_t place = 0;
    for (size_t i = 0; i < input; i++)
        place += f->in_names[i] != NULL;
    return place;
}

OrtStatus *fill_find(struct fused *f, const OrtGraph *graph, const OrtValueInfo *const *inputs)
{
    const size_t count = f->in_count;
    const struct host *h = f->host;
    struct seen s = {.host = h};
    HOST_TRY(list_Graph_GetNodes(h, graph, &s.nodes, &s.count));
    const size_t caches = find_caches(&s, inputs, count);
    for (size_t i = 0; i < count && caches < count && f->in_names[caches] && !f->fill.there; i++)
        if (*value_name(h, inputs[i]) && f->in_names[i] && is_mask(&s, inputs[i]))
            f->fill = (struct fill){
                .there = true, .mask = place_read(f, i), .caches = place_read(f, caches)};
    free(s.nodes);
    return NULL;
}

// --- runs on the processor ---

OrtStatus *fill_run(const struct fused *f, migraphx_buffer *buffers, struct filled *out)
{
    enum { ROOM = 2 };
    migraphx_buffer *mask = &buffers[f->fill.mask];
    const size_t size = mask->type == f->types[6] ? 4 : 8; // of INT32, INT64
    const size_t rows = mask->lens[0], columns = mask->lens[1];
    const size_t room = buffers[f->fill.caches].lens[ROOM];
    *out = (struct filled){.lens = {rows, room}};
    if (!rows || columns >= room)
        return NULL;
    char *at = out->data = calloc(rows * room, size);
    if (!at)
        return host_no_memory(f->host);
    for (size_t i = 0; i < rows; i++)
        memcpy(at + i * room * size, (const char *)mask->data + i * columns * size, columns * size);
    mask->data = at;
    mask->lens = out->lens;
    return NULL;
}
