// SPDX-License-Identifier: MIT
// Joined weights; see join.h. Those that anything but a product of the main module reads become
// literals before.
#include "plan/join.h"

#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "op/eval/eval.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"
#include "plan/shared.h"

struct mgx_plan_join {
    struct mgx_plan_join *next;
    const struct mgx_ins *ins;
    struct mgx_shape shape;
    unsigned char *data;
    size_t bytes;
    bool full, kept;
};

enum { BEHIND = 4096 }; // kernels may read a vector beyond the end

// --- which stay in pieces ---

static bool is_product(const struct mgx_op *op)
{
    return op == &mgx_op_dot || op == &mgx_op_convolution;
}

static bool is_static(const struct mgx_ins *ins)
{
    bool all = mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count; i++)
        all = all && mgx_shape_is_static(&ins->in[i]->shape);
    return all;
}

// Is input `slot` of a group the weights of its product, and nothing else there?
static bool is_weight_inside(const struct mgx_ins *group, int slot)
{
    struct mgx_ins *params[MGX_REGION_INPUTS];
    if (mgx_module_parameters(group->mod[0], params, MGX_REGION_INPUTS) != group->in_count)
        return false;
    const struct mgx_use *use = params[slot]->uses;
    return use && !use->next && use->slot == 1 && is_product(use->user->op);
}

static bool only_weights(const struct mgx_ins *ins, int depth)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        if (user->owner != ins->owner || !is_static(user))
            return false;
        if (user->op != &mgx_op_convert && mgx_is_joined_weights(user)) // it speaks for itself
            continue;
        const bool view = (user->op->flags & MGX_OP_VIEW) && depth && only_weights(user, depth - 1);
        const bool inside = user->op == &mgx_op_group && user->in_count <= MGX_REGION_INPUTS &&
                            is_weight_inside(user, use->slot);
        if (!view && !inside && !(is_product(user->op) && use->slot == 1))
            return false;
    }
    return ins->uses != NULL;
}

// Writes all pieces where they belong, in `to`'s order of memory.
static void write_pieces(const struct mgx_ins *ins, const struct mgx_tensor *to);

static enum mgx_status make_literal(struct mgx_ins *ins, struct mgx_diag *diag)
{
    const struct mgx_shape packed =
        mgx_shape_make(ins->shape.type, ins->shape.rank, ins->shape.lens);
    struct mgx_tensor whole = {0};
    TRY(mgx_tensor_create(&whole, &packed, diag));
    write_pieces(ins, &whole);
    struct mgx_ins *literal = mgx_add_literal(ins->owner, &whole);
    if (literal)
        mgx_replace(ins, literal);
    mgx_tensor_release(&whole);
    return mgx_program_status(literal ? literal->owner->program : ins->owner->program, diag);
}

enum mgx_status mgx_plan_settle_joins(struct mgx_program *p, struct mgx_diag *diag)
{
    for (int m = 0; m < p->module_count; m++)
        MGX_EACH (ins, p->modules[m]) {
            if (mgx_is_joined_weights(ins) && (m > 0 || !only_weights(ins, 2)))
                TRY(make_literal(ins, diag));
        }
    return MGX_OK;
}

// --- addresses ---

static void release(void *user)
{
    const struct mgx_plan_join *j = user;
    mgx_memory_unreserve(j->data, j->bytes + BEHIND);
}

const void *mgx_plan_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                          const struct mgx_shape *shape, struct mgx_diag *diag)
{
    struct mgx_plan_join *j = MGX_NEW(&store->arena, struct mgx_plan_join);
    if (!j) {
        mgx_fail_memory(diag);
        return NULL;
    }
    assert(mgx_is_joined_weights(ins) && !store->parent);
    j->ins = ins;
    j->shape = *shape;
    j->bytes = (size_t)mgx_shape_space(shape) * mgx_type_size(shape->type);
    j->data = mgx_memory_reserve(j->bytes + BEHIND);
    if (!j->data) {
        mgx_fail(diag, MGX_NO_MEMORY, "out of memory: joined weights of %zu bytes", j->bytes);
        return NULL;
    }
    if (!mgx_plan_at_end(store, release, j, diag))
        return NULL;
    const struct mgx_carry_source source = {-1 - store->join_count, 0};
    if (!mgx_plan_note_source(store, j->data, j->bytes, source)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    if (!mgx_plan_shared_name_join(store, source.number, ins, shape)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    store->join_count++;
    j->next = store->joins;
    store->joins = j;
    return j->data;
}

static struct mgx_plan_join *find(const struct mgx_plan_store *store, const void *data)
{
    for (struct mgx_plan_join *j = store->joins; j; j = j->next)
        if ((uintptr_t)data - (uintptr_t)j->data < j->bytes)
            return j;
    return NULL;
}

const struct mgx_ins *mgx_plan_join_of(const struct mgx_plan_store *store, const void *data)
{
    const struct mgx_plan_join *j = find(store, data);
    return j && j->data == data ? j->ins : NULL;
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

// Weights of blocks, by their operator, which needs no scratch.
static void dequantize(const struct mgx_ins *ins, const struct mgx_tensor *to)
{
    const struct mgx_tensor *in[3];
    struct mgx_tensor out = *to;
    struct mgx_diag diag = {0};
    for (int i = 0; i < ins->in_count; i++)
        in[i] = ins->in[i]->literal;
    struct mgx_compute_call call = {.op = ins->op,
                                    .attr = ins->attr,
                                    .in = in,
                                    .in_count = ins->in_count,
                                    .out = &out,
                                    .out_shape = &to->shape,
                                    .diag = &diag};
    const enum mgx_status status = ins->op->compute(&call);
    assert(status == MGX_OK);
    (void)status;
    for (int i = 0; i < ins->in_count; i++)
        forget(in[i]);
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

static void write_pieces(const struct mgx_ins *ins, const struct mgx_tensor *to)
{
    if (ins->op == &mgx_op_dequantize_blocks)
        dequantize(ins, to);
    else if (ins->op != &mgx_op_concat)
        write_piece(ins, to);
    if (ins->op != &mgx_op_concat)
        return;
    int64_t axis = mgx_ins_int(ins, "axis"), at = 0;
    axis += axis < 0 ? to->shape.rank : 0;
    const int64_t step = to->shape.strides[axis] * (int64_t)mgx_type_size(to->shape.type);
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_shape slice = ins->in[i]->shape;
        memcpy(slice.strides, to->shape.strides, sizeof slice.strides);
        const struct mgx_tensor part =
            mgx_tensor_borrow(&slice, (unsigned char *)to->data + at * step);
        write_piece(ins->in[i], &part);
        at += slice.lens[axis];
    }
}

void mgx_plan_join_fill(struct mgx_plan_store *store, const void *data, bool keep)
{
    struct mgx_plan_join *j = find(store, data);
    if (!j)
        return;
    j->kept |= keep;
    if (j->full)
        return;
    const struct mgx_tensor whole = mgx_tensor_borrow(&j->shape, j->data);
    write_pieces(j->ins, &whole);
    j->full = true;
}

void mgx_plan_join_drop(struct mgx_plan_store *store, const void *data)
{
    struct mgx_plan_join *j = find(store, data);
    if (!j || j->kept || !j->full)
        return;
    mgx_memory_forget(j->data, j->bytes + BEHIND);
    j->full = false;
}
