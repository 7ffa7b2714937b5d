// SPDX-License-Identifier: MIT
// Quantisation: FakeQuant in its three forms, Dequantize.
//
// FakeQuant rounds to a grid of 2^bits places, or one less, between two bounds that are moved a
// little, so that 0 is on the grid:
//
//     y = floor((clip(x) - low) / step + 0.5) * step + low
#include <math.h>
#include <string.h>

#include "tf/node.h"

struct grid {
    double low, high, step;
};

// The bounds given, moved so that 0 is one of the places; computed in float, as TensorFlow does.
static struct grid nudge(float low, float high, int64_t bits, bool narrow)
{
    const float first = narrow ? 1 : 0, last = (float)((1 << bits) - 1);
    const float step = (high - low) / (last - first), zero = first - low / step;
    const float place = zero < first ? first : zero > last ? last : roundf(zero);
    return (struct grid){(double)((first - place) * step), (double)((last - place) * step),
                         (double)step};
}

static struct mgx_ins *round_to(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *low,
                                struct mgx_ins *high, struct mgx_ins *step)
{
    struct mgx_ins *inside = mgx_build_min(n, mgx_build_max(n, x, low), high);
    struct mgx_ins *place = mgx_build_div(n, mgx_build_sub(n, inside, low), step);
    place = mgx_build_floor(n, mgx_build_with(n, &mgx_op_add, place, 0.5));
    return mgx_build_add(n, mgx_build_mul(n, place, step), low);
}

// One grid for all, or one for each index of the last axis.
static enum mgx_status on_grids(struct mgx_node *n, const double *low, const double *high,
                                int64_t count)
{
    const int64_t bits = mgx_tf_int(n, "num_bits", 8);
    const bool narrow = mgx_tf_flag(n, "narrow_range", false);
    double *values = MGX_NEW_ARRAY(n->scratch, double, 3 * count);
    if (bits < 2 || bits > 16)
        return mgx_node_invalid(n, "num_bits is %lld, not from 2 to 16", (long long)bits);
    if (!values)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < count; i++) {
        if (!(low[i] <= 0 && high[i] >= 0 && low[i] < high[i]))
            return mgx_node_invalid(n, "bounds %g and %g do not hold 0 between them", low[i],
                                    high[i]);
        const struct grid g = nudge((float)low[i], (float)high[i], bits, narrow);
        values[i] = g.low;
        values[count + i] = g.high;
        values[2 * count + i] = g.step;
    }
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, count);
    struct mgx_ins *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = count > 1 ? mgx_build_doubles(n, &shape, values + i * count)
                             : mgx_build_scalar(n, MGX_FLOAT, values[i * count]);
    n->out[0] = round_to(n, n->in[0], parts[0], parts[1], parts[2]);
    return MGX_OK;
}

static enum mgx_status by_attributes(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_node_need_floats(n, 1));
    const double low = mgx_tf_real(n, "min", -6), high = mgx_tf_real(n, "max", 6);
    return on_grids(n, &low, &high, 1);
}
const struct mgx_tf_op mgx_tf_fake_quant_args = {.name = "FakeQuantWithMinMaxArgs",
                                                 .import = by_attributes};

// Constant bounds, as many as there are.
static enum mgx_status by_inputs(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_node_need_floats(n, 3));
    const struct mgx_tensor *low = mgx_node_constant(n, 1), *high = mgx_node_constant(n, 2);
    if (!low || !high)
        return mgx_node_unsupported(n, "the bounds are not constants");
    const int64_t count = mgx_shape_elements(&low->shape);
    double *values = MGX_NEW_ARRAY(n->scratch, double, 2 * count);
    if (count < 1 || count != mgx_shape_elements(&high->shape))
        return mgx_node_invalid(n, "%lld and %lld bounds", (long long)count,
                                (long long)mgx_shape_elements(&high->shape));
    if (!values)
        return mgx_fail_memory(n->diag);
    mgx_tensor_to_doubles(low, values);
    mgx_tensor_to_doubles(high, values + count);
    return on_grids(n, values, values + count, count);
}
const struct mgx_tf_op mgx_tf_fake_quant_vars = {.name = "FakeQuantWithMinMaxVars",
                                                 .import = by_inputs};
const struct mgx_tf_op mgx_tf_fake_quant_channels = {.name = "FakeQuantWithMinMaxVarsPerChannel",
                                                     .import = by_inputs};

// --- Dequantize ---

struct line { // y = x * step + start
    double step, start;
};

// What one place is worth by the three modes, for integers of 8 bits.
static enum mgx_status line_of(struct mgx_node *n, double low, double high, struct line *out)
{
    const bool is_signed = n->in[0]->shape.type == MGX_INT8;
    const char *mode = mgx_tf_text(n, "mode", "MIN_COMBINED");
    const double least = is_signed ? -128 : 0, most = is_signed ? 127 : 255;
    if (strcmp(mode, "MIN_COMBINED") == 0) {
        out->step = (high - low) / 255;
        out->start = low - least * out->step;
    } else if (strcmp(mode, "MIN_FIRST") == 0) {
        out->step = (high - low) / 255;
        out->start = nearbyint(low / out->step) * out->step - least * out->step;
    } else if (strcmp(mode, "SCALED") == 0) {
        const bool narrow = mgx_tf_flag(n, "narrow_range", false);
        out->step = high / most;
        if (is_signed)
            out->step = fmax(out->step, low / (narrow ? least + 1 : least));
        out->start = 0;
    } else {
        return mgx_node_invalid(n, "mode is \"%.40s\"", mode);
    }
    return MGX_OK;
}

static enum mgx_status dequantize(struct mgx_node *n)
{
    double low, high;
    struct line line;
    TRY(mgx_node_need(n, 3, 3));
    const enum mgx_type type = n->in[0]->shape.type;
    if (!mgx_type_is_byte(type) || mgx_tf_int(n, "axis", -1) != -1)
        return mgx_node_unsupported(n, "Dequantize of %s, or along an axis", mgx_type_name(type));
    TRY(mgx_tf_need_real(n, 1, "min_range", &low));
    TRY(mgx_tf_need_real(n, 2, "max_range", &high));
    TRY(line_of(n, low, high, &line));
    struct mgx_ins *x = mgx_build_convert(n, n->in[0], MGX_FLOAT);
    x = mgx_build_with(n, &mgx_op_add, mgx_build_with(n, &mgx_op_mul, x, line.step), line.start);
    n->out[0] = mgx_build_convert(n, x, mgx_tf_type(n, "dtype", MGX_FLOAT));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_dequantize = {.name = "Dequantize", .import = dequantize};
