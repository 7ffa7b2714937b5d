// SPDX-License-Identifier: MIT
// Import of a whole model: options and their defaults, the parts in order, and giving everything
// back on failure; see onnx.h.
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "onnx/graph.h"

enum {
    DEFAULT_NODES = 10000000,
    DEFAULT_DEPTH = 64,
};
#define DEFAULT_TENSOR_BYTES ((size_t)4 << 30)
#define SCRATCH_BYTES ((size_t)1 << 30)

// --- limits ---

static struct mgx_onnx_options with_defaults(const struct mgx_onnx_options *given)
{
    struct mgx_onnx_options o = given ? *given : (struct mgx_onnx_options){0};
    if (o.max_loop_iterations <= 0)
        o.max_loop_iterations = MGX_ONNX_DEFAULT_LOOP;
    if (o.limit_loop_iterations <= 0)
        o.limit_loop_iterations = MGX_ONNX_LIMIT_LOOP;
    if (o.limit_nodes <= 0)
        o.limit_nodes = DEFAULT_NODES;
    if (o.limit_depth <= 0)
        o.limit_depth = DEFAULT_DEPTH;
    return o;
}

static enum mgx_status check_options(const struct mgx_onnx_options *o, struct mgx_diag *diag)
{
    const bool range =
        o->default_dyn_dim.max > 0 && !(o->default_dyn_dim.min == 1 && o->default_dyn_dim.max == 1);
    if (o->default_dim_value < 0)
        return mgx_fail(diag, MGX_INVALID, "default_dim_value %lld is negative",
                        (long long)o->default_dim_value);
    if (o->default_dim_value > 0 && range)
        return mgx_fail(diag, MGX_INVALID,
                        "default_dim_value and default_dyn_dim_value are both set");
    for (int i = 0; i < o->input_count; i++)
        if (o->inputs[i].count < 0 || o->inputs[i].count > MGX_MAX_RANK)
            return mgx_fail(diag, MGX_INVALID, "rank %d of input \"%s\" is not from 0 to %d",
                            o->inputs[i].count, o->inputs[i].name, MGX_MAX_RANK);
    return MGX_OK;
}

enum mgx_status mgx_onnx_check_time(struct mgx_onnx_import *import)
{
    return mgx_fold_check_time(&import->fold, import->diag);
}

enum mgx_status mgx_onnx_spend(struct mgx_onnx_import *import, size_t bytes, const char *what)
{
    return mgx_fold_spend(&import->fold, bytes, what, import->diag);
}

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
    }
    p->output_names = (struct mgx_strings){names, outputs.count};
    mgx_add_return(g->module, results, outputs.count);
    return mgx_program_status(p, import->diag);
}

// Into main as a whole program, or (with import->before) in place, its results given to `results`.
static enum mgx_status import_graph(struct mgx_onnx_import *import,
                                    const struct mgx_onnx_arguments *arguments,
                                    struct mgx_ins **results)
{
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
    if (status == MGX_OK)
        status = mgx_onnx_graph_nodes(&g);
    if (status == MGX_OK)
        status = mgx_onnx_report_missing(import);
    if (status == MGX_OK)
        status =
            results ? find_results(&g, proto.outputs, results) : add_results(&g, proto.outputs);
    mgx_onnx_graph_fini(&g);
    return status;
}

// --- begin and end ---

enum mgx_status mgx_onnx_begin(struct mgx_onnx_import *import,
                               const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    *import = (struct mgx_onnx_import){.options = with_defaults(options)};
    import->diag = diag ? diag : &import->own_diag;
    mgx_fold_init(&import->fold, import->options.limit_bytes, import->options.limit_seconds);
    if (!import->options.limit_bytes)
        import->options.limit_bytes = DEFAULT_TENSOR_BYTES;
    import->missing.arena = &import->arena;
    mgx_arena_init(&import->arena);
    mgx_arena_init(&import->scratch);
    import->scratch.limit = SCRATCH_BYTES; // a rule may ask for what the model's sizes say
    return check_options(&import->options, import->diag);
}

void mgx_onnx_end(struct mgx_onnx_import *import)
{
    mgx_source_fini(&import->source);
    mgx_map_fini(&import->functions);
    mgx_fold_fini(&import->fold, import->program);
    mgx_missing_fini(&import->missing);
    mgx_arena_fini(&import->scratch);
    mgx_arena_fini(&import->arena);
}

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

static enum mgx_status import_parts(struct mgx_onnx_import *import)
{
    static const struct mgx_onnx_arguments none;
    TRY(mgx_program_create(&import->program, &mgx_onnx_ops, import->diag));
    import->program->print_origins = import->options.debug_symbols;
    return import_model(import, &none, NULL);
}

// A failure after operators were found missing is likely their consequence: the list says more.
static enum mgx_status finish(struct mgx_onnx_import *import, enum mgx_status status,
                              struct mgx_program **out)
{
    if ((status == MGX_INVALID || status == MGX_UNSUPPORTED) && import->missing.first)
        status = mgx_onnx_report_missing(import);
    if (status != MGX_OK && status != MGX_IO && import->source.bytes.p &&
        mgx_source_check(&import->source, NULL) != MGX_OK) {
        mgx_diag_clear(import->diag); // whatever went wrong, this is why
        status = mgx_source_check(&import->source, import->diag);
    }
    if (status == MGX_INVALID && import->rank_note)
        mgx_where(import->diag, "%s", import->rank_note);
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

static enum mgx_status run(struct mgx_onnx_import *import, enum mgx_status opened,
                           struct mgx_program **out)
{
    mgx_cancel_enter();
    const enum mgx_status status = opened == MGX_OK ? import_parts(import) : opened;
    mgx_cancel_leave();
    return finish(import, status, out);
}

enum mgx_status mgx_onnx_import_file(struct mgx_program **out, const char *path,
                                     const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    if (status == MGX_OK)
        status = mgx_source_open(&import.source, path, import.diag);
    return run(&import, status, out);
}

enum mgx_status mgx_onnx_import_buffer(struct mgx_program **out, const void *data, size_t size,
                                       bool copy, const struct mgx_onnx_options *options,
                                       struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    if (status == MGX_OK)
        status = mgx_source_open_buffer(&import.source, data, size, copy, import.diag);
    return run(&import, status, out);
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
    if (status == MGX_OK)
        status = mgx_source_open_buffer(&import.source, data, size, false, import.diag);
    status = run(&import, status, out);
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
