// SPDX-License-Identifier: MIT
// Functions of one byte; see table.h. Every instruction between the byte and the result is
// evaluated once, over all 256 values.
#include "plan/table.h"

#include "op/eval/eval.h"

enum { BYTES = 256, MOST = MGX_PLAN_TABLE_STEPS + 8 }; // with the byte and some constants

struct table {
    struct mgx_eval eval;
    const struct mgx_ins *ins[MOST]; // what has a value, in the body's order
    struct mgx_tensor value[MOST];
    int count;
};

static const struct mgx_tensor *find_value(const struct table *t, const struct mgx_ins *ins)
{
    for (int i = 0; i < t->count; i++)
        if (t->ins[i] == ins)
            return &t->value[i];
    return NULL;
}

// A literal of one value, in all 256 places.
static bool spread(const struct mgx_ins *ins, struct mgx_tensor *out)
{
    const int64_t lens[] = {BYTES}, strides[] = {0};
    if (!ins->literal || mgx_shape_space(&ins->literal->shape) != 1)
        return false;
    const struct mgx_shape shape = mgx_shape_strided(ins->shape.type, 1, lens, strides);
    *out = mgx_tensor_borrow(&shape, ins->literal->data);
    return true;
}

static bool evaluate(struct table *t, const struct mgx_ins *ins, struct mgx_tensor *out)
{
    enum { MOST_INPUTS = 3 };
    struct mgx_tensor room[MOST_INPUTS];
    const struct mgx_tensor *in[MOST_INPUTS];
    struct mgx_diag diag = {0};
    if (ins->in_count > MOST_INPUTS || ins->mod_count || !(ins->op->flags & MGX_OP_POINTWISE))
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = find_value(t, ins->in[i]);
        if (!in[i] && !spread(ins->in[i], &room[i]))
            return false;
        in[i] = in[i] ? in[i] : &room[i];
    }
    return mgx_eval_op(&t->eval, ins->op, ins->attr, in, ins->in_count, NULL, 0, NULL, out,
                       &diag) == MGX_OK;
}

// Evaluates what depends on the byte and constants alone, in order.
static void fill(struct table *t, const struct mgx_module *body)
{
    for (const struct mgx_ins *ins = body->first; ins && t->count < MOST; ins = ins->next) {
        if ((ins->op->flags & MGX_OP_BUILTIN) || find_value(t, ins) ||
            !evaluate(t, ins, &t->value[t->count]))
            continue;
        t->ins[t->count++] = ins;
    }
}

const uint8_t *mgx_plan_table_between(struct mgx_arena *arena, const struct mgx_module *body,
                                      const struct mgx_ins *from, const struct mgx_ins *to)
{
    const int64_t lens[] = {BYTES};
    uint8_t *bytes = MGX_NEW_ARRAY(arena, uint8_t, 2 * BYTES), *out = bytes + BYTES;
    if (!bytes || !mgx_type_is_byte(from->shape.type) || !mgx_type_is_byte(to->shape.type))
        return NULL;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)i;
    const struct mgx_shape shape = mgx_shape_make(from->shape.type, 1, lens);
    struct table t = {.ins = {from}, .value = {mgx_tensor_borrow(&shape, bytes)}, .count = 1};
    fill(&t, body);
    const struct mgx_tensor *y = find_value(&t, to);
    const bool good = y && mgx_shape_elements(&y->shape) == BYTES;
    if (good)
        for (int i = 0; i < BYTES; i++)
            out[i] = ((const uint8_t *)y->data)[i * y->shape.strides[0]];
    for (int i = 1; i < t.count; i++)
        mgx_tensor_release(&t.value[i]);
    return good ? out : NULL;
}

const uint8_t *mgx_plan_table_of(struct mgx_arena *arena, const struct mgx_module *body,
                                 const struct mgx_ins *from)
{
    return mgx_plan_table_between(arena, body, from, mgx_module_result(body, 0));
}
