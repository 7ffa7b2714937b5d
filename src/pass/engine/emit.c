// SPDX-License-Identifier: MIT
// Instructions that rewrites make all the time; see emit.h.
#include "pass/engine/emit.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/constant.h"

struct mgx_ins *mgx_emit_unary(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x)
{
    return mgx_emit_before(at, op, NULL, MGX_IN(x));
}

struct mgx_ins *mgx_emit_binary(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                                struct mgx_ins *y)
{
    return mgx_emit_before(at, op, NULL, MGX_IN(x, y));
}

static bool has_lens(const struct mgx_ins *x, const int64_t *lens, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    return x->shape.rank == rank && mgx_shape_is_static(&x->shape) &&
           (!rank || memcmp(x->shape.lens, lens, (size_t)rank * sizeof *lens) == 0);
}

// Axes of length 1 that `longer` has more than `shorter`; -1 if they differ in anything else.
static int extra_ones(const int64_t *longer, int rank, const int64_t *shorter, int shorter_rank,
                      int64_t *axes)
{
    assert(rank >= 0 && shorter_rank >= 0);
    int count = 0, from = 0;
    for (int d = 0; d < rank; d++) {
        if (from < shorter_rank && longer[d] == shorter[from])
            from++;
        else if (longer[d] == 1)
            axes[count++] = d;
        else
            return -1;
    }
    return from == shorter_rank ? count : -1;
}

// Taking out or putting in lengths of 1 is a view of anything; other reshapes may have to copy.
struct mgx_ins *mgx_emit_with(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                              double value)
{
    return x ? mgx_emit_binary(at, op, x, mgx_emit_splat(at, &x->shape, value)) : NULL;
}

struct mgx_ins *mgx_emit_convert(struct mgx_ins *at, struct mgx_ins *x, enum mgx_type type)
{
    if (!x || x->shape.type == type)
        return x;
    return mgx_emit_before(at, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", (int64_t)type)),
                           MGX_IN(x));
}

// Only lengths of 1 were put in or taken out: what is reshaped once more may as well be its input.
static bool is_reshaped(const struct mgx_ins *x)
{
    return (mgx_is(x, &mgx_op_unsqueeze) || mgx_is(x, &mgx_op_squeeze)) && x->in_count == 1 &&
           mgx_shape_is_static(&x->in[0]->shape);
}

struct mgx_ins *mgx_emit_reshape(struct mgx_ins *at, struct mgx_ins *x, const int64_t *lens,
                                 int rank)
{
    int64_t axes[MGX_MAX_RANK];
    while (x && !has_lens(x, lens, rank) && is_reshaped(x))
        x = x->in[0];
    if (!x || has_lens(x, lens, rank))
        return x;
    const struct mgx_shape *s = &x->shape;
    int count = s->dims ? -1 : extra_ones(lens, rank, s->lens, s->rank, axes);
    if (count > 0)
        return mgx_emit_before(at, &mgx_op_unsqueeze, MGX_ATTRS(mgx_ints("axes", axes, count)),
                               MGX_IN(x));
    count = s->dims ? -1 : extra_ones(s->lens, s->rank, lens, rank, axes);
    if (count > 0)
        return mgx_emit_before(at, &mgx_op_squeeze, MGX_ATTRS(mgx_ints("axes", axes, count)),
                               MGX_IN(x));
    return mgx_emit_before(at, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", lens, rank)), MGX_IN(x));
}

struct mgx_ins *mgx_emit_multibroadcast(struct mgx_ins *at, struct mgx_ins *x, const int64_t *lens,
                                        int rank)
{
    if (!x || has_lens(x, lens, rank))
        return x;
    return mgx_emit_before(at, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", lens, rank)),
                           MGX_IN(x));
}

struct mgx_ins *mgx_emit_transpose(struct mgx_ins *at, struct mgx_ins *x, const int *permutation,
                                   int rank)
{
    assert(!x || x->shape.rank == rank);
    int64_t wide[MGX_MAX_RANK];
    bool identity = true;
    for (int i = 0; i < rank; i++) {
        wide[i] = permutation[i];
        identity &= permutation[i] == i;
    }
    if (!x || identity)
        return x;
    return mgx_emit_before(at, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", wide, rank)),
                           MGX_IN(x));
}

struct mgx_ins *mgx_emit_gather(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *rows)
{
    return x && rows
               ? mgx_emit_before(at, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", 0)), MGX_IN(x, rows))
               : NULL;
}

struct mgx_ins *mgx_emit_slice(struct mgx_ins *at, struct mgx_ins *x, int axis, int64_t start,
                               int64_t end)
{
    assert(start >= 0 && start <= end && (!x || (axis >= 0 && axis < x->shape.rank)));
    const int64_t axes[] = {axis};
    if (!x || (start == 0 && !x->shape.dims && end == x->shape.lens[axis]))
        return x;
    return mgx_emit_before(at, &mgx_op_slice,
                           MGX_ATTRS(mgx_ints("axes", axes, 1), mgx_ints("starts", &start, 1),
                                     mgx_ints("ends", &end, 1)),
                           MGX_IN(x));
}

struct mgx_ins *mgx_emit_concat(struct mgx_ins *at, struct mgx_ins *const *in, int count, int axis)
{
    assert(count > 0);
    if (count == 1)
        return in[0];
    return mgx_emit_before(at, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", axis)),
                           (struct mgx_ins_list){in, count});
}

struct mgx_ins *mgx_emit_splat(struct mgx_ins *at, const struct mgx_shape *like, double value)
{
    assert(mgx_shape_is_static(like));
    struct mgx_ins *scalar = mgx_literal_double(at->owner, like->type, value);
    return mgx_emit_multibroadcast(at, scalar, like->lens, like->rank);
}

// Is it one value in all places (*step 0), or a literal of as many, row by row (1)? Behind *at.
static bool know(const struct mgx_ins *ins, const struct mgx_shape *shape,
                 const struct mgx_tensor **at, int *step)
{
    double value;
    *at = mgx_strip_views(ins)->literal;
    *step = !mgx_splat_value(ins, &value);
    return !*step || (ins->literal && mgx_shape_is_standard(&ins->shape) &&
                      mgx_shape_elements(&ins->shape) == mgx_shape_elements(shape));
}

struct mgx_ins *mgx_emit_known_product(struct mgx_ins *at, const struct mgx_shape *shape,
                                       const struct mgx_ins *x, const struct mgx_ins *y)
{
    enum { MANY = 1 << 16, SOME = 256 };
    const struct mgx_shape packed = mgx_shape_make(MGX_FLOAT, shape->rank, shape->lens);
    const int64_t count = mgx_shape_elements(&packed);
    const struct mgx_tensor *a, *b;
    int a_step, b_step;
    struct mgx_tensor t;
    if (count > MANY || !know(x, shape, &a, &a_step) || !know(y, shape, &b, &b_step) ||
        mgx_tensor_create(&t, &packed, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t done = 0; done < count; done += SOME) {
        double v[SOME], w[SOME];
        const int64_t some = mgx_min_i64(SOME, count - done);
        mgx_load_doubles(a->shape.type, a->data, done * a_step, a_step, some, v);
        mgx_load_doubles(b->shape.type, b->data, done * b_step, b_step, some, w);
        for (int64_t i = 0; i < some; i++)
            ((float *)t.data)[done + i] = (float)v[i] * (float)w[i];
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return literal;
}

struct mgx_ins *mgx_emit_again(struct mgx_ins *at, const struct mgx_ins *model,
                               struct mgx_ins *const *in, int count)
{
    assert(count == model->in_count);
    return mgx_insert(at->owner, at, model->op, model->attr, in, count, model->mod,
                      model->mod_count);
}

__attribute__((unused)) static bool has_fields_of(const struct mgx_op *a, const struct mgx_op *b)
{
    bool all = a->attr_size == b->attr_size;
    for (const struct mgx_field *f = b->fields; f && f->name && all; f++) {
        const struct mgx_field *same = mgx_field_find(a, f->name);
        all = same && same->kind == f->kind && same->offset == f->offset;
    }
    return all;
}

struct mgx_ins *mgx_emit_as(struct mgx_ins *at, const struct mgx_op *op,
                            const struct mgx_ins *model, struct mgx_ins_list in)
{
    assert(has_fields_of(model->op, op));
    return mgx_insert(at->owner, at, op, model->attr, in.v, in.count, NULL, 0);
}

// --- attributes ---

void *mgx_edit_attr(struct mgx_program *p, const struct mgx_ins *ins)
{
    void *attr = NULL;
    return mgx_attr_copy(ins->op, ins->attr, &p->arena, &attr, &p->diag) == MGX_OK ? attr : NULL;
}

static void *field_of(const struct mgx_op *op, void *attr, const char *name)
{
    const struct mgx_field *f = mgx_field_find(op, name);
    assert(f);
    return (char *)attr + f->offset;
}

bool mgx_edit_ints(struct mgx_program *p, const struct mgx_op *op, void *attr, const char *name,
                   const int64_t *v, int count)
{
    assert(mgx_field_find(op, name)->kind == MGX_FIELD_INTS);
    int64_t *copy = attr ? MGX_NEW_ARRAY(&p->arena, int64_t, count) : NULL;
    if (!copy)
        return false;
    for (int i = 0; i < count; i++)
        copy[i] = v[i];
    *(struct mgx_ints *)field_of(op, attr, name) = (struct mgx_ints){copy, count};
    return true;
}

void mgx_edit_int(const struct mgx_op *op, void *attr, const char *name, int64_t v)
{
    assert(mgx_field_find(op, name)->kind != MGX_FIELD_BOOL);
    if (attr)
        *(int64_t *)field_of(op, attr, name) = v;
}

void mgx_edit_bool(const struct mgx_op *op, void *attr, const char *name, bool v)
{
    assert(mgx_field_find(op, name)->kind == MGX_FIELD_BOOL);
    if (attr)
        *(bool *)field_of(op, attr, name) = v;
}

void mgx_edit_real(const struct mgx_op *op, void *attr, const char *name, double v)
{
    assert(mgx_field_find(op, name)->kind == MGX_FIELD_FLOAT);
    if (attr)
        *(double *)field_of(op, attr, name) = v;
}

struct mgx_ins *mgx_emit_edited(struct mgx_ins *at, const struct mgx_op *op, void *attr,
                                struct mgx_ins *const *in, int count)
{
    return attr ? mgx_insert(at->owner, at, op, attr, in, count, NULL, 0) : NULL;
}

// --- broadcasts ---

bool mgx_spread_of(struct mgx_ins *ins, struct mgx_spread *out)
{
    if (!mgx_shape_is_static(&ins->shape) || ins->in_count != 1 ||
        !mgx_shape_is_static(&ins->in[0]->shape))
        return false;
    struct mgx_ins *core = ins->in[0];
    int first;
    if (mgx_is(ins, &mgx_op_broadcast))
        first =
            (int)mgx_ins_int(ins, "axis") + (mgx_ins_int(ins, "axis") < 0 ? ins->shape.rank : 0);
    else if (mgx_is(ins, &mgx_op_multibroadcast))
        first = ins->shape.rank - core->shape.rank;
    else if (mgx_is(ins, &mgx_op_scalar))
        first = ins->shape.rank;
    else
        return false;
    if (first < 0)
        return false;
    out->core = core;
    for (int d = 0; d < ins->shape.rank; d++) {
        const int axis = d - first;
        const bool walks =
            axis >= 0 && axis < core->shape.rank && core->shape.lens[axis] == ins->shape.lens[d];
        out->axis[d] = walks ? axis : -1;
    }
    return true;
}

// Does the value change along axis d?
static bool varies(const struct mgx_ins *ins, const struct mgx_spread *s, int d)
{
    assert(d >= 0 && d < ins->shape.rank);
    return ins->shape.lens[d] != 1 && s->axis[d] >= 0;
}

bool mgx_is_along(struct mgx_ins *ins, int axis)
{
    struct mgx_spread s;
    double value;
    if (!mgx_shape_is_static(&ins->shape) || axis < 0 || axis >= ins->shape.rank)
        return false;
    if (mgx_splat_value(ins, &value))
        return true;
    if (!mgx_spread_of(ins, &s)) { // itself: all other lengths are 1
        for (int d = 0; d < ins->shape.rank; d++)
            if (d != axis && ins->shape.lens[d] != 1)
                return false;
        return true;
    }
    for (int d = 0; d < ins->shape.rank; d++)
        if (d != axis && varies(ins, &s, d))
            return false;
    return true;
}

struct mgx_ins *mgx_emit_along(struct mgx_ins *at, struct mgx_ins *ins, int axis)
{
    assert(mgx_is_along(ins, axis));
    const int64_t length = ins->shape.lens[axis];
    const struct mgx_shape vector = mgx_shape_vector(ins->shape.type, length);
    struct mgx_spread s;
    double value;
    if (mgx_splat_value(ins, &value)) {
        // The literal itself, so that 64-bit integers keep their bits.
        struct mgx_ins *scalar = mgx_literal_double(at->owner, ins->shape.type, value);
        return mgx_emit_multibroadcast(at, scalar, vector.lens, 1);
    }
    struct mgx_ins *core = mgx_spread_of(ins, &s) ? s.core : ins;
    const int64_t elements = mgx_shape_elements(&core->shape);
    assert(elements == 1 || elements == length);
    core = mgx_emit_reshape(at, core, &elements, 1);
    return mgx_emit_multibroadcast(at, core, vector.lens, 1);
}

struct mgx_ins *mgx_emit_spread(struct mgx_ins *at, struct mgx_ins *vector, int axis,
                                const struct mgx_shape *like)
{
    assert(!vector || (vector->shape.rank == 1 && axis >= 0 && axis < like->rank));
    if (!vector)
        return NULL;
    int64_t lens[MGX_MAX_RANK];
    for (int d = 0; d < like->rank; d++)
        lens[d] = d == axis ? vector->shape.lens[0] : 1;
    vector = mgx_emit_reshape(at, vector, lens, like->rank);
    return mgx_emit_multibroadcast(at, vector, like->lens, like->rank);
}

struct mgx_ins *mgx_emit_shifted(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *zero,
                                 int axis, enum mgx_type type)
{
    const int64_t one = 1;
    x = mgx_emit_convert(at, x, type);
    if (!x || !zero)
        return x;
    const struct mgx_shape like = x->shape;
    const bool single = mgx_shape_elements(&zero->shape) == 1;
    zero = mgx_emit_convert(at, zero, type);
    zero = single ? mgx_emit_multibroadcast(at, mgx_emit_reshape(at, zero, &one, 1), like.lens,
                                            like.rank)
                  : mgx_emit_spread(at, zero, axis, &like);
    return mgx_emit_binary(at, &mgx_op_sub, x, zero);
}
