// SPDX-License-Identifier: MIT
// What shape rules and computes share; see rule.h for the contracts.
//
// Messages follow MIGraphX's wording up to the first colon after the operator's name and then add
// the values that disagree, so that texts users search for are found and the reason is there too.
#include "op/core/rule.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"

// --- checks ---

// "{2, 3}" of lengths or ranges, for messages.
static void put_lens(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_putc(out, '{');
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        mgx_str_put(out, i ? ", " : "");
        if (d.min == d.max)
            mgx_str_printf(out, "%" PRId64, d.min);
        else
            mgx_str_printf(out, "[%" PRId64 "..%" PRId64 "]", d.min, d.max);
    }
    mgx_str_putc(out, '}');
}

enum mgx_status mgx_fail_lens(struct mgx_shape_call *c, int a, int b)
{
    struct mgx_str x = {0}, y = {0};
    put_lens(&x, c->in[a]);
    put_lens(&y, c->in[b]);
    const enum mgx_status status = mgx_fail(
        c->diag, MGX_INVALID, "%s: Dimensions do not match: input %d is %s, input %d is %s",
        c->op->name, a, mgx_str_text(&x), b, mgx_str_text(&y));
    mgx_str_fini(&x);
    mgx_str_fini(&y);
    return status;
}

enum mgx_status mgx_require_same_type(struct mgx_shape_call *c)
{
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i]->type != c->in[0]->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Types do not match: input 0 is %s, input %d is %s", c->op->name,
                            mgx_type_name(c->in[0]->type), i, mgx_type_name(c->in[i]->type));
    return MGX_OK;
}

enum mgx_status mgx_require_same_lens(struct mgx_shape_call *c)
{
    for (int i = 1; i < c->in_count; i++)
        if (!mgx_shape_may_match(c->in[0], c->in[i]))
            return mgx_fail_lens(c, 0, i);
    return MGX_OK;
}

enum mgx_status mgx_require_rank(struct mgx_shape_call *c, int input, int min_rank, int max_rank)
{
    assert(input < c->in_count && min_rank <= max_rank);
    const int rank = c->in[input]->rank;
    if (rank >= min_rank && rank <= max_rank)
        return MGX_OK;
    if (min_rank == max_rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: Only %dd supported: input %d has %d dimensions",
                        c->op->name, min_rank, input, rank);
    const bool low = rank < min_rank;
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: Shape must have at %s %d dimensions: input %d has %d dimensions",
                    c->op->name, low ? "least" : "most", low ? min_rank : max_rank, input, rank);
}

enum mgx_status mgx_require_static(struct mgx_shape_call *c, int input)
{
    assert(input < c->in_count);
    if (mgx_shape_is_static(c->in[input]))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_UNSUPPORTED, "%s: Dynamic shapes not supported: input %d",
                    c->op->name, input);
}

enum mgx_status mgx_require_integral(struct mgx_shape_call *c, int input)
{
    assert(input < c->in_count);
    const enum mgx_type type = c->in[input]->type;
    if (mgx_type_is_integral(type))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: input %d must be of an integral type, not %s",
                    c->op->name, input, mgx_type_name(type));
}

enum mgx_status mgx_require_number(struct mgx_shape_call *c, int input)
{
    assert(input < c->in_count);
    const enum mgx_type type = c->in[input]->type;
    if (mgx_type_is_number(type))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: input %d must be of numbers, not %s", c->op->name,
                    input, mgx_type_name(type));
}

enum mgx_status mgx_require_float(struct mgx_shape_call *c, int input)
{
    assert(input < c->in_count);
    const enum mgx_type type = c->in[input]->type;
    if (mgx_type_is_float(type))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: input %d must be of a float type, not %s",
                    c->op->name, input, mgx_type_name(type));
}

bool mgx_shape_is_absent(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type == MGX_FLOAT && s->rank == 1 && s->lens[0] == 0;
}

enum mgx_status mgx_normalize_axis(struct mgx_shape_call *c, int64_t axis, int rank, int *out)
{
    *out = 0;
    if (axis < -rank || axis >= rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: axis %" PRId64 " is out of range for rank %d",
                        c->op->name, axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return MGX_OK;
}

enum mgx_status mgx_normalize_axes(struct mgx_shape_call *c, struct mgx_ints axes, int rank,
                                   bool *flags)
{
    for (int i = 0; i < rank; i++)
        flags[i] = false;
    for (int i = 0; i < axes.count; i++) {
        int axis;
        TRY(mgx_normalize_axis(c, axes.v[i], rank, &axis));
        if (flags[axis])
            return mgx_fail(c->diag, MGX_INVALID, "%s: axis %d is given twice", c->op->name, axis);
        flags[axis] = true;
    }
    return MGX_OK;
}

enum mgx_status mgx_require_permutation(struct mgx_shape_call *c, struct mgx_ints permutation,
                                        int rank)
{
    bool seen[MGX_MAX_RANK] = {false};
    if (permutation.count != rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Permutation has wrong number of axes: %d for %d dimensions",
                        c->op->name, permutation.count, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t axis = permutation.v[i];
        if (axis < 0 || axis >= rank || seen[axis])
            return mgx_fail(c->diag, MGX_INVALID, "%s: Invalid permutation: entry %d is %" PRId64,
                            c->op->name, i, axis);
        seen[axis] = true;
    }
    return MGX_OK;
}

enum mgx_status mgx_known_ints(struct mgx_shape_call *c, int input, bool *known,
                               struct mgx_ints *out)
{
    *known = false;
    *out = (struct mgx_ints){0};
    assert(input < c->in_count);
    TRY(mgx_require_integral(c, input));
    const struct mgx_tensor *value = c->values ? c->values[input] : NULL;
    if (!value)
        return MGX_OK;
    const int64_t count = mgx_shape_elements(&value->shape);
    if (count > INT32_MAX)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: input %d has %" PRId64 " values", c->op->name,
                        input, count);
    int64_t *v = MGX_NEW_ARRAY(c->arena, int64_t, count);
    if (!v)
        return mgx_fail_memory(c->diag);
    mgx_tensor_to_ints(value, v);
    *known = true;
    *out = (struct mgx_ints){v, (int)count};
    return MGX_OK;
}

struct mgx_dim *mgx_edit_dims(struct mgx_shape_call *c, const struct mgx_shape *s, int rank)
{
    assert(rank <= MGX_MAX_RANK);
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, rank);
    if (!dims) {
        mgx_fail_memory(c->diag);
        return NULL;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = s && i < s->rank ? mgx_shape_dim(s, i) : (struct mgx_dim){.min = 1, .max = 1};
    return dims;
}

enum mgx_status mgx_dims_of_ints(struct mgx_shape_call *c, struct mgx_ints lens,
                                 struct mgx_dim **out, int *rank)
{
    if (lens.count > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: %d dimensions are above the limit of %d",
                        c->op->name, lens.count, MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, MGX_MAX_RANK);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < lens.count; i++) {
        if (lens.v[i] < 0)
            return mgx_fail(c->diag, MGX_INVALID, "%s: length %" PRId64 " of axis %d is negative",
                            c->op->name, lens.v[i], i);
        dims[i].min = dims[i].max = lens.v[i];
    }
    *out = dims;
    *rank = lens.count;
    return MGX_OK;
}

enum mgx_status mgx_target_dims(struct mgx_shape_call *c, struct mgx_ints lens,
                                struct mgx_dims ranges, struct mgx_dim **out, int *rank)
{
    if (c->in_count < 2 && ranges.count == 0)
        return mgx_dims_of_ints(c, lens, out, rank);
    const bool by_input = c->in_count >= 2;
    const int count = by_input ? c->in[1]->rank : ranges.count;
    if (count > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: %d dimensions are above the limit of %d",
                        c->op->name, count, MGX_MAX_RANK);
    *out = mgx_edit_dims(c, by_input ? c->in[1] : NULL, MGX_MAX_RANK);
    if (!*out)
        return MGX_NO_MEMORY;
    for (int i = 0; !by_input && i < count; i++)
        (*out)[i] = ranges.v[i];
    *rank = count;
    return MGX_OK;
}

struct mgx_shape mgx_shape_from_dims(enum mgx_type type, int rank, const struct mgx_dim *dims)
{
    return mgx_shape_dynamic(type, rank, dims);
}

// --- element-wise results ---

// The ranges that all inputs agree on, in the call's arena.
static struct mgx_shape meet_shape(const struct mgx_shape_call *c, enum mgx_type type)
{
    const int rank = c->in[0]->rank;
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, rank);
    if (!dims)
        return mgx_shape_unranked(type); // the arena's failure is sticky: mgx_op_shape reports it
    for (int axis = 0; axis < rank; axis++) {
        dims[axis] = mgx_shape_dim(c->in[0], axis);
        for (int i = 1; i < c->in_count; i++) {
            if (c->in[i]->rank != rank)
                continue; // rank 0 beside {1}
            mgx_dim_meet(&dims[axis], mgx_shape_dim(c->in[i], axis));
        }
    }
    return mgx_shape_from_dims(type, rank, dims);
}

void mgx_dim_meet(struct mgx_dim *d, struct mgx_dim by)
{
    const struct mgx_dim old = *d;
    if (by.max - by.min < d->max - d->min || (by.name && !d->name))
        *d = by; // keeps name and optimals of the tighter one
    d->min = mgx_max_i64(old.min, by.min);
    d->max = mgx_min_i64(old.max, by.max);
}

// Do two packed shapes of equal lengths put their elements in the same places? Strides of axes of
// length 1 do not count.
static bool same_places(const struct mgx_shape *a, const struct mgx_shape *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] > 1 && (b->rank != a->rank || a->strides[i] != b->strides[i]))
            return false;
    return true;
}

struct mgx_shape mgx_pointwise_shape(const struct mgx_shape_call *c, enum mgx_type type)
{
    for (int i = 0; i < c->in_count; i++)
        if (!mgx_shape_is_static(c->in[i]))
            return meet_shape(c, type);
    // MIGraphX's rule: packed inputs decide when they agree; a lone input that is neither packed
    // nor broadcast passes on its order; anything else is row-major.
    const struct mgx_shape *packed = NULL, *loose = NULL;
    int loose_count = 0;
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_shape *s = c->in[i];
        if (!mgx_shape_is_packed(s)) {
            loose_count += !mgx_shape_is_broadcasted(s);
            loose = mgx_shape_is_broadcasted(s) ? loose : s;
        } else if (!packed) {
            packed = s;
        } else if (!same_places(packed, s)) {
            return mgx_shape_retype(c->in[0], type);
        }
    }
    if (packed)
        return mgx_shape_strided(type, packed->rank, packed->lens, packed->strides);
    struct mgx_shape out = mgx_shape_retype(c->in[0], type);
    return loose_count == 1 && loose->rank == out.rank ? mgx_shape_like_order(&out, loose) : out;
}

// --- ranges of two shapes together ---

static bool dim_has(const struct mgx_dim *d, int64_t n)
{
    return d->min <= n && n <= d->max;
}

static bool same_dim(const struct mgx_dim *a, const struct mgx_dim *b)
{
    return (a->name && b->name && strcmp(a->name, b->name) == 0) ||
           (a->min == a->max && a->min == b->min && a->max == b->max);
}

bool mgx_dim_broadcast(struct mgx_dim *d, struct mgx_dim by)
{
    const struct mgx_dim a = *d;
    if (same_dim(&a, &by) || (by.min == 1 && by.max == 1))
        return true;
    if (a.min == 1 && a.max == 1) {
        *d = by;
        return true;
    }
    // The result is a common length, or one side's where the other is 1.
    struct mgx_dim r = {.min = INT64_MAX, .max = -1};
    const struct mgx_dim common = {.min = mgx_max_i64(a.min, by.min),
                                   .max = mgx_min_i64(a.max, by.max)};
    const struct mgx_dim *parts[] = {&common, dim_has(&by, 1) ? &a : NULL,
                                     dim_has(&a, 1) ? &by : NULL};
    for (int i = 0; i < MGX_COUNT(parts); i++)
        if (parts[i] && parts[i]->min <= parts[i]->max) {
            r.min = mgx_min_i64(r.min, parts[i]->min);
            r.max = mgx_max_i64(r.max, parts[i]->max);
        }
    *d = r;
    // A fixed length above 1 wins over anything it can meet.
    const struct mgx_dim *fixed = a.min == a.max ? &a : by.min == by.max ? &by : NULL;
    if (fixed && fixed->min > 1 && r.max >= 0)
        *d = *fixed;
    return r.max >= 0;
}

enum mgx_status mgx_broadcast_dims(struct mgx_shape_call *c, const struct mgx_shape *s,
                                   struct mgx_dim *dims, int *rank)
{
    const int old = *rank, grown = old > s->rank ? old : s->rank;
    for (int i = grown - 1; i >= 0; i--) { // from the end: dims[i] may move to a higher place
        const int mine = i - (grown - old), other = i - (grown - s->rank);
        const struct mgx_dim b = other >= 0 ? mgx_shape_dim(s, other) : dims[mine];
        struct mgx_dim d = mine >= 0 ? dims[mine] : b;
        if (!mgx_dim_broadcast(&d, b))
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Dimensions do not match: %" PRId64 " and %" PRId64
                            " cannot be broadcast together at axis %d",
                            c->op->name, dims[mine].max, b.max, i);
        dims[i] = d;
    }
    *rank = grown;
    return MGX_OK;
}

static struct mgx_dim join_dim(struct mgx_dim a, struct mgx_dim b)
{
    if (same_dim(&a, &b))
        return a;
    return (struct mgx_dim){.min = mgx_min_i64(a.min, b.min), .max = mgx_max_i64(a.max, b.max)};
}

static bool join_tensors(struct mgx_arena *arena, const struct mgx_shape *a,
                         const struct mgx_shape *b, struct mgx_shape *out)
{
    if (a->unranked || b->unranked || a->rank != b->rank) {
        *out = mgx_shape_unranked(a->type);
        return true;
    }
    if (mgx_shape_equal(a, b) && !a->dims) {
        *out = *a;
        return true;
    }
    struct mgx_dim *dims = MGX_NEW_ARRAY(arena, struct mgx_dim, a->rank);
    for (int i = 0; dims && i < a->rank; i++)
        dims[i] = join_dim(mgx_shape_dim(a, i), mgx_shape_dim(b, i));
    if (dims)
        *out = mgx_shape_from_dims(a->type, a->rank, dims);
    return dims != NULL;
}

bool mgx_shape_join(struct mgx_arena *arena, const struct mgx_shape *a, const struct mgx_shape *b,
                    struct mgx_shape *out)
{
    if (a->type != b->type)
        return false;
    if (a->type != MGX_TUPLE && a->type != MGX_SEQUENCE)
        return join_tensors(arena, a, b, out);
    if (a->sub_count != b->sub_count) { // an empty sequence says nothing of its elements
        *out = a->sub_count ? *a : *b;
        return a->type == MGX_SEQUENCE;
    }
    struct mgx_shape *sub = MGX_NEW_ARRAY(arena, struct mgx_shape, a->sub_count);
    for (int i = 0; sub && i < a->sub_count; i++)
        if (!mgx_shape_join(arena, &a->sub[i], &b->sub[i], &sub[i]))
            return false;
    *out = *a;
    out->sub = sub;
    return sub != NULL;
}

enum mgx_status mgx_shape_any(struct mgx_shape_call *c, enum mgx_type type, int rank, int64_t max,
                              struct mgx_shape *out)
{
    if (rank > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT,
                        "%s: a result of %d dimensions is above the limit of %d", c->op->name, rank,
                        MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < rank; i++)
        dims[i] = (struct mgx_dim){.min = 0, .max = max};
    *out = mgx_shape_from_dims(type, rank, dims);
    return MGX_OK;
}

// --- other lengths over the same bytes ---

// Strides of the new axes [n0, n1) that together cover the old axes [o0, o1); false if the old ones
// are not one run of memory.
static bool regroup_run(const struct mgx_shape *s, int o0, int o1, struct mgx_shape *out, int n0,
                        int n1)
{
    assert(o1 <= s->rank);
    for (int i = o0 + 1; i < o1; i++)
        if (s->strides[i - 1] != s->strides[i] * s->lens[i])
            return false;
    int64_t stride = s->strides[o1 - 1];
    for (int i = n1 - 1; i >= n0; i--) {
        out->strides[i] = stride;
        stride *= out->lens[i];
    }
    return true;
}

bool mgx_shape_regroup(const struct mgx_shape *s, int rank, const int64_t *lens,
                       struct mgx_shape *out)
{
    *out = mgx_shape_make(s->type, rank, lens);
    assert(mgx_shape_elements(s) == mgx_shape_elements(out));
    if (mgx_shape_elements(s) <= 1 || mgx_shape_is_standard(s))
        return true;
    struct mgx_shape old = *s; // without the axes of length 1, which do not move
    old.rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] != 1) {
            old.lens[old.rank] = s->lens[i];
            old.strides[old.rank++] = s->strides[i];
        }
    for (int o0 = 0, n0 = 0;
         o0 < old.rank && n0 < rank;) { // the shortest groups with equal products
        int o1 = o0 + 1, n1 = n0 + 1;
        int64_t a = old.lens[o0], b = lens[n0];
        while (a != b) {
            assert(o1 < old.rank || n1 < rank);
            if (a < b)
                a *= old.lens[o1++];
            else
                b *= lens[n1++];
        }
        while (o1 == old.rank && n1 < rank)
            n1++; // trailing axes of length 1
        if (!regroup_run(&old, o0, o1, out, n0, n1))
            return false;
        o0 = o1;
        n0 = n1;
    }
    return true;
}

int64_t mgx_elements_max(const struct mgx_shape *s)
{
    return mgx_min_i64(mgx_shape_elements(s), ((int64_t)1 << 62) - 1);
}

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
    assert(!w->done);
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
    for (mgx_walk_start(&w, &shape, 1); !w.done; mgx_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            mgx_store_double(shape->type, t->data, w.offset[0] + i * w.step[0], *values++);
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
