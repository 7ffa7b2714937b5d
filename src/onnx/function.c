// SPDX-License-Identifier: MIT
// Functions of the model: finding them by name, and what expanding their calls amounts to. The walk
// (graph.c) expands them, in place.
//
// All expansions together are counted before the first node is imported, bottom up and once per
// function, so that thirty levels of two calls each are refused. Depth is bounded by limit_depth; a
// function that reaches itself is an error.
#include <string.h>

#include "onnx/graph.h"

// --- names ---

// "domain:name:overload" in the scratch arena.
static struct mgx_slice key_of(struct mgx_arena *arena, struct mgx_slice domain,
                               struct mgx_slice name, struct mgx_slice overload)
{
    if (mgx_onnx_is_standard(domain))
        domain.size = 0;
    const size_t size = domain.size + name.size + overload.size + 2;
    char *key = mgx_arena_alloc(arena, size);
    if (!key)
        return (struct mgx_slice){NULL, 0};
    char *p = key;
    memcpy(p, domain.text, domain.size);
    p += domain.size;
    *p++ = '\1'; // in no valid name ...
    memcpy(p, name.text, name.size);
    p += name.size;
    *p++ = '\1'; // ... that anyone would write
    memcpy(p, overload.text, overload.size);
    return (struct mgx_slice){key, size};
}

enum mgx_status mgx_onnx_functions_read(struct mgx_onnx_import *import)
{
    const struct mgx_messages list = import->model.functions;
    for (int i = 0; i < list.count; i++) {
        struct mgx_onnx_function *function = MGX_NEW(&import->arena, struct mgx_onnx_function);
        if (!function)
            return mgx_fail_memory(import->diag);
        TRY(mgx_onnx_read_function(list.v[i], &import->arena, &function->proto, import->diag));
        const struct mgx_onnx_function_proto *f = &function->proto;
        const struct mgx_slice key = key_of(&import->arena, f->domain, f->name, f->overload);
        if (!key.text)
            return mgx_fail_memory(import->diag);
        if (mgx_map_findn(&import->functions, key.text, key.size))
            return mgx_fail(import->diag, MGX_INVALID, "function \"%.*s\" is defined twice",
                            MGX_SLICE(f->name));
        if (!mgx_map_putn(&import->functions, key.text, key.size, function))
            return mgx_fail_memory(import->diag);
    }
    return MGX_OK;
}

struct mgx_onnx_function *mgx_onnx_function_find(struct mgx_onnx_import *import,
                                                 const struct mgx_onnx_node_proto *node)
{
    if (!import->functions.count)
        return NULL;
    const struct mgx_slice key =
        key_of(&import->scratch, node->domain, node->op_type, node->overload);
    return key.text ? mgx_map_findn(&import->functions, key.text, key.size) : NULL;
}

// --- budget ---

static enum mgx_status cost_of_node(struct mgx_onnx_import *import,
                                    const struct mgx_onnx_node_proto *node, int depth,
                                    int64_t *cost);

static enum mgx_status add_cost(struct mgx_onnx_import *import, int64_t *total, int64_t cost)
{
    *total += cost; // both are at most the limit, which is far from overflow
    if (*total > import->options.limit_nodes)
        return mgx_fail(import->diag, MGX_LIMIT,
                        "more than %lld nodes after the expansion of functions",
                        (long long)import->options.limit_nodes);
    return MGX_OK;
}

static enum mgx_status cost_of_nodes(struct mgx_onnx_import *import, struct mgx_messages nodes,
                                     int depth, int64_t *total)
{
    struct mgx_arena *scratch = &import->scratch;
    *total = 0;
    if (depth > import->options.limit_depth)
        return mgx_fail(import->diag, MGX_LIMIT,
                        "graphs and function calls are nested deeper than %d",
                        import->options.limit_depth);
    for (int i = 0; i < nodes.count; i++) {
        const struct mgx_arena_mark mark = mgx_arena_mark(scratch);
        struct mgx_onnx_node_proto node;
        int64_t cost;
        TRY(mgx_onnx_read_node(nodes.v[i], scratch, &node, import->diag));
        TRY(cost_of_node(import, &node, depth, &cost));
        TRY(add_cost(import, total, cost));
        mgx_arena_rewind(scratch, mark);
    }
    return mgx_onnx_check_time(import);
}

static enum mgx_status cost_of_function(struct mgx_onnx_import *import,
                                        struct mgx_onnx_function *function, int depth,
                                        int64_t *cost)
{
    const struct mgx_slice name = function->proto.name;
    if (function->cost < 0)
        return mgx_fail(import->diag, MGX_INVALID, "function \"%.*s\" calls itself",
                        MGX_SLICE(name));
    if (!function->cost) {
        function->cost = -1;
        const enum mgx_status status =
            cost_of_nodes(import, function->proto.nodes, depth + 1, cost);
        if (status != MGX_OK) {
            mgx_where(import->diag, "function \"%.*s\"", MGX_SLICE(name));
            return status;
        }
        function->cost = *cost + 1; // the call
    }
    *cost = function->cost;
    return MGX_OK;
}

static enum mgx_status cost_of_node(struct mgx_onnx_import *import,
                                    const struct mgx_onnx_node_proto *node, int depth,
                                    int64_t *cost)
{
    struct mgx_onnx_function *function = mgx_onnx_function_find(import, node);
    *cost = 1;
    if (function)
        TRY(cost_of_function(import, function, depth, cost));
    for (int i = 0; node->has_graphs && i < node->attribute_count; i++) {
        struct mgx_wire w;
        for (int k = 0; mgx_onnx_attribute_graph(&node->attributes[i], k, &w); k++) {
            struct mgx_onnx_graph_proto graph;
            int64_t inner;
            TRY(mgx_onnx_read_graph(w, &import->scratch, &graph, import->diag));
            TRY(cost_of_nodes(import, graph.nodes, depth + 1, &inner));
            TRY(add_cost(import, cost, inner));
        }
    }
    return MGX_OK;
}

enum mgx_status mgx_onnx_budget(struct mgx_onnx_import *import, struct mgx_messages nodes)
{
    int64_t cost = 0;
    if (!import->functions.count) // then the walk's own count says the same
        return add_cost(import, &cost, nodes.count);
    return cost_of_nodes(import, nodes, 1, &cost);
}
