// SPDX-License-Identifier: MIT
// scatter and scatternd, every way of combining: a thread owns an element of the result and looks
// for the updates that mean it, in their order.
//
//     out[o] = x[o] combined with u[k] for every k whose indices point to o
//
// So nothing races and equal runs give equal bits, whatever the order of threads. Indices outside
// their axis mean nobody. Cost: the updates of the lane (scatter), or all index tuples (scatternd),
// for every element; where that is too much the offer is declined.
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static const int64_t most_looks = (int64_t)1 << 32;

struct how {
    const struct mgx_op *op;
    bool slabs;
    const char *combine; // a and b
};

#define LESSER "a != a || a < b ? a : b"
#define GREATER "a != a || a > b ? a : b"

static const struct how hows[] = {
    {&mgx_op_scatter_none, false, "b"},     {&mgx_op_scatter_add, false, "a + b"},
    {&mgx_op_scatter_mul, false, "a * b"},  {&mgx_op_scatter_min, false, LESSER},
    {&mgx_op_scatter_max, false, GREATER},  {&mgx_op_scatternd_none, true, "b"},
    {&mgx_op_scatternd_add, true, "a + b"}, {&mgx_op_scatternd_mul, true, "a * b"},
    {&mgx_op_scatternd_min, true, LESSER},  {&mgx_op_scatternd_max, true, GREATER},
};

static const struct how *find_how(const struct mgx_op *op)
{
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        if (hows[i].op == op)
            return &hows[i];
    return NULL;
}

static const char *refuses(const struct mgx_plan_offer *c, int64_t looks)
{
    const enum mgx_type type = c->out->type;
    const enum gpu_class at = gpu_type_class(c->in[1].type);
    if (gpu_type_class(type) == GPU_NONE || (type == MGX_DOUBLE && !gpu_has_double(c)))
        return "a type that kernels do not compute";
    if (at != GPU_SIGNED && at != GPU_UNSIGNED)
        return "positions that are no integers";
    return looks && mgx_shape_elements(c->out) > most_looks / looks ? "too many updates" : NULL;
}

// y combined with update u, whose offset is given.
static void emit_combine(struct mgx_str *out, const struct mgx_plan_offer *c, const struct how *how)
{
    const char *value = gpu_type_value(c->out->type);
    mgx_str_printf(out, "        const %s a = y, b = ", value);
    gpu_emit_load(out, c->out->type, "in2", "u");
    mgx_str_printf(out, ";\n        (void)a;\n        y = %s;\n    }\n    ", how->combine);
    gpu_emit_store(out, c->out->type, "out", "at0", "y");
    mgx_str_put(out, "\n}\n");
}

static void emit_start(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const enum mgx_type types[] = {c->in[0].type, c->in[1].type, c->in[2].type};
    gpu_emit_head(out, c->out->type, types, 3);
    mgx_str_printf(out,
                   "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n    if (i >= %" PRId64
                   ")\n        return;\n",
                   mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, &c->in[0], 0, c->in[0].rank, "o");
    mgx_str_printf(out, ";\n    %s y = ", gpu_type_value(c->out->type));
    gpu_emit_load(out, c->out->type, "in0", "from");
    mgx_str_put(out, ";\n");
}

// --- along an axis ---

static void emit_axis(struct mgx_str *out, const struct mgx_plan_offer *c, const struct how *how)
{
    const struct mgx_shape *y = c->out, *at = &c->in[1], *u = &c->in[2];
    const int64_t given = mgx_ins_int(c->ins, "axis");
    const int axis = (int)(given < 0 ? given + y->rank : given);
    emit_start(out, c);
    mgx_str_put(out, "    bool inside = true;\n");
    for (int k = 0; k < y->rank; k++)
        if (k != axis && at->lens[k] < y->lens[k])
            mgx_str_printf(out, "    inside = inside && o%d < %" PRId64 ";\n", k, at->lens[k]);
    const struct mgx_shape *both[] = {at, u};
    for (int n = 0; n < 2; n++) {
        mgx_str_printf(out, "    const i64 base%d = (i64)0", n);
        for (int k = 0; k < y->rank; k++)
            if (k != axis)
                mgx_str_printf(out, " + (i64)o%d * %" PRId64, k, both[n]->strides[k]);
        mgx_str_put(out, ";\n");
    }
    mgx_str_printf(out,
                   "    for (int k = 0; k < %" PRId64 " && inside; k++) {\n"
                   "        i64 p = (i64)in1[base0 + (i64)k * %" PRId64 "];\n"
                   "        p += p < 0 ? %" PRId64 " : 0;\n        if (p != o%d)\n"
                   "            continue;\n        const i64 u = base1 + (i64)k * %" PRId64 ";\n",
                   at->lens[axis], at->strides[axis], y->lens[axis], axis, u->strides[axis]);
    emit_combine(out, c, how);
}

// --- slabs ---

static void emit_slabs(struct mgx_str *out, const struct mgx_plan_offer *c, const struct how *how,
                       int64_t tuples)
{
    const struct mgx_shape *y = c->out, *at = &c->in[1], *u = &c->in[2];
    const int depth = (int)at->lens[at->rank - 1], outer = at->rank - 1;
    emit_start(out, c);
    mgx_str_printf(out,
                   "    for (int k = 0; k < %" PRId64 "; k++) {\n        int rest_k = k;\n"
                   "        i64 p = 0, u = 0;\n",
                   tuples);
    for (int axis = outer - 1; axis >= 0; axis--)
        mgx_str_printf(out,
                       "        const int k%d = rest_k %% %" PRId64 ";\n        rest_k /= %" PRId64
                       ";\n        p += (i64)k%d * %" PRId64 ", u += (i64)k%d * %" PRId64 ";\n",
                       axis, at->lens[axis], at->lens[axis], axis, at->strides[axis], axis,
                       u->strides[axis]);
    mgx_str_put(out, "        (void)rest_k;\n        bool here = true;\n");
    for (int d = 0; d < depth; d++)
        mgx_str_printf(out,
                       "        const i64 q%d = (i64)in1[p + %" PRId64 "];\n"
                       "        here = here && (q%d < 0 ? q%d + %" PRId64 " : q%d) == o%d;\n",
                       d, d * at->strides[outer], d, d, y->lens[d], d, d);
    mgx_str_put(out, "        if (!here)\n            continue;\n");
    for (int axis = depth; axis < y->rank; axis++)
        mgx_str_printf(out, "        u += (i64)o%d * %" PRId64 ";\n", axis,
                       u->strides[outer + axis - depth]);
    emit_combine(out, c, how);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct how *how = c->copy_only || c->dynamic ? NULL : find_how(c->ins->op);
    struct mgx_str text = {0};
    if (!how)
        return gpu_decline(c, "not a scatter");
    const struct mgx_shape *at = &c->in[1];
    const int64_t given = how->slabs ? at->rank - 1 : mgx_ins_int(c->ins, "axis");
    const int axis = (int)(given < 0 ? given + c->out->rank : given);
    const int64_t depth = at->lens[axis], all = mgx_shape_elements(at);
    const int64_t looks = !how->slabs ? depth : depth ? all / depth : INT32_MAX;
    const char *why = refuses(c, looks);
    if (why || looks >= INT32_MAX)
        return gpu_decline(c, why ? why : "too many updates");
    if (how->slabs)
        emit_slabs(&text, c, how, looks);
    else
        emit_axis(&text, c, how);
    const struct gpu_launch launch = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "an element a thread";
    return gpu_take(c, &text, &launch, NULL, 3);
}

const struct mgx_plan_kernel gpu_kernel_scatter = {
    .name = "gpu::scatter", .prepare = prepare, .run = gpu_run_call};
