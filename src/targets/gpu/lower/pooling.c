// SPDX-License-Identifier: MIT
// Average and maximum over sliding windows, one result a thread.
//
//     out[n, c, o...] = fold over taps of in0[n, c, o * stride - padding + tap * dilation]
//
// Neighbouring threads take neighbouring elements of the result's memory: channels when those lie
// last, places otherwise. Cost: each input is read once for every window it lies in, mostly from a
// cache.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/loop.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

struct window { // of one spatial axis
    int64_t length, stride, dilation, begin, end, in, out;
};

static bool read_windows(const struct mgx_plan_offer *c, struct window *w)
{
    const struct mgx_ints lengths = mgx_ins_ints(c->ins, "lengths");
    const struct mgx_ints stride = mgx_ins_ints(c->ins, "stride");
    const struct mgx_ints dilation = mgx_ins_ints(c->ins, "dilations");
    const struct mgx_ints padding = mgx_ins_ints(c->ins, "padding");
    const int spatial = c->out->rank - 2;
    const bool global = mgx_ins_int(c->ins, "dyn_global") != 0;
    for (int i = 0; i < spatial; i++) {
        w[i] = (struct window){1, 1, 1, 0, 0, c->in[0].lens[i + 2], c->out->lens[i + 2]};
        if (global) {
            w[i].length = w[i].in;
            continue;
        }
        if (i >= lengths.count || i >= stride.count || i >= padding.count)
            return false;
        w[i].length = lengths.v[i];
        w[i].stride = stride.v[i];
        w[i].dilation = i < dilation.count ? dilation.v[i] : 1;
        w[i].begin = padding.v[i];
        w[i].end = padding.count == 2 * spatial ? padding.v[i + spatial] : padding.v[i];
    }
    return true;
}

// Coordinates of result and input go by the axes' own order here: strides are constants.
static void emit_place(struct mgx_str *out, const struct mgx_shape *s)
{
    int order[MGX_MAX_RANK];
    mgx_shape_permutation(s, order);
    mgx_str_put(out, "    i64 rest = i;\n");
    for (int k = s->rank - 1; k >= 0; k--) {
        mgx_str_printf(out, "    const int o%d = (int)(rest %% %" PRId64 ");\n", order[k],
                       s->lens[order[k]]);
        mgx_str_printf(out, "    rest /= %" PRId64 ";\n", s->lens[order[k]]);
    }
    mgx_str_put(out, "    const i64 at0 = 0");
    for (int axis = 0; axis < s->rank; axis++)
        mgx_str_printf(out, " + (i64)o%d * %" PRId64, axis, s->strides[axis]);
    mgx_str_put(out, ";\n");
}

static void emit_taps(struct mgx_str *out, const struct mgx_shape *in, const struct window *w,
                      bool padded)
{
    mgx_str_printf(out, "    const i64 base = (i64)o0 * %" PRId64 " + (i64)o1 * %" PRId64 ";\n",
                   in->strides[0], in->strides[1]);
    for (int axis = 2; axis < in->rank; axis++) {
        const struct window *x = &w[axis - 2];
        mgx_str_printf(out, "    for (int t%d = 0; t%d < %" PRId64 "; t%d++) {\n", axis, axis,
                       x->length, axis);
        mgx_str_printf(out,
                       "    const int x%d = o%d * %" PRId64 " - %" PRId64 " + t%d * %" PRId64 ";\n",
                       axis, axis, x->stride, x->begin, axis, x->dilation);
        if (padded)
            mgx_str_printf(out, "    if (x%d >= %" PRId64 ")\n        continue;\n", axis,
                           x->in + x->end);
        else
            mgx_str_printf(out, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", axis,
                           axis, x->in);
    }
    if (padded)
        mgx_str_put(out, "    count++;\n");
    for (int axis = 2; axis < in->rank && padded; axis++)
        mgx_str_printf(out, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", axis,
                       axis, w[axis - 2].in);
    mgx_str_put(out, "    const i64 from = base");
    for (int axis = 2; axis < in->rank; axis++)
        mgx_str_printf(out, " + (i64)x%d * %" PRId64, axis, in->strides[axis]);
    mgx_str_put(out, ";\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct window *w,
                 bool average)
{
    const struct mgx_shape *in = &c->in[0];
    const bool padded = average && mgx_ins_int(c->ins, "count_include_pad") != 0;
    gpu_emit_head(out, c->out->type, &in->type, 1);
    mgx_str_put(out, "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n");
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", mgx_shape_elements(c->out));
    emit_place(out, c->out);
    mgx_str_put(out, "    float acc = ");
    gpu_emit_real(out, average ? 0 : mgx_type_lowest(in->type));
    mgx_str_put(out, ";\n    int count = 0;\n");
    emit_taps(out, in, w, padded);
    mgx_str_put(out, "    const float x = ");
    gpu_emit_load(out, in->type, "in0", "from");
    mgx_str_put(out, average ? ";\n    acc += x;\n"
                             : ";\n    acc = count == 0 || x > acc || x != x ? x : acc;\n");
    if (!padded)
        mgx_str_put(out, "    count++;\n");
    for (int axis = 2; axis < in->rank; axis++)
        mgx_str_put(out, "    }\n");
    mgx_str_put(out, average ? "    acc = count ? acc / (float)count : 0;\n    " : "    ");
    gpu_emit_store(out, c->out->type, "out", "at0", "acc");
    mgx_str_put(out, "\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    enum { AVERAGE, MAXIMUM };
    struct window w[MGX_MAX_RANK];
    struct mgx_str text = {0};
    if (c->ins->op != &mgx_op_pooling || c->copy_only || c->dynamic)
        return gpu_decline(c, "not a pooling");
    const int64_t mode = mgx_ins_int(c->ins, "mode");
    const enum mgx_type type = c->in[0].type;
    if (mode != AVERAGE && mode != MAXIMUM)
        return gpu_decline(c, "a mean of powers");
    if (gpu_type_class(type) != GPU_REAL || type == MGX_DOUBLE || c->out->type != type)
        return gpu_decline(c, "values that are not folded in float");
    if (mgx_ins_int(c->ins, "padding_mode") != 0 || c->out->rank < 3 || !read_windows(c, w))
        return gpu_decline(c, "padding that is worked out at run time");
    emit(&text, c, w, mode == AVERAGE);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "one window a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_pooling = {
    .name = "gpu::pooling", .prepare = prepare, .run = gpu_run_call};
