// SPDX-License-Identifier: MIT
// Planning of the tile methods: what fits, what it costs, how rows, panels and blocks are cut, and
// the order of packed weights. See conv_tile.c for what is done with it.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_tile.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/tile/chunk.h"
#include "targets/cpu/machine/cpuid.h"

enum { BLOCK_BYTES = 320 << 10, MAX_BLOCK_ROWS = 128, MAX_CHUNK = 256, MIN_WIDTH = 12 };

static const int64_t GROUP = 4; // bytes

// The pixels of a tile must not lie a multiple of 4096 bytes apart; see gemm.h.
static int64_t spread(int64_t groups, int64_t stride)
{
    assert(groups >= 0);
    return groups && groups * stride % 1024 == 0 ? groups + 16 : groups;
}

static int64_t channel_groups(const struct mgx_conv_plan *plan)
{
    return mgx_panel_rows(plan->kernel, plan->group_in);
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
    return !plan->d.transposed && plan->d.x_channel == 1 && needs_no_padding(&plan->d) &&
           plan->d.x_type == plan->kernel->a_type && plan->group_in % plan->kernel->group == 0;
}

static bool strip_fits(const struct mgx_conv_plan *plan)
{
    return !plan->d.transposed;
}

// Neighbouring dimensions i and i + 1 are one, as far as tensors with these strides go.
static bool is_linear(const int64_t *stride, const int64_t *size, int i)
{
    assert(i >= 0);
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

static void merge_dims(struct mgx_conv_plan *plan, enum mgx_conv_method method)
{
    struct mgx_conv_walk *w = &plan->walk;
    const bool with_x = method != MGX_CONV_UNROLLED;
    const bool with_residual = mgx_end_reader(&plan->d.end) != NULL;
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

// The share of (row of the output, row of the kernel) that meets the image.
static double used_share(const struct mgx_conv_desc *d)
{
    int64_t used = 0;
    for (int64_t k = 0; k < d->kernel[1]; k++) {
        const int64_t low = k * d->dilation[1] - d->pad[1]; // where the first output row reads
        const int64_t first = low < 0 ? mgx_ceil_div(-low, d->stride[1]) : 0;
        const int64_t end = low < d->in[1] ? mgx_ceil_div(d->in[1] - low, d->stride[1]) : 0;
        used += mgx_max_i64(mgx_min_i64(end, d->out[1]) - first, 0);
    }
    return (double)used / (double)(d->kernel[1] * d->out[1]);
}

// Does the unrolled method keep rows apart, to leave out the rows of the kernel that read padding?
static bool skips_rows(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return !plan->kernel->integer && d->kernel[0] == 1 && d->kernel[1] > 1 &&
           d->out[2] >= MIN_WIDTH && used_share(d) <= 0.75;
}

// Whether strips are whole runs of pixels, whatever line they are in.
static bool is_widened_run(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return plan->kernel->strip && is_pointwise(d) && needs_no_padding(d) && d->x_channel == 1 &&
           !d->transposed;
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
    if ((method == MGX_CONV_UNROLLED && !skips_rows(plan)) ||
        (method == MGX_CONV_DIRECT && is_pointwise(d)) ||
        (method == MGX_CONV_STRIP && is_widened_run(plan)))
        merge_dims(plan, method);
}

// Cycles of a tile of r rows per k: 2r vector products, and at least 7 cycles. On tile registers
// (amx_body.h) sixteen k take 64 cycles, or 52 where r is 16 or less: reckoned, not measured.
static double cycles_per_k(const struct mgx_gemm_kernel *kernel, double r)
{
    if (mgx_gemm_has_tiles(kernel))
        return r > kernel->half ? 4 : 3.25;
    if (mgx_gemm_in_chunks(kernel))
        return r > 4 ? r : 4;
    return (2 * r > 7 ? 2 * r : 7) + 0.5;
}

// Cycles of the micro-kernel for `rows` rows of `width` pixels over `panels` panels.
static double tile_cycles(const struct mgx_conv_plan *plan, double rows, int64_t width)
{
    assert(rows > 0 && width > 0);
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const double depth = (double)(mgx_conv_taps(&plan->d) * channel_groups(plan));
    const double panels =
        (double)plan->d.groups * (double)mgx_ceil_div(plan->group_out, kernel->cols / 2) * 0.5;
    double tiles = (double)mgx_ceil_div(width, kernel->rows), r = (double)width / tiles;
    if (width == kernel->half) {
        tiles = 0.5;
        r = kernel->rows;
    }
    return rows * tiles * panels * (depth * cycles_per_k(kernel, r) + 50 + 6 * r);
}

// The time of a method with this many cycles of work, and a strip or block copied once.
static double total(const struct mgx_conv_plan *plan, enum mgx_conv_method method, double penalty,
                    double copied)
{
    struct mgx_conv_plan copy = *plan;
    set_walk(&copy, method);
    const int64_t *size = copy.walk.size;
    const double rows = (double)size[0] * (double)size[1] * (double)size[2];
    const double weights = (double)mgx_conv_taps(&plan->d) * (double)channel_groups(plan) *
                           (double)plan->d.out_channels * GROUP;
    // Copying: about 8 bytes a cycle.
    return mgx_conv_seconds(plan, penalty * tile_cycles(plan, rows, size[3]) + copied / 2, weights);
}

static double direct_cost(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t size = mgx_kernel_size(d->x_type);
    const bool clash = d->x_space[2] * d->stride[2] * size % 4096 == 0; // see gemm.h
    return total(plan, MGX_CONV_DIRECT, clash ? 1.15 : 1, 0);
}

static double strip_cost(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const double channels = (double)d->in_channels;
    const double columns = (double)mgx_strip_length(d, 2, d->out[2]);
    // Wide dilations make bands that reach far beyond their rows.
    const double most = (double)BLOCK_BYTES / sizeof(float) / channels / columns + 1;
    const double band = most > (double)d->out[1] ? (double)d->out[1] : most;
    const double lines = (double)mgx_strip_length(d, 1, (int64_t)band) / band * (double)d->out[1];
    return total(plan, MGX_CONV_STRIP, 1,
                 (double)(d->batch * d->out[0] * d->kernel[0]) * lines * columns * channels);
}

static double unrolled_cost(const struct mgx_conv_plan *plan)
{
    const double runs = (double)mgx_conv_pixels(&plan->d) * (double)mgx_conv_taps(&plan->d) *
                        (double)plan->d.groups;
    const double share = skips_rows(plan) ? used_share(&plan->d) : 1;
    return total(plan, MGX_CONV_UNROLLED, share, share * runs * (double)(plan->group_in + 32));
}

// --- preparing ---

// Lists the offset in bytes of every kernel element; those along the width melt when their pixels
// touch.
static enum mgx_status set_taps(struct mgx_conv_plan *plan, const int64_t step[MGX_CONV_DIMS],
                                struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    const bool melt = step[2] == plan->channel_groups * GROUP && d->kernel[2] > 1;
    const int64_t across = melt ? 1 : d->kernel[2];
    plan->tap_count = d->kernel[0] * d->kernel[1] * across;
    plan->depth = plan->channel_groups * (melt ? d->kernel[2] : 1);
    plan->taps = malloc((size_t)(plan->tap_count + 1) * sizeof *plan->taps);
    if (!plan->taps)
        return mgx_fail_memory(diag);
    int64_t *tap = plan->taps;
    for (int64_t z = 0; z < d->kernel[0]; z++)
        for (int64_t y = 0; y < d->kernel[1]; y++)
            for (int64_t x = 0; x < across; x++)
                *tap++ = z * step[0] + y * step[1] + x * step[2];
    return MGX_OK;
}

// How much more than its share the busiest of `threads` gets of `parts` equal ones.
static double imbalance(int64_t parts, int64_t threads)
{
    assert(parts >= 1 && threads >= 1);
    return (double)(mgx_ceil_div(parts, threads) * threads) / (double)parts;
}

// Cuts the rows: chunks no longer than what a block should hold, and enough of them for `tasks`.
// They are two tiles long or more, one where that divides better: a thread that gets its share of
// rows reads its share of the input, one that gets its share of panels all of it.
static void set_chunks(struct mgx_conv_plan *plan, int64_t pixel_bytes, int64_t tasks)
{
    const int64_t *size = plan->walk.size, rows = size[0] * size[1] * size[2];
    const int64_t tile = plan->kernel->rows, threads = mgx_max_i64(plan->d.threads, 1);
    int64_t chunk = mgx_min_i64(MAX_CHUNK, BLOCK_BYTES / mgx_max_i64(pixel_bytes, 1));
    chunk = mgx_min_i64(chunk, mgx_ceil_div(size[3], mgx_ceil_div(tasks, rows)));
    chunk = mgx_max_i64(mgx_ceil_div(chunk, tile) * tile, 2 * tile);
    if (tasks > 1 && chunk == 2 * tile &&
        imbalance(rows * mgx_ceil_div(size[3], tile), threads) <
            imbalance(rows * mgx_ceil_div(size[3], chunk), threads))
        chunk = tile;
    plan->chunks = mgx_ceil_div(size[3], chunk);
    plan->rows = rows * plan->chunks;
}

static int64_t chunk_width(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->walk.size[3], plan->chunks);
}

static void set_parts(struct mgx_conv_plan *plan, int64_t tasks)
{
    assert(tasks >= 1);
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
                 depth = (double)mgx_conv_taps(d) * (double)channel_groups(plan);
    const double bytes = 4 * (double)d->out_channels * (depth + pixels);
    return mgx_split_tasks(2 * pixels * (double)d->out_channels * depth + MGX_WORK_PER_BYTE * bytes,
                           d->threads);
}

// Strips come by a line of the output, and of what is added to it, once for every few columns:
// those lines are to stay with the input.
static int64_t bytes_ending(const struct mgx_conv_plan *plan)
{
    const int64_t residual = mgx_output_operand_size(&plan->d.end);
    if (!plan->kernel->strip)
        return 0;
    return chunk_width(plan) * plan->group_out * (mgx_kernel_size(plan->d.y_type) + residual);
}

static void set_block(struct mgx_conv_plan *plan, int64_t row_bytes)
{
    row_bytes += bytes_ending(plan);
    const int64_t part = mgx_ceil_div(plan->rows, plan->m_parts);
    const int64_t fill = mgx_ceil_div(2 * plan->kernel->rows, chunk_width(plan));
    int64_t rows = mgx_max_i64(BLOCK_BYTES / mgx_max_i64(row_bytes, 1), fill);
    rows = mgx_min_i64(mgx_min_i64(rows, MAX_BLOCK_ROWS), part);
    plan->block_rows = mgx_ceil_div(part, mgx_ceil_div(part, rows));
}

// Cuts deep panels into slices: the one in work and the one that is fetched meanwhile stay in L2
// beside the block's input, and sums wait in y.
static void set_slices(struct mgx_conv_plan *plan)
{
    const int64_t row = plan->kernel->cols * GROUP, l2 = mgx_cpu_l2();
    const int64_t panel = plan->tap_count * plan->depth * row, rows = l2 / 8 / row;
    plan->slice_taps = plan->tap_count;
    plan->slice_depth = plan->depth;
    if (panel <= l2 / 4 || plan->converts_y || plan->kernel->integer ||
        !mgx_kernel_is_plain(plan->d.y_type))
        return;
    if (plan->depth > rows) {
        const int64_t parts = mgx_ceil_div(plan->depth, rows);
        plan->slice_taps = 1;
        plan->slice_depth = (mgx_ceil_div(plan->depth, parts) + 3) & ~(int64_t)3;
    } else {
        const int64_t slices = mgx_ceil_div(plan->tap_count, rows / plan->depth);
        plan->slice_taps = mgx_ceil_div(plan->tap_count, slices);
    }
}

// The weights of a group as chunks see them: taps as they are read, with the values that fill up
// pixels to whole groups.
static struct mgx_chunk_matrix matrix_of(const struct mgx_conv_plan *plan, const void *weights,
                                         int64_t group)
{
    const struct mgx_conv_desc *d = &plan->d;
    struct mgx_chunk_matrix m = {
        .b = (const char *)weights + plan->w_first + group * d->w_group,
        .type = d->w_type,
        .zero = d->w_zero ? d->w_zero + group * plan->group_out : NULL,
        .columns = plan->group_out,
        .taps = plan->tap_count,
        .run = plan->depth * GROUP,
        .inner = plan->channel_groups * GROUP,
        .valid = plan->group_in,
        .row = d->w_in,
        .col = d->w_out,
        .offset = plan->taps,
        .shift = d->x_zero + mgx_kernel_shift(plan->kernel, d->x_type),
    };
    for (int i = 0; i < MGX_CONV_DIMS; i++) {
        m.kernel[i] = d->kernel[i];
        m.space[i] = d->w_space[i];
    }
    return m;
}

// Whether the input is copied by whole lines where its bytes are to be widened.
static bool widens_quickly(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_gemm_kernel *wide =
        mgx_integer_kernel(MGX_KERNEL_S8, d->isa, MGX_KERNEL_U8, MGX_KERNEL_U8, true);
    return wide && wide->strip && d->x_channel == 1 && d->groups == 1 &&
           d->x_space[2] == d->in_channels && d->in_channels % wide->group == 0;
}

// 0 where chunks do not fit or do not pay.
static int64_t count_chunks(const struct mgx_conv_plan *plan)
{
    const bool quickly = widens_quickly(plan);
    int64_t most = 0;
    for (int64_t g = 0; g < plan->d.groups; g++) {
        const struct mgx_chunk_matrix m = matrix_of(plan, plan->d.weights, g);
        const int64_t count = mgx_chunk_fits(&m) ? mgx_chunk_count(&m) : 0;
        if (!count || !mgx_chunk_pays(&m, count, quickly))
            return 0;
        most = mgx_max_i64(most, count);
    }
    return most;
}

static bool panels_bytes(const struct mgx_conv_plan *plan, size_t *bytes)
{
    const int64_t depth = mgx_conv_taps(&plan->d) * plan->channel_groups;
    if (mgx_gemm_in_chunks(plan->kernel))
        return mgx_mul_size((size_t)mgx_ceil_div(plan->group_out, plan->kernel->cols),
                            (size_t)mgx_chunk_panel_bytes(plan->panel_chunks), bytes);
    return mgx_panels_bytes(plan->kernel, depth + plan->kernel->starts, plan->group_out, bytes);
}

// Sizes common to the three methods, once the copy needs `copied` groups per block.
static enum mgx_status set_sizes(struct mgx_conv_plan *plan, int64_t copied, struct mgx_diag *diag)
{
    const int64_t depth = mgx_conv_taps(&plan->d) * plan->channel_groups;
    size_t panels, all;
    set_slices(plan);
    if (mgx_gemm_in_chunks(plan->kernel))
        plan->panel_chunks = count_chunks(plan);
    if (!panels_bytes(plan, &panels) ||
        !mgx_mul_size(mgx_align64(panels), (size_t)plan->d.groups, &all))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld x %lld do not fit",
                        (long long)depth, (long long)plan->d.out_channels);
    plan->packed_bytes = all;
    plan->shared_workspace = plan->d.x_scaled ? all : 0;
    plan->thread_workspace =
        mgx_align64((size_t)(plan->block_rows + 1) * sizeof(struct mgx_conv_row)) +
        mgx_align64((size_t)(copied * GROUP));
    return MGX_OK;
}

static void set_common(struct mgx_conv_plan *plan, enum mgx_conv_method method)
{
    set_walk(plan, method);
    plan->channel_groups = channel_groups(plan);
    plan->converts_y = mgx_output_converts(plan->kernel, &plan->d.end, plan->d.y_type);
}

static enum mgx_status direct_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t size = mgx_kernel_size(d->x_type);
    int64_t step[MGX_CONV_DIMS];
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        step[i] = d->x_space[i] * d->dilation[i] * size;
    set_common(plan, MGX_CONV_DIRECT);
    const int64_t tasks = wanted_tasks(plan), bytes = plan->group_in * d->stride[2] * size;
    set_chunks(plan, bytes, tasks);
    set_parts(plan, tasks);
    set_block(plan, chunk_width(plan) * bytes * (d->kernel[1] > 1 ? d->stride[1] : 1));
    plan->pixel = plan->walk.x[3] * size;
    TRY(set_taps(plan, step, diag));
    return set_sizes(plan, 0, diag);
}

static enum mgx_status strip_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    set_common(plan, MGX_CONV_STRIP);
    const int64_t tasks = wanted_tasks(plan), stride = mgx_strip_stride(d, 2);
    const int64_t pixel = spread(plan->channel_groups, stride);
    set_chunks(plan, pixel * stride * GROUP, tasks);
    set_parts(plan, tasks);
    plan->pitch = mgx_strip_length(d, 2, chunk_width(plan)) * pixel;
    set_block(plan, plan->pitch * mgx_strip_stride(d, 1) * d->kernel[0] * GROUP);
    const int64_t lines = plan->walk.size[2];
    plan->plane = mgx_strip_length(d, 1, mgx_min_i64(plan->block_rows, lines)) * plan->pitch;
    plan->run = plan->plane * d->kernel[0];
    const int64_t runs = (plan->block_rows + lines - 2) / lines + 1;
    const int64_t step[] = {plan->plane * GROUP, d->dilation[1] * plan->pitch * GROUP,
                            d->dilation[2] * pixel * GROUP};
    plan->pixel = pixel * stride * GROUP;
    TRY(set_taps(plan, step, diag));
    return set_sizes(plan, runs * plan->run, diag);
}

static enum mgx_status unrolled_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    set_common(plan, MGX_CONV_UNROLLED);
    const int64_t depth = mgx_conv_taps(&plan->d) * plan->channel_groups;
    const int64_t tasks = wanted_tasks(plan), pixel = spread(depth, 1);
    plan->pixel = pixel * GROUP;
    set_chunks(plan, plan->pixel, tasks);
    set_parts(plan, tasks);
    plan->run = chunk_width(plan) * pixel;
    set_block(plan, plan->run * GROUP);
    plan->tap_count = skips_rows(plan) ? plan->d.kernel[1] : 1;
    plan->depth = depth / plan->tap_count;
    plan->taps = calloc((size_t)plan->tap_count, sizeof *plan->taps);
    if (!plan->taps)
        return mgx_fail_memory(diag);
    for (int64_t t = 0; t < plan->tap_count; t++)
        plan->taps[t] = t * plan->depth * GROUP;
    return set_sizes(plan, plan->run * plan->block_rows, diag);
}

// --- packing: depth runs over kernel elements, then channels ---

static void pack_panel(const struct mgx_conv_plan *plan, const char *weights, int64_t group,
                       int64_t p, char *panel)
{
    assert(weights && group >= 0);
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t size = mgx_kernel_size(d->w_type), rows = mgx_conv_taps(d) * plan->channel_groups;
    const int width = mgx_panel_width(kernel, plan->group_out, p);
    char *data = panel + (kernel->starts ? width * GROUP : 0), *tap = data;
    for (int64_t z = 0; z < d->kernel[0]; z++)
        for (int64_t y = 0; y < d->kernel[1]; y++)
            for (int64_t x = 0; x < d->kernel[2];
                 x++, tap += plan->channel_groups * width * GROUP) {
                const int64_t at = z * d->w_space[0] + y * d->w_space[1] + x * d->w_space[2];
                const struct mgx_panel_source b = {.at = weights + at * size,
                                                   .type = d->w_type,
                                                   .row = d->w_in,
                                                   .col = d->w_out,
                                                   .depth = plan->group_in,
                                                   .n = plan->group_out};
                mgx_panel_pack(kernel, &b, p, tap);
                if (d->w_zero)
                    mgx_panel_shift(tap, plan->group_in, width,
                                    (int)mgx_min_i64(width, plan->group_out - p * kernel->cols),
                                    d->w_zero + group * plan->group_out + p * kernel->cols);
            }
    if (kernel->starts)
        mgx_panel_starts(kernel, data, rows, width, d->x_zero + mgx_kernel_shift(kernel, d->x_type),
                         (int32_t *)(void *)panel);
}

static void pack_chunks(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                        int part, int parts)
{
    const size_t group_bytes = plan->packed_bytes / (size_t)plan->d.groups;
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    const int64_t end = mgx_part_begin(panels * plan->d.groups, part + 1, parts);
    struct mgx_chunk_stripe stripe = {.of = NULL};
    for (int64_t i = mgx_part_begin(panels * plan->d.groups, part, parts); i < end; i++) {
        const struct mgx_chunk_matrix m = matrix_of(plan, weights, i / panels);
        mgx_chunk_pack(&m, i % panels, plan->panel_chunks, &stripe,
                       (char *)packed + (size_t)(i / panels) * group_bytes +
                           i % panels * mgx_chunk_panel_bytes(plan->panel_chunks));
    }
    mgx_chunk_stripe_free(&stripe);
}

static void tile_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed, int part,
                      int parts)
{
    if (mgx_gemm_in_chunks(plan->kernel)) {
        pack_chunks(plan, weights, packed, part, parts);
        return;
    }
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t size = mgx_kernel_size(d->w_type);
    const int64_t rows = mgx_conv_taps(d) * plan->channel_groups + plan->kernel->starts;
    const size_t group_bytes = plan->packed_bytes / (size_t)d->groups;
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    const int64_t end = mgx_part_begin(panels * d->groups, part + 1, parts);
    for (int64_t i = mgx_part_begin(panels * d->groups, part, parts); i < end; i++) {
        const int64_t g = i / panels, p = i % panels;
        char *to = (char *)packed + (size_t)g * group_bytes;
        const char *from = (const char *)weights + (plan->w_first + g * d->w_group) * size;
        pack_panel(plan, from, g, p, to + p * plan->kernel->cols * rows * GROUP);
    }
}

const struct mgx_conv_ops mgx_conv_direct = {direct_fits,       direct_cost,
                                             direct_prepare,    tile_pack,
                                             mgx_conv_tile_run, mgx_conv_tile_first_read};
const struct mgx_conv_ops mgx_conv_strip = {
    strip_fits, strip_cost, strip_prepare, tile_pack, mgx_conv_tile_run, mgx_conv_tile_first_read};
const struct mgx_conv_ops mgx_conv_unrolled = {strip_fits,        unrolled_cost,
                                               unrolled_prepare,  tile_pack,
                                               mgx_conv_tile_run, mgx_conv_tile_first_read};
