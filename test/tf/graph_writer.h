// SPDX-License-Identifier: MIT
// A tiny writer of TensorFlow graphs for tests, on the messages of onnx/writer.h.
//
//     struct pb g = {0}, a = {0};
//     tf_placeholder(&g, "x", 2, (int64_t[]){2, 3});
//     tf_real(&a, "alpha", 0.5f);
//     tf_node(&g, "y", "LeakyRelu", "x", &a);
//
// Handing a list of attributes to a node consumes it. Out of memory aborts: these are tests.
#pragma once

#include "check.h"
#include "onnx/writer.h"
#include "test_import.h"
#include "tf/tf.h"

enum { TF_FLOAT = 1, TF_INT32 = 3, TF_INT64 = 9 };

// A rank and its lengths, as two arguments.
#define LENS(...)                                                                                  \
    (sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

// --- attributes ---

static inline void tf_attribute(struct pb *list, const char *name, struct pb *take_value)
{
    struct pb entry = {0};
    pb_text(&entry, 1, name);
    pb_message(&entry, 2, take_value);
    pb_message(list, 5, &entry);
}

static inline void tf_int(struct pb *list, const char *name, int64_t value)
{
    struct pb v = {0};
    pb_int(&v, 3, value);
    tf_attribute(list, name, &v);
}

static inline void tf_flag(struct pb *list, const char *name, bool value)
{
    struct pb v = {0};
    pb_int(&v, 5, value);
    tf_attribute(list, name, &v);
}

static inline void tf_real(struct pb *list, const char *name, float value)
{
    struct pb v = {0};
    pb_float(&v, 4, value);
    tf_attribute(list, name, &v);
}

static inline void tf_text(struct pb *list, const char *name, const char *value)
{
    struct pb v = {0};
    pb_text(&v, 2, value);
    tf_attribute(list, name, &v);
}

static inline void tf_type(struct pb *list, const char *name, int value)
{
    struct pb v = {0};
    pb_int(&v, 6, value);
    tf_attribute(list, name, &v);
}

static inline void tf_ints(struct pb *list, const char *name, int count, const int64_t *values)
{
    struct pb v = {0}, numbers = {0};
    for (int i = 0; i < count; i++)
        pb_int(&numbers, 3, values[i]);
    pb_message(&v, 1, &numbers);
    tf_attribute(list, name, &v);
}

static inline void tf_function(struct pb *list, const char *name, const char *function)
{
    struct pb v = {0}, f = {0};
    pb_text(&f, 1, function);
    pb_message(&v, 10, &f);
    tf_attribute(list, name, &v);
}

// --- nodes ---

static inline void tf_node(struct pb *graph, const char *name, const char *op, const char *inputs,
                           struct pb *take_attributes)
{
    struct pb n = {0};
    pb_text(&n, 1, name);
    pb_text(&n, 2, op);
    pb_names(&n, 3, inputs);
    if (take_attributes) {
        pb_raw(&n, take_attributes->data, take_attributes->size);
        pb_free(take_attributes);
    }
    pb_message(graph, 1, &n);
}

static inline struct pb tf_shape(int rank, const int64_t *lens)
{
    struct pb shape = {0};
    for (int i = 0; i < rank; i++) {
        struct pb dim = {0};
        pb_int(&dim, 1, lens[i]);
        pb_message(&shape, 2, &dim);
    }
    return shape;
}

static inline void tf_placeholder(struct pb *graph, const char *name, int rank, const int64_t *lens)
{
    struct pb attrs = {0}, v = {0}, shape = tf_shape(rank, lens);
    tf_type(&attrs, "dtype", TF_FLOAT);
    pb_message(&v, 7, &shape);
    tf_attribute(&attrs, "shape", &v);
    tf_node(graph, name, "Placeholder", "", &attrs);
}

// A constant whose data is `field` of the TensorProto, given as it is on the wire.
static inline void tf_constant(struct pb *graph, const char *name, int type, int rank,
                               const int64_t *lens, int field, const void *data, size_t size)
{
    struct pb attrs = {0}, v = {0}, tensor = {0}, shape = tf_shape(rank, lens);
    pb_int(&tensor, 1, type);
    pb_message(&tensor, 2, &shape);
    if (field)
        pb_bytes(&tensor, field, data, size);
    pb_message(&v, 8, &tensor);
    tf_attribute(&attrs, "value", &v);
    tf_node(graph, name, "Const", "", &attrs);
}

static inline void tf_vector(struct pb *graph, const char *name, int count, const int64_t *values)
{
    tf_constant(graph, name, TF_INT64, 1, (int64_t[]){count}, 4, values, (size_t)count * 8);
}

static inline void tf_number(struct pb *graph, const char *name, int64_t value)
{
    tf_constant(graph, name, TF_INT64, 0, NULL, 4, &value, 8);
}

// --- functions: nodes as a graph has them, and what makes results r0, r1, .. of inputs a0, a1, .. ---

static inline void tf_add_function(struct pb *library, const char *name, int inputs,
                                   struct pb *take_nodes, int outputs, const char *const *results)
{
    struct pb f = {0}, signature = {0};
    char text[8];
    pb_text(&signature, 1, name);
    for (int i = 0; i < inputs + outputs; i++) {
        struct pb arg = {0};
        snprintf(text, sizeof text, "%c%d", i < inputs ? 'a' : 'r', i < inputs ? i : i - inputs);
        pb_text(&arg, 1, text);
        pb_message(&signature, i < inputs ? 2 : 3, &arg);
    }
    pb_message(&f, 1, &signature);
    const uint8_t *p = take_nodes->data, *end = p + take_nodes->size;
    while (p && p < end) { // field 1 of a graph is field 3 of a function
        size_t size = 0, shift = 0;
        const uint8_t *at = p + 1;
        do
            size |= (size_t)(*at & 0x7F) << shift, shift += 7;
        while (*at++ & 0x80);
        pb_bytes(&f, 3, at, size);
        p = at + size;
    }
    pb_free(take_nodes);
    for (int i = 0; i < outputs; i++) {
        struct pb entry = {0};
        snprintf(text, sizeof text, "r%d", i);
        pb_text(&entry, 1, text);
        pb_text(&entry, 2, results[i]);
        pb_message(&f, 4, &entry);
    }
    pb_message(library, 1, &f);
}

// The graph's only function.
static inline void tf_define(struct pb *graph, const char *name, int inputs, struct pb *take_nodes,
                             int outputs, const char *const *results)
{
    struct pb library = {0};
    tf_add_function(&library, name, inputs, take_nodes, outputs, results);
    pb_message(graph, 2, &library);
}

// A convolution, a function and a slice: something of everything. Its result is node "y".
static inline struct pb tf_small_graph(void)
{
    struct pb g = {0}, a = {0}, nodes = {0};
    const float weights[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, one = 1;
    tf_placeholder(&g, "x", LENS(1, 4, 4, 1));
    tf_constant(&g, "w", TF_FLOAT, LENS(3, 3, 1, 1), 4, weights, sizeof weights);
    tf_ints(&a, "strides", LENS(1, 1, 1, 1));
    tf_text(&a, "padding", "SAME");
    tf_node(&g, "conv", "Conv2D", "x,w", &a);
    tf_constant(&g, "one", TF_FLOAT, 0, NULL, 5, &one, 4);
    tf_node(&nodes, "sum", "AddV2", "a0,a1", NULL);
    tf_define(&g, "f", 2, &nodes, 1, (const char *const[]){"sum:z:0"});
    tf_function(&a, "f", "f");
    tf_node(&g, "call", "PartitionedCall", "conv,one", &a);
    tf_vector(&g, "begin", 4, (int64_t[]){0, 1, 1, 0});
    tf_vector(&g, "end", 4, (int64_t[]){1, 3, 4, 1});
    tf_vector(&g, "steps", 4, (int64_t[]){1, 1, 2, 1});
    tf_node(&g, "y", "StridedSlice", "call,begin,end,steps", &a);
    return g;
}

// --- importing ---

static inline struct mgx_program *
tf_import(struct pb *take_graph, const struct mgx_tf_options *options, struct mgx_diag *diag)
{
    struct mgx_program *p = NULL;
    mgx_diag_clear(diag);
    const enum mgx_status status =
        mgx_tf_import_buffer(&p, take_graph->data, take_graph->size, true, options, diag);
    pb_free(take_graph);
    import_agrees(status, p, diag);
    return p;
}

// The graph must be refused with this status and a message that contains this text.
static inline bool tf_refused_with(struct pb *take_graph, const struct mgx_tf_options *options,
                                   enum mgx_status status, const char *text)
{
    struct mgx_diag diag;
    struct mgx_program *p = tf_import(take_graph, options, &diag);
    return import_refused(p, &diag, status, text);
}

static inline bool tf_refused(struct pb *take_graph, enum mgx_status status, const char *text)
{
    return tf_refused_with(take_graph, NULL, status, text);
}

static inline bool tf_imports(struct pb *take_graph)
{
    struct mgx_diag diag;
    struct mgx_program *p = tf_import(take_graph, NULL, &diag);
    const bool ok = p && mgx_program_verify(p, &diag) == MGX_OK;
    if (!ok)
        printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return ok;
}
