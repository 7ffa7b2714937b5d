// SPDX-License-Identifier: MIT
// Which nodes of a graph an import takes, and why not the others: the import itself, which goes on
// behind a node that is refused with parameters in the place of its results. They have the types
// that the graph declares, so what reads them is judged by what it will get.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/graph.h"

static enum mgx_status note_types(struct mgx_onnx_import *import, struct mgx_messages values)
{
    for (int i = 0; i < values.count; i++) {
        struct mgx_slice name;
        struct mgx_wire *type = MGX_NEW(&import->arena, struct mgx_wire);
        if (!type)
            return mgx_fail_memory(import->diag);
        TRY(mgx_onnx_read_value(values.v[i], &name, type, import->diag));
        if (type->p && !mgx_map_putn(&import->verdicts->types, name.text, name.size, type))
            return mgx_fail_memory(import->diag);
    }
    return MGX_OK;
}

enum mgx_status mgx_onnx_judge_begin(struct mgx_onnx_graph *g)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_messages outputs, between;
    struct mgx_want wants[] = {{.number = 12, .messages = &outputs},
                               {.number = 13, .messages = &between}};
    TRY(mgx_message_collect(import->model.graph, wants, 2, "GraphProto", &import->arena,
                            import->diag));
    TRY(note_types(import, outputs));
    return note_types(import, between);
}

// Is it the node's fault? Memory and time are everybody's, but for what a rule asked of its
// scratch.
static bool is_of_node(struct mgx_onnx_import *import, enum mgx_status status)
{
    if (import->scratch.failed && !import->arena.failed && !import->program->arena.failed) {
        import->scratch.failed = false;
        return true;
    }
    return status == MGX_INVALID || status == MGX_UNSUPPORTED || status == MGX_LIMIT;
}

static enum mgx_status stand_in(struct mgx_onnx_graph *g, struct mgx_slice name)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_onnx_value *value = mgx_map_findn(&g->values, name.text, name.size);
    const struct mgx_wire *type = mgx_map_findn(&import->verdicts->types, name.text, name.size);
    const char *text;
    struct mgx_shape shape;
    if (!value)
        return MGX_OK;
    if (!type)
        return mgx_fail(import->diag, MGX_INVALID,
                        "nothing says of which type \"%.*s\" is, a result of a node that is not "
                        "taken",
                        MGX_SLICE(name));
    TRY(mgx_name_text(name, "the name of a value", &import->program->arena, &text, import->diag));
    TRY(mgx_onnx_read_type(import, *type, NULL, &shape));
    value->ins = mgx_add_parameter(g->module, text, &shape);
    return value->ins ? MGX_OK : mgx_program_status(import->program, import->diag);
}

enum mgx_status mgx_onnx_judge_refuse(struct mgx_onnx_graph *g, int node,
                                      const struct mgx_onnx_node_proto *proto,
                                      enum mgx_status status)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_onnx_verdicts *verdicts = import->verdicts;
    assert(g->depth == 1 && status != MGX_OK);
    if (!is_of_node(import, status) || mgx_onnx_check_time(import) != MGX_OK)
        return status;
    if (node < verdicts->count) {
        assert(!verdicts->why[node]);
        const char *text = import->diag->text;
        verdicts->why[node] = strndup(text, strcspn(text, "\n"));
        if (!verdicts->why[node])
            return mgx_fail_memory(import->diag);
    }
    mgx_diag_clear(import->diag);
    mgx_diag_clear(&import->program->diag);
    import->misfit = false;
    for (int i = 0; i < proto->out.count; i++)
        if (proto->out.v[i].size)
            TRY(stand_in(g, proto->out.v[i]));
    return MGX_OK;
}
