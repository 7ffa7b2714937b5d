// SPDX-License-Identifier: MIT
// linear_attention of floats on the kernel of kernel/product/linear.h, once its sizes are known.
//
// Operands lie anyhow but for contiguous heads: pieces of a wider product are read where they are.
#include <stdlib.h>

#include "base/memory.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/cpu/kernel/product/linear.h"
#include "targets/cpu/lower/lower.h"

enum { Q, K, V, STATE, DECAY, BETA, INPUTS };

static const struct mgx_tensor *operand(const struct mgx_compute_call *c, int i)
{
    return i < c->in_count && !mgx_shape_is_absent(&c->in[i]->shape) ? c->in[i] : NULL;
}

static bool takes(const struct mgx_compute_call *c)
{
    if (c->out_shape->type != MGX_TUPLE || c->out_shape->sub_count != 2)
        return false;
    for (int i = 0; i < 2; i++)
        if (c->out_shape->sub[i].type != MGX_FLOAT || !mgx_shape_is_static(&c->out_shape->sub[i]) ||
            !mgx_shape_elements(&c->out_shape->sub[i]))
            return false;
    for (int i = 0; i < INPUTS; i++) {
        const struct mgx_tensor *t = operand(c, i);
        if (t &&
            (t->shape.type != MGX_FLOAT || t->shape.rank != 4 || !mgx_shape_elements(&t->shape) ||
             (t->shape.lens[3] > 1 && t->shape.strides[3] != 1)))
            return false;
    }
    return true;
}

static void set_strides(const struct mgx_tensor *t, int64_t stride[3])
{
    for (int i = 0; t && i < 3; i++)
        stride[i] = t->shape.lens[i] == 1 ? 0 : t->shape.strides[i];
}

static void describe(const struct mgx_compute_call *c, const struct mgx_tensor out[2],
                     struct mgx_linear_desc *d)
{
    const struct mgx_tensor *decay = operand(c, DECAY);
    const struct mgx_shape *q = &c->in[Q]->shape, *v = &c->in[V]->shape;
    d->batch = q->lens[0];
    d->heads = v->lens[1];
    d->share = q->lens[1] / v->lens[1];
    d->steps = q->lens[2];
    d->rows = q->lens[3];
    d->columns = v->lens[3];
    d->decay_each = decay && decay->shape.lens[3] > 1;
    d->delta = mgx_attr_int(c->op, c->attr, "delta") != 0;
    d->scale = (float)mgx_attr_real(c->op, c->attr, "scale");
    set_strides(c->in[Q], d->q);
    set_strides(c->in[K], d->k);
    set_strides(c->in[V], d->v);
    set_strides(decay, d->decay);
    set_strides(operand(c, BETA), d->beta);
    set_strides(operand(c, STATE), d->past);
    set_strides(&out[0], d->y);
    set_strides(&out[1], d->state);
}

static const float *floats_of(const struct mgx_tensor *t)
{
    return t ? t->data : NULL;
}

static enum mgx_status run(const struct mgx_plan_machine *machine, struct mgx_compute_call *c,
                           const struct mgx_tensor out[2])
{
    struct mgx_linear_desc d = {.isa = cpu_machine(machine)->isa, .threads = machine->threads};
    describe(c, out, &d);
    void *room = mgx_memory_aligned(64, mgx_linear_workspace(&d));
    if (!room)
        return mgx_fail_memory(c->diag);
    const struct mgx_linear_args args = {.q = c->in[Q]->data,
                                         .k = c->in[K]->data,
                                         .v = c->in[V]->data,
                                         .decay = floats_of(operand(c, DECAY)),
                                         .beta = floats_of(operand(c, BETA)),
                                         .past = floats_of(operand(c, STATE)),
                                         .y = out[0].data,
                                         .state = out[1].data,
                                         .workspace = room};
    mgx_linear_run(&d, &args, cpu_machine(machine)->pool);
    free(room);
    return MGX_OK;
}

enum mgx_status cpu_linear_attention(const struct mgx_plan_machine *machine,
                                     struct mgx_compute_call *c, bool *done)
{
    struct mgx_tensor out[2];
    if (!takes(c))
        return MGX_OK;
    TRY(mgx_eval_members(c, out, 2));
    const enum mgx_status status = run(machine, c, out);
    if (status == MGX_OK) {
        TRY(mgx_tensor_group(c->out, out, 2, false, c->diag));
        *done = true;
        return MGX_OK;
    }
    mgx_tensor_release(&out[0]);
    mgx_tensor_release(&out[1]);
    return status;
}
