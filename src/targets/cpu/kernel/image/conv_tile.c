// SPDX-License-Identifier: MIT
// Convolution through the micro-kernel; see conv.h for the three sources of rows of A.
//
//     task: a group, a range of output rows, a range of panels (32 output channels)
//       block of rows, whose input stays in L2: the strip is copied, or the pixels unrolled
//         panel, in slices of its depth that stay in L2 together with the next one
//           row of output pixels, in tiles of up to 14; two rows of 7 make one tile
//
//     strip, kernel 3 x 3, pad 1:                 0 0 0 0 0 0 0 0     rows above the image
//                                                 0 x x x x x x 0
//                                                 0 x x x x x x 0  <- rows of the block, and what
//                                                 0 x x x x x x 0     its taps reach
//
// At the edges of an image the rows of the kernel that read padding alone are left out: a tenth of
// 3 x 3 over 7 x 7, most of wide dilations.
//
// A row longer than a few hundred pixels is cut in chunks; a 1 x 1 convolution of stride 1 over
// contiguous tensors is one row of all pixels of all images.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/end/scale.h"
#include "targets/cpu/kernel/image/conv_tile.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/tile/chunk.h"

static const int64_t GROUP = 4; // bytes

enum { SCALED_ALONE = 64 << 10 }; // bytes of weights that one thread scales

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
    const char *packed; // weights, multiplied by x_scale if there is one
};

struct part {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
    int64_t group, row_begin, row_end, p_begin, p_end, panels;
    const char *packed;    // of the group
    bool more_blocks;      // behind this one
    struct mgx_ahead next; // after the part
    int thread;
    struct mgx_conv_row *rows; // of the block
    int row_count;
    int64_t tiles; // of the block, for one panel
    char *copy;
    int64_t x_size, y_size, residual_size; // bytes of a value
};

static struct mgx_conv_place place_of(const struct mgx_conv_plan *plan, int64_t row)
{
    assert(row >= 0);
    const int64_t *size = plan->walk.size;
    struct mgx_conv_place at;
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

static int64_t along(const int64_t stride[MGX_WALK_DIMS], const struct mgx_conv_place *at)
{
    return at->n * stride[0] + at->z * stride[1] + at->y * stride[2] + at->begin * stride[3];
}

static void set_outputs(const struct part *part, const struct mgx_conv_place *at,
                        struct mgx_conv_row *row)
{
    const struct mgx_conv_plan *plan = part->plan;
    const int64_t channel = part->group * plan->group_out;
    struct mgx_conv_place to = *at;
    if (plan->ring)
        to.y %= plan->ring;
    row->run = (struct mgx_tile_run){.c = (char *)part->args->y +
                                          (plan->y_first + along(plan->walk.y, &to) + channel) *
                                              part->y_size,
                                     .number = plan->pixel_first + along(plan->walk.pixel, at),
                                     .rows = at->end - at->begin};
    if (mgx_end_reader(&plan->d.end))
        row->run.operand =
            (const char *)part->args->residual +
            (plan->residual_first + along(plan->walk.residual, at) + channel) * part->residual_size;
}

// Integer sums begin with what the zero point adds over all taps, so those keep them.
static void set_kernel_rows(const struct mgx_conv_plan *plan, const struct mgx_conv_place *at,
                            struct mgx_conv_row *row)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t top = at->y * d->stride[1] - d->pad[1], step = d->dilation[1];
    row->kernel_begin = 0;
    row->kernel_end = d->kernel[1];
    if (d->kernel[1] < 2 || d->kernel[0] != 1 || plan->kernel->integer ||
        (plan->method == MGX_CONV_UNROLLED && plan->tap_count == 1))
        return;
    const int64_t begin = top < 0 ? mgx_ceil_div(-top, step) : 0;
    const int64_t end = top < d->in[1] ? mgx_ceil_div(d->in[1] - top, step) : 0;
    if (begin >= mgx_min_i64(end, d->kernel[1]))
        return; // padding alone: any will do
    row->kernel_begin = begin;
    row->kernel_end = mgx_min_i64(end, d->kernel[1]);
}

static const char *direct_row(const struct part *part, const struct mgx_conv_place *at)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    int64_t offset = along(plan->walk.x, at) + part->group * plan->group_in;
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        offset -= d->pad[i] * d->x_space[i];
    return (const char *)part->args->x + offset * part->x_size;
}

// Do rows r and r + 1 of the block make one tile?
static bool is_pair(const struct part *part, int r)
{
    assert(r >= 0);
    const struct mgx_conv_row *row = &part->rows[r];
    const int half = part->plan->kernel->half;
    return row->run.rows == half && r + 1 < part->row_count && row[1].run.rows == half;
}

static void count_tiles(struct part *part)
{
    const int rows = part->plan->kernel->rows;
    part->tiles = 0;
    for (int r = 0; r < part->row_count; r++) {
        part->tiles += mgx_ceil_div(part->rows[r].run.rows, rows);
        r += is_pair(part, r);
    }
}

// Lists the rows [begin, end) and copies their input.
static void fill_block(struct part *part, int64_t begin, int64_t end)
{
    assert(begin >= 0 && begin <= end);
    const struct mgx_conv_plan *plan = part->plan;
    const char *x = part->args->x, *strip = NULL;
    char *copy = part->copy;
    int64_t in_strip = 0; // rows left in the current strip
    part->row_count = 0;
    for (int64_t v = begin; v < end; v++) {
        const struct mgx_conv_place at = place_of(plan, v);
        struct mgx_conv_row *row = &part->rows[part->row_count++];
        set_outputs(part, &at, row);
        set_kernel_rows(plan, &at, row);
        if (plan->method == MGX_CONV_DIRECT)
            row->run.a = direct_row(part, &at);
        else if (plan->method == MGX_CONV_UNROLLED) {
            // Two rows that make one tile read what either has.
            const bool alone = row->run.rows != plan->kernel->half;
            mgx_conv_unroll_row(plan, x, part->group, &at, alone ? row->kernel_begin : 0,
                                alone ? row->kernel_end : plan->d.kernel[1], copy);
            row->run.a = copy;
            copy += plan->run * GROUP;
        } else {
            if (in_strip == 0) {
                in_strip = mgx_min_i64(plan->walk.size[2] - at.y, end - v);
                mgx_conv_copy_strip(plan, x, part->group, &at, in_strip, copy);
                strip = copy;
                copy += plan->run * GROUP;
            }
            row->run.a = strip;
            strip += mgx_strip_stride(&plan->d, 1) * plan->pitch * GROUP;
            in_strip--;
        }
    }
    count_tiles(part);
}

// A part of a panel's depth: all channels of some taps, or some channels of one tap.
struct slice {
    int64_t tap_begin, tap_end;
    int64_t k, depth; // channels, in groups
};

// What the tiles of a part have in common; set_panel says of which panel.
static struct mgx_tiles tiles_of(const struct part *part)
{
    const struct mgx_conv_plan *plan = part->plan;
    return (struct mgx_tiles){
        .kernel = plan->kernel,
        .end = &plan->d.end,
        .ends = plan->ends,
        .isa = plan->d.isa,
        .c_type = plan->d.y_type,
        .converts = plan->converts_y,
        .has_c = true,
        .c_size = part->y_size,
        .operand_size = part->residual_size,
        .c_row = plan->walk.y[3] * part->y_size,
        .operand_row = plan->walk.residual[3] * part->residual_size,
        .step = plan->walk.pixel[3],
        .hook_user = part->args->hook_user,
        .thread = part->thread,
        .first = true,
        .last = true,
    };
}

// Panel p of a group's packed weights.
static const char *panel_at(const struct mgx_conv_plan *plan, const char *packed, int64_t p)
{
    assert(p >= 0 && packed);
    if (mgx_gemm_in_chunks(plan->kernel))
        return packed + p * mgx_chunk_panel_bytes(plan->panel_chunks);
    const int64_t rows = plan->depth * plan->tap_count + plan->kernel->starts;
    return packed + p * plan->kernel->cols * rows * GROUP;
}

// The same, as much of it as is read at once.
static struct mgx_ahead read_at(const struct mgx_conv_plan *plan, const char *packed, int64_t p)
{
    const int64_t rows = mgx_max_i64(plan->slice_taps, 1) * plan->slice_depth;
    if (mgx_gemm_in_chunks(plan->kernel))
        return (struct mgx_ahead){panel_at(plan, packed, p),
                                  mgx_chunk_panel_bytes(plan->panel_chunks)};
    return (struct mgx_ahead){panel_at(plan, packed, p),
                              rows * mgx_panel_width(plan->kernel, plan->group_out, p) * GROUP};
}

static void set_panel(const struct part *part, int64_t p, struct mgx_tiles *tiles,
                      struct mgx_tile_args *args)
{
    assert(p >= 0);
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t col = p * kernel->cols;
    const int64_t left = plan->group_out - col, channel = part->group * plan->group_out + col;
    const char *panel = panel_at(plan, part->packed, p);
    args->cols = left < kernel->cols ? (int)left : kernel->cols;
    args->b_row = mgx_panel_width(kernel, plan->group_out, p) * GROUP;
    args->b_panel = panel_at(plan, part->packed, 1) - panel_at(plan, part->packed, 0);
    args->start_panel = part->args->start ? kernel->cols * GROUP : args->b_panel;
    args->start = kernel->starts ? (const int32_t *)(const void *)panel : NULL;
    args->b = panel + kernel->starts * args->b_row;
    if (mgx_gemm_in_chunks(kernel))
        mgx_chunk_set(panel, plan->panel_chunks, args);
    if (part->args->start)
        args->start = part->args->start + channel;
    args->bias = part->args->bias ? part->args->bias + channel : NULL;
    args->scale = kernel->integer && part->args->scale ? part->args->scale + channel : NULL;
    tiles->col = col;
    tiles->number_col = channel;
    tiles->cols = args->cols;
}

// A slice of a panel on its way over the rows of a block. Sums of earlier slices are in y, and this
// one's go there.
struct pass {
    const struct part *part;
    struct slice slice;
    const char *panel;
    const float *bias;
    bool clamp;
    struct mgx_tiles tiles;
};

// The slice's taps of a row, or of two that make one tile; false if they have none of them.
static bool set_taps(struct pass *t, const struct mgx_conv_row *row,
                     const struct mgx_conv_row *second, struct mgx_tile_args *args)
{
    const struct mgx_conv_plan *plan = t->part->plan;
    const struct slice *slice = &t->slice;
    if (mgx_gemm_in_chunks(plan->kernel)) // a panel says itself where its values are
        return true;
    const int64_t across = plan->d.kernel[1] > 0 ? plan->tap_count / plan->d.kernel[1] : 0;
    int64_t begin = mgx_min_i64(row->kernel_begin, second->kernel_begin) * across,
            end = mgx_max_i64(row->kernel_end, second->kernel_end) * across;
    if (plan->method == MGX_CONV_UNROLLED && plan->tap_count == 1) {
        begin = 0;
        end = plan->tap_count;
    }
    const bool first = slice->tap_begin <= begin && slice->k == 0;
    const bool last = slice->tap_end >= end && slice->k + slice->depth == plan->depth;
    begin = mgx_max_i64(begin, slice->tap_begin);
    end = mgx_min_i64(end, slice->tap_end);
    t->tiles.first = first;
    t->tiles.last = last;
    args->bias = first ? t->bias : NULL;
    args->clamp = t->clamp && last;
    args->taps = plan->taps + begin;
    args->tap_count = end - begin;
    args->b = t->panel + (begin * plan->depth + slice->k) * args->b_row;
    return begin < end || (first && last); // without any taps the sums are the bias
}

// All tiles of the block for one slice of a panel; they fetch what is read after it.
static void run_slice(struct pass *t, struct mgx_ahead ahead, struct mgx_tile_args *args)
{
    const struct part *part = t->part;
    const int64_t from = t->slice.k * GROUP;
    struct mgx_fetch fetch = mgx_fetch_of(ahead, t->slice.depth,
                                          t->slice.tap_end - t->slice.tap_begin, part->tiles, args);
    args->depth = t->slice.depth;
    for (int r = 0; r < part->row_count; r++) {
        const struct mgx_conv_row *row = &part->rows[r];
        const bool pair = is_pair(part, r);
        r += pair;
        if (!set_taps(t, row, pair ? row + 1 : row, args))
            continue;
        struct mgx_tile_run run[2] = {row->run, row[pair].run};
        run[0].a += from;
        run[1].a += from;
        mgx_tiles_run(&t->tiles, &run[0], pair ? &run[1] : NULL, &fetch, args);
    }
}

// Whether a tile's results are what y wants when they leave the registers.
static bool ends_in_registers(const struct mgx_conv_plan *plan)
{
    return plan->kernel->strip && mgx_output_in_registers(&plan->d.end, plan->d.y_type);
}

// What is read after `panels` of them from panel p on: the next ones, the first one again for the
// next block, or what follows the part.
static struct mgx_ahead read_after(const struct part *part, int64_t p, int panels)
{
    const int64_t next = p + panels;
    if (next < part->p_end) {
        struct mgx_ahead ahead = read_at(part->plan, part->packed, next);
        ahead.bytes *= mgx_min_i64(panels, part->p_end - next);
        return ahead;
    }
    return part->more_blocks ? read_at(part->plan, part->packed, part->p_begin) : part->next;
}

// Whether panel p and the next one are made at once.
static bool makes_pair(const struct part *part, int64_t p, const struct mgx_tiles *tiles,
                       struct mgx_tile_args *args)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    if (!kernel->pair || p + 1 >= part->p_end || (p + 2) * kernel->cols > part->plan->group_out)
        return false;
    bool suits = true;
    for (int r = 0; r < part->row_count && suits; r++)
        suits = mgx_tiles_pair_suits(tiles, &part->rows[r].run, args);
    return suits;
}

// A panel or two for all rows of the block, each in one go; returns how many.
static int run_strips(const struct part *part, int64_t p, const struct mgx_tiles *tiles,
                      const struct mgx_tile_args *panel)
{
    const struct mgx_conv_plan *plan = part->plan;
    struct mgx_tile_args args = *panel;
    args.taps = plan->taps;
    args.tap_count = plan->tap_count;
    args.depth = plan->depth;
    const int panels = makes_pair(part, p, tiles, &args) ? 2 : 1;
    const struct mgx_ahead ahead = read_after(part, p, panels);
    args.ahead = ahead.at;
    args.ahead_step = (mgx_ceil_div(ahead.bytes, mgx_max_i64(part->tiles, 1)) + 63) & ~INT64_C(63);
    for (int r = 0; r < part->row_count; r++) {
        const struct mgx_tile_run *run = &part->rows[r].run;
        mgx_tiles_strip(tiles, run, panels, &args);
        args.ahead += args.ahead_step * mgx_ceil_div(run->rows, plan->kernel->rows);
        if (args.ahead - ahead.at >= ahead.bytes)
            args.ahead_step = 0;
    }
    return panels;
}

// A panel, slice by slice, or more than one as strips; returns how many.
static int run_panel(const struct part *part, int64_t p, const struct mgx_tiles *tiles,
                     struct mgx_tile_args *args)
{
    assert(p >= 0);
    const struct mgx_conv_plan *plan = part->plan;
    if (ends_in_registers(plan))
        return run_strips(part, p, tiles, args);
    const int64_t taps = mgx_max_i64(plan->slice_taps, 1);
    struct pass pass = {
        .part = part, .panel = args->b, .bias = args->bias, .clamp = args->clamp, .tiles = *tiles};
    struct slice *slice = &pass.slice;
    do {
        slice->tap_begin = slice->tap_end;
        slice->tap_end = mgx_min_i64(slice->tap_begin + taps, plan->tap_count);
        slice->k = slice->depth = 0;
        do {
            slice->k += slice->depth;
            slice->depth = mgx_min_i64(plan->slice_depth, plan->depth - slice->k);
            const int64_t rows = (slice->tap_end - slice->tap_begin) * slice->depth;
            const bool last =
                slice->tap_end == plan->tap_count && slice->k + slice->depth == plan->depth;
            const char *end =
                pass.panel + (slice->tap_begin * plan->depth + slice->k + rows) * args->b_row;
            run_slice(&pass,
                      last ? read_after(part, p, 1) : (struct mgx_ahead){end, rows * args->b_row},
                      args);
        } while (slice->k + slice->depth < plan->depth);
    } while (slice->tap_end < plan->tap_count);
    args->clamp = pass.clamp;
    return 1;
}

static void run_part(struct part *part)
{
    const struct mgx_conv_plan *plan = part->plan;
    struct mgx_tile_registers registers = {0, 0};
    struct mgx_tile_args args = {
        .a_row = plan->pixel,
        .registers = &registers,
    };
    struct mgx_tiles tiles = tiles_of(part);
    mgx_output_clamp(&plan->d.end, &args);
    const int64_t rows = part->row_end - part->row_begin;
    const int64_t blocks = mgx_ceil_div(rows, plan->block_rows);
    for (int64_t i = 0; i < blocks; i++) {
        fill_block(part, part->row_begin + rows * i / blocks,
                   part->row_begin + rows * (i + 1) / blocks);
        part->more_blocks = i + 1 < blocks;
        for (int64_t p = part->p_begin; p < part->p_end;) {
            set_panel(part, p, &tiles, &args);
            p += run_panel(part, p, &tiles, &args);
        }
    }
    if (plan->kernel->release)
        plan->kernel->release(&registers);
}

// All panels and no rows of a group, in the thread's own scratch.
static struct part part_of(const struct job *job, int64_t group, int thread, char *own)
{
    assert(group >= 0 && thread >= 0);
    const struct mgx_conv_plan *plan = job->plan;
    const size_t table = mgx_align64((size_t)(plan->block_rows + 1) * sizeof(struct mgx_conv_row));
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    return (struct part){
        .plan = plan,
        .args = job->args,
        .group = group,
        .p_end = panels,
        .panels = panels,
        .packed = job->packed + plan->packed_bytes / (size_t)plan->d.groups * (size_t)group,
        .thread = thread,
        .rows = (struct mgx_conv_row *)(void *)own,
        .copy = own + table,
        .x_size = mgx_kernel_size(plan->d.x_type),
        .y_size = mgx_kernel_size(plan->d.y_type),
        .residual_size = mgx_output_operand_size(&plan->d.end),
    };
}

static int tasks_of(const struct mgx_conv_plan *plan)
{
    return (int)plan->d.groups * plan->m_parts * plan->n_parts;
}

// What a task reads first.
static struct mgx_ahead first_read(const struct mgx_conv_plan *plan, const void *packed, int task)
{
    if (task >= tasks_of(plan))
        return (struct mgx_ahead){NULL, 0};
    const int64_t group = task / (plan->m_parts * plan->n_parts);
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    return read_at(
        plan, (const char *)packed + plan->packed_bytes / (size_t)plan->d.groups * (size_t)group,
        panels * (task % plan->n_parts) / plan->n_parts);
}

struct mgx_ahead mgx_conv_tile_first_read(const struct mgx_conv_plan *plan, const void *packed,
                                          int thread)
{
    return first_read(plan, packed, mgx_pool_first(tasks_of(plan), plan->d.threads, thread));
}

static void run_task(void *user, int task, int thread)
{
    assert(task >= 0 && thread >= 0);
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const int in_group = task % (plan->m_parts * plan->n_parts);
    const int i = in_group / plan->n_parts, j = in_group % plan->n_parts;
    char *own = (char *)job->args->workspace + plan->thread_workspace * (size_t)thread;
    struct part part = part_of(job, task / (plan->m_parts * plan->n_parts), thread, own);
    const bool last = task + 1 == mgx_pool_first(tasks_of(plan), plan->d.threads, thread + 1);
    part.next =
        last && job->args->next ? job->args->next[thread] : first_read(plan, job->packed, task + 1);
    part.row_begin = plan->rows * i / plan->m_parts;
    part.row_end = plan->rows * (i + 1) / plan->m_parts;
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    run_part(&part);
}

void mgx_conv_tile_rows(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                        int64_t begin, int64_t end, int thread, char *own)
{
    const struct job job = {plan, args, args->packed};
    struct part part = part_of(&job, 0, thread, own);
    part.row_begin = begin;
    part.row_end = end;
    run_part(&part);
}

// A panel of weights, each times the factor of its input channel.
static void scale_panel(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t panels = mgx_ceil_div(plan->group_out, kernel->cols), p = task % panels,
                  group = task / panels, taps = mgx_conv_taps(&plan->d);
    const int width = mgx_panel_width(kernel, plan->group_out, p);
    const int64_t at = (int64_t)(plan->packed_bytes / (size_t)plan->d.groups) * group +
                       p * kernel->cols * taps * plan->channel_groups * GROUP;
    const float *from = (const float *)(const void *)((const char *)job->args->packed + at);
    float *to = (float *)(void *)((char *)(uintptr_t)job->packed + at);
    const int64_t tap = plan->channel_groups * width;
    for (int64_t t = 0; t < taps; t++)
        mgx_scale_kernel(plan->d.isa)
            ->run(from + t * tap, job->args->x_scale + group * plan->group_in, to + t * tap,
                  plan->group_in, width);
}

// The scaled weights lie behind the threads' scratch.
static void scale_weights(struct job *job, struct mgx_pool *pool)
{
    const struct mgx_conv_plan *plan = job->plan;
    const int64_t panels = mgx_ceil_div(plan->group_out, plan->kernel->cols);
    const int threads = plan->d.threads > 1 ? plan->d.threads : 1;
    job->packed = (char *)job->args->workspace + plan->thread_workspace * (size_t)threads;
    const int count = (int)(panels * plan->d.groups);
    if (plan->packed_bytes > SCALED_ALONE)
        mgx_pool_run(pool, count, scale_panel, job);
    else
        for (int i = 0; i < count; i++)
            scale_panel(job, i, 0);
}

void mgx_conv_tile_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                       struct mgx_pool *pool)
{
    struct job job = {plan, args, args->packed};
    if (plan->d.x_scaled)
        scale_weights(&job, pool);
    mgx_pool_run(pool, tasks_of(plan), run_task, &job);
}
