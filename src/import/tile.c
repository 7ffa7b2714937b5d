// SPDX-License-Identifier: MIT
// Repetition of a tensor along its axes, made of reshapes and a broadcast. Cost: a view, and a copy
// where axes are merged.
#include "base/size.h"

#include <assert.h>

#include "import/build.h"

// How a repetition is made: axes split, widened by the broadcast, merged again.
struct tile {
    int64_t split[MGX_MAX_RANK], wide[MGX_MAX_RANK], merged[MGX_MAX_RANK];
    int count; // of axes split
};

// (d0, d1, ...) to (1, d0, 1, d1, ...), broadcast to (r0, d0, r1, d1, ...), merged pairwise.
static enum mgx_status plan_tile(struct mgx_node *n, const struct mgx_shape *x,
                                 struct mgx_ints repeats, struct tile *t)
{
    t->count = 0;
    for (int i = 0; i < x->rank; i++) {
        const int64_t r = repeats.v[i];
        if (r < 0 || !mgx_mul_i64(r, x->lens[i], &t->merged[i]) || t->merged[i] > MGX_DIM_ANY)
            return mgx_node_invalid(n, "repeat %lld of axis %d", (long long)r, i);
        const bool pair = r != 1 && x->lens[i] != 1;
        if (t->count + 1 + pair > MGX_MAX_RANK)
            return mgx_node_unsupported(n, "more than %d axes are needed", MGX_MAX_RANK);
        if (pair) {
            t->split[t->count] = 1;
            t->wide[t->count++] = r;
        }
        t->split[t->count] = x->lens[i];
        t->wide[t->count++] = pair ? x->lens[i] : t->merged[i];
    }
    return MGX_OK;
}

// x is of static shape.
enum mgx_status mgx_build_tile(struct mgx_node *n, struct mgx_ins *x, struct mgx_ints repeats,
                               struct mgx_ins **out)
{
    assert(mgx_build_is_static(x));
    const int rank = x->shape.rank;
    struct tile t;
    if (repeats.count != rank)
        return mgx_node_invalid(n, "%d repeats for rank %d", repeats.count, rank);
    TRY(plan_tile(n, &x->shape, repeats, &t));
    struct mgx_shape result = mgx_shape_make(x->shape.type, rank, t.merged);
    if (mgx_shape_check(&result, n->diag) != MGX_OK)
        return MGX_INVALID;
    if (mgx_shape_elements(&result) == 0) {
        *out = mgx_build_doubles(n, &result, NULL);
        return MGX_OK;
    }
    struct mgx_ins *y = t.count == rank ? x : mgx_build_reshape(n, x, t.split, t.count);
    assert(t.count >= rank && t.count <= MGX_MAX_RANK);
    y = mgx_build_expand(n, y, t.count, t.wide);
    *out = t.count == rank ? y : mgx_build_reshape(n, y, t.merged, rank);
    return MGX_OK;
}
