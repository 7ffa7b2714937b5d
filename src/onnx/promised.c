// SPDX-License-Identifier: MIT
// What a rule's row promises of the element types of its results (node.h), read against the node's
// inputs and attributes. What bodies say is result_type.c's.
#include <assert.h>
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

// The type an attribute names, if it does: 0 is that of the first input.
static bool type_of_attribute(const struct mgx_node *n, const char *name, enum mgx_type *out)
{
    assert(name); // the row names it: result_attribute
    const int64_t number = mgx_onnx_has(n, name) ? mgx_onnx_int(n, name, 0) : 0;
    struct mgx_diag ignored;
    *out = type_of_input(n, 0);
    if (!number && mgx_onnx_has(n, name))
        return true;
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
    assert(strchr("bcfiltuoqse0123456789", code));
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

bool mgx_onnx_promised_type(const struct mgx_node *n, int i, enum mgx_type *type, bool *sequence)
{
    const char *codes = n->rule && n->rule->result ? n->rule->result : "0";
    const char *name = n->rule ? n->rule->result_attribute : NULL, *entry = codes;
    assert(i >= 0);
    *sequence = false;
    if (codes[0] == 'B' || codes[0] == 'C')
        return false;
    for (; i > 0 && *after(entry); i--)
        entry = after(entry);
    *type = codes[0] == 'v' ? type_of_tensor(n, name) : type_of_entry(n, entry, name, sequence);
    return true;
}
