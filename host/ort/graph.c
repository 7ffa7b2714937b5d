// SPDX-License-Identifier: MIT
// Handing a graph of the host over to the engine, node by node.
//
// Whatever a node reads that nothing in the graph makes comes from around it: a constant becomes a
// weight, anything else an input. So a graph, a part of one and a single node are handed over by
// the same code.
//
// Cost: O(nodes); no weight is read. With `keep` a weight that lies in a file is mapped, any other copied.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

struct handing {
    const struct host *host;
    migraphx_onnx_graph_t graph;
    const char *model_path;
    bool keep;
    bool is_body;       // what it does not know is the root's
    struct names known; // values of this graph so far
    struct bytes_of_graph bytes;
};

migraphx_status graph_options(migraphx_onnx_options_t *out)
{
    migraphx_status status = migraphx_onnx_options_create(out);
    if (status == migraphx_status_success)
        status = migraphx_onnx_options_set_dynamic_dims(*out, true);
    return status;
}

// --- texts of the host ---

struct texts {
    char *bytes;
    const char **at;
    size_t *sizes;
    size_t count;
};

static void texts_fini(struct texts *t)
{
    free(t->bytes);
    free(t->at);
    free(t->sizes);
}

static OrtStatus *texts_of(const struct host *h, const OrtValue *value, size_t count,
                           struct texts *out)
{
    size_t size = 0;
    *out = (struct texts){.count = count};
    HOST_TRY(h->GetStringTensorDataLength(value, &size));
    out->bytes = malloc(size + 1);
    out->at = calloc(count + 1, sizeof *out->at);
    out->sizes = calloc(count + 1, sizeof *out->sizes);
    if (!out->bytes || !out->at || !out->sizes)
        return host_no_memory(h);
    if (count)
        HOST_TRY(h->GetStringTensorContent(value, out->bytes, size, out->sizes, count));
    for (size_t i = 0; i < count; i++) // offsets become lengths
        out->at[i] = out->bytes + out->sizes[i];
    for (size_t i = 0; i < count; i++)
        out->sizes[i] = (i + 1 < count ? out->sizes[i + 1] : size) - out->sizes[i];
    return NULL;
}

// --- weights ---

struct tensor {
    int element;
    const int64_t *lens;
    size_t rank, count, size;
    const void *data;
};

static OrtStatus *tensor_of(const struct host *h, const OrtValue *value, struct tensor *out)
{
    HOST_TRY(
        h->GetTensorElementTypeAndShapeDataReference(value, &out->element, &out->lens, &out->rank));
    out->element = host_element(out->element);
    out->count = 1;
    for (size_t i = 0; i < out->rank; i++)
        out->count *= (size_t)out->lens[i];
    enum { STRING = 8 };
    if (out->element == STRING)
        return NULL;
    HOST_TRY(h->GetTensorSizeInBytes(value, &out->size));
    return h->GetTensorData(value, &out->data);
}

static OrtStatus *add_texts(struct handing *g, const char *name, const OrtValue *value,
                            const struct tensor *t)
{
    struct texts texts;
    OrtStatus *status = texts_of(g->host, value, t->count, &texts);
    if (!status && migraphx_onnx_graph_add_initializer_strings(g->graph, name, t->lens, t->rank,
                                                               texts.at, texts.sizes, texts.count))
        status = host_pass_on(g->host, name);
    texts_fini(&texts);
    return status;
}

static OrtStatus *add_bytes(struct handing *g, const char *name, const struct tensor *t)
{
    ENGINE_TRY(g->host, name,
               g->keep
                   ? migraphx_onnx_graph_add_initializer_kept(g->graph, name, t->element, t->lens,
                                                              t->rank, t->data, t->size)
                   : migraphx_onnx_graph_add_initializer(g->graph, name, t->element, t->lens,
                                                         t->rank, t->data, t->size, NULL, NULL));
    return NULL;
}

static OrtStatus *add_file(struct handing *g, const char *name, const struct tensor *t,
                           const OrtExternalInitializerInfo *info)
{
    const struct host *h = g->host;
    const char *path = h->ExternalInitializerInfo_GetFilePath(info);
    const char *slash = g->model_path ? strrchr(g->model_path, '/') : NULL;
    char full[4096];
    const int folder = *path != '/' && slash ? (int)(slash - g->model_path + 1) : 0;
    const int size =
        snprintf(full, sizeof full, "%.*s%s", folder, folder ? g->model_path : "", path);
    if (size < 0 || (size_t)size >= sizeof full)
        return host_fail(h, ORT_FAIL, "MIGraphX: the path of weight %s is too long", name);
    ENGINE_TRY(h, name,
               migraphx_onnx_graph_add_initializer_file(
                   g->graph, name, t->element, t->lens, t->rank, full,
                   (size_t)h->ExternalInitializerInfo_GetFileOffset(info),
                   h->ExternalInitializerInfo_GetByteSize(info)));
    return NULL;
}

static OrtStatus *add_weight(struct handing *g, const OrtValueInfo *info)
{
    enum { STRING = 8 };
    const struct host *h = g->host;
    const char *name = value_name(h, info);
    const OrtValue *value = NULL;
    OrtExternalInitializerInfo *file = NULL;
    struct tensor t = {0};
    HOST_TRY(h->ValueInfo_GetExternalInitializerInfo(info, &file));
    OrtStatus *status = NULL;
    if (file) { // what the value would say costs reading it
        struct value_type type;
        status = value_type_read(h, info, &type);
        t = (struct tensor){.element = type.type.element, .lens = type.lens};
        t.rank = type.type.rank > 0 ? (size_t)type.type.rank : 0;
        if (!status)
            status = add_file(g, name, &t, file);
        h->ReleaseExternalInitializerInfo(file);
        return status;
    }
    HOST_TRY(h->ValueInfo_GetInitializerValue(info, &value));
    if (!value)
        return host_fail(h, ORT_FAIL, "MIGraphX: the host has no value of constant %s", name);
    HOST_TRY(tensor_of(h, value, &t));
    return t.element == STRING ? add_texts(g, name, value, &t) : add_bytes(g, name, &t);
}

// --- values from around ---

static OrtStatus *remember(struct handing *g, const char *name)
{
    return names_put(&g->known, name, 0) ? NULL : host_no_memory(g->host);
}

static OrtStatus *add_input(struct handing *g, const OrtValueInfo *info)
{
    struct value_type type;
    const char *name = value_name(g->host, info);
    HOST_TRY(value_type_read(g->host, info, &type));
    ENGINE_TRY(g->host, name, migraphx_onnx_graph_add_input(g->graph, name, &type.type));
    return NULL;
}

// A value that is read: known, or from around.
static OrtStatus *meet(struct handing *g, const OrtValueInfo *info)
{
    const char *name = value_name(g->host, info);
    if (!*name || g->is_body || names_find(&g->known, name, NULL))
        return NULL;
    HOST_TRY(remember(g, name));
    return value_is_constant(g->host, info) ? add_weight(g, info) : add_input(g, info);
}

static OrtStatus *meet_all(struct handing *g, const OrtValueInfo **list, size_t count)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = meet(g, list[i]);
    free(list);
    return status;
}

// --- attributes ---

OrtStatus *attribute_read(const struct host *h, const OrtOpAttr *attribute, int type, void **data,
                          size_t *size)
{
    *data = NULL;
    *size = 0;
    OrtStatus *status = h->ReadOpAttr(attribute, type, NULL, 0, size); // says how many, and no
    if (status)
        h->ReleaseStatus(status);
    *data = malloc(*size + 16);
    if (!*data)
        return host_no_memory(h);
    status = h->ReadOpAttr(attribute, type, *data, *size, size);
    if (status)
        free(*data);
    return status;
}

// The host writes them one after the other, each with a zero.
static migraphx_status set_strings(migraphx_onnx_graph_t g, const char *name, const char *bytes,
                                   size_t size)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < size; i++)
        count += !bytes[i];
    const char **texts = calloc(count + 1, sizeof *texts);
    size_t *sizes = calloc(count + 1, sizeof *sizes);
    for (size_t i = 0; texts && sizes && i < count; i++) {
        texts[i] = bytes + at;
        sizes[i] = strlen(texts[i]);
        at += sizes[i] + 1;
    }
    const migraphx_status status =
        texts && sizes ? migraphx_onnx_graph_set_strings(g, name, texts, sizes, count)
                       : migraphx_status_unknown_error;
    free(texts);
    free(sizes);
    return status;
}

static migraphx_status set_plain(migraphx_onnx_graph_t g, const char *name, int type,
                                 const void *data, size_t size)
{
    switch (type) {
    case ORT_ATTR_INT:
        return migraphx_onnx_graph_set_int(g, name, *(const int64_t *)data);
    case ORT_ATTR_INTS:
        return migraphx_onnx_graph_set_ints(g, name, data, size / sizeof(int64_t));
    case ORT_ATTR_FLOAT:
        return migraphx_onnx_graph_set_float(g, name, *(const float *)data);
    case ORT_ATTR_FLOATS:
        return migraphx_onnx_graph_set_floats(g, name, data, size / sizeof(float));
    case ORT_ATTR_STRING:
        return migraphx_onnx_graph_set_string(g, name, data, size);
    default:
        return set_strings(g, name, data, size);
    }
}

static OrtStatus *set_tensor(struct handing *g, const char *name, const OrtOpAttr *attribute)
{
    enum { STRING = 8 };
    const struct host *h = g->host;
    OrtValue *value = NULL;
    struct tensor t = {0};
    struct texts texts = {0};
    HOST_TRY(h->OpAttr_GetTensorAttributeAsOrtValue(attribute, &value));
    if (!value)
        return host_fail(h, ORT_FAIL, "MIGraphX: the host has no value of attribute %s", name);
    OrtStatus *status = tensor_of(h, value, &t);
    if (!status && t.element == STRING)
        status = texts_of(h, value, t.count, &texts);
    if (!status && (t.element == STRING
                        ? migraphx_onnx_graph_set_string_tensor(g->graph, name, t.lens, t.rank,
                                                                texts.at, texts.sizes, texts.count)
                        : migraphx_onnx_graph_set_tensor(g->graph, name, t.element, t.lens, t.rank,
                                                         t.data, t.size)))
        status = host_pass_on(h, name);
    texts_fini(&texts);
    h->ReleaseValue(value);
    return status;
}

// A kind that the host hands nobody (graphs, types, sparse tensors) is left for the engine to miss.
static OrtStatus *set_attribute(struct handing *g, const OrtOpAttr *attribute)
{
    const struct host *h = g->host;
    const char *name = NULL;
    int type = 0;
    void *data;
    size_t size;
    HOST_TRY(h->OpAttr_GetName(attribute, &name));
    HOST_TRY(h->OpAttr_GetType(attribute, &type));
    if (type == ORT_ATTR_TENSOR)
        return set_tensor(g, name, attribute);
    if (type == ORT_ATTR_UNDEFINED || type == ORT_ATTR_GRAPH)
        return NULL;
    HOST_TRY(attribute_read(h, attribute, type, &data, &size));
    const migraphx_status status = set_plain(g->graph, name, type, data, size);
    free(data);
    return status ? host_pass_on(h, name) : NULL;
}

static OrtStatus *set_attributes(struct handing *g, const OrtNode *node)
{
    const OrtOpAttr **list;
    size_t count;
    HOST_TRY(list_Node_GetAttributes(g->host, node, &list, &count));
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = set_attribute(g, list[i]);
    free(list);
    return status;
}

// --- bodies ---

static OrtStatus *fill_body(struct handing *g, const OrtGraph *graph);

static OrtStatus *set_body(struct handing *g, const OrtGraph *graph, const char *attribute)
{
    struct handing body = {
        .host = g->host, .model_path = g->model_path, .keep = g->keep, .is_body = true};
    ENGINE_TRY(g->host, attribute, migraphx_onnx_graph_create_body(&body.graph, g->graph));
    OrtStatus *status = fill_body(&body, graph);
    if (!status && migraphx_onnx_graph_set_body(g->graph, attribute, body.graph))
        status = host_pass_on(g->host, attribute);
    migraphx_onnx_graph_destroy(body.graph);
    names_fini(&body.known);
    return status;
}

static OrtStatus *set_bodies(struct handing *g, const OrtNode *node)
{
    const struct host *h = g->host;
    size_t count = 0;
    HOST_TRY(h->Node_GetNumSubgraphs(node, &count));
    if (!count)
        return NULL;
    const OrtGraph **graphs = calloc(count, sizeof *graphs);
    const char **names = calloc(count, sizeof *names);
    OrtStatus *status =
        graphs && names ? h->Node_GetSubgraphs(node, graphs, count, names) : host_no_memory(h);
    for (size_t i = 0; i < count && !status; i++)
        status = set_body(g, graphs[i], names[i]);
    free(graphs);
    free(names);
    return status;
}

// --- nodes ---

static OrtStatus *names_of(struct handing *g, const OrtValueInfo **values, size_t count,
                           const char ***out)
{
    *out = calloc(count + 1, sizeof **out);
    for (size_t i = 0; *out && i < count; i++)
        (*out)[i] = value_name(g->host, values[i]);
    return *out ? NULL : host_no_memory(g->host);
}

static OrtStatus *put_node(struct handing *g, const OrtNode *node, const char **in, size_t ins,
                           const char **out, size_t outs)
{
    const struct host *h = g->host;
    const char *name = NULL, *op = NULL, *domain = NULL;
    HOST_TRY(h->Node_GetName(node, &name));
    HOST_TRY(h->Node_GetOperatorType(node, &op));
    HOST_TRY(h->Node_GetDomain(node, &domain));
    ENGINE_TRY(h, op, migraphx_onnx_graph_add_node(g->graph, name, op, domain, in, ins, out, outs));
    return NULL;
}

// What is known of a node's results goes with it, for judgements.
static OrtStatus *add_values(struct handing *g, const OrtValueInfo **values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct value_type type;
        const char *name = value_name(g->host, values[i]);
        if (!*name)
            continue;
        HOST_TRY(value_type_read(g->host, values[i], &type));
        HOST_TRY(remember(g, name));
        ENGINE_TRY(g->host, name, migraphx_onnx_graph_add_value(g->graph, name, &type.type));
    }
    return NULL;
}

static OrtStatus *add_node(struct handing *g, const OrtNode *node)
{
    const OrtValueInfo **in = NULL, **out = NULL;
    const char **in_names = NULL, **out_names = NULL;
    size_t ins = 0, outs = 0;
    OrtStatus *status = list_Node_GetInputs(g->host, node, &in, &ins);
    if (!status)
        status = list_Node_GetOutputs(g->host, node, &out, &outs);
    if (!status)
        status = names_of(g, in, ins, &in_names);
    if (!status)
        status = names_of(g, out, outs, &out_names);
    if (!status)
        status = bytes_of_product(&g->bytes, node, in, ins, in_names);
    if (!status)
        status = put_node(g, node, in_names, ins, out_names, outs);
    if (!status)
        status = add_values(g, out, outs);
    free(in);
    free(out);
    free(in_names);
    free(out_names);
    if (!status)
        status = set_attributes(g, node);
    return status ? status : set_bodies(g, node);
}

static OrtStatus *meet_inputs(struct handing *g, const OrtNode *node)
{
    const OrtValueInfo **list;
    size_t count;
    HOST_TRY(list_Node_GetInputs(g->host, node, &list, &count));
    HOST_TRY(meet_all(g, list, count));
    HOST_TRY(list_Node_GetImplicitInputs(g->host, node, &list, &count));
    return meet_all(g, list, count);
}

static OrtStatus *remember_results(struct handing *g, const OrtNode *node)
{
    const OrtValueInfo **list;
    size_t count;
    HOST_TRY(list_Node_GetOutputs(g->host, node, &list, &count));
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        if (*value_name(g->host, list[i]))
            status = remember(g, value_name(g->host, list[i]));
    free(list);
    return status;
}

static OrtStatus *add_nodes(struct handing *g, const OrtNode *const *nodes, size_t count)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = remember_results(g, nodes[i]);
    for (size_t i = 0; i < count && !status; i++)
        status = meet_inputs(g, nodes[i]);
    for (size_t i = 0; i < count && !status; i++)
        status = add_node(g, nodes[i]);
    return status;
}

// --- graphs ---

static OrtStatus *add_outputs(struct handing *g, const OrtValueInfo *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct value_type type;
        const char *name = value_name(g->host, list[i]);
        HOST_TRY(meet(g, list[i])); // an input or a constant may be a result
        HOST_TRY(value_type_read(g->host, list[i], &type));
        ENGINE_TRY(g->host, name,
                   migraphx_onnx_graph_add_output(g->graph, name, type.known ? &type.type : NULL));
    }
    return NULL;
}

static OrtStatus *add_all_nodes(struct handing *g, const OrtGraph *graph)
{
    const OrtNode **nodes;
    size_t count;
    HOST_TRY(list_Graph_GetNodes(g->host, graph, &nodes, &count));
    OrtStatus *status = add_nodes(g, nodes, count);
    free(nodes);
    return status;
}

static OrtStatus *add_own_outputs(struct handing *g, const OrtGraph *graph)
{
    const OrtValueInfo **list;
    size_t count;
    HOST_TRY(list_Graph_GetOutputs(g->host, graph, &list, &count));
    OrtStatus *status = add_outputs(g, list, count);
    free(list);
    return status;
}

// A body's inputs in their order, and its own constants.
static OrtStatus *add_body_values(struct handing *g, const OrtGraph *graph)
{
    const OrtValueInfo **list;
    size_t count;
    OrtStatus *status = NULL;
    HOST_TRY(list_Graph_GetInputs(g->host, graph, &list, &count));
    for (size_t i = 0; i < count && !status; i++)
        status = value_is_constant(g->host, list[i]) ? NULL : add_input(g, list[i]);
    free(list);
    if (!status)
        status = list_Graph_GetInitializers(g->host, graph, &list, &count);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++)
        status = value_is_constant(g->host, list[i]) ? add_weight(g, list[i]) : NULL;
    free(list);
    return status;
}

static OrtStatus *fill_body(struct handing *g, const OrtGraph *graph)
{
    HOST_TRY(add_body_values(g, graph));
    HOST_TRY(add_all_nodes(g, graph));
    return add_own_outputs(g, graph);
}

static OrtStatus *add_opsets(struct handing *g, const OrtGraph *graph)
{
    enum { MOST = 64 };
    const struct host *h = g->host;
    const char *domains[MOST];
    int64_t versions[MOST];
    size_t count = 0;
    HOST_TRY(h->Graph_GetNumOperatorSets(graph, &count));
    if (count > MOST)
        return host_fail(h, ORT_FAIL, "MIGraphX: %zu domains of operators, %d are known", count,
                         MOST);
    HOST_TRY(h->Graph_GetOperatorSets(graph, domains, versions, count));
    for (size_t i = 0; i < count; i++)
        ENGINE_TRY(h, "operator sets",
                   migraphx_onnx_graph_set_opset(g->graph, domains[i], versions[i]));
    return NULL;
}

static OrtStatus *begin(struct handing *g, const OrtGraph *graph)
{
    HOST_TRY(g->host->Graph_GetModelPath(graph, &g->model_path));
    ENGINE_TRY(g->host, "a graph", migraphx_onnx_graph_create(&g->graph));
    if (g->keep && g->model_path && *g->model_path)
        ENGINE_TRY(g->host, "a graph", migraphx_onnx_graph_set_model_path(g->graph, g->model_path));
    if (g->bytes.ranges) { // whose operators are there whatever the model imports
        g->bytes.host = g->host;
        g->bytes.graph = g->graph;
        ENGINE_TRY(g->host, "a graph", migraphx_onnx_graph_set_opset(g->graph, "com.microsoft", 1));
    }
    return add_opsets(g, graph);
}

static OrtStatus *end(struct handing *g, OrtStatus *status, migraphx_onnx_graph_t *out)
{
    names_fini(&g->known);
    bytes_fini(&g->bytes);
    if (status)
        migraphx_onnx_graph_destroy(g->graph);
    else
        *out = g->graph;
    return status;
}

OrtStatus *graph_hand_over(const struct host *h, const OrtGraph *graph,
                           const OrtValueInfo *const *outputs, size_t output_count, bool keep,
                           const struct ranges *ranges, migraphx_onnx_graph_t *out)
{
    struct handing g = {.host = h, .keep = keep, .bytes = {.ranges = ranges}};
    OrtStatus *status = begin(&g, graph);
    if (!status)
        status = add_all_nodes(&g, graph);
    if (!status)
        status = outputs ? add_outputs(&g, outputs, output_count) : add_own_outputs(&g, graph);
    return end(&g, status, out);
}

OrtStatus *graph_hand_over_node(const struct host *h, const OrtGraph *like, const OrtNode *node,
                                migraphx_onnx_graph_t *out)
{
    struct handing g = {.host = h};
    OrtStatus *status = begin(&g, like);
    if (!status)
        status = add_nodes(&g, &node, 1);
    return end(&g, status, out);
}
