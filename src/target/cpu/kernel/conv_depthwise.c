// SPDX-License-Identifier: MIT
// Depthwise convolution: groups of one channel, or of as many in as out, up to 8. Rows of the
// output are dealt to tasks, and vectors of channels too when there are few rows; see dw.h for what
// is done in a row.
//
// Weights are packed [vector of channels][kernel row][member][kernel column][lane], zero beyond the
// last channel.
#include <string.h>

#include "base/size.h"
#include "target/cpu/kernel/conv_plan.h"
#include "target/cpu/kernel/dw.h"
#include "target/cpu/kernel/output.h"

extern const struct mgx_dw_kernel mgx_f32_dw__generic;
#if defined(__x86_64__)
extern const struct mgx_dw_kernel mgx_f32_dw__avx2, mgx_f32_dw__avx512;
#endif

const struct mgx_dw_kernel *mgx_dw_kernel(enum mgx_isa isa)
{
#if defined(__x86_64__)
    if (isa >= MGX_ISA_AVX512)
        return &mgx_f32_dw__avx512;
    if (isa >= MGX_ISA_AVX2)
        return &mgx_f32_dw__avx2;
#endif
    (void)isa;
    return &mgx_f32_dw__generic;
}

static bool depthwise_fits(const struct mgx_conv_plan *plan)
{
    const int64_t members = plan->group_in;
    return mgx_conv_floats(&plan->d) && !plan->d.transposed && members == plan->group_out &&
           plan->d.x_channel == 1 &&
           (members == 1 || members == 2 || members == 4 || members == 8) &&
           plan->kernel->vector % members == 0;
}

// A product every cycle at best, and load-bound.
static double depthwise_cost(const struct mgx_conv_plan *plan)
{
    const double vectors = (double)mgx_ceil_div(plan->d.out_channels, plan->kernel->vector);
    const double products = (double)(mgx_conv_taps(&plan->d) * plan->group_in);
    return mgx_conv_seconds(plan,
                            1.5 * (double)mgx_conv_pixels(&plan->d) * vectors * (products + 4), 0);
}

static int64_t vectors_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->d.out_channels, plan->depthwise->vector);
}

static int64_t lines_of(const struct mgx_conv_desc *d)
{
    return d->kernel[0] * d->kernel[1];
}

// Scratch of one thread: the lines of a row, and the kernel row of each.
static size_t lines_bytes(const struct mgx_conv_desc *d)
{
    return mgx_align64((size_t)lines_of(d) * sizeof(float *));
}

static enum mgx_status depthwise_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    plan->depthwise = mgx_dw_kernel(d->isa);
    plan->kernel = mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    const int64_t floats =
        vectors_of(plan) * mgx_conv_taps(d) * plan->group_in * plan->depthwise->vector;
    if (!mgx_mul_size((size_t)floats, sizeof(float), &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld channels do not fit",
                        (long long)d->out_channels);
    plan->thread_workspace = lines_bytes(d) + mgx_align64((size_t)lines_of(d) * sizeof(int));
    plan->rows = d->batch * d->out[0] * d->out[1];
    const double values = (double)mgx_conv_pixels(d) * (double)d->out_channels;
    const int64_t tasks = mgx_split_tasks(
        values * (double)(2 * mgx_conv_taps(d) + 8 * MGX_WORK_PER_BYTE), d->threads);
    plan->m_parts = (int)mgx_min_i64(plan->rows, tasks);
    plan->n_parts =
        (int)mgx_min_i64(vectors_of(plan), mgx_ceil_div(tasks, mgx_max_i64(plan->m_parts, 1)));
    return MGX_OK;
}

// The weight of kernel element (z, y, x) from member m to an output channel.
static float weight_at(const struct mgx_conv_plan *plan, const float *weights, int64_t channel,
                       int64_t m, int64_t z, int64_t y, int64_t x)
{
    const struct mgx_conv_desc *d = &plan->d;
    if (channel >= d->out_channels)
        return 0.0f;
    return weights[plan->w_first + channel / plan->group_out * d->w_group +
                   channel % plan->group_out * d->w_out + m * d->w_in + z * d->w_space[0] +
                   y * d->w_space[1] + x * d->w_space[2]];
}

static void depthwise_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int vector = plan->depthwise->vector;
    float *to = packed;
    for (int64_t v = 0; v < vectors_of(plan); v++)
        for (int64_t z = 0; z < d->kernel[0]; z++)
            for (int64_t y = 0; y < d->kernel[1]; y++)
                for (int64_t m = 0; m < plan->group_in; m++)
                    for (int64_t x = 0; x < d->kernel[2]; x++)
                        for (int lane = 0; lane < vector; lane++)
                            *to++ = weight_at(plan, weights, v * vector + lane, m, z, y, x);
}

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

// One output row: where it is, and its input lines that exist.
struct row {
    int64_t n, z, y;
    const float **lines;
    int *kernel_rows;
    int count;
};

static void find_lines(const struct job *job, struct row *row)
{
    const struct mgx_conv_desc *d = &job->plan->d;
    row->count = 0;
    for (int64_t kz = 0; kz < d->kernel[0]; kz++)
        for (int64_t ky = 0; ky < d->kernel[1]; ky++) {
            const int64_t z = row->z * d->stride[0] - d->pad[0] + kz * d->dilation[0];
            const int64_t y = row->y * d->stride[1] - d->pad[1] + ky * d->dilation[1];
            if (z < 0 || z >= d->in[0] || y < 0 || y >= d->in[1])
                continue;
            row->lines[row->count] = (const float *)job->args->x + row->n * d->x_batch +
                                     z * d->x_space[0] + y * d->x_space[1];
            row->kernel_rows[row->count++] = (int)(kz * d->kernel[1] + ky);
        }
}

static void finish_vector(const struct job *job, const struct row *row, const float *residual,
                          const struct mgx_dw_args *args, int64_t channel, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_tile tile = {
        .data = args->y,
        .stride = args->y_pixel,
        .row = plan->pixel_first + row->n * plan->pixel_batch + row->z * plan->pixel_space[0] +
               row->y * plan->pixel_space[1],
        .row_step = plan->pixel_space[2],
        .col = channel,
        .rows = (int)args->count,
        .cols = args->channels,
        .thread = thread,
    };
    mgx_output_finish(plan->kernel, &plan->d.epilogue, &tile, residual, args->residual_pixel,
                      job->args->hook_user);
}

static void run_row(const struct job *job, const struct row *row, int64_t v_begin, int64_t v_end,
                    int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_conv_args *in = job->args;
    const int64_t vector = plan->depthwise->vector;
    struct mgx_tile_args clamp;
    mgx_output_clamp(&d->epilogue, &clamp);
    const float *residual = NULL;
    if (d->epilogue.residual)
        residual = (const float *)in->residual + plan->residual_first + row->n * d->residual_batch +
                   row->z * d->residual_space[0] + row->y * d->residual_space[1];
    struct mgx_dw_args args = {
        .lines = row->lines,
        .kernel_rows = row->kernel_rows,
        .line_count = row->count,
        .width = d->in[2],
        .pixel = d->x_space[2],
        .first = -d->pad[2],
        .kernel = d->kernel[2],
        .stride = d->stride[2],
        .dilation = d->dilation[2],
        .members = (int)plan->group_in,
        .residual_pixel = d->residual_space[2],
        .y = (float *)in->y + plan->y_first + row->n * d->y_batch + row->z * d->y_space[0] +
             row->y * d->y_space[1] + v_begin * vector,
        .y_pixel = d->y_space[2],
        .count = d->out[2],
        .clamp = clamp.clamp,
        .low = clamp.low,
        .high = clamp.high,
    };
    for (int l = 0; l < row->count; l++)
        row->lines[l] += v_begin * vector;
    for (int64_t v = v_begin; v < v_end; v++, args.y += vector) {
        const int64_t channel = v * vector;
        args.channels = (int)mgx_min_i64(vector, d->out_channels - channel);
        args.weights = (const float *)in->packed + channel * mgx_conv_taps(d) * plan->group_in;
        args.bias = in->bias ? in->bias + channel : NULL;
        args.residual = d->epilogue.residual == MGX_RESIDUAL_BEFORE ? residual + channel : NULL;
        plan->depthwise->row(&args);
        if (!mgx_output_simple(&d->epilogue))
            finish_vector(job, row, residual ? residual + channel : NULL, &args, channel, thread);
        for (int l = 0; l < row->count; l++)
            row->lines[l] += vector;
    }
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int i = task / plan->n_parts, j = task % plan->n_parts;
    const int64_t vectors = vectors_of(plan);
    char *own = (char *)job->args->workspace + plan->thread_workspace * (size_t)thread;
    struct row row = {.lines = (const float **)(void *)own,
                      .kernel_rows = (int *)(void *)(own + lines_bytes(d))};
    for (int64_t r = plan->rows * i / plan->m_parts; r < plan->rows * (i + 1) / plan->m_parts;
         r++) {
        row.y = r % d->out[1];
        row.z = r / d->out[1] % d->out[0];
        row.n = r / d->out[1] / d->out[0];
        find_lines(job, &row);
        run_row(job, &row, vectors * j / plan->n_parts, vectors * (j + 1) / plan->n_parts, thread);
    }
}

static void depthwise_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                          struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->m_parts * plan->n_parts, run_task, &job);
}

const struct mgx_conv_ops mgx_conv_depthwise = {depthwise_fits, depthwise_cost, depthwise_prepare,
                                                depthwise_pack, depthwise_run};
