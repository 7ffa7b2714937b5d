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
#include "targets/gpu/kernel/text.h"
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

// `name`, a value of input i at its head, step and last coordinate; `none` where there is no such input.
static void define_value(struct mgx_str *out, const struct linear *l, int i, const char *name,
                         const char *none)
{
    const struct mgx_shape *s = l->in[i];
    char array[8], load[16];
    if (!s) {
        mgx_str_printf(out, "#define %s_OF(head, step, last) %s\n", name, none);
        return;
    }
    snprintf(array, sizeof array, "in%d", l->at[i]);
    snprintf(load, sizeof load, "LOAD_%s", name);
    gpu_define_load(out, NULL, load, s->type, array);
    mgx_str_printf(out,
                   "#define %s_OF(head, step, last) %s((i64)b * %" PRId64 " + (i64)(%s) * %" PRId64
                   " + (i64)(step) * %" PRId64 " + (i64)(%s) * %" PRId64 ")\n",
                   name, load, s->strides[0], s->lens[1] == 1 ? "0" : "head", s->strides[1],
                   s->strides[2], s->lens[3] == 1 ? "0" : "last", s->strides[3]);
}

static void define_result(struct mgx_str *out, const struct mgx_shape *y)
{
    mgx_str_printf(out, "#define C_TYPE %s\n#define PUT(at, x) ", gpu_type_memory(y->type));
    gpu_emit_store(out, y->type, "out", "at", "x");
    mgx_str_put(out, "\n");
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "C_STEP%d", i);
        gpu_define(out, name, y->strides[i]);
    }
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct linear *l,
                 int threads)
{
    gpu_define(out, "DK", l->in[K]->lens[3]);
    gpu_define(out, "DV", l->in[V]->lens[3]);
    gpu_define(out, "STEPS", l->in[Q]->lens[2]);
    gpu_define(out, "SHARED_BY", l->in[Q]->lens[1] / l->in[V]->lens[1]);
    gpu_define(out, "COLUMNS", threads);
    gpu_define(out, "DECAYS", l->in[DECAY] != NULL);
    gpu_define(out, "DELTA", mgx_ins_int(l->m.ins, "delta") != 0);
    gpu_define(out, "STATES", l->m.which == 1);
    gpu_define_real(out, "SCALE", mgx_ins_real(l->m.ins, "scale"));
    define_value(out, l, Q, "Q", NULL);
    define_value(out, l, K, "K", NULL);
    define_value(out, l, V, "V", NULL);
    define_value(out, l, STATE, "STATE", "0");
    define_value(out, l, DECAY, "DECAY", "0.0f");
    define_value(out, l, BETA, "BETA", "0.0f");
    define_result(out, c->out);
    mgx_str_put(out, "#define PARAMS");
    for (int i = 0; i < l->count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[l->passed[i]].type),
                       i);
    mgx_str_put(out, "\n");
    GPU_PUT(out, linear_attention);
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
