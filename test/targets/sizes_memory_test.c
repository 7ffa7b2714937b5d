// SPDX-License-Identifier: MIT
// A thousand sizes in turns stay within the bytes that plans may take, as the system counts them:
// what belongs to each size and what is chosen in its runs, tensors of late sizes among it. Plans
// of one program share the slabs such tensors are cut from, and rows of choices are counted with
// the memory they take.
#include <malloc.h>
#include <stdint.h>

#include "check.h"
#include "op/op.h"
#include "plan/rows.h"
#include "targets/target.h"
#include "test_resident.h"

// Which values are above 0 is known in the run alone; with 24 values a row what is found of them is
// cut from slabs from 600 rows on.
static const char text[] = "module: \"main\"\n"
                           "x = @param:x -> dynamic, float_type, {[1..100000], 24}\n"
                           "a = relu(x)\n"
                           "n = nonzero(a)\n"
                           "t = transpose[permutation={1, 0}](n)\n"
                           "v = gathernd[batch_dims=0](a,t)\n"
                           "s = reduce_sum[axes={0}](v)\n"
                           "r = @return(a,s)\n";

enum { SIZES = 700, ROUNDS = 2, WIDTH = 24 };
static const size_t limit = 24 << 20, beside = 48 << 20;

static struct mgx_program *compile(void)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {
        .threads = 1, .specialise = MGX_SPECIALISE_IN_CALL, .plan_bytes = limit};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// Of every row 11 numbers count, which add up to 66.
static bool run(const struct mgx_program *p, float *values, int64_t rows)
{
    struct mgx_diag diag = {0};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){rows, WIDTH});
    const struct mgx_named_tensor params[] = {{"x", mgx_tensor_borrow(&shape, values)}};
    struct mgx_tensor results[2] = {{.data = NULL}};
    struct mgx_run r = {.params = params, .param_count = 1, .results = results, .result_count = 2};
    bool good = mgx_program_run(p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    good = good && fabs(*(const float *)results[1].data - 66.0 * (double)rows) < 0.5;
    for (int i = 0; i < 2; i++)
        mgx_tensor_release(&results[i]);
    return good;
}

CASE(a_thousand_sizes_stay_within_the_bytes_of_plans)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they keep what is freed
    const int most = check_rounds(SIZES) * 3;
    float *values = malloc((size_t)most * WIDTH * sizeof *values);
    struct mgx_program *p = compile();
    CHECK(p && values);
    for (int i = 0; i < most * WIDTH; i++)
        values[i] = i % 2 ? -1 : (float)(i % WIDTH / 2);
    CHECK(run(p, values, most));
    const size_t before = resident();
    for (int round = 0; round < ROUNDS * 2; round++)
        for (int k = 1; k <= most; k += 3)
            CHECK(run(p, values, k));
    malloc_trim(0);
    const size_t grown = resident() - before;
    printf("%zu MiB for %d sizes\n", grown >> 20, most / 3);
    CHECK(resident() < before || grown <= limit + beside);
    mgx_program_destroy(p);
    free(values);
#endif
}

// --- rows ---

enum { ROWS = 5000 };

static struct mgx_plan_row rows[ROWS];

CASE(rows_are_found_and_the_oldest_go)
{
    struct mgx_plan_rows t = {.limit = 1000};
    struct mgx_plan_row *gone, *first = &rows[0];
    int left = 0;
    for (int i = 0; i < ROWS; i++) {
        rows[i] = (struct mgx_plan_row){.hash = (uint64_t)i * i % 701, .bytes = 1};
        CHECK(mgx_plan_rows_add(&t, &rows[i], &gone));
        CHECK((gone != NULL) == (i >= 1000) && (!gone || !gone->next));
        CHECK(gone != first); // it is held
        for (struct mgx_plan_row *r = gone; r; r = r->next)
            r->bytes = 0;
        if (i)
            rows[i].users = 0;
    }
    CHECK_INT(t.bytes, 1000);
    for (int i = 0; i < ROWS; i++) {
        const struct mgx_plan_row *r = mgx_plan_rows_first(&t, rows[i].hash);
        while (r && r != &rows[i])
            r = mgx_plan_rows_next(r);
        CHECK((r != NULL) == (rows[i].bytes == 1));
        left += r != NULL;
    }
    CHECK(left == 1000 && rows[0].bytes && !rows[1].bytes && rows[ROWS - 1].bytes);
    rows[0].users = 0;
    for (struct mgx_plan_row *r = mgx_plan_rows_fini(&t); r; r = r->next)
        left--;
    CHECK_INT(left, 0);
}

TEST_MAIN(ROW(a_thousand_sizes_stay_within_the_bytes_of_plans)
              ROW(rows_are_found_and_the_oldest_go))
