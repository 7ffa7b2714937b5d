// SPDX-License-Identifier: MIT
// expert_dot in operators that every target has:
//
//     fewer rows than matrices   =>  dot(x, w[which]')           each row by its own matrix, gathered
//     else                       =>  dot(x, w')[which, row]      all rows by all, and one of each taken
//
// For targets without kernels of their own: one that has some is asked (tag "experts").
// Holds: sizes are static. Cost: matrices are copied, or multiplied for nothing.
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/rewrite.h"

enum { X, WHICH, W, SCALE, ZERO };

// Operand i of the matrices: of all, or of those that the rows ask for.
static struct mgx_ins *operand(struct mgx_ins *ins, int i, bool chosen)
{
    return chosen ? mgx_emit_gather(ins, ins->in[i], ins->in[WHICH]) : ins->in[i];
}

// {matrices, depth, columns}
static struct mgx_ins *emit_matrices(struct mgx_ins *ins, bool chosen, int64_t depth)
{
    const int swap[3] = {0, 2, 1};
    const int64_t bits = mgx_ins_int(ins, "bits"), *lens = ins->in[W]->shape.lens;
    const int64_t count = chosen ? ins->shape.lens[0] : lens[0], columns = lens[1];
    struct mgx_ins *w = operand(ins, W, chosen);
    if (bits) {
        const int64_t flat[3] = {count * columns, lens[2], lens[3]};
        struct mgx_ins *in[3] = {mgx_emit_reshape(ins, w, flat, 3)};
        for (int i = SCALE; i < ins->in_count; i++)
            in[i - W] = mgx_emit_reshape(ins, operand(ins, i, chosen), flat, 2);
        const int operands = ins->in_count - W;
        for (int i = 0; i < operands; i++)
            if (!in[i])
                return NULL;
        w = mgx_emit_before(ins, &mgx_op_dequantize_blocks,
                            MGX_ATTRS(mgx_int("bits", bits), mgx_int("columns", depth)),
                            (struct mgx_ins_list){in, operands});
        w = mgx_emit_reshape(ins, w, (int64_t[]){count, columns, depth}, 3);
    }
    return mgx_emit_transpose(ins, mgx_emit_convert(ins, w, ins->shape.type), swap, 3);
}

// Number `first` of every row's own, and where it is among the rows of all matrices.
static struct mgx_ins *emit_places(struct mgx_ins *ins, int64_t per, int64_t rows)
{
    const int64_t count = ins->shape.lens[0];
    struct mgx_arena *arena = &ins->owner->program->arena;
    int64_t *v = mgx_arena_array(arena, (size_t)count + 1, sizeof *v);
    for (int64_t i = 0; v && i < count; i++)
        v[i] = i / per;
    if (!v || count > INT32_MAX)
        return NULL;
    struct mgx_ins *which = mgx_emit_convert(ins, ins->in[WHICH], MGX_INT64);
    struct mgx_ins *step = which ? mgx_emit_splat(ins, &which->shape, (double)rows) : NULL;
    which = mgx_emit_binary(ins, &mgx_op_mul, which, step);
    return mgx_emit_binary(ins, &mgx_op_add, which, mgx_literal_ints(ins->owner, v, (int)count));
}

static struct mgx_ins *by_own(struct mgx_ins *ins, int64_t per, int64_t depth)
{
    const int64_t rows = ins->shape.lens[0], columns = ins->shape.lens[1];
    struct mgx_ins *x = mgx_emit_reshape(ins, ins->in[X], (int64_t[]){rows / per, 1, depth}, 3);
    x = mgx_emit_multibroadcast(ins, x, (int64_t[]){rows / per, per, depth}, 3);
    x = mgx_emit_reshape(ins, x, (int64_t[]){rows, 1, depth}, 3);
    x = mgx_emit_binary(ins, &mgx_op_dot, x, emit_matrices(ins, true, depth));
    return mgx_emit_reshape(ins, x, (int64_t[]){rows, columns}, 2);
}

static struct mgx_ins *by_all(struct mgx_ins *ins, int64_t per, int64_t depth)
{
    const int64_t rows = ins->shape.lens[0] / per, columns = ins->shape.lens[1],
                  count = ins->in[W]->shape.lens[0];
    struct mgx_ins *x = mgx_emit_reshape(ins, ins->in[X], (int64_t[]){1, rows, depth}, 3);
    x = mgx_emit_multibroadcast(ins, x, (int64_t[]){count, rows, depth}, 3);
    x = mgx_emit_binary(ins, &mgx_op_dot, x, emit_matrices(ins, false, depth));
    x = mgx_emit_reshape(ins, x, (int64_t[]){count * rows, columns}, 2);
    return mgx_emit_gather(ins, x, emit_places(ins, per, rows));
}

static struct mgx_ins *spell(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    const int64_t per = mgx_ins_int(ins, "per"), depth = ins->in[X]->shape.lens[1];
    if (!mgx_shape_elements(&ins->shape) || !depth)
        return NULL;
    return ins->shape.lens[0] < ins->in[W]->shape.lens[0] ? by_own(ins, per, depth)
                                                          : by_all(ins, per, depth);
}

static bool is_static(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_shape_is_static(&ins->in[i]->shape))
            return false;
    return !mgx_region_has_kernel(r->call, ins, "experts");
}

static const struct mgx_rule rules[] = {
    {"expert_dot ~> dot of gathered matrices, or gathered rows of all", MGX_IF_STATIC,
     .guard = is_static, .rewrite = spell},
};

const struct mgx_pass mgx_pass_rewrite_experts = {
    .name = "rewrite_experts",
    .meaning = "rows by one of several matrices become products of all",
    .rules = {rules, MGX_COUNT(rules)},
    .by_size = true,
};
