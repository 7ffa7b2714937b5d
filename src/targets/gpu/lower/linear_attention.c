// SPDX-License-Identifier: MIT
// linear_attention: a state per head, step by step; its results or its last state.
//
//     S = exp(g[t]) S;  d = beta[t] (v[t] - S' k[t]) or v[t];  S = S + k[t] d';  y[t] = scale S' q[t]
//
// A block takes a head and some columns of its state, a thread a column, which it keeps in registers:
// columns do not depend on each other. What a step reads of k, q and g is the same for all threads.
// Everything is float.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/member.h"

enum { Q, K, V, STATE, DECAY, BETA, INPUTS, MOST_ROWS = 256 };

struct linear {
    struct gpu_member m;
    const struct mgx_shape *in[INPUTS]; // NULL where absent
    int at[INPUTS];                     // numbers among the kernel's arrays
    int passed[INPUTS], count;          // inputs of the offer, those that are there
};

static bool is_float(enum mgx_type type)
{
    return gpu_type_class(type) == GPU_REAL && type != MGX_DOUBLE;
}

static const char *read(const struct mgx_plan_offer *c, struct linear *l)
{
    for (int i = 0; i < l->m.in_count && i < INPUTS; i++) {
        const struct mgx_shape *s = &c->in[l->m.in[i]];
        if (mgx_shape_is_absent(s))
            continue;
        if (!is_float(s->type))
            return "values that are not summed in float";
        l->in[i] = s;
        l->at[i] = l->count;
        l->passed[l->count++] = l->m.in[i];
    }
    if (l->in[K]->lens[3] > MOST_ROWS || !mgx_shape_elements(c->out) ||
        !mgx_shape_elements(l->in[Q]) || !mgx_shape_elements(l->in[V]))
        return "a state too large for registers, or none";
    return is_float(c->out->type) ? NULL : "values that are not summed in float";
}

// "(float)in2[b * 64 + ...]" of input i at its head, step and last coordinate.
static void emit_value(struct mgx_str *out, const struct linear *l, int i, const char *head,
                       const char *step, const char *last)
{
    const struct mgx_shape *s = l->in[i];
    char array[8];
    struct mgx_str at = {0};
    mgx_str_printf(&at,
                   "(i64)b * %" PRId64 " + (i64)(%s) * %" PRId64 " + (i64)(%s) * %" PRId64
                   " + (i64)(%s) * %" PRId64,
                   s->strides[0], s->lens[1] == 1 ? "0" : head, s->strides[1], step, s->strides[2],
                   s->lens[3] == 1 ? "0" : last, s->strides[3]);
    snprintf(array, sizeof array, "in%d", l->at[i]);
    gpu_emit_load(out, s->type, array, mgx_str_text(&at));
    mgx_str_fini(&at);
}

static void emit_step(struct mgx_str *out, const struct linear *l)
{
    if (l->in[DECAY]) {
        mgx_str_put(out, "        for (int i = 0; i < DK; i++)\n            s[i] *= exp(");
        emit_value(out, l, DECAY, "h", "t", "i");
        mgx_str_put(out, ");\n");
    }
    mgx_str_put(out, "        float d = ");
    emit_value(out, l, V, "h", "t", "j");
    mgx_str_put(out, ";\n");
    if (mgx_ins_int(l->m.ins, "delta")) {
        mgx_str_put(out, "        float seen = 0;\n        for (int i = 0; i < DK; i++)\n"
                         "            seen += s[i] * ");
        emit_value(out, l, K, "h", "t", "i");
        mgx_str_put(out, ";\n        d = (d - seen) * ");
        emit_value(out, l, BETA, "h", "t", "0");
        mgx_str_put(out, ";\n");
    }
    mgx_str_put(out, "        for (int i = 0; i < DK; i++)\n            s[i] += d * ");
    emit_value(out, l, K, "h", "t", "i");
    mgx_str_put(out, ";\n");
}

// The query heads that share the state, one after the other.
static void emit_reading(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct linear *l)
{
    const struct mgx_shape *y = c->out;
    mgx_str_printf(out,
                   "        for (int r = 0; r < %" PRId64 "; r++) {\n"
                   "            const int head = h * %" PRId64 " + r;\n            float sum = 0;\n"
                   "            for (int i = 0; i < DK; i++)\n                sum += s[i] * ",
                   l->in[Q]->lens[1] / l->in[V]->lens[1], l->in[Q]->lens[1] / l->in[V]->lens[1]);
    emit_value(out, l, Q, "head", "t", "i");
    mgx_str_put(out, ";\n            sum *= ");
    gpu_emit_real(out, mgx_ins_real(l->m.ins, "scale"));
    mgx_str_printf(out,
                   ";\n            const i64 to = (i64)b * %" PRId64 " + (i64)head * %" PRId64
                   " + (i64)t * %" PRId64 " + (i64)j * %" PRId64 ";\n            ",
                   y->strides[0], y->strides[1], y->strides[2], y->strides[3]);
    gpu_emit_store(out, y->type, "out", "to", "sum");
    mgx_str_put(out, "\n        }\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct linear *l,
                 int threads)
{
    enum mgx_type types[INPUTS];
    const struct mgx_shape *y = c->out;
    for (int i = 0; i < l->count; i++)
        types[i] = c->in[l->passed[i]].type;
    mgx_str_printf(out, "#define DK %" PRId64 "\n", l->in[K]->lens[3]);
    gpu_emit_head(out, y->type, types, l->count);
    mgx_str_printf(out,
                   "{\n    const int h = BLOCK_Y, b = BLOCK_Z, j = BLOCK * %d + THREAD;\n"
                   "    float s[DK];\n    if (j >= %" PRId64 ")\n        return;\n"
                   "    for (int i = 0; i < DK; i++)\n        s[i] = ",
                   threads, l->in[V]->lens[3]);
    if (l->in[STATE])
        emit_value(out, l, STATE, "h", "i", "j");
    else
        mgx_str_put(out, "0");
    mgx_str_printf(out, ";\n    for (int t = 0; t < %" PRId64 "; t++) {\n", l->in[Q]->lens[2]);
    emit_step(out, l);
    if (l->m.which == 0)
        emit_reading(out, c, l);
    mgx_str_put(out, "    }\n");
    if (l->m.which == 1) {
        mgx_str_printf(
            out,
            "    for (int i = 0; i < DK; i++) {\n        const i64 to = (i64)b * %" PRId64
            " + (i64)h * %" PRId64 " + (i64)i * %" PRId64 " + (i64)j * %" PRId64 ";\n        ",
            y->strides[0], y->strides[1], y->strides[2], y->strides[3]);
        gpu_emit_store(out, y->type, "out", "to", "s[i]");
        mgx_str_put(out, "\n    }\n");
    }
    mgx_str_put(out, "}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct linear l = {.count = 0};
    struct mgx_str text = {0};
    if (!gpu_member_read(c, &mgx_op_linear_attention, &l.m))
        return gpu_decline(c, "not a linear attention");
    const char *why = read(c, &l);
    if (why)
        return gpu_decline(c, why);
    const int64_t columns = l.in[V]->lens[3], heads = l.in[V]->lens[1], batch = l.in[Q]->lens[0];
    const int threads = columns > 64 ? 128 : columns > 32 ? 64 : 32;
    if (heads > 65535 || batch > 65535)
        return gpu_decline(c, "larger than the grid");
    emit(&text, c, &l, threads);
    const struct gpu_launch how = {
        .grid = {(unsigned)((columns + threads - 1) / threads), (unsigned)heads, (unsigned)batch},
        .block = {(unsigned)threads, 1, 1}};
    c->detail = l.m.which == 0 ? "a column a thread" : "a column a thread, the state";
    return gpu_take(c, &text, &how, l.passed, l.count);
}

const struct mgx_plan_kernel gpu_kernel_linear_attention = {
    .name = "gpu::linear_attention", .prepare = prepare, .run = gpu_run_call};
