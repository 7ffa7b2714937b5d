// SPDX-License-Identifier: MIT
// Compiling bodies; see body.h.
//
// Every instruction of the body becomes a line; temporaries are allotted by liveness, so a long
// chain needs two or three. A value that is a result is written to its output directly unless it is
// a parameter, a constant or a result twice.
#include "targets/cpu/lower/body.h"

#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "op/op.h"
#include "op/pointwise.h"
#include "targets/cpu/kernel/move/convert.h"

static enum mgx_fp8 kind_of(enum mgx_type fp8)
{
    assert(mgx_type_is_fp8(fp8));
    return fp8 == MGX_FP8E4M3FNUZ ? MGX_F8_E4M3FNUZ
           : fp8 == MGX_FP8E4M3FN ? MGX_F8_E4M3FN
           : fp8 == MGX_FP8E5M2   ? MGX_F8_E5M2
                                  : MGX_F8_E5M2FNUZ;
}

// Of 16 bits, or a float of eight.
static bool is_wider(enum mgx_type type)
{
    return type == MGX_INT16 || type == MGX_UINT16 || mgx_type_is_fp8(type);
}

static bool works(enum mgx_type type)
{
    return type == MGX_FLOAT || type == MGX_BOOL;
}

// As what comes in, and what is quantized on the way.
static bool comes(enum mgx_type type)
{
    return works(type) || mgx_type_is_byte(type) || is_wider(type) || type == MGX_INT32 ||
           mgx_type_is_half_or_bf16(type);
}

// As what goes out: 16 bits are rounded to where a result is stored.
static bool goes(enum mgx_type type)
{
    return works(type) || mgx_type_is_byte(type) || is_wider(type) ||
           mgx_type_is_half_or_bf16(type);
}

// A float rounded to 16 bits, which is done where the result is stored, or at once for who reads
// it.
static bool is_rounded(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convert && mgx_type_is_half_or_bf16(ins->shape.type) &&
           ins->in[0]->shape.type == MGX_FLOAT;
}

static bool is_read_inside(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op != &mgx_op_return)
            return true;
    return false;
}

// Whether what is no float goes only where a float is made of it, or comes from where it is
// quantized.
static bool keeps_integers(const struct mgx_ins *ins)
{
    const bool widens = ins->shape.type == MGX_FLOAT &&
                        (ins->op == &mgx_op_convert || ins->op == &mgx_op_dequantizelinear);
    const bool narrows = (mgx_type_is_byte(ins->shape.type) || is_wider(ins->shape.type)) &&
                         ins->op == &mgx_op_quantizelinear;
    for (int i = 0; i < ins->in_count; i++)
        if (!works(ins->in[i]->shape.type) && !widens && !(narrows && i == 2))
            return false;
    return works(ins->shape.type) || narrows || is_rounded(ins);
}

// x != 0, which is what a float becomes as a bool.
static bool is_truth(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convert && ins->shape.type == MGX_BOOL &&
           ins->in[0]->shape.type == MGX_FLOAT;
}

// Does this give 0 or 1 for bools? Arithmetic may leave them (1 + 1) or divide by zero, where a
// bool wraps and a float does not.
static bool keeps_bools(int code)
{
    switch (code) {
    case MGX_BLOCK_COPY:
    case MGX_PW_mul:
    case MGX_PW_min:
    case MGX_PW_max:
    case MGX_PW_equal:
    case MGX_PW_greater:
    case MGX_PW_less:
    case MGX_PW_logical_and:
    case MGX_PW_logical_or:
    case MGX_PW_logical_xor:
    case MGX_PW_where:
    case MGX_PW_clip:
    case MGX_PW_abs:
    case MGX_PW_relu:
    case MGX_PW_sign:
    case MGX_PW_not:
    case MGX_PW_isnan:
    case MGX_PW_isinf:
        return true;
    default:
        return false;
    }
}

static int quantize_code(enum mgx_type type)
{
    switch (type) {
    case MGX_INT8:
        return MGX_BLOCK_QUANT_S8;
    case MGX_UINT8:
        return MGX_BLOCK_QUANT_U8;
    case MGX_INT16:
        return MGX_BLOCK_QUANT_S16;
    case MGX_UINT16:
        return MGX_BLOCK_QUANT_U16;
    default:
        return MGX_BLOCK_QUANT_F8;
    }
}

// The line's code, or -1. Bool and float are the same 0 and 1 inside, so converting a bool is a
// copy; to bool it is `x or x`.
static int code_of(const struct mgx_ins *ins)
{
    if (is_truth(ins))
        return MGX_PW_logical_or;
    if (ins->op == &mgx_op_dequantizelinear)
        return ins->in_count == 3 ? MGX_BLOCK_DEQUANT : MGX_PW_mul;
    if (ins->op == &mgx_op_quantizelinear)
        return quantize_code(ins->shape.type);
    if (is_rounded(ins) && is_read_inside(ins))
        return ins->shape.type == MGX_HALF ? MGX_BLOCK_ROUND_F16 : MGX_BLOCK_ROUND_BF16;
    if (ins->op == &mgx_op_identity || is_rounded(ins) ||
        (ins->op == &mgx_op_convert &&
         (ins->shape.type == MGX_FLOAT || ins->in[0]->shape.type == MGX_BOOL)))
        return MGX_BLOCK_COPY;
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    return row && row->real ? (int)row->code : -1;
}

struct compiler {
    struct mgx_arena *arena;
    mgx_isa isa;
    struct mgx_ins **ins; // body instructions in order, without parameters and literals
    int count;
    struct mgx_map place; // instruction -> operand + 1, while it lives
    struct mgx_map last;  // instruction -> position of its last reader + 1
    struct mgx_block_line *lines;
    float *constants;
    struct cpu_body *body;
    int base; // operand number of the first temporary
    bool busy[MGX_BLOCK_OPERANDS];
    const char *why;
};

static int place_of(const struct compiler *x, const struct mgx_ins *ins)
{
    assert(ins);
    return (int)(intptr_t)mgx_map_find_pointer(&x->place, ins) - 1;
}

static bool set_place(struct compiler *x, const struct mgx_ins *ins, int operand)
{
    assert(operand >= 0 && operand < MGX_BLOCK_OPERANDS);
    return mgx_map_put_pointer(&x->place, ins, (void *)(intptr_t)(operand + 1));
}

static int take_temporary(struct compiler *x)
{
    assert(x->base >= 0 && x->base <= MGX_BLOCK_OPERANDS);
    struct mgx_block *b = &x->body->block;
    for (int i = 0; i < MGX_BLOCK_OPERANDS - x->base - x->body->out_count; i++)
        if (!x->busy[i]) {
            x->busy[i] = true;
            if (i >= b->temporary_count)
                b->temporary_count = i + 1;
            return x->base + i;
        }
    x->why = "the body needs too many values at once";
    return -1;
}

static void free_dead(struct compiler *x, const struct mgx_ins *reader, int position)
{
    assert(position >= 0 && position < x->count);
    for (int i = 0; i < reader->in_count; i++) {
        const int operand = place_of(x, reader->in[i]) - x->base;
        const int last = (int)(intptr_t)mgx_map_find_pointer(&x->last, reader->in[i]) - 1;
        if (operand >= 0 && last == position)
            x->busy[operand] = false;
    }
}

// Constants beyond the room for operands have no place.
static bool has_place(struct compiler *x, int operand)
{
    assert(operand < MGX_BLOCK_OPERANDS);
    if (operand < 0)
        x->why = "the body has too many constants";
    return operand >= 0;
}

// A zero point that is 0 and nothing else, or none: lines make floats of eight bits without.
static bool has_no_zero(const struct mgx_ins *ins)
{
    const struct mgx_ins *zero = ins->in_count == 3 ? ins->in[2] : NULL;
    while (zero && !zero->literal && zero->in_count == 1 && (zero->op->flags & MGX_OP_VIEW))
        zero = zero->in[0];
    return ins->in_count < 3 || (zero->literal && mgx_shape_space(&zero->literal->shape) == 1 &&
                                 mgx_load_double(zero->shape.type, zero->literal->data, 0) == 0);
}

static bool has_line(const struct mgx_ins *ins)
{
    const int code = code_of(ins);
    return code >= 0 && (code != MGX_BLOCK_QUANT_F8 || has_no_zero(ins)) && ins->in_count <= 3 &&
           keeps_integers(ins) && (ins->shape.type != MGX_BOOL || keeps_bools(code));
}

static bool read_operands(struct compiler *x, const struct mgx_ins *ins,
                          struct mgx_block_line *line)
{
    for (int i = 0; i < ins->in_count; i++) {
        const int from = place_of(x, ins->in[i]);
        if (!has_place(x, from))
            return false;
        line->in[i] = (uint8_t)from;
    }
    if (is_truth(ins))
        line->in[1] = line->in[0];
    return true;
}

static void read_attrs(const struct mgx_ins *ins, struct mgx_block_line *line)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    const struct mgx_line_attr *attr = row && row->attrs ? ins->attr : NULL;
    if (ins->op == &mgx_op_quantizelinear) {
        line->a = ins->in_count == 2;
        line->b = mgx_type_is_fp8(ins->shape.type) ? (float)kind_of(ins->shape.type) : 0;
    }
    if (attr) {
        line->a = (float)attr->alpha;
        line->b = (float)attr->beta;
    }
}

static bool emit_line(struct compiler *x, const struct mgx_ins *ins, int position)
{
    struct mgx_block_line line = {.code = (uint8_t)code_of(ins)};
    if (!has_line(ins)) {
        x->why = "an operator of the body has no vector form";
        return false;
    }
    if (is_rounded(ins) && x->count == 1) // storing it is all
        line.code = MGX_BLOCK_COPY;
    if (!read_operands(x, ins, &line))
        return false;
    read_attrs(ins, &line);
    // the result may take an operand's place: lines work element by element
    free_dead(x, ins, position);
    const int out = take_temporary(x);
    if (out < 0 || !set_place(x, ins, out))
        return false;
    line.out = (uint8_t)out;
    x->lines[x->body->block.line_count++] = line;
    return true;
}

// Results are copied out at the end; a last line that made a value nobody else reads writes it
// there itself.
static bool emit_results(struct compiler *x, struct mgx_ins *const *results)
{
    assert(x->body->out_count > 0);
    struct mgx_block *b = &x->body->block;
    const int first_out = x->base + b->temporary_count;
    for (int i = 0; i < x->body->out_count; i++) {
        const int from = place_of(x, results[i]);
        if (!has_place(x, from))
            return false;
        struct mgx_block_line *last = b->line_count ? &x->lines[b->line_count - 1] : NULL;
        if (last && last->out == from && from >= x->base && from < first_out &&
            x->body->out_count == 1)
            last->out = (uint8_t)(first_out + i);
        else
            x->lines[b->line_count++] = (struct mgx_block_line){
                .code = MGX_BLOCK_COPY, .out = (uint8_t)(first_out + i), .in = {(uint8_t)from}};
    }
    return true;
}

static bool mark_last(struct compiler *x, struct mgx_ins *const *results)
{
    for (int i = 0; i < x->count; i++)
        for (int k = 0; k < x->ins[i]->in_count; k++)
            if (!mgx_map_put_pointer(&x->last, x->ins[i]->in[k], (void *)(intptr_t)(i + 1)))
                return false;
    for (int i = 0; i < x->body->out_count; i++)
        if (!mgx_map_put_pointer(&x->last, results[i], (void *)(intptr_t)(x->count + 1)))
            return false;
    return true;
}

// --- bodies and single operators look the same from here on ---

struct source {
    struct mgx_ins *params[MGX_BLOCK_OPERANDS], *results[MGX_BLOCK_OPERANDS];
    int param_count, result_count, literal_count;
};

static bool read_module(struct compiler *x, const struct mgx_module *m, struct source *s)
{
    s->param_count = mgx_module_parameters(m, NULL, 0);
    s->result_count = mgx_module_result_count(m);
    if (s->param_count + s->result_count > MGX_BLOCK_OPERANDS - 8) {
        x->why = "the body has too many inputs";
        return false;
    }
    mgx_module_parameters(m, s->params, s->param_count);
    for (int i = 0; i < s->result_count; i++)
        s->results[i] = mgx_module_result(m, i);
    x->ins = MGX_NEW_ARRAY(x->arena, struct mgx_ins *, m->count);
    for (struct mgx_ins *ins = m->first; x->ins && ins; ins = ins->next) {
        if (ins->op == &mgx_op_literal &&
            s->param_count + s->literal_count < MGX_BLOCK_OPERANDS - 8) {
            x->constants[s->literal_count] =
                (float)mgx_load_double(ins->shape.type, ins->literal->data, 0);
            if (!comes(ins->shape.type) || !set_place(x, ins, s->param_count + s->literal_count++))
                return false;
        } else if (!(ins->op->flags & MGX_OP_BUILTIN)) {
            x->ins[x->count++] = ins;
        }
        if (!(ins->op->flags & MGX_OP_BUILTIN) && !keeps_integers(ins))
            x->why = "a value of the body is neither float nor bool";
    }
    return x->ins != NULL && !x->why;
}

static bool read_single(struct compiler *x, const struct mgx_ins *ins, struct source *s)
{
    assert(!ins->mod_count && !x->count);
    x->ins = MGX_NEW_ARRAY(x->arena, struct mgx_ins *, 1);
    if (!x->ins || ins->in_count > 3 || ins->shape.type == MGX_HALF) // typed.h converts in one go
        return false;
    x->ins[x->count++] = (struct mgx_ins *)ins;
    for (int i = 0; i < ins->in_count; i++)
        s->params[s->param_count++] = ins->in[i];
    s->results[s->result_count++] = (struct mgx_ins *)ins;
    return true;
}

static bool note_types(struct compiler *x, const struct source *s)
{
    struct cpu_body *body = x->body;
    body->in_count = s->param_count;
    body->out_count = s->result_count;
    body->in_type = MGX_NEW_ARRAY(x->arena, enum mgx_type, s->param_count);
    body->out_type = MGX_NEW_ARRAY(x->arena, enum mgx_type, s->result_count);
    if (!body->in_type || !body->out_type)
        return false;
    for (int i = 0; i < s->param_count; i++) {
        body->in_type[i] = s->params[i]->shape.type;
        if (!comes(body->in_type[i]) || !set_place(x, s->params[i], i))
            x->why = "an input is of a type that bodies do not read";
    }
    for (int i = 0; i < s->result_count; i++) {
        body->out_type[i] = s->results[i]->shape.type;
        if (!goes(body->out_type[i]))
            x->why = "a result is neither float nor bool, nor quantized";
    }
    return !x->why;
}

static bool emit_lines(struct compiler *x, const struct source *s)
{
    x->base = s->param_count + s->literal_count;
    x->lines = MGX_NEW_ARRAY(x->arena, struct mgx_block_line, x->count + s->result_count);
    if (!x->lines || !mark_last(x, s->results))
        return false;
    for (int i = 0; i < x->count; i++)
        if (!emit_line(x, x->ins[i], i))
            return false;
    return emit_results(x, s->results);
}

static void finish_block(const struct compiler *x, const struct source *s)
{
    struct mgx_block *b = &x->body->block;
    b->in_count = s->param_count;
    b->constant_count = s->literal_count;
    b->out_count = s->result_count;
    b->constants = x->constants;
    b->lines = x->lines;
    assert(b->line_count > 0 && b->line_count <= x->count + s->result_count);
    b->kernel = mgx_block_kernel(x->isa);
    x->body->isa = x->isa;
}

static bool compile(struct compiler *x, const struct mgx_ins *ins)
{
    struct source s = {.param_count = 0};
    x->body = MGX_NEW(x->arena, struct cpu_body);
    x->constants = MGX_NEW_ARRAY(x->arena, float, MGX_BLOCK_OPERANDS);
    if (!x->body || !x->constants)
        return false;
    if (!(ins->mod_count ? read_module(x, ins->mod[0], &s) : read_single(x, ins, &s)) ||
        !note_types(x, &s) || !emit_lines(x, &s))
        return false;
    finish_block(x, &s);
    return true;
}

const struct cpu_body *cpu_body_compile(struct mgx_plan_offer *c, const struct mgx_ins *ins)
{
    struct compiler x = {.arena = c->arena, .isa = cpu_offered(c)->isa};
    const bool good = compile(&x, ins);
    mgx_map_fini(&x.place);
    mgx_map_fini(&x.last);
    if (good)
        return x.body;
    c->why = x.why ? x.why : "the body is not one of scalar operators";
    if (c->arena->failed)
        mgx_fail_memory(c->diag);
    return NULL;
}

// --- values at the edges ---

bool cpu_kernel_type(enum mgx_type type, enum mgx_kernel_type *out)
{
    *out = type == MGX_FLOAT   ? MGX_KERNEL_F32
           : type == MGX_INT8  ? MGX_KERNEL_S8
           : type == MGX_UINT8 ? MGX_KERNEL_U8
           : type == MGX_BF16  ? MGX_KERNEL_BF16
           : type == MGX_HALF  ? MGX_KERNEL_F16
                               : MGX_KERNEL_S32;
    return comes(type) && !is_wider(type) && type != MGX_BOOL;
}

static float float_at(const void *data, enum mgx_type type, int64_t at)
{
    assert(comes(type));
    switch (type) {
    case MGX_FLOAT:
        return ((const float *)data)[at];
    case MGX_INT8:
        return ((const int8_t *)data)[at];
    case MGX_UINT8:
        return ((const uint8_t *)data)[at];
    case MGX_INT32:
        return (float)((const int32_t *)data)[at];
    case MGX_BOOL:
        return ((const unsigned char *)data)[at] != 0;
    default:
        return (float)mgx_load_double(type, data, at);
    }
}

struct mgx_block_operand cpu_body_load(mgx_isa isa, const void *data, enum mgx_type type,
                                       int64_t offset, int64_t step, int n, float *room)
{
    assert(data && n > 0 && n <= MGX_BLOCK && step >= 0);
    enum mgx_kernel_type from;
    if (type == MGX_FLOAT && (step == 0 || step == 1 || n == 1))
        return (struct mgx_block_operand){(float *)(uintptr_t)data + offset, step == 0};
    if (step == 0)
        n = 1;
    if (step == 1 && cpu_kernel_type(type, &from))
        mgx_convert(isa, from, MGX_KERNEL_F32)((const char *)data + offset * mgx_kernel_size(from),
                                               room, n);
    else if (type == MGX_INT16)
        for (int i = 0; i < n; i++)
            room[i] = ((const int16_t *)data)[offset + i * step];
    else if (type == MGX_UINT16)
        for (int i = 0; i < n; i++)
            room[i] = ((const uint16_t *)data)[offset + i * step];
    else
        for (int i = 0; i < n; i++)
            room[i] = float_at(data, type, offset + i * step);
    return (struct mgx_block_operand){room, step == 0};
}

void cpu_body_store(mgx_isa isa, void *data, enum mgx_type type, int64_t offset, int64_t step,
                    int n, const float *from)
{
    assert(data && n > 0 && goes(type));
    enum mgx_kernel_type to;
    if ((step == 1 || n == 1) && cpu_kernel_type(type, &to)) {
        mgx_convert(isa, MGX_KERNEL_F32, to)(from, (char *)data + offset * mgx_kernel_size(to), n);
        return;
    }
    for (int i = 0; i < n; i++) {
        const int64_t at = offset + i * step;
        if (type == MGX_FLOAT)
            ((float *)data)[at] = from[i];
        else if (mgx_type_is_half_or_bf16(type) && cpu_kernel_type(type, &to))
            mgx_convert(isa, MGX_KERNEL_F32, to)(from + i, (uint16_t *)data + at, 1);
        else if (type == MGX_BOOL)
            ((unsigned char *)data)[at] = from[i] != 0;
        else if (type == MGX_INT16 || type == MGX_UINT16)
            ((uint16_t *)data)[at] = (uint16_t)(int)from[i];
        else if (is_wider(type))
            mgx_store_double(type, data, at, from[i]);
        else
            ((unsigned char *)data)[at] = (unsigned char)(int)from[i];
    }
}
