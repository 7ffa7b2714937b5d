// SPDX-License-Identifier: MIT
// A product as it is offered: what is multiplied, what makes its image, what reads it, its sizes.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/product.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/product.h"
#include "targets/gpu/lower/tail.h"

// --- what is offered ---

static bool is_dot(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_dot || ins->op == &mgx_op_quant_dot;
}

static bool is_product(const struct mgx_ins *ins)
{
    return is_dot(ins) || ins->op == &mgx_op_convolution || ins->op == &mgx_op_quant_convolution;
}

static const char *read_offer(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    struct mgx_product_roles roles;
    memset(p, 0, sizeof *p);
    if (c->copy_only || c->dynamic || !mgx_read_product(c->ins, &roles) ||
        !is_product(roles.product))
        return "not a product";
    p->has_zeros = roles.product->in_count > 2;
    p->ins = roles.product;
    p->tail = roles.end;
    p->make = roles.make;
    p->pad = roles.pad;
    for (int i = 0; i < 2; i++)
        p->operand[i] = mgx_product_operand(&roles, i);
    const bool good = p->operand[0] >= 0 && p->operand[1] >= 0 && !roles.factor &&
                      (!p->make || !is_dot(p->ins)) &&
                      (!p->tail || gpu_body_around(p->tail, p->ins, GPU_CALL_INPUTS - 3, p->extra,
                                                   &p->extra_count, &p->place));
    return good ? NULL : "a group that is not product and element-wise tail";
}

enum mgx_type gpu_product_sum(const struct gpu_product *p)
{
    const enum mgx_type type = p->ins->shape.type;
    if (gpu_type_class(type) != GPU_REAL)
        return gpu_product_is_bytes(p) ? MGX_INT32 : MGX_INT64;
    return type == MGX_DOUBLE ? MGX_DOUBLE : MGX_FLOAT;
}

bool gpu_product_is_bytes(const struct gpu_product *p)
{
    return p->ins->shape.type == MGX_INT32 && mgx_type_is_byte(p->ins->in[0]->shape.type) &&
           mgx_type_is_byte(p->ins->in[1]->shape.type);
}

bool gpu_product_is_fp8(const struct gpu_product *p)
{
    return mgx_type_is_fp8(p->ins->in[0]->shape.type) && mgx_type_is_fp8(p->ins->in[1]->shape.type);
}

bool gpu_product_is_dot(const struct gpu_product *p)
{
    return is_dot(p->ins);
}

int64_t gpu_product_before(const struct gpu_product *p, int i)
{
    assert(!gpu_product_is_dot(p));
    const int64_t own = mgx_ins_ints(p->ins, "padding").v[i];
    return p->pad ? own + mgx_ins_ints(p->pad, "pads").v[i + 2] : own;
}

int gpu_product_beside(const struct gpu_product *p)
{
    return p->pad ? (int)mgx_attr_real(p->pad->op, p->pad->attr, "value") : 0;
}

bool gpu_product_is_float(const struct gpu_product *p)
{
    return gpu_product_sum(p) == MGX_FLOAT;
}

// --- sizes ---

static void size_dot(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    const struct mgx_shape *a = &c->in[p->operand[0]], *out = c->out;
    const int rank = out->rank;
    p->rows = out->lens[rank - 2];
    p->columns = out->lens[rank - 1];
    p->depth = a->lens[rank - 1];
    p->batches = 1;
    for (int i = 0; i < rank - 2; i++)
        p->batches *= out->lens[i];
}

static void size_convolution(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    const struct mgx_shape *w = &c->in[p->operand[1]], *out = c->out;
    p->batches = mgx_ins_int(p->ins, "group");
    p->columns = out->lens[1] / p->batches;
    p->rows = out->lens[0];
    p->depth = 1;
    for (int i = 2; i < out->rank; i++)
        p->rows *= out->lens[i];
    for (int i = 1; i < w->rank; i++)
        p->depth *= w->lens[i];
}

// --- groups ---
//
//              channels of some groups    Groups are narrow, tiles are not: the columns of some groups read
//              g0 | g1 | g2 | g3          all their channels, and weights are zero where a column is not of
//     columns  w0 |  0 |  0 |  0          the channel's group.
//     of g0
//     of g1     0 | w1 |  0 |  0

int64_t gpu_product_channels(const struct mgx_plan_offer *c, const struct gpu_product *p)
{
    return c->in[p->operand[1]].lens[1] * (p->together ? p->together : 1);
}

// `rest`: the last ones may be fewer.
static int gather(const struct gpu_product *p, int64_t channels, int64_t block, int64_t line,
                  bool rest)
{
    enum {
        NARROW = 32,
        WIDE = 64,
        MOST = 256,
        LINE = 8
    }; // columns of tiles, and of what leaves at once
    int best = 0;
    double least = 0;
    for (int k = 1; k <= p->batches && (k == 1 || k * p->columns <= MOST); k++) {
        const int64_t columns = k * p->columns, narrow = mgx_ceil_div(columns, NARROW) * NARROW;
        const int64_t across = narrow > WIDE ? mgx_ceil_div(narrow, WIDE) * WIDE : narrow;
        const int64_t deep = mgx_ceil_div(k * channels, block) * block;
        const double work = (double)(deep * across) / (double)columns;
        if ((p->batches % k && !rest) || (k * channels % line && k < p->batches) ||
            (best && (work > least || columns % LINE)))
            continue;
        best = k;
        least = work;
    }
    return best;
}

int gpu_product_gather(const struct gpu_product *p, int64_t channels, int64_t block, int64_t line)
{
    assert(channels > 0 && block > 0 && line > 0);
    enum { HALVES = 8 }; // of a line: the engine puts zeros behind an image's channels
    const int exact = gather(p, channels, block, line, false);
    return exact || line < HALVES ? exact : gather(p, channels, block, line, true);
}

// fp8 is read as floats.
static enum gpu_class class_of(enum mgx_type type)
{
    return mgx_type_is_fp8(type) ? GPU_REAL : gpu_type_class(type);
}

static const char *refuses(const struct mgx_plan_offer *c, const struct gpu_product *p)
{
    const enum mgx_type read = c->in[p->operand[0]].type, b = c->in[p->operand[1]].type;
    const enum mgx_type a = p->make ? p->make->shape.type : read;
    if (class_of(read) == GPU_NONE || class_of(a) == GPU_NONE || class_of(b) == GPU_NONE ||
        (class_of(a) == GPU_REAL) != (class_of(b) == GPU_REAL) ||
        (class_of(a) == GPU_REAL) != (class_of(p->ins->shape.type) == GPU_REAL))
        return "a product of types that kernels do not multiply";
    if (gpu_product_sum(p) == MGX_DOUBLE && !gpu_has_double(c))
        return "the card has no double";
    if (class_of(c->out->type) == GPU_NONE)
        return "a type that kernels do not compute";
    if (!is_dot(p->ins) && (mgx_ins_int(p->ins, "padding_mode") != 0 || c->out->rank < 3))
        return "padding that is worked out at run time";
    for (int e = 0; e < p->extra_count; e++)
        if (!mgx_shape_same_lens(&c->in[p->extra[e]], c->out) ||
            class_of(c->in[p->extra[e]].type) == GPU_NONE)
            return "an operand of other lengths, or of a type that kernels do not compute";
    if (p->tail && p->tail->op == &mgx_op_pointwise &&
        mgx_module_result_count(p->tail->mod[0]) != 1)
        return "several results";
    return NULL;
}

static const char *read(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    const char *why = read_offer(c, p);
    if (!why)
        why = refuses(c, p);
    if (why)
        return why;
    if (is_dot(p->ins))
        size_dot(c, p);
    else
        size_convolution(c, p);
    if (gpu_product_is_bytes(p) && p->tail)
        p->real = gpu_real_operands(p->tail, p->place);
    if (p->rows >= INT32_MAX || p->columns >= INT32_MAX || p->depth >= INT32_MAX ||
        p->batches > 65535)
        return "larger than the grid";
    return NULL;
}

const char *gpu_product_read(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    const char *why = read(c, p);
    return !why && p->has_zeros ? "a product of more than two operands" : why;
}

const char *gpu_product_read_zeros(struct mgx_plan_offer *c, struct gpu_product *p)
{
    const char *why = read(c, p);
    if (why || !p->has_zeros)
        return why;
    if (!is_dot(p->ins) || !gpu_product_is_bytes(p))
        return "zero points of what is no product of bytes";
    for (int i = 2; i < p->ins->in_count; i++) {
        const struct mgx_ins *zero = p->ins->in[i];
        const int input = p->ins == c->ins ? i : mgx_parameter_index(zero);
        double value;
        if (!mgx_splat_value(input < 0 ? zero : c->ins->in[input], &value))
            return "zero points that are not known";
        p->zero[i - 2] = (int)value;
        if (input >= 0)
            c->skip_in[input] = true;
    }
    return NULL;
}
