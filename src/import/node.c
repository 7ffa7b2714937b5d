// SPDX-License-Identifier: MIT
// Inputs of a node, and how a rule refuses it; see node.h.
#include "import/node.h"

#include <assert.h>
#include <stdarg.h>

struct mgx_ins *mgx_node_in(const struct mgx_node *n, int i)
{
    return i >= 0 && i < n->in_count ? n->in[i] : NULL;
}

enum mgx_status mgx_node_need(struct mgx_node *n, int min_in, int max_in)
{
    assert(min_in >= 0 && (max_in < 0 || min_in <= max_in));
    int count = n->in_count;
    while (count > min_in && !n->in[count - 1])
        count--; // absent ones at the end are as good as none
    if (max_in < 0 && count < min_in)
        return mgx_fail(n->diag, MGX_INVALID, "takes %d inputs or more, given %d", min_in, count);
    if (min_in == max_in && count != min_in)
        return mgx_fail(n->diag, MGX_INVALID, "takes %d input%s, given %d", min_in,
                        min_in == 1 ? "" : "s", count);
    if (count < min_in || (max_in >= 0 && count > max_in))
        return mgx_fail(n->diag, MGX_INVALID, "takes %d to %d inputs, given %d", min_in, max_in,
                        count);
    for (int i = 0; i < min_in; i++)
        if (!n->in[i])
            return mgx_fail(n->diag, MGX_INVALID, "required input %d is absent", i);
    return MGX_OK;
}

enum mgx_status mgx_node_need_floats(struct mgx_node *n, int count)
{
    assert(count >= 0);
    for (int i = 0; i < count && i < n->in_count; i++)
        if (n->in[i] && !mgx_type_is_float(n->in[i]->shape.type))
            return mgx_node_invalid(n, "input %d is of type %s, not of floats", i,
                                    mgx_type_name(n->in[i]->shape.type));
    return MGX_OK;
}

enum mgx_status mgx_node_need_all(struct mgx_node *n)
{
    return mgx_node_need(n, n->in_count ? n->in_count : 1, -1);
}

enum mgx_status mgx_node_status(const struct mgx_node *n)
{
    return n->diag->status != MGX_OK ? n->diag->status
                                     : mgx_program_status(n->module->program, n->diag);
}

enum mgx_status mgx_node_unsupported(struct mgx_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_vfail(n->diag, MGX_UNSUPPORTED, fmt, args);
    va_end(args);
    return n->diag->status;
}

enum mgx_status mgx_node_invalid(struct mgx_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_vfail(n->diag, MGX_INVALID, fmt, args);
    va_end(args);
    return n->diag->status;
}
