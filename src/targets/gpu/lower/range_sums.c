// SPDX-License-Identifier: MIT
// Sums of windows, or of rows, times a zero point of weights, which pass/bare_products takes off products:
//
//     s = conv(x, q everywhere)         nothing: its readers
//     y = tail(conv(x, w) - s, ...)     sum up x themselves (kernel/wgmma_ones.gpu)
//
// A depthwise convolution takes its zero point off the weights itself, and nobody reads s (plan/unread.c).
//
// Holds: both gather the same of the same x, and all that reads s takes it off so.
#include <string.h>

#include "op/op.h"
#include "targets/gpu/lower/range_bundle.h"
#include "targets/gpu/lower/tail.h"

static const struct gpu_wgmma_call *product_of(const struct mgx_plan_step *step)
{
    const struct gpu_wgmma_call *call = step->state;
    if (step->kernel != &gpu_kernel_wgmma || !gpu_step_is_plain(step))
        return NULL;
    const struct gpu_wgmma_product *g = &call->g;
    const bool plain = gpu_product_is_bytes(&g->p) && !g->p.make && !g->p.pad &&
                       g->p.batches == 1 && !g->fold.bytes;
    return plain ? call : NULL;
}

// A product by one column whose weights are all one value.
static bool is_sum(const struct mgx_plan_step *step, int *value)
{
    const struct gpu_wgmma_call *call = product_of(step);
    if (!call || call->g.p.tail || call->g.p.columns != 1)
        return false;
    const struct mgx_tensor *w = &call->weights;
    const unsigned char *bytes = w->data;
    const int64_t count = mgx_shape_space(&w->shape);
    for (int64_t i = 1; i < count; i++)
        if (bytes[i] != bytes[0])
            return false;
    *value = w->shape.type == MGX_INT8 ? (signed char)bytes[0] : bytes[0];
    return count > 0;
}

static bool reads_alike(const struct mgx_plan_step *a, const struct mgx_plan_step *b)
{
    const struct gpu_wgmma_product *g = &product_of(a)->g, *h = &product_of(b)->g;
    struct mgx_plan_value *x = a->in_value[g->p.operand[0]], *y = b->in_value[h->p.operand[0]];
    int64_t at = 0, other = 0;
    return mgx_plan_root(x, &at) == mgx_plan_root(y, &other) && at == other &&
           mgx_shape_equal(&x->shape, &y->shape) && g->rows == h->rows &&
           g->channels == h->channels && g->image == h->image &&
           g->row_axis_count == h->row_axis_count &&
           memcmp(g->row_axes, h->row_axes, (size_t)g->row_axis_count * sizeof *g->row_axes) == 0 &&
           memcmp(g->step, h->step, sizeof g->step) == 0 &&
           memcmp(g->pad, h->pad, sizeof g->pad) == 0 &&
           memcmp(g->far, h->far, sizeof g->far) == 0 &&
           memcmp(g->taps, h->taps, sizeof g->taps) == 0;
}

// 1 + the number of the product's extra that the sums are; 0: it does not take them off, or not alone.
static int summed_of(const struct mgx_plan_step *step, const struct mgx_plan_value *sums)
{
    const struct gpu_product *p = &product_of(step)->g.p;
    int found = 0, times = 0;
    for (int e = 0; e < p->extra_count; e++)
        if (mgx_plan_root(step->in_value[p->extra[e]], NULL) == sums) {
            found = e + 1;
            times++;
        }
    const int input = found - 1 < p->place ? found - 1 : found; // of the tail
    return times == 1 && p->tail && gpu_takes_off(p->tail, p->place, input) ? found : 0;
}

// The steps that read the instruction, through views, all of which must take it off; how many, -1: others
// read it too.
static int find_readers(const struct gpu_range_plan *p, int s, const struct mgx_ins *ins,
                        int *readers, int count, int most)
{
    const struct mgx_plan_step *sums = &p->plan->steps[s];
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        if (use->user->op->flags & MGX_OP_VIEW) {
            if ((count = find_readers(p, s, use->user, readers, count, most)) < 0)
                return -1;
            continue;
        }
        const int r = gpu_range_step_of(p, use->user, s, s + MGX_PLAN_BUNDLE_MOST / 2);
        if (!r || count == most || !product_of(&p->plan->steps[r]) ||
            !reads_alike(sums, &p->plan->steps[r]) || p->actions[r].summed ||
            !summed_of(&p->plan->steps[r], sums->out_value))
            return -1;
        readers[count++] = r;
    }
    return count;
}

void gpu_range_sums(const struct gpu_range_plan *p, int s)
{
    enum { MOST = 4 };
    int readers[MOST], zero;
    const struct mgx_plan_step *step = &p->plan->steps[s];
    if (!is_sum(step, &zero) || mgx_plan_root(step->out_value, NULL) != step->out_value)
        return;
    const int count = find_readers(p, s, step->ins, readers, 0, MOST);
    for (int i = 0; i < count; i++) {
        p->actions[readers[i]].summed = summed_of(&p->plan->steps[readers[i]], step->out_value);
        p->actions[readers[i]].zero = zero;
        gpu_range_tie(p, s, readers[i]);
    }
    if (count <= 0)
        return;
    p->actions[s].how = GPU_RANGE_LEFT_OUT;
    gpu_range_say(p, s, "done by the product that takes it off");
}

enum mgx_status gpu_range_sum(const struct gpu_range_plan *p, int s, struct mgx_diag *diag)
{
    struct gpu_range_action *action = &p->actions[s];
    struct mgx_plan_step *step = &p->plan->steps[s];
    if (!action->summed || action->how != GPU_RANGE_AS_IT_IS)
        return MGX_OK;
    TRY(gpu_wgmma_sum(p->plan, step, action->summed, action->zero, &action->product, diag));
    if (!action->product)
        return mgx_fail(diag, MGX_INVALID, "no tile for a product that sums up its rows");
    gpu_range_reserve(step, &action->product->base);
    action->how = GPU_RANGE_SUMMING;
    gpu_range_add(p, s, "sums up its rows");
    return MGX_OK;
}
