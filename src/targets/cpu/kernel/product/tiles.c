// SPDX-License-Identifier: MIT
// The loop around a micro-kernel; see tiles.h.
#include "targets/cpu/kernel/product/tiles.h"

#include <assert.h>

#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/output.h"

static const int64_t FLOAT = 4;

// --- where a tile lies ---

static bool is_in_scratch(const struct mgx_tiles *t)
{
    return t->converts || !t->has_c;
}

// Whether registers add an operand of 16 bits as it lies.
static bool adds_words(const struct mgx_tiles *t)
{
    return !t->converts && mgx_end_adds_first(t->end) &&
           mgx_output_rounds(t->kernel, t->end->step[0].type);
}

// Whether the operand becomes floats in scratch.
static bool widens(const struct mgx_tiles *t)
{
    return mgx_output_widens(t->end) && !adds_words(t);
}

static int64_t floats_row(const struct mgx_tiles *t)
{
    return widens(t) ? t->cols * FLOAT : t->operand_row;
}

static void set_rows(const struct mgx_tiles *t, struct mgx_tile_args *args)
{
    const bool scratch = is_in_scratch(t);
    args->c_row = scratch ? t->cols * FLOAT : t->c_row;
    args->c_bf16 = !scratch && mgx_output_rounds(t->kernel, t->c_type);
    args->residual_row = t->first ? floats_row(t) : args->c_row;
    args->residual_bf16 = t->first && adds_words(t);
}

// Points one half of the tile at `count` rows of a run, from x on.
static void set_half(const struct mgx_tiles *t, const struct mgx_tile_run *run, int64_t x,
                     int count, int half, struct mgx_tile_at *at, struct mgx_tile_args *args)
{
    assert(count >= 0 && (half == 0 || half == 1));
    at->count[half] = count;
    at->number[half] = run->number + x * t->step;
    at->c[half] = run->c ? run->c + x * t->c_row + t->col * t->c_size : NULL;
    at->operand[half] =
        run->operand ? run->operand + x * t->operand_row + t->col * t->operand_size : NULL;
    args->a[half] = run->a + x * args->a_row;
}

// `rows` rows from x on, as far as they are one run.
static void set_halves(const struct mgx_tiles *t, const struct mgx_tile_run *run, int64_t x,
                       int rows, struct mgx_tile_at *at, struct mgx_tile_args *args)
{
    const int half = t->kernel->half, first = rows < half ? rows : half;
    at->whole = true;
    at->count[1] = 0;
    set_half(t, run, x, first, 0, at, args);
    if (rows > first)
        set_half(t, run, x + half, rows - first, 1, at, args);
}

static const char *widen(const struct mgx_tiles *t, const struct mgx_tile_at *at, int half,
                         struct mgx_tile_scratch *scratch)
{
    const mgx_convert_fn convert =
        mgx_convert(t->isa, mgx_end_reader(t->end)->type, MGX_KERNEL_F32);
    float *to = scratch->operand + half * t->kernel->half * t->cols;
    for (int i = 0; i < at->count[half]; i++)
        convert(at->operand[half] + i * t->operand_row, to + i * t->cols, t->cols);
    return (const char *)to;
}

// Points the arguments at C, or at scratch, and at what the sums begin with: the operand, or what
// earlier parts of the depth came to.
static void set_values(const struct mgx_tiles *t, struct mgx_tile_at *at,
                       struct mgx_tile_scratch *scratch, struct mgx_tile_args *args)
{
    const int64_t half_values = (int64_t)t->kernel->half * t->cols;
    const bool floats = !mgx_end_reads_bytes(t->end), wide = widens(t);
    for (int h = 0; h < 2 && at->count[h]; h++) {
        args->c[h] = is_in_scratch(t) ? (char *)(scratch->values + h * half_values) : at->c[h];
        at->floats[h] = !floats || !at->operand[h] ? NULL
                        : wide                     ? widen(t, at, h, scratch)
                                                   : at->operand[h];
        args->residual[h] = !t->first                    ? args->c[h]
                            : mgx_end_adds_first(t->end) ? at->floats[h]
                                                         : NULL;
    }
}

// --- its end ---

// Does what registers have left of `count` rows of a half.
static void finish(const struct mgx_tiles *t, const struct mgx_tile_at *at, int half, int count,
                   const struct mgx_tile_args *args)
{
    const struct mgx_end *end = t->end;
    const bool bytes = mgx_end_reads_bytes(end);
    const struct mgx_tile tile = {
        .data = (float *)(void *)args->c[half],
        .stride = args->c_row / FLOAT,
        .row = at->number[half],
        .row_step = t->step,
        .col = t->number_col,
        .rows = count,
        .cols = t->cols,
        .thread = t->thread,
    };
    const struct mgx_end_place place = {
        .operand = bytes ? at->operand[half] : at->floats[half],
        .operand_row = bytes ? t->operand_row : floats_row(t),
        .hook_user = t->hook_user,
        .out = t->converts ? at->c[half] : NULL,
        .out_row = t->c_row,
        .type = t->c_type,
        .rounds = t->converts && mgx_output_rounds(t->kernel, t->c_type),
    };
    mgx_end_tile(end, mgx_end_in_registers(end), end->count, t->ends, &tile, &place);
}

void mgx_tiles_begin(const struct mgx_tiles *t, const struct mgx_tile_run *run, int64_t x, int rows,
                     struct mgx_tile_at *at, struct mgx_tile_scratch *scratch,
                     struct mgx_tile_args *args)
{
    assert(rows > 0 && x >= 0 && x + rows <= run->rows && t->cols > 0);
    set_rows(t, args);
    set_halves(t, run, x, rows, at, args);
    set_values(t, at, scratch, args);
}

void mgx_tiles_end(const struct mgx_tiles *t, const struct mgx_tile_at *at,
                   const struct mgx_tile_args *args)
{
    if (!t->last || (mgx_output_simple(t->end) && !is_in_scratch(t)))
        return;
    for (int h = 0; h < 2 && at->count[h]; h++) {
        finish(t, at, h, at->whole ? at->count[0] + at->count[1] : at->count[h], args);
        if (at->whole)
            return;
    }
}

// --- tile by tile ---

struct mgx_fetch mgx_fetch_of(struct mgx_ahead ahead, int64_t depth, int64_t taps, int64_t tiles,
                              struct mgx_tile_args *args)
{
    args->ahead = ahead.bytes ? ahead.at : args->b;
    return (struct mgx_fetch){mgx_ahead_share(ahead, depth, mgx_max_i64(taps * tiles, 1)), taps,
                              ahead.bytes};
}

static void multiply(mgx_tile_fn tile, struct mgx_fetch *f, struct mgx_tile_args *args)
{
    args->ahead_step = f->left > 0 ? f->share.bytes : 0;
    tile(args);
    args->ahead += f->left > 0 ? f->taps * f->share.tile_bytes : 0;
    f->left -= f->taps * f->share.tile_bytes;
}

void mgx_tiles_of_rows(const struct mgx_gemm_kernel *kernel, int64_t rows, struct mgx_fetch *fetch,
                       struct mgx_tile_args *args)
{
    const mgx_tile_fn *tiles = args->cols > kernel->cols / 2 ? kernel->wide : kernel->narrow;
    const int all = (int)rows, count = (all + kernel->rows - 1) / kernel->rows;
    for (int i = 0; i < count; i++) {
        const int own = all / count + (i >= count - all % count);
        args->a[1] = args->a[0] + kernel->half * args->a_row;
        args->c[1] = args->c[0] + kernel->half * args->c_row;
        args->residual[1] = args->residual[0] ? args->c[1] : NULL;
        multiply(tiles[own], fetch, args);
        args->a[0] += own * args->a_row;
        args->c[0] += own * args->c_row;
        args->residual[0] += args->residual[0] ? own * args->residual_row : 0;
    }
}

// Sums that begin and end here, in C. All that changes from one tile to the next is where they lie:
// of shallow tiles, setting them up one by one is a third of the time. What registers do not do is
// done for a few tiles at once, while they are in L1.
static void run_whole(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                      const mgx_tile_fn *tiles, struct mgx_fetch *f, struct mgx_tile_args *args)
{
    enum { TOGETHER = 4 };
    const int all = (int)run->rows, count = (all + t->kernel->rows - 1) / t->kernel->rows;
    const int least = all / count, more = all % count, half = t->kernel->half;
    const bool simple = mgx_output_simple(t->end);
    struct mgx_tile_at at = {.whole = true};
    assert(!mgx_output_has_bytes(t->end) && !widens(t)); // with those tiles are in scratch
    for (int i = 0, x = 0, done = 0; i < count; i++, x = done) {
        set_half(t, run, x, half, 0, &at, args);
        set_half(t, run, x + half, half, 1, &at, args);
        set_values(t, &at, NULL, args);
        for (;;) {
            const int rows = least + (i >= count - more);
            multiply(tiles[rows], f, args);
            done += rows;
            if (i + 1 == count || (!simple && i % TOGETHER == TOGETHER - 1))
                break;
            i++;
            for (int h = 0; h < 2; h++) {
                args->a[h] += rows * args->a_row;
                args->c[h] += rows * args->c_row;
                if (args->residual[h])
                    args->residual[h] += rows * args->residual_row;
            }
        }
        args->c[0] = at.c[0];
        if (!simple)
            finish(t, &at, 0, done - x, args);
    }
}

void mgx_tiles_run(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                   const struct mgx_tile_run *second, struct mgx_fetch *fetch,
                   struct mgx_tile_args *args)
{
    assert(run->rows > 0 && (!second || run->rows == t->kernel->half));
    const struct mgx_gemm_kernel *kernel = t->kernel;
    const mgx_tile_fn *tiles = t->cols > kernel->cols / 2 ? kernel->wide : kernel->narrow;
    set_rows(t, args);
    if (!second && t->first && t->last && !is_in_scratch(t)) {
        run_whole(t, run, tiles, fetch, args);
        return;
    }
    // Tiles as equal as can be; of shallow ones a division each would be a good part.
    const int all = (int)run->rows, count = (all + kernel->rows - 1) / kernel->rows;
    const int least = all / count, more = all % count;
    struct mgx_tile_scratch scratch;
    struct mgx_tile_at at;
    for (int x = 0, rows, owed = 0; x < all; x += rows) {
        owed += more;
        rows = least + (owed >= count);
        owed -= owed >= count ? count : 0;
        set_halves(t, run, x, rows, &at, args);
        if (second) {
            at.whole = false;
            set_half(t, second, 0, kernel->half, 1, &at, args);
        }
        set_values(t, &at, &scratch, args);
        multiply(tiles[at.count[0] + at.count[1]], fetch, args);
        mgx_tiles_end(t, &at, args);
    }
}

// --- strips ---

static void set_strip(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                      struct mgx_tile_args *args)
{
    args->end = mgx_output_listed(t->end);
    args->a[0] = run->a;
    args->c[0] = run->c + t->col * t->c_size;
    args->c_row = t->c_row;
    args->residual[0] = run->operand ? run->operand + t->col * t->operand_size : NULL;
    args->residual_row = t->operand_row;
}

bool mgx_tiles_pair_suits(const struct mgx_tiles *t, const struct mgx_tile_run *run,
                          struct mgx_tile_args *args)
{
    assert(t->kernel->pair);
    set_strip(t, run, args);
    return t->kernel->suits_pair(args, run->rows);
}

void mgx_tiles_strip(const struct mgx_tiles *t, const struct mgx_tile_run *run, int panels,
                     struct mgx_tile_args *args)
{
    assert(t->kernel->strip && run->rows > 0 && t->first && t->last);
    set_strip(t, run, args);
    (panels == 2 ? t->kernel->pair : t->kernel->strip)(args, run->rows);
    if (mgx_output_simple(t->end))
        return;
    const struct mgx_tile_at at = {.number = {run->number}, .c = {args->c[0]}};
    finish(t, &at, 0, (int)run->rows, args);
}
