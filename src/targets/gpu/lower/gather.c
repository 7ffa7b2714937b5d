// SPDX-License-Identifier: MIT
// gather and gathernd: elements of in0 picked by positions in in1.
//
// An index outside its axis reads nothing and gives zero: the host, which could complain, does not
// see it. Cost: a thread moves up to 16 bytes where what is picked are runs.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static const char *refuses(const struct mgx_plan_offer *c)
{
    const enum gpu_class class = gpu_type_class(c->in[1].type);
    if (!gpu_word(mgx_type_size(c->out->type)) || c->out->type != c->in[0].type)
        return "elements that are no machine word";
    return class == GPU_SIGNED || class == GPU_UNSIGNED ? NULL : "positions that are no integers";
}

static void emit_head(struct mgx_str *out, const struct mgx_plan_offer *c, int v)
{
    const char *word = gpu_word(mgx_type_size(c->out->type));
    mgx_str_printf(out,
                   "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *in0, const GLOBAL %s *in1)\n"
                   "{\n    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n",
                   word, word, gpu_type_memory(c->in[1].type), v);
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
}

// p<number>: a position along an axis of length n; `inside` falls when it lies outside.
static void emit_position(struct mgx_str *out, int number, const char *at, int64_t n)
{
    mgx_str_printf(out,
                   "    i64 p%d = (i64)in1[%s];\n    p%d += p%d < 0 ? %" PRId64 " : 0;\n"
                   "    inside = inside && p%d >= 0 && p%d < %" PRId64 ";\n",
                   number, at, number, number, n, number, number, n);
}

static enum mgx_plan_answer finish(struct mgx_plan_offer *c, struct mgx_str *text, int v)
{
    gpu_emit_move(text, mgx_type_size(c->out->type), v, "0");
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out) / v);
    c->detail = v > 1 ? "runs" : "one element a thread";
    return gpu_take(c, text, &how, NULL, 2);
}

// --- gather ---

static enum mgx_plan_answer prepare_gather(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *at = &c->in[1], *y = c->out;
    const int64_t given = mgx_ins_int(c->ins, "axis");
    const int axis = (int)(given < 0 ? given + x->rank : given);
    const int shift = at->rank - 1; // of the axes behind
    struct mgx_str text = {0};
    const bool runs = axis + 1 < x->rank;
    const int v = runs ? gpu_move_vector(y, y->rank - 1, x, x->rank - 1,
                                         gpu_vector_for(mgx_shape_elements(y)))
                       : 1;
    emit_head(&text, c, v);
    mgx_str_put(&text, "    bool inside = true;\n    const i64 place = (i64)0");
    for (int k = 0; k < at->rank; k++)
        mgx_str_printf(&text, " + (i64)o%d * %" PRId64, axis + k, at->strides[k]);
    mgx_str_put(&text, ";\n");
    emit_position(&text, 0, "place", x->lens[axis]);
    mgx_str_printf(&text, "    const i64 from = !inside ? -1 : p0 * %" PRId64, x->strides[axis]);
    for (int k = 0; k < x->rank; k++)
        if (k != axis)
            mgx_str_printf(&text, " + (i64)o%d * %" PRId64, k < axis ? k : k + shift,
                           x->strides[k]);
    mgx_str_put(&text, ";\n");
    return finish(c, &text, v);
}

// --- gathernd ---

static enum mgx_plan_answer prepare_gathernd(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *at = &c->in[1], *y = c->out;
    const int batch = (int)mgx_ins_int(c->ins, "batch_dims");
    const int depth = (int)at->lens[at->rank - 1], skip = batch + depth;
    struct mgx_str text = {0};
    const bool runs = skip < x->rank;
    const int v = runs ? gpu_move_vector(y, y->rank - 1, x, x->rank - 1,
                                         gpu_vector_for(mgx_shape_elements(y)))
                       : 1;
    emit_head(&text, c, v);
    mgx_str_put(&text, "    bool inside = true;\n    const i64 place = ");
    gpu_emit_sum(&text, at, 0, at->rank - 1, "o");
    mgx_str_put(&text, ";\n");
    for (int k = 0; k < depth; k++) {
        struct mgx_str where = {0};
        mgx_str_printf(&where, "place + %" PRId64, k * at->strides[at->rank - 1]);
        emit_position(&text, k, mgx_str_text(&where), x->lens[batch + k]);
        mgx_str_fini(&where);
    }
    mgx_str_put(&text, "    const i64 from = !inside ? -1 : ");
    gpu_emit_sum(&text, x, 0, batch, "o");
    for (int k = 0; k < depth; k++)
        mgx_str_printf(&text, " + p%d * %" PRId64, k, x->strides[batch + k]);
    for (int k = skip; k < x->rank; k++)
        mgx_str_printf(&text, " + (i64)o%d * %" PRId64, at->rank - 1 + k - skip, x->strides[k]);
    mgx_str_put(&text, ";\n");
    return finish(c, &text, v);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct mgx_op *op = c->copy_only || c->dynamic ? NULL : c->ins->op;
    if (op != &mgx_op_gather && op != &mgx_op_gathernd)
        return gpu_decline(c, "not a gather");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    return op == &mgx_op_gather ? prepare_gather(c) : prepare_gathernd(c);
}

const struct mgx_plan_kernel gpu_kernel_gather = {
    .name = "gpu::gather", .prepare = prepare, .run = gpu_run_call};
