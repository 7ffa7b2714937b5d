// SPDX-License-Identifier: MIT
// See cached.h.
//
//     unit: one entry, one token, up to `together` heads that share keys; a task is a run of units
#include "targets/cpu/kernel/product/cached.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/rule/cache.h"
#include "targets/cpu/kernel/split.h"

enum {
    TOGETHER = MGX_TILE_RAW_ROWS, // heads whose scores are made at once
    AT_ONCE = 4,                  // keys of one call of `dot`
    FEW = 8,                      // tokens that are taken one by one
    MANY = 256,                   // queries of a block
    BLOCK_KEYS = 2048,            // what attention.h takes at once
    LINE = 16,                    // floats
};

// --- planning ---

static bool is_legal(const struct mgx_cached_desc *d)
{
    const int64_t sizes[] = {d->batch, d->heads, d->shared,  d->tokens,
                             d->keys,  d->depth, d->columns, d->window};
    for (int i = 0; i < 8; i++)
        if (sizes[i] < 0)
            return false;
    return d->shared ? d->heads % d->shared == 0 : !d->heads;
}

// A block of queries of one entry, over keys [from, to), as attention.h sees it.
static struct mgx_attention_desc block_of(const struct mgx_cached_desc *d, int64_t queries,
                                          int64_t keys)
{
    const int64_t group = d->heads / mgx_max_i64(d->shared, 1);
    return (struct mgx_attention_desc){.isa = d->isa,
                                       .type = MGX_KERNEL_F32,
                                       .y_type = MGX_KERNEL_F32,
                                       .threads = d->threads,
                                       .queries = queries,
                                       .keys = keys,
                                       .depth = d->depth,
                                       .columns = d->columns,
                                       .batch_rank = 2,
                                       .batch = {d->shared, group},
                                       .q_row = d->q[2],
                                       .q_batch = {group * d->q[1], d->q[1]},
                                       .k_row = 1,
                                       .k_col = d->k[2],
                                       .k_batch = {d->k[1], 0},
                                       .v_row = d->v[2],
                                       .v_col = 1,
                                       .v_batch = {d->v[1], 0},
                                       .y_row = d->y[2],
                                       .y_batch = {group * d->y[1], d->y[1]},
                                       .scale = 1};
}

// What the largest block needs, with all its queries in one part. Smaller ones may be cut otherwise
// and need no more; that is checked when they run. A sink belongs to the sum of powers, and a bias
// may hide everything from a token: such are taken one by one.
static enum mgx_status plan_many(struct mgx_cached_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_cached_desc *d = &plan->desc;
    struct mgx_attention_plan block;
    if (d->tokens <= FEW || d->sunk || d->biased)
        return MGX_OK;
    const int64_t queries = mgx_min_i64(d->tokens, MANY);
    const struct mgx_attention_desc desc = block_of(d, queries, mgx_min_i64(d->keys, BLOCK_KEYS));
    TRY(mgx_attention_plan_init(&block, &desc, diag));
    const size_t rows = mgx_align64((size_t)(queries + 1) * 2 * sizeof(float));
    plan->many_workspace =
        mgx_attention_workspace(&block) + rows * (size_t)mgx_max_i64(d->threads, 1);
    return MGX_OK;
}

enum mgx_status mgx_cached_plan_init(struct mgx_cached_plan *plan,
                                     const struct mgx_cached_desc *desc, struct mgx_diag *diag)
{
    *plan = (struct mgx_cached_plan){.desc = *desc};
    const struct mgx_cached_desc *d = &plan->desc;
    if (!is_legal(d))
        return mgx_fail(diag, MGX_INVALID, "attention of %lld heads over %lld of %lld keys",
                        (long long)d->heads, (long long)d->shared, (long long)d->keys);
    if (d->keys > INT32_MAX || d->tokens > INT32_MAX || d->columns > INT32_MAX)
        return mgx_fail(diag, MGX_LIMIT, "attention of %lld tokens over %lld keys does not fit",
                        (long long)d->tokens, (long long)d->keys);
    plan->rows = mgx_attention_kernel(d->isa);
    plan->products = mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    // As many heads as share their keys, but something for every thread.
    const int64_t group = d->heads / mgx_max_i64(d->shared, 1);
    const int64_t others = mgx_max_i64(d->batch * d->shared * d->tokens, 1);
    const int64_t parts = mgx_max_i64(mgx_ceil_div(d->threads, others), 1);
    plan->together = mgx_min_i64(mgx_max_i64(mgx_ceil_div(group, parts), 1), TOGETHER);
    plan->stride = mgx_ceil_div(d->keys, 2 * LINE) * 2 * LINE + LINE;
    plan->thread_workspace = mgx_align64((size_t)(TOGETHER * plan->stride) * sizeof(float));
    return plan_many(plan, diag);
}

size_t mgx_cached_workspace(const struct mgx_cached_plan *plan)
{
    const size_t few = plan->thread_workspace * (size_t)mgx_max_i64(plan->desc.threads, 1);
    return plan->many_workspace > few ? plan->many_workspace : few;
}

// --- few tokens ---

struct job {
    const struct mgx_cached_plan *plan;
    const struct mgx_cached_args *args;
    int64_t units;
    int tasks;
};

// Heads [head, head + rows) of one entry, one token of it, which sees keys [from, to).
struct unit {
    int64_t entry, head, token, from, to;
    int rows;
    float *scores;
};

static int64_t offset_of(const int64_t stride[3], int64_t entry, int64_t head, int64_t token)
{
    return entry * stride[0] + head * stride[1] + token * stride[2];
}

static int64_t group_of(const struct mgx_cached_desc *d)
{
    return d->heads / d->shared;
}

static void visible(const struct mgx_cached_desc *d, int64_t ends, int64_t token, int64_t *from,
                    int64_t *to)
{
    const struct mgx_cache_attention attr = {.window = d->window, .whole = d->whole};
    mgx_cache_visible(&attr, ends, d->tokens, d->keys, token, from, to);
}

static void make_scores(const struct job *job, const struct unit *u)
{
    const struct mgx_cached_desc *d = &job->plan->desc;
    const int64_t tap = 0, size = sizeof(float), shared = u->head / group_of(d);
    const float *k = job->args->k + offset_of(d->k, u->entry, shared, u->from);
    struct mgx_tile_args args = {
        .a = {(const char *)(job->args->q + offset_of(d->q, u->entry, u->head, u->token))},
        .a_row = d->q[1] * size,
        .taps = &tap,
        .tap_count = 1,
        .depth = d->depth,
        .b_row = d->k[2] * size,
        .c_row = job->plan->stride * size};
    for (int64_t j = 0; j < u->to - u->from; j += AT_ONCE) {
        args.cols = (int)mgx_min_i64(AT_ONCE, u->to - u->from - j);
        args.b = (const char *)(k + j * d->k[2]);
        args.c[0] = (char *)(u->scores + j);
        args.c[1] = args.c[0] + job->plan->products->half * args.c_row;
        job->plan->products->dot(&args, u->rows);
    }
}

// The scores of a unit, a row for each head.
static struct mgx_tile scores_of(const struct job *job, const struct unit *u)
{
    return (struct mgx_tile){.data = u->scores,
                             .stride = job->plan->stride,
                             .rows = u->rows,
                             .cols = (int)(u->to - u->from)};
}

// Scores become powers; `factor`: one over their sums.
static void make_powers(const struct job *job, const struct unit *u, float *factor)
{
    const struct mgx_cached_plan *plan = job->plan;
    const struct mgx_cached_desc *d = &plan->desc;
    const struct mgx_tile scores = scores_of(job, u);
    float high[TOGETHER], sum[TOGETHER];
    for (int r = 0; r < u->rows; r++)
        high[r] = d->sunk ? job->args->sink[u->head + r] : -INFINITY;
    if (d->cap > 0)
        plan->rows->cap(&scores, d->scale, d->cap);
    const float *bias =
        d->biased ? job->args->bias + offset_of(d->bias, u->entry, u->head, u->token) + u->from
                  : NULL;
    plan->rows->scale(&scores, d->cap > 0 ? 1 : d->scale, bias, d->bias[1], 1, high);
    plan->rows->exp(&scores, high, sum);
    for (int r = 0; r < u->rows; r++) {
        if (d->sunk && high[r] != -INFINITY)
            sum[r] += expf(job->args->sink[u->head + r] - high[r]);
        factor[r] = sum[r] == 0 ? 0 : 1 / sum[r];
    }
}

static void run_unit(const struct job *job, struct unit *u)
{
    const struct mgx_cached_desc *d = &job->plan->desc;
    const struct mgx_tile scores = scores_of(job, u),
                          y = {.data = job->args->y + offset_of(d->y, u->entry, u->head, u->token),
                               .stride = d->y[1],
                               .rows = u->rows,
                               .cols = (int)d->columns};
    if (scores.cols <= 0) {
        for (int r = 0; r < u->rows; r++)
            memset(y.data + r * y.stride, 0, (size_t)d->columns * sizeof *y.data);
        return;
    }
    const int64_t shared = u->head / group_of(d);
    float factor[TOGETHER];
    make_scores(job, u);
    make_powers(job, u, factor);
    job->plan->rows->weigh(&scores, job->args->v + offset_of(d->v, u->entry, shared, u->from),
                           d->v[2], &y, factor);
}

static void run_units(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_cached_plan *plan = job->plan;
    const struct mgx_cached_desc *d = &plan->desc;
    const int64_t group = group_of(d), per_group = mgx_ceil_div(group, plan->together),
                  end = mgx_part_begin(job->units, task + 1, job->tasks);
    struct unit u = {.scores = (float *)(void *)((char *)job->args->workspace +
                                                 (size_t)thread * plan->thread_workspace)};
    for (int64_t i = mgx_part_begin(job->units, task, job->tasks); i < end; i++) {
        const int64_t part = i / d->tokens % per_group, head = i / d->tokens / per_group;
        const int64_t first = part * plan->together;
        u.token = i % d->tokens;
        u.entry = head / d->shared;
        u.head = head % d->shared * group + first;
        u.rows = (int)mgx_min_i64(plan->together, group - first);
        visible(d, job->args->ends[u.entry], u.token, &u.from, &u.to);
        run_unit(job, &u);
    }
}

static void run_few(const struct mgx_cached_plan *plan, const struct mgx_cached_args *args,
                    struct mgx_pool *pool)
{
    const struct mgx_cached_desc *d = &plan->desc;
    struct job job = {.plan = plan, .args = args};
    job.units = d->batch * d->shared * mgx_ceil_div(group_of(d), plan->together) * d->tokens;
    int64_t seen = 0;
    for (int64_t b = 0; b < d->batch; b++)
        seen += mgx_min_i64(mgx_max_i64(args->ends[b], d->tokens), d->keys);
    const double work =
        2.0 * (double)(seen * d->heads * d->tokens) * (double)(d->depth + d->columns);
    job.tasks = (int)mgx_min_i64(mgx_split_tasks(work, d->threads), job.units);
    mgx_pool_run(pool, job.tasks, run_units, &job);
}

// --- many tokens ---

struct block { // of queries of one entry
    const struct mgx_cached_plan *plan;
    const struct mgx_cached_args *args;
    int64_t entry, token, from; // the first query, the first key
};

// Of one row of a tile of scores: cap, scale, and nothing from keys that it does not see.
static void finish_row(const struct block *block, int64_t token, const struct mgx_tile *row)
{
    const struct mgx_cached_desc *d = &block->plan->desc;
    const int64_t key = block->from + row->col;
    int64_t from, to;
    float *s = row->data;
    visible(d, block->args->ends[block->entry], token, &from, &to);
    const int64_t first = mgx_min_i64(mgx_max_i64(from - key, 0), row->cols),
                  last = mgx_max_i64(mgx_min_i64(to - key, row->cols), first);
    if (d->cap > 0)
        block->plan->rows->cap(row, d->scale, d->cap);
    const float scale = d->cap > 0 ? 1 : d->scale;
    for (int64_t j = 0; j < first; j++)
        s[j] = -INFINITY;
    for (int64_t j = first; j < last; j++)
        s[j] *= scale;
    for (int64_t j = last; j < row->cols; j++)
        s[j] = -INFINITY;
}

static void finish_scores(void *user, const int64_t *at, const struct mgx_tile *tile)
{
    const struct block *block = user;
    (void)at;
    struct mgx_tile row = *tile;
    row.rows = 1;
    for (int r = 0; r < tile->rows; r++, row.data += tile->stride)
        finish_row(block, block->token + tile->row + r * tile->row_step, &row);
}

// False if the block wants more room than there is.
static enum mgx_status run_block(const struct block *block, int64_t queries, struct mgx_pool *pool,
                                 bool *done, struct mgx_diag *diag)
{
    const struct mgx_cached_args *args = block->args;
    const struct mgx_cached_desc *d = &block->plan->desc;
    struct block seen = *block;
    struct mgx_attention_plan plan;
    int64_t to, none;
    visible(d, args->ends[block->entry], block->token, &seen.from, &none);
    visible(d, args->ends[block->entry], block->token + queries - 1, &none, &to);
    struct mgx_attention_desc desc = block_of(d, queries, to - seen.from);
    desc.hook = finish_scores;
    TRY(mgx_attention_plan_init(&plan, &desc, diag));
    *done = mgx_attention_workspace(&plan) <= block->plan->many_workspace;
    const struct mgx_attention_args a = {
        .q = args->q + offset_of(d->q, block->entry, 0, block->token),
        .k = args->k + offset_of(d->k, block->entry, 0, seen.from),
        .v = args->v + offset_of(d->v, block->entry, 0, seen.from),
        .y = args->y + offset_of(d->y, block->entry, 0, block->token),
        .workspace = args->workspace,
        .hook_user = &seen};
    if (*done)
        mgx_attention_run(&plan, &a, pool);
    return MGX_OK;
}

// Do all tokens see something? Else a row of powers has no sum.
static bool all_see(const struct mgx_cached_desc *d, const struct mgx_cached_args *args)
{
    for (int64_t b = 0; b < d->batch; b++)
        if (mgx_cache_before(args->ends[b], d->tokens) + d->tokens > d->keys)
            return false;
    return true;
}

static enum mgx_status run_many(const struct mgx_cached_plan *plan,
                                const struct mgx_cached_args *args, struct mgx_pool *pool,
                                bool *done, struct mgx_diag *diag)
{
    const struct mgx_cached_desc *d = &plan->desc;
    *done = plan->many_workspace && all_see(d, args);
    for (int64_t b = 0; b < d->batch && *done; b++)
        for (int64_t i = 0; i < d->tokens && *done; i += MANY) {
            const struct block block = {.plan = plan, .args = args, .entry = b, .token = i};
            TRY(run_block(&block, mgx_min_i64(MANY, d->tokens - i), pool, done, diag));
        }
    return MGX_OK;
}

enum mgx_status mgx_cached_run(const struct mgx_cached_plan *plan,
                               const struct mgx_cached_args *args, struct mgx_pool *pool,
                               struct mgx_diag *diag)
{
    const struct mgx_cached_desc *d = &plan->desc;
    bool done = false;
    if (!d->batch || !d->heads || !d->tokens || !d->columns)
        return MGX_OK;
    TRY(run_many(plan, args, pool, &done, diag));
    if (!done)
        run_few(plan, args, pool);
    return MGX_OK;
}
