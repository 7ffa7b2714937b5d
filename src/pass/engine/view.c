// SPDX-License-Identifier: MIT
// Algebra of views; see view.h.
#include "pass/engine/view.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "pass/engine/emit.h"

// --- building ---

static bool put_factor(struct mgx_view *v, int *count, struct mgx_factor f)
{
    if (*count == MGX_VIEW_FACTORS)
        return false;
    v->factor[(*count)++] = f;
    return true;
}

bool mgx_view_start(struct mgx_view *v, const struct mgx_shape *source)
{
    if (!mgx_shape_is_static(source) || mgx_shape_elements(source) == 0 ||
        source->type == MGX_TUPLE || source->type == MGX_SEQUENCE)
        return false;
    v->source = mgx_shape_make(source->type, source->rank, source->lens);
    v->rank = source->rank;
    int count = 0;
    for (int d = 0; d < v->rank; d++) {
        v->lens[d] = source->lens[d];
        v->begin[d] = count;
        if (v->lens[d] > 1)
            v->factor[count++] = (struct mgx_factor){v->lens[d], v->source.strides[d]};
    }
    v->begin[v->rank] = count;
    return true;
}

// All factors in order, neighbours joined where they can be (`out` may be `in`). Returns how many.
static int merge(const struct mgx_factor *in, int count, struct mgx_factor *out)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (n && out[n - 1].stride == in[i].length * in[i].stride)
            out[n - 1] = (struct mgx_factor){out[n - 1].length * in[i].length, in[i].stride};
        else
            out[n++] = in[i];
    }
    return n;
}

// Takes factors off the end of `all` until their product is `length`; they are put into `out`
// backwards. Splits the last one where needed.
static bool take_factor(struct mgx_factor *all, int *count, int64_t length, struct mgx_factor *out,
                        int *taken)
{
    while (length > 1) {
        if (!*count || *taken == MGX_VIEW_FACTORS)
            return false;
        struct mgx_factor *f = &all[*count - 1];
        if (length % f->length == 0) {
            length /= f->length;
            out[(*taken)++] = *f;
            --*count;
        } else if (f->length % length == 0) {
            out[(*taken)++] = (struct mgx_factor){length, f->stride};
            *f = (struct mgx_factor){f->length / length, f->stride * length};
            length = 1;
        } else {
            return false;
        }
    }
    return true;
}

bool mgx_view_reshape(struct mgx_view *v, const int64_t *lens, int rank)
{
    struct mgx_factor all[MGX_VIEW_FACTORS], backwards[MGX_VIEW_FACTORS];
    int left = merge(v->factor, v->begin[v->rank], all), taken = 0;
    int ends[MGX_MAX_RANK]; // how many were taken when axis d was done, from the last axis on
    for (int d = rank - 1; d >= 0; d--) {
        if (!take_factor(all, &left, lens[d], backwards, &taken))
            return false;
        ends[d] = taken;
    }
    if (left)
        return false;
    for (int i = 0; i < taken; i++)
        v->factor[i] = backwards[taken - 1 - i];
    v->rank = rank;
    for (int d = 0; d < rank; d++) {
        v->lens[d] = lens[d];
        v->begin[d] = taken - ends[d];
    }
    v->begin[rank] = taken;
    return true;
}

bool mgx_view_transpose(struct mgx_view *v, const int *permutation)
{
    const struct mgx_view old = *v;
    int count = 0;
    for (int d = 0; d < v->rank; d++) {
        const int from = permutation[d];
        v->lens[d] = old.lens[from];
        v->begin[d] = count;
        for (int i = old.begin[from]; i < old.begin[from + 1]; i++)
            v->factor[count++] = old.factor[i];
    }
    v->begin[v->rank] = count;
    return true;
}

bool mgx_view_broadcast(struct mgx_view *v, const int64_t *lens, int rank, int first_axis)
{
    const struct mgx_view old = *v;
    int count = 0;
    v->rank = rank;
    for (int d = 0; d < rank; d++) {
        const int from = d - first_axis;
        const bool own = from >= 0 && from < old.rank;
        v->lens[d] = lens[d];
        v->begin[d] = count;
        if (own && old.lens[from] == lens[d]) {
            for (int i = old.begin[from]; i < old.begin[from + 1]; i++)
                if (!put_factor(v, &count, old.factor[i]))
                    return false;
        } else if ((own && old.lens[from] != 1) ||
                   (lens[d] > 1 && !put_factor(v, &count, (struct mgx_factor){lens[d], 0}))) {
            return false;
        }
    }
    v->begin[rank] = count;
    return true;
}

// --- instructions ---

void mgx_shapes_agree(const struct mgx_shape *a, const struct mgx_shape *b, int *i, int *k)
{
    for (*i = *k = 0;; ++*i, ++*k) {
        while (*i < a->rank && a->lens[*i] == 1)
            ++*i;
        while (*k < b->rank && b->lens[*k] == 1)
            ++*k;
        if (*i == a->rank || *k == b->rank || a->lens[*i] != b->lens[*k])
            return;
    }
}

bool mgx_view_equal(const struct mgx_view *x, const struct mgx_view *y)
{
    const int count = x->begin[x->rank];
    return x->rank == y->rank && count == y->begin[y->rank] &&
           !memcmp(x->lens, y->lens, (size_t)x->rank * sizeof *x->lens) &&
           !memcmp(x->begin, y->begin, (size_t)x->rank * sizeof *x->begin) &&
           !memcmp(x->factor, y->factor, (size_t)count * sizeof *x->factor);
}

bool mgx_is_reshaper(const struct mgx_ins *ins)
{
    static const struct mgx_op *const list[] = {
        &mgx_op_reshape,   &mgx_op_squeeze,   &mgx_op_unsqueeze,
        &mgx_op_flatten,   &mgx_op_transpose, &mgx_op_multibroadcast,
        &mgx_op_broadcast, &mgx_op_identity,  &mgx_op_contiguous};
    if (ins->in_count != 1 || !mgx_shape_is_static(&ins->shape) ||
        !mgx_shape_is_static(&ins->in[0]->shape))
        return false;
    for (int i = 0; i < MGX_COUNT(list); i++)
        if (ins->op == list[i])
            return true;
    return false;
}

static bool read_permutation(const struct mgx_ins *ins, int *out)
{
    const struct mgx_ints p = mgx_ins_ints(ins, "permutation");
    if (p.count != ins->shape.rank)
        return false;
    for (int i = 0; i < p.count; i++)
        out[i] = (int)(p.v[i] < 0 ? p.v[i] + p.count : p.v[i]);
    return true;
}

bool mgx_view_apply(struct mgx_view *v, const struct mgx_ins *ins)
{
    int permutation[MGX_MAX_RANK];
    const struct mgx_shape *s = &ins->shape;
    assert(v->rank == ins->in[0]->shape.rank);
    if (mgx_is(ins, &mgx_op_transpose))
        return read_permutation(ins, permutation) && mgx_view_transpose(v, permutation);
    if (mgx_is(ins, &mgx_op_multibroadcast))
        return mgx_view_broadcast(v, s->lens, s->rank, s->rank - v->rank);
    if (mgx_is(ins, &mgx_op_broadcast)) {
        const int64_t axis = mgx_ins_int(ins, "axis");
        return mgx_view_broadcast(v, s->lens, s->rank, mgx_wrap_axis(axis, s->rank));
    }
    if (mgx_is(ins, &mgx_op_identity) || mgx_is(ins, &mgx_op_contiguous))
        return true;
    return mgx_view_reshape(v, s->lens, s->rank);
}

bool mgx_view_apply_inverse(struct mgx_view *v, const struct mgx_ins *ins)
{
    const struct mgx_shape *s = &ins->in[0]->shape;
    int permutation[MGX_MAX_RANK], inverse[MGX_MAX_RANK];
    if (!mgx_is(ins, &mgx_op_transpose))
        return mgx_view_reshape(v, s->lens, s->rank);
    if (!read_permutation(ins, permutation))
        return false;
    for (int i = 0; i < s->rank; i++)
        inverse[permutation[i]] = i;
    return mgx_view_transpose(v, inverse);
}

// --- planning ---

// Factors of the result, joined within their axes; which axis each is of.
struct listing {
    struct mgx_factor factor[MGX_VIEW_FACTORS];
    int axis[MGX_VIEW_FACTORS];
    int count;
};

static void list_factors(const struct mgx_view *v, struct listing *l)
{
    l->count = 0;
    for (int d = 0; d < v->rank; d++) {
        const int n =
            merge(v->factor + v->begin[d], v->begin[d + 1] - v->begin[d], l->factor + l->count);
        for (int i = 0; i < n; i++)
            l->axis[l->count + i] = d;
        l->count += n;
    }
}

// The source as axes that the result only has to reorder: its real factors, sorted by falling
// stride; `join` keeps together what the result keeps together, across its axes. permutation[i]
// says which of them comes i-th in the result.
static int split_source(const struct listing *l, bool join, struct mgx_view_plan *p)
{
    struct mgx_factor joined[MGX_VIEW_FACTORS];
    int count = 0;
    for (int i = 0; i < l->count; i++)
        if (l->factor[i].stride)
            joined[count++] = l->factor[i];
    if (join)
        count = merge(joined, count, joined);
    if (count > MGX_MAX_RANK)
        return -1;
    for (int i = 0; i < count; i++) {
        int rank = 0; // how many axes of the source come before it
        for (int j = 0; j < count; j++)
            rank += joined[j].stride > joined[i].stride;
        p->permutation[i] = rank;
        p->split_lens[rank] = joined[i].length;
        p->transpose |= rank != i;
    }
    return count;
}

static bool same_lens(const int64_t *a, int a_rank, const int64_t *b, int b_rank)
{
    return a_rank == b_rank && (!a_rank || memcmp(a, b, (size_t)a_rank * sizeof *a) == 0);
}

// Where the source has the factors as its axes already (lengths of 1 aside), the permutation is one
// of the source's own axes, and if the result has no more axes, the lengths of 1 can move along.
static void keep_source_axes(const struct mgx_view *v, const struct listing *l,
                             struct mgx_view_plan *p)
{
    int place[MGX_MAX_RANK], ones[MGX_MAX_RANK], n = 0, one_count = 0, permutation[MGX_MAX_RANK];
    for (int d = 0; d < v->source.rank; d++) {
        if (v->source.lens[d] == 1)
            ones[one_count++] = d;
        else if (n == p->split_rank || v->source.lens[d] != p->split_lens[n])
            return;
        else
            place[n++] = d;
    }
    if (n != p->split_rank || v->rank != v->source.rank)
        return;
    int next_real = 0, next_one = 0;
    for (int d = 0; d < v->rank; d++) {
        bool real = false;
        for (int i = 0; i < l->count; i++)
            real |= l->axis[i] == d && l->factor[i].stride != 0;
        if (real ? next_real == n : next_one == one_count)
            return;
        permutation[d] = real ? place[p->permutation[next_real++]] : ones[next_one++];
    }
    if (next_real != n) // an axis of the result joins several
        return;
    p->split_rank = v->source.rank;
    memcpy(p->split_lens, v->source.lens, sizeof p->split_lens);
    memcpy(p->permutation, permutation, sizeof permutation);
}

// Axes of the result that walk nothing come first, as lengths of 1; how many there are.
static int place_ones(const struct mgx_view *v, unsigned walking, struct mgx_view_plan *p)
{
    int ones = 0;
    for (int d = 0; d < v->rank; d++)
        if (!(walking >> d & 1)) {
            p->split_lens[ones] = 1;
            p->permutation[d] = ones++;
        }
    return ones;
}

// Behind them the factors, as they lie in memory: the largest stride first.
static void place_factors(const struct listing *l, int ones, struct mgx_view_plan *p)
{
    for (int i = 0; i < l->count; i++) {
        int at = ones;
        for (int k = 0; k < l->count; k++)
            at += l->factor[k].stride > l->factor[i].stride;
        if (l->factor[i].stride) {
            p->split_lens[at] = l->factor[i].length;
            p->permutation[l->axis[i]] = at;
        }
    }
}

// Where every axis of the result is one factor or has length 1, the lengths of 1 can be put in
// before the transpose: nothing is left to join after it.
static bool split_with_ones(const struct mgx_view *v, const struct listing *l,
                            struct mgx_view_plan *p)
{
    unsigned walking = 0; // axes
    for (int i = 0; i < l->count; i++) {
        if (i && l->axis[i] == l->axis[i - 1])
            return false;
        if (l->factor[i].stride)
            walking |= 1u << l->axis[i];
    }
    p->split_rank = v->rank;
    p->transpose = true;
    place_factors(l, place_ones(v, walking, p), p);
    return true;
}

// Is an axis partly repeated? Its factors are split and joined again behind the repetition.
static bool is_mixed(const struct listing *l, int axis)
{
    bool walks = false, repeats = false;
    for (int i = 0; i < l->count; i++)
        if (l->axis[i] == axis)
            *(l->factor[i].stride ? &walks : &repeats) = true;
    return walks && repeats;
}

// Lengths before and after repetition. Where a reshape joins what was repeated, which is a copy,
// axes that walk nothing stay one place until it is done.
static bool plan_spread(const struct mgx_view *v, const struct listing *l, struct mgx_view_plan *p)
{
    for (int d = 0; d < v->rank; d++)
        p->join_after |= is_mixed(l, d);
    for (int d = 0, i = 0; d < v->rank; d++) {
        int64_t real = 1, repeated = 1;
        const int first = i;
        for (; i < l->count && l->axis[i] == d; i++)
            *(l->factor[i].stride ? &real : &repeated) *= l->factor[i].length;
        const bool mixed = real > 1 && repeated > 1;
        const bool later = p->join_after && !mixed && repeated > 1;
        p->spread |= repeated > 1 && !later;
        p->widen |= later;
        p->join_lens[d] = later ? 1 : v->lens[d];
        for (int k = first; k < (mixed ? i : first + 1); k++) {
            if (p->narrow_rank == MGX_MAX_RANK)
                return false;
            p->narrow_lens[p->narrow_rank] = !mixed                ? real
                                             : l->factor[k].stride ? l->factor[k].length
                                                                   : 1;
            p->wide_lens[p->narrow_rank++] = mixed ? l->factor[k].length : p->join_lens[d];
        }
    }
    return true;
}

static bool same_but_ones(const int64_t *a, int a_rank, const int64_t *b, int b_rank)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a_rank && a[i] == 1)
            i++;
        while (k < b_rank && b[k] == 1)
            k++;
        if (i == a_rank || k == b_rank)
            return i == a_rank && k == b_rank;
        if (a[i++] != b[k++])
            return false;
    }
}

// A broadcast repeats over leading axes by itself, so lengths of 1 in front need no reshape.
static bool is_suffix(const int64_t *lens, int rank, const struct mgx_view_plan *p)
{
    const int extra = p->narrow_rank - rank;
    if (extra < 0 || !p->spread)
        return false;
    for (int d = 0; d < extra; d++)
        if (p->narrow_lens[d] != 1)
            return false;
    return same_lens(lens, rank, p->narrow_lens + extra, p->narrow_rank - extra);
}

// One broadcast along `axis` does it all: the source's axes stand together in the result.
static bool is_laid(const struct mgx_view *v, struct mgx_view_plan *p)
{
    if (p->transpose || !p->spread || p->join_after || v->source.rank == 0)
        return false;
    for (int a = 0; a + v->source.rank <= v->rank; a++) {
        bool fits = true;
        for (int d = 0; d < v->rank && fits; d++) {
            const int from = d - a;
            fits = from >= 0 && from < v->source.rank
                       ? v->source.lens[from] == v->lens[d] && p->narrow_lens[d] == v->lens[d]
                       : p->narrow_lens[d] == 1;
        }
        p->axis = a;
        if (fits)
            return true;
    }
    return false;
}

enum split { SPLIT_ALL, SPLIT_JOINED, SPLIT_WITH_ONES, SPLITS };

static bool make_plan(const struct mgx_view *v, const struct listing *listing, enum split how,
                      struct mgx_view_plan *p)
{
    *p = (struct mgx_view_plan){0};
    p->split_rank = split_source(listing, how == SPLIT_JOINED, p);
    if (p->split_rank < 0 || !plan_spread(v, listing, p))
        return false;
    if (how == SPLIT_WITH_ONES && (!p->transpose || !split_with_ones(v, listing, p)))
        return false;
    int64_t ordered[MGX_MAX_RANK];
    if (p->transpose) {
        if (how != SPLIT_WITH_ONES)
            keep_source_axes(v, listing, p);
        p->split = !same_lens(v->source.lens, v->source.rank, p->split_lens, p->split_rank);
        for (int i = 0; i < p->split_rank; i++)
            ordered[i] = p->split_lens[p->permutation[i]];
    } else {
        p->split_rank = v->source.rank;
        memcpy(ordered, v->source.lens, sizeof ordered);
    }
    p->join = !same_lens(ordered, p->split_rank, p->narrow_lens, p->narrow_rank) &&
              !is_suffix(ordered, p->split_rank, p);
    p->regroup = p->join && !same_but_ones(ordered, p->split_rank, p->narrow_lens, p->narrow_rank);
    p->lay = p->join && is_laid(v, p);
    if (p->lay)
        p->join = p->spread = false;
    p->steps = p->split + p->transpose + p->join + p->spread + p->lay + p->join_after + p->widen;
    return true;
}

bool mgx_view_plan(const struct mgx_view *v, struct mgx_view_plan *out)
{
    struct listing listing;
    bool found = false;
    list_factors(v, &listing);
    for (int how = 0; how < SPLITS; how++) {
        struct mgx_view_plan p;
        if (!make_plan(v, &listing, (enum split)how, &p))
            continue;
        // Of equally short ones the first without a reshape after the transpose.
        if (!found || p.steps < out->steps || (p.steps == out->steps && out->join && !p.join))
            *out = p;
        found = true;
    }
    return found;
}

bool mgx_view_copies(const struct mgx_view_plan *plan)
{
    return plan->join_after || (plan->transpose && plan->regroup);
}

int64_t mgx_view_copied(const struct mgx_view *v, const struct mgx_view_plan *plan)
{
    int64_t elements = 1;
    for (int d = 0; d < v->rank; d++)
        elements *= plan->join_lens[d];
    return plan->join_after ? elements : 0;
}

struct mgx_ins *mgx_view_emit(struct mgx_ins *at, struct mgx_ins *source, const struct mgx_view *v,
                              const struct mgx_view_plan *p)
{
    if (p->lay)
        return mgx_emit_before(
            at, &mgx_op_broadcast,
            MGX_ATTRS(mgx_int("axis", p->axis), mgx_ints("out_lens", v->lens, v->rank)),
            MGX_IN(source));
    if (p->split)
        source = mgx_emit_reshape(at, source, p->split_lens, p->split_rank);
    if (p->transpose)
        source = mgx_emit_transpose(at, source, p->permutation, p->split_rank);
    if (p->join)
        source = mgx_emit_reshape(at, source, p->narrow_lens, p->narrow_rank);
    if (p->spread)
        source = mgx_emit_multibroadcast(at, source, p->wide_lens, p->narrow_rank);
    if (p->join_after)
        source = mgx_emit_reshape(at, source, p->join_lens, v->rank);
    return p->widen ? mgx_emit_multibroadcast(at, source, v->lens, v->rank) : source;
}
