// SPDX-License-Identifier: MIT
// Kernel positions of a convolution that only ever read padding go.
//
//     conv[padding={24, 24}, dilation=24](x, w)  =>  conv[padding={0, 0}](x, w[1:2])
//                                                          for x of 16 rows and w of 3
//
// A tap k of an axis reads the input at o*stride + k*dilation - before, for all o; outside of the
// input there are zeros. Taps at both ends that never meet it are cut off, with the padding that
// only they needed. Dilated branches of segmentation heads lose up to 8 of 9 products.
//
// Holds: the number of results stays; where less padding than none would be needed the axis stays
// as it is. Cost: O(taps) per axis and look.
#include "base/size.h"
#include "op/reference/window.h"
#include "pass/engine/emit.h"
#include "pass/rules/rules.h"

enum { MAX_SPATIAL = MGX_MAX_RANK - 2 };

struct axis {
    int64_t in, out, taps, stride, dilation, before, after;
    int64_t first, end; // taps to keep
};

// Does any result read the input through tap k?
static bool is_read(const struct axis *a, int64_t k)
{
    const int64_t low = k * a->dilation - a->before; // where the first result reads
    if (low >= a->in)
        return false;
    const int64_t steps = low < 0 ? (-low + a->stride - 1) / a->stride : 0; // the first inside
    return steps < a->out && low + steps * a->stride < a->in;
}

static bool cut(struct axis *a)
{
    a->first = 0;
    a->end = a->taps;
    while (a->first < a->end && !is_read(a, a->first))
        a->first++;
    while (a->end > a->first && !is_read(a, a->end - 1))
        a->end--;
    if (a->first == a->end) // nothing is read at all: one tap keeps the shapes
        return false;
    const int64_t before = a->first * a->dilation, after = (a->taps - a->end) * a->dilation;
    if (before + after == 0 || before > a->before || after > a->after)
        return false;
    a->before -= before;
    a->after -= after;
    return true;
}

static bool read_axes(const struct mgx_ins *ins, struct axis *axes, int spatial)
{
    const struct mgx_window_attr window = mgx_window_of(ins);
    const struct mgx_ints padding = window.padding;
    const struct mgx_shape *x = &ins->in[0]->shape, *w = &ins->in[1]->shape;
    if (!mgx_window_is_explicit(&window, spatial))
        return false;
    for (int i = 0; i < spatial; i++)
        axes[i] = (struct axis){.in = x->lens[i + 2],
                                .out = ins->shape.lens[i + 2],
                                .taps = w->lens[i + 2],
                                .stride = window.stride.v[i],
                                .dilation = window.dilation.v[i],
                                .before = padding.v[i],
                                .after = padding.v[padding.count == spatial ? i : i + spatial]};
    return true;
}

static struct mgx_ins *cut_taps(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)m;
    struct axis axes[MAX_SPATIAL];
    int64_t padding[2 * MAX_SPATIAL];
    const int spatial = ins->shape.rank - 2;
    bool any = false;
    if (ins->in_count != 2 || spatial < 1 || !mgx_shape_is_static(&ins->in[0]->shape) ||
        !mgx_shape_is_static(&ins->in[1]->shape) || !read_axes(ins, axes, spatial))
        return NULL;
    struct mgx_ins *w = ins->in[1];
    for (int i = 0; i < spatial; i++) {
        if (cut(&axes[i])) {
            w = mgx_emit_slice(ins, w, i + 2, axes[i].first, axes[i].end);
            any = true;
        }
        padding[i] = axes[i].before;
        padding[i + spatial] = axes[i].after;
    }
    void *attr = any ? mgx_edit_attr(r->call->program, ins) : NULL;
    if (!attr || !mgx_edit_ints(r->call->program, ins->op, attr, "padding", padding, 2 * spatial))
        return NULL;
    return mgx_emit_edited(ins, ins->op, attr, (struct mgx_ins *[]){ins->in[0], w}, 2);
}

static const struct mgx_rule rules[] = {
    {"convolution|quant_convolution(x, w) ~> convolution[padding](x, slice(w))", MGX_IF_STATIC,
     .rewrite = cut_taps},
};

const struct mgx_rules mgx_rules_taps = {rules, MGX_COUNT(rules)};
