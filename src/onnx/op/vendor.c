// SPDX-License-Identifier: MIT
// Operators outside the standard that exporters have left in models: ImageScaler, Affine, Scale,
// Crop, DynamicSlice and ConstantFill (of ONNX before 1.0), ATen's embedding_bag, and the MX
// quantization of Quark's models.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

// scale * x + a bias per channel
static enum mgx_status image_scaler(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    const struct mgx_doubles bias = mgx_onnx_reals(n, "bias");
    if (rank >= 0 && rank < 2)
        return mgx_node_invalid(n, "input has rank %d, below 2", rank);
    if (rank < 0)
        return mgx_onnx_defer(n);
    struct mgx_ins *y = mgx_build_with(n, &mgx_op_mul, x, mgx_onnx_real(n, "scale", 1));
    if (bias.count) {
        const struct mgx_shape shape = mgx_shape_vector(x->shape.type, bias.count);
        struct mgx_ins *b = mgx_build_doubles(n, &shape, bias.v);
        y = mgx_build_add(n, y, b ? mgx_build_per_axis(n, b, 1, rank) : NULL);
    }
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_image_scaler = {.name = "ImageScaler", .import = image_scaler};

// alpha * x + beta, or scale * x
static enum mgx_status affine(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const double by = mgx_onnx_real(n, n->op_type[0] == 'A' ? "alpha" : "scale", 1);
    struct mgx_ins *y = mgx_build_with(n, &mgx_op_mul, n->in[0], by);
    const double beta = mgx_onnx_real(n, "beta", 0);
    n->out[0] = beta != 0 ? mgx_build_with(n, &mgx_op_add, y, beta) : y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_affine = {.name = "Affine", .import = affine};
const struct mgx_onnx_op mgx_onnx_scale = {.name = "Scale", .import = affine};

// Images without borders: left, top, right and bottom; with `scale`, that many rows and columns
// from the upper left corner on.
static enum mgx_status crop(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    const struct mgx_ints border = mgx_onnx_ints(n, "border"), scale = mgx_onnx_ints(n, "scale");
    const struct mgx_shape *x = &n->in[0]->shape;
    if (x->rank != 4 || border.count != 4 || (scale.count && scale.count != 2))
        return mgx_node_invalid(n, "an input of rank %d, %d borders, %d lengths", x->rank,
                                border.count, scale.count);
    struct mgx_ins *y = n->in[0];
    for (int i = 0; i < 2; i++) {
        const int64_t length = x->lens[2 + i], from = border.v[1 - i];
        const int64_t behind = border.v[3 - i];
        if (from < 0 || from > length || behind < 0 || behind > length - from ||
            (scale.count && (scale.v[i] < 0 || scale.v[i] > length - from)))
            return mgx_node_invalid(n, "borders %lld and %lld of %lld", (long long)from,
                                    (long long)behind, (long long)length);
        y = mgx_build_slice(n, y, 2 + i, from, scale.count ? from + scale.v[i] : length - behind);
    }
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_crop = {.name = "Crop", .import = crop};

// Slice with inputs, as it is since opset 10.
static enum mgx_status dynamic_slice(struct mgx_node *n)
{
    struct mgx_node newer = *n;
    newer.opset = 13;
    return mgx_onnx_slice.import(&newer);
}
const struct mgx_onnx_op mgx_onnx_dynamic_slice = {
    .name = "DynamicSlice", .import = dynamic_slice, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- ConstantFill ---

// `value` over lengths from `shape`, from the input's values (input_as_shape) or from the input's
// own lengths; extra_shape is appended.
static enum mgx_status constant_fill(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 0, 1));
    const struct mgx_ins *x = mgx_node_in(n, 0);
    struct mgx_ints shape = mgx_onnx_ints(n, "shape"), extra = mgx_onnx_ints(n, "extra_shape");
    enum mgx_type type = MGX_FLOAT;
    TRY(mgx_onnx_type(n, mgx_onnx_int(n, "dtype", 1), &type));
    if (x && mgx_onnx_int(n, "input_as_shape", 0)) {
        if (!mgx_node_constant_ints(n, 0, &shape))
            return mgx_onnx_defer(n);
    } else if (x) {
        if (!mgx_build_is_static(x))
            return mgx_onnx_defer(n);
        shape = (struct mgx_ints){x->shape.lens, x->shape.rank};
    }
    int64_t lens[MGX_MAX_RANK];
    if (shape.count + extra.count > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", shape.count + extra.count,
                                    MGX_MAX_RANK);
    for (int i = 0; i < shape.count + extra.count; i++)
        lens[i] = i < shape.count ? shape.v[i] : extra.v[i - shape.count];
    n->out[0] =
        mgx_build_filled(n, type, shape.count + extra.count, lens, mgx_onnx_real(n, "value", 0));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_constant_fill = {.name = "ConstantFill", .import = constant_fill};

// --- ATen embedding_bag ---

// Rows of bag i: those between its offset and the next one's.
static struct mgx_ins *bag(struct mgx_node *n, const struct mgx_op *reduce, int64_t from,
                           int64_t to)
{
    if (from == to) // an empty bag is zero
        return mgx_build_filled(n, n->in[0]->shape.type, 2, (int64_t[]){1, n->in[0]->shape.lens[1]},
                                0);
    struct mgx_ins *some = mgx_build_slice(n, n->in[1], 0, from, to);
    struct mgx_ins *rows = mgx_build_gather(n, n->in[0], some, 0);
    return mgx_build_reduce(n, reduce, rows, (int64_t[]){0}, 1, true);
}

static enum mgx_status read_mode(struct mgx_node *n, const struct mgx_op **reduce)
{
    int64_t mode = mgx_onnx_int(n, "mode", 1);
    mgx_build_constant_int(n, 4, &mode);
    const struct mgx_op *const rows[] = {&mgx_op_reduce_sum, &mgx_op_reduce_mean,
                                         &mgx_op_reduce_max};
    if (mode < 0 || mode > 2)
        return mgx_node_invalid(n, "mode %lld of embedding_bag", (long long)mode);
    *reduce = rows[mode];
    return MGX_OK;
}

static enum mgx_status aten(struct mgx_node *n)
{
    const char *what = mgx_onnx_text(n, "operator", "");
    if (strcmp(what, "embedding_bag") != 0)
        return mgx_node_unsupported(n, "ATen operator \"%s\" is not supported", what);
    TRY(mgx_node_need(n, 3, -1));
    struct mgx_ints offsets = {0};
    const struct mgx_op *reduce = NULL;
    TRY(read_mode(n, &reduce));
    if (!mgx_build_is_static(n->in[0]) || !mgx_build_is_static(n->in[1]) ||
        !mgx_node_constant_ints(n, 2, &offsets))
        return mgx_onnx_defer(n);
    if (n->in[0]->shape.rank != 2 || n->in[1]->shape.rank != 1 || offsets.count < 1)
        return mgx_node_invalid(n, "weights of rank %d, indices of rank %d, %d offsets",
                                n->in[0]->shape.rank, n->in[1]->shape.rank, offsets.count);
    const int64_t count = n->in[1]->shape.lens[0];
    struct mgx_ins **bags = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, offsets.count);
    if (!bags)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < offsets.count; i++) {
        const int64_t from = offsets.v[i], to = i + 1 < offsets.count ? offsets.v[i + 1] : count;
        if (from < 0 || to < from || to > count)
            return mgx_node_invalid(n, "bag %d runs from %lld to %lld of %lld indices", i,
                                    (long long)from, (long long)to, (long long)count);
        bags[i] = bag(n, reduce, from, to);
    }
    n->out[0] = offsets.count == 1 ? bags[0] : mgx_build_concat(n, 0, bags, offsets.count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_aten = {
    .name = "ATen", .domain = "org.pytorch.aten", .import = aten};

// --- MX: blocks of fp4 values with a power of two as their common scale ---

struct blocks {
    int axis, rank;
    int64_t size, count; // of a block; blocks along the axis, the last one filled up
};

static enum mgx_status read_blocks(struct mgx_node *n, const char *axis, const char *size,
                                   int64_t usual, struct blocks *b)
{
    const struct mgx_shape *x = &n->in[0]->shape;
    b->rank = x->rank;
    b->size = mgx_onnx_int(n, size, 32);
    TRY(mgx_build_axis(n, mgx_onnx_int(n, axis, usual), x->rank, &b->axis));
    if (b->size < 1 || b->size > INT32_MAX || x->rank == MGX_MAX_RANK)
        return mgx_node_invalid(n, "blocks of %lld in rank %d", (long long)b->size, x->rank);
    b->count = (x->lens[b->axis] + b->size - 1) / b->size;
    return MGX_OK;
}

// (..., blocks, size, ...): the axis in blocks.
static struct mgx_ins *split_blocks(struct mgx_node *n, const struct blocks *b)
{
    struct mgx_ins *x = n->in[0];
    int64_t pads[2 * MGX_MAX_RANK] = {0}, lens[MGX_MAX_RANK];
    pads[b->rank + b->axis] = b->count * b->size - x->shape.lens[b->axis];
    memcpy(lens, x->shape.lens, (size_t)b->axis * sizeof *lens);
    lens[b->axis] = b->count;
    lens[b->axis + 1] = b->size;
    memcpy(lens + b->axis + 2, x->shape.lens + b->axis + 1,
           (size_t)(b->rank - b->axis - 1) * sizeof *lens);
    return mgx_build_reshape(n, mgx_build_pad(n, x, pads, 0), lens, b->rank + 1);
}

// 2^(floor(log2(largest)) - 2): the largest becomes at most 6, fp4's own largest, but for rounding.
static struct mgx_ins *block_scale(struct mgx_node *n, const struct blocks *b, struct mgx_ins *x)
{
    struct mgx_ins *top = mgx_build_reduce(n, &mgx_op_reduce_max, mgx_build_abs(n, x),
                                           (int64_t[]){b->axis + 1}, 1, true);
    top = mgx_build_with(n, &mgx_op_max, top, 0x1p-125); // a block of zeros has some scale too
    struct mgx_ins *power = mgx_build_floor(n, mgx_build_unary(n, &mgx_op_log2, top));
    return mgx_build_pow(n, mgx_build_like(n, x, 2), mgx_build_with(n, &mgx_op_sub, power, 2));
}

// Quantized to fp4 by blocks and back.
static enum mgx_status mx_round_trip(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const char *type = mgx_onnx_text(n, "element_dtype", "fp4_e2m1");
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    if (strcmp(type, "fp4_e2m1") != 0)
        return mgx_node_unsupported(n, "element_dtype \"%s\" is not fp4_e2m1", type);
    struct blocks b;
    TRY(read_blocks(n, "axis", "block_size", 1, &b));
    struct mgx_ins *x = split_blocks(n, &b);
    struct mgx_ins *v[2] = {x, block_scale(n, &b, x)};
    TRY(mgx_build_broadcast(n, v, 2));
    struct mgx_ins *q =
        mgx_build_emit_n(n, &mgx_op_quantizelinear, MGX_ATTRS(mgx_int("out_type", MGX_FP4)), v, 2);
    struct mgx_ins *y = mgx_build_emit(n, &mgx_op_dequantizelinear, NULL, MGX_IN(q, v[1]));
    struct mgx_shape whole = n->in[0]->shape;
    whole.lens[b.axis] = b.count * b.size;
    y = mgx_build_reshape_like(n, y, &whole);
    if (whole.lens[b.axis] != n->in[0]->shape.lens[b.axis])
        y = mgx_build_slice(n, y, b.axis, 0, n->in[0]->shape.lens[b.axis]);
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_mx_quantize_dequantize = {
    .name = "MXQuantizeDequantize", .domain = "com.amd.quark", .import = mx_round_trip};
const struct mgx_onnx_op mgx_onnx_mx_fix_neuron = {
    .name = "MXFixNeuron", .domain = "com.amd.quark", .import = mx_round_trip};

// The scales alone, one per block.
static enum mgx_status dynamic_scale(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    struct blocks b;
    TRY(read_blocks(n, "group_dim", "group_size", -1, &b));
    struct mgx_ins *scale = block_scale(n, &b, split_blocks(n, &b));
    n->out[0] = mgx_build_squeeze(n, scale, (int64_t[]){b.axis + 1}, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_dynamic_scale = {
    .name = "DynamicScale", .domain = "com.amd.quark", .import = dynamic_scale};
