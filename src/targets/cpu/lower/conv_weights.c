// SPDX-License-Identifier: MIT
// Packing a convolution's weights; see conv_weights.h.
#include "targets/cpu/lower/conv_weights.h"

#include <assert.h>
#include <string.h>

enum { BYTES_OF_A_TASK = 64 << 10 }; // less is packed by the calling thread alone

static void fill(const struct mgx_plan_fill *f, int part, int parts)
{
    mgx_conv_pack_part(f->kernel, f->source[0], f->packed, part, parts);
}

// What packed weights depend on beside the weights themselves: equal keys pack to equal bytes.
struct pack_desc {
    int64_t isa, transposed, bytes, x_type, w_type, x_zero;
    int64_t groups, in, out, kernel[MGX_CONV_DIMS], x_channel, w_in, w_out;
    int64_t stride[MGX_CONV_DIMS], dilation[MGX_CONV_DIMS], size[2 * MGX_CONV_DIMS];
};

// The phases of a transpose choose methods of their own by the sizes.
static void note_phases(struct pack_desc *desc, const struct mgx_conv_desc *d)
{
    memcpy(desc->stride, d->stride, sizeof desc->stride);
    memcpy(desc->dilation, d->dilation, sizeof desc->dilation);
    memcpy(desc->size, d->in, sizeof d->in);
    memcpy(desc->size + MGX_CONV_DIMS, d->out, sizeof d->out);
}

static void describe_pack(struct pack_desc *desc, const struct mgx_conv_desc *d,
                          const struct mgx_conv_plan *plan)
{
    memset(desc, 0, sizeof *desc); // its padding is compared too
    desc->isa = d->isa;
    desc->transposed = d->transposed;
    desc->bytes = (int64_t)mgx_conv_packed_bytes(plan);
    desc->x_type = (int64_t)d->x_type;
    desc->w_type = (int64_t)d->w_type;
    desc->x_zero = d->x_zero;
    desc->groups = d->groups;
    desc->in = d->in_channels;
    desc->out = d->out_channels;
    memcpy(desc->kernel, d->kernel, sizeof desc->kernel);
    desc->x_channel = d->x_channel;
    desc->w_in = d->w_in;
    desc->w_out = d->w_out;
    if (d->transposed)
        note_phases(desc, d);
}

static struct mgx_plan_key key_of(const struct mgx_tensor *weights,
                                  const struct mgx_conv_plan *plan,
                                  const struct cpu_conv_source *source,
                                  const struct pack_desc *desc)
{
    return (struct mgx_plan_key){.kernel = mgx_conv_method_name(mgx_conv_plan_method(plan)),
                                 .source = {weights->data, source->zero},
                                 .desc = desc,
                                 .desc_bytes = sizeof *desc};
}

bool cpu_conv_weights_pack(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                           const struct cpu_conv_source *source, struct cpu_conv_weights *w)
{
    const struct mgx_tensor *t = c->constant[w->input];
    w->packed = NULL;
    if (!t)
        return true;
    assert(t->data);
    struct pack_desc desc;
    describe_pack(&desc, source->desc, plan);
    const struct mgx_plan_fill how = {.fill = fill,
                                      .kernel = plan,
                                      .source = {t->data},
                                      .source_bytes = mgx_shape_bytes(&t->shape)};
    const struct mgx_plan_key key = key_of(t, plan, source, &desc);
    w->packed = mgx_plan_pack(c->store, &key, mgx_conv_packed_bytes(plan), &how, c->diag);
    c->skip_in[w->input] = true;
    c->packed_bytes += mgx_conv_packed_bytes(plan);
    return w->packed != NULL;
}

void cpu_conv_weights_room(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                           struct cpu_conv_weights *w)
{
    const size_t bytes = mgx_conv_packed_bytes(plan);
    if (w->packed)
        return;
    w->at = mgx_align64(c->workspace);
    c->workspace = w->at + bytes;
    w->parts = cpu_tasks(c, (int64_t)bytes, BYTES_OF_A_TASK, c->machine->threads);
}

double cpu_conv_weights_seconds(struct mgx_plan_offer *c, const struct mgx_conv_plan *plan,
                                const struct cpu_conv_source *source,
                                const struct cpu_conv_weights *w)
{
    static const double bytes_in_a_second = 1e9; // with the faults of fresh pages
    static const double again = 3e9;             // into a workspace, and by every thread
    const struct mgx_tensor *t = c->constant[w->input];
    const size_t bytes = mgx_conv_packed_bytes(plan);
    if (!t)
        return (double)bytes / again / c->machine->threads;
    struct pack_desc desc;
    describe_pack(&desc, source->desc, plan);
    const struct mgx_plan_key key = key_of(t, plan, source, &desc);
    return mgx_plan_is_packed(c->store, &key, bytes) ? 0 : (double)bytes / bytes_in_a_second;
}

struct job {
    const struct mgx_conv_plan *plan;
    const void *weights;
    void *packed;
    int parts;
};

static void pack_share(void *user, int task, int thread)
{
    (void)thread;
    const struct job *j = user;
    mgx_conv_pack_part(j->plan, j->weights, j->packed, task, j->parts);
}

const void *cpu_conv_weights_ready(const struct cpu_conv_weights *w,
                                   const struct mgx_conv_plan *plan,
                                   const struct mgx_plan_args *args)
{
    if (w->packed)
        return w->packed;
    struct job j = {.plan = plan,
                    .weights = args->in[w->input],
                    .packed = (char *)args->workspace + w->at,
                    .parts = w->parts};
    assert(j.weights && args->workspace && (uintptr_t)j.packed % 64 == 0);
    mgx_pool_run(cpu_pool(args), j.parts, pack_share, &j);
    return j.packed;
}
