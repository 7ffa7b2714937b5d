// SPDX-License-Identifier: MIT
// Split into slices: sizes from `split` (attribute before opset 13, an input in opset 1 and from
// 13 on), else equal parts, the last one smaller where they do not come out even (opset 18).
#include "onnx/build.h"

static enum mgx_status equal_parts(struct mgx_node *n, int64_t length, int64_t *sizes)
{
    const int64_t parts = mgx_onnx_int(n, "num_outputs", n->out_count);
    if (parts != n->out_count)
        return mgx_node_invalid(n, "num_outputs is %lld for %d outputs", (long long)parts,
                                n->out_count);
    const int64_t part = (length + parts - 1) / parts;
    for (int64_t i = 0, left = length; i < parts; i++, left -= sizes[i - 1])
        sizes[i] = left < part ? left : part;
    return MGX_OK;
}

static enum mgx_status part_sizes(struct mgx_node *n, struct mgx_ints split, bool given,
                                  int64_t length, int64_t *sizes)
{
    if (!given || (!split.count && mgx_onnx_has(n, "split"))) // an empty attribute is none
        return equal_parts(n, length, sizes);
    if (split.count != n->out_count)
        return mgx_node_invalid(n, "%d split sizes for %d outputs", split.count, n->out_count);
    int64_t sum = 0;
    for (int i = 0; i < split.count; i++) {
        sizes[i] = split.v[i];
        if (sizes[i] < 0 || sizes[i] > length - sum)
            return mgx_node_invalid(n, "split size %lld of output %d does not fit in %lld",
                                    (long long)sizes[i], i, (long long)length);
        sum += sizes[i];
    }
    return sum == length ? MGX_OK
                         : mgx_node_invalid(n, "split sizes add up to %lld of %lld", (long long)sum,
                                            (long long)length);
}

// The sizes as an input of opset 1 have the type of the data.
static enum mgx_status float_sizes(struct mgx_node *n, bool *known, struct mgx_ints *out)
{
    const struct mgx_tensor *t = mgx_node_constant(n, 1);
    if (!t || !mgx_type_is_float(t->shape.type))
        return MGX_OK;
    const int64_t count = mgx_shape_elements(&t->shape);
    double *values = MGX_NEW_ARRAY(n->scratch, double, count);
    int64_t *sizes = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    if (!values || !sizes)
        return mgx_fail_memory(n->diag);
    mgx_tensor_to_doubles(t, values);
    for (int64_t i = 0; i < count; i++)
        sizes[i] = values[i] >= 0 && values[i] <= (double)MGX_DIM_ANY ? (int64_t)values[i] : -1;
    *out = (struct mgx_ints){sizes, (int)count};
    *known = true;
    return MGX_OK;
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    const int rank = mgx_build_rank(n->in[0]);
    bool given = false, known = false;
    struct mgx_ints split = {0};
    TRY(mgx_onnx_ints_or_input(n, "split", 1, &given, &known, &split));
    if (!known)
        TRY(float_sizes(n, &known, &split));
    if (rank < 0 || !known)
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), rank, &axis));
    if (!mgx_build_fixed_dim(n->in[0], axis))
        return mgx_onnx_defer(n);
    int64_t *sizes = MGX_NEW_ARRAY(n->scratch, int64_t, n->out_count);
    if (!sizes)
        return mgx_fail_memory(n->diag);
    TRY(part_sizes(n, split, given, n->in[0]->shape.lens[axis], sizes));
    int64_t start = 0;
    for (int i = 0; i < n->out_count; start += sizes[i++])
        n->out[i] = mgx_build_slice(n, n->in[0], axis, start, start + sizes[i]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_split = {
    .name = "Split", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
