// SPDX-License-Identifier: MIT
// How a product of a few rows is divided, and its text; few.h says more.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/few.h"

enum { WARPS = 16, PLAIN_WARPS = 4 };

static int span_count(const struct gpu_few *f) // 32 deep each, of a step
{
    return f->w.bits == 16 ? 1 : 16 / f->w.bits;
}

// So many warps share the depth, each some steps of it, in pieces of at most `most`.
static void divide_steps(struct gpu_few *f, int64_t steps, int warps, int64_t most)
{
    f->parts = (int)mgx_min_i64(warps, steps);
    f->side = WARPS / f->parts;
    const int64_t loads = mgx_ceil_div(steps, f->parts);
    f->pieces = (int)mgx_ceil_div(loads, most);
    f->loads = (int)mgx_ceil_div(loads, f->pieces);
    f->ahead = f->pieces == 1 ? (int)most / f->loads : 1;
}

// All warps share the depth, or half of them, where the steps come out so much more evenly. Each asks for
// the weights of whole pairs of units ahead, or, where they are long, for a piece of a pair. What is asked
// for ahead and what is kept of x shall not fill the registers; of 4 bits and fewer less ahead is faster,
// measured on an H200.
static void divide_depth(struct gpu_few *f)
{
    enum { AHEAD = 4, AHEAD_NARROW = 2, KEPT = 64, KEPT_TWICE = 48 };
    const int64_t most = f->w.bits < 8 ? AHEAD_NARROW : AHEAD;
    const int64_t steps = mgx_ceil_div(f->w.k, 32 * span_count(f));
    divide_steps(f, steps, WARPS / 2, most);
    const int64_t half = (int64_t)f->parts * f->loads * f->pieces;
    divide_steps(f, steps, WARPS, most);
    if (10 * half < 9 * (int64_t)f->parts * f->loads * f->pieces)
        divide_steps(f, steps, WARPS / 2, most);
    const bool spread = f->rows == 1 && f->w.bits < 16; // a lane has one span of a step
    const int64_t spans = (int64_t)f->loads * f->pieces * (spread ? 1 : span_count(f));
    f->held = f->rows > GPU_FEW_ROWS / 2 ? 8 * spans <= KEPT_TWICE : 4 * spans <= KEPT;
}

static void divide_units(struct gpu_few *f, const struct gpu_device *device)
{
    enum { SHARED = 32 << 10 };
    divide_depth(f);
    const int64_t groups = mgx_ceil_div(f->w.n, 8), sides = mgx_ceil_div(groups, f->side);
    f->grid = (int)mgx_min_i64(device->properties.units, sides);
    const int64_t products = f->gated ? 2 : 1, rounds = mgx_ceil_div(sides, f->grid);
    const int64_t each = products * f->side * f->rows * 8 * (f->parts + 1) * (int64_t)sizeof(float);
    const int64_t fit = mgx_max_i64(1, SHARED / each);
    const int64_t whole = f->gated ? fit : mgx_max_i64(2, fit / 2 * 2); // pairs are not torn
    f->flush = (int)(products * mgx_min_i64(rounds, whole));
}

static int plain_columns(const struct gpu_few *f) // of a warp
{
    return f->rows <= 4 ? 4 : f->rows <= 8 ? 2 : 1;
}

void gpu_few_divide(struct gpu_few *f, const struct gpu_device *device)
{
    if (f->w.units)
        divide_units(f, device);
    else
        f->grid = (int)mgx_ceil_div(f->w.n, (int64_t)PLAIN_WARPS * plain_columns(f));
}

struct gpu_launch gpu_few_launch(const struct gpu_few *f)
{
    assert(f->grid > 0);
    const int warps = f->w.units ? f->parts * f->side : PLAIN_WARPS;
    return (struct gpu_launch){.grid = {(unsigned)f->grid, 1, 1},
                               .block = {(unsigned)warps * 32, 1, 1}};
}

// --- text ---

const char *gpu_few_reader(enum mgx_type type)
{
    return type == MGX_HALF ? "of_half(x)" : type == MGX_BF16 ? "of_bf16(x)" : "(float)(x)";
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c, const struct gpu_few *f)
{
    const struct gpu_few_weights *w = &f->w;
    mgx_str_printf(out,
                   "#define M %" PRId64 "\n#define N %" PRId64 "\n#define K %" PRId64
                   "\n#define ROWS %" PRId64 "\n#define X_PITCH %" PRId64
                   "\n#define X_WIDE %d\n#define X_TYPE %s\n#define C_TYPE %s\n#define BITS %d\n"
                   "#define ROW ((i64)%" PRId64 ")\n#define ZEROS %d\n",
                   f->rows, w->n, w->k, f->p.rows, f->rows > 1 ? f->pitch : 0, f->wide,
                   gpu_type_memory(f->type), gpu_type_memory(c->out->type), w->bits, w->row,
                   w->zeros);
    mgx_str_printf(out,
                   "#define X_BYTES %d\n#define X_OF(x) %s\n#define TO_X(x) %s\n#define GATED %d\n"
                   "#define SECOND %" PRId64 "\n#define NORM %d\n",
                   (int)mgx_type_size(f->type), gpu_few_reader(f->type),
                   f->type == MGX_HALF ? "to_half(x)" : "to_bf16(x)", f->gated, f->second, f->norm);
    if (f->norm)
        mgx_str_printf(out,
                       "#define EPS %.9ef\n#define GAIN_TYPE %s\n#define GAIN_OF(x) %s\n"
                       "#define GAIN_WIDE %d\n",
                       f->eps, gpu_type_memory(f->gain), gpu_few_reader(f->gain),
                       f->gain == MGX_FLOAT);
}

static void emit_units(struct mgx_str *out, const struct gpu_few *f)
{
    const struct gpu_few_weights *w = &f->w;
    const enum mgx_type scale = w->blocks ? w->blocks->shape.type : MGX_HALF;
    mgx_str_printf(out,
                   "#define PARTS %d\n#define SIDE %d\n#define LOADS %d\n#define PIECES %d\n"
                   "#define AHEAD %d\n#define FLUSH %d\n#define GRID %d\n#define X_HELD %d\n"
                   "#define BF16 %d\n#define SCALED %" PRId64 "\n#define SCALE_FLOAT %d\n"
                   "#define SCALE_BF16 %d\n",
                   f->parts, f->side, f->loads, f->pieces, f->ahead, f->flush, f->grid, f->held,
                   f->type == MGX_BF16, gpu_few_scaled(w), scale == MGX_FLOAT, scale == MGX_BF16);
    GPU_PUT(out, few_units);
}

void gpu_few_emit_scales(struct mgx_str *out, int64_t block, int64_t blocks_of_row,
                         enum mgx_type scale, enum mgx_type zero)
{
    mgx_str_printf(out,
                   "#define SCALED %" PRId64 "\n#define BLOCKS_OF_ROW %" PRId64
                   "\n#define SCALE_TYPE %s\n#define SCALE_OF(x) %s\n#define ZERO_TYPE %s\n"
                   "#define ZERO_OF(x) %s\n",
                   block, blocks_of_row, gpu_type_memory(scale), gpu_few_reader(scale),
                   gpu_type_memory(zero), gpu_few_reader(zero));
}

static void emit_plain(struct mgx_str *out, const struct gpu_few *f)
{
    const struct gpu_few_weights *w = &f->w;
    mgx_str_printf(out, "#define COLUMNS %d\n#define WARPS %d\n#define W_OF(x) %s\n",
                   plain_columns(f), PLAIN_WARPS, gpu_few_reader(f->type));
    if (w->blocks)
        gpu_few_emit_scales(out, w->block, w->blocks_of_row, w->blocks->shape.type,
                            w->zeros ? w->source[GPU_FEW_ZERO]->shape.type : MGX_UINT8);
    GPU_PUT(out, few_rows);
    GPU_PUT(out, few);
}

const char *gpu_few_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_few *f)
{
    mgx_str_put(out, "#define SUM float\n");
    const char *why = gpu_emit_bodies(out, c, f->p.tail, f->p.make, 0);
    if (why)
        return why;
    gpu_product_emit_finish(out, c, &f->p);
    emit_sizes(out, c, f);
    if (f->w.units)
        emit_units(out, f);
    else
        emit_plain(out, f);
    return NULL;
}
