// SPDX-License-Identifier: MIT
// Operators that cannot be imported. The walk goes on past one, with a poison value in place of its
// results, so that one failure lists all of them instead of the first.
#include <string.h>

#include "onnx/graph.h"

static enum mgx_status make_poison(struct mgx_onnx_import *import)
{
    if (import->poison)
        return MGX_OK;
    const struct mgx_shape shape = mgx_shape_unranked(MGX_FLOAT);
    import->poison = mgx_add_parameter(mgx_program_main(import->program), "#unsupported", &shape);
    return import->poison ? MGX_OK : mgx_program_status(import->program, import->diag);
}

// The first line of a failure, and what it is about as the key: one row per operator and reason.
static const char *key_of(struct mgx_node *n, const char *why, const char **reason)
{
    struct mgx_arena *arena = &n->graph->import->arena;
    const char *end = strchr(why, '\n');
    *reason = mgx_arena_strndup(arena, why, end ? (size_t)(end - why) : strlen(why));
    return mgx_arena_printf(arena, "%s%s%s (opset %lld)", n->domain, *n->domain ? "::" : "",
                            n->op_type, (long long)n->opset);
}

enum mgx_status mgx_onnx_add_missing(struct mgx_node *n, const char *why)
{
    struct mgx_onnx_import *import = n->graph->import;
    const char *reason, *key = key_of(n, why, &reason);
    mgx_diag_clear(import->diag); // a rule's refusal becomes a row of the list
    if (import->options.quick_reject)
        return mgx_fail(import->diag, MGX_UNSUPPORTED, "%s: %s", key, reason);
    if (!key || !reason)
        return mgx_fail_memory(import->diag);
    TRY(make_poison(import));
    const char *full = mgx_arena_printf(&import->arena, "%s: %s", key, reason);
    struct mgx_onnx_missing *row = full ? mgx_map_find(&import->missing, full) : NULL;
    if (row) {
        row->count++;
        return MGX_OK;
    }
    row = MGX_NEW(&import->arena, struct mgx_onnx_missing);
    if (!row || !full || !mgx_map_put(&import->missing, full, row))
        return mgx_fail_memory(import->diag);
    const struct mgx_onnx_node_proto *proto = n->wire;
    const struct mgx_slice name = proto->name.size   ? proto->name
                                  : proto->out.count ? proto->out.v[0]
                                                     : proto->name;
    *row = (struct mgx_onnx_missing){.what = key, .why = reason, .count = 1};
    row->node = mgx_arena_printf(&import->arena, "%.*s", MGX_SLICE(name));
    *import->last_missing = row;
    import->last_missing = &row->next;
    return row->node ? MGX_OK : mgx_fail_memory(import->diag);
}

enum mgx_status mgx_onnx_report_missing(struct mgx_onnx_import *import)
{
    if (!import->first_missing)
        return MGX_OK;
    enum { ROOM = MGX_DIAG_TEXT_SIZE - 400 };
    struct mgx_str text = {0};
    int64_t rows = 0, left = 0;
    for (const struct mgx_onnx_missing *m = import->first_missing; m; m = m->next, rows++) {
        if (text.size > ROOM) {
            left++;
            continue;
        }
        mgx_str_printf(&text, "\n  %.200s: %.300s; %lld node%s, first \"%.100s\"", m->what, m->why,
                       (long long)m->count, m->count == 1 ? "" : "s", m->node);
    }
    if (left)
        mgx_str_printf(&text, "\n  and %lld more", (long long)left);
    mgx_str_put(&text, "\n  (skip_unknown_operators keeps what is not known as placeholders)");
    mgx_diag_clear(import->diag);
    mgx_fail(import->diag, MGX_UNSUPPORTED, "%lld operator%s not supported:%s", (long long)rows,
             rows == 1 ? " is" : "s are", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_UNSUPPORTED;
}
