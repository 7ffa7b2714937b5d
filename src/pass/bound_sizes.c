// SPDX-License-Identifier: MIT
// Results as long as values say are computed at their largest size, and cut off as late as can be.
//
//     nonzero(x)            =>  shorten[axis=1](front(l), count(l))    l = nonzero_list(x)
//     nonmaxsuppression(..) =>  shorten(front(l), count(l))            l = nonmaxsuppression_list(..)
//     unique(x)             =>  shorten(gather(x, positions), count(l)), ...   l = unique_list(x)
//     f(shorten(x, n))      =>  shorten(f(x), n)      f: element-wise of one operand, a gather by x,
//                                   a reshape to a line, a transpose, a slice or squeeze of other axes
//
// For targets whose kernels write results of fixed sizes: what stands before `shorten` is theirs.
// Asks the target, if there is one, about every such operator (tag "bounded"), which says no where
// the largest size is far from what may be expected. Main module only. Holds: inputs have fixed
// shapes. O(instructions).
#include "base/size.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"

static struct mgx_ins *shorten(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *n, int axis)
{
    return mgx_emit_before(at, &mgx_op_shorten, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x, n));
}

// The same attributes, another operator.
static struct mgx_ins *list_of(struct mgx_ins *ins, const struct mgx_op *op)
{
    return mgx_insert(ins->owner, ins, op, ins->attr, ins->in, ins->in_count, NULL, 0);
}

static struct mgx_ins *count_of(struct mgx_ins *at, struct mgx_ins *list)
{
    const int64_t length = list ? list->shape.lens[0] : 0;
    return mgx_emit_slice(at, list, 0, length - 1, length);
}

// --- operators ---

static struct mgx_ins *list_nonzero(struct mgx_ins *ins)
{
    const struct mgx_shape *x = &ins->in[0]->shape;
    const int64_t lens[] = {x->rank, mgx_shape_elements(x)};
    struct mgx_ins *list = list_of(ins, &mgx_op_nonzero_list);
    struct mgx_ins *rows = mgx_emit_slice(ins, list, 0, 0, lens[0] * lens[1]);
    return shorten(ins, mgx_emit_reshape(ins, rows, lens, 2), count_of(ins, list), 1);
}

static struct mgx_ins *list_boxes(struct mgx_ins *ins)
{
    struct mgx_ins *list = list_of(ins, &mgx_op_nonmaxsuppression_list);
    const int64_t lens[] = {list ? (list->shape.lens[0] - 1) / 3 : 0, 3};
    struct mgx_ins *rows = mgx_emit_slice(ins, list, 0, 0, 3 * lens[0]);
    return shorten(ins, mgx_emit_reshape(ins, rows, lens, 2), count_of(ins, list), 0);
}

// Member `which` of unique, of its list.
static struct mgx_ins *unique_member(struct mgx_ins *ins, struct mgx_ins *list, int64_t which)
{
    struct mgx_ins *x = ins->in[0], *count = count_of(ins, list);
    const int64_t n = list ? list->shape.lens[0] / 3 : 0, given = mgx_ins_int(ins, "axis");
    const int axis = given == MGX_NONE ? 0 : mgx_wrap_axis(given, x->shape.rank);
    const int part = which == 0 ? 0 : (int)which - 1;
    struct mgx_ins *numbers = mgx_emit_slice(ins, list, 0, part * n, (part + 1) * n);
    if (which == 2)
        return numbers;
    if (which != 0)
        return shorten(ins, numbers, count, 0);
    if (given == MGX_NONE)
        x = mgx_emit_reshape(ins, x, &n, 1);
    struct mgx_ins *values =
        mgx_emit_before(ins, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x, numbers));
    return shorten(ins, values, count, axis);
}

static void replace(struct mgx_ins *ins, struct mgx_ins *by)
{
    if (by && ins == ins->owner->last)
        mgx_add_return(ins->owner, &by, 1);
    if (by)
        mgx_replace_uses(ins, by);
}

static void list_unique(struct mgx_ins *ins)
{
    struct mgx_ins *list = list_of(ins, &mgx_op_unique_list);
    for (struct mgx_use *use = ins->uses, *next; use && list; use = next) {
        next = use->next;
        replace(use->user, unique_member(ins, list, mgx_ins_int(use->user, "index")));
    }
}

static bool is_wanted(const struct mgx_pass_call *c, struct mgx_ins *ins)
{
    const bool boxes = mgx_is(ins, &mgx_op_nonmaxsuppression);
    const bool parts = mgx_is(ins, &mgx_op_unique);
    const struct mgx_region r = {.ins = {ins}, .count = 1};
    if (!boxes && !parts && !mgx_is(ins, &mgx_op_nonzero))
        return false;
    if ((boxes && !mgx_ins_int(ins, "use_dyn_output")) || (parts && !mgx_only_members_read(ins)))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_shape_is_static(&ins->in[i]->shape))
            return false;
    return mgx_shape_elements(&ins->in[0]->shape) > 0 &&
           (!c->options->target.supports ||
            c->options->target.supports(c->options->target.user, "bounded", &r));
}

// --- what follows ---

static struct mgx_ins *past_gather(struct mgx_ins *ins, const struct mgx_ins *cut, int axis)
{
    const struct mgx_shape *x = &ins->in[0]->shape;
    struct mgx_ins *in[] = {ins->in[0], cut->in[0]};
    if (cut != ins->in[1] || !mgx_shape_is_static(x))
        return NULL;
    const int along = mgx_wrap_axis(mgx_ins_int(ins, "axis"), x->rank);
    if (!x->lens[along])
        return NULL;
    return shorten(ins, mgx_emit_again(ins, ins, in, 2), cut->in[1], along + axis);
}

// All other axes are 1 long, and become one line with it.
static struct mgx_ins *past_reshape(struct mgx_ins *ins, const struct mgx_ins *cut, int axis)
{
    const struct mgx_shape *x = &cut->in[0]->shape;
    if (ins->in_count != 1 || ins->shape.rank != 1 || mgx_shape_elements(x) != x->lens[axis])
        return NULL;
    return shorten(ins, mgx_emit_reshape(ins, cut->in[0], &x->lens[axis], 1), cut->in[1], 0);
}

static struct mgx_ins *past_transpose(struct mgx_ins *ins, const struct mgx_ins *cut, int axis)
{
    const struct mgx_ints order = mgx_ins_ints(ins, "permutation");
    for (int k = 0; k < order.count; k++)
        if (order.v[k] == axis)
            return shorten(ins, mgx_emit_again(ins, ins, cut->in, 1), cut->in[1], k);
    return NULL;
}

// Of other axes: `gone` of those before go away.
static struct mgx_ins *past_axes(struct mgx_ins *ins, const struct mgx_ins *cut, int axis)
{
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    const int rank = cut->in[0]->shape.rank;
    int gone = 0;
    if (ins->in_count != 1 || !axes.count)
        return NULL;
    for (int k = 0; k < axes.count; k++) {
        const int other = mgx_wrap_axis(axes.v[k], rank);
        if (other == axis)
            return NULL;
        gone += other < axis && mgx_is(ins, &mgx_op_squeeze);
    }
    return shorten(ins, mgx_emit_again(ins, ins, cut->in, 1), cut->in[1], axis - gone);
}

static struct mgx_ins *past(struct mgx_ins *ins, const struct mgx_ins *cut)
{
    const int axis = mgx_wrap_axis(mgx_ins_int(cut, "axis"), cut->in[0]->shape.rank);
    if (mgx_is(ins, &mgx_op_gather))
        return past_gather(ins, cut, axis);
    if (mgx_is(ins, &mgx_op_reshape))
        return past_reshape(ins, cut, axis);
    if (mgx_is(ins, &mgx_op_transpose))
        return past_transpose(ins, cut, axis);
    if (mgx_is(ins, &mgx_op_squeeze) || mgx_is(ins, &mgx_op_slice))
        return past_axes(ins, cut, axis);
    if ((ins->op->flags & MGX_OP_POINTWISE) && ins->in_count == 1 && !ins->mod_count)
        return shorten(ins, mgx_emit_again(ins, ins, cut->in, 1), cut->in[1], axis);
    return NULL;
}

// --- the pass ---

static bool look_at(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    if (is_wanted(c, ins)) {
        if (mgx_is(ins, &mgx_op_unique))
            list_unique(ins);
        else
            replace(ins, mgx_is(ins, &mgx_op_nonzero) ? list_nonzero(ins) : list_boxes(ins));
        return true;
    }
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_ins *cut = ins->in[i];
        struct mgx_ins *by = mgx_is(cut, &mgx_op_shorten) && cut->owner == ins->owner &&
                                     mgx_shape_is_static(&cut->in[0]->shape)
                                 ? past(ins, cut)
                                 : NULL;
        if (!by)
            continue;
        replace(ins, by);
        return true;
    }
    return false;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (m != mgx_program_main(c->program))
        return MGX_OK;
    MGX_EACH (ins, m)
        if (ins->uses || ins == m->last)
            c->changed |= look_at(c, ins);
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_bound_sizes = {
    .name = "bound_sizes",
    .meaning = "results as long as values say are computed at their largest size, then cut off",
    .module = run,
    .by_size = true,
};
