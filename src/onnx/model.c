// SPDX-License-Identifier: MIT
// Import of a whole model: its parts in order, into a program of its own or in front of an
// instruction of another, and what is left when it fails.
#include <assert.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "onnx/graph.h"

// --- main graph ---

static enum mgx_status find_results(struct mgx_onnx_graph *g, struct mgx_messages outputs,
                                    struct mgx_ins **results)
{
    for (int i = 0; i < outputs.count; i++) {
        struct mgx_slice name;
        struct mgx_wire type;
        TRY(mgx_onnx_read_value(outputs.v[i], &name, &type, g->import->diag));
        TRY(mgx_onnx_graph_result(g, name, &results[i]));
    }
    return MGX_OK;
}

// A model may declare axes of length 1 behind those that its operators make, as for a loop's rows
// of numbers that MIGraphX holds for vectors of one: its callers get what it declares.
static struct mgx_ins *with_declared_axes(struct mgx_onnx_graph *g, struct mgx_wire type,
                                          struct mgx_ins *result)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_node leaving = {.name = "",
                               .op_type = "result",
                               .module = g->module,
                               .scratch = &import->scratch,
                               .diag = import->diag,
                               .fold = &import->fold};
    int64_t axes[MGX_MAX_RANK];
    const int rank = result ? result->shape.rank : 0;
    const bool tensor =
        rank > 0 && result->shape.type != MGX_TUPLE && result->shape.type != MGX_SEQUENCE;
    const int count = tensor ? mgx_onnx_trailing_ones(type, rank) : 0;
    for (int i = 0; i < count; i++)
        axes[i] = rank + i;
    return count ? mgx_build_unsqueeze(&leaving, result, axes, count) : result;
}

static enum mgx_status add_results(struct mgx_onnx_graph *g, struct mgx_messages outputs)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_program *p = import->program;
    struct mgx_ins **results = MGX_NEW_ARRAY(&import->arena, struct mgx_ins *, outputs.count);
    const char **names = MGX_NEW_ARRAY(&p->arena, const char *, outputs.count);
    if (!results || !names)
        return mgx_fail_memory(import->diag);
    TRY(find_results(g, outputs, results));
    for (int i = 0; i < outputs.count; i++) {
        struct mgx_slice name;
        struct mgx_wire type;
        TRY(mgx_onnx_read_value(outputs.v[i], &name, &type, import->diag));
        TRY(mgx_name_text(name, "the name of an output", &p->arena, &names[i], import->diag));
        results[i] = with_declared_axes(g, type, results[i]);
    }
    assert(g->depth == 1 && g->module == mgx_program_main(p));
    p->output_names = (struct mgx_strings){names, outputs.count};
    mgx_add_return(g->module, results, outputs.count);
    return mgx_program_status(p, import->diag);
}

// Into main as a whole program, or (with import->before) in place, its results given to `results`.
static enum mgx_status import_graph(struct mgx_onnx_import *import,
                                    const struct mgx_onnx_arguments *arguments,
                                    struct mgx_ins **results)
{
    assert(!import->before == !results); // in place, or as a whole program
    struct mgx_onnx_graph_proto proto;
    TRY(mgx_onnx_read_graph(import->model.graph, &import->arena, &proto, import->diag));
    TRY(mgx_onnx_budget(import, proto.nodes));
    struct mgx_onnx_graph g = {.import = import,
                               .module = import->before ? import->before->owner
                                                        : mgx_program_main(import->program),
                               .opsets = import->model.opsets,
                               .nodes = proto.nodes,
                               .depth = 1};
    enum mgx_status status = mgx_onnx_graph_inputs(&g, &proto, arguments);
    if (status == MGX_OK)
        status = mgx_onnx_graph_start(&g);
    if (status == MGX_OK && import->verdicts)
        status = mgx_onnx_judge_begin(&g);
    if (status == MGX_OK)
        status = mgx_onnx_graph_nodes(&g);
    if (status == MGX_OK)
        status = mgx_onnx_report_missing(import);
    if (status == MGX_OK && !import->verdicts)
        status =
            results ? find_results(&g, proto.outputs, results) : add_results(&g, proto.outputs);
    mgx_onnx_graph_fini(&g);
    return status;
}

// --- the whole model ---

static enum mgx_status import_model(struct mgx_onnx_import *import,
                                    const struct mgx_onnx_arguments *arguments,
                                    struct mgx_ins **results)
{
    TRY(mgx_onnx_read_model(import->source.bytes, &import->arena, &import->model, import->diag));
    TRY(mgx_onnx_functions_read(import));
    TRY(import_graph(import, arguments, results));
    if (import->scratch.failed || import->arena.failed)
        return mgx_fail_memory(import->diag);
    return mgx_source_check(&import->source, import->diag);
}

static enum mgx_status import_parts(struct mgx_onnx_import *import, const struct mgx_op_set *ops)
{
    static const struct mgx_onnx_arguments none;
    TRY(mgx_program_create(&import->program, ops, import->diag));
    import->program->print_origins = import->options.debug_symbols;
    TRY(import_model(import, &none, NULL));
#ifndef NDEBUG
    if (!import->missing.first && !import->verdicts)
        TRY(mgx_program_verify(import->program, import->diag));
#endif
    return MGX_OK;
}

// A kernel that is larger than an image of 1 x 1 is nobody's mistake: the size was assumed.
static void blame_assumed_sizes(const struct mgx_onnx_import *import)
{
    assert(import->program->hints.count % 2 == 0);
    const struct mgx_hints *h = &import->program->hints;
    for (int64_t i = 0; i + 1 < h->count; i += 2)
        mgx_where(import->diag, "a program with assumed sizes: of %s %s", h->v[i], h->v[i + 1]);
}

// A failure after operators were found missing is likely their consequence: the list says more.
static enum mgx_status finish(struct mgx_onnx_import *import, enum mgx_status status,
                              struct mgx_program **out)
{
    assert(import->diag->status == status || status == MGX_OK || !import->diag->status);
    if ((status == MGX_INVALID || status == MGX_UNSUPPORTED) && import->missing.first)
        status = mgx_onnx_report_missing(import);
    if (status != MGX_OK && status != MGX_IO && import->source.bytes.p &&
        mgx_source_check(&import->source, NULL) != MGX_OK) {
        mgx_diag_clear(import->diag); // whatever went wrong, this is why
        status = mgx_source_check(&import->source, import->diag);
    }
    if (status == MGX_INVALID && import->rank_note)
        mgx_where(import->diag, "%s", import->rank_note);
    if (status == MGX_INVALID && import->program)
        blame_assumed_sizes(import);
    if (status == MGX_OK) {
        *out = import->program;
    } else if (import->source.path && import->source.storage) { // else the text begins with it
        mgx_where(import->diag, "%s", import->source.path);
    }
    mgx_onnx_end(import);
    if (status != MGX_OK)
        mgx_program_destroy(import->program);
    if (!import->final) // not for a node in the middle of a run
        mgx_memory_trim();
    return status;
}

enum mgx_status mgx_onnx_run(struct mgx_onnx_import *import, enum mgx_status opened,
                             const struct mgx_op_set *ops, struct mgx_program **out)
{
    mgx_cancel_enter();
    const enum mgx_status status = opened == MGX_OK ? import_parts(import, ops) : opened;
    mgx_cancel_leave();
    return finish(import, status, out);
}

enum mgx_status mgx_onnx_import_bound(struct mgx_program **out, const void *data, size_t size,
                                      const struct mgx_onnx_options *options,
                                      const struct mgx_onnx_bound *bound, int count, bool *gave_up,
                                      struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    import.bound = bound;
    import.bound_count = count;
    import.final = true;
    if (status == MGX_OK) // a result may come to be a view of a literal in these bytes
        status = mgx_source_open_buffer(&import.source, data, size, true, import.diag);
    status = mgx_onnx_run(&import, status, &mgx_ops, out); // nothing is put off again
    *gave_up = import.gave_up;
    return status;
}

enum mgx_status mgx_onnx_import_at(struct mgx_ins *before, const void *data, size_t size,
                                   const struct mgx_onnx_options *options,
                                   struct mgx_ins *const *in, int in_count,
                                   struct mgx_ins **results, bool *gave_up, struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    const struct mgx_onnx_arguments arguments = {.given = in, .given_count = in_count};
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    import.program = before->owner->program;
    import.before = before;
    import.final = true;
    if (status == MGX_OK) // literals may come to show these bytes
        status = mgx_source_open_buffer(&import.source, data, size, true, import.diag);
    if (status == MGX_OK)
        status = import_model(&import, &arguments, results);
    *gave_up = import.gave_up;
    mgx_onnx_end(&import);
    return status;
}
