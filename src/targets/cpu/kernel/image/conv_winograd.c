// SPDX-License-Identifier: MIT
// Convolution 3 x 3 of stride 1 by Winograd's method; see winograd.h for the arithmetic.
//
// With a dilation of d the outputs d apart are a convolution of their own, over the inputs d apart:
// d x d of them (`phases`), whose tiles are listed one after the other and share the weights. A
// tile then is 4 x 4 pixels d apart.
//
//     block of output tiles:
//       V[element][tile][channel]                   transformed input patches, in L2
//       panel of 32 output channels:
//         sums[element][tile][32] = V[element] * U[panel][element]       36 (16) multiplications
//         output tiles: transformed back, bias, residual, activation
//
// Where U is larger than L2, that streams all of it from memory for every block, and the tiles of a
// block must be few for V to stay in L2. Then U is taken row by row, six elements of the 36, by
// many more tiles, and packed half transformed (18 values for 9, winograd.h), which takes half the
// memory:
//
//     block of output tiles, V and sums of all of them in memory:
//       row of U:
//         panel:  its 6 elements made from 3, in L2;  sums of 6 elements = V * U
//       output tiles
//
// The weights U of a panel follow each other in memory in the order they are read, so each
// multiplication prefetches the next one's. Where threads would get less than two good blocks each,
// panels are dealt out too, and each thread keeps the V it made from one panel's task to the next:
// to make it twice costs less than to read it from another core's cache. If too many threads would
// make the same, V is made in a first pass by all of them, shared.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/image/winograd.h"
#include "targets/cpu/kernel/image/winograd_tiles.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/product/tiles.h"
#include "targets/cpu/machine/cpuid.h"

// A block has about as many tiles as two of the micro-kernel's for each MiB of L2: with fewer, U is
// read too often, with more, V and the sums leave L2 sooner than they are used.
enum { MIB = 1 << 20, TILES_PER_MIB = 29, LEAST_V_BYTES = MIB };

enum { MAX_ELEMENTS = 36, EDGE = 6, HALF = 3 * EDGE };

// By rows: what V of a row may take of L2, what all sums of a block may take of memory, and from
// which size of U on; channels at a time.
enum { ROW_BYTES = 448 << 10, SUMS_BYTES = 8 << 20, LARGE_BYTES = 8 << 20, DEPTH = 256 };

enum { MOST_EDGE = 4 }; // of a tile's results

static const int64_t FLOAT = sizeof(float);

static bool winograd_fits(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return (mgx_conv_floats(d) || mgx_conv_rounds(d)) && !d->exact && !d->transposed &&
           d->groups == 1 && d->x_channel == 1 && d->in[0] == 1 && d->out[0] == 1 &&
           d->kernel[0] == 1 && d->pad[0] == 0 && d->kernel[1] == 3 && d->kernel[2] == 3 &&
           d->stride[1] == 1 && d->stride[2] == 1;
}

// Edge of an output tile, and elements of a transformed one.
static int64_t edge_of(const struct mgx_conv_plan *plan)
{
    return plan->method == MGX_CONV_WINOGRAD4 ? 4 : 2;
}

static int64_t elements_of(const struct mgx_conv_plan *plan)
{
    return (edge_of(plan) + 2) * (edge_of(plan) + 2);
}

// --- cost ---

// Is U taken by rows? Smaller weights stay in L2, or near it, and gain nothing.
static bool goes_by_rows(const struct mgx_conv_plan *plan, int64_t m)
{
    return m == 4 && MAX_ELEMENTS * FLOAT * plan->group_in * plan->group_out >= LARGE_BYTES;
}

// Tiles of a block at most, where it is not taken by rows, and what their V may take.
static int64_t block_tiles(void)
{
    return mgx_max_i64(mgx_cpu_l2() / MIB, 1) * TILES_PER_MIB;
}

static int64_t v_bytes(void)
{
    return mgx_max_i64(mgx_cpu_l2() / 4 * 3, LEAST_V_BYTES);
}

// Tiles of a block at most, by the memory they take: `depth` channels at a time, sums of `out`.
static int64_t most_tiles(const struct mgx_conv_plan *plan, int64_t elements, int64_t depth,
                          int64_t out)
{
    const int64_t rows = plan->kernel->rows, tile_bytes = elements * FLOAT;
    const int64_t tiles =
        elements == MAX_ELEMENTS && goes_by_rows(plan, 4)
            ? mgx_min_i64(ROW_BYTES / (EDGE * depth * FLOAT), SUMS_BYTES / (tile_bytes * out))
            : mgx_min_i64(v_bytes() / (tile_bytes * depth), block_tiles());
    return mgx_max_i64(tiles / rows, 1) * rows;
}

// Transforms take about 6 (5) cycles per element and vector. Every block reads all weights, the
// first from memory, the others from where they stayed, at twice the pace; by rows it also makes
// the elements from half of them, 8 cycles for a vector with its way to L2 and back.
static double cost(const struct mgx_conv_plan *plan, int64_t m)
{
    const struct mgx_conv_desc *d = &plan->d;
    const double elements = (double)((m + 2) * (m + 2)), vector = plan->kernel->vector;
    const double tiles =
        (double)(d->batch * mgx_winograd_tiles(d, 1, m) * mgx_winograd_tiles(d, 2, m));
    const double in = (double)mgx_ceil_div(plan->group_in, plan->kernel->vector) * vector;
    const double out =
        (double)mgx_ceil_div(plan->group_out, plan->kernel->cols / 2) * plan->kernel->cols / 2;
    const double blocks = tiles > plan->kernel->rows ? tiles / plan->kernel->rows : 1;
    const double rows = tiles / blocks, per_k = (2 * rows > 7 ? 2 * rows : 7) + 0.5;
    const double multiply = elements * blocks * (out / plan->kernel->cols) *
                            ((double)plan->group_in * per_k + 50 + 6 * rows);
    const double transform = tiles * elements * (6 * in + 5 * out) / vector;
    const bool by_rows = goes_by_rows(plan, m);
    const int64_t depth = by_rows && plan->group_in > DEPTH ? DEPTH : (int64_t)in;
    const double passes =
        ceil(tiles / (double)most_tiles(plan, (m + 2) * (m + 2), depth, (int64_t)out));
    const double expand = by_rows ? 8 * passes * elements * in * out / vector : 0;
    const double weights = (by_rows ? HALF : elements) * in * out * sizeof(float);
    return mgx_conv_seconds(plan, multiply + transform + expand, weights * (passes + 1) / 2);
}

static double cost2(const struct mgx_conv_plan *plan)
{
    return cost(plan, 2);
}

static double cost4(const struct mgx_conv_plan *plan)
{
    return cost(plan, 4);
}

// --- preparing ---

// Floats from tile to tile of V, and between elements of V and of the sums for `tiles` tiles. One
// tile more than needed keeps the elements off multiples of 4096 bytes.
static int64_t v_row(const struct mgx_conv_plan *plan)
{
    const int64_t vector = plan->winograd->vector;
    return mgx_ceil_div(plan->group_in, vector) * vector + 16;
}

static int64_t v_element(const struct mgx_conv_plan *plan, int64_t tiles)
{
    return (tiles + 1) * v_row(plan);
}

static int64_t panels_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->group_out, plan->kernel->cols);
}

// Floats from tile to tile of the sums: a panel's, or by rows those of all panels of a task.
static int64_t sums_row(const struct mgx_conv_plan *plan)
{
    const int64_t cols = plan->kernel->cols;
    return plan->by_rows ? mgx_ceil_div(panels_of(plan), plan->n_parts) * cols + 16 : cols;
}

static int64_t sums_element(const struct mgx_conv_plan *plan)
{
    return (plan->block_tiles + 1) * sums_row(plan);
}

// The six elements of a row that are made from three, for a panel.
static int64_t expanded_floats(const struct mgx_conv_plan *plan)
{
    return plan->by_rows ? EDGE * plan->depth_block * plan->kernel->cols : 0;
}

static int64_t tile_count(const struct mgx_conv_plan *plan)
{
    return plan->d.batch * plan->tiles[0] * plan->tiles[1];
}

// What is kept of the weights of a channel: transformed, or half.
static int64_t packed_elements(const struct mgx_conv_plan *plan)
{
    return plan->by_rows ? HALF : elements_of(plan);
}

// Where V of a thread begins, behind the sums and the expanded row.
static size_t own_v_bytes(const struct mgx_conv_plan *plan)
{
    const int64_t sums = sums_element(plan) * elements_of(plan);
    return mgx_align64((size_t)sums * sizeof(float)) +
           mgx_align64((size_t)expanded_floats(plan) * sizeof(float));
}

// Behind the V of a thread: which part it is of, from 1 on; 0: none of this run.
enum { KEPT_BYTES = 64 };

// Whether threads keep V from task to task: a part is one block, and what several of them transform
// alike takes no more than a twentieth of their multiplications (12 in `group_out` of it).
static bool keeps_v(const struct mgx_conv_plan *plan)
{
    enum { LEAST_OUT = 20 * 12 };
    const int64_t threads = mgx_max_i64(plan->d.threads, 1), again = threads - plan->m_parts;
    return plan->n_parts > 1 && !plan->by_rows &&
           plan->block_tiles >= mgx_ceil_div(tile_count(plan), plan->m_parts) &&
           again * LEAST_OUT <= plan->m_parts * plan->group_out;
}

static bool shares_v(const struct mgx_conv_plan *plan)
{
    return plan->n_parts > 1 && !keeps_v(plan);
}

static void set_order(struct mgx_conv_plan *plan)
{
    plan->by_rows = goes_by_rows(plan, edge_of(plan));
    const int64_t blocks = mgx_max_i64(mgx_ceil_div(plan->group_in, DEPTH), 1);
    plan->depth_block = mgx_ceil_div(mgx_ceil_div(plan->group_in, blocks), 4) * 4;
}

static void set_block(struct mgx_conv_plan *plan)
{
    const int64_t part = mgx_ceil_div(tile_count(plan), plan->m_parts);
    const int64_t tiles =
        most_tiles(plan, elements_of(plan), plan->by_rows ? plan->depth_block : v_row(plan),
                   plan->by_rows ? sums_row(plan) : 0);
    const int64_t blocks = mgx_ceil_div(part, tiles);
    plan->block_tiles = blocks ? mgx_ceil_div(part, blocks) : 0;
}

// Tasks that are tiles alone keep their V to themselves, in L2; where panels are dealt out too, it
// is shared and lies in memory. So tiles alone are divided where there are two good blocks of them
// for each thread.
static void set_parts(struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t tiles = tile_count(plan), threads = mgx_max_i64(d->threads, 1);
    const double products =
        (double)(elements_of(plan) * tiles) * (double)d->in_channels * (double)d->out_channels;
    const int64_t tasks = mgx_split_tasks(2 * products, d->threads);
    const int64_t most = most_tiles(
        plan, elements_of(plan), plan->by_rows ? plan->depth_block : v_row(plan), d->out_channels);
    const int64_t blocks = mgx_min_i64(tiles / (most - most / 8), tasks);
    if (blocks >= 2 * threads) {
        plan->m_parts = (int)(blocks / threads * threads);
        plan->n_parts = 1;
        return;
    }
    mgx_split_output(mgx_ceil_div(tiles, plan->kernel->rows), panels_of(plan), (double)tiles + 1,
                     (double)d->out_channels + 1, tasks, &plan->m_parts, &plan->n_parts);
}

static enum mgx_status winograd_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t m = edge_of(plan), elements = elements_of(plan);
    plan->winograd = mgx_winograd_kernel(d->isa);
    plan->kernel = mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    plan->tiles[0] = mgx_winograd_tiles(d, 1, m);
    plan->tiles[1] = mgx_winograd_tiles(d, 2, m);
    const int64_t tiles = tile_count(plan);
    set_order(plan);
    set_parts(plan);
    set_block(plan);
    size_t panel, v;
    if (!mgx_panels_bytes(plan->kernel, packed_elements(plan) * plan->group_in, plan->group_out,
                          &panel) ||
        !mgx_mul_size((size_t)v_element(plan, shares_v(plan) ? tiles : plan->block_tiles),
                      (size_t)elements * sizeof(float), &v))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld x %lld do not fit",
                        (long long)d->in_channels, (long long)d->out_channels);
    plan->packed_bytes = panel;
    plan->thread_workspace = own_v_bytes(plan);
    *(shares_v(plan) ? &plan->shared_workspace : &plan->thread_workspace) += mgx_align64(v);
    plan->thread_workspace += keeps_v(plan) ? KEPT_BYTES : 0;
    return MGX_OK;
}

// --- packing: U[panel][element][channel][lane] = G g G'; by rows G g,
// [panel][row][channel][3][lane]

// Where channel c of a panel goes, transformed from its taps.
static void pack_taps(const struct mgx_conv_plan *plan, const float *taps, int64_t stride,
                      int width, float *panel, int64_t c)
{
    const int64_t element = plan->group_in * width;
    const struct mgx_winograd_kernel *w = plan->winograd;
    if (plan->by_rows)
        w->half4(taps, stride, width, panel + 3 * c * width, 3 * element);
    else
        (edge_of(plan) == 2 ? w->weights2 : w->weights4)(taps, stride, width, panel + c * width,
                                                         element);
}

// The weights of input channel c and all columns of a panel; zeros behind the last output.
static void winograd_pack_channel(const struct mgx_conv_plan *plan, const char *weights,
                                  int64_t first, int width, float *panel, int64_t c)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t left = plan->group_out - first;
    float taps[9][MGX_TILE_MAX_COLS] = {{0}};
    for (int j = 0; j < width && j < left; j++)
        for (int i = 0; i < 9; i++)
            memcpy(&taps[i][j],
                   weights + (j * d->w_out + i / 3 * d->w_space[1] + i % 3 * d->w_space[2]) * FLOAT,
                   sizeof(float));
    pack_taps(plan, taps[0], MGX_TILE_MAX_COLS, width, panel, c);
}

// A whole panel of such weights: some channels at a time are transposed in registers.
static void winograd_pack_panel(const struct mgx_conv_plan *plan, const float *weights, int cols,
                                int width, float *panel)
{
    enum { CHANNELS = 8 };
    float taps[9 * CHANNELS * MGX_TILE_MAX_COLS];
    const int64_t depth = plan->group_in;
    for (int64_t c = 0; c < depth; c += CHANNELS) {
        const int64_t count = mgx_min_i64(CHANNELS, depth - c);
        plan->kernel->pack_transposed(weights + 9 * c, plan->d.w_out, 9 * count, cols, width, taps);
        for (int64_t i = 0; i < count; i++)
            pack_taps(plan, taps + 9 * width * i, width, width, panel, c + i);
    }
}

static void winograd_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                          int part, int parts)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t cols = plan->kernel->cols, depth = plan->group_in;
    const int64_t panels = mgx_ceil_div(plan->group_out, cols);
    const int64_t end = mgx_part_begin(panels, part + 1, parts);
    for (int64_t p = mgx_part_begin(panels, part, parts); p < end; p++) {
        const int width = mgx_panel_width(plan->kernel, plan->group_out, p);
        float *panel = (float *)packed + p * cols * depth * packed_elements(plan);
        if (mgx_winograd_is_row_major(d)) {
            const int64_t left = mgx_min_i64(width, plan->group_out - p * cols);
            winograd_pack_panel(plan, (const float *)weights + plan->w_first + p * cols * d->w_out,
                                (int)left, width, panel);
            continue;
        }
        for (int64_t c = 0; c < depth; c++)
            winograd_pack_channel(plan,
                                  (const char *)weights +
                                      (plan->w_first + p * cols * d->w_out + c * d->w_in) * FLOAT,
                                  p * cols, width, panel, c);
    }
}

// --- running ---

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
    float *v; // shared; NULL: each thread has its own
};

static int64_t *kept_by(const struct job *job, int thread)
{
    char *workspace = (char *)job->args->workspace + job->plan->shared_workspace;
    const size_t end = job->plan->thread_workspace * (size_t)(thread + 1);
    return (int64_t *)(void *)(workspace + end - KEPT_BYTES);
}

struct place {
    int64_t n, y, x;      // first output pixel of the tile
    int64_t down, across; // its number in either direction
};

static void set_pixel(const struct mgx_conv_plan *plan, struct place *at)
{
    const int64_t m = edge_of(plan);
    at->y = mgx_winograd_tile_at(&plan->d, 1, m, at->down);
    at->x = mgx_winograd_tile_at(&plan->d, 2, m, at->across);
}

static struct place place_of(const struct mgx_conv_plan *plan, int64_t tile)
{
    const int64_t across = plan->tiles[1], down = plan->tiles[0];
    struct place at = {
        .n = tile / across / down, .down = tile / across % down, .across = tile % across};
    set_pixel(plan, &at);
    return at;
}

static void next_place(const struct mgx_conv_plan *plan, struct place *at)
{
    if (++at->across == plan->tiles[1]) {
        at->across = 0;
        if (++at->down == plan->tiles[0]) {
            at->down = 0;
            at->n++;
        }
    }
    set_pixel(plan, at);
}

// Transforms the patches of tiles [begin, end) to rows from v on.
static void transform_inputs(const struct job *job, int64_t begin, int64_t end, float *v,
                             int64_t element)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t m = edge_of(plan), down = d->dilation[1], across = d->dilation[2];
    struct mgx_winograd_input in = {.line = down * d->x_space[1],
                                    .pixel = across * d->x_space[2],
                                    .channels = plan->group_in,
                                    .v = v,
                                    .element = element};
    struct place at = place_of(plan, begin);
    for (int64_t t = begin; t < end; t++, in.v += v_row(plan), next_place(plan, &at)) {
        const int64_t y = at.y - d->pad[1], x = at.x - d->pad[2];
        in.x =
            (const float *)job->args->x + at.n * d->x_batch + y * d->x_space[1] + x * d->x_space[2];
        in.y_begin = mgx_winograd_steps(-y, down, m + 2);
        in.x_begin = mgx_winograd_steps(-x, across, m + 2);
        in.y_end = mgx_winograd_steps(d->in[1] - y, down, m + 2);
        in.x_end = mgx_winograd_steps(d->in[2] - x, across, m + 2);
        if (m == 2)
            plan->winograd->input2(&in);
        else
            plan->winograd->input4(&in);
    }
}

// sums[element] = V[element] * U[panel][element] for `count` tiles; `next` is read after that.
static void multiply(const struct job *job, int64_t p, int64_t count, const float *v,
                     int64_t element, float *sums, struct mgx_ahead next)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t depth = plan->group_in, cols = kernel->cols, elements = elements_of(plan);
    const int64_t width = mgx_panel_width(kernel, plan->group_out, p);
    const int64_t groups = mgx_ceil_div(count, kernel->rows), zero = 0;
    const int64_t panel_bytes = depth * width * FLOAT;
    struct mgx_tile_args args = {
        .a_row = v_row(plan) * FLOAT,
        .taps = &zero,
        .tap_count = 1,
        .depth = depth,
        .b_row = width * FLOAT,
        .c_row = cols * FLOAT,
        .cols = (int)width,
    };
    for (int64_t e = 0; e < elements; e++) {
        args.b =
            (const char *)job->args->packed + p * cols * depth * elements * FLOAT + e * panel_bytes;
        args.a[0] = (const char *)(v + e * element);
        args.c[0] = (char *)(sums + e * sums_element(plan));
        struct mgx_fetch fetch = mgx_fetch_of(
            e + 1 < elements ? (struct mgx_ahead){args.b + panel_bytes, panel_bytes} : next, depth,
            1, groups, &args);
        mgx_tiles_of_rows(kernel, count, &fetch, &args);
    }
}

static void finish_tile(const struct job *job, const struct mgx_winograd_output *out,
                        const float *residual, int64_t pixel, int64_t col, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_end *end = &plan->d.end;
    for (int y = 0; y < out->lines; y++) {
        const struct mgx_tile tile = {
            .data = out->y + y * out->line,
            .stride = out->pixel,
            .row = pixel + y * plan->d.dilation[1] * plan->pixel_space[1],
            .row_step = plan->d.dilation[2] * plan->pixel_space[2],
            .col = col,
            .rows = out->pixels,
            .cols = out->cols,
            .thread = thread,
        };
        const struct mgx_end_place place = {
            .operand = residual ? residual + y * out->residual_line : NULL,
            .operand_row = out->residual_pixel * FLOAT,
            .hook_user = job->args->hook_user,
        };
        mgx_end_tile(end, mgx_end_in_registers(end), end->count, plan->ends, &tile, &place);
    }
}

// --- by rows ---

// A block of tiles and the panels of a task; the sums are those of all of them.
struct part {
    const struct job *job;
    int64_t first, end; // panels
    int64_t tiles;
    const float *v;
    int64_t element;
    float *sums, *expanded;
};

// Adds up, for the six elements of row `i` of U, a block of channels from c on, for panel p.
static void multiply_row(const struct part *t, int64_t i, int64_t c, int64_t p)
{
    const struct mgx_conv_plan *plan = t->job->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t cols = kernel->cols, depth = mgx_min_i64(plan->depth_block, plan->group_in - c);
    const int64_t width = mgx_panel_width(kernel, plan->group_out, p);
    const int64_t zero = 0;
    const int64_t all = plan->group_in * cols * HALF; // of a panel
    const int64_t half_bytes = 3 * depth * width * FLOAT, tile_bytes = depth / 4 * 256;
    const float *half =
        (const float *)t->job->args->packed + p * all + (i * plan->group_in + c) * 3 * width;
    const char *next = (const char *)(half + (p + 1 < t->end ? all : 0)); // as wide, or nearly
    plan->winograd->expand4(half, depth, (int)width, t->expanded, depth * width);
    struct mgx_tile_args args = {
        .a_row = v_row(plan) * FLOAT,
        .taps = &zero,
        .tap_count = 1,
        .depth = depth,
        .b_row = width * FLOAT,
        .residual_row = sums_row(plan) * FLOAT,
        .c_row = sums_row(plan) * FLOAT,
        .cols = (int)width,
    };
    struct mgx_fetch fetch = {{256, tile_bytes}, 1, half_bytes};
    args.ahead = next;
    for (int64_t k = 0, e = i * EDGE; k < EDGE; k++, e++) {
        args.b = (const char *)(t->expanded + k * depth * width);
        args.a[0] = (const char *)(t->v + e * t->element + c);
        args.c[0] = (char *)(t->sums + e * sums_element(plan) + (p - t->first) * cols);
        args.residual[0] = c ? args.c[0] : NULL;
        mgx_tiles_of_rows(kernel, t->tiles, &fetch, &args);
    }
}

static void multiply_rows(const struct part *t)
{
    const struct mgx_conv_plan *plan = t->job->plan;
    for (int64_t i = 0; i < EDGE; i++)
        for (int64_t c = 0; c < plan->group_in; c += plan->depth_block)
            for (int64_t p = t->first; p < t->end; p++)
                multiply_row(t, i, c, p);
}

// A tile that was made in scratch, to bf16.
static void round_tile(const struct job *job, const struct mgx_winograd_output *out,
                       const struct place *at, int64_t col)
{
    const struct mgx_conv_desc *d = &job->plan->d;
    const mgx_convert_fn convert = mgx_convert(d->isa, MGX_KERNEL_F32, d->y_type);
    uint16_t *to = (uint16_t *)job->args->y + job->plan->y_first + at->n * d->y_batch +
                   at->y * d->y_space[1] + at->x * d->y_space[2] + col;
    for (int y = 0; y < out->lines; y++)
        for (int x = 0; x < out->pixels; x++)
            convert(out->y + y * out->line + x * out->pixel,
                    to + y * d->dilation[1] * d->y_space[1] + x * d->dilation[2] * d->y_space[2],
                    out->cols);
}

static void transform_outputs(const struct job *job, int64_t begin, int64_t end, int64_t p,
                              const float *sums, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_end *list = &d->end;
    const int64_t m = edge_of(plan), col = p * plan->kernel->cols;
    const int64_t down = d->dilation[1], across = d->dilation[2];
    struct mgx_tile_args clamp;
    mgx_output_clamp(list, &clamp);
    struct mgx_winograd_output out = {
        .sums = sums,
        .element = sums_element(plan),
        .bias = job->args->bias ? job->args->bias + col : NULL,
        .residual_line = down * d->residual_space[1],
        .residual_pixel = across * d->residual_space[2],
        .line = down * d->y_space[1],
        .pixel = across * d->y_space[2],
        .cols = (int)mgx_min_i64(plan->group_out - col, plan->kernel->cols),
        .clamp = clamp.clamp,
        .low = clamp.low,
        .high = clamp.high,
    };
    const int64_t row = sums_row(plan);
    const bool rounds = mgx_conv_rounds(d);
    float room[MOST_EDGE * MOST_EDGE * MGX_TILE_MAX_COLS];
    if (rounds) {
        out.pixel = out.cols;
        out.line = MOST_EDGE * out.cols;
    }
    struct place at = place_of(plan, begin);
    for (int64_t t = begin; t < end; t++, out.sums += row, next_place(plan, &at)) {
        const float *residual = NULL;
        if (mgx_end_reader(list))
            residual = (const float *)job->args->residual + plan->residual_first +
                       at.n * d->residual_batch + at.y * d->residual_space[1] +
                       at.x * d->residual_space[2] + col;
        out.residual = mgx_end_adds_first(list) ? residual : NULL;
        out.y = rounds ? room
                       : (float *)job->args->y + plan->y_first + at.n * d->y_batch +
                             at.y * d->y_space[1] + at.x * d->y_space[2] + col;
        out.lines = mgx_winograd_steps(d->out[1] - at.y, down, m);
        out.pixels = mgx_winograd_steps(d->out[2] - at.x, across, m);
        if (m == 2)
            plan->winograd->output2(&out);
        else
            plan->winograd->output4(&out);
        if (!mgx_output_simple(list))
            finish_tile(job, &out, residual,
                        plan->pixel_first + at.n * plan->pixel_batch + at.y * plan->pixel_space[1] +
                            at.x * plan->pixel_space[2],
                        col, thread);
        if (rounds)
            round_tile(job, &out, &at, col);
    }
}

static void input_task(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const int64_t tiles = tile_count(job->plan), element = v_element(job->plan, tiles);
    transform_inputs(job, task, task + 1, job->v + task * v_row(job->plan), element);
}

// What panel p begins with: its first element, or by rows half of them.
static struct mgx_ahead read_at(const struct mgx_conv_plan *plan, const void *packed, int64_t p)
{
    const int64_t floats = plan->group_in * plan->kernel->cols;
    const int width = mgx_panel_width(plan->kernel, plan->group_out, p);
    const int64_t rows = plan->by_rows ? 3 * plan->depth_block : plan->group_in;
    return (struct mgx_ahead){(const char *)packed + p * floats * packed_elements(plan) * FLOAT,
                              rows * width * FLOAT};
}

static struct mgx_ahead first_read(const struct mgx_conv_plan *plan, const void *packed, int task)
{
    if (task >= plan->m_parts * plan->n_parts)
        return (struct mgx_ahead){NULL, 0};
    return read_at(plan, packed, panels_of(plan) * (task % plan->n_parts) / plan->n_parts);
}

static struct mgx_ahead winograd_first_read(const struct mgx_conv_plan *plan, const void *packed,
                                            int thread)
{
    return first_read(plan, packed,
                      mgx_pool_first(plan->m_parts * plan->n_parts, plan->d.threads, thread));
}

// What the thread reads after a task.
static struct mgx_ahead read_after(const struct job *job, int task, int thread)
{
    const struct mgx_conv_plan *plan = job->plan;
    const int tasks = plan->m_parts * plan->n_parts;
    if (task + 1 == mgx_pool_first(tasks, plan->d.threads, thread + 1) && job->args->next)
        return job->args->next[thread];
    return first_read(plan, job->args->packed, task + 1);
}

static void output_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const int64_t panels = panels_of(plan), tiles = tile_count(plan);
    const struct mgx_conv_task own = mgx_conv_task(plan, task, tiles, panels);
    float *sums = (float *)(void *)((char *)job->args->workspace + plan->shared_workspace +
                                    plan->thread_workspace * (size_t)thread);
    float *own_v = (float *)(void *)((char *)sums + own_v_bytes(plan));
    struct part part = {.job = job,
                        .first = own.first,
                        .end = own.end,
                        .element = v_element(plan, job->v ? tiles : plan->block_tiles),
                        .sums = sums,
                        .expanded =
                            own_v - mgx_align64((size_t)expanded_floats(plan) * sizeof(float)) /
                                        sizeof(float)};
    const struct mgx_ahead after = read_after(job, task, thread);
    const int64_t tag = 1 + task / plan->n_parts; // says whose tiles a thread's V is of
    int64_t *kept = keeps_v(plan) ? kept_by(job, thread) : NULL;
    for (int64_t b = 0; b < own.blocks; b++) {
        const int64_t t0 = mgx_conv_block(&own, b), t1 = mgx_conv_block(&own, b + 1);
        part.v = job->v ? job->v + t0 * v_row(plan) : own_v;
        part.tiles = t1 - t0;
        if (!job->v && !(kept && *kept == tag))
            transform_inputs(job, t0, t1, own_v, part.element);
        if (kept)
            *kept = tag;
        if (plan->by_rows)
            multiply_rows(&part);
        for (int64_t p = part.first; p < part.end; p++) {
            const int64_t then = p + 1 < part.end     ? p + 1
                                 : b + 1 < own.blocks ? part.first
                                                      : panels;
            if (!plan->by_rows)
                multiply(job, p, part.tiles, part.v, part.element, sums,
                         then < panels ? read_at(plan, job->args->packed, then) : after);
            transform_outputs(job, t0, t1, p,
                              plan->by_rows ? sums + (p - part.first) * plan->kernel->cols : sums,
                              thread);
        }
    }
}

static void winograd_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                         struct mgx_pool *pool)
{
    struct job job = {plan, args, shares_v(plan) ? args->workspace : NULL};
    for (int thread = 0; keeps_v(plan) && thread < mgx_pool_threads(pool); thread++)
        *kept_by(&job, thread) = 0;
    if (job.v)
        mgx_pool_run(pool, (int)tile_count(plan), input_task, &job);
    mgx_pool_run(pool, plan->m_parts * plan->n_parts, output_task, &job);
}

const struct mgx_conv_ops mgx_conv_winograd2 = {winograd_fits, cost2,        winograd_prepare,
                                                winograd_pack, winograd_run, winograd_first_read};
const struct mgx_conv_ops mgx_conv_winograd4 = {winograd_fits, cost4,        winograd_prepare,
                                                winograd_pack, winograd_run, winograd_first_read};
