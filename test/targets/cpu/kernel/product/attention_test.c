// SPDX-License-Identifier: MIT
// Attention against its definition in double, on every instruction set, with random shapes around
// the tile sizes, strides of every kind, one and several blocks of keys, masks and hooks; --bench
// times the heads of some transformers.
#include "targets/cpu/kernel/product/attention.h"

#include <stdio.h>

#include "targets/cpu/kernel/harness.h"

struct trial {
    struct mgx_attention_desc d;
    struct buffer q, k, v, mask, y, workspace;
    struct buffer q16, k16, v16; // of bfloat16
    int64_t heads;
    bool keys_first; // K lies key by key
};

static float hooked(int64_t head, int64_t row, int64_t key)
{
    return (float)((row * 3 + key * 5 + head) % 7) * 0.25f;
}

static void add_hooked(void *user, const int64_t *at, const struct mgx_tile *tile)
{
    (void)user;
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->cols; j++)
            tile->data[i * tile->stride + j] += hooked(at[1], tile->row + i, tile->col + j);
}

static int64_t gap(struct rng *r)
{
    return rng_below(r, 3) ? 0 : 1 + rng_below(r, 9);
}

// Batch 2 x heads; rows and heads interleaved as in a model, with gaps now and then.
static void set_strides(struct trial *t, struct rng *r)
{
    struct mgx_attention_desc *d = &t->d;
    d->batch_rank = 2;
    d->batch[0] = 1 + rng_below(r, 2);
    d->batch[1] = t->heads;
    d->q_batch[1] = d->depth + gap(r);
    d->q_row = t->heads * d->q_batch[1] + gap(r);
    d->q_batch[0] = d->queries * d->q_row;
    t->keys_first = rng_below(r, 2);
    d->k_batch[1] = d->depth * d->keys + gap(r);
    d->k_batch[0] = t->heads * d->k_batch[1];
    d->k_row = t->keys_first ? 1 : d->keys;
    d->k_col = t->keys_first ? d->depth : 1;
    const bool turned = rng_below(r, 4) == 0;
    d->v_row = turned ? 1 : d->columns + gap(r);
    d->v_col = turned ? d->keys : 1;
    d->v_batch[1] = turned ? d->keys * d->columns : d->keys * d->v_row;
    d->v_batch[0] = rng_below(r, 2) ? 0 : t->heads * d->v_batch[1];
    d->y_batch[1] = d->columns + gap(r);
    d->y_row = t->heads * d->y_batch[1];
    d->y_batch[0] = d->queries * d->y_row;
}

static void set_between(struct trial *t, struct rng *r)
{
    struct mgx_attention_desc *d = &t->d;
    d->scale = rng_below(r, 3) ? 0.5f : 1;
    d->hook = rng_below(r, 3) ? NULL : add_hooked;
    d->masked = rng_below(r, 3) != 0;
    d->mask_col = rng_below(r, 4) != 0;
    d->mask_row = rng_below(r, 2) ? d->keys : 0;
    d->mask_batch[1] = rng_below(r, 2) ? d->queries * d->keys : 0;
}

static int64_t last(const struct mgx_attention_desc *d, const int64_t batch[2], int64_t a,
                    int64_t a_step, int64_t b, int64_t b_step)
{
    return (d->batch[0] - 1) * batch[0] + (d->batch[1] - 1) * batch[1] + (a - 1) * a_step +
           (b - 1) * b_step + 1;
}

// Values as bfloat16, to which they are rounded themselves where the trial is of that.
static struct buffer narrowed(struct buffer x)
{
    struct buffer y = buffer_new((x.count + 1) / 2);
    for (int64_t i = 0; i < x.count; i++)
        ((uint16_t *)(void *)y.data)[i] = mgx_bf16_from_double(x.data[i]);
    return y;
}

static void round_values(struct buffer x)
{
    for (int64_t i = 0; i < x.count; i++)
        x.data[i] = (float)mgx_bf16_to_float(mgx_bf16_from_double(x.data[i]));
}

static void set_buffers(struct trial *t, struct rng *r)
{
    const struct mgx_attention_desc *d = &t->d;
    t->q = buffer_random(last(d, d->q_batch, d->queries, d->q_row, d->depth, 1), r);
    t->k = buffer_random(last(d, d->k_batch, d->depth, d->k_row, d->keys, d->k_col), r);
    t->v = buffer_random(last(d, d->v_batch, d->keys, d->v_row, d->columns, d->v_col), r);
    if (d->type == MGX_KERNEL_BF16) {
        round_values(t->q);
        round_values(t->k);
        round_values(t->v);
    }
    t->mask =
        buffer_random(last(d, d->mask_batch, d->queries, d->mask_row, d->keys, d->mask_col), r);
    for (int64_t i = 0; i < t->mask.count; i++)
        if (rng_below(r, 5) == 0)
            t->mask.data[i] = -INFINITY;
    t->y = buffer_new(
        (last(d, d->y_batch, d->queries, d->y_row, d->columns, 1) * typed_size(d->y_type) + 3) / 4);
    t->q16 = narrowed(t->q);
    t->k16 = narrowed(t->k);
    t->v16 = narrowed(t->v);
}

// The definition, row by row. `y` gets the row, `*scale` the largest sum of absolute values.
static void meaning(const struct trial *t, const int64_t at[2], int64_t row, double *y)
{
    const struct mgx_attention_desc *d = &t->d;
    double *s = calloc((size_t)d->keys, sizeof *s), high = -INFINITY, sum = 0;
    const float *q = t->q.data + at[0] * d->q_batch[0] + at[1] * d->q_batch[1] + row * d->q_row;
    const float *k = t->k.data + at[0] * d->k_batch[0] + at[1] * d->k_batch[1];
    const float *v = t->v.data + at[0] * d->v_batch[0] + at[1] * d->v_batch[1];
    const float *mask = t->mask.data + at[1] * d->mask_batch[1] + row * d->mask_row;
    for (int64_t j = 0; j < d->keys; j++) {
        for (int64_t i = 0; i < d->depth; i++)
            s[j] += (double)q[i] * k[i * d->k_row + j * d->k_col];
        s[j] += d->hook ? hooked(at[1], row, j) : 0;
        s[j] = s[j] * d->scale + (d->masked ? mask[j * d->mask_col] : 0);
        high = fmax(high, s[j]);
    }
    for (int64_t j = 0; j < d->keys; j++)
        sum += s[j] = exp(s[j] - high);
    for (int64_t c = 0; c < d->columns; c++) {
        y[c] = 0;
        for (int64_t j = 0; j < d->keys; j++)
            y[c] += s[j] / sum * v[j * d->v_row + c * d->v_col];
    }
    free(s);
}

// Scores err by their length's rounding, which exp makes relative; values are within [-1, 1]. Powers
// of bfloat16 err by its rounding, as does a result.
static void compare(const struct trial *t)
{
    const struct mgx_attention_desc *d = &t->d;
    const double tolerance = 0x1p-23 * (8 + (double)d->depth + (double)d->keys / 16) +
                             (d->type == MGX_KERNEL_BF16 ? 0x1p-8 : 0) +
                             (d->y_type == MGX_KERNEL_BF16 ? 0x1p-8 : 0);
    double *want = calloc((size_t)d->columns, sizeof *want);
    int64_t touched = 0;
    for (int64_t b = 0; b < d->batch[0]; b++)
        for (int64_t h = 0; h < d->batch[1]; h++)
            for (int64_t i = 0; i < d->queries; i++) {
                const int64_t at[2] = {b, h};
                const int64_t first = b * d->y_batch[0] + h * d->y_batch[1] + i * d->y_row;
                meaning(t, at, i, want);
                for (int64_t c = 0; c < d->columns; c++) {
                    const double got = typed_get(d->y_type, t->y.data, first + c);
                    CHECK(isnan(want[c]) ? isnan(got) : fabs(got - want[c]) <= tolerance);
                }
                touched += d->columns;
            }
    for (int64_t i = 0; i < t->y.count && d->y_type == MGX_KERNEL_F32; i++)
        touched -= !is_guard(t->y.data + i);
    // Nothing between the rows was written.
    CHECK(touched == 0 || d->y_type != MGX_KERNEL_F32);
    free(want);
}

static void run_trial(struct trial *t, struct rng *r, mgx_isa isa, int threads)
{
    struct mgx_attention_plan plan;
    struct mgx_pool *pool = NULL;
    t->d.isa = isa;
    t->d.threads = threads;
    set_strides(t, r);
    set_between(t, r);
    set_buffers(t, r);
    if (mgx_pool_acquire(threads, &pool, NULL) != MGX_OK ||
        mgx_attention_plan_init(&plan, &t->d, NULL) != MGX_OK)
        abort();
    t->workspace = buffer_new((int64_t)mgx_attention_workspace(&plan) / 4);
    const bool narrow = t->d.type == MGX_KERNEL_BF16;
    const struct mgx_attention_args args = {.q = narrow ? t->q16.data : t->q.data,
                                            .k = narrow ? t->k16.data : t->k.data,
                                            .v = narrow ? t->v16.data : t->v.data,
                                            .mask = t->mask.data,
                                            .y = t->y.data,
                                            .workspace = t->workspace.data};
    mgx_attention_run(&plan, &args, pool);
    compare(t);
    const struct buffer all[] = {t->q,   t->k,   t->v,   t->mask,     t->y,
                                 t->q16, t->k16, t->v16, t->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(buffer_intact(all[i]));
        buffer_free(all[i]);
    }
    mgx_pool_release(pool);
}

// bfloat16 where there is a kernel for it, with results of either type.
static void draw_types(struct trial *t, struct rng *r, mgx_isa isa)
{
    if (!mgx_gemm_kernel(MGX_KERNEL_BF16, isa) || rng_below(r, 3) == 0)
        return;
    t->d.type = MGX_KERNEL_BF16;
    t->d.y_type = rng_below(r, 2) ? MGX_KERNEL_BF16 : MGX_KERNEL_F32;
}

static void try_shapes(mgx_isa isa)
{
    static const int rows[] = {1, 6, 7, 14, 28}, keys[] = {1, 8, 16, 32, 64, 100},
                     depths[] = {1, 16, 32, 64}, columns[] = {1, 8, 16, 32, 64};
    struct rng r = {0x9e3779b97f4a7c15u + (uint64_t)isa};
    for (int i = 0; i < 60; i++) {
        struct trial t = {.heads = 1 + rng_below(&r, 3)};
        t.d.queries = 1 + rng_size(&r, rows, 5);
        t.d.keys = 1 + rng_size(&r, keys, 6);
        t.d.depth = rng_size(&r, depths, 4);
        t.d.columns = 1 + rng_size(&r, columns, 5);
        t.d.depth = t.d.depth ? t.d.depth : 1;
        draw_types(&t, &r, isa);
        run_trial(&t, &r, isa, 1 + rng_below(&r, 2));
    }
}

static void try_blocks(mgx_isa isa)
{
    struct rng r = {0x2545f4914f6cdd1du + (uint64_t)isa};
    for (int i = 0; i < 4; i++) {
        struct trial t = {.heads = 1};
        t.d.queries = 1 + rng_below(&r, 17);
        t.d.keys = 2040 + rng_below(&r, 2200);
        t.d.depth = 1 + rng_below(&r, 9);
        t.d.columns = 1 + rng_below(&r, 9);
        draw_types(&t, &r, isa);
        run_trial(&t, &r, isa, 1);
    }
}

static void try_limits(mgx_isa isa)
{
    struct mgx_attention_plan plan;
    struct mgx_diag diag = {0};
    struct mgx_attention_desc d = {
        .isa = isa, .threads = 1, .queries = -1, .keys = 1, .depth = 1, .columns = 1};
    CHECK(mgx_attention_plan_init(&plan, &d, &diag) == MGX_INVALID);
    d.queries = d.keys = INT64_MAX / 2;
    diag = (struct mgx_diag){0};
    CHECK(mgx_attention_plan_init(&plan, &d, &diag) == MGX_LIMIT);
    d.queries = d.keys = 4;
    d.depth = INT64_MAX / 4;
    diag = (struct mgx_diag){0};
    CHECK(mgx_attention_plan_init(&plan, &d, &diag) == MGX_LIMIT);
}

// Powers of a row: e^x where it counts beside 1, never a denormal, which would take a hundred times
// as long.
static void try_powers(mgx_isa isa)
{
    enum { COUNT = 48 };
    const struct mgx_attention_desc d = {
        .isa = isa, .threads = 1, .queries = 1, .keys = 1, .depth = 1, .columns = 1};
    struct mgx_attention_plan plan;
    struct mgx_diag diag = {0};
    CHECK(mgx_attention_plan_init(&plan, &d, &diag) == MGX_OK);
    _Alignas(64) float s[COUNT];
    float sum, high = 3;
    double expected = 0;
    for (int i = 0; i < COUNT; i++) {
        s[i] = high - 2.5f * (float)i;
        expected += exp(s[i] - high);
    }
    plan.rows->exp(&(struct mgx_tile){.data = s, .stride = COUNT, .rows = 1, .cols = COUNT}, &high,
                   &sum);
    CHECK(fabs(sum - expected) <= 1e-6 * expected);
    for (int i = 0; i < COUNT; i++) {
        const double power = exp(-2.5 * i);
        CHECK(s[i] == 0 || isnormal(s[i]));
        CHECK(fabs(s[i] - power) <= 1e-6 * power + 1e-27);
    }
}

CASE(powers_are_never_denormal)
{
    EACH_ISA(isa)
    try_powers(isa);
}

CASE(agrees_with_the_definition)
{
    EACH_ISA(isa)
    try_shapes(isa);
}

CASE(takes_keys_in_blocks)
{
    EACH_ISA(isa)
    try_blocks(isa);
}

CASE(refuses_what_does_not_fit)
{
    EACH_ISA(isa)
    try_limits(isa);
}

// --- --bench ---

struct timed {
    struct mgx_attention_plan plan;
    struct mgx_attention_args args;
    struct mgx_pool *pool;
};

static void run_timed(void *user)
{
    struct timed *t = user;
    mgx_attention_run(&t->plan, &t->args, t->pool);
}

static void bench_heads(int64_t images, int64_t tokens, int64_t heads, int64_t depth, int threads)
{
    struct rng r = {1};
    struct timed t;
    const int64_t row = 3 * heads * depth;
    const struct mgx_attention_desc d = {.isa = mgx_cpu()->isa,
                                         .threads = threads,
                                         .queries = tokens,
                                         .keys = tokens,
                                         .depth = depth,
                                         .columns = depth,
                                         .batch_rank = 2,
                                         .batch = {images, heads},
                                         .q_row = row,
                                         .q_batch = {tokens * row, depth},
                                         .k_row = 1,
                                         .k_col = row,
                                         .k_batch = {tokens * row, depth},
                                         .v_row = row,
                                         .v_col = 1,
                                         .v_batch = {tokens * row, depth},
                                         .y_row = heads * depth,
                                         .y_batch = {tokens * heads * depth, depth},
                                         .scale = 0.125f};
    if (mgx_attention_plan_init(&t.plan, &d, NULL) != MGX_OK ||
        mgx_pool_acquire(threads, &t.pool, NULL) != MGX_OK)
        return;
    struct buffer qkv = buffer_random(images * tokens * row, &r),
                  y = buffer_new(images * tokens * heads * depth),
                  workspace = buffer_new((int64_t)mgx_attention_workspace(&t.plan) / 4);
    t.args = (struct mgx_attention_args){.q = qkv.data,
                                         .k = qkv.data + heads * depth,
                                         .v = qkv.data + 2 * heads * depth,
                                         .y = y.data,
                                         .workspace = workspace.data};
    const double seconds = bench_time(run_timed, &t, 15);
    const double flops = 4.0 * (double)(images * tokens * tokens * heads * depth);
    printf("%2d x %4d tokens, %2d heads of %3d, %d thread(s): %8.1f us %6.1f GFLOP/s\n",
           (int)images, (int)tokens, (int)heads, (int)depth, threads, seconds * 1e6,
           flops / seconds * 1e-9);
    buffer_free(qkv);
    buffer_free(y);
    buffer_free(workspace);
    mgx_pool_release(t.pool);
}

static int bench(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        bench_heads(1, 64, 12, 64, threads);
        bench_heads(1, 128, 12, 32, threads);
        bench_heads(1, 128, 12, 64, threads);
        bench_heads(8, 128, 12, 64, threads);
        bench_heads(1, 197, 12, 64, threads);
        bench_heads(1, 384, 12, 64, threads);
        bench_heads(1, 4096, 2, 64, threads);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(powers_are_never_denormal) ROW(agrees_with_the_definition) ROW(takes_keys_in_blocks)
            ROW(refuses_what_does_not_fit){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : harness_run(cases, argc, argv);
}
