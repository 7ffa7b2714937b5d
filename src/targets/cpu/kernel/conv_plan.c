// SPDX-License-Identifier: MIT
// Making a convolution plan: checking the description, choosing a method, owning what it prepared.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "targets/cpu/kernel/conv_plan.h"
#include "targets/cpu/kernel/convert.h"

static const struct mgx_conv_ops *const methods[] = {
    [MGX_CONV_DIRECT] = &mgx_conv_direct,       [MGX_CONV_STRIP] = &mgx_conv_strip,
    [MGX_CONV_UNROLLED] = &mgx_conv_unrolled,   [MGX_CONV_WINOGRAD2] = &mgx_conv_winograd2,
    [MGX_CONV_WINOGRAD4] = &mgx_conv_winograd4, [MGX_CONV_DEPTHWISE] = &mgx_conv_depthwise,
    [MGX_CONV_PHASES] = &mgx_conv_phases,
};

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

static bool is_trivial(const struct mgx_epilogue *e)
{
    return e->act == MGX_ACT_NONE && !e->residual && !e->hook;
}

static bool types_fit(const struct mgx_conv_desc *d)
{
    const bool integers = d->y_type == MGX_KERNEL_S32, bytes = d->type == MGX_KERNEL_S8;
    const enum mgx_kernel_type a = bytes ? MGX_KERNEL_S16 : MGX_KERNEL_F32;
    return (bytes || d->type == MGX_KERNEL_F32 || d->type == MGX_KERNEL_BF16) &&
           mgx_convert(d->isa, d->x_type, a) && mgx_convert(d->isa, d->w_type, a) &&
           mgx_kernel_is_float(d->x_type) != bytes && mgx_kernel_is_float(d->w_type) != bytes &&
           (mgx_kernel_size(d->y_type) == 1) == (d->epilogue.requant != NULL) &&
           (integers ? bytes && is_trivial(&d->epilogue)
                     : mgx_convert(d->isa, MGX_KERNEL_F32, d->y_type) != NULL);
}

static enum mgx_status check(const struct mgx_conv_desc *d, struct mgx_diag *diag)
{
    if (!types_fit(d))
        return mgx_fail(diag, MGX_UNSUPPORTED, "no kernel convolves types %d and %d to %d",
                        d->x_type, d->w_type, d->y_type);
    if (d->x_scaled && (d->transposed || d->type != MGX_KERNEL_F32))
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

// Chunks take less time than bytes widened to 16 bits, and more than what multiplies bytes as they
// are without saturating.
static const struct mgx_gemm_kernel *find_kernel(const struct mgx_conv_desc *d, bool chunks)
{
    const struct mgx_gemm_kernel *usual = mgx_integer_kernel(d->type, d->isa, d->w_type, d->w_zero);
    if (!usual && d->type == MGX_KERNEL_BF16)
        return mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    const struct mgx_gemm_kernel *other = mgx_gemm_kernel(MGX_KERNEL_U8, d->isa);
    return chunks && other && usual->b_type == MGX_KERNEL_S16 ? other : usual;
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

static bool fits(const struct mgx_conv_plan *plan, enum mgx_conv_method method)
{
    return methods[method]->fits(plan) && (!plan->d.x_scaled || method <= MGX_CONV_UNROLLED) &&
           (!plan->d.feed || method == MGX_CONV_DEPTHWISE);
}

static int choices_of(const struct mgx_conv_plan *plan, struct mgx_conv_choice *choices)
{
    int count = 0;
    for (int m = 0; m < MGX_CONV_METHOD_COUNT; m++) {
        if (!fits(plan, (enum mgx_conv_method)m))
            continue;
        const struct mgx_conv_choice choice = {(enum mgx_conv_method)m, methods[m]->cost(plan)};
        int at = count++;
        for (; at > 0 && choices[at - 1].seconds > choice.seconds; at--)
            choices[at] = choices[at - 1];
        choices[at] = choice;
    }
    assert(count > 0 || plan->d.feed); // strip takes all others, phases every transposed one
    return count;
}

enum mgx_conv_method mgx_conv_plan_choose(const struct mgx_conv_plan *plan)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    choices_of(plan, choices);
    return choices[0].method;
}

int mgx_conv_choices(const struct mgx_conv_desc *desc, struct mgx_conv_choice *choices)
{
    struct mgx_conv_plan plan = {.d = *desc};
    if (check(desc, NULL) != MGX_OK)
        return 0;
    mgx_conv_plan_derive(&plan);
    return choices_of(&plan, choices);
}

enum mgx_status mgx_conv_plan_prepare(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                                      struct mgx_diag *diag)
{
    plan->method = method;
    plan->ops = methods[method];
    if (method > MGX_CONV_UNROLLED)
        plan->kernel = find_kernel(&plan->d, false);
    if (!fits(plan, method))
        return mgx_fail(diag, MGX_UNSUPPORTED, "convolution method %s does not fit",
                        mgx_conv_method_name(method));
    return plan->ops->prepare(plan, diag);
}

// Weights that no chunks can hold, or too many, are widened; another method may be better then.
static bool lacks_chunks(const struct mgx_conv_plan *plan)
{
    return plan->kernel->strip && !plan->panel_chunks;
}

static enum mgx_status create_without_weights(const struct mgx_conv_desc *desc,
                                              enum mgx_conv_method method,
                                              struct mgx_conv_plan **out, struct mgx_diag *diag)
{
    struct mgx_conv_desc d = *desc;
    d.weights = NULL;
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(&d, choices);
    bool fits = false;
    for (int i = 0; i < count; i++)
        fits |= choices[i].method == method;
    return mgx_conv_plan_create(&d, fits ? method : MGX_CONV_METHOD_COUNT, out, diag);
}

enum mgx_status mgx_conv_plan_create(const struct mgx_conv_desc *desc, enum mgx_conv_method method,
                                     struct mgx_conv_plan **out, struct mgx_diag *diag)
{
    *out = NULL;
    TRY(check(desc, diag));
    struct mgx_conv_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return mgx_fail_memory(diag);
    plan->d = *desc;
    mgx_conv_plan_derive(plan);
    if (desc->feed)
        method = MGX_CONV_DEPTHWISE;
    else if (method == MGX_CONV_METHOD_COUNT)
        method = mgx_conv_plan_choose(plan);
    const enum mgx_status status = mgx_conv_plan_prepare(plan, method, diag);
    if (status != MGX_OK) {
        mgx_conv_plan_destroy(plan);
        return status;
    }
    if (lacks_chunks(plan)) {
        mgx_conv_plan_destroy(plan);
        return create_without_weights(desc, method, out, diag);
    }
    *out = plan;
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
    assert(plan->d.type != MGX_KERNEL_S8 || plan->d.y_type == MGX_KERNEL_S32 || args->scale);
    if (mgx_conv_pixels(&plan->d) <= 0 || plan->d.out_channels <= 0)
        return;
    struct mgx_conv_plan own = *plan;
    own.d.x_zero = args->x_zero ? *args->x_zero : plan->d.x_zero;
    plan->ops->run(&own, args, pool);
}
