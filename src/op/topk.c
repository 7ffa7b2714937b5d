// SPDX-License-Identifier: MIT
// topk: the k largest (or smallest) values along axis in sorted order, and their positions. Equal
// values keep the order of their positions; NaN counts as larger than anything.
//
// Inputs are (x) with the attribute k, or (x, k) with one number, or (x, names) with as many
// numbers as x has, which stand for the positions then. The result is a tuple (values, positions).
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct topk {
    int64_t k;
    int64_t axis;
    bool largest;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct topk, k),
    MGX_INT(struct topk, axis),
    MGX_FLAG(struct topk, largest),
    {0},
};
static const struct topk defaults = {.k = 1, .largest = true};

static enum mgx_type result_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_TUPLE;
}

static bool is_named(const struct mgx_shape *const *in, int in_count)
{
    return in_count == 2 && !in[1]->unranked && in[1]->rank > 0 &&
           (in[1]->rank > 1 || mgx_shape_dim(in[1], 0).min > 1);
}

// One integer for each value.
static enum mgx_status check_names(struct mgx_shape_call *c)
{
    const int rank = c->in[0]->rank;
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 1, rank, rank));
    for (int i = 0; i < rank; i++) {
        struct mgx_dim both = mgx_shape_dim(c->in[0], i);
        mgx_dim_meet(&both, mgx_shape_dim(c->in[1], i));
        if (both.min > both.max)
            return mgx_fail_lens(c, 0, 1);
    }
    return MGX_OK;
}

static enum mgx_status count_range(struct mgx_shape_call *c, struct mgx_dim length,
                                   struct mgx_dim *out)
{
    const struct topk *a = c->attr;
    int64_t k = a->k;
    *out = (struct mgx_dim){.min = 0, .max = length.max};
    if (is_named(c->in, c->in_count)) {
        TRY(check_names(c));
    } else if (c->in_count == 2) {
        struct mgx_ints v;
        bool known;
        TRY(mgx_known_ints(c, 1, &known, &v));
        if (!known)
            return MGX_OK;
        k = v.count == 1 ? v.v[0] : -1;
    }
    if (k < 0 || k > length.max)
        return mgx_fail(c->diag, MGX_INVALID,
                        "topk: k of %" PRId64 " is out of range for an axis of length %" PRId64, k,
                        length.max);
    out->min = out->max = k;
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct topk *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, 2);
    int axis;
    if (!sub)
        return mgx_fail_memory(c->diag);
    *out = mgx_shape_tuple(sub, 2);
    sub[0] = mgx_shape_unranked(s->type);
    sub[1] = mgx_shape_unranked(MGX_INT64);
    if (s->unranked)
        return MGX_OK;
    if (!mgx_type_is_number(s->type))
        return mgx_fail(c->diag, MGX_INVALID, "topk: type %s is not a number",
                        mgx_type_name(s->type));
    TRY(mgx_normalize_axis(c, a->axis, s->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(count_range(c, dims[axis], &dims[axis]));
    sub[0] = mgx_shape_from_dims(s->type, s->rank, dims);
    sub[1] = mgx_shape_from_dims(MGX_INT64, s->rank, dims);
    return MGX_OK;
}

// --- sorting ---

// Keys that order like the values: floats as doubles, integers exactly.
struct entry {
    double real;
    int64_t integer;
    int64_t at;
};

// By value, NaN the largest; 0 where two are equal.
static int compare(const struct entry *x, const struct entry *y)
{
    if (isnan(x->real) != isnan(y->real))
        return isnan(x->real) ? 1 : -1;
    if (x->real != y->real && !isnan(x->real))
        return x->real < y->real ? -1 : 1;
    return x->integer < y->integer ? -1 : x->integer > y->integer;
}

static int by_position(const struct entry *x, const struct entry *y)
{
    return x->at < y->at ? -1 : x->at > y->at;
}

// Larger first; NaN before all.
static int descending(const void *a, const void *b)
{
    const int order = compare(b, a);
    return order ? order : by_position(a, b);
}

static int ascending(const void *a, const void *b)
{
    const int order = compare(a, b);
    return order ? order : by_position(a, b);
}

static struct entry entry_of(const struct mgx_tensor *x, int64_t offset, int64_t at)
{
    assert(at >= 0);
    const enum mgx_type type = x->shape.type;
    struct entry e = {.at = at};
    if (!mgx_computes_as_int(type)) {
        e.real = mgx_load_double(type, x->data, offset);
        return e;
    }
    e.integer = mgx_load_int(type, x->data, offset);
    if (type == MGX_UINT64) // keep the order of numbers from 2^63 on
        e.integer ^= INT64_MIN;
    return e;
}

// What stands for the positions; NULL: they themselves.
static const struct mgx_tensor *names_of(const struct mgx_compute_call *c)
{
    const struct mgx_shape *in[2];
    for (int i = 0; i < c->in_count; i++)
        in[i] = &c->in[i]->shape;
    return is_named(in, c->in_count) ? c->in[1] : NULL;
}

static int64_t name_at(const struct mgx_tensor *names, int axis, int64_t line, int64_t at)
{
    assert(axis >= 0 && line >= 0 && at >= 0);
    struct mgx_shape lines = names->shape;
    lines.lens[axis] = 1;
    const int64_t offset = mgx_shape_index(&lines, line) + at * names->shape.strides[axis];
    return mgx_load_int(names->shape.type, names->data, offset);
}

static void sort_lines(struct mgx_compute_call *c, struct entry *line, int axis,
                       struct mgx_tensor *out)
{
    assert(axis >= 0 && axis < c->in[0]->shape.rank);
    const struct topk *a = c->attr;
    const struct mgx_tensor *x = c->in[0];
    const struct mgx_shape *s = &x->shape;
    const struct mgx_tensor *names = names_of(c);
    struct mgx_shape lines = *s, slots = out[0].shape, cell = mgx_shape_scalar(s->type);
    lines.lens[axis] = slots.lens[axis] = 1;
    const int64_t count = mgx_shape_elements(&lines), k = out[0].shape.lens[axis];
    const int64_t step = out[0].shape.strides[axis];
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = mgx_shape_index(&lines, i), to = mgx_shape_index(&slots, i);
        for (int64_t p = 0; p < s->lens[axis]; p++)
            line[p] = entry_of(x, from + p * s->strides[axis], p);
        qsort(line, (size_t)s->lens[axis], sizeof *line, a->largest ? descending : ascending);
        for (int64_t p = 0; p < k; p++) {
            const struct mgx_tensor value =
                mgx_tensor_part(x, &cell, from + line[p].at * s->strides[axis]);
            struct mgx_tensor place = mgx_tensor_part(&out[0], &cell, to + p * step);
            mgx_tensor_copy(&value, &place);
            ((int64_t *)out[1].data)[to + p * step] =
                names ? name_at(names, axis, i, line[p].at) : line[p].at;
        }
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct topk *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape;
    const int axis = mgx_wrap_axis(a->axis, s->rank);
    struct entry *line = MGX_NEW_ARRAY(c->scratch, struct entry, s->lens[axis]);
    struct mgx_tensor out[2];
    if (!line)
        return mgx_fail_memory(c->diag);
    TRY(mgx_eval_members(c, out, 2));
    sort_lines(c, line, axis, out);
    return mgx_tensor_group(c->out, out, 2, false, c->diag);
}

const struct mgx_op mgx_op_topk = {
    .name = "topk",
    .meaning = "the k largest values along axis and their positions",
    .fields = fields,
    .attr_size = sizeof(struct topk),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_UNRANKED,
    .shape = shape,
    .unranked_type = result_type,
    .compute = compute,
    .sized_by = mgx_sized_by_rest,
};
