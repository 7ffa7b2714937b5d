// SPDX-License-Identifier: MIT
// Depthwise convolution of bytes in whole numbers: groups of one channel, two spatial dimensions;
// see byte_dw.h for what is done in a row. Rows of the output are dealt to tasks. Input lines are
// copied, padded, into a ring of as many as the kernel reaches, which costs a tenth of the rest and
// leaves no edges.
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/byte_dw.h"
#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/product/output.h"

// Whether weights less their zero point are signed bytes, whatever they are.
static bool has_eight_bits(const struct mgx_conv_desc *d)
{
    if (!d->w_zero)
        return mgx_kernel_is_signed(d->w_type);
    const int32_t wanted = mgx_kernel_is_signed(d->w_type) ? 0 : 128;
    for (int64_t o = 0; o < d->out_channels; o++)
        if (d->w_zero[o] != wanted)
            return false;
    return true;
}

static const struct mgx_byte_dw_kernel *kernel_of(const struct mgx_conv_desc *d)
{
    return mgx_byte_dw_of(d->isa, has_eight_bits(d));
}

// A phase of a transposed convolution may have no tap, or begin behind the first pixel.
static bool has_taps(const struct mgx_conv_desc *d)
{
    return d->kernel[1] > 0 && d->kernel[2] > 0 && d->pad[2] >= 0;
}

static bool fits(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return mgx_kernel_is_byte(d->type) && kernel_of(d) && !d->transposed && plan->group_in == 1 &&
           plan->group_out == 1 && d->x_channel == 1 && d->in[0] == 1 && d->out[0] == 1 &&
           d->kernel[0] == 1 && d->pad[0] == 0 && has_taps(d) &&
           d->kernel[1] <= MGX_BYTE_DW_LINES && mgx_output_in_registers(&d->end, d->y_type);
}

static int64_t vectors_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->d.out_channels, kernel_of(&plan->d)->channels);
}

// Some 14 cycles for a vector of outputs of a 3 x 3 kernel.
static double cost(const struct mgx_conv_plan *plan)
{
    return mgx_conv_seconds(plan,
                            (double)mgx_conv_pixels(&plan->d) * (double)vectors_of(plan) *
                                ((double)mgx_conv_taps(&plan->d) + 5),
                            0);
}

// Pixels of a padded line, its bytes, and lines of the ring.
static int64_t columns_of(const struct mgx_conv_desc *d)
{
    return (d->out[2] - 1) * d->stride[2] + (d->kernel[2] - 1) * d->dilation[2] + 1;
}

static int64_t line_bytes(const struct mgx_conv_desc *d)
{
    return (int64_t)mgx_align64((size_t)(columns_of(d) * d->in_channels + kernel_of(d)->channels));
}

static int64_t slots_of(const struct mgx_conv_desc *d)
{
    return (d->kernel[1] - 1) * d->dilation[1] + 1;
}

static enum mgx_status prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    const double values = (double)mgx_conv_pixels(d) * (double)d->out_channels;
    plan->byte_depthwise = kernel_of(d);
    plan->kernel =
        mgx_gemm_kernel(MGX_KERNEL_F32, d->isa); // for its vectors; nothing is multiplied
    plan->rows = d->batch * d->out[1];
    plan->n_parts = 1;
    plan->m_parts = (int)mgx_max_i64(
        mgx_min_i64(plan->rows,
                    mgx_split_tasks(values * (double)(mgx_conv_taps(d) + 2 * MGX_WORK_PER_BYTE),
                                    d->threads)),
        1);
    plan->thread_workspace = mgx_align64((size_t)((slots_of(d) + 1) * line_bytes(d)) +
                                         (size_t)slots_of(d) * sizeof(int64_t));
    if (!mgx_mul_size((size_t)vectors_of(plan),
                      (size_t)mgx_byte_dw_vector(plan->byte_depthwise, d->kernel[1], d->kernel[2]),
                      &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld channels do not fit",
                        (long long)d->out_channels);
    return MGX_OK;
}

static int weight_at(const struct mgx_conv_plan *plan, const void *weights, int64_t o, int64_t y,
                     int64_t x)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t at = plan->w_first + o * d->w_group + y * d->w_space[1] + x * d->w_space[2];
    return mgx_kernel_byte(d->w_type, ((const uint8_t *)weights)[at]) -
           (d->w_zero ? d->w_zero[o] : 0);
}

static void pack_channel(const struct mgx_conv_plan *plan, const void *weights, int64_t o,
                         char *vector)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_byte_dw_kernel *kernel = plan->byte_depthwise;
    const int place = kernel->place((int)(o % kernel->channels)), lines = kernel->lines;
    int32_t *sum = (int32_t *)(void *)vector + place;
    char *to = vector + (kernel->channels + place) * 4;
    for (int64_t y = 0; y < d->kernel[1]; y++)
        for (int64_t x = 0; x < d->kernel[2]; x++) {
            const int w = weight_at(plan, weights, o, y, x);
            char *group = to + (y / lines * d->kernel[2] + x) * kernel->channels * 4;
            if (lines == 4)
                ((int8_t *)group)[y % lines] = (int8_t)w;
            else
                ((int16_t *)(void *)group)[y % lines] = (int16_t)w;
            *sum += w;
        }
}

static void pack(const struct mgx_conv_plan *plan, const void *weights, void *packed, int part,
                 int parts)
{
    const struct mgx_byte_dw_kernel *kernel = plan->byte_depthwise;
    const int64_t bytes = mgx_byte_dw_vector(kernel, plan->d.kernel[1], plan->d.kernel[2]);
    const int64_t end = mgx_part_begin(vectors_of(plan), part + 1, parts);
    for (int64_t v = mgx_part_begin(vectors_of(plan), part, parts); v < end; v++) {
        char *vector = (char *)packed + v * bytes;
        memset(vector, 0, (size_t)bytes);
        for (int64_t o = v * kernel->channels;
             o < mgx_min_i64((v + 1) * kernel->channels, plan->d.out_channels); o++)
            pack_channel(plan, weights, o, vector);
    }
}

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

// The ring of a thread: a line of zeros (the zero point), then lines, and which one each slot has.
struct ring {
    uint8_t *zeros, *lines;
    int64_t *tags;
};

static struct ring ring_of(const struct job *job, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    char *own = (char *)job->args->workspace + plan->thread_workspace * (size_t)thread;
    const struct ring r = {
        (uint8_t *)own, (uint8_t *)own + line_bytes(&plan->d),
        (int64_t *)(void *)(own + (slots_of(&plan->d) + 1) * line_bytes(&plan->d))};
    memset(r.zeros, plan->d.x_zero, (size_t)line_bytes(&plan->d));
    memset(r.tags, -1, (size_t)slots_of(&plan->d) * sizeof *r.tags);
    return r;
}

// Pixels [-pad, ...) of an input line; those outside are the zero point.
static void copy_line(const struct mgx_conv_desc *d, const uint8_t *from, uint8_t *to)
{
    const int64_t channels = d->in_channels, before = d->pad[2], all = columns_of(d);
    const int64_t inside = mgx_max_i64(mgx_min_i64(d->in[2], all - before), 0);
    const int64_t first = mgx_min_i64(before, all), end = first + inside;
    memset(to, d->x_zero, (size_t)(first * channels));
    if (d->x_space[2] == channels)
        memcpy(to + first * channels, from, (size_t)(inside * channels));
    else
        for (int64_t x = 0; x < inside; x++)
            memcpy(to + (first + x) * channels, from + x * d->x_space[2], (size_t)channels);
    memset(to + end * channels, d->x_zero, (size_t)((all - end) * channels));
}

static const uint8_t *line_of(const struct job *job, const struct ring *ring, int64_t n, int64_t y)
{
    const struct mgx_conv_desc *d = &job->plan->d;
    if (y < 0 || y >= d->in[1])
        return ring->zeros;
    const int64_t slot = y % slots_of(d), tag = n * d->in[1] + y;
    uint8_t *line = ring->lines + slot * line_bytes(d);
    if (ring->tags[slot] != tag)
        copy_line(d, (const uint8_t *)job->args->x + n * d->x_batch + y * d->x_space[1], line);
    ring->tags[slot] = tag;
    return line;
}

static struct mgx_byte_dw_args args_of(const struct job *job)
{
    const struct mgx_conv_desc *d = &job->plan->d;
    struct mgx_byte_dw_args args = {
        .pixel = d->in_channels,
        .height = (int)d->kernel[1],
        .kernel = (int)d->kernel[2],
        .stride = (int)d->stride[2],
        .dilation = (int)d->dilation[2],
        .zero = d->x_zero,
        .is_signed = mgx_kernel_is_signed(d->x_type),
        .weights = job->args->packed,
        .channels = d->out_channels,
        .count = d->out[2],
        .c_size = mgx_kernel_size(d->y_type),
        .residual_size = mgx_output_operand_size(&d->end),
    };
    args.tile = (struct mgx_tile_args){
        .scale = mgx_kernel_is_sums(d->y_type) ? NULL : job->args->scale,
        .bias = job->args->bias,
        .end = mgx_output_listed(&d->end),
        .c_row = d->y_space[2] * args.c_size,
        .residual_row = d->residual_space[2] * args.residual_size,
    };
    mgx_output_clamp(&d->end, &args.tile);
    return args;
}

static void run_row(const struct job *job, const struct ring *ring, int64_t row,
                    struct mgx_byte_dw_args *args)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t n = row / d->out[1], y = row % d->out[1], top = y * d->stride[1] - d->pad[1];
    for (int64_t k = 0; k < d->kernel[1]; k++)
        args->lines[k] = line_of(job, ring, n, top + k * d->dilation[1]);
    args->tile.c[0] =
        (char *)job->args->y + (plan->y_first + n * d->y_batch + y * d->y_space[1]) * args->c_size;
    if (mgx_end_reader(&d->end))
        args->tile.residual[0] =
            (const char *)job->args->residual +
            (plan->residual_first + n * d->residual_batch + y * d->residual_space[1]) *
                args->residual_size;
    plan->byte_depthwise->row(args);
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const struct ring ring = ring_of(job, thread);
    struct mgx_byte_dw_args args = args_of(job);
    const int64_t end = plan->rows * (task + 1) / plan->m_parts;
    for (int64_t row = plan->rows * task / plan->m_parts; row < end; row++)
        run_row(job, &ring, row, &args);
}

static void run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->m_parts, run_task, &job);
}

const struct mgx_conv_ops mgx_conv_depthwise_bytes = {fits, cost, prepare, pack, run, NULL};
