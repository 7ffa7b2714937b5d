// SPDX-License-Identifier: MIT
// See typed.h. Inputs, literals and every instruction have a slot of one block; a body is short, so
// slots are not shared.
#include "targets/cpu/lower/typed.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"
#include "op/rule/rule.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/rows/block.h"
#include "targets/cpu/kernel/rows/typed.h"

enum { SLOTS = 40, LANE = 8 };

enum lane { LANE_INT, LANE_FLOAT, LANE_DOUBLE, LANE_NONE };

struct line {
    enum { LINE_COPY, LINE_CONVERT, LINE_WHERE, LINE_LOOP, LINE_FLOAT, LINE_CALL } kind;
    mgx_typed_fn loop;
    mgx_block_fn block; // LINE_FLOAT: a loop of the float program
    const struct mgx_pointwise *row;
    struct mgx_line_attr attr;
    int in[3], arity;
    enum mgx_type from, type; // of the first operand, of the value
};

struct cpu_typed {
    int in_count, literal_count, line_count, result; // slots: inputs, literals, lines
    enum mgx_type type[SLOTS];
    struct line line[SLOTS];
    unsigned char *literals; // a block each
    const struct mgx_typed_kernel *kernel;
    mgx_convert_fn half_up, half_down, bf16_up, bf16_down;
};

static enum lane lane_of(enum mgx_type type)
{
    switch (type) {
    case MGX_BOOL:
    case MGX_UINT8:
    case MGX_INT8:
    case MGX_UINT16:
    case MGX_INT16:
    case MGX_UINT32:
    case MGX_INT32:
    case MGX_INT64:
        return LANE_INT;
    case MGX_FLOAT:
    case MGX_HALF:
    case MGX_BF16:
        return LANE_FLOAT;
    case MGX_DOUBLE:
        return LANE_DOUBLE;
    default:
        return LANE_NONE;
    }
}

// --- compiling ---

static mgx_typed_fn loop_of(const struct cpu_typed *t, const struct mgx_pointwise *row,
                            enum lane lane)
{
    return lane == LANE_INT      ? t->kernel->ints[row->code]
           : lane == LANE_DOUBLE ? t->kernel->doubles[row->code]
                                 : NULL;
}

static mgx_block_fn block_of(mgx_isa isa, const struct mgx_pointwise *row)
{
    return mgx_block_kernel(isa)->table[row->code];
}

static bool make_row(const struct cpu_typed *t, mgx_isa isa, const struct mgx_ins *ins,
                     struct line *l)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    const enum lane lane = lane_of(l->from);
    if (!row || ins->in_count > 3)
        return false;
    l->row = row;
    if (ins->op == &mgx_op_where) {
        l->kind = LINE_WHERE;
        return lane == LANE_INT;
    }
    if (row->attrs)
        l->attr = *(const struct mgx_line_attr *)ins->attr;
    if (lane == LANE_INT && !row->sint_fn) // integers through double: too rare
        return false;
    l->loop = loop_of(t, row, lane);
    l->block = lane == LANE_FLOAT && row->result == MGX_PW_SAME ? block_of(isa, row) : NULL;
    l->kind = l->loop ? LINE_LOOP : l->block ? LINE_FLOAT : LINE_CALL;
    return row->real_fn || lane == LANE_INT;
}

static bool make_line(const struct cpu_typed *t, mgx_isa isa, const struct mgx_ins *ins,
                      struct line *l)
{
    l->from = ins->in[0]->shape.type;
    l->type = ins->shape.type;
    l->arity = ins->in_count;
    for (int i = 0; i < ins->in_count; i++)
        if (lane_of(ins->in[i]->shape.type) == LANE_NONE)
            return false;
    if (lane_of(l->type) == LANE_NONE)
        return false;
    if (ins->op == &mgx_op_identity || ins->op == &mgx_op_convert) {
        l->kind = l->from == l->type ? LINE_COPY : LINE_CONVERT;
        return true;
    }
    return make_row(t, isa, ins, l);
}

struct source {
    struct mgx_ins *ins[SLOTS]; // by slot
    int count;
};

static int slot_of(const struct source *s, const struct mgx_ins *ins)
{
    for (int i = 0; i < s->count; i++)
        if (s->ins[i] == ins)
            return i;
    return -1;
}

static bool add_line(struct cpu_typed *t, struct source *s, mgx_isa isa, struct mgx_ins *ins)
{
    struct line *l = &t->line[t->line_count];
    if (s->count == SLOTS || ins->in_count < 1 || ins->in_count > 3 || !make_line(t, isa, ins, l))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if ((l->in[i] = slot_of(s, ins->in[i])) < 0)
            return false;
    t->type[s->count] = ins->shape.type;
    s->ins[s->count++] = ins;
    t->line_count++;
    return true;
}

static bool add_input(struct cpu_typed *t, struct source *s, struct mgx_ins *ins)
{
    if (s->count == SLOTS || lane_of(ins->shape.type) == LANE_NONE)
        return false;
    t->type[s->count] = ins->shape.type;
    s->ins[s->count++] = ins;
    return true;
}

static void fill_literal(unsigned char *block, enum mgx_type type, const struct mgx_tensor *value)
{
    for (int i = 0; i < MGX_BLOCK; i++)
        if (lane_of(type) == LANE_INT)
            ((int64_t *)block)[i] = mgx_load_int(type, value->data, 0);
        else if (lane_of(type) == LANE_FLOAT)
            ((float *)block)[i] = (float)mgx_load_double(type, value->data, 0);
        else
            ((double *)block)[i] = mgx_load_double(type, value->data, 0);
}

static bool read_module(struct cpu_typed *t, struct source *s, const struct mgx_plan_offer *c,
                        const struct mgx_module *m)
{
    struct mgx_ins *params[SLOTS];
    t->in_count = mgx_module_parameters(m, NULL, 0);
    if (t->in_count > SLOTS || mgx_module_result_count(m) != 1)
        return false;
    mgx_module_parameters(m, params, t->in_count);
    for (int i = 0; i < t->in_count; i++)
        if (!add_input(t, s, params[i]))
            return false;
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_literal && !add_input(t, s, ins))
            return false;
    t->literal_count = s->count - t->in_count;
    t->literals = MGX_NEW_ARRAY(c->arena, unsigned char, t->literal_count *MGX_BLOCK *LANE + 1);
    for (int i = 0; t->literals && i < t->literal_count; i++) {
        const struct mgx_ins *ins = s->ins[t->in_count + i];
        if (mgx_shape_elements(&ins->shape) != 1)
            return false;
        fill_literal(t->literals + (size_t)i * MGX_BLOCK * LANE, ins->shape.type, ins->literal);
    }
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (!(ins->op->flags & MGX_OP_BUILTIN) && !add_line(t, s, cpu_offered(c)->isa, ins))
            return false;
    t->result = slot_of(s, mgx_module_result(m, 0));
    return t->literals && t->result >= 0;
}

static bool read_single(struct cpu_typed *t, struct source *s, const struct mgx_plan_offer *c,
                        const struct mgx_ins *ins)
{
    struct mgx_ins in[3], *list[3], copy = *ins; // an operand may be given twice: slots of its own
    t->in_count = ins->in_count;
    if (ins->in_count > 3)
        return false;
    copy.in = list;
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = *ins->in[i];
        list[i] = &in[i];
        if (!add_input(t, s, &in[i]))
            return false;
    }
    t->result = t->in_count;
    return add_line(t, s, cpu_offered(c)->isa, &copy);
}

const struct cpu_typed *cpu_typed_compile(struct mgx_plan_offer *c, const struct mgx_ins *ins)
{
    const mgx_isa isa = cpu_offered(c)->isa;
    struct cpu_typed *t = MGX_NEW(c->arena, struct cpu_typed);
    struct source s = {.count = 0};
    if (!t) {
        mgx_fail_memory(c->diag);
        return NULL;
    }
    t->kernel = mgx_typed_kernel(isa);
    t->half_up = mgx_convert(isa, MGX_KERNEL_F16, MGX_KERNEL_F32);
    t->half_down = mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_F16);
    t->bf16_up = mgx_convert(isa, MGX_KERNEL_BF16, MGX_KERNEL_F32);
    t->bf16_down = mgx_convert(isa, MGX_KERNEL_F32, MGX_KERNEL_BF16);
    if (ins->mod_count ? read_module(t, &s, c, ins->mod[0]) : read_single(t, &s, c, ins))
        return t;
    c->why = "a value of the body is of a type without lanes, or there are too many";
    if (c->arena->failed)
        mgx_fail_memory(c->diag);
    return NULL;
}

size_t cpu_typed_scratch(const struct cpu_typed *t)
{
    return (size_t)(t->in_count + t->line_count + 2) * MGX_BLOCK * LANE;
}

// --- running ---

static void load(const struct cpu_typed *t, enum mgx_type type, const void *from, void *lanes,
                 int n)
{
    if (type == MGX_HALF)
        t->half_up(from, lanes, n);
    else if (type == MGX_BF16)
        t->bf16_up(from, lanes, n);
    else
        t->kernel->load[type](from, lanes, n);
}

static void store(const struct cpu_typed *t, enum mgx_type type, const void *lanes, void *to, int n)
{
    if (type == MGX_HALF)
        t->half_down(lanes, to, n);
    else if (type == MGX_BF16)
        t->bf16_down(lanes, to, n);
    else
        t->kernel->store[type](lanes, to, n);
}

static void move(unsigned char *to, int64_t to_step, const unsigned char *from, int64_t from_step,
                 size_t size, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)(i * to_step) * size, from + (size_t)(i * from_step) * size, size);
}

// Cuts values back to their type.
static void settle(const struct cpu_typed *t, enum mgx_type type, void *lanes, void *room, int n)
{
    if (type == MGX_FLOAT || type == MGX_DOUBLE || type == MGX_INT64)
        return;
    store(t, type, lanes, room, n);
    load(t, type, room, lanes, n);
}

static double as_double(enum lane lane, const void *lanes, int i)
{
    return lane == LANE_INT     ? (double)((const int64_t *)lanes)[i]
           : lane == LANE_FLOAT ? (double)((const float *)lanes)[i]
                                : ((const double *)lanes)[i];
}

// A double into a value's lanes, as a store to its type and a load from it make it.
static void put_double(enum mgx_type type, void *lanes, int i, double v)
{
    uint64_t room;
    if (type == MGX_DOUBLE) {
        ((double *)lanes)[i] = v;
        return;
    }
    mgx_store_double(type, &room, 0, v);
    if (lane_of(type) == LANE_FLOAT)
        ((float *)lanes)[i] = (float)mgx_load_double(type, &room, 0);
    else
        ((int64_t *)lanes)[i] = mgx_load_int(type, &room, 0);
}

static void convert(const struct line *l, const void *x, void *out, int n)
{
    const enum lane from = lane_of(l->from), to = lane_of(l->type);
    if (from == to) {
        memcpy(out, x, (size_t)n * (from == LANE_FLOAT ? sizeof(float) : LANE));
    } else if (from == LANE_INT && to == LANE_FLOAT && l->type == MGX_FLOAT) {
        for (int i = 0; i < n; i++)
            ((float *)out)[i] = (float)(double)((const int64_t *)x)[i];
    } else {
        for (int i = 0; i < n; i++)
            put_double(l->type, out, i, as_double(from, x, i));
    }
}

static void call(const struct line *l, void *const *in, void *out, int n)
{
    const enum lane lane = lane_of(l->from);
    for (int i = 0; i < n; i++)
        if (lane == LANE_INT) {
            const int64_t *x = in[0], *y = in[1], *z = in[2];
            ((int64_t *)out)[i] = l->row->sint_fn(x[i], y[i], z[i]);
        } else {
            const double x = as_double(lane, in[0], i), y = as_double(lane, in[1], i),
                         z = as_double(lane, in[2], i);
            put_double(l->type, out, i, l->row->real_fn(x, y, z, l->attr.alpha, l->attr.beta));
        }
}

// What doubles have as a truth, as the bool it is.
static void to_bool(void *lanes, void *room, int n)
{
    const double *x = lanes;
    int64_t *truth = room;
    for (int i = 0; i < n; i++)
        truth[i] = x[i] != 0;
    memcpy(lanes, room, (size_t)n * LANE);
}

static void run_line(const struct cpu_typed *t, const struct line *l, void *const *in, void *out,
                     void *room, int n)
{
    const struct mgx_block_operand x[] = {{in[0], false}, {in[1], false}, {in[2], false}};
    switch (l->kind) {
    case LINE_COPY:
        memcpy(out, in[0], (size_t)n * LANE);
        return;
    case LINE_CONVERT:
        convert(l, in[0], out, n);
        break;
    case LINE_WHERE:
        (lane_of(l->type) == LANE_FLOAT ? t->kernel->where4 : t->kernel->where8)(out, in[0], in[1],
                                                                                 in[2], n);
        return;
    case LINE_LOOP:
        l->loop(out, in[0], in[1], in[2], &l->attr, n);
        if (lane_of(l->from) == LANE_DOUBLE && l->type == MGX_BOOL)
            to_bool(out, room, n);
        break;
    case LINE_FLOAT:
        l->block(out, x, (float)l->attr.alpha, (float)l->attr.beta, n);
        break;
    default:
        call(l, in, out, n);
    }
    settle(t, l->type, out, room, n);
}

static void load_input(const struct cpu_typed *t, const struct cpu_typed_args *a, int i,
                       unsigned char *lanes, unsigned char *room, int n)
{
    const enum mgx_type type = t->type[i];
    const size_t size = mgx_type_size(type);
    const unsigned char *from = (const unsigned char *)a->in[i] + a->offset[i] * (int64_t)size;
    if (a->step[i] != 1 && n > 1) {
        move(room, 1, from, a->step[i], size, n);
        from = room;
    }
    load(t, type, from, lanes, n);
}

void cpu_typed_run(const struct cpu_typed *t, const struct cpu_typed_args *args, int n,
                   void *scratch)
{
    const size_t block = MGX_BLOCK * LANE;
    unsigned char *slot[SLOTS], *room = scratch;
    for (int i = 0; i < t->in_count; i++) {
        slot[i] = room + (size_t)(i + 1) * block;
        load_input(t, args, i, slot[i], room, n);
    }
    for (int i = 0; i < t->literal_count; i++)
        slot[t->in_count + i] = t->literals + (size_t)i * block;
    for (int k = 0; k < t->line_count; k++) {
        const struct line *l = &t->line[k];
        void *in[3];
        for (int i = 0; i < 3; i++)
            in[i] = slot[l->in[i < l->arity ? i : 0]];
        const int to = t->in_count + t->literal_count + k;
        slot[to] = room + (size_t)(t->in_count + k + 1) * block;
        run_line(t, l, in, slot[to], room, n);
    }
    const enum mgx_type type = t->type[t->result];
    const size_t size = mgx_type_size(type);
    unsigned char *out = (unsigned char *)args->out + args->out_offset * (int64_t)size;
    const bool direct = args->out_step == 1 || n == 1;
    store(t, type, slot[t->result], direct ? out : room, n);
    if (!direct)
        move(out, args->out_step, room, 1, size, n);
}
