// SPDX-License-Identifier: MIT
// Winograd's method of bytes against plain sums: integers are equal, whatever bytes and zero points
// are, up to activations and weights that are all at one end; sizes around tiles and groups of
// channels; several threads. What could leave the bits that sums keep is refused.
#include "targets/cpu/kernel/conv.h"
#include "targets/cpu/kernel/harness.h"

enum { MOST = 40 };

struct problem {
    struct mgx_conv_desc desc;
    int32_t w_zero[MOST];
    struct buffer x, w;
    int64_t x_count, w_count;
};

static uint8_t any_byte(struct rng *r, int kind)
{
    return kind == 0   ? 255
           : kind == 1 ? 128
           : kind == 2 ? (uint8_t)(rng_below(r, 2) * 255)
                       : (uint8_t)rng_below(r, 256);
}

static struct buffer bytes(struct rng *r, int64_t count)
{
    const struct buffer b = buffer_new((count + 3) / 4);
    const int kind = rng_below(r, 6);
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)(void *)b.data)[i] = any_byte(r, kind);
    return b;
}

static void describe(struct problem *p, struct rng *r, mgx_isa isa)
{
    const int in = 1 + rng_below(r, MOST), out = 1 + rng_below(r, MOST), gap = rng_below(r, 2) * 3;
    const bool x_signed = rng_below(r, 2), w_signed = rng_below(r, 3);
    struct mgx_conv_desc *d = &p->desc;
    *d = (struct mgx_conv_desc){.type = MGX_KERNEL_S8,
                                .x_type = x_signed ? MGX_KERNEL_S8 : MGX_KERNEL_U8,
                                .w_type = w_signed ? MGX_KERNEL_S8 : MGX_KERNEL_U8,
                                .y_type = MGX_KERNEL_S32,
                                .isa = isa,
                                .threads = 1 + rng_below(r, 3),
                                .batch = 1 + rng_below(r, 2),
                                .groups = 1,
                                .in_channels = in,
                                .out_channels = out,
                                .in = {1, 1 + rng_below(r, 13), 1 + rng_below(r, 13)},
                                .kernel = {1, 3, 3},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .pad = {0, 1 + rng_below(r, 2), 1 + rng_below(r, 2)},
                                .x_channel = 1,
                                .w_in = 9,
                                .w_out = 9 * in,
                                .w_space = {9, 3, 1}};
    d->out[0] = 1;
    for (int i = 1; i < MGX_CONV_DIMS; i++)
        d->out[i] = d->in[i] + 2 * d->pad[i] - 2;
    d->x_space[2] = in + gap;
    d->x_space[1] = d->x_space[2] * d->in[2];
    d->x_batch = d->x_space[0] = d->x_space[1] * d->in[1];
    d->y_space[2] = out;
    d->y_space[1] = out * d->out[2];
    d->y_batch = d->y_space[0] = d->y_space[1] * d->out[1];
    d->x_zero = (int)any_byte(r, rng_below(r, 6)) - (x_signed ? 128 : 0);
    for (int o = 0; o < out; o++)
        p->w_zero[o] = (int)any_byte(r, rng_below(r, 6)) - (w_signed ? 128 : 0);
    d->w_zero = rng_below(r, 2) ? p->w_zero : NULL;
    p->x_count = d->batch * d->x_batch;
    p->w_count = 9 * in * out;
}

static int64_t value(enum mgx_kernel_type type, struct buffer b, int64_t at)
{
    return type == MGX_KERNEL_S8 ? ((int8_t *)(void *)b.data)[at] : ((uint8_t *)(void *)b.data)[at];
}

static int64_t expected(const struct problem *p, int64_t n, int64_t o, int64_t y, int64_t x)
{
    const struct mgx_conv_desc *d = &p->desc;
    int64_t sum = 0;
    for (int k = 0; k < 9; k++) {
        const int64_t iy = y + k / 3 - d->pad[1], ix = x + k % 3 - d->pad[2];
        if (iy < 0 || ix < 0 || iy >= d->in[1] || ix >= d->in[2])
            continue;
        for (int64_t c = 0; c < d->in_channels; c++)
            sum +=
                (value(d->x_type, p->x,
                       n * d->x_batch + iy * d->x_space[1] + ix * d->x_space[2] + c) -
                 d->x_zero) *
                (value(d->w_type, p->w, o * d->w_out + c * 9 + k) - (d->w_zero ? d->w_zero[o] : 0));
    }
    return sum;
}

static void check(struct problem *p)
{
    struct mgx_conv_desc *d = &p->desc;
    struct mgx_conv_plan *plan;
    struct mgx_pool *pool;
    CHECK_INT(mgx_conv_plan_create(d, MGX_CONV_WINOGRAD_BYTES, &plan, NULL), MGX_OK);
    CHECK_INT(mgx_pool_acquire(d->threads, &pool, NULL), MGX_OK);
    struct buffer packed = buffer_new((int64_t)mgx_conv_packed_bytes(plan) / 4),
                  work = buffer_new((int64_t)mgx_conv_workspace(plan) / 4),
                  y = buffer_new(d->batch * d->y_batch);
    mgx_conv_pack(plan, p->w.data, packed.data);
    const struct mgx_conv_args args = {
        .x = p->x.data, .packed = packed.data, .y = y.data, .workspace = work.data};
    mgx_conv_run(plan, &args, pool);
    CHECK(buffer_intact(packed) && buffer_intact(work) && buffer_intact(y));
    for (int64_t i = 0; i < d->batch * d->y_batch && !check_failures; i++) {
        const int64_t o = i % d->out_channels, pixel = i / d->out_channels;
        const int64_t row = pixel / d->out[2], n = row / d->out[1];
        CHECK_INT(((const int32_t *)(const void *)y.data)[i],
                  expected(p, n, o, row % d->out[1], pixel % d->out[2]));
    }
    mgx_pool_release(pool);
    mgx_conv_plan_destroy(plan);
    buffer_free(packed);
    buffer_free(work);
    buffer_free(y);
}

static bool is_a_choice(const struct problem *p)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(&p->desc, choices);
    for (int i = 0; i < count; i++)
        if (choices[i].method == MGX_CONV_WINOGRAD_BYTES)
            return true;
    return false;
}

CASE(sums_are_exact)
{
    struct rng r = {5};
    int ran = 0;
    EACH_ISA(isa)
    for (int i = 0; i < 150 && !check_failures; i++) {
        struct problem p;
        describe(&p, &r, isa);
        p.x = bytes(&r, p.x_count);
        p.w = bytes(&r, p.w_count);
        p.desc.weights = p.w.data;
        if (is_a_choice(&p)) {
            check(&p);
            ran++;
        }
        buffer_free(p.x);
        buffer_free(p.w);
    }
    CHECK(ran > 0 || !mgx_isa_holds(mgx_cpu()->isa, MGX_ISA_AVX2));
}

// 58 channels of weights 255 away from their zero point reach 2^25, 57 do not.
CASE(sums_that_could_overflow_are_refused)
{
    struct rng r = {6};
    for (int in = 57; in <= 58; in++) {
        struct problem p;
        do
            describe(&p, &r, mgx_cpu()->isa);
        while (p.desc.w_type != MGX_KERNEL_U8);
        p.desc.in_channels = p.desc.x_space[2] = in;
        p.desc.x_space[1] = in * p.desc.in[2];
        p.desc.x_batch = p.desc.x_space[0] = p.desc.x_space[1] * p.desc.in[1];
        p.desc.w_out = 9 * in;
        p.desc.w_zero = p.w_zero;
        memset(p.w_zero, 0, sizeof p.w_zero);
        p.w_count = 9 * in * p.desc.out_channels;
        p.w = buffer_new((p.w_count + 3) / 4);
        memset(p.w.data, 255, (size_t)p.w_count);
        p.x = buffer_new((p.desc.batch * p.desc.x_batch + 3) / 4);
        memset(p.x.data, p.desc.x_type == MGX_KERNEL_U8 ? 255 : 127,
               (size_t)(p.desc.batch * p.desc.x_batch));
        p.desc.x_zero = p.desc.x_type == MGX_KERNEL_U8 ? 0 : -128;
        p.desc.weights = p.w.data;
        if (in == 58)
            CHECK(!is_a_choice(&p));
        else if (is_a_choice(&p))
            check(&p);
        buffer_free(p.x);
        buffer_free(p.w);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(sums_are_exact) ROW(sums_that_could_overflow_are_refused){NULL, NULL}};
    return harness_run(cases, argc, argv);
}
