// SPDX-License-Identifier: MIT
// Taking a graph from a host; see handed.h. Field numbers are those of the public schema.
#include "onnx/handed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "import/wire_write.h"
#include "onnx/graph.h"

enum { IR_VERSION = 10 };

// --- beginning and end ---

void mgx_onnx_handed_init(struct mgx_onnx_handed *h, struct mgx_onnx_handed *root)
{
    *h = (struct mgx_onnx_handed){.root = root ? root : h};
    mgx_arena_init(&h->arena);
    assert(h->root->root == h->root);
}

static void forget_verdicts(struct mgx_onnx_handed *h)
{
    for (int i = 0; i < h->verdict_count; i++)
        free((char *)h->verdicts[i]);
    free(h->verdicts);
    h->verdicts = NULL;
    h->verdict_count = 0;
}

void mgx_onnx_handed_fini(struct mgx_onnx_handed *h)
{
    for (int64_t i = 0; i < h->weights.count; i++)
        mgx_storage_release(h->weights.v[i].region.storage);
    for (uint32_t i = 0; i < h->files.count; i++)
        mgx_source_file_release(h->files.entries[i].value);
    mgx_map_fini(&h->files);
    mgx_map_fini(&h->in_model);
    mgx_str_fini(&h->graph);
    mgx_str_fini(&h->node);
    mgx_str_fini(&h->opsets);
    forget_verdicts(h);
    mgx_arena_fini(&h->arena);
}

enum mgx_status mgx_onnx_handed_status(const struct mgx_onnx_handed *h, struct mgx_diag *diag)
{
    const struct mgx_onnx_handed *root = h->root;
    return h->graph.failed || h->node.failed || root->opsets.failed || root->arena.failed
               ? mgx_fail_memory(diag)
               : MGX_OK;
}

// --- the graph ---

void mgx_onnx_handed_opset(struct mgx_onnx_handed *h, const char *domain, int64_t version)
{
    struct mgx_str opset = {0};
    mgx_wire_put_text(&opset, 1, domain);
    mgx_wire_put_int(&opset, 2, version);
    mgx_wire_put_message(&h->root->opsets, 8, &opset);
}

// TypeProto.Tensor
static void put_tensor_type(struct mgx_str *out, uint32_t field,
                            const struct mgx_onnx_declared *type)
{
    struct mgx_str tensor = {0}, shape = {0};
    mgx_wire_put_int(&tensor, 1, type->type);
    for (int i = 0; i < type->rank; i++) {
        struct mgx_str dim = {0};
        if (type->dims[i] >= 0)
            mgx_wire_put_int(&dim, 1, type->dims[i]);
        else if (type->names && type->names[i] && *type->names[i])
            mgx_wire_put_text(&dim, 2, type->names[i]);
        mgx_wire_put_message(&shape, 1, &dim);
    }
    if (type->rank >= 0)
        mgx_wire_put_message(&tensor, 2, &shape);
    mgx_wire_put_message(out, field, &tensor);
}

// A TypeProto whose field `field` (sequence or optional) has `inner` as the type of its elements.
static void wrap(struct mgx_str *type, uint32_t field)
{
    struct mgx_str element = {0}, outer = {0};
    mgx_wire_put_message(&element, 1, type);
    mgx_wire_put_message(&outer, field, &element);
    *type = outer;
}

static struct mgx_str type_of(const struct mgx_onnx_declared *declared)
{
    enum { TENSOR = 1, SEQUENCE = 4, OPTIONAL = 9 };
    const enum mgx_onnx_container c = declared->container;
    struct mgx_str type = {0};
    put_tensor_type(&type, TENSOR, declared);
    if (c == MGX_ONNX_IS_SEQUENCE || c == MGX_ONNX_IS_OPTIONAL_SEQUENCE)
        wrap(&type, SEQUENCE);
    if (c == MGX_ONNX_IS_OPTIONAL || c == MGX_ONNX_IS_OPTIONAL_SEQUENCE)
        wrap(&type, OPTIONAL);
    return type;
}

void mgx_onnx_handed_value(struct mgx_onnx_handed *h, enum mgx_onnx_value_field field,
                           const char *name, const struct mgx_onnx_declared *type)
{
    assert(name);
    struct mgx_str value = {0};
    mgx_wire_put_text(&value, 1, name);
    if (type) {
        struct mgx_str message = type_of(type);
        mgx_wire_put_message(&value, 2, &message);
    }
    mgx_wire_put_message(&h->graph, field, &value);
}

// --- weights ---

// In a body: a node in front of all others that passes the root's on.
static void pass_on(struct mgx_onnx_handed *body, const char *from, const char *to)
{
    struct mgx_str node = {0};
    mgx_wire_put_text(&node, 1, from);
    mgx_wire_put_text(&node, 2, to);
    mgx_wire_put_text(&node, 4, "Identity");
    mgx_wire_put_message(&body->graph, 1, &node);
}

enum mgx_status mgx_onnx_handed_weight(struct mgx_onnx_handed *h, const char *name, int64_t type,
                                       const int64_t *dims, int rank,
                                       const struct mgx_region *region, struct mgx_diag *diag)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK && region->storage);
    struct mgx_onnx_handed *root = h->root;
    const char *own = h == root ? mgx_arena_strdup(&root->arena, name)
                                : mgx_arena_printf(&root->arena, "%s in a body, weight %lld", name,
                                                   (long long)root->weights.count);
    const int64_t *kept = mgx_arena_memdup(&root->arena, dims, (size_t)rank * sizeof *dims);
    const struct mgx_onnx_weight weight = {own, type, {kept, rank}, *region};
    if (!own || (rank && !kept) || !MGX_PUSH(&root->weights, &root->arena, weight))
        return mgx_fail_memory(diag);
    mgx_storage_retain(region->storage);
    if (h != root)
        pass_on(h, own, name);
    return MGX_OK;
}

enum mgx_status mgx_onnx_handed_file(struct mgx_onnx_handed *h, const char *path,
                                     struct mgx_source_file **out, struct mgx_diag *diag)
{
    struct mgx_onnx_handed *root = h->root;
    *out = mgx_map_find(&root->files, path);
    if (*out)
        return MGX_OK;
    const char *key = mgx_arena_strdup(&root->arena, path);
    struct mgx_source_file *file = MGX_NEW(&root->arena, struct mgx_source_file);
    if (!key || !file)
        return mgx_fail_memory(diag);
    TRY(mgx_source_file_open(file, key, diag));
    if (!mgx_map_put(&root->files, key, file)) {
        mgx_source_file_release(file);
        return mgx_fail_memory(diag);
    }
    *out = file;
    return MGX_OK;
}

// --- weights in the file that the host read ---

// Name and raw bytes of a TensorProto; the name is empty where there are none.
static struct mgx_slice raw_of(struct mgx_wire w, struct mgx_slice *name)
{
    struct mgx_slice raw = {NULL, 0};
    struct mgx_wire_field f;
    *name = (struct mgx_slice){"", 0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 8)
            mgx_wire_bytes(&w, &f, name);
        else if (f.number == 9)
            mgx_wire_bytes(&w, &f, &raw);
    }
    return raw;
}

static enum mgx_status index_weights(struct mgx_onnx_handed *h, const char *path)
{
    struct mgx_onnx_model model;
    struct mgx_onnx_graph_proto graph;
    TRY(mgx_onnx_handed_file(h, path, &h->model, NULL));
    const struct mgx_wire bytes = mgx_wire_of(h->model->file->data, h->model->file->size);
    TRY(mgx_onnx_read_model(bytes, &h->arena, &model, NULL));
    TRY(mgx_onnx_read_graph(model.graph, &h->arena, &graph, NULL));
    for (int i = 0; i < graph.initializers.count; i++) {
        struct mgx_slice name, *kept = MGX_NEW(&h->arena, struct mgx_slice);
        if (!kept)
            return MGX_NO_MEMORY;
        *kept = raw_of(graph.initializers.v[i], &name);
        if (kept->size && name.size && !mgx_map_putn(&h->in_model, name.text, name.size, kept))
            return MGX_NO_MEMORY;
    }
    return MGX_OK;
}

void mgx_onnx_handed_model(struct mgx_onnx_handed *h, const char *path)
{
    assert(h->root == h);
    if (index_weights(h, path) != MGX_OK)
        mgx_map_fini(&h->in_model);
}

bool mgx_onnx_handed_find(const struct mgx_onnx_handed *h, const char *name, const void *data,
                          size_t size, struct mgx_region *out)
{
    const struct mgx_onnx_handed *root = h->root;
    const struct mgx_slice *raw = h == root ? mgx_map_find(&root->in_model, name) : NULL;
    if (!raw || raw->size != size || memcmp(raw->text, data, size) != 0)
        return false;
    *out = (struct mgx_region){.data = (const uint8_t *)raw->text,
                               .size = size,
                               .file = root->model->file,
                               .storage = root->model->storage};
    mgx_file_forget(out->file, out->data, size);
    return mgx_file_check(out->file, NULL) == MGX_OK;
}

// --- tensors that are written out ---

static struct mgx_str begin_tensor(const char *name, int64_t type, const int64_t *dims, int rank)
{
    struct mgx_str tensor = {0};
    for (int i = 0; i < rank; i++)
        mgx_wire_put_int(&tensor, 1, dims[i]);
    mgx_wire_put_int(&tensor, 2, type);
    mgx_wire_put_text(&tensor, 8, name);
    return tensor;
}

static struct mgx_str tensor_of_texts(const char *name, const int64_t *dims, int rank,
                                      const char *const *texts, const size_t *sizes, size_t count)
{
    enum { STRING = 8 };
    struct mgx_str tensor = begin_tensor(name, STRING, dims, rank);
    for (size_t i = 0; i < count; i++)
        mgx_wire_put_bytes(&tensor, 6, texts[i], sizes[i]);
    return tensor;
}

void mgx_onnx_handed_texts(struct mgx_onnx_handed *h, const char *name, const int64_t *dims,
                           int rank, const char *const *texts, const size_t *sizes, size_t count)
{
    struct mgx_str tensor = tensor_of_texts(name, dims, rank, texts, sizes, count);
    mgx_wire_put_message(&h->graph, 5, &tensor);
}

// --- nodes ---

static void end_node(struct mgx_onnx_handed *h)
{
    if (h->node.size)
        mgx_wire_put_message(&h->graph, 1, &h->node);
}

void mgx_onnx_handed_node(struct mgx_onnx_handed *h, const char *name, const char *op_type,
                          const char *domain, const char *const *in, size_t in_count,
                          const char *const *out, size_t out_count)
{
    end_node(h);
    for (size_t i = 0; i < in_count; i++)
        mgx_wire_put_text(&h->node, 1, in[i] ? in[i] : "");
    for (size_t i = 0; i < out_count; i++)
        mgx_wire_put_text(&h->node, 2, out[i] ? out[i] : "");
    mgx_wire_put_text(&h->node, 3, name);
    mgx_wire_put_text(&h->node, 4, op_type);
    mgx_wire_put_text(&h->node, 7, domain);
    h->node_count++;
}

static struct mgx_str begin_attribute(const char *name, enum mgx_onnx_kind kind)
{
    struct mgx_str attribute = {0};
    mgx_wire_put_text(&attribute, 1, name);
    mgx_wire_put_int(&attribute, 20, kind);
    return attribute;
}

static void end_attribute(struct mgx_onnx_handed *h, struct mgx_str *attribute)
{
    assert(h->node.size);
    mgx_wire_put_message(&h->node, 5, attribute);
}

void mgx_onnx_handed_ints(struct mgx_onnx_handed *h, const char *name, const int64_t *values,
                          size_t count, bool list)
{
    struct mgx_str a = begin_attribute(name, list ? MGX_ONNX_INTS : MGX_ONNX_INT);
    for (size_t i = 0; i < count; i++)
        mgx_wire_put_int(&a, list ? 8 : 3, values[i]);
    end_attribute(h, &a);
}

void mgx_onnx_handed_floats(struct mgx_onnx_handed *h, const char *name, const float *values,
                            size_t count, bool list)
{
    struct mgx_str a = begin_attribute(name, list ? MGX_ONNX_FLOATS : MGX_ONNX_FLOAT);
    for (size_t i = 0; i < count; i++)
        mgx_wire_put_float(&a, list ? 7 : 2, values[i]);
    end_attribute(h, &a);
}

void mgx_onnx_handed_strings(struct mgx_onnx_handed *h, const char *name, const char *const *texts,
                             const size_t *sizes, size_t count, bool list)
{
    struct mgx_str a = begin_attribute(name, list ? MGX_ONNX_STRINGS : MGX_ONNX_STRING);
    for (size_t i = 0; i < count; i++)
        mgx_wire_put_bytes(&a, list ? 9 : 4, texts[i], sizes[i]);
    end_attribute(h, &a);
}

void mgx_onnx_handed_tensor(struct mgx_onnx_handed *h, const char *name, int64_t type,
                            const int64_t *dims, int rank, const void *data, size_t size)
{
    struct mgx_str a = begin_attribute(name, MGX_ONNX_TENSOR);
    struct mgx_str tensor = begin_tensor("", type, dims, rank);
    mgx_wire_put_bytes(&tensor, 9, data, size);
    mgx_wire_put_message(&a, 5, &tensor);
    end_attribute(h, &a);
}

void mgx_onnx_handed_text_tensor(struct mgx_onnx_handed *h, const char *name, const int64_t *dims,
                                 int rank, const char *const *texts, const size_t *sizes,
                                 size_t count)
{
    struct mgx_str a = begin_attribute(name, MGX_ONNX_TENSOR);
    struct mgx_str tensor = tensor_of_texts("", dims, rank, texts, sizes, count);
    mgx_wire_put_message(&a, 5, &tensor);
    end_attribute(h, &a);
}

void mgx_onnx_handed_body(struct mgx_onnx_handed *h, const char *name, struct mgx_onnx_handed *body)
{
    assert(body != h && body->root == h->root);
    end_node(body);
    struct mgx_str a = begin_attribute(name, MGX_ONNX_GRAPH);
    mgx_wire_put_bytes(&a, 6, mgx_str_text(&body->graph), body->graph.size);
    a.failed |= body->graph.failed;
    end_attribute(h, &a);
}

// --- import ---

static struct mgx_str model_of(struct mgx_onnx_handed *h)
{
    struct mgx_str model = {0};
    end_node(h);
    mgx_wire_put_int(&model, 1, IR_VERSION);
    mgx_str_putn(&model, mgx_str_text(&h->opsets), h->opsets.size);
    mgx_wire_put_bytes(&model, 7, mgx_str_text(&h->graph), h->graph.size);
    return model;
}

static enum mgx_status import(struct mgx_program **out, struct mgx_onnx_handed *h,
                              const struct mgx_onnx_options *options,
                              struct mgx_onnx_verdicts *verdicts, struct mgx_diag *diag)
{
    assert(h->root == h);
    struct mgx_onnx_import import;
    struct mgx_str model = model_of(h);
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    import.handed = h;
    import.verdicts = verdicts;
    if (status == MGX_OK)
        status = mgx_onnx_handed_status(h, import.diag);
    if (status == MGX_OK && model.failed)
        status = mgx_fail_memory(import.diag);
    if (status == MGX_OK) // literals of attributes are views of these bytes
        status = mgx_source_open_buffer(&import.source, mgx_str_text(&model), model.size, true,
                                        import.diag);
    mgx_str_fini(&model);
    return mgx_onnx_run(&import, status, &mgx_onnx_ops, out);
}

enum mgx_status mgx_onnx_import_handed(struct mgx_program **out, struct mgx_onnx_handed *h,
                                       const struct mgx_onnx_options *options,
                                       struct mgx_diag *diag)
{
    return import(out, h, options, NULL, diag);
}

enum mgx_status mgx_onnx_judge_handed(struct mgx_onnx_handed *h,
                                      const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    struct mgx_onnx_options quick = options ? *options : (struct mgx_onnx_options){0};
    struct mgx_program *p = NULL;
    forget_verdicts(h);
    h->verdicts = calloc((size_t)h->node_count + 1, sizeof *h->verdicts);
    if (!h->verdicts)
        return mgx_fail_memory(diag);
    h->verdict_count = h->node_count;
    struct mgx_onnx_verdicts verdicts = {.why = h->verdicts, .count = h->node_count};
    quick.quick_reject = true;
    const enum mgx_status status = import(&p, h, &quick, &verdicts, diag);
    mgx_map_fini(&verdicts.types);
    mgx_program_destroy(p);
    return status;
}
