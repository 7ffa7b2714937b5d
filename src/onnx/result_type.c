// SPDX-License-Identifier: MIT
// Element types of a node's results, for nodes that are imported only when they run: what the rule
// says of them (node.h), read against the node's inputs and attributes.
#include <string.h>

#include "onnx/graph.h"

static enum mgx_type type_of_input(const struct mgx_onnx_node *n, int i)
{
    const struct mgx_ins *in = mgx_onnx_in(n, i);
    return in ? in->shape.type : MGX_FLOAT;
}

static enum mgx_type element_of_input(const struct mgx_onnx_node *n, int i)
{
    const struct mgx_ins *in = mgx_onnx_in(n, i);
    if (!in)
        return MGX_FLOAT;
    return in->shape.sub_count ? in->shape.sub[0].type : in->shape.type;
}

// The type an attribute names, if it does.
static bool type_of_attribute(const struct mgx_onnx_node *n, const char *name, enum mgx_type *out)
{
    const int64_t number = mgx_onnx_has(n, name) ? mgx_onnx_int(n, name, 0) : 0;
    struct mgx_diag ignored;
    mgx_diag_clear(&ignored);
    return number && mgx_onnx_type_of(number, out, &ignored) == MGX_OK;
}

static enum mgx_type type_of_code(const struct mgx_onnx_node *n, char code, bool *sequence)
{
    switch (code) {
    case 'b':
        return MGX_BOOL;
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
    case 'e':
        return element_of_input(n, 0);
    default:
        return type_of_input(n, code - '0');
    }
}

enum mgx_type mgx_onnx_result_type(const struct mgx_onnx_node *n, int i, bool *sequence)
{
    const char *codes = n->rule && n->rule->result ? n->rule->result : "0";
    const char *name = n->rule ? n->rule->result_attribute : NULL;
    enum mgx_type type;
    *sequence = false;
    if (codes[0] == 'B' || codes[0] == 'C') {
        if (mgx_onnx_declared_type(n, name, codes[0] == 'C' ? i + 1 : i, &type, sequence))
            return type;
        return type_of_code(n, '0', sequence);
    }
    if (codes[0] == '@') {
        if (type_of_attribute(n, name, &type))
            return type;
        return type_of_code(n, codes[1], sequence);
    }
    const int last = (int)strlen(codes) - 1;
    return type_of_code(n, codes[i < last ? i : last], sequence);
}
