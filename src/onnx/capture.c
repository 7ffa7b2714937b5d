// SPDX-License-Identifier: MIT
// Captures: the names that the bodies of a node read from the graphs around it, found by a scan
// beforehand, so that the walk puts the nodes that make them first.
//
// Cost: the bodies' size times their depth of nesting.
#include "onnx/graph.h"

struct scope { // names that a graph defines
    struct mgx_map names;
    const struct scope *up;
};

struct scan {
    struct mgx_onnx_import *import;
    struct mgx_map captured; // an ordered set
};

static bool is_local(const struct scope *scope, struct mgx_slice name)
{
    for (; scope; scope = scope->up)
        if (mgx_map_find_entry(&scope->names, name.text, name.size))
            return true;
    return false;
}

static enum mgx_status define(struct scan *s, struct scope *scope, struct mgx_slice name)
{
    return mgx_map_putn(&scope->names, name.text, name.size, NULL)
               ? MGX_OK
               : mgx_fail_memory(s->import->diag);
}

static enum mgx_status use(struct scan *s, const struct scope *scope, struct mgx_slice name)
{
    if (!name.size || is_local(scope, name))
        return MGX_OK;
    return mgx_map_putn(&s->captured, name.text, name.size, NULL)
               ? MGX_OK
               : mgx_fail_memory(s->import->diag);
}

// A field of a message that holds a name: 1 of ValueInfoProto, 8 of TensorProto, both inside
// `outer` (0: at the top; 1: the values of a sparse tensor).
static struct mgx_slice name_in(struct mgx_wire w, uint32_t outer, uint32_t number)
{
    struct mgx_slice name = {"", 0};
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        if (outer && f.number == outer && f.type == MGX_WIRE_BYTES)
            name = name_in(mgx_wire_sub(&f), 0, number);
        else if (!outer && f.number == number)
            mgx_wire_bytes(&w, &f, &name);
    }
    return name;
}

static enum mgx_status define_all(struct scan *s, struct scope *scope, struct mgx_messages list,
                                  uint32_t outer, uint32_t number)
{
    for (int i = 0; i < list.count; i++)
        TRY(define(s, scope, name_in(list.v[i], outer, number)));
    return MGX_OK;
}

static enum mgx_status define_outputs(struct scan *s, struct scope *scope, struct mgx_wire node)
{
    struct mgx_wire_field f;
    while (mgx_wire_next(&node, &f))
        if (f.number == 2 && f.type == MGX_WIRE_BYTES)
            TRY(define(s, scope, (struct mgx_slice){(const char *)f.data, f.size}));
    return MGX_OK;
}

static enum mgx_status scan_graph(struct scan *s, struct mgx_wire w, const struct scope *up,
                                  int depth);

static enum mgx_status scan_node(struct scan *s, const struct scope *scope,
                                 const struct mgx_onnx_node_proto *node, int depth)
{
    for (int i = 0; i < node->in.count; i++)
        TRY(use(s, scope, node->in.v[i]));
    for (int i = 0; i < node->attribute_count; i++) {
        struct mgx_wire graph;
        for (int k = 0; mgx_onnx_attribute_graph(&node->attributes[i], k, &graph); k++)
            TRY(scan_graph(s, graph, scope, depth + 1));
    }
    return MGX_OK;
}

static enum mgx_status scan_names(struct scan *s, struct scope *scope,
                                  const struct mgx_onnx_graph_proto *graph, int depth)
{
    struct mgx_arena *scratch = &s->import->scratch;
    TRY(define_all(s, scope, graph->inputs, 0, 1));
    TRY(define_all(s, scope, graph->initializers, 0, 8));
    TRY(define_all(s, scope, graph->sparse, 1, 8));
    for (int i = 0; i < graph->nodes.count; i++)
        TRY(define_outputs(s, scope, graph->nodes.v[i]));
    for (int i = 0; i < graph->nodes.count; i++) {
        const struct mgx_arena_mark mark = mgx_arena_mark(scratch);
        struct mgx_onnx_node_proto node;
        TRY(mgx_onnx_read_node(graph->nodes.v[i], scratch, &node, s->import->diag));
        TRY(scan_node(s, scope, &node, depth));
        mgx_arena_rewind(scratch, mark);
    }
    for (int i = 0; i < graph->outputs.count; i++)
        TRY(use(s, scope, name_in(graph->outputs.v[i], 0, 1)));
    return mgx_onnx_check_time(s->import);
}

static enum mgx_status scan_graph(struct scan *s, struct mgx_wire w, const struct scope *up,
                                  int depth)
{
    struct mgx_onnx_import *import = s->import;
    if (depth > import->options.limit_depth)
        return mgx_fail(import->diag, MGX_LIMIT, "graphs are nested deeper than %d",
                        import->options.limit_depth);
    struct mgx_onnx_graph_proto graph;
    struct scope scope = {.up = up};
    TRY(mgx_onnx_read_graph(w, &import->scratch, &graph, import->diag));
    const enum mgx_status status = scan_names(s, &scope, &graph, depth);
    mgx_map_fini(&scope.names);
    return status;
}

enum mgx_status mgx_onnx_captures(struct mgx_onnx_import *import,
                                  const struct mgx_onnx_node_proto *node, int depth,
                                  struct mgx_arena *arena, struct mgx_names *out)
{
    struct scan s = {.import = import};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < node->attribute_count && status == MGX_OK; i++) {
        struct mgx_wire graph;
        for (int k = 0;
             status == MGX_OK && mgx_onnx_attribute_graph(&node->attributes[i], k, &graph); k++)
            status = scan_graph(&s, graph, NULL, depth);
    }
    struct mgx_slice *names = MGX_NEW_ARRAY(arena, struct mgx_slice, s.captured.count);
    if (status == MGX_OK && !names)
        status = mgx_fail_memory(import->diag);
    for (uint32_t i = 0; status == MGX_OK && i < s.captured.count; i++)
        names[i] = (struct mgx_slice){s.captured.entries[i].key, s.captured.entries[i].key_size};
    *out = (struct mgx_names){names, (int)s.captured.count};
    mgx_map_fini(&s.captured);
    return status;
}
