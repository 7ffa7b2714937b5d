// SPDX-License-Identifier: MIT
// Short Fourier transforms as products.
//
//     dft(x)  =>  x W,   W = dft(identity)
//
// A transform is linear, so what it makes of unit vectors is its matrix: forwards, backwards,
// one-sided, cut or filled up. For targets whose products are fast and which have no transform of
// their own; half and bfloat16 are computed in float. Holds: the matrix has at most MOST elements,
// sizes are static. Cost: length times length for a lane, where the transform takes length times
// the sum of its factors.
#include "op/eval/eval.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { MOST = 1 << 22 };

// What the operator makes of the unit vectors {length * parts, length, parts}.
static enum mgx_status make_matrix(struct mgx_rewriter *r, struct mgx_ins *ins, int64_t length,
                                   int64_t parts, struct mgx_tensor *out)
{
    struct mgx_program *p = r->call->program;
    const int64_t lens[] = {length * parts, length, parts};
    const struct mgx_shape s = mgx_shape_make(MGX_DOUBLE, 3, lens);
    struct mgx_tensor units;
    void *attr = mgx_edit_attr(p, ins);
    if (!attr)
        return mgx_fail_memory(r->call->diag);
    mgx_edit_int(ins->op, attr, "axis", 1);
    TRY(mgx_tensor_create(&units, &s, r->call->diag));
    for (int64_t i = 0; i < mgx_shape_elements(&s); i++)
        ((double *)units.data)[i] = i % (length * parts) == i / (length * parts);
    const struct mgx_shape *y = &ins->shape;
    const int axis = (int)mgx_wrap_axis(mgx_ins_int(ins, "axis"), y->rank);
    const struct mgx_shape made = mgx_shape_make(
        MGX_DOUBLE, 3, (int64_t[]){length * parts, y->lens[axis], y->lens[y->rank - 1]});
    const struct mgx_tensor *in[] = {&units, ins->in_count > 1 ? ins->in[1]->literal : NULL};
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    struct mgx_eval eval = {.strings = &strings};
    const enum mgx_status status =
        mgx_eval_op(&eval, ins->op, attr, in, ins->in_count, NULL, 0, &made, out, r->call->diag);
    mgx_tensor_release(&units);
    mgx_arena_fini(&strings);
    return status;
}

static struct mgx_ins *add_matrix(struct mgx_rewriter *r, struct mgx_ins *ins, int64_t length,
                                  int64_t parts)
{
    struct mgx_tensor made;
    if (make_matrix(r, ins, length, parts, &made) != MGX_OK)
        return NULL;
    const int64_t lens[] = {made.shape.lens[0], made.shape.lens[1] * made.shape.lens[2]};
    const struct mgx_shape s = mgx_shape_make(MGX_DOUBLE, 2, lens);
    struct mgx_tensor flat = mgx_tensor_view(&made, &s, 0);
    struct mgx_ins *matrix = mgx_add_literal(ins->owner, &flat);
    mgx_tensor_release(&flat);
    mgx_tensor_release(&made);
    return matrix;
}

// The axis goes in front of the parts, or back again.
static struct mgx_ins *move_axis(struct mgx_ins *ins, struct mgx_ins *x, int axis, bool back)
{
    int permutation[MGX_MAX_RANK];
    const int rank = ins->shape.rank;
    for (int i = 0; i < rank; i++)
        permutation[i] = i < axis || i == rank - 1 ? i : back ? i - 1 : i + 1;
    permutation[back ? axis : rank - 2] = back ? rank - 2 : axis;
    return axis == rank - 2 ? x : mgx_emit_transpose(ins, x, permutation, rank);
}

static struct mgx_ins *multiply(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    struct mgx_ins *x = ins->in[0];
    const struct mgx_shape *s = &x->shape, *y = &ins->shape;
    const int rank = s->rank, axis = (int)mgx_wrap_axis(mgx_ins_int(ins, "axis"), rank);
    const int64_t length = s->lens[axis], parts = s->lens[rank - 1];
    const int64_t all = mgx_shape_elements(s), made = y->lens[axis] * y->lens[rank - 1];
    const enum mgx_type type = s->type == MGX_DOUBLE ? MGX_DOUBLE : MGX_FLOAT;
    (void)m;
    if (!all || (ins->in_count > 1 && !ins->in[1]->literal) || length > MOST || made > MOST ||
        length * parts * made > MOST)
        return NULL;
    struct mgx_ins *matrix = add_matrix(r, ins, length, parts);
    if (!matrix)
        return NULL;
    int64_t lens[MGX_MAX_RANK];
    x = move_axis(ins, mgx_emit_convert(ins, x, type), axis, false);
    x = mgx_emit_reshape(ins, x, (int64_t[]){all / (length * parts), length * parts}, 2);
    x = mgx_emit_binary(ins, &mgx_op_dot, x, mgx_emit_convert(ins, matrix, type));
    for (int i = 0; i < rank; i++)
        lens[i] = i < axis || i == rank - 1 ? y->lens[i] : y->lens[i + 1];
    lens[rank - 2] = y->lens[axis];
    x = mgx_emit_reshape(ins, x, lens, rank);
    return mgx_emit_convert(ins, move_axis(ins, x, axis, true), y->type);
}

static const struct mgx_rule rules[] = {
    {"dft ~> x dft(identity)", MGX_IF_STATIC, .rewrite = multiply},
};

const struct mgx_pass mgx_pass_rewrite_dft = {
    .name = "rewrite_dft",
    .meaning = "short Fourier transforms become products",
    .rules = {rules, MGX_COUNT(rules)},
    .by_size = true,
};
