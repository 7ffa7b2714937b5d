// SPDX-License-Identifier: MIT
// A product as the Hopper kernel sees it: how its left operand is described to the copy engine.
//
//     dot           rows (all batches together) x depth, depth innermost; b: constant
//     convolution   of one to three axes, channels last: 1 x 1 without steps is a dot, the rest is gathered tap by tap;
//                   few channels, or pixels that are no lines, are packed first; several groups share
//                   a tile where they are narrow
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/lower/wgmma.h"

enum { MOST_STEP = 8, LEAST_DEPTH = 8, MOST_FOLD = 32 };
// What the copy engine has bits for, by the number of axes: a corner of its box, and a tap's way.
static const int most_low[] = {0, 32767, 127, 15}, most_far[] = {0, 65535, 255, 31};
enum { FEW = 8 };      // channels below are no line of half
enum { WIDEST = 128 }; // bytes of a row of taps that are read as one pixel, of floats twice as many
#define MOST_FOLDED ((size_t)1 << 32)

// --- what is offered ---

static bool is_ocp(const struct gpu_product *p, int operand)
{
    const enum mgx_type type = p->ins->in[operand]->shape.type;
    return type == MGX_FP8E4M3FN || type == MGX_FP8E5M2;
}

static bool set_units(struct gpu_wgmma_product *g, enum mgx_type type, bool tf32)
{
    const bool wide = type == MGX_FLOAT;
    if (gpu_product_is_bytes(&g->p) || gpu_product_is_fp8(&g->p)) {
        g->units = gpu_product_is_bytes(&g->p) ? GPU_WGMMA_BYTES : GPU_WGMMA_FP8;
        g->map.type = GPU_MAP_BYTE;
        g->block = 128;
        g->line = 16;
        g->size = 1;
        return gpu_product_is_bytes(&g->p) || (is_ocp(&g->p, 0) && is_ocp(&g->p, 1));
    }
    g->units = !wide ? GPU_WGMMA_NARROW : tf32 ? GPU_WGMMA_TF32 : GPU_WGMMA_SPLIT;
    g->map.type = type == MGX_HALF   ? GPU_MAP_HALF
                  : type == MGX_BF16 ? GPU_MAP_BF16
                  : tf32             ? GPU_MAP_TF32
                                     : GPU_MAP_FLOAT;
    g->block = wide ? 32 : 64;
    g->line = wide ? 4 : 8;
    g->size = mgx_type_size(type);
    return wide || mgx_type_is_half_or_bf16(type);
}

// One stride for all of these axes together, in their order; false if there is none.
bool gpu_wgmma_merge(const struct mgx_shape *s, const int *axes, int count, int64_t *stride)
{
    assert(count >= 0 && count <= s->rank);
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
    const bool dot = gpu_product_is_dot(&g->p);
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

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool plain_matrix(struct gpu_wgmma_product *g, const struct mgx_shape *a)
{
    const int column = g->column_axis;
    int64_t stride;
    if (!gpu_wgmma_merge(a, g->row_axes, g->row_axis_count, &stride) ||
        (a->strides[column] != 1 && a->lens[column] > 1))
        return false;
    stride = g->rows == 1 || stride == 0 ? up(a->lens[column], g->line) * g->line : stride;
    const uint64_t size = g->size;
    g->map = (struct gpu_tensor_map){.rank = 2,
                                     .narrow = gpu_wgmma_is_short(g->units),
                                     .type = g->map.type,
                                     .lens = {(uint64_t)a->lens[column], (uint64_t)g->rows},
                                     .strides = {size, (uint64_t)stride * size}};
    return stride % g->line == 0;
}

// Bytes: blocks of 64, where those of 128 would have a half of zeros for every tap.
static void set_depths(struct gpu_wgmma_product *g, bool wide)
{
    const int64_t taps_w = g->taps[GPU_WGMMA_WIDTH];
    const int64_t last = (wide ? g->channels * taps_w : g->channels) % 128;
    if (gpu_wgmma_is_narrow(g->units) && g->units != GPU_WGMMA_QUANTIZED) {
        const bool half = last > 0 && last <= 64;
        const bool fp8 = gpu_wgmma_is_fp8(g->units);
        g->units = fp8 ? (half ? GPU_WGMMA_FP8_64 : GPU_WGMMA_FP8)
                       : (half ? GPU_WGMMA_BYTES_64 : GPU_WGMMA_BYTES);
        g->block = half ? 64 : 128;
    }
    const int64_t block = g->block;
    g->channel_blocks = (int)up(wide ? g->channels * taps_w : g->channels, block);
    g->tap_depth = wide ? g->channels : g->channel_blocks * block;
    g->row_depth = wide ? g->channel_blocks * block : g->tap_depth * taps_w;
    g->blocks = (int)(g->row_depth / block) * g->taps[GPU_WGMMA_DEPTH] * g->taps[GPU_WGMMA_HEIGHT];
}

static const char *read_dot(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *a = &c->in[g->p.operand[0]], *b = &c->in[g->p.operand[1]];
    for (int i = 0; i < b->rank - 2; i++)
        if (b->lens[i] > 1 && b->strides[i])
            return "another right operand for every batch entry";
    g->rows = g->p.batches * g->p.rows;
    g->channels = g->p.depth;
    g->taps[0] = g->taps[1] = g->taps[2] = 1;
    g->unit = g->p.columns;
    set_depths(g, false);
    if (plain_matrix(g, a))
        return NULL;
    c->want_in[g->p.operand[0]] = MGX_PLAN_ROW_MAJOR;
    return "rows of the left operand are not lines";
}

static int within_16_bits(int64_t x)
{
    return x < INT16_MAX ? (int)x : INT16_MAX;
}

// The attributes of a convolution, for axes that are not there those of one place.
static void read_window(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *w = &c->in[g->p.operand[1]];
    const struct mgx_window_attr a = mgx_window_of(g->p.ins);
    for (int i = 0; i < GPU_WGMMA_AXES; i++) {
        const int k = i + w->rank - 2 - GPU_WGMMA_AXES;
        g->step[i] = k < 0 ? 1 : within_16_bits(a.stride.v[k]);
        g->pad[i] = k < 0 ? 0 : within_16_bits(gpu_product_before(&g->p, k));
        g->far[i] = k < 0 ? 1 : within_16_bits(a.dilation.v[k]);
        g->taps[i] = within_16_bits(gpu_wgmma_len(w, i));
    }
}

// The map of an image (channels, width, height, depth, images), within what the copy engine counts to.
static bool set_image(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g,
                      const int64_t *lens, const int64_t *strides)
{
    const int axes = c->out->rank - 2;
    struct gpu_tensor_map *map = &g->map;
    const uint64_t size = g->size;
    g->image = true;
    *map = (struct gpu_tensor_map){.rank = axes + 2,
                                   .image = true,
                                   .narrow = gpu_wgmma_is_short(g->units),
                                   .type = g->map.type};
    for (int i = 0; i < axes + 2; i++) {
        const int from = i > axes ? GPU_WGMMA_AXES + 1 : i;
        map->lens[i] = (uint64_t)lens[from];
        map->strides[i] = lens[from] == 1 ? 16 : (uint64_t)strides[from] * size;
        if (lens[from] > 1 &&
            (i ? strides[from] <= 0 || strides[from] % g->line : strides[from] != 1))
            return false;
    }
    for (int i = 0; i < axes; i++) { // width first
        const int k = GPU_WGMMA_WIDTH - i;
        const int64_t last = (gpu_wgmma_len(c->out, k) - 1) * g->step[k] - g->pad[k];
        const int64_t high = last - (lens[i + 1] - 1);
        if (g->step[k] > MOST_STEP || g->pad[k] > most_low[axes] || high > most_low[axes] ||
            high < -most_low[axes] || (int64_t)g->far[k] * (g->taps[k] - 1) > most_far[axes])
            return false;
        map->low[i] = -g->pad[k];
        map->high[i] = (int)high;
        map->step[i] = (unsigned)g->step[k];
    }
    return true;
}

static bool set_image_as_it_lies(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    int64_t lens[GPU_WGMMA_AXES + 2] = {x->lens[1]}, strides[GPU_WGMMA_AXES + 2] = {x->strides[1]};
    for (int i = 0; i < GPU_WGMMA_AXES; i++) {
        lens[i + 1] = gpu_wgmma_len(x, GPU_WGMMA_WIDTH - i);
        strides[i + 1] = gpu_wgmma_stride(x, GPU_WGMMA_WIDTH - i);
    }
    lens[GPU_WGMMA_AXES + 1] = x->lens[0];
    strides[GPU_WGMMA_AXES + 1] = x->strides[0];
    return set_image(c, g, lens, strides);
}

static bool is_point(const struct gpu_wgmma_product *g)
{
    bool point = true;
    for (int i = 0; i < GPU_WGMMA_AXES; i++)
        point = point && g->taps[i] == 1 && g->step[i] == 1 && g->pad[i] == 0;
    return point;
}

// --- folding ---
//
//     down x across pixels of c channels    =>    one pixel of c down across channels, in whole lines
//
// A window of k taps is one of k / fold taps, rounded up, and steps of `fold` are steps of one. Few
// channels then make lines: where all taps of a row have together no more than 64 values, the
// engine reads the row's pixels as if they were channels of the first one. What lies there beyond
// the window meets weights of 0. Depth stays as it is.

// Packed rows, each long enough for its last pixel to be read as a whole block.
static void size_fold(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g, bool wide)
{
    enum { H = GPU_WGMMA_HEIGHT, W = GPU_WGMMA_WIDTH };
    struct gpu_wgmma_fold *f = &g->fold;
    const int64_t pixels = (gpu_wgmma_len(c->out, W) - 1) * g->step[W] + 1;
    f->depth = gpu_wgmma_len(&c->in[g->p.operand[0]], GPU_WGMMA_DEPTH);
    f->height = (gpu_wgmma_len(c->out, H) - 1) * g->step[H] + g->taps[H];
    f->width = pixels - 1 + (wide ? up(g->row_depth, f->channels) : g->taps[W]);
    f->bytes = (size_t)(c->out->lens[0] * f->depth * f->height * f->width * f->channels) * g->size;
}

// How many pixels become one: as far as steps go, the same down and across where there are both.
static bool choose_fold(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    enum { H = GPU_WGMMA_HEIGHT, W = GPU_WGMMA_WIDTH };
    struct gpu_wgmma_fold *f = &g->fold;
    const bool folds = g->p.batches == 1 && (c->out->rank == 3 || g->step[H] == g->step[W]);
    if (g->far[H] != 1 || g->far[W] != 1 || g->step[H] > MOST_FOLD || g->step[W] > MOST_FOLD)
        return false;
    f->down = folds ? g->step[H] : 1;
    f->across = folds ? g->step[W] : 1;
    f->channels = up(c->in[g->p.operand[0]].lens[1] * f->down * f->across, g->line) * g->line;
    g->taps[H] = (int)up(g->taps[H], f->down);
    g->taps[W] = (int)up(g->taps[W], f->across);
    g->step[H] /= f->down;
    g->step[W] /= f->across;
    return true;
}

static bool set_fold(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    enum { H = GPU_WGMMA_HEIGHT, W = GPU_WGMMA_WIDTH };
    struct gpu_wgmma_fold *f = &g->fold;
    if (!choose_fold(c, g))
        return false;
    const int64_t values = g->size == 1 ? WIDEST : WIDEST / 2;
    const bool wide = g->p.batches == 1 && g->taps[W] * f->channels <= values;
    g->channels = g->p.batches == 1 ? f->channels : g->channels;
    set_depths(g, wide);
    size_fold(c, g, wide);
    const int64_t pixels = (gpu_wgmma_len(c->out, W) - 1) * g->step[W] + 1;
    const int64_t plane = f->height * f->width * f->channels;
    const int64_t lens[] = {wide ? g->row_depth : f->channels, wide ? pixels : f->width, f->height,
                            f->depth, c->out->lens[0]};
    const int64_t strides[] = {1, f->channels, f->width * f->channels, plane, f->depth * plane};
    memcpy(f->pad, g->pad, sizeof f->pad);
    g->pad[H] = g->pad[W] = 0;
    if (wide)
        g->taps[W] = 1;
    return set_image(c, g, lens, strides) && f->bytes < MOST_FOLDED;
}

// The columns of some groups are a unit, which reads all their channels; a tile belongs to one unit. The
// copy engine takes a unit's channels from a multiple of 16 bytes on.
static bool set_unit(struct gpu_wgmma_product *g, const struct mgx_shape *x)
{
    const int64_t channels = x->lens[1] / g->p.batches;
    g->groups_of_unit = gpu_product_gather(&g->p, channels, g->block, g->line);
    g->unit = g->p.columns * g->groups_of_unit;
    g->channels = channels * g->groups_of_unit;
    g->p.columns *= g->p.batches;
    return g->groups_of_unit > 0;
}

// Of an image that is packed first: a launch of its own, which reads and writes it.
double gpu_wgmma_packing(const struct gpu_wgmma_product *g, double size)
{
    return g->fold.bytes ? gpu_moving(2 * size * (double)g->fold.bytes) : 0;
}

// Does the end read whole numbers that are computed: sums of windows, which the product may take off by itself?
static bool takes_sums(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g)
{
    bool sums = false;
    for (int e = 0; e < g->p.extra_count; e++)
        sums = sums || (c->in[g->p.extra[e]].type == MGX_INT32 && !c->constant[g->p.extra[e]]);
    return sums;
}

// The copy engine takes as long for a pixel of few bytes as for one of 128: bytes whose taps of a row are
// one pixel, when they are packed, are asked for once and not tap by tap. Is that worth the packing?
static bool is_better_packed(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *lies,
                             const struct gpu_wgmma_product *packed)
{
    static const double pixel = 1.6e-3; // microseconds of a multiprocessor's engine
    const int units = gpu_machine(c->machine)->device->properties.units;
    const bool sums = lies->p.columns == 1 || takes_sums(c, lies);
    const double saved = (double)lies->rows * (lies->blocks - packed->blocks) * pixel / units;
    return packed->size == 1 && !sums && saved > gpu_wgmma_packing(packed, 1);
}

static const char *read_convolution(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    if (x->rank < 3 || x->rank > 2 + GPU_WGMMA_AXES)
        return "more than three axes";
    g->rows = g->p.rows;
    if (!set_unit(g, x))
        return "groups whose channels are no lines";
    read_window(c, g);
    set_depths(g, false);
    if (!g->p.make && is_point(g) && plain_matrix(g, x))
        return NULL;
    struct gpu_wgmma_product packed = *g;
    if (!g->p.make && set_image_as_it_lies(c, g) && gpu_wgmma_read_border(c, g)) {
        if (set_fold(c, &packed) && is_better_packed(c, g, &packed))
            *g = packed;
        return NULL;
    }
    *g = packed;
    return set_fold(c, g) ? NULL : "steps, padding or dilation beyond the copy engine's";
}

// Are results bytes in whole lines of 16?
static bool leaves_quads(const struct mgx_shape *out, const struct gpu_wgmma_product *g)
{
    enum { WHOLE = 16 };
    const bool bytes = mgx_type_is_byte(out->type) || mgx_type_is_fp8(out->type);
    bool lines = bytes && gpu_wgmma_is_narrow(g->units) && out->strides[g->column_axis] == 1 &&
                 out->lens[g->column_axis] % WHOLE == 0 && g->unit % WHOLE == 0;
    for (int i = 0; i < g->row_axis_count; i++)
        lines =
            lines && (out->lens[g->row_axes[i]] == 1 || out->strides[g->row_axes[i]] % WHOLE == 0);
    return lines;
}

bool gpu_wgmma_packs(const struct gpu_device *d, const struct mgx_ins *make,
                     const struct mgx_ins *conv)
{
    assert(make->in_count > 0 && conv->in_count >= 2);
    const enum mgx_type from = make->in[0]->shape.type, to = make->shape.type;
    const struct mgx_window_attr window = mgx_window_of(conv);
    const bool bytes = mgx_type_is_byte(to);
    const bool halves = mgx_type_is_half_or_bf16(to) && conv->in[1]->shape.type == to;
    const int axes = make->shape.rank - 2;
    const bool near = axes > 0 && axes <= GPU_WGMMA_AXES && mgx_ints_all(window.dilation, 1);
    return d->properties.features & GPU_TENSOR_MAPS && near && conv->in[1]->literal &&
           window.group == 1 && make->shape.lens[1] < FEW &&
           (from == MGX_FLOAT || mgx_type_is_half_or_bf16(from)) &&
           (halves || (bytes && conv->op == &mgx_op_quant_convolution && conv->in_count == 2));
}

const char *gpu_wgmma_read(struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    memset(g, 0, sizeof *g);
    const struct gpu_device *d = gpu_machine(c->machine)->device;
    if (!(d->properties.features & GPU_TENSOR_MAPS))
        return "no matrix units of Hopper's kind";
    const char *why = gpu_product_read(c, &g->p);
    if (!why && !gpu_product_is_float(&g->p) && !gpu_product_is_bytes(&g->p))
        why = "a product that is not summed in float, nor one of bytes";
    if (why)
        return why;
    const enum mgx_type type = g->p.make ? g->p.make->shape.type : c->in[g->p.operand[0]].type;
    if (!set_units(g, type, gpu_machine_rounds(c->machine, gpu_product_is_dot(&g->p))) ||
        (!gpu_wgmma_is_narrow(g->units) && c->in[g->p.operand[1]].type != type))
        return "operands that are not both half, both bf16, both float or both fp8 of OCP";
    if (!c->constant[g->p.operand[1]])
        return "a right operand that is computed";
    if (g->p.depth < LEAST_DEPTH || mgx_shape_elements(c->out) == 0)
        return "hardly any depth, or no results";
    order_rows(g, &c->in[g->p.operand[0]]);
    why = gpu_product_is_dot(&g->p) ? read_dot(c, g) : read_convolution(c, g);
    g->quads = leaves_quads(c->out, g);
    if (!why && !g->fold.bytes && c->in_offset && c->in_offset[g->p.operand[0]] % 16) {
        c->want_in[g->p.operand[0]] = MGX_PLAN_LIKE_RESULT;
        why = "a left operand that begins between multiples of 16 bytes";
    }
    return why;
}

const char *gpu_wgmma_read_quantized(struct mgx_plan_offer *c, const struct mgx_shape *x,
                                     const struct mgx_ins *pad, struct gpu_wgmma_product *g)
{
    enum { BLOCK = 64, LINE_OF_FLOATS = 4 };
    memset(g, 0, sizeof *g);
    const char *why = gpu_product_read(c, &g->p);
    if (why || g->p.make || g->p.pad || !gpu_product_is_bytes(&g->p))
        return why ? why : "not a product of bytes alone";
    struct mgx_shape in[GPU_CALL_INPUTS];
    memcpy(in, c->in, (size_t)c->in_count * sizeof *in);
    in[g->p.operand[0]] = *x;
    struct mgx_plan_offer floats = *c;
    floats.in = in;
    g->p.pad = pad;
    g->units = GPU_WGMMA_QUANTIZED;
    g->map.type = GPU_MAP_FLOAT;
    g->block = BLOCK;
    g->line = LINE_OF_FLOATS;
    g->size = sizeof(float);
    order_rows(g, x);
    why = gpu_product_is_dot(&g->p) ? read_dot(&floats, g) : read_convolution(&floats, g);
    g->quads = leaves_quads(c->out, g);
    return why ? why : g->fold.bytes ? "an image that is packed first" : NULL;
}
