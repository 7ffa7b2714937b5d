// SPDX-License-Identifier: MIT
// Poolings; see pool.h.
#include "op/reference/pool.h"

#include <assert.h>

static struct mgx_window_attr window_attr(const struct mgx_pool_attr *a)
{
    return (struct mgx_window_attr){.padding = a->padding,
                                    .stride = a->stride,
                                    .dilation = a->dilations,
                                    .padding_mode = a->padding_mode,
                                    .ceil = a->ceil_mode};
}

struct mgx_pool_attr mgx_pool_of(const struct mgx_ins *ins)
{
    const struct mgx_window_attr window = mgx_window_of(ins);
    return (struct mgx_pool_attr){.padding = window.padding,
                                  .stride = window.stride,
                                  .lengths = mgx_ins_ints(ins, "lengths"),
                                  .dilations = window.dilation,
                                  .padding_mode = window.padding_mode,
                                  .ceil_mode = window.ceil,
                                  .global = mgx_field_find(ins->op, "dyn_global") &&
                                            mgx_ins_int(ins, "dyn_global")};
}

bool mgx_pool_sees_all(const struct mgx_ins *ins)
{
    const struct mgx_pool_attr a = mgx_pool_of(ins);
    const struct mgx_shape *x = &ins->in[0]->shape;
    if (a.global)
        return true;
    if (!mgx_shape_is_static(x) || a.lengths.count != x->rank - 2)
        return false;
    for (int d = 2; d < x->rank; d++)
        if (a.lengths.v[d - 2] != x->lens[d] || ins->shape.lens[d] != 1)
            return false;
    return a.padding_mode == MGX_PADDING_GIVEN && mgx_ints_all(a.padding, 0) &&
           mgx_ints_all(a.dilations, 1);
}

static enum mgx_status check_window(struct mgx_shape_call *c, const struct mgx_pool_attr *a,
                                    const struct mgx_window_attr *window, int spatial)
{
    TRY(mgx_window_check(c, window, spatial));
    if (a->lengths.count != spatial)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: inconsistent attribute sizes: lengths (%d) for %d spatial axes",
                        c->op->name, a->lengths.count, spatial);
    return MGX_OK;
}

static enum mgx_status pool_dims(struct mgx_shape_call *c, const struct mgx_pool_attr *a,
                                 int spatial, struct mgx_dim *dims)
{
    const struct mgx_window_attr window = window_attr(a);
    TRY(check_window(c, a, &window, spatial));
    for (int i = 0; i < spatial; i++) {
        const int64_t length = mgx_max_i64(a->lengths.v[i], 0); // a negative one is refused as 0
        const struct mgx_dim kernel = {.min = length, .max = length};
        TRY(mgx_window_dim(c, &window, i, dims[i], kernel, &dims[i]));
    }
    return MGX_OK;
}

enum mgx_status mgx_pool_shape(struct mgx_shape_call *c, const struct mgx_pool_attr *a,
                               struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    if (!a->global)
        TRY(pool_dims(c, a, x->rank - 2, dims + 2));
    for (int i = 2; a->global && i < x->rank; i++)
        dims[i] = (struct mgx_dim){.min = 1, .max = 1};
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    if (mgx_shape_is_static(out) && mgx_shape_is_static(x))
        *out = mgx_shape_like_order(out, x);
    return MGX_OK;
}

void mgx_pool_walk_init(struct mgx_pool_walk *w, const struct mgx_pool_attr *a,
                        const struct mgx_shape *in, const struct mgx_shape *out)
{
    assert(in->rank == out->rank && in->rank >= 3);
    const struct mgx_window_attr window = window_attr(a);
    *w = (struct mgx_pool_walk){
        .rank = in->rank - 2, .planes = in->lens[0] * in->lens[1], .places = 1, .plane = 1};
    for (int i = 0; i < w->rank; i++) {
        const int64_t n = in->lens[i + 2];
        w->axis[i] = a->global ? (struct mgx_window){n, n, 1, 1, 0, 0, 1}
                               : mgx_window_at(&window, i, n, a->lengths.v[i], out->lens[i + 2]);
        w->places *= w->axis[i].out;
        assert(w->axis[i].out == out->lens[i + 2]);
        w->plane *= n;
    }
}

void mgx_pool_step(const struct mgx_pool_walk *w, int64_t *at)
{
    assert(w->rank > 0);
    for (int i = w->rank - 1; i >= 0; i--) {
        if (++at[i] < w->axis[i].out)
            return;
        at[i] = 0;
    }
}
