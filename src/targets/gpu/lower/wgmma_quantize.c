// SPDX-License-Identifier: MIT
// A product of bytes that nobody else reads, as a product of the floats that they are made of
// (kernel/wgmma_quantize.gpu).
//
// Floats take four times a byte's way from the second level, and are made bytes once for every tile beside
// them and every tap. So what is deep, or more than one wave of tiles, is better off with bytes that a kernel
// has made: of 256 channels and 16 images of 56 x 56 an H200 takes 121 us by floats, 42 by bytes and 17 for them.
// One image's tiles are few: up to eight blocks of the depth instead of two took GCViT from 1.564 to 1.477 ms there.
//
// Holds: results are those of the bytes. b is packed once more, in the order of this kernel.
#include <assert.h>

#include "op/op.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/wgmma.h"

// Blocks of the depth, and of those that are deeper than flat the most rows: more of them pay for the
// floats' way with what a launch less saves.
enum { FLAT = 2, DEEPEST = 8, FEW_ROWS = 1024 };

// The step as it was offered, its constants known to be some.
struct again {
    struct mgx_plan_offer offer;
    struct mgx_shape in[GPU_CALL_INPUTS];
    const struct mgx_tensor *constant[GPU_CALL_INPUTS];
    unsigned char want[GPU_CALL_INPUTS];
    bool skip[GPU_CALL_INPUTS];
};

static void offer_again(struct mgx_plan *plan, const struct mgx_plan_step *step, struct again *a,
                        struct mgx_diag *diag)
{
    const struct gpu_wgmma_call *bytes = step->state;
    *a = (struct again){.offer = {.ins = NULL}};
    a->offer = gpu_offer_of(plan, step, a->in);
    for (int i = 0; i < step->in_count; i++)
        if (mgx_plan_root(step->in_value[i], NULL)->place == MGX_PLAN_CONST)
            a->constant[i] = &bytes->weights;
    a->constant[bytes->g.p.operand[1]] = &bytes->weights;
    a->offer.constant = a->constant;
    a->offer.want_in = a->want;
    a->offer.skip_in = a->skip;
    a->offer.arena = &plan->store.arena;
    a->offer.store = &plan->store;
    a->offer.diag = diag;
}

static enum mgx_status take(struct again *a, const struct mgx_plan_step *step,
                            const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *t,
                            struct mgx_str *text, struct gpu_wgmma_call **out)
{
    struct mgx_plan_offer *c = &a->offer;
    const struct gpu_wgmma_call *bytes = step->state;
    struct gpu_wgmma_call *k = MGX_NEW(c->arena, struct gpu_wgmma_call);
    const bool same = g->units != GPU_WGMMA_QUANTIZED; // b lies as that one has it
    void *packed =
        same ? bytes->packed : mgx_plan_device_take(c->store, gpu_wgmma_packed_bytes(g), c->diag);
    if (!k || !packed) {
        mgx_str_fini(text);
        return packed ? mgx_fail_memory(c->diag) : c->diag->status;
    }
    *k = (struct gpu_wgmma_call){.g = *g,
                                 .weights = bytes->weights,
                                 .packed = packed,
                                 .shared = same,
                                 .tile_columns = t->columns};
    k->g.map.box = (unsigned)t->rows;
    const struct gpu_launch how =
        gpu_wgmma_launch(g, t, gpu_machine(c->machine)->device->properties.units);
    if (gpu_take_call(c, &k->base, text, &how, g->p.extra, g->p.extra_count) != MGX_PLAN_TAKEN)
        return c->diag->status;
    if (g->ranged)
        gpu_leave_ranges(c, how.grid[0]);
    *out = k;
    return MGX_OK;
}

enum mgx_status gpu_wgmma_quantize(struct mgx_plan *plan, const struct mgx_plan_step *step,
                                   struct gpu_wgmma_quantizing *q, struct gpu_wgmma_call **out,
                                   struct mgx_diag *diag)
{
    assert(step->kernel == &gpu_kernel_wgmma && q->x.type == MGX_FLOAT);
    const struct gpu_wgmma_call *bytes = step->state;
    const int units = gpu_machine(plan->machine)->device->properties.units;
    struct again a;
    struct gpu_wgmma_product g;
    struct gpu_wgmma_tile t;
    struct mgx_str text = {0};
    *out = NULL;
    if (step->in_count > GPU_CALL_INPUTS)
        return MGX_OK;
    offer_again(plan, step, &a, diag);
    if (gpu_wgmma_read_quantized(&a.offer, &q->x, q->pad, &g))
        return MGX_OK;
    g.summed = q->summed;
    g.zero = q->zero;
    g.alone = bytes->base.ranges_alone;
    g.beyond = g.blocks * g.block - (int)(mgx_shape_elements(&bytes->weights.shape) / g.p.columns);
    const struct gpu_wgmma_size size = gpu_wgmma_size_of(&a.offer, &g);
    const struct gpu_wgmma_size before = gpu_wgmma_size_of(&a.offer, &bytes->g);
    const bool deep = g.blocks > (g.rows > FEW_ROWS ? FLAT : DEEPEST);
    if (deep || !gpu_wgmma_rank(&size, &t, 1) ||
        gpu_wgmma_tiles(&t, g.rows, g.p.columns, g.unit) > (int64_t)units * t.per_multiprocessor)
        return MGX_OK;
    q->saved = gpu_wgmma_microseconds(&before) + gpu_wgmma_packing(&bytes->g, 1) -
               gpu_wgmma_microseconds(&size);
    const struct gpu_launch how = gpu_wgmma_launch(&g, &t, units);
    g.ranged = bytes->base.ranges && how.grid[0] <= GPU_RANGES_MOST;
    g.alone = g.ranged && g.alone;
    g.range.parts = q->parts;
    g.range.first_parts = q->first_parts;
    for (int e = 0; e < g.p.extra_count; e++)
        g.range.number[e] = q->number[g.p.extra[e]];
    if (!gpu_wgmma_emit(&text, &a.offer, &g, &t))
        return take(&a, step, &g, &t, &text, out);
    mgx_str_fini(&text);
    return MGX_OK;
}

enum mgx_status gpu_wgmma_sum(struct mgx_plan *plan, const struct mgx_plan_step *step, int summed,
                              int zero, struct gpu_wgmma_call **out, struct mgx_diag *diag)
{
    assert(step->kernel == &gpu_kernel_wgmma && summed > 0);
    const struct gpu_wgmma_call *bytes = step->state;
    const int units = gpu_machine(plan->machine)->device->properties.units;
    struct again a;
    struct gpu_wgmma_product g = bytes->g;
    struct gpu_wgmma_tile t;
    struct mgx_str text = {0};
    *out = NULL;
    offer_again(plan, step, &a, diag);
    g.summed = summed;
    g.zero = zero;
    const struct gpu_wgmma_size size = gpu_wgmma_size_of(&a.offer, &g);
    if (!gpu_wgmma_rank(&size, &t, 1))
        return MGX_OK;
    const struct gpu_launch how = gpu_wgmma_launch(&g, &t, units);
    g.ranged = bytes->base.ranges && how.grid[0] <= GPU_RANGES_MOST;
    g.alone = g.ranged && g.alone;
    if (!gpu_wgmma_emit(&text, &a.offer, &g, &t))
        return take(&a, step, &g, &t, &text, out);
    mgx_str_fini(&text);
    return MGX_OK;
}
