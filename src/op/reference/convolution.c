// SPDX-License-Identifier: MIT
#include "op/reference/convolution.h"

#include <inttypes.h>

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
const struct mgx_convolution mgx_convolution_defaults = {
    .padding = {zeros, 2}, .stride = {ones, 2}, .dilation = {ones, 2}, .group = 1};

struct mgx_window_attr mgx_convolution_window(const struct mgx_convolution *a)
{
    return (struct mgx_window_attr){.padding = a->padding,
                                    .stride = a->stride,
                                    .dilation = a->dilation,
                                    .padding_mode = a->padding_mode};
}

enum mgx_status mgx_convolution_check(struct mgx_shape_call *c)
{
    const struct mgx_convolution *a = c->attr;
    const struct mgx_window_attr window = mgx_convolution_window(a);
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, c->in[0]->rank, c->in[0]->rank));
    TRY(mgx_window_check(c, &window, c->in[0]->rank - 2));
    if (a->group < 1 || a->group > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: group %" PRId64 " is out of range 1..%d",
                        c->op->name, a->group, INT32_MAX);
    return MGX_OK;
}

struct mgx_unfold mgx_convolution_unfold(const struct mgx_compute_call *c, bool back)
{
    const struct mgx_shape *x = &c->in[0]->shape, *w = &c->in[1]->shape, *y = &c->out->shape;
    const struct mgx_window_attr window = mgx_convolution_window(c->attr);
    struct mgx_unfold u = {.rank = x->rank - 2};
    for (int i = 0; i < u.rank; i++)
        u.axis[i] = (back ? mgx_window_back_at : mgx_window_at)(&window, i, x->lens[i + 2],
                                                                w->lens[i + 2], y->lens[i + 2]);
    mgx_unfold_count(&u);
    return u;
}
