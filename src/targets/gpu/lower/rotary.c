// SPDX-License-Identifier: MIT
// rotary_embedding on the card (kernel/rotary.gpu), a thread a pair. Positions are values that only
// the card reads; one beyond the tables turns to zero.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/cache.h"

enum { X, COS, SIN, AT };

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (!mgx_shape_is_static(c->out) || !mgx_shape_elements(c->out) || !c->in[COS].lens[1])
        return "heads whose number only the run says, or none";
    if (!gpu_cache_computes(c->out->type))
        return "values that are not computed in float";
    return gpu_cache_reads_ends(&c->in[AT]) ? NULL : "positions of another type";
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[X];
    gpu_emit_cache_type(out, x->type);
    gpu_emit_cache_turn(out, &c->in[COS], &c->in[SIN], &c->in[AT], x->lens[2],
                        mgx_ins_int(c->ins, "interleaved") != 0);
    gpu_emit_cache_row(out, "X", x);
    gpu_emit_cache_row(out, "Y", c->out);
    mgx_str_printf(out,
                   "#define BATCH %" PRId64 "\n#define HEADS %" PRId64 "\n#define TOKENS %" PRId64
                   "\n#define SIZE %" PRId64 "\n",
                   x->lens[0], x->lens[1], x->lens[2], x->lens[3]);
    mgx_str_put(out, gpu_text_rotary);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_rotary_embedding)
        return gpu_decline(c, "not a rotation by positions");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    if (gpu_cache_wishes(c, 1u << X | 1u << COS | 1u << SIN))
        return mgx_plan_refuse(c);
    if (c->out->strides[3] != 1 && c->out->lens[3] > 1)
        return gpu_decline(c, "rows of the result are in pieces");
    struct mgx_str text = {0};
    emit(&text, c);
    const int64_t half = c->in[COS].lens[1];
    const int64_t count = mgx_shape_elements(c->out) / c->out->lens[3] * (c->out->lens[3] - half);
    const struct gpu_launch how = gpu_launch_for(count);
    c->detail = "a pair a thread";
    return gpu_take(c, &text, &how, NULL, c->in_count);
}

const struct mgx_plan_kernel gpu_kernel_rotary = {
    .name = "gpu::rotary_embedding", .prepare = prepare, .run = gpu_run_call};
