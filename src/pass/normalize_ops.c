// SPDX-License-Identifier: MIT
// One way of saying each thing: axes count from the front, slices lie within their axis.
//
//     op[axis=-1](x of rank 3)                =>  op[axis=2](x)
//     slice[starts={-2},ends={100}](x)        =>  slice[starts={3},ends={5}](x)     axis 5 long
//
// O(instructions).
#include "pass/engine/walk.h"

#include <assert.h>

static void *field_at(const struct mgx_op *op, void *attr, const char *name,
                      enum mgx_field_kind kind)
{
    assert(attr && name);
    const struct mgx_field *f = mgx_field_find(op, name);
    return f && f->kind == kind ? (char *)attr + f->offset : NULL;
}

// The rank that axes refer to; -1 where it is not known or the field means something else.
static int base_rank(const struct mgx_ins *ins)
{
    const bool of_result =
        ins->op == &mgx_op_unsqueeze || ins->op == &mgx_op_broadcast || ins->op == &mgx_op_onehot;
    if (ins->in_count == 0 || ins->mod_count || (ins->op->flags & MGX_OP_BUILTIN))
        return -1;
    const struct mgx_shape *s = of_result ? &ins->shape : &ins->in[0]->shape;
    return s->unranked || s->type == MGX_TUPLE || s->type == MGX_SEQUENCE ? -1 : s->rank;
}

static bool is_negative(struct mgx_ints v)
{
    for (int i = 0; i < v.count; i++)
        if (v.v[i] < 0)
            return true;
    return false;
}

// A copy of the list for the new attributes to own.
static int64_t *own(struct mgx_program *p, struct mgx_ints *list)
{
    assert(list->count >= 0);
    int64_t *v = MGX_NEW_ARRAY(&p->arena, int64_t, list->count);
    for (int i = 0; v && i < list->count; i++)
        v[i] = list->v[i];
    if (v)
        list->v = v;
    return v;
}

// Bounds of a slice as they act, where the length is known.
static bool clip_bounds(struct mgx_program *p, const struct mgx_ins *ins, void *attr)
{
    struct mgx_ints *axes = field_at(ins->op, attr, "axes", MGX_FIELD_INTS),
                    *starts = field_at(ins->op, attr, "starts", MGX_FIELD_INTS),
                    *ends = field_at(ins->op, attr, "ends", MGX_FIELD_INTS);
    if (axes->count != starts->count || axes->count != ends->count)
        return true;
    int64_t *start = own(p, starts), *end = own(p, ends);
    for (int i = 0; start && end && i < axes->count; i++) {
        const struct mgx_dim d = mgx_shape_dim(&ins->in[0]->shape, (int)axes->v[i]);
        if (!mgx_dim_is_fixed(&d))
            continue;
        start[i] += start[i] < 0 ? d.max : 0;
        end[i] += end[i] < 0 ? d.max : 0;
        start[i] = mgx_max_i64(0, mgx_min_i64(start[i], d.max));
        end[i] = mgx_max_i64(start[i], mgx_min_i64(end[i], d.max));
    }
    return start && end;
}

static bool count_from_front(struct mgx_program *p, const struct mgx_ins *ins, void *attr, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    int64_t *axis = field_at(ins->op, attr, "axis", MGX_FIELD_INT);
    struct mgx_ints *axes = field_at(ins->op, attr, "axes", MGX_FIELD_INTS);
    if (axis && *axis < 0 && *axis >= -rank)
        *axis += rank;
    if (!axes || !is_negative(*axes))
        return true;
    int64_t *v = own(p, axes);
    for (int i = 0; v && i < axes->count; i++)
        v[i] += v[i] < 0 && v[i] >= -rank ? rank : 0;
    return v != NULL;
}

static enum mgx_status normalize(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    struct mgx_program *p = c->program;
    const int rank = base_rank(ins);
    void *attr = NULL;
    if (rank < 0 || !ins->attr ||
        !(mgx_field_find(ins->op, "axis") || mgx_field_find(ins->op, "axes")))
        return MGX_OK;
    const struct mgx_arena_mark mark = mgx_arena_mark(&p->arena);
    TRY(mgx_attr_copy(ins->op, ins->attr, &p->arena, &attr, c->diag));
    if (!count_from_front(p, ins, attr, rank) ||
        (mgx_is(ins, &mgx_op_slice) && ins->in_count == 1 && !clip_bounds(p, ins, attr)))
        return mgx_fail_memory(c->diag);
    if (mgx_attr_equal(ins->op, ins->attr, attr)) {
        mgx_arena_rewind(&p->arena, mark);
        return MGX_OK;
    }
    ins->attr = attr;
    c->changed = true;
    return mgx_update_shape(ins, c->diag);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m)
        TRY(normalize(c, ins));
    return MGX_OK;
}

const struct mgx_pass mgx_pass_normalize_ops = {
    .name = "normalize_ops",
    .meaning = "counts axes from the front and clips slices",
    .module = run,
};
