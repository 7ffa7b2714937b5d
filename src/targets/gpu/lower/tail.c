// SPDX-License-Identifier: MIT
// Pairs of an instruction and its reader; tail.h says more.
#include "targets/gpu/lower/tail.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/product.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"

bool gpu_body_around(const struct mgx_ins *last, const struct mgx_ins *ins, int most, int *extra,
                     int *extra_count, int *place)
{
    assert(*extra_count >= 0 && *extra_count <= most);
    *place = -1;
    for (int i = 0; i < last->in_count; i++) {
        const bool own = last->in[i] == ins;
        const int input = own ? 0 : mgx_parameter_index(last->in[i]);
        if ((own && *place >= 0) || input < 0 || *extra_count >= most)
            return false;
        if (own)
            *place = i;
        else
            extra[(*extra_count)++] = input;
    }
    return *place >= 0;
}

bool gpu_tail_read(const struct mgx_plan_offer *c, const struct mgx_op *op, struct gpu_tail *t)
{
    struct mgx_product_roles roles;
    memset(t, 0, sizeof *t);
    if (c->copy_only || c->dynamic || !mgx_read_product(c->ins, &roles) ||
        roles.product->op != op || roles.product->in_count > GPU_TAIL_OPERANDS || roles.factor ||
        roles.make || (roles.body && !roles.end))
        return false;
    t->ins = roles.product;
    t->last = roles.end;
    t->pad = roles.pad;
    for (int i = 0; i < t->ins->in_count; i++)
        if ((t->operand[i] = mgx_product_operand(&roles, i)) < 0)
            return false;
    if (t->last && !gpu_body_around(t->last, t->ins, GPU_CALL_INPUTS - GPU_TAIL_OPERANDS, t->extra,
                                    &t->extra_count, &t->place))
        return false;
    t->real = t->last && t->ins->shape.type == MGX_INT32 ? gpu_real_operands(t->last, t->place) : 0;
    return true;
}

struct mgx_window_attr gpu_tail_window(struct gpu_tail *t)
{
    assert(t->ins && t->ins->shape.rank > 2);
    struct mgx_window_attr own = mgx_window_of(t->ins);
    if (!t->pad)
        return own;
    const struct mgx_ints pads = mgx_ins_ints(t->pad, "pads");
    const int rank = t->ins->shape.rank, spatial = rank - 2;
    for (int i = 0; i < spatial; i++) {
        t->padding[i] = pads.v[i + 2];
        t->padding[i + spatial] = pads.v[i + 2 + rank];
    }
    own.padding = (struct mgx_ints){t->padding, 2 * spatial};
    return own;
}

int gpu_tail_beside(const struct gpu_tail *t)
{
    return t->pad ? (int)mgx_attr_real(t->pad->op, t->pad->attr, "value") : 0;
}

const char *gpu_emit_tail_body(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_tail *t)
{
    if (gpu_type_class(c->out->type) == GPU_NONE)
        return "a type that kernels do not compute";
    for (int e = 0; e < t->extra_count; e++)
        if (!mgx_shape_same_lens(&c->in[t->extra[e]], c->out) ||
            gpu_type_class(c->in[t->extra[e]].type) == GPU_NONE)
            return "an operand of other lengths, or of a type that kernels do not compute";
    if (!t->last)
        return NULL;
    if (t->last->op == &mgx_op_pointwise && mgx_module_result_count(t->last->mod[0]) != 1)
        return "several results";
    return gpu_emit_bodies(out, c, t->last, NULL, t->real);
}

void gpu_emit_tail_head(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_tail *t)
{
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out", gpu_type_memory(c->out->type));
    for (int i = 0; i < t->ins->in_count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[t->operand[i]].type),
                       i);
    for (int e = 0; e < t->extra_count; e++)
        mgx_str_printf(out, ", const GLOBAL %s *e%d", gpu_type_memory(c->in[t->extra[e]].type), e);
    mgx_str_put(out, ")\n");
}

static const struct mgx_ins *parameter(const struct mgx_module *body, int number)
{
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_param && mgx_parameter_index(ins) == number)
            return ins;
    return NULL;
}

bool gpu_takes_off(const struct mgx_ins *last, int place, int input)
{
    if (last->op == &mgx_op_sub)
        return place == 0 && input == 1;
    if (last->op != &mgx_op_pointwise)
        return false;
    const struct mgx_ins *product = parameter(last->mod[0], place);
    const struct mgx_ins *sum = parameter(last->mod[0], input);
    if (!product || !sum || !mgx_used_once(sum) || !mgx_used_once(product))
        return false;
    const struct mgx_ins *user = sum->uses->user;
    return user->op == &mgx_op_sub && user->in[0] == product && user->in[1] == sum;
}

bool gpu_tail_is_number(const struct mgx_plan_offer *c, const struct gpu_tail *t, int e)
{
    return t->off != e + 1 && gpu_is_number(&c->in[t->extra[e]]);
}

static void emit_operands(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct gpu_tail *t, int axis)
{
    const int count = t->last ? t->last->in_count : 1;
    for (int i = 0, e = 0; i < count; i++) {
        if (i == t->place || !t->last) {
            mgx_str_printf(out, "    const %s v%d = sum[k];\n",
                           t->real >> i & 1 ? "float" : gpu_type_value(t->ins->shape.type), i);
            continue;
        }
        const struct mgx_shape *s = &c->in[t->extra[e]];
        char at[64], array[16];
        if (t->off == e + 1) {
            mgx_str_printf(out, "    const %s v%d = 0;\n", gpu_type_value(s->type), i);
            e++;
            continue;
        }
        if (t->near && gpu_tail_is_number(c, t, e)) {
            const char *type = t->real >> i & 1 ? "float" : gpu_type_value(s->type);
            mgx_str_printf(out, "    const %s v%d = e%d;\n", type, i, e);
            e++;
            continue;
        }
        snprintf(at, sizeof at, "ea%d + k * %" PRId64, e, s->lens[axis] > 1 ? s->strides[axis] : 0);
        snprintf(array, sizeof array, "e%d", e++);
        mgx_str_printf(
            out, "    const %s v%d = ", t->real >> i & 1 ? "float" : gpu_type_value(s->type), i);
        gpu_emit_load(out, s->type, array, at);
        mgx_str_put(out, ";\n");
    }
}

void gpu_emit_tail(struct mgx_str *out, const struct mgx_plan_offer *c, const struct gpu_tail *t,
                   int axis, int v)
{
    assert(v > 0 && axis >= 0 && axis < c->out->rank);
    for (int e = 0; e < t->extra_count; e++) {
        const struct mgx_shape *s = &c->in[t->extra[e]];
        mgx_str_printf(out, "    const i64 ea%d = ", e);
        gpu_emit_sum(out, s, 0, s->rank, "o");
        mgx_str_put(out, ";\n");
    }
    const struct gpu_chunk chunk = {"c", gpu_type_memory(c->out->type), v,
                                    (int)mgx_type_size(c->out->type)};
    gpu_emit_chunk(out, &chunk);
    mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n", v);
    emit_operands(out, c, t, axis);
    if (t->last)
        gpu_emit_body_call(out, c->out->type, t->last->in_count);
    mgx_str_put(out, "    c.v[k] = ");
    gpu_emit_narrowed(out, c->out->type, t->last ? "y" : "v0");
    mgx_str_put(
        out, t->ranged
                 ? ";\n    *low = lower(*low, c.v[k]);\n    *high = higher(*high, c.v[k]);\n    }\n"
                 : ";\n    }\n");
    mgx_str_put(out, t->alone ? "    if (!out)\n        return;\n" : "");
    if (t->apart)
        mgx_str_printf(out, "    for (int k = 0; k < %d; k++)\n        out[at0 + k] = c.v[k];\n",
                       v);
    else
        gpu_emit_chunk_store(out, &chunk, "out", "at0");
}

int gpu_tail_inputs(const struct gpu_tail *t, int *in)
{
    assert(t->ins->in_count <= GPU_TAIL_OPERANDS);
    int count = 0;
    for (int i = 0; i < t->ins->in_count; i++)
        in[count++] = t->operand[i];
    for (int e = 0; e < t->extra_count; e++)
        in[count++] = t->extra[e];
    return count;
}
