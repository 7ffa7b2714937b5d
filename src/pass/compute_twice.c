// SPDX-License-Identifier: MIT
// What becomes bytes by its own range is computed once for the range and once more for the bytes,
// where that is cheaper than keeping it in between.
//
//     y = f(product(x, w#));  r = byte_range(y);  q = g(y, r)
//         =>  r = byte_range(f'(product'(x, w#)));  q = g(f(product(x, w#)), r)
//
// Both make the same numbers, in the same order. With one reader each, f' ends a kernel that leaves
// a range and no results (lower/ranged.h), f and g one that leaves bytes: of each value a byte is
// read twice and one is written, where four bytes were written and read and one written. Pays where
// memory decides: results are many, each is made of few products, and no windows are gathered.
//
// Holds: f is a few element-wise steps of one product of bytes and of numbers, or of one for each
// column. What merges equal instructions would undo it, so it runs last before fusing, and only
// where products leave ranges.
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

enum { LONGEST = 16, DEEPEST = 6, FEW = 1 << 14 }; // steps of f, and beside it; numbers there

// f's steps, the last one first, and the product.
struct made {
    struct mgx_ins *step[LONGEST + 1];
    int from[LONGEST]; // the input of each that the next one makes
    int count;
};

static bool is_product(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quant_convolution || ins->op == &mgx_op_quant_dot;
}

// Of a few numbers, wherever they are spread.
static bool is_few(struct mgx_ins *ins)
{
    struct mgx_spread s;
    return mgx_is_spread_literal(ins) || mgx_shape_elements(&ins->shape) <= FEW ||
           (mgx_spread_of(ins, &s) && mgx_shape_elements(&s.core->shape) <= FEW);
}

// The same, or made of such in a few steps.
static bool is_beside(struct mgx_ins *ins, int depth)
{
    bool beside = is_few(ins);
    if (!beside && depth > 0 && mgx_is_elementwise(ins) && ins->in_count > 0) {
        beside = true;
        for (int i = 0; i < ins->in_count; i++)
            beside = beside && is_beside(ins->in[i], depth - 1);
    }
    return beside;
}

// The one input that is neither a constant nor one of a few numbers; -1: there is none, or more.
static int main_input(const struct mgx_ins *ins)
{
    int found = -1;
    for (int i = 0; i < ins->in_count; i++) {
        if (is_beside(ins->in[i], DEEPEST))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static bool read_steps(struct mgx_ins *y, struct made *m)
{
    m->count = 0;
    for (struct mgx_ins *ins = y; m->count < LONGEST; ins = ins->in[m->from[m->count++]]) {
        m->step[m->count] = ins;
        if (ins != y && !mgx_used_once(ins))
            return false;
        if (is_product(ins))
            return mgx_shape_is_static(&ins->shape) && mgx_is_constant(ins->owner, ins->in[1]);
        if (!mgx_is_elementwise(ins) || (m->from[m->count] = main_input(ins)) < 0)
            return false;
    }
    return false;
}

// Does `ins`, which is scaled by the range, end in bytes that nobody else reads on the way?
static bool ends_in_bytes(const struct mgx_ins *ins)
{
    for (int i = 0; i < LONGEST; i++) {
        if (ins->op == &mgx_op_quantizelinear)
            return true;
        if (!mgx_is_elementwise(ins) || !mgx_used_once(ins))
            return false;
        ins = ins->uses->user;
    }
    return false;
}

// Is y read by the range, and else by what makes bytes of it alone?
static bool becomes_bytes(const struct mgx_ins *y, const struct mgx_ins *range)
{
    int others = 0;
    for (const struct mgx_use *use = y->uses; use; use = use->next) {
        if (use->user == range)
            continue;
        if (others++ || !ends_in_bytes(use->user))
            return false;
    }
    return others == 1;
}

// Microseconds of a large card: what is neither written nor read, against the product once more.
static bool pays(const struct mgx_ins *product)
{
    static const double memory = 3e6, near = 6e6, products = 6e8, single = 2e7, launch = 3;
    enum { NEAR_BYTES = 30000000, KEPT = 9 };
    const double results = (double)mgx_shape_elements(&product->shape);
    const bool convolution = product->op == &mgx_op_quant_convolution;
    const int64_t columns = product->shape.lens[convolution ? 1 : product->shape.rank - 1];
    const double depth = (double)mgx_shape_elements(&product->in[1]->shape) / (double)columns;
    const bool alone = convolution && product->in[1]->shape.lens[1] == 1;
    if (convolution && !alone && depth > (double)product->in[1]->shape.lens[1])
        return false; // windows are packed or gathered for each
    const double once = alone ? results * depth / single
                              : 2 * results * depth / products +
                                    (double)mgx_shape_elements(&product->in[0]->shape) / memory;
    const double kept = KEPT * results / (results * sizeof(float) > NEAR_BYTES ? memory : near);
    return once < 0.7 * (kept - launch);
}

// A step once more, with what is beside it, on `value` at its input `from`.
static struct mgx_ins *again(struct mgx_ins *at, const struct mgx_ins *step, int from,
                             struct mgx_ins *value)
{
    struct mgx_ins *in[MGX_REGION_INPUTS];
    if (step->in_count > MGX_REGION_INPUTS)
        return NULL;
    for (int i = 0; i < step->in_count; i++) {
        in[i] = i == from ? value : step->in[i];
        if (i != from && !is_few(in[i]))
            in[i] = again(at, in[i], -1, NULL);
        if (!in[i])
            return NULL;
    }
    return mgx_emit_again(at, step, in, step->in_count);
}

static enum mgx_status repeat(struct mgx_pass_call *c, struct mgx_ins *range, const struct made *m)
{
    const struct mgx_ins *product = m->step[m->count];
    struct mgx_ins *value = mgx_emit_again(range, product, product->in, product->in_count);
    for (int i = m->count - 1; value && i >= 0; i--)
        value = again(range, m->step[i], m->from[i], value);
    if (!value)
        return mgx_program_status(c->program, c->diag);
    mgx_set_input(range, 0, value);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct made made;
    if (!c->options->target.leaves_ranges)
        return MGX_OK;
    MGX_EACH (ins, m)
        if (ins->op == &mgx_op_byte_range && becomes_bytes(ins->in[0], ins) &&
            read_steps(ins->in[0], &made) && pays(made.step[made.count]))
            TRY(repeat(c, ins, &made));
    return MGX_OK;
}

const struct mgx_pass mgx_pass_compute_twice = {
    .name = "compute_twice",
    .meaning = "computes large values once for their range and once for their bytes",
    .module = run,
};
