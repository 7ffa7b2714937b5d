// SPDX-License-Identifier: MIT
// Joined weights while they are read: found by address, written piece by piece, dropped; see
// join.h. Cost: the bytes once each time they are packed, and no memory beside them.
#include "plan/join.h"

#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/size.h"
#include "op/op.h"

static struct mgx_plan_join *find_join(const struct mgx_plan_store *store, const void *data)
{
    const struct mgx_plan_store *plan = store->parent ? store->parent : store;
    for (struct mgx_plan_join *j = plan->joins; j; j = j->next)
        if ((uintptr_t)data - (uintptr_t)j->data < j->bytes)
            return j;
    return NULL;
}

const struct mgx_ins *mgx_plan_join_of(const struct mgx_plan_store *store, const void *data)
{
    const struct mgx_plan_join *j = find_join(store, data);
    return j && j->data == data ? j->ins : NULL;
}

struct mgx_storage *mgx_plan_join_keeper(const struct mgx_plan_store *store, const void *data)
{
    struct mgx_plan_join *j = find_join(store, data);
    return j ? &j->storage : NULL;
}

static void forget(const struct mgx_tensor *t)
{
    mgx_file_forget_at(t->data, (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type));
}

// Halves and bfloat16 to floats, side by side in both, from any address: exact. A half's exponent
// is 112 less than a float's, which a multiplication puts right for subnormal numbers too; what is
// infinite or NaN has the largest exponent of either.
static float half_value(uint16_t x)
{
    uint32_t bits = (uint32_t)(x & 0x7fff) << 13;
    const uint32_t special = (x & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    float v;
    memcpy(&v, &bits, sizeof v);
    v *= 0x1p112f;
    memcpy(&bits, &v, sizeof bits);
    bits |= special | (uint32_t)(x & 0x8000) << 16;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void widen(enum mgx_type type, const unsigned char *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count && type == MGX_BF16; i++) {
        uint16_t half;
        memcpy(&half, x + 2 * i, sizeof half);
        const uint32_t bits = (uint32_t)half << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
    for (int64_t i = 0; i < count && type == MGX_HALF; i++) {
        uint16_t half;
        memcpy(&half, x + 2 * i, sizeof half);
        y[i] = half_value(half);
    }
}

static bool lie_alike(const struct mgx_shape *a, const struct mgx_shape *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return mgx_shape_space(a) == mgx_shape_elements(a);
}

// Rows of weights of blocks, by their operator, which needs no scratch.
enum { BLOCK_INPUTS = 3 };

struct rows {
    const struct mgx_ins *ins;
    const struct mgx_tensor *to;
    int tasks;
};

static struct mgx_tensor rows_of(const struct mgx_tensor *t, int64_t first, int64_t count)
{
    struct mgx_shape s = t->shape;
    s.lens[0] = count;
    return mgx_tensor_borrow(&s, (unsigned char *)t->data +
                                     first * t->shape.strides[0] * (int64_t)mgx_type_size(s.type));
}

static void dequantize_rows(void *user, int task, int thread)
{
    const struct rows *r = user;
    const struct mgx_ins *ins = r->ins;
    const int64_t rows = r->to->shape.lens[0], first = mgx_part_begin(rows, task, r->tasks);
    const int64_t count = mgx_part_begin(rows, task + 1, r->tasks) - first;
    struct mgx_tensor in[BLOCK_INPUTS], out = rows_of(r->to, first, count);
    const struct mgx_tensor *list[BLOCK_INPUTS];
    struct mgx_diag diag = {0};
    (void)thread;
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = rows_of(ins->in[i]->literal, first, count);
        list[i] = &in[i];
    }
    struct mgx_compute_call call = {.op = ins->op,
                                    .attr = ins->attr,
                                    .in = list,
                                    .in_count = ins->in_count,
                                    .out = &out,
                                    .out_shape = &out.shape,
                                    .diag = &diag};
    const enum mgx_status status = ins->op->compute(&call);
    assert(status == MGX_OK);
    (void)status;
}

static void dequantize(const struct mgx_plan_machine *machine, const struct mgx_ins *ins,
                       const struct mgx_tensor *to)
{
    enum { FEW = 1 << 16 };
    const bool alone = !machine || mgx_shape_elements(&to->shape) < FEW;
    struct rows r = {.ins = ins, .to = to, .tasks = alone ? 1 : 4 * machine->threads};
    assert(ins->in_count <= BLOCK_INPUTS);
    if (alone)
        dequantize_rows(&r, 0, 0);
    else
        mgx_plan_spread(machine, r.tasks, dequantize_rows, &r);
    for (int i = 0; i < ins->in_count; i++)
        forget(ins->in[i]->literal);
}

static void write_piece(const struct mgx_ins *piece, const struct mgx_tensor *to)
{
    const struct mgx_tensor *from = piece->literal ? piece->literal : piece->in[0]->literal;
    const enum mgx_type type = from->shape.type;
    const int64_t count = mgx_shape_elements(&from->shape);
    if (piece->literal)
        mgx_tensor_copy(from, (struct mgx_tensor *)to);
    else if (lie_alike(&from->shape, &to->shape))
        widen(type, from->data, to->data, count);
    else
        for (int64_t i = 0; i < count; i++)
            mgx_store_double(MGX_FLOAT, to->data, mgx_shape_index(&to->shape, i),
                             mgx_load_double(type, from->data, mgx_shape_index(&from->shape, i)));
    forget(from);
}

void mgx_plan_join_write(const struct mgx_plan_machine *machine, const struct mgx_ins *ins,
                         const struct mgx_tensor *to)
{
    if (ins->op == &mgx_op_dequantize_blocks)
        dequantize(machine, ins, to);
    else if (ins->op != &mgx_op_concat)
        write_piece(ins, to);
    if (ins->op != &mgx_op_concat)
        return;
    const int axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), to->shape.rank);
    int64_t at = 0;
    const int64_t step = to->shape.strides[axis] * (int64_t)mgx_type_size(to->shape.type);
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_shape slice = ins->in[i]->shape;
        memcpy(slice.strides, to->shape.strides, sizeof slice.strides);
        const struct mgx_tensor part =
            mgx_tensor_borrow(&slice, (unsigned char *)to->data + at * step);
        write_piece(ins->in[i], &part);
        at += slice.lens[axis];
    }
    assert(at == to->shape.lens[axis]);
}

void mgx_plan_join_fill(struct mgx_plan_store *store, const void *data, bool keep)
{
    struct mgx_plan_join *j = find_join(store, data);
    if (!j)
        return;
    j->kept |= keep;
    if (j->full)
        return;
    const struct mgx_tensor whole = mgx_tensor_borrow(&j->shape, j->data);
    mgx_plan_join_write(store->machine, j->ins, &whole);
    j->full = true;
}

void mgx_plan_join_drop(struct mgx_plan_store *store, const void *data)
{
    struct mgx_plan_join *j = find_join(store, data);
    if (!j || j->kept || !j->full)
        return;
    mgx_memory_forget(j->data, j->bytes + MGX_PLAN_BEHIND);
    j->full = false;
}
