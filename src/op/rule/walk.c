// SPDX-License-Identifier: MIT
// What computes share: views, parts and scalars, walking several strided tensors together, values
// as doubles or integers. See rule.h.
#include <assert.h>
#include <inttypes.h>

#include "base/cancel.h"
#include "op/rule/rule.h"

// --- computes that several operators share ---

enum mgx_status mgx_eval_members(struct mgx_compute_call *c, struct mgx_tensor *out, int count)
{
    assert(c->out_shape->type == MGX_TUPLE && c->out_shape->sub_count == count);
    for (int i = 0; i < count; i++) {
        struct mgx_compute_call part = *c;
        part.out = &out[i];
        const enum mgx_status status = mgx_eval_create(&part, &c->out_shape->sub[i]);
        if (status == MGX_OK)
            continue;
        for (int k = 0; k < i; k++)
            mgx_tensor_release(&out[k]);
        return status;
    }
    return MGX_OK;
}

enum mgx_status mgx_compute_view(struct mgx_compute_call *c)
{
    if (!mgx_shape_is_static(c->out_shape))
        return mgx_fail(c->diag, MGX_INVALID, "%s: the attributes leave the lengths open",
                        c->op->name);
    *c->out = mgx_tensor_view(c->in[0], c->out_shape, 0);
    return MGX_OK;
}

enum mgx_status mgx_compute_reshape(struct mgx_compute_call *c)
{
    const struct mgx_tensor *in = c->in[0];
    if (mgx_shape_is_standard(&in->shape))
        return mgx_compute_view(c);
    const struct mgx_shape row_major = mgx_shape_retype(&in->shape, in->shape.type);
    TRY(mgx_eval_create(c, &row_major));
    mgx_tensor_copy(in, c->out);
    c->out->shape = *c->out_shape;
    return MGX_OK;
}

struct mgx_tensor mgx_tensor_part(const struct mgx_tensor *t, const struct mgx_shape *shape,
                                  int64_t element)
{
    const size_t size = mgx_type_size(t->shape.type);
    return mgx_tensor_borrow(shape, (const char *)t->data + (size_t)element * size);
}

enum mgx_status mgx_scalar_int(struct mgx_compute_call *c, int input, int64_t *out)
{
    const struct mgx_tensor *t = c->in[input];
    if (!mgx_type_is_number(t->shape.type))
        return mgx_fail(c->diag, MGX_INVALID, "%s: input %d must be a number, not of type %s",
                        c->op->name, input, mgx_type_name(t->shape.type));
    if (mgx_shape_elements(&t->shape) != 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: input %d must hold one value, not %" PRId64,
                        c->op->name, input, mgx_shape_elements(&t->shape));
    mgx_tensor_to_ints(t, out);
    return MGX_OK;
}

enum mgx_status mgx_wrap_index(struct mgx_compute_call *c, int64_t index, int axis, int64_t length,
                               int64_t *out)
{
    *out = index < 0 ? index + length : index;
    if (index < -length || index >= length)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: index %" PRId64 " is out of range for axis %d of length %" PRId64,
                        c->op->name, index, axis, length);
    return MGX_OK;
}

// --- walking ---

// Appends an axis to the walk, joined to the one before it where all tensors allow that.
static void add_axis(struct mgx_walk *w, const struct mgx_shape *const *shapes, int axis,
                     int64_t len)
{
    bool joins = w->rank > 0;
    for (int k = 0; k < w->count && joins; k++)
        joins = w->strides[k][w->rank - 1] == shapes[k]->strides[axis] * len;
    if (!joins)
        w->lens[w->rank++] = 1;
    w->lens[w->rank - 1] *= len;
    for (int k = 0; k < w->count; k++)
        w->strides[k][w->rank - 1] = shapes[k]->strides[axis];
}

void mgx_walk_start(struct mgx_walk *w, const struct mgx_shape *const *shapes, int count)
{
    assert(count >= 1 && count <= MGX_WALK_MAX);
    *w = (struct mgx_walk){.count = count, .run = 1};
    const struct mgx_shape *s = shapes[0];
    for (int k = 1; k < count; k++)
        assert(mgx_shape_same_lens(s, shapes[k]));
    for (int axis = 0; axis < s->rank; axis++) {
        if (s->lens[axis] == 0)
            w->done = true;
        // Axes of length 1 do not move; all shapes have the same rank where one is longer.
        if (s->lens[axis] > 1)
            add_axis(w, shapes, axis, s->lens[axis]);
    }
    if (w->rank == 0)
        return;
    w->rank--; // the innermost axis is the run
    w->run = w->lens[w->rank];
    for (int k = 0; k < count; k++)
        w->step[k] = w->strides[k][w->rank];
}

void mgx_walk_next(struct mgx_walk *w)
{
    enum { LOOK_EVERY = 1 << 16 };
    assert(!w->done);
    w->look -= w->run;
    if (w->look < 0) {
        w->look = LOOK_EVERY;
        w->done = mgx_cancelled();
        if (w->done)
            return;
    }
    for (int axis = w->rank - 1; axis >= 0; axis--) {
        const int64_t last = w->lens[axis] - 1;
        if (w->at[axis] < last) {
            w->at[axis]++;
            for (int k = 0; k < w->count; k++)
                w->offset[k] += w->strides[k][axis];
            return;
        }
        w->at[axis] = 0;
        for (int k = 0; k < w->count; k++)
            w->offset[k] -= last * w->strides[k][axis];
    }
    w->done = true;
}

// --- values ---

double *mgx_scratch_doubles(struct mgx_compute_call *c, const struct mgx_tensor *t)
{
    double *v = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(&t->shape));
    if (!v)
        mgx_fail_memory(c->diag);
    else
        mgx_tensor_to_doubles(t, v);
    return v;
}

int64_t *mgx_scratch_ints(struct mgx_compute_call *c, const struct mgx_tensor *t)
{
    int64_t *v = MGX_NEW_ARRAY(c->scratch, int64_t, mgx_shape_elements(&t->shape));
    if (!v)
        mgx_fail_memory(c->diag);
    else
        mgx_tensor_to_ints(t, v);
    return v;
}

void mgx_write_doubles(struct mgx_tensor *t, const double *values)
{
    struct mgx_walk w;
    const struct mgx_shape *shape = &t->shape;
    for (mgx_walk_start(&w, &shape, 1); !w.done; mgx_walk_next(&w)) {
        mgx_store_doubles(shape->type, t->data, w.offset[0], w.step[0], w.run, values);
        values += w.run;
    }
}

void mgx_write_ints(struct mgx_tensor *t, const int64_t *values)
{
    struct mgx_walk w;
    const struct mgx_shape *shape = &t->shape;
    for (mgx_walk_start(&w, &shape, 1); !w.done; mgx_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            mgx_store_int(shape->type, t->data, w.offset[0] + i * w.step[0], *values++);
}

bool mgx_computes_as_int(enum mgx_type type)
{
    return type == MGX_BOOL || mgx_type_is_integral(type);
}
