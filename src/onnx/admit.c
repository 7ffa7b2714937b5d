// SPDX-License-Identifier: MIT
// Spares rules the inputs that they are not meant for: strings, complex numbers, sequences and
// optionals go to the few dozen operators whose rules take them (node.h).
#include "onnx/graph.h"

#include <assert.h>

static unsigned kind_of(enum mgx_type type)
{
    return type == MGX_STRING          ? MGX_ONNX_TEXT
           : mgx_type_is_complex(type) ? MGX_ONNX_COMPLEX
           : type == MGX_SEQUENCE      ? MGX_ONNX_SEQUENCE
           : type == MGX_TUPLE         ? MGX_ONNX_OPTIONAL
                                       : 0;
}

enum mgx_status mgx_onnx_admit(struct mgx_node *n)
{
    assert(n->rule && n->in_count >= 0);
    unsigned kinds = 0;
    for (int i = 0; i < n->in_count; i++)
        kinds |= n->in[i] ? kind_of(n->in[i]->shape.type) : 0;
    const unsigned allowed = n->rule->takes;
    for (int i = 0; kinds & ~allowed && i < n->in_count; i++)
        if (n->in[i] && kind_of(n->in[i]->shape.type) & ~allowed)
            return mgx_node_invalid(n, "input %d is of type %s, which the operator does not take",
                                    i, mgx_type_name(n->in[i]->shape.type));
    return MGX_OK;
}
