// SPDX-License-Identifier: MIT
// The constant operand of the Hopper kernel, packed when a plan is complete: columns x depth, the
// taps of a column where the left operand has their channels, every tap filled up to whole blocks.
//
//     16 bits   64 values a block, as they are
//     TF32      32 values a block, rounded to 10 bits behind the point
//     split     32 values a block as three rows of 32 bf16: x = p0 + p1 + p2 exactly; each row in
//               the order in which a thread of the kernel finds its share of a's row
//               (kernel/wgmma_split.gpu): four neighbours are two pairs, eight places apart
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void pack_split(uint16_t *to, const float *from)
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

// Rows of taps to columns x depth, of values of any size.
static void gather(const struct gpu_wgmma_product *g, const struct mgx_tensor *weights, char *to)
{
    const struct mgx_shape *s = &weights->shape;
    const bool dot = g->p.ins->op == &mgx_op_dot;
    const int64_t channels = s->lens[dot ? s->rank - 2 : 1], depth = (int64_t)g->blocks * g->block;
    const int64_t column = s->strides[dot ? s->rank - 1 : 0];
    const int64_t channel = s->strides[dot ? s->rank - 2 : 1];
    const int64_t fold = g->fold.bytes ? g->fold.fold : 1;
    const size_t size = mgx_type_size(s->type);
    memset(to, 0, (size_t)(g->p.columns * depth) * size);
    for (int64_t n = 0; n < g->p.columns; n++)
        for (int64_t h = 0; h < (dot ? 1 : s->lens[2]); h++)
            for (int64_t w = 0; w < (dot ? 1 : s->lens[3]); w++) {
                const int64_t tap = dot ? 0 : h * s->strides[2] + w * s->strides[3];
                const char *at = (const char *)weights->data + (n * column + tap) * (int64_t)size;
                char *row = to + (n * depth + h / fold * g->row_depth + w / fold * g->tap_depth +
                                  (h % fold * fold + w % fold) * channels) *
                                     (int64_t)size;
                for (int64_t i = 0; i < channels; i++)
                    memcpy(row + i * (int64_t)size, at + i * channel * (int64_t)size, size);
            }
}

size_t gpu_wgmma_packed_bytes(const struct gpu_wgmma_product *g)
{
    return (size_t)g->p.columns * (size_t)g->blocks * (size_t)gpu_wgmma_b_bytes(g->units);
}

bool gpu_wgmma_pack(const struct gpu_wgmma_product *g, const struct mgx_tensor *weights, void *to)
{
    const int64_t blocks = g->p.columns * g->blocks;
    if (g->units != GPU_WGMMA_SPLIT) {
        gather(g, weights, to);
        for (int64_t i = 0; g->units == GPU_WGMMA_TF32 && i < blocks * PIECE; i++)
            ((float *)to)[i] = shorten(((float *)to)[i], 0x1fff);
        return true;
    }
    float *rows = malloc((size_t)(blocks * PIECE) * sizeof *rows);
    if (!rows)
        return false;
    gather(g, weights, (char *)rows);
    for (int64_t i = 0; i < blocks; i++)
        pack_split((uint16_t *)to + i * GPU_WGMMA_PIECES * PIECE, rows + i * PIECE);
    free(rows);
    return true;
}

struct gpu_tensor_map gpu_wgmma_map(const struct gpu_wgmma_product *g, void *address, int columns)
{
    const bool split = g->units == GPU_WGMMA_SPLIT;
    const uint64_t bytes = (uint64_t)g->blocks * (uint64_t)gpu_wgmma_b_bytes(g->units);
    const uint64_t size = g->units == GPU_WGMMA_TF32 ? 4 : 2;
    return (struct gpu_tensor_map){.address = address,
                                   .type = split ? GPU_MAP_BF16 : g->map.type,
                                   .narrow = split,
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
