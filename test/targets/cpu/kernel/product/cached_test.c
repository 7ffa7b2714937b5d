// SPDX-License-Identifier: MIT
// Attention over caches against its definition in double, on every instruction set, with random
// shapes, strides with gaps, entries of different lengths, windows, caps, biases and sinks.
#include "targets/cpu/kernel/product/cached.h"

#include "targets/cpu/kernel/harness.h"

struct trial {
    struct mgx_cached_desc d;
    struct buffer q, k, v, y, bias, sink, workspace;
    int64_t ends[4];
};

static int64_t gap(struct rng *r)
{
    return rng_below(r, 3) ? 0 : 1 + rng_below(r, 9);
}

// Heads by tokens, or tokens by heads as a projection leaves them; the number of floats.
static int64_t set_strides(struct rng *r, int64_t stride[3], int64_t batch, int64_t heads,
                           int64_t tokens, int64_t size)
{
    const int64_t row = size + gap(r);
    const bool by_token = rng_below(r, 2);
    stride[by_token ? 1 : 2] = row;
    stride[by_token ? 2 : 1] = row * (by_token ? heads : tokens) + gap(r);
    stride[0] = stride[by_token ? 2 : 1] * (by_token ? tokens : heads) + gap(r);
    return (batch - 1) * stride[0] + (heads - 1) * stride[1] + (tokens - 1) * stride[2] + size;
}

static void set_lengths(struct trial *t, struct rng *r)
{
    for (int64_t b = 0; b < t->d.batch; b++) {
        t->ends[b] = 1 + rng_below(r, (int)t->d.keys);
        if (rng_below(r, 8) == 0) // beyond the cache, or before it
            t->ends[b] = rng_below(r, 2) ? t->d.keys + 3 : -2;
    }
}

static void set_buffers(struct trial *t, struct rng *r)
{
    struct mgx_cached_desc *d = &t->d;
    t->q = buffer_random(set_strides(r, d->q, d->batch, d->heads, d->tokens, d->depth), r);
    t->k = buffer_random(set_strides(r, d->k, d->batch, d->shared, d->keys, d->depth), r);
    t->v = buffer_random(set_strides(r, d->v, d->batch, d->shared, d->keys, d->columns), r);
    t->y = buffer_new(set_strides(r, d->y, d->batch, d->heads, d->tokens, d->columns));
    d->bias[2] = rng_below(r, 2) ? d->keys : 0;
    d->bias[1] = rng_below(r, 2) ? d->keys * d->tokens : 0;
    d->bias[0] = rng_below(r, 2) ? d->keys * d->tokens * d->heads : 0;
    t->bias = buffer_random(d->keys * d->tokens * d->heads * d->batch, r);
    for (int64_t i = 0; i < t->bias.count; i++)
        if (rng_below(r, 4) == 0)
            t->bias.data[i] = -INFINITY;
    t->sink = buffer_random(d->heads, r);
}

static double score(const struct trial *t, const float *q, const float *k, const float *bias,
                    int64_t j)
{
    const struct mgx_cached_desc *d = &t->d;
    double s = 0;
    for (int64_t i = 0; i < d->depth; i++)
        s += (double)q[i] * k[j * d->k[2] + i];
    s *= d->scale;
    s = d->cap > 0 ? d->cap * tanh(s / d->cap) : s;
    return s + (d->biased ? bias[j] : 0);
}

// One row by the definition.
static void meaning(const struct trial *t, int64_t b, int64_t h, int64_t i, double *y)
{
    const struct mgx_cached_desc *d = &t->d;
    const int64_t shared = h / (d->heads / d->shared);
    const int64_t before = t->ends[b] > d->tokens ? t->ends[b] - d->tokens : 0, at = before + i;
    const float *q = t->q.data + b * d->q[0] + h * d->q[1] + i * d->q[2],
                *k = t->k.data + b * d->k[0] + shared * d->k[1],
                *v = t->v.data + b * d->v[0] + shared * d->v[1],
                *bias = t->bias.data + b * d->bias[0] + h * d->bias[1] + i * d->bias[2];
    double high = d->sunk ? t->sink.data[h] : -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < d->columns; c++)
            y[c] = 0;
        sum = d->sunk ? exp(t->sink.data[h] - high) : 0;
        for (int64_t j = 0; j < d->keys && j <= at; j++) {
            if (d->window && at - j >= d->window)
                continue;
            const double s = score(t, q, k, bias, j);
            high = pass ? high : fmax(high, s);
            const double p = high == -INFINITY ? 0 : exp(s - high);
            sum += p;
            for (int64_t c = 0; c < d->columns; c++)
                y[c] += p * v[j * d->v[2] + c];
        }
    }
    for (int64_t c = 0; c < d->columns; c++)
        y[c] = sum > 0 ? y[c] / sum : 0;
}

static void compare(const struct trial *t)
{
    const struct mgx_cached_desc *d = &t->d;
    const double tolerance = 0x1p-23 * (8 + (double)d->depth + (double)d->keys / 16);
    double *want = calloc((size_t)d->columns, sizeof *want);
    int64_t touched = 0;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t h = 0; h < d->heads; h++)
            for (int64_t i = 0; i < d->tokens; i++) {
                const float *got = t->y.data + b * d->y[0] + h * d->y[1] + i * d->y[2];
                meaning(t, b, h, i, want);
                for (int64_t c = 0; c < d->columns; c++)
                    CHECK(fabs(got[c] - want[c]) <= tolerance);
                touched += d->columns;
            }
    for (int64_t i = 0; i < t->y.count; i++)
        touched -= !is_guard(t->y.data + i);
    CHECK(touched == 0); // nothing between the rows was written
    free(want);
}

static void run_trial(struct trial *t, struct rng *r, mgx_isa isa)
{
    struct mgx_cached_plan plan;
    struct mgx_pool *pool = NULL;
    t->d.isa = isa;
    t->d.threads = 1 + rng_below(r, 3);
    t->d.scale = 0.5f;
    t->d.cap = rng_below(r, 3) ? 0 : 1.5f;
    t->d.window = rng_below(r, 3) ? 0 : 1 + rng_below(r, (int)t->d.keys);
    set_lengths(t, r);
    set_buffers(t, r);
    if (mgx_pool_acquire(t->d.threads, &pool, NULL) != MGX_OK ||
        mgx_cached_plan_init(&plan, &t->d, NULL) != MGX_OK)
        abort();
    t->workspace = buffer_new((int64_t)mgx_cached_workspace(&plan) / 4);
    const struct mgx_cached_args args = {.q = t->q.data,
                                         .k = t->k.data,
                                         .v = t->v.data,
                                         .bias = t->bias.data,
                                         .sink = t->sink.data,
                                         .ends = t->ends,
                                         .y = t->y.data,
                                         .workspace = t->workspace.data};
    CHECK(mgx_cached_run(&plan, &args, pool, NULL) == MGX_OK);
    compare(t);
    const struct buffer all[] = {t->q, t->k, t->v, t->y, t->bias, t->sink, t->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(buffer_intact(all[i]));
        buffer_free(all[i]);
    }
    mgx_pool_release(pool);
}

static void try_tokens(mgx_isa isa, int64_t tokens, int more)
{
    static const int keys[] = {1, 16, 33, 100}, sizes[] = {8, 16, 64, 80, 128};
    struct rng r = {0x9e3779b97f4a7c15u + (uint64_t)isa + (uint64_t)tokens};
    for (int i = 0; i < 40; i++) {
        struct trial t = {.d = {.batch = 1 + rng_below(&r, 3), .shared = 1 + rng_below(&r, 3)}};
        t.d.heads = t.d.shared * (1 + rng_below(&r, 9));
        t.d.tokens = tokens + rng_below(&r, more);
        t.d.keys = t.d.tokens + rng_size(&r, keys, 4);
        t.d.depth = 1 + rng_size(&r, sizes, 5);
        t.d.columns = 1 + rng_size(&r, sizes, 5);
        t.d.biased = rng_below(&r, 4) == 0;
        t.d.sunk = rng_below(&r, 4) == 0;
        run_trial(&t, &r, isa);
    }
}

CASE(a_token_sees_what_is_before_it)
{
    EACH_ISA(isa)
    try_tokens(isa, 1, 1);
}

CASE(few_tokens_do)
{
    EACH_ISA(isa)
    try_tokens(isa, 1, 9);
}

CASE(many_tokens_do)
{
    EACH_ISA(isa)
    try_tokens(isa, 9, 40);
}

CASE(a_prompt_is_taken_in_blocks)
{
    EACH_ISA(isa)
    {
        struct rng r = {3 + (uint64_t)isa};
        struct trial t = {.d = {.batch = 2, .heads = 2, .shared = 1, .tokens = 530, .keys = 2300}};
        t.d.depth = t.d.columns = 9;
        run_trial(&t, &r, isa);
    }
}

CASE(refuses_what_is_no_attention)
{
    struct mgx_cached_plan plan;
    struct mgx_diag diag = {0};
    struct mgx_cached_desc d = {.isa = mgx_cpu()->isa, .threads = 1, .batch = 1, .tokens = 1};
    d.heads = 3;
    d.shared = 2;
    CHECK(mgx_cached_plan_init(&plan, &d, &diag) == MGX_INVALID);
    d.shared = 1;
    d.keys = INT64_MAX;
    diag = (struct mgx_diag){0};
    CHECK(mgx_cached_plan_init(&plan, &d, &diag) == MGX_LIMIT);
    d.keys = -1;
    diag = (struct mgx_diag){0};
    CHECK(mgx_cached_plan_init(&plan, &d, &diag) == MGX_INVALID);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(a_token_sees_what_is_before_it) ROW(few_tokens_do) ROW(many_tokens_do)
            ROW(a_prompt_is_taken_in_blocks) ROW(refuses_what_is_no_attention){NULL, NULL}};
    return harness_run(cases, argc, argv);
}
