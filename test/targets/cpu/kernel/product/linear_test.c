// SPDX-License-Identifier: MIT
// The recurrence over states against its definition in double, on every instruction set, with random
// shapes, strides with gaps, decay of rows or of all, with and without a delta rule and a past.
#include "targets/cpu/kernel/product/linear.h"

#include "targets/cpu/kernel/harness.h"

enum { Q, K, V, DECAY, BETA, PAST, Y, STATE, OPERANDS };

struct trial {
    struct mgx_linear_desc d;
    bool decays, goes_on; // has a decay, has a past
    struct buffer operand[OPERANDS], workspace;
    int64_t size[OPERANDS]; // values that count
};

// Heads by steps, or steps by heads as a projection leaves them; the number of floats.
static int64_t set_strides(struct rng *r, int64_t stride[3], int64_t batch, int64_t heads,
                           int64_t steps, int64_t size)
{
    const int64_t row = size + (rng_below(r, 3) ? 0 : 1 + rng_below(r, 9));
    const bool by_step = rng_below(r, 2);
    stride[by_step ? 1 : 2] = row;
    stride[by_step ? 2 : 1] = row * (by_step ? heads : steps);
    stride[0] = row * heads * steps + (rng_below(r, 3) ? 0 : 3);
    return (batch - 1) * stride[0] + (heads - 1) * stride[1] + (steps - 1) * stride[2] + size;
}

static void make(struct trial *t, struct rng *r)
{
    struct mgx_linear_desc *d = &t->d;
    int64_t *stride[OPERANDS] = {d->q, d->k, d->v, d->decay, d->beta, d->past, d->y, d->state};
    const int64_t readers = d->heads * d->share, every = d->decay_each ? d->rows : 1;
    const int64_t heads[OPERANDS] = {readers,  d->heads, d->heads, d->heads,
                                     d->heads, d->heads, readers,  d->heads},
                  lines[OPERANDS] = {d->steps, d->steps, d->steps, d->steps,
                                     d->steps, d->rows,  d->steps, d->rows},
                  sizes[OPERANDS] = {d->rows, d->rows,    d->columns, every,
                                     1,       d->columns, d->columns, d->columns};
    for (int i = 0; i < OPERANDS; i++) {
        const int64_t n = set_strides(r, stride[i], d->batch, heads[i], lines[i], sizes[i]);
        t->operand[i] = i < Y ? buffer_random(n, r) : buffer_new(n);
        t->size[i] = d->batch * heads[i] * lines[i] * sizes[i];
    }
    for (int64_t i = 0; i < t->operand[DECAY].count; i++)
        t->operand[DECAY].data[i] = -fabsf(t->operand[DECAY].data[i]);
}

static const float *at(const struct trial *t, int i, int64_t b, int64_t h, int64_t line)
{
    const struct mgx_linear_desc *d = &t->d;
    const int64_t *stride[OPERANDS] = {d->q,    d->k,    d->v, d->decay,
                                       d->beta, d->past, d->y, d->state};
    return t->operand[i].data + b * stride[i][0] + h * stride[i][1] + line * stride[i][2];
}

// S' x of one column.
static double column(const struct trial *t, const double *s, const float *x, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < t->d.rows; i++)
        sum += s[i * t->d.columns + j] * x[i];
    return sum;
}

// One step by the definition.
static void advance(const struct trial *t, double *s, int64_t b, int64_t h, int64_t n)
{
    const struct mgx_linear_desc *d = &t->d;
    const float *k = at(t, K, b, h, n), *decay = at(t, DECAY, b, h, n);
    for (int64_t i = 0; t->decays && i < d->rows; i++)
        for (int64_t j = 0; j < d->columns; j++)
            s[i * d->columns + j] *= exp(decay[d->decay_each ? i : 0]);
    for (int64_t j = 0; j < d->columns; j++) {
        double by = at(t, V, b, h, n)[j];
        if (d->delta)
            by = *at(t, BETA, b, h, n) * (by - column(t, s, k, j));
        for (int64_t i = 0; i < d->rows; i++)
            s[i * d->columns + j] += k[i] * by;
    }
}

// States may grow from step to step without a decay: errors are relative to the largest value.
static double largest(const double *s, int64_t count)
{
    double most = 1;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(s[i]));
    return most;
}

static void compare_head(const struct trial *t, double *s, int64_t b, int64_t h)
{
    const struct mgx_linear_desc *d = &t->d;
    const double ulps = 0x1p-23 * (4 + (double)d->rows) * (double)(2 + d->steps);
    double most = 1;
    for (int64_t i = 0; i < d->rows; i++)
        for (int64_t j = 0; j < d->columns; j++)
            s[i * d->columns + j] = t->goes_on ? at(t, PAST, b, h, i)[j] : 0;
    for (int64_t n = 0; n < d->steps; n++) {
        advance(t, s, b, h, n);
        most = fmax(most, largest(s, d->rows * d->columns));
        for (int64_t g = h * d->share; g < (h + 1) * d->share; g++)
            for (int64_t j = 0; j < d->columns; j++)
                CHECK(fabs(at(t, Y, b, g, n)[j] - d->scale * column(t, s, at(t, Q, b, g, n), j)) <=
                      ulps * most * d->scale * (double)d->rows);
    }
    for (int64_t i = 0; i < d->rows; i++)
        for (int64_t j = 0; j < d->columns; j++)
            CHECK(fabs(at(t, STATE, b, h, i)[j] - s[i * d->columns + j]) <= ulps * most);
}

static void compare(const struct trial *t)
{
    double *s = calloc((size_t)(t->d.rows * t->d.columns), sizeof *s);
    for (int64_t b = 0; b < t->d.batch; b++)
        for (int64_t h = 0; h < t->d.heads; h++)
            compare_head(t, s, b, h);
    free(s);
    for (int i = Y; i < OPERANDS; i++) { // nothing between the rows was written
        int64_t touched = t->size[i];
        for (int64_t k = 0; k < t->operand[i].count; k++)
            touched -= !is_guard(t->operand[i].data + k);
        CHECK(touched == 0);
    }
}

static void run_trial(struct trial *t, struct rng *r, mgx_isa isa)
{
    struct mgx_pool *pool = NULL;
    t->d.isa = isa;
    t->d.threads = 1 + rng_below(r, 3);
    t->d.scale = 0.5f;
    make(t, r);
    if (mgx_pool_acquire(t->d.threads, &pool, NULL) != MGX_OK)
        abort();
    t->workspace = buffer_new((int64_t)mgx_linear_workspace(&t->d) / 4);
    const struct mgx_linear_args args = {.q = t->operand[Q].data,
                                         .k = t->operand[K].data,
                                         .v = t->operand[V].data,
                                         .decay = t->decays ? t->operand[DECAY].data : NULL,
                                         .beta = t->d.delta ? t->operand[BETA].data : NULL,
                                         .past = t->goes_on ? t->operand[PAST].data : NULL,
                                         .y = t->operand[Y].data,
                                         .state = t->operand[STATE].data,
                                         .workspace = t->workspace.data};
    mgx_linear_run(&t->d, &args, pool);
    compare(t);
    for (int i = 0; i < OPERANDS; i++) {
        CHECK(buffer_intact(t->operand[i]));
        buffer_free(t->operand[i]);
    }
    CHECK(buffer_intact(t->workspace));
    buffer_free(t->workspace);
    mgx_pool_release(pool);
}

static void try_steps(mgx_isa isa, int64_t steps, int more)
{
    static const int rows[] = {1, 4, 16, 32, 65}, columns[] = {1, 8, 16, 32, 70};
    struct rng r = {0x9e3779b97f4a7c15u + (uint64_t)isa + (uint64_t)steps};
    for (int i = 0; i < 60; i++) {
        struct trial t = {.d = {.batch = 1 + rng_below(&r, 2), .heads = 1 + rng_below(&r, 3)}};
        t.d.share = 1 + rng_below(&r, 3);
        t.d.steps = steps + rng_below(&r, more);
        t.d.rows = 1 + rng_size(&r, rows, 5);
        t.d.columns = 1 + rng_size(&r, columns, 5);
        t.d.delta = rng_below(&r, 2);
        t.decays = rng_below(&r, 3) > 0;
        t.d.decay_each = t.decays && rng_below(&r, 2);
        t.goes_on = rng_below(&r, 2);
        run_trial(&t, &r, isa);
    }
}

CASE(one_step)
{
    EACH_ISA(isa)
    try_steps(isa, 1, 1);
}

CASE(steps_follow_one_another)
{
    EACH_ISA(isa)
    try_steps(isa, 2, 7);
}

CASE(a_large_state_is_dealt_to_threads)
{
    EACH_ISA(isa)
    {
        struct rng r = {11 + (uint64_t)isa};
        struct trial t = {.d = {.batch = 1, .heads = 6, .share = 1, .steps = 20, .rows = 64},
                          .decays = true,
                          .goes_on = true};
        t.d.columns = 100;
        t.d.delta = true;
        run_trial(&t, &r, isa);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(one_step) ROW(steps_follow_one_another) ROW(
        a_large_state_is_dealt_to_threads){NULL, NULL}};
    return harness_run(cases, argc, argv);
}
