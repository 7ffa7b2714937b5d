// SPDX-License-Identifier: MIT
// A depthwise convolution fed by another one gives, bit for bit, what the two give one after
// the other, however many threads run it: sums are made in the same order.
#include "targets/cpu/kernel/image/conv.h"

#include "targets/cpu/kernel/ends.h"
#include "targets/cpu/kernel/image/conv_plain.h"

struct pair {
    struct mgx_conv_desc expand, depthwise;
    struct buffer x, w[2], bias[2], residual[2];
};

static int64_t values_of(const struct mgx_conv_desc *d)
{
    return d->batch * d->out[1] * d->out[2] * d->out_channels;
}

// Channels last without gaps.
static void set_strides(const int64_t *size, int64_t channels, int64_t *space, int64_t *batch)
{
    space[2] = channels;
    space[1] = size[2] * channels;
    space[0] = *batch = size[1] * space[1];
}

static struct mgx_conv_desc plain(struct rng *r, mgx_isa isa, int64_t batch)
{
    static const enum mgx_act acts[] = {MGX_ACT_NONE, MGX_ACT_RELU, MGX_ACT_SILU,
                                        MGX_ACT_HARD_SWISH};
    struct mgx_conv_desc d = conv_plain(isa, batch);
    if (rng_below(r, 4) == 0)
        mgx_end_then(&d.end, (struct mgx_end_step){.kind = MGX_END_ADD, .type = MGX_KERNEL_F32});
    end_act_then(&d.end, acts[rng_below(r, 4)], 0.2f, 0.5f);
    return d;
}

static void random_window(struct rng *r, const struct mgx_conv_desc *e, struct mgx_conv_desc *d)
{
    for (int i = 1; i < MGX_CONV_DIMS; i++) {
        d->in[i] = e->out[i];
        d->kernel[i] = 1 + rng_below(r, 5);
        d->stride[i] = 1 + rng_below(r, 2);
        d->dilation[i] = 1 + rng_below(r, 2);
        const int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1;
        d->pad[i] = rng_below(r, (int)reach);
        const int64_t span = d->in[i] + 2 * d->pad[i] - reach;
        d->pad[i] = span < 0 ? reach - 1 : d->pad[i];
        d->out[i] = (d->in[i] + 2 * d->pad[i] - reach) / d->stride[i] + 1;
    }
}

// A first one of bf16, a second one that ends in it.
static void draw_types(struct rng *r, mgx_isa isa, struct mgx_conv_desc *e, struct mgx_conv_desc *d)
{
    if (mgx_gemm_kernel(MGX_KERNEL_BF16, isa) && rng_below(r, 2))
        e->type = e->x_type = e->w_type = MGX_KERNEL_BF16;
    if (rng_below(r, 2))
        d->y_type = MGX_KERNEL_BF16;
}

static struct pair pair_new(struct rng *r, mgx_isa isa)
{
    struct pair p;
    struct mgx_conv_desc *e = &p.expand, *d = &p.depthwise;
    const int64_t batch = 1 + rng_below(r, 2);
    *e = plain(r, isa, batch);
    *d = plain(r, isa, batch);
    e->in_channels = 1 + rng_below(r, 30);
    e->out_channels = d->in_channels = d->out_channels = d->groups = 1 + rng_below(r, 90);
    e->in[1] = 1 + rng_below(r, 40);
    e->in[2] = 1 + rng_below(r, rng_below(r, 4) ? 40 : 600);
    for (int i = 1; i < MGX_CONV_DIMS; i++)
        e->out[i] = e->in[i];
    if (rng_below(r, 3) == 0) {
        const struct mgx_conv_desc whole = *e;
        random_window(r, &whole, e);
    }
    random_window(r, e, d);
    e->w_in = e->kernel[1] * e->kernel[2];
    e->w_out = e->in_channels * e->w_in;
    e->w_space[1] = e->kernel[2];
    e->w_space[2] = 1;
    d->w_group = d->w_out = d->w_in = d->kernel[1] * d->kernel[2];
    d->w_space[1] = d->kernel[2];
    d->w_space[2] = 1;
    set_strides(e->in, e->in_channels, e->x_space, &e->x_batch);
    set_strides(e->out, e->out_channels, e->y_space, &e->y_batch);
    set_strides(e->out, e->out_channels, e->residual_space, &e->residual_batch);
    set_strides(d->in, d->in_channels, d->x_space, &d->x_batch);
    set_strides(d->out, d->out_channels, d->y_space, &d->y_batch);
    set_strides(d->out, d->out_channels, d->residual_space, &d->residual_batch);
    draw_types(r, isa, e, d);
    p.x = buffer_random(batch * e->in[1] * e->in[2] * e->in_channels, r);
    p.w[0] = buffer_random(e->w_out * e->out_channels, r);
    p.w[1] = buffer_random(d->w_group * d->groups, r);
    for (int i = 0; i < 2; i++) {
        p.bias[i] = buffer_random(d->out_channels, r);
        p.residual[i] = buffer_random(values_of(i ? d : e), r);
    }
    return p;
}

static void pair_free(struct pair *p)
{
    struct buffer all[] = {p->x,       p->w[0],        p->w[1],       p->bias[0],
                           p->bias[1], p->residual[0], p->residual[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
}

static struct buffer packed_for(const struct mgx_conv_plan *plan, const struct buffer *w)
{
    struct buffer packed = buffer_new((int64_t)mgx_conv_packed_bytes(plan) / 4);
    mgx_conv_pack(plan, w->data, packed.data);
    return packed;
}

// Runs the description on x to y; what feeds it is run with it.
static void run(const struct mgx_conv_desc *desc, const struct pair *p, int which, const float *x,
                struct mgx_pool *pool, struct buffer y)
{
    struct mgx_conv_plan *plan = NULL;
    const bool padded = desc->kernel[1] * desc->kernel[2] > 1 || desc->pad[1] || desc->pad[2] ||
                        desc->type == MGX_KERNEL_BF16; // an odd channel is filled up
    CHECK_INT(mgx_conv_plan_create(desc,
                                   which    ? MGX_CONV_DEPTHWISE
                                   : padded ? MGX_CONV_STRIP
                                            : MGX_CONV_DIRECT,
                                   &plan, NULL),
              MGX_OK);
    const struct mgx_conv_plan *feed = mgx_conv_plan_feed(plan);
    struct buffer packed = packed_for(plan, &p->w[which]),
                  feed_packed = feed ? packed_for(feed, &p->w[0]) : buffer_new(0),
                  workspace = buffer_new((int64_t)mgx_conv_workspace(plan) / 4);
    const struct mgx_conv_args first = {.x = p->x.data,
                                        .packed = feed_packed.data,
                                        .bias = p->bias[0].data,
                                        .residual = p->residual[0].data};
    const struct mgx_conv_args args = {.x = x,
                                       .packed = packed.data,
                                       .bias = p->bias[which].data,
                                       .residual = p->residual[which].data,
                                       .y = y.data,
                                       .workspace = workspace.data,
                                       .feed = feed ? &first : NULL};
    mgx_conv_run(plan, &args, pool);
    CHECK(buffer_intact(y) && buffer_intact(workspace));
    buffer_free(packed);
    buffer_free(feed_packed);
    buffer_free(workspace);
    mgx_conv_plan_destroy(plan);
}

static void check_pair(struct rng *r, mgx_isa isa)
{
    struct pair p = pair_new(r, isa);
    struct buffer between = buffer_new(values_of(&p.expand)),
                  expected = buffer_new(values_of(&p.depthwise)),
                  y = buffer_new(values_of(&p.depthwise));
    memset(expected.data, 0, (size_t)expected.count * sizeof(float)); // of bf16 half stays so
    run(&p.expand, &p, 0, p.x.data, NULL, between);
    run(&p.depthwise, &p, 1, between.data, NULL, expected);
    for (int threads = 1; threads < 4; threads++) {
        struct mgx_pool *pool = NULL;
        CHECK_INT(mgx_pool_acquire(threads, &pool, NULL), MGX_OK);
        struct mgx_conv_desc fed = p.depthwise;
        fed.feed = &p.expand;
        fed.threads = threads;
        memset(y.data, 0, (size_t)y.count * sizeof(float));
        run(&fed, &p, 1, NULL, pool, y);
        if (memcmp(y.data, expected.data, (size_t)y.count * sizeof(float)) != 0)
            CHECK_FAIL("%d x %d, kernel %d x %d, %d threads on %s", (int)fed.in[1], (int)fed.in[2],
                       (int)fed.kernel[1], (int)fed.kernel[2], threads, mgx_isa_name(isa));
        mgx_pool_release(pool);
    }
    buffer_free(y);
    buffer_free(between);
    buffer_free(expected);
    pair_free(&p);
}

CASE(fed_is_the_two_in_turn)
{
    struct rng r = {31};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(60) && !check_failures; i++)
        check_pair(&r, isa);
}

CASE(other_feeds_are_refused)
{
    struct rng r = {32};
    struct pair p = pair_new(&r, mgx_cpu()->isa);
    struct mgx_conv_plan *plan;
    p.depthwise.feed = &p.expand;
    p.expand.out[1]++;
    CHECK_INT(mgx_conv_plan_create(&p.depthwise, MGX_CONV_METHOD_COUNT, &plan, NULL),
              MGX_UNSUPPORTED);
    pair_free(&p);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(fed_is_the_two_in_turn)
                                                  ROW(other_feeds_are_refused){NULL, NULL}};
    return harness_run(cases, argc, argv);
}
