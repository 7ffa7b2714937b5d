// SPDX-License-Identifier: MIT
// The main graph of a model, frozen or of a SavedModel: its functions, a scope over its nodes, and
// the results that main returns; see graph.h.
#include <assert.h>

#include "base/sniff.h"
#include "tf/graph.h"

// --- functions of the model ---

static enum mgx_status add_function(struct mgx_tf_import *import, struct mgx_wire w)
{
    struct mgx_tf_function_def *def = MGX_NEW(&import->arena, struct mgx_tf_function_def);
    struct mgx_tf_body *body = MGX_NEW(&import->arena, struct mgx_tf_body);
    if (!def || !body)
        return mgx_fail_memory(import->diag);
    TRY(mgx_tf_read_function(w, &import->arena, def, import->diag));
    if (mgx_map_findn(&import->functions, def->name.text, def->name.size))
        return mgx_fail(import->diag, MGX_INVALID, "function \"%.*s\" is defined twice",
                        MGX_SLICE(def->name));
    if (!mgx_map_putn(&import->functions, def->name.text, def->name.size, body))
        return mgx_fail_memory(import->diag);
    const enum mgx_status status = mgx_tf_body_init(import, def->nodes, def, body);
    if (status != MGX_OK)
        mgx_where(import->diag, "function \"%.*s\"", MGX_SLICE(def->name));
    return status;
}

// --- the scope ---

// What is no graph looks like one without nodes, or breaks off somewhere; what it is says more.
static enum mgx_status check_graph(struct mgx_tf_import *import, enum mgx_status status,
                                   const struct mgx_tf_graph_def *def)
{
    const struct mgx_wire bytes = import->source.bytes;
    const char *what = mgx_sniff(bytes.p, (size_t)(bytes.end - bytes.p));
    if (status != MGX_OK && status != MGX_INVALID)
        return status;
    if (status == MGX_OK && def->nodes.count)
        return MGX_OK;
    if (what) {
        mgx_diag_clear(import->diag);
        return mgx_fail(import->diag, MGX_INVALID, "not a TensorFlow graph but %s", what);
    }
    if (status == MGX_OK)
        return mgx_fail(import->diag, MGX_INVALID, "not a TensorFlow graph: it has no nodes");
    mgx_where(import->diag, "not a TensorFlow graph");
    return status;
}

enum mgx_status mgx_tf_import_graph(struct mgx_tf_import *import, struct mgx_wire bytes,
                                    enum mgx_status (*use)(struct mgx_tf_graph *g, void *context),
                                    void *context)
{
    struct mgx_tf_graph_def def;
    const enum mgx_status read = mgx_tf_read_graph(bytes, &import->arena, &def, import->diag);
    TRY(check_graph(import, read, &def));
    for (int i = 0; i < def.functions.count; i++)
        TRY(add_function(import, def.functions.v[i]));
    struct mgx_tf_body body;
    struct mgx_tf_graph g = {
        .import = import, .module = mgx_program_main(import->program), .body = &body};
    enum mgx_status status = mgx_tf_body_init(import, def.nodes, NULL, &body);
    if (status == MGX_OK)
        status = mgx_tf_graph_start(&g);
    if (status == MGX_OK)
        status = use(&g, context);
    mgx_tf_body_fini(&body);
    return status;
}

// --- results ---

// With is_nhwc results of rank 4 leave as inputs of rank 4 enter: in the order N, C, H, W.
static struct mgx_ins *in_order_of_options(struct mgx_tf_graph *g, struct mgx_ins *result)
{
    struct mgx_tf_import *import = g->import;
    struct mgx_node leaving = {.name = "",
                               .op_type = "result",
                               .module = g->module,
                               .scratch = &import->scratch,
                               .diag = import->diag,
                               .fold = &import->fold};
    if (!import->options.nhwc || result->shape.rank != 4)
        return result;
    return mgx_build_transpose(&leaving, result, (int64_t[]){0, 3, 1, 2}, 4);
}

static enum mgx_status add_result(struct mgx_tf_graph *g, struct mgx_slice reference,
                                  struct mgx_ins **out)
{
    struct mgx_tf_import *import = g->import;
    struct mgx_ins *result;
    TRY(mgx_tf_graph_value(g, reference, &result));
    const struct mgx_tf_handle *handle = mgx_map_find_pointer(&import->handles, result);
    if (handle && handle->kind == MGX_TF_REFERENCE)
        result = handle->value;
    if (!result || (handle && handle->kind != MGX_TF_REFERENCE))
        return mgx_fail(import->diag, MGX_INVALID, "output \"%.*s\" is not a tensor",
                        MGX_SLICE(reference));
    *out = in_order_of_options(g, result);
    return MGX_OK;
}

enum mgx_status mgx_tf_add_results(struct mgx_tf_graph *g, const struct mgx_slice *references,
                                   const struct mgx_slice *names, int count)
{
    assert(count >= 0 && (references || !count));
    struct mgx_tf_import *import = g->import;
    struct mgx_program *p = import->program;
    struct mgx_ins **results = MGX_NEW_ARRAY(&import->arena, struct mgx_ins *, count);
    const char **texts = MGX_NEW_ARRAY(&p->arena, const char *, count);
    if (!results || !texts)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < count; i++) {
        TRY(add_result(g, references[i], &results[i]));
        TRY(mgx_name_text(names[i], "the name of an output", &p->arena, &texts[i], import->diag));
    }
    TRY(mgx_missing_report(&import->missing,
                           "skip_unknown_operators keeps what is not known as "
                           "placeholders",
                           import->diag));
    p->output_names = (struct mgx_strings){texts, count};
    mgx_add_return(g->module, results, count);
    return mgx_program_status(p, import->diag);
}
