// SPDX-License-Identifier: MIT
// See witness.h.
//
// Asked about are steps on the host, of known sizes, by kernels other than the reference, whose
// result is a tensor of numbers and whose work is small; and copies, which must not change a bit.
// A wrong stride, count or axis makes errors of the size of the values themselves, so the tolerance
// is wide: a share of the largest value, which fast exponentials, narrow weights and sums in other
// orders stay far below. Cost: the reference's, of at most WORK operations a step.
#include "plan/witness.h"

#include <assert.h>
#include <math.h>

#include "op/eval/eval.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "plan/reference.h"
#include "plan/transfer.h"

enum { ELEMENTS = 1 << 14 }; // of an operand
#define WORK 1e6             // multiplications
#define LARGE 1e15           // values beyond overflow in other places in floats than in doubles

static bool is_small(const struct mgx_plan_value *v)
{
    return !v->dynamic && mgx_shape_is_static(&v->shape) && mgx_type_is_number(v->shape.type) &&
           mgx_shape_elements(&v->shape) <= ELEMENTS;
}

static bool suits(const struct mgx_plan_step *step, const struct mgx_plan_args *args)
{
    const struct mgx_op *op = step->ins->op;
    bool good = (!args->machine->memory || step->kernel->host) && !mgx_plan_is_transfer(step) &&
                step->kernel != &mgx_plan_reference && is_small(step->out_value) &&
                mgx_shape_elements(&step->out_value->shape) > 0 && step->flops <= WORK;
    if (!step->copies)
        good = good && op->compute && !(op->flags & MGX_OP_IMPURE) &&
               step->out_value->ins == step->ins && step->own_count == step->in_count &&
               mgx_shape_same_lens(&step->out_value->shape, &step->ins->shape);
    for (int i = 0; i < step->in_count && good; i++)
        good = is_small(step->in_value[i]);
    return good;
}

// The operand where the step reads it; of a constant that was packed, where the model has it.
static bool operand(const struct mgx_plan_step *step, const struct mgx_plan_args *args, int i,
                    struct mgx_tensor *out)
{
    int64_t offset;
    struct mgx_plan_value *v = step->in_value[i];
    const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    const void *data = args->in[i];
    const bool literal = root->place == MGX_PLAN_CONST && root->ins->literal &&
                         mgx_shape_equal(&root->shape, &root->ins->shape);
    if (!data && literal)
        data = (const char *)root->ins->literal->data + offset;
    if (!data && mgx_shape_elements(&v->shape))
        return false; // joined weights, or weights in another order: nowhere whole
    *out = mgx_tensor_borrow(&v->shape, data);
    return true;
}

static bool is_tame(const struct mgx_tensor *t)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int64_t i = 0; i < count; i++) {
        const double x = mgx_load_double(t->shape.type, t->data, mgx_shape_index(&t->shape, i));
        if (!(fabs(x) < LARGE))
            return false;
    }
    return true;
}

enum mgx_status mgx_plan_witness_hear(struct mgx_plan_witness *w, const struct mgx_plan_step *step,
                                      const struct mgx_plan_args *args, struct mgx_diag *diag)
{
    enum { MANY = 16 };
    struct mgx_tensor in[MANY];
    const struct mgx_tensor *list[MANY];
    struct mgx_eval eval = {0};
    *w = (struct mgx_plan_witness){0};
    if (step->in_count > MANY || !suits(step, args))
        return MGX_OK;
    for (int i = 0; i < step->in_count; i++) {
        list[i] = &in[i];
        if (!operand(step, args, i, &in[i]) || (!step->copies && !is_tame(&in[i])))
            return MGX_OK;
    }
    const struct mgx_ins *ins = step->ins;
    if (step->copies)
        return mgx_tensor_clone(&w->want, &in[0], diag);
    return mgx_eval_op(&eval, ins->op, ins->attr, list, step->in_count, ins->mod, ins->mod_count,
                       &ins->shape, &w->want, diag);
}

// How far apart two values may be. Kernels of integers round the last step otherwise; a truth may
// turn where its operands are equal but for rounding.
static double tolerance(const struct mgx_tensor *want)
{
    const enum mgx_type type = want->shape.type;
    const int64_t count = mgx_shape_elements(&want->shape);
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest,
                       fabs(mgx_load_double(type, want->data, mgx_shape_index(&want->shape, i))));
    return mgx_type_is_float(type) ? 0.04 * largest + 1e-3 : 1 + 0.04 * largest;
}

static enum mgx_status differs(const struct mgx_plan_step *step, int64_t i, double got, double want,
                               struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INTERNAL,
                    "step of %s by kernel %s: element %lld is %g, its operator makes %g",
                    step->ins->op->name, step->kernel->name, (long long)i, got, want);
}

static enum mgx_status compare(const struct mgx_tensor *want, const struct mgx_plan_step *step,
                               const struct mgx_tensor *got, struct mgx_diag *diag)
{
    const enum mgx_type type = want->shape.type;
    const int64_t count = mgx_shape_elements(&want->shape);
    const double most = step->copies ? 0 : tolerance(want);
    for (int64_t i = 0; i < count; i++) {
        const double x = mgx_load_double(type, got->data, mgx_shape_index(&got->shape, i)),
                     y = mgx_load_double(type, want->data, mgx_shape_index(&want->shape, i));
        if (fabs(x - y) > most || (isnan(x) && !isnan(y)))
            return differs(step, i, x, y, diag);
    }
    return MGX_OK;
}

enum mgx_status mgx_plan_witness_compare(struct mgx_plan_witness *w,
                                         const struct mgx_plan_step *step,
                                         const struct mgx_plan_args *args, struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    const struct mgx_tensor got = mgx_tensor_borrow(&step->out_value->shape, args->out);
    assert(!w->want.storage ||
           mgx_shape_elements(&w->want.shape) == mgx_shape_elements(&got.shape));
    if (w->want.storage && (step->copies || is_tame(&w->want)))
        status = compare(&w->want, step, &got, diag);
    mgx_tensor_release(&w->want);
    return status;
}
