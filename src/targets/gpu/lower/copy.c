// SPDX-License-Identifier: MIT
// Copies between any two layouts of one type: relayouts, pieces of a concat, contiguous.
//
//     out[at0(i)] = in0[at1(i)]          i over the result in its order of memory
//
// Elements move as integers of their size, so types that kernels do not compute move as well.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/loop.h"
#include "targets/gpu/lower/lower.h"

static const char *word_of(size_t size)
{
    return size == 1 ? "u8" : size == 2 ? "u16" : size == 4 ? "u32" : "u64";
}

static void emit(struct mgx_str *out, const struct gpu_loop *loop, size_t size)
{
    const char *word = word_of(size);
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *in0)\n{\n", word, word);
    mgx_str_put(out, "    const i64 i = (i64)BLOCK * THREADS + THREAD;\n");
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", loop->elements);
    gpu_emit_offsets(out, loop);
    if (size == 16) // two words
        mgx_str_put(out, "    out[2 * at0] = in0[2 * at1];\n"
                         "    out[2 * at0 + 1] = in0[2 * at1 + 1];\n}\n");
    else
        mgx_str_put(out, "    out[at0] = in0[at1];\n}\n");
}

static bool is_copy(const struct mgx_plan_offer *c)
{
    return c->copy_only || c->ins->op == &mgx_op_contiguous || c->ins->op == &mgx_op_identity;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_loop loop;
    struct mgx_str text = {0};
    const size_t size = mgx_type_size(c->out->type);
    if (!is_copy(c) || !size || c->dynamic)
        return gpu_decline(c, "not a copy");
    const struct mgx_shape *shapes[] = {c->out, &c->in[0]};
    gpu_loop_make(&loop, shapes, 2);
    emit(&text, &loop, size);
    const struct gpu_launch how = gpu_launch_for(loop.elements);
    c->detail = "one element a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_copy = {
    .name = "gpu::copy", .prepare = prepare, .run = gpu_run_call};
