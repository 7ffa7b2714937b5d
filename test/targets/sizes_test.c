// SPDX-License-Identifier: MIT
// Programs with free sizes: right at every size whoever computes it, a plan for a size that comes
// again, weights once for all plans, the bound of bytes over thousands of sizes, many threads.
#include "targets/sizes.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/plan.h"
#include "plan/shared.h"
#include "test_clock.h"

// Whether a plan pays is a matter of seconds. Where a case counts plans, time goes by with looks at the
// clock alone: a run is one step long, and making a plan one for each of its passes.
enum { STEP = 1000 };

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
    test_clock_go_by(STEP);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    CHECK(runs(p, 5));
    CHECK_INT(report(p).plans, 1); // the first of all: the weights are packed in this run
    CHECK(runs(p, 7));
    CHECK_INT(report(p).plans, 1);
    CHECK(runs(p, 7));
    CHECK_INT(report(p).plans, 2);
    CHECK(runs(p, 5) && runs(p, 7));
    CHECK_INT(report(p).made, 2);
    CHECK_INT(report(p).met, 2);
    mgx_program_destroy(p);
    test_clock_go_by(0);
}

// A text that grows: every size comes once, and its plan would cost more than the run. One plan is
// made, by the first run of all, which packs the weights.
CASE(sizes_that_come_once_get_no_plans)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_AUTO, 1);
    test_clock_go_by(STEP);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    for (int rows = 1; rows <= 40; rows++)
        CHECK(runs(p, rows));
    CHECK_INT(report(p).met, 40);
    CHECK_INT(report(p).made, 1);
    mgx_program_destroy(p);
    test_clock_go_by(0);
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

// The thread may take its time; runs go on until it is done, and for ever if it never is.
CASE(plans_are_made_beside_the_runs)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_BACKGROUND, 1);
    struct mgx_program *p = compile(network, &options);
    CHECK(p);
    bool good = true;
    for (int i = 0; good && report(p).plans < 3; i++) {
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

// Everyone does the same at once, and finds nothing wrong.
static void all_at_once(struct crowd *c, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, work, c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(c->wrong, 0);
}

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
        CHECK(c.p);
        all_at_once(&c, member);
        CHECK(mode == MGX_SPECIALISE_BACKGROUND || report(c.p).made > 0); // a thread may come late
        mgx_program_destroy((struct mgx_program *)c.p);
    }
}

// --- threads with state that goes round ---

// A cache that grows and one with room, of rows that count; the means of what a token sees.
static const char stateful[] = "module: \"main\"\n"
                               "x = @param:x -> dynamic, float_type, {[1..4], 1, 64}\n"
                               "past = @param:past -> dynamic, float_type, {[1..4], [0..], 64}\n"
                               "room = @param:room -> dynamic, float_type, {[1..4], 1, [1..], 64}\n"
                               "ends = @param:ends -> dynamic, int64_type, {[1..4]}\n"
                               "total = @param:total -> int64_type, {1}, {1}\n"
                               "a = concat[axis=1](past,x)\n"
                               "u = unsqueeze[axes={1}](x)\n"
                               "c = cache_append(u,ends,total,room)\n"
                               "q = sub(u,u)\n"
                               "y = cache_attention(q,c,c,ends)\n"
                               "r = @return(a,c,y)\n";

enum { STEPS = 40, ROOM = 64, WIDTH = 64 };

static bool make_inputs(struct mgx_named_tensor *params, int64_t batch, int64_t step, float first)
{
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){batch, 1, WIDTH}),
                           ends = mgx_shape_vector(MGX_INT64, batch),
                           one = mgx_shape_vector(MGX_INT64, 1);
    if (mgx_tensor_create(&params[0].tensor, &x, NULL) != MGX_OK ||
        mgx_tensor_create(&params[3].tensor, &ends, NULL) != MGX_OK ||
        mgx_tensor_create(&params[4].tensor, &one, NULL) != MGX_OK)
        return false;
    for (int64_t i = 0; i < batch * WIDTH; i++)
        ((float *)params[0].tensor.data)[i] = first + (float)step;
    for (int64_t b = 0; b < batch; b++)
        ((int64_t *)params[3].tensor.data)[b] = step + 1;
    *(int64_t *)params[4].tensor.data = step + 1;
    return true;
}

// Both caches hold first, first + 1, ...; their mean is that of a row.
static bool is_right(const struct mgx_tensor *results, int64_t batch, int64_t step, float first)
{
    bool good = results[0].shape.lens[1] == step + 1 && results[1].shape.lens[2] == ROOM;
    for (int64_t b = 0; good && b < batch; b++) {
        const struct mgx_tensor *a = &results[0], *c = &results[1], *y = &results[2];
        for (int64_t i = 0; good && i <= step; i++)
            good = ((float *)a->data)[b * a->shape.strides[0] + i * a->shape.strides[1]] ==
                       first + (float)i &&
                   ((float *)c->data)[b * c->shape.strides[0] + i * c->shape.strides[2]] ==
                       first + (float)i;
        const float mean = ((float *)y->data)[b * y->shape.strides[0]];
        good = good && fabsf(mean - first - (float)step / 2) <= 1e-5f * (first + STEPS);
    }
    return good;
}

// A text from its first token on: caches are handed round as they come.
static bool tells(const struct mgx_program *p, int64_t batch, float first)
{
    struct mgx_diag diag = {0};
    const struct mgx_shape empty = mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){batch, 0, WIDTH}),
                           room = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){batch, 1, ROOM, WIDTH});
    struct mgx_named_tensor params[] = {{"x"}, {"past"}, {"room"}, {"ends"}, {"total"}};
    bool good = mgx_tensor_create(&params[1].tensor, &empty, &diag) == MGX_OK &&
                mgx_tensor_create(&params[2].tensor, &room, &diag) == MGX_OK;
    memset(params[2].tensor.data, 0, mgx_shape_bytes(&room));
    for (int64_t step = 0; step < STEPS && good; step++) {
        struct mgx_tensor results[3] = {{.data = NULL}};
        struct mgx_run r = {.params = params,
                            .param_count = 5,
                            .results = results,
                            .result_count = 3,
                            .takes_growing = true};
        good = make_inputs(params, batch, step, first) && mgx_program_run(p, &r, &diag) == MGX_OK &&
               is_right(results, batch, step, first);
        for (int i = 0; i < 5; i++)
            mgx_tensor_release(&params[i].tensor);
        params[1].tensor = results[0];
        params[2].tensor = results[1];
        mgx_tensor_release(&results[2]);
    }
    mgx_tensor_release(&params[1].tensor);
    mgx_tensor_release(&params[2].tensor);
    return good;
}

static void *teller(void *user)
{
    struct crowd *c = user;
    const int number = atomic_fetch_add(&c->next, 1);
    for (int text = 0; text < 3; text++)
        if (!tells(c->p, 1 + (number + text) % 3, (float)(100 * number + text)))
            atomic_fetch_add(&c->wrong, 1);
    return NULL;
}

CASE(many_threads_hand_their_state_round)
{
    for (int workers = 1; workers <= 2; workers++) { // plans in the call, and beside the runs
        const struct mgx_compile_options options = options_of(MGX_SPECIALISE_AUTO, workers);
        struct crowd c = {.p = compile(stateful, &options)};
        CHECK(c.p);
        all_at_once(&c, teller);
        CHECK(workers > 1 || report(c.p).made > 0);
        CHECK(report(c.p).met < THREADS * STEPS); // the caches' lengths make no sizes
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

// Ranges are whole: their ends are sizes, what lies beyond is refused with both numbers.
CASE(lengths_are_within_their_range)
{
    const struct mgx_compile_options options = options_of(MGX_SPECIALISE_NEVER, 1);
    struct mgx_program *p = compile(network, &options);
    const struct {
        int64_t rows;
        bool good;
    } cases[] = {{0, false}, {1, true}, {100000, true}, {100001, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t given[] = {cases[i].rows, 4};
        const struct mgx_named_lens x = {"x", given, 2};
        struct mgx_diag diag = {0};
        int64_t lens[4] = {0};
        CHECK_INT(mgx_sizes_axes(p->executable->sizes), 1);
        CHECK((mgx_sizes_lens(p->executable->sizes, &x, 1, lens, &diag) == MGX_OK) ==
              cases[i].good);
        if (cases[i].good)
            CHECK_INT(lens[0], cases[i].rows);
        else
            CHECK(strstr(diag.text, "1..100000"));
        mgx_diag_clear(&diag);
    }
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(a_size_that_comes_again_gets_a_plan) ROW(never_means_never)
              ROW(sizes_that_come_once_get_no_plans) ROW(plans_are_made_beside_the_runs)
                  ROW(optimal_sizes_are_planned_by_compiling) ROW(the_bound_holds)
                      ROW(many_threads_many_sizes) ROW(many_threads_hand_their_state_round)
                          ROW(weights_are_packed_once) ROW(lengths_are_within_their_range))
