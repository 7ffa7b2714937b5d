// SPDX-License-Identifier: MIT
// What all methods of a convolution have in common: checking a description, what follows from it,
// owning a plan, and packing and running it through the method's functions. Knows no method.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/output.h"

const char *mgx_conv_method_name(enum mgx_conv_method method)
{
    static const char *const names[] = {
#define X(name, text) text,
        MGX_CONV_METHOD_LIST(X)
#undef X
    };
    return names[method];
}

// Everything a kernel multiplies sizes for stays far below the range of int64_t.
static bool products_fit(const struct mgx_conv_desc *d)
{
    int64_t in = d->batch, out = d->batch, weights = d->out_channels;
    bool fits = mgx_mul_i64(in, d->in_channels, &in) && mgx_mul_i64(out, d->out_channels, &out) &&
                mgx_mul_i64(weights, d->in_channels, &weights);
    for (int i = 0; i < MGX_CONV_DIMS && fits; i++) {
        int64_t reach, step;
        fits = mgx_mul_i64(in, d->in[i], &in) && mgx_mul_i64(out, d->out[i], &out) &&
               mgx_mul_i64(weights, d->kernel[i], &weights) &&
               mgx_mul_i64(d->kernel[i], d->dilation[i], &reach) &&
               mgx_mul_i64(mgx_max_i64(d->out[i], d->in[i]), d->stride[i], &step) &&
               reach < INT32_MAX && step < INT32_MAX;
    }
    const int64_t most = PTRDIFF_MAX / 256; // Winograd weights are 4 times larger, and 4 bytes each
    return fits && in < most && out < most && weights < most;
}

static bool types_fit(const struct mgx_conv_desc *d)
{
    const bool integers = mgx_kernel_is_sums(d->y_type), bytes = mgx_kernel_is_signed(d->type);
    const enum mgx_kernel_type a = bytes ? MGX_KERNEL_S16 : MGX_KERNEL_F32;
    return (bytes || mgx_kernel_is_plain(d->type) || d->type == MGX_KERNEL_BF16) &&
           mgx_convert(d->isa, d->x_type, a) && mgx_convert(d->isa, d->w_type, a) &&
           mgx_kernel_is_float(d->x_type) != bytes && mgx_kernel_is_float(d->w_type) != bytes &&
           mgx_output_fits(&d->end, d->y_type) &&
           (integers ? bytes && !d->end.count
                     : mgx_convert(d->isa, MGX_KERNEL_F32, d->y_type) != NULL);
}

enum mgx_status mgx_conv_check(const struct mgx_conv_desc *d, struct mgx_diag *diag)
{
    if (!types_fit(d))
        return mgx_fail(diag, MGX_UNSUPPORTED, "no kernel convolves types %d and %d to %d",
                        d->x_type, d->w_type, d->y_type);
    if (d->x_scaled && (d->transposed || !mgx_kernel_is_plain(d->type)))
        return mgx_fail(diag, MGX_UNSUPPORTED, "only floats convolve with scaled inputs");
    if (d->batch < 0 || d->groups < 1 || d->in_channels < 0 || d->out_channels < 0 ||
        d->in_channels % d->groups || d->out_channels % d->groups)
        return mgx_fail(diag, MGX_INVALID,
                        "convolution of %lld to %lld channels in %lld groups, batch %lld",
                        (long long)d->in_channels, (long long)d->out_channels, (long long)d->groups,
                        (long long)d->batch);
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        if (d->in[i] < 0 || d->out[i] < 0 || d->kernel[i] < 1 || d->stride[i] < 1 ||
            d->dilation[i] < 1 || d->border_before[i] < 0 || d->border_after[i] < 0)
            return mgx_fail(diag, MGX_INVALID,
                            "convolution of size %lld to %lld, kernel %lld, stride %lld, dilation "
                            "%lld",
                            (long long)d->in[i], (long long)d->out[i], (long long)d->kernel[i],
                            (long long)d->stride[i], (long long)d->dilation[i]);
    return products_fit(d) ? MGX_OK
                           : mgx_fail(diag, MGX_LIMIT, "convolution sizes do not fit 64 bits");
}

static const struct mgx_gemm_kernel *find_kernel(const struct mgx_conv_desc *d, bool chunks)
{
    const struct mgx_gemm_kernel *usual =
        mgx_integer_kernel(d->type, d->isa, d->x_type, d->w_type, d->w_zero);
    if (!usual && mgx_kernel_is_float(d->type))
        return mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    const struct mgx_gemm_kernel *other = mgx_gemm_kernel(MGX_KERNEL_U8, d->isa);
    return chunks && mgx_chunks_compete(other, usual) ? other : usual;
}

void mgx_conv_plan_derive(struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    plan->kernel = find_kernel(d, d->weights && !d->transposed);
    plan->group_in = d->in_channels / d->groups;
    plan->group_out = d->out_channels / d->groups;
    plan->pixel_space[2] = 1;
    plan->pixel_space[1] = d->out[2];
    plan->pixel_space[0] = d->out[1] * d->out[2];
    plan->pixel_batch = d->out[0] * plan->pixel_space[0];
}

enum mgx_status mgx_conv_plan_start(const struct mgx_conv_desc *desc, struct mgx_conv_plan **out,
                                    struct mgx_diag *diag)
{
    TRY(mgx_conv_check(desc, diag));
    struct mgx_conv_plan *plan = *out = calloc(1, sizeof *plan);
    if (!plan)
        return mgx_fail_memory(diag);
    plan->d = *desc;
    mgx_conv_plan_derive(plan);
    return MGX_OK;
}

enum mgx_status mgx_conv_plan_use(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                                  const struct mgx_conv_ops *ops, struct mgx_diag *diag)
{
    plan->method = method;
    plan->ops = ops;
    if (method > MGX_CONV_UNROLLED)
        plan->kernel = find_kernel(&plan->d, false);
    TRY(ops->prepare(plan, diag));
    plan->ends = mgx_end_kernel(plan->kernel->base.needs);
    return MGX_OK;
}

void mgx_conv_plan_destroy(struct mgx_conv_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->phase_count; i++) // phases have none of their own
        mgx_conv_plan_destroy(plan->phases[i]);
    mgx_conv_plan_destroy(plan->feed); // has none itself
    free(plan->phases);
    free(plan->phase_packed);
    free(plan->taps);
    free(plan);
}

const struct mgx_conv_plan *mgx_conv_plan_feed(const struct mgx_conv_plan *plan)
{
    return plan->feed;
}

enum mgx_conv_method mgx_conv_plan_method(const struct mgx_conv_plan *plan)
{
    return plan->method;
}

const struct mgx_gemm_kernel *mgx_conv_plan_kernel(const struct mgx_conv_plan *plan)
{
    return plan->kernel;
}

size_t mgx_conv_packed_bytes(const struct mgx_conv_plan *plan)
{
    return plan->packed_bytes;
}

size_t mgx_conv_workspace(const struct mgx_conv_plan *plan)
{
    const int threads = plan->d.threads > 1 ? plan->d.threads : 1;
    return plan->shared_workspace + plan->thread_workspace * (size_t)threads;
}

void mgx_conv_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed)
{
    plan->ops->pack(plan, weights, packed, 0, 1);
}

void mgx_conv_pack_part(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                        int part, int parts)
{
    assert(part >= 0 && part < parts);
    plan->ops->pack(plan, weights, packed, part, parts);
}

struct mgx_ahead mgx_conv_first_read(const struct mgx_conv_plan *plan, const void *packed,
                                     int thread)
{
    if (!plan->ops->first_read || plan->d.x_scaled || mgx_conv_pixels(&plan->d) == 0 ||
        plan->d.out_channels == 0)
        return (struct mgx_ahead){NULL, 0};
    const struct mgx_ahead first = plan->ops->first_read(plan, packed, thread);
    return mgx_ahead_of(first.at, first.bytes);
}

void mgx_conv_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                  struct mgx_pool *pool)
{
    assert(mgx_pool_threads(pool) <= (plan->d.threads > 1 ? plan->d.threads : 1));
    assert(mgx_kernel_is_float(plan->d.type) || mgx_kernel_is_sums(plan->d.y_type) || args->scale);
    if (mgx_conv_pixels(&plan->d) <= 0 || plan->d.out_channels <= 0)
        return;
    struct mgx_conv_plan own = *plan;
    own.d.x_zero = args->x_zero ? *args->x_zero : plan->d.x_zero;
    plan->ops->run(&own, args, pool);
}
