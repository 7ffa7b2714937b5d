// SPDX-License-Identifier: MIT
// A graph that a host hands over node by node: checks of what the host gives, and the handles.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "onnx/handed.h"

struct migraphx_onnx_graph {
    struct mgx_onnx_handed handed;
    bool has_node;                    // attributes have somewhere to go
    struct migraphx_onnx_graph *root; // of a body, which holds on to it
    int holders;                      // of a root: itself and its bodies
};

// --- handles ---

static migraphx_status create(migraphx_onnx_graph_t *out, struct migraphx_onnx_graph *of)
{
    API_DIAG(diag);
    struct migraphx_onnx_graph *g = API_NEW(struct migraphx_onnx_graph);
    if (!g)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    g->root = of ? of->root : g;
    g->root->holders++;
    mgx_onnx_handed_init(&g->handed, of ? &g->root->handed : NULL);
    *out = g;
    return migraphx_status_success;
}

migraphx_status migraphx_onnx_graph_create(migraphx_onnx_graph_t *out)
{
    API_NEED(out);
    return create(out, NULL);
}

migraphx_status migraphx_onnx_graph_create_body(migraphx_onnx_graph_t *out,
                                                migraphx_onnx_graph_t of)
{
    API_NEED(out);
    API_NEED(of);
    return create(out, of);
}

migraphx_status migraphx_onnx_graph_destroy(migraphx_onnx_graph_t graph)
{
    struct migraphx_onnx_graph *root = graph ? graph->root : NULL;
    if (!graph)
        return migraphx_status_success;
    if (graph != root) {
        mgx_onnx_handed_fini(&graph->handed);
        free(graph);
    }
    if (--root->holders == 0) {
        mgx_onnx_handed_fini(&root->handed);
        free(root);
    }
    return migraphx_status_success;
}

static migraphx_status leave(const struct migraphx_onnx_graph *g)
{
    API_DIAG(diag);
    return mgx_api_leave(mgx_onnx_handed_status(&g->handed, &diag), &diag);
}

// --- checks ---

static bool is_rank(size_t rank)
{
    return rank <= MGX_MAX_RANK;
}

#define NEED_RANK(rank, lens)                                                                      \
    do {                                                                                           \
        if (!is_rank(rank))                                                                        \
            return mgx_api_bad("%s: rank %zu is above %d", __func__, (size_t)(rank),               \
                               MGX_MAX_RANK);                                                      \
        if (rank)                                                                                  \
            API_NEED(lens);                                                                        \
    } while (0)

#define NEED_LIST(list, size)                                                                      \
    do {                                                                                           \
        if (size)                                                                                  \
            API_NEED(list);                                                                        \
    } while (0)

#define NEED_NODE(graph, name)                                                                     \
    do {                                                                                           \
        API_NEED(graph);                                                                           \
        API_NEED(name);                                                                            \
        if (!(graph)->has_node)                                                                    \
            return mgx_api_bad("%s: attribute \"%s\" is given before any node", __func__, name);   \
    } while (0)

static bool have_bytes(const char *const *texts, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!texts[i] && sizes[i])
            return false;
    return true;
}

#define NEED_TEXTS(texts, sizes, count)                                                            \
    do {                                                                                           \
        NEED_LIST(texts, count);                                                                   \
        NEED_LIST(sizes, count);                                                                   \
        if (!have_bytes(texts, sizes, count))                                                      \
            return mgx_api_bad("%s: a text is NULL", __func__);                                    \
    } while (0)

// --- the graph ---

migraphx_status migraphx_onnx_graph_set_opset(migraphx_onnx_graph_t graph, const char *domain,
                                              int64_t version)
{
    API_NEED(graph);
    API_NEED(domain);
    mgx_onnx_handed_opset(&graph->handed, domain, version);
    return leave(graph);
}

static migraphx_status add_value(migraphx_onnx_graph_t graph, enum mgx_onnx_value_field field,
                                 const char *name, const migraphx_onnx_type *type,
                                 const char *function)
{
    if (!graph || !name)
        return mgx_api_null(function, graph ? "name" : "graph");
    if (!type && field != MGX_ONNX_OUTPUT)
        return mgx_api_null(function, "type");
    if (type && (type->rank > MGX_MAX_RANK || (type->rank > 0 && !type->lens)))
        return mgx_api_bad("%s: rank %d of \"%s\" is above %d, or there are no lengths", function,
                           type->rank, name, MGX_MAX_RANK);
    if (type && (unsigned)type->container > migraphx_onnx_optional_sequence)
        return mgx_api_bad("%s: unknown container %d", function, (int)type->container);
    const struct mgx_onnx_declared declared = {
        .container = type ? (enum mgx_onnx_container)type->container : MGX_ONNX_IS_TENSOR,
        .type = type ? type->element : 0,
        .rank = type ? type->rank : -1,
        .dims = type ? type->lens : NULL,
        .names = type ? type->names : NULL};
    mgx_onnx_handed_value(&graph->handed, field, name, type ? &declared : NULL);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_add_input(migraphx_onnx_graph_t graph, const char *name,
                                              const migraphx_onnx_type *type)
{
    return add_value(graph, MGX_ONNX_INPUT, name, type, __func__);
}

migraphx_status migraphx_onnx_graph_add_output(migraphx_onnx_graph_t graph, const char *name,
                                               const migraphx_onnx_type *type)
{
    return add_value(graph, MGX_ONNX_OUTPUT, name, type, __func__);
}

migraphx_status migraphx_onnx_graph_add_value(migraphx_onnx_graph_t graph, const char *name,
                                              const migraphx_onnx_type *type)
{
    return add_value(graph, MGX_ONNX_BETWEEN, name, type, __func__);
}

// --- weights ---

static void forget(void *owner)
{
    (void)owner;
}

migraphx_status migraphx_onnx_graph_add_initializer(migraphx_onnx_graph_t graph, const char *name,
                                                    int element, const int64_t *lens, size_t rank,
                                                    const void *data, size_t size,
                                                    void (*release)(void *owner), void *owner)
{
    API_NEED(graph);
    API_NEED(name);
    NEED_RANK(rank, lens);
    NEED_LIST(data, size);
    if (size > INT64_MAX)
        return mgx_api_bad("%s: %zu bytes are too many", __func__, size);
    API_DIAG(diag);
    struct mgx_tensor bytes = {0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)size);
    enum mgx_status status =
        mgx_api_tensor_own(&bytes, &shape, (void *)data, release ? release : forget, owner, &diag);
    if (status != MGX_OK)
        return mgx_api_leave(status, &diag);
    const struct mgx_region region = {.data = data, .size = size, .storage = bytes.storage};
    status = mgx_onnx_handed_weight(&graph->handed, name, element, lens, (int)rank, &region, &diag);
    if (status == MGX_OK)
        mgx_tensor_release(&bytes);
    else
        mgx_api_tensor_disown(&bytes);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_onnx_graph_set_model_path(migraphx_onnx_graph_t graph, const char *path)
{
    API_NEED(graph);
    API_NEED(path);
    if (graph->root != graph)
        return mgx_api_bad("%s: the graph is a body", __func__);
    mgx_onnx_handed_model(&graph->handed, path);
    return migraphx_status_success;
}

// Shown from the model's file, or copied.
static enum mgx_status add_kept(struct mgx_onnx_handed *h, const char *name, int element,
                                const int64_t *lens, int rank, const void *data, size_t size,
                                struct mgx_diag *diag)
{
    struct mgx_region region;
    struct mgx_tensor copy = {0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)size);
    if (!mgx_onnx_handed_find(h, name, data, size, &region)) {
        TRY(mgx_tensor_create(&copy, &shape, diag));
        if (size)
            memcpy(copy.data, data, size);
        region = (struct mgx_region){.data = copy.data, .size = size, .storage = copy.storage};
    }
    const enum mgx_status status =
        mgx_onnx_handed_weight(h, name, element, lens, rank, &region, diag);
    mgx_tensor_release(&copy);
    return status;
}

migraphx_status migraphx_onnx_graph_add_initializer_kept(migraphx_onnx_graph_t graph,
                                                         const char *name, int element,
                                                         const int64_t *lens, size_t rank,
                                                         const void *data, size_t size)
{
    API_NEED(graph);
    API_NEED(name);
    NEED_RANK(rank, lens);
    NEED_LIST(data, size);
    if (size > INT64_MAX)
        return mgx_api_bad("%s: %zu bytes are too many", __func__, size);
    API_DIAG(diag);
    return mgx_api_leave(
        add_kept(&graph->handed, name, element, lens, (int)rank, data, size, &diag), &diag);
}

static enum mgx_status add_file(struct mgx_onnx_handed *h, const char *name, int element,
                                const int64_t *lens, int rank, const char *path, size_t offset,
                                size_t size, struct mgx_diag *diag)
{
    struct mgx_source_file *file;
    size_t end;
    TRY(mgx_onnx_handed_file(h, path, &file, diag));
    if (!mgx_add_size(offset, size, &end) || end > file->file->size)
        return mgx_fail(diag, MGX_INVALID,
                        "weight \"%s\" at offset %zu, %zu bytes long, is beyond the %zu bytes of "
                        "%s",
                        name, offset, size, file->file->size, path);
    const struct mgx_region region = {.data = size ? file->file->data + offset : NULL,
                                      .size = size,
                                      .file = file->file,
                                      .storage = file->storage};
    return mgx_onnx_handed_weight(h, name, element, lens, rank, &region, diag);
}

migraphx_status migraphx_onnx_graph_add_initializer_file(migraphx_onnx_graph_t graph,
                                                         const char *name, int element,
                                                         const int64_t *lens, size_t rank,
                                                         const char *path, size_t offset,
                                                         size_t size)
{
    API_NEED(graph);
    API_NEED(name);
    API_NEED(path);
    NEED_RANK(rank, lens);
    API_DIAG(diag);
    return mgx_api_leave(
        add_file(&graph->handed, name, element, lens, (int)rank, path, offset, size, &diag), &diag);
}

migraphx_status migraphx_onnx_graph_add_initializer_strings(migraphx_onnx_graph_t graph,
                                                            const char *name, const int64_t *lens,
                                                            size_t rank, const char *const *texts,
                                                            const size_t *sizes, size_t size)
{
    API_NEED(graph);
    API_NEED(name);
    NEED_RANK(rank, lens);
    NEED_TEXTS(texts, sizes, size);
    mgx_onnx_handed_texts(&graph->handed, name, lens, (int)rank, texts, sizes, size);
    return leave(graph);
}

// --- nodes ---

migraphx_status migraphx_onnx_graph_add_node(migraphx_onnx_graph_t graph, const char *name,
                                             const char *op_type, const char *domain,
                                             const char *const *inputs, size_t inputs_size,
                                             const char *const *outputs, size_t outputs_size)
{
    API_NEED(graph);
    API_NEED(op_type);
    NEED_LIST(inputs, inputs_size);
    NEED_LIST(outputs, outputs_size);
    if (graph->handed.node_count == INT32_MAX)
        return mgx_api_bad("%s: too many nodes", __func__);
    mgx_onnx_handed_node(&graph->handed, name ? name : "", op_type, domain ? domain : "", inputs,
                         inputs_size, outputs, outputs_size);
    graph->has_node = true;
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_int(migraphx_onnx_graph_t graph, const char *name,
                                            int64_t value)
{
    NEED_NODE(graph, name);
    mgx_onnx_handed_ints(&graph->handed, name, &value, 1, false);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_ints(migraphx_onnx_graph_t graph, const char *name,
                                             const int64_t *values, size_t size)
{
    NEED_NODE(graph, name);
    NEED_LIST(values, size);
    mgx_onnx_handed_ints(&graph->handed, name, values, size, true);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_float(migraphx_onnx_graph_t graph, const char *name,
                                              float value)
{
    NEED_NODE(graph, name);
    mgx_onnx_handed_floats(&graph->handed, name, &value, 1, false);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_floats(migraphx_onnx_graph_t graph, const char *name,
                                               const float *values, size_t size)
{
    NEED_NODE(graph, name);
    NEED_LIST(values, size);
    mgx_onnx_handed_floats(&graph->handed, name, values, size, true);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_string(migraphx_onnx_graph_t graph, const char *name,
                                               const char *text, size_t size)
{
    NEED_NODE(graph, name);
    NEED_LIST(text, size);
    mgx_onnx_handed_strings(&graph->handed, name, &text, &size, 1, false);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_strings(migraphx_onnx_graph_t graph, const char *name,
                                                const char *const *texts, const size_t *sizes,
                                                size_t size)
{
    NEED_NODE(graph, name);
    NEED_TEXTS(texts, sizes, size);
    mgx_onnx_handed_strings(&graph->handed, name, texts, sizes, size, true);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_tensor(migraphx_onnx_graph_t graph, const char *name,
                                               int element, const int64_t *lens, size_t rank,
                                               const void *data, size_t size)
{
    NEED_NODE(graph, name);
    NEED_RANK(rank, lens);
    NEED_LIST(data, size);
    mgx_onnx_handed_tensor(&graph->handed, name, element, lens, (int)rank, data, size);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_string_tensor(migraphx_onnx_graph_t graph, const char *name,
                                                      const int64_t *lens, size_t rank,
                                                      const char *const *texts, const size_t *sizes,
                                                      size_t size)
{
    NEED_NODE(graph, name);
    NEED_RANK(rank, lens);
    NEED_TEXTS(texts, sizes, size);
    mgx_onnx_handed_text_tensor(&graph->handed, name, lens, (int)rank, texts, sizes, size);
    return leave(graph);
}

migraphx_status migraphx_onnx_graph_set_body(migraphx_onnx_graph_t graph, const char *name,
                                             migraphx_onnx_graph_t body)
{
    NEED_NODE(graph, name);
    API_NEED(body);
    if (body == graph || body->root == body || body->root != graph->root)
        return mgx_api_bad("%s: \"%s\" was not made as a body of this graph", __func__, name);
    mgx_onnx_handed_body(&graph->handed, name, &body->handed);
    return leave(graph);
}

// --- import ---

#define NEED_ROOT(graph)                                                                           \
    do {                                                                                           \
        API_NEED(graph);                                                                           \
        if ((graph)->root != (graph))                                                              \
            return mgx_api_bad("%s: the graph is a body", __func__);                               \
    } while (0)

migraphx_status migraphx_parse_onnx_graph(migraphx_program_t *out, migraphx_onnx_graph_t graph,
                                          migraphx_onnx_options_t options)
{
    API_NEED(out);
    NEED_ROOT(graph);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    const struct mgx_onnx_options *values;
    enum mgx_status status = mgx_api_onnx_options(options, &values, &diag);
    if (status == MGX_OK)
        status = mgx_onnx_import_handed(&p, &graph->handed, values, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_onnx_graph_judge(migraphx_onnx_graph_t graph,
                                          migraphx_onnx_options_t options)
{
    NEED_ROOT(graph);
    API_DIAG(diag);
    const struct mgx_onnx_options *values;
    enum mgx_status status = mgx_api_onnx_options(options, &values, &diag);
    if (status == MGX_OK)
        status = mgx_onnx_judge_handed(&graph->handed, values, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_onnx_graph_verdict(const char **out, const_migraphx_onnx_graph_t graph,
                                            size_t node)
{
    API_NEED(out);
    API_NEED(graph);
    if (node >= (size_t)graph->handed.verdict_count)
        return mgx_api_bad("%s: node %zu, but %d were judged", __func__, node,
                           graph->handed.verdict_count);
    *out = graph->handed.verdicts[node];
    return migraphx_status_success;
}
