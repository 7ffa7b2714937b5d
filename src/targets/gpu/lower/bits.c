// SPDX-License-Identifier: MIT
// Numbers of a few bits, packed and unpacked, one element of the result a thread:
//
//     unpack_nbits        y = bits [c bits, c bits + bits) of the row's bytes, low ones first
//     pack_int4           y = x[2 i] | x[2 i + 1] << 4        unpack_int4 is its inverse
//     dequantize_blocks   y = (q - zero) * scale              of weights that no product reads as they lie
//
// Cost: a byte is read by as many threads as it has numbers, which are neighbours.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/lower.h"

static void emit_start(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    enum mgx_type in[3];
    for (int i = 0; i < c->in_count; i++)
        in[i] = c->in[i].type;
    gpu_emit_start(out, c->out, in, c->in_count);
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, struct mgx_str *text)
{
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "one element a thread";
    return gpu_take(c, text, &how, NULL, c->in_count);
}

// `    const i64 row = ...;`: where the input's line of that element begins, `axis` left out.
static void emit_row(struct mgx_str *out, const struct mgx_shape *x, int axis)
{
    mgx_str_put(out, "    const i64 row = (i64)0");
    for (int k = 0; k < x->rank; k++)
        if (k != axis)
            mgx_str_printf(out, " + (i64)o%d * %" PRId64, k, x->strides[k]);
    mgx_str_put(out, ";\n");
}

// --- numbers of one byte each ---

static enum mgx_plan_answer prepare_unpack(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int axis = x->rank - 1;
    const int64_t bits = mgx_ins_int(c->ins, "bits"), stride = x->strides[axis];
    struct mgx_str text = {0};
    emit_start(&text, c);
    emit_row(&text, x, axis);
    mgx_str_printf(&text,
                   "    const i64 bit = (i64)o%d * %" PRId64 ", at = bit / 8;\n"
                   "    const u32 low = in0[row + at * %" PRId64 "];\n"
                   "    const u32 high = at + 1 < %" PRId64 " ? in0[row + (at + 1) * %" PRId64
                   "] : 0;\n"
                   "    out[at0] = (u8)((low | high << 8) >> (int)(bit %% 8) & %uu);\n}\n",
                   axis, bits, stride, x->lens[axis], stride, (1u << bits) - 1);
    return take(c, &text);
}

// --- halves of a byte ---

static int axis_of(const struct mgx_plan_offer *c)
{
    const int64_t given = mgx_ins_int(c->ins, "axis");
    return (int)(given < 0 ? given + c->out->rank : given);
}

// What is beyond four bits becomes the nearest of those.
static enum mgx_plan_answer prepare_pack4(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int axis = axis_of(c), low = x->type == MGX_INT8 ? -8 : 0;
    struct mgx_str text = {0};
    emit_start(&text, c);
    emit_row(&text, x, axis);
    for (int i = 0; i < 2; i++)
        mgx_str_printf(&text,
                       "    int x%d = in0[row + ((i64)o%d * 2 + %d) * %" PRId64 "];\n"
                       "    x%d = x%d < %d ? %d : x%d > %d ? %d : x%d;\n",
                       i, axis, i, x->strides[axis], i, i, low, low, i, low + 15, low + 15, i);
    mgx_str_printf(&text, "    out[at0] = (%s)((x0 & 15) | (x1 & 15) << 4);\n}\n",
                   gpu_type_memory(c->out->type));
    return take(c, &text);
}

static enum mgx_plan_answer prepare_unpack4(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int axis = axis_of(c);
    struct mgx_str text = {0};
    emit_start(&text, c);
    emit_row(&text, x, axis);
    mgx_str_printf(&text,
                   "    const int x = in0[row + (i64)(o%d / 2) * %" PRId64
                   "] >> o%d %% 2 * 4 & 15;\n    out[at0] = (%s)(%s);\n}\n",
                   axis, x->strides[axis], axis, gpu_type_memory(c->out->type),
                   x->type == MGX_INT8 ? "(x ^ 8) - 8" : "x");
    return take(c, &text);
}

// --- blocks with scales ---

// `    const float <name> = ...;`: what input i has for the block.
static void emit_part(struct mgx_str *out, const struct mgx_plan_offer *c, const char *name, int i)
{
    const int64_t *strides = c->in[i].strides;
    char array[8], at[80];
    snprintf(array, sizeof array, "in%d", i);
    snprintf(at, sizeof at, "(i64)o0 * %" PRId64 " + block * %" PRId64, strides[0], strides[1]);
    mgx_str_printf(out, "    const float %s = (float)", name);
    gpu_emit_load(out, c->in[i].type, array, at);
    mgx_str_put(out, ";\n");
}

static enum mgx_plan_answer prepare_blocks(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const int bits = (int)mgx_ins_int(c->ins, "bits"), per = 8 / bits;
    const int64_t block = x->lens[2] * per;
    struct mgx_str text = {0};
    if (c->in[1].type == MGX_DOUBLE)
        return gpu_decline(c, "scales that a float does not hold");
    emit_start(&text, c);
    mgx_str_printf(&text,
                   "    const i64 block = o1 / %" PRId64 ", k = o1 %% %" PRId64 ";\n"
                   "    const int q = in0[(i64)o0 * %" PRId64 " + block * %" PRId64
                   " + k / %d * %" PRId64 "] >> (int)(k %% %d) * %d & %d;\n",
                   block, block, x->strides[0], x->strides[1], per, x->strides[2], per, bits,
                   (1 << bits) - 1);
    emit_part(&text, c, "scale", 1);
    if (c->in_count > 2)
        emit_part(&text, c, "zero", 2);
    else
        mgx_str_printf(&text, "    const float zero = %d;\n", 1 << (bits - 1));
    mgx_str_put(&text, "    ");
    gpu_emit_store(&text, c->out->type, "out", "at0", "((float)q - zero) * scale");
    mgx_str_put(&text, "\n}\n");
    return take(c, &text);
}

// --- the kernel ---

static const struct {
    const struct mgx_op *op;
    enum mgx_plan_answer (*prepare)(struct mgx_plan_offer *c);
} forms[] = {
    {&mgx_op_unpack_nbits, prepare_unpack},
    {&mgx_op_pack_int4, prepare_pack4},
    {&mgx_op_unpack_int4, prepare_unpack4},
    {&mgx_op_dequantize_blocks, prepare_blocks},
};

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !c->copy_only && !c->dynamic; i++)
        if (forms[i].op == c->ins->op && mgx_shape_elements(c->out) <= INT32_MAX)
            return forms[i].prepare(c);
    return gpu_decline(c, "no numbers of a few bits");
}

const struct mgx_plan_kernel gpu_kernel_bits = {
    .name = "gpu::bits", .prepare = prepare, .run = gpu_run_call};
