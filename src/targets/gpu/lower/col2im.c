// SPDX-License-Identifier: MIT
// col2im: an element of the image a thread, which looks for the windows that it lies in.
//
//     out[n, c, s...] = sum over taps t of in0[n, (c, t), place],  place * stride = s + begin - t * dilation
//
// So nothing is written twice, and equal runs give equal bits. Cost: as many looks as a window has taps.
#include <inttypes.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static struct mgx_window window_of(const struct mgx_plan_offer *c, int i)
{
    const struct mgx_window_attr a = mgx_window_of(c->ins);
    const int64_t size = mgx_ins_ints(c->ins, "sizes").v[i];
    const int64_t length = mgx_ins_ints(c->ins, "lengths").v[i];
    return mgx_window_at(&a, i, size, length, mgx_window_places(&a, i, size, length));
}

static void emit_taps(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const int rank = c->out->rank - 2;
    for (int k = 0; k < rank; k++) {
        const struct mgx_window w = window_of(c, k);
        mgx_str_printf(out,
                       "    for (int t%d = 0; t%d < %" PRId64 "; t%d++) {\n"
                       "    const i64 d%d = (i64)o%d + %" PRId64 " - (i64)t%d * %" PRId64 ";\n"
                       "    if (d%d < 0 || d%d %% %" PRId64 " != 0 || d%d / %" PRId64 " >= %" PRId64
                       ")\n        continue;\n",
                       k, k, w.kernel, k, k, k + 2, w.begin, k, w.dilation, k, k, w.stride, k,
                       w.stride, w.out);
    }
    mgx_str_put(out, "    i64 row = o1, place = 0;\n");
    for (int k = 0; k < rank; k++) {
        const struct mgx_window w = window_of(c, k);
        mgx_str_printf(out,
                       "    row = row * %" PRId64 " + t%d;\n    place = place * %" PRId64
                       " + d%d / %" PRId64 ";\n",
                       w.kernel, k, w.out, k, w.stride);
    }
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    gpu_emit_start(out, c->out, &x->type, 1);
    mgx_str_printf(out, "    %s sum = 0;\n", gpu_type_value(x->type));
    emit_taps(out, c);
    mgx_str_printf(out,
                   "    const i64 from = (i64)o0 * %" PRId64 " + row * %" PRId64
                   " + place * %" PRId64 ";\n    sum += ",
                   x->strides[0], x->strides[1], x->strides[2]);
    gpu_emit_load(out, x->type, "in0", "from");
    mgx_str_put(out, ";\n");
    for (int k = 2; k < c->out->rank; k++)
        mgx_str_put(out, "    }\n");
    mgx_str_put(out, "    ");
    gpu_emit_store(out, c->out->type, "out", "at0", "sum");
    mgx_str_put(out, "\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_col2im)
        return gpu_decline(c, "no columns to add up");
    if (!gpu_computes(c, c->out->type))
        return gpu_decline(c, "a type that kernels do not compute");
    emit(&text, c);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "one element a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_col2im = {
    .name = "gpu::col2im", .prepare = prepare, .run = gpu_run_call};
