// SPDX-License-Identifier: MIT
// unique: the distinct elements of x, or with an axis its distinct slices, and for the first of
// each its position, for each of x its place among them, and how many there are: a tuple (values,
// positions, inverse, counts). Sorted, or in order of first appearance. NaN equals NaN and sorts
// last. How many there are is known at run time only.
//
// Cost: O(n log n) comparisons of slices.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/listed.h"

struct unique {
    int64_t axis;
    bool sorted;
};

static const struct mgx_field fields[] = {
    MGX_OPTIONAL_INT(struct unique, axis), MGX_FLAG(struct unique, sorted), {0}};
static const struct unique defaults = {.axis = MGX_NONE, .sorted = true};

static enum mgx_type result_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_TUPLE;
}

// The distinct elements or slices, `count` of them, which is as many as x has at most.
static enum mgx_status values_shape(struct mgx_shape_call *c, struct mgx_dim *count,
                                    struct mgx_shape *out)
{
    const struct unique *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    const bool flat = a->axis == MGX_NONE;
    int axis = 0;
    *out = mgx_shape_unranked(s->type);
    if (s->unranked)
        return MGX_OK;
    if (!flat)
        TRY(mgx_normalize_axis(c, a->axis, s->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, flat ? NULL : s, flat ? 1 : s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    count->max = flat ? mgx_elements_max(s) : dims[axis].max;
    dims[axis] = *count;
    *out = mgx_shape_from_dims(s->type, flat ? 1 : s->rank, dims);
    return MGX_OK;
}

static enum mgx_status list_shape(struct mgx_shape_call *c, struct mgx_dim length,
                                  struct mgx_shape *out)
{
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 1);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[0] = length;
    *out = mgx_shape_from_dims(MGX_INT64, 1, dims);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, 4);
    if (!sub)
        return mgx_fail_memory(c->diag);
    if (!mgx_type_is_number(s->type) && s->type != MGX_STRING)
        return mgx_fail(c->diag, MGX_INVALID, "unique: type %s has no order",
                        mgx_type_name(s->type));
    struct mgx_dim count = {.min = 0, .max = MGX_DIM_ANY};
    TRY(values_shape(c, &count, &sub[0]));
    struct mgx_dim inverse = count; // is as long as x
    if (mgx_shape_is_static(s))
        inverse.min = count.max;
    TRY(list_shape(c, count, &sub[1]));
    TRY(list_shape(c, inverse, &sub[2]));
    TRY(list_shape(c, count, &sub[3]));
    *out = mgx_shape_tuple(sub, 4);
    return MGX_OK;
}

// --- slices and their order ---

struct slices {
    const struct mgx_tensor *x;
    struct mgx_shape one; // of a slice: x without the axis
    int64_t step;         // from slice to slice, in elements
    struct mgx_shape all; // when flat: x itself, and slices are single elements
    bool flat;
};

static int64_t slice_offset(const struct slices *s, int64_t number)
{
    assert(number >= 0);
    return s->flat ? mgx_shape_index(&s->all, number) : number * s->step;
}

static int compare_strings(const struct mgx_string *a, const struct mgx_string *b)
{
    const size_t n = a->size < b->size ? a->size : b->size;
    const int order = n ? memcmp(a->text, b->text, n) : 0;
    return order ? order : a->size < b->size ? -1 : a->size > b->size;
}

static int compare_elements(const struct mgx_tensor *x, int64_t a, int64_t b)
{
    const enum mgx_type type = x->shape.type;
    if (type == MGX_STRING)
        return compare_strings((const struct mgx_string *)x->data + a,
                               (const struct mgx_string *)x->data + b);
    if (mgx_computes_as_int(type)) {
        const int64_t p = mgx_load_int(type, x->data, a), q = mgx_load_int(type, x->data, b);
        if (type == MGX_UINT64)
            return (uint64_t)p < (uint64_t)q ? -1 : (uint64_t)p > (uint64_t)q;
        return p < q ? -1 : p > q;
    }
    const double p = mgx_load_double(type, x->data, a), q = mgx_load_double(type, x->data, b);
    if (isnan(p) || isnan(q))
        return isnan(p) - isnan(q);
    return p < q ? -1 : p > q;
}

static int compare_slices(const struct slices *s, int64_t a, int64_t b)
{
    const int64_t p = slice_offset(s, a), q = slice_offset(s, b);
    const int64_t count = mgx_shape_elements(&s->one);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = mgx_shape_index(&s->one, i);
        const int order = compare_elements(s->x, p + at, q + at);
        if (order)
            return order;
    }
    return 0;
}

// Stable merge sort of slice numbers, bottom up; `room` is as long as `v`.
static void sort_slices(const struct slices *s, int64_t *v, int64_t *room, int64_t n)
{
    assert(n >= 0);
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            const int64_t middle = mgx_min_i64(low + width, n);
            const int64_t high = mgx_min_i64(low + 2 * width, n);
            for (int64_t i = low, j = middle, k = low; k < high; k++) {
                const bool left = j >= high || (i < middle && compare_slices(s, v[i], v[j]) <= 0);
                room[k] = left ? v[i++] : v[j++];
            }
        }
        memcpy(v, room, (size_t)n * sizeof *v);
    }
}

// --- groups of equal slices ---

struct groups {
    int64_t *first, *inverse, *counts;
    int64_t count;
};

// From the sorted numbers; stable sorting makes the first of a group its first appearance.
static void find_groups(const struct slices *s, const int64_t *order, int64_t n, struct groups *g)
{
    assert(n >= 0);
    g->count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_slices(s, order[i - 1], order[i]) != 0) {
            g->first[g->count] = order[i];
            g->counts[g->count++] = 0;
        }
        g->counts[g->count - 1]++;
        g->inverse[order[i]] = g->count - 1;
    }
}

// Renumbers groups by first appearance: walks x and meets each group for the first time in turn.
static void by_appearance(struct groups *g, int64_t *rank, int64_t *room, int64_t n)
{
    assert(n >= 0);
    int64_t met = 0;
    for (int64_t i = 0; i < n; i++)
        if (g->first[g->inverse[i]] == i)
            rank[g->inverse[i]] = met++;
    for (int pass = 0; pass < 2; pass++) {
        int64_t *list = pass ? g->counts : g->first;
        for (int64_t k = 0; k < g->count; k++)
            room[rank[k]] = list[k];
        memcpy(list, room, (size_t)g->count * sizeof *list);
    }
    for (int64_t i = 0; i < n; i++)
        g->inverse[i] = rank[g->inverse[i]];
}

// --- compute ---

static struct slices slices_of(const struct mgx_compute_call *c, int64_t *count)
{
    const struct unique *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape;
    struct slices s = {.x = c->in[0], .one = mgx_shape_scalar(x->type), .all = *x, .flat = true};
    *count = mgx_shape_elements(x);
    if (a->axis == MGX_NONE)
        return s;
    const int axis = mgx_wrap_axis(a->axis, x->rank);
    s.flat = false;
    s.step = x->strides[axis];
    for (int i = 0; i < x->rank; i++)
        if (i != axis) {
            s.one.lens[s.one.rank] = x->lens[i];
            s.one.strides[s.one.rank++] = x->strides[i];
        }
    *count = x->lens[axis];
    return s;
}

static enum mgx_status write_values(struct mgx_compute_call *c, const struct slices *s,
                                    const struct groups *g, struct mgx_tensor *out)
{
    const struct unique *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape;
    struct mgx_shape shape_ = mgx_shape_vector(x->type, g->count);
    const int axis = s->flat ? 0 : mgx_wrap_axis(a->axis, x->rank);
    if (!s->flat) {
        int64_t lens[MGX_MAX_RANK];
        memcpy(lens, x->lens, sizeof lens);
        lens[axis] = g->count;
        shape_ = mgx_shape_make(x->type, x->rank, lens);
    }
    struct mgx_compute_call part = *c;
    part.out = out;
    TRY(mgx_eval_create(&part, &shape_));
    struct mgx_shape to = s->one; // a slice of the result
    for (int i = 0, k = 0; !s->flat && i < x->rank; i++)
        if (i != axis)
            to.strides[k++] = shape_.strides[i];
    for (int64_t k = 0; k < g->count; k++) {
        const struct mgx_tensor from = mgx_tensor_part(s->x, &s->one, slice_offset(s, g->first[k]));
        struct mgx_tensor place = mgx_tensor_part(out, &to, k * shape_.strides[axis]);
        mgx_tensor_copy(&from, &place);
    }
    return MGX_OK;
}

static enum mgx_status write_list(struct mgx_compute_call *c, const int64_t *list, int64_t count,
                                  struct mgx_tensor *out)
{
    const struct mgx_shape vector = mgx_shape_vector(MGX_INT64, count);
    struct mgx_compute_call part = *c;
    part.out = out;
    TRY(mgx_eval_create(&part, &vector));
    mgx_write_ints(out, list);
    return MGX_OK;
}

static bool make_room(struct mgx_compute_call *c, int64_t n, struct groups *g)
{
    g->first = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    g->inverse = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    g->counts = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    return !c->scratch->failed;
}

static enum mgx_status group_slices(struct mgx_compute_call *c, const struct slices *s, int64_t n,
                                    struct groups *g)
{
    const struct unique *a = c->attr;
    int64_t *order = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    int64_t *room = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    int64_t *rank = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    if (!make_room(c, n, g))
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    sort_slices(s, order, room, n);
    find_groups(s, order, n, g);
    if (!a->sorted)
        by_appearance(g, rank, room, n);
    return MGX_OK;
}

static enum mgx_status write_results(struct mgx_compute_call *c, const struct slices *s, int64_t n,
                                     const struct groups *g, struct mgx_tensor *out)
{
    TRY(write_values(c, s, g, &out[0]));
    TRY(write_list(c, g->first, g->count, &out[1]));
    TRY(write_list(c, g->inverse, n, &out[2]));
    return write_list(c, g->counts, g->count, &out[3]);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    int64_t n;
    struct groups g = {0};
    struct mgx_tensor out[4] = {{.data = NULL}};
    const struct slices s = slices_of(c, &n);
    TRY(group_slices(c, &s, n, &g));
    const enum mgx_status status = write_results(c, &s, n, &g, out);
    if (status == MGX_OK)
        return mgx_tensor_group(c->out, out, 4, false, c->diag);
    for (int i = 0; i < 4; i++)
        mgx_tensor_release(&out[i]);
    return status;
}

const struct mgx_op mgx_op_unique = {
    .name = "unique",
    .meaning = "distinct elements or slices, their positions, inverse and counts",
    .fields = fields,
    .attr_size = sizeof(struct unique),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_UNRANKED,
    .shape = shape,
    .unranked_type = result_type,
    .compute = compute,
};

// --- unique_list: positions, inverse and counts as a list of fixed length (reference/listed.h) ---

static enum mgx_type index_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_INT64;
}

static enum mgx_status unique_list_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    struct mgx_shape plain;
    TRY(shape(c, &plain));
    const struct mgx_dim inverse = mgx_shape_dim(&plain.sub[2], 0);
    return mgx_listed_shape(c, mgx_shape_is_static(c->in[0]) ? 3 * inverse.min : 0,
                            inverse.max < MGX_DIM_ANY / 3 ? 3 * inverse.max : MGX_DIM_ANY, out);
}

static enum mgx_status unique_list(struct mgx_compute_call *c)
{
    const int64_t n = (mgx_shape_elements(&c->out->shape) - 1) / 3;
    int64_t *to = c->out->data;
    struct mgx_tensor value;
    TRY(mgx_listed_value(c, &mgx_op_unique, &value));
    memset(to, 0, mgx_shape_bytes(&c->out->shape));
    for (int i = 1; i < 4; i++)
        mgx_listed_put(to + (i - 1) * n, &value.sub[i], 1, value.sub[i].shape.lens[0], n);
    to[3 * n] = value.sub[1].shape.lens[0];
    mgx_tensor_release(&value);
    return MGX_OK;
}

const struct mgx_op mgx_op_unique_list = {
    .name = "unique_list",
    .meaning =
        "positions, inverse and counts of unique, zeros up to their largest size, and how many "
        "there are",
    .fields = fields,
    .attr_size = sizeof(struct unique),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = unique_list_shape,
    .unranked_type = index_type,
    .compute = unique_list,
};
