// SPDX-License-Identifier: MIT
// Conv, QLinearConv (dequantize, Conv, quantize) and ConvTranspose.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"
#include "onnx/quantize.h"
#include "onnx/window.h"

// y + bias along axis 1; a `broadcast` where the lengths are known, as fusing passes expect it.
static struct mgx_ins *add_bias(struct mgx_node *n, struct mgx_ins *y, struct mgx_ins *bias)
{
    if (!y || !bias)
        return y;
    if (!mgx_build_is_static(y))
        return mgx_build_add(n, y, mgx_build_per_axis(n, bias, 1, y->shape.rank));
    struct mgx_ins *wide = mgx_build_emit(
        n, &mgx_op_broadcast,
        MGX_ATTRS(mgx_int("axis", 1), mgx_ints("out_lens", y->shape.lens, y->shape.rank)),
        MGX_IN(bias));
    return mgx_build_emit(n, &mgx_op_add, NULL, MGX_IN(y, wide));
}

static struct mgx_ins *emit(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                            struct mgx_ins *weights, const struct mgx_import_window *w,
                            const int64_t *padding, int pad_count)
{
    for (int i = 0; i < w->spatial; i++)
        assert(w->kernel[i] == weights->shape.lens[i + 2] && w->strides[i] > 0);
    return mgx_build_emit(n, op,
                          MGX_ATTRS(mgx_ints("padding", padding, pad_count),
                                    mgx_ints("stride", w->strides, w->spatial),
                                    mgx_ints("dilation", w->dilations, w->spatial),
                                    mgx_int("group", mgx_onnx_int(n, "group", 1)),
                                    mgx_int("padding_mode", w->padding_mode)),
                          MGX_IN(x, weights));
}

static enum mgx_status read_window(struct mgx_node *n, const struct mgx_ins *weights,
                                   struct mgx_import_window *w, bool *later)
{
    const struct mgx_ins *x = n->in[0];
    *later = !mgx_build_ranked(n) || !mgx_build_is_static(weights);
    if (*later)
        return MGX_OK;
    if (mgx_build_rank(weights) != mgx_build_rank(x))
        return mgx_node_invalid(n, "weights have rank %d, the input %d", mgx_build_rank(weights),
                                mgx_build_rank(x));
    return mgx_onnx_window_read(n, x, weights->shape.lens + 2, w);
}

static enum mgx_status conv(struct mgx_node *n)
{
    struct mgx_import_window w;
    bool later = false;
    TRY(mgx_node_need(n, 2, 3));
    TRY(read_window(n, n->in[1], &w, &later));
    if (later)
        return mgx_onnx_defer(n);
    struct mgx_ins *y = emit(n, &mgx_op_convolution, n->in[0], n->in[1], &w, w.pads, 2 * w.spatial);
    n->out[0] = add_bias(n, y, mgx_node_in(n, 2));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_conv = {.name = "Conv", .import = conv};

// The bias is int32 in units of the product of both scales.
static enum mgx_status qlinear_conv(struct mgx_node *n)
{
    struct mgx_import_window w;
    bool later = false;
    TRY(mgx_node_need(n, 8, 9));
    TRY(read_window(n, n->in[3], &w, &later));
    if (later || !mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = mgx_quantize_from(n, n->in[0], 1, 1);
    struct mgx_ins *weights = mgx_quantize_from(n, n->in[3], 4, 0), *bias = mgx_node_in(n, 8);
    if (bias) // scales of the weights are one value or one per output channel, as the bias is
        bias = mgx_build_mul(n, mgx_build_convert(n, bias, MGX_FLOAT),
                             mgx_build_mul(n, mgx_build_convert(n, n->in[1], MGX_FLOAT),
                                           mgx_build_convert(n, n->in[4], MGX_FLOAT)));
    struct mgx_ins *y = emit(n, &mgx_op_convolution, x, weights, &w, w.pads, 2 * w.spatial);
    n->out[0] = mgx_quantize_to(n, add_bias(n, y, bias), 6, 1);
    return n->diag->status;
}
const struct mgx_onnx_op mgx_onnx_qlinear_conv = {
    .name = "QLinearConv", .import = qlinear_conv, .result = "7"};

// --- ConvTranspose ---

// What is cut from the full result at each end: pads, less the output padding at the end (negative:
// zeros are added there). With output_shape or auto_pad the total follows from the result's length.
static enum mgx_status crops(struct mgx_node *n, const struct mgx_import_window *w, int64_t *begin,
                             int64_t *end)
{
    assert(w->spatial > 0 && mgx_build_is_static(n->in[0]));
    const int64_t *lens = n->in[0]->shape.lens + 2;
    const struct mgx_ints shape = mgx_onnx_ints(n, "output_shape");
    const struct mgx_ints extra = mgx_onnx_ints(n, "output_padding");
    const char *mode = mgx_onnx_text(n, "auto_pad", "NOTSET");
    const bool same = mode[0] == 'S';
    if ((shape.count && shape.count < w->spatial) || (extra.count && extra.count != w->spatial))
        return mgx_node_invalid(n, "output_shape or output_padding lacks an axis");
    for (int i = 0; i < w->spatial; i++) {
        const int64_t more = extra.count ? extra.v[i] : 0;
        if (more < -MGX_DIM_ANY || more > MGX_DIM_ANY)
            return mgx_node_invalid(n, "output_padding has %lld", (long long)more);
        const int64_t full =
            (lens[i] - 1) * w->strides[i] + (w->kernel[i] - 1) * w->dilations[i] + 1;
        begin[i] = w->pads[i];
        end[i] = w->pads[i + w->spatial] - more;
        if (!shape.count && !same)
            continue;
        const int64_t wanted =
            shape.count ? shape.v[shape.count - w->spatial + i] : lens[i] * w->strides[i];
        if (wanted < 0 || wanted > MGX_DIM_ANY)
            return mgx_node_invalid(n, "output_shape has %lld", (long long)wanted);
        const int64_t total = full + more - wanted;
        const int64_t half = mgx_max_i64(total, 0) / 2;
        begin[i] = strcmp(mode, "SAME_UPPER") == 0 ? half : mgx_max_i64(total, 0) - half;
        end[i] = full - wanted - begin[i];
    }
    return MGX_OK;
}

// Cuts or pads the ends of y's spatial axes.
static struct mgx_ins *crop(struct mgx_node *n, struct mgx_ins *y, int spatial,
                            const int64_t *begin, const int64_t *end)
{
    assert(spatial > 0 && spatial <= MGX_MAX_RANK - 2);
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    for (int i = 0; y && i < spatial; i++) {
        const int64_t length = y->shape.lens[i + 2];
        const int64_t from = mgx_max_i64(begin[i], 0), to = length - mgx_max_i64(end[i], 0);
        if (from > 0 || to < length)
            y = mgx_build_slice(n, y, i + 2, from, mgx_max_i64(to, from));
        pads[i + 2] = mgx_max_i64(-begin[i], 0);
        pads[i + 2 + spatial + 2] = mgx_max_i64(-end[i], 0);
    }
    return mgx_build_pad(n, y, pads, 0);
}

static enum mgx_status conv_transpose(struct mgx_node *n)
{
    struct mgx_import_window w;
    bool later = false;
    TRY(mgx_node_need(n, 2, 3));
    TRY(read_window(n, n->in[1], &w, &later));
    if (later || !mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    w.padding_mode = 0;
    if (mgx_onnx_text(n, "auto_pad", "NOTSET")[0] == 'S')
        memset(w.pads, 0, sizeof w.pads);
    int64_t begin[MGX_MAX_RANK], end[MGX_MAX_RANK], both[MGX_MAX_RANK];
    TRY(crops(n, &w, begin, end));
    for (int i = 0; i < w.spatial; i++) { // what both ends lose is the IR operator's own padding
        both[i] = mgx_max_i64(mgx_min_i64(begin[i], end[i]), 0);
        begin[i] -= both[i];
        end[i] -= both[i];
    }
    struct mgx_ins *y =
        emit(n, &mgx_op_convolution_backwards, n->in[0], n->in[1], &w, both, w.spatial);
    n->out[0] = add_bias(n, crop(n, y, w.spatial, begin, end), mgx_node_in(n, 2));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_conv_transpose = {.name = "ConvTranspose",
                                                    .import = conv_transpose};
