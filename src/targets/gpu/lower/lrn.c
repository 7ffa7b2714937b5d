// SPDX-License-Identifier: MIT
// lrn: every element over a power of the squares of near channels, one element a thread.
//
//     out[n, c, ...] = x / (bias + alpha / size * sum of x[n, k, ...]^2)^beta,  k around c
#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int64_t size = mgx_ins_int(c->ins, "size");
    gpu_define(out, "BEFORE", (size - 1) / 2);
    gpu_define(out, "BEHIND", size / 2);
    gpu_define(out, "CHANNELS", x->lens[1]);
    gpu_define(out, "STEP", x->strides[1]);
    gpu_define_real(out, "BIAS", mgx_ins_real(c->ins, "bias"));
    gpu_define_real(out, "SHARE", mgx_ins_real(c->ins, "alpha") / (double)size);
    gpu_define_real(out, "BETA", mgx_ins_real(c->ins, "beta"));
    gpu_define_load(out, "A_TYPE", "LOAD", x->type, "in0");
    GPU_PUT(out, lrn);
    gpu_emit_start(out, c->out, &x->type, 1);
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, x, 0, x->rank, "o");
    mgx_str_put(out, ";\n    const float y = lrn_of(in0, from, o1);\n    ");
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
