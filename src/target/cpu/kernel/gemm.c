// SPDX-License-Identifier: MIT
// Matrix multiplication: planning and the loops around the micro-kernel; see gemm.h.
//
//     unit: one batch, a range of rows, a range of panels; a task is a run of units
//       block of rows: A (or its copy) stays in L2
//         block of depth: so that a panel fits L2 too
//           panel
//             tile
#include "target/cpu/kernel/gemm.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "target/cpu/kernel/output.h"
#include "target/cpu/kernel/split.h"

// --- the plan ---

enum {
    A_BLOCK_BYTES = 384 << 10,
    MAX_PANEL_BYTES = 384 << 10, // beyond: depth is cut
    FEW_ROWS = 4,                // up to these, B is not worth packing
};

static bool counts_fit(const struct mgx_gemm_desc *d, int64_t *batches)
{
    *batches = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->batch[i] < 0 || !mgx_mul_i64(*batches, d->batch[i] ? d->batch[i] : 1, batches))
            return false;
    int64_t rows, values;
    return mgx_mul_i64(*batches, d->m, &rows) && mgx_mul_i64(rows, d->n, &values) &&
           mgx_mul_i64(d->m, d->k, &values) && *batches <= INT32_MAX;
}

// Packed batches: one matrix per combination of the batch dimensions B really has.
static int64_t packed_index(const struct mgx_gemm_desc *d, const int64_t at[MGX_GEMM_BATCH])
{
    int64_t index = 0;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            index = index * d->batch[i] + at[i];
    return index;
}

static int64_t packed_count(const struct mgx_gemm_desc *d)
{
    int64_t count = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            count *= d->batch[i];
    return count;
}

// Matrices follow each other 64 bytes aligned.
static size_t packed_step(const struct mgx_gemm_plan *plan)
{
    size_t bytes = 0;
    mgx_panels_bytes(plan->kernel, plan->desc.k, plan->desc.n, &bytes);
    return mgx_align64(bytes);
}

static enum mgx_gemm_method choose_method(const struct mgx_gemm_desc *d)
{
    if (d->packed || d->m > FEW_ROWS)
        return MGX_GEMM_PANELS;
    if (d->b_col == 1)
        return MGX_GEMM_ROWS;
    return d->b_row == 1 && d->a_col == 1 ? MGX_GEMM_DOT : MGX_GEMM_PANELS;
}

static void choose_tasks(struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const double a = (double)d->m * (double)d->k, b = (double)d->k * (double)d->n;
    const double c = (double)d->m * (double)d->n, bytes = sizeof(float) * (a + b + c);
    const double work = plan->batches * (2 * c * (double)d->k + MGX_WORK_PER_BYTE * bytes);
    const int64_t tasks = mgx_split_tasks(work, d->threads);
    mgx_split_output(mgx_ceil_div(d->m, plan->kernel->rows), mgx_ceil_div(d->n, plan->kernel->cols),
                     (double)d->m, (double)d->n, mgx_ceil_div(tasks, plan->batches), &plan->m_parts,
                     &plan->n_parts);
    plan->units = (int64_t)plan->batches * plan->m_parts * plan->n_parts;
    plan->tasks =
        tasks == 1 ? 1 : (int)mgx_min_i64(plan->units, mgx_max_i64(tasks, 16 * d->threads));
}

static void choose_blocks(struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t panel_row = plan->kernel->cols * (int64_t)sizeof(float);
    const int64_t longest = MAX_PANEL_BYTES / panel_row;
    plan->block_depth = d->k;
    if (d->k > longest && d->m > plan->kernel->rows && !d->hook_only) {
        const int64_t blocks = mgx_ceil_div(d->k, longest);
        plan->block_depth = (mgx_ceil_div(d->k, blocks) + 3) & ~(int64_t)3;
    }
    const int64_t row = mgx_max_i64(plan->block_depth, 1) * (int64_t)sizeof(float);
    plan->block_rows = mgx_max_i64(A_BLOCK_BYTES / row, 2 * plan->kernel->rows);
}

static bool copies_a(const struct mgx_gemm_desc *d)
{
    return d->a_col != 1 && d->k > 1;
}

// A block of A whose depth is not contiguous, and one panel of raw B.
static bool workspace_fits(struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const size_t depth = (size_t)plan->block_depth;
    size_t a = 0, b = 0;
    if (copies_a(d) &&
        !mgx_mul_size((size_t)mgx_min_i64(plan->block_rows, d->m), depth * sizeof(float), &a))
        return false;
    if (!d->packed && !mgx_mul_size((size_t)plan->kernel->cols * sizeof(float), depth, &b))
        return false;
    plan->thread_workspace = mgx_align64(a) + mgx_align64(b);
    return true;
}

enum mgx_status mgx_gemm_plan_init(struct mgx_gemm_plan *plan, const struct mgx_gemm_desc *desc,
                                   struct mgx_diag *diag)
{
    *plan = (struct mgx_gemm_plan){.desc = *desc};
    struct mgx_gemm_desc *d = &plan->desc;
    int64_t batches;
    if (d->m < 0 || d->n < 0 || d->k < 0)
        return mgx_fail(diag, MGX_INVALID, "matrix sizes %lld x %lld x %lld", (long long)d->m,
                        (long long)d->n, (long long)d->k);
    plan->kernel = mgx_gemm_kernel(d->type, d->isa);
    size_t bytes;
    if (!counts_fit(d, &batches) || !mgx_panels_bytes(plan->kernel, d->k, d->n, &bytes) ||
        !mgx_mul_size(packed_step(plan), (size_t)packed_count(d), &bytes))
        return mgx_fail(diag, MGX_LIMIT, "matrix sizes %lld x %lld x %lld do not fit",
                        (long long)d->m, (long long)d->n, (long long)d->k);
    plan->batches = (int)batches;
    plan->packed_bytes = d->packed ? bytes : 0;
    plan->m_parts = plan->n_parts = 1;
    if (!d->m || !d->n)
        return MGX_OK;
    plan->method = choose_method(d);
    choose_tasks(plan);
    choose_blocks(plan);
    if (!workspace_fits(plan))
        return mgx_fail(diag, MGX_LIMIT, "workspace for a depth of %lld does not fit",
                        (long long)d->k);
    return MGX_OK;
}

size_t mgx_gemm_workspace(const struct mgx_gemm_plan *plan)
{
    return plan->thread_workspace * (size_t)mgx_max_i64(plan->desc.threads, 1);
}

void mgx_gemm_pack(const struct mgx_gemm_plan *plan, const void *b, void *packed)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const size_t step = packed_step(plan);
    const int64_t depth = d->k, panels = mgx_ceil_div(d->n, plan->kernel->cols);
    int64_t at[MGX_GEMM_BATCH], size[MGX_GEMM_BATCH];
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        size[i] = d->b_batch[i] && d->batch[i] > 1 ? d->batch[i] : 1;
    for (at[0] = 0; at[0] < size[0]; at[0]++)
        for (at[1] = 0; at[1] < size[1]; at[1]++)
            for (at[2] = 0; at[2] < size[2]; at[2]++) {
                const float *from = b;
                for (int i = 0; i < MGX_GEMM_BATCH; i++)
                    from += at[i] * d->b_batch[i];
                float *to = (float *)(void *)((char *)packed + step * (size_t)packed_index(d, at));
                for (int64_t p = 0; p < panels; p++)
                    mgx_panel_pack(plan->kernel, from, d->b_row, d->b_col, depth, d->n, p,
                                   to + p * plan->kernel->cols * depth);
            }
}

// --- running ---

struct job {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
};

// One unit: its batch's operands and its rectangle.
struct part {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
    const float *a, *b, *residual;
    float *c;
    int64_t first_row; // of the batch, in the output seen as one matrix
    int64_t m_begin, m_end, p_begin, p_end, panels;
    float *a_copy, *b_copy;
    int thread;
    // of the current block
    int64_t row, rows; // in this batch
    int64_t k, depth;
    const float *a_block;
    int64_t a_row;
};

static void copy_a(struct part *part)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    part->a_block = part->a + part->row * d->a_row + part->k * d->a_col;
    part->a_row = d->a_row;
    if (!copies_a(d))
        return;
    const float *from = part->a_block;
    if (d->a_row == 1) // columns of memory: read along them
        for (int64_t k = 0; k < part->depth; k++)
            for (int64_t i = 0; i < part->rows; i++)
                part->a_copy[i * part->depth + k] = from[k * d->a_col + i];
    else
        for (int64_t i = 0; i < part->rows; i++)
            for (int64_t k = 0; k < part->depth; k++)
                part->a_copy[i * part->depth + k] = from[i * d->a_row + k * d->a_col];
    part->a_block = part->a_copy;
    part->a_row = part->depth;
}

// The panel's part of the current depth, and what to prefetch: the one behind it in memory.
static void set_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const int64_t left = d->n - p * kernel->cols;
    const int width = mgx_panel_width(kernel, d->n, p);
    args->cols = left < kernel->cols ? (int)left : kernel->cols;
    args->b_row = width * (int64_t)sizeof(float);
    args->b_panel = kernel->cols * part->depth * (int64_t)sizeof(float);
    args->bias = part->args->bias && part->k == 0 ? part->args->bias + p * kernel->cols : NULL;
    if (d->packed) {
        args->b = (const char *)(part->b + p * kernel->cols * d->k + part->k * width);
        args->ahead = args->b + args->b_row * part->depth;
        args->ahead_step = p + 1 < part->panels ? 256 : 0;
        return;
    }
    const float *raw = part->b + part->k * d->b_row;
    args->ahead = (const char *)raw;
    args->ahead_step = 0;
    if (part->plan->method == MGX_GEMM_ROWS && left >= kernel->cols) {
        args->b = (const char *)(raw + p * kernel->cols);
        args->b_row = d->b_row * (int64_t)sizeof(float);
        args->b_panel = kernel->cols * (int64_t)sizeof(float);
        return;
    }
    mgx_panel_pack(kernel, raw, d->b_row, d->b_col, part->depth, d->n, p, part->b_copy);
    args->b = (const char *)part->b_copy;
}

// Values shown to the hook only.
struct scratch_tile {
    _Alignas(64) float values[MGX_TILE_MAX_ROWS * MGX_TILE_MAX_COLS];
};

// Sets the operands of rows [row, row + count) and columns from `col`.
static void set_rows(const struct part *part, int64_t row, int64_t col, int cols,
                     struct mgx_tile_args *args, struct scratch_tile *scratch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    const int half = part->plan->kernel->half;
    const int64_t size = sizeof(float);
    args->a_row = part->a_row * size;
    args->a[0] = (const char *)(part->a_block + (row - part->row) * part->a_row);
    args->a[1] = args->a[0] + half * args->a_row;
    if (d->hook_only) {
        args->c[0] = (char *)scratch->values;
        args->c_row = cols * size;
    } else {
        args->c[0] = (char *)(part->c + row * d->c_row + col);
        args->c_row = d->c_row * size;
    }
    args->c[1] = args->c[0] + half * args->c_row;
    args->residual[0] = NULL;
    args->residual_row = d->residual_row * size;
    if (part->k > 0) { // what earlier blocks of depth have summed
        args->residual[0] = args->c[0];
        args->residual_row = args->c_row;
    } else if (d->epilogue.residual == MGX_RESIDUAL_BEFORE)
        args->residual[0] = (const char *)(part->residual + row * d->residual_row + col);
    args->residual[1] = args->residual[0] ? args->residual[0] + half * args->residual_row : NULL;
}

static void finish_tile(const struct part *part, const struct mgx_tile_args *args, int64_t row,
                        int rows, int64_t col, int cols)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    if (part->k + part->depth < d->k || mgx_output_simple(&d->epilogue))
        return;
    const struct mgx_tile tile = {
        .data = (float *)(void *)args->c[0],
        .stride = args->c_row / (int64_t)sizeof(float),
        .row = part->first_row + row,
        .row_step = 1,
        .col = col,
        .rows = rows,
        .cols = cols,
        .thread = part->thread,
    };
    const float *residual = part->residual ? part->residual + row * d->residual_row + col : NULL;
    mgx_output_finish(part->plan->kernel, &d->epilogue, &tile, residual, d->residual_row,
                      part->args->hook_user);
}

static void run_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const mgx_tile_fn *tiles = args->cols > kernel->cols / 2 ? kernel->wide : kernel->narrow;
    const int64_t count = mgx_ceil_div(part->rows, kernel->rows);
    const int64_t panel_bytes = args->b_row * part->depth, tile_bytes = part->depth / 4 * 256;
    struct scratch_tile scratch;
    for (int64_t t = 0; t < count; t++) {
        const int64_t begin = part->row + part->rows * t / count;
        const int rows = (int)(part->row + part->rows * (t + 1) / count - begin);
        set_rows(part, begin, p * kernel->cols, args->cols, args, &scratch);
        tiles[rows](args);
        finish_tile(part, args, begin, rows, p * kernel->cols, args->cols);
        args->ahead += args->ahead_step ? tile_bytes : 0;
        if ((t + 1) * tile_bytes >= panel_bytes)
            args->ahead_step = 0;
    }
}

// Panels from `p` for one or two rows at a time, as many as are whole; returns the first one left.
static int64_t run_few(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const struct mgx_gemm_desc *d = &part->plan->desc;
    const int panels = kernel->few_panels[part->rows];
    struct scratch_tile scratch;
    for (; p + panels <= part->p_end && (p + panels) * kernel->cols <= d->n; p += panels) {
        set_panel(part, p, args);
        set_rows(part, part->row, p * kernel->cols, panels * kernel->cols, args, &scratch);
        kernel->few[part->rows](args);
        finish_tile(part, args, part->row, (int)part->rows, p * kernel->cols,
                    panels * kernel->cols);
    }
    return p;
}

static void run_block(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t tap = 0;
    struct mgx_tile_args args = {.taps = &tap, .tap_count = 1, .depth = part->depth};
    copy_a(part);
    if (part->k + part->depth == plan->desc.k)
        mgx_output_clamp(&plan->desc.epilogue, &args);
    int64_t p = part->p_begin;
    if (part->rows <= 2 && (plan->desc.packed || plan->method == MGX_GEMM_ROWS))
        p = run_few(part, p, &args);
    for (; p < part->p_end; p++) {
        set_panel(part, p, &args);
        run_panel(part, p, &args);
    }
}

static void run_blocks(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t m = part->m_end - part->m_begin, k = plan->desc.k;
    const int64_t row_blocks = mgx_ceil_div(m, plan->block_rows);
    for (int64_t r = 0; r < row_blocks; r++) {
        part->row = part->m_begin + m * r / row_blocks;
        part->rows = part->m_begin + m * (r + 1) / row_blocks - part->row;
        part->k = 0;
        do { // once when there is no depth at all: the sums are bias alone
            part->depth = mgx_min_i64(plan->block_depth, k - part->k);
            run_block(part);
            part->k += part->depth;
        } while (part->k < k);
    }
}

// Dot products, four columns at a time; all rows (FEW_ROWS at most) at once.
static void run_dots(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t tap = 0, end = mgx_min_i64(part->p_end * plan->kernel->cols, d->n);
    struct mgx_tile_args args = {.taps = &tap, .tap_count = 1, .depth = d->k};
    struct scratch_tile scratch;
    mgx_output_clamp(&d->epilogue, &args);
    part->a_block = part->a;
    part->a_row = d->a_row;
    part->depth = d->k;
    part->row = 0;
    for (int64_t j = part->p_begin * plan->kernel->cols; j < end; j += 4) {
        args.cols = end - j < 4 ? (int)(end - j) : 4;
        args.b = (const char *)(part->b + j * d->b_col);
        args.b_row = d->b_col * (int64_t)sizeof(float);
        args.bias = part->args->bias ? part->args->bias + j : NULL;
        set_rows(part, part->m_begin, j, args.cols, &args, &scratch);
        const int rows = (int)(part->m_end - part->m_begin);
        plan->kernel->dot(&args, rows);
        finish_tile(part, &args, part->m_begin, rows, j, args.cols);
    }
}

// Moves the operands to batch number `batch`.
static void set_batch(struct part *part, int64_t batch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    int64_t at[MGX_GEMM_BATCH], rest = batch;
    for (int i = MGX_GEMM_BATCH - 1; i >= 0; i--) {
        const int64_t size = d->batch[i] ? d->batch[i] : 1;
        at[i] = rest % size;
        rest /= size;
        part->a += at[i] * d->a_batch[i];
        part->c += d->hook_only ? 0 : at[i] * d->c_batch[i];
        part->residual += part->residual ? at[i] * d->residual_batch[i] : 0;
        part->b += d->packed ? 0 : at[i] * d->b_batch[i];
    }
    if (d->packed)
        part->b += (size_t)packed_index(d, at) * (packed_step(part->plan) / sizeof(float));
    part->first_row = batch * d->m;
}

static void run_unit(const struct job *job, int64_t unit, int thread)
{
    const struct mgx_gemm_plan *plan = job->plan;
    const struct mgx_gemm_args *args = job->args;
    const int64_t parts = (int64_t)plan->m_parts * plan->n_parts, in_batch = unit % parts;
    const int64_t i = in_batch / plan->n_parts, j = in_batch % plan->n_parts;
    struct part part = {
        .plan = plan,
        .args = args,
        .a = args->a,
        .b = args->b,
        .residual = args->residual,
        .c = args->c,
        .panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols),
        .thread = thread,
    };
    part.m_begin = plan->desc.m * i / plan->m_parts;
    part.m_end = plan->desc.m * (i + 1) / plan->m_parts;
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    if (plan->thread_workspace) {
        char *own = (char *)args->workspace + plan->thread_workspace * (size_t)thread;
        const size_t b_bytes =
            plan->desc.packed ? 0
                              : (size_t)(plan->kernel->cols * plan->block_depth) * sizeof(float);
        part.b_copy = (float *)(void *)own;
        part.a_copy = (float *)(void *)(own + mgx_align64(b_bytes));
    }
    set_batch(&part, unit / parts);
    if (plan->method == MGX_GEMM_DOT)
        run_dots(&part);
    else
        run_blocks(&part);
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const int64_t units = job->plan->units, tasks = job->plan->tasks;
    for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; unit++)
        run_unit(job, unit, thread);
}

void mgx_gemm_run(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                  struct mgx_pool *pool)
{
    assert(mgx_pool_threads(pool) <= mgx_max_i64(plan->desc.threads, 1));
    if (!plan->desc.m || !plan->desc.n)
        return;
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->tasks, run_task, &job);
}
