// SPDX-License-Identifier: MIT
// A product as the Hopper kernel sees it: how its left operand is described to the copy engine.
//
//     dot           rows (all batches together) x depth, depth innermost; b: constant
//     convolution   channels last: 1 x 1 without steps is a dot, the rest is gathered tap by tap;
//                   few channels, or pixels that are no lines, are packed first
#include <stdint.h>
#include <string.h>

#include "op/op.h"
#include "targets/gpu/lower/wgmma.h"

enum { MOST_LOW = 127, MOST_STEP = 8, MOST_FAR = 255, LINE = 8, MOST_FOLD = 32 };
#define MOST_FOLDED ((size_t)1 << 32)

// --- what is offered ---

static bool is_narrow(enum mgx_type type)
{
    return type == MGX_HALF || type == MGX_BF16;
}

// One stride for all of these axes together, in their order; false if there is none.
bool gpu_wgmma_merge(const struct mgx_shape *s, const int *axes, int count, int64_t *stride)
{
    int64_t len = 1;
    *stride = 0;
    for (int i = count - 1; i >= 0; i--) {
        const int axis = axes[i];
        if (s->lens[axis] == 1)
            continue;
        if (len == 1)
            *stride = s->strides[axis];
        else if (s->strides[axis] != *stride * len)
            return false;
        len *= s->lens[axis];
    }
    return true;
}

// Rows may come in any order, as long as all arrays agree: the order in which a's lie.
static void order_rows(struct gpu_wgmma_product *g, const struct mgx_shape *a)
{
    const bool dot = g->p.ins->op == &mgx_op_dot;
    g->column_axis = dot ? a->rank - 1 : 1;
    g->row_axis_count = 0;
    for (int i = 0; i < a->rank; i++) {
        if (i == g->column_axis)
            continue;
        int at = g->row_axis_count++;
        for (; dot && at > 0; at--) {
            const int before = g->row_axes[at - 1];
            if (a->lens[i] == 1 || a->lens[before] == 1 || a->strides[before] >= a->strides[i])
                break;
            g->row_axes[at] = before;
        }
        g->row_axes[at] = i;
    }
}

static bool plain_matrix(struct gpu_wgmma_product *g, const struct mgx_shape *a)
{
    const int column = g->column_axis;
    int64_t stride;
    if (!gpu_wgmma_merge(a, g->row_axes, g->row_axis_count, &stride) ||
        (a->strides[column] != 1 && a->lens[column] > 1))
        return false;
    stride = g->rows == 1 || stride == 0 ? (a->lens[column] + LINE - 1) / LINE * LINE : stride;
    g->map = (struct gpu_tensor_map){.rank = 2,
                                     .bf16 = a->type == MGX_BF16,
                                     .lens = {(uint64_t)a->lens[column], (uint64_t)g->rows},
                                     .strides = {2, (uint64_t)stride * 2}};
    return stride % LINE == 0;
}

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void set_depths(struct gpu_wgmma_product *g, bool wide)
{
    g->channel_blocks = (int)up(wide ? GPU_WGMMA_BLOCK : g->channels, GPU_WGMMA_BLOCK);
    g->tap_depth = wide ? g->channels : (int64_t)g->channel_blocks * GPU_WGMMA_BLOCK;
    g->row_depth = wide ? GPU_WGMMA_BLOCK : g->tap_depth * g->taps_w;
    g->blocks = (int)(g->row_depth / GPU_WGMMA_BLOCK) * g->taps_h;
}

static const char *read_dot(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *a = &c->in[g->p.operand[0]], *b = &c->in[g->p.operand[1]];
    for (int i = 0; i < b->rank - 2; i++)
        if (b->lens[i] > 1 && b->strides[i])
            return "another right operand for every batch entry";
    g->rows = g->p.batches * g->p.rows;
    g->channels = g->p.depth;
    g->taps_h = g->taps_w = 1;
    set_depths(g, false);
    if (plain_matrix(g, a))
        return NULL;
    c->want_in[g->p.operand[0]] = MGX_PLAN_ROW_MAJOR;
    return "rows of the left operand are not lines";
}

// The attributes of a convolution over two axes.
static void read_window(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *w = &c->in[g->p.operand[1]];
    const struct mgx_ints step = mgx_ins_ints(g->p.ins, "stride");
    const struct mgx_ints far = mgx_ins_ints(g->p.ins, "dilation");
    const struct mgx_ints pad = mgx_ins_ints(g->p.ins, "padding");
    for (int i = 0; i < 2; i++) { // 0: height
        g->step[i] = step.v[i] < INT16_MAX ? (int)step.v[i] : INT16_MAX;
        g->pad[i] = pad.v[i] < INT16_MAX ? (int)pad.v[i] : INT16_MAX;
        g->far[i] = far.v[i] < INT16_MAX ? (int)far.v[i] : INT16_MAX;
    }
    g->taps_h = w->lens[2] < INT16_MAX ? (int)w->lens[2] : INT16_MAX;
    g->taps_w = w->lens[3] < INT16_MAX ? (int)w->lens[3] : INT16_MAX;
}

// The map of an image, within what the copy engine counts to.
static bool set_image(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g,
                      const int64_t *lens, const int64_t *strides)
{
    struct gpu_tensor_map *map = &g->map;
    const int taps[2] = {g->taps_h, g->taps_w};
    g->image = true;
    *map = (struct gpu_tensor_map){
        .rank = 4, .image = true, .bf16 = c->in[g->p.operand[0]].type == MGX_BF16};
    for (int i = 0; i < 4; i++) {
        map->lens[i] = (uint64_t)lens[i];
        map->strides[i] = lens[i] == 1 ? 16 : (uint64_t)strides[i] * 2;
        if (lens[i] > 1 && (i ? strides[i] <= 0 || strides[i] % LINE : strides[i] != 1))
            return false;
    }
    for (int i = 0; i < 2; i++) { // width first
        const int k = 1 - i;      // height first
        const int64_t last = (c->out->lens[3 - i] - 1) * g->step[k] - g->pad[k];
        const int64_t high = last - (lens[i + 1] - 1);
        if (g->step[k] > MOST_STEP || g->pad[k] > MOST_LOW || high > MOST_LOW || high < -MOST_LOW ||
            (int64_t)g->far[k] * (taps[k] - 1) > MOST_FAR)
            return false;
        map->low[i] = -g->pad[k];
        map->high[i] = (int)high;
        map->step[i] = (unsigned)g->step[k];
    }
    return true;
}

// Channels, width, height, images.
static bool set_image_as_it_lies(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    static const int axis[] = {1, 3, 2, 0};
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    int64_t lens[4], strides[4];
    for (int i = 0; i < 4; i++) {
        lens[i] = x->lens[axis[i]];
        strides[i] = x->strides[axis[i]];
    }
    return set_image(c, g, lens, strides);
}

static bool is_point(const struct gpu_wgmma_product *g)
{
    return g->taps_h == 1 && g->taps_w == 1 && g->step[0] == 1 && g->step[1] == 1 &&
           g->pad[0] == 0 && g->pad[1] == 0;
}

// --- folding ---
//
//     fold x fold pixels of c channels    =>    one pixel of round8(c fold fold) channels
//
// A window of k taps is one of k / fold taps, rounded up, and steps of `fold` are steps of one. Few
// channels then make lines: where all taps of a row have together no more than a block of 64, the
// engine reads the row's pixels as if they were channels of the first one. What lies there beyond
// the window meets weights of 0.

// Packed rows, each long enough for its last pixel to be read as a whole block.
static void size_fold(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g, bool wide)
{
    struct gpu_wgmma_fold *f = &g->fold;
    const int64_t pixels = (c->out->lens[3] - 1) * g->step[1] + 1;
    f->height = (c->out->lens[2] - 1) * g->step[0] + g->taps_h;
    f->width = pixels - 1 + (wide ? up(GPU_WGMMA_BLOCK, f->channels) : g->taps_w);
    f->bytes = (size_t)(c->out->lens[0] * f->height * f->width * f->channels) * 2;
}

static bool set_fold(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    struct gpu_wgmma_fold *f = &g->fold;
    const int64_t channels = c->in[g->p.operand[0]].lens[1];
    if (g->far[0] != 1 || g->far[1] != 1 || g->step[0] > MOST_FOLD)
        return false;
    f->fold = g->step[0] == g->step[1] ? g->step[0] : 1;
    f->channels = up(channels * f->fold * f->fold, LINE) * LINE;
    g->taps_h = (int)up(g->taps_h, f->fold);
    g->taps_w = (int)up(g->taps_w, f->fold);
    for (int i = 0; i < 2; i++)
        g->step[i] /= f->fold;
    const bool wide = g->taps_w * f->channels <= GPU_WGMMA_BLOCK;
    g->channels = f->channels;
    size_fold(c, g, wide);
    set_depths(g, wide);
    g->far[0] = g->far[1] = 1;
    const int64_t pixels = (c->out->lens[3] - 1) * g->step[1] + 1;
    const int64_t lens[4] = {wide ? GPU_WGMMA_BLOCK : f->channels, wide ? pixels : f->width,
                             f->height, c->out->lens[0]};
    const int64_t strides[4] = {1, f->channels, f->width * f->channels,
                                f->height * f->width * f->channels};
    const int pad[2] = {g->pad[0], g->pad[1]};
    g->pad[0] = g->pad[1] = 0;
    if (wide)
        g->taps_w = 1;
    const bool set = set_image(c, g, lens, strides);
    memcpy(g->fold.pad, pad, sizeof pad);
    return set && f->bytes < MOST_FOLDED;
}

static const char *read_convolution(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    if (x->rank != 4 || g->p.batches != 1)
        return "groups, or another number of axes than four";
    g->rows = g->p.rows;
    g->channels = x->lens[1];
    read_window(c, g);
    set_depths(g, false);
    if (is_point(g) && plain_matrix(g, x))
        return NULL;
    if (set_image_as_it_lies(c, g))
        return NULL;
    return set_fold(c, g) ? NULL : "steps, padding or dilation beyond the copy engine's";
}

const char *gpu_wgmma_read(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    memset(g, 0, sizeof *g);
    const struct gpu_device *d = gpu_machine(c->machine)->device;
    if (!(d->properties.features & GPU_TENSOR_MAPS))
        return "no matrix units of Hopper's kind";
    const char *why = gpu_product_read(c, &g->p);
    if (why)
        return why;
    const enum mgx_type type = c->in[g->p.operand[0]].type;
    if (!is_narrow(type) || c->in[g->p.operand[1]].type != type)
        return "operands that are not both half or both bf16";
    if (!c->constant[g->p.operand[1]])
        return "a right operand that is computed";
    if (g->p.depth < LINE || mgx_shape_elements(c->out) == 0)
        return "hardly any depth, or no results";
    order_rows(g, &c->in[g->p.operand[0]]);
    why = g->p.ins->op == &mgx_op_dot ? read_dot(c, g) : read_convolution(c, g);
    if (!why && !g->fold.bytes && c->in_offset && c->in_offset[g->p.operand[0]] % 16) {
        c->want_in[g->p.operand[0]] = MGX_PLAN_LIKE_RESULT;
        why = "a left operand that begins between multiples of 16 bytes";
    }
    return why;
}
