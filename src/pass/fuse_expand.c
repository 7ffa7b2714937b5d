// SPDX-License-Identifier: MIT
// Inverted residuals (MobileNet, EfficientNet): a 1 x 1 convolution widens an image, a depthwise
// one alone reads it. So does the one that reads a network's first layer.
//
//     depthwise(convolution(x, w), v), each with its epilogue  =>  group[tag=expand]
//
// The first may multiply bfloat16, the second may end in it; between them are floats.
//
// The wide image is the largest thing in such a network, written once and read once. In a group the
// depthwise convolution can have its rows made as it goes, in the nearest memory that holds them
// (mgx_pass_target.near_bytes: L2 of a CPU; without one nothing is grouped). That pays when the
// image does not stay there by itself; threads make the rows twice that both of them read.
#include <assert.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "pass/engine/region.h"

// A convolution with all it takes to see through the group that holds its epilogue.
struct stage {
    const struct mgx_ins *conv;
    struct mgx_ins *x, *w; // outside of the group
};

static bool is_convolution(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convolution ||
           (ins->op == &mgx_op_quant_convolution && ins->in[0]->shape.type == MGX_BF16);
}

static bool is_float(enum mgx_type type)
{
    return type == MGX_FLOAT || type == MGX_BF16;
}

static bool find_stage(const struct mgx_ins *ins, struct stage *s)
{
    *s = (struct stage){.conv = ins};
    if (is_convolution(ins)) {
        s->x = ins->in[0];
        s->w = ins->in[1];
    } else if (ins->mod_count == 1 && mgx_is_group(ins, "epilogue")) {
        s->conv = ins->mod[0]->first;
        while (s->conv && !is_convolution(s->conv))
            s->conv = s->conv->next;
        s->x = s->conv ? mgx_group_gives(ins, s->conv->in[0]) : NULL;
        s->w = s->conv ? mgx_group_gives(ins, s->conv->in[1]) : NULL;
    }
    return s->x && s->w && s->w->literal && is_float(s->w->shape.type) && s->w->shape.rank == 4 &&
           is_float(ins->shape.type) && ins->shape.rank == 4 && mgx_shape_is_static(&ins->shape) &&
           mgx_shape_elements(&ins->shape) > 0 && mgx_shape_same_lens(&s->conv->shape, &ins->shape);
}

// Of few channels and few taps: a direct convolution is the best there is.
static bool is_first_layer(const struct stage *s)
{
    enum { FEW = 4 };
    return s->x->shape.lens[1] <= FEW && s->w->shape.lens[2] <= 3 &&
           mgx_ins_int(s->conv, "group") == 1 && is_float(s->x->shape.type);
}

static bool is_pointwise(const struct stage *s)
{
    const struct mgx_window_attr window = mgx_window_of(s->conv);
    return s->w->shape.lens[2] == 1 && s->w->shape.lens[3] == 1 && window.group == 1 &&
           mgx_ints_all(window.stride, 1) && mgx_window_is_unpadded(&window) &&
           is_float(s->x->shape.type);
}

static bool is_depthwise(const struct stage *s)
{
    const int64_t channels = s->conv->shape.lens[1];
    return mgx_ins_int(s->conv, "group") == channels && s->x->shape.lens[1] == channels &&
           s->conv->op == &mgx_op_convolution && s->x->shape.type == MGX_FLOAT &&
           s->w->shape.lens[1] == 1 && s->w->shape.lens[2] > 1;
}

// The image leaves the L2 cache, the rows in work do not, what is made twice is a quarter, and the
// weights that widen, which every pair of rows goes through, are read less than the image would be.
static bool pays(const struct stage *wide, const struct stage *s,
                 const struct mgx_pass_options *options)
{
    const struct mgx_shape *x = &s->x->shape;
    const int64_t l2 = options->target.near_bytes;
    const int threads = options->target.threads;
    const int64_t row = x->lens[1] * x->lens[3] * (int64_t)sizeof(float);
    const struct mgx_window_attr window = mgx_window_of(s->conv);
    const int64_t stride = window.stride.v[0];
    const int64_t reach = (s->w->shape.lens[2] - 1) * window.dilation.v[0] + 1;
    const int64_t shared = reach > stride ? reach - stride : 0, image = row * x->lens[2];
    const int64_t weights = mgx_shape_elements(&wide->w->shape) * (int64_t)sizeof(float);
    return l2 > 0 && image > l2 / 4 * 3 && row * (reach + stride) <= l2 / 2 &&
           weights * (x->lens[2] / (2 * stride) + 1) <= image &&
           4 * shared * (threads > 1 ? threads : 0) <= x->lens[2];
}

static enum mgx_status fuse_expansions(struct mgx_pass_call *c, struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        struct stage wide, deep;
        // The group may read the image a second time, as a residual.
        if (!find_stage(ins, &deep) || !is_depthwise(&deep) || !mgx_used_once(deep.x) ||
            !mgx_used_once(deep.conv->in[0]) || deep.x->owner != m || !find_stage(deep.x, &wide) ||
            !(is_pointwise(&wide) || is_first_layer(&wide)) || !pays(&wide, &deep, c->options))
            continue;
        struct mgx_region region = {.count = 0};
        mgx_region_add(&region, deep.x);
        mgx_region_add(&region, ins);
        if (mgx_region_closed(&region))
            TRY(mgx_region_fuse(c, &region, "expand"));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_expand = {
    .name = "fuse_expand",
    .meaning = "a depthwise convolution takes the one that makes its input",
    .module = fuse_expansions,
    .by_size = true,
};
