// SPDX-License-Identifier: MIT
// What follows from a range that is found while it runs is worked out where it is read.
//
//     multibroadcast(f(byte_range(x)[i], c))  =>  f(multibroadcast(byte_range(x)[i]), multibroadcast(c))
//
//     quantizelinear(x, r[0], r[1])  =>  quantizelinear(x r[2] + r[3], 1 / 255)       r: byte_range(y)
//     byte_range(reshape(x))  =>  byte_range(x)                   or whatever else moves all of x
//     quantizelinear(maxima(x), byte_range(maxima(x)))  =>  maxima(quantizelinear(x, byte_range(x)))
//                                                       where x is never negative
//
// f is a few light element-wise steps of one number, or of one for each column: a scale times
// those of the weights, a zero point times their sums. Each would be a launch of its own; as a
// step of the product's end, or of what quantizes, it costs an instruction. What is quantized is
// no longer divided, and its byte's range is that of 0 to 1 (scale_once says what that does to
// ties). Rules that work before a broadcast instead of behind it would undo this, so it runs
// last before fusing, on the GPU target.
#include "op/reference/pool.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

enum { DEEPEST = 12, MOST = 1 << 14 }; // steps of f; numbers that it is worked out for

static bool is_light(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_mul || ins->op == &mgx_op_add || ins->op == &mgx_op_sub ||
           ins->op == &mgx_op_convert || ins->op == &mgx_op_neg;
}

static bool is_renamed(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_reshape || ins->op == &mgx_op_squeeze || ins->op == &mgx_op_unsqueeze;
}

// Axes in front, of one place each: they say nothing where a broadcast adds some.
static int idle_axes(const struct mgx_shape *s)
{
    int axis = 0;
    while (axis < s->rank - 1 && s->lens[axis] == 1)
        axis++;
    return axis;
}

// Are the input's places, but for such axes, those of `ins`?
static bool is_named_again(const struct mgx_ins *ins)
{
    if (!is_renamed(ins))
        return false;
    const struct mgx_shape *x = &ins->in[0]->shape, *y = &ins->shape;
    const int a = idle_axes(x), b = idle_axes(y);
    bool same = x->rank - a == y->rank - b;
    for (int axis = b; axis < y->rank && same; axis++)
        same = y->lens[axis] == x->lens[axis - b + a];
    return same || (mgx_shape_elements(x) == 1 && mgx_shape_elements(y) == 1);
}

// Does it follow in light steps from a range?
static bool is_of_range(const struct mgx_ins *ins, int depth)
{
    if (ins->literal || depth == 0 || !mgx_shape_is_static(&ins->shape) ||
        mgx_shape_elements(&ins->shape) > MOST)
        return false;
    if (ins->op == &mgx_op_slice)
        return ins->in[0]->op == &mgx_op_byte_range;
    if (!is_light(ins) && !is_named_again(ins) && ins->op != &mgx_op_multibroadcast)
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (is_of_range(ins->in[i], depth - 1))
            return true;
    return false;
}

// What is seen by other names.
static struct mgx_ins *named(struct mgx_ins *ins)
{
    while (is_named_again(ins))
        ins = ins->in[0];
    return ins;
}

static struct mgx_ins *spread_leaf(struct mgx_ins *at, struct mgx_ins *ins,
                                   const struct mgx_shape *like)
{
    const int idle = idle_axes(&ins->shape);
    const int64_t one = 1;
    if (mgx_shape_elements(&ins->shape) == 1)
        ins = mgx_emit_reshape(at, ins, &one, 1);
    else if (idle > 0)
        ins = mgx_emit_reshape(at, ins, ins->shape.lens + idle, ins->shape.rank - idle);
    return mgx_emit_multibroadcast(at, ins, like->lens, like->rank);
}

static struct mgx_ins *spread(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_shape *like,
                              int depth)
{
    enum { INPUTS = 4 };
    struct mgx_ins *in[INPUTS];
    while ((ins = named(ins))->op == &mgx_op_multibroadcast)
        ins = ins->in[0];
    if (!is_of_range(ins, depth) || ins->op == &mgx_op_slice || ins->in_count > INPUTS)
        return spread_leaf(at, ins, like);
    for (int i = 0; i < ins->in_count; i++)
        if (!(in[i] = spread(at, ins->in[i], like, depth - 1)))
            return NULL;
    return mgx_emit_again(at, ins, in, ins->in_count);
}

// What a broadcast, by whichever name, spreads; NULL: it is none.
static struct mgx_ins *spread_of(struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_multibroadcast && !is_named_again(ins))
        return NULL;
    ins = named(ins);
    return ins->op == &mgx_op_multibroadcast ? named(ins->in[0]) : NULL;
}

static bool is_read_by_place(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!(use->user->op->flags & MGX_OP_POINTWISE))
            return false;
    return true;
}

// The range whose part of that number an operand is everywhere; NULL: of none.
static struct mgx_ins *range_of(struct mgx_ins *ins, int number)
{
    while (ins->op == &mgx_op_multibroadcast || is_renamed(ins) || ins->op == &mgx_op_convert)
        ins = ins->in[0];
    return ins->op == &mgx_op_slice && ins->in[0]->op == &mgx_op_byte_range &&
                   mgx_ins_ints(ins, "starts").v[0] == number
               ? ins->in[0]
               : NULL;
}

static struct mgx_ins *part_over(struct mgx_ins *at, const struct mgx_shape *like,
                                 struct mgx_ins *range, int number)
{
    return mgx_emit_multibroadcast(at, mgx_emit_slice(at, range, 0, number, number + 1), like->lens,
                                   like->rank);
}

// Maxima of windows that leave no place out, of values of which 0 is the lowest: their range is
// that of what they are of, and bytes of them are the largest bytes. What is put together of
// several has no one product that leaves it as bytes.
static bool keeps_range(const struct mgx_ins *pool)
{
    if (pool->op != &mgx_op_pooling || mgx_ins_int(pool, "mode") != 1 ||
        pool->in[0]->op == &mgx_op_concat || !mgx_is_nonnegative(pool->in[0]))
        return false;
    const struct mgx_pool_attr a = mgx_pool_of(pool);
    const int spatial = pool->shape.rank - 2;
    bool all = mgx_ints_all(mgx_ins_ints(pool, "dilations"), 1);
    for (int d = 0; d < spatial && all; d++)
        all = a.stride.v[d] <= a.lengths.v[d] &&
              (pool->shape.lens[d + 2] - 1) * a.stride.v[d] + a.lengths.v[d] - a.padding.v[d] >=
                  pool->in[0]->shape.lens[d + 2];
    return all;
}

// Is its zero point that of the range, which is 0 where values are never negative?
static bool has_zero_of(const struct mgx_ins *quantize, const struct mgx_ins *range)
{
    if (quantize->in_count == 3 && range_of(quantize->in[2], 1) == range)
        return true;
    return (quantize->in_count == 2 || mgx_is_splat(quantize->in[2], 0)) &&
           mgx_is_nonnegative(range->in[0]);
}

// Does nobody else read it, but for what nobody reads any more?
static bool reads_alone(const struct mgx_ins *reader, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user != reader && use->user->uses)
            return false;
    return true;
}

// What is quantized by a range, as a share of it; NULL: it is not.
static struct mgx_ins *share(struct mgx_ins *ins)
{
    struct mgx_ins *range = ins->op == &mgx_op_quantizelinear && ins->shape.type == MGX_UINT8 &&
                                    ins->in[0]->shape.type == MGX_FLOAT
                                ? range_of(ins->in[1], 0)
                                : NULL;
    if (!range || !has_zero_of(ins, range))
        return NULL;
    struct mgx_ins *pool = ins->in[0], *from = pool;
    const bool first = keeps_range(pool) && range->in[0] == pool->in[0] && reads_alone(ins, pool);
    if (first)
        from = pool->in[0];
    const struct mgx_shape like = from->shape;
    struct mgx_ins *x = mgx_emit_binary(ins, &mgx_op_mul, from, part_over(ins, &like, range, 2));
    x = mgx_emit_binary(ins, &mgx_op_add, x, part_over(ins, &like, range, 3));
    struct mgx_ins *in[] = {x, mgx_emit_splat(ins, &like, (float)(1 / 255.0))};
    x = x && in[1] ? mgx_insert(ins->owner, ins, ins->op, ins->attr, in, 2, NULL, 0) : NULL;
    return x && first ? mgx_emit_again(ins, pool, &x, 1) : x;
}

static bool moves_all(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_reshape || ins->op == &mgx_op_transpose ||
           ins->op == &mgx_op_contiguous || ins->op == &mgx_op_squeeze ||
           ins->op == &mgx_op_unsqueeze || ins->op == &mgx_op_flatten;
}

// The range of what is moved, from where it was before; NULL: it is that already.
static struct mgx_ins *earlier(struct mgx_ins *ins)
{
    struct mgx_ins *from = ins->in[0];
    while (moves_all(from) || keeps_range(from))
        from = from->in[0];
    return from != ins->in[0] && from->next
               ? mgx_emit_unary(from->next, &mgx_op_byte_range, from) // beside what makes it
               : NULL;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct mgx_ins *before = ins->op == &mgx_op_byte_range ? earlier(ins) : NULL;
        if (before) {
            mgx_replace_uses(ins, before);
            c->changed = true;
            continue;
        }
        struct mgx_ins *shared = share(ins);
        if (shared) {
            mgx_replace_uses(ins, shared);
            c->changed = true;
            continue;
        }
        struct mgx_ins *from = spread_of(ins);
        if (!from || from->op == &mgx_op_slice || !is_read_by_place(ins) ||
            !is_of_range(from, DEEPEST))
            continue;
        const struct mgx_shape like = ins->shape;
        struct mgx_ins *wide = spread(ins, from, &like, DEEPEST);
        if (!wide)
            return mgx_program_status(c->program, c->diag);
        mgx_replace_uses(ins, wide);
        c->changed = true;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_spread_byte_range = {
    .name = "spread_byte_range",
    .meaning = "what follows from a range found while it runs is worked out where it is read",
    .module = run,
};
