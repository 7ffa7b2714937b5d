// SPDX-License-Identifier: MIT
// See part_constant.h.
#include "generate/part_constant.h"

#include <assert.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/emit.h"

int64_t mgx_cut_length(const struct mgx_cut *cut)
{
    int64_t length = 0;
    for (int i = 0; i < cut->count; i++)
        length += cut->range[i].to - cut->range[i].from;
    return length;
}

bool mgx_cut_scale(const struct mgx_cut *cut, int axis, int64_t by, int64_t over,
                   struct mgx_cut *out)
{
    *out = *cut;
    out->axis = axis;
    for (int i = 0; i < cut->count; i++) {
        const int64_t from = cut->range[i].from * by, to = cut->range[i].to * by;
        if (over < 1 || from % over || to % over)
            return false;
        out->range[i] = (struct mgx_cut_range){from / over, to / over};
    }
    return true;
}

// --- literals ---

static bool is_plain(const struct mgx_shape *s)
{
    return mgx_shape_is_standard(s) && mgx_type_is_number(s->type) &&
           mgx_shape_bytes(s) == (size_t)mgx_shape_elements(s) * mgx_type_size(s->type);
}

static bool is_within(const struct mgx_shape *s, const struct mgx_cut *cut)
{
    return cut->axis < s->rank && cut->count > 0 &&
           cut->range[cut->count - 1].to <= s->lens[cut->axis];
}

static void copy_ranges(const struct mgx_tensor *from, const struct mgx_cut *cut,
                        struct mgx_tensor *to)
{
    const int64_t *lens = from->shape.lens;
    size_t line = mgx_type_size(from->shape.type);
    int64_t count = 1;
    for (int i = 0; i < from->shape.rank; i++)
        if (i < cut->axis)
            count *= lens[i];
        else if (i > cut->axis)
            line *= (size_t)lens[i];
    char *at = to->data;
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < cut->count; i++) {
            const struct mgx_cut_range r = cut->range[i];
            const size_t bytes = (size_t)(r.to - r.from) * line;
            memcpy(at, (const char *)from->data + (size_t)(k * lens[cut->axis] + r.from) * line,
                   bytes);
            at += bytes;
        }
}

static struct mgx_ins *part_of_literal(struct mgx_ins *at, const struct mgx_tensor *t,
                                       const struct mgx_cut *cut)
{
    struct mgx_program *p = at->owner->program;
    int64_t lens[MGX_MAX_RANK];
    struct mgx_tensor part;
    memcpy(lens, t->shape.lens, sizeof lens);
    lens[cut->axis] = mgx_cut_length(cut);
    const struct mgx_shape shape = mgx_shape_make(t->shape.type, t->shape.rank, lens);
    if (cut->axis == 0 && cut->count == 1) {
        const int64_t line = (int64_t)mgx_type_size(shape.type) * t->shape.strides[0];
        part = mgx_tensor_view(t, &shape, cut->range[0].from * line);
    } else {
        if (mgx_tensor_create(&part, &shape, &p->diag) != MGX_OK)
            return NULL;
        copy_ranges(t, cut, &part);
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &part);
    mgx_tensor_release(&part);
    return literal;
}

static struct mgx_tensor reshaped(const struct mgx_ins *reshape)
{
    return mgx_tensor_view(reshape->in[0]->literal, &reshape->shape, 0);
}

static bool reshapes_literal(const struct mgx_ins *ins)
{
    return mgx_is(ins, &mgx_op_reshape) && ins->in_count == 1 && ins->in[0]->literal &&
           is_plain(&ins->in[0]->shape) && mgx_shape_is_static(&ins->shape) &&
           is_plain(&ins->shape);
}

// --- blocks ---

// Numbers in a block of a row.
static int64_t block_of(const struct mgx_ins *dequantize)
{
    return dequantize->in[0]->shape.lens[2] * 8 / mgx_ins_int(dequantize, "bits");
}

// What is kept of the operands.
static bool cut_of_blocks(const struct mgx_ins *ins, const struct mgx_cut *cut, struct mgx_cut *out)
{
    return cut->axis ? mgx_cut_scale(cut, 1, 1, block_of(ins), out)
                     : mgx_cut_scale(cut, 0, 1, 1, out);
}

static struct mgx_cut through_transpose(const struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_cut in = *cut;
    in.axis = (int)mgx_ins_ints(ins, "permutation").v[cut->axis];
    return in;
}

// --- what is repeated ---

// What is kept of the operand; false where all of it is, for it is repeated along the axis.
static bool cut_of_repeated(const struct mgx_ins *ins, const struct mgx_cut *cut,
                            struct mgx_cut *out)
{
    *out = *cut;
    out->axis -= ins->shape.rank - ins->in[0]->shape.rank;
    return out->axis >= 0 && ins->in[0]->shape.lens[out->axis] != 1;
}

static bool can_repeat(const struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_cut in;
    return ins->in_count == 1 && mgx_shape_is_static(&ins->in[0]->shape) &&
           mgx_ins_ints(ins, "out_lens").count == ins->shape.rank &&
           (!cut_of_repeated(ins, cut, &in) || mgx_part_of_constant_can(ins->in[0], &in));
}

static struct mgx_ins *part_of_repeated(struct mgx_ins *at, struct mgx_ins *ins,
                                        const struct mgx_cut *cut)
{
    struct mgx_program *p = at->owner->program;
    int64_t lens[MGX_MAX_RANK];
    struct mgx_cut in;
    struct mgx_ins *part = ins->in[0];
    if (cut_of_repeated(ins, cut, &in))
        part = mgx_part_of_constant(at, part, &in);
    memcpy(lens, ins->shape.lens, sizeof lens);
    lens[cut->axis] = mgx_cut_length(cut);
    void *attr = mgx_edit_attr(p, ins);
    if (!mgx_edit_ints(p, ins->op, attr, "out_lens", lens, ins->shape.rank))
        return NULL;
    return mgx_emit_edited(at, ins->op, attr, &part, 1);
}

// --- zero points ---

// Bytes that a few operators make of a literal: not many.
static bool is_small(const struct mgx_ins *ins)
{
    enum { MOST = 1 << 24 };
    return mgx_type_is_byte(ins->shape.type) && mgx_shape_elements(&ins->shape) <= MOST;
}

static struct mgx_ins *slices_of(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_ins *slices[MGX_CUT_RANGES];
    for (int i = 0; i < cut->count; i++)
        slices[i] = mgx_emit_slice(at, ins, cut->axis, cut->range[i].from, cut->range[i].to);
    return cut->count == 1 ? slices[0] : mgx_emit_concat(at, slices, cut->count, cut->axis);
}

// --- both ways ---

bool mgx_part_of_constant_can(const struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_cut in;
    if (!mgx_shape_is_static(&ins->shape) || !is_within(&ins->shape, cut))
        return false;
    if (ins->literal)
        return is_plain(&ins->shape);
    if (reshapes_literal(ins))
        return true;
    if (mgx_is(ins, &mgx_op_convert))
        return mgx_part_of_constant_can(ins->in[0], cut);
    if (mgx_is(ins, &mgx_op_multibroadcast))
        return can_repeat(ins, cut);
    if (mgx_is(ins, &mgx_op_transpose)) {
        in = through_transpose(ins, cut);
        return mgx_part_of_constant_can(ins->in[0], &in);
    }
    if (!mgx_is(ins, &mgx_op_dequantize_blocks))
        return is_small(ins);
    bool can = cut_of_blocks(ins, cut, &in);
    for (int i = 0; i < ins->in_count; i++)
        can = can && mgx_part_of_constant_can(ins->in[i], &in);
    return can;
}

static struct mgx_ins *part_of_blocks(struct mgx_ins *at, struct mgx_ins *ins,
                                      const struct mgx_cut *cut)
{
    struct mgx_program *p = at->owner->program;
    struct mgx_ins *parts[3] = {NULL};
    struct mgx_cut in;
    if (!cut_of_blocks(ins, cut, &in))
        return NULL;
    for (int i = 0; i < ins->in_count; i++)
        parts[i] = mgx_part_of_constant(at, ins->in[i], &in);
    void *attr = mgx_edit_attr(p, ins);
    if (attr && cut->axis == 1)
        mgx_edit_int(ins->op, attr, "columns", mgx_cut_length(cut));
    return mgx_emit_edited(at, ins->op, attr, parts, ins->in_count);
}

struct mgx_ins *mgx_part_of_constant(struct mgx_ins *at, struct mgx_ins *ins,
                                     const struct mgx_cut *cut)
{
    assert(mgx_part_of_constant_can(ins, cut));
    if (ins->literal)
        return part_of_literal(at, ins->literal, cut);
    if (reshapes_literal(ins)) {
        struct mgx_tensor t = reshaped(ins);
        struct mgx_ins *part = part_of_literal(at, &t, cut);
        mgx_tensor_release(&t);
        return part;
    }
    if (mgx_is(ins, &mgx_op_dequantize_blocks))
        return part_of_blocks(at, ins, cut);
    if (mgx_is(ins, &mgx_op_multibroadcast))
        return part_of_repeated(at, ins, cut);
    if (!mgx_is(ins, &mgx_op_transpose) && !mgx_is(ins, &mgx_op_convert))
        return slices_of(at, ins, cut);
    const struct mgx_cut in = mgx_is(ins, &mgx_op_transpose) ? through_transpose(ins, cut) : *cut;
    struct mgx_ins *part = mgx_part_of_constant(at, ins->in[0], &in);
    return mgx_emit_again(at, ins, &part, 1);
}
