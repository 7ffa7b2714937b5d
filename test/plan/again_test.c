// SPDX-License-Identifier: MIT
// Steps that meet lengths they had before do what they did then: sizes come back in any order, beside
// an index that changes from run to run, and every result is the reference target's.
#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { ROUNDS = 80, RESULTS = 11, LONGEST = 12, ROWS = 3, WIDTH = 64 };

// Views of one input and of one that an index moves, of one whose length follows from a value, and of one
// repeated to another's lengths; kernels into slots and into planned places, concats of lines, one of
// which grows by so little that it gets room for more.
static const char many[] = "module: \"main\"\n"
                           "i = @param:i -> int64_type, {1}, {1}\n"
                           "x = @param:x -> dynamic, float_type, {3, [1..12], 64}\n"
                           "@3 = @literal{3} -> int64_type, {1}, {0}\n"
                           "@4 = @literal{0.25} -> float_type, {1}, {0}\n"
                           "a = transpose[permutation={2, 0, 1}](x)\n"
                           "b = scan_slice[axis=0,direction=0](x,i)\n"
                           "c = softmax[axis=2](x)\n"
                           "d = concat[axis=1](c,x)\n"
                           "e = reduce_sum[axes={1, 2}](x)\n"
                           "f = slice[axes={0},starts={1},ends={2}](d)\n"
                           "g = exp(a)\n"
                           "h = concat[axis=2](x,c)\n"
                           "j = slice[axes={1},starts={0},ends={1}](x)\n"
                           "k = concat[axis=1](x,j)\n"
                           "l = slice[axes={0}](x,i,@3)\n"
                           "@1 = multibroadcast(j,x)\n"
                           "m = mul(@1,x)\n"
                           "@2 = dimensions_of[start=0,end=3](x)\n"
                           "n = broadcast_with_dims(@4,@2)\n"
                           "r = @return(a,b,d,e,f,g,h,k,l,m,n)\n";

static struct mgx_program *compile(const char *target)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1, .specialise = MGX_SPECIALISE_NEVER};
    if (mgx_program_parse(&p, &mgx_ops, many, strlen(many), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static bool run(const struct mgx_program *p, const struct mgx_tensor *x, const struct mgx_tensor *i,
                struct mgx_tensor *results)
{
    struct mgx_diag diag = {0};
    const struct mgx_named_tensor params[] = {{"x", *x}, {"i", *i}};
    struct mgx_run r = {
        .params = params, .param_count = 2, .results = results, .result_count = RESULTS};
    const bool good = mgx_program_run(p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

static bool close(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    bool good = mgx_shape_same_lens(&a->shape, &b->shape);
    for (int64_t k = 0; good && k < mgx_shape_elements(&b->shape); k++) {
        const double p = mgx_load_double(MGX_FLOAT, a->data, mgx_shape_index(&a->shape, k)),
                     q = mgx_load_double(MGX_FLOAT, b->data, mgx_shape_index(&b->shape, k));
        good = fabs(p - q) <= 1e-5 * (1 + fabs(q));
    }
    return good;
}

CASE(sizes_that_come_back_give_the_same)
{
    struct mgx_program *cpu = compile("cpu"), *ref = compile("ref");
    uint32_t random = 5;
    CHECK(cpu && ref);
    for (int round = 0; round < ROUNDS; round++) {
        struct mgx_tensor x, i, ours[RESULTS] = {{.data = NULL}}, right[RESULTS] = {{.data = NULL}};
        struct mgx_diag diag = {0};
        random = random * 1664525u + 1013904223u;
        const int64_t length = 1 + (random >> 10) % LONGEST;
        const struct mgx_shape shape =
                                   mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){ROWS, length, WIDTH}),
                               one = mgx_shape_vector(MGX_INT64, 1);
        CHECK_OK(mgx_tensor_create(&x, &shape, &diag), diag);
        CHECK_OK(mgx_tensor_create(&i, &one, &diag), diag);
        for (int64_t k = 0; k < mgx_shape_elements(&shape); k++)
            ((float *)x.data)[k] = (float)((random + (uint32_t)k * 2654435761u) >> 8) / (1 << 24);
        *(int64_t *)i.data = (random >> 20) % ROWS;
        CHECK(run(cpu, &x, &i, ours) && run(ref, &x, &i, right));
        for (int k = 0; k < RESULTS; k++) {
            CHECK(close(&ours[k], &right[k]));
            mgx_tensor_release(&ours[k]);
            mgx_tensor_release(&right[k]);
        }
        mgx_tensor_release(&x);
        mgx_tensor_release(&i);
    }
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

TEST_MAIN(ROW(sizes_that_come_back_give_the_same))
