// SPDX-License-Identifier: MIT
// Element types of a node's results, for nodes that are imported only when they run: what the rule
// says of them (promised.c), and for Loop, If and Scan what their bodies do.
#include <string.h>

#include "onnx/graph.h"

// --- Loop, If and Scan: what their body says ---

// Shapes of what a body is given, as far as types go.
static struct mgx_shape *given_to_body(const struct mgx_node *n, int *count)
{
    const bool loop = strcmp(n->op_type, "Loop") == 0;
    const int first = strcmp(n->op_type, "If") == 0 ? n->in_count : n->opset < 9 && !loop;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(n->scratch, struct mgx_shape, n->in_count + 2);
    *count = 0;
    for (int i = first; shapes && i < n->in_count; i++)
        shapes[(*count)++] =
            mgx_shape_unranked(mgx_node_in(n, i) ? mgx_node_in(n, i)->shape.type : MGX_FLOAT);
    if (shapes && loop) {
        shapes[0] = mgx_shape_scalar(MGX_INT64);
        shapes[1] = mgx_shape_scalar(MGX_BOOL);
        *count = n->in_count > 2 ? n->in_count : 2;
    }
    return shapes;
}

// Takes back what a trial added, the bodies in its body first, and what it had to say; only that
// memory ran out stays said.
static void end_trial(const struct mgx_node *n, int module_count, const struct mgx_diag *said,
                      const struct mgx_diag *built)
{
    struct mgx_program *p = n->module->program;
    const bool starved =
        n->diag->status == MGX_NO_MEMORY || mgx_program_status(p, NULL) == MGX_NO_MEMORY;
    while (p->module_count > module_count)
        mgx_program_remove_module(p, p->modules[p->module_count - 1]);
    *n->diag = *said;
    p->diag = *built;
    if (starved)
        mgx_fail_memory(&p->diag);
}

// A body that does not declare its results is imported to see them, and goes. Not in bodies of
// bodies, where trials would multiply.
static bool type_of_trial(const struct mgx_node *n, const char *name, int i, enum mgx_type *type,
                          bool *sequence)
{
    enum { DEEPEST = 2 };
    struct mgx_program *p = n->module->program;
    const struct mgx_diag said = *n->diag, built = p->diag;
    const int before = p->module_count;
    int count;
    const struct mgx_shape *shapes = given_to_body(n, &count);
    if (!shapes || n->graph->depth > DEEPEST)
        return false;
    struct mgx_module *m = mgx_onnx_body(n, name, shapes, count);
    const bool good = m && i < mgx_module_result_count(m);
    if (good) {
        const struct mgx_shape *s = &mgx_module_result(m, i)->shape;
        *sequence = s->type == MGX_SEQUENCE;
        *type = *sequence && s->sub_count ? s->sub[0].type : s->type;
    }
    end_trial(n, before, &said, &built);
    return good && *type != MGX_TUPLE && *type != MGX_SEQUENCE;
}

enum mgx_type mgx_onnx_result_type(const struct mgx_node *n, int i, bool *sequence)
{
    enum mgx_type type;
    if (mgx_onnx_promised_type(n, i, &type, sequence))
        return type;
    const int at = n->rule->result[0] == 'C' ? i + 1 : i;
    const char *name = n->rule->result_attribute;
    if (mgx_onnx_declared_type(n, name, at, &type, sequence) ||
        type_of_trial(n, name, at, &type, sequence))
        return type;
    const struct mgx_ins *in = mgx_node_in(n, 0);
    return in ? in->shape.type : MGX_FLOAT;
}
