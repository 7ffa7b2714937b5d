// SPDX-License-Identifier: MIT
// A SavedModel: which of its graphs, what restores its variables, which signature.
//
// Of several graphs the one for serving counts. The variables get their values by importing what
// the model itself restores them with; then the signature's results are imported.
#include <stdlib.h>
#include <string.h>

#include "tf/graph.h"

bool mgx_tf_is_saved_model(struct mgx_wire bytes)
{
    struct mgx_wire_field f; // a graph begins with a node, a SavedModel with its version
    return mgx_wire_next(&bytes, &f) && f.number == 1 && f.type == MGX_WIRE_VARINT;
}

// --- which graph ---

struct meta {
    struct mgx_wire graph, saver;
    struct mgx_messages signatures;
};

static bool has_tag(struct mgx_wire info, const char *tag)
{
    enum { TAGS = 4 };
    struct mgx_wire_field f;
    while (mgx_wire_next(&info, &f))
        if (f.number == TAGS && f.type == MGX_WIRE_BYTES &&
            mgx_slice_is((struct mgx_slice){(const char *)f.data, f.size}, tag))
            return true;
    return false;
}

static enum mgx_status read_meta(struct mgx_tf_import *import, struct mgx_wire w, struct meta *out,
                                 bool *serves)
{
    struct mgx_messages infos, graphs, savers;
    struct mgx_want wants[] = {{.number = 1, .messages = &infos},
                               {.number = 2, .messages = &graphs},
                               {.number = 3, .messages = &savers},
                               {.number = 5, .messages = &out->signatures}};
    TRY(mgx_message_collect(w, wants, 4, "MetaGraphDef", &import->arena, import->diag));
    if (graphs.count != 1)
        return mgx_fail(import->diag, MGX_INVALID, "a MetaGraphDef has %d graphs", graphs.count);
    out->graph = graphs.v[0];
    out->saver = savers.count ? savers.v[0] : mgx_wire_of("", 0);
    *serves = infos.count && has_tag(infos.v[0], "serve");
    return MGX_OK;
}

static enum mgx_status choose_meta(struct mgx_tf_import *import, struct meta *out)
{
    struct mgx_messages metas;
    struct mgx_want want = {.number = 2, .messages = &metas};
    TRY(mgx_message_collect(import->source.bytes, &want, 1, "SavedModel", &import->arena,
                            import->diag));
    if (!metas.count)
        return mgx_fail(import->diag, MGX_INVALID, "a SavedModel without a graph");
    for (int i = 0; i < metas.count; i++) {
        struct meta m = {0};
        bool serves;
        TRY(read_meta(import, metas.v[i], &m, &serves));
        if (i == 0 || serves)
            *out = m;
        if (serves)
            break;
    }
    return MGX_OK;
}

// --- which signature ---

struct signature {
    struct mgx_messages inputs, outputs; // maps from names to TensorInfo
};

static enum mgx_status read_signature(struct mgx_tf_import *import, const struct meta *m,
                                      struct signature *out)
{
    static const struct mgx_slice usual = {"serving_default", 15};
    struct mgx_wire w = {0};
    struct mgx_slice name;
    TRY(mgx_tf_find_entry(&m->signatures, usual, &w, import->diag));
    for (int i = 0; !w.p && i < m->signatures.count; i++) {
        TRY(mgx_tf_read_entry(m->signatures.v[i], &name, &w, import->diag));
        if (mgx_slice_is(name, "__saved_model_init_op"))
            w.p = NULL;
    }
    *out = (struct signature){0};
    if (!w.p)
        return MGX_OK;
    struct mgx_want wants[] = {{.number = 1, .messages = &out->inputs},
                               {.number = 2, .messages = &out->outputs}};
    return mgx_message_collect(w, wants, 2, "SignatureDef", &import->arena, import->diag);
}

struct result {
    struct mgx_slice name, reference;
};

static int by_name(const void *a, const void *b)
{
    const struct mgx_slice x = ((const struct result *)a)->name,
                           y = ((const struct result *)b)->name;
    const int order = memcmp(x.text, y.text, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

// The entries of a map of TensorInfo, sorted by name: files have them in any order.
static enum mgx_status read_tensors(struct mgx_tf_import *import, const struct mgx_messages *map,
                                    struct result **out)
{
    struct result *list = MGX_NEW_ARRAY(&import->arena, struct result, map->count);
    if (!list)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < map->count; i++) {
        struct mgx_wire info;
        TRY(mgx_tf_read_entry(map->v[i], &list[i].name, &info, import->diag));
        TRY(mgx_name_check(list[i].name, "the name of a signature's tensor", import->diag));
        list[i].reference = mgx_tf_text_field(info, 1);
        TRY(mgx_name_check(list[i].reference, "what a signature's tensor is", import->diag));
    }
    qsort(list, (size_t)map->count, sizeof *list, by_name);
    *out = list;
    return MGX_OK;
}

// --- in order ---

struct context {
    const struct meta *meta;
    struct signature signature;
};

// What the model restores its variables with; a model without variables may have nothing to do it.
static enum mgx_status restore(struct mgx_tf_graph *g, const struct meta *m)
{
    enum { RESTORE_OP = 3 };
    const struct mgx_slice name = mgx_tf_text_field(m->saver, RESTORE_OP);
    if (!name.size)
        return MGX_OK;
    g->effects = true;
    const enum mgx_status status =
        mgx_tf_graph_effect(g, name, "the name of what restores variables");
    g->effects = false;
    return status;
}

static enum mgx_status add_inputs(struct mgx_tf_graph *g, const struct mgx_messages *map)
{
    struct mgx_tf_import *import = g->import;
    struct result *inputs;
    TRY(read_tensors(import, map, &inputs));
    for (int i = 0; i < map->count; i++) {
        const struct mgx_slice node = mgx_tf_reference_of(inputs[i].reference).name;
        const char *key = mgx_arena_strndup(&import->arena, node.text, node.size);
        const char *name =
            mgx_arena_strndup(&import->arena, inputs[i].name.text, inputs[i].name.size);
        struct mgx_ins *ignored;
        if (!key || !name || !mgx_map_put(&import->inputs, key, (void *)name))
            return mgx_fail_memory(import->diag);
        TRY(mgx_tf_graph_value(g, inputs[i].reference, &ignored));
    }
    return MGX_OK;
}

// The signature's results, or those the caller names: by the signature's name or as nodes.
static enum mgx_status add_results(struct mgx_tf_graph *g, const struct mgx_messages *map)
{
    struct mgx_tf_import *import = g->import;
    const struct mgx_tf_options *o = &import->options;
    struct result *all;
    TRY(read_tensors(import, map, &all));
    const int count = o->output_count ? (int)o->output_count : map->count;
    struct mgx_slice *names = MGX_NEW_ARRAY(&import->arena, struct mgx_slice, count);
    struct mgx_slice *references = MGX_NEW_ARRAY(&import->arena, struct mgx_slice, count);
    if (!names || !references)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < count; i++) {
        names[i] = all && !o->output_count
                       ? all[i].name
                       : (struct mgx_slice){o->outputs[i], strlen(o->outputs[i])};
        references[i] = names[i];
        for (int k = 0; k < map->count; k++)
            if (mgx_slice_equal(all[k].name, names[i]))
                references[i] = all[k].reference;
    }
    return mgx_tf_add_results(g, references, names, count);
}

static enum mgx_status import_scope(struct mgx_tf_graph *g, void *given)
{
    const struct context *c = given;
    TRY(restore(g, c->meta));
    TRY(add_inputs(g, &c->signature.inputs));
    if (!c->signature.outputs.count && !g->import->options.output_count)
        return mgx_fail(g->import->diag, MGX_INVALID,
                        "the SavedModel has no signature with results; name nodes as outputs");
    return add_results(g, &c->signature.outputs);
}

enum mgx_status mgx_tf_import_saved(struct mgx_tf_import *import)
{
    struct meta m = {0};
    struct context c = {.meta = &m};
    TRY(choose_meta(import, &m));
    TRY(read_signature(import, &m, &c.signature));
    return mgx_tf_import_graph(import, m.graph, import_scope, &c);
}
