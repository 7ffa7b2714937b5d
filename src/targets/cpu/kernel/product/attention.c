// SPDX-License-Identifier: MIT
// Attention: planning and the loops around the micro-kernel; see attention.h.
//
//     unit: one batch, a range of queries; a task is a run of units
#include "targets/cpu/kernel/product/attention.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/split.h"

enum {
    MOST_KEYS = 2048, // a block of scores and of packed V stays in L2
    LINE = 16,        // floats
};

static const int64_t FLOAT = sizeof(float);

static bool count_batches(struct mgx_attention_plan *plan)
{
    const struct mgx_attention_desc *d = &plan->desc;
    plan->batches = 1;
    for (int i = 0; i < d->batch_rank; i++)
        if (d->batch[i] < 0 || !mgx_mul_i64(plan->batches, d->batch[i], &plan->batches))
            return false;
    return plan->batches <= INT32_MAX;
}

// What products of bfloat16 need beside: a tile of Q filled up to whole groups, powers, and sums
// of a tile, or of all rows where keys come in several blocks.
static bool set_narrow(struct mgx_attention_plan *plan, int64_t part_rows)
{
    const struct mgx_attention_desc *d = &plan->desc;
    const int64_t rows = plan->kernel->rows, group = plan->kernel->group;
    plan->k_groups = mgx_panel_rows(plan->kernel, d->depth);
    if (mgx_kernel_is_plain(d->type))
        return true;
    if (d->depth % group)
        plan->q_bytes = mgx_align64((size_t)(rows * plan->k_groups * FLOAT));
    plan->p_bytes = mgx_align64((size_t)(rows * plan->stride * 2));
    if (mgx_kernel_is_plain(d->y_type))
        return true;
    size_t values;
    if (!mgx_mul_size((size_t)(plan->block < d->keys ? part_rows : rows),
                      (size_t)d->columns * sizeof(float), &values))
        return false;
    plan->y_bytes = mgx_align64(values);
    return true;
}

// What a thread holds: a block of K and V in panels, a tile of scores, a maximum and a sum per row.
static bool set_workspace(struct mgx_attention_plan *plan)
{
    const struct mgx_attention_desc *d = &plan->desc;
    const int64_t blocks = mgx_ceil_div(mgx_max_i64(d->keys, 1), MOST_KEYS);
    plan->block = mgx_ceil_div(mgx_ceil_div(d->keys, blocks), LINE) * LINE;
    plan->block = mgx_max_i64(mgx_min_i64(plan->block, d->keys), 1);
    // Not a multiple of 4 KiB, which would put all rows of a tile into one set of the L1 cache.
    plan->stride = mgx_ceil_div(plan->block, 2 * LINE) * 2 * LINE + LINE;
    plan->s_bytes = (size_t)(plan->kernel->rows * plan->stride * FLOAT);
    const int64_t part_rows = mgx_ceil_div(d->queries, plan->parts) + 1;
    size_t rows, total;
    if (!set_narrow(plan, part_rows) ||
        !mgx_panels_bytes(plan->kernel, plan->k_groups, plan->block, &plan->k_bytes) ||
        !mgx_panels_bytes(plan->kernel, mgx_panel_rows(plan->kernel, plan->block), d->columns,
                          &plan->v_bytes) ||
        !mgx_mul_size((size_t)part_rows, 2 * sizeof(float), &rows))
        return false;
    plan->k_bytes = mgx_align64(plan->k_bytes);
    plan->v_bytes = mgx_align64(plan->v_bytes);
    plan->s_bytes = mgx_align64(plan->s_bytes);
    if (!mgx_add_size(plan->k_bytes, plan->v_bytes, &total) ||
        !mgx_add_size(total, plan->s_bytes, &total) || !mgx_add_size(total, rows, &total) ||
        !mgx_add_size(total, plan->q_bytes + plan->p_bytes + 64, &total) ||
        !mgx_add_size(total, plan->y_bytes, &total))
        return false;
    plan->thread_workspace = mgx_align64(total);
    return mgx_mul_size(plan->thread_workspace, (size_t)mgx_max_i64(d->threads, 1), &total);
}

// Whole batches where there are enough of them: a part packs K and V for itself.
static void choose_tasks(struct mgx_attention_plan *plan)
{
    const struct mgx_attention_desc *d = &plan->desc;
    const double work = 2.0 * (double)plan->batches * (double)d->queries * (double)d->keys *
                        (double)(d->depth + d->columns);
    const int64_t tasks = mgx_split_tasks(work, d->threads);
    const int64_t tiles = mgx_ceil_div(d->queries, plan->kernel->rows);
    plan->parts = 1;
    if (plan->batches < tasks)
        plan->parts = mgx_min_i64(mgx_ceil_div(tasks, mgx_max_i64(plan->batches, 1)), tiles);
    plan->parts = mgx_max_i64(plan->parts, 1);
    const int64_t units = plan->batches * plan->parts;
    plan->tasks = tasks == 1 ? 1 : (int)mgx_min_i64(units, mgx_max_i64(tasks, 16 * d->threads));
}

enum mgx_status mgx_attention_plan_init(struct mgx_attention_plan *plan,
                                        const struct mgx_attention_desc *desc,
                                        struct mgx_diag *diag)
{
    *plan = (struct mgx_attention_plan){.desc = *desc};
    const struct mgx_attention_desc *d = &plan->desc;
    if (d->queries < 0 || d->keys < 0 || d->depth < 0 || d->columns < 0)
        return mgx_fail(diag, MGX_INVALID, "attention of sizes %lld x %lld x %lld x %lld",
                        (long long)d->queries, (long long)d->keys, (long long)d->depth,
                        (long long)d->columns);
    plan->kernel = mgx_gemm_kernel_of_rows(mgx_gemm_kernel(d->type, d->isa), d->queries);
    if (!plan->kernel || (mgx_kernel_is_plain(d->type) && !mgx_kernel_is_plain(d->y_type)))
        return mgx_fail(diag, MGX_UNSUPPORTED, "no kernel attends by type %d", d->type);
    plan->rows = mgx_attention_kernel(d->isa);
    int64_t values;
    if (!count_batches(plan) || !mgx_mul_i64(d->queries, d->keys, &values) ||
        !mgx_mul_i64(d->queries, d->columns, &values) || d->columns > INT32_MAX)
        return mgx_fail(diag, MGX_LIMIT, "attention over %lld queries and %lld keys does not fit",
                        (long long)d->queries, (long long)d->keys);
    choose_tasks(plan);
    if (!set_workspace(plan))
        return mgx_fail(diag, MGX_LIMIT, "workspace for %lld keys of depth %lld does not fit",
                        (long long)d->keys, (long long)d->depth);
    return MGX_OK;
}

size_t mgx_attention_workspace(const struct mgx_attention_plan *plan)
{
    return plan->thread_workspace * (size_t)mgx_max_i64(plan->desc.threads, 1);
}

// --- running ---

struct job {
    const struct mgx_attention_plan *plan;
    const struct mgx_attention_args *args;
};

struct part { // one batch, a range of queries, a block of keys
    const struct mgx_attention_plan *plan;
    const struct mgx_attention_args *args;
    int thread;
    int64_t at[MGX_ATTENTION_BATCH];
    const char *q, *k, *v;
    const float *mask;
    char *y;
    int64_t size, y_size; // bytes of a value of Q, K and V, and of Y
    char *k_panels, *v_panels;
    float *scores, *high, *sum;      // of rows: from `begin` on
    char *q_copy;                    // NULL: Q is read where it lies
    uint16_t *powers;                // of bfloat16
    float *sums;                     // what Y is made of; NULL: Y itself
    int64_t begin, end, first, keys; // queries; keys of the block
    struct mgx_tile_registers *registers;
};

static void pack_block(const struct part *part)
{
    const struct mgx_attention_desc *d = &part->plan->desc;
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const int64_t k_groups = part->plan->k_groups, v_groups = mgx_panel_rows(kernel, part->keys);
    const struct mgx_panel_source k = {.at = part->k + part->first * d->k_col * part->size,
                                       .type = d->type,
                                       .row = d->k_row,
                                       .col = d->k_col,
                                       .depth = d->depth,
                                       .n = part->keys},
                                  v = {.at = part->v + part->first * d->v_row * part->size,
                                       .type = d->type,
                                       .row = d->v_row,
                                       .col = d->v_col,
                                       .depth = part->keys,
                                       .n = d->columns};
    for (int64_t p = 0; p * kernel->cols < k.n; p++)
        mgx_panel_pack(kernel, &k, p, part->k_panels + p * kernel->cols * k_groups * FLOAT);
    for (int64_t p = 0; p * kernel->cols < v.n; p++)
        mgx_panel_pack(kernel, &v, p, part->v_panels + p * kernel->cols * v_groups * FLOAT);
}

// Rows of a left operand, `row` bytes apart; `depth` groups of each.
struct left {
    const char *at;
    int64_t row, depth;
    int rows;
};

// c[rows][n] = a * panels, onto c where `onto`; c_row in floats.
static void multiply(const struct part *part, const struct left *a, const char *panels, int64_t n,
                     float *c, int64_t c_row, bool onto)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const int64_t tap = 0, half = kernel->half;
    struct mgx_tile_args args = {.a = {a->at, a->at + half * a->row},
                                 .a_row = a->row,
                                 .taps = &tap,
                                 .tap_count = 1,
                                 .depth = a->depth,
                                 .c_row = c_row * FLOAT,
                                 .residual_row = c_row * FLOAT,
                                 .ahead = panels,
                                 .registers = part->registers};
    for (int64_t p = 0; p * kernel->cols < n; p++, c += kernel->cols) {
        const int64_t left = n - p * kernel->cols;
        args.cols = left < kernel->cols ? (int)left : kernel->cols;
        args.b = panels + p * kernel->cols * a->depth * FLOAT;
        args.b_row = mgx_panel_width(kernel, n, p) * FLOAT;
        args.c[0] = (char *)c;
        args.c[1] = (char *)(c + half * c_row);
        args.residual[0] = onto ? args.c[0] : NULL;
        args.residual[1] = onto ? args.c[1] : NULL;
        (args.cols > kernel->cols / 2 ? kernel->wide : kernel->narrow)[a->rows](&args);
    }
}

// Queries from `row` on as the kernel reads them.
static struct left queries_at(const struct part *part, int64_t row, int rows)
{
    const struct mgx_attention_desc *d = &part->plan->desc;
    struct left q = {part->q + row * d->q_row * part->size, d->q_row * part->size,
                     part->plan->k_groups, rows};
    if (!part->q_copy)
        return q;
    const size_t used = (size_t)(d->depth * part->size), whole = (size_t)(q.depth * FLOAT);
    for (int i = 0; i < rows; i++) {
        char *to = part->q_copy + (size_t)i * whole;
        memcpy(to, q.at + i * q.row, used);
        memset(to + used, 0, whole - used);
    }
    q.at = part->q_copy;
    q.row = (int64_t)whole;
    return q;
}

// Powers as the kernel reads them.
static struct left powers_of(const struct part *part, int rows)
{
    const int64_t stride = part->plan->stride;
    struct left p = {(const char *)part->scores, stride * FLOAT, part->keys, rows};
    if (!part->powers)
        return p;
    const mgx_convert_fn convert =
        mgx_convert(part->plan->desc.isa, MGX_KERNEL_F32, MGX_KERNEL_BF16);
    for (int i = 0; i < rows; i++) {
        uint16_t *to = part->powers + i * stride;
        convert(part->scores + i * stride, to, part->keys);
        to[part->keys] = 0; // of an odd number of keys the last one is a group with this
    }
    p.at = (const char *)part->powers;
    p.row = stride * 2;
    p.depth = mgx_panel_rows(part->plan->kernel, part->keys);
    return p;
}

// Scores of a tile of rows as powers; `factor`: what earlier blocks' results shrink by.
static void make_powers(const struct part *part, int64_t row, int rows, float *factor)
{
    const struct mgx_attention_plan *plan = part->plan;
    const struct mgx_attention_desc *d = &plan->desc;
    float *high = part->high + (row - part->begin), *sum = part->sum + (row - part->begin);
    float old[MGX_TILE_MAX_ROWS], now[MGX_TILE_MAX_ROWS];
    const struct left q = queries_at(part, row, rows);
    const struct mgx_tile scores = {.data = part->scores,
                                    .stride = plan->stride,
                                    .row = row,
                                    .row_step = 1,
                                    .col = part->first,
                                    .rows = rows,
                                    .cols = (int)part->keys,
                                    .thread = part->thread};
    multiply(part, &q, part->k_panels, part->keys, part->scores, plan->stride, false);
    if (d->hook)
        d->hook(part->args->hook_user, part->at, &scores);
    memcpy(old, high, (size_t)rows * sizeof *old);
    const float *mask =
        part->mask ? part->mask + row * d->mask_row + part->first * d->mask_col : NULL;
    plan->rows->scale(&scores, d->scale, mask, d->mask_row, d->mask_col, high);
    plan->rows->exp(&scores, high, now);
    for (int i = 0; i < rows; i++) {
        factor[i] = old[i] == high[i] ? 1 : expf(old[i] - high[i]);
        sum[i] = part->first ? sum[i] * factor[i] + now[i] : now[i];
    }
}

// Sums of a tile become rows of Y.
static void store_rows(const struct part *part, int64_t row, int rows, const float *sums)
{
    const struct mgx_attention_desc *d = &part->plan->desc;
    const mgx_convert_fn convert = mgx_convert(d->isa, MGX_KERNEL_F32, d->y_type);
    for (int i = 0; i < rows; i++)
        convert(sums + i * d->columns, part->y + (row + i) * d->y_row * part->y_size, d->columns);
}

static void run_tile(const struct part *part, int64_t row, int rows)
{
    const struct mgx_attention_plan *plan = part->plan;
    const struct mgx_attention_desc *d = &plan->desc;
    const int64_t sums_row = plan->block < d->keys ? row - part->begin : 0;
    const int64_t step = part->sums ? d->columns : d->y_row;
    float factor[MGX_TILE_MAX_ROWS];
    const struct mgx_tile y = {.data = part->sums ? part->sums + sums_row * step
                                                  : (float *)(void *)part->y + row * step,
                               .stride = step,
                               .rows = rows,
                               .cols = (int)d->columns};
    make_powers(part, row, rows, factor);
    if (part->first)
        plan->rows->multiply(&y, factor);
    const struct left p = powers_of(part, rows);
    multiply(part, &p, part->v_panels, d->columns, y.data, step, part->first > 0);
    if (part->first + part->keys < d->keys)
        return;
    for (int i = 0; i < rows; i++) {
        const float sum = part->sum[row - part->begin + i];
        factor[i] = d->guarded && sum == 0 ? 0 : 1 / sum;
    }
    plan->rows->multiply(&y, factor);
    if (part->sums)
        store_rows(part, row, rows, y.data);
}

static void run_blocks(struct part *part)
{
    const struct mgx_attention_plan *plan = part->plan;
    const int64_t rows = part->end - part->begin;
    const int64_t tiles = mgx_ceil_div(rows, plan->kernel->rows);
    for (int64_t i = 0; i < rows; i++)
        part->high[i] = -INFINITY;
    for (part->first = 0; part->first < plan->desc.keys; part->first += part->keys) {
        part->keys = mgx_min_i64(plan->block, plan->desc.keys - part->first);
        pack_block(part);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t row = part->begin + rows * t / tiles;
            run_tile(part, row, (int)(part->begin + rows * (t + 1) / tiles - row));
        }
    }
}

// Moves the operands to batch number `batch`.
static void set_batch(struct part *part, int64_t batch)
{
    const struct mgx_attention_desc *d = &part->plan->desc;
    for (int i = d->batch_rank - 1; i >= 0; i--) {
        const int64_t at = batch % d->batch[i];
        batch /= d->batch[i];
        part->at[i] = at;
        part->q += at * d->q_batch[i] * part->size;
        part->k += at * d->k_batch[i] * part->size;
        part->v += at * d->v_batch[i] * part->size;
        part->y += at * d->y_batch[i] * part->y_size;
        if (part->mask)
            part->mask += at * d->mask_batch[i];
    }
}

static void run_unit(const struct job *job, int64_t unit, int thread,
                     struct mgx_tile_registers *registers)
{
    const struct mgx_attention_plan *plan = job->plan;
    const struct mgx_attention_args *args = job->args;
    char *own = (char *)args->workspace + plan->thread_workspace * (size_t)thread;
    const int64_t i = unit % plan->parts, queries = plan->desc.queries;
    struct part part = {.plan = plan,
                        .args = args,
                        .thread = thread,
                        .q = args->q,
                        .k = args->k,
                        .v = args->v,
                        .mask = plan->desc.masked ? args->mask : NULL,
                        .y = args->y,
                        .size = mgx_kernel_size(plan->desc.type),
                        .y_size = mgx_kernel_size(plan->desc.y_type),
                        .k_panels = own,
                        .v_panels = own + plan->k_bytes,
                        .begin = queries * i / plan->parts,
                        .end = queries * (i + 1) / plan->parts,
                        .registers = registers};
    own += plan->k_bytes + plan->v_bytes;
    part.scores = (float *)(void *)own;
    own += plan->s_bytes;
    part.q_copy = plan->q_bytes ? own : NULL;
    own += plan->q_bytes;
    part.powers = plan->p_bytes ? (uint16_t *)(void *)own : NULL;
    own += plan->p_bytes;
    part.sums = plan->y_bytes ? (float *)(void *)own : NULL;
    own += plan->y_bytes;
    part.high = (float *)(void *)own;
    part.sum = part.high + (part.end - part.begin);
    set_batch(&part, unit / plan->parts);
    run_blocks(&part);
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const int64_t units = job->plan->batches * job->plan->parts, tasks = job->plan->tasks;
    struct mgx_tile_registers registers = {0, 0};
    for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; unit++)
        run_unit(job, unit, thread, &registers);
    if (job->plan->kernel->release)
        job->plan->kernel->release(&registers);
}

void mgx_attention_run(const struct mgx_attention_plan *plan, const struct mgx_attention_args *args,
                       struct mgx_pool *pool)
{
    const struct mgx_attention_desc *d = &plan->desc;
    assert(mgx_pool_threads(pool) <= mgx_max_i64(d->threads, 1));
    if (!plan->batches || !d->queries || !d->columns)
        return;
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->tasks, run_task, &job);
}
