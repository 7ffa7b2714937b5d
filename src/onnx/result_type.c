// SPDX-License-Identifier: MIT
// Element types of a node's results, for nodes that are imported only when they run: what the rule
// says of them (node.h), read against the node's inputs and attributes.
#include <string.h>

#include "onnx/graph.h"

static enum mgx_type type_of_input(const struct mgx_node *n, int i)
{
    const struct mgx_ins *in = mgx_node_in(n, i);
    return in ? in->shape.type : MGX_FLOAT;
}

static enum mgx_type element_of_input(const struct mgx_node *n, int i)
{
    const struct mgx_ins *in = mgx_node_in(n, i);
    if (!in)
        return MGX_FLOAT;
    return in->shape.sub_count ? in->shape.sub[0].type : in->shape.type;
}

// The type an attribute names, if it does.
static bool type_of_attribute(const struct mgx_node *n, const char *name, enum mgx_type *out)
{
    const int64_t number = mgx_onnx_has(n, name) ? mgx_onnx_int(n, name, 0) : 0;
    struct mgx_diag ignored;
    mgx_diag_clear(&ignored);
    return number && mgx_onnx_type_of(number, out, &ignored) == MGX_OK;
}

static enum mgx_type type_of_tensor(const struct mgx_node *n, const char *name)
{
    const struct mgx_ins *value = mgx_onnx_has(n, name) ? mgx_onnx_tensor(n, name) : NULL;
    return value ? value->shape.type : MGX_FLOAT;
}

static enum mgx_type type_of_code(const struct mgx_node *n, char code, bool *sequence)
{
    switch (code) {
    case 'b':
        return MGX_BOOL;
    case 'c':
        return mgx_onnx_texts(n, "classlabels_strings").count ? MGX_STRING : MGX_INT64;
    case 'f':
        return MGX_FLOAT;
    case 'i':
        return MGX_INT32;
    case 'l':
        return MGX_INT64;
    case 't':
        return MGX_STRING;
    case 'u':
        return MGX_UINT8;
    case 'q':
        *sequence = true;
        return element_of_input(n, 0);
    case 's':
        *sequence = true;
        return type_of_input(n, 0);
    case 'o':
        return type_of_input(n, 0) == MGX_STRING ? MGX_INT64 : MGX_STRING;
    case 'e':
        return element_of_input(n, 0);
    default:
        return type_of_input(n, code - '0');
    }
}

static bool is_optional(const char *entry)
{
    return entry[0] >= '0' && entry[0] <= '9' && entry[1] == '?';
}

// What follows the entry of one result.
static const char *after(const char *entry)
{
    while (entry[0] == '@' || is_optional(entry))
        entry += entry[0] == '@' ? 1 : 2;
    return entry + 1;
}

static enum mgx_type type_of_entry(const struct mgx_node *n, const char *entry, const char *name,
                                   bool *sequence)
{
    enum mgx_type type;
    for (;; entry += entry[0] == '@' ? 1 : 2) {
        if (entry[0] == '@' && type_of_attribute(n, name, &type))
            return type;
        if (is_optional(entry) && mgx_node_in(n, entry[0] - '0'))
            return type_of_input(n, entry[0] - '0');
        if (entry[0] != '@' && !is_optional(entry))
            return type_of_code(n, *entry, sequence);
    }
}

// --- Loop, If and Scan: what their body says ---

// Shapes of what a body is given, as far as types go.
static struct mgx_shape *given_to_body(const struct mgx_node *n, int *count)
{
    const bool loop = strcmp(n->op_type, "Loop") == 0;
    const int first = strcmp(n->op_type, "If") == 0 ? n->in_count : n->opset < 9 && !loop;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(n->scratch, struct mgx_shape, n->in_count + 2);
    *count = 0;
    for (int i = first; shapes && i < n->in_count; i++)
        shapes[(*count)++] = mgx_shape_unranked(type_of_input(n, i));
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
    const char *codes = n->rule && n->rule->result ? n->rule->result : "0";
    const char *name = n->rule ? n->rule->result_attribute : NULL;
    enum mgx_type type;
    *sequence = false;
    if (codes[0] == 'B' || codes[0] == 'C') {
        const int at = codes[0] == 'C' ? i + 1 : i;
        if (mgx_onnx_declared_type(n, name, at, &type, sequence) ||
            type_of_trial(n, name, at, &type, sequence))
            return type;
        return type_of_code(n, '0', sequence);
    }
    if (codes[0] == 'v')
        return type_of_tensor(n, name);
    const char *entry = codes;
    for (; i > 0 && *after(entry); i--)
        entry = after(entry);
    return type_of_entry(n, entry, name, sequence);
}
