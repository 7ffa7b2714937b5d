// SPDX-License-Identifier: MIT
// A transposed convolution of stride 1 is a convolution with its kernel turned around.
//
//     convolution_backwards[padding=p](x, w)       =>  convolution[padding=(k - 1) d - p](x, v)
//     quant_convolution_backwards[padding=p](..)   =>  likewise, with its zero points
//
// with v[m, c, t] = w[c, m, k - 1 - t] and c and m of one group: where it gave every value to k
// places, every place gathers from k values. Padding beyond the kernel's reach cut results off; now
// it cuts off the values that gave to those alone. Every target has more kernels for convolutions,
// and ends by what reads them.
//
// Holds: the image's extent is known. Constant weights are turned once; others cost one copy.
#include <string.h>

#include "op/reference/window.h"
#include "pass/engine/emit.h"
#include "pass/rules/rules.h"

enum { MAX_SPATIAL = MGX_MAX_RANK - 3 };

static bool is_fixed(const struct mgx_shape *s)
{
    for (int i = 1; i < s->rank; i++) {
        const struct mgx_dim dim = mgx_shape_dim(s, i);
        if (!mgx_dim_is_fixed(&dim) || dim.min == 0)
            return false;
    }
    return true;
}

static bool is_plain(const struct mgx_ins *ins, const struct mgx_window_attr *window)
{
    const struct mgx_shape *w = &ins->in[1]->shape;
    const int spatial = ins->shape.rank - 2;
    return spatial >= 1 && spatial <= MAX_SPATIAL && mgx_window_is_explicit(window, spatial) &&
           mgx_ints_all(window->stride, 1) && mgx_shape_is_static(w) && w->lens[0] > 0 &&
           is_fixed(w) && is_fixed(&ins->in[0]->shape) && is_fixed(&ins->shape);
}

// Zero points of weights are one for every result of a group; a convolution has one for every
// result of all.
static bool has_zeros(const struct mgx_ins *ins, const struct mgx_window_attr *window)
{
    const struct mgx_shape *zero = ins->in_count > 3 ? &ins->in[3]->shape : NULL;
    return window->group == 1 || !zero ||
           (mgx_shape_is_static(zero) && mgx_shape_elements(zero) == 1);
}

// w {g c, m, k..} as {g m, c, k..}, from the last tap to the first.
static struct mgx_ins *turned(struct mgx_ins *at, int64_t group)
{
    struct mgx_ins *w = at->in[1];
    const int rank = w->shape.rank, more = group > 1;
    int64_t apart[MGX_MAX_RANK], whole[MGX_MAX_RANK], axes[MGX_MAX_RANK];
    int order[MGX_MAX_RANK], count = 0;
    apart[0] = group;
    apart[more] = whole[1] = w->shape.lens[0] / group;
    apart[more + 1] = w->shape.lens[1];
    whole[0] = group * w->shape.lens[1];
    order[0] = 0;
    order[more] = more + 1;
    order[more + 1] = more;
    for (int i = 2; i < rank; i++) {
        apart[i + more] = whole[i] = w->shape.lens[i];
        order[i + more] = i + more;
        if (whole[i] > 1)
            axes[count++] = i;
    }
    w = mgx_emit_reshape(at, w, apart, rank + more);
    w = mgx_emit_transpose(at, w, order, rank + more);
    w = mgx_emit_reshape(at, w, whole, rank);
    return count ? mgx_emit_before(at, &mgx_op_reverse, MGX_ATTRS(mgx_ints("axes", axes, count)),
                                   MGX_IN(w))
                 : w;
}

// What a convolution pads: below zero it cuts off.
static bool read_padding(const struct mgx_ins *ins, const struct mgx_window_attr *window,
                         int64_t *padding)
{
    const int spatial = ins->shape.rank - 2;
    const struct mgx_ints given = window->padding;
    for (int i = 0; i < spatial; i++) {
        const int64_t reach = (ins->in[1]->shape.lens[i + 2] - 1) * window->dilation.v[i];
        padding[i] = reach - given.v[i];
        padding[i + spatial] = reach - given.v[given.count > spatial ? i + spatial : i];
        if (mgx_shape_dim(&ins->in[0]->shape, i + 2).min + mgx_min_i64(padding[i], 0) +
                mgx_min_i64(padding[i + spatial], 0) <
            1)
            return false;
    }
    return true;
}

static struct mgx_ins *cut(struct mgx_ins *at, struct mgx_ins *x, int64_t *padding, int spatial)
{
    for (int i = 0; i < spatial; i++) {
        const int64_t length = mgx_shape_dim(&x->shape, i + 2).min;
        const int64_t before = mgx_max_i64(-padding[i], 0),
                      after = mgx_max_i64(-padding[i + spatial], 0);
        if (before + after > 0 && !(x = mgx_emit_slice(at, x, i + 2, before, length - after)))
            return NULL;
        padding[i] += before;
        padding[i + spatial] += after;
    }
    return x;
}

static struct mgx_ins *turn(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    struct mgx_program *p = r->call->program;
    const struct mgx_window_attr window = mgx_window_of(ins);
    const int spatial = ins->shape.rank - 2;
    int64_t padding[2 * MAX_SPATIAL];
    if (!is_plain(ins, &window) || !has_zeros(ins, &window) || !read_padding(ins, &window, padding))
        return NULL;
    struct mgx_ins *in[4];
    memcpy(in, ins->in, sizeof *in * (size_t)ins->in_count);
    in[0] = cut(ins, in[0], padding, spatial);
    in[1] = turned(ins, window.group);
    const struct mgx_op *op =
        ins->op == &mgx_op_convolution_backwards ? &mgx_op_convolution : &mgx_op_quant_convolution;
    void *attr = in[0] && in[1] ? mgx_edit_attr(p, ins) : NULL;
    if (!attr || !mgx_edit_ints(p, op, attr, "padding", padding, 2 * spatial))
        return NULL;
    return mgx_emit_edited(ins, op, attr, in, ins->in_count);
}

static const struct mgx_rule rules[] = {
    {"convolution_backwards|quant_convolution_backwards ~> convolution[padding](x, reverse(w))",
     MGX_ALWAYS, .rewrite = turn},
};

const struct mgx_rules mgx_rules_backwards = {rules, MGX_COUNT(rules)};
