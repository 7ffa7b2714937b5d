// SPDX-License-Identifier: MIT
// Convolution 3 x 3 of bytes, stride 1, by Winograd's method in whole numbers; byte_winograd.h has
// the arithmetic, and why it is exact. For machines whose products of bytes are no faster than twice
// those of 16 bits.
//
//     task: a range of tiles, a range of panels of 16 output channels
//       block of up to 30 tiles
//         part of the channels, so many that their transformed patches stay in L2:
//           V[element][tile][channel]
//           panel:
//             sums[element][tile][16] = V[element] * U[part][panel][element]  36 products, vpmaddwd
//             output tiles: transformed back, added to what other parts came to; behind the last
//             one bias, residual, step to bytes, in registers
//
// U takes eight bytes for a weight, so where few tiles share many weights memory makes other methods
// better; the cost says so.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/byte_winograd.h"
#include "targets/cpu/kernel/conv_plan.h"
#include "targets/cpu/kernel/gemm.h"
#include "targets/cpu/kernel/output.h"
#include "targets/cpu/kernel/winograd_tiles.h"
#include "targets/cpu/machine/cpuid.h"

enum {
    ELEMENTS = MGX_BYTE_WINOGRAD_ELEMENTS,
    CHANNELS = MGX_BYTE_WINOGRAD_CHANNELS,
    OUT = 4,
    EDGE = 6,
    COLS = 16, // of a panel
    MOST_TILES = 30,
};

// --- which descriptions fit ---

static int weight_at(const struct mgx_conv_desc *d, const void *weights, int64_t at)
{
    return d->w_type == MGX_KERNEL_S8 ? ((const int8_t *)weights)[at]
                                      : ((const uint8_t *)weights)[at];
}

// What `count` weights that follow each other, less their zero point, add up to: with their signs,
// and without.
struct size {
    int64_t sum, all;
};

static struct size size_of(const struct mgx_conv_desc *d, int64_t at, int64_t count, int zero)
{
    const int8_t *s = (const int8_t *)d->weights + at;
    const uint8_t *u = (const uint8_t *)d->weights + at;
    struct size size = {0, 0};
    for (int64_t i = 0; i < count;) {
        const int64_t end = mgx_min_i64(count, i + 1024);
        int32_t sum = 0, all = 0;
        if (d->w_type == MGX_KERNEL_S8)
            for (; i < end; i++)
                sum += s[i] - zero, all += abs(s[i] - zero);
        else
            for (; i < end; i++)
                sum += u[i] - zero, all += abs(u[i] - zero);
        size.sum += sum;
        size.all += all;
    }
    return size;
}

// The taps of every output lie one behind the other, as models store them.
static bool is_row_major(const struct mgx_conv_desc *d)
{
    return d->w_space[2] == 1 && d->w_space[1] == 3 && d->w_in == 9;
}

// Whether nothing that comes of `part` channels can leave the bits that are left of it.
static bool outputs_fit(const struct mgx_conv_plan *plan, int64_t part)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t most = INT64_C(1) << (MGX_BYTE_WINOGRAD_BITS - 1);
    const int64_t low = (d->x_type == MGX_KERNEL_S8 ? -128 : 0) - d->x_zero, high = low + 255;
    for (int64_t o = 0; o < d->out_channels; o++)
        for (int64_t c = 0; c < d->in_channels; c += part) {
            const struct size size =
                size_of(d, plan->w_first + o * d->w_out + c * d->w_in,
                        9 * mgx_min_i64(part, d->in_channels - c), d->w_zero ? d->w_zero[o] : 0);
            const int64_t plus = (size.all + size.sum) / 2, minus = size.all - plus;
            if (high * plus - low * minus >= most || high * minus - low * plus >= most)
                return false;
        }
    return true;
}

// The kernel that multiplies 16 bits, where nothing multiplies bytes faster.
static const struct mgx_gemm_kernel *find_kernel(const struct mgx_conv_desc *d)
{
    const struct mgx_gemm_kernel *k = mgx_integer_kernel(d->type, d->isa, d->w_type, d->w_zero);
    return k && k->b_type == MGX_KERNEL_S16 && k->group == 2 && k->cols == COLS ? k : NULL;
}

static bool fits(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return d->type == MGX_KERNEL_S8 && d->weights && mgx_byte_winograd_kernel(d->isa) &&
           find_kernel(d) && !d->transposed && d->groups == 1 && d->x_channel == 1 &&
           d->in[0] == 1 && d->out[0] == 1 && d->kernel[0] == 1 && d->pad[0] == 0 &&
           d->kernel[1] == 3 && d->kernel[2] == 3 && d->stride[1] == 1 && d->stride[2] == 1 &&
           is_row_major(d) && mgx_output_in_registers(&d->epilogue, d->y_type);
}

static int64_t tile_count(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return d->batch * mgx_winograd_tiles(d, 1, OUT) * mgx_winograd_tiles(d, 2, OUT);
}

static int64_t panels_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->group_out, COLS);
}

static int64_t pairs_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->group_in, 2);
}

// Tiles whose patches of so many channels stay in L2.
static int64_t tiles_in_l2(int64_t channels)
{
    return mgx_cpu_l2() / 4 * 3 / (ELEMENTS * 2 * (channels + CHANNELS));
}

static int64_t even_part(const struct mgx_conv_plan *plan, int64_t parts)
{
    return mgx_ceil_div(mgx_ceil_div(plan->group_in, parts), CHANNELS) * CHANNELS;
}

// Channels of a part: all, or where a block would have a few tiles, so many that it has all it can.
static int64_t part_in_l2(const struct mgx_conv_plan *plan)
{
    enum { FEW_TILES = 12, LEAST_CHANNELS = 64 };
    const int64_t tiles = mgx_min_i64(tile_count(plan), MOST_TILES);
    int64_t parts = 1, part = even_part(plan, 1);
    if (tiles_in_l2(part) >= mgx_min_i64(tiles, FEW_TILES))
        return part;
    while (part > LEAST_CHANNELS && tiles_in_l2(part) < tiles)
        part = even_part(plan, ++parts);
    return part;
}

// A pair of channels takes 7.4 cycles for six tiles, and the two transforms 120 and 200 for 16
// channels of a tile.
static double cost(const struct mgx_conv_plan *plan)
{
    const double tiles = (double)tile_count(plan), panels = (double)panels_of(plan);
    const double parts = (double)mgx_ceil_div(plan->group_in, part_in_l2(plan));
    const double multiply =
        ELEMENTS * tiles / 6 * panels * (7.4 * (double)pairs_of(plan) + 30 * parts);
    const double transform =
        tiles * (120 * (double)mgx_ceil_div(plan->group_in, CHANNELS) + 200 * panels * parts);
    return mgx_conv_seconds(plan, multiply + transform,
                            ELEMENTS * panels * COLS * 4 * (double)pairs_of(plan));
}

// --- preparing ---

// int16s from tile to tile of V, and from element to element: one tile more than there are keeps
// elements off multiples of 4096 bytes.
static int64_t v_row(const struct mgx_conv_plan *plan)
{
    return plan->depth_block + CHANNELS;
}

static int64_t v_element(const struct mgx_conv_plan *plan)
{
    return (plan->block_tiles + 1) * v_row(plan);
}

static int64_t sums_element(const struct mgx_conv_plan *plan)
{
    return (plan->block_tiles + 1) * COLS;
}

static bool is_in_parts(const struct mgx_conv_plan *plan)
{
    return plan->depth_block < plan->group_in;
}

// What waits for other parts: a panel's outputs for every tile of a block.
static int64_t others_panel(const struct mgx_conv_plan *plan)
{
    return plan->block_tiles * OUT * OUT * COLS;
}

// Some of the channels, and where their U begins: [panel][element][pair of channels][column][2].
struct part {
    int64_t first, channels, pairs;
    int64_t at, panel; // bytes
};

static struct part part_of(const struct mgx_conv_plan *plan, int64_t first)
{
    struct part p = {.first = first,
                     .channels = mgx_min_i64(plan->depth_block, plan->group_in - first)};
    p.pairs = mgx_ceil_div(p.channels, 2);
    p.at = panels_of(plan) * ELEMENTS * (first / 2) * COLS * 4;
    p.panel = ELEMENTS * p.pairs * COLS * 4;
    return p;
}

// Tiles first, which share nothing but weights; where they are few, panels.
static void set_parts(struct mgx_conv_plan *plan)
{
    const int64_t tiles = tile_count(plan), panels = panels_of(plan);
    const double products = (double)tiles * ELEMENTS * (double)(plan->group_in * plan->group_out);
    const int64_t tasks = mgx_split_tasks(2 * products, plan->d.threads);
    const int64_t most = tiles_in_l2(plan->depth_block);
    const int64_t block = mgx_max_i64(mgx_min_i64(most, MOST_TILES), 1);
    const int64_t blocks = mgx_max_i64(mgx_ceil_div(tiles, block), 1);
    plan->m_parts = (int)mgx_min_i64(tasks, blocks);
    plan->n_parts = (int)mgx_min_i64(mgx_ceil_div(tasks, plan->m_parts), panels);
    const int64_t part = mgx_ceil_div(tiles, plan->m_parts);
    plan->block_tiles = mgx_ceil_div(part, mgx_max_i64(mgx_ceil_div(part, block), 1));
}

static enum mgx_status prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    plan->kernel = find_kernel(&plan->d);
    for (int i = 0; i < 2; i++)
        plan->tiles[i] = mgx_winograd_tiles(&plan->d, i + 1, OUT);
    plan->depth_block = part_in_l2(plan);
    while (plan->depth_block > CHANNELS && !outputs_fit(plan, plan->depth_block))
        plan->depth_block = (plan->depth_block / 2 + CHANNELS - 1) / CHANNELS * CHANNELS;
    set_parts(plan);
    if (!mgx_mul_size((size_t)panels_of(plan), (size_t)(ELEMENTS * pairs_of(plan) * COLS * 4),
                      &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld x %lld do not fit",
                        (long long)plan->group_in, (long long)plan->group_out);
    const int64_t panels = mgx_ceil_div(panels_of(plan), plan->n_parts),
                  others = is_in_parts(plan) ? panels * others_panel(plan) : 0;
    plan->thread_workspace =
        mgx_align64((size_t)(ELEMENTS * v_element(plan)) * sizeof(int16_t)) +
        mgx_align64((size_t)(ELEMENTS * sums_element(plan)) * sizeof(int32_t)) +
        mgx_align64((size_t)others * sizeof(int32_t));
    return MGX_OK;
}

// --- packing ---

typedef int16_t cols __attribute__((vector_size(COLS * sizeof(int16_t))));

// Nine weights of every column, less its zero point.
static void load_taps(const struct mgx_conv_plan *plan, const void *weights, int64_t p, int64_t c,
                      int16_t taps[9][COLS])
{
    const struct mgx_conv_desc *d = &plan->d;
    memset(taps, 0, 9 * sizeof *taps);
    for (int64_t j = 0; c < plan->group_in && j < COLS && p * COLS + j < plan->group_out; j++) {
        const int64_t o = p * COLS + j, at = plan->w_first + o * d->w_out + c * d->w_in;
        const int zero = d->w_zero ? d->w_zero[o] : 0;
        for (int i = 0; i < 9; i++)
            taps[i][j] = (int16_t)(weight_at(d, weights, at + i) - zero);
    }
}

// G a for one line of the kernel.
static void transform(const cols a[3], cols g[EDGE])
{
    const cols sum = a[0] + a[2], far = a[0] + 4 * a[2], twice = 2 * a[1];
    g[0] = 6 * a[0];
    g[1] = -(sum + a[1]);
    g[2] = a[1] - sum;
    g[3] = far + twice;
    g[4] = far - twice;
    g[5] = 6 * a[2];
}

static void transform_weights(const struct mgx_conv_plan *plan, const void *weights, int64_t p,
                              int64_t c, cols u[ELEMENTS])
{
    int16_t taps[9][COLS];
    cols half[EDGE][3];
    load_taps(plan, weights, p, c, taps);
    for (int x = 0; x < 3; x++) {
        cols line[3], g[EDGE];
        for (int y = 0; y < 3; y++)
            memcpy(&line[y], taps[3 * y + x], sizeof *line);
        transform(line, g);
        for (int y = 0; y < EDGE; y++)
            half[y][x] = g[y];
    }
    for (int y = 0; y < EDGE; y++)
        transform(half[y], u + y * EDGE);
}

static void pack_panel(const struct mgx_conv_plan *plan, const void *weights, int64_t p,
                       const struct part *part, int16_t *panel)
{
    for (int64_t c = 0; c < part->pairs; c++) {
        cols u[2][ELEMENTS];
        transform_weights(plan, weights, p, part->first + 2 * c, u[0]);
        transform_weights(plan, weights, p, part->first + 2 * c + 1, u[1]);
        for (int e = 0; e < ELEMENTS; e++) {
            int16_t *to = panel + (e * part->pairs + c) * COLS * 2;
            for (int j = 0; j < COLS; j++) {
                to[2 * j] = u[0][e][j];
                to[2 * j + 1] = u[1][e][j];
            }
        }
    }
}

static void pack(const struct mgx_conv_plan *plan, const void *weights, void *packed, int part,
                 int parts)
{
    const int64_t panels = panels_of(plan), end = mgx_part_begin(panels, part + 1, parts);
    for (int64_t p = mgx_part_begin(panels, part, parts); p < end; p++)
        for (int64_t c = 0; c < plan->group_in; c += plan->depth_block) {
            const struct part of = part_of(plan, c);
            pack_panel(plan, weights, p, &of,
                       (int16_t *)(void *)((char *)packed + of.at + p * of.panel));
        }
}

// --- running ---

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

// Where a tile is: image, and first output pixel.
struct place {
    int64_t n, y, x;
};

static struct place place_of(const struct mgx_conv_plan *plan, int64_t tile)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t across = plan->tiles[1], down = plan->tiles[0];
    return (struct place){tile / across / down,
                          mgx_winograd_tile_at(d, 1, OUT, tile / across % down),
                          mgx_winograd_tile_at(d, 2, OUT, tile % across)};
}

static void transform_inputs(const struct job *job, int64_t begin, int64_t end,
                             const struct part *part, int16_t *v)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_byte_winograd_kernel *kernel = mgx_byte_winograd_kernel(d->isa);
    const int64_t down = d->dilation[1], across = d->dilation[2];
    struct mgx_byte_winograd_input in = {.line = down * d->x_space[1],
                                         .pixel = across * d->x_space[2],
                                         .channels = part->channels,
                                         .zero = d->x_zero,
                                         .is_signed = d->x_type == MGX_KERNEL_S8,
                                         .v = v,
                                         .element = v_element(plan)};
    for (int64_t t = begin; t < end; t++, in.v += v_row(plan)) {
        const struct place at = place_of(plan, t);
        const int64_t y = at.y - d->pad[1], x = at.x - d->pad[2];
        in.x = (const uint8_t *)job->args->x + at.n * d->x_batch + y * d->x_space[1] +
               x * d->x_space[2] + part->first;
        in.y_begin = mgx_winograd_steps(-y, down, EDGE);
        in.x_begin = mgx_winograd_steps(-x, across, EDGE);
        in.y_end = mgx_winograd_steps(d->in[1] - y, down, EDGE);
        in.x_end = mgx_winograd_steps(d->in[2] - x, across, EDGE);
        kernel->input(&in);
    }
}

// All elements of a panel for `tiles` tiles. Each fetches the next one's weights.
static void multiply(const struct job *job, int64_t p, int64_t tiles, const struct part *part,
                     const int16_t *v, int32_t *to)
{
    static const int64_t one_tap[] = {0};
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t pairs = part->pairs, bytes = pairs * COLS * 4, half = kernel->half;
    const int64_t count = mgx_ceil_div(tiles, kernel->rows);
    const struct mgx_ahead_step step =
        mgx_ahead_share((struct mgx_ahead){NULL, bytes}, pairs, count);
    struct mgx_tile_args args = {.a_row = v_row(plan) * 2,
                                 .taps = one_tap,
                                 .tap_count = 1,
                                 .depth = pairs,
                                 .b = (const char *)job->args->packed + part->at + p * part->panel,
                                 .b_row = COLS * 4,
                                 .c_row = COLS * 4,
                                 .cols = COLS};
    for (int e = 0; e < ELEMENTS; e++, args.b += bytes) {
        const bool last = part->first + part->channels == plan->group_in &&
                          p + 1 == panels_of(plan) && e + 1 == ELEMENTS;
        args.ahead = last ? args.b : args.b + bytes;
        args.ahead_step = last ? 0 : step.bytes;
        for (int64_t i = 0; i < count; i++, args.ahead += step.tile_bytes) {
            const int64_t t0 = tiles * i / count, t1 = tiles * (i + 1) / count;
            args.a[0] = (const char *)(v + e * v_element(plan)) + t0 * args.a_row;
            args.a[1] = args.a[0] + half * args.a_row;
            args.c[0] = (char *)(to + e * sums_element(plan) + t0 * COLS);
            args.c[1] = args.c[0] + half * args.c_row;
            kernel->wide[t1 - t0](&args);
        }
    }
}

static void set_columns(const struct job *job, int64_t col, struct mgx_tile_args *tile)
{
    const struct mgx_conv_plan *plan = job->plan;
    const int64_t left = plan->group_out - col;
    tile->cols = left < COLS / 2 ? (int)left : COLS / 2;
    tile->bias = job->args->bias ? job->args->bias + col : NULL;
    tile->scale = plan->d.y_type != MGX_KERNEL_S32 ? job->args->scale + col : NULL;
}

// Tiles of a panel, half of its columns at a time. `others` NULL: this part is all channels.
static void transform_outputs(const struct job *job, int64_t begin, int64_t end, int64_t col,
                              const int32_t *from, const struct part *part, int32_t *others)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t y_size = mgx_kernel_size(d->y_type),
                  r_size = mgx_residual_size(&d->epilogue, d->y_type);
    const int64_t down = d->dilation[1], across = d->dilation[2];
    struct mgx_byte_winograd_output out = {
        .sums = from,
        .element = sums_element(plan),
        .line = down * d->y_space[1] * y_size,
        .residual_line = down * d->residual_space[1] * r_size,
        .tile = {.c_row = across * d->y_space[2] * y_size,
                 .residual_row = across * d->residual_space[2] * r_size,
                 .requant = d->epilogue.requant},
        .others = others,
        .adds = part->first > 0,
        .stays = part->first + part->channels < plan->group_in,
    };
    mgx_output_clamp(&d->epilogue, &out.tile);
    set_columns(job, col, &out.tile);
    for (int64_t t = begin; t < end; t++, out.sums += COLS) {
        const struct place at = place_of(plan, t);
        out.lines = mgx_winograd_steps(d->out[1] - at.y, down, OUT);
        out.pixels = mgx_winograd_steps(d->out[2] - at.x, across, OUT);
        out.tile.c[0] = (char *)job->args->y + (plan->y_first + at.n * d->y_batch +
                                                at.y * d->y_space[1] + at.x * d->y_space[2] + col) *
                                                   y_size;
        if (d->epilogue.residual)
            out.tile.residual[0] =
                (const char *)job->args->residual +
                (plan->residual_first + at.n * d->residual_batch + at.y * d->residual_space[1] +
                 at.x * d->residual_space[2] + col) *
                    r_size;
        mgx_byte_winograd_kernel(d->isa)->output(&out);
        out.others += others ? OUT * OUT * COLS / 2 : 0;
    }
}

// What a thread works with.
struct own {
    int16_t *v;
    int32_t *sums, *others;
};

static struct own own_of(const struct job *job, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    char *at = (char *)job->args->workspace + plan->thread_workspace * (size_t)thread;
    struct own own = {.v = (int16_t *)(void *)at};
    at += mgx_align64((size_t)(ELEMENTS * v_element(plan)) * sizeof *own.v);
    own.sums = (int32_t *)(void *)at;
    at += mgx_align64((size_t)(ELEMENTS * sums_element(plan)) * sizeof *own.sums);
    own.others = is_in_parts(plan) ? (int32_t *)(void *)at : NULL;
    return own;
}

// Panels [first, end) of tiles [t0, t1), some channels of them.
static void run_part(const struct job *job, int64_t t0, int64_t t1, int64_t first, int64_t end,
                     const struct part *part, const struct own *own)
{
    const struct mgx_conv_plan *plan = job->plan;
    transform_inputs(job, t0, t1, part, own->v);
    for (int64_t p = first; p < end; p++) {
        int32_t *others = own->others ? own->others + (p - first) * others_panel(plan) : NULL;
        multiply(job, p, t1 - t0, part, own->v, own->sums);
        for (int64_t col = p * COLS; col < mgx_min_i64((p + 1) * COLS, plan->group_out);
             col += COLS / 2) {
            transform_outputs(job, t0, t1, col, own->sums + col % COLS, part, others);
            others += others ? others_panel(plan) / 2 : 0;
        }
    }
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_task part = mgx_conv_task(plan, task, tile_count(plan), panels_of(plan));
    const struct own own = own_of(job, thread);
    for (int64_t b = 0; b < part.blocks; b++) {
        const int64_t t0 = mgx_conv_block(&part, b), t1 = mgx_conv_block(&part, b + 1);
        assert(t1 - t0 <= plan->block_tiles);
        for (int64_t c = 0; c < plan->group_in; c += plan->depth_block) {
            const struct part of = part_of(plan, c);
            run_part(job, t0, t1, part.first, part.end, &of, &own);
        }
    }
}

static void run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->m_parts * plan->n_parts, run_task, &job);
}

static struct mgx_ahead first_read(const struct mgx_conv_plan *plan, const void *packed, int thread)
{
    const int tasks = plan->m_parts * plan->n_parts,
              task = mgx_pool_first(tasks, plan->d.threads, thread);
    if (task >= tasks)
        return (struct mgx_ahead){NULL, 0};
    const int64_t p = panels_of(plan) * (task % plan->n_parts) / plan->n_parts;
    const struct part part = part_of(plan, 0);
    return (struct mgx_ahead){(const char *)packed + p * part.panel, part.pairs * COLS * 4};
}

const struct mgx_conv_ops mgx_conv_winograd_bytes = {fits, cost, prepare, pack, run, first_read};
