// SPDX-License-Identifier: MIT
// Convolutions of bytes that have methods of their own, 3 x 3 by Winograd's and depthwise, against
// plain sums: integers are equal, whatever bytes and zero points are, up to activations and weights
// that are all at one end; sizes around tiles, steps and vectors of channels; several threads. What
// could leave the bits that Winograd's sums keep is refused. However an image ends, by Winograd's
// method it is to the bit what strips make of it, and its size changes nothing in packed weights.
#include "targets/cpu/kernel/ends.h"
#include "targets/cpu/kernel/image/conv.h"
#include "targets/cpu/kernel/image/conv_plain.h"

enum { MOST = 40, MOST_LARGE = 150 };

struct problem {
    struct mgx_conv_desc desc;
    int32_t w_zero[MOST_LARGE];
    struct buffer x, w;
};

static uint8_t any_byte(struct rng *r, int kind)
{
    if (kind < 2)
        return kind == 0 ? 255 : 128;
    return (uint8_t)(kind == 2 ? rng_below(r, 2) * 255 : rng_below(r, 256));
}

static struct buffer bytes(struct rng *r, int64_t count)
{
    const struct buffer b = buffer_new((count + 3) / 4);
    const int kind = rng_below(r, 6);
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)(void *)b.data)[i] = any_byte(r, kind);
    return b;
}

// Images of pixels that follow each other, their channels perhaps with a gap behind them; weights
// as ONNX has them.
static void lay_out(struct mgx_conv_desc *d, int gap)
{
    const int64_t taps = d->kernel[1] * d->kernel[2], out = d->out_channels;
    for (int i = 1; i < MGX_CONV_DIMS; i++)
        d->out[i] =
            (d->in[i] + 2 * d->pad[i] - (d->kernel[i] - 1) * d->dilation[i] - 1) / d->stride[i] + 1;
    d->x_space[2] = d->in_channels + gap;
    d->x_space[1] = d->x_space[2] * d->in[2];
    d->x_batch = d->x_space[0] = d->x_space[1] * d->in[1];
    d->y_space[2] = out;
    d->y_space[1] = out * d->out[2];
    d->y_batch = d->y_space[0] = d->y_space[1] * d->out[1];
    d->w_space[2] = 1;
    d->w_space[1] = d->kernel[2];
    d->w_space[0] = d->w_in = taps;
    d->w_out = taps * (d->in_channels / d->groups);
    d->w_group = d->w_out * (out / d->groups);
}

static struct mgx_conv_desc any_types(struct rng *r, mgx_isa isa)
{
    struct mgx_conv_desc d = conv_plain(isa, 1 + rng_below(r, 2));
    d.type = MGX_KERNEL_S8;
    d.x_type = rng_below(r, 2) ? MGX_KERNEL_S8 : MGX_KERNEL_U8;
    d.w_type = rng_below(r, 3) ? MGX_KERNEL_S8 : MGX_KERNEL_U8;
    d.y_type = MGX_KERNEL_S32;
    d.threads = 1 + rng_below(r, 3);
    return d;
}

static void any_3x3(struct rng *r, struct mgx_conv_desc *d)
{
    const bool large = rng_below(r, 8) == 0; // several panels, several blocks of tiles
    d->in_channels = 1 + rng_below(r, large ? MOST_LARGE : MOST);
    d->out_channels = 1 + rng_below(r, large ? MOST_LARGE : MOST);
    for (int i = 1; i < MGX_CONV_DIMS; i++) {
        d->in[i] = 1 + rng_below(r, large ? 25 : 13);
        d->kernel[i] = 3;
        d->pad[i] = 1 + rng_below(r, 2);
        d->dilation[i] = rng_below(r, 3) ? 1 : 1 + rng_below(r, 4);
        d->in[i] = mgx_max_i64(d->in[i], 2 * d->dilation[i] + 1 - 2 * d->pad[i]);
    }
}

// Mostly one of the usual kernels.
static void any_depthwise(struct rng *r, struct mgx_conv_desc *d)
{
    const bool usual = rng_below(r, 3);
    d->in_channels = d->out_channels = d->groups =
        2 + rng_below(r, (rng_below(r, 2) ? MOST : MOST_LARGE) - 1);
    for (int i = 1; i < MGX_CONV_DIMS; i++) {
        d->kernel[i] = usual ? 3 + 2 * rng_below(r, 2) : 1 + rng_below(r, 7);
        d->stride[i] = 1 + rng_below(r, usual ? 2 : 3);
        d->dilation[i] = usual ? 1 : 1 + rng_below(r, 3);
        d->pad[i] = rng_below(r, (int)d->kernel[i]);
        d->in[i] = (d->kernel[i] - 1) * d->dilation[i] + 1 + rng_below(r, 24);
    }
}

static void fill(struct problem *p, struct rng *r)
{
    struct mgx_conv_desc *d = &p->desc;
    lay_out(d, rng_below(r, 2) * 3);
    d->x_zero = (int)any_byte(r, rng_below(r, 6)) - (d->x_type == MGX_KERNEL_S8 ? 128 : 0);
    for (int o = 0; o < d->out_channels; o++)
        p->w_zero[o] = (int)any_byte(r, rng_below(r, 6)) - (d->w_type == MGX_KERNEL_S8 ? 128 : 0);
    d->w_zero = rng_below(r, 2) ? p->w_zero : NULL;
    p->x = bytes(r, d->batch * d->x_batch);
    p->w = bytes(r, d->groups * d->w_group);
    d->weights = p->w.data;
}

static void problem_free(struct problem *p)
{
    buffer_free(p->x);
    buffer_free(p->w);
}

static int64_t value(enum mgx_kernel_type type, struct buffer b, int64_t at)
{
    return type == MGX_KERNEL_S8 ? ((int8_t *)(void *)b.data)[at] : ((uint8_t *)(void *)b.data)[at];
}

static int64_t expected(const struct problem *p, int64_t n, int64_t o, int64_t y, int64_t x)
{
    const struct mgx_conv_desc *d = &p->desc;
    const int64_t in = d->in_channels / d->groups, first = o / (d->out_channels / d->groups) * in;
    int64_t sum = 0;
    for (int64_t k = 0; k < d->w_in; k++) {
        const int64_t iy = y * d->stride[1] + k / d->kernel[2] * d->dilation[1] - d->pad[1],
                      ix = x * d->stride[2] + k % d->kernel[2] * d->dilation[2] - d->pad[2];
        if (iy < 0 || ix < 0 || iy >= d->in[1] || ix >= d->in[2])
            continue;
        const int64_t at = n * d->x_batch + iy * d->x_space[1] + ix * d->x_space[2] + first;
        for (int64_t c = 0; c < in; c++)
            sum += (value(d->x_type, p->x, at + c) - d->x_zero) *
                   (value(d->w_type, p->w, o * d->w_out + c * d->w_in + k) -
                    (d->w_zero ? d->w_zero[o] : 0));
    }
    return sum;
}

// Runs it into `y`, with nothing but what `args` says beside its input and weights.
static void solve(const struct problem *p, enum mgx_conv_method method, struct mgx_conv_args args,
                  struct buffer y)
{
    const struct mgx_conv_desc *d = &p->desc;
    struct mgx_conv_plan *plan;
    struct mgx_pool *pool;
    CHECK_INT(mgx_conv_plan_create(d, method, &plan, NULL), MGX_OK);
    CHECK_INT(mgx_pool_acquire(d->threads, &pool, NULL), MGX_OK);
    struct buffer packed = buffer_new((int64_t)mgx_conv_packed_bytes(plan) / 4),
                  work = buffer_new((int64_t)mgx_conv_workspace(plan) / 4);
    mgx_conv_pack(plan, p->w.data, packed.data);
    args.x = p->x.data;
    args.packed = packed.data;
    args.y = y.data;
    args.workspace = work.data;
    mgx_conv_run(plan, &args, pool);
    CHECK(buffer_intact(packed) && buffer_intact(work) && buffer_intact(y));
    mgx_pool_release(pool);
    mgx_conv_plan_destroy(plan);
    buffer_free(packed);
    buffer_free(work);
}

static void check(const struct problem *p, enum mgx_conv_method method)
{
    const struct mgx_conv_desc *d = &p->desc;
    const struct buffer y = buffer_new(d->batch * d->y_batch);
    solve(p, method, (struct mgx_conv_args){.x = NULL}, y);
    for (int64_t i = 0; i < d->batch * d->y_batch && !check_failures; i++) {
        const int64_t o = i % d->out_channels, pixel = i / d->out_channels;
        const int64_t row = pixel / d->out[2], n = row / d->out[1];
        CHECK_INT(((const int32_t *)(const void *)y.data)[i],
                  expected(p, n, o, row % d->out[1], pixel % d->out[2]));
    }
    buffer_free(y);
}

static bool is_a_choice(const struct problem *p, enum mgx_conv_method method)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(&p->desc, choices);
    for (int i = 0; i < count; i++)
        if (choices[i].method == method)
            return true;
    return false;
}

static void check_many(enum mgx_conv_method method, int count,
                       void (*any)(struct rng *r, struct mgx_conv_desc *d))
{
    struct rng r = {5};
    int ran = 0;
    EACH_ISA(isa)
    for (int i = 0; i < count && !check_failures; i++) {
        struct problem p = {.desc = any_types(&r, isa)};
        any(&r, &p.desc);
        fill(&p, &r);
        if (is_a_choice(&p, method)) {
            check(&p, method);
            ran++;
        }
        problem_free(&p);
    }
    CHECK(ran > 0 || !mgx_isa_holds(mgx_cpu()->isa, MGX_ISA_AVX2));
}

CASE(winograds_sums_are_exact)
{
    check_many(MGX_CONV_WINOGRAD_BYTES, 150, any_3x3);
}

CASE(depthwise_sums_are_exact)
{
    check_many(MGX_CONV_DEPTHWISE_BYTES, 250, any_depthwise);
}

static void check_full(int in, int size)
{
    struct rng r = {6};
    struct problem p = {.desc = any_types(&r, mgx_cpu()->isa)};
    any_3x3(&r, &p.desc);
    p.desc.x_type = p.desc.w_type = MGX_KERNEL_U8;
    p.desc.in_channels = in;
    p.desc.in[1] = p.desc.in[2] = size;
    fill(&p, &r);
    p.desc.x_zero = 0;
    p.desc.w_zero = NULL;
    memset(p.w.data, 255, (size_t)p.w.count * 4);
    memset(p.x.data, 255, (size_t)p.x.count * 4);
    if (is_a_choice(&p, MGX_CONV_WINOGRAD_BYTES))
        check(&p, MGX_CONV_WINOGRAD_BYTES);
    problem_free(&p);
}

// 58 channels of weights 255 away from their zero point reach 2^25, 57 do not. The others are taken
// in parts, as are so many channels that a few tiles of them fill L2.
CASE(sums_that_could_overflow_are_made_in_parts)
{
    check_full(57, 7);
    check_full(58, 7);
    check_full(130, 7);
    check_full(700, 13);
}

// --- ends ---

static uint8_t tables[2][256];

// Some way in which tiles end that registers do.
static void set_end(struct rng *r, struct mgx_conv_desc *d)
{
    const bool plain = rng_below(r, 6) == 0; // floats without a step to bytes
    struct end_bytes q = end_bytes_random(r, tables);
    q.divisor = rng_below(r, 4) ? 1 : 3;
    q.spare = q.divisor == 1 && !end_has_second(&q) && rng_below(r, 2);
    q.spare_last = !q.floats && rng_below(r, 2);
    d->y_type = plain || q.floats ? MGX_KERNEL_F32 : MGX_KERNEL_U8;
    if (plain && rng_below(r, 2))
        mgx_end_then(&d->end, (struct mgx_end_step){.kind = MGX_END_ADD, .type = MGX_KERNEL_F32});
    end_act_then(&d->end, rng_below(r, 3) ? MGX_ACT_NONE : MGX_ACT_RELU, 0, 0);
    if (!plain)
        end_bytes_then(&d->end, &q);
    d->residual_batch = d->y_batch;
    memcpy(d->residual_space, d->y_space, sizeof d->y_space);
}

static void check_end(const struct problem *p, struct rng *r)
{
    const struct mgx_conv_desc *d = &p->desc;
    const int64_t count = d->batch * d->y_batch;
    struct buffer bias = buffer_random(d->out_channels, r), scale = buffer_new(d->out_channels),
                  residual = buffer_random(count, r), y = buffer_new(count),
                  other = buffer_new(count);
    for (int64_t o = 0; o < d->out_channels; o++)
        scale.data[o] = rng_float(r) * 0x1p-9f;
    const struct mgx_conv_args args = {.bias = rng_below(r, 4) ? bias.data : NULL,
                                       .scale = scale.data,
                                       .residual = mgx_end_reader(&d->end) ? residual.data : NULL};
    solve(p, MGX_CONV_WINOGRAD_BYTES, args, y);
    solve(p, MGX_CONV_STRIP, args, other);
    CHECK(memcmp(y.data, other.data, (size_t)count * 4) == 0);
    buffer_free(bias);
    buffer_free(scale);
    buffer_free(residual);
    buffer_free(y);
    buffer_free(other);
}

CASE(winograds_method_ends_as_strips_do)
{
    struct rng r = {7};
    int ran = 0;
    for (int i = 0; i < 512; i++)
        tables[i / 256][i % 256] = (uint8_t)rng_next(&r);
    EACH_ISA(isa)
    for (int i = 0; i < 300 && !check_failures; i++) {
        struct problem p = {.desc = any_types(&r, isa)};
        any_3x3(&r, &p.desc);
        fill(&p, &r);
        set_end(&r, &p.desc);
        if (is_a_choice(&p, MGX_CONV_WINOGRAD_BYTES)) {
            check_end(&p, &r);
            ran++;
        }
        problem_free(&p);
    }
    CHECK(ran > 0 || !mgx_isa_holds(mgx_cpu()->isa, MGX_ISA_AVX2));
}

// --- packed weights ---

static void pack_for(struct problem *p, int64_t size, struct buffer *packed)
{
    struct mgx_conv_plan *plan;
    p->desc.in[1] = p->desc.in[2] = size;
    lay_out(&p->desc, 0);
    CHECK_INT(mgx_conv_plan_create(&p->desc, MGX_CONV_WINOGRAD_BYTES, &plan, NULL), MGX_OK);
    *packed = buffer_new((int64_t)mgx_conv_packed_bytes(plan) / 4);
    mgx_conv_pack(plan, p->w.data, packed->data);
    mgx_conv_plan_destroy(plan);
}

// So many channels that the patches of a block do not stay in L2: with few tiles they would.
CASE(weights_are_packed_alike_for_images_of_any_size)
{
    struct rng r = {8};
    EACH_ISA(isa)
    {
        struct problem p = {.desc = any_types(&r, isa)};
        any_3x3(&r, &p.desc);
        p.desc.in_channels = 2048;
        fill(&p, &r);
        if (is_a_choice(&p, MGX_CONV_WINOGRAD_BYTES)) {
            struct buffer small, large;
            pack_for(&p, 6, &small);
            pack_for(&p, 40, &large);
            CHECK(small.count == large.count &&
                  memcmp(small.data, large.data, (size_t)small.count * 4) == 0);
            buffer_free(small);
            buffer_free(large);
        }
        problem_free(&p);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(winograds_sums_are_exact) ROW(depthwise_sums_are_exact)
            ROW(sums_that_could_overflow_are_made_in_parts) ROW(winograds_method_ends_as_strips_do)
                ROW(weights_are_packed_alike_for_images_of_any_size){NULL, NULL}};
    return harness_run(cases, argc, argv);
}
