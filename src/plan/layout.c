// SPDX-License-Identifier: MIT
// Physical shapes: in which order of memory every value lies, and which values are views.
//
// Layout is nothing but strides. Convolutions, poolings and their kind want channels last;
// element-wise operators, concat and pad follow their largest input, so a whole convolutional
// network settles on channels last and no transpose is ever needed inside; everything else is
// row-major. View operators (transpose, slice, broadcast, most reshapes) turn into shapes over
// their input's bytes.
//
// A concat's inputs are computed in place: the concat is the root, each input a slice of it,
// wherever the input is an ordinary value that no other concat claimed first. A concat all of whose
// inputs already lie side by side in another concat (DenseNet's growing feature lists) becomes a
// view of that one.
#include "plan/layout.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/region.h"
#include "plan/build.h"

// A fake address for asking view operators where their result would lie; nothing is read through
// it.
static unsigned char *const nowhere = (unsigned char *)((uintptr_t)1 << 40);

// Axes that lie as one: their step, -1 before the first, and that of the next one outside.
struct run {
    int64_t stride, next;
};

static bool continue_run(struct run *run, int64_t len, int64_t stride)
{
    if (len == 1)
        return true;
    if (run->stride < 0)
        run->stride = stride;
    else if (stride != run->next)
        return false;
    run->next = stride * len;
    return true;
}

// Axes from the right, *i of `from` and *j of `to`, until their products agree: one run of memory.
static bool take_group(const struct mgx_shape *from, const struct mgx_shape *to, int *i, int *j,
                       struct run *run)
{
    int64_t left = 1, right = 1;
    do {
        if (left <= right && *i >= 0) {
            if (!continue_run(run, from->lens[*i], from->strides[*i]))
                return false;
            left *= from->lens[(*i)--];
        } else if (*j >= 0) {
            right *= to->lens[(*j)--];
        } else {
            return false;
        }
    } while (left != right || (*i >= 0 && from->lens[*i] == 1) ||
             (*j >= 0 && to->lens[*j] == 1 && *i < 0));
    return true;
}

// Strides of `to` lengths over the bytes of `from`, if every merged axis is contiguous: walks both
// length lists from the right in groups of equal products.
bool mgx_plan_reshape_view(const struct mgx_shape *from, struct mgx_shape *to)
{
    if (!mgx_shape_elements(from)) {
        *to = mgx_shape_make(to->type, to->rank, to->lens);
        return true;
    }
    int i = from->rank - 1, j = to->rank - 1;
    while (i >= 0 || j >= 0) {
        struct run run = {.stride = -1};
        const int last = j;
        if (!take_group(from, to, &i, &j, &run))
            return false;
        int64_t stride = run.stride < 0 ? 1 : run.stride;
        for (int k = last; k > j; k--) {
            to->strides[k] = stride;
            stride *= to->lens[k];
        }
    }
    assert(mgx_shape_elements(to) == mgx_shape_elements(from));
    assert(mgx_shape_space(to) <= mgx_shape_space(from));
    return true;
}

static bool run_view(const struct mgx_ins *ins, const struct mgx_shape *in, struct mgx_shape *out,
                     int64_t *offset_bytes)
{
    struct mgx_eval eval = {0};
    struct mgx_diag diag = {0};
    struct mgx_tensor from = mgx_tensor_borrow(in, nowhere), to;
    const struct mgx_tensor *list[] = {&from};
    if (mgx_eval_op(&eval, ins->op, ins->attr, list, 1, NULL, 0, NULL, &to, &diag) != MGX_OK)
        return false;
    *out = to.shape;
    *offset_bytes = (unsigned char *)to.data - nowhere;
    assert(!mgx_shape_elements(out) ||
           (*offset_bytes >= 0 &&
            (size_t)*offset_bytes + mgx_shape_bytes(out) <= mgx_shape_bytes(in)));
    mgx_tensor_release(&to);
    return true;
}

static bool view_of(const struct mgx_ins *ins, const struct mgx_shape *in, struct mgx_shape *out,
                    int64_t *offset_bytes)
{
    *offset_bytes = 0;
    if (ins->in_count != 1 || !mgx_shape_is_static(in) || !mgx_shape_is_static(&ins->shape))
        return false;
    if (ins->op->flags & MGX_OP_REGROUP) {
        *out = mgx_shape_make(in->type, ins->shape.rank, ins->shape.lens);
        return mgx_plan_reshape_view(in, out);
    }
    if (ins->op == &mgx_op_contiguous) {
        *out = *in;
        return mgx_shape_is_standard(in);
    }
    return (ins->op->flags & MGX_OP_VIEW) && run_view(ins, in, out, offset_bytes);
}

// --- which order ---

static bool wants_channels_last(const struct mgx_ins *ins, int rank)
{
    const unsigned flags = ins->op->flags;
    if (rank < 3)
        return false;
    if ((flags & MGX_OP_CHANNELS_LAST) || ((flags & MGX_OP_CHANNELS_LAST_4D) && rank == 4))
        return true;
    if (ins->op == &mgx_op_group && ins->mod_count) // a fused convolution
        for (const struct mgx_ins *body = ins->mod[0]->first; body; body = body->next)
            if (wants_channels_last(body, rank))
                return true;
    return false;
}

static bool follows_inputs(const struct mgx_op *op)
{
    return (op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE)) || op == &mgx_op_pointwise ||
           op == &mgx_op_fused_reduce || op == &mgx_op_concat || op == &mgx_op_pad ||
           op == &mgx_op_scatter_none;
}

static struct mgx_shape channels_last(const struct mgx_shape *s)
{
    struct mgx_shape out = mgx_shape_make(s->type, s->rank, s->lens);
    assert(s->rank > 1);
    int64_t stride = s->lens[1];
    out.strides[1] = 1;
    for (int i = s->rank - 1; i >= 2; i--) {
        out.strides[i] = stride;
        stride *= s->lens[i];
    }
    out.strides[0] = stride;
    assert(mgx_shape_is_packed(&out));
    return out;
}

// Of two inputs of one size with the same innermost axis, the row-major one: what follows may
// regroup axes, which only that order allows without a copy.
static bool goes_before(const struct mgx_shape *in, const struct mgx_shape *best)
{
    const int64_t size = mgx_shape_elements(in), least = mgx_shape_elements(best);
    const int last = in->rank - 1;
    return size > least ||
           (size == least && last >= 0 && in->strides[last] == 1 && best->strides[last] == 1 &&
            mgx_shape_is_standard(in) && !mgx_shape_is_standard(best));
}

// The order of the largest input of the same rank; broadcasts have no say.
static struct mgx_shape follow(const struct mgx_shape *lens, const struct mgx_shape *in,
                               int in_count)
{
    const struct mgx_shape *best = NULL;
    for (int i = 0; i < in_count; i++) {
        if (!mgx_shape_is_static(&in[i]) || in[i].rank != lens->rank ||
            mgx_shape_is_broadcasted(&in[i]))
            continue;
        if (!best || goes_before(&in[i], best))
            best = &in[i];
    }
    const struct mgx_shape packed = mgx_shape_make(lens->type, lens->rank, lens->lens);
    return best ? mgx_shape_like_order(&packed, best) : packed;
}

struct mgx_shape mgx_plan_natural_layout(const struct mgx_ins *ins, const struct mgx_shape *lens,
                                         const struct mgx_shape *in, int in_count)
{
    if (wants_channels_last(ins, lens->rank))
        return channels_last(lens);
    if (follows_inputs(ins->op))
        return follow(lens, in, in_count);
    return mgx_shape_make(lens->type, lens->rank, lens->lens);
}

// Inputs that decide: computed ones, unless all are constant.
static struct mgx_shape follow_values(struct mgx_plan *plan, const struct mgx_ins *ins)
{
    struct mgx_shape in[8];
    int count = 0;
    for (int i = 0; i < ins->in_count && count < 8; i++) {
        const struct mgx_plan_value *v = mgx_plan_value_of(plan, ins->in[i]);
        if (v && !v->dynamic && !ins->in[i]->literal)
            in[count++] = v->shape;
    }
    return mgx_plan_natural_layout(ins, &ins->shape, in, count);
}

// A reshape that must copy stays channels last when it reads an image that is: the copy then writes
// the pieces of every axis where they belong (the shuffle of channels in ShuffleNet).
static bool reshapes_image(struct mgx_plan *plan, const struct mgx_ins *ins)
{
    if (!(ins->op->flags & MGX_OP_REGROUP) || ins->shape.rank != 4 || ins->in_count != 1)
        return false;
    struct mgx_plan_value *v = mgx_plan_value_of(plan, ins->in[0]);
    const struct mgx_shape *image = v ? &mgx_plan_root(v, NULL)->shape : NULL;
    if (!image || v->dynamic || image->rank != 4 || image->lens[1] < 2 || image->strides[1] != 1)
        return false;
    const struct mgx_shape out = channels_last(&ins->shape);
    struct mgx_shape pieces = mgx_shape_make(out.type, v->shape.rank, v->shape.lens);
    return mgx_plan_reshape_view(&out, &pieces);
}

// --- rows apart ---
//
// Rows, or pixels, a multiple of 2 KiB apart fall into one or two sets of the L1 cache, and a tile
// of 14 of them does not stay there. 64 bytes more keep them apart, where all that read them can
// take them so. (128 x 768 x 3072, Zen 4: 8 %.)

enum { SAME_SET = 2048, LINE = 64 };

// The one instruction with this operator: itself, or in its body.
static const struct mgx_ins *find_one(const struct mgx_ins *ins, const struct mgx_op *op)
{
    if (ins->op == op)
        return ins;
    if (ins->op != &mgx_op_group || !ins->mod_count)
        return NULL;
    const struct mgx_ins *found = NULL;
    for (const struct mgx_ins *body = ins->mod[0]->first; body; body = body->next) {
        if (body->op == op && found)
            return NULL;
        found = body->op == op ? body : found;
    }
    return found;
}

// What the body of a group calls its input `slot`; NULL where some are not listed.
static const struct mgx_ins *param_of(const struct mgx_ins *group, int slot)
{
    struct mgx_ins *params[MGX_REGION_INPUTS];
    const int count = mgx_module_parameters(group->mod[0], params, MGX_REGION_INPUTS);
    assert(slot >= 0 && slot < group->in_count);
    return count == group->in_count && slot < MGX_REGION_INPUTS ? params[slot] : NULL;
}

// Is input `slot` of `user` the left operand of its product, and nothing else there?
static bool is_left_operand(const struct mgx_ins *user, int slot)
{
    const struct mgx_ins *product = find_one(user, &mgx_op_dot);
    if (!product || product == user)
        return product && slot == 0 && user->in[1] != user->in[0];
    const struct mgx_ins *left = param_of(user, slot);
    return left && product->in[0] == left && left->uses && !left->uses->next;
}

// Is input `slot` of `user` the image that its convolution reads, or added to the one it makes, or
// both?
static bool is_image(const struct mgx_ins *user, int slot)
{
    const struct mgx_ins *conv = find_one(user, &mgx_op_convolution);
    if (!conv || conv == user)
        return conv && slot == 0 && user->in[1] != user->in[0];
    const struct mgx_ins *param = param_of(user, slot);
    return param && param != conv->in[1] &&
           (param == conv->in[0] || mgx_shape_same_lens(&user->shape, &user->in[slot]->shape));
}

static bool is_only(const struct mgx_ins *ins, bool (*is)(const struct mgx_ins *user, int slot))
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!is(use->user, use->slot))
            return false;
    return ins->uses != NULL;
}

// Whether axis `axis` of the result, the innermost in memory, has rows that meet in one set.
static bool rows_meet(const struct mgx_shape *s, int axis)
{
    enum { ROWS = 8 };
    const int64_t row = s->lens[axis];
    return s->type == MGX_FLOAT && s->strides[axis] == 1 && row > 0 &&
           row * (int64_t)sizeof(float) % SAME_SET == 0 && mgx_shape_elements(s) / row >= ROWS &&
           mgx_shape_is_packed(s);
}

// Puts a line behind every row; axes keep their order.
static void set_rows_apart(const struct mgx_ins *ins, struct mgx_shape *s)
{
    const bool image = s->rank > 2 && find_one(ins, &mgx_op_convolution);
    const int axis = image ? 1 : s->rank - 1;
    if (s->rank < 2 || !(image || find_one(ins, &mgx_op_dot)) || !rows_meet(s, axis) ||
        !is_only(ins, image ? is_image : is_left_operand))
        return;
    const int64_t row = s->lens[axis], apart = row + LINE / (int64_t)sizeof(float);
    for (int i = 0; i < s->rank; i++)
        if (i != axis && s->lens[i] > 1) {
            assert(s->strides[i] % row == 0); // packed, so rows are whole
            s->strides[i] = s->strides[i] / row * apart;
        }
}

// --- whole lines ---
//
// A copy engine takes pixels that begin at whole lines, and loads of a line's width do; 24 bytes
// of channels would be packed into such by a launch of their own. Where a convolution of bytes, or
// element-wise work, makes an image and convolutions alone read it, its pixels lie so far apart.
// What lies between is never read.

// Is input `slot` of `user` the image of a convolution of bytes, around which it may put some, or
// added to its result, or both?
static bool is_byte_image(const struct mgx_ins *user, int slot)
{
    const struct mgx_ins *conv = find_one(user, &mgx_op_quant_convolution);
    if (!conv || conv->in_count != 2 || conv == user)
        return conv && conv->in_count == 2 && slot == 0 && user->in[1] != user->in[0];
    const struct mgx_ins *param = param_of(user, slot), *image = conv->in[0];
    image = image->op == &mgx_op_pad ? image->in[0] : image;
    return param && param != conv->in[1] &&
           (param == image || mgx_shape_same_lens(&user->shape, &user->in[slot]->shape));
}

// Does somebody read several channels of it at once, words of them in a depthwise convolution too?
static bool is_multiplied(const struct mgx_ins *ins)
{
    enum { WORD = 4 };
    const int64_t channels = ins->shape.lens[1];
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *conv = find_one(use->user, &mgx_op_quant_convolution);
        if (conv && (channels % WORD || mgx_ins_int(conv, "group") < channels))
            return true;
    }
    return false;
}

// What leaves its pixels as far apart as it is told.
static bool makes_pixels(const struct mgx_ins *ins)
{
    return find_one(ins, &mgx_op_quant_convolution) || mgx_is_elementwise(ins);
}

// Rows of `row` values, which lie side by side, begin at whole lines.
static void lay_rows_apart(struct mgx_shape *s, int64_t row, int64_t line)
{
    const int64_t apart = (row + line - 1) / line * line;
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] > 1 && s->strides[i] >= row)
            s->strides[i] = s->strides[i] / row * apart;
}

// Is input `slot` of `user` the left operand of its product of bytes, or a view that keeps rows?
static bool is_byte_rows(const struct mgx_ins *user, int slot)
{
    const struct mgx_shape *s = &user->shape, *in = &user->in[slot]->shape;
    if (user->op->flags & MGX_OP_REGROUP)
        return s->rank > 1 && s->lens[s->rank - 1] == in->lens[in->rank - 1] &&
               is_only(user, is_byte_rows);
    const struct mgx_ins *product = find_one(user, &mgx_op_quant_dot);
    if (!product || product == user)
        return product && slot == 0 && user->in[1] != user->in[0];
    const struct mgx_ins *left = param_of(user, slot);
    return left && product->in[0] == left && mgx_used_once(left);
}

// The same of rows that products of bytes alone read.
static void set_whole_rows(const struct mgx_plan *plan, const struct mgx_ins *ins,
                           struct mgx_shape *s)
{
    enum { FEW = 16 };
    const int64_t line = plan->machine->target->line_bytes;
    const int last = s->rank - 1;
    if (!line || s->rank < 2 || !mgx_type_is_byte(s->type) || s->lens[last] % line == 0 ||
        s->lens[last] < FEW || s->strides[last] != 1 || !mgx_shape_is_packed(s) ||
        (ins->op->flags & (MGX_OP_VIEW | MGX_OP_REGROUP)) || !is_only(ins, is_byte_rows))
        return;
    lay_rows_apart(s, s->lens[last], line);
}

static void set_whole_lines(const struct mgx_plan *plan, const struct mgx_ins *ins,
                            struct mgx_shape *s)
{
    enum { FEW = 8 }; // channels that make no line, however they lie
    const int64_t line = plan->machine->target->line_bytes;
    if (!line || s->rank < 3 || !mgx_type_is_byte(s->type) || s->lens[1] % line == 0 ||
        s->lens[1] < FEW || s->strides[1] != 1 || !mgx_shape_is_packed(s) || !makes_pixels(ins) ||
        !is_only(ins, is_byte_image) || !is_multiplied(ins))
        return;
    lay_rows_apart(s, s->lens[1], line);
}

// --- heads ---

// A product of bytes of several heads, on a target that leaves such in any order?
static bool is_of_heads(const struct mgx_plan *plan, const struct mgx_ins *ins)
{
    enum { HEADS_RANK = 4 };
    return plan->machine->target->any_order && ins->shape.rank >= HEADS_RANK &&
           (ins->op == &mgx_op_quant_dot || mgx_is_group(ins, "epilogue")) &&
           find_one(ins, &mgx_op_quant_dot);
}

// What alone reads it, but for its range; where that makes bytes of it, what alone reads those.
// NULL: there are several, or none.
static const struct mgx_ins *only_reader(const struct mgx_ins *ins)
{
    const struct mgx_ins *reader = NULL;
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        if (use->user->op == &mgx_op_byte_range)
            continue;
        if (reader)
            return NULL;
        reader = use->user;
    }
    const bool made = reader && reader->op == &mgx_op_pointwise && !mgx_used_once(ins) &&
                      mgx_used_once(reader) && mgx_shape_same_lens(&reader->shape, &ins->shape);
    return made ? reader->uses->user : reader;
}

// An attention's result that only a transposition reads lies as that one would have it: heads side
// by side. So does that of the product behind scores of bytes.
static bool lies_transposed(const struct mgx_plan *plan, const struct mgx_ins *ins,
                            struct mgx_shape *out)
{
    if (!mgx_is_group(ins, "attention") && !mgx_is_group(ins, "attention_bytes") &&
        !is_of_heads(plan, ins))
        return false;
    const struct mgx_ins *user = only_reader(ins);
    if (!user || user->op != &mgx_op_transpose)
        return false;
    const struct mgx_ints order = mgx_ins_ints(user, "permutation");
    const int rank = ins->shape.rank;
    if ((int)order.count != rank || order.v[rank - 1] != rank - 1)
        return false;
    *out = mgx_shape_make(ins->shape.type, rank, ins->shape.lens);
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        out->strides[order.v[i]] = stride;
        stride *= ins->shape.lens[order.v[i]];
    }
    assert(mgx_shape_is_packed(out));
    return true;
}

// Heads of bytes side by side are the rows of the product that alone reads them: those too.
static void set_whole_heads(const struct mgx_plan *plan, const struct mgx_ins *ins,
                            struct mgx_shape *s)
{
    const int64_t line = plan->machine->target->line_bytes;
    const struct mgx_ins *turned = ins->uses ? ins->uses->user : NULL;
    if (!line || !mgx_type_is_byte(s->type) || !mgx_used_once(ins) ||
        turned->op != &mgx_op_transpose || !mgx_used_once(turned) ||
        !(turned->uses->user->op->flags & MGX_OP_REGROUP) ||
        !is_only(turned->uses->user, is_byte_rows))
        return;
    const struct mgx_shape *rows = &turned->uses->user->shape, *heads = &turned->shape;
    const int64_t row = rows->lens[rows->rank - 1];
    if (heads->rank < 2 || row % line == 0 ||
        row != heads->lens[heads->rank - 1] * heads->lens[heads->rank - 2])
        return;
    lay_rows_apart(s, row, line);
}

// Row-major because the caller gets it so: a copy that followed its input would be copied again.
static bool packs_result(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_contiguous && mgx_used_once(ins) &&
           ins->uses->user->op == &mgx_op_return;
}

static struct mgx_shape choose(struct mgx_plan *plan, const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_param || ins->op == &mgx_op_literal ||
        !mgx_shape_is_static(&ins->shape) || ins->shape.type == MGX_TUPLE ||
        ins->shape.type == MGX_SEQUENCE || packs_result(ins))
        return ins->shape;
    if (reshapes_image(plan, ins))
        return channels_last(&ins->shape);
    struct mgx_shape shape;
    if (lies_transposed(plan, ins, &shape)) {
        set_whole_heads(plan, ins, &shape);
        return shape;
    }
    shape = follow_values(plan, ins);
    set_rows_apart(ins, &shape);
    set_whole_lines(plan, ins, &shape);
    set_whole_rows(plan, ins, &shape);
    return shape;
}

// --- the sweep ---

static void place_value(struct mgx_plan *plan, struct mgx_plan_value *v)
{
    const struct mgx_ins *ins = v->ins;
    struct mgx_plan_value *parent = ins->in_count == 1 ? mgx_plan_value_of(plan, ins->in[0]) : NULL;
    struct mgx_shape shape;
    int64_t offset;
    v->root = v;
    v->offset = 0;
    if (parent && !parent->dynamic && !v->dynamic &&
        view_of(ins, &parent->shape, &shape, &offset)) {
        v->shape = shape;
        v->root = parent->root;
        v->offset = parent->offset + offset;
        assert(mgx_plan_lies_inside(v) && mgx_shape_same_lens(&v->shape, &ins->shape));
        return;
    }
    v->shape = choose(plan, ins);
}

static bool is_dynamic(const struct mgx_ins *ins)
{
    return !mgx_shape_is_static(&ins->shape) || ins->shape.type == MGX_TUPLE ||
           ins->shape.type == MGX_SEQUENCE || ins->shape.type == MGX_STRING;
}

static void sweep(struct mgx_plan *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        struct mgx_plan_value *v = &plan->values[i];
        v->dynamic = is_dynamic(v->ins);
        if (!v->bound)
            place_value(plan, v);
    }
}

// --- concat in place ---

static bool is_result(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op == &mgx_op_return)
            return true;
    return false;
}

// Do both lie in the same order of axes? Axes of length 1 have no place in it.
static bool same_order(const struct mgx_shape *a, const struct mgx_shape *b)
{
    for (int i = 0; i < a->rank; i++)
        for (int k = i + 1; k < a->rank; k++)
            if (a->lens[i] > 1 && a->lens[k] > 1 && b->lens[i] > 1 && b->lens[k] > 1 &&
                (a->strides[i] < a->strides[k]) != (b->strides[i] < b->strides[k]))
                return false;
    return true;
}

static bool can_bind(const struct mgx_plan_value *v, const struct mgx_plan_value *concat)
{
    const struct mgx_ins *ins = v->ins;
    return v->root == v && !v->bound && !v->dynamic && !(ins->op->flags & MGX_OP_REGROUP) &&
           ins->op != &mgx_op_param && ins->op != &mgx_op_literal && !is_result(ins) &&
           v != concat && mgx_shape_elements(&v->shape) > 0;
}

// Do all inputs of this concat lie side by side, in order, in one root? Then it is a view of that
// root.
static bool already_together(const struct mgx_plan *plan, const struct mgx_ins *ins, int axis,
                             const struct mgx_plan_value *c)
{
    const struct mgx_plan_value *first = mgx_plan_value_of(plan, ins->in[0]);
    int64_t at = first->offset;
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_plan_value *v = mgx_plan_value_of(plan, ins->in[i]);
        if (!v->bound || v->root != first->root || v->offset != at)
            return false;
        for (int k = 0; k < v->shape.rank; k++)
            if (v->shape.strides[k] != first->shape.strides[k])
                return false;
        at += v->shape.lens[axis] * v->shape.strides[axis] * (int64_t)mgx_type_size(v->shape.type);
    }
    return first->root != c;
}

// Are pieces that were placed in the concat inside it, each behind the one before?
__attribute__((unused)) static bool lie_in_order(struct mgx_plan *plan, struct mgx_plan_value *c,
                                                 int64_t axis)
{
    int64_t end = c->offset;
    for (int i = 0; i < c->ins->in_count; i++) {
        struct mgx_plan_value *v = mgx_plan_value_of(plan, c->ins->in[i]);
        const int64_t length = c->ins->in[i]->shape.lens[axis] * c->shape.strides[axis];
        if (v->bound && v->root == c->root && v->offset != end && v->offset >= c->offset)
            return mgx_plan_lies_inside(v) && mgx_use_count(v->ins) > 1; // by another place of it
        end += length * (int64_t)mgx_type_size(c->shape.type);
    }
    return true;
}

// What an input is a view of, all of it in another order; *s, where the input would lie, becomes
// where that would. Only a piece without gaps: every kernel writes one.
static struct mgx_plan_value *look_behind(const struct mgx_plan *plan, const struct mgx_ins *ins,
                                          struct mgx_shape *s)
{
    struct mgx_plan_value *v = mgx_plan_value_of(plan, ins);
    for (; v->root != v && !v->bound && mgx_shape_is_packed(s); v = mgx_plan_value_of(plan, ins)) {
        const struct mgx_shape wanted = *s, *x = &ins->in[0]->shape;
        *s = mgx_shape_make(x->type, x->rank, x->lens);
        const struct mgx_ints order =
            ins->op == &mgx_op_transpose ? mgx_ins_ints(ins, "permutation") : (struct mgx_ints){0};
        for (int i = 0; i < order.count; i++)
            s->strides[order.v[i]] = wanted.strides[i];
        if (!order.count &&
            (!(ins->op->flags & MGX_OP_REGROUP) || !mgx_plan_reshape_view(&wanted, s)))
            return NULL;
        ins = ins->in[0];
    }
    return v;
}

static void bind_concat(struct mgx_plan *plan, struct mgx_plan_value *c)
{
    const struct mgx_ins *ins = c->ins;
    const int axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), ins->shape.rank);
    const int64_t size = (int64_t)mgx_type_size(c->shape.type);
    if (can_bind(c, NULL) && already_together(plan, ins, (int)axis, c)) {
        const struct mgx_plan_value *first = mgx_plan_value_of(plan, ins->in[0]);
        for (int k = 0; k < c->shape.rank; k++)
            c->shape.strides[k] = first->shape.strides[k];
        c->root = first->root;
        c->offset = first->offset;
        c->bound = true;
        return;
    }
    int64_t at = 0;
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_shape piece = ins->in[i]->shape;
        memcpy(piece.strides, c->shape.strides, sizeof piece.strides);
        struct mgx_plan_value *v = look_behind(plan, ins->in[i], &piece);
        if (v && can_bind(v, c) && same_order(&v->shape, &piece)) {
            memcpy(v->shape.strides, piece.strides, sizeof piece.strides);
            v->root = c->root;
            v->offset = c->offset + at * c->shape.strides[axis] * size;
            v->bound = true;
        }
        at += ins->in[i]->shape.lens[axis];
    }
    assert(at == ins->shape.lens[axis] && lie_in_order(plan, c, axis));
}

// Does every value lie inside a root, in the lengths of its instruction?
__attribute__((unused)) static bool are_laid_out(struct mgx_plan *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        struct mgx_plan_value *v = &plan->values[i];
        if (!v->root || v->root->root != v->root || !mgx_plan_lies_inside(v) ||
            (!v->dynamic && v->shape.type != MGX_TUPLE &&
             !mgx_shape_same_lens(&v->shape, &v->ins->shape)))
            return false;
    }
    return true;
}

enum mgx_status mgx_plan_choose_layouts(struct mgx_plan *plan, struct mgx_diag *diag)
{
    sweep(plan);
    // Last first: the largest of nested feature lists claims the pieces.
    for (int i = plan->value_count - 1; i >= 0; i--)
        if (plan->values[i].ins->op == &mgx_op_concat && !plan->values[i].dynamic)
            bind_concat(plan, &plan->values[i]);
    sweep(plan); // views of what is bound now follow it
    assert(plan->store.arena.failed || are_laid_out(plan));
    return plan->store.arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}
