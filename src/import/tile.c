// SPDX-License-Identifier: MIT
// Repetition of a tensor along its axes, made of reshapes and a broadcast. Cost: a view, and a copy
// where axes are merged.
#include "base/size.h"

#include <assert.h>

#include "import/build.h"

// x, of static shape: (d0, d1, ...) to (1, d0, 1, d1, ...), broadcast to (r0, d0, r1, d1, ...), merged pairwise.
enum mgx_status mgx_build_tile(struct mgx_node *n, struct mgx_ins *x, struct mgx_ints repeats,
                               struct mgx_ins **out)
{
    assert(mgx_build_is_static(x));
    const int rank = x->shape.rank;
    int64_t wide[MGX_MAX_RANK], split[MGX_MAX_RANK], merged[MGX_MAX_RANK];
    int count = 0;
    if (repeats.count != rank)
        return mgx_node_invalid(n, "%d repeats for rank %d", repeats.count, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t r = repeats.v[i];
        if (r < 0 || !mgx_mul_i64(r, x->shape.lens[i], &merged[i]) || merged[i] > MGX_DIM_ANY)
            return mgx_node_invalid(n, "repeat %lld of axis %d", (long long)r, i);
        const bool pair = r != 1 && x->shape.lens[i] != 1;
        if (count + 1 + pair > MGX_MAX_RANK)
            return mgx_node_unsupported(n, "more than %d axes are needed", MGX_MAX_RANK);
        if (pair) {
            split[count] = 1;
            wide[count++] = r;
        }
        split[count] = x->shape.lens[i];
        wide[count++] = pair ? x->shape.lens[i] : merged[i];
    }
    struct mgx_shape result = mgx_shape_make(x->shape.type, rank, merged);
    if (mgx_shape_check(&result, n->diag) != MGX_OK)
        return MGX_INVALID;
    if (mgx_shape_elements(&result) == 0) {
        *out = mgx_build_doubles(n, &result, NULL);
        return MGX_OK;
    }
    struct mgx_ins *y = count == rank ? x : mgx_build_reshape(n, x, split, count);
    assert(count >= rank && count <= MGX_MAX_RANK);
    y = mgx_build_expand(n, y, count, wide);
    *out = count == rank ? y : mgx_build_reshape(n, y, merged, rank);
    return MGX_OK;
}
