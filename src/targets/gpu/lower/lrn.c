// SPDX-License-Identifier: MIT
// lrn: every element over a power of the squares of near channels, one element a thread.
//
//     out[n, c, ...] = x / (bias + alpha / size * sum of x[n, k, ...]^2)^beta,  k around c
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int64_t size = mgx_ins_int(c->ins, "size"), channels = x->lens[1];
    gpu_emit_head(out, c->out->type, &x->type, 1);
    mgx_str_printf(out,
                   "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n    if (i >= %" PRId64
                   ")\n        return;\n",
                   mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, x, 0, x->rank, "o");
    mgx_str_printf(out,
                   ";\n    const int low = o1 - %" PRId64 ", high = o1 + %" PRId64
                   ";\n    float sum = 0;\n"
                   "    for (int k = low < 0 ? 0 : low; k <= high && k < %" PRId64 "; k++) {\n"
                   "        const float near = ",
                   (size - 1) / 2, size / 2, channels);
    struct mgx_str at = {0};
    mgx_str_printf(&at, "from + (i64)(k - o1) * %" PRId64, x->strides[1]);
    gpu_emit_load(out, x->type, "in0", mgx_str_text(&at));
    mgx_str_fini(&at);
    mgx_str_put(out, ";\n        sum += near * near;\n    }\n    const float y = ");
    gpu_emit_load(out, x->type, "in0", "from");
    mgx_str_put(out, " / pow(");
    gpu_emit_real(out, mgx_ins_real(c->ins, "bias"));
    mgx_str_put(out, " + ");
    gpu_emit_real(out, mgx_ins_real(c->ins, "alpha") / (double)size);
    mgx_str_put(out, " * sum, ");
    gpu_emit_real(out, mgx_ins_real(c->ins, "beta"));
    mgx_str_put(out, ");\n    ");
    gpu_emit_store(out, c->out->type, "out", "at0", "y");
    mgx_str_put(out, "\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_lrn)
        return gpu_decline(c, "not lrn");
    const enum mgx_type type = c->in[0].type;
    if (gpu_type_class(type) != GPU_REAL || type == MGX_DOUBLE || c->out->type != type)
        return gpu_decline(c, "values that are not folded in float");
    emit(&text, c);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "one element a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_lrn = {
    .name = "gpu::lrn", .prepare = prepare, .run = gpu_run_call};
