// SPDX-License-Identifier: MIT
// Normalisations of groups of channels work on the axes of their images.
//
//     x {n, c, s..}  ->  reshape {n, g, l}  ->  mean[2], x - mean, ...  ->  reshape {n, c, s..}
//         =>
//     x {n, c, s..}  ->  reshape {n, g, c/g, s..}  ->  mean[2, 3, ..], x - mean, ...
//
// A row {n, g, l} joins channels and pixels: of an image that lies channels last it is a copy,
// there and back. To part the channels alone is a view of either order. From a reduction along such
// rows on element-wise work follows, on rows, on what is left of them ({n, g, 1}), and behind the
// way back. Between them no value moves; what a reduction had as one axis are some.
//
// Holds: shapes are static. Work that reads a product or a convolution stays with that one. Cost:
// O(edges).
#include "base/size.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/engine/walk.h"

#include <assert.h>
#include <string.h>

enum {
    MAX_OPERANDS = 8,
    ROWS = 3,
    PARTED = 1
}; // PARTED: mark of what has the axes {n, g, c/g, s..}

struct axes {
    int rank;
    int64_t lens[MGX_MAX_RANK];
    int first; // the first one that rows join
};

static bool is_lens(const struct mgx_shape *s, const struct axes *a)
{
    return s->rank == a->rank && memcmp(s->lens, a->lens, (size_t)a->rank * sizeof *a->lens) == 0;
}

static bool regroups(const struct mgx_ins *ins)
{
    return (ins->op->flags & MGX_OP_REGROUP) && ins->in_count == 1 &&
           mgx_shape_is_static(&ins->shape) && mgx_shape_is_static(&ins->in[0]->shape) &&
           mgx_shape_elements(&ins->shape) > 0;
}

static bool is_parted(const struct mgx_ins *ins)
{
    return regroups(ins) && ins->in[0]->mark == PARTED;
}

// --- rows ---

// The axes that the rows `ins` are made of: those of the value behind them, or with its channels
// parted. Of one group nothing is parted.
static bool read_rows(const struct mgx_ins *ins, struct axes *a)
{
    if (!regroups(ins) || ins->shape.rank != ROWS)
        return false;
    const struct mgx_shape *x = &ins->in[0]->shape;
    const int64_t *rows = ins->shape.lens;
    if (x->rank < ROWS || x->rank == MGX_MAX_RANK || x->lens[0] != rows[0] ||
        x->lens[1] % rows[1] != 0)
        return false;
    const bool whole = rows[1] == 1 || (x->lens[1] == rows[1] && x->rank > ROWS);
    const int more = whole ? 0 : 1;
    *a = (struct axes){
        x->rank + more, {rows[0], whole ? x->lens[1] : rows[1]}, rows[1] == 1 ? 1 : 2};
    for (int i = 2; i < a->rank; i++)
        a->lens[i] = x->lens[i - more];
    if (!whole)
        a->lens[2] = x->lens[1] / rows[1];
    return whole || x->lens[1] > rows[1];
}

static struct mgx_ins *of_rows(struct mgx_ins *at, struct mgx_ins *rows, const struct axes *a)
{
    return mgx_emit_reshape(at, rows->in[0], a->lens, a->rank);
}

// Is it repeated along its rows? Its value with the axes then, repeated along those.
static bool is_one_a_row(struct mgx_ins *ins, struct mgx_spread *s)
{
    return mgx_spread_of(ins, s) && ins->shape.rank == ROWS && s->axis[2] < 0;
}

static struct mgx_ins *of_spread(struct mgx_ins *at, const struct mgx_ins *ins,
                                 const struct mgx_spread *s, const struct axes *a)
{
    struct axes narrow = {.rank = a->rank};
    for (int i = 0; i < a->rank; i++)
        narrow.lens[i] = i < 2 && s->axis[i] >= 0 ? ins->shape.lens[i] : 1;
    struct mgx_ins *core = is_parted(s->core) && is_lens(&s->core->in[0]->shape, &narrow)
                               ? s->core->in[0]
                               : mgx_emit_reshape(at, s->core, narrow.lens, narrow.rank);
    return mgx_emit_multibroadcast(at, core, a->lens, a->rank);
}

static bool is_elementwise(const struct mgx_ins *ins)
{
    return (ins->op->flags & MGX_OP_POINTWISE) && !ins->mod_count && ins->in_count &&
           ins->in_count <= MAX_OPERANDS && mgx_shape_is_static(&ins->shape) &&
           !mgx_is(ins, &mgx_op_contiguous) && !mgx_is(ins, &mgx_op_layout);
}

// The axes that element-wise work on rows has when it follows a reduction of them.
static bool follows_reduction(const struct mgx_ins *ins, struct axes *a)
{
    bool any = false, follows = false;
    struct axes other;
    struct mgx_spread s;
    double value;
    if (!is_elementwise(ins) || ins->shape.rank != ROWS)
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_ins *in = ins->in[i];
        if (read_rows(in, &other)) {
            if (any &&
                (other.rank != a->rank || memcmp(other.lens, a->lens, sizeof other.lens) != 0))
                return false;
            *a = other;
            any = true;
            follows |= is_parted(in);
        } else if (is_one_a_row(in, &s)) {
            follows |= is_parted(s.core);
        } else if (!mgx_splat_value(in, &value)) {
            return false;
        }
    }
    return any && follows;
}

static struct mgx_ins *operand_of_rows(struct mgx_ins *at, struct mgx_ins *in, const struct axes *a)
{
    struct axes own;
    struct mgx_spread s;
    double value = 0;
    if (read_rows(in, &own))
        return of_rows(at, in, a);
    if (mgx_splat_value(in, &value)) {
        const struct mgx_shape like = mgx_shape_make(in->shape.type, a->rank, a->lens);
        return mgx_emit_splat(at, &like, value);
    }
    const bool spread = is_one_a_row(in, &s);
    assert(spread);
    return spread ? of_spread(at, in, &s, a) : NULL;
}

// --- images ---

// Are these the axes of an image {n, c, s..} with its channels parted?
static bool parts_channels(const struct mgx_shape *image, const struct mgx_shape *parted)
{
    if (parted->rank != image->rank + 1 || image->rank < 2 || parted->lens[0] != image->lens[0] ||
        parted->lens[1] * parted->lens[2] != image->lens[1])
        return false;
    for (int i = 2; i < image->rank; i++)
        if (parted->lens[i + 1] != image->lens[i])
            return false;
    return true;
}

static bool stays_spread(struct mgx_ins *in, const struct axes *a, struct mgx_view *v,
                         struct mgx_view_plan *plan)
{
    return (mgx_is(in, &mgx_op_multibroadcast) || mgx_is(in, &mgx_op_broadcast)) &&
           mgx_is_reshaper(in) && mgx_view_start(v, &in->in[0]->shape) && mgx_view_apply(v, in) &&
           mgx_view_reshape(v, a->lens, a->rank) && mgx_view_plan(v, plan) &&
           !mgx_view_copies(plan);
}

static bool is_product(const struct mgx_ins *ins)
{
    return (mgx_is(ins, &mgx_op_convolution) || mgx_is(ins, &mgx_op_dot)) && mgx_used_once(ins);
}

// The axes that element-wise work on images has behind a normalisation.
static bool follows_parted(const struct mgx_ins *ins, struct axes *a)
{
    const struct mgx_ins *from = NULL;
    if (!is_elementwise(ins))
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        if (!from && is_parted(ins->in[i]) &&
            parts_channels(&ins->shape, &ins->in[i]->in[0]->shape))
            from = ins->in[i]->in[0];
        if (is_product(ins->in[i]) || !mgx_shape_is_static(&ins->in[i]->shape) ||
            ins->in[i]->shape.rank != ins->shape.rank)
            return false;
    }
    if (!from)
        return false;
    *a = (struct axes){.rank = from->shape.rank};
    memcpy(a->lens, from->shape.lens, sizeof a->lens);
    return true;
}

static struct mgx_ins *operand_of_image(struct mgx_ins *at, struct mgx_ins *in,
                                        const struct axes *a)
{
    struct mgx_view v;
    struct mgx_view_plan plan;
    double value;
    if (is_parted(in) && is_lens(&in->in[0]->shape, a))
        return in->in[0];
    if (mgx_splat_value(in, &value)) {
        const struct mgx_shape like = mgx_shape_make(in->shape.type, a->rank, a->lens);
        return mgx_emit_splat(at, &like, value);
    }
    if (stays_spread(in, a, &v, &plan))
        return mgx_view_emit(at, in->in[0], &v, &plan);
    return mgx_emit_reshape(at, in, a->lens, a->rank);
}

// --- the sweep ---

// The value of `y`, which has the axes, with the lengths of the one whose place it takes.
static enum mgx_status take_place(struct mgx_pass_call *c, struct mgx_ins *old, struct mgx_ins *y)
{
    if (y) {
        y->mark = PARTED;
        mgx_copy_origin(y, old);
        mgx_replace(old, mgx_emit_reshape(old, y, old->shape.lens, old->shape.rank));
        c->changed = true;
    }
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status part_reduction(struct mgx_pass_call *c, struct mgx_ins *ins,
                                      const struct axes *a)
{
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    for (int i = a->first; i < a->rank; i++)
        axes[count++] = i;
    return take_place(c, ins,
                      mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_ints("axes", axes, count)),
                                      MGX_IN(of_rows(ins, ins->in[0], a))));
}

static enum mgx_status part_work(struct mgx_pass_call *c, struct mgx_ins *ins, const struct axes *a,
                                 struct mgx_ins *(*operand)(struct mgx_ins *at, struct mgx_ins *in,
                                                            const struct axes *a))
{
    struct mgx_ins *in[MAX_OPERANDS];
    for (int i = 0; i < ins->in_count; i++)
        if (!(in[i] = operand(ins, ins->in[i], a)))
            return mgx_program_status(c->program, c->diag);
    return take_place(c, ins, mgx_emit_again(ins, ins, in, ins->in_count));
}

// The way back, of what went there.
static enum mgx_status shorten(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    struct mgx_ins *y = mgx_emit_reshape(ins, ins->in[0]->in[0], ins->shape.lens, ins->shape.rank);
    if (y)
        mgx_replace(ins, y);
    c->changed = true;
    return mgx_program_status(c->program, c->diag);
}

static bool reduces_rows(const struct mgx_ins *ins, struct axes *a)
{
    return (ins->op->flags & MGX_OP_REDUCE) && ins->in_count == 1 && ins->shape.rank == ROWS &&
           mgx_shape_is_static(&ins->shape) && mgx_first_reduced(ins) == ROWS - 1 &&
           read_rows(ins->in[0], a);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct axes a;
    MGX_EACH (ins, m)
        ins->mark = 0;
    MGX_EACH (ins, m) {
        if (reduces_rows(ins, &a))
            TRY(part_reduction(c, ins, &a));
        else if (follows_reduction(ins, &a))
            TRY(part_work(c, ins, &a, operand_of_rows));
        else if (follows_parted(ins, &a))
            TRY(part_work(c, ins, &a, operand_of_image));
        else if (regroups(ins) && is_parted(ins->in[0]))
            TRY(shorten(c, ins));
    }
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_split_groups = {
    .name = "split_groups",
    .meaning = "normalisations of groups of channels work on the axes of their images",
    .module = run,
};
