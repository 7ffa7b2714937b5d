// SPDX-License-Identifier: MIT
// argmax, argmin and the running sums and products: a block of threads takes a lane.
//
//     argmax   every thread finds the best of its elements (each 128th), then halves of the block
//              compare theirs; a NaN beats all, of equals the first (or the last) stays
//     scan     every thread folds a run of neighbours, the runs' results are folded in order, and
//              every thread goes through its run again from what came before it
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

enum { LANE_THREADS = 128 };

// "KERNEL void run(...)" down to `from` and `to`, where the block's lane begins.
static void emit_lane(struct mgx_str *out, const struct mgx_plan_offer *c, int axis)
{
    struct mgx_shape lanes = *c->out;
    lanes.lens[axis] = 1;
    gpu_emit_head(out, c->out->type, &c->in[0].type, 1);
    mgx_str_put(out, "{\n    const int i = BLOCK;\n");
    gpu_emit_place(out, &lanes);
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, &c->in[0], 0, axis, "o");
    mgx_str_put(out, " + ");
    gpu_emit_sum(out, &c->in[0], axis + 1, c->in[0].rank, "o");
    mgx_str_put(out, ";\n");
}

static const char *refuses(const struct mgx_plan_offer *c, int64_t length)
{
    const enum mgx_type type = c->in[0].type;
    if (gpu_type_class(type) == GPU_NONE || (type == MGX_DOUBLE && !gpu_has_double(c)))
        return "a type that kernels do not compute";
    if (length <= 0 || length >= INT32_MAX || mgx_shape_elements(&c->in[0]) / length >= INT32_MAX)
        return "lanes that are empty, or too many";
    return NULL;
}

static enum mgx_plan_answer take_scan(struct mgx_plan_offer *c, struct mgx_str *text,
                                      int64_t length)
{
    const struct gpu_launch how = {
        .grid = {(unsigned)(mgx_shape_elements(&c->in[0]) / length), 1, 1},
        .block = {LANE_THREADS, 1, 1}};
    c->detail = "a block a lane";
    return gpu_take(c, text, &how, NULL, 1);
}

// --- argmax ---

static void emit_argmax(struct mgx_str *out, const struct mgx_plan_offer *c, int axis, int64_t n)
{
    const enum mgx_type type = c->in[0].type;
    const char *value = gpu_type_value(type);
    const bool last = mgx_ins_int(c->ins, "select_last_index") != 0;
    mgx_str_printf(out,
                   "FUNCTION bool wins(%s x, int p, %s y, int q)\n{\n"
                   "    if (q < 0 || p < 0)\n        return p >= 0;\n"
                   "    if (x != x || y != y)\n"
                   "        return x != x && (y == y || p %c q);\n"
                   "    return x %c y || (x == y && p %c q);\n}\n\n",
                   value, value, last ? '>' : '<', c->ins->op == &mgx_op_argmax ? '>' : '<',
                   last ? '>' : '<');
    emit_lane(out, c, axis);
    mgx_str_printf(out,
                   "    SHARED %s part[%d];\n    SHARED int place[%d];\n    %s best = 0;\n"
                   "    int at = -1;\n    for (int j = THREAD; j < %" PRId64 "; j += THREADS) {\n"
                   "        const %s x = ",
                   value, LANE_THREADS, LANE_THREADS, value, n, value);
    struct mgx_str where = {0};
    mgx_str_printf(&where, "from + (i64)j * %" PRId64, c->in[0].strides[axis]);
    gpu_emit_load(out, type, "in0", mgx_str_text(&where));
    mgx_str_fini(&where);
    mgx_str_printf(out,
                   ";\n        if (wins(x, j, best, at))\n            best = x, at = j;\n    }\n"
                   "    part[THREAD] = best;\n    place[THREAD] = at;\n"
                   "    for (int s = %d; s > 0; s /= 2) {\n        BARRIER();\n"
                   "        if (THREAD < s && wins(part[THREAD + s], place[THREAD + s], "
                   "part[THREAD], place[THREAD])) {\n"
                   "            part[THREAD] = part[THREAD + s];\n"
                   "            place[THREAD] = place[THREAD + s];\n        }\n    }\n"
                   "    if (THREAD == 0)\n        out[at0] = (i64)place[0];\n}\n",
                   LANE_THREADS / 2);
}

// --- scans ---

static void emit_run(struct mgx_str *out, const struct mgx_plan_offer *c, int axis, int64_t n,
                     bool stores)
{
    const enum mgx_type type = c->in[0].type;
    const bool reverse = mgx_ins_int(c->ins, "reverse") != 0;
    const bool exclusive = mgx_ins_int(c->ins, "exclusive") != 0;
    const bool product = c->ins->op == &mgx_op_prefix_scan_prod;
    struct mgx_str from = {0}, to = {0};
    mgx_str_printf(&from, "from + (i64)j * %" PRId64, c->in[0].strides[axis]);
    mgx_str_printf(&to, "at0 + (i64)j * %" PRId64, c->out->strides[axis]);
    mgx_str_printf(out, "    for (int k = first; k < end; k++) {\n        const int j = ");
    if (reverse)
        mgx_str_printf(out, "%" PRId64 " - k;\n", n - 1);
    else
        mgx_str_put(out, "k;\n");
    mgx_str_printf(out, "        const %s x = ", gpu_type_value(type));
    gpu_emit_load(out, type, "in0", mgx_str_text(&from));
    mgx_str_put(out, ";\n");
    if (stores && exclusive) {
        mgx_str_put(out, "        ");
        gpu_emit_store(out, type, "out", mgx_str_text(&to), "run");
        mgx_str_put(out, "\n");
    }
    mgx_str_printf(out, "        run = run %c x;\n", product ? '*' : '+');
    if (stores && !exclusive) {
        mgx_str_put(out, "        ");
        gpu_emit_store(out, type, "out", mgx_str_text(&to), "run");
        mgx_str_put(out, "\n");
    }
    mgx_str_put(out, "    }\n");
    mgx_str_fini(&from);
    mgx_str_fini(&to);
}

static void emit_scan(struct mgx_str *out, const struct mgx_plan_offer *c, int axis, int64_t n)
{
    const char *value = gpu_type_value(c->in[0].type);
    const bool product = c->ins->op == &mgx_op_prefix_scan_prod;
    const int64_t share = (n + LANE_THREADS - 1) / LANE_THREADS;
    emit_lane(out, c, axis);
    mgx_str_printf(out,
                   "    SHARED %s part[%d];\n    const int first = THREAD * %" PRId64
                   ", behind = first + %" PRId64 ", end = behind < %" PRId64 " ? behind : %" PRId64
                   ";\n    %s run = %d;\n",
                   value, LANE_THREADS, share, share, n, n, value, product);
    emit_run(out, c, axis, n, false);
    mgx_str_printf(out,
                   "    part[THREAD] = run;\n    BARRIER();\n    run = %d;\n"
                   "    for (int s = 0; s < THREAD; s++)\n        run = run %c part[s];\n",
                   product, product ? '*' : '+');
    emit_run(out, c, axis, n, true);
    mgx_str_put(out, "}\n");
}

// --- the kernel ---

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct mgx_op *op = c->copy_only || c->dynamic ? NULL : c->ins->op;
    const bool finds = op == &mgx_op_argmax || op == &mgx_op_argmin;
    if (!finds && op != &mgx_op_prefix_scan_sum && op != &mgx_op_prefix_scan_prod)
        return gpu_decline(c, "not a scan");
    const int64_t given = mgx_ins_int(c->ins, "axis");
    const int axis = (int)(given < 0 ? given + c->in[0].rank : given);
    const int64_t n = c->in[0].lens[axis];
    const char *why = refuses(c, n);
    struct mgx_str text = {0};
    if (why)
        return gpu_decline(c, why);
    if (finds)
        emit_argmax(&text, c, axis, n);
    else
        emit_scan(&text, c, axis, n);
    return take_scan(c, &text, n);
}

const struct mgx_plan_kernel gpu_kernel_scan = {
    .name = "gpu::scan", .prepare = prepare, .run = gpu_run_call};
