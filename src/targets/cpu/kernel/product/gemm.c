// SPDX-License-Identifier: MIT
// Matrix multiplication: the loops around the micro-kernel; see gemm.h. gemm_plan.c plans them.
//
//     unit: one batch, a range of rows, a range of panels; a task is a run of units
//       block of rows: A (or its copy) stays in L2
//         block of depth: so that a panel fits L2 too
//           panel
//             tile
#include <assert.h>
#include <string.h>

#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/copy_rows.h"
#include "targets/cpu/kernel/product/gemm_plan.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/product/tiles.h"
#include "targets/cpu/kernel/split.h"
struct job {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
};

// One unit: its batch's operands and its rectangle.
struct part {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
    const char *a, *b, *residual;
    char *c;
    int64_t a_size, b_size, c_size, residual_size; // bytes of an element
    int64_t first_row;                             // of the batch, in the output seen as one matrix
    int64_t m_begin, m_end, p_begin, p_end, panels;
    struct mgx_ahead next; // after the part
    char *a_copy, *b_copy;
    struct held *held; // NULL: nothing is
    int thread;
    struct mgx_tile_registers *registers;
    // of the current block
    int64_t row, rows; // in this batch
    int64_t k, depth;  // in groups
    const char *a_block;
    int64_t a_row; // bytes
};

static void copy_block(const struct part *part, char *to_block)
{
    assert(part->rows > 0 && part->depth > 0 && to_block);
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t first = part->k * plan->kernel->group;
    const struct mgx_copy_rows copy = {
        .isa = d->isa,
        .from = d->a_type,
        .to = plan->kernel->a_type,
        .row = d->a_row,
        .col = d->a_col,
        .rows = part->rows,
        .elements = mgx_min_i64(part->depth * plan->kernel->group, d->k - first),
        .to_row = plan->copy_row,
        .to_bytes = part->depth * GROUP_BYTES,
    };
    mgx_copy_rows(&copy, part->a_block, to_block);
}

// Whether this thread copied the current block for an earlier part; if not, it is going to.
static bool is_held(const struct part *part)
{
    assert(part->k >= 0 && part->depth >= 0);
    struct held *held = part->held;
    if (!held)
        return false;
    const bool same = held->a == part->a && held->row == part->row && held->rows == part->rows;
    if (same && held->depth > part->k)
        return true;
    *held = (struct held){part->a, part->row, part->rows, part->k + part->depth};
    return false;
}

static void set_a(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t first = part->k * plan->kernel->group;
    part->a_block = part->a + (part->row * d->a_row + first * d->a_col) * part->a_size;
    part->a_row = d->a_row * part->a_size;
    if (!part->a_copy || !part->depth)
        return;
    char *to = part->a_copy;
    if (plan->holds_a)
        to += part->k / plan->block_depth * plan->copy_bytes;
    if (!is_held(part))
        copy_block(part, to);
    part->a_block = to;
    part->a_row = plan->copy_row;
}

// Where panel p has its depth from k on.
static const char *panel_at(const struct part *part, int64_t p, int64_t k)
{
    assert(p >= part->p_begin && k >= 0);
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t row = mgx_panel_width(kernel, plan->desc.n, p) * GROUP_BYTES;
    return part->b + p * mgx_gemm_panel_step(plan) + (kernel->starts + k) * row;
}

// Panel p from k on, as much of it as is read at once.
static struct mgx_ahead read_at(const struct part *part, int64_t p, int64_t k)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t depth = mgx_min_i64(plan->block_depth, plan->groups - k);
    if (mgx_gemm_is_narrow(plan)) {
        const struct mgx_narrow *form = &plan->desc.narrow;
        const int width = mgx_panel_width(plan->kernel, plan->desc.n, p);
        const int64_t whole = mgx_narrow_panel(form, width), all = mgx_max_i64(plan->groups, 1);
        return (struct mgx_ahead){part->b + p * mgx_narrow_panel(form, plan->kernel->cols) +
                                      whole * k / all,
                                  whole * depth / all};
    }
    if (mgx_gemm_in_chunks(plan->kernel))
        return (struct mgx_ahead){part->b + p * mgx_gemm_panel_step(plan),
                                  mgx_gemm_panel_step(plan)};
    return (struct mgx_ahead){panel_at(part, p, k),
                              depth * mgx_panel_width(plan->kernel, plan->desc.n, p) * GROUP_BYTES};
}

// What is read after `panels` of them from panel p of this block on: the next ones, the first one
// again for the next depth or the next rows, or what follows the part.
static struct mgx_ahead read_after(const struct part *part, int64_t p, int panels)
{
    const int64_t next = p + panels;
    if (!part->plan->desc.packed)
        return (struct mgx_ahead){NULL, 0};
    if (next < part->p_end) {
        struct mgx_ahead ahead = read_at(part, next, part->k);
        ahead.bytes *= mgx_min_i64(panels, part->p_end - next);
        return ahead;
    }
    if (part->k + part->depth < part->plan->groups)
        return read_at(part, part->p_begin, part->k + part->depth);
    if (part->row + part->rows < part->m_end)
        return read_at(part, part->p_begin, 0);
    return part->next;
}

// The panel's part of the current depth.
static void set_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    assert(p >= part->p_begin && p < part->p_end && part->k + part->depth <= part->plan->groups);
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t col = p * kernel->cols, left = d->n - col;
    assert(left > 0);
    const int width = mgx_panel_width(kernel, d->n, p);
    args->cols = left < kernel->cols ? (int)left : kernel->cols;
    args->b_row = width * GROUP_BYTES;
    args->b_panel = mgx_gemm_panel_step(plan);
    args->start_panel = part->args->start ? kernel->cols * GROUP_BYTES : args->b_panel;
    args->bias = part->args->bias && part->k == 0 ? part->args->bias + col : NULL;
    args->scale = kernel->integer && part->args->scale ? part->args->scale + col : NULL;
    if (mgx_gemm_is_narrow(plan)) {
        const struct mgx_narrow *form = &d->narrow;
        mgx_narrow_of(kernel, d->isa)
            ->unpack(form, part->b + p * mgx_narrow_panel(form, kernel->cols), width, part->k,
                     part->depth, (float *)(void *)part->b_copy);
        args->b = part->b_copy;
        args->start = NULL;
        return;
    }
    const char *panel = part->b + p * args->b_panel;
    const int64_t starts = kernel->starts * args->b_row;
    args->b = panel + starts + part->k * args->b_row;
    if (!d->packed) {
        const char *raw = part->b + part->k * kernel->group * d->b_row * part->b_size;
        if (plan->method == MGX_GEMM_ROWS && left >= kernel->cols) {
            args->b = raw + col * part->b_size;
            args->b_row = d->b_row * part->b_size;
            args->b_panel = kernel->cols * GROUP_BYTES;
            return;
        }
        const int64_t rest = d->k - part->k * kernel->group;
        mgx_gemm_pack_panel(plan, raw, mgx_min_i64(part->depth * kernel->group, rest), p,
                            part->b_copy);
        panel = part->b_copy;
        args->b = panel + starts;
    }
    args->start = starts ? (const int32_t *)(const void *)panel : NULL;
    if (mgx_gemm_in_chunks(kernel))
        mgx_chunk_set(panel, plan->panel_chunks, args);
    if (part->args->start)
        args->start = part->args->start + col;
}

// What the tiles of the current block have in common; set_columns says of which panel.
static struct mgx_tiles tiles_of(const struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    return (struct mgx_tiles){
        .kernel = plan->kernel,
        .end = &d->end,
        .ends = plan->ends,
        .isa = d->isa,
        .c_type = d->c_type,
        .converts = plan->converts_c,
        .has_c = !d->hook_only,
        .c_size = part->c_size,
        .operand_size = part->residual_size,
        .c_row = d->c_row * part->c_size,
        .operand_row = d->residual_row * part->residual_size,
        .step = 1,
        .hook_user = part->args->hook_user,
        .thread = part->thread,
        .first = part->k == 0,
        .last = part->k + part->depth == plan->groups,
    };
}

static void set_columns(struct mgx_tiles *t, int64_t col, int cols)
{
    t->col = t->number_col = col;
    t->cols = cols;
}

// The rows of the current block.
static struct mgx_tile_run run_of(const struct part *part)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    return (struct mgx_tile_run){
        .a = part->a_block,
        .c = d->hook_only ? NULL : part->c + part->row * d->c_row * part->c_size,
        .operand = part->residual
                       ? part->residual + part->row * d->residual_row * part->residual_size
                       : NULL,
        .number = part->first_row + part->row,
        .rows = part->rows,
    };
}

static void run_panel(const struct part *part, const struct mgx_tiles *t, int64_t p,
                      struct mgx_tile_args *args)
{
    const struct mgx_tile_run run = run_of(part);
    struct mgx_fetch fetch = mgx_fetch_of(read_after(part, p, 1), part->depth, 1,
                                          mgx_ceil_div(part->rows, t->kernel->rows), args);
    mgx_tiles_run(t, &run, NULL, &fetch, args);
}

// Whether a tile's results are what C wants when they leave the registers.
static bool ends_in_registers(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return plan->kernel->strip && !d->hook_only && mgx_output_in_registers(&d->end, d->c_type);
}

// Whether they are floats that an activation is left to be made of: a strip's are finished at once,
// a tile's each by itself, for which a tile of bytes stops a hundred cycles.
static bool finishes_strips(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_end *end = &d->end;
    return plan->kernel->strip && !d->hook_only && mgx_kernel_is_plain(d->c_type) &&
           !plan->converts_c && plan->block_depth >= plan->groups && !mgx_end_reader(end) &&
           !mgx_output_has_bytes(end) && !mgx_end_has_block(end) && !mgx_output_simple(end);
}

// A panel or two for all rows of the block in one go; returns how many.
static int run_strip(const struct part *part, const struct mgx_tiles *t, int64_t p,
                     struct mgx_tile_args *args)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_tile_run run = run_of(part);
    const int64_t tiles = mgx_ceil_div(part->rows, plan->kernel->rows);
    const bool pair = plan->kernel->pair && plan->desc.packed && p + 1 < part->p_end &&
                      (p + 2) * plan->kernel->cols <= plan->desc.n &&
                      mgx_tiles_pair_suits(t, &run, args);
    const struct mgx_ahead ahead = read_after(part, p, 1 + pair);
    args->ahead = ahead.at;
    args->ahead_step = (mgx_ceil_div(ahead.bytes, tiles) + 63) & ~INT64_C(63);
    mgx_tiles_strip(t, &run, 1 + pair, args);
    return 1 + pair;
}

// Whether panels that lie one behind the other are too many for L2 to have them still, with those
// of the products around.
static bool is_stream(const struct mgx_gemm_plan *plan)
{
    enum { LEAST_BYTES = 256 * 1024 };
    return plan->desc.packed && plan->desc.n * plan->groups * GROUP_BYTES > LEAST_BYTES;
}

// What makes panels for one or two rows, and how many at once.
struct few {
    mgx_tile_fn run;
    int panels;
};

static struct few few_of(const struct part *part)
{
    assert(part->rows == 1 || part->rows == 2);
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    if (kernel->stream[part->rows] && is_stream(part->plan))
        return (struct few){kernel->stream[part->rows], 1};
    return (struct few){kernel->few[part->rows], kernel->few_panels[part->rows]};
}

// The panels of one place, from `p`; C and the residual are those of the place again afterwards.
static void run_few_panels(const struct part *part, const struct few *few, int64_t p, int count,
                           struct mgx_tile_args *args)
{
    char *const c = args->c[0];
    const char *const residual = args->residual[0];
    const int64_t cols = (int64_t)few->panels * part->plan->kernel->cols;
    const int64_t c_step = cols * (args->c_bf16 ? 2 : GROUP_BYTES);
    const int64_t residual_step = cols * (args->residual_bf16 ? 2 : GROUP_BYTES);
    for (int i = 0; i < count; i += few->panels) {
        set_panel(part, p + i, args);
        few->run(args);
        args->c[0] += c_step;
        args->residual[0] += residual ? residual_step : 0;
    }
    args->c[0] = c;
    args->residual[0] = residual;
}

// Panels from `p` for one or two rows at a time, as many as are whole; returns the first one left.
// What follows the registers is done for several panels at once.
static int64_t run_few(const struct part *part, struct mgx_tiles *t, int64_t p,
                       struct mgx_tile_args *args)
{
    const struct few few = few_of(part);
    const int cols = part->plan->kernel->cols;
    const int together = MGX_TILE_MAX_PANELS * MGX_TILE_MAX_COLS / cols;
    const int64_t whole = mgx_min_i64(part->p_end, part->plan->desc.n / cols);
    const struct mgx_tile_run run = run_of(part);
    struct mgx_tile_scratch scratch;
    struct mgx_tile_at at;
    for (int count; p + few.panels <= whole; p += count) {
        count = (int)(mgx_min_i64(whole - p, together) / few.panels * few.panels);
        set_columns(t, p * cols, count * cols);
        mgx_tiles_begin(t, &run, 0, (int)part->rows, &at, &scratch, args);
        run_few_panels(part, &few, p, count, args);
        mgx_tiles_end(t, &at, args);
    }
    return p;
}

// What a product with blocks wants to know of its rows, in the place of a panel. Bytes are
// multiplied as many rows at a time: those behind the last one are zero.
static void set_narrow_rows(const struct part *part, const struct mgx_narrow_kernel *narrow,
                            struct mgx_narrow_args *args)
{
    const struct mgx_narrow *form = args->form;
    const bool bytes = mgx_gemm_takes_bytes(part->plan);
    const int64_t blocks = mgx_narrow_blocks(form), pairs_row = mgx_narrow_pairs(form, bytes);
    const int many = part->plan->many, beside = bytes ? many : 1;
    const int64_t all = many ? mgx_ceil_div(part->rows, many) * many : part->rows;
    float *sums = (float *)(void *)part->b_copy;
    int32_t *pairs = (int32_t *)(void *)(sums + all * 2 * blocks);
    bool whole = form->fast;
    args->sums = sums;
    args->sums_row = 2 * blocks;
    args->pairs_row = pairs_row;
    if (bytes) {
        const int64_t last = all - many; // of which some rows may not be there
        memset(sums + last * args->sums_row, 0, (size_t)(many * args->sums_row) * sizeof *sums);
        memset(pairs + last * pairs_row, 0, (size_t)(many * pairs_row) * sizeof *pairs);
    }
    for (int64_t r = 0; whole && r < part->rows; r++) {
        const int64_t first = r / beside * beside, own = r % beside;
        whole =
            narrow->whole(form, args->a + r * args->a_row, bytes, pairs + first * pairs_row + own,
                          sums + first * args->sums_row + 2 * own);
    }
    args->pairs = whole ? pairs : NULL;
    args->bytes = whole && bytes;
    for (int64_t r = 0; !whole && r < part->rows; r++)
        narrow->sums(args->a + r * args->a_row, form->depth, form->block,
                     sums + r * args->sums_row);
}

// What stays the same while narrow panels are multiplied.
struct narrow_run {
    const struct mgx_narrow_kernel *kernel;
    struct mgx_tile_args tile;
    struct mgx_tiles tiles;
};

// `rows` rows from `own` on times a narrow panel, or times two of them.
static void multiply_narrow(const struct part *part, const struct narrow_run *run, int panels,
                            int64_t own, int rows, const struct mgx_narrow_args *all)
{
    const struct mgx_tile_run block = run_of(part);
    struct mgx_tile_args tile = run->tile;
    struct mgx_tile_scratch scratch;
    struct mgx_tile_at at;
    struct mgx_narrow_args args = *all;
    mgx_tiles_begin(&run->tiles, &block, own, rows, &at, &scratch, &tile);
    args.a += own * args.a_row;
    args.sums += args.sums ? own * args.sums_row : 0;
    args.pairs += args.pairs ? own * args.pairs_row : 0;
    args.residual = (const float *)(const void *)tile.residual[0];
    args.residual_row = tile.residual_row / GROUP_BYTES;
    args.c = (float *)(void *)tile.c[0];
    args.c_row = tile.c_row / GROUP_BYTES;
    run->kernel->product(&args, rows, panels);
    mgx_tiles_end(&run->tiles, &at, &tile);
}

// Rows times narrow panels; where there is one row, as many at a time as the kernel likes.
static void run_narrow(struct part *part)
{
    assert(part->rows > 0 && (part->plan->many || part->rows <= MGX_NARROW_ROWS));
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_narrow *form = &d->narrow;
    struct narrow_run run = {.kernel = mgx_narrow_of(plan->kernel, d->isa),
                             .tiles = tiles_of(part)};
    const int cols = plan->kernel->cols, most = part->rows == 1 ? run.kernel->panels(form) : 1;
    struct mgx_narrow_args args = {.form = form,
                                   .panel_bytes = mgx_narrow_panel(form, cols),
                                   .a = (const float *)(const void *)part->a_block,
                                   .a_row = part->a_row / GROUP_BYTES};
    mgx_output_clamp(&d->end, &run.tile);
    args.clamp = run.tile.clamp;
    args.low = run.tile.low;
    args.high = run.tile.high;
    if (form->kind == MGX_NARROW_BLOCKS)
        set_narrow_rows(part, run.kernel, &args);
    const int step = args.bytes ? plan->many : MGX_NARROW_ROWS;
    for (int64_t p = part->p_begin; p < part->p_end;) {
        args.width = mgx_panel_width(plan->kernel, d->n, p);
        const int panels =
            most == 2 && p + 1 < part->p_end && mgx_panel_width(plan->kernel, d->n, p + 1) == cols
                ? 2
                : 1;
        args.panel = part->b + p * args.panel_bytes;
        args.cols = (int)mgx_min_i64(d->n - p * cols, panels * cols);
        args.bias = part->args->bias ? part->args->bias + p * cols : NULL;
        set_columns(&run.tiles, p * cols, args.cols);
        for (int64_t r = 0; r < part->rows; r += step)
            multiply_narrow(part, &run, panels, r, (int)mgx_min_i64(part->rows - r, step), &args);
        p += panels;
    }
}

static void run_block(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t tap = 0;
    set_a(part);
    struct mgx_tiles tiles = tiles_of(part);
    struct mgx_tile_args args = {.a_row = part->a_row,
                                 .taps = &tap,
                                 .tap_count = 1,
                                 .depth = part->depth,
                                 .registers = part->registers};
    if (part->k + part->depth == plan->groups)
        mgx_output_clamp(&plan->desc.end, &args);
    int64_t p = part->p_begin;
    if (plan->method == MGX_GEMM_NARROW) {
        run_narrow(part);
        return;
    }
    if (part->rows <= 2 && !mgx_gemm_is_narrow(plan) && plan->kernel->few[part->rows] &&
        (plan->desc.packed || plan->method == MGX_GEMM_ROWS))
        p = run_few(part, &tiles, p, &args);
    const bool strips = ends_in_registers(plan) || finishes_strips(plan);
    while (p < part->p_end) {
        set_panel(part, p, &args);
        set_columns(&tiles, p * plan->kernel->cols, args.cols);
        if (strips) {
            p += run_strip(part, &tiles, p, &args);
            continue;
        }
        run_panel(part, &tiles, p, &args);
        p++;
    }
}

static void run_blocks(struct part *part)
{
    assert(part->m_begin <= part->m_end && part->p_begin <= part->p_end);
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t m = part->m_end - part->m_begin;
    const int64_t row_blocks = mgx_ceil_div(m, plan->block_rows);
    for (int64_t r = 0; r < row_blocks; r++) {
        part->row = part->m_begin + m * r / row_blocks;
        part->rows = part->m_begin + m * (r + 1) / row_blocks - part->row;
        part->k = 0;
        do { // once when there is no depth at all: the sums are bias alone
            part->depth = mgx_min_i64(plan->block_depth, plan->groups - part->k);
            run_block(part);
            part->k += part->depth;
        } while (part->k < plan->groups);
    }
}

// Dot products, four columns at a time; all rows (FEW_ROWS at most) at once.
static void run_dots(struct part *part)
{
    assert(part->plan->kernel->dot && part->m_end - part->m_begin <= MGX_TILE_RAW_ROWS);
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t tap = 0, end = mgx_min_i64(part->p_end * plan->kernel->cols, d->n);
    part->depth = plan->groups;
    part->row = part->m_begin;
    part->rows = part->m_end - part->m_begin;
    part->a_row = d->a_row * part->a_size;
    part->a_block = part->a + part->row * part->a_row;
    const struct mgx_tile_run run = run_of(part);
    struct mgx_tiles tiles = tiles_of(part);
    struct mgx_tile_args args = {.a_row = part->a_row, .taps = &tap, .tap_count = 1, .depth = d->k};
    struct mgx_tile_scratch scratch;
    struct mgx_tile_at at;
    mgx_output_clamp(&d->end, &args);
    for (int64_t col = part->p_begin * plan->kernel->cols; col < end; col += 4) {
        args.cols = end - col < 4 ? (int)(end - col) : 4;
        args.b = part->b + col * d->b_col * part->b_size;
        args.b_row = d->b_col * part->b_size;
        args.bias = part->args->bias ? part->args->bias + col : NULL;
        set_columns(&tiles, col, args.cols);
        mgx_tiles_begin(&tiles, &run, 0, (int)run.rows, &at, &scratch, &args);
        plan->kernel->dot(&args, (int)run.rows);
        mgx_tiles_end(&tiles, &at, &args);
    }
}

// The place of batch number `batch` along each dimension.
static void batch_at(const struct mgx_gemm_desc *d, int64_t batch, int64_t at[MGX_GEMM_BATCH])
{
    assert(batch >= 0);
    for (int i = MGX_GEMM_BATCH - 1; i >= 0; i--) {
        const int64_t size = d->batch[i] ? d->batch[i] : 1;
        at[i] = batch % size;
        batch /= size;
    }
}

// Moves the operands to batch number `batch`.
static void set_batch(struct part *part, int64_t batch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    int64_t at[MGX_GEMM_BATCH];
    batch_at(d, batch, at);
    for (int i = 0; i < MGX_GEMM_BATCH; i++) {
        part->a += at[i] * d->a_batch[i] * part->a_size;
        if (!d->hook_only)
            part->c += at[i] * d->c_batch[i] * part->c_size;
        if (part->residual)
            part->residual += at[i] * d->residual_batch[i] * part->residual_size;
        part->b += d->packed ? 0 : at[i] * d->b_batch[i] * part->b_size;
    }
    if (d->packed)
        part->b += (size_t)mgx_gemm_packed_index(d, at) * mgx_gemm_packed_step(part->plan);
    part->first_row = batch * d->m;
}

static void set_scratch(struct part *part)
{
    assert(part->thread >= 0 && (part->args->workspace || !part->plan->thread_workspace));
    const struct mgx_gemm_plan *plan = part->plan;
    if (!plan->thread_workspace)
        return;
    char *own = (char *)part->args->workspace + plan->thread_workspace * (size_t)part->thread;
    const int64_t rows = plan->block_depth + plan->kernel->starts;
    size_t b = mgx_gemm_makes_panels(plan) ? (size_t)(plan->kernel->cols * rows * GROUP_BYTES) : 0;
    b = mgx_gemm_narrow_room(plan, b);
    part->b_copy = own;
    if (!mgx_gemm_copies_a(plan))
        return;
    own += mgx_align64(b);
    part->held = plan->holds_a ? (struct held *)(void *)own : NULL;
    part->a_copy = own + sizeof(struct held);
}

// What lies in the workspace is of another run.
static void hold_nothing(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                         int threads)
{
    struct part part = {.plan = plan, .args = args};
    for (; plan->holds_a && part.thread < threads; part.thread++) {
        set_scratch(&part);
        *part.held = (struct held){NULL, 0, 0, 0};
    }
}

static void run_unit(const struct job *job, int64_t unit, struct mgx_ahead next, int thread,
                     struct mgx_tile_registers *registers)
{
    assert(unit >= 0 && unit < job->plan->units);
    const struct mgx_gemm_plan *plan = job->plan;
    const struct mgx_gemm_args *args = job->args;
    const int64_t parts = (int64_t)plan->m_parts * plan->n_parts, in_batch = unit % parts;
    const int64_t i = in_batch / plan->n_parts, j = in_batch % plan->n_parts;
    struct part part = {
        .plan = plan,
        .args = args,
        .a = args->a,
        .b = args->b,
        .residual = mgx_end_reader(&plan->desc.end) ? args->residual : NULL,
        .c = args->c,
        .a_size = mgx_kernel_size(plan->desc.a_type),
        .b_size = mgx_kernel_size(plan->desc.b_type),
        .c_size = mgx_kernel_size(plan->desc.c_type),
        .residual_size = mgx_output_operand_size(&plan->desc.end),
        .panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols),
        .next = next,
        .thread = thread,
        .registers = registers,
    };
    part.m_begin = plan->desc.m * i / plan->m_parts;
    part.m_end = plan->desc.m * (i + 1) / plan->m_parts;
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    assert(i < plan->m_parts && part.m_end <= plan->desc.m && part.p_end <= part.panels);
    set_scratch(&part);
    set_batch(&part, unit / parts);
    if (plan->method == MGX_GEMM_DOT)
        run_dots(&part);
    else
        run_blocks(&part);
}

// The first panel of a unit; it follows the unit before.
static struct mgx_ahead first_read(const struct mgx_gemm_plan *plan, const void *packed,
                                   int64_t unit)
{
    const int64_t parts = (int64_t)plan->m_parts * plan->n_parts, batch = unit / parts;
    const int64_t panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols);
    int64_t at[MGX_GEMM_BATCH];
    if (!plan->desc.packed || unit >= plan->units)
        return (struct mgx_ahead){NULL, 0};
    batch_at(&plan->desc, batch, at);
    const struct part part = {.plan = plan,
                              .b = (const char *)packed +
                                   (size_t)mgx_gemm_packed_index(&plan->desc, at) *
                                       mgx_gemm_packed_step(plan)};
    return read_at(&part, panels * (unit % plan->n_parts) / plan->n_parts, 0);
}

struct mgx_ahead mgx_gemm_first_read(const struct mgx_gemm_plan *plan, const void *packed,
                                     int thread)
{
    const int64_t task = mgx_pool_first(plan->tasks, plan->desc.threads, thread);
    const struct mgx_ahead first =
        first_read(plan, packed, plan->tasks ? plan->units * task / plan->tasks : plan->units);
    return mgx_ahead_of(first.at, first.bytes);
}

static void run_task(void *user, int task, int thread)
{
    assert(task >= 0 && task < ((const struct job *)user)->plan->tasks);
    const struct job *job = user;
    const struct mgx_gemm_plan *plan = job->plan;
    const int64_t units = plan->units, tasks = plan->tasks;
    const int64_t end = units * (task + 1) / tasks;
    const int64_t last =
        units * mgx_pool_first(plan->tasks, plan->desc.threads, thread + 1) / tasks;
    struct mgx_tile_registers registers = {0, 0};
    for (int64_t unit = units * task / tasks; unit < end; unit++) {
        const bool leaves = unit + 1 == last && job->args->next;
        run_unit(job, unit,
                 leaves ? job->args->next[thread] : first_read(plan, job->args->b, unit + 1),
                 thread, &registers);
    }
    if (plan->kernel->release)
        plan->kernel->release(&registers);
}

void mgx_gemm_run(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                  struct mgx_pool *pool)
{
    assert(mgx_pool_threads(pool) <= mgx_max_i64(plan->desc.threads, 1));
    assert(!plan->kernel->integer || mgx_kernel_is_sums(plan->desc.c_type) || args->scale);
    if (!plan->desc.m || !plan->desc.n)
        return;
    struct job job = {plan, args};
    hold_nothing(plan, args, mgx_pool_threads(pool));
    mgx_pool_run(pool, plan->tasks, run_task, &job);
}
