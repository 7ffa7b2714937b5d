// SPDX-License-Identifier: MIT
// Ranges of lengths in shape rules: making, meeting, broadcasting, joining; and the same elements
// under other lengths. See rule.h. A name survives where the range it belongs to does. Everything
// is O(rank).
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/rule/rule.h"

// --- making ---

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

// --- ranges of two shapes together ---

void mgx_dim_meet(struct mgx_dim *d, struct mgx_dim by)
{
    const struct mgx_dim old = *d;
    if (by.max - by.min < d->max - d->min || (by.name && !d->name))
        *d = by;                            // keeps name and optimals of the tighter one
    d->name = d->name ? d->name : old.name; // it is that length
    d->min = mgx_max_i64(old.min, by.min);
    d->max = mgx_min_i64(old.max, by.max);
}

static bool dim_has(const struct mgx_dim *d, int64_t n)
{
    return d->min <= n && n <= d->max;
}

bool mgx_dim_broadcast(struct mgx_dim *d, struct mgx_dim by)
{
    const struct mgx_dim a = *d;
    if (mgx_dim_same(&a, &by) || (by.min == 1 && by.max == 1))
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
    if (mgx_dim_same(&a, &b))
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

// Axes of length 1 do not move.
static struct mgx_shape without_ones(const struct mgx_shape *s)
{
    struct mgx_shape out = *s;
    out.rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] != 1) {
            out.lens[out.rank] = s->lens[i];
            out.strides[out.rank++] = s->strides[i];
        }
    return out;
}

// Ends of the shortest groups of axes with equal products that begin at *o and *n.
static void next_group(const struct mgx_shape *old, int rank, const int64_t *lens, int *o, int *n)
{
    int64_t a = old->lens[(*o)++], b = lens[(*n)++];
    while (a != b) {
        assert(*o < old->rank || *n < rank);
        if (a < b)
            a *= old->lens[(*o)++];
        else
            b *= lens[(*n)++];
    }
    while (*o == old->rank && *n < rank)
        (*n)++; // trailing axes of length 1
}

bool mgx_shape_regroup(const struct mgx_shape *s, int rank, const int64_t *lens,
                       struct mgx_shape *out)
{
    *out = mgx_shape_make(s->type, rank, lens);
    assert(mgx_shape_elements(s) == mgx_shape_elements(out));
    if (mgx_shape_elements(s) <= 1 || mgx_shape_is_standard(s))
        return true;
    const struct mgx_shape old = without_ones(s);
    for (int o = 0, n = 0; o < old.rank && n < rank;) {
        const int o0 = o, n0 = n;
        next_group(&old, rank, lens, &o, &n);
        if (!regroup_run(&old, o0, o, out, n0, n))
            return false;
    }
    return true;
}

int64_t mgx_elements_max(const struct mgx_shape *s)
{
    return mgx_min_i64(mgx_shape_elements(s), ((int64_t)1 << 62) - 1);
}
