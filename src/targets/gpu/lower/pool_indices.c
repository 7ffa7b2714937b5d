// SPDX-License-Identifier: MIT
// max_pool_indices: the maxima of windows or where they are, one window a thread.
//
//     out = largest in0[n, c, o * stride - begin + tap * dilation], or its place in the whole of in0
//
// Taps go in row-major order and the first of equal values counts, NaN above all, as the reference has
// it. A window that sees only padding gives the lowest value and place -1.
#include <inttypes.h>

#include "op/op.h"
#include "op/reference/pool.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/member.h"

static void read_windows(const struct gpu_member *m, const struct mgx_shape *in,
                         const struct mgx_shape *out, struct mgx_pool_walk *w)
{
    const struct mgx_pool_attr a = mgx_pool_of(m->ins);
    mgx_pool_walk_init(w, &a, in, out);
}

static void emit_taps(struct mgx_str *out, const struct mgx_shape *x, const struct mgx_pool_walk *w)
{
    for (int k = 0; k < w->rank; k++) {
        const struct mgx_window *a = &w->axis[k];
        mgx_str_printf(
            out,
            "    for (int t%d = 0; t%d < %" PRId64 "; t%d++) {\n"
            "    const i64 x%d = (i64)o%d * %" PRId64 " - %" PRId64 " + (i64)t%d * %" PRId64
            ";\n    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n",
            k, k, a->kernel, k, k, k + 2, a->stride, a->begin, k, a->dilation, k, k, a->in);
    }
    mgx_str_printf(out, "    const i64 from = (i64)o0 * %" PRId64 " + (i64)o1 * %" PRId64,
                   x->strides[0], x->strides[1]);
    for (int k = 0; k < w->rank; k++)
        mgx_str_printf(out, " + x%d * %" PRId64, k, x->strides[k + 2]);
    mgx_str_put(out, ";\n");
}

// The tap's place in its plane, the last axis fastest, or the first one.
static void emit_place(struct mgx_str *out, const struct mgx_pool_walk *w, bool reversed)
{
    mgx_str_put(out, "        place = 0;\n");
    for (int i = 0; i < w->rank; i++) {
        const int k = reversed ? w->rank - 1 - i : i;
        mgx_str_printf(out, "        place = place * %" PRId64 " + x%d;\n", w->axis[k].in, k);
    }
}

static void emit_lowest(struct mgx_str *out, enum mgx_type type)
{
    if (gpu_type_class(type) == GPU_REAL && type != MGX_DOUBLE)
        gpu_emit_real(out, mgx_type_lowest(type));
    else if (type == MGX_DOUBLE)
        mgx_str_printf(out, "%.17e", mgx_type_lowest(type));
    else if (type == MGX_INT64)
        mgx_str_put(out, "(i64)((u64)1 << 63)");
    else
        mgx_str_printf(out, "%" PRId64, (int64_t)mgx_type_lowest(type));
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct gpu_member *m)
{
    const struct mgx_shape *x = &c->in[m->in[0]];
    struct mgx_pool_walk w;
    read_windows(m, x, c->out, &w);
    gpu_emit_start(out, c->out, &x->type, 1);
    mgx_str_printf(out, "    %s best = ", gpu_type_value(x->type));
    emit_lowest(out, x->type);
    mgx_str_put(out, ";\n    i64 place = -1;\n    bool seen = false;\n");
    emit_taps(out, x, &w);
    mgx_str_printf(out, "    const %s y = ", gpu_type_value(x->type));
    gpu_emit_load(out, x->type, "in0", "from");
    mgx_str_put(out, ";\n    if (!seen || y > best || (y != y && best == best)) {\n"
                     "        best = y;\n        seen = true;\n");
    emit_place(out, &w, mgx_ins_int(m->ins, "storage_order") != 0);
    for (int k = 0; k <= w.rank; k++)
        mgx_str_put(out, "    }\n");
    mgx_str_put(out, "    (void)place;\n    ");
    if (m->which == 0)
        gpu_emit_store(out, x->type, "out", "at0", "best");
    else
        mgx_str_printf(out,
                       "out[at0] = seen ? place + ((i64)o0 * %" PRId64 " + o1) * %" PRId64 " : -1;",
                       x->lens[1], w.plane);
    mgx_str_put(out, "\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_member m;
    struct mgx_str text = {0};
    if (!gpu_member_read(c, &mgx_op_max_pool_indices, &m))
        return gpu_decline(c, "no maxima whose places are asked for");
    if (!gpu_computes(c, c->in[m.in[0]].type) || !mgx_shape_elements(c->out))
        return gpu_decline(c, "a type that kernels do not compute, or nothing to fold");
    emit(&text, c, &m);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "one window a thread";
    return gpu_take(c, &text, &how, m.in, 1);
}

const struct mgx_plan_kernel gpu_kernel_pool_indices = {
    .name = "gpu::pool_indices", .prepare = prepare, .run = gpu_run_call};
