// SPDX-License-Identifier: MIT
// concat of a tensor that grows round by round, or run by run: it is continued in place.
//
//     first  (lines of rows, and what else)      ||  more  =>  first, each of its lines longer
//
// A loop that collects its results joins all it has with one more; copying all of it every round is
// quadratic. So does a decoder that is handed its cache and gives it back with a row more, one for
// every head. Here the result gets room for as much again behind each of its lines, and the next
// round's join finds that room behind its first input (plan/blocks.h): it writes the new rows only.
// The first input keeps its own lengths and sees nothing of it, so nobody needs to know who else
// reads it.
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/blocks.h"
#include "targets/cpu/lower/lower.h"

// A tensor as lines of bytes, one for every index of the axes before the one that grows.
struct lines {
    int64_t count;
    size_t bytes, apart; // of a line; from one to the next
};

// Are axes [from, to) one behind the other in memory, the last `step` elements apart?
static bool are_one(const struct mgx_shape *s, int from, int to, int64_t step)
{
    for (int i = to - 1; i >= from; i--) {
        if (s->lens[i] != 1 && s->strides[i] != step)
            return false;
        step *= s->lens[i];
    }
    return true;
}

static bool find_lines(const struct mgx_shape *s, int axis, struct lines *l)
{
    int last = axis - 1; // the axis whose index counts the lines
    while (last >= 0 && s->lens[last] == 1)
        last--;
    const int64_t apart = last >= 0 ? s->strides[last] : 0;
    *l = (struct lines){.count = 1,
                        .bytes = mgx_shape_row_bytes(s, axis) * (size_t)s->lens[axis],
                        .apart = (size_t)apart * mgx_type_size(s->type)};
    for (int i = 0; i < axis; i++)
        l->count *= s->lens[i];
    return are_one(s, axis, s->rank, 1) && are_one(s, 0, last + 1, apart);
}

// Outside of bodies only what grows by little: other concats happen once. What is small is copied
// as fast.
static bool grows(const struct mgx_compute_call *c, int axis)
{
    enum { LITTLE = 8, SMALL = 4096 };
    const int64_t all = c->out_shape->lens[axis];
    return mgx_shape_bytes(c->out_shape) >= SMALL &&
           (c->eval->depth >= 2 || all - c->in[0]->shape.lens[axis] <= all / LITTLE);
}

// Lines of a few bytes are better copied by who looks at all axes.
static bool suits(const struct mgx_compute_call *c, int axis)
{
    enum { SHORT = 64 };
    const struct mgx_shape *s = c->out_shape;
    struct lines l;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i]->sub || !find_lines(&c->in[i]->shape, axis, &l) ||
            (l.count > 1 && l.bytes && l.bytes < SHORT))
            return false;
    return c->in_count >= 2 && mgx_type_is_number(s->type) && mgx_shape_is_static(s) &&
           mgx_shape_is_standard(s);
}

// One input, `at` bytes into every line of the result.
static void put(const struct mgx_compute_call *c, int i, int axis, size_t at)
{
    struct lines from, to;
    (void)!find_lines(&c->in[i]->shape, axis, &from);
    (void)!find_lines(&c->out->shape, axis, &to);
    for (int64_t l = 0; l < from.count && from.bytes; l++)
        memcpy((char *)c->out->data + (size_t)l * to.apart + at,
               (const char *)c->in[i]->data + (size_t)l * from.apart, from.bytes);
}

// The first input with more rows, which are the caller's to fill.
static bool extend(struct mgx_compute_call *c, int axis)
{
    const struct mgx_tensor *first = c->in[0];
    const int64_t more = c->out_shape->lens[axis] - first->shape.lens[axis];
    if (!first->shape.lens[axis] || !mgx_plan_block_extend(first, axis, more))
        return false;
    *c->out = mgx_tensor_share(first);
    c->out->shape.lens[axis] += more;
    if (!first->storage->grows) // strides of what follows one another
        c->out->shape = *c->out_shape;
    return true;
}

static enum mgx_status make(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c, int axis)
{
    const int64_t first = c->in[0]->shape.lens[axis], all = c->out_shape->lens[axis];
    if (!grows(c, axis))
        return mgx_eval_create(c, c->out_shape);
    const int64_t row = (int64_t)mgx_shape_bytes(c->out_shape) / all; // under one index of the axis
    const int64_t room = mgx_max_i64(2 * first, MGX_PLAN_BLOCK_BYTES / row);
    return mgx_plan_block_growing(blocks, c->out_shape, axis, first >= all / 2 ? room : all, c->out,
                                  c->diag);
}

enum mgx_status cpu_concat_append(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                                  bool *done)
{
    const int axis = mgx_wrap_axis(mgx_attr_int(c->op, c->attr, "axis"), c->out_shape->rank);
    if (!suits(c, axis))
        return MGX_OK;
    void *at_caller = mgx_eval_wanted(c);
    const bool extended = !at_caller && extend(c, axis);
    if (at_caller)
        *c->out = mgx_tensor_borrow(c->out_shape, at_caller);
    else if (!extended)
        TRY(make(blocks, c, axis));
    const size_t row = mgx_shape_row_bytes(c->out_shape, axis);
    size_t at = 0;
    for (int i = 0; i < c->in_count; i++) {
        if (i > 0 || !extended)
            put(c, i, axis, at);
        at += row * (size_t)c->in[i]->shape.lens[axis];
    }
    *done = true;
    return MGX_OK;
}
