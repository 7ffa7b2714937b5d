// SPDX-License-Identifier: MIT
// Recurrent layers against their equations in double, on random descriptions; --bench times a
// two-layer bidirectional LSTM and others.
#include "targets/cpu/kernel/product/rnn.h"

#include "targets/cpu/kernel/harness.h"

struct problem {
    struct mgx_rnn_desc desc;
    struct buffer x, w, r, b, p, h0, c0, y, h, c;
    double *expected_y, *expected_h, *expected_c;
    int32_t *lengths;
    bool use_bias, use_peepholes, use_h0, use_c0, use_lengths;
};

static int64_t gates(const struct mgx_rnn_desc *d)
{
    return d->kind == MGX_RNN_LSTM ? 4 : d->kind == MGX_RNN_GRU ? 3 : 1;
}

static double activate(const struct mgx_rnn_desc *d, const struct mgx_rnn_act *act, double x)
{
    if (d->clip > 0)
        x = fmin(fmax(x, -(double)d->clip), d->clip);
    return act_meaning(act->act, x, act->a, act->b);
}

// Sum of W x, R v and both biases for one gate of one unit. `which`: 1 input part, 2 recurrent
// part.
static double part_of(const struct problem *p, int dir, int64_t gate, int64_t j, const float *x,
                      const double *v, int which)
{
    const struct mgx_rnn_desc *d = &p->desc;
    const int64_t all = gates(d) * d->hidden, row = gate * d->hidden + j;
    double sum = 0;
    if (which & 1) {
        for (int64_t k = 0; k < d->input; k++)
            sum += (double)p->w.data[(dir * all + row) * d->input + k] * x[k];
        sum += p->use_bias ? p->b.data[dir * 2 * all + row] : 0;
    }
    if (which & 2) {
        for (int64_t k = 0; k < d->hidden; k++)
            sum += (double)p->r.data[(dir * all + row) * d->hidden + k] * v[k];
        sum += p->use_bias ? p->b.data[dir * 2 * all + all + row] : 0;
    }
    return sum;
}

static double peephole(const struct problem *p, int dir, int gate, int64_t j, double c)
{
    const int64_t hidden = p->desc.hidden;
    return p->use_peepholes ? p->p.data[dir * 3 * hidden + gate * hidden + j] * c : 0;
}

static void lstm_step(const struct problem *p, int dir, const float *x, double *h, double *c,
                      double *next)
{
    const struct mgx_rnn_desc *d = &p->desc;
    for (int64_t j = 0; j < d->hidden; j++) {
        const double i =
            activate(d, &d->f[dir], part_of(p, dir, 0, j, x, h, 3) + peephole(p, dir, 0, j, c[j]));
        const double f =
            d->input_forget
                ? 1 - i
                : activate(d, &d->f[dir],
                           part_of(p, dir, 2, j, x, h, 3) + peephole(p, dir, 2, j, c[j]));
        c[j] = f * c[j] + i * activate(d, &d->g[dir], part_of(p, dir, 3, j, x, h, 3));
        const double o =
            activate(d, &d->f[dir], part_of(p, dir, 1, j, x, h, 3) + peephole(p, dir, 1, j, c[j]));
        next[j] = o * act_meaning(d->h[dir].act, c[j], d->h[dir].a, d->h[dir].b);
    }
}

static void gru_step(const struct problem *p, int dir, const float *x, double *h, double *reset,
                     double *next)
{
    const struct mgx_rnn_desc *d = &p->desc;
    for (int64_t j = 0; j < d->hidden; j++)
        reset[j] = activate(d, &d->f[dir], part_of(p, dir, 1, j, x, h, 3)) *
                   (d->linear_before_reset ? 1 : h[j]);
    for (int64_t j = 0; j < d->hidden; j++) {
        const double z = activate(d, &d->f[dir], part_of(p, dir, 0, j, x, h, 3));
        const double part = d->linear_before_reset ? reset[j] * part_of(p, dir, 2, j, x, h, 2)
                                                   : part_of(p, dir, 2, j, x, reset, 2);
        const double n = activate(d, &d->g[dir], part_of(p, dir, 2, j, x, h, 1) + part);
        next[j] = (1 - z) * n + z * h[j];
    }
}

static void solve_entry(struct problem *p, int dir, int64_t b)
{
    const struct mgx_rnn_desc *d = &p->desc;
    double *h = calloc((size_t)d->hidden * 4, sizeof *h), *c = h + d->hidden,
           *reset = c + d->hidden, *next = reset + d->hidden;
    const int64_t state = dir * d->state_direction + b * d->state_batch;
    for (int64_t j = 0; j < d->hidden; j++) {
        h[j] = p->use_h0 ? p->h0.data[state + j] : 0;
        c[j] = p->use_c0 ? p->c0.data[state + j] : 0;
    }
    const int64_t length = p->use_lengths ? p->lengths[b] : d->steps;
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = dir || d->reverse ? length - 1 - s : s;
        const float *x = p->x.data + t * d->x_step + b * d->x_batch;
        if (d->kind == MGX_RNN_LSTM)
            lstm_step(p, dir, x, h, c, next);
        else if (d->kind == MGX_RNN_GRU)
            gru_step(p, dir, x, h, reset, next);
        else
            for (int64_t j = 0; j < d->hidden; j++)
                next[j] = activate(d, &d->f[dir], part_of(p, dir, 0, j, x, h, 3));
        memcpy(h, next, (size_t)d->hidden * sizeof *h);
        for (int64_t j = 0; j < d->hidden; j++)
            p->expected_y[t * d->y_step + dir * d->y_direction + b * d->y_batch + j] = h[j];
    }
    memcpy(p->expected_h + state, h, (size_t)d->hidden * sizeof *h);
    memcpy(p->expected_c + state, c, (size_t)d->hidden * sizeof *c);
    free(h);
}

static void random_acts(struct rng *r, struct mgx_rnn_desc *d)
{
    static const enum mgx_act acts[] = {MGX_ACT_SIGMOID,  MGX_ACT_TANH,        MGX_ACT_HARD_SIGMOID,
                                        MGX_ACT_SOFTSIGN, MGX_ACT_SCALED_TANH, MGX_ACT_AFFINE};
    const bool usual = rng_below(r, 2);
    for (int i = 0; i < 2; i++) {
        d->f[i] = (struct mgx_rnn_act){MGX_ACT_SIGMOID, 0, 0};
        d->g[i] = d->h[i] = (struct mgx_rnn_act){MGX_ACT_TANH, 0, 0};
        if (d->kind == MGX_RNN_PLAIN)
            d->f[i].act = MGX_ACT_TANH;
        if (!usual) {
            d->f[i] = (struct mgx_rnn_act){acts[rng_below(r, 6)], 0.4f, 0.3f};
            d->g[i] = (struct mgx_rnn_act){acts[rng_below(r, 6)], 0.4f, 0.3f};
            d->h[i] = (struct mgx_rnn_act){acts[rng_below(r, 6)], 0.4f, 0.3f};
        }
    }
}

static void random_strides(struct rng *r, struct mgx_rnn_desc *d)
{
    const int64_t gap = rng_below(r, 2) * 3;
    const bool batch_first = rng_below(r, 2);
    d->x_batch = batch_first ? d->steps * d->input + gap : d->input;
    d->x_step = batch_first ? d->input : d->batch * d->input + gap;
    d->y_direction = batch_first ? d->hidden : d->batch * d->hidden;
    d->y_step = d->directions * (batch_first ? d->hidden : d->y_direction);
    d->y_batch = batch_first ? d->steps * d->y_step : d->hidden;
    d->state_direction = batch_first ? d->hidden : d->batch * d->hidden;
    d->state_batch = batch_first ? d->directions * d->hidden : d->hidden;
}

static struct problem problem_new(struct rng *r, mgx_isa isa)
{
    static const int hidden[] = {1, 4, 8, 15, 16, 20, 32, 33};
    struct problem p = {.desc = {.isa = isa,
                                 .kind = (enum mgx_rnn_kind)rng_below(r, 3),
                                 .steps = rng_below(r, 6),
                                 .batch = 1 + rng_below(r, 20) / (1 + rng_below(r, 5)),
                                 .input = 1 + rng_below(r, 12),
                                 .hidden = hidden[rng_below(r, 8)],
                                 .directions = 1 + rng_below(r, 2),
                                 .clip = rng_below(r, 3) ? 0 : 0.6f,
                                 .linear_before_reset = rng_below(r, 2),
                                 .input_forget = rng_below(r, 4) == 0}};
    struct mgx_rnn_desc *d = &p.desc;
    d->reverse = d->directions == 1 && rng_below(r, 2);
    random_acts(r, d);
    random_strides(r, d);
    const int64_t rows = d->directions * gates(d) * d->hidden;
    const int64_t state = d->directions * d->batch * d->hidden;
    p.x = buffer_random(d->steps * d->x_step + d->batch * d->x_batch, r);
    p.w = buffer_random(rows * d->input, r);
    p.r = buffer_random(rows * d->hidden, r);
    for (int64_t i = 0; i < p.r.count; i++)
        p.r.data[i] *= 0.3f; // keeps the recurrence from amplifying differences
    p.b = buffer_random(2 * rows, r);
    p.p = buffer_random(3 * d->directions * d->hidden, r);
    p.h0 = buffer_random(state, r);
    p.c0 = buffer_random(state, r);
    p.y = buffer_new(d->steps * state);
    p.h = buffer_new(state);
    p.c = buffer_new(state);
    p.expected_y = calloc((size_t)(d->steps * state) + 1, sizeof(double));
    p.expected_h = calloc((size_t)state, sizeof(double));
    p.expected_c = calloc((size_t)state, sizeof(double));
    p.lengths = calloc((size_t)d->batch, sizeof *p.lengths);
    for (int64_t i = 0; i < d->batch; i++)
        p.lengths[i] = rng_below(r, (int)d->steps + 1);
    p.use_bias = rng_below(r, 3);
    p.use_peepholes = d->kind == MGX_RNN_LSTM && rng_below(r, 3) == 0;
    p.use_h0 = rng_below(r, 2);
    p.use_c0 = rng_below(r, 2);
    p.use_lengths = rng_below(r, 2);
    for (int dir = 0; dir < d->directions; dir++)
        for (int64_t b = 0; b < d->batch; b++)
            solve_entry(&p, dir, b);
    return p;
}

static void problem_free(struct problem *p)
{
    struct buffer all[] = {p->x, p->w, p->r, p->b, p->p, p->h0, p->c0, p->y, p->h, p->c};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
    free(p->expected_y);
    free(p->expected_h);
    free(p->expected_c);
    free(p->lengths);
}

// The same values at an odd address, as in a file.
static void *misplaced(const struct buffer *b)
{
    const size_t bytes = (size_t)b->count * sizeof *b->data;
    char *copy = malloc(bytes + 1);
    return copy ? memcpy(copy + 1, b->data, bytes) : NULL;
}

static void pack(const struct mgx_rnn_plan *plan, const struct problem *p, void *packed)
{
    const struct buffer *from[] = {&p->w, &p->r, p->use_bias ? &p->b : NULL,
                                   p->use_peepholes ? &p->p : NULL};
    void *at[4] = {NULL};
    for (int i = 0; i < 4; i++)
        at[i] = from[i] ? misplaced(from[i]) : NULL;
    mgx_rnn_pack(plan, at[0], at[1], at[2], at[3], packed);
    for (int i = 0; i < 4; i++)
        free(at[i] ? (char *)at[i] - 1 : NULL);
}

static bool run_problem(struct problem *p, int threads, struct mgx_diag *diag)
{
    struct mgx_rnn_plan plan;
    struct mgx_pool *pool = NULL;
    p->desc.threads = threads;
    if (mgx_rnn_plan_init(&plan, &p->desc, diag) != MGX_OK ||
        mgx_pool_acquire(threads, &pool, diag) != MGX_OK)
        return false;
    struct buffer packed = buffer_new((int64_t)plan.packed_bytes / 4),
                  workspace = buffer_new((int64_t)plan.workspace_bytes / 4);
    pack(&plan, p, packed.data);
    const struct mgx_rnn_args args = {.x = p->x.data,
                                      .packed = packed.data,
                                      .initial_h = p->use_h0 ? p->h0.data : NULL,
                                      .initial_c = p->use_c0 ? p->c0.data : NULL,
                                      .lengths = p->use_lengths ? p->lengths : NULL,
                                      .y = p->y.data,
                                      .final_h = p->h.data,
                                      .final_c = p->c.data,
                                      .workspace = workspace.data};
    mgx_rnn_run(&plan, &args, pool);
    const bool intact = buffer_intact(packed) && buffer_intact(workspace) && buffer_intact(p->y) &&
                        buffer_intact(p->h) && buffer_intact(p->c);
    mgx_pool_release(pool);
    buffer_free(packed);
    buffer_free(workspace);
    return intact;
}

// The largest difference; relative where affine activations let the values grow.
static double worst(const float *actual, const double *expected, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs(actual[i] - expected[i]) / fmax(1, fabs(expected[i]));
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

CASE(agrees_with_the_equations)
{
    struct rng r = {31};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 200; i++) {
            struct problem p = problem_new(&r, isa);
            struct mgx_diag diag = {0};
            CHECK(run_problem(&p, 1 + rng_below(&r, 4), &diag));
            double off = fmax(worst(p.y.data, p.expected_y, p.y.count),
                              worst(p.h.data, p.expected_h, p.h.count));
            if (p.desc.kind == MGX_RNN_LSTM)
                off = fmax(off, worst(p.c.data, p.expected_c, p.c.count));
            if (!(off < 5e-5))
                CHECK_FAIL("kind %d on %s, case %d: off by %g (hidden %d, batch %d, steps %d, acts "
                           "%s %s)",
                           p.desc.kind, mgx_isa_name(isa), i, off, (int)p.desc.hidden,
                           (int)p.desc.batch, (int)p.desc.steps, mgx_act_name(p.desc.f[0].act),
                           mgx_act_name(p.desc.g[0].act));
            problem_free(&p);
        }
    }
}

// --- --bench ---

struct timed {
    struct mgx_rnn_plan plan;
    struct mgx_rnn_args args;
    struct mgx_pool *pool;
};

static void run_timed(void *user)
{
    struct timed *t = user;
    mgx_rnn_run(&t->plan, &t->args, t->pool);
}

static void bench_layer(enum mgx_rnn_kind kind, int steps, int batch, int input, int hidden,
                        int threads)
{
    static const char *const names[] = {"rnn", "gru", "lstm"};
    struct rng r = {1};
    struct timed t = {0};
    struct mgx_rnn_desc d = {.isa = mgx_cpu()->isa,
                             .threads = threads,
                             .kind = kind,
                             .steps = steps,
                             .batch = batch,
                             .input = input,
                             .hidden = hidden,
                             .directions = 2,
                             .x_batch = input,
                             .x_step = (int64_t)batch * input,
                             .y_batch = hidden,
                             .y_direction = (int64_t)batch * hidden,
                             .y_step = 2 * (int64_t)batch * hidden,
                             .state_batch = hidden,
                             .state_direction = (int64_t)batch * hidden,
                             .linear_before_reset = true};
    for (int i = 0; i < 2; i++) {
        d.f[i].act = kind == MGX_RNN_PLAIN ? MGX_ACT_TANH : MGX_ACT_SIGMOID;
        d.g[i].act = d.h[i].act = MGX_ACT_TANH;
    }
    if (mgx_rnn_plan_init(&t.plan, &d, NULL) != MGX_OK ||
        mgx_pool_acquire(threads, &t.pool, NULL) != MGX_OK)
        return;
    const int64_t rows = 2 * gates(&d) * hidden;
    struct buffer x = buffer_random((int64_t)steps * batch * input, &r),
                  w = buffer_random(rows * input, &r), rec = buffer_random(rows * hidden, &r),
                  b = buffer_random(2 * rows, &r),
                  y = buffer_new((int64_t)steps * 2 * batch * hidden),
                  packed = buffer_new((int64_t)t.plan.packed_bytes / 4),
                  workspace = buffer_new((int64_t)t.plan.workspace_bytes / 4);
    for (int64_t i = 0; i < rec.count; i++)
        rec.data[i] *= 0.1f;
    mgx_rnn_pack(&t.plan, w.data, rec.data, b.data, NULL, packed.data);
    t.args = (struct mgx_rnn_args){
        .x = x.data, .packed = packed.data, .y = y.data, .workspace = workspace.data};
    const double seconds = bench_time(run_timed, &t, 15);
    const double flops = 2.0 * steps * batch * (double)rows * (input + hidden);
    printf("%-5s bidirectional T=%d B=%d I=%d H=%d %d thread(s): %8.1f us %6.1f GFLOP/s (%s)\n",
           names[kind], steps, batch, input, hidden, threads, seconds * 1e6, flops / seconds * 1e-9,
           t.plan.divide_steps ? "divided steps" : "divided batch");
    struct buffer all[] = {x, w, rec, b, y, packed, workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
    mgx_pool_release(t.pool);
}

static int bench(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        for (int kind = 0; kind < 3; kind++)
            bench_layer((enum mgx_rnn_kind)kind, 32, 1, 256, 256, threads);
        bench_layer(MGX_RNN_LSTM, 32, 1, 512, 256, threads);
        bench_layer(MGX_RNN_LSTM, 32, 16, 256, 256, threads);
        bench_layer(MGX_RNN_LSTM, 16, 1, 1024, 1024, threads);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(agrees_with_the_equations){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : harness_run(cases, argc, argv);
}
