// SPDX-License-Identifier: MIT
// What is particular to products on tile registers, on the tile unit in software: bytes of all
// signs, operands that end where memory ends, how often the registers are configured, that they are
// given back, that rows do not depend on their neighbours, and that few rows go without.
#include <sys/mman.h>
#include <unistd.h>

#include "targets/cpu/amx/emulator.h"
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/product/gemm.h"

// --- memory that ends ---

// Bytes whose last one is the last of a page before one that nobody may touch.
struct mapped {
    char *all, *data;
    size_t whole;
};

static struct mapped mapped_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    char *all =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + whole, page, PROT_NONE) != 0)
        abort();
    return (struct mapped){all, all + whole - bytes, whole + page};
}

static void mapped_free(struct mapped m)
{
    munmap(m.all, m.whole);
}

// --- products of bytes ---

struct problem {
    struct mgx_gemm_desc desc;
    struct mgx_gemm_plan plan;
    struct mapped a, b, packed, work, c;
};

static mgx_isa amx(void)
{
    mgx_isa isa = 0;
    return mgx_isa_require("amx", &isa, NULL) == MGX_OK ? isa : 0;
}

// C as int32, or floats of bf16.
static struct mgx_gemm_desc describe(enum mgx_kernel_type a, enum mgx_kernel_type b, int64_t m,
                                     int64_t n, int64_t k)
{
    const bool bytes = a != MGX_KERNEL_BF16;
    return (struct mgx_gemm_desc){
        .type = bytes ? MGX_KERNEL_S8 : MGX_KERNEL_BF16,
        .a_type = a,
        .b_type = b,
        .c_type = bytes ? MGX_KERNEL_S32 : MGX_KERNEL_F32,
        .isa = amx(),
        .threads = 1,
        .m = m,
        .n = n,
        .k = k,
        .a_row = k,
        .a_col = 1,
        .b_row = n,
        .b_col = 1,
        .c_row = n,
        .packed = true,
    };
}

static void fill(struct mapped m, const struct mgx_gemm_desc *d, int64_t count, struct rng *r)
{
    for (int64_t i = 0; i < count; i++)
        if (d->type == MGX_KERNEL_S8)
            m.data[i] = (char)rng_next(r);
        else
            ((uint16_t *)(void *)m.data)[i] = mgx_bf16_from_double(rng_float(r));
}

static bool problem_init(struct problem *p, const struct mgx_gemm_desc *d, struct rng *r)
{
    const size_t size = (size_t)mgx_kernel_size(d->a_type);
    p->desc = *d;
    if (mgx_gemm_plan_init(&p->plan, d, NULL) != MGX_OK)
        return false;
    p->a = mapped_new((size_t)(d->m * d->k) * size);
    p->b = mapped_new((size_t)(d->k * d->n) * size);
    p->packed = mapped_new(p->plan.packed_bytes);
    p->work = mapped_new(mgx_gemm_workspace(&p->plan));
    p->c = mapped_new((size_t)(d->m * d->n) * 4);
    fill(p->a, d, d->m * d->k, r);
    fill(p->b, d, d->k * d->n, r);
    mgx_gemm_pack(&p->plan, p->b.data, p->packed.data);
    return true;
}

static void problem_run(struct problem *p, struct mgx_pool *pool)
{
    const struct mgx_gemm_args args = {
        .a = p->a.data, .b = p->packed.data, .c = p->c.data, .workspace = p->work.data};
    mgx_gemm_run(&p->plan, &args, pool);
}

static void problem_free(struct problem *p)
{
    mapped_free(p->a);
    mapped_free(p->b);
    mapped_free(p->packed);
    mapped_free(p->work);
    mapped_free(p->c);
}

static bool sums_are_right(const struct problem *p)
{
    const struct mgx_gemm_desc *d = &p->desc;
    const int32_t *c = (const int32_t *)(const void *)p->c.data;
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < d->n; j++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < d->k; k++)
                sum += (int64_t)typed_get(d->a_type, p->a.data, i * d->k + k) *
                       (int64_t)typed_get(d->b_type, p->b.data, k * d->n + j);
            if (c[i * d->n + j] != sum)
                return false;
        }
    return true;
}

static void check_bytes(enum mgx_kernel_type a, enum mgx_kernel_type b, int kind,
                        const char *kernel)
{
    static const int rows[] = {1, 7, 8, 13, 16, 17, 31, 32, 33, 50},
                     depth[] = {1, 4, 20, 64, 68, 148}, cols[] = {1, 16, 17, 32, 50};
    struct rng r = {7 + (uint64_t)kind};
    const int64_t before = amx_counts().by_kind[kind];
    for (int i = 0; i < 10 * 6 * 5; i++) {
        const struct mgx_gemm_desc d =
            describe(a, b, rows[i % 10], cols[i / 60], depth[i / 10 % 6]);
        struct problem p;
        CHECK(problem_init(&p, &d, &r));
        problem_run(&p, NULL);
        if (strcmp(p.plan.kernel->base.name, kernel) != 0 && (d.m >= 8 || !p.plan.kernel->strip))
            CHECK_FAIL("%lld rows: %s", (long long)d.m, p.plan.kernel->base.name);
        if (!sums_are_right(&p))
            CHECK_FAIL("%s: %lld x %lld x %lld", p.plan.kernel->base.name, (long long)d.m,
                       (long long)d.n, (long long)d.k);
        problem_free(&p);
    }
    CHECK(amx_counts().by_kind[kind] > before);
    CHECK_INT(amx_counts().in_use, 0);
}

CASE(bytes_of_all_signs_end_where_memory_ends)
{
    check_bytes(MGX_KERNEL_U8, MGX_KERNEL_U8, 0, "u8_gemm_32x32__amx");
    check_bytes(MGX_KERNEL_U8, MGX_KERNEL_S8, 1, "s8_gemm_32x32__amx");
    check_bytes(MGX_KERNEL_S8, MGX_KERNEL_U8, 2, "u8_gemm_32x32_signed__amx");
    check_bytes(MGX_KERNEL_S8, MGX_KERNEL_S8, 3, "s8_gemm_32x32_signed__amx");
}

// --- rows, and what they cost ---

// A row's sums are the same bits, whatever rows are made with it, in whatever tiles.
CASE(rows_of_bf16_do_not_depend_on_their_neighbours)
{
    enum { MOST = 70, COLS = 40, DEPTH = 300 };
    const struct mgx_gemm_desc all = describe(MGX_KERNEL_BF16, MGX_KERNEL_BF16, MOST, COLS, DEPTH);
    struct rng r = {3};
    struct problem p;
    CHECK(problem_init(&p, &all, &r));
    CHECK_TEXT(p.plan.kernel->base.name, "bf16_gemm_32x32__amx");
    problem_run(&p, NULL);
    for (int m = 8; m < MOST; m++) {
        struct mgx_gemm_desc d = all;
        struct problem some = {.a = p.a, .packed = p.packed};
        d.m = m;
        CHECK_INT(mgx_gemm_plan_init(&some.plan, &d, NULL), MGX_OK);
        some.c = mapped_new((size_t)(m * COLS) * 4);
        some.work = mapped_new(mgx_gemm_workspace(&some.plan));
        problem_run(&some, NULL);
        CHECK(memcmp(some.c.data, p.c.data, (size_t)(m * COLS) * 4) == 0);
        mapped_free(some.c);
        mapped_free(some.work);
    }
    problem_free(&p);
}

static void check_configurations(enum mgx_kernel_type type, int64_t m, int64_t most)
{
    const struct mgx_gemm_desc d =
        describe(type, type == MGX_KERNEL_U8 ? MGX_KERNEL_S8 : type, m, 200, 256);
    struct rng r = {5};
    struct problem p;
    CHECK(problem_init(&p, &d, &r));
    const int64_t before = amx_counts().configured;
    problem_run(&p, NULL);
    const int64_t count = amx_counts().configured - before;
    if (count < 1 || count > most)
        CHECK_FAIL("%lld rows: %lld configurations, %lld at most", (long long)m, (long long)count,
                   (long long)most);
    CHECK_INT(amx_counts().in_use, 0);
    problem_free(&p);
}

// One for a product on one thread, of however many tiles; 33 rows are two tiles of 16 and 17. Tiles
// of 24 and then 25 rows need another one, which then does for both.
CASE(registers_are_configured_once)
{
    static const int64_t rows[] = {8, 16, 20, 32, 64, 97, 250}, more[] = {1, 1, 1, 1, 1, 2, 2};
    for (int i = 0; i < 7; i++) {
        check_configurations(MGX_KERNEL_U8, rows[i], 1);
        check_configurations(MGX_KERNEL_S8, rows[i], 1);
        check_configurations(MGX_KERNEL_BF16, rows[i], more[i]);
    }
    check_configurations(MGX_KERNEL_BF16, 33, 1);
}

// By all threads, the caller's too.
CASE(registers_are_given_back)
{
    struct mgx_pool *pool;
    CHECK_INT(mgx_pool_acquire(4, &pool, NULL), MGX_OK);
    struct mgx_gemm_desc d = describe(MGX_KERNEL_U8, MGX_KERNEL_S8, 300, 300, 300);
    struct rng r = {9};
    struct problem p;
    d.threads = mgx_pool_threads(pool);
    CHECK(problem_init(&p, &d, &r));
    for (int i = 0; i < 5; i++) {
        problem_run(&p, pool);
        CHECK_INT(amx_counts().in_use, 0);
    }
    CHECK(sums_are_right(&p));
    problem_free(&p);
    mgx_pool_release(pool);
}

// They are multiplied by AVX-512, from the same packed bytes.
static void check_few(enum mgx_kernel_type a, enum mgx_kernel_type b, const char *kernel)
{
    const struct mgx_gemm_desc few = describe(a, b, 7, 50, 90), many = describe(a, b, 8, 50, 90);
    struct rng r = {11};
    struct problem p;
    struct mgx_gemm_plan plan;
    CHECK(problem_init(&p, &few, &r));
    CHECK_TEXT(p.plan.kernel->base.name, kernel);
    CHECK_INT(mgx_gemm_plan_init(&plan, &many, NULL), MGX_OK);
    CHECK(plan.kernel->few_rows == p.plan.kernel);
    CHECK_TEXT(mgx_panels_name(plan.kernel), kernel);
    CHECK_INT(plan.packed_bytes, p.plan.packed_bytes);
    struct mapped again = mapped_new(plan.packed_bytes);
    mgx_gemm_pack(&plan, p.b.data, again.data);
    CHECK(memcmp(again.data, p.packed.data, plan.packed_bytes) == 0);
    mapped_free(again);
    problem_free(&p);
}

CASE(few_rows_go_without)
{
    check_few(MGX_KERNEL_U8, MGX_KERNEL_S8, "s8_gemm_14x32__avx512_vnni");
    check_few(MGX_KERNEL_BF16, MGX_KERNEL_BF16, "bf16_gemm_14x32__avx512_bf16");
}

// What a set without tiles takes.
CASE(a_set_can_leave_the_tiles_out)
{
    mgx_isa isa;
    CHECK_INT(mgx_isa_require("native-amx_tile", &isa, NULL), MGX_OK);
    CHECK_TEXT(mgx_gemm_kernel(MGX_KERNEL_S8, isa)->base.name, "s8_gemm_14x32__avx512_vnni");
    CHECK_TEXT(mgx_gemm_kernel(MGX_KERNEL_BF16, isa)->base.name, "bf16_gemm_14x32__avx512_bf16");
    CHECK_INT(mgx_isa_require("amx", &isa, NULL), MGX_OK);
    CHECK_TEXT(mgx_isa_name(isa), "amx");
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(bytes_of_all_signs_end_where_memory_ends)       //
                                              ROW(rows_of_bf16_do_not_depend_on_their_neighbours) //
                                              ROW(registers_are_configured_once)                  //
                                              ROW(registers_are_given_back)                       //
                                              ROW(few_rows_go_without)                            //
                                              ROW(a_set_can_leave_the_tiles_out)                  //
                                              {NULL, NULL}};
    return harness_run(cases, argc, argv);
}
