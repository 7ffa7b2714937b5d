// SPDX-License-Identifier: MIT
// Reductions, softmax and logsoftmax: one value, or one row, from every lane of the input.
//
// A block takes a lane (lanes.h).
//
// Sums are float where the values are 16 or 32 bits, double for doubles, 64-bit integers otherwise.
// A NaN wins every maximum and minimum, as in the reference. Cost: reductions read the input once,
// softmax three times, of which the second and third mostly from a cache.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lanes.h"

static const char *refuses(const struct mgx_plan_offer *c)
{
    const enum mgx_type type = c->in[0].type;
    if (c->in_count != 1)
        return "axes that are known only at run time";
    if (gpu_type_class(type) == GPU_NONE || c->out->type != type)
        return "a type that kernels do not compute";
    if (type == MGX_DOUBLE && !gpu_has_double(c))
        return "the card has no double";
    return NULL;
}

// --- reductions ---

struct fold {
    const struct mgx_op *op;
    const char *name, *expression; // of x and y
    const char *begin;             // NULL: the lane's first element
};

static const struct fold folds[] = {
    {&mgx_op_reduce_sum, "fold_sum", "x + y", "0"},
    {&mgx_op_reduce_mean, "fold_sum", "x + y", "0"},
    {&mgx_op_reduce_prod, "fold_prod", "x * y", "1"},
    {&mgx_op_reduce_max, "fold_max", "x != x || x > y ? x : y", NULL},
    {&mgx_op_reduce_min, "fold_min", "x != x || x < y ? x : y", NULL},
};

static const struct fold *find_fold(const struct mgx_op *op)
{
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (folds[i].op == op)
            return &folds[i];
    return NULL;
}

static void mark_axes(const struct mgx_plan_offer *c, bool *in_lane)
{
    const struct mgx_ints axes = mgx_ins_ints(c->ins, "axes");
    const int rank = c->in[0].rank;
    for (int i = 0; i < rank; i++)
        in_lane[i] = axes.count == 0;
    for (int i = 0; i < axes.count; i++)
        in_lane[axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]] = true;
}

static void emit_reduce(struct mgx_str *out, const struct mgx_plan_offer *c, const struct fold *f,
                        const struct gpu_lanes *l)
{
    const enum mgx_type type = c->out->type;
    const char *value = gpu_type_value(type);
    mgx_str_printf(out, "FUNCTION %s %s(%s x, %s y)\n{\n    return %s;\n}\n\n", value, f->name,
                   value, value, f->expression);
    gpu_emit_lane_begin(out, c, l, value, &c->in[0].type, 1);
    mgx_str_printf(out, "    %s acc = ", value);
    if (f->begin)
        mgx_str_put(out, f->begin);
    else
        gpu_emit_load(out, type, "in0", "at1");
    mgx_str_put(out, ";\n");
    gpu_emit_lane_loop(out, l);
    mgx_str_printf(out, "        acc = %s(acc, ", f->name);
    gpu_emit_load(out, type, "in0", "from");
    mgx_str_put(out, ");\n    }\n");
    gpu_emit_lane_fold(out, f->name);
    mgx_str_printf(out, "    if (THREAD == 0) {\n        const %s y = part[0]", value);
    if (f->op == &mgx_op_reduce_mean)
        mgx_str_printf(out, " / (%s)%" PRId64, value, l->length);
    mgx_str_put(out, ";\n        ");
    gpu_emit_store(out, type, "out", "at0", "y");
    mgx_str_put(out, "\n    }\n}\n");
}

static enum mgx_plan_answer prepare_reduce(struct mgx_plan_offer *c)
{
    const struct fold *f = find_fold(c->ins->op);
    bool in_lane[MGX_MAX_RANK];
    struct gpu_lanes l;
    struct mgx_str text = {0};
    if (!f || c->copy_only || c->dynamic)
        return gpu_decline(c, "not a reduction");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    if (f->op == &mgx_op_reduce_mean && mgx_type_size(c->out->type) == 8 &&
        gpu_type_class(c->out->type) != GPU_REAL)
        return gpu_decline(c, "a mean whose sum takes 128 bits");
    mark_axes(c, in_lane);
    gpu_lanes_find(&l, c->out, &c->in[0], in_lane);
    if (!gpu_lanes_fit(&l))
        return gpu_decline(c, "lanes that are empty, or too many");
    emit_reduce(&text, c, f, &l);
    const struct gpu_launch how = gpu_lanes_launch(&l);
    c->detail = "a block a lane";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_reduce = {
    .name = "gpu::reduce", .prepare = prepare_reduce, .run = gpu_run_call};

// --- softmax ---

static void emit_softmax(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_lanes *l)
{
    const enum mgx_type type = c->out->type;
    const char *value = gpu_type_value(type);
    const bool logarithm = c->ins->op == &mgx_op_logsoftmax;
    mgx_str_printf(out,
                   "FUNCTION %s larger(%s x, %s y)\n{\n    return x != x || x > y ? x : y;\n}\n\n",
                   value, value, value);
    mgx_str_printf(out, "FUNCTION %s sum(%s x, %s y)\n{\n    return x + y;\n}\n\n", value, value,
                   value);
    gpu_emit_lane_begin(out, c, l, value, &c->in[0].type, 1);
    mgx_str_printf(out, "    %s acc = ", value);
    gpu_emit_load(out, type, "in0", "at1");
    mgx_str_put(out, ";\n");
    gpu_emit_lane_loop(out, l);
    mgx_str_put(out, "        acc = larger(acc, ");
    gpu_emit_load(out, type, "in0", "from");
    mgx_str_put(out, ");\n    }\n");
    gpu_emit_lane_fold(out, "larger");
    mgx_str_printf(out, "    const %s most = part[0];\n    BARRIER();\n    acc = 0;\n", value);
    gpu_emit_lane_loop(out, l);
    mgx_str_put(out, "        acc += exp(");
    gpu_emit_load(out, type, "in0", "from");
    mgx_str_put(out, " - most);\n    }\n");
    gpu_emit_lane_fold(out, "sum");
    mgx_str_printf(out, "    const %s total = %s;\n", value,
                   logarithm ? "log(part[0])" : "part[0]");
    gpu_emit_lane_loop(out, l);
    mgx_str_printf(out, "        const %s x = ", value);
    gpu_emit_load(out, type, "in0", "from");
    mgx_str_put(out, " - most;\n        ");
    gpu_emit_store(out, type, "out", "to", logarithm ? "x - total" : "exp(x) / total");
    mgx_str_put(out, "\n    }\n}\n");
}

static enum mgx_plan_answer prepare_softmax(struct mgx_plan_offer *c)
{
    const struct mgx_op *op = c->ins->op;
    bool in_lane[MGX_MAX_RANK] = {false};
    struct gpu_lanes l;
    struct mgx_str text = {0};
    if ((op != &mgx_op_softmax && op != &mgx_op_logsoftmax) || c->copy_only || c->dynamic)
        return gpu_decline(c, "not a softmax");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    const int64_t axis = mgx_ins_int(c->ins, "axis");
    in_lane[axis < 0 ? axis + c->in[0].rank : axis] = true;
    gpu_lanes_find(&l, c->out, &c->in[0], in_lane);
    if (!gpu_lanes_fit(&l))
        return gpu_decline(c, "lanes that are empty, or too many");
    emit_softmax(&text, c, &l);
    const struct gpu_launch how = gpu_lanes_launch(&l);
    c->detail = "a block a lane";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_softmax = {
    .name = "gpu::softmax", .prepare = prepare_softmax, .run = gpu_run_call};
