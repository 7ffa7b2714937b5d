// SPDX-License-Identifier: MIT
// Matrix multiplication of every instruction set against a double loop, on random shapes around the
// tile sizes; --bench [isa [type [name]]] times the matrices of BERT-base and others.
#include "targets/cpu/kernel/product/gemm.h"

#include "targets/cpu/kernel/ends.h"
#include "targets/cpu/kernel/product/output.h"

// One random problem: the description, its operands and the answer.
struct problem {
    struct mgx_gemm_desc desc;
    struct buffer a, b, bias, scale, residual, c, expected, bound;
    bool use_bias;
};

// Strides for a matrix of rows x cols, either dimension inner, with gaps; returns elements spanned.
static int64_t random_strides(struct rng *r, int64_t rows, int64_t cols, int kind, int64_t *row,
                              int64_t *col)
{
    const int gap = rng_below(r, 3) * 3, step = kind == 2 ? 2 : 1;
    if (kind == 1) {
        *row = 1;
        *col = rows + gap;
        return *col * cols;
    }
    *col = step;
    *row = cols * step + gap;
    return *row * rows;
}

static int64_t index_of(const struct mgx_gemm_desc *d, const int64_t *stride, int64_t batch)
{
    int64_t at = 0;
    for (int i = MGX_GEMM_BATCH - 1; i >= 0; i--) {
        const int64_t size = d->batch[i] ? d->batch[i] : 1;
        at += batch % size * stride[i];
        batch /= size;
    }
    return at;
}

static int64_t batches(const struct mgx_gemm_desc *d)
{
    int64_t count = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        count *= d->batch[i] ? d->batch[i] : 1;
    return count;
}

// Outer batch strides over blocks of `span` elements; some operands are shared by all batches.
static int64_t batch_strides(struct rng *r, const struct mgx_gemm_desc *d, int64_t span,
                             bool may_share, int64_t *stride)
{
    for (int i = MGX_GEMM_BATCH - 1; i >= 0; i--) {
        const int64_t size = d->batch[i] ? d->batch[i] : 1;
        if (may_share && rng_below(r, 3) == 0) {
            stride[i] = 0;
            continue;
        }
        stride[i] = span;
        span *= size;
    }
    return span;
}

// What the operands lose before they are multiplied, relative.
static double operand_epsilon(const struct mgx_gemm_desc *d)
{
    return d->type == MGX_KERNEL_BF16 ? 2 * 0x1p-8 : 0;
}

// The answer and how far from it a result may be: (k + 8) roundings of the sum of magnitudes, and
// those of narrower types.
static void solve(struct problem *p)
{
    const struct mgx_gemm_desc *d = &p->desc;
    const struct mgx_end_step *reader = mgx_end_reader(&d->end);
    const int64_t mn = d->m * d->n;
    for (int64_t at = 0; at < batches(d) * mn; at++) {
        const int64_t batch = at / mn, i = at % mn / d->n, j = at % d->n;
        const int64_t a = index_of(d, d->a_batch, batch) + i * d->a_row,
                      b = index_of(d, d->b_batch, batch) + j * d->b_col,
                      r = index_of(d, d->residual_batch, batch) + i * d->residual_row + j;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < d->k; k++) {
            const double x = typed_get(d->a_type, p->a.data, a + k * d->a_col) *
                             typed_get(d->b_type, p->b.data, b + k * d->b_row);
            sum += x;
            size += fabs(x);
        }
        if (d->type == MGX_KERNEL_S8 && d->c_type == MGX_KERNEL_F32) {
            sum *= p->scale.data[j];
            size = fabs(sum);
        }
        sum += p->use_bias ? p->bias.data[j] : 0;
        size += p->use_bias ? fabs(p->bias.data[j]) : 0;
        const double operand = reader ? typed_get(reader->type, p->residual.data, r) : 0;
        sum = end_meaning(&d->end, sum, j, operand, (double)(at / d->n) + 0.5 * (double)j);
        p->expected.data[at] = (float)sum;
        p->bound.data[at] = (float)(1.5 * ((double)(d->k + 8) * 0x1p-24 + operand_epsilon(d)) *
                                        (size + fabs(operand) + 1) +
                                    1.01 * fabs(sum) * typed_epsilon(d->c_type) +
                                    (mgx_end_has_block(&d->end) ? fabs(sum) * 0x1p-23 : 0));
        if (d->c_type == MGX_KERNEL_S32)
            p->bound.data[at] = (float)fabs(sum) * 0x1p-24f; // of `expected` itself
    }
}

// Adds row + col / 2, so a wrong place shows.
static void add_place(void *user, const struct mgx_tile *tile)
{
    (void)user;
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->cols; j++)
            tile->data[i * tile->stride + j] +=
                (float)(tile->row + i * tile->row_step) + 0.5f * (float)(tile->col + j);
}

// Writes to where the run did not: user is the problem.
static void store_plain(void *user, const struct mgx_tile *tile)
{
    struct problem *p = user;
    add_place(NULL, tile);
    for (int i = 0; i < tile->rows; i++) {
        const int64_t row = tile->row + i, batch = row / p->desc.m;
        memcpy(p->c.data + index_of(&p->desc, p->desc.c_batch, batch) +
                   row % p->desc.m * p->desc.c_row + tile->col,
               tile->data + i * tile->stride, (size_t)tile->cols * sizeof(float));
    }
}

// Mostly floats; otherwise a combination that has a kernel.
static void random_types(struct rng *r, struct mgx_gemm_desc *d)
{
    const int kind = rng_below(r, 5);
    if (kind < 2)
        return;
    if (kind == 4) {
        d->type = MGX_KERNEL_S8;
        d->a_type = rng_below(r, 2) ? MGX_KERNEL_S8 : MGX_KERNEL_U8;
        d->b_type = MGX_KERNEL_S8;
        d->c_type = rng_below(r, 2) ? MGX_KERNEL_S32 : MGX_KERNEL_F32;
        return;
    }
    d->type = kind == 2 ? MGX_KERNEL_F32 : MGX_KERNEL_BF16;
    d->a_type = (enum mgx_kernel_type)rng_below(r, 3);
    d->b_type = (enum mgx_kernel_type)rng_below(r, 3);
    d->c_type = (enum mgx_kernel_type)rng_below(r, 3);
}

static struct problem problem_new(struct rng *r, mgx_isa isa, int64_t m, int64_t n, int64_t k)
{
    static const int panels[] = {0, 32, 64};
    struct problem p = {.desc = {.isa = isa, .m = m, .n = n, .k = k}};
    struct mgx_gemm_desc *d = &p.desc;
    random_types(r, d);
    d->panel = panels[rng_below(r, 3)];
    d->threads = 1 + rng_below(r, 3);
    d->packed = rng_below(r, 2);
    if (m * n * k < 100000 && rng_below(r, 3) == 0)
        for (int i = 0; i < MGX_GEMM_BATCH; i++)
            d->batch[i] = rng_below(r, 4);
    const int a_kind = rng_below(r, 4), b_kind = rng_below(r, 3);
    const int64_t a = random_strides(r, m, k, a_kind == 3 ? 0 : a_kind, &d->a_row, &d->a_col);
    const int64_t b = random_strides(r, k, n, b_kind, &d->b_row, &d->b_col);
    d->c_row = n + rng_below(r, 2) * 5;
    d->residual_row = n + rng_below(r, 2) * 7;
    p.a = typed_random(d->a_type, batch_strides(r, d, a, true, d->a_batch), r);
    p.b = typed_random(d->b_type, batch_strides(r, d, b, true, d->b_batch), r);
    if (d->type == MGX_KERNEL_S8 && d->packed && rng_below(r, 4))
        d->weights = small_bytes(p.b);
    p.bias = buffer_random(n, r);
    p.scale = buffer_random(n, r);
    const enum mgx_kernel_type operand =
        d->type == MGX_KERNEL_S8 ? d->c_type : end_operand_type(r, d->c_type);
    p.residual =
        typed_random(operand, batch_strides(r, d, m * d->residual_row, true, d->residual_batch), r);
    p.c = buffer_new(
        (batch_strides(r, d, m * d->c_row, false, d->c_batch) * typed_size(d->c_type) + 3) / 4);
    p.expected = buffer_new(batches(d) * m * n);
    p.bound = buffer_new(batches(d) * m * n);
    p.use_bias = rng_below(r, 2);
    if (d->c_type != MGX_KERNEL_S32) {
        const bool columns = rng_below(r, 4) == 0;
        d->hook_only = d->c_type == MGX_KERNEL_F32 && rng_below(r, 5) == 0;
        d->end = end_random(r, operand, MGX_ACT_COUNT, columns ? p.scale.data : NULL, p.bias.data,
                            d->hook_only      ? store_plain
                            : rng_below(r, 3) ? NULL
                                              : add_place);
    } else
        p.use_bias = false;
    solve(&p);
    return p;
}

static void problem_free(struct problem *p)
{
    buffer_free(p->a);
    buffer_free(p->b);
    buffer_free(p->bias);
    buffer_free(p->scale);
    buffer_free(p->residual);
    buffer_free(p->c);
    buffer_free(p->expected);
    buffer_free(p->bound);
}

static bool run_problem(struct problem *p, int threads, struct mgx_diag *diag)
{
    struct mgx_gemm_plan plan;
    struct mgx_gemm_desc desc = p->desc;
    struct mgx_pool *pool = NULL;
    desc.threads = threads;
    if (mgx_gemm_plan_init(&plan, &desc, diag) != MGX_OK ||
        mgx_pool_acquire(threads, &pool, diag) != MGX_OK)
        return false;
    struct buffer packed = buffer_new((int64_t)plan.packed_bytes / 4);
    struct buffer workspace = buffer_new((int64_t)mgx_gemm_workspace(&plan) / 4);
    if (desc.packed)
        mgx_gemm_pack(&plan, p->b.data, packed.data);
    struct mgx_ahead next[MAX_THREADS];
    bool intact = true;
    for (int t = 0; t < threads; t++) {
        next[t] = mgx_gemm_first_read(&plan, packed.data, t);
        intact &= buffer_holds(packed, next[t].at, next[t].bytes);
    }
    const struct mgx_gemm_args args = {
        .a = p->a.data,
        .b = desc.packed ? packed.data : p->b.data,
        .bias = p->use_bias ? p->bias.data : NULL,
        .scale = desc.c_type == MGX_KERNEL_F32 ? p->scale.data : NULL,
        .residual = mgx_end_reader(&desc.end) ? p->residual.data : NULL,
        .c = desc.hook_only ? NULL : p->c.data,
        .workspace = workspace.data,
        .hook_user = p,
        .next = next,
    };
    mgx_gemm_run(&plan, &args, pool);
    intact &= buffer_intact(packed) && buffer_intact(workspace) && buffer_intact(p->c);
    mgx_pool_release(pool);
    buffer_free(packed);
    buffer_free(workspace);
    return intact;
}

// Every value right and every gap between rows untouched; -1, or the first wrong place.
static int64_t first_wrong(const struct problem *p)
{
    const struct mgx_gemm_desc *d = &p->desc;
    const int64_t mn = d->m * d->n;
    for (int64_t batch = 0; batch < batches(d); batch++) {
        const int64_t c = index_of(d, d->c_batch, batch);
        for (int64_t i = 0; i < d->m; i++)
            for (int64_t j = 0; j < d->c_row; j++) {
                const int64_t at = batch * mn + i * d->n + j, in = c + i * d->c_row + j;
                if (j >= d->n ? !typed_untouched(d->c_type, p->c.data, in)
                              : !(fabs(typed_get(d->c_type, p->c.data, in) -
                                       p->expected.data[at]) <= p->bound.data[at]))
                    return at;
            }
    }
    return -1;
}

static void check_problem(struct rng *r, mgx_isa isa, int m, int n, int k)
{
    const uint64_t seed = r->state;
    struct problem p = problem_new(r, isa, m, n, k);
    struct mgx_diag diag = {0};
    const bool ran = run_problem(&p, p.desc.threads, &diag);
    const int64_t wrong = first_wrong(&p);
    if (!ran || wrong >= 0) {
        printf("%s types %d: %d %d %d, %dx%dx%d seed %llu panel %d packed %d b %lld,%lld a "
               "%lld,%lld act %s "
               "hook %d: %s\n",
               mgx_isa_name(isa), p.desc.type, p.desc.a_type, p.desc.b_type, p.desc.c_type, m, n, k,
               (unsigned long long)seed, p.desc.panel, p.desc.packed, (long long)p.desc.b_row,
               (long long)p.desc.b_col, (long long)p.desc.a_row, (long long)p.desc.a_col,
               mgx_act_name(mgx_end_act(&p.desc.end)), mgx_end_has_block(&p.desc.end),
               ran ? "wrong value" : "not run, or a guard was overwritten");
        if (ran)
            printf("  at %lld of %lld\n", (long long)wrong, (long long)p.expected.count);
    }
    problem_free(&p);
    CHECK(ran);
    CHECK_INT(wrong, -1);
}

CASE(agrees_with_a_plain_loop)
{
    static const int m[] = {0, 1, 2, 3, 5, 6, 7, 12, 14, 28, 41, 100},
                     n[] = {0, 1, 8, 16, 24, 32, 48, 64, 130}, k[] = {0, 1, 4, 7, 16, 33, 64};
    struct rng r = {42};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(700) && !check_failures; i++)
        check_problem(&r, isa, rng_size(&r, m, 12), rng_size(&r, n, 9), rng_size(&r, k, 7));
}

// Many panels go through one call of the kernel.
CASE(few_rows_of_many_columns)
{
    struct rng r = {19};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(150) && !check_failures; i++)
        check_problem(&r, isa, 1 + rng_below(&r, 2), 100 + rng_below(&r, 400),
                      1 + rng_below(&r, 100));
}

CASE(long_depth_is_cut)
{
    struct rng r = {7};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(8) && !check_failures; i++)
        check_problem(&r, isa, 1 + rng_below(&r, 20), 1 + rng_below(&r, 30),
                      6000 + rng_below(&r, 8000));
}

// Rows 4096 bytes apart, depths that are cut, and parts that find the copy of an earlier one.
CASE(rows_that_collide_are_copied)
{
    struct rng r = {23};
    EACH_ISA(isa)
    for (int i = 0; i < check_rounds(8) && !check_failures; i++)
        check_problem(&r, isa, 9 + rng_below(&r, 30), 128 + rng_below(&r, 200),
                      i % 4 ? 1024 : 4096);
}

CASE(threads_do_not_change_a_bit)
{
    struct rng r = {99};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 3; i++) {
            struct problem p = problem_new(&r, isa, 100 + rng_below(&r, 50), 150, 200);
            struct buffer one = buffer_new(p.c.count);
            CHECK(run_problem(&p, 1, NULL));
            memcpy(one.data, p.c.data, (size_t)p.c.count * sizeof(float));
            for (int threads = 2; threads < 6; threads++) {
                CHECK(run_problem(&p, threads, NULL));
                CHECK(memcmp(one.data, p.c.data, (size_t)p.c.count * sizeof(float)) == 0);
            }
            buffer_free(one);
            problem_free(&p);
        }
    }
}

// Else a program of free sizes would keep its weights twice.
CASE(any_rows_share_what_is_packed)
{
    struct mgx_gemm_plan few, many;
    struct mgx_gemm_desc d = {.isa = mgx_cpu()->isa,
                              .n = 768,
                              .k = 768,
                              .a_row = 768,
                              .a_col = 1,
                              .b_row = 768,
                              .b_col = 1,
                              .c_row = 768,
                              .packed = true,
                              .any_rows = true};
    d.m = 1;
    CHECK_INT(mgx_gemm_plan_init(&few, &d, NULL), MGX_OK);
    d.m = 1024;
    CHECK_INT(mgx_gemm_plan_init(&many, &d, NULL), MGX_OK);
    CHECK(few.kernel == many.kernel);
}

// Rows of A by what they hold: 0 ordinary, 1 a NaN, 2 an infinity, 3 denormals alone.
static void special_row(uint16_t *row, int64_t k, int kind)
{
    for (int64_t i = 0; i < k; i++)
        row[i] = kind == 3 ? (uint16_t)(1 + i % 0x7f) : mgx_bf16_from_double(0.5 + 0.25 * (i % 3));
    if (kind == 1)
        row[k / 2] = 0xffc1;
    if (kind == 2)
        row[k / 3] = 0x7f80;
}

// All of B is 1 or a little more. Denormals may count or not: next to nothing either way.
static void check_specials(const struct mgx_gemm_desc *d, const uint16_t *a, const struct buffer *b,
                           const struct buffer *packed, struct buffer c)
{
    struct mgx_gemm_plan plan;
    struct mgx_pool *pool = NULL;
    if (mgx_gemm_plan_init(&plan, d, NULL) != MGX_OK || mgx_pool_acquire(1, &pool, NULL) != MGX_OK)
        abort();
    struct buffer workspace = buffer_new((int64_t)mgx_gemm_workspace(&plan) / 4);
    mgx_gemm_pack(&plan, b->data, packed->data);
    const struct mgx_gemm_args args = {
        .a = a, .b = packed->data, .c = c.data, .workspace = workspace.data};
    mgx_gemm_run(&plan, &args, pool);
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < d->n; j++) {
            const double x = typed_get(d->c_type, c.data, i * d->c_row + j);
            CHECK(i % 4 == 0   ? x > 0.5 * (double)d->k && x < 2 * (double)d->k
                  : i % 4 == 1 ? isnan(x)
                  : i % 4 == 2 ? isinf(x) && x > 0
                               : x >= 0 && x < 1e-30);
        }
    mgx_pool_release(pool);
    buffer_free(workspace);
}

CASE(bfloat16_keeps_what_is_no_number)
{
    static const enum mgx_act acts[] = {MGX_ACT_NONE, MGX_ACT_RELU, MGX_ACT_LEAKY_RELU};
    static const int64_t rows[] = {1, 2, 4, 40};
    enum { COLS = 70, DEPTH = 21, MOST = 40 };
    uint16_t a[MOST * DEPTH];
    struct buffer b = buffer_new(COLS * DEPTH), packed = buffer_new(4 * 96 * 64),
                  c = buffer_new(MOST * COLS);
    for (int i = 0; i < MOST; i++)
        special_row(a + i * DEPTH, DEPTH, i % 4);
    for (int i = 0; i < COLS * DEPTH; i++)
        ((uint16_t *)(void *)b.data)[i] = mgx_bf16_from_double(1 + i % 2 * 0.125);
    EACH_ISA(isa)
    for (int i = 0; i < 2 * 3 * 4; i++) {
        struct mgx_gemm_desc d = {.type = MGX_KERNEL_BF16,
                                  .a_type = MGX_KERNEL_BF16,
                                  .b_type = MGX_KERNEL_BF16,
                                  .c_type = i % 2 ? MGX_KERNEL_BF16 : MGX_KERNEL_F32,
                                  .isa = isa,
                                  .m = rows[i / 6],
                                  .n = COLS,
                                  .k = DEPTH,
                                  .a_row = DEPTH,
                                  .a_col = 1,
                                  .b_row = COLS,
                                  .b_col = 1,
                                  .c_row = COLS,
                                  .packed = true};
        end_act_then(&d.end, acts[i / 2 % 3], 0.5f, 0);
        check_specials(&d, a, &b, &packed, c);
    }
    buffer_free(b);
    buffer_free(packed);
    buffer_free(c);
}

// Runs d on what is there, on one thread.
static void run_plain(const struct mgx_gemm_desc *d, const struct buffer *a, const struct buffer *b,
                      const struct buffer *residual, struct buffer c)
{
    struct mgx_gemm_plan plan;
    struct mgx_pool *pool = NULL;
    if (mgx_gemm_plan_init(&plan, d, NULL) != MGX_OK || mgx_pool_acquire(1, &pool, NULL) != MGX_OK)
        abort();
    struct buffer workspace = buffer_new((int64_t)mgx_gemm_workspace(&plan) / 4);
    const struct mgx_gemm_args args = {.a = a->data,
                                       .b = b->data,
                                       .residual = residual->data,
                                       .c = c.data,
                                       .workspace = workspace.data};
    mgx_gemm_run(&plan, &args, pool);
    mgx_pool_release(pool);
    buffer_free(workspace);
}

// A residual of bfloat16 is added once, whatever the depth is cut into: it gives what its values as
// floats give.
CASE(a_narrow_residual_is_added_once)
{
    enum { ROWS = 30, COLS = 40, DEPTH = 7000 };
    struct rng r = {77};
    struct buffer a = typed_random(MGX_KERNEL_BF16, ROWS * DEPTH, &r),
                  b = typed_random(MGX_KERNEL_BF16, COLS * DEPTH, &r),
                  narrow = typed_random(MGX_KERNEL_BF16, ROWS * COLS, &r),
                  wide = buffer_new(ROWS * COLS), c = buffer_new(ROWS * COLS),
                  expected = buffer_new(ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        wide.data[i] = (float)typed_get(MGX_KERNEL_BF16, narrow.data, i);
    EACH_ISA(isa)
    {
        struct mgx_gemm_desc d = {.type = MGX_KERNEL_BF16,
                                  .a_type = MGX_KERNEL_BF16,
                                  .b_type = MGX_KERNEL_BF16,
                                  .isa = isa,
                                  .m = ROWS,
                                  .n = COLS,
                                  .k = DEPTH,
                                  .a_row = DEPTH,
                                  .a_col = 1,
                                  .b_row = COLS,
                                  .b_col = 1,
                                  .c_row = COLS,
                                  .residual_row = COLS};
        mgx_end_then(&d.end, (struct mgx_end_step){.kind = MGX_END_ADD});
        run_plain(&d, &a, &b, &wide, expected);
        d.end.step[0].type = MGX_KERNEL_BF16;
        run_plain(&d, &a, &b, &narrow, c);
        for (int i = 0; i < ROWS * COLS; i++)
            CHECK(fabsf(c.data[i] - expected.data[i]) <= 1e-3f);
    }
    struct buffer all[] = {a, b, narrow, wide, c, expected};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
}

CASE(absurd_sizes_are_refused)
{
    struct mgx_gemm_plan plan;
    struct mgx_gemm_desc d = {.m = -1, .n = 1, .k = 1};
    CHECK_INT(mgx_gemm_plan_init(&plan, &d, NULL), MGX_INVALID);
    d = (struct mgx_gemm_desc){.m = 1, .n = INT64_MAX / 2, .k = 9, .packed = true};
    CHECK_INT(mgx_gemm_plan_init(&plan, &d, NULL), MGX_LIMIT);
    d = (struct mgx_gemm_desc){.m = INT64_MAX / 2, .n = 4, .k = 1};
    CHECK_INT(mgx_gemm_plan_init(&plan, &d, NULL), MGX_LIMIT);
    d = (struct mgx_gemm_desc){.m = 1, .n = 1, .k = 1, .batch = {1 << 30, 1 << 30, 1}};
    CHECK_INT(mgx_gemm_plan_init(&plan, &d, NULL), MGX_LIMIT);
}

// --- --bench ---

struct timed {
    struct mgx_gemm_plan plan;
    struct mgx_gemm_args args;
    struct mgx_pool *pool;
};

static void run_timed(void *user)
{
    struct timed *t = user;
    mgx_gemm_run(&t->plan, &t->args, t->pool);
}

static const struct shape {
    const char *name;
    int64_t m, n, k, batch;
    int b; // 0: packed, 1: raw rows, 2: raw transposed
} shapes[] = {
    {"bert qkv 128", 128, 2304, 768, 1, 0},
    {"bert out 128", 128, 768, 768, 1, 0},
    {"bert ffn1 128", 128, 3072, 768, 1, 0},
    {"bert ffn2 128", 128, 768, 3072, 1, 0},
    {"bert q k^t x12", 128, 128, 64, 12, 2},
    {"bert p v x12", 128, 64, 128, 12, 1},
    {"vit 197", 197, 768, 768, 1, 0},
    {"vit ffn2 197", 197, 768, 3072, 1, 0},
    {"bert qkv 1024", 1024, 2304, 768, 1, 0},
    {"bert out 1024", 1024, 768, 768, 1, 0},
    {"bert ffn1 1024", 1024, 3072, 768, 1, 0},
    {"bert ffn2 1024", 1024, 768, 3072, 1, 0},
    {"squad ffn1", 384, 3072, 768, 1, 0},
    {"squad ffn2", 384, 768, 3072, 1, 0},
    {"512 cubed", 512, 512, 512, 1, 0},
    {"deep 128x512x8192", 128, 512, 8192, 1, 0},
    {"low k 3136x96x16", 3136, 96, 16, 1, 0},
    {"fc 1x1000x2048", 1, 1000, 2048, 1, 0},
    {"fc 2x1000x2048", 2, 1000, 2048, 1, 0},
    {"fc 4x1000x2048", 4, 1000, 2048, 1, 0},
    {"raw rows 1x1024x1024", 1, 1024, 1024, 1, 1},
    {"raw cols 1x1024x1024", 1, 1024, 1024, 1, 2},
    {"raw rows 256 cubed", 256, 256, 256, 1, 1},
    {"raw cols 256 cubed", 256, 256, 256, 1, 2},
};

static void bench_shape(const struct shape *s, mgx_isa isa, int threads, enum mgx_kernel_type type)
{
    struct timed t = {0};
    struct rng r = {5};
    const int64_t row = s->k % 512 ? s->k : s->k + 16; // as layout.c has them lie
    const struct mgx_gemm_desc d = {
        .type = type,
        .a_type = type,
        .b_type = type,
        .c_type = MGX_KERNEL_F32,
        .isa = isa,
        .threads = threads,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .batch = {s->batch},
        .a_row = row,
        .a_col = 1,
        .a_batch = {s->m * row},
        .b_row = s->b == 2 ? 1 : s->n,
        .b_col = s->b == 2 ? s->k : 1,
        .b_batch = {s->n * s->k},
        .c_row = s->n,
        .c_batch = {s->m * s->n},
        .packed = s->b == 0,
    };
    if (mgx_pool_acquire(threads, &t.pool, NULL) != MGX_OK ||
        mgx_gemm_plan_init(&t.plan, &d, NULL) != MGX_OK)
        return;
    struct buffer a = typed_random(type, s->batch * s->m * row, &r),
                  b = typed_random(type, s->batch * s->n * s->k, &r),
                  bias = buffer_random(s->n, &r), c = buffer_new(s->batch * s->m * s->n),
                  packed = buffer_new((int64_t)t.plan.packed_bytes / 4),
                  workspace = buffer_new((int64_t)mgx_gemm_workspace(&t.plan) / 4);
    if (d.packed)
        mgx_gemm_pack(&t.plan, b.data, packed.data);
    t.args = (struct mgx_gemm_args){.a = a.data,
                                    .b = d.packed ? packed.data : b.data,
                                    .bias = bias.data,
                                    .scale = bias.data,
                                    .c = c.data,
                                    .workspace = workspace.data};
    const double gflop = 2e-9 * (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
    const struct bench call = bench_of(run_timed, &t, bench_clock_of(threads));
    const struct paced p = bench_paced(&call, threads, isa, gflop);
    printf("%-24s %d thread%s %8.1f us %7.1f GFLOP/s %5.1f %%  (%d x %d parts)\n", s->name, threads,
           threads > 1 ? "s" : " ", p.seconds * 1e6, gflop / p.seconds, 100 * p.share,
           t.plan.m_parts, t.plan.n_parts);
    struct buffer all[] = {a, b, bias, c, packed, workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_free(all[i]);
    mgx_pool_release(t.pool);
}

static int bench(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum mgx_kernel_type type;
    } types[] = {{"f32", MGX_KERNEL_F32}, {"bf16", MGX_KERNEL_BF16}, {"s8", MGX_KERNEL_S8}};
    mgx_isa isa;
    if (mgx_isa_require(argc > 2 ? argv[2] : NULL, &isa, NULL) != MGX_OK)
        return 1;
    for (int t = 0; t < 3; t++) {
        const struct mgx_gemm_kernel *kernel = mgx_gemm_kernel(types[t].type, isa);
        if (!kernel || (argc > 3 && strcmp(argv[3], types[t].name) != 0))
            continue;
        printf(
            "%s; GFLOP/s of the best round; %% are the median of the rounds' shares of the f32 FMA "
            "peak, of one thread now %.1f GFLOP/s\n",
            kernel->base.name, peak_gflops(isa));
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int threads = 1; threads <= 2; threads++)
                if (argc <= 4 || strstr(shapes[i].name, argv[4]))
                    bench_shape(&shapes[i], isa, threads, types[t].type);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(agrees_with_a_plain_loop) ROW(few_rows_of_many_columns) ROW(long_depth_is_cut)
            ROW(rows_that_collide_are_copied) ROW(threads_do_not_change_a_bit)
                ROW(any_rows_share_what_is_packed) ROW(bfloat16_keeps_what_is_no_number)
                    ROW(a_narrow_residual_is_added_once) ROW(absurd_sizes_are_refused){NULL, NULL}};
    return bench_asked(argc, argv) ? bench(argc, argv) : harness_run(cases, argc, argv);
}
