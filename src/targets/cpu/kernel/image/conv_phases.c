// SPDX-License-Identifier: MIT
// Transposed convolution as ordinary ones. Along each dimension, output position o gets input i
// over kernel element k where  o + pad = i * stride + k * dilation. For the outputs o = stride * j
// + p of one phase p only the elements with  k * dilation = p + pad  (modulo stride) count, and for
// those
//
//     i = j + (p + pad - k * dilation) / stride
//
// which is a convolution of stride 1 over j. The elements are every (stride / g)-th one, g the
// greatest common divisor of stride and dilation, so its dilation is dilation / g; taken from the
// last to the first, i rises. Nothing is added up in memory, and epilogues work as everywhere.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_plan.h"

// A phase of one dimension.
struct phase {
    int64_t first, count;       // outputs: first, first + stride, ...
    int64_t kernel, last, step; // elements last, last - step, ...: `kernel` of them
    int64_t pad, dilation;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    assert(a > 0 && b > 0);
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct phase phase_of(const struct mgx_conv_desc *d, int i, int64_t p)
{
    assert(i >= 0 && i < MGX_CONV_DIMS && p >= 0);
    const int64_t s = d->stride[i], g = common_divisor(s, d->dilation[i]);
    struct phase f = {.first = p, .step = s / g, .dilation = d->dilation[i] / g};
    f.count = p < d->out[i] ? (d->out[i] - p + s - 1) / s : 0;
    for (int64_t k = 0; k < d->kernel[i]; k++)
        if ((p + d->pad[i] - k * d->dilation[i]) % s == 0) {
            f.kernel++;
            f.last = k;
        }
    f.pad = f.kernel ? -(p + d->pad[i] - f.last * d->dilation[i]) / s : 0;
    return f;
}

// The ordinary convolution of one phase in each dimension.
static void set_phase(const struct mgx_conv_plan *whole, const struct phase f[MGX_CONV_DIMS],
                      struct mgx_conv_plan *plan)
{
    plan->d = whole->d;
    struct mgx_conv_desc *d = &plan->d;
    d->transposed = false;
    d->weights =
        NULL; // in the order of the whole's: methods that look at them are none of a phase's
    mgx_conv_plan_derive(plan);
    plan->pixel_batch = whole->pixel_batch;
    for (int i = 0; i < MGX_CONV_DIMS; i++) {
        plan->pixel_first += f[i].first * whole->pixel_space[i];
        plan->pixel_space[i] = whole->pixel_space[i] * d->stride[i];
        plan->y_first += f[i].first * d->y_space[i];
        plan->residual_first += f[i].first * d->residual_space[i];
        plan->w_first += f[i].last * d->w_space[i];
        d->y_space[i] *= d->stride[i];
        d->residual_space[i] *= d->stride[i];
        d->w_space[i] *= -f[i].step;
        d->out[i] = f[i].count;
        d->kernel[i] = f[i].kernel;
        d->pad[i] = f[i].pad;
        d->dilation[i] = f[i].dilation;
        d->stride[i] = 1;
    }
}

static enum mgx_status add_phase(struct mgx_conv_plan *plan, const struct phase f[MGX_CONV_DIMS],
                                 struct mgx_diag *diag)
{
    struct mgx_conv_plan *part = calloc(1, sizeof *part);
    if (!part)
        return mgx_fail_memory(diag);
    plan->phases[plan->phase_count++] = part;
    set_phase(plan, f, part);
    TRY(mgx_conv_plan_prepare(part, mgx_conv_plan_choose(part), diag));
    plan->phase_packed[plan->phase_count - 1] = plan->packed_bytes;
    size_t workspace = mgx_conv_workspace(part);
    if (!mgx_add_size(plan->packed_bytes, mgx_align64(part->packed_bytes), &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights do not fit");
    if (workspace > plan->shared_workspace)
        plan->shared_workspace = workspace;
    return MGX_OK;
}

static enum mgx_status phases_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    int64_t count[MGX_CONV_DIMS], all = 1;
    for (int i = 0; i < MGX_CONV_DIMS; i++) { // no more phases than outputs
        count[i] = mgx_min_i64(d->stride[i], d->out[i]);
        if (!mgx_mul_i64(all, count[i], &all) || all > INT32_MAX)
            return mgx_fail(diag, MGX_LIMIT, "%lld phases of a transposed convolution",
                            (long long)all);
    }
    plan->phases = calloc((size_t)all + 1, sizeof(struct mgx_conv_plan *));
    plan->phase_packed = calloc((size_t)all + 1, sizeof *plan->phase_packed);
    if (!plan->phases || !plan->phase_packed)
        return mgx_fail_memory(diag);
    for (int64_t p = 0; p < all; p++) {
        const struct phase f[] = {phase_of(d, 0, p / (count[1] * count[2])),
                                  phase_of(d, 1, p / count[2] % count[1]),
                                  phase_of(d, 2, p % count[2])};
        TRY(add_phase(plan, f, diag));
    }
    return MGX_OK;
}

static void phases_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                        int part, int parts)
{
    for (int i = 0; i < plan->phase_count; i++)
        mgx_conv_pack_part(plan->phases[i], weights, (char *)packed + plan->phase_packed[i], part,
                           parts);
}

static void phases_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                       struct mgx_pool *pool)
{
    struct mgx_conv_args own = *args;
    for (int i = 0; i < plan->phase_count; i++) {
        own.packed = (const char *)args->packed + plan->phase_packed[i];
        mgx_conv_run(plan->phases[i], &own, pool);
    }
}

// The only method there is: nobody asks whether it fits or what it costs.
const struct mgx_conv_ops mgx_conv_phases = {
    .prepare = phases_prepare, .pack = phases_pack, .run = phases_run};
