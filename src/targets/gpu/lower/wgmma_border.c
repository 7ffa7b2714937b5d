// SPDX-License-Identifier: MIT
// Convolutions of bytes whose padding is not zeros, gathered as the image lies: the copy engine leaves zeros
// beside it, and what they lack is in a table.
//
//     sum over taps of x w  =  sum over taps inside  +  value * (sum over taps outside of w)
//
// The second term is one number a column for each kind of place, which is how many taps lie outside on either
// side of each axis; kernel/wgmma_border.gpu begins its sums with it.
//
// Holds: taps are neighbours, and no window is outside altogether.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/wgmma.h"

enum { MOST_BYTES = 1 << 20, LINE_OF_BYTES = 16, MOST_STEP = 8 };

static int kinds_of(const struct gpu_wgmma_product *g, int axis)
{
    return (g->border.low[axis] + 1) * (g->border.high[axis] + 1);
}

size_t gpu_wgmma_border_bytes(const struct gpu_wgmma_product *g)
{
    return (size_t)g->border.kinds * (size_t)g->p.columns * sizeof(int32_t);
}

bool gpu_wgmma_read_border(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    if (gpu_product_beside(&g->p) == 0)
        return true;
    g->border.kinds = 1;
    for (int i = 0; i < GPU_WGMMA_AXES; i++) {
        const int64_t last = (gpu_wgmma_len(c->out, i) - 1) * g->step[i] - g->pad[i];
        const int64_t high = last + g->taps[i] - gpu_wgmma_len(x, i);
        if (g->far[i] != 1 || g->pad[i] >= g->taps[i] || high >= g->taps[i])
            return false;
        g->border.low[i] = g->pad[i];
        g->border.high[i] = high > 0 ? (int)high : 0;
        g->border.kinds *= kinds_of(g, i);
        if (gpu_wgmma_border_bytes(g) > MOST_BYTES)
            return false;
    }
    return gpu_product_is_bytes(&g->p);
}

// Does the kernel take its groups, some of several channels in a unit each?
static bool takes_groups(const struct mgx_shape *w, int64_t group)
{
    enum { BLOCK = 128 };
    const struct gpu_product p = {.batches = group, .columns = w->lens[0] / group};
    return group == 1 ||
           (w->lens[1] > 1 && gpu_product_gather(&p, w->lens[1], BLOCK, LINE_OF_BYTES) > 0);
}

bool gpu_wgmma_pads(const struct gpu_device *d, const struct mgx_ins *pad,
                    const struct mgx_ins *conv)
{
    const struct mgx_ints pads = mgx_ins_ints(pad, "pads");
    const struct mgx_window_attr window = mgx_window_of(conv);
    const struct mgx_shape *w = &conv->in[1]->shape;
    const int rank = conv->shape.rank;
    bool around = d->properties.features & GPU_TENSOR_MAPS && mgx_type_is_byte(pad->shape.type) &&
                  conv->op == &mgx_op_quant_convolution && conv->in[1]->literal &&
                  takes_groups(w, window.group) && mgx_ints_all(window.dilation, 1) && rank > 2 &&
                  rank <= 2 + GPU_WGMMA_AXES && (int)pads.count == 2 * rank &&
                  pad->shape.lens[1] % LINE_OF_BYTES == 0 && w->lens[0] > 1;
    for (int i = 0; i < 2 * rank && around; i++)
        around = pads.v[i] >= 0 && (i % rank > 1 ? pads.v[i] < w->lens[i % rank] : pads.v[i] == 0);
    for (int i = 0; i < rank - 2 && around; i++)
        around = window.stride.v[i] <= MOST_STEP;
    return around;
}

// --- the table ---

static int64_t value_at(const struct mgx_tensor *w, int64_t offset)
{
    const unsigned char byte = ((const unsigned char *)w->data)[offset];
    return w->shape.type == MGX_INT8 ? (signed char)byte : byte;
}

// What the weights of a column sum up to over its channels, for every tap.
static int64_t sum_tap(const struct mgx_tensor *w, int64_t column, const int *tap)
{
    const struct mgx_shape *s = &w->shape;
    int64_t sum = 0, offset = column * s->strides[0];
    for (int i = 0; i < GPU_WGMMA_AXES; i++)
        offset += tap[i] * gpu_wgmma_stride(s, i);
    for (int64_t i = 0; i < s->lens[1]; i++)
        sum += value_at(w, offset + i * s->strides[1]);
    return sum;
}

// Is the tap outside in places of this kind?
static bool is_outside(const struct gpu_wgmma_product *g, int kind, const int *tap)
{
    for (int i = GPU_WGMMA_AXES - 1; i >= 0; i--) {
        const int one = kind % kinds_of(g, i), high = g->border.high[i] + 1;
        if (tap[i] < one / high || tap[i] >= g->taps[i] - one % high)
            return true;
        kind /= kinds_of(g, i);
    }
    return false;
}

void gpu_wgmma_put_border(const struct gpu_wgmma_product *g, const struct mgx_tensor *weights,
                          void *to)
{
    enum { D = GPU_WGMMA_DEPTH, H = GPU_WGMMA_HEIGHT, W = GPU_WGMMA_WIDTH };
    const int64_t value = gpu_product_beside(&g->p), columns = g->p.columns;
    uint32_t *table = to;
    memset(table, 0, gpu_wgmma_border_bytes(g));
    for (int t = 0; t < g->taps[D] * g->taps[H] * g->taps[W]; t++) {
        const int tap[] = {t / g->taps[W] / g->taps[H], t / g->taps[W] % g->taps[H],
                           t % g->taps[W]};
        for (int64_t n = 0; n < columns; n++) {
            const uint32_t lacks = (uint32_t)(value * sum_tap(weights, n, tap));
            for (int kind = 1; kind < g->border.kinds; kind++)
                if (is_outside(g, kind, tap))
                    table[kind * columns + n] += lacks;
        }
    }
}

void gpu_wgmma_emit_border(struct mgx_str *out, const struct gpu_wgmma_product *g)
{
    assert(g->border.kinds > 0);
    for (int i = 0; i < GPU_WGMMA_AXES; i++)
        mgx_str_printf(out, "#define HIGH_%c %d\n#define KINDS_%c %d\n", "DHW"[i],
                       g -> border.high[i], "DHW"[i], kinds_of(g, i));
    GPU_PUT(out, wgmma_border);
}
