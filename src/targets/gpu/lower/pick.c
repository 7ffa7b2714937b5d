// SPDX-License-Identifier: MIT
// pad, reverse, onehot and rnn_var_sl_last_output: every element of the result is an element of the
// input or a constant, which one follows from its coordinates alone, or from one integer beside.
//
//     pad       x = source(o - before), the value outside
//     reverse   x = length - 1 - o
//     onehot    in2[1] where o along the new axis is the index, in2[0] elsewhere
//     last      x = {lengths[o1] - 1, o0, o1, o2}; zero for an empty sequence
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "op/reference/pad.h"
#include "op/reference/rnn.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static bool is_integer(enum mgx_type type)
{
    return gpu_type_class(type) == GPU_SIGNED || gpu_type_class(type) == GPU_UNSIGNED;
}

// "KERNEL void run(...)" of words, with one more parameter unless it is NULL, down to o<axis>.
static void emit_head(struct mgx_str *out, const struct mgx_plan_offer *c, int v, const char *more)
{
    const char *word = gpu_word(mgx_type_size(c->out->type));
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *in0%s%s)\n{\n", word,
                   word, more ? ", const GLOBAL " : "", more ? more : "");
    mgx_str_printf(out, "    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n", v);
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, struct mgx_str *text, int v,
                                 const int *in, int in_count)
{
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out) / v);
    c->detail = v > 1 ? "runs" : "one element a thread";
    return gpu_take(c, text, &how, in, in_count);
}

// Neighbours along the innermost axis, unless it is one of those that are not copied straight.
static int vector_of(const struct mgx_plan_offer *c, const bool *changes)
{
    int v = 1;
    for (int axis = 0; axis < c->out->rank; axis++)
        if (c->out->strides[axis] == 1 && c->out->lens[axis] > 1 && !changes[axis])
            v = gpu_move_vector(c->out, axis, &c->in[0], axis,
                                gpu_vector_for(mgx_shape_elements(c->out)));
    return v;
}

// --- pad ---

// x<axis>, or an end to `inside`.
static void emit_pad_axis(struct mgx_str *out, int64_t mode, int axis, int64_t before, int64_t n)
{
    mgx_str_printf(out, "    int x%d = o%d - %" PRId64 ";\n", axis, axis, before);
    if (mode == MGX_PAD_EDGE)
        mgx_str_printf(out, "    x%d = x%d < 0 ? 0 : x%d < %" PRId64 " ? x%d : %" PRId64 ";\n",
                       axis, axis, axis, n, axis, n - 1);
    else if (mode == MGX_PAD_CONSTANT)
        mgx_str_printf(out, "    inside = inside && x%d >= 0 && x%d < %" PRId64 ";\n", axis, axis,
                       n);
    else {
        const int64_t period = mode == MGX_PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
        mgx_str_printf(out,
                       "    x%d = (x%d %% %" PRId64 " + %" PRId64 ") %% %" PRId64
                       ";\n    x%d = x%d < %" PRId64 " ? x%d : %" PRId64 " - x%d;\n",
                       axis, axis, period, period, period, axis, axis, n, axis, period, axis);
    }
}

static bool read_pads(const struct mgx_plan_offer *c, int64_t *pads)
{
    const int count = 2 * c->out->rank;
    const struct mgx_ints given = mgx_ins_ints(c->ins, "pads");
    const struct mgx_tensor *t = c->in_count > 1 ? c->constant[1] : NULL;
    if (c->in_count > 1 && (!t || mgx_shape_elements(&t->shape) != count))
        return false;
    if (!t && given.count != count)
        return false;
    for (int i = 0; i < count; i++)
        pads[i] =
            t ? mgx_load_int(t->shape.type, t->data, mgx_shape_index(&t->shape, i)) : given.v[i];
    return true;
}

static enum mgx_plan_answer prepare_pad(struct mgx_plan_offer *c)
{
    const struct mgx_pad *a = c->ins->attr;
    const struct mgx_shape *x = &c->in[0];
    const bool loads = c->in_count > 2 && mgx_shape_elements(&c->in[2]) > 0;
    int64_t pads[2 * MGX_MAX_RANK];
    bool changes[MGX_MAX_RANK] = {false};
    char cell[16] = {0};
    const int64_t most = mgx_shape_elements(x);
    if (!read_pads(c, pads) || !most)
        return gpu_decline(c, "pads that are known only at run time, or nothing to pad");
    struct mgx_str text = {0}, fill = {0};
    for (int axis = 0; axis < x->rank; axis++)
        changes[axis] = pads[axis] || pads[axis + x->rank];
    const int v = vector_of(c, changes);
    struct mgx_str more = {0};
    mgx_str_printf(&more, "%s *in2", gpu_word(mgx_type_size(x->type)));
    emit_head(&text, c, v, loads ? mgx_str_text(&more) : NULL);
    mgx_str_fini(&more);
    mgx_str_put(&text, "    bool inside = true;\n");
    for (int axis = 0; axis < x->rank; axis++)
        if (changes[axis])
            emit_pad_axis(&text, a->mode, axis, pads[axis], x->lens[axis]);
        else
            mgx_str_printf(&text, "    const int x%d = o%d;\n", axis, axis);
    mgx_str_put(&text, "    const i64 from = !inside ? -1 : ");
    gpu_emit_sum(&text, x, 0, x->rank, "x");
    mgx_str_put(&text, ";\n");
    mgx_pad_store(x->type, cell, a->value);
    uint64_t bits;
    memcpy(&bits, cell, sizeof bits);
    mgx_str_printf(&fill, loads ? "in2[0]" : "(((u64)%" PRIu32 "u << 32) | %" PRIu32 "u)",
                   (uint32_t)(bits >> 32), (uint32_t)bits);
    gpu_emit_move(&text, mgx_type_size(x->type), v, mgx_str_text(&fill));
    mgx_str_fini(&fill);
    return take(c, &text, v, (const int[]){0, 2}, 1 + loads);
}

// --- reverse ---

static enum mgx_plan_answer prepare_reverse(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const struct mgx_ints axes = mgx_ins_ints(c->ins, "axes");
    bool turned[MGX_MAX_RANK] = {false};
    struct mgx_str text = {0};
    for (int i = 0; i < axes.count; i++)
        turned[axes.v[i] < 0 ? axes.v[i] + x->rank : axes.v[i]] = true;
    const int v = vector_of(c, turned);
    emit_head(&text, c, v, NULL);
    for (int axis = 0; axis < x->rank; axis++)
        mgx_str_printf(&text, "    const int x%d = %" PRId64 " %c o%d;\n", axis,
                       turned[axis] ? x->lens[axis] - 1 : 0, turned[axis] ? '-' : '+', axis);
    mgx_str_put(&text, "    const i64 from = ");
    gpu_emit_sum(&text, x, 0, x->rank, "x");
    mgx_str_put(&text, ";\n");
    gpu_emit_move(&text, mgx_type_size(x->type), v, NULL);
    return take(c, &text, v, NULL, 1);
}

// --- onehot ---

static enum mgx_plan_answer prepare_onehot(struct mgx_plan_offer *c)
{
    const struct mgx_shape *at = &c->in[0], *values = &c->in[c->in_count - 1], *y = c->out;
    const int64_t given = mgx_ins_int(c->ins, "axis");
    const int axis = (int)(given < 0 ? given + y->rank : given);
    struct mgx_str text = {0}, more = {0};
    if (!is_integer(at->type))
        return gpu_decline(c, "positions that are no integers");
    mgx_str_printf(&more, "%s *in1", gpu_type_memory(at->type));
    emit_head(&text, c, 1, mgx_str_text(&more));
    mgx_str_fini(&more);
    mgx_str_put(&text, "    i64 p = (i64)in1[(i64)0");
    for (int k = 0; k < at->rank; k++)
        mgx_str_printf(&text, " + (i64)o%d * %" PRId64, k < axis ? k : k + 1, at->strides[k]);
    mgx_str_printf(&text,
                   "];\n    p += p < 0 ? %" PRId64 " : 0;\n    const i64 from = o%d == p ? %" PRId64
                   " : 0;\n",
                   y->lens[axis], axis, mgx_shape_index(values, 1));
    gpu_emit_move(&text, mgx_type_size(y->type), 1, NULL);
    return take(c, &text, 1, (const int[]){c->in_count - 1, 0}, 2);
}

// --- the last step of sequences ---

static enum mgx_plan_answer prepare_last(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const bool lengths = c->in_count > 1 && !mgx_shape_is_absent(&c->in[1]);
    const bool reverse = mgx_ins_int(c->ins, "direction") == MGX_RNN_REVERSE;
    struct mgx_str text = {0}, more = {0};
    if (lengths && !is_integer(c->in[1].type))
        return gpu_decline(c, "lengths that are no integers");
    if (lengths)
        mgx_str_printf(&more, "%s *in1", gpu_type_memory(c->in[1].type));
    emit_head(&text, c, 1, lengths ? mgx_str_text(&more) : NULL);
    mgx_str_fini(&more);
    if (lengths)
        mgx_str_printf(&text, "    const i64 length = (i64)in1[(i64)o1 * %" PRId64 "];\n",
                       c->in[1].strides[0]);
    else
        mgx_str_printf(&text, "    const i64 length = %" PRId64 ";\n", x->lens[0]);
    mgx_str_printf(&text,
                   "    const i64 last = %s ? 0 : length - 1;\n"
                   "    const i64 from = length <= 0 || length > %" PRId64
                   " ? -1 : last * %" PRId64,
                   reverse ? "true" : "o0 == 1", x->lens[0], x->strides[0]);
    for (int axis = 1; axis < x->rank; axis++)
        mgx_str_printf(&text, " + (i64)o%d * %" PRId64, axis - 1, x->strides[axis]);
    mgx_str_put(&text, ";\n");
    gpu_emit_move(&text, mgx_type_size(x->type), 1, "0");
    return take(c, &text, 1, NULL, 1 + lengths);
}

// --- the kernel ---

static const struct {
    const struct mgx_op *op;
    enum mgx_plan_answer (*prepare)(struct mgx_plan_offer *c);
} picks[] = {
    {&mgx_op_pad, prepare_pad},
    {&mgx_op_reverse, prepare_reverse},
    {&mgx_op_onehot, prepare_onehot},
    {&mgx_op_rnn_var_sl_last_output, prepare_last},
};

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    for (size_t i = 0; i < sizeof picks / sizeof *picks && !c->copy_only && !c->dynamic; i++) {
        if (picks[i].op != c->ins->op)
            continue;
        const bool words = gpu_word(mgx_type_size(c->out->type)) != NULL;
        return words ? picks[i].prepare(c) : gpu_decline(c, "elements that are no machine word");
    }
    return gpu_decline(c, "not a pick by coordinates");
}

const struct mgx_plan_kernel gpu_kernel_pick = {
    .name = "gpu::pick", .prepare = prepare, .run = gpu_run_call};
