// SPDX-License-Identifier: MIT
// Convolutions computed place by place, with the element-wise instruction that reads them.
//
//     depthwise     y[n, m, o] = sum over taps of x[n, m / multiple, o * stride + t * dilation - begin]
//                   * w[m, 0, t]: a few products an element, so tiles of a matrix would be empty
//     transposed    y[n, m, o] = sum over taps and channels of x[n, c, (o + begin - t * dilation) /
//                   stride] * w[c, m, t], where the division leaves nothing
//
// One thread computes an element, or neighbouring channels where images lie channels last and each
// channel is its own group. Of a transposed one it walks the taps of its phase alone, unless they
// are dilated. Sums are float. Cost: transposed reads a tap's weights for all channels from a cache
// for each element.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/tail.h"

struct direct {
    struct gpu_tail tail;
    bool backwards;
    struct mgx_window window[MGX_MAX_RANK]; // of the spatial axes; backwards: of the forward one
    int64_t group, channels, columns;       // of a group
    int v;                                  // channels a thread
};

static bool is_depthwise(const struct direct *d)
{
    return d->channels == 1 && (!d->backwards || d->columns == 1);
}

// Known to be bytes, or bytes less a byte?
static bool is_narrow(const struct mgx_tensor *w)
{
    enum { HIGHEST = 255 };
    const int64_t count = w && w->shape.type == MGX_INT16 ? mgx_shape_space(&w->shape) : 0;
    for (int64_t i = 0; i < count; i++)
        if (abs(((const int16_t *)w->data)[i]) > HIGHEST)
            return false;
    return count > 0;
}

// A few products of bytes are exact in a float, also by bytes less a zero point.
static bool is_summed_in_float(const struct mgx_plan_offer *c, const struct direct *d)
{
    enum { MOST_TAPS = 256 };
    const struct mgx_ins *ins = d->tail.ins;
    bool real = ins->shape.type != MGX_DOUBLE && gpu_type_class(ins->shape.type) == GPU_REAL;
    const int64_t taps = mgx_shape_elements(&c->in[d->tail.operand[1]]) /
                         mgx_max_i64(c->in[d->tail.operand[1]].lens[0], 1);
    bool bytes = ins->shape.type == MGX_INT32 && taps <= MOST_TAPS;
    for (int i = 0; i < 2; i++) {
        const enum mgx_type type = c->in[d->tail.operand[i]].type;
        real = real && gpu_type_class(type) == GPU_REAL && type != MGX_DOUBLE;
        bytes =
            bytes && (mgx_type_is_byte(type) || (i && is_narrow(c->constant[d->tail.operand[1]])));
    }
    return real || bytes;
}

static const char *read(const struct mgx_plan_offer *c, struct direct *d)
{
    d->backwards = gpu_tail_read(c, &mgx_op_convolution_backwards, &d->tail);
    if (!d->backwards && !gpu_tail_read(c, &mgx_op_convolution, &d->tail) &&
        !gpu_tail_read(c, &mgx_op_quant_convolution, &d->tail))
        return "not a convolution";
    const struct mgx_ins *ins = d->tail.ins;
    const struct mgx_shape *x = &c->in[d->tail.operand[0]], *w = &c->in[d->tail.operand[1]];
    d->group = mgx_ins_int(ins, "group");
    d->channels = x->lens[1] / d->group;
    d->columns = c->out->lens[1] / d->group;
    if (ins->in_count != 2 || (!d->backwards && (d->group < 2 || d->channels != 1)))
        return "a convolution that is a product";
    if (!is_summed_in_float(c, d))
        return "a convolution that is not summed in float";
    const struct mgx_window_attr a = gpu_tail_window(&d->tail);
    for (int axis = 2; axis < x->rank; axis++)
        d->window[axis] =
            d->backwards
                ? mgx_window_back_at(&a, axis - 2, x->lens[axis], w->lens[axis], c->out->lens[axis])
                : mgx_window_at(&a, axis - 2, x->lens[axis], w->lens[axis], c->out->lens[axis]);
    return NULL;
}

bool gpu_direct_pads(const struct mgx_ins *pad, const struct mgx_ins *conv)
{
    enum { MOST_TAPS = 49 };
    const struct mgx_ints pads = mgx_ins_ints(pad, "pads");
    const struct mgx_shape *w = &conv->in[1]->shape;
    const int rank = conv->shape.rank;
    const int64_t group = mgx_ins_int(conv, "group");
    const enum mgx_type type = pad->shape.type;
    bool around = mgx_type_is_byte(type) && (int)pads.count == 2 * rank;
    for (int i = 0; i < 2 * rank && around; i++)
        around = pads.v[i] >= 0 && (i % rank > 1 || pads.v[i] == 0);
    return around && conv->in[1]->literal && group > 1 && pad->shape.lens[1] == group &&
           mgx_shape_elements(w) <= MOST_TAPS * w->lens[0];
}

// --- text ---

// The loop over taps of a transposed convolution along an axis, to its body.
static void emit_phase(struct mgx_str *out, const struct mgx_window *w, int axis, int64_t length)
{
    const bool near = w->dilation == 1; // then every stride-th tap meets a value
    mgx_str_printf(out, "    for (int t%d = ", axis);
    if (near)
        mgx_str_printf(out, "(o%d + %" PRId64 ") %% %" PRId64, axis, w->begin, w->stride);
    else
        mgx_str_put(out, "0");
    mgx_str_printf(out,
                   "; t%d < %" PRId64 "; t%d += %" PRId64 ") {\n    const int p%d = o%d + %" PRId64
                   " - t%d * %" PRId64 ", x%d = p%d / %" PRId64 ";\n    if (p%d < 0 || ",
                   axis, w->kernel, axis, near ? w->stride : 1, axis, axis, w->begin, axis,
                   w->dilation, axis, axis, w->stride, axis);
    if (!near)
        mgx_str_printf(out, "p%d %% %" PRId64 " != 0 || ", axis, w->stride);
    mgx_str_printf(out, "x%d >= %" PRId64 ")\n        continue;\n", axis, length);
}

// Opens the loops over taps; x<axis> is the input's coordinate, inside the input.
static void emit_taps(struct mgx_str *out, const struct mgx_plan_offer *c, const struct direct *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]];
    for (int axis = 2; axis < x->rank; axis++) {
        const struct mgx_window *w = &d->window[axis];
        if (d->backwards) {
            emit_phase(out, w, axis, x->lens[axis]);
            continue;
        }
        mgx_str_printf(out,
                       "    for (int t%d = 0; t%d < %" PRId64 "; t%d++) {\n"
                       "    int x%d = o%d * %" PRId64 " - %" PRId64 " + t%d * %" PRId64
                       ";\n    const bool there%d = x%d >= 0 && x%d < %" PRId64 ";\n",
                       axis, axis, w->kernel, axis, axis, axis, w->stride, w->begin, axis,
                       w->dilation, axis, axis, axis, x->lens[axis]);
        if (d->tail.pad)
            mgx_str_printf(out, "    x%d = there%d ? x%d : 0;\n", axis, axis, axis);
        else
            mgx_str_printf(out, "    if (!there%d)\n        continue;\n", axis);
    }
}

static void emit_offsets(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct direct *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]], *w = &c->in[d->tail.operand[1]];
    mgx_str_printf(out,
                   "    const int group = o1 / %" PRId64 ";\n"
                   "    const i64 x_base = (i64)o0 * %" PRId64 " + (i64)group * %" PRId64 ";\n",
                   d->columns, x->strides[0], d->channels * x->strides[1]);
    if (d->backwards)
        mgx_str_printf(out,
                       "    const i64 w_base = (i64)group * %" PRId64 " + (i64)(o1 %% %" PRId64
                       ") * %" PRId64 ";\n",
                       d->channels * w->strides[0], d->columns, w->strides[1]);
    else
        mgx_str_printf(out, "    const i64 w_base = (i64)o1 * %" PRId64 ";\n", w->strides[0]);
}

static void emit_products(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct direct *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]], *w = &c->in[d->tail.operand[1]];
    const struct gpu_chunk chunk = {"x", gpu_type_memory(x->type), d->v,
                                    (int)mgx_type_size(x->type)};
    char at[64];
    mgx_str_put(out, "    const i64 x_at = x_base + ");
    gpu_emit_sum(out, x, 2, x->rank, "x");
    mgx_str_put(out, ";\n    const i64 w_at = w_base + ");
    gpu_emit_sum(out, w, 2, w->rank, "t");
    mgx_str_put(out, ";\n");
    if (!is_depthwise(d)) {
        mgx_str_printf(
            out, "    for (int ch = 0; ch < %" PRId64 "; ch++)\n        sum[0] += ", d->channels);
        snprintf(at, sizeof at, "x_at + (i64)ch * %" PRId64, x->strides[1]);
        gpu_emit_load(out, x->type, "in0", at);
        mgx_str_put(out, " * ");
        snprintf(at, sizeof at, "w_at + (i64)ch * %" PRId64, w->strides[0]);
        gpu_emit_load(out, w->type, "in1", at);
        mgx_str_put(out, ";\n");
        return;
    }
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "in0", "x_at");
    mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        sum[k] += (",
                   d->v);
    for (int axis = 2; axis < x->rank && d->tail.pad; axis++)
        mgx_str_printf(out, "%sthere%d", axis > 2 ? " && " : "", axis);
    mgx_str_put(out, d->tail.pad ? " ? (float)" : "(float)");
    gpu_emit_widened(out, x->type, "x.v[k]");
    if (d->tail.pad)
        mgx_str_printf(out, " : (float)%d", gpu_tail_beside(&d->tail));
    mgx_str_put(out, ") * (float)");
    snprintf(at, sizeof at, "w_at + (i64)k * %" PRId64, w->strides[0]);
    gpu_emit_load(out, w->type, "in1", at);
    mgx_str_put(out, ";\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct direct *d)
{
    gpu_emit_tail_head(out, c, &d->tail);
    mgx_str_printf(out,
                   "{\n    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n"
                   "    if (i >= %" PRId64 ")\n        return;\n",
                   d->v, mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
    emit_offsets(out, c, d);
    mgx_str_printf(out,
                   "    float sum[%d];\n#pragma unroll\n    for (int k = 0; k < %d; k++)\n"
                   "        sum[k] = 0;\n",
                   d->v, d->v);
    emit_taps(out, c, d);
    emit_products(out, c, d);
    for (int axis = 2; axis < c->out->rank; axis++)
        mgx_str_put(out, "    }\n");
    gpu_emit_tail(out, c, &d->tail, 1, d->v);
    mgx_str_put(out, "}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct direct d;
    struct mgx_str text = {0};
    int in[GPU_CALL_INPUTS];
    const char *why = read(c, &d);
    if (!why)
        why = gpu_emit_tail_body(&text, c, &d.tail);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    const struct mgx_shape *x = &c->in[d.tail.operand[0]];
    const int64_t elements = mgx_shape_elements(c->out);
    d.v = !is_depthwise(&d) || d.columns != 1
              ? 1
              : gpu_move_vector(c->out, 1, x, 1, mgx_min_i64(gpu_vector_for(elements), 8));
    while (d.v > 1 && d.v * mgx_type_size(x->type) > 16)
        d.v /= 2;
    emit(&text, c, &d);
    int64_t taps = 1;
    for (int axis = 2; axis < x->rank; axis++)
        taps *= d.window[axis].kernel;
    c->flops =
        2.0 * (double)(d.backwards ? mgx_shape_elements(x) * d.columns : elements) * (double)taps;
    c->detail = !d.backwards ? "depthwise"
                : d.v > 1    ? "transposed, neighbouring channels a thread"
                             : "transposed, an element a thread";
    const struct gpu_launch how = gpu_launch_for(elements / d.v);
    return gpu_take(c, &text, &how, in, gpu_tail_inputs(&d.tail, in));
}

const struct mgx_plan_kernel gpu_kernel_direct = {
    .name = "gpu::direct", .prepare = prepare, .run = gpu_run_call};
