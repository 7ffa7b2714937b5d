// SPDX-License-Identifier: MIT
// Programs with free sizes: right at every size whoever computes it, a plan for a size that comes
// again, weights once for all plans, the bound of bytes over thousands of sizes, many threads.
#include "targets/sizes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/plan.h"
#include "plan/shared.h"

// y = relu(x w) v, with x of n rows: w is 4 x 3 and v 3 x 2, which the checks know by heart.
static const char network[] =
    "module: \"main\"\n"
    "x = @param:x -> dynamic, float_type, {[1..100000], 4}\n"
    "@1 = @literal{1, -2, 3, 4, 5, -6, 7, 8, 9, -1, 2, 3} -> float_type, {4, 3}, {3, 1}\n"
    "@2 = @literal{1, 2, 3, 4, 5, 6} -> float_type, {3, 2}, {2, 1}\n"
    "@3 = dot(x,@1)\n@4 = relu(@3)\n@5 = dot(@4,@2)\n@6 = @return(@5)\n";

static const float w[4][3] = {{1, -2, 3}, {4, 5, -6}, {7, 8, 9}, {-1, 2, 3}},
                   v[3][2] = {{1, 2}, {3, 4}, {5, 6}};

static struct mgx_program *compile(const char *text, const struct mgx_compile_options *options)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find("cpu"), options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static struct mgx_compile_options options_of(enum mgx_specialise_mode mode, int threads)
{
    return (struct mgx_compile_options){
        .fast_math = true, .pass.fast_math = true, .threads = threads, .specialise = mode};
}

// Small integers: every order of summation gives the same.
static float expected(int64_t row, int column)
{
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        float hidden = 0;
        for (int i = 0; i < 4; i++)
            hidden += (float)((row * 4 + i) % 13 - 6) * w[i][k];
        sum += (hidden > 0 ? hidden : 0) * v[k][column];
    }
    return sum;
}

// The first and the last rows of many.
static bool runs(const struct mgx_program *p, int64_t rows)
{
    enum { SOME = 200 };
    struct mgx_diag diag = {0};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){rows, 4});
    struct mgx_tensor x, y = {.data = NULL};
    if (mgx_tensor_create(&x, &shape, &diag) != MGX_OK)
        return false;
    for (int64_t i = 0; i < rows * 4; i++)
        ((float *)x.data)[i] = (float)(i % 13 - 6);
    const struct mgx_named_tensor param = {"x", x};
    struct mgx_run r = {.params = &param, .param_count = 1, .results = &y, .result_count = 1};
    bool good = mgx_program_run(p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    good = good && y.shape.lens[0] == rows && y.shape.lens[1] == 2;
    for (int64_t i = 0; good && i < rows * 2; i = i + 1 == SOME && i < rows ? 2 * rows - i : i + 1)
        good = ((const float *)y.data)[i] == expected(i / 2, (int)(i % 2));
    mgx_tensor_release(&x);
    mgx_tensor_release(&y);
    return good;
}

// The numbers of "sizes: 3 met, 2 with a plan of their own (2 made, 0 dropped), 5 of 9 bytes".
struct report {
    long long met, plans, made, dropped, bytes, limit;
};

static struct report report(const struct mgx_program *p)
{
    struct report r = {0};
    struct mgx_str text = {0};
    mgx_sizes_explain(p->executable->sizes, &text);
    sscanf(mgx_str_text(&text),
           "sizes: %lld met, %lld with a plan of their own (%lld made, %lld dropped), %lld of %lld",
           &r.met, &r.plans, &r.made, &r.dropped, &r.bytes, &r.limit);
    mgx_str_fini(&text);
    return r;
}

CASE(a_size_that_comes_again_gets_a_plan)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_IN_CALL, 1);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    CHECK(runs(p, 5));
    CHECK_INT(report(p).plans, 1);   // the first of all: the weights are packed in this run
    CHECK(runs(p, 7) && runs(p, 7)); // the clock says whether the first of them or the second
    CHECK_INT(report(p).plans, 2);
    CHECK(runs(p, 5) && runs(p, 7));
    CHECK_INT(report(p).made, 2);
    CHECK_INT(report(p).met, 2);
    mgx_program_destroy(p);
}

CASE(never_means_never)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_NEVER, 1);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    for (int i = 0; i < 10; i++)
        CHECK(runs(p, 3 + i % 2));
    CHECK_INT(report(p).made, 0);
    mgx_program_destroy(p);
}

// The thread may take its time; runs go on meanwhile.
CASE(plans_are_made_beside_the_runs)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_BACKGROUND, 1);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    bool good = true;
    for (int i = 0; i < 2000 && good && report(p).plans < 3; i++) {
        good = runs(p, 3 + i % 3);
        usleep(1000);
    }
    CHECK(good);
    CHECK_INT(report(p).plans, 3);
    CHECK(runs(p, 3) && runs(p, 4) && runs(p, 5));
    mgx_program_destroy(p);
    p = compile(network, &options); // a program that goes while its thread is at work
    CHECK(runs(p, 3) && runs(p, 3));
    mgx_program_destroy(p);
}

// Optimal sizes are there from the beginning, also when nothing is to be made later.
CASE(optimal_sizes_are_planned_by_compiling)
{
    struct mgx_diag diag = {0};
    struct mgx_compile_options options = options_of(MGX_SPECIALISE_NEVER, 1);
    static const int64_t sizes[] = {2, 4, 8};
    const struct mgx_dim dims[] = {{.min = 1, .max = 8, .optimals = sizes, .optimal_count = 3},
                                   {.min = 4, .max = 4}};
    const struct mgx_shape shape = mgx_shape_from_dims(MGX_FLOAT, 2, dims);
    struct mgx_program *p = NULL;
    CHECK(mgx_program_create(&p, &mgx_ops, &diag) == MGX_OK);
    struct mgx_ins *x = mgx_add_parameter(mgx_program_main(p), "x", &shape);
    struct mgx_ins *y = mgx_emit(mgx_program_main(p), &mgx_op_relu, NULL, MGX_IN(x));
    mgx_add_return(mgx_program_main(p), &y, 1);
    CHECK(mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK);
    CHECK_INT(report(p).made, 3);
    mgx_program_destroy(p);
}

// Ten thousand sizes, a tenth of them twice in a row, within a bound that holds a few plans.
CASE(the_bound_holds)
{
    enum { SIZES = 10000 };
    struct mgx_compile_options options = options_of(MGX_SPECIALISE_IN_CALL, 1);
    options.plan_bytes = 256 << 10;
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    bool good = true;
    long long most = 0;
    for (int i = 0, sizes = check_rounds(SIZES); i < sizes && good; i++) {
        good = runs(p, 1 + i) && (i % 10 || runs(p, 1 + i));
        const struct report now = report(p);
        most = now.bytes > most ? now.bytes : most;
    }
    CHECK(good);
    CHECK(most <= (long long)options.plan_bytes);
    const struct report end = report(p);
    CHECK(end.plans > 0);
    CHECK_INT(end.plans, end.made - end.dropped);
    mgx_program_destroy(p);
}

// --- threads ---

enum { THREADS = 8, ROUNDS = 60 };

struct crowd {
    const struct mgx_program *p;
    atomic_int wrong, next;
};

static void *member(void *user)
{
    struct crowd *c = user;
    unsigned state = (unsigned)atomic_fetch_add(&c->next, 1) + 1;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 1103515245 + 12345;
        if (!runs(c->p, 1 + (state >> 16) % 40))
            atomic_fetch_add(&c->wrong, 1);
    }
    return NULL;
}

CASE(many_threads_many_sizes)
{
    for (enum mgx_specialise_mode mode = MGX_SPECIALISE_IN_CALL; mode <= MGX_SPECIALISE_BACKGROUND;
         mode++) {
        struct mgx_compile_options options = options_of(mode, 1);
        options.plan_bytes = 128 << 10; // plans come and go
        struct crowd c = {.p = compile(network, &options)};
        pthread_t threads[THREADS];
        CHECK(c.p);
        for (int i = 0; i < THREADS; i++)
            CHECK_INT(pthread_create(&threads[i], NULL, member, &c), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK_INT(c.wrong, 0);
        CHECK(mode == MGX_SPECIALISE_BACKGROUND || report(c.p).made > 0); // a thread may come late
        mgx_program_destroy((struct mgx_program *)c.p);
    }
}

// --- weights ---

// A product with weights of 1 MiB: plans of any number of sizes add nothing to the first packing.
CASE(weights_are_packed_once)
{
    enum { SIDE = 512 };
    struct mgx_diag diag = {0};
    struct mgx_compile_options options = options_of(MGX_SPECIALISE_IN_CALL, 1);
    const struct mgx_dim dims[] = {{.min = 1, .max = 1000}, {.min = SIDE, .max = SIDE}};
    const struct mgx_shape in = mgx_shape_from_dims(MGX_FLOAT, 2, dims),
                           weights = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){SIDE, SIDE});
    struct mgx_program *p = NULL;
    struct mgx_tensor t;
    CHECK(mgx_program_create(&p, &mgx_ops, &diag) == MGX_OK);
    CHECK(mgx_tensor_create(&t, &weights, &diag) == MGX_OK);
    mgx_tensor_generate(&t, 1);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in);
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, mgx_add_literal(m, &t)));
    mgx_add_return(m, &y, 1);
    mgx_tensor_release(&t);
    CHECK(mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK);
    for (int64_t rows = 100; rows < 110; rows++)
        for (int i = 0; i < 3; i++) {
            const struct mgx_shape shape =
                mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){rows, SIDE});
            struct mgx_tensor given, result = {.data = NULL};
            CHECK(mgx_tensor_create(&given, &shape, &diag) == MGX_OK);
            mgx_tensor_generate(&given, 2);
            const struct mgx_named_tensor param = {"x", given};
            struct mgx_run r = {
                .params = &param, .param_count = 1, .results = &result, .result_count = 1};
            CHECK(mgx_program_run(p, &r, &diag) == MGX_OK);
            mgx_tensor_release(&given);
            mgx_tensor_release(&result);
        }
    int64_t count;
    const struct mgx_plan *plan = (const struct mgx_plan *)p->executable;
    CHECK_INT(report(p).plans, 10);
    CHECK(mgx_plan_shared_total(&plan->store, &count) < (size_t)3 * SIDE * SIDE * sizeof(float));
    CHECK(count >= 1 && count <= 2); // for rows that fill whole tiles and for those that do not
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(a_size_that_comes_again_gets_a_plan) ROW(never_means_never)
              ROW(plans_are_made_beside_the_runs) ROW(optimal_sizes_are_planned_by_compiling)
                  ROW(the_bound_holds) ROW(many_threads_many_sizes) ROW(weights_are_packed_once))
