// SPDX-License-Identifier: MIT
// Body of the micro-kernels on Intel's tile registers (AMX), compiled once per type; see tile.h for
// the contract, and for the panels, which are those of the AVX-512 kernels: sixteen rows of a panel
// are a tile of B as they lie, sixteen rows of A wherever they lie are one of A.
//
//                          tmm6     tmm7       16 groups of depth x 16 columns each
//                        +--------+--------+
//      tmm4: 16 rows x   |  tmm0  |  tmm1  |   a step: 4 loads and 4 products of 16 x 16 x 16
//            16 groups   +--------+--------+   groups, 64 bytes of depth
//      tmm5              |  tmm2  |  tmm3  |
//                        +--------+--------+
//
// Reckoned from what Intel publishes, never measured: a product takes the unit 16 cycles, its
// result is there after 52, a load from L1 takes 8. So a step of four products is 64 cycles, of
// which loads hide 32 (16 x 16 x 64 bytes in 16 cycles are 1,024 products a cycle; AVX-512 has
// 128); up to 16 rows have two products a step, which wait for those before them: 52 cycles,
// whatever the rows. From some 8 rows on that is less than AVX-512 takes.
//
// Tiles are as high and as deep as divides evenly: R = rows / tiles, the last one begins so much
// earlier that it ends with the rows and makes some of them twice; P = groups / steps, and what
// does not divide is copied to tiles filled up with zeros. So there is one configuration for all
// steps of a call, none that reads behind a row or the last row, and as a rule one for all calls:
// it stays in the registers of the thread (struct mgx_tile_registers) as long as its R will do.
//
// Sums leave by way of L1. Those of floats: within a step the even values of the depth are summed,
// and the odd ones; both are added to each other, then to what there is (the manual's order). Each
// row has the same sums whatever tile it is in.
//
// The including file defines PRODUCT, the text of its instruction, and INTEGER where sums are
// integers.
#pragma once

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/kernel/tile/tile_pack.h"
#include "targets/cpu/kernel/vector/simd.h"

enum { ROWS = 32, HALF = 16, NV = 2, TILE_ROWS = 16, TILE_GROUPS = 16, LINE = 64 };

// --- instructions ---

// Both compilers leave these registers to assembly; memory is named because loads read it.
#define LOAD_TILE(tile, from, step)                                                                \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(step))                                             \
                     : "memory")
#define STORE_TILE(tile, to, row)                                                                  \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(row))         \
                     : "memory")
#define ZERO_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
#define MULTIPLY(c, a, b) __asm__ volatile(PRODUCT " %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

// As the instruction reads it.
struct configuration {
    _Alignas(LINE) uint8_t palette;
    uint8_t start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

_Static_assert(sizeof(struct configuration) == LINE, "a line");

// It takes about as long as a product, and clears all tiles: not where the registers have it.
static void configure(struct mgx_tile_registers *r, int rows, int groups)
{
    enum { C = 0, A = 4, B = 6, END = 8 };
    struct configuration c = {.palette = 1};
    assert(rows >= 1 && rows <= TILE_ROWS && groups >= 1 && groups <= TILE_GROUPS);
    if (r->rows == rows && r->groups == groups)
        return;
    for (int t = C; t < END; t++) {
        c.rows[t] = (uint8_t)(t < B ? rows : groups);
        c.bytes[t] = (uint16_t)(t < A || t >= B ? LINE : groups * (int)sizeof(float));
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c) : "memory");
    *r = (struct mgx_tile_registers){rows, groups};
}

// Registers that are configured cost every change of threads 8 KiB, and keep a core from sleeping
// deeply.
static void release(struct mgx_tile_registers *r)
{
    if (r->rows)
        __asm__ volatile("tilerelease" ::: "memory");
    *r = (struct mgx_tile_registers){0, 0};
}

// --- sums of up to two tiles of rows ---

struct block {
    const char *a[2];  // first rows of its tiles
    int64_t second;    // row of the sums where the second tile begins
    int rows, groups;  // of a tile: what is configured
    const void *first; // 16 values for each tile of columns that sums begin with; NULL: 0
    const char *ahead; // brought into L2 meanwhile, so many bytes a step
    int64_t ahead_step;
};

SIMD void multiply(int tiles, int nv, const char *a, const char *second, int64_t a_row,
                   const char *b, int64_t b_row)
{
    LOAD_TILE(6, b, b_row);
    LOAD_TILE(4, a, a_row);
    MULTIPLY(0, 4, 6);
    if (nv == 2) {
        LOAD_TILE(7, b + LINE, b_row);
        MULTIPLY(1, 4, 7);
    }
    if (tiles == 2) {
        LOAD_TILE(5, second, a_row);
        MULTIPLY(2, 5, 6);
        if (nv == 2)
            MULTIPLY(3, 5, 7);
    }
}

// The first `groups` of each row, and zeros.
SIMD void copy_rows(const char *from, int64_t row, int rows, int groups, char *to)
{
    for (int i = 0; i < rows; i++, from += row, to += LINE)
        vf_store((float *)(void *)to, vf_load_some((const float *)(const void *)from, groups));
}

// A step of fewer groups than the tiles have: zeros for the others on both sides, since what lies
// behind the panel's may be no number.
static __attribute__((noinline)) void multiply_rest(int tiles, int nv, const struct block *k,
                                                    const char *a, const char *second,
                                                    const struct mgx_tile_args *args, const char *b,
                                                    int groups)
{
    _Alignas(LINE) char rows[2][TILE_ROWS * LINE], panel[TILE_GROUPS * NV * LINE] = {0};
    copy_rows(a, args->a_row, k->rows, groups, rows[0]);
    if (tiles == 2)
        copy_rows(second, args->a_row, k->rows, groups, rows[1]);
    for (int g = 0; g < groups; g++)
        for (int v = 0; v < nv; v++)
            vf_store((float *)(void *)(panel + (g * NV + v) * LINE),
                     vf_load((const float *)(const void *)(b + g * args->b_row + v * LINE)));
    if (tiles == 2 && nv == 2)
        multiply(2, 2, rows[0], rows[1], LINE, panel, NV * LINE);
    else if (tiles == 2)
        multiply(2, 1, rows[0], rows[1], LINE, panel, NV * LINE);
    else if (nv == 2)
        multiply(1, 2, rows[0], NULL, LINE, panel, NV * LINE);
    else
        multiply(1, 1, rows[0], NULL, LINE, panel, NV * LINE);
}

SIMD void begin_sums(int tiles, int nv, const char *first)
{
    if (first) {
        LOAD_TILE(0, first, 0); // a stride of nothing: every row is the same
        if (nv == 2)
            LOAD_TILE(1, first + LINE, 0);
        if (tiles == 2)
            LOAD_TILE(2, first, 0);
        if (tiles == 2 && nv == 2)
            LOAD_TILE(3, first + LINE, 0);
        return;
    }
    ZERO_TILE(0);
    if (nv == 2)
        ZERO_TILE(1);
    if (tiles == 2)
        ZERO_TILE(2);
    if (tiles == 2 && nv == 2)
        ZERO_TILE(3);
}

SIMD void store_sums_of(int tiles, int nv, char *to, int64_t second)
{
    const int64_t row = nv * LINE;
    STORE_TILE(0, to, row);
    if (nv == 2)
        STORE_TILE(1, to + LINE, row);
    if (tiles == 2)
        STORE_TILE(2, to + second * row, row);
    if (tiles == 2 && nv == 2)
        STORE_TILE(3, to + second * row + LINE, row);
}

SIMD const char *fetch(const char *p, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch(p + at, 0, 2);
    return p + bytes;
}

// Sums of a block to `to`, rows of `nv` vectors.
SIMD void sum_tiles(int tiles, int nv, const struct mgx_tile_args *args, const struct block *k,
                    char *to)
{
    const char *b = args->b, *ahead = k->ahead;
    const int64_t step = k->groups * (int64_t)sizeof(float);
    begin_sums(tiles, nv, k->first);
    for (int64_t t = 0; t < args->tap_count; t++) {
        const char *a = k->a[0] + args->taps[t], *second = k->a[1] + args->taps[t];
        int64_t left = args->depth;
        for (; left >= k->groups; left -= k->groups) {
            ahead = fetch(ahead, k->ahead_step);
            multiply(tiles, nv, a, second, args->a_row, b, args->b_row);
            a += step;
            second += step;
            b += k->groups * args->b_row;
        }
        if (left > 0)
            multiply_rest(tiles, nv, k, a, second, args, b, (int)left);
        b += left * args->b_row;
    }
    store_sums_of(tiles, nv, to, k->second);
}

static __attribute__((noinline)) void sum_2x2(const struct mgx_tile_args *args,
                                              const struct block *k, char *to)
{
    sum_tiles(2, 2, args, k, to);
}

static __attribute__((noinline)) void sum_2x1(const struct mgx_tile_args *args,
                                              const struct block *k, char *to)
{
    sum_tiles(2, 1, args, k, to);
}

static __attribute__((noinline)) void sum_1x2(const struct mgx_tile_args *args,
                                              const struct block *k, char *to)
{
    sum_tiles(1, 2, args, k, to);
}

static __attribute__((noinline)) void sum_1x1(const struct mgx_tile_args *args,
                                              const struct block *k, char *to)
{
    sum_tiles(1, 1, args, k, to);
}

static void sum(int tiles, int nv, const struct mgx_tile_args *args, const struct block *k,
                char *to)
{
    if (tiles == 2)
        (nv == 2 ? sum_2x2 : sum_2x1)(args, k, to);
    else
        (nv == 2 ? sum_1x2 : sum_1x1)(args, k, to);
}

// --- how tiles are cut ---

// Rows of each of `count` tiles that together have `rows`: those that the registers have if they
// will do, else as few as possible.
static int tile_rows(const struct mgx_tile_registers *r, int64_t rows, int64_t count)
{
    const int64_t least = (rows + count - 1) / count;
    return r->rows >= least && r->rows <= rows ? r->rows : (int)least;
}

static int tile_groups(int64_t depth)
{
    const int64_t steps = (depth + TILE_GROUPS - 1) / TILE_GROUPS;
    return steps > 0 ? (int)((depth + steps - 1) / steps) : 1;
}

// --- tiles of tile.h ---

// Columns that bias, or what integers begin with, has in whole vectors.
SIMD const void *first_sums(int nv, const struct mgx_tile_args *args, float copy[NV * VL])
{
    if (INTEGER)
        return args->start;
    if (!args->bias || args->cols == nv * VL)
        return args->bias;
    for (int v = 0; v < nv; v++) {
        const int left = args->cols - v * VL;
        vf_store(copy + v * VL,
                 left > 0 ? vf_load_some(args->bias + v * VL, left < VL ? left : VL) : vf_zero());
    }
    return copy;
}

// What is added to sums.
enum added { NOTHING, FLOATS, BF16 };

// A vector of columns of a half, at most `n` of them.
struct column {
    const float *sums;
    const char *residual;
    char *to;
    int rows, n;
    int64_t sums_row;
};

SIMD vf added_at(enum added added, const char *from, int n)
{
#ifdef NARROWS
    if (added == BF16)
        return load_bf16((const uint16_t *)(const void *)from, n);
#endif
    (void)added;
    return vf_load_some((const float *)(const void *)from, n);
}

SIMD void store_end(bool narrow, char *to, vf x, int n)
{
#ifdef NARROWS
    if (narrow) {
        store_bf16((uint16_t *)(void *)to, x, n);
        return;
    }
#endif
    (void)narrow;
    vf_store_some((float *)(void *)to, x, n);
}

SIMD void end_column(enum added added, bool narrow, const struct mgx_tile_args *args,
                     const struct column *c, vf scale, vf bias)
{
    const vf low = vf_set(args->clamp ? args->low : -INFINITY),
             high = vf_set(args->clamp ? args->high : INFINITY);
    const char *residual = c->residual;
    char *to = c->to;
    for (int i = 0; i < c->rows; i++, to += args->c_row) {
        vf x = vf_load(c->sums + i * c->sums_row);
        if (INTEGER)
            x = vf_fma(vf_from_int(x), scale, bias);
        if (added != NOTHING) {
            x = vf_add(x, added_at(added, residual, c->n));
            residual += args->residual_row;
        }
        store_end(narrow, to, vf_min(high, vf_max(low, x)), c->n);
    }
}

// Integers that stay such.
static void copy_column(const struct mgx_tile_args *args, const struct column *c)
{
    for (int i = 0; i < c->rows; i++)
        vf_store_some((float *)(void *)(c->to + i * args->c_row),
                      vf_load(c->sums + i * c->sums_row), c->n);
}

static void end_any_column(const struct mgx_tile_args *args, const struct column *c, vf scale,
                           vf bias)
{
    const enum added added = !c->residual ? NOTHING : args->residual_bf16 ? BF16 : FLOATS;
    if (args->c_bf16 && added == NOTHING)
        end_column(NOTHING, true, args, c, scale, bias);
    else if (args->c_bf16 && added == BF16)
        end_column(BF16, true, args, c, scale, bias);
    else if (args->c_bf16)
        end_column(FLOATS, true, args, c, scale, bias);
    else if (added == NOTHING)
        end_column(NOTHING, false, args, c, scale, bias);
    else if (added == BF16)
        end_column(BF16, false, args, c, scale, bias);
    else
        end_column(FLOATS, false, args, c, scale, bias);
}

// Ends rows of sums as the arguments say.
static void end_rows(int rows, int nv, const struct mgx_tile_args *args, const float *sums)
{
    const int64_t size = args->c_bf16 ? 2 : sizeof(float),
                  residual_size = args->residual_bf16 ? 2 : sizeof(float);
    for (int j = 0; j < args->cols; j += VL)
        for (int h = 0; h < 2 && h * HALF < rows; h++) {
            const int n = args->cols - j < VL ? args->cols - j : VL;
            const struct column c = {
                .sums = sums + h * HALF * nv * VL + j,
                .residual = args->residual[0] ? args->residual[h] + j * residual_size : NULL,
                .to = args->c[h] + j * size,
                .rows = rows - h * HALF < HALF ? rows - h * HALF : HALF,
                .n = n,
                .sums_row = nv * VL,
            };
            if (INTEGER && !args->scale)
                copy_column(args, &c);
            else
                end_any_column(args, &c, INTEGER ? vf_load_some(args->scale + j, n) : vf_zero(),
                               INTEGER && args->bias ? vf_load_some(args->bias + j, n) : vf_zero());
        }
}

// One for panels of two vectors and of one. Up to 16 rows are one tile. More lie in two halves:
// those that follow each other are cut evenly.
static __attribute__((noinline, noclone)) void run_tile(int rows, int nv,
                                                        const struct mgx_tile_args *args)
{
    _Alignas(LINE) float sums[ROWS * NV * VL], copy[NV * VL];
    struct mgx_tile_registers own = {0, 0}, *r = args->registers ? args->registers : &own;
    const int tiles = rows > TILE_ROWS ? 2 : 1;
    const bool together = args->a[1] == args->a[0] + HALF * args->a_row;
    const int high = tiles == 2 && !together ? HALF : tile_rows(r, rows, tiles),
              groups = tile_groups(args->depth);
    assert(args->cols >= 1 && args->cols <= nv * VL && args->b_row == nv * LINE);
    assert(together || tiles == 1 || rows == ROWS);
    const struct block k = {
        .a = {args->a[0],
              tiles == 1 || !together ? args->a[1] : args->a[0] + (rows - high) * args->a_row},
        .second = rows - high,
        .rows = high,
        .groups = groups,
        .first = first_sums(nv, args, copy),
        .ahead = args->ahead,
        .ahead_step = args->ahead_step * groups / 4,
    };
    configure(r, high, groups);
    sum(tiles, nv, args, &k, (char *)sums);
    end_rows(rows, nv, args, sums);
    if (r == &own)
        release(r);
}

#define TILE(count)                                                                                \
    static void wide_##count(const struct mgx_tile_args *args)                                     \
    {                                                                                              \
        run_tile(count, NV, args);                                                                 \
    }                                                                                              \
    static void narrow_##count(const struct mgx_tile_args *args)                                   \
    {                                                                                              \
        run_tile(count, NV / 2, args);                                                             \
    }

// clang-format off
#define EACH_COUNT(X) \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) \
    X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) \
    X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)
// clang-format on
#define WIDE(count) wide_##count,
#define NARROW(count) narrow_##count,

EACH_COUNT(TILE)

// What a kernel of them is but for its types.
#define OF_TILE_REGISTERS                                                                          \
    .rows = ROWS, .half = HALF, .cols = NV * VL, .vector = VL, .wide = {NULL, EACH_COUNT(WIDE)},   \
    .narrow = {NULL, EACH_COUNT(NARROW)}, .pack_transposed = pack_transposed, .release = release
