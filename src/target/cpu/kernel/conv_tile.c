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
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "target/cpu/kernel/conv_plan.h"
#include "target/cpu/kernel/gemm.h"
#include "target/cpu/kernel/output.h"

enum { BLOCK_BYTES = 320 << 10, MAX_BLOCK_ROWS = 128, MAX_CHUNK = 256 };

static const int64_t FLOAT = sizeof(float);

// --- geometry of the copies ---

// Input positions that the outputs [0, count) of dimension i reach, in a strip. With a kernel of 1
// the strip leaves out what the stride skips.
static int64_t strip_stride(const struct mgx_conv_desc *d, int i)
{
    return d->kernel[i] > 1 ? d->stride[i] : 1;
}

static int64_t strip_length(const struct mgx_conv_desc *d, int i, int64_t count)
{
    const int64_t reach = d->kernel[i] > 1 ? (d->kernel[i] - 1) * d->dilation[i] : 0;
    return (count - 1) * strip_stride(d, i) + reach + 1;
}

// How far apart those positions are in the input.
static int64_t strip_step(const struct mgx_conv_desc *d, int i)
{
    return d->kernel[i] > 1 ? 1 : d->stride[i];
}

// The pixels of a tile must not lie a multiple of 4096 bytes apart; see gemm.h.
static int64_t spread(int64_t floats, int64_t stride)
{
    return floats && floats * stride % 1024 == 0 ? floats + 16 : floats;
}

// --- which descriptions fit, and what they cost ---

// Whether taps never leave the input and its border.
static bool needs_no_padding(const struct mgx_conv_desc *d)
{
    for (int i = 0; i < MGX_CONV_DIMS; i++) {
        const int64_t last =
            (d->out[i] - 1) * d->stride[i] - d->pad[i] + (d->kernel[i] - 1) * d->dilation[i];
        if (d->kernel[i] > 0 &&
            (-d->pad[i] < -d->border_before[i] || last >= d->in[i] + d->border_after[i]))
            return false;
    }
    return true;
}

static bool direct_fits(const struct mgx_conv_plan *plan)
{
    return !plan->d.transposed && plan->d.x_channel == 1 && needs_no_padding(&plan->d);
}

static bool strip_fits(const struct mgx_conv_plan *plan)
{
    return !plan->d.transposed;
}

// Neighbouring dimensions i and i + 1 are one, as far as tensors with these strides go.
static bool is_linear(const int64_t *stride, const int64_t *size, int i)
{
    return stride[i] == stride[i + 1] * size[i + 1] || size[i] == 1;
}

static void merge(struct mgx_conv_walk *w, int i)
{
    w->size[i + 1] *= w->size[i];
    for (; i > 0; i--) {
        w->size[i] = w->size[i - 1];
        w->x[i] = w->x[i - 1];
        w->y[i] = w->y[i - 1];
        w->residual[i] = w->residual[i - 1];
        w->pixel[i] = w->pixel[i - 1];
    }
    w->size[0] = 1;
}

static void merge_dims(struct mgx_conv_walk *w, bool with_x, bool with_residual)
{
    for (int i = MGX_CONV_DIMS - 1; i >= 0;) {
        const bool linear = (!with_x || is_linear(w->x, w->size, i)) &&
                            (!with_residual || is_linear(w->residual, w->size, i)) &&
                            is_linear(w->y, w->size, i) && is_linear(w->pixel, w->size, i);
        if (linear && w->size[i] > 1)
            merge(w, i); // what was at i - 1 is at i now
        else
            i--;
    }
}

static bool is_pointwise(const struct mgx_conv_desc *d)
{
    return mgx_conv_taps(d) == 1 && d->stride[0] == 1 && d->stride[1] == 1 && d->stride[2] == 1;
}

static void set_walk(struct mgx_conv_plan *plan, enum mgx_conv_method method)
{
    const struct mgx_conv_desc *d = &plan->d;
    struct mgx_conv_walk *w = &plan->walk;
    *w = (struct mgx_conv_walk){
        .size = {d->batch},
        .x = {d->x_batch},
        .y = {d->y_batch},
        .residual = {d->residual_batch},
        .pixel = {plan->pixel_batch},
    };
    for (int i = 0; i < MGX_CONV_DIMS; i++) {
        w->size[i + 1] = d->out[i];
        w->x[i + 1] = d->x_space[i] * d->stride[i];
        w->y[i + 1] = d->y_space[i];
        w->residual[i + 1] = d->residual_space[i];
        w->pixel[i + 1] = plan->pixel_space[i];
    }
    if (method == MGX_CONV_UNROLLED || (method == MGX_CONV_DIRECT && is_pointwise(d)))
        merge_dims(w, method == MGX_CONV_DIRECT, d->epilogue.residual != MGX_RESIDUAL_NONE);
}

// Cycles of the micro-kernel for `rows` rows of `width` pixels over `panels` panels: a tile of R
// rows takes 2R vector products per k, and at least 7 cycles.
static double tile_cycles(const struct mgx_conv_plan *plan, double rows, int64_t width)
{
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const double depth = (double)(mgx_conv_taps(&plan->d) * plan->group_in);
    const double panels =
        (double)plan->d.groups * (double)mgx_ceil_div(plan->group_out, kernel->cols / 2) * 0.5;
    double tiles = (double)mgx_ceil_div(width, kernel->rows), r = (double)width / tiles;
    if (width == kernel->half) {
        tiles = 0.5;
        r = kernel->rows;
    }
    const double per_k = (2 * r > 7 ? 2 * r : 7) + 0.5;
    return rows * tiles * panels * (depth * per_k + 50 + 6 * r);
}

// The time of a method with this many cycles of work, and a strip or block copied once.
static double total(const struct mgx_conv_plan *plan, enum mgx_conv_method method, double penalty,
                    double copied)
{
    struct mgx_conv_plan copy = *plan;
    set_walk(&copy, method);
    const int64_t *size = copy.walk.size;
    const double rows = (double)size[0] * (double)size[1] * (double)size[2];
    const double weights = (double)mgx_conv_taps(&plan->d) * (double)plan->group_in *
                           (double)plan->d.out_channels * sizeof(float);
    // Copying: about 8 bytes a cycle.
    return mgx_conv_seconds(plan, penalty * tile_cycles(plan, rows, size[3]) + copied / 2, weights);
}

static double direct_cost(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const bool clash = d->x_space[2] * d->stride[2] % 1024 == 0; // see gemm.h
    return total(plan, MGX_CONV_DIRECT, clash ? 1.15 : 1, 0);
}

static double strip_cost(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const double channels = (double)d->in_channels;
    const double columns = (double)strip_length(d, 2, d->out[2]);
    // Wide dilations make bands that reach far beyond their rows.
    const double most = (double)BLOCK_BYTES / sizeof(float) / channels / columns + 1;
    const double band = most > (double)d->out[1] ? (double)d->out[1] : most;
    const double lines = (double)strip_length(d, 1, (int64_t)band) / band * (double)d->out[1];
    return total(plan, MGX_CONV_STRIP, 1,
                 (double)(d->batch * d->out[0] * d->kernel[0]) * lines * columns * channels);
}

static double unrolled_cost(const struct mgx_conv_plan *plan)
{
    const double runs = (double)mgx_conv_pixels(&plan->d) * (double)mgx_conv_taps(&plan->d) *
                        (double)plan->d.groups;
    return total(plan, MGX_CONV_UNROLLED, 1, runs * (double)(plan->group_in + 32));
}

// --- preparing ---

// Lists the offset of every kernel element; those along the width melt when their pixels touch.
static enum mgx_status set_taps(struct mgx_conv_plan *plan, const int64_t step[MGX_CONV_DIMS],
                                struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    const bool melt = step[2] == plan->group_in;
    const int64_t across = melt && d->kernel[2] > 0 ? 1 : d->kernel[2];
    plan->tap_count = d->kernel[0] * d->kernel[1] * across;
    plan->depth = melt && d->kernel[2] > 0 ? plan->group_in * d->kernel[2] : plan->group_in;
    plan->taps = malloc((size_t)(plan->tap_count + 1) * sizeof *plan->taps);
    if (!plan->taps)
        return mgx_fail_memory(diag);
    int64_t *tap = plan->taps;
    for (int64_t z = 0; z < d->kernel[0]; z++)
        for (int64_t y = 0; y < d->kernel[1]; y++)
            for (int64_t x = 0; x < across; x++)
                *tap++ = (z * step[0] + y * step[1] + x * step[2]) * FLOAT;
    return MGX_OK;
}

// Cuts the rows: chunks no longer than what a block should hold, and enough of them for `tasks`.
static void set_chunks(struct mgx_conv_plan *plan, int64_t pixel_bytes, int64_t tasks)
{
    const int64_t *size = plan->walk.size, rows = size[0] * size[1] * size[2];
    const int64_t tile = plan->kernel->rows;
    int64_t chunk = mgx_min_i64(MAX_CHUNK, BLOCK_BYTES / mgx_max_i64(pixel_bytes, 1));
    chunk = mgx_min_i64(chunk, mgx_ceil_div(size[3], mgx_ceil_div(tasks, rows)));
    chunk = mgx_max_i64(mgx_ceil_div(chunk, tile) * tile, 2 * tile);
    plan->chunks = mgx_ceil_div(size[3], chunk);
    plan->rows = rows * plan->chunks;
}

static int64_t chunk_width(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->walk.size[3], plan->chunks);
}

static void set_parts(struct mgx_conv_plan *plan, int64_t tasks)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    const double inputs = (double)d->batch * (double)(d->in[0] * d->in[1] * d->in[2]);
    const double outputs = (double)mgx_conv_taps(d) * (double)plan->group_out;
    mgx_split_output(plan->rows, panels, inputs + 1, outputs + 1, mgx_ceil_div(tasks, d->groups),
                     &plan->m_parts, &plan->n_parts);
}

static int64_t wanted_tasks(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const double pixels = (double)mgx_conv_pixels(d),
                 depth = (double)mgx_conv_taps(d) * (double)plan->group_in;
    const double bytes = 4 * (double)d->out_channels * (depth + pixels);
    return mgx_split_tasks(2 * pixels * (double)d->out_channels * depth + MGX_WORK_PER_BYTE * bytes,
                           d->threads);
}

static void set_block(struct mgx_conv_plan *plan, int64_t row_bytes)
{
    const int64_t part = mgx_ceil_div(plan->rows, plan->m_parts);
    const int64_t fill = mgx_ceil_div(2 * plan->kernel->rows, chunk_width(plan));
    int64_t rows = mgx_max_i64(BLOCK_BYTES / mgx_max_i64(row_bytes, 1), fill);
    rows = mgx_min_i64(mgx_min_i64(rows, MAX_BLOCK_ROWS), part);
    plan->block_rows = mgx_ceil_div(part, mgx_ceil_div(part, rows));
}

struct row {
    const char *a; // its first pixel's first tap
    float *c;
    const float *residual;
    int64_t pixel, width;
};

// Sizes common to the three methods, once the copy needs `copied` floats per block.
static enum mgx_status set_sizes(struct mgx_conv_plan *plan, int64_t copied, struct mgx_diag *diag)
{
    const int64_t depth = mgx_conv_taps(&plan->d) * plan->group_in;
    size_t panels, all;
    if (!mgx_panels_bytes(plan->kernel, depth, plan->group_out, &panels) ||
        !mgx_mul_size(mgx_align64(panels), (size_t)plan->d.groups, &all))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld x %lld do not fit",
                        (long long)depth, (long long)plan->d.out_channels);
    plan->packed_bytes = all;
    plan->thread_workspace = mgx_align64((size_t)(plan->block_rows + 1) * sizeof(struct row)) +
                             mgx_align64((size_t)copied * sizeof(float));
    return MGX_OK;
}

static enum mgx_status direct_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    int64_t step[MGX_CONV_DIMS];
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        step[i] = d->x_space[i] * d->dilation[i];
    if (step[2] == plan->group_in && d->kernel[2] == 1)
        step[2]++; // nothing to melt
    set_walk(plan, MGX_CONV_DIRECT);
    const int64_t tasks = wanted_tasks(plan), bytes = plan->group_in * d->stride[2] * FLOAT;
    set_chunks(plan, bytes, tasks);
    set_parts(plan, tasks);
    set_block(plan, chunk_width(plan) * bytes * (d->kernel[1] > 1 ? d->stride[1] : 1));
    plan->pixel = plan->walk.x[3];
    TRY(set_taps(plan, step, diag));
    return set_sizes(plan, 0, diag);
}

static enum mgx_status strip_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    set_walk(plan, MGX_CONV_STRIP);
    const int64_t tasks = wanted_tasks(plan), stride = strip_stride(d, 2);
    const int64_t pixel = spread(plan->group_in, stride);
    set_chunks(plan, pixel * stride * FLOAT, tasks);
    set_parts(plan, tasks);
    plan->pitch = strip_length(d, 2, chunk_width(plan)) * pixel;
    set_block(plan, plan->pitch * strip_stride(d, 1) * d->kernel[0] * FLOAT);
    plan->plane = strip_length(d, 1, mgx_min_i64(plan->block_rows, d->out[1])) * plan->pitch;
    plan->run = plan->plane * d->kernel[0];
    const int64_t runs = (plan->block_rows + d->out[1] - 2) / d->out[1] + 1;
    const int64_t step[] = {plan->plane, d->dilation[1] * plan->pitch, d->dilation[2] * pixel};
    plan->pixel = pixel * stride;
    TRY(set_taps(plan, step, diag));
    return set_sizes(plan, runs * plan->run, diag);
}

static enum mgx_status unrolled_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const int64_t depth = mgx_conv_taps(&plan->d) * plan->group_in;
    set_walk(plan, MGX_CONV_UNROLLED);
    const int64_t tasks = wanted_tasks(plan);
    plan->pixel = spread(depth, 1);
    set_chunks(plan, plan->pixel * FLOAT, tasks);
    set_parts(plan, tasks);
    plan->run = chunk_width(plan) * plan->pixel;
    set_block(plan, plan->run * FLOAT);
    plan->taps = calloc(1, sizeof *plan->taps);
    if (!plan->taps)
        return mgx_fail_memory(diag);
    plan->tap_count = 1;
    plan->depth = depth;
    return set_sizes(plan, plan->run * plan->block_rows, diag);
}

// --- packing: depth runs over kernel elements, then channels ---

static void tile_pack(const struct mgx_conv_plan *plan, const float *weights, void *packed)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t depth = mgx_conv_taps(d) * plan->group_in;
    const size_t group_bytes = plan->packed_bytes / (size_t)d->groups;
    for (int64_t g = 0; g < d->groups; g++) {
        float *group = (float *)(void *)((char *)packed + (size_t)g * group_bytes);
        const float *from = weights + plan->w_first + g * d->w_group;
        for (int64_t p = 0; p * kernel->cols < plan->group_out; p++) {
            float *panel = group + p * kernel->cols * depth;
            const int64_t tap = mgx_panel_width(kernel, plan->group_out, p) * plan->group_in;
            for (int64_t z = 0; z < d->kernel[0]; z++)
                for (int64_t y = 0; y < d->kernel[1]; y++)
                    for (int64_t x = 0; x < d->kernel[2]; x++, panel += tap)
                        mgx_panel_pack(
                            kernel,
                            from + z * d->w_space[0] + y * d->w_space[1] + x * d->w_space[2],
                            d->w_in, d->w_out, plan->group_in, plan->group_out, p, panel);
        }
    }
}

// --- running ---

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
    struct row *rows; // of the block
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

static void set_outputs(const struct part *part, const struct place *at, struct row *row)
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
    const int64_t lines = strip_length(d, 1, rows), step = strip_step(d, 2);
    const int64_t left = at->begin * d->stride[2] - d->pad[2];
    const int64_t right = left + strip_length(d, 2, at->end - at->begin) * step;
    const int64_t pixel = plan->pixel / strip_stride(d, 2);
    for (int64_t k = 0; k < d->kernel[0]; k++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t z = at->z * d->stride[0] - d->pad[0] + k * d->dilation[0];
            const int64_t y = at->y * d->stride[1] - d->pad[1] + i * strip_step(d, 1);
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
        struct row *row = &part->rows[part->row_count++];
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
            strip += strip_stride(&plan->d, 1) * plan->pitch;
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
static void set_half(const struct part *part, const struct row *row, int64_t x, int64_t p, int half,
                     struct mgx_tile_args *args)
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
        const struct row *row = &part->rows[r];
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
        .rows = (struct row *)(void *)own,
    };
    const size_t table = mgx_align64((size_t)(plan->block_rows + 1) * sizeof(struct row));
    part.copy = (float *)(void *)(own + table);
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    part.packed = (const float *)(const void *)((const char *)job->args->packed +
                                                plan->packed_bytes / (size_t)plan->d.groups *
                                                    (size_t)part.group);
    run_part(&part);
}

static void tile_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                     struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, (int)plan->d.groups * plan->m_parts * plan->n_parts, run_task, &job);
}

const struct mgx_conv_ops mgx_conv_direct = {direct_fits, direct_cost, direct_prepare, tile_pack,
                                             tile_run};
const struct mgx_conv_ops mgx_conv_strip = {strip_fits, strip_cost, strip_prepare, tile_pack,
                                            tile_run};
const struct mgx_conv_ops mgx_conv_unrolled = {strip_fits, unrolled_cost, unrolled_prepare,
                                               tile_pack, tile_run};
