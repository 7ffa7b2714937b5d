// SPDX-License-Identifier: MIT
// Convolution through the micro-kernel; see conv.h for the three sources of rows of A.
//
//     task: a group, a range of output rows, a range of panels (32 output channels)
//       block of rows, whose input stays in L2: the strip is copied, or the pixels unrolled
//         panel, prefetching the next
//           row of output pixels, in tiles of up to 14; two rows of 7 make one tile
//
//     strip, kernel 3 x 3, pad 1:                 0 0 0 0 0 0 0 0     rows above the image
//                                                 0 x x x x x x 0
//                                                 0 x x x x x x 0  <- rows of the block, and what
//                                                 0 x x x x x x 0     its taps reach
//
// A row longer than a few hundred pixels is cut in chunks; a 1 x 1 convolution of stride 1 over
// contiguous tensors is one row of all pixels of all images.
#include <string.h>

#include "base/size.h"
#include "target/cpu/kernel/conv_tile.h"
#include "target/cpu/kernel/gemm.h"
#include "target/cpu/kernel/output.h"

static const int64_t FLOAT = sizeof(float);

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

struct part {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
    int64_t group, row_begin, row_end, p_begin, p_end, panels;
    const float *packed; // of the group
    int thread;
    struct mgx_conv_row *rows; // of the block
    int row_count;
    float *copy;
};

// A row number taken apart, and its range of pixels.
struct place {
    int64_t n, z, y, begin, end;
};

static struct place place_of(const struct mgx_conv_plan *plan, int64_t row)
{
    const int64_t *size = plan->walk.size;
    struct place at;
    at.y = row % size[2];
    row /= size[2];
    const int64_t chunk = row % plan->chunks;
    row /= plan->chunks;
    at.z = row % size[1];
    at.n = row / size[1];
    at.begin = size[3] * chunk / plan->chunks;
    at.end = size[3] * (chunk + 1) / plan->chunks;
    return at;
}

static int64_t along(const int64_t stride[MGX_WALK_DIMS], const struct place *at)
{
    return at->n * stride[0] + at->z * stride[1] + at->y * stride[2] + at->begin * stride[3];
}

static void set_outputs(const struct part *part, const struct place *at, struct mgx_conv_row *row)
{
    const struct mgx_conv_plan *plan = part->plan;
    const int64_t channel = part->group * plan->group_out;
    row->c = part->args->y + plan->y_first + along(plan->walk.y, at) + channel;
    row->residual = NULL;
    if (plan->d.epilogue.residual)
        row->residual =
            part->args->residual + plan->residual_first + along(plan->walk.residual, at) + channel;
    row->pixel = plan->pixel_first + along(plan->walk.pixel, at);
    row->width = at->end - at->begin;
}

static const char *direct_row(const struct part *part, const struct place *at)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    int64_t offset = along(plan->walk.x, at) + part->group * plan->group_in;
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        offset -= d->pad[i] * d->x_space[i];
    return (const char *)(part->args->x + offset);
}

// Copies pixels begin, begin + step, ... < end of an input row; those outside the image are zeros.
static void copy_pixels(const struct mgx_conv_plan *plan, const float *line, int64_t begin,
                        int64_t end, int64_t step, int64_t pixel, float *to)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t channels = plan->group_in, inside = mgx_min_i64(end, d->in[2]);
    for (; begin < end && (begin < 0 || !line); begin += step, to += pixel)
        memset(to, 0, (size_t)channels * sizeof *to);
    const float *from = line ? line + begin * d->x_space[2] : NULL;
    if (inside > begin && step == 1 && d->x_channel == 1 && d->x_space[2] == channels &&
        pixel == channels) {
        memcpy(to, from, (size_t)((inside - begin) * channels) * sizeof *to);
        to += (inside - begin) * pixel;
        begin = inside;
    }
    for (; begin < inside; begin += step, to += pixel, from += step * d->x_space[2])
        if (d->x_channel == 1)
            memcpy(to, from, (size_t)channels * sizeof *to);
        else
            for (int64_t c = 0; c < channels; c++)
                to[c] = from[c * d->x_channel];
    for (; begin < end; begin += step, to += pixel)
        memset(to, 0, (size_t)channels * sizeof *to);
}

// The input row (z, y) of an image, this group's channels; NULL outside.
static const float *input_line(const struct part *part, int64_t n, int64_t z, int64_t y)
{
    const struct mgx_conv_desc *d = &part->plan->d;
    if (z < 0 || z >= d->in[0] || y < 0 || y >= d->in[1])
        return NULL;
    return part->args->x + n * d->x_batch + z * d->x_space[0] + y * d->x_space[1] +
           part->group * part->plan->group_in * d->x_channel;
}

// Copies what `rows` output rows from `at` on read.
static void copy_strip(const struct part *part, const struct place *at, int64_t rows, float *strip)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t lines = mgx_strip_length(d, 1, rows), step = mgx_strip_step(d, 2);
    const int64_t left = at->begin * d->stride[2] - d->pad[2];
    const int64_t right = left + mgx_strip_length(d, 2, at->end - at->begin) * step;
    const int64_t pixel = plan->pixel / mgx_strip_stride(d, 2);
    for (int64_t k = 0; k < d->kernel[0]; k++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t z = at->z * d->stride[0] - d->pad[0] + k * d->dilation[0];
            const int64_t y = at->y * d->stride[1] - d->pad[1] + i * mgx_strip_step(d, 1);
            copy_pixels(plan, input_line(part, at->n, z, y), left, right, step, pixel,
                        strip + k * plan->plane + i * plan->pitch);
        }
}

// Writes out the taps of all pixels of a row. The walk has merged dimensions; the description's own
// are found again from the running number of the pixel.
static void unroll_row(const struct part *part, const struct place *at, float *to)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t *size = plan->walk.size;
    const int64_t first = ((at->n * size[1] + at->z) * size[2] + at->y) * size[3];
    for (int64_t i = first + at->begin; i < first + at->end; i++, to += plan->pixel) {
        const int64_t x = i % d->out[2] * d->stride[2] - d->pad[2], row = i / d->out[2];
        const int64_t y = row % d->out[1] * d->stride[1] - d->pad[1], slice = row / d->out[1];
        const int64_t z = slice % d->out[0] * d->stride[0] - d->pad[0], n = slice / d->out[0];
        float *tap = to;
        for (int64_t kz = 0; kz < d->kernel[0]; kz++)
            for (int64_t ky = 0; ky < d->kernel[1]; ky++) {
                const float *line =
                    input_line(part, n, z + kz * d->dilation[0], y + ky * d->dilation[1]);
                for (int64_t kx = 0; kx < d->kernel[2]; kx++, tap += plan->group_in)
                    copy_pixels(plan, line, x + kx * d->dilation[2], x + kx * d->dilation[2] + 1, 1,
                                plan->group_in, tap);
            }
    }
}

// Lists the rows [begin, end) and copies their input.
static void fill_block(struct part *part, int64_t begin, int64_t end)
{
    const struct mgx_conv_plan *plan = part->plan;
    float *copy = part->copy;
    int64_t in_strip = 0; // rows left in the current strip
    const float *strip = NULL;
    part->row_count = 0;
    for (int64_t v = begin; v < end; v++) {
        const struct place at = place_of(plan, v);
        struct mgx_conv_row *row = &part->rows[part->row_count++];
        set_outputs(part, &at, row);
        if (plan->method == MGX_CONV_DIRECT)
            row->a = direct_row(part, &at);
        else if (plan->method == MGX_CONV_UNROLLED) {
            unroll_row(part, &at, copy);
            row->a = (const char *)copy;
            copy += plan->run;
        } else {
            if (in_strip == 0) {
                in_strip = mgx_min_i64(plan->walk.size[2] - at.y, end - v);
                copy_strip(part, &at, in_strip, copy);
                strip = copy;
                copy += plan->run;
            }
            row->a = (const char *)strip;
            strip += mgx_strip_stride(&plan->d, 1) * plan->pitch;
            in_strip--;
        }
    }
}

static void finish_half(const struct part *part, const struct mgx_tile_args *args, int half,
                        int64_t pixel, int rows, int64_t p)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_tile tile = {
        .data = (float *)(void *)args->c[half],
        .stride = args->c_row / FLOAT,
        .row = pixel,
        .row_step = plan->walk.pixel[3],
        .col = part->group * plan->group_out + p * plan->kernel->cols,
        .rows = rows,
        .cols = args->cols,
        .thread = part->thread,
    };
    mgx_output_finish(plan->kernel, &plan->d.epilogue, &tile,
                      (const float *)(const void *)args->residual[half], plan->walk.residual[3],
                      part->args->hook_user);
}

// Points one half of the tile at pixel x of a row.
static void set_half(const struct part *part, const struct mgx_conv_row *row, int64_t x, int64_t p,
                     int half, struct mgx_tile_args *args)
{
    const struct mgx_conv_walk *walk = &part->plan->walk;
    const int64_t col = p * part->plan->kernel->cols;
    args->a[half] = row->a + x * args->a_row;
    args->c[half] = (char *)(row->c + x * walk->y[3] + col);
    args->residual[half] =
        row->residual ? (const char *)(row->residual + x * walk->residual[3] + col) : NULL;
}

// Runs the tile of `count` pixels whose halves have been set, from pixel numbers `first`.
static void run_tile(const struct part *part, mgx_tile_fn tile, struct mgx_tile_args *args,
                     int count, const int64_t first[2], int64_t p)
{
    const struct mgx_epilogue *e = &part->plan->d.epilogue;
    const int half = part->plan->kernel->half;
    const char *residual[2] = {args->residual[0], args->residual[1]};
    if (e->residual == MGX_RESIDUAL_AFTER)
        args->residual[0] = NULL;
    tile(args);
    if (mgx_output_simple(e))
        return;
    args->residual[0] = residual[0];
    finish_half(part, args, 0, first[0], count < half ? count : half, p);
    if (count > half)
        finish_half(part, args, 1, first[1], count - half, p);
}

static void set_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_conv_plan *plan = part->plan;
    const int64_t depth = args->depth * args->tap_count, cols = plan->kernel->cols;
    const int64_t left = plan->group_out - p * cols;
    args->cols = left < cols ? (int)left : (int)cols;
    args->b = (const char *)(part->packed + p * cols * depth);
    args->b_row = mgx_panel_width(plan->kernel, plan->group_out, p) * FLOAT;
    args->bias =
        part->args->bias ? part->args->bias + part->group * plan->group_out + p * cols : NULL;
    args->ahead = args->b + args->b_row * depth;
    args->ahead_step = p + 1 < part->panels ? 256 : 0;
}

// All tiles of the block for one panel; the first ones prefetch the next panel.
static void run_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const mgx_tile_fn *tiles = args->cols > kernel->cols / 2 ? kernel->wide : kernel->narrow;
    const int64_t tile_bytes = args->tap_count * (args->depth / 4) * 256;
    int64_t ahead_left = args->b_row * args->depth * args->tap_count;
    for (int r = 0; r < part->row_count; r++) {
        const struct mgx_conv_row *row = &part->rows[r];
        const bool pair =
            row->width == kernel->half && r + 1 < part->row_count && row[1].width == kernel->half;
        const int64_t count = mgx_ceil_div(row->width, kernel->rows);
        for (int64_t t = 0; t < count; t++) {
            const int64_t x = row->width * t / count;
            int pixels = (int)(row->width * (t + 1) / count - x);
            int64_t first[2] = {row->pixel + x * plan->walk.pixel[3],
                                row->pixel + (x + kernel->half) * plan->walk.pixel[3]};
            set_half(part, row, x, p, 0, args);
            set_half(part, pair ? row + 1 : row, pair ? 0 : x + kernel->half, p, 1, args);
            if (pair) {
                pixels = kernel->rows;
                first[1] = row[1].pixel;
            }
            run_tile(part, tiles[pixels], args, pixels, first, p);
            args->ahead += args->ahead_step ? tile_bytes : 0;
            ahead_left -= tile_bytes;
            args->ahead_step = ahead_left > 0 ? args->ahead_step : 0;
        }
        r += pair;
    }
}

static void run_part(struct part *part)
{
    const struct mgx_conv_plan *plan = part->plan;
    struct mgx_tile_args args = {
        .a_row = plan->pixel * FLOAT,
        .taps = plan->taps,
        .tap_count = plan->tap_count,
        .depth = plan->depth,
        .c_row = plan->walk.y[3] * FLOAT,
        .residual_row = plan->walk.residual[3] * FLOAT,
    };
    mgx_output_clamp(&plan->d.epilogue, &args);
    const int64_t rows = part->row_end - part->row_begin;
    const int64_t blocks = mgx_ceil_div(rows, plan->block_rows);
    for (int64_t i = 0; i < blocks; i++) {
        fill_block(part, part->row_begin + rows * i / blocks,
                   part->row_begin + rows * (i + 1) / blocks);
        for (int64_t p = part->p_begin; p < part->p_end; p++) {
            set_panel(part, p, &args);
            run_panel(part, p, &args);
        }
    }
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const int in_group = task % (plan->m_parts * plan->n_parts);
    const int i = in_group / plan->n_parts, j = in_group % plan->n_parts;
    char *own = (char *)job->args->workspace + plan->thread_workspace * (size_t)thread;
    struct part part = {
        .plan = plan,
        .args = job->args,
        .group = task / (plan->m_parts * plan->n_parts),
        .row_begin = plan->rows * i / plan->m_parts,
        .row_end = plan->rows * (i + 1) / plan->m_parts,
        .panels = mgx_ceil_div(plan->group_out, plan->kernel->cols),
        .thread = thread,
        .rows = (struct mgx_conv_row *)(void *)own,
    };
    const size_t table = mgx_align64((size_t)(plan->block_rows + 1) * sizeof(struct mgx_conv_row));
    part.copy = (float *)(void *)(own + table);
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    part.packed = (const float *)(const void *)((const char *)job->args->packed +
                                                plan->packed_bytes / (size_t)plan->d.groups *
                                                    (size_t)part.group);
    run_part(&part);
}

void mgx_conv_tile_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                       struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, (int)plan->d.groups * plan->m_parts * plan->n_parts, run_task, &job);
}
