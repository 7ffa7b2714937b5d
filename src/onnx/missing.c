// SPDX-License-Identifier: MIT
// Operators that cannot be imported, as import/missing.h lists them: their names, versions and
// nodes.
#include <string.h>

#include "onnx/graph.h"

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
    TRY(mgx_missing_poison(&import->missing, import->program, import->diag));
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
