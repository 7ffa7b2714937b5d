// SPDX-License-Identifier: MIT
// A scope: the names of one graph, and what each stands for; see graph.h.
//
// Names come from inputs and initialisers, as instructions, and from the nodes' outputs, as
// promises that the walk (graph.c) keeps. A name is defined once in a scope and hides equal ones of
// the graphs around it. Cost: a map entry a name; starting a scope reads every node's outputs.
#include "onnx/graph.h"

#include <assert.h>

// --- names ---

// A name may be defined once; with a definition that exists the map does not grow.
static enum mgx_status add_name(struct mgx_onnx_graph *g, struct mgx_slice name,
                                struct mgx_ins *ins, int node)
{
    assert(name.size && node >= -1 && node < g->nodes.count);
    const uint32_t count = g->values.count;
    struct mgx_onnx_value *value = MGX_NEW(&g->import->arena, struct mgx_onnx_value);
    if (!value || !mgx_map_putn(&g->values, name.text, name.size, value))
        return mgx_fail_memory(g->import->diag);
    value->ins = ins;
    value->node = node;
    if (g->values.count == count)
        return mgx_fail(g->import->diag, MGX_INVALID, "\"%.*s\" is defined twice", MGX_SLICE(name));
    return MGX_OK;
}

enum mgx_status mgx_onnx_graph_define(struct mgx_onnx_graph *g, struct mgx_slice name,
                                      struct mgx_ins *ins)
{
    assert(!ins || ins->owner->program == g->import->program); // NULL: an argument left out
    return add_name(g, name, ins, -1);
}

struct mgx_onnx_value *mgx_onnx_graph_find(const struct mgx_onnx_graph *g, struct mgx_slice name)
{
    for (; g; g = g->up) {
        struct mgx_onnx_value *value = mgx_map_findn(&g->values, name.text, name.size);
        if (value)
            return value;
    }
    return NULL;
}

enum mgx_status mgx_onnx_graph_result(struct mgx_onnx_graph *g, struct mgx_slice name,
                                      struct mgx_ins **out)
{
    const struct mgx_onnx_value *value = mgx_onnx_graph_find(g, name);
    if (!value)
        return mgx_fail(g->import->diag, MGX_INVALID, "output \"%.*s\" is produced by no node",
                        MGX_SLICE(name));
    if (!value->ins)
        return mgx_fail(g->import->diag, MGX_INVALID, "output \"%.*s\" was left without a value",
                        MGX_SLICE(name));
    *out = value->ins;
    assert((*out)->owner->program == g->import->program);
    return MGX_OK;
}

int64_t mgx_onnx_opset_of(const struct mgx_onnx_graph *g, struct mgx_slice domain)
{
    for (int i = 0; i < g->opsets.count; i++)
        if (mgx_onnx_same_domain(g->opsets.v[i].domain, domain))
            return g->opsets.v[i].version;
    return 0;
}

// --- what the nodes make ---

void mgx_onnx_blame_index(struct mgx_onnx_graph *g, int node)
{
    mgx_where(g->import->diag, "node %d of %d", node, g->nodes.count);
}

// The outputs of a node become names; reads nothing else.
static enum mgx_status declare_outputs(struct mgx_onnx_graph *g, int node)
{
    assert(node >= 0 && node < g->nodes.count && g->state);
    struct mgx_wire w = g->nodes.v[node];
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        if (f.number != 2)
            continue;
        struct mgx_slice name;
        if (!mgx_wire_bytes(&w, &f, &name) || !name.size)
            continue;
        TRY(mgx_name_check(name, "the name of an output", g->import->diag));
        TRY(add_name(g, name, NULL, node));
    }
    return w.bad ? mgx_wire_fail(&w, "NodeProto", g->import->diag) : MGX_OK;
}

enum mgx_status mgx_onnx_graph_start(struct mgx_onnx_graph *g)
{
    assert(g->depth > 0 && !g->state);
    struct mgx_onnx_import *import = g->import;
    if (g->depth > import->options.limit_depth)
        return mgx_fail(import->diag, MGX_LIMIT,
                        "graphs and function calls are nested deeper than %d",
                        import->options.limit_depth);
    g->state = mgx_arena_alloc(&import->arena, (size_t)g->nodes.count);
    if (!g->state)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < g->nodes.count; i++) {
        const enum mgx_status status = declare_outputs(g, i);
        if (status != MGX_OK) {
            mgx_onnx_blame_index(g, i);
            return status;
        }
    }
    return MGX_OK;
}

void mgx_onnx_graph_fini(struct mgx_onnx_graph *g)
{
    mgx_map_fini(&g->values);
}
