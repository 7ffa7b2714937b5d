// SPDX-License-Identifier: MIT
// Element-wise instructions: a fused body, or a single scalar operator as its own body.
//
//     v0 = in0[at1(i)], v1 = in1[at2(i)], ...;  body;  out[at0(i)] = v<result>
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/pointwise.h"
#include "targets/gpu/emit/loop.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static bool is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || mgx_pointwise_find(ins->op) ||
           ins->op == &mgx_op_convert;
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || !is_elementwise(c->ins))
        return "not element-wise";
    if (c->in_count > GPU_CALL_INPUTS || c->in_count + 1 > GPU_LOOP_ARRAYS)
        return "too many inputs";
    for (int i = 0; i <= c->in_count; i++)
        if (gpu_type_class((i < c->in_count ? &c->in[i] : c->out)->type) == GPU_NONE)
            return "a type that kernels do not compute";
    if (c->ins->op == &mgx_op_pointwise && mgx_module_result_count(c->ins->mod[0]) != 1)
        return "several results";
    return NULL;
}

static void emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++) {
        char array[16], at[16];
        snprintf(array, sizeof array, "in%d", i);
        snprintf(at, sizeof at, "at%d", i + 1);
        mgx_str_printf(out, "    const %s v%d = ", gpu_type_value(c->in[i].type), i);
        gpu_emit_load(out, c->in[i].type, array, at);
        mgx_str_put(out, ";\n");
    }
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_loop *loop)
{
    enum mgx_type types[GPU_CALL_INPUTS];
    for (int i = 0; i < c->in_count; i++)
        types[i] = c->in[i].type;
    const char *why = gpu_emit_body(out, c, c->ins);
    if (why)
        return why;
    gpu_emit_head(out, c->out->type, types, c->in_count);
    mgx_str_put(out, "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n");
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", loop->elements);
    gpu_emit_offsets(out, loop);
    emit_loads(out, c);
    gpu_emit_body_call(out, c->out->type, c->in_count);
    mgx_str_put(out, "    ");
    gpu_emit_store(out, c->out->type, "out", "at0", "y");
    mgx_str_put(out, "\n}\n");
    return NULL;
}

// An input that lies as the result does may give up its bytes: each element is read before it is
// written, by the same thread.
static int in_place(const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (mgx_type_size(c->in[i].type) == mgx_type_size(c->out->type) &&
            mgx_shape_same_lens(&c->in[i], c->out) && c->in[i].type == c->out->type &&
            mgx_shape_equal(&c->in[i], c->out))
            return i;
    return -1;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct mgx_shape *shapes[GPU_LOOP_ARRAYS] = {c->out};
    struct gpu_loop loop;
    struct mgx_str text = {0};
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    for (int i = 0; i < c->in_count; i++) {
        if (!mgx_shape_same_lens(&c->in[i], c->out))
            return gpu_decline(c, "an operand of other lengths");
        shapes[i + 1] = &c->in[i];
    }
    gpu_loop_make(&loop, shapes, c->in_count + 1);
    why = emit(&text, c, &loop);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    const struct gpu_launch how = gpu_launch_for(loop.elements);
    c->in_place = in_place(c);
    c->detail = "one element a thread";
    return gpu_take(c, &text, &how, NULL, c->in_count);
}

const struct mgx_plan_kernel gpu_kernel_pointwise = {
    .name = "gpu::pointwise", .prepare = prepare, .run = gpu_run_call};
