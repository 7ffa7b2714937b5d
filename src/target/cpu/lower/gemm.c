// SPDX-License-Identifier: MIT
// dot, alone or with its epilogue, as packed matrix multiplication.
//
//     group: y = body(dot(a, b), bias, residual, ...)        see epilogue.h of this folder for what
//     a body becomes
//
// A constant b is packed once. Rows of all batches of `a` that share one b merge into one product
// when they lie at one stride, so a batch of sentences is one tall matrix.
#include <string.h>

#include "op/op.h"
#include "target/cpu/kernel/gemm.h"
#include "target/cpu/lower/epilogue.h"

struct gemm {
    struct mgx_gemm_plan plan;
    const void *packed;
    struct cpu_epilogue epilogue;
    int a, b; // inputs
};

// Batch axes with their strides in up to three operands, merged where all allow. False when more
// than fit remain.
struct batches {
    int count;
    int64_t lens[MGX_MAX_RANK], a[MGX_MAX_RANK], b[MGX_MAX_RANK], c[MGX_MAX_RANK], r[MGX_MAX_RANK];
};

static void add_axis(struct batches *x, int64_t len, int64_t a, int64_t b, int64_t c, int64_t r)
{
    const int k = x->count - 1;
    if (len == 1)
        return;
    if (k >= 0 && x->a[k] == a * len && x->b[k] == b * len && x->c[k] == c * len &&
        x->r[k] == r * len) {
        x->lens[k] *= len;
        x->a[k] = a;
        x->b[k] = b;
        x->c[k] = c;
        x->r[k] = r;
        return;
    }
    const int to = x->count++;
    x->lens[to] = len;
    x->a[to] = a;
    x->b[to] = b;
    x->c[to] = c;
    x->r[to] = r;
}

// The last batch axis becomes rows when b is the same for all of it and rows continue over it.
static void merge_rows(struct mgx_gemm_desc *d, struct batches *x)
{
    while (x->count) {
        const int k = x->count - 1;
        if (x->b[k] != 0 || x->a[k] != d->a_row * d->m || x->c[k] != d->c_row * d->m ||
            (d->epilogue.residual != MGX_RESIDUAL_NONE && x->r[k] != d->residual_row * d->m))
            return;
        d->m *= x->lens[k];
        x->count--;
    }
}

static bool describe(struct cpu_prepare *c, struct gemm *g, struct mgx_gemm_desc *d)
{
    const struct mgx_shape *a = &c->in[g->a], *b = &c->in[g->b], *y = c->out;
    const struct mgx_shape *r = g->epilogue.residual >= 0 ? &c->in[g->epilogue.residual] : NULL;
    const int n = y->rank;
    *d = (struct mgx_gemm_desc){.isa = c->plan->isa,
                                .threads = c->plan->threads,
                                .m = a->lens[n - 2],
                                .n = b->lens[n - 1],
                                .k = a->lens[n - 1],
                                .a_row = a->strides[n - 2],
                                .a_col = a->strides[n - 1],
                                .b_row = b->strides[n - 2],
                                .b_col = b->strides[n - 1],
                                .c_row = y->strides[n - 2],
                                .residual_row = r ? r->strides[n - 2] : 0,
                                .packed = c->constant[g->b] != NULL,
                                .epilogue = g->epilogue.kernel};
    if (y->strides[n - 1] != 1 && y->lens[n - 1] != 1) {
        c->why = "columns of the result are not contiguous";
        return false;
    }
    struct batches x = {0};
    for (int i = 0; i < n - 2; i++)
        add_axis(&x, y->lens[i], a->lens[i] == 1 ? 0 : a->strides[i],
                 b->lens[i] == 1 ? 0 : b->strides[i], y->strides[i], r ? r->strides[i] : 0);
    merge_rows(d, &x);
    if (x.count > MGX_GEMM_BATCH) {
        c->why = "too many batch axes";
        return false;
    }
    for (int i = 0; i < x.count; i++) {
        const int to = MGX_GEMM_BATCH - x.count + i;
        d->batch[to] = x.lens[i];
        d->a_batch[to] = x.a[i];
        d->b_batch[to] = x.b[i];
        d->c_batch[to] = x.c[i];
        d->residual_batch[to] = x.r[i];
    }
    return true;
}

static bool pack(struct cpu_prepare *c, struct gemm *g)
{
    const struct mgx_tensor *b = c->constant[g->b];
    const struct {
        const void *data;
        int64_t n, k, row, col, batch[MGX_GEMM_BATCH], strides[MGX_GEMM_BATCH];
    } key = {b->data,
             g->plan.desc.n,
             g->plan.desc.k,
             g->plan.desc.b_row,
             g->plan.desc.b_col,
             {g->plan.desc.batch[0], g->plan.desc.batch[1], g->plan.desc.batch[2]},
             {g->plan.desc.b_batch[0], g->plan.desc.b_batch[1], g->plan.desc.b_batch[2]}};
    bool found;
    void *packed = cpu_pack(c->plan, &key, sizeof key, g->plan.packed_bytes, &found, c->diag);
    if (!packed)
        return false;
    if (!found)
        mgx_gemm_pack(&g->plan, b->data, packed);
    g->packed = packed;
    c->skip_in[g->b] = true;
    return true;
}

static bool prepare(struct cpu_prepare *c)
{
    struct gemm *g = MGX_NEW(&c->plan->arena, struct gemm);
    struct mgx_gemm_desc desc;
    const struct mgx_ins *main = NULL;
    if (!g) {
        mgx_fail_memory(c->diag);
        return false;
    }
    if (!cpu_epilogue_match(c, &mgx_op_dot, &g->epilogue, &main))
        return false;
    g->a = g->epilogue.main_in[0];
    g->b = g->epilogue.main_in[1];
    if (c->out->type != MGX_FLOAT || c->in[g->a].type != MGX_FLOAT ||
        c->in[g->b].type != MGX_FLOAT) {
        c->why = "not float";
        return false;
    }
    if (!mgx_shape_elements(c->out) || !mgx_shape_elements(&c->in[g->a])) {
        c->why = "empty";
        return false;
    }
    if (!describe(c, g, &desc))
        return false;
    if (mgx_gemm_plan_init(&g->plan, &desc, c->diag) != MGX_OK)
        return false;
    if (desc.packed && !pack(c, g))
        return false;
    c->workspace = mgx_gemm_workspace(&g->plan);
    c->flops = 2.0 * (double)mgx_shape_elements(c->out) * (double)desc.k;
    c->detail = g->plan.kernel->name;
    c->state = g;
    return cpu_epilogue_finish(c, &g->epilogue);
}

static enum mgx_status run(const struct cpu_step *step, const struct cpu_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct gemm *g = step->state;
    struct cpu_epilogue_run epilogue;
    cpu_epilogue_start(&g->epilogue, args, &epilogue);
    const struct mgx_gemm_args a = {.a = args->in[g->a],
                                    .b = g->packed ? g->packed : args->in[g->b],
                                    .bias = epilogue.bias,
                                    .residual = epilogue.residual,
                                    .c = args->out,
                                    .workspace = args->workspace,
                                    .hook_user = &epilogue};
    mgx_gemm_run(&g->plan, &a, args->context->plan->pool);
    return MGX_OK;
}

const struct cpu_kernel cpu_kernel_gemm = {.name = "gemm", .prepare = prepare, .run = run};
