// SPDX-License-Identifier: MIT
// max_unpool: values go where in1 says, zero elsewhere. Of several that go to one place the last one
// counts, as the reference has it, whatever the order of threads:
//
//     run0   owner[o] = -1
//     run1   owner[place(in1[i])] = max(itself, i)
//     run2   out[o] = owner[o] < 0 ? 0 : in0[owner[o]]
//
// A place outside of the plain result is nobody's: the host, which could complain, does not see it.
#include <inttypes.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/chain.h"

// Lengths of the plain result (op/max_unpool.c), in which places count.
static void plain_lens(const struct mgx_plan_offer *c, int64_t *lens)
{
    const struct mgx_shape *x = &c->in[0];
    const int spatial = x->rank - 2;
    const struct mgx_window_attr a = mgx_window_of(c->ins);
    lens[0] = x->lens[0], lens[1] = x->lens[1];
    for (int i = 0; i < spatial; i++)
        lens[i + 2] = (x->lens[i + 2] - 1) * a.stride.v[i] + mgx_ins_ints(c->ins, "lengths").v[i] -
                      a.padding.v[i] - a.padding.v[a.padding.count == spatial ? i : spatial + i];
}

// Element `i` of a row-major array of the input's lengths, as coordinates e0, e1, ...
static void emit_coordinates(struct mgx_str *out, const int64_t *lens, int rank, const char *of,
                             const char *prefix)
{
    mgx_str_printf(out, "    i64 rest_%s = %s;\n", prefix, of);
    for (int k = rank - 1; k >= 0; k--)
        mgx_str_printf(
            out, "    const i64 %s%d = rest_%s %% %" PRId64 ";\n    rest_%s /= %" PRId64 ";\n",
            prefix, k, prefix, lens[k], prefix, lens[k]);
}

static void emit_guard(struct mgx_str *out, int64_t count)
{
    mgx_str_printf(out,
                   "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n"
                   "    GLOBAL i32 *owner = (GLOBAL i32 *)work;\n    if (i >= %" PRId64
                   ")\n        return;\n",
                   count);
}

static void emit_claim(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    int64_t plain[MGX_MAX_RANK], all = 1;
    plain_lens(c, plain);
    for (int k = 0; k < x->rank; k++)
        all *= plain[k];
    emit_guard(out, mgx_shape_elements(x));
    emit_coordinates(out, x->lens, x->rank, "i", "e");
    mgx_str_put(out, "    const i64 place = (i64)in1[");
    gpu_emit_sum(out, &c->in[1], 0, x->rank, "e");
    mgx_str_printf(out, "];\n    if (place < 0 || place >= %" PRId64 ")\n        return;\n", all);
    emit_coordinates(out, plain, x->rank, "place", "p");
    mgx_str_put(out, "    i64 to = 0;\n");
    for (int k = 0; k < x->rank; k++)
        mgx_str_printf(out, "    to = to * %" PRId64 " + p%d;\n", c->out->lens[k], k);
    mgx_str_put(out, "    ATOMIC_MAX(owner + to, (i32)i);\n}\n\n");
}

static void emit_put(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    emit_guard(out, mgx_shape_elements(c->out));
    emit_coordinates(out, c->out->lens, x->rank, "i", "o");
    mgx_str_put(out, "    const i64 from = owner[i];\n");
    emit_coordinates(out, x->lens, x->rank, "(from < 0 ? 0 : from)", "e");
    mgx_str_put(out, "    out[");
    gpu_emit_sum(out, c->out, 0, x->rank, "o");
    mgx_str_put(out, "] = from < 0 ? 0 : in0[");
    gpu_emit_sum(out, x, 0, x->rank, "e");
    mgx_str_put(out, "];\n}\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const enum mgx_type types[] = {c->in[0].type, c->in[1].type};
    gpu_emit_chain_head(out, 0, c->out->type, types, 2);
    emit_guard(out, mgx_shape_elements(c->out));
    mgx_str_put(out, "    owner[i] = -1;\n}\n\n");
    gpu_emit_chain_head(out, 1, c->out->type, types, 2);
    emit_claim(out, c);
    gpu_emit_chain_head(out, 2, c->out->type, types, 2);
    emit_put(out, c);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_max_unpool)
        return gpu_decline(c, "no maxima to put back");
    const int64_t elements = mgx_shape_elements(c->out), from = mgx_shape_elements(&c->in[0]);
    const enum gpu_class class = gpu_type_class(c->in[1].type);
    if (!gpu_computes(c, c->out->type) || (class != GPU_SIGNED && class != GPU_UNSIGNED))
        return gpu_decline(c, "a type that kernels do not compute");
    if (!elements || !from || from > INT32_MAX || elements > INT32_MAX)
        return gpu_decline(c, "nothing to put, or too much");
    emit(&text, c);
    const struct gpu_launch how[] = {gpu_launch_for(elements), gpu_launch_for(from),
                                     gpu_launch_for(elements)};
    c->skip_in[c->in_count - 1] = c->in_count == 3; // lengths, which the shape has
    c->workspace = (size_t)elements * sizeof(int32_t);
    c->detail = "an owner for every element";
    return gpu_take_chain(c, &text, how, 3, NULL, 2);
}

const struct mgx_plan_kernel gpu_kernel_max_unpool = {
    .name = "gpu::max_unpool", .prepare = prepare, .run = gpu_run_chain, .more = &gpu_chain_family};
