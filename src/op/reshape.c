// SPDX-License-Identifier: MIT
// Other lengths for the same elements in row-major order.
//
//     reshape       to dims, to the lengths in input 1, or to those of input 1 where that is no
//                   vector of integers; a standard input is viewed, another copied
//     reshape_within  to the lengths in input 1, of which out_dyn_dims says what is known before
//     reshape_lazy  to dims, always a view; fails where strides do not allow it
//     flatten       to {product before axis, product from axis on}
//     as_shape      to a given shape of as many elements, of a standard input
//
// In dims 0 copies the input's length at that place and one -1 takes what is left over.
#include "op/rule/rule.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"

struct reshape {
    struct mgx_ints dims;
};

static const struct mgx_field reshape_fields[] = {MGX_INTS(struct reshape, dims), {0}};

// Product of ranges with saturation at MGX_DIM_ANY.
static int64_t capped(int64_t a, int64_t b)
{
    assert(a >= 0 && b >= 0);
    int64_t r;
    return mgx_mul_i64(a, b, &r) && r < MGX_DIM_ANY ? r : MGX_DIM_ANY;
}

// --- the axis that is left over ---

// What remains when the axes that the result copies are left out on both sides.
struct rest {
    int64_t fixed_in, fixed_out; // products of fixed lengths
    struct mgx_dim open;         // the one open range that remains of the input
    struct mgx_dim all;          // product of everything that remains of it
    int open_count;              // how many open ranges remain
    bool overflow;
};

static void multiply(struct rest *r, int64_t *product, int64_t by)
{
    r->overflow |= !mgx_mul_i64(*product, by, product);
}

static struct rest cancel(const struct mgx_shape *s, const struct mgx_dim *dims, const bool *copied,
                          int rank, int hole)
{
    assert(s->rank <= MGX_MAX_RANK);
    struct rest r = {.fixed_in = 1, .fixed_out = 1, .all = {.min = 1, .max = 1}};
    for (int i = 0; i < rank; i++) {
        if (i == hole || copied[i])
            continue;
        multiply(&r, &r.fixed_out, dims[i].max);
    }
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        if (i < rank && copied[i] && i != hole)
            continue;
        r.all = (struct mgx_dim){.min = capped(r.all.min, d.min), .max = capped(r.all.max, d.max)};
        if (d.min == d.max) {
            multiply(&r, &r.fixed_in, d.max);
        } else {
            r.open = d;
            r.open_count++;
        }
    }
    return r;
}

static struct mgx_dim product_range(const struct mgx_shape *s)
{
    struct mgx_dim r = {.min = 1, .max = 1};
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        r.min = capped(r.min, d.min);
        r.max = capped(r.max, d.max);
    }
    return r;
}

static enum mgx_status fill_hole(struct mgx_shape_call *c, struct mgx_dim *dims, const bool *copied,
                                 int rank, int hole)
{
    const struct mgx_shape *s = c->in[0];
    const struct rest r = cancel(s, dims, copied, rank, hole);
    if (r.overflow)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: the lengths overflow", c->op->name);
    if (r.fixed_out == 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: -1 beside a length of 0 has no meaning: axis %d is open", c->op->name,
                        hole);
    if (r.open_count == 0 && r.fixed_in % r.fixed_out != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of elements for reshape: %" PRId64
                        " elements cannot be divided by %" PRId64,
                        c->op->name, r.fixed_in, r.fixed_out);
    if (r.open_count == 0)
        dims[hole].min = dims[hole].max = r.fixed_in / r.fixed_out;
    else if (r.open_count == 1 && r.fixed_in == r.fixed_out)
        dims[hole] = r.open; // with its name
    else
        dims[hole] = (struct mgx_dim){
            .min = r.all.min / r.fixed_out,
            .max = r.all.max < MGX_DIM_ANY ? r.all.max / r.fixed_out : r.all.max,
        };
    return MGX_OK;
}

// --- the rule ---

static enum mgx_status fail_elements(struct mgx_shape_call *c, int64_t have, int64_t want)
{
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: Wrong number of elements for reshape: reshape has %" PRId64
                    " elements whereas the input has %" PRId64,
                    c->op->name, want, have);
}

static enum mgx_status read_dims(struct mgx_shape_call *c, struct mgx_ints want,
                                 struct mgx_dim *dims, bool *copied, int *hole)
{
    const struct mgx_shape *s = c->in[0];
    *hole = -1;
    for (int i = 0; i < want.count; i++) {
        const int64_t n = want.v[i];
        copied[i] = n == 0;
        if (n < -1)
            return mgx_fail(c->diag, MGX_INVALID, "%s: length %" PRId64 " of axis %d", c->op->name,
                            n, i);
        if (n == -1 && *hole >= 0)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Dimensions for reshape can only have one -1 dim", c->op->name);
        if (n == 0 && i >= s->rank)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: length 0 copies axis %d of an input of %d dimensions", c->op->name,
                            i, s->rank);
        if (n == 0)
            dims[i] = mgx_shape_dim(s, i);
        else
            dims[i].min = dims[i].max = n;
        if (n == -1)
            *hole = i;
    }
    return MGX_OK;
}

static enum mgx_status apply_dims(struct mgx_shape_call *c, struct mgx_ints want,
                                  struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    bool copied[MGX_MAX_RANK];
    int hole;
    if (want.count > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: %d dimensions are above the limit of %d",
                        c->op->name, want.count, MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, want.count);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(read_dims(c, want, dims, copied, &hole));
    if (hole >= 0)
        TRY(fill_hole(c, dims, copied, want.count, hole));
    *out = mgx_shape_from_dims(s->type, want.count, dims);
    TRY(mgx_shape_check(out, c->diag));
    const struct mgx_dim have = product_range(s), get = product_range(out);
    const bool exact = mgx_shape_is_static(s) && mgx_shape_is_static(out);
    if (exact && mgx_shape_elements(s) != mgx_shape_elements(out))
        return fail_elements(c, mgx_shape_elements(s), mgx_shape_elements(out));
    if (!exact && (have.max < get.min || get.max < have.min))
        return fail_elements(c, have.max, get.max);
    return MGX_OK;
}

// To the lengths of an input: MIGraphX passes the buffer for the result so.
static enum mgx_status like_input(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0], *like = c->in[1];
    *out = mgx_shape_unranked(s->type);
    if (like->unranked)
        return MGX_OK;
    struct mgx_dim *dims = mgx_edit_dims(c, like, like->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(s->type, like->rank, dims);
    const struct mgx_dim have = product_range(s), get = product_range(out);
    if (have.max < get.min || get.max < have.min)
        return fail_elements(c, have.max, get.max);
    return MGX_OK;
}

static enum mgx_status reshape_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct reshape *a = c->attr;
    if (c->in_count == 1)
        return apply_dims(c, a->dims, out);
    if (!mgx_type_is_integral(c->in[1]->type) || (!c->in[1]->unranked && c->in[1]->rank > 1))
        return like_input(c, out);
    struct mgx_ints dims;
    bool known;
    TRY(mgx_known_ints(c, 1, &known, &dims));
    if (known)
        return apply_dims(c, dims, out);
    const struct mgx_dim count = mgx_shape_dim(c->in[1], 0);
    if (c->in[1]->rank != 1 || count.min != count.max) {
        *out = mgx_shape_unranked(c->in[0]->type);
        return MGX_OK;
    }
    return mgx_shape_any(c, c->in[0]->type, (int)mgx_min_i64(count.max, MGX_MAX_RANK + 1),
                         MGX_DIM_ANY, out);
}

const struct mgx_op mgx_op_reshape = {
    .name = "reshape",
    .meaning = "x under the lengths dims, row-major",
    .fields = reshape_fields,
    .attr_size = sizeof(struct reshape),
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_RESHAPE | MGX_OP_REGROUP,
    .shape = reshape_shape,
    .compute = mgx_compute_reshape,
    .sized_by = mgx_sized_by_rest,
};

// --- with ranges ---

struct reshape_within {
    struct mgx_dims out_dyn_dims;
};

static const struct mgx_field within_fields[] = {MGX_DIMS(struct reshape_within, out_dyn_dims),
                                                 {0}};

// What the lengths come to and what was said of them before, both.
static enum mgx_status keep_within(struct mgx_shape_call *c, struct mgx_dims declared,
                                   struct mgx_shape *out)
{
    if (out->rank != declared.count)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %d lengths, out_dyn_dims has %d", c->op->name,
                        out->rank, declared.count);
    struct mgx_dim *dims = mgx_edit_dims(c, out, out->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < out->rank; i++) {
        const struct mgx_dim said = declared.v[i];
        if (dims[i].max < said.min || dims[i].min > said.max)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: length %" PRId64 " of axis %d is not within %" PRId64 "..%" PRId64,
                            c->op->name, dims[i].min, i, said.min, said.max);
        mgx_dim_meet(&dims[i], said);
    }
    if (!mgx_shape_is_static(out))
        *out = mgx_shape_from_dims(out->type, out->rank, dims);
    return MGX_OK;
}

static enum mgx_status within_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_dims declared = ((const struct reshape_within *)c->attr)->out_dyn_dims;
    struct mgx_ints lens;
    bool known;
    TRY(mgx_known_ints(c, 1, &known, &lens));
    if (declared.count > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: %d dimensions are above the limit of %d",
                        c->op->name, declared.count, MGX_MAX_RANK);
    if (known) {
        TRY(apply_dims(c, lens, out));
        return keep_within(c, declared, out);
    }
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, declared.count);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < declared.count; i++)
        dims[i] = declared.v[i];
    *out = mgx_shape_from_dims(c->in[0]->type, declared.count, dims);
    return mgx_shape_check(out, c->diag);
}

const struct mgx_op mgx_op_reshape_within = {
    .name = "reshape_within",
    .meaning = "x under the lengths in input 1, within out_dyn_dims, row-major",
    .fields = within_fields,
    .attr_size = sizeof(struct reshape_within),
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_RESHAPE | MGX_OP_REGROUP,
    .shape = within_shape,
    .compute = mgx_compute_reshape,
    .sized_by = mgx_sized_by_rest,
};

static enum mgx_status lazy_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct reshape *a = c->attr;
    TRY(apply_dims(c, a->dims, out));
    if (!mgx_shape_is_static(c->in[0]) || !mgx_shape_is_static(out))
        return MGX_OK;
    const struct mgx_shape plain = *out;
    if (!mgx_shape_regroup(c->in[0], plain.rank, plain.lens, out))
        return mgx_fail(c->diag, MGX_INVALID,
                        "reshape_lazy: the input's strides allow no view under other lengths");
    return MGX_OK;
}

const struct mgx_op mgx_op_reshape_lazy = {
    .name = "reshape_lazy",
    .meaning = "x under the lengths dims, always as a view",
    .fields = reshape_fields,
    .attr_size = sizeof(struct reshape),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW | MGX_OP_REGROUP,
    .shape = lazy_shape,
    .compute = mgx_compute_view,
};

// --- flatten ---

struct flatten {
    int64_t axis;
};

static const struct mgx_field flatten_fields[] = {MGX_INT(struct flatten, axis), {0}};
static const struct flatten flatten_defaults = {.axis = 1};

static enum mgx_status flatten_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct flatten *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    if (a->axis < -s->rank || a->axis > s->rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "flatten: axis for flatten must be less than tensor rank: axis %" PRId64
                        " of %d dimensions",
                        a->axis, s->rank);
    const int64_t axis = a->axis < 0 ? a->axis + s->rank : a->axis;
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 2);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < s->rank; i++) {
        struct mgx_dim *to = &dims[i >= axis], d = mgx_shape_dim(s, i);
        if (to->min == 1 && to->max == 1) {
            *to = d; // a lone axis keeps its name
        } else if (d.min != 1 || d.max != 1) {
            const bool fixed = to->min == to->max && d.min == d.max;
            *to = (struct mgx_dim){.min = capped(to->min, d.min), .max = capped(to->max, d.max)};
            if (fixed && to->max == MGX_DIM_ANY)
                return mgx_fail(c->diag, MGX_LIMIT, "flatten: more than 2^40 positions");
        }
    }
    *out = mgx_shape_from_dims(s->type, 2, dims);
    return MGX_OK;
}

const struct mgx_op mgx_op_flatten = {
    .name = "flatten",
    .meaning = "x as a matrix: axes before `axis` by the rest",
    .fields = flatten_fields,
    .attr_size = sizeof(struct flatten),
    .defaults = &flatten_defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_RESHAPE | MGX_OP_REGROUP,
    .shape = flatten_shape,
    .compute = mgx_compute_reshape,
};

// --- as_shape ---

struct as_shape {
    struct mgx_shape shape;
};

static const struct mgx_field as_shape_fields[] = {MGX_SHAPE(struct as_shape, shape), {0}};

static enum mgx_status as_shape_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct as_shape *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    TRY(mgx_shape_check(&a->shape, c->diag));
    if (s->type != a->shape.type)
        return mgx_fail(c->diag, MGX_INVALID, "as_shape: Types do not match: %s and %s",
                        mgx_type_name(s->type), mgx_type_name(a->shape.type));
    *out = a->shape;
    if (!mgx_shape_is_static(s) || !mgx_shape_is_static(out))
        return MGX_OK;
    if (!mgx_shape_is_standard(s))
        return mgx_fail(c->diag, MGX_INVALID, "as_shape: Shapes are not in standard layout");
    if (mgx_shape_elements(s) != mgx_shape_elements(out) ||
        mgx_shape_space(out) > mgx_shape_space(s))
        return fail_elements(c, mgx_shape_elements(s), mgx_shape_elements(out));
    return MGX_OK;
}

const struct mgx_op mgx_op_as_shape = {
    .name = "as_shape",
    .meaning = "the bytes of x under a given shape",
    .fields = as_shape_fields,
    .attr_size = sizeof(struct as_shape),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = as_shape_shape,
    .compute = mgx_compute_view,
};
