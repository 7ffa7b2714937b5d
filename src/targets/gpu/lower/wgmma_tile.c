// SPDX-License-Identifier: MIT
// The choice of a tile by a model of the card's time, in microseconds on an H200:
//
//     start + waves (depth / 64 max(latency, units, cache) + leaving) + between waves + splitting
//
// Where blocks stay there is nothing between waves, and of what leaves a part is hidden behind the
// next tile's products.
//
// A block of 64 along the depth costs at least the latency of its barriers and instructions, and
// more where the ring is shorter than what is under way; the matrix units' time and that of the
// level-2 cache grow with the tile, and blocks of threads on one multiprocessor share both. A last
// wave that is not full counts in part. Split tiles have fewer steps each and must add up.
//
// A lone warpgroup does not fill the units. Split floats: a block's sums are a chain of twelve
// instructions that ends before the next begins, longer where columns are more.
//
// The constants are fits to measured tiles: 3,122 of 80 products of 16 bits (ResNet50, BERT, ViT and
// GPT-2 at batch 1, 16 and 32; what the model picks is 4 % slower than the best of them in geometric
// mean), 1,200 of 60 products of floats in TF32 (9 %) and as many of split ones (8 %). What `stay`
// holds fits those of 16 bits.
#include <assert.h>
#include <math.h>

#include "targets/gpu/lower/wgmma.h"

// 16 bits and bytes differ in a block's latencies and in how many rows by columns of one the units
// take.
#define LIKE_16_BITS(one, two, four, rate, turns)                                                  \
    {                                                                                              \
        .start = 1.114, .latency = {one, two, four}, .units = 1.0 / rate, .cache = 1.0 / 82300,    \
        .leave = 1.0 / 26900, .wave = 1.25, .starved = 0.132, .split = 2.03, .value = 1.0 / 1896,  \
        .whole = 0.46, .turn = turns                                                               \
    }

static const struct cost {
    double start;        // launch, first loads
    double latency[3];   // of a block where a stage has 1, 2, 4 of them
    double column;       // of a block, more for each column
    double not_ahead;    // of a block that is taken apart after the one before
    double units;        // of one row by one column of a block
    double alone;        // share that a lone warpgroup takes longer
    double cache;        // of one byte from level 2 to one multiprocessor
    double leave;        // of one byte of results
    double wave;         // from one wave to the next
    double starved;      // of a block, where too little is under way
    double split, value; // of a cluster that adds up, and of one sum from another block
    double whole;        // how much of a last wave counts as a whole one
    double turn;         // share that multiplying by turns takes longer
} costs[] = {
    [GPU_WGMMA_NARROW] = LIKE_16_BITS(0.057, 0.058, 0.065, 31720, 0.15),
    [GPU_WGMMA_TF32] = {1.22,
                        {0.121, 0.208, 0.213},
                        0,
                        0,
                        1.0 / 36750,
                        0.14,
                        1.0 / 66730,
                        1.0 / 22230,
                        1.37,
                        0.058,
                        1.59,
                        1.0 / 1278,
                        0.47,
                        0.15},
    [GPU_WGMMA_SPLIT] = {3.09,
                         {0.271},
                         0.00096,
                         0.011,
                         1.0 / 12450,
                         0.13,
                         1.0 / 52550,
                         1.0 / 96000,
                         3.06,
                         0.1,
                         0.75,
                         1.0 / 1107,
                         0.33,
                         0.15},
    // The units take bytes twice as fast, and a block has twice as many: those of 128 bytes cost what
    // 16 bits do. What is said of 64 bytes is reckoned from that, not fitted.
    [GPU_WGMMA_BYTES] = LIKE_16_BITS(0.057, 0.058, 0.065, 31720, 0.15),
    [GPU_WGMMA_BYTES_64] = LIKE_16_BITS(0.045, 0.045, 0.05, 63440, 0.15),
    // Not fitted either: a block's sums are added to the others' before the warpgroup's next one,
    // which by turns nobody hides.
    [GPU_WGMMA_FP8] = LIKE_16_BITS(0.09, 0.09, 0.1, 28000, 0.5),
    [GPU_WGMMA_FP8_64] = LIKE_16_BITS(0.075, 0.075, 0.08, 50000, 0.5),
    // A block takes as long as making its bytes does, if nothing else takes longer. Reckoned, not fitted.
    [GPU_WGMMA_QUANTIZED] = LIKE_16_BITS(0.09, 0, 0, 57000, 0.15),
};

// Where blocks stay, as factors of the above but for the last one.
static const struct stay {
    double cache, leave; // the cache serves better, results of all blocks leave at once
    double shown;        // share of what leaves that no products hide
    double alone;        // share that a lone warpgroup takes longer besides, which hides nothing
    double tile;         // microseconds of a tile
} stay = {0.9, 1.3, 0.78, 0.1, 0.1};

static const double in_pairs = 0.6; // of the time that leaving takes else

static const struct gpu_wgmma_tile shapes[] = {
    {64, 32, 1},   {64, 64, 1},   {64, 96, 1},   {64, 128, 1},  {128, 64, 2},
    {128, 96, 2},  {128, 128, 2}, {192, 128, 3}, {128, 192, 2}, {256, 128, 2},
    {64, 192, 1},  {256, 64, 2},  {64, 256, 1},  {192, 64, 3},  {192, 96, 3},
    {192, 192, 3}, {128, 32, 1},  {128, 32, 2},  {256, 32, 2},
};

enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    MAX_STAGES = 8,
    REGISTERS = 65536,
    MOST_SUMS = 192
};
enum { SHARED_OF_MULTIPROCESSOR = 228 << 10, RESERVED = 1 << 10 };

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

size_t gpu_wgmma_room(const struct gpu_wgmma_tile *t)
{
    return t->split > 1 ? 0 : (size_t)t->groups * 4 * 16 * (size_t)(t->part + 8) * sizeof(float);
}

static size_t stage_bytes(const struct gpu_wgmma_tile *t)
{
    const int row =
        t->rows * gpu_wgmma_a_bytes(t->units) + t->columns * gpu_wgmma_b_bytes(t->units);
    return (size_t)row * (size_t)t->deep;
}

// Of shared memory, those through which results pass included.
static size_t shared_bytes(const struct gpu_wgmma_tile *t)
{
    return 1024 + (size_t)t->stages * (stage_bytes(t) + 16) + gpu_wgmma_room(t);
}

// Registers of a thread: the sums, and what walks the ring and the results.
static int most_by_registers(const struct gpu_wgmma_tile *t)
{
    const int each = (gpu_wgmma_sums(t) + 64 + 7) / 8 * 8;
    return gpu_wgmma_lends(t) ? 1 : REGISTERS / ((t->groups * 128 + 32) * each);
}

// Split floats: two sums of everything, and a's pieces. A quarter of the multiprocessor has a
// quarter of the registers; several warpgroups borrow from the producer's.
static bool fits_split(const struct gpu_wgmma_tile *t)
{
    const int each = t->columns + (gpu_wgmma_ahead(t) ? 48 : 24) + 28;
    const int warps = (int)over(t->per_multiprocessor * (t->groups * 4 + 1), 4); // of a quarter
    const int most = t->groups == 1 ? REGISTERS / 4 / 32 / warps : t->groups == 2 ? 232 : 160;
    return t->rows == 64 * t->groups && t->deep == 1 && each <= most &&
           (t->groups == 1 || t->per_multiprocessor == 1);
}

// The units keep few digits of a sum of fp8: no more than 128 values of it. Registers are those of a
// block's sums and of all others', and what walks the ring.
static bool fits_fp8(const struct gpu_wgmma_tile *t)
{
    const int parts = gpu_wgmma_parts(t);
    const int most = t->groups == 3 ? parts > 1 ? 144 : 96 : gpu_wgmma_lends(t) ? 192 : 128;
    return t->deep * gpu_wgmma_a_bytes(t->units) <= 128 && gpu_wgmma_sums(t) <= most &&
           t->per_multiprocessor <= most_by_registers(t);
}

int64_t gpu_wgmma_tiles(const struct gpu_wgmma_tile *t, int64_t rows, int64_t columns, int64_t unit)
{
    assert(unit > 0);
    return over(rows, t->rows) * over(columns, unit) * over(unit, t->columns);
}

static int64_t tiles_of(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    return gpu_wgmma_tiles(t, size->rows, size->columns, size->unit);
}

// As many stages as there is room for when `part` columns leave together, and use.
static bool fit_part(struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size, int part)
{
    const int more = t->stays ? MAX_STAGES : 1; // the ring goes on into the next tile
    const int steps = (int)over(over(size->blocks, t->deep), t->split) * more;
    const size_t room = SHARED_OF_MULTIPROCESSOR / (size_t)t->per_multiprocessor - RESERVED;
    const size_t most = room < size->shared_bytes ? room : size->shared_bytes;
    const int wanted = steps < 2 ? 2 : steps < MAX_STAGES ? steps : MAX_STAGES;
    t->part = part;
    for (t->stages = wanted; t->stages > 1; t->stages--)
        if (shared_bytes(t) <= most)
            break;
    const size_t sums = (size_t)t->rows * (size_t)(t->columns + 4) * sizeof(float);
    return t->stages > 1 && shared_bytes(t) <= most &&
           (t->split == 1 || sums <= (size_t)t->stages * stage_bytes(t));
}

// Whole lines of 128 bytes leave, or half of them where that makes room for one stage more.
static bool fit_stages(struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    struct gpu_wgmma_tile half = *t;
    const bool fits_half = fit_part(&half, size, 32);
    const bool fits = t->columns % 64 == 0 && fit_part(t, size, 64);
    if (fits_half && (!fits || (half.stages > t->stages && t->stages < 4)))
        *t = half;
    return fits || fits_half;
}

// Of a stage, as the copy engine brings them: a row of 64 takes it as long as one of 128.
static double brought_bytes(const struct gpu_wgmma_tile *t)
{
    return (double)stage_bytes(t) * (gpu_wgmma_is_short(t->units) ? 2 : 1);
}

// Of one block of the depth.
static double step_time(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size,
                        double beside)
{
    const struct cost *c = &costs[t->units];
    const double alone = c->alone + (t->stays ? stay.alone : 0);
    const double units =
        beside * t->rows * t->columns * c->units * (beside * t->groups < 2 ? 1 + alone : 1);
    const double cache =
        beside * brought_bytes(t) / t->deep * c->cache * (t->stays ? stay.cache : 1);
    const int64_t steps = over(over(size->blocks, t->deep), t->split) * t->deep;
    double time = c->latency[t->deep / 2] + t->columns * c->column;
    if (t->units == GPU_WGMMA_SPLIT && !gpu_wgmma_ahead(t))
        time += c->not_ahead;
    time = units > time ? units : time;
    time = cache > time ? cache : time;
    const double wanted = steps < 4 ? (double)steps : 4;
    return time + (t->stages * t->deep * beside < wanted ? c->starved : 0);
}

static double time_of(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    const struct cost *c = &costs[t->units];
    const int64_t tiles = tiles_of(t, size);
    const double blocks = (double)(tiles * t->split);
    const int64_t at_once = (int64_t)size->multiprocessors * t->per_multiprocessor;
    const double whole = (double)over(tiles * t->split, at_once);
    const double exact = blocks / (double)at_once;
    const double waves = whole > 1 ? c->whole * whole + (1 - c->whole) * exact : 1;
    const double resident = exact < 1 ? blocks : (double)at_once;
    const double beside = (double)over((int64_t)resident, size->multiprocessors);
    const double depth = (double)over(size->blocks, t->split) * step_time(t, size, beside);
    const double sums = (double)t->rows * t->columns;
    const double leave = beside * sums * size->result_bytes * c->leave / t->split *
                         (size->pairs && t->split == 1 ? in_pairs : 1);
    const double split = c->split + sums * (t->split - 1) / t->split * c->value;
    if (t->turns) {
        const double all = leave * stay.leave, mine = depth * (1 + c->turn) + stay.tile;
        return c->start + waves * (mine > all ? mine : all) + all;
    }
    if (t->stays) {
        const double all = leave * stay.leave;
        const double shown = beside * t->groups < 2 ? all : all * stay.shown;
        const double each = depth + shown + stay.tile > all ? depth + shown + stay.tile : all;
        return c->start + waves * each + all - shown;
    }
    return c->start + waves * (depth + leave) + (whole - 1) * c->wave + (t->split > 1 ? split : 0);
}

static bool is_allowed(const struct gpu_wgmma_tile *t, const struct gpu_wgmma_size *size)
{
    const int64_t steps = over(size->blocks, t->deep);
    const bool one_wave =
        tiles_of(t, size) <= (int64_t)size->multiprocessors * t->per_multiprocessor;
    if (t->stays && (t->split > 1 || one_wave))
        return false;
    if (t->units == GPU_WGMMA_QUANTIZED && (t->rows != 64 * t->groups || t->deep > 1))
        return false;
    if (t->turns && (!t->stays || t->groups != 2 || gpu_wgmma_by_registers(t->units) ||
                     gpu_wgmma_sums(t) > MOST_SUMS || !gpu_wgmma_lends(t)))
        return false;
    return steps >= t->split && (!size->image || size->blocks % t->deep == 0) &&
           (t->columns == 32 || t->columns < 2 * size->unit) &&
           (t->deep == 1 || t->deep <= size->blocks) && t->rows % (t->split * 4) == 0 &&
           (t->units == GPU_WGMMA_SPLIT  ? fits_split(t)
            : gpu_wgmma_is_fp8(t->units) ? fits_fp8(t)
                                         : t->per_multiprocessor <= most_by_registers(t));
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

// One tile, as the list's entry if it is fast enough.
static int consider(struct ranked *list, int count, int most, struct gpu_wgmma_tile t,
                    const struct gpu_wgmma_size *size)
{
    double time = 1;
    if (!is_allowed(&t, size) || !fit_stages(&t, size))
        return count;
    // Of two that are nearly equal the larger moves fewer bytes; of bytes one that is a little
    // larger does already.
    const double larger = log2(t.rows * t.columns / (64.0 * 32));
    time *= pow(0.995, gpu_wgmma_is_narrow(t.units) ? larger : ceil(larger));
    return insert(list, count, most, &t, time * time_of(&t, size));
}

int gpu_wgmma_rank(const struct gpu_wgmma_size *size, struct gpu_wgmma_tile *tiles, int most)
{
    assert(size->rows > 0 && size->blocks > 0 && most > 0);
    struct ranked list[GPU_WGMMA_TILES];
    int count = 0;
    most = most < GPU_WGMMA_TILES ? most : GPU_WGMMA_TILES;
    for (int i = 0; i < SHAPES; i++)
        for (int deep = 1; deep <= 4; deep *= 2)
            for (int split = 1; split <= 8; split *= 2)
                for (int per = 1; per <= 4; per++)
                    for (int way = 0; way < 3; way++) {
                        struct gpu_wgmma_tile t = shapes[i];
                        t.units = size->units;
                        t.deep = deep;
                        t.split = split;
                        t.per_multiprocessor = per;
                        t.stays = way > 0;
                        t.turns = way > 1;
                        count = consider(list, count, most, t, size);
                    }
    for (int i = 0; i < count; i++)
        tiles[i] = list[i].tile;
    return count;
}

double gpu_wgmma_microseconds(const struct gpu_wgmma_size *size)
{
    struct gpu_wgmma_tile best;
    return gpu_wgmma_rank(size, &best, 1) ? time_of(&best, size) : 0;
}

void gpu_wgmma_name(const struct gpu_wgmma_tile *t, struct mgx_str *out)
{
    mgx_str_printf(out, "%dx%d g%d d%d s%d n%d p%d%s", t->rows, t->columns, t->groups, t->deep,
                   t->split, t->stages, t->per_multiprocessor,
                   t->turns   ? " turns"
                   : t->stays ? " stays"
                              : "");
}

struct gpu_launch gpu_wgmma_launch(const struct gpu_wgmma_product *g,
                                   const struct gpu_wgmma_tile *t, int multiprocessors)
{
    assert(multiprocessors > 0 && t->split > 0 && t->per_multiprocessor > 0);
    const int64_t tiles = gpu_wgmma_tiles(t, g->rows, g->p.columns, g->unit);
    const int64_t at_once = (int64_t)multiprocessors * t->per_multiprocessor;
    const int64_t blocks = t->stays && tiles > at_once ? at_once : tiles * t->split;
    return (struct gpu_launch){.grid = {(unsigned)blocks, 1, 1},
                               .block = {(unsigned)gpu_wgmma_threads(t), 1, 1},
                               .shared = shared_bytes(t),
                               .cluster = (unsigned)t->split};
}
