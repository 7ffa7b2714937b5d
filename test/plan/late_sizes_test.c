// SPDX-License-Identifier: MIT
// Operators that size their own results (topk of a length that the run finds out, nonzero,
// nonmaxsuppression), run again and again while their lengths change and come back: what a plan
// remembers of a call must not point into that call's memory. One reads a constant that lies otherwise
// than its kernel wants it: the copy is the choice's. Every result is the reference
// target's, by one thread and by several on one program.
#include <pthread.h>

#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { ROUNDS = 60, THREADS = 4, PARAMS = 3, RESULTS = 7, VALUES = 200, BOXES = 24 };

static const char text[] = "module: \"main\"\n"
                           "x = @param:x -> float_type, {200}, {1}\n"
                           "b = @param:b -> float_type, {1, 24, 4}, {96, 4, 1}\n"
                           "s = @param:s -> float_type, {1, 1, 24}, {24, 24, 1}\n"
                           "@1 = @literal{20} -> int64_type, {1}, {0}\n"
                           "@2 = @literal{0.5} -> float_type, {1}, {0}\n"
                           "@3 = @literal{0.3} -> float_type, {1}, {0}\n"
                           "n = nonzero(x)\n"
                           "r = reshape[dims={-1}](n)\n"
                           "g = gather[axis=0](x,r)\n"
                           "t = topk[k=7,axis=0,largest=1](g)\n"
                           "tv = get_tuple_elem[index=0](t)\n"
                           "ti = get_tuple_elem[index=1](t)\n"
                           "h = relu(g)\n"
                           "u = topk[k=3,axis=0,largest=0](h)\n"
                           "uv = get_tuple_elem[index=0](u)\n"
                           "k = nonmaxsuppression[center_point_box=0,use_dyn_output=1]"
                           "(b,s,@1,@2,@3)\n"
                           "l = slice[axes={1},starts={2},ends={3}](k)\n"
                           "q = reshape[dims={-1}](l)\n"
                           "w = gather[axis=1](b,q)\n"
                           "@4 = @literal{0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 5, "
                           "12, 19, 26, 33, 40, 47, 54, 61, 68, 3, 10, 17, 24, 31, 38, "
                           "45, 52, 59, 66, 1, 8, 15, 22, 29, 36, 43, 50, 57, 64, 71, "
                           "6, 13, 20, 27, 34, 41, 48, 55, 62, 69, 4, 11, 18, 25, 32, "
                           "39, 46, 53, 60, 67, 2, 9, 16, 23, 30, 37, 44, 51, 58, 65}"
                           " -> float_type, {24, 3}, {1, 24}\n"
                           "v = gather[axis=0](@4,q)\n"
                           "y = @return(tv,ti,uv,n,k,w,v)\n";

static struct mgx_program *compile(const char *target)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// --- inputs of one call ---

struct call {
    float x[VALUES], boxes[BOXES][4], scores[BOXES];
};

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// Of VALUES numbers a few or many are not 0; seven at least, as topk wants them. All differ.
static void draw(struct call *c, uint32_t *state)
{
    memset(c, 0, sizeof *c);
    const int kept = 7 + (int)(next(state) % 40), step = VALUES / kept;
    for (int i = 0; i < kept; i++)
        c->x[i * step] = (float)(i % 2 ? i + 1 : -i - 1) / 8;
    for (int i = 0; i < BOXES; i++) {
        const float left = (float)(next(state) % 64), top = (float)(next(state) % 64);
        const float box[] = {top, left, top + 8 + (float)(next(state) % 16), left + 12};
        memcpy(c->boxes[i], box, sizeof box);
        c->scores[i] = (float)(next(state) % 4096) / 4096 + (float)i / (1 << 20);
    }
}

static struct mgx_tensor lend(int rank, const int64_t *lens, const void *data)
{
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, rank, lens);
    return mgx_tensor_borrow(&shape, data);
}

static bool run(const struct mgx_program *p, const struct call *c, struct mgx_tensor *results)
{
    struct mgx_diag diag = {0};
    const struct mgx_named_tensor params[PARAMS] = {
        {"x", lend(1, (int64_t[]){VALUES}, c->x)},
        {"b", lend(3, (int64_t[]){1, BOXES, 4}, c->boxes)},
        {"s", lend(3, (int64_t[]){1, 1, BOXES}, c->scores)}};
    struct mgx_run call = {
        .params = params, .param_count = PARAMS, .results = results, .result_count = RESULTS};
    const bool good = mgx_program_run(p, &call, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

// --- one call on both targets ---

// Nothing is computed: numbers are moved and counted.
static bool equal(const struct mgx_tensor *ours, const struct mgx_tensor *right)
{
    bool good = true;
    for (int i = 0; i < RESULTS; i++)
        good &= mgx_tensor_equal(&ours[i], &right[i], true);
    return good;
}

static void release(struct mgx_tensor *results)
{
    for (int i = 0; i < RESULTS; i++)
        mgx_tensor_release(&results[i]);
}

static bool agrees(const struct mgx_program *cpu, const struct mgx_program *ref, uint32_t *state)
{
    struct call c;
    struct mgx_tensor ours[RESULTS] = {{.data = NULL}}, right[RESULTS] = {{.data = NULL}};
    draw(&c, state);
    const bool good = run(cpu, &c, ours) && run(ref, &c, right) && equal(ours, right);
    release(ours);
    release(right);
    return good;
}

CASE(lengths_that_a_run_finds_out_change_and_come_back)
{
    struct mgx_program *cpu = compile("cpu"), *ref = compile("ref");
    uint32_t state = 3;
    CHECK(cpu && ref);
    for (int i = 0; i < ROUNDS; i++)
        CHECK(agrees(cpu, ref, &state));
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

struct worker {
    pthread_t thread;
    const struct mgx_program *cpu, *ref;
    uint32_t state;
    int wrong;
};

static void *work(void *user)
{
    struct worker *w = user;
    for (int i = 0; i < ROUNDS; i++)
        w->wrong += !agrees(w->cpu, w->ref, &w->state);
    return NULL;
}

CASE(so_they_do_by_several_threads)
{
    struct mgx_program *cpu = compile("cpu"), *ref = compile("ref");
    struct worker w[THREADS];
    int wrong = 0;
    CHECK(cpu && ref);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.cpu = cpu, .ref = ref, .state = (uint32_t)i};
        CHECK_INT(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        wrong += w[i].wrong;
    }
    CHECK_INT(wrong, 0);
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

TEST_MAIN(ROW(lengths_that_a_run_finds_out_change_and_come_back) ROW(so_they_do_by_several_threads))
