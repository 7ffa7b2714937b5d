// SPDX-License-Identifier: MIT
// What shape rules and computes share; see rule.h for the contracts.
//
// Messages follow MIGraphX's wording up to the first colon after the operator's name and then add
// the values that disagree, so that texts users search for are found and the reason is there too.
#include "op/rule/rule.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"

// --- which inputs are sizes ---

uint32_t mgx_sized_by_first(const struct mgx_ins *ins)
{
    return ins->in_count > 0;
}

uint32_t mgx_sized_by_all(const struct mgx_ins *ins)
{
    return ins->in_count < 32 ? (UINT32_C(1) << ins->in_count) - 1 : UINT32_MAX;
}

uint32_t mgx_sized_by_rest(const struct mgx_ins *ins)
{
    return mgx_sized_by_all(ins) & ~UINT32_C(1);
}

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

enum mgx_status mgx_require_length(struct mgx_shape_call *c, int input, int axis,
                                   struct mgx_dim *want)
{
    assert(input < c->in_count && axis < c->in[input]->rank);
    const struct mgx_dim have = mgx_shape_dim(c->in[input], axis);
    if (have.min > want->max || have.max < want->min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: axis %d of input %d has length %" PRId64 ", expected %" PRId64,
                        c->op->name, axis, input, have.max, want->max);
    mgx_dim_meet(want, have);
    return MGX_OK;
}

enum mgx_status mgx_require_fixed(struct mgx_shape_call *c, int input, int axis, int64_t length)
{
    struct mgx_dim want = {.min = length, .max = length};
    return mgx_require_length(c, input, axis, &want);
}

bool mgx_shape_is_absent(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && mgx_type_is_float(s->type) && s->rank == 1 && s->lens[0] == 0;
}

enum mgx_status mgx_normalize_axis(struct mgx_shape_call *c, int64_t axis, int rank, int *out)
{
    *out = 0;
    if (axis < -rank || axis >= rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: axis %" PRId64 " is out of range for rank %d",
                        c->op->name, axis, rank);
    *out = mgx_wrap_axis(axis, rank);
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

// --- element-wise results ---

// Rank 0 goes with {1}; the result then has the axis.
static const struct mgx_shape *widest(const struct mgx_shape_call *c)
{
    const struct mgx_shape *s = c->in[0];
    for (int i = 1; i < c->in_count; i++)
        s = c->in[i]->rank > s->rank ? c->in[i] : s;
    return s;
}

// The ranges that all inputs agree on, in the call's arena.
static struct mgx_shape meet_shape(const struct mgx_shape_call *c, enum mgx_type type)
{
    const struct mgx_shape *s = widest(c);
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, s->rank);
    if (!dims)
        return mgx_shape_unranked(type); // the arena's failure is sticky: mgx_op_shape reports it
    for (int axis = 0; axis < s->rank; axis++) {
        dims[axis] = mgx_shape_dim(s, axis);
        for (int i = 0; i < c->in_count; i++)
            if (c->in[i]->rank == s->rank)
                mgx_dim_meet(&dims[axis], mgx_shape_dim(c->in[i], axis));
            else
                mgx_dim_meet(&dims[axis], (struct mgx_dim){.min = 1, .max = 1});
    }
    return mgx_shape_from_dims(type, s->rank, dims);
}

// Do two packed shapes of equal lengths put their elements in the same places? Strides of axes of
// length 1 do not count.
static bool same_places(const struct mgx_shape *a, const struct mgx_shape *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] > 1 && a->strides[i] != b->strides[i])
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
    const struct mgx_shape *model = widest(c), *packed = NULL, *loose = NULL;
    int loose_count = 0;
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_shape *s = c->in[i];
        if (s->rank < model->rank)
            continue;
        if (!mgx_shape_is_packed(s)) {
            loose_count += !mgx_shape_is_broadcasted(s);
            loose = mgx_shape_is_broadcasted(s) ? loose : s;
        } else if (!packed) {
            packed = s;
        } else if (!same_places(packed, s)) {
            return mgx_shape_retype(model, type);
        }
    }
    if (packed)
        return mgx_shape_strided(type, packed->rank, packed->lens, packed->strides);
    struct mgx_shape out = mgx_shape_retype(model, type);
    return loose_count == 1 ? mgx_shape_like_order(&out, loose) : out;
}
