// SPDX-License-Identifier: MIT
// Constant folding by kernels: what the pass would evaluate by the reference, for large floats.
//
// Folding evaluates one operator after the other on tensors, as a dynamic step does, so the same
// offer serves (lower/dynamic.h), of a plan that holds nothing but the choices and goes with the
// passes. Only element-wise work and reductions are taken: the first is correctly rounded or within
// the units of the last place that docs/cpu.md lists, the others sum as they would when run. Small
// work and integers stay with the reference.
//
// Cost: nothing until there is something to take.
#include <stdlib.h>

#include "base/size.h"
#include "op/rule/rule.h"
#include "targets/cpu/lower/dynamic.h"

enum { LARGE = 1 << 13 }; // elements, of the result or an input

struct cpu_folder {
    const struct mgx_program *program;
    const struct mgx_compile_options *options;
    struct cpu_context context;
};

static bool takes(const struct mgx_compute_call *c)
{
    int64_t most = mgx_shape_is_static(c->out_shape) ? mgx_shape_elements(c->out_shape) : 0;
    if (!(c->op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE)) || c->in_count < 1 ||
        c->out_shape->type != MGX_FLOAT)
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
    struct cpu_folder *f = user;
    *done = false;
    if (!takes(c))
        return MGX_OK;
    if (!f->context.plan)
        TRY(cpu_plan_create(f->program, f->options, &f->context.plan, c->diag));
    TRY(cpu_dynamic_offer(&f->context, c, done));
    // The literal lies as the program says, whatever suited the kernel.
    if (*done && c->declared) {
        const enum mgx_status status = mgx_eval_as_declared(c, c->out, c->declared);
        if (status != MGX_OK)
            mgx_tensor_release(c->out);
        return status;
    }
    return MGX_OK;
}

struct cpu_folder *cpu_folder_create(const struct mgx_program *p,
                                     const struct mgx_compile_options *options,
                                     struct mgx_pass_options *pass)
{
    struct cpu_folder *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->program = p;
    f->options = options;
    pass->offer = offer;
    pass->offer_user = f;
    return f;
}

void cpu_folder_destroy(struct cpu_folder *f)
{
    if (f && f->context.plan)
        cpu_plan_destroy(f->context.plan);
    free(f);
}
