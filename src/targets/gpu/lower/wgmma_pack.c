// SPDX-License-Identifier: MIT
// The constant operand of the Hopper kernel, packed when a plan is complete: columns x depth, the
// taps of a column where the left operand has their channels, every tap filled up to whole blocks.
//
// Of groups that share a unit each column's channels lie at their place among the unit's.
//
//     16 bits   64 values a block, as they are
//     bytes     128 values a block, as they are; where results leave four by four, of 16 columns 2 q + r
//               and 8 + 2 q + r are those of 4 q + r and 4 q + 2 + r
//     floats that become bytes: 64 values a block, each 32 in the order in which a thread of the kernel
//               finds its share of a's row (kernel/wgmma_quantize.gpu)
//     TF32      32 values a block, rounded to 10 bits behind the point
//     split     32 values a block as three rows of 32 bf16: x = p0 + p1 + p2 exactly; each row in
//               the order in which a thread of the kernel finds its share of a's row
//               (kernel/wgmma_split.gpu): four neighbours are two pairs, eight places apart
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/lower/wgmma.h"

enum { PIECE = 32 }; // values of a block of floats

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// To the nearest float whose last bits are 0; what would become infinite is cut off instead.
static float shorten(float x, uint32_t last_bits)
{
    const uint32_t bits = bits_of(x), odd = bits & (last_bits + 1) ? 1 : 0; // ties go to even
    const float near = float_of((bits + (last_bits >> 1) + odd) & ~last_bits);
    if (!isfinite(x))
        return x;
    return isfinite(near) ? near : float_of(bits & ~last_bits);
}

// Where value k of a block of split floats lies in each of its rows.
static int place_in_piece(int k)
{
    const int thread = k / 8, step = k % 8 / 4, pair = k % 4 / 2;
    return 16 * step + 8 * pair + 2 * thread + k % 2;
}

static void pack_split(uint16_t *restrict to, const float *restrict from)
{
    for (int k = 0; k < PIECE; k++) {
        float rest = from[k];
        for (int piece = 0; piece < GPU_WGMMA_PIECES; piece++) {
            const float part = shorten(rest, 0xffff);
            to[piece * PIECE + place_in_piece(k)] = (uint16_t)(bits_of(part) >> 16);
            rest = isfinite(part) ? rest - part : 0;
        }
    }
}

// Bytes that meet floats that become bytes (kernel/wgmma_quantize.gpu): a thread has eight neighbours of
// each 32, four of which are its share of the first half of an instruction's depth.
static void pack_quantized(unsigned char *row, int64_t bytes)
{
    unsigned char turned[PIECE];
    for (int64_t i = 0; i < bytes; i += PIECE) {
        for (int k = 0; k < PIECE; k++)
            turned[k % 8 / 4 * 16 + k / 8 * 4 + k % 4] = row[i + k];
        memcpy(row + i, turned, PIECE);
    }
}

// Values a step apart, one behind the other.
static void take_apart(char *to, const char *from, int64_t count, int64_t step, size_t size)
{
    if (step == 1)
        memcpy(to, from, (size_t)count * size);
    else if (size == 1)
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * step];
    else if (size == sizeof(uint16_t))
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 2 * i, from + 2 * i * step, 2);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i, from + 4 * i * step, 4);
}

// All taps of one column, of values of 1, 2 or 4 bytes.
static void gather(const struct gpu_wgmma_product *g, const struct mgx_tensor *weights, int64_t n,
                   char *to)
{
    const struct mgx_shape *s = &weights->shape;
    const bool dot = gpu_product_is_dot(&g->p);
    const int64_t channels = s->lens[dot ? s->rank - 2 : 1];
    const int64_t column = s->strides[dot ? s->rank - 1 : 0];
    const int64_t channel = s->strides[dot ? s->rank - 2 : 1];
    const int64_t down = g->fold.bytes ? g->fold.down : 1;
    const int64_t across = g->fold.bytes ? g->fold.across : 1;
    const int64_t size = (int64_t)mgx_type_size(s->type);
    assert(size == 1 || size == 2 || size == 4);
    const int64_t first =
        dot ? 0 : n / (g->p.columns / g->p.batches) % g->groups_of_unit * channels;
    memset(to, 0, (size_t)(g->blocks * g->block * size));
    const int64_t height = dot ? 1 : gpu_wgmma_len(s, GPU_WGMMA_HEIGHT);
    const int64_t width = dot ? 1 : gpu_wgmma_len(s, GPU_WGMMA_WIDTH);
    const int64_t taps = dot ? 1 : gpu_wgmma_len(s, GPU_WGMMA_DEPTH) * height * width;
    for (int64_t i = 0; i < taps; i++) {
        const int64_t w = i % width, h = i / width % height, d = i / width / height;
        const int64_t tap = dot ? 0
                                : d * gpu_wgmma_stride(s, GPU_WGMMA_DEPTH) +
                                      h * gpu_wgmma_stride(s, GPU_WGMMA_HEIGHT) +
                                      w * gpu_wgmma_stride(s, GPU_WGMMA_WIDTH);
        const int64_t row = d * g->taps[GPU_WGMMA_HEIGHT] + h / down;
        const int64_t place = row * g->row_depth + w / across * g->tap_depth +
                              (h % down * across + w % across) * channels + first;
        take_apart(to + place * size, (const char *)weights->data + (n * column + tap) * size,
                   channels, channel, (size_t)size);
    }
}

size_t gpu_wgmma_packed_bytes(const struct gpu_wgmma_product *g)
{
    assert(g->p.columns > 0 && g->blocks > 0);
    return (size_t)g->p.columns * (size_t)g->blocks * (size_t)gpu_wgmma_b_bytes(g->units);
}

// The column that is packed as number n.
static int64_t column_at(const struct gpu_wgmma_product *g, int64_t n)
{
    return g->quads ? n / 16 * 16 + n % 8 / 2 * 4 + n % 16 / 8 * 2 + n % 2 : n;
}

struct packing {
    const struct gpu_wgmma_product *g;
    const struct mgx_tensor *weights;
    char *to;
    int tasks;
    atomic_bool failed;
};

// Columns are independent of each other.
static void pack_columns(void *user, int task, int thread)
{
    struct packing *p = user;
    const struct gpu_wgmma_product *g = p->g;
    const int64_t bytes = (int64_t)gpu_wgmma_packed_bytes(g) / g->p.columns;
    const bool split = g->units == GPU_WGMMA_SPLIT;
    float *row = split ? malloc((size_t)(g->blocks * PIECE) * sizeof *row) : NULL;
    (void)thread;
    if (split && !row) {
        atomic_store(&p->failed, true);
        return;
    }
    for (int64_t n = mgx_part_begin(g->p.columns, task, p->tasks),
                 end = mgx_part_begin(g->p.columns, task + 1, p->tasks);
         n < end; n++) {
        char *to = p->to + n * bytes;
        gather(g, p->weights, column_at(g, n), split ? (char *)row : to);
        for (int i = 0; split && i < g->blocks; i++)
            pack_split((uint16_t *)to + i * GPU_WGMMA_PIECES * PIECE, row + i * PIECE);
        if (g->units == GPU_WGMMA_QUANTIZED)
            pack_quantized((unsigned char *)to, bytes);
        for (int i = 0; g->units == GPU_WGMMA_TF32 && i < g->blocks * PIECE; i++)
            ((float *)to)[i] = shorten(((float *)to)[i], 0x1fff);
    }
    free(row);
}

bool gpu_wgmma_pack(const struct mgx_plan_machine *machine, const struct gpu_wgmma_product *g,
                    const struct mgx_tensor *weights, void *to)
{
    enum { SMALL = 64 << 10 };
    const bool alone = gpu_wgmma_packed_bytes(g) < SMALL;
    struct packing p = {
        .g = g, .weights = weights, .to = to, .tasks = alone ? 1 : 4 * machine->threads};
    atomic_init(&p.failed, false);
    mgx_plan_spread(machine, p.tasks, pack_columns, &p);
    return !atomic_load(&p.failed);
}

struct gpu_tensor_map gpu_wgmma_map(const struct gpu_wgmma_product *g, void *address, int columns)
{
    assert(columns > 0 && columns <= 256);
    const bool split = g->units == GPU_WGMMA_SPLIT;
    const uint64_t bytes = (uint64_t)g->blocks * (uint64_t)gpu_wgmma_b_bytes(g->units);
    const uint64_t size = g->units == GPU_WGMMA_TF32 ? 4 : gpu_wgmma_is_narrow(g->units) ? 1 : 2;
    return (struct gpu_tensor_map){.address = address,
                                   .type = split                             ? GPU_MAP_BF16
                                           : g->units == GPU_WGMMA_QUANTIZED ? GPU_MAP_BYTE
                                                                             : g->map.type,
                                   .narrow = gpu_wgmma_b_bytes(g->units) == 64 || split,
                                   .rank = 2,
                                   .lens = {bytes / size, (uint64_t)g->p.columns},
                                   .strides = {size, bytes},
                                   .box = (unsigned)columns};
}

int gpu_wgmma_args(const struct gpu_wgmma_product *g, const void *map_a, const void *map_b,
                   void *const *a, void *const *b, void *const *out, struct gpu_arg *list)
{
    int count = 0;
    list[count++] = (struct gpu_arg){map_a, GPU_TENSOR_MAP_BYTES, false};
    list[count++] = (struct gpu_arg){map_b, GPU_TENSOR_MAP_BYTES, false};
    list[count++] = (struct gpu_arg){out, sizeof *out, true};
    if (g->units != GPU_WGMMA_SPLIT)
        return count;
    list[count++] = (struct gpu_arg){a, sizeof *a, true};
    list[count++] = (struct gpu_arg){b, sizeof *b, true};
    return count;
}
