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

enum mgx_status mgx_onnx_add_missing(struct mgx_node *n, const char *why)
{
    struct mgx_onnx_import *import = n->graph->import;
    const char *key = mgx_arena_printf(n->scratch, "%s%s%s (opset %lld)", n->domain,
                                       *n->domain ? "::" : "", n->op_type, (long long)n->opset);
    const char *reason = mgx_arena_strdup(n->scratch, why);
    mgx_diag_clear(import->diag); // a rule's refusal becomes a row of the list
    if (!key || !reason)
        return mgx_fail_memory(import->diag);
    if (import->options.quick_reject)
        return mgx_fail(import->diag, MGX_UNSUPPORTED, "%s: %.*s", key, (int)strcspn(reason, "\n"),
                        reason);
    TRY(make_poison(import));
    const struct mgx_onnx_node_proto *proto = n->wire;
    const struct mgx_slice name = proto->name.size   ? proto->name
                                  : proto->out.count ? proto->out.v[0]
                                                     : proto->name;
    return mgx_missing_add(&import->missing, key, reason, name, import->diag);
}

enum mgx_status mgx_onnx_report_missing(struct mgx_onnx_import *import)
{
    return mgx_missing_report(&import->missing,
                              "skip_unknown_operators keeps what is not known as placeholders",
                              import->diag);
}
