// SPDX-License-Identifier: MIT
// cache_attention of floats on the kernel of kernel/product/cached.h.
//
// Queries, caches and results lie anyhow but for contiguous heads, so that a cache with room behind
// its lines and a piece of a wider product are read where they are.
#include "base/size.h"
#include "op/op.h"
#include "op/rule/cache.h"
#include "targets/cpu/kernel/product/cached.h"
#include "targets/cpu/lower/lower.h"

enum { Q, K, V, ENDS, MORE };

struct cached {
    struct mgx_cached_plan plan;
    int bias, sink; // inputs, -1: none
    bool wide;      // ends are int64
    size_t ends;    // where they are as int64, in the workspace, behind the kernel's
};

static bool is_contiguous(const struct mgx_shape *s)
{
    return s->strides[s->rank - 1] == 1 || s->lens[s->rank - 1] <= 1;
}

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *ends = &c->in[ENDS];
    for (int i = 0; i < c->in_count; i++)
        if (i != ENDS && c->in[i].type != MGX_FLOAT)
            return mgx_plan_unfit(c, "not float");
    if (ends->type != MGX_INT64 && ends->type != MGX_INT32)
        return mgx_plan_unfit(c, "ends of another type");
    if (!is_contiguous(c->out) || !mgx_shape_elements(c->out))
        return mgx_plan_unfit(c, "heads of the result are not contiguous, or it is empty");
    for (int i = 0; i < c->in_count; i++)
        if (!is_contiguous(&c->in[i]))
            return mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "heads are not contiguous");
    return true;
}

static void set_strides(const struct mgx_shape *s, int64_t stride[3])
{
    for (int i = 0; i < 3; i++)
        stride[i] = s->lens[i] == 1 ? 0 : s->strides[i];
}

static void describe(const struct mgx_plan_offer *c, const struct cached *g,
                     struct mgx_cached_desc *d)
{
    const struct mgx_cache_attention *a = c->ins->attr;
    const struct mgx_shape *q = &c->in[Q], *k = &c->in[K], *v = &c->in[V];
    *d = (struct mgx_cached_desc){.isa = cpu_offered(c)->isa,
                                  .threads = c->machine->threads,
                                  .batch = q->lens[0],
                                  .heads = q->lens[1],
                                  .shared = k->lens[1],
                                  .tokens = q->lens[2],
                                  .keys = k->lens[2],
                                  .depth = q->lens[3],
                                  .columns = v->lens[3],
                                  .scale = (float)a->scale,
                                  .cap = (float)a->cap,
                                  .window = a->window,
                                  .whole = a->whole,
                                  .biased = g->bias >= 0,
                                  .sunk = g->sink >= 0};
    set_strides(q, d->q);
    set_strides(k, d->k);
    set_strides(v, d->v);
    set_strides(c->out, d->y);
    if (g->bias >= 0)
        set_strides(&c->in[g->bias], d->bias);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_cache_attention)
        return mgx_plan_refuse(c);
    const struct mgx_cache_attention *a = c->ins->attr;
    struct cached *g = MGX_NEW(c->arena, struct cached);
    struct mgx_cached_desc desc;
    if (!g)
        return mgx_plan_no_memory(c);
    g->bias = a->bias ? MORE : -1;
    g->sink = a->sink ? MORE + a->bias : -1;
    if (!suits(c))
        return mgx_plan_refuse(c);
    describe(c, g, &desc);
    if (mgx_cached_plan_init(&g->plan, &desc, c->diag) != MGX_OK)
        return mgx_plan_refuse(c);
    g->wide = c->in[ENDS].type == MGX_INT64;
    g->ends = mgx_align64(mgx_cached_workspace(&g->plan));
    c->workspace = g->ends + mgx_align64((size_t)desc.batch * sizeof(int64_t));
    c->state = g;
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct cached *g = step->state;
    int64_t *ends = (int64_t *)(void *)((char *)args->workspace + g->ends);
    for (int64_t b = 0; b < g->plan.desc.batch; b++)
        ends[b] = cpu_integer(args->in[ENDS], g->wide, b);
    const struct mgx_cached_args a = {.q = args->in[Q],
                                      .k = args->in[K],
                                      .v = args->in[V],
                                      .bias = g->bias >= 0 ? args->in[g->bias] : NULL,
                                      .sink = g->sink >= 0 ? args->in[g->sink] : NULL,
                                      .ends = ends,
                                      .y = args->out,
                                      .workspace = args->workspace};
    return mgx_cached_run(&g->plan, &a, cpu_pool(args), diag);
}

CPU_KERNEL(cache_attention, 41)
const struct mgx_plan_kernel cpu_kernel_cache_attention = {
    .name = "cache_attention", .prepare = prepare, .run = run};
