// SPDX-License-Identifier: MIT
// The choice of a tile by a model of the card's time, in microseconds on an H200:
//
//     time = waves (start + depth / 64 max(latency, units, cache)) + split + leaving
//
// A block of 64 along the depth costs at least the latency of its barriers and instructions, less
// when several make a stage; the matrix units' time and that of the level-2 cache grow with the
// tile, and blocks of threads on one multiprocessor share both. Split tiles have fewer steps each
// and must add up. Constants were measured with kernels of this kind; the memory's own time is the
// same for every tile and left out.
#include "targets/gpu/lower/wgmma.h"

#define US_START 1.7            // launch, first loads, results
#define US_UNITS (1.0 / 44000)  // of one row by one column of a 64-deep block
#define US_CACHE (1.0 / 110000) // of one byte from level 2 to one multiprocessor
#define US_LEAVE (1.0 / 30000)  // of one byte of results
#define US_SPLIT 0.45

static const struct gpu_wgmma_tile shapes[] = {
    {64, 32, 1},  {64, 64, 1},   {64, 96, 1},   {64, 128, 1},  {128, 64, 2},
    {128, 96, 2}, {128, 128, 2}, {192, 128, 3}, {128, 192, 2}, {256, 128, 2},
    {64, 192, 1}, {256, 64, 2},  {64, 256, 1},  {192, 64, 3},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, MAX_STAGES = 8, REGISTERS = 65536 };
enum { SHARED_OF_MULTIPROCESSOR = 228 << 10, RESERVED = 1 << 10 };

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

size_t gpu_wgmma_room(const struct gpu_wgmma_tile *t)
{
    const int part = t->columns % 64 ? 32 : 64;
    return t->split > 1 ? 0 : (size_t)t->groups * 4 * 16 * (size_t)(part + 8) * sizeof(float);
}

static size_t stage_bytes(const struct gpu_wgmma_tile *t)
{
    return (size_t)(t->rows + t->columns) * 128 * (size_t)t->deep;
}

size_t gpu_wgmma_shared(const struct gpu_wgmma_tile *t)
{
    return 1024 + (size_t)t->stages * (stage_bytes(t) + 16) + gpu_wgmma_room(t);
}

// Registers of a thread: the sums, and what walks the ring and the results.
static int most_by_registers(const struct gpu_wgmma_tile *t)
{
    const int threads = t->groups * 128 + 32;
    const int sums = t->rows / t->groups / 64 * t->columns / 2;
    const int each = (sums + 64 + 7) / 8 * 8;
    return REGISTERS / (threads * each);
}

// As many stages as there is room for, and use.
static bool fit_stages(struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    const int steps = (int)over(over(size->blocks, t->deep), t->split);
    const size_t room = SHARED_OF_MULTIPROCESSOR / (size_t)t->per_multiprocessor - RESERVED;
    const size_t most = room < size->shared_bytes ? room : size->shared_bytes;
    const int wanted = steps < 2 ? 2 : steps < MAX_STAGES ? steps : MAX_STAGES;
    for (t->stages = wanted; t->stages > 1; t->stages--)
        if (gpu_wgmma_shared(t) <= most)
            break;
    const size_t sums = (size_t)t->rows * (size_t)(t->columns + 4) * sizeof(float);
    return t->stages > 1 && gpu_wgmma_shared(t) <= most &&
           (t->split == 1 || sums <= (size_t)t->stages * stage_bytes(t));
}

static double time_of(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    static const double latency[] = {0, 0.206, 0.15, 0.14, 0.13};
    const int64_t tiles = over(size->rows, t->rows) * over(size->columns, t->columns);
    const int64_t blocks = tiles * t->split;
    const int64_t at_once = (int64_t)size->multiprocessors * t->per_multiprocessor;
    const int64_t waves = over(blocks, at_once);
    const int64_t beside = over(blocks < at_once ? blocks : at_once, size->multiprocessors);
    const double units = (double)beside * t->rows * t->columns * US_UNITS;
    const double cache = (double)beside * (t->rows + t->columns) * 128 * US_CACHE;
    double each = latency[t->deep];
    each = units > each ? units : each;
    each = cache > each ? cache : each;
    if (t->stages < 3 && beside == 1)
        each += 0.1; // nothing is under way while a stage is used up
    const double depth = (double)over(size->blocks, t->split);
    const double leave = (double)beside * t->rows * t->columns * size->result_bytes * US_LEAVE;
    return (double)waves * (US_START + depth * each + leave) + (t->split > 1 ? US_SPLIT : 0);
}

static bool is_allowed(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    const int64_t steps = over(size->blocks, t->deep);
    return steps >= t->split && (!size->image || size->blocks % t->deep == 0) &&
           (t->columns == 32 || t->columns < 2 * size->columns) &&
           (t->deep == 1 || t->deep <= size->blocks) && t->rows % (t->split * 4) == 0;
}

struct ranked {
    struct gpu_wgmma_tile tile;
    double time;
};

// Keeps the `most` fastest in order; the one with fewer blocks on a multiprocessor wins a tie.
static int insert(struct ranked *list, int count, int most, const struct gpu_wgmma_tile *t,
                  double time)
{
    int at = count;
    while (at > 0 && time < list[at - 1].time * 0.999)
        at--;
    if (at == most)
        return count;
    const int last = count < most ? count : most - 1;
    for (int i = last; i > at; i--)
        list[i] = list[i - 1];
    list[at] = (struct ranked){*t, time};
    return last + 1;
}

int gpu_wgmma_rank(const struct gpu_wgmma_size *size, struct gpu_wgmma_tile *tiles, int most)
{
    struct ranked list[GPU_WGMMA_TILES];
    int count = 0;
    most = most < GPU_WGMMA_TILES ? most : GPU_WGMMA_TILES;
    for (int i = 0; i < SHAPES; i++)
        for (int deep = 1; deep <= 4; deep *= 2)
            for (int split = 1; split <= 8; split *= 2)
                for (int per = 1; per <= 4; per++) {
                    struct gpu_wgmma_tile t = shapes[i];
                    t.deep = deep;
                    t.split = split;
                    t.per_multiprocessor = per;
                    if (is_allowed(&t, size) && per <= most_by_registers(&t) &&
                        fit_stages(&t, size))
                        count = insert(list, count, most, &t, time_of(&t, size));
                }
    for (int i = 0; i < count; i++)
        tiles[i] = list[i].tile;
    return count;
}

void gpu_wgmma_name(const struct gpu_wgmma_tile *t, struct mgx_str *out)
{
    mgx_str_printf(out, "%dx%d g%d d%d s%d n%d p%d", t->rows, t->columns, t->groups, t->deep,
                   t->split, t->stages, t->per_multiprocessor);
}
