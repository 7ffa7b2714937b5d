// SPDX-License-Identifier: MIT
// Constant folding by kernels: what the pass would evaluate by the reference, for large floats.
//
// Folding evaluates one operator after the other on tensors, as a dynamic step does, so kernels are
// chosen in the same way (late.h); what was chosen is freed when the passes are done. Only
// element-wise work, reductions and products are taken: the first is correctly rounded or within
// the units of the last place that docs/cpu.md lists, the others sum as they would when run. Small
// work and integers stay with the reference, which takes a second for each GFLOP of a product.
//
// Cost: nothing until there is something to take.
#include "plan/fold.h"

#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/late.h"

enum {
    LARGE = 1 << 13,        // elements, of the result or an input
    LARGE_PRODUCT = 1 << 24 // multiplications
};

struct mgx_plan_folder {
    struct mgx_plan_store store;
    struct mgx_plan_late late; // its kernels are the machine's late ones
};

static bool is_large_product(const struct mgx_compute_call *c, int64_t elements)
{
    int64_t count;
    const struct mgx_shape *a = &c->in[0]->shape;
    return c->op == &mgx_op_dot && a->rank >= 2 &&
           (!mgx_mul_i64(elements, a->lens[a->rank - 1], &count) || count >= LARGE_PRODUCT);
}

static bool takes(const struct mgx_compute_call *c)
{
    int64_t most = mgx_shape_is_static(c->out_shape) ? mgx_shape_elements(c->out_shape) : 0;
    if (c->in_count < 1 || c->out_shape->type != MGX_FLOAT ||
        (!(c->op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE)) && !is_large_product(c, most)))
        return false;
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i]->shape.type != MGX_FLOAT)
            return false;
        most = mgx_max_i64(most, mgx_shape_elements(&c->in[i]->shape));
    }
    return most >= LARGE;
}

static enum mgx_status offer(void *user, struct mgx_compute_call *c, bool *done)
{
    struct mgx_plan_folder *f = user;
    *done = false;
    if (!takes(c))
        return MGX_OK;
    struct mgx_plan_late_run run = {.late = &f->late};
    TRY(mgx_plan_late_offer(&run, c, done));
    // The literal lies as the program says, whatever suited the kernel.
    if (*done && c->declared) {
        const enum mgx_status status = mgx_eval_as_declared(c, c->out, c->declared);
        if (status != MGX_OK)
            mgx_tensor_release(c->out);
        return status;
    }
    return MGX_OK;
}

struct mgx_plan_folder *mgx_plan_folder_create(const struct mgx_program *p,
                                               const struct mgx_plan_machine *machine,
                                               struct mgx_pass_options *pass)
{
    assert(machine->target->late_kernels);
    struct mgx_plan_folder *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    mgx_plan_store_init(&f->store, machine, NULL);
    mgx_plan_late_init(&f->late, p, &f->store);
    pass->offer = offer;
    pass->offer_user = f;
    return f;
}

void mgx_plan_folder_destroy(struct mgx_plan_folder *f)
{
    if (!f)
        return;
    mgx_plan_late_fini(&f->late);
    mgx_plan_store_fini(&f->store);
    free(f);
}
