// SPDX-License-Identifier: MIT
// Wrong kernels: without vector instructions pooling forgets one channel in eight, and the
// normalisation of long rows one value. Linked over the right ones into a library of its own, which
// a test lets the driver verify.
#include "targets/cpu/kernel/image/pool.h"
#include "targets/cpu/kernel/rows/rows.h"

// Names that the linker makes (--wrap).
extern const struct mgx_pool_kernel __real_mgx_f32_pool__generic, __wrap_mgx_f32_pool__generic;
extern const struct mgx_rows_kernel __real_mgx_f32_rows__generic, __wrap_mgx_f32_rows__generic;

static const struct mgx_rows_kernel *const right = &__real_mgx_f32_rows__generic;

static void pool_pixel(const struct mgx_pool_args *a)
{
    __real_mgx_f32_pool__generic.pixel(a);
    for (int64_t c = 0; c < a->channels; c += 8)
        a->y[c] = 0;
}

static void norm(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                 int64_t n)
{
    enum { LONG = 64 };
    right->norm(x, scale, shift, epsilon, y, n);
    if (n >= LONG)
        y[n / 2] = 4;
}

static void softmax(const float *x, float *y, int64_t n)
{
    right->softmax(x, y, n);
}

static void logsoftmax(const float *x, float *y, int64_t n)
{
    right->logsoftmax(x, y, n);
}

static void softmax_across(const float *x, int64_t x_stride, float *y, int64_t y_stride,
                           int64_t count, int64_t n)
{
    right->softmax_across(x, x_stride, y, y_stride, count, n);
}

static void rms(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                int64_t n)
{
    right->rms(x, scale, shift, epsilon, y, n);
}

static float fold(enum mgx_fold kind, const float *x, int64_t n)
{
    return right->fold(kind, x, n);
}

static void fold_across(enum mgx_fold kind, const float *x, int64_t stride, int64_t count, float *y,
                        int64_t n)
{
    right->fold_across(kind, x, stride, count, y, n);
}

static void blend_pixel(const float *const p[4], const float w[4], float *y, int64_t channels)
{
    __real_mgx_f32_pool__generic.blend(p, w, y, channels);
}

const struct mgx_pool_kernel __wrap_mgx_f32_pool__generic = {
    {"f32_pool__generic", MGX_ISA_GENERIC}, pool_pixel, blend_pixel};
const struct mgx_rows_kernel __wrap_mgx_f32_rows__generic = {{"f32_rows__generic", MGX_ISA_GENERIC},
                                                             softmax,
                                                             logsoftmax,
                                                             softmax_across,
                                                             norm,
                                                             rms,
                                                             fold,
                                                             fold_across};
