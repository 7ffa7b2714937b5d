// SPDX-License-Identifier: MIT
// Graphs inside nodes: bodies of If, Loop and Scan, imported as modules or in place.
//
// A body sees the names of the graphs around it; its own names hide equal outer ones. What it reads
// from outside is there already: capture.c told the walk.
#include <string.h>

#include "onnx/graph.h"

// --- import ---

struct body {
    struct mgx_onnx_graph_proto proto;
    struct mgx_onnx_graph *home; // the scope around it
};

static enum mgx_status find_body(const struct mgx_node *n, const char *name, struct body *out)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    struct mgx_wire w;
    if (!a || a->kind != MGX_ONNX_GRAPH || !mgx_onnx_attribute_graph(a, 0, &w))
        return mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" is not a graph", name);
    out->home = a->home ? a->home : n->graph;
    // Not in scratch: a rule may keep what it allocated there across the import of a body.
    return mgx_onnx_read_graph(w, &n->graph->import->arena, &out->proto, n->diag);
}

// Results go to `out`, one per output of the body, in the scratch arena.
static enum mgx_status import_body(const struct mgx_node *n, const struct body *body,
                                   struct mgx_module *module,
                                   const struct mgx_onnx_arguments *arguments, struct mgx_ins **out)
{
    struct mgx_onnx_graph g = {.import = n->graph->import,
                               .up = body->home,
                               .module = module,
                               .call = body->home->call,
                               .opsets = body->home->opsets,
                               .nodes = body->proto.nodes,
                               .depth = n->graph->depth + 1};
    enum mgx_status status = mgx_onnx_graph_inputs(&g, &body->proto, arguments);
    if (status == MGX_OK)
        status = mgx_onnx_graph_start(&g);
    if (status == MGX_OK)
        status = mgx_onnx_graph_nodes(&g);
    for (int i = 0; status == MGX_OK && i < body->proto.outputs.count; i++) {
        struct mgx_slice name;
        struct mgx_wire type;
        status = mgx_onnx_read_value(body->proto.outputs.v[i], &name, &type, n->diag);
        if (status == MGX_OK)
            status = mgx_onnx_graph_result(&g, name, &out[i]);
    }
    mgx_onnx_graph_fini(&g);
    return status;
}

// MIGraphX's names: If_5_if, If_5_else, Loop_4_loop, Scan_2_scan.
static const char *module_name(const struct mgx_node *n, const char *name)
{
    const char *suffix = strcmp(name, "then_branch") == 0   ? "if"
                         : strcmp(name, "else_branch") == 0 ? "else"
                         : strcmp(n->op_type, "Loop") == 0  ? "loop"
                         : strcmp(n->op_type, "Scan") == 0  ? "scan"
                                                            : name;
    return mgx_arena_printf(n->scratch, "%s_%s", n->graph->label, suffix);
}

// Functions that call two functions in the branches of an If make 2^20 bodies of a few kilobytes.
// Every pass meets each body, so their number is bounded more tightly than that of nodes.
static enum mgx_status check_bodies(const struct mgx_node *n)
{
    enum { MOST_BODIES = 1 << 15 };
    if (n->module->program->module_count <= MOST_BODIES)
        return MGX_OK;
    return mgx_fail(n->diag, MGX_LIMIT, "more than %d bodies of If, Loop and Scan after expansion",
                    MOST_BODIES);
}

struct mgx_module *mgx_onnx_body(const struct mgx_node *n, const char *name,
                                 const struct mgx_shape *in_shapes, int in_count)
{
    struct body body;
    if (find_body(n, name, &body) != MGX_OK || check_bodies(n) != MGX_OK)
        return NULL;
    const char *title = module_name(n, name);
    struct mgx_ins **out = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, body.proto.outputs.count);
    struct mgx_module *module =
        title && out ? mgx_program_add_module(n->module->program, title) : NULL;
    if (!module) {
        mgx_fail_memory(n->diag);
        return NULL;
    }
    const struct mgx_onnx_arguments arguments = {.shapes = in_shapes, .shape_count = in_count};
    if (import_body(n, &body, module, &arguments, out) != MGX_OK) {
        mgx_where(n->diag, "graph \"%s\"", name);
        return NULL;
    }
    return mgx_add_return(module, out, body.proto.outputs.count) ? module : NULL;
}

// Undoes an import that failed: modules from `count` on, nested ones first, and what was recorded.
static void undo(const struct mgx_node *n, int count)
{
    struct mgx_program *p = n->module->program;
    while (p->module_count > count)
        mgx_program_remove_module(p, p->modules[p->module_count - 1]);
    mgx_diag_clear(&p->diag);
    mgx_diag_clear(n->diag);
}

struct mgx_module *mgx_onnx_branch(const struct mgx_node *n, const char *name, const char **why)
{
    struct mgx_onnx_import *import = n->graph->import;
    const int count = n->module->program->module_count;
    *why = NULL;
    import->misfit = false;
    struct mgx_module *body = mgx_onnx_body(n, name, NULL, 0);
    if (body || !import->misfit || n->diag->status != MGX_INVALID)
        return body;
    const char *text = mgx_arena_strdup(&n->module->program->arena, n->diag->text);
    undo(n, count);
    if (!text)
        mgx_fail_memory(n->diag);
    *why = text;
    return NULL;
}

struct mgx_module *mgx_onnx_failing_branch(const struct mgx_node *n, const char *name,
                                           const struct mgx_module *like, const char *why)
{
    const char *title = module_name(n, name);
    const int count = mgx_module_result_count(like);
    struct mgx_ins **out = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count);
    struct mgx_module *module =
        title && out ? mgx_program_add_module(n->module->program, title) : NULL;
    if (!module) {
        mgx_fail_memory(n->diag);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *shape = &mgx_module_result(like, i)->shape;
        out[i] = mgx_emit(module, &mgx_op_fail,
                          MGX_ATTRS(mgx_shape_attr("shape", shape), mgx_text("message", why)),
                          (struct mgx_ins_list){0});
    }
    return mgx_add_return(module, out, count) ? module : NULL;
}

enum mgx_status mgx_onnx_body_counts(const struct mgx_node *n, const char *name, int *inputs,
                                     int *outputs)
{
    struct body body;
    TRY(find_body(n, name, &body));
    *inputs = body.proto.inputs.count;
    *outputs = body.proto.outputs.count;
    return MGX_OK;
}

enum mgx_status mgx_onnx_inline(struct mgx_node *n, const char *name, struct mgx_ins *const *in,
                                int in_count, struct mgx_ins **out, int out_count)
{
    struct body body;
    TRY(find_body(n, name, &body));
    if (body.proto.inputs.count != in_count || body.proto.outputs.count != out_count)
        return mgx_fail(n->diag, MGX_INVALID,
                        "graph \"%s\" has %d inputs and %d outputs where %d and %d belong", name,
                        body.proto.inputs.count, body.proto.outputs.count, in_count, out_count);
    const struct mgx_onnx_arguments arguments = {.given = in, .given_count = in_count};
    const enum mgx_status status = import_body(n, &body, n->module, &arguments, out);
    if (status != MGX_OK)
        mgx_where(n->diag, "graph \"%s\"", name);
    return status;
}

// --- what a body declares of its results ---

bool mgx_onnx_declared_type(const struct mgx_node *n, const char *name, int i, enum mgx_type *type,
                            bool *sequence)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    struct mgx_onnx_graph_proto proto;
    struct mgx_wire w, value;
    struct mgx_slice title;
    struct mgx_shape shape;
    struct mgx_diag ignored;
    mgx_diag_clear(&ignored);
    if (!a || !mgx_onnx_attribute_graph(a, 0, &w) ||
        mgx_onnx_read_graph(w, n->scratch, &proto, &ignored) != MGX_OK ||
        i >= proto.outputs.count ||
        mgx_onnx_read_value(proto.outputs.v[i], &title, &value, &ignored) != MGX_OK || !value.p)
        return false;
    struct mgx_onnx_import *import = n->graph->import;
    struct mgx_diag *const diag = import->diag;
    import->diag = &ignored;
    const enum mgx_status status = mgx_onnx_read_type(import, value, NULL, &shape);
    import->diag = diag;
    if (status != MGX_OK)
        return false;
    *sequence = shape.type == MGX_SEQUENCE;
    *type = shape.sub_count ? shape.sub[0].type : shape.type;
    return true;
}
