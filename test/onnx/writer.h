// SPDX-License-Identifier: MIT
// A tiny ONNX writer for tests: models, good and bad, are made in code.
//
//     struct pb g = {0};
//     pb_input(&g, "x", 1, 2, (int64_t[]){2, 3});
//     pb_node(&g, "Relu", "x", "y", NULL);
//     pb_output(&g, "y");
//     struct pb m = pb_model(&g, 17);
//
// A `struct pb` is a message being written; handing one to another function consumes it. Names come
// as "a,b,,c" (an empty one between commas). Out of memory aborts: these are tests.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pb {
    uint8_t *data;
    size_t size, capacity;
};

static inline void pb_raw(struct pb *m, const void *data, size_t size)
{
    if (m->size + size > m->capacity) {
        m->capacity = (m->size + size) * 2 + 64;
        m->data = realloc(m->data, m->capacity);
        if (!m->data)
            abort();
    }
    if (size)
        memcpy(m->data + m->size, data, size);
    m->size += size;
}

static inline void pb_free(struct pb *m)
{
    free(m->data);
    *m = (struct pb){0};
}

static inline void pb_varint(struct pb *m, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    pb_raw(m, bytes, count);
}

static inline void pb_int(struct pb *m, int field, int64_t value)
{
    pb_varint(m, (uint64_t)field << 3);
    pb_varint(m, (uint64_t)value);
}

static inline void pb_bytes(struct pb *m, int field, const void *data, size_t size)
{
    pb_varint(m, (uint64_t)field << 3 | 2);
    pb_varint(m, size);
    pb_raw(m, data, size);
}

static inline void pb_text(struct pb *m, int field, const char *text)
{
    pb_bytes(m, field, text, strlen(text));
}

static inline void pb_float(struct pb *m, int field, float value)
{
    pb_varint(m, (uint64_t)field << 3 | 5);
    pb_raw(m, &value, 4);
}

static inline void pb_message(struct pb *m, int field, struct pb *take)
{
    pb_bytes(m, field, take->data, take->size);
    pb_free(take);
}

// "a,b,,c" as so many strings of one field; "" is none.
static inline void pb_names(struct pb *m, int field, const char *names)
{
    while (*names) {
        const char *end = strchrnul(names, ',');
        pb_bytes(m, field, names, (size_t)(end - names));
        if (!*end)
            return;
        names = end + 1;
        if (!*names)
            pb_text(m, field, ""); // a trailing comma: one more, empty
    }
}

// --- attributes: built one after the other into a list that a node takes ---

enum {
    PB_FLOAT = 1,
    PB_INT = 2,
    PB_STRING = 3,
    PB_TENSOR = 4,
    PB_GRAPH = 5,
    PB_FLOATS = 6,
    PB_INTS = 7,
    PB_STRINGS = 8,
    PB_SPARSE = 11
};

static inline void pb_attribute(struct pb *list, const char *name, int type, struct pb *take_value)
{
    struct pb a = {0};
    pb_text(&a, 1, name);
    pb_raw(&a, take_value->data, take_value->size);
    pb_int(&a, 20, type);
    pb_free(take_value);
    pb_message(list, 5, &a);
}

static inline void pb_attr_int(struct pb *list, const char *name, int64_t value)
{
    struct pb v = {0};
    pb_int(&v, 3, value);
    pb_attribute(list, name, PB_INT, &v);
}

static inline void pb_attr_float(struct pb *list, const char *name, float value)
{
    struct pb v = {0};
    pb_float(&v, 2, value);
    pb_attribute(list, name, PB_FLOAT, &v);
}

static inline void pb_attr_text(struct pb *list, const char *name, const char *value)
{
    struct pb v = {0};
    pb_text(&v, 4, value);
    pb_attribute(list, name, PB_STRING, &v);
}

static inline void pb_attr_ints(struct pb *list, const char *name, const int64_t *values, int count)
{
    struct pb v = {0};
    for (int i = 0; i < count; i++)
        pb_int(&v, 8, values[i]);
    pb_attribute(list, name, PB_INTS, &v);
}

static inline void pb_attr_tensor(struct pb *list, const char *name, struct pb *take_tensor)
{
    struct pb v = {0};
    pb_message(&v, 5, take_tensor);
    pb_attribute(list, name, PB_TENSOR, &v);
}

static inline void pb_attr_graph(struct pb *list, const char *name, struct pb *take_graph)
{
    struct pb v = {0};
    pb_message(&v, 6, take_graph);
    pb_attribute(list, name, PB_GRAPH, &v);
}

// A reference to an attribute of the enclosing function.
static inline void pb_attr_ref(struct pb *list, const char *name, int type, const char *reference)
{
    struct pb v = {0};
    pb_text(&v, 21, reference);
    pb_attribute(list, name, type, &v);
}

// --- nodes, values, tensors ---

static inline void pb_node_of(struct pb *graph, int field, const char *domain, const char *op,
                              const char *in, const char *out, struct pb *take_attributes)
{
    struct pb n = {0};
    pb_names(&n, 1, in);
    pb_names(&n, 2, out);
    pb_text(&n, 4, op);
    if (*domain)
        pb_text(&n, 7, domain);
    if (take_attributes) {
        pb_raw(&n, take_attributes->data, take_attributes->size);
        pb_free(take_attributes);
    }
    pb_message(graph, field, &n);
}

static inline void pb_node(struct pb *graph, const char *op, const char *in, const char *out,
                           struct pb *take_attributes)
{
    pb_node_of(graph, 1, "", op, in, out, take_attributes);
}

// A ValueInfo; a dimension of -1 is left without value, below -1 it is written as it is.
static inline struct pb pb_value(const char *name, int type, int rank, const int64_t *dims)
{
    struct pb shape = {0}, tensor = {0}, value = {0}, info = {0};
    for (int i = 0; i < rank; i++) {
        struct pb dim = {0};
        if (dims[i] != -1)
            pb_int(&dim, 1, dims[i]);
        pb_message(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, type);
    pb_message(&tensor, 2, &shape);
    pb_message(&value, 1, &tensor);
    pb_text(&info, 1, name);
    pb_message(&info, 2, &value);
    return info;
}

static inline void pb_input(struct pb *graph, const char *name, int type, int rank,
                            const int64_t *dims)
{
    struct pb info = pb_value(name, type, rank, dims);
    pb_message(graph, 11, &info);
}

static inline void pb_output(struct pb *graph, const char *name)
{
    struct pb info = {0};
    pb_text(&info, 1, name);
    pb_message(graph, 12, &info);
}

// A TensorProto without data.
static inline struct pb pb_tensor(const char *name, int type, int rank, const int64_t *dims)
{
    struct pb t = {0};
    for (int i = 0; i < rank; i++)
        pb_int(&t, 1, dims[i]);
    pb_int(&t, 2, type);
    pb_text(&t, 8, name);
    return t;
}

static inline struct pb pb_tensor_raw(const char *name, int type, int rank, const int64_t *dims,
                                      const void *data, size_t size)
{
    struct pb t = pb_tensor(name, type, rank, dims);
    pb_bytes(&t, 9, data, size);
    return t;
}

static inline void pb_initializer(struct pb *graph, struct pb *take_tensor)
{
    pb_message(graph, 5, take_tensor);
}

// An int64 vector as an initialiser.
static inline void pb_ints(struct pb *graph, const char *name, const int64_t *values, int count)
{
    struct pb t = pb_tensor_raw(name, 7, 1, (int64_t[]){count}, values, (size_t)count * 8);
    pb_initializer(graph, &t);
}

static inline void pb_opset(struct pb *model, int field, const char *domain, int64_t version)
{
    struct pb o = {0};
    if (*domain)
        pb_text(&o, 1, domain);
    pb_int(&o, 2, version);
    pb_message(model, field, &o);
}

static inline struct pb pb_model(struct pb *take_graph, int64_t opset)
{
    struct pb m = {0};
    pb_int(&m, 1, 8);
    pb_opset(&m, 8, "", opset);
    pb_message(&m, 7, take_graph);
    return m;
}
