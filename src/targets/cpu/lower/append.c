// SPDX-License-Identifier: MIT
// concat of a tensor that grows round by round, or run by run: it is continued in place.
//
// A loop that collects its results joins all it has with one more; copying all of it every round is
// quadratic. So does a decoder that is handed its cache and gives it back with a row more. Here the result gets room for as much again, and the next round's join finds that room
// behind its first input (blocks.h): it writes the new part only. The first input keeps its own
// lengths and sees nothing of it, so nobody needs to know who else reads it.
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/blocks.h"
#include "targets/cpu/lower/lower.h"

// All of one input lies before all of the next.
static bool side_by_side(const struct mgx_compute_call *c, int axis)
{
    for (int i = 0; i < axis; i++)
        if (c->out_shape->lens[i] != 1)
            return false;
    for (int i = 0; i < c->in_count; i++)
        if (!mgx_shape_is_standard(&c->in[i]->shape) || c->in[i]->sub)
            return false;
    return true;
}

// Outside of bodies only what grows by little: other concats happen once.
static bool grows(const struct mgx_compute_call *c)
{
    enum { LITTLE = 8 };
    const size_t all = mgx_shape_bytes(c->out_shape);
    return c->eval->depth >= 2 || all - mgx_shape_bytes(&c->in[0]->shape) <= all / LITTLE;
}

static bool suits(const struct mgx_compute_call *c)
{
    const struct mgx_shape *s = c->out_shape;
    if (c->in_count < 2 || !mgx_shape_is_static(s) || s->type == MGX_STRING ||
        s->type == MGX_TUPLE || s->type == MGX_SEQUENCE || !mgx_shape_is_standard(s) ||
        mgx_shape_bytes(s) < MGX_PLAN_BLOCK_BYTES || !grows(c))
        return false;
    const int64_t axis = mgx_attr_int(c->op, c->attr, "axis");
    return side_by_side(c, mgx_wrap_axis(axis, s->rank));
}

enum mgx_status cpu_concat_append(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                                  bool *done)
{
    if (!suits(c))
        return MGX_OK;
    const size_t all = mgx_shape_bytes(c->out_shape), first = mgx_shape_bytes(&c->in[0]->shape);
    int from = 1;
    size_t at = first;
    if (first && mgx_plan_block_extend(c->in[0], all - first)) {
        *c->out = mgx_tensor_share(c->in[0]);
        c->out->shape = *c->out_shape;
    } else {
        const size_t capacity = first >= all / 2 && all < SIZE_MAX / 2 ? 2 * all : all;
        TRY(mgx_plan_block_tensor(blocks, c->out_shape, capacity, c->out, c->diag));
        from = 0;
        at = 0;
    }
    for (int i = from; i < c->in_count; i++) {
        const size_t bytes = mgx_shape_bytes(&c->in[i]->shape);
        if (bytes)
            memcpy((char *)c->out->data + at, c->in[i]->data, bytes);
        at += bytes;
    }
    *done = true;
    return MGX_OK;
}
