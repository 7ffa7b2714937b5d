// SPDX-License-Identifier: MIT
// Shapes; see shape.h. Everything here is O(rank), nested shapes O(size of the shape). Recursion
// goes into tuples only, whose depth mgx_shape_check bounds.
#include "ir/shape.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "ir/text.h"

// Products that overflow stick at the largest value; mgx_shape_check reports them.
static int64_t product(int64_t a, int64_t b)
{
    int64_t result;
    return mgx_mul_i64(a, b, &result) ? result : INT64_MAX;
}

static void set_standard_strides(struct mgx_shape *s)
{
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        s->strides[i] = stride;
        stride = product(stride, s->lens[i]);
    }
}

// --- making ---

struct mgx_shape mgx_shape_make(enum mgx_type type, int rank, const int64_t *lens)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    struct mgx_shape s = {.type = type, .rank = rank};
    if (rank)
        memcpy(s.lens, lens, (size_t)rank * sizeof *lens);
    set_standard_strides(&s);
    return s;
}

struct mgx_shape mgx_shape_strided(enum mgx_type type, int rank, const int64_t *lens,
                                   const int64_t *strides)
{
    struct mgx_shape s = mgx_shape_make(type, rank, lens);
    if (rank)
        memcpy(s.strides, strides, (size_t)rank * sizeof *strides);
    return s;
}

struct mgx_shape mgx_shape_scalar(enum mgx_type type)
{
    return (struct mgx_shape){.type = type};
}

struct mgx_shape mgx_shape_vector(enum mgx_type type, int64_t length)
{
    return mgx_shape_make(type, 1, &length);
}

struct mgx_shape mgx_shape_unranked(enum mgx_type type)
{
    return (struct mgx_shape){.type = type, .unranked = true};
}

struct mgx_shape mgx_shape_dynamic(enum mgx_type type, int rank, const struct mgx_dim *keep_dims)
{
    assert(keep_dims || !rank);
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    struct mgx_shape s = {.type = type, .rank = rank};
    bool fixed = true;
    for (int i = 0; i < rank; i++) {
        s.lens[i] = keep_dims[i].max;
        fixed &= mgx_dim_is_fixed(&keep_dims[i]);
    }
    if (fixed)
        set_standard_strides(&s);
    else
        s.dims = keep_dims;
    return s;
}

struct mgx_shape mgx_shape_tuple(const struct mgx_shape *keep_sub, int count)
{
    assert(count >= 0 && (keep_sub || !count));
    return (struct mgx_shape){.type = MGX_TUPLE, .sub = keep_sub, .sub_count = count};
}

struct mgx_shape mgx_shape_sequence(const struct mgx_shape *keep_element)
{
    assert(keep_element);
    return (struct mgx_shape){.type = MGX_SEQUENCE, .sub = keep_element, .sub_count = 1};
}

struct mgx_shape mgx_shape_retype(const struct mgx_shape *s, enum mgx_type type)
{
    assert(s->rank >= 0 && s->rank <= MGX_MAX_RANK);
    struct mgx_shape result = *s;
    result.type = type;
    if (!s->dims)
        set_standard_strides(&result);
    return result;
}

// True if axis a lies outside axis b: larger stride, or as large with more elements.
static bool outside(const struct mgx_shape *s, int a, int b)
{
    if (s->strides[a] != s->strides[b])
        return s->strides[a] > s->strides[b];
    return s->lens[a] > s->lens[b];
}

// Is every axis named once, none inside an axis that comes after it?
__attribute__((unused)) static bool is_memory_order(const struct mgx_shape *s,
                                                    const int *permutation)
{
    unsigned seen = 0;
    for (int i = 0; i < s->rank; i++) {
        if (i && !s->dims && outside(s, permutation[i], permutation[i - 1]))
            return false;
        seen |= 1u << permutation[i];
    }
    return seen == (1u << s->rank) - 1;
}

void mgx_shape_permutation(const struct mgx_shape *s, int *permutation)
{
    for (int i = 0; i < s->rank; i++) { // insertion sort: stable, and ranks are small
        int at = i;
        for (; !s->dims && at > 0 && outside(s, i, permutation[at - 1]); at--)
            permutation[at] = permutation[at - 1];
        permutation[at] = i;
    }
    assert(is_memory_order(s, permutation));
}

struct mgx_shape mgx_shape_like_order(const struct mgx_shape *s, const struct mgx_shape *like)
{
    assert(s->rank == like->rank);
    struct mgx_shape result = mgx_shape_retype(s, s->type);
    if (s->dims || like->dims)
        return result;
    int permutation[MGX_MAX_RANK];
    mgx_shape_permutation(like, permutation);
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        result.strides[permutation[i]] = stride;
        stride = product(stride, s->lens[permutation[i]]);
    }
    assert(stride == INT64_MAX || mgx_shape_is_packed(&result));
    return result;
}

static bool copy_dims(struct mgx_arena *arena, const struct mgx_shape *s, struct mgx_shape *out)
{
    struct mgx_dim *dims = mgx_arena_memdup(arena, s->dims, (size_t)s->rank * sizeof *dims);
    if (!dims)
        return false;
    out->dims = dims;
    assert(s->rank > 0 && dims != s->dims);
    for (int i = 0; i < s->rank; i++) {
        struct mgx_dim *d = &dims[i];
        const size_t bytes = (size_t)d->optimal_count * sizeof *d->optimals;
        if (d->name && !(d->name = mgx_arena_strdup(arena, d->name)))
            return false;
        d->optimals = bytes ? mgx_arena_memdup(arena, d->optimals, bytes) : NULL;
        if (bytes && !d->optimals)
            return false;
    }
    return true;
}

bool mgx_shape_copy(struct mgx_arena *arena, const struct mgx_shape *s, struct mgx_shape *out)
{
    *out = *s;
    if (s->dims && !copy_dims(arena, s, out))
        return false;
    if (!s->sub_count)
        return true;
    struct mgx_shape *sub = MGX_NEW_ARRAY(arena, struct mgx_shape, s->sub_count);
    out->sub = sub;
    for (int i = 0; sub && i < s->sub_count; i++)
        if (!mgx_shape_copy(arena, &s->sub[i], &sub[i]))
            return false;
    assert(!sub || mgx_shape_equal(s, out));
    return sub != NULL;
}

static bool dims_lie_in(const struct mgx_shape *s, const struct mgx_arena *arena)
{
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim *d = &s->dims[i];
        if ((d->name && !mgx_arena_holds(arena, d->name)) ||
            (d->optimal_count && !mgx_arena_holds(arena, d->optimals)))
            return false;
    }
    return mgx_arena_holds(arena, s->dims);
}

bool mgx_shape_lies_in(const struct mgx_shape *s, const struct mgx_arena *arena)
{
    if ((s->dims && !dims_lie_in(s, arena)) || (s->sub_count && !mgx_arena_holds(arena, s->sub)))
        return false;
    for (int i = 0; i < s->sub_count; i++)
        if (!mgx_shape_lies_in(&s->sub[i], arena))
            return false;
    return true;
}

// --- asking ---

bool mgx_shape_is_static(const struct mgx_shape *s)
{
    if (s->dims || s->unranked)
        return false;
    for (int i = 0; i < s->sub_count; i++)
        if (!mgx_shape_is_static(&s->sub[i]))
            return false;
    return true;
}

// A dense tensor of known lengths: the only thing whose strides can be asked about.
static bool has_strides(const struct mgx_shape *s)
{
    return !s->dims && !s->unranked && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE;
}

// Strides along axes of length 1 say nothing and are not looked at, here and below.
bool mgx_shape_is_standard(const struct mgx_shape *s)
{
    if (!has_strides(s))
        return false;
    if (mgx_shape_elements(s) == 0)
        return true;
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->lens[i] != 1 && s->strides[i] != stride)
            return false;
        stride = product(stride, s->lens[i]);
    }
    return true;
}

bool mgx_shape_is_packed(const struct mgx_shape *s)
{
    if (!has_strides(s))
        return false;
    if (mgx_shape_elements(s) == 0)
        return true;
    int permutation[MGX_MAX_RANK];
    mgx_shape_permutation(s, permutation);
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        const int axis = permutation[i];
        if (s->lens[axis] != 1 && s->strides[axis] != stride)
            return false;
        stride = product(stride, s->lens[axis]);
    }
    return true;
}

bool mgx_shape_is_transposed(const struct mgx_shape *s)
{
    if (!has_strides(s))
        return false;
    int64_t before = INT64_MAX;
    for (int i = 0; i < s->rank; i++) {
        if (s->lens[i] == 1 || s->strides[i] == 0)
            continue;
        if (s->strides[i] > before)
            return true;
        before = s->strides[i];
    }
    return false;
}

bool mgx_shape_is_broadcasted(const struct mgx_shape *s)
{
    if (!has_strides(s) || mgx_shape_elements(s) == 0)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (s->strides[i] == 0 && s->lens[i] > 1)
            return true;
    return false;
}

bool mgx_shape_is_scalar(const struct mgx_shape *s)
{
    if (!has_strides(s))
        return false;
    for (int i = 0; i < s->rank; i++)
        if (s->strides[i] != 0)
            return false;
    return true;
}

static bool subs_agree(const struct mgx_shape *a, const struct mgx_shape *b,
                       bool (*agree)(const struct mgx_shape *, const struct mgx_shape *))
{
    if (a->sub_count != b->sub_count)
        return false;
    for (int i = 0; i < a->sub_count; i++)
        if (!agree(&a->sub[i], &b->sub[i]))
            return false;
    return true;
}

bool mgx_shape_equal(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (a->type != b->type || a->rank != b->rank || a->unranked != b->unranked ||
        !a->dims != !b->dims)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims ? !mgx_dim_equal(&a->dims[i], &b->dims[i])
                    : a->lens[i] != b->lens[i] || a->strides[i] != b->strides[i])
            return false;
    }
    return subs_agree(a, b, mgx_shape_equal);
}

static bool is_aggregate(const struct mgx_shape *s)
{
    return s->type == MGX_TUPLE || s->type == MGX_SEQUENCE;
}

// The rank with a scalar counted as one axis of length 1, and that axis.
static int shown_rank(const struct mgx_shape *s)
{
    return s->rank ? s->rank : 1;
}

bool mgx_shape_same_lens(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (is_aggregate(a) || is_aggregate(b))
        return a->type == b->type && subs_agree(a, b, mgx_shape_same_lens);
    if (a->unranked || b->unranked)
        return a->unranked && b->unranked;
    if (shown_rank(a) != shown_rank(b))
        return false;
    for (int i = 0; i < shown_rank(a); i++) {
        const struct mgx_dim x = mgx_shape_dim(a, i), y = mgx_shape_dim(b, i);
        if (x.min != y.min || x.max != y.max)
            return false;
    }
    return true;
}

bool mgx_shape_may_match(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (a->unranked || b->unranked)
        return true;
    if (a->type == MGX_SEQUENCE && b->type == MGX_SEQUENCE && !(a->sub_count && b->sub_count))
        return true; // an empty sequence is one of anything
    if (is_aggregate(a) || is_aggregate(b))
        return a->type == b->type && subs_agree(a, b, mgx_shape_may_match);
    if (shown_rank(a) != shown_rank(b))
        return false;
    for (int i = 0; i < shown_rank(a); i++) {
        const struct mgx_dim x = mgx_shape_dim(a, i), y = mgx_shape_dim(b, i);
        if (x.max < y.min || y.max < x.min)
            return false;
    }
    return true;
}

bool mgx_shape_may_be(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (a->type != b->type)
        return false;
    if (!is_aggregate(a))
        return mgx_shape_may_match(a, b);
    return !a->sub_count || !b->sub_count || subs_agree(a, b, mgx_shape_may_be);
}

// --- sizes ---

int64_t mgx_shape_elements(const struct mgx_shape *s)
{
    assert(s->rank >= 0 && s->rank <= MGX_MAX_RANK && (!s->rank || !s->unranked));
    if (is_aggregate(s) || s->unranked)
        return 0;
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++) {
        if (s->lens[i] == 0)
            return 0;
        count = product(count, s->lens[i]);
    }
    return count;
}

int64_t mgx_shape_space(const struct mgx_shape *s)
{
    const int64_t elements = mgx_shape_elements(s);
    if (elements == 0 || s->dims)
        return elements;
    int64_t space = 1;
    for (int i = 0; i < s->rank; i++)
        if (!mgx_add_i64(space, product(s->lens[i] - 1, s->strides[i]), &space))
            return INT64_MAX;
    return space;
}

size_t mgx_shape_row_bytes(const struct mgx_shape *s, int axis)
{
    size_t bytes = mgx_type_size(s->type);
    for (int i = axis + 1; i < s->rank; i++)
        bytes *= (size_t)s->lens[i];
    return bytes;
}

size_t mgx_shape_bytes(const struct mgx_shape *s)
{
    size_t bytes;
    if (!is_aggregate(s))
        return mgx_mul_size((size_t)mgx_shape_space(s), mgx_type_size(s->type), &bytes) ? bytes
                                                                                        : SIZE_MAX;
    bytes = 0;
    for (int i = 0; i < s->sub_count; i++)
        if (!mgx_add_size(bytes, mgx_shape_bytes(&s->sub[i]), &bytes))
            return SIZE_MAX;
    return bytes;
}

enum { MAX_DEPTH = 16 };
#define LARGEST ((int64_t)1 << 62)

static enum mgx_status check_axis(const struct mgx_shape *s, int i, struct mgx_diag *diag)
{
    if (s->dims) {
        const struct mgx_dim *d = &s->dims[i];
        if (d->min < 0 || d->max < d->min || d->max >= LARGEST || s->lens[i] != d->max)
            return mgx_fail(diag, MGX_INVALID, "axis %d of a shape has the range [%lld..%lld]", i,
                            (long long)d->min, (long long)d->max);
        return MGX_OK;
    }
    if (s->lens[i] < 0)
        return mgx_fail(diag, MGX_INVALID, "axis %d of a shape has length %lld", i,
                        (long long)s->lens[i]);
    if (s->strides[i] < 0)
        return mgx_fail(diag, MGX_INVALID, "axis %d of a shape has stride %lld", i,
                        (long long)s->strides[i]);
    return MGX_OK;
}

static enum mgx_status check_size(const struct mgx_shape *s, struct mgx_diag *diag)
{
    // The product without empty axes, so that no partial product overflows anywhere later.
    int64_t elements = 1;
    for (int i = 0; i < s->rank; i++)
        elements = product(elements, mgx_max_i64(s->lens[i], 1));
    const int64_t space = mgx_shape_space(s);
    size_t bytes;
    if (elements >= LARGEST || space >= LARGEST ||
        !mgx_mul_size((size_t)space, mgx_type_size(s->type), &bytes) || bytes >= (size_t)LARGEST)
        return mgx_fail(diag, MGX_LIMIT, "a shape of rank %d is too large: more than 2^62 bytes",
                        s->rank);
    return MGX_OK;
}

static enum mgx_status check(const struct mgx_shape *s, int depth, struct mgx_diag *diag)
{
    if (depth > MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "a shape is nested deeper than %d", MAX_DEPTH);
    if ((unsigned)s->type >= MGX_TYPE_COUNT)
        return mgx_fail(diag, MGX_INVALID, "a shape has unknown type %d", (int)s->type);
    if (s->rank < 0 || s->rank > MGX_MAX_RANK)
        return mgx_fail(diag, MGX_INVALID, "rank %d of a shape is not in 0..%d", s->rank,
                        MGX_MAX_RANK);
    if (s->sub_count < 0 || (s->sub_count > 0 && !is_aggregate(s)))
        return mgx_fail(diag, MGX_INVALID, "a shape of %s has %d members", mgx_type_name(s->type),
                        s->sub_count);
    for (int i = 0; i < s->rank; i++)
        TRY(check_axis(s, i, diag));
    for (int i = 0; i < s->sub_count; i++)
        TRY(check(&s->sub[i], depth + 1, diag));
    // Members are checked one by one; those of ranges have no size yet.
    return s->dims || is_aggregate(s) ? MGX_OK : check_size(s, diag);
}

enum mgx_status mgx_shape_check(const struct mgx_shape *s, struct mgx_diag *diag)
{
    return check(s, 0, diag);
}

// --- positions ---

int64_t mgx_shape_index(const struct mgx_shape *s, int64_t element)
{
    int64_t offset = 0;
    assert(element >= 0);
    for (int i = s->rank - 1; i >= 0; i--) {
        offset += element % s->lens[i] * s->strides[i];
        element /= s->lens[i];
    }
    assert(element == 0); // it was one of the shape's
    return offset;
}

int64_t mgx_shape_offset(const struct mgx_shape *s, const int64_t *at)
{
    int64_t offset = 0;
    for (int i = 0; i < s->rank; i++) {
        assert(at[i] >= 0 && at[i] < s->lens[i]);
        offset += at[i] * s->strides[i];
    }
    return offset;
}

void mgx_shape_multi(const struct mgx_shape *s, int64_t element, int64_t *at)
{
    assert(element >= 0);
    for (int i = s->rank - 1; i >= 0; i--) {
        at[i] = element % s->lens[i];
        element /= s->lens[i];
    }
    assert(element == 0);
}

bool mgx_shape_next(const struct mgx_shape *s, int64_t *at)
{
    for (int i = s->rank - 1; i >= 0; i--) {
        assert(at[i] >= 0 && at[i] < s->lens[i]); // a position of the shape's
        if (++at[i] < s->lens[i])
            return true;
        at[i] = 0;
    }
    return false;
}

// --- ranges ---

struct mgx_dim mgx_shape_dim(const struct mgx_shape *s, int axis)
{
    assert(axis >= 0 && axis < shown_rank(s) && !s->unranked);
    if (s->dims)
        return s->dims[axis];
    const int64_t length = axis < s->rank ? s->lens[axis] : 1;
    return (struct mgx_dim){.min = length, .max = length};
}

bool mgx_dim_equal(const struct mgx_dim *a, const struct mgx_dim *b)
{
    assert(a->optimal_count >= 0 && b->optimal_count >= 0);
    if (a->min != b->min || a->max != b->max || a->optimal_count != b->optimal_count)
        return false;
    return a->optimal_count == 0 ||
           memcmp(a->optimals, b->optimals, (size_t)a->optimal_count * sizeof *a->optimals) == 0;
}

bool mgx_dim_same(const struct mgx_dim *a, const struct mgx_dim *b)
{
    return (a->name && b->name && strcmp(a->name, b->name) == 0) ||
           (a->min == a->max && a->min == b->min && a->max == b->max);
}

// --- printing ---

static void print_list(struct mgx_str *out, const int64_t *values, int count)
{
    mgx_str_putc(out, '{');
    for (int i = 0; i < count; i++)
        mgx_str_printf(out, "%s%lld", i ? ", " : "", (long long)values[i]);
    mgx_str_putc(out, '}');
}

static void print_aggregate(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_put(out, s->type == MGX_SEQUENCE ? "sequence[" : "[");
    for (int i = 0; i < s->sub_count; i++) {
        if (i)
            mgx_str_put(out, ", ");
        mgx_shape_print(out, &s->sub[i]);
    }
    mgx_str_putc(out, ']');
}

void mgx_shape_print(struct mgx_str *out, const struct mgx_shape *s)
{
    if (is_aggregate(s) && !s->unranked) {
        print_aggregate(out, s);
        return;
    }
    if (s->unranked) {
        mgx_str_printf(out, "unranked, %s", mgx_type_name(s->type));
        return;
    }
    mgx_str_printf(out, s->dims ? "dynamic, %s, " : "%s, ", mgx_type_name(s->type));
    if (s->dims) {
        mgx_str_putc(out, '{');
        for (int i = 0; i < s->rank; i++) {
            if (i)
                mgx_str_put(out, ", ");
            mgx_text_print_dim(out, &s->dims[i]);
        }
        mgx_str_putc(out, '}');
        return;
    }
    if (s->rank == 0) {
        mgx_str_put(out, "{1}, {0}");
        return;
    }
    print_list(out, s->lens, s->rank);
    mgx_str_put(out, ", ");
    print_list(out, s->strides, s->rank);
}
