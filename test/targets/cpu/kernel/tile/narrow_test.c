// SPDX-License-Identifier: MIT
// Products with weights of 16, 8, 4 and 2 bits, every instruction set, against double sums over
// what the packed numbers stand for; --bench [rows [threads]] times one decoding step's products of
// GPT-2's layers, and beside them what memory gives: a stream of 512 MiB that is only read.
#include "base/size.h"
#include "targets/cpu/kernel/product/gemm.h"

#include "targets/cpu/kernel/ends.h"

// One random problem: the weights as a model has them, what they stand for, and the answer.
struct problem {
    struct mgx_gemm_desc desc;
    struct mgx_narrow_source source;
    uint8_t *values, *zeros;
    struct buffer weights; // [k][n] or [n][k] by strides
    struct buffer a, bias, scale, residual, c, expected, bound;
    bool use_bias;
};

static struct mgx_narrow random_form(struct rng *r, int64_t k)
{
    struct mgx_narrow f = {.kind = (enum mgx_narrow_kind)(1 + rng_below(r, 3)), .depth = k};
    if (rng_below(r, 2))
        f.kind = MGX_NARROW_BLOCKS;
    if (f.kind == MGX_NARROW_BLOCKS) {
        f.bits = 2 << rng_below(r, 3);
        f.block = rng_below(r, 2) ? 16 << rng_below(r, 5) : (1 + rng_below(r, 20)) * 32 / f.bits;
        f.zeros = rng_below(r, 2);
        f.fast = rng_below(r, 2);
        f.bytes = f.fast && f.block <= MGX_NARROW_BYTES && rng_below(r, 2);
    }
    return f;
}

// Weights of 16 bits: floats that these hold.
static void make_16(struct problem *p, struct rng *r)
{
    const bool half = p->desc.narrow.kind == MGX_NARROW_F16;
    for (int64_t i = 0; i < p->weights.count; i++) {
        const double x = rng_float(r);
        p->weights.data[i] = half ? mgx_half_to_float(mgx_half_from_double(x))
                                  : mgx_bf16_to_float(mgx_bf16_from_double(x));
    }
}

// Weights by blocks: random bits, all of the bytes used, and the floats they stand for.
static void make_blocks(struct problem *p, struct rng *r)
{
    const struct mgx_gemm_desc *d = &p->desc;
    const struct mgx_narrow *f = &d->narrow;
    const int64_t blocks = mgx_narrow_blocks(f), bytes = f->block * f->bits / 8;
    const int mask = (1 << f->bits) - 1, per = 8 / f->bits;
    p->values = malloc((size_t)(d->n * blocks * bytes + 1));
    p->zeros = malloc((size_t)(d->n * blocks + 1));
    p->scale = buffer_random(d->n * blocks, r);
    for (int64_t i = 0; i < d->n * blocks * bytes; i++)
        p->values[i] = (uint8_t)rng_next(r);
    for (int64_t i = 0; i < d->n * blocks; i++)
        p->zeros[i] = (uint8_t)(rng_next(r) & (unsigned)mask);
    for (int64_t j = 0; j < d->n; j++)
        for (int64_t k = 0; k < d->k; k++) {
            const int64_t b = j * blocks + k / f->block, i = k % f->block;
            const int q = p->values[b * bytes + i / per] >> (i % per * f->bits) & mask;
            const int zero = f->zeros ? p->zeros[b] : 1 << (f->bits - 1);
            p->weights.data[k * d->b_row + j * d->b_col] = (float)(q - zero) * p->scale.data[b];
        }
    p->source = (struct mgx_narrow_source){.values = p->values,
                                           .scale = p->scale.data,
                                           .scale_type = MGX_KERNEL_F32,
                                           .zero = p->zeros,
                                           .zero_bytes = true};
}

// The largest of A's values in the block that begins at k.
static double largest(const struct problem *p, int64_t row, int64_t k)
{
    const struct mgx_gemm_desc *d = &p->desc;
    double most = 0;
    for (int64_t i = k; i < k + d->narrow.block && i < d->k; i++)
        most = fmax(most, fabs((double)p->a.data[row * d->a_row + i * d->a_col]));
    return most;
}

// The answer and how far from it a result may be. Sums over blocks are of q, which is up to
// 2^bits times what is left when the zero point is taken off: their roundings count. Whole numbers
// are within 2^-16 of the largest of their block, bytes within 2^-8, each times its weight.
static void solve(struct problem *p)
{
    const struct mgx_gemm_desc *d = &p->desc;
    const struct mgx_narrow *f = &d->narrow;
    const int64_t blocks = mgx_narrow_blocks(f);
    const double near = f->bytes && d->m > MGX_NARROW_ROWS ? 0x1p-8 : 0x1p-16;
    for (int64_t at = 0; at < d->m * d->n; at++) {
        const int64_t i = at / d->n, j = at % d->n;
        double sum = p->use_bias ? p->bias.data[j] : 0, size = fabs(sum), whole = 0, most = 0;
        for (int64_t k = 0; k < d->k; k++) {
            const double a = p->a.data[i * d->a_row + k * d->a_col];
            const double x = a * p->weights.data[k * d->b_row + j * d->b_col];
            sum += x;
            size += fabs(x);
            if (f->fast && k % f->block == 0)
                most = largest(p, i, k);
            if (f->fast)
                whole +=
                    1.01 * near * most * fabs((double)p->weights.data[k * d->b_row + j * d->b_col]);
            if (f->kind == MGX_NARROW_BLOCKS)
                size += fabs(a * (1 << f->bits) * p->scale.data[j * blocks + k / f->block]);
        }
        const double residual =
            mgx_end_reader(&d->end) ? p->residual.data[i * d->residual_row + j] : 0;
        sum = end_meaning(&d->end, sum, j, residual, 0);
        p->expected.data[at] = (float)sum;
        p->bound.data[at] =
            (float)(1.5 * (double)(d->k + 12) * 0x1p-24 * (size + fabs(residual) + 1) +
                    1.2 * whole);
    }
}

static struct problem problem_new(struct rng *r, mgx_isa isa, int64_t m, int64_t n, int64_t k)
{
    struct problem p = {.desc = {.isa = isa, .m = m, .n = n, .k = k, .packed = true}};
    struct mgx_gemm_desc *d = &p.desc;
    const bool transposed = rng_below(r, 2), a_transposed = rng_below(r, 4) == 0;
    d->threads = 1 + rng_below(r, 3);
    d->narrow = random_form(r, k);
    d->b_row = transposed ? 1 : n;
    d->b_col = transposed ? k : 1;
    d->a_row = a_transposed ? 1 : k + rng_below(r, 2) * 3;
    d->a_col = a_transposed ? m : 1;
    d->c_row = n + rng_below(r, 2) * 5;
    d->residual_row = n + rng_below(r, 2) * 7;
    d->end = end_random(r, MGX_KERNEL_F32, MGX_ACT_GELU + 1, NULL, NULL, NULL);
    p.a = buffer_random(a_transposed ? m * k : m * d->a_row, r);
    p.bias = buffer_random(n, r);
    p.weights = buffer_new(n * k);
    p.residual = buffer_random(m * d->residual_row, r);
    p.c = buffer_new(m * d->c_row);
    p.expected = buffer_new(m * n);
    p.bound = buffer_new(m * n);
    p.use_bias = rng_below(r, 2);
    if (d->narrow.kind == MGX_NARROW_BLOCKS)
        make_blocks(&p, r);
    else
        make_16(&p, r);
    solve(&p);
    return p;
}

static void problem_free(struct problem *p)
{
    const struct buffer all[] = {p->a, p->bias,     p->weights, p->residual,
                                 p->c, p->expected, p->bound};
    for (int i = 0; i < MGX_COUNT(all); i++)
        buffer_free(all[i]);
    if (p->values)
        buffer_free(p->scale);
    free(p->values);
    free(p->zeros);
}

static void pack(const struct problem *p, const struct mgx_gemm_plan *plan, void *packed)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    if (d->narrow.kind != MGX_NARROW_BLOCKS) {
        for (int part = 0; part < 3; part++)
            mgx_gemm_pack_part(plan, p->weights.data, packed, part, 3);
        return;
    }
    for (int64_t i = 0; i < mgx_ceil_div(d->n, plan->kernel->cols); i++)
        mgx_narrow_pack_blocks(&d->narrow, plan->kernel, &p->source, d->n, i, packed);
}

static bool run_problem(struct problem *p, struct mgx_diag *diag)
{
    struct mgx_gemm_plan plan;
    struct mgx_pool *pool = NULL;
    if (mgx_gemm_plan_init(&plan, &p->desc, diag) != MGX_OK ||
        mgx_pool_acquire(p->desc.threads, &pool, diag) != MGX_OK)
        return false;
    struct buffer packed = buffer_new(((int64_t)plan.packed_bytes + 3) / 4);
    struct buffer workspace = buffer_new((int64_t)mgx_gemm_workspace(&plan) / 4);
    pack(p, &plan, packed.data);
    struct mgx_ahead next[MAX_THREADS];
    bool intact = true;
    for (int t = 0; t < p->desc.threads; t++) {
        next[t] = mgx_gemm_first_read(&plan, packed.data, t);
        intact &= buffer_holds(packed, next[t].at, next[t].bytes);
    }
    const struct mgx_gemm_args args = {.a = p->a.data,
                                       .b = packed.data,
                                       .bias = p->use_bias ? p->bias.data : NULL,
                                       .residual =
                                           mgx_end_reader(&p->desc.end) ? p->residual.data : NULL,
                                       .c = p->c.data,
                                       .workspace = workspace.data,
                                       .next = next};
    mgx_gemm_run(&plan, &args, pool);
    intact &= buffer_intact(packed) && buffer_intact(workspace) && buffer_intact(p->c);
    mgx_pool_release(pool);
    buffer_free(packed);
    buffer_free(workspace);
    return intact;
}

static int64_t first_wrong(const struct problem *p)
{
    const struct mgx_gemm_desc *d = &p->desc;
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < d->c_row; j++) {
            const int64_t at = i * d->n + j;
            const float y = p->c.data[i * d->c_row + j];
            if (j >= d->n ? !is_guard(&p->c.data[i * d->c_row + j])
                          : !(fabs((double)y - p->expected.data[at]) <= p->bound.data[at]))
                return at;
        }
    return -1;
}

static void check_problem(struct rng *r, mgx_isa isa, int m, int n, int k)
{
    const uint64_t seed = r->state;
    struct problem p = problem_new(r, isa, m, n, k);
    const struct mgx_narrow *f = &p.desc.narrow;
    struct mgx_diag diag = {0};
    const bool ran = run_problem(&p, &diag);
    const int64_t wrong = ran ? first_wrong(&p) : -1;
    if (!ran || wrong >= 0)
        printf("%s kind %d bits %d block %lld zeros %d, %dx%dx%d seed %llu: %s at %lld: %s\n",
               mgx_isa_name(isa), f->kind, f->bits, (long long)f->block, f->zeros, m, n, k,
               (unsigned long long)seed, ran ? "wrong" : "not run, or a guard is overwritten",
               (long long)wrong, diag.text);
    problem_free(&p);
    CHECK(ran);
    CHECK_INT(wrong, -1);
}

CASE(agrees_with_plain_sums)
{
    static const int m[] = {1, 2, 3, 4, 5, 7, 14, 28, 100}, n[] = {1, 8, 16, 24, 32, 48, 64, 130},
                     k[] = {1, 4, 7, 16, 33, 64, 300};
    struct rng r = {77};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(700) && !check_failures; i++)
        check_problem(&r, isa, mgx_max_i64(rng_size(&r, m, 9), 1), 1 + rng_size(&r, n, 8),
                      1 + rng_size(&r, k, 7));
}

CASE(long_depth_is_cut)
{
    struct rng r = {8};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(12) && !check_failures; i++)
        check_problem(&r, isa, 1 + rng_below(&r, 40), 1 + rng_below(&r, 70),
                      3000 + rng_below(&r, 9000));
}

// Of one number among zeros, wherever it stands: not finite, or so small that its factor is none.
CASE(some_rows_stay_floats)
{
    enum { DEPTH = 70, MANY = MGX_NARROW_MANY };
    const float odd[] = {INFINITY, -INFINITY, NAN, 0x1p-101f}, usual[] = {0, 1, -3e38f, 0x1p-99f};
    const struct mgx_narrow form = {.kind = MGX_NARROW_BLOCKS,
                                    .bits = 4,
                                    .block = 32,
                                    .depth = DEPTH,
                                    .fast = true,
                                    .bytes = true};
    struct buffer a = buffer_new(DEPTH), sums = buffer_new(2 * MANY * mgx_narrow_blocks(&form)),
                  pairs = buffer_new(MANY * mgx_narrow_pairs(&form, true));
    memset(a.data, 0, DEPTH * sizeof *a.data);
    EACH_ISA(isa)
    for (int i = 0; i < 8 * DEPTH; i++) {
        const struct mgx_narrow_kernel *kernel = mgx_narrow_kernel(isa);
        const bool bytes = i >= 4 * DEPTH && kernel->many(&form);
        int32_t *to = (int32_t *)(void *)pairs.data;
        a.data[i / 4 % DEPTH] = odd[i % 4];
        CHECK(!kernel->whole(&form, a.data, bytes, to, sums.data));
        a.data[i / 4 % DEPTH] = usual[i % 4];
        CHECK(kernel->whole(&form, a.data, bytes, to, sums.data));
        a.data[i / 4 % DEPTH] = 0;
    }
    CHECK(buffer_intact(a) && buffer_intact(sums) && buffer_intact(pairs));
    buffer_free(a);
    buffer_free(sums);
    buffer_free(pairs);
}

// --- bench ---

struct layer {
    struct mgx_gemm_plan plan;
    struct mgx_gemm_args args;
};

struct step {
    struct layer layer[64];
    int count;
    size_t bytes;
    struct mgx_pool *pool;
};

static void run_step(void *user)
{
    const struct step *s = user;
    for (int i = 0; i < s->count; i++)
        mgx_gemm_run(&s->layer[i].plan, &s->layer[i].args, s->pool);
}

static void add_layer(struct step *s, const struct mgx_narrow *form, int64_t m, int64_t n,
                      int64_t k)
{
    struct rng r = {s->count + 1};
    struct layer *l = &s->layer[s->count++];
    struct mgx_gemm_desc d = {.isa = mgx_cpu()->isa,
                              .threads = mgx_pool_threads(s->pool),
                              .m = m,
                              .n = n,
                              .k = k,
                              .a_row = k,
                              .a_col = 1,
                              .b_row = n,
                              .b_col = 1,
                              .c_row = n,
                              .packed = true,
                              .narrow = *form};
    d.narrow.depth = k;
    if (mgx_gemm_plan_init(&l->plan, &d, NULL) != MGX_OK)
        abort();
    struct buffer packed = buffer_new(((int64_t)l->plan.packed_bytes + 3) / 4);
    memset(packed.data, 0x11, l->plan.packed_bytes);
    l->args = (struct mgx_gemm_args){
        .a = buffer_random(m * k, &r).data,
        .b = packed.data,
        .c = buffer_new(m * n).data,
        .workspace = buffer_new((int64_t)mgx_gemm_workspace(&l->plan) / 4 + 1).data};
    s->bytes += l->plan.packed_bytes;
}

// A stream that is only read, in a part for each thread. Memory gives whole lines of cache, so a word
// of each is enough.
struct stream {
    struct buffer memory;
    struct mgx_pool *pool;
    uint32_t sum[MAX_THREADS];
};

static void read_part(void *user, int part, int thread)
{
    enum { LINE = 16, LINES = 8 };
    struct stream *s = user;
    const int parts = mgx_pool_threads(s->pool);
    const int64_t step = LINE * LINES, count = s->memory.count / step;
    uint32_t sum[LINES] = {0}, word;
    for (int64_t i = count * part / parts; i < count * (part + 1) / parts; i++)
        for (int j = 0; j < LINES; j++) {
            memcpy(&word, s->memory.data + i * step + j * LINE, sizeof word);
            sum[j] += word;
        }
    for (int j = 0; j < LINES; j++)
        s->sum[thread] += sum[j];
}

static void read_all(void *user)
{
    struct stream *s = user;
    mgx_pool_run(s->pool, mgx_pool_threads(s->pool), read_part, s);
}

static const struct {
    const char *name;
    struct mgx_narrow form;
} bench_forms[] = {{"float", {0}},
                   {"half", {.kind = MGX_NARROW_F16}},
                   {"bf16", {.kind = MGX_NARROW_BF16}},
                   {"8 bits, 32", {MGX_NARROW_BLOCKS, 8, 32, false, 0, false}},
                   {"8 bits, 32, fast", {MGX_NARROW_BLOCKS, 8, 32, false, 0, true}},
                   {"4 bits, 32", {MGX_NARROW_BLOCKS, 4, 32, false, 0, false}},
                   {"4 bits, 32, fast", {MGX_NARROW_BLOCKS, 4, 32, false, 0, true}},
                   {"4, 32, zeros, fast", {MGX_NARROW_BLOCKS, 4, 32, true, 0, true}},
                   {"4 bits, 128, fast", {MGX_NARROW_BLOCKS, 4, 128, false, 0, true}},
                   {"4, 128, zeros, fast", {MGX_NARROW_BLOCKS, 4, 128, true, 0, true}},
                   {"2 bits, 64", {MGX_NARROW_BLOCKS, 2, 64, false, 0, false}},
                   {"2 bits, 64, fast", {MGX_NARROW_BLOCKS, 2, 64, false, 0, true}},
                   {"8 bits, 32, bytes", {MGX_NARROW_BLOCKS, 8, 32, false, 0, true, true}},
                   {"4 bits, 32, bytes", {MGX_NARROW_BLOCKS, 4, 32, false, 0, true, true}},
                   {"4, 32, zeros, bytes", {MGX_NARROW_BLOCKS, 4, 32, true, 0, true, true}},
                   {"4, 128, zeros, bytes", {MGX_NARROW_BLOCKS, 4, 128, true, 0, true, true}},
                   {"2 bits, 64, bytes", {MGX_NARROW_BLOCKS, 2, 64, false, 0, true, true}}};

static void bench_form(const char *name, const struct mgx_narrow *form, int rows,
                       struct stream *stream)
{
    struct step s = {.pool = stream->pool};
    const int threads = mgx_pool_threads(s.pool);
    for (int l = 0; l < 12; l++) {
        add_layer(&s, form, rows, 2304, 768);
        add_layer(&s, form, rows, 768, 768);
        add_layer(&s, form, rows, 3072, 768);
        add_layer(&s, form, rows, 768, 3072);
    }
    double time = 1e30, reading = 1e30;
    for (int round = 0; round < 9; round++) {
        time = fmin(time, bench_time_of(threads, run_step, &s, 1));
        reading = fmin(reading, bench_time_of(threads, read_all, stream, 1));
    }
    const double speed = (double)s.bytes / time,
                 limit = 4. * (double)stream->memory.count / reading;
    printf("%-19s %6.1f MB %8.3f ms %6.2f GB/s of %6.2f: %3.0f %%\n", name, (double)s.bytes * 1e-6,
           time * 1e3, speed * 1e-9, limit * 1e-9, 100 * speed / limit);
}

static int bench(int rows, int threads)
{
    struct stream stream = {.memory = buffer_new((int64_t)128 << 20)};
    if (mgx_pool_acquire(threads, &stream.pool, NULL) != MGX_OK)
        return 1;
    for (int i = 0; i < MGX_COUNT(bench_forms); i++)
        bench_form(bench_forms[i].name, &bench_forms[i].form, rows, &stream);
    mgx_pool_release(stream.pool);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {{"agrees_with_plain_sums", agrees_with_plain_sums},
                                              {"long_depth_is_cut", long_depth_is_cut},
                                              {"some_rows_stay_floats", some_rows_stay_floats},
                                              {NULL, NULL}};
    if (bench_asked(argc, argv))
        return bench(argc > 2 ? atoi(argv[2]) : 1, argc > 3 ? atoi(argv[3]) : 1);
    return harness_run(cases, argc, argv);
}
