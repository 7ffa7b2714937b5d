// SPDX-License-Identifier: MIT
// Convolution 3 x 3 of bytes, stride 1, by Winograd's method in whole numbers; byte_winograd.h has
// the arithmetic, and why it is exact. For machines whose products of bytes are no faster than
// twice those of 16 bits: AVX2, where bytes are widened, and AVX-512 with VNNI, whose vpdpbusd is
// twice as fast as vpdpwssd.
//
//     task: a range of tiles, a range of panels of two vectors of output channels
//       block of up to 30 tiles
//         part of the channels, so many that their transformed patches stay in L2:
//           V[element][tile][channel]
//           panel:
//             sums[tile][element][column] = V[element] * U[part][panel][element]     36 products,
//                                           those at 2 and -2 without the tiles that are short
//             output tiles: transformed back, added to what other parts came to; behind the last
//             one bias, residual, step to bytes, in registers
//
// U takes eight bytes for a weight, so where few tiles share many weights memory makes other
// methods better; the cost says so. On a Zen 5 core 64 > 64 channels of 56 x 56 pixels take 152 us,
// where bytes take 228; of them products 115, patches 10, tiles 20.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/byte_winograd.h"
#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/image/winograd_tiles.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/product/tiles.h"
#include "targets/cpu/machine/cpuid.h"

enum {
    ELEMENTS = MGX_BYTE_WINOGRAD_ELEMENTS,
    OUT = 4,
    EDGE = 6,
    SOME = 16,       // columns that are packed at once
    MOST_TILES = 30, // of a block: with more of them the sums leave L2, too
};

static bool is_short(int64_t outputs)
{
    return outputs <= MGX_BYTE_WINOGRAD_SHORT;
}

// --- which descriptions fit ---

static int weight_at(const struct mgx_conv_desc *d, const void *weights, int64_t at)
{
    return mgx_kernel_byte(d->w_type, ((const uint8_t *)weights)[at]);
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
        if (mgx_kernel_is_signed(d->w_type))
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

// Whether nothing that comes of `part` channels can leave the bits that are left of it.
static bool outputs_fit(const struct mgx_conv_plan *plan, int64_t part)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t most = INT64_C(1) << (MGX_BYTE_WINOGRAD_BITS - 1);
    const int64_t low = -mgx_kernel_raise(d->x_type) - d->x_zero, high = low + 255;
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

static const struct mgx_byte_winograd_kernel *transforms(const struct mgx_conv_plan *plan)
{
    return plan->byte_winograd ? plan->byte_winograd : mgx_byte_winograd_kernel(plan->d.isa);
}

// The kernel that multiplies 16 bits, where the one that multiplies bytes is no faster than twice
// that: tile registers are.
static const struct mgx_gemm_kernel *find_kernel(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_byte_winograd_kernel *t = transforms(plan);
    if (!t)
        return NULL;
    const struct mgx_gemm_kernel *direct =
        mgx_integer_kernel(d->type, d->isa, d->x_type, d->w_type, d->w_zero);
    if (direct && mgx_gemm_has_tiles(direct))
        return NULL;
    const struct mgx_gemm_kernel *k =
        mgx_integer_kernel(d->type, d->isa, d->x_type, d->w_type, d->w_zero || t->wide[1]);
    return k && mgx_gemm_widens(k) && k->group == 2 && k->cols == 2 * t->cols ? k : NULL;
}

static bool fits(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return mgx_kernel_is_byte(d->type) && d->weights && find_kernel(plan) && !d->transposed &&
           d->groups == 1 && d->x_channel == 1 && d->in[0] == 1 && d->out[0] == 1 &&
           d->kernel[0] == 1 && d->pad[0] == 0 && d->kernel[1] == 3 && d->kernel[2] == 3 &&
           d->stride[1] == 1 && d->stride[2] == 1 && mgx_winograd_is_row_major(d) &&
           mgx_output_in_registers(&d->end, d->y_type);
}

static int64_t tile_count(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    return d->batch * mgx_winograd_tiles(d, 1, OUT) * mgx_winograd_tiles(d, 2, OUT);
}

// Columns of a panel: two vectors.
static int64_t columns(const struct mgx_conv_plan *plan)
{
    return 2 * transforms(plan)->cols;
}

static int64_t panels_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->group_out, columns(plan));
}

static int64_t pairs_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->group_in, 2);
}

// Tiles whose patches of so many channels stay in L2.
static int64_t tiles_in_l2(const struct mgx_conv_plan *plan, int64_t channels)
{
    return mgx_cpu_l2() / 4 * 3 / (ELEMENTS * 2 * (channels + transforms(plan)->channels));
}

static int64_t even_part(const struct mgx_conv_plan *plan, int64_t parts)
{
    const int64_t vector = transforms(plan)->channels;
    return mgx_ceil_div(mgx_ceil_div(plan->group_in, parts), vector) * vector;
}

// The last panel may be half as wide.
static int64_t panel_columns(const struct mgx_conv_plan *plan, int64_t p)
{
    const struct mgx_byte_winograd_kernel *kernel = transforms(plan);
    const int64_t left = plan->group_out - p * columns(plan);
    return kernel->narrow[1] && left <= kernel->cols ? kernel->cols : columns(plan);
}

// Columns of all panels.
static int64_t packed_columns(const struct mgx_conv_plan *plan)
{
    const int64_t last = panels_of(plan) - 1;
    return last < 0 ? 0 : last * columns(plan) + panel_columns(plan, last);
}

static int64_t most_tiles(const struct mgx_conv_plan *plan)
{
    const int rows = find_kernel(plan)->rows;
    return MOST_TILES / rows * rows;
}

// Channels of a part: all, or where a block would have a few tiles, so many that it has all it can.
// The image's size does not count: packed weights, which are in parts, serve images of any size.
static int64_t part_in_l2(const struct mgx_conv_plan *plan)
{
    enum { FEW_TILES = 12, LEAST_CHANNELS = 64 };
    int64_t parts = 1, part = even_part(plan, 1);
    if (tiles_in_l2(plan, part) >= FEW_TILES)
        return part;
    while (part > LEAST_CHANNELS && tiles_in_l2(plan, part) < most_tiles(plan))
        part = even_part(plan, ++parts);
    return part;
}

// Products along dimension i, as a share of what there were if no tile was short.
static double share(const struct mgx_conv_desc *d, int i)
{
    enum { NEEDED = 4 }; // elements of EDGE, of a short one
    const struct mgx_winograd_phases p = mgx_winograd_phases(d, i, OUT);
    const int64_t most = mgx_ceil_div(d->out[i], d->dilation[i]),
                  tiles = mgx_winograd_tiles(d, i, OUT);
    const int64_t shorts = (is_short((most - 1) % OUT + 1) ? p.first : 0) +
                           (most > 1 && is_short((most - 2) % OUT + 1) ? p.rest : 0);
    return tiles ? 1 - (double)shorts / (double)tiles * (EDGE - NEEDED) / EDGE : 1;
}

// How the work is divided: m ranges of tiles by n ranges of panels, in blocks.
struct cut {
    int64_t m, n, block;
    double cycles; // of the busiest thread
};

// Of `tiles` tiles and some panels.
static double cycles_of(const struct mgx_conv_plan *plan, int64_t tiles, double panels,
                        int64_t block)
{
    enum { LEAST_ROWS = 4 }; // fewer leave a multiplier waiting for its own sums
    const struct mgx_byte_winograd_kernel *t = transforms(plan);
    const struct mgx_byte_winograd_pace *pace = &t->pace;
    const int64_t blocks = mgx_ceil_div(tiles, block), of_block = mgx_ceil_div(tiles, blocks);
    const double groups = (double)(blocks * mgx_ceil_div(of_block, find_kernel(plan)->rows)),
                 rows = (double)tiles > LEAST_ROWS * groups ? (double)tiles : LEAST_ROWS * groups,
                 parts = (double)mgx_ceil_div(plan->group_in, part_in_l2(plan)),
                 vectors = (double)mgx_ceil_div(plan->group_in, t->channels),
                 pairs = (double)pairs_of(plan);
    const double multiply = ELEMENTS * share(&plan->d, 1) * share(&plan->d, 2) * panels *
                            (pace->pair * pairs * rows + pace->group * groups * parts);
    const double transform =
        (double)tiles * (pace->input * vectors + 2 * pace->output * panels * parts);
    const double read =
        (double)(blocks * ELEMENTS * columns(plan) * 4) * panels * pairs / pace->bytes;
    return multiply + transform > read ? multiply + transform : read;
}

// Of a panel of one vector, half.
static double panels_in_all(const struct mgx_conv_plan *plan)
{
    return (double)packed_columns(plan) / (double)columns(plan);
}

static void try_cut(const struct mgx_conv_plan *plan, int64_t m, int64_t n, int64_t block,
                    struct cut *best)
{
    const int64_t tiles = tile_count(plan), panels = panels_of(plan),
                  threads = mgx_max_i64(plan->d.threads, 1);
    if (m > tiles || n > panels)
        return;
    const double mine = n == 1 ? panels_in_all(plan) : (double)mgx_ceil_div(panels, n);
    const struct cut cut = {m, n, block,
                            (double)mgx_ceil_div(m * n, threads) *
                                cycles_of(plan, mgx_ceil_div(tiles, m), mine, block)};
    const double slack = m * n > best->m * best->n ? 1.02 : 1; // for threads that lose their CPU
    if (cut.cycles < slack * best->cycles)
        *best = cut;
}

// Tiles share nothing but weights, which every range of them reads; ranges of panels transform the
// same patches.
static struct cut best_cut(const struct mgx_conv_plan *plan, int64_t depth_block)
{
    const int64_t most = tiles_in_l2(plan, depth_block);
    const int64_t block = mgx_max_i64(mgx_min_i64(most, most_tiles(plan)), 1);
    const double products =
        (double)tile_count(plan) * ELEMENTS * (double)(plan->group_in * plan->group_out);
    const int64_t tasks = mgx_split_tasks(2 * products, plan->d.threads),
                  threads = mgx_max_i64(plan->d.threads, 1);
    struct cut best = {
        1, 1, block, cycles_of(plan, mgx_max_i64(tile_count(plan), 1), panels_in_all(plan), block)};
    for (int64_t all = mgx_min_i64(tasks, threads); all <= tasks && tasks > 1; all += threads)
        for (int64_t n = 1; n <= all; n++)
            if (all % n == 0)
                try_cut(plan, all / n, n, block, &best);
    return best;
}

// U is read once, in order, and asked for ahead: it comes faster than the weights of other methods.
// Taken as twice as fast, the 14 x 14 layers of ResNet50 (4.7 MB of U each) are this method's,
// which makes the whole model 3 % faster on a core that memory gives 40 GB/s.
static double cost(const struct mgx_conv_plan *plan)
{
    const double threads = plan->d.threads > 1 ? plan->d.threads : 1;
    const double bytes = (double)(ELEMENTS * packed_columns(plan) * 4 * pairs_of(plan));
    return mgx_conv_seconds(plan, threads * best_cut(plan, part_in_l2(plan)).cycles, bytes / 2);
}

// --- preparing ---

// int16s from tile to tile of V, and from element to element: one tile more than there are keeps
// elements off multiples of 4096 bytes.
static int64_t v_row(const struct mgx_conv_plan *plan)
{
    return plan->depth_block + (plan->depth_block % 256 == 0 ? transforms(plan)->channels : 0);
}

static int64_t v_element(const struct mgx_conv_plan *plan)
{
    return (plan->block_tiles + 1) * v_row(plan);
}

// int32s from tile to tile.
static int64_t sums_tile(const struct mgx_conv_plan *plan)
{
    return MGX_BYTE_WINOGRAD_SUMS * columns(plan);
}

static bool is_in_parts(const struct mgx_conv_plan *plan)
{
    return plan->depth_block < plan->group_in;
}

// What waits for other parts: a panel's outputs for every tile of a block.
static int64_t others_panel(const struct mgx_conv_plan *plan)
{
    return plan->block_tiles * OUT * OUT * columns(plan);
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
    p.at = packed_columns(plan) * ELEMENTS * (first / 2) * 4;
    p.panel = ELEMENTS * p.pairs * columns(plan) * 4;
    return p;
}

static void set_parts(struct mgx_conv_plan *plan)
{
    const struct cut cut = best_cut(plan, plan->depth_block);
    const int64_t part = mgx_max_i64(mgx_ceil_div(tile_count(plan), cut.m), 1);
    plan->m_parts = (int)cut.m;
    plan->n_parts = (int)cut.n;
    plan->block_tiles = mgx_ceil_div(part, mgx_ceil_div(part, cut.block));
}

static enum mgx_status prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    plan->kernel = find_kernel(plan);
    plan->byte_winograd = transforms(plan);
    const int64_t vector = plan->byte_winograd->channels;
    for (int i = 0; i < 2; i++)
        plan->tiles[i] = mgx_winograd_tiles(&plan->d, i + 1, OUT);
    plan->depth_block = part_in_l2(plan);
    while (plan->depth_block > vector && !outputs_fit(plan, plan->depth_block))
        plan->depth_block = mgx_ceil_div(plan->depth_block / 2, vector) * vector;
    set_parts(plan);
    if (!mgx_mul_size((size_t)packed_columns(plan), (size_t)(ELEMENTS * pairs_of(plan) * 4),
                      &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld x %lld do not fit",
                        (long long)plan->group_in, (long long)plan->group_out);
    const int64_t panels = mgx_ceil_div(panels_of(plan), plan->n_parts),
                  others = is_in_parts(plan) ? panels * others_panel(plan) : 0;
    plan->thread_workspace =
        mgx_align64((size_t)(ELEMENTS * v_element(plan)) * sizeof(int16_t)) +
        mgx_align64((size_t)(plan->block_tiles * sums_tile(plan)) * sizeof(int32_t)) +
        mgx_align64((size_t)others * sizeof(int32_t));
    return MGX_OK;
}

// --- packing ---

typedef int16_t some __attribute__((vector_size(SOME * sizeof(int16_t))));

// Nine weights of some columns, less their zero points.
static void load_taps(const struct mgx_conv_plan *plan, const void *weights, int64_t col, int64_t c,
                      int16_t taps[9][SOME])
{
    const struct mgx_conv_desc *d = &plan->d;
    memset(taps, 0, 9 * sizeof *taps);
    for (int64_t j = 0; c < plan->group_in && j < SOME && col + j < plan->group_out; j++) {
        const int64_t o = col + j, at = plan->w_first + o * d->w_out + c * d->w_in;
        const int zero = d->w_zero ? d->w_zero[o] : 0;
        for (int i = 0; i < 9; i++)
            taps[i][j] = (int16_t)(weight_at(d, weights, at + i) - zero);
    }
}

// G a for one line of the kernel.
static void transform(const some a[3], some g[EDGE])
{
    const some sum = a[0] + a[2], far = a[0] + 4 * a[2], twice = 2 * a[1];
    g[0] = 6 * a[0];
    g[1] = -(sum + a[1]);
    g[2] = a[1] - sum;
    g[3] = far + twice;
    g[4] = far - twice;
    g[5] = 6 * a[2];
}

static void transform_weights(const struct mgx_conv_plan *plan, const void *weights, int64_t col,
                              int64_t c, some u[ELEMENTS])
{
    int16_t taps[9][SOME];
    some half[EDGE][3];
    load_taps(plan, weights, col, c, taps);
    for (int x = 0; x < 3; x++) {
        some line[3], g[EDGE];
        for (int y = 0; y < 3; y++)
            memcpy(&line[y], taps[3 * y + x], sizeof *line);
        transform(line, g);
        for (int y = 0; y < EDGE; y++)
            half[y][x] = g[y];
    }
    for (int y = 0; y < EDGE; y++)
        transform(half[y], u + y * EDGE);
}

// Columns [col, col + SOME) of a panel that is `width` columns wide.
static void pack_columns(const struct mgx_conv_plan *plan, const void *weights, int64_t col,
                         const struct part *part, int64_t width, int16_t *panel)
{
    const int64_t row = width * 2;
    for (int64_t c = 0; c < part->pairs; c++) {
        some u[2][ELEMENTS];
        transform_weights(plan, weights, col, part->first + 2 * c, u[0]);
        transform_weights(plan, weights, col, part->first + 2 * c + 1, u[1]);
        for (int e = 0; e < ELEMENTS; e++) {
            int16_t *to = panel + (e * part->pairs + c) * row;
            for (int j = 0; j < SOME; j++) {
                to[2 * j] = u[0][e][j];
                to[2 * j + 1] = u[1][e][j];
            }
        }
    }
}

static void pack_panel(const struct mgx_conv_plan *plan, const void *weights, int64_t p,
                       const struct part *part, char *packed)
{
    int16_t *panel = (int16_t *)(void *)(packed + part->at + p * part->panel);
    const int64_t width = panel_columns(plan, p);
    for (int64_t j = 0; j < width; j += SOME)
        pack_columns(plan, weights, p * columns(plan) + j, part, width, panel + 2 * j);
}

static void pack(const struct mgx_conv_plan *plan, const void *weights, void *packed, int part,
                 int parts)
{
    const int64_t panels = panels_of(plan), end = mgx_part_begin(panels, part + 1, parts);
    for (int64_t p = mgx_part_begin(panels, part, parts); p < end; p++)
        for (int64_t c = 0; c < plan->group_in; c += plan->depth_block) {
            const struct part of = part_of(plan, c);
            pack_panel(plan, weights, p, &of, packed);
        }
}

// --- running ---

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

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
    at += mgx_align64((size_t)(plan->block_tiles * sums_tile(plan)) * sizeof *own.sums);
    own.others = is_in_parts(plan) ? (int32_t *)(void *)at : NULL;
    return own;
}

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

// Which way a tile is short, in the order that blocks have them: so those that have products at an
// element lie side by side, whichever it is.
enum kind { SHORT_Y, WHOLE, SHORT_X, SHORT_BOTH, KINDS };

static enum kind kind_of(const struct mgx_conv_desc *d, const struct place *at)
{
    const bool y = is_short(mgx_winograd_steps(d->out[1] - at->y, d->dilation[1], OUT)),
               x = is_short(mgx_winograd_steps(d->out[2] - at->x, d->dilation[2], OUT));
    return y ? x ? SHORT_BOTH : SHORT_Y : x ? SHORT_X : WHOLE;
}

// Some tiles; the divisions that find them would take as long as their transforms.
struct block {
    int64_t tiles, first[KINDS + 1]; // of a kind
    struct place at[MOST_TILES];
};

static void set_block(const struct mgx_conv_plan *plan, int64_t begin, int64_t end,
                      struct block *block)
{
    assert(end - begin <= plan->block_tiles && end - begin <= MOST_TILES);
    struct place at[MOST_TILES];
    enum kind kind[MOST_TILES];
    const int tiles = (int)(end - begin);
    for (int t = 0; t < tiles; t++) {
        at[t] = place_of(plan, begin + t);
        kind[t] = kind_of(&plan->d, &at[t]);
    }
    block->tiles = 0;
    for (int k = 0; k < KINDS; k++) {
        block->first[k] = block->tiles;
        for (int t = 0; t < tiles; t++)
            if (kind[t] == (enum kind)k)
                block->at[block->tiles++] = at[t];
    }
    block->first[KINDS] = block->tiles;
}

static void transform_inputs(const struct job *job, const struct block *block,
                             const struct part *part, int16_t *v)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const struct mgx_byte_winograd_kernel *kernel = plan->byte_winograd;
    const int64_t down = d->dilation[1], across = d->dilation[2];
    struct mgx_byte_winograd_input in = {.line = down * d->x_space[1],
                                         .pixel = across * d->x_space[2],
                                         .channels = part->channels,
                                         .zero = d->x_zero,
                                         .is_signed = mgx_kernel_is_signed(d->x_type),
                                         .v = v,
                                         .element = v_element(plan)};
    for (int64_t t = 0; t < block->tiles; t++, in.v += v_row(plan)) {
        const struct place at = block->at[t];
        const int64_t y = at.y - d->pad[1], x = at.x - d->pad[2];
        in.x = (const uint8_t *)job->args->x + at.n * d->x_batch + y * d->x_space[1] +
               x * d->x_space[2] + part->first;
        in.y_begin = mgx_winograd_steps(-y, down, EDGE);
        in.x_begin = mgx_winograd_steps(-x, across, EDGE);
        in.y_end = mgx_winograd_steps(d->in[1] - y, down, EDGE);
        in.x_end = mgx_winograd_steps(d->in[2] - x, across, EDGE);
        in.short_y = t < block->first[WHOLE] || t >= block->first[SHORT_BOTH];
        in.short_x = t >= block->first[SHORT_X];
        kernel->input(&in);
    }
}

// Tiles that are multiplied at an element: all, or those of some kinds.
struct rows {
    int64_t first, count;
    int groups; // of them, one behind the other
    int64_t of[MOST_TILES];
    struct mgx_ahead_step ahead;
};

// A panel's products, the same for every element but for where they are, and for its tiles.
struct products {
    int64_t pairs, bytes;   // of an element's panel
    struct rows rows[2][2]; // [not of tiles that are short down][nor across]
    const int16_t *v;
    const char *u;
    int32_t *to;
    bool narrow, far; // no room for the next panel in L1
};

static struct rows rows_of(const struct mgx_conv_plan *plan, int64_t first, int64_t end,
                           const struct products *m)
{
    const int64_t tiles = end - first;
    struct rows r = {
        .first = first, .count = tiles, .groups = (int)mgx_ceil_div(tiles, plan->kernel->rows)};
    for (int i = 0; i < r.groups; i++)
        r.of[i] = tiles * (i + 1) / r.groups - tiles * i / r.groups;
    if (r.groups)
        r.ahead = mgx_ahead_share((struct mgx_ahead){NULL, m->bytes}, m->pairs, r.groups);
    return r;
}

static struct products products_of(const struct job *job, int64_t p, const struct block *block,
                                   const struct part *part, const struct own *own)
{
    const struct mgx_conv_plan *plan = job->plan;
    const int64_t *first = block->first;
    struct products m = {.pairs = part->pairs,
                         .bytes = part->pairs * panel_columns(plan, p) * 4,
                         .v = own->v,
                         .u = (const char *)job->args->packed + part->at + p * part->panel,
                         .to = own->sums,
                         .narrow = panel_columns(plan, p) < columns(plan)};
    m.far = 2 * m.bytes + block->tiles * v_row(plan) * 2 > mgx_cpu_l1();
    m.rows[0][0] = rows_of(plan, 0, block->tiles, &m);
    m.rows[0][1] = rows_of(plan, 0, first[SHORT_X], &m);
    m.rows[1][0] = rows_of(plan, first[WHOLE], first[SHORT_BOTH], &m);
    m.rows[1][1] = rows_of(plan, first[WHOLE], first[SHORT_X], &m);
    return m;
}

// Whether the point is 2 or -2.
static bool is_far(int element)
{
    return element == 3 || element == 4;
}

static const struct rows *rows_at(const struct products *m, int e)
{
    return &m->rows[is_far(e / EDGE)][is_far(e % EDGE)];
}

static void multiply_element(const struct mgx_conv_plan *plan, const struct products *m, int e,
                             const char *ahead)
{
    const struct mgx_byte_winograd_kernel *kernel = plan->byte_winograd;
    const mgx_byte_winograd_product_fn *run = m->narrow ? kernel->narrow : kernel->wide;
    const struct rows *rows = rows_at(m, e);
    const struct mgx_byte_winograd_panel panel = {
        .a_row = v_row(plan) * 2,
        .depth = m->pairs,
        .ahead_lines = ahead ? rows->ahead.bytes / 64 : 0,
        .ahead_far = m->far,
    };
    const char *a = (const char *)(m->v + e * v_element(plan) + rows->first * v_row(plan)),
               *b = m->u + e * m->bytes;
    char *c = (char *)(m->to + e * columns(plan) + rows->first * sums_tile(plan));
    const int64_t ahead_step = ahead ? rows->ahead.tile_bytes : 0, c_row = sums_tile(plan) * 4;
    if (!ahead)
        ahead = b;
    for (int i = 0; i < rows->groups; i++) {
        run[rows->of[i]](&panel, a, b, c, ahead);
        a += rows->of[i] * panel.a_row;
        c += rows->of[i] * c_row;
        ahead += ahead_step;
    }
}

// The same by tiles of tile.h.
static void tile_element(const struct mgx_conv_plan *plan, const struct products *m, int e,
                         const char *ahead)
{
    static const int64_t one_tap[] = {0};
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const struct rows *rows = rows_at(m, e);
    struct mgx_tile_args args = {
        .a = {(const char *)(m->v + e * v_element(plan) + rows->first * v_row(plan))},
        .a_row = v_row(plan) * 2,
        .taps = one_tap,
        .tap_count = 1,
        .depth = m->pairs,
        .b = m->u + e * m->bytes,
        .b_row = kernel->cols * 4,
        .c = {(char *)(m->to + e * columns(plan) + rows->first * sums_tile(plan))},
        .c_row = sums_tile(plan) * 4,
        .cols = kernel->cols,
        .ahead = ahead ? ahead : m->u,
    };
    struct mgx_fetch fetch = {rows->ahead, 1, ahead ? m->bytes : 0};
    mgx_tiles_of_rows(kernel, rows->count, &fetch, &args);
}

// All elements of a panel. Each fetches the next one's weights.
static void multiply(const struct job *job, int64_t p, const struct block *block,
                     const struct part *part, const struct own *own)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct products m = products_of(job, p, block, part, own);
    const bool last = part->first + part->channels == plan->group_in && p + 1 == panels_of(plan);
    for (int e = 0; e < ELEMENTS; e++) {
        const char *ahead = last && e + 1 == ELEMENTS ? NULL : m.u + (e + 1) * m.bytes;
        if (plan->byte_winograd->wide[1])
            multiply_element(plan, &m, e, ahead);
        else
            tile_element(plan, &m, e, ahead);
    }
}

static void set_columns(const struct job *job, int64_t col, struct mgx_tile_args *tile)
{
    const struct mgx_conv_plan *plan = job->plan;
    tile->cols = (int)mgx_min_i64(plan->group_out - col, plan->byte_winograd->cols);
    tile->bias = job->args->bias ? job->args->bias + col : NULL;
    tile->scale = mgx_kernel_is_sums(plan->d.y_type) ? NULL : job->args->scale + col;
}

// A vector's columns of a block. `others` NULL: this part is all channels.
static void transform_outputs(const struct job *job, const struct block *block, int64_t col,
                              const int32_t *from, const struct part *part, int32_t *others)
{
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t y_size = mgx_kernel_size(d->y_type), r_size = mgx_output_operand_size(&d->end);
    const int64_t down = d->dilation[1], across = d->dilation[2];
    struct mgx_byte_winograd_output out = {
        .sums = from,
        .line = down * d->y_space[1] * y_size,
        .residual_line = down * d->residual_space[1] * r_size,
        .tile = {.c_row = across * d->y_space[2] * y_size,
                 .residual_row = across * d->residual_space[2] * r_size,
                 .end = mgx_output_listed(&d->end)},
        .others = others,
        .adds = part->first > 0,
        .stays = part->first + part->channels < plan->group_in,
    };
    mgx_output_clamp(&d->end, &out.tile);
    set_columns(job, col, &out.tile);
    for (int64_t t = 0; t < block->tiles; t++, out.sums += sums_tile(plan)) {
        const struct place at = block->at[t];
        out.lines = mgx_winograd_steps(d->out[1] - at.y, down, OUT);
        out.pixels = mgx_winograd_steps(d->out[2] - at.x, across, OUT);
        out.tile.c[0] = (char *)job->args->y + (plan->y_first + at.n * d->y_batch +
                                                at.y * d->y_space[1] + at.x * d->y_space[2] + col) *
                                                   y_size;
        if (mgx_end_reader(&d->end))
            out.tile.residual[0] =
                (const char *)job->args->residual +
                (plan->residual_first + at.n * d->residual_batch + at.y * d->residual_space[1] +
                 at.x * d->residual_space[2] + col) *
                    r_size;
        plan->byte_winograd->output(&out);
        out.others += others ? OUT * OUT * plan->byte_winograd->cols : 0;
    }
}

// Panels [first, end) of a block, some channels of them.
static void run_part(const struct job *job, const struct block *block, int64_t first, int64_t end,
                     const struct part *part, const struct own *own)
{
    const struct mgx_conv_plan *plan = job->plan;
    const int64_t cols = columns(plan);
    transform_inputs(job, block, part, own->v);
    for (int64_t p = first; p < end; p++) {
        int32_t *others = own->others ? own->others + (p - first) * others_panel(plan) : NULL;
        multiply(job, p, block, part, own);
        for (int64_t col = p * cols; col < mgx_min_i64((p + 1) * cols, plan->group_out);
             col += cols / 2) {
            transform_outputs(job, block, col, own->sums + col % cols, part, others);
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
        struct block block;
        set_block(plan, mgx_conv_block(&part, b), mgx_conv_block(&part, b + 1), &block);
        for (int64_t c = 0; c < plan->group_in; c += plan->depth_block) {
            const struct part of = part_of(plan, c);
            run_part(job, &block, part.first, part.end, &of, &own);
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
    return (struct mgx_ahead){(const char *)packed + p * part.panel,
                              part.pairs * columns(plan) * 4};
}

const struct mgx_conv_ops mgx_conv_winograd_bytes = {fits, cost, prepare, pack, run, first_read};
