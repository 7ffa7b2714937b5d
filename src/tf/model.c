// SPDX-License-Identifier: MIT
// Import of a whole model: options and their defaults, the parts in order, and giving everything
// back on failure; see tf.h.
#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/size.h"
#include "tf/graph.h"

enum {
    DEFAULT_NODES = 10000000,
    DEFAULT_DEPTH = 64,
    DEFAULT_ROUNDS = 65535, // as of ONNX loops without a trip count
};
#define DEFAULT_TENSOR_BYTES ((size_t)4 << 30)
#define SCRATCH_BYTES ((size_t)1 << 30)

// --- limits ---

static struct mgx_tf_options with_defaults(const struct mgx_tf_options *given)
{
    struct mgx_tf_options o = given ? *given : (struct mgx_tf_options){0};
    if (!o.batch)
        o.batch = 1;
    if (o.limit_nodes <= 0)
        o.limit_nodes = DEFAULT_NODES;
    if (o.limit_loop_iterations <= 0)
        o.limit_loop_iterations = DEFAULT_ROUNDS;
    if (o.limit_depth <= 0)
        o.limit_depth = DEFAULT_DEPTH;
    if (!o.limit_bytes)
        o.limit_bytes = DEFAULT_TENSOR_BYTES;
    return o;
}

static enum mgx_status check_options(const struct mgx_tf_options *o, struct mgx_diag *diag)
{
    if (o->batch > INT32_MAX)
        return mgx_fail(diag, MGX_INVALID, "batch_size %zu is above %d", o->batch, INT32_MAX);
    for (size_t i = 0; i < o->input_count; i++)
        if (o->inputs[i].count > MGX_MAX_RANK)
            return mgx_fail(diag, MGX_INVALID, "rank %zu of input \"%s\" is above %d",
                            o->inputs[i].count, o->inputs[i].name, MGX_MAX_RANK);
    return MGX_OK;
}

static enum mgx_status begin_import(struct mgx_tf_import *import,
                                    const struct mgx_tf_options *options, struct mgx_diag *diag)
{
    *import = (struct mgx_tf_import){.options = with_defaults(options)};
    import->diag = diag ? diag : &import->own_diag;
    mgx_fold_init(&import->fold, options ? options->limit_bytes : 0,
                  options ? options->limit_seconds : 0);
    mgx_arena_init(&import->arena);
    mgx_arena_init(&import->scratch);
    import->missing.arena = &import->arena;
    import->scratch.limit = SCRATCH_BYTES; // a rule may ask for what the model's sizes say
    return check_options(&import->options, import->diag);
}

static void end_import(struct mgx_tf_import *import)
{
    mgx_source_fini(&import->source);
    for (uint32_t i = 0; i < import->functions.count; i++)
        mgx_tf_body_fini(import->functions.entries[i].value);
    mgx_map_fini(&import->functions);
    mgx_map_fini(&import->handles);
    mgx_map_fini(&import->variables);
    mgx_map_fini(&import->inputs);
    mgx_tf_bundle_fini(&import->bundle);
    mgx_missing_fini(&import->missing);
    mgx_fold_fini(&import->fold, import->program);
    mgx_arena_fini(&import->scratch);
    mgx_arena_fini(&import->arena);
}

// --- what is asked for ---

static bool is_no_result(struct mgx_slice op)
{
    static const char *const ops[] = {
        "NoOp",   "Assert",    "Const",   "Placeholder", "PlaceholderV2",   "VarHandleOp",
        "SaveV2", "RestoreV2", "PrintV2", "Assign",      "AssignVariableOp"};
    for (size_t i = 0; i < MGX_COUNT(ops); i++)
        if (mgx_slice_is(op, ops[i]))
            return true;
    return false;
}

// Which nodes any other reads.
static enum mgx_status find_fed(struct mgx_tf_graph *g, bool **out)
{
    struct mgx_tf_import *import = g->import;
    bool *fed = *out = MGX_NEW_ARRAY(&import->arena, bool, g->body->nodes.count);
    if (!fed)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < g->body->nodes.count; i++) {
        const struct mgx_arena_mark mark = mgx_arena_mark(&import->scratch);
        struct mgx_tf_node_def def;
        TRY(mgx_tf_read_node(g->body->nodes.v[i], &import->scratch, &def, import->diag));
        for (int k = 0; k < def.in.count; k++) {
            const int64_t place = mgx_tf_place(g->body, mgx_tf_reference_of(def.in.v[k]).name);
            if (place >= 0)
                fed[place] = true;
        }
        mgx_arena_rewind(&import->scratch, mark);
    }
    return mgx_fold_check_time(&import->fold, import->diag);
}

// All nodes that feed nothing, in the graph's order.
static enum mgx_status find_outputs(struct mgx_tf_graph *g, const bool *fed, struct mgx_slice *out,
                                    int *count)
{
    *count = 0;
    for (int i = 0; i < g->body->nodes.count; i++) {
        struct mgx_slice name, op;
        TRY(mgx_tf_read_node_name(g->body->nodes.v[i], &name, &op, g->import->diag));
        if (!fed[i] && !is_no_result(op))
            out[(*count)++] = name;
    }
    return MGX_OK;
}

// The outputs named by the options, else all that feed nothing.
static enum mgx_status choose_outputs(struct mgx_tf_graph *g, const bool *fed,
                                      struct mgx_slice **out, int *count)
{
    const struct mgx_tf_options *o = &g->import->options;
    const size_t most = (size_t)g->body->nodes.count + o->output_count;
    *out = MGX_NEW_ARRAY(&g->import->arena, struct mgx_slice, most);
    if (!*out || most > INT32_MAX)
        return mgx_fail_memory(g->import->diag);
    *count = (int)o->output_count;
    for (int i = 0; i < *count; i++)
        (*out)[i] = (struct mgx_slice){o->outputs[i], strlen(o->outputs[i])};
    return *count ? MGX_OK : find_outputs(g, fed, *out, count);
}

// --- a frozen graph ---

// Inputs that any node reads are parameters in the graph's order, whether or not a result needs
// them.
static enum mgx_status add_inputs(struct mgx_tf_graph *g, const bool *fed)
{
    for (int i = 0; i < g->body->nodes.count; i++) {
        struct mgx_slice name, op;
        struct mgx_ins *ignored;
        TRY(mgx_tf_read_node_name(g->body->nodes.v[i], &name, &op, g->import->diag));
        if (fed[i] && (mgx_slice_is(op, "Placeholder") || mgx_slice_is(op, "PlaceholderV2")))
            TRY(mgx_tf_graph_value(g, name, &ignored));
    }
    return MGX_OK;
}

static enum mgx_status import_frozen(struct mgx_tf_graph *g, void *unused)
{
    (void)unused;
    struct mgx_slice *outputs;
    bool *fed;
    int count;
    TRY(find_fed(g, &fed));
    TRY(add_inputs(g, fed));
    TRY(choose_outputs(g, fed, &outputs, &count));
    return mgx_tf_add_results(g, outputs, outputs, count);
}

// What only the import needed: handles, names of files, constants that became attributes.
static void sweep(struct mgx_module *m)
{
    const struct mgx_ins *end = mgx_module_return(m);
    for (struct mgx_ins *ins = m->last, *before; ins; ins = before) {
        before = ins->prev;
        const bool kept = ins == end || (!ins->literal && ins->op->flags & MGX_OP_BUILTIN) ||
                          ins->op->flags & MGX_OP_EFFECT;
        if (!kept && mgx_use_count(ins) == 0)
            mgx_remove(ins);
    }
}

static enum mgx_status import_parts(struct mgx_tf_import *import)
{
    TRY(mgx_program_create(&import->program, &mgx_ops, import->diag));
    if (mgx_tf_is_saved_model(import->source.bytes))
        TRY(mgx_tf_import_saved(import));
    else
        TRY(mgx_tf_import_graph(import, import->source.bytes, import_frozen, NULL));
    if (import->scratch.failed || import->arena.failed)
        return mgx_fail_memory(import->diag);
    for (int i = import->program->module_count; i-- > 0;) // a body before what it reads from
        sweep(import->program->modules[i]);
    return mgx_source_check(&import->source, import->diag);
}

// --- begin and end ---

// A failure after operators were found missing is likely their consequence: the list says more.
static enum mgx_status finish(struct mgx_tf_import *import, enum mgx_status status,
                              struct mgx_program **out)
{
    if ((status == MGX_INVALID || status == MGX_UNSUPPORTED) && import->missing.first)
        status = mgx_missing_report(&import->missing, NULL, import->diag);
    if (status != MGX_OK && status != MGX_IO && import->source.bytes.p &&
        mgx_source_check(&import->source, NULL) != MGX_OK) {
        mgx_diag_clear(import->diag); // whatever went wrong, this is why
        status = mgx_source_check(&import->source, import->diag);
    }
    if (status != MGX_OK && import->shapeless)
        mgx_where(import->diag,
                  "input \"%s\" declares no shape: say its sizes (map_input_dims, --input-dim)",
                  import->shapeless);
    if (status == MGX_OK)
        *out = import->program;
    else if (import->source.path && import->source.storage) // else the text begins with it
        mgx_where(import->diag, "%s", import->source.path);
    end_import(import);
    if (status != MGX_OK)
        mgx_program_destroy(import->program);
    mgx_memory_trim();
    return status;
}

static enum mgx_status run(struct mgx_tf_import *import, enum mgx_status opened,
                           struct mgx_program **out)
{
    mgx_cancel_enter();
    const enum mgx_status status = opened == MGX_OK ? import_parts(import) : opened;
    mgx_cancel_leave();
    return finish(import, status, out);
}

// The file itself, or the one that a SavedModel's folder holds.
static enum mgx_status open_path(struct mgx_tf_import *import, const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        path = mgx_arena_printf(&import->arena, "%s/saved_model.pb", path);
    return path ? mgx_source_open(&import->source, path, import->diag)
                : mgx_fail_memory(import->diag);
}

enum mgx_status mgx_tf_import_file(struct mgx_program **out, const char *path,
                                   const struct mgx_tf_options *options, struct mgx_diag *diag)
{
    assert(out && path);
    struct mgx_tf_import import;
    *out = NULL;
    enum mgx_status status = begin_import(&import, options, diag);
    if (status == MGX_OK)
        status = open_path(&import, path);
    return run(&import, status, out);
}

enum mgx_status mgx_tf_import_buffer(struct mgx_program **out, const void *data, size_t size,
                                     bool copy, const struct mgx_tf_options *options,
                                     struct mgx_diag *diag)
{
    assert(out && (data || !size));
    struct mgx_tf_import import;
    *out = NULL;
    enum mgx_status status = begin_import(&import, options, diag);
    if (status == MGX_OK)
        status = mgx_source_open_buffer(&import.source, data, size, copy, import.diag);
    return run(&import, status, out);
}
