// SPDX-License-Identifier: MIT
// linear_attention on the kernel of kernel/product/linear.h, once its sizes are known.
//
// Operands lie anyhow but for contiguous heads: pieces of a wider product are read where they are.
// What is of 16 bits is made float before, and rounded once behind.
#include <stdlib.h>

#include "base/memory.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/linear.h"
#include "targets/cpu/lower/lower.h"

enum { Q, K, V, STATE, DECAY, BETA, INPUTS, RESULTS = 2, ALL = INPUTS + RESULTS };

struct call {
    const struct mgx_plan_machine *machine;
    struct mgx_compute_call *c;
    bool there[INPUTS];
    struct mgx_tensor use[ALL]; // operands and results as floats; those of 16 bits are its own
};

static bool kind_of(enum mgx_type type, enum mgx_kernel_type *kind)
{
    *kind = type == MGX_HALF ? MGX_KERNEL_F16 : type == MGX_BF16 ? MGX_KERNEL_BF16 : MGX_KERNEL_F32;
    return type == MGX_FLOAT || !mgx_kernel_is_plain(*kind);
}

static bool suits(const struct mgx_shape *s)
{
    enum mgx_kernel_type kind;
    return kind_of(s->type, &kind) && s->rank == 4 && mgx_shape_is_static(s) &&
           mgx_shape_elements(s);
}

static bool takes(struct call *l)
{
    const struct mgx_compute_call *c = l->c;
    if (c->out_shape->type != MGX_TUPLE || c->out_shape->sub_count != RESULTS)
        return false;
    for (int i = 0; i < RESULTS; i++)
        if (!suits(&c->out_shape->sub[i]))
            return false;
    for (int i = 0; i < INPUTS; i++) {
        const struct mgx_shape *s = i < c->in_count ? &c->in[i]->shape : NULL;
        l->there[i] = s && !mgx_shape_is_absent(s);
        if (l->there[i] && (!suits(s) || (s->lens[3] > 1 && s->strides[3] != 1)))
            return false;
    }
    return true;
}

// --- 16 bits ---

static void *row_of(const struct mgx_tensor *t, const int64_t at[3])
{
    const int64_t *stride = t->shape.strides;
    return (char *)t->data + (at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2]) *
                                 (int64_t)mgx_type_size(t->shape.type);
}

static void convert(const struct call *l, const struct mgx_tensor *from, struct mgx_tensor *to)
{
    enum mgx_kernel_type is, becomes;
    (void)kind_of(from->shape.type, &is);
    (void)kind_of(to->shape.type, &becomes);
    const mgx_convert_fn fn = mgx_convert(cpu_machine(l->machine)->isa, is, becomes);
    const int64_t *lens = to->shape.lens;
    int64_t at[3];
    for (at[0] = 0; at[0] < lens[0]; at[0]++)
        for (at[1] = 0; at[1] < lens[1]; at[1]++)
            for (at[2] = 0; at[2] < lens[2]; at[2]++)
                fn(row_of(from, at), row_of(to, at), lens[3]);
}

// The same lengths in float; a tensor that is float already is borrowed.
static enum mgx_status use_as_floats(struct call *l, int i, const struct mgx_tensor *t)
{
    l->use[i] = mgx_tensor_borrow(&t->shape, t->data);
    if (t->shape.type == MGX_FLOAT)
        return MGX_OK;
    const struct mgx_shape floats = mgx_shape_make(MGX_FLOAT, 4, t->shape.lens);
    TRY(mgx_tensor_create(&l->use[i], &floats, l->c->diag));
    if (i < INPUTS)
        convert(l, t, &l->use[i]);
    return MGX_OK;
}

static enum mgx_status use_all(struct call *l, const struct mgx_tensor *out)
{
    for (int i = 0; i < INPUTS; i++)
        if (l->there[i])
            TRY(use_as_floats(l, i, l->c->in[i]));
    for (int i = 0; i < RESULTS; i++)
        TRY(use_as_floats(l, INPUTS + i, &out[i]));
    return MGX_OK;
}

// --- the call ---

static void set_strides(const struct mgx_tensor *t, int64_t stride[3])
{
    for (int i = 0; i < 3; i++)
        stride[i] = t->shape.lens[i] == 1 ? 0 : t->shape.strides[i];
}

static void describe(const struct call *l, struct mgx_linear_desc *d)
{
    const struct mgx_compute_call *c = l->c;
    const struct mgx_shape *q = &l->use[Q].shape, *v = &l->use[V].shape;
    int64_t *stride[ALL] = {d->q, d->k, d->v, d->past, d->decay, d->beta, d->y, d->state};
    d->batch = q->lens[0];
    d->heads = v->lens[1];
    d->share = q->lens[1] / v->lens[1];
    d->steps = q->lens[2];
    d->rows = q->lens[3];
    d->columns = v->lens[3];
    d->decay_each = l->there[DECAY] && l->use[DECAY].shape.lens[3] > 1;
    d->delta = mgx_attr_int(c->op, c->attr, "delta") != 0;
    d->scale = (float)mgx_attr_real(c->op, c->attr, "scale");
    for (int i = 0; i < ALL; i++)
        if (i >= INPUTS || l->there[i])
            set_strides(&l->use[i], stride[i]);
}

static enum mgx_status run(const struct call *l)
{
    struct mgx_linear_desc d = {.isa = cpu_machine(l->machine)->isa,
                                .threads = l->machine->threads};
    describe(l, &d);
    void *room = mgx_memory_aligned(64, mgx_linear_workspace(&d));
    if (!room)
        return mgx_fail_memory(l->c->diag);
    const struct mgx_linear_args args = {.q = l->use[Q].data, // NULL where one is not there
                                         .k = l->use[K].data,
                                         .v = l->use[V].data,
                                         .decay = l->use[DECAY].data,
                                         .beta = l->use[BETA].data,
                                         .past = l->use[STATE].data,
                                         .y = l->use[INPUTS].data,
                                         .state = l->use[INPUTS + 1].data,
                                         .workspace = room};
    mgx_linear_run(&d, &args, cpu_machine(l->machine)->pool);
    free(room);
    return MGX_OK;
}

static enum mgx_status run_as_floats(struct call *l, struct mgx_tensor *out)
{
    enum mgx_status status = use_all(l, out);
    if (status == MGX_OK)
        status = run(l);
    for (int i = 0; i < RESULTS && status == MGX_OK; i++)
        if (out[i].shape.type != MGX_FLOAT)
            convert(l, &l->use[INPUTS + i], &out[i]);
    for (int i = 0; i < ALL; i++)
        mgx_tensor_release(&l->use[i]);
    return status;
}

enum mgx_status cpu_linear_attention(const struct mgx_plan_machine *machine,
                                     struct mgx_compute_call *c, bool *done)
{
    struct call l = {.machine = machine, .c = c};
    struct mgx_tensor out[RESULTS];
    if (!takes(&l))
        return MGX_OK;
    TRY(mgx_eval_members(c, out, RESULTS));
    const enum mgx_status status = run_as_floats(&l, out);
    if (status == MGX_OK) {
        TRY(mgx_tensor_group(c->out, out, RESULTS, false, c->diag));
        *done = true;
        return MGX_OK;
    }
    for (int i = 0; i < RESULTS; i++)
        mgx_tensor_release(&out[i]);
    return status;
}
