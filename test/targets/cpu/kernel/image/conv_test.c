// SPDX-License-Identifier: MIT
// Convolution by every method that fits, on every instruction set, against its definition, on
// random descriptions; --bench [isa [threads [method or all
// [type]]]] times the layers of ResNet50 and
// MobileNetV2 by every method.
#include "targets/cpu/kernel/image/conv.h"

#include "targets/cpu/kernel/ends.h"
#include "targets/cpu/kernel/product/output.h"

struct problem {
    struct mgx_conv_desc desc;
    struct buffer x, weights, bias, scale, factor, residual, y, expected, bound;
    int64_t first; // value of x, behind the border
    bool use_bias;
};

static int64_t pixels(const struct mgx_conv_desc *d)
{
    return d->batch * d->out[0] * d->out[1] * d->out[2];
}

// Place of output pixel number `i` in a tensor with these strides.
static int64_t place(const struct mgx_conv_desc *d, int64_t i, int64_t batch, const int64_t *space)
{
    const int64_t x = i % d->out[2], y = i / d->out[2] % d->out[1],
                  z = i / d->out[2] / d->out[1] % d->out[0];
    return i / d->out[2] / d->out[1] / d->out[0] * batch + z * space[0] + y * space[1] +
           x * space[2];
}

// The input position that kernel element k of output o reads along dimension i; -1: none.
static int64_t source(const struct mgx_conv_desc *d, int i, int64_t o, int64_t k)
{
    int64_t at = o * d->stride[i] - d->pad[i] + k * d->dilation[i];
    if (d->transposed) {
        at = o + d->pad[i] - k * d->dilation[i];
        if (at % d->stride[i])
            return -1;
        at /= d->stride[i];
    }
    return at >= 0 && at < d->in[i] ? at : -1;
}

// One output before the epilogue, and the sum of magnitudes.
static double sum_of(const struct problem *p, int64_t pixel, int64_t channel, double *size)
{
    const struct mgx_conv_desc *d = &p->desc;
    const int64_t g = channel / (d->out_channels / d->groups),
                  o = channel % (d->out_channels / d->groups), in = d->in_channels / d->groups;
    const int64_t x = pixel % d->out[2], y = pixel / d->out[2] % d->out[1],
                  z = pixel / d->out[2] / d->out[1] % d->out[0],
                  n = pixel / d->out[2] / d->out[1] / d->out[0];
    double sum = 0;
    *size = 0;
    for (int64_t kz = 0; kz < d->kernel[0]; kz++)
        for (int64_t ky = 0; ky < d->kernel[1]; ky++)
            for (int64_t kx = 0; kx < d->kernel[2]; kx++) {
                const int64_t iz = source(d, 0, z, kz), iy = source(d, 1, y, ky),
                              ix = source(d, 2, x, kx);
                if (iz < 0 || iy < 0 || ix < 0)
                    continue;
                for (int64_t c = 0; c < in; c++) {
                    const int64_t at_x = p->first + n * d->x_batch + iz * d->x_space[0] +
                                         iy * d->x_space[1] + ix * d->x_space[2] +
                                         (g * in + c) * d->x_channel;
                    const int64_t at_w = g * d->w_group + o * d->w_out + c * d->w_in +
                                         kz * d->w_space[0] + ky * d->w_space[1] +
                                         kx * d->w_space[2];
                    double product = (typed_get(d->x_type, p->x.data, at_x) - d->x_zero) *
                                     typed_get(d->w_type, p->weights.data, at_w);
                    product *= d->x_scaled ? p->factor.data[g * in + c] : 1;
                    sum += product;
                    *size += fabs(product);
                }
            }
    if (d->type == MGX_KERNEL_S8 && d->y_type == MGX_KERNEL_F32) {
        sum *= p->scale.data[channel];
        *size = fabs(sum);
    }
    const double bias = p->use_bias ? p->bias.data[channel] : 0;
    *size += fabs(bias);
    return sum + bias;
}

static void solve(struct problem *p)
{
    const struct mgx_conv_desc *d = &p->desc;
    const struct mgx_end_step *reader = mgx_end_reader(&d->end);
    const double taps = (double)(d->kernel[0] * d->kernel[1] * d->kernel[2]);
    const double depth = taps * (double)(d->in_channels / d->groups);
    for (int64_t at = 0; at < p->expected.count; at++) {
        const int64_t pixel = at / d->out_channels, channel = at % d->out_channels;
        double size, sum = sum_of(p, pixel, channel, &size), residual = 0;
        if (reader)
            residual = typed_get(reader->type, p->residual.data,
                                 place(d, pixel, d->residual_batch, d->residual_space) + channel);
        sum = end_meaning(&d->end, sum, channel, residual, (double)pixel + 0.5 * (double)channel);
        p->expected.data[at] = (float)sum;
        const double operands = d->type == MGX_KERNEL_BF16 ? 2 * 0x1p-8 : 0;
        p->bound.data[at] =
            (float)(1.5 * ((depth + 8) * 0x1p-24 + operands) * (size + fabs(residual) + 1) +
                    1.01 * fabs(sum) * typed_epsilon(d->y_type) +
                    (mgx_end_has_block(&d->end) ? fabs(sum) * 0x1p-23 : 0));
        if (d->y_type == MGX_KERNEL_S32)
            p->bound.data[at] = (float)fabs(sum) * 0x1p-24f; // of `expected` itself
    }
}

static void add_place(void *user, const struct mgx_tile *tile)
{
    (void)user;
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->cols; j++)
            tile->data[i * tile->stride + j] +=
                (float)(tile->row + i * tile->row_step) + 0.5f * (float)(tile->col + j);
}

// --- random descriptions ---

static void random_dim(struct rng *r, struct mgx_conv_desc *d, int i, bool used)
{
    d->in[i] = d->out[i] = d->kernel[i] = d->stride[i] = d->dilation[i] = 1;
    if (!used)
        return;
    static const int sizes[] = {1, 2, 3, 4, 6, 7, 8, 13, 14, 15, 20, 28};
    d->in[i] = sizes[rng_below(r, i == 0 ? 4 : 12)];
    d->kernel[i] = rng_below(r, 3) ? 3 : 1 + rng_below(r, i == 0 ? 5 : 9);
    d->stride[i] = rng_below(r, 3) ? 1 : 1 + rng_below(r, 3);
    d->dilation[i] = rng_below(r, 4) ? 1 : 1 + rng_below(r, 3);
    const int64_t reach = (d->kernel[i] - 1) * d->dilation[i];
    d->pad[i] = rng_below(r, 3) ? reach / 2 : rng_below(r, (int)reach + 2);
    const int64_t after = rng_below(r, 3) ? d->pad[i] : rng_below(r, (int)reach + 2);
    if (d->transposed) {
        d->out[i] = (d->in[i] - 1) * d->stride[i] + reach + 1 - d->pad[i] - after +
                    rng_below(r, (int)d->stride[i]);
    } else
        d->out[i] = (d->in[i] + d->pad[i] + after - reach - 1) / d->stride[i] + 1;
    if (d->in[i] + d->pad[i] + after < reach + 1 || d->out[i] < 1) { // make it fit
        d->kernel[i] = 1;
        d->pad[i] = 0;
        d->out[i] =
            d->transposed ? (d->in[i] - 1) * d->stride[i] + 1 : (d->in[i] - 1) / d->stride[i] + 1;
    }
}

static void random_channels(struct rng *r, struct mgx_conv_desc *d)
{
    static const int sizes[] = {1, 3, 8, 15, 16, 17, 24, 32, 33, 48};
    const int kind = rng_below(r, 5);
    if (kind == 4) { // small groups, as many channels in as out
        d->groups = 1 + rng_below(r, 11);
        d->in_channels = d->out_channels = d->groups * ((int64_t)1 << rng_below(r, 4));
        return;
    }
    const int most = rng_below(r, 16) ? 40 : 450; // of one channel each: beyond a strip of vectors
    d->groups = kind == 0 ? 1 + rng_below(r, most) : kind == 1 ? 1 + rng_below(r, 3) : 1;
    d->in_channels = d->groups * (kind == 0 ? 1 : sizes[rng_below(r, 10)]);
    d->out_channels = d->groups * (kind == 0 ? 1 + (rng_below(r, 4) == 0) * (1 + rng_below(r, 8))
                                             : sizes[rng_below(r, 10)]);
    const int64_t products = pixels(d) * d->kernel[0] * d->kernel[1] * d->kernel[2];
    if (d->groups == 1 && products <= 300 && rng_below(r, 5) == 0) // panels cut in depth
        d->in_channels = 200 + rng_below(r, 2000);
}

// Channels-last strides with gaps, or channels first; returns the elements of all.
static int64_t random_x(struct rng *r, struct mgx_conv_desc *d, int64_t *first)
{
    int64_t size[MGX_CONV_DIMS];
    for (int i = 0; i < MGX_CONV_DIMS; i++) {
        const bool border = rng_below(r, 2);
        d->border_before[i] = border ? d->pad[i] : 0;
        d->border_after[i] = border ? d->kernel[i] * d->dilation[i] : 0;
        size[i] = d->in[i] + d->border_before[i] + d->border_after[i];
    }
    if (rng_below(r, 5) == 0) {
        d->x_space[2] = 1;
        d->x_space[1] = size[2];
        d->x_space[0] = size[1] * size[2];
        d->x_channel = size[0] * d->x_space[0];
        d->x_batch = d->x_channel * d->in_channels;
    } else {
        d->x_channel = 1;
        d->x_space[2] = d->in_channels + (rng_below(r, 3) ? 0 : 5);
        d->x_space[1] = d->x_space[2] * size[2];
        d->x_space[0] = d->x_space[1] * size[1];
        d->x_batch = d->x_space[0] * size[0];
    }
    *first = 0;
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        *first += d->border_before[i] * d->x_space[i];
    return d->x_batch * d->batch;
}

static int64_t random_out(struct rng *r, const struct mgx_conv_desc *d, int64_t *batch,
                          int64_t *space)
{
    space[2] = d->out_channels + (rng_below(r, 3) ? 0 : 3);
    space[1] = space[2] * d->out[2] + (rng_below(r, 3) ? 0 : 7);
    space[0] = space[1] * d->out[1];
    *batch = space[0] * d->out[0] + (rng_below(r, 3) ? 0 : 9);
    return *batch * d->batch;
}

static int64_t random_weights(struct rng *r, struct mgx_conv_desc *d)
{
    const int64_t in = d->in_channels / d->groups, out = d->out_channels / d->groups;
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    const bool inner = rng_below(r, 2); // channels innermost
    const int64_t tap = inner ? in * out : 1, channel = inner ? 1 : taps;
    d->w_in = channel * (d->transposed ? out : 1);
    d->w_out = channel * (d->transposed ? 1 : in);
    d->w_space[2] = tap;
    d->w_space[1] = tap * d->kernel[2];
    d->w_space[0] = d->w_space[1] * d->kernel[1];
    d->w_group = in * out * taps;
    return d->w_group * d->groups;
}

// Overwrites the border, and gaps, of x with what stands for zero.
static void set_border(struct problem *p)
{
    const struct mgx_conv_desc *d = &p->desc;
    const int64_t size = typed_size(d->x_type);
    struct buffer zeros = buffer_new(p->x.count);
    memset(zeros.data, d->x_zero, (size_t)zeros.count * sizeof(float));
    for (int64_t n = 0; n < d->batch; n++)
        for (int64_t z = 0; z < d->in[0]; z++)
            for (int64_t y = 0; y < d->in[1]; y++)
                for (int64_t x = 0; x < d->in[2]; x++)
                    for (int64_t c = 0; c < d->in_channels; c++) {
                        const int64_t at = p->first + n * d->x_batch + z * d->x_space[0] +
                                           y * d->x_space[1] + x * d->x_space[2] + c * d->x_channel;
                        memcpy((char *)zeros.data + at * size, (char *)p->x.data + at * size,
                               (size_t)size);
                    }
    memcpy(p->x.data, zeros.data, (size_t)zeros.count * sizeof(float));
    buffer_free(zeros);
}

// Mostly floats; otherwise a combination that has a kernel.
static void random_types(struct rng *r, struct mgx_conv_desc *d)
{
    const int kind = rng_below(r, 6);
    if (kind < 3)
        return;
    if (kind == 5) {
        d->type = MGX_KERNEL_S8;
        d->x_type = rng_below(r, 2) ? MGX_KERNEL_S8 : MGX_KERNEL_U8;
        d->x_zero = d->x_type == MGX_KERNEL_S8 ? rng_below(r, 256) - 128 : rng_below(r, 256);
        d->w_type = MGX_KERNEL_S8;
        d->y_type = rng_below(r, 2) ? MGX_KERNEL_S32 : MGX_KERNEL_F32;
        return;
    }
    d->type = kind == 3 ? MGX_KERNEL_F32 : MGX_KERNEL_BF16;
    d->x_type = (enum mgx_kernel_type)rng_below(r, 3);
    d->w_type = (enum mgx_kernel_type)rng_below(r, 3);
    d->y_type = (enum mgx_kernel_type)rng_below(r, 3);
    if (kind == 3 && r->state % 2) { // floats whose results are rounded
        d->x_type = d->w_type = MGX_KERNEL_F32;
        d->y_type = MGX_KERNEL_BF16;
    }
}

static void random_result(struct rng *r, enum mgx_kernel_type operand, struct problem *p)
{
    if (p->desc.y_type == MGX_KERNEL_S32)
        return;
    const bool columns = rng_below(r, 4) == 0;
    p->use_bias = rng_below(r, 2);
    p->desc.end = end_random(r, operand, MGX_ACT_COUNT, columns ? p->scale.data : NULL,
                             p->bias.data, rng_below(r, 3) ? NULL : add_place);
}

// Tensors and an epilogue for a description of sizes and types, and the expected result.
static struct problem problem_of(struct rng *r, const struct mgx_conv_desc *desc)
{
    struct problem p = {.desc = *desc};
    struct mgx_conv_desc *d = &p.desc;
    p.x = typed_random(d->x_type, random_x(r, d, &p.first), r);
    set_border(&p);
    p.weights = typed_random(d->w_type, random_weights(r, d), r);
    if (d->type == MGX_KERNEL_S8 && rng_below(r, 4))
        d->weights = small_bytes(p.weights);
    p.bias = buffer_random(d->out_channels, r);
    p.scale = buffer_random(d->out_channels, r);
    p.factor = buffer_random(d->in_channels, r);
    d->x_scaled = d->type == MGX_KERNEL_F32 && !d->transposed && rng_below(r, 4) == 0;
    const enum mgx_kernel_type operand =
        d->type == MGX_KERNEL_S8 ? d->y_type : end_operand_type(r, d->y_type);
    p.residual = typed_random(operand, random_out(r, d, &d->residual_batch, d->residual_space), r);
    p.y = buffer_new((random_out(r, d, &d->y_batch, d->y_space) * typed_size(d->y_type) + 3) / 4);
    p.expected = buffer_new(pixels(d) * d->out_channels);
    p.bound = buffer_new(p.expected.count);
    random_result(r, operand, &p);
    solve(&p);
    return p;
}

static struct problem problem_new(struct rng *r, mgx_isa isa, bool transposed)
{
    struct mgx_conv_desc d = {.isa = isa, .transposed = transposed};
    const int dims = 1 + rng_below(r, 6); // mostly two
    random_types(r, &d);
    d.batch = 1 + rng_below(r, 3);
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        random_dim(r, &d, i, i >= MGX_CONV_DIMS - (dims > 3 ? 2 : dims));
    random_channels(r, &d);
    return problem_of(r, &d);
}

// 3 x 3, the output as large as the input.
struct same {
    int64_t batch, in, out, height, width, down, across; // the last two: dilations
};

static struct problem problem_same(struct rng *r, mgx_isa isa, const struct same *s)
{
    const struct mgx_conv_desc d = {.isa = isa,
                                    .batch = s->batch,
                                    .groups = 1,
                                    .in_channels = s->in,
                                    .out_channels = s->out,
                                    .in = {1, s->height, s->width},
                                    .out = {1, s->height, s->width},
                                    .kernel = {1, 3, 3},
                                    .stride = {1, 1, 1},
                                    .dilation = {1, s->down, s->across},
                                    .pad = {0, s->down, s->across}};
    return problem_of(r, &d);
}

// Weights beyond L2, in two blocks of channels and a narrow last panel; many tiles of few pixels.
static const struct same large_weights = {2, 260, 228, 9, 8, 6, 7};
// Enough Winograd tiles for several threads to have blocks of their own, and more than one panel.
static const struct same many_tiles = {2, 36, 40, 47, 50, 1, 1};
// So few Winograd tiles that two threads share them, and panels for each.
static const struct same few_tiles = {1, 40, 250, 13, 12, 1, 1};

static void problem_free(struct problem *p)
{
    struct buffer all[] = {p->x,        p->weights, p->bias,     p->scale, p->factor,
                           p->residual, p->y,       p->expected, p->bound};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
}

// Runs it twice, first on an image of zeros: what a run leaves in the workspace must not matter.
static bool run_problem(struct problem *p, enum mgx_conv_method method, int threads,
                        struct mgx_diag *diag)
{
    struct mgx_conv_plan *plan;
    struct mgx_pool *pool = NULL;
    p->desc.threads = threads;
    if (mgx_conv_plan_create(&p->desc, method, &plan, diag) != MGX_OK ||
        mgx_pool_acquire(threads, &pool, diag) != MGX_OK)
        return false;
    for (int64_t i = 0; i < p->y.count; i++)
        memcpy(p->y.data + i, &GUARD_BITS, sizeof GUARD_BITS);
    struct buffer packed = buffer_new((int64_t)mgx_conv_packed_bytes(plan) / 4),
                  workspace = buffer_new((int64_t)mgx_conv_workspace(plan) / 4),
                  other = buffer_new(p->x.count);
    memset(other.data, 0, (size_t)other.count * sizeof(float));
    mgx_conv_pack(plan, p->weights.data, packed.data);
    struct mgx_ahead next[MAX_THREADS];
    bool intact = true;
    for (int t = 0; t < threads; t++) {
        next[t] = mgx_conv_first_read(plan, packed.data, t);
        intact &= buffer_holds(packed, next[t].at, next[t].bytes);
    }
    const int64_t first = p->first * typed_size(p->desc.x_type);
    struct mgx_conv_args args = {
        .x = (const char *)other.data + first,
        .packed = packed.data,
        .bias = p->use_bias ? p->bias.data : NULL,
        .scale = p->desc.y_type == MGX_KERNEL_F32 ? p->scale.data : NULL,
        .x_scale = p->desc.x_scaled ? p->factor.data : NULL,
        .residual = mgx_end_reader(&p->desc.end) ? p->residual.data : NULL,
        .y = p->y.data,
        .workspace = workspace.data,
        .next = next,
    };
    mgx_conv_run(plan, &args, pool);
    args.x = (const char *)p->x.data + first;
    mgx_conv_run(plan, &args, pool);
    intact &= buffer_intact(packed) && buffer_intact(workspace) && buffer_intact(p->y);
    mgx_pool_release(pool);
    buffer_free(other);
    buffer_free(packed);
    buffer_free(workspace);
    mgx_conv_plan_destroy(plan);
    return intact;
}

// The first wrong value, -1 if there is none; gaps between pixels must be as before.
static int64_t first_wrong(const struct problem *p, double slack)
{
    const struct mgx_conv_desc *d = &p->desc;
    const int64_t values = p->y.count * 4 / typed_size(d->y_type);
    int64_t untouched = 0;
    for (int64_t at = 0; at < p->expected.count; at++) {
        const int64_t y =
            place(d, at / d->out_channels, d->y_batch, d->y_space) + at % d->out_channels;
        if (!(fabs(typed_get(d->y_type, p->y.data, y) - p->expected.data[at]) <=
              slack * p->bound.data[at]))
            return at;
    }
    for (int64_t i = 0; i < values; i++)
        untouched += typed_untouched(d->y_type, p->y.data, i);
    // A 16-bit result may look like half a guard.
    return untouched >= values - p->expected.count &&
                   (typed_size(d->y_type) < 4 || untouched == values - p->expected.count)
               ? -1
               : p->expected.count;
}

static void print_desc(const struct mgx_conv_desc *d)
{
    printf("  types %d: %d %d %d zero %d\n", d->type, d->x_type, d->w_type, d->y_type, d->x_zero);
    printf("  %s batch %d groups %d channels %d to %d threads %d x channel %d act %s residual %d "
           "hook %d\n",
           d->transposed ? "transposed" : "plain", (int)d->batch, (int)d->groups,
           (int)d->in_channels, (int)d->out_channels, d->threads, (int)d->x_channel,
           mgx_act_name(mgx_end_act(&d->end)), mgx_end_reader(&d->end) != NULL,
           mgx_end_has_block(&d->end));
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        printf("  in %d out %d kernel %d stride %d dilation %d pad %d border %d %d\n",
               (int)d->in[i], (int)d->out[i], (int)d->kernel[i], (int)d->stride[i],
               (int)d->dilation[i], (int)d->pad[i], (int)d->border_before[i],
               (int)d->border_after[i]);
}

// Winograd's sums cancel; its bound is that of a deeper sum.
static double slack_of(enum mgx_conv_method method)
{
    return method == MGX_CONV_WINOGRAD4 ? 12 : method == MGX_CONV_WINOGRAD2 ? 3 : 1;
}

static int methods_run[MGX_CONV_METHOD_COUNT];

static void check_problem(struct rng *r, mgx_isa isa, struct problem p)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(&p.desc, choices);
    for (int i = 0; i < count && !check_failures; i++) {
        const enum mgx_conv_method method = choices[i].method;
        struct mgx_diag diag = {0};
        const bool ran = run_problem(&p, method, 1 + rng_below(r, 3), &diag);
        const int64_t wrong = ran ? first_wrong(&p, slack_of(method)) : 0;
        methods_run[method]++;
        if (!ran || wrong >= 0) {
            printf("%s on %s: %s %s at %lld of %lld\n", mgx_conv_method_name(method),
                   mgx_isa_name(isa), diag.text, ran ? "wrong value" : "not run or guard broken",
                   (long long)wrong, (long long)p.expected.count);
            print_desc(&p.desc);
            check_failures++;
        }
    }
    problem_free(&p);
}

CASE(agrees_with_the_definition)
{
    struct rng r = {2024};
    memset(methods_run, 0, sizeof methods_run);
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(140) && !check_failures; i++)
        check_problem(&r, isa, problem_new(&r, isa, false));
    for (int m = 0; m < MGX_CONV_METHOD_COUNT && !check_failures; m++)
        CHECK(m == MGX_CONV_PHASES || m == MGX_CONV_WINOGRAD_BYTES ||
              m == MGX_CONV_DEPTHWISE_BYTES || methods_run[m] > 0);
}

CASE(large_weights_agree_with_the_definition)
{
    struct rng r = {31};
    EACH_ISA(isa)
    if (!check_failures)
        check_problem(&r, isa, problem_same(&r, isa, &large_weights));
}

CASE(many_tiles_agree_with_the_definition)
{
    struct rng r = {47};
    EACH_ISA(isa)
    if (!check_failures)
        check_problem(&r, isa, problem_same(&r, isa, &many_tiles));
}

CASE(transposed_agrees_with_the_definition)
{
    // The second once had lines of images that are not the first cut off, the third a phase of a
    // depthwise convolution without taps.
    static const int seeds[] = {77, 101, 303};
    for (int s = 0; s < 3; s++) {
        struct rng r = {(uint64_t)seeds[s]};
        EACH_ISA(isa)
        for (int i = 0; i < check_rounds(60) && !check_failures; i++)
            check_problem(&r, isa, problem_new(&r, isa, true));
    }
}

CASE(threads_do_not_change_a_bit)
{
    enum { PROBLEMS = 15 };
    struct rng r = {5};
    const int step = PROBLEMS / check_rounds(PROBLEMS);
    for (int i = (PROBLEMS - 1) % step; i < PROBLEMS; i += step) {
        struct problem p = i == 14   ? problem_same(&r, mgx_cpu()->isa, &few_tiles)
                           : i == 13 ? problem_same(&r, mgx_cpu()->isa, &many_tiles)
                           : i == 12 ? problem_same(&r, mgx_cpu()->isa, &large_weights)
                                     : problem_new(&r, mgx_cpu()->isa, false);
        struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
        const int count = mgx_conv_choices(&p.desc, choices);
        struct buffer one = buffer_new(p.y.count);
        for (int m = 0; m < count; m++) {
            CHECK(run_problem(&p, choices[m].method, 1, NULL));
            memcpy(one.data, p.y.data, (size_t)p.y.count * sizeof(float));
            for (int threads = 2; threads < 6; threads++) {
                CHECK(run_problem(&p, choices[m].method, threads, NULL));
                CHECK(memcmp(one.data, p.y.data, (size_t)p.y.count * sizeof(float)) == 0);
            }
        }
        buffer_free(one);
        problem_free(&p);
    }
}

CASE(bad_descriptions_are_refused)
{
    struct mgx_conv_plan *plan;
    struct mgx_conv_desc d = {.batch = 1, .groups = 2, .in_channels = 3, .out_channels = 4};
    CHECK_INT(mgx_conv_plan_create(&d, MGX_CONV_METHOD_COUNT, &plan, NULL), MGX_INVALID);
    d = (struct mgx_conv_desc){.batch = 1,
                               .groups = 1,
                               .in_channels = 1 << 30,
                               .out_channels = 1 << 30,
                               .in = {1, 1 << 20, 1 << 20},
                               .out = {1, 1 << 20, 1 << 20},
                               .kernel = {1, 3, 3},
                               .stride = {1, 1, 1},
                               .dilation = {1, 1, 1}};
    CHECK_INT(mgx_conv_plan_create(&d, MGX_CONV_METHOD_COUNT, &plan, NULL), MGX_LIMIT);
    d.in_channels = d.out_channels = 8;
    d.groups = 8;
    CHECK_INT(mgx_conv_plan_create(&d, MGX_CONV_PHASES, &plan, NULL), MGX_UNSUPPORTED);
    CHECK_INT(mgx_conv_plan_create(&d, MGX_CONV_WINOGRAD4, &plan, NULL), MGX_UNSUPPORTED);
}

// --- --bench ---

struct layer {
    int in, out, size, kernel, stride, groups, count;
};

static const struct layer resnet50[] = {
    {3, 64, 224, 7, 2, 1, 1},    {64, 64, 56, 1, 1, 1, 1},    {256, 64, 56, 1, 1, 1, 2},
    {64, 64, 56, 3, 1, 1, 3},    {64, 256, 56, 1, 1, 1, 4},   {256, 128, 56, 1, 1, 1, 1},
    {128, 128, 56, 3, 2, 1, 1},  {128, 512, 28, 1, 1, 1, 4},  {256, 512, 56, 1, 2, 1, 1},
    {512, 128, 28, 1, 1, 1, 3},  {128, 128, 28, 3, 1, 1, 3},  {512, 256, 28, 1, 1, 1, 1},
    {256, 256, 28, 3, 2, 1, 1},  {256, 1024, 14, 1, 1, 1, 6}, {512, 1024, 28, 1, 2, 1, 1},
    {1024, 256, 14, 1, 1, 1, 5}, {256, 256, 14, 3, 1, 1, 5},  {1024, 512, 14, 1, 1, 1, 1},
    {512, 512, 14, 3, 2, 1, 1},  {512, 2048, 7, 1, 1, 1, 3},  {1024, 2048, 14, 1, 2, 1, 1},
    {2048, 512, 7, 1, 1, 1, 2},  {512, 512, 7, 3, 1, 1, 2},
};

static const struct layer resnext[] = {
    {128, 128, 56, 3, 1, 32, 3},  {256, 256, 56, 3, 2, 32, 1}, {256, 256, 28, 3, 1, 32, 3},
    {512, 512, 28, 3, 2, 32, 1},  {512, 512, 14, 3, 1, 32, 5}, {1024, 1024, 14, 3, 2, 32, 1},
    {1024, 1024, 7, 3, 1, 32, 2},
};

// Weights that outweigh the image: detectors and segmenters behind their backbone.
static const struct layer detectors[] = {
    {512, 512, 38, 3, 1, 1, 1},  {512, 512, 19, 3, 1, 1, 1},  {512, 512, 25, 3, 1, 1, 1},
    {512, 512, 14, 3, 1, 1, 1},  {256, 256, 25, 3, 1, 1, 1},  {256, 256, 50, 3, 1, 1, 1},
    {256, 256, 75, 3, 1, 1, 1},  {256, 256, 100, 3, 1, 1, 1}, {256, 819, 50, 3, 1, 1, 1},
    {2048, 512, 28, 3, 1, 1, 1}, {1024, 570, 19, 3, 1, 1, 1}, {128, 128, 100, 3, 1, 1, 1},
    {128, 256, 75, 3, 1, 1, 1},  {256, 512, 16, 3, 1, 1, 1},  {128, 128, 40, 3, 1, 1, 1},
};

static const struct layer mobilenet[] = {
    {3, 32, 224, 3, 2, 1, 1},     {32, 32, 112, 3, 1, 32, 1},   {32, 16, 112, 1, 1, 1, 1},
    {16, 96, 112, 1, 1, 1, 1},    {96, 96, 112, 3, 2, 96, 1},   {96, 24, 56, 1, 1, 1, 1},
    {24, 144, 56, 1, 1, 1, 2},    {144, 144, 56, 3, 1, 144, 1}, {144, 24, 56, 1, 1, 1, 1},
    {144, 144, 56, 3, 2, 144, 1}, {144, 32, 28, 1, 1, 1, 1},    {32, 192, 28, 1, 1, 1, 3},
    {192, 192, 28, 3, 1, 192, 2}, {192, 32, 28, 1, 1, 1, 2},    {192, 192, 28, 3, 2, 192, 1},
    {192, 64, 14, 1, 1, 1, 1},    {64, 384, 14, 1, 1, 1, 4},    {384, 384, 14, 3, 1, 384, 4},
    {384, 64, 14, 1, 1, 1, 3},    {384, 96, 14, 1, 1, 1, 1},    {96, 576, 14, 1, 1, 1, 3},
    {576, 576, 14, 3, 1, 576, 2}, {576, 96, 14, 1, 1, 1, 2},    {576, 576, 14, 3, 2, 576, 1},
    {576, 160, 7, 1, 1, 1, 1},    {160, 960, 7, 1, 1, 1, 3},    {960, 960, 7, 3, 1, 960, 3},
    {960, 160, 7, 1, 1, 1, 2},    {960, 320, 7, 1, 1, 1, 1},    {320, 1280, 7, 1, 1, 1, 1},
};

struct timed {
    struct mgx_conv_plan *plan;
    struct mgx_conv_args args;
    struct mgx_pool *pool;
};

static void run_timed(void *user)
{
    struct timed *t = user;
    mgx_conv_run(t->plan, &t->args, t->pool);
}

static enum mgx_kernel_type bench_type; // what --bench multiplies

static struct mgx_conv_desc layer_desc(const struct layer *l, mgx_isa isa, int threads, bool border)
{
    const int64_t pad = l->kernel / 2, out = (l->size + 2 * pad - l->kernel) / l->stride + 1;
    const int64_t wide = l->size + (border ? 2 * pad : 0);
    struct mgx_conv_desc d = {
        .type = bench_type,
        .x_type = bench_type,
        .w_type = bench_type,
        .isa = isa,
        .threads = threads,
        .batch = 1,
        .groups = l->groups,
        .in_channels = l->in,
        .out_channels = l->out,
        .in = {1, l->size, l->size},
        .out = {1, out, out},
        .kernel = {1, l->kernel, l->kernel},
        .stride = {1, l->stride, l->stride},
        .dilation = {1, 1, 1},
        .pad = {0, pad, pad},
        .x_space = {wide * wide * l->in, wide * l->in, l->in},
        .x_channel = 1,
        .y_space = {out * out * l->out, out * l->out, l->out},
        .w_space = {0, l->kernel, 1},
        .w_in = l->kernel * l->kernel,
        .w_out = (int64_t)l->in / l->groups * l->kernel * l->kernel,
    };
    end_act_then(&d.end, MGX_ACT_RELU, 0, 0);
    d.w_group = l->out / l->groups * d.w_out;
    if (border)
        for (int i = 1; i < MGX_CONV_DIMS; i++)
            d.border_before[i] = d.border_after[i] = pad;
    return d;
}

// Seconds of a layer by one method, and what it prints.
static double bench_method(const struct layer *l, const struct mgx_conv_desc *d,
                           enum mgx_conv_method method, double estimate)
{
    struct timed t = {0};
    struct rng r = {3};
    if (mgx_conv_plan_create(d, method, &t.plan, NULL) != MGX_OK ||
        mgx_pool_acquire(d->threads, &t.pool, NULL) != MGX_OK)
        return 0;
    const int64_t side = l->size + 2 * (l->kernel / 2);
    struct buffer x = typed_random(d->x_type, side * side * l->in, &r),
                  w = typed_random(d->w_type, d->w_group * l->groups, &r),
                  bias = buffer_random(l->out, &r), y = buffer_new(d->y_space[0]),
                  packed = buffer_new((int64_t)mgx_conv_packed_bytes(t.plan) / 4),
                  workspace = buffer_new((int64_t)mgx_conv_workspace(t.plan) / 4);
    mgx_conv_pack(t.plan, w.data, packed.data);
    t.args = (struct mgx_conv_args){.x = x.data + d->border_before[1] * d->x_space[1] +
                                         d->border_before[2] * d->x_space[2],
                                    .packed = packed.data,
                                    .bias = bias.data,
                                    .scale = bias.data,
                                    .y = y.data,
                                    .workspace = workspace.data};
    const double gflop = 2e-9 * (double)(d->out[1] * d->out[2] * d->w_group * d->groups);
    const struct bench b = bench_of(run_timed, &t, bench_clock_of(d->threads));
    const struct paced p = bench_paced(&b, d->threads, d->isa, gflop);
    printf("  %-10s %8.1f us %7.1f GFLOP/s %5.1f %%  estimated %8.1f us\n",
           mgx_conv_method_name(method), p.seconds * 1e6, gflop / p.seconds, 100 * p.share,
           estimate * 1e6);
    struct buffer all[] = {x, w, bias, y, packed, workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
    mgx_pool_release(t.pool);
    mgx_conv_plan_destroy(t.plan);
    return p.seconds;
}

static void bench_net(const char *name, const struct layer *layers, int count, mgx_isa isa,
                      int threads, const char *only)
{
    double best = 0, chosen = 0, direct = 0;
    for (int i = 0; i < count; i++) {
        const struct layer *l = &layers[i];
        double fastest = 1, plain = 1;
        printf("%s %dx%d/%d %d-%d @%d groups %d, %d thread(s), %d times\n", name, l->kernel,
               l->kernel, l->stride, l->in, l->out, l->size, l->groups, threads, l->count);
        for (int border = 0; border < (l->kernel > 1 ? 2 : 1); border++) {
            const struct mgx_conv_desc d = layer_desc(l, isa, threads, border);
            struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
            const int methods = mgx_conv_choices(&d, choices);
            for (int m = 0; m < methods; m++) {
                const enum mgx_conv_method method = choices[m].method;
                if ((border && method != MGX_CONV_DIRECT) ||
                    (only && strcmp(only, mgx_conv_method_name(method)) != 0))
                    continue;
                const double s = bench_method(l, &d, method, choices[m].seconds);
                fastest = s < fastest ? s : fastest;
                chosen += !border && m == 0 ? s * l->count : 0;
                if (method < MGX_CONV_WINOGRAD2 || method == MGX_CONV_DEPTHWISE)
                    plain = s < plain ? s : plain;
            }
        }
        best += fastest * l->count;
        direct += plain * l->count;
    }
    printf("%s, all layers, %d thread(s): best %.2f ms, without Winograd %.2f ms, chosen by "
           "estimate (no borders) %.2f ms\n",
           name, threads, best * 1e3, direct * 1e3, chosen * 1e3);
}

// All layers of a network one after the other, every one with weights of its own, so that they come
// from memory as they do in earnest. `winograd`: let the estimate choose it.
struct chain {
    struct timed layers[128];
    struct buffer packed[128];
    int count;
};

static void run_chain(void *user)
{
    struct chain *chain = user;
    for (int i = 0; i < chain->count; i++)
        run_timed(&chain->layers[i]);
}

static enum mgx_conv_method chain_method(const struct mgx_conv_desc *d, bool winograd)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    mgx_conv_choices(d, choices);
    int i = 0;
    while (!winograd &&
           (choices[i].method == MGX_CONV_WINOGRAD2 || choices[i].method == MGX_CONV_WINOGRAD4))
        i++;
    return choices[i].method;
}

static void add_layer(struct chain *chain, const struct layer *l, mgx_isa isa, int threads,
                      bool winograd, struct buffer *space)
{
    const struct mgx_conv_desc d = layer_desc(l, isa, threads, false);
    struct timed *t = &chain->layers[chain->count];
    struct rng r = {1};
    if (mgx_conv_plan_create(&d, chain_method(&d, winograd), &t->plan, NULL) != MGX_OK ||
        mgx_pool_acquire(threads, &t->pool, NULL) != MGX_OK)
        return;
    struct buffer *packed = &chain->packed[chain->count],
                  w = typed_random(d.w_type, d.w_group * l->groups, &r);
    *packed = buffer_new((int64_t)mgx_conv_packed_bytes(t->plan) / 4);
    mgx_conv_pack(t->plan, w.data, packed->data);
    buffer_free(w);
    const int even = chain->count % 2;
    t->args = (struct mgx_conv_args){.x = space[even].data,
                                     .packed = packed->data,
                                     .bias = space[2].data,
                                     .scale = space[2].data,
                                     .y = space[1 - even].data,
                                     .workspace = space[3].data};
    chain->count++;
}

static void bench_chain(const char *name, const struct layer *layers, int count, mgx_isa isa,
                        int threads, bool winograd)
{
    static struct chain chain;
    struct rng r = {1};
    chain.count = 0;
    struct buffer space[4];
    for (int i = 0; i < 4; i++)
        space[i] = buffer_random(i < 3 ? 4 << 20 : 32 << 20, &r);
    double bytes = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < layers[i].count; j++)
            add_layer(&chain, &layers[i], isa, threads, winograd, space);
    for (int i = 0; i < chain.count; i++)
        bytes += 4 * (double)chain.packed[i].count;
    printf("%s in sequence, %d thread(s), %s: %.2f ms, weights of %.0f MB\n", name, threads,
           winograd ? "chosen methods" : "no Winograd",
           1e3 * bench_time_of(threads, run_chain, &chain, 9), bytes * 1e-6);
    for (int i = 0; i < chain.count; i++) {
        mgx_conv_plan_destroy(chain.layers[i].plan);
        mgx_pool_release(chain.layers[i].pool);
        buffer_free(chain.packed[i]);
    }
    for (int i = 0; i < 4; i++)
        buffer_free(space[i]);
}

static int bench(int argc, char **argv)
{
    mgx_isa isa;
    if (mgx_isa_require(argc > 2 ? argv[2] : NULL, &isa, NULL) != MGX_OK)
        return 1;
    const int threads = argc > 3 ? atoi(argv[3]) : 1;
    const char *only = argc > 4 && strcmp(argv[4], "all") != 0 ? argv[4] : NULL;
    if (argc > 5)
        bench_type = strcmp(argv[5], "s8") == 0     ? MGX_KERNEL_S8
                     : strcmp(argv[5], "bf16") == 0 ? MGX_KERNEL_BF16
                                                    : MGX_KERNEL_F32;
    const int resnet_layers = sizeof resnet50 / sizeof *resnet50,
              mobile_layers = sizeof mobilenet / sizeof *mobilenet;
    for (int winograd = 0; winograd < 2 && !only; winograd++)
        bench_chain("resnet50", resnet50, resnet_layers, isa, threads, winograd);
    if (!only)
        bench_chain("mobilenetv2", mobilenet, mobile_layers, isa, threads, true);
    bench_net("detectors", detectors, sizeof detectors / sizeof *detectors, isa, threads, only);
    bench_net("resnet50", resnet50, resnet_layers, isa, threads, only);
    bench_net("mobilenetv2", mobilenet, mobile_layers, isa, threads, only);
    bench_net("resnext50 grouped", resnext, sizeof resnext / sizeof *resnext, isa, threads, only);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(agrees_with_the_definition) ROW(large_weights_agree_with_the_definition)
            ROW(many_tiles_agree_with_the_definition) ROW(transposed_agrees_with_the_definition)
                ROW(threads_do_not_change_a_bit) ROW(bad_descriptions_are_refused){NULL, NULL}};
    return bench_asked(argc, argv) ? bench(argc, argv) : harness_run(cases, argc, argv);
}
