// SPDX-License-Identifier: MIT
// Small programs compiled for cpu against the reference: every plan mechanism once (views, concat
// in place, nested concats, results that are parameters or literals, epilogues, in-place reuse,
// dynamic sizes, two threads).
#include <pthread.h>

#include "targets/cpu/program.h"

enum { MAX_RESULTS = 8 };

// Compiled for both targets, run twice on cpu (the second run reuses its context), compared.
static bool agrees(const char *text)
{
    struct mgx_tensor expected[MAX_RESULTS] = {{.data = NULL}},
                      actual[MAX_RESULTS] = {{.data = NULL}};
    struct mgx_program *ref = program_compile(text, "ref", 0),
                       *cpu = program_compile(text, "cpu", 0);
    bool good = ref && cpu && program_run(ref, expected);
    const int count = good ? mgx_module_result_count(mgx_program_main(ref)) : 0;
    for (int round = 0; good && round < 2; round++) {
        good = program_run(cpu, actual);
        for (int i = 0; good && i < count; i++) {
            good = program_distance(&actual[i], &expected[i]).relative <= 1e-5;
            if (!good)
                printf("result %d differs in round %d\n", i, round);
        }
        for (int i = 0; i < count; i++)
            mgx_tensor_release(&actual[i]);
    }
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&expected[i]);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

#define X23 "x = @param:x -> float_type, {2, 3}, {3, 1}\n"

CASE(results_that_are_inputs_views_and_twice_the_same)
{
    CHECK(agrees("module: \"main\"\n" X23 "@1 = @return(x,x)\n"));
    CHECK(agrees("module: \"main\"\n" X23
                 "@1 = transpose[permutation={1, 0}](x)\n@2 = relu(x)\n@3 = @return(@1,@2,@2)\n"));
    CHECK(agrees("module: \"main\"\n@0 = @literal{1, 2} -> float_type, {2}, {1}\n" X23
                 "@2 = @return(@0)\n"));
}

CASE(concat_in_place)
{
    CHECK(agrees("module: \"main\"\n" X23 "@1 = relu(x)\n@2 = tanh(x)\n@3 = "
                 "concat[axis=1](@1,@2)\n@4 = exp(@3)\n@5 = @return(@4)\n"));
    CHECK(
        agrees("module: \"main\"\n" X23
               "@1 = relu(x)\n@2 = concat[axis=0](@1,@1,x)\n@3 = exp(@2)\n@4 = @return(@3,@1)\n"));
    // growing lists, as in DenseNet
    CHECK(agrees(
        "module: \"main\"\n" X23
        "@1 = relu(x)\n@2 = tanh(x)\n@3 = concat[axis=1](@1,@2)\n@4 = reduce_sum[axes={1}](@3)\n"
        "@5 = multibroadcast[out_lens={2, 3}](@4)\n@6 = mul(@5,x)\n@7 = "
        "concat[axis=1](@1,@2,@6)\n@8 = exp(@7)\n@9 = @return(@8,@3)\n"));
}

CASE(convolution_with_bias_residual_and_activation)
{
    const char *text = "module: \"main\"\n"
                       "x = @param:x -> float_type, {2, 5, 9, 7}, {315, 63, 7, 1}\n"
                       "r = @param:r -> float_type, {2, 4, 9, 7}, {252, 63, 7, 1}\n"
                       "b = @param:b -> float_type, {4}, {1}\n"
                       "w = @param:w -> float_type, {4, 5, 3, 3}, {45, 9, 3, 1}\n"
                       "@4 = convolution[padding={1, 1},stride={1, 1},dilation={1, "
                       "1},group=1,padding_mode=0](x,w)\n"
                       "@5 = broadcast[axis=1,out_lens={2, 4, 9, 7}](b)\n"
                       "@6 = add(@4,@5)\n@7 = add(@6,r)\n@8 = relu(@7)\n"
                       "@9 = pooling[mode=max,padding={1, 1},stride={2, 2},lengths={3, 3}](@8)\n"
                       "@10 = pooling[mode=average,padding={1, 1},stride={2, 2},lengths={3, "
                       "3},count_include_pad=1](@8)\n"
                       "@11 = reduce_mean[axes={2, 3}](@8)\n@12 = @return(@9,@10,@11,@8)\n";
    CHECK(agrees(text));
}

// Batch normalization behind the activation, as far as it goes into the epilogue, and what else
// looks like it.
CASE(factors_and_terms_behind_the_activation)
{
    static const char *const tails[] = {
        "@7 = sub(@6,n)\n@8 = mul(@7,s)\n@9 = add(@8,r)\n", "@7 = mul(@6,s)\n@9 = sub(n,@7)\n",
        "@7 = sub(n,@6)\n@8 = mul(s,@7)\n@9 = sub(@8,n)\n", "@8 = mul(@6,s)\n@9 = sub(@8,r)\n",
        "@7 = mul(@6,r)\n@9 = add(@7,n)\n"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char text[2048];
        snprintf(
            text, sizeof text,
            "module: \"main\"\n"
            "w = @literal{1, 2, -3, 4, 5, -6, 7, 8} -> float_type, {4, 2, 1, 1}, {2, 1, 1, 1}\n"
            "c = @literal{1, -2, 3, 4} -> float_type, {4}, {1}\n"
            "d = @literal{-5, 6, 7, 8} -> float_type, {4}, {1}\n"
            "x = @param:x -> float_type, {1, 2, 9, 7}, {126, 63, 7, 1}\n"
            "r = @param:r -> float_type, {1, 4, 9, 7}, {252, 63, 7, 1}\n"
            "s = broadcast[axis=1,out_lens={1, 4, 9, 7}](c)\n"
            "n = broadcast[axis=1,out_lens={1, 4, 9, 7}](d)\n"
            "@4 = convolution(x,w)\n@5 = add(@4,s)\n@6 = relu(@5)\n%s@10 = @return(@9)\n",
            tails[i]);
        CHECK(agrees(text));
    }
}

CASE(attention_without_scale_or_mask)
{
    CHECK(agrees("module: \"main\"\n"
                 "q = @param:q -> float_type, {2, 3, 17, 16}, {816, 272, 16, 1}\n"
                 "k = @param:k -> float_type, {2, 3, 19, 16}, {912, 304, 16, 1}\n"
                 "v = @param:v -> float_type, {2, 3, 19, 16}, {912, 304, 16, 1}\n"
                 "@3 = transpose[permutation={0, 1, 3, 2}](k)\n@4 = dot(q,@3)\n"
                 "@5 = softmax[axis=3](@4)\n@6 = dot(@5,v)\n@7 = @return(@6)\n"));
}

CASE(products_with_batches_and_transposes)
{
    const char *text =
        "module: \"main\"\n"
        "q = @param:q -> float_type, {2, 5, 12}, {60, 12, 1}\n"
        "k = @param:k -> float_type, {2, 7, 12}, {84, 12, 1}\n"
        "@2 = reshape[dims={2, 5, 3, 4}](q)\n@3 = transpose[permutation={0, 2, 1, 3}](@2)\n"
        "@4 = reshape[dims={2, 7, 3, 4}](k)\n@5 = transpose[permutation={0, 2, 3, 1}](@4)\n"
        "@6 = dot(@3,@5)\n@7 = softmax[axis=3](@6)\n"
        "@8 = transpose[permutation={0, 1, 3, 2}](@5)\n@9 = dot(@7,@8)\n"
        "@10 = transpose[permutation={0, 2, 1, 3}](@9)\n@11 = reshape[dims={2, 5, 12}](@10)\n"
        "@12 = @return(@11,@7)\n";
    CHECK(agrees(text));
}

CASE(sizes_known_only_at_run_time)
{
    CHECK(agrees("module: \"main\"\n" X23 "@1 = nonzero(x)\n@2 = convert[target_type=2](@1)\n@3 = "
                 "reduce_sum[axes={1}](@2)\n@4 = relu(x)\n@5 = @return(@3,@4)\n"));
}

// Results that take over the bytes of an input: each kernel that offers it, fed by a value that
// dies there.
CASE(in_place)
{
    static const char *const last[] = {"softmax[axis=1]", "logsoftmax[axis=1]", "softmax[axis=0]",
                                       "tanh"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "module: \"main\"\nx = @param:x -> float_type, {6, 40}, {40, 1}\nw = @param:w -> "
                 "float_type, {40, 40}, {40, 1}\n"
                 "@2 = dot(x,w)\n@3 = %s(@2)\n@4 = dot(@3,w)\n@5 = @return(@4)\n",
                 last[i]);
        CHECK(agrees(text));
    }
}

struct shared {
    struct mgx_program *p;
    bool good;
};

static void *run_often(void *user)
{
    struct shared *s = user;
    for (int i = 0; i < 50 && s->good; i++) {
        struct mgx_tensor out[1] = {{.data = NULL}};
        s->good = program_run(s->p, out);
        mgx_tensor_release(&out[0]);
    }
    return NULL;
}

CASE(products_of_nothing)
{
    CHECK(agrees("module: \"main\"\nx = @param:x -> float_type, {1, 0, 4, 3}, {0, 12, 3, 1}\n"
                 "@1 = @literal{} -> float_type, {1, 0, 3, 4}, {0, 12, 4, 1}\n"
                 "@2 = dot(x,@1)\n@3 = relu(@2)\n@4 = @return(@3)\n"));
}

// A view whose lengths come at run time reads bytes that the plan gives to others afterwards.
CASE(views_that_outlive_their_bytes)
{
    CHECK(agrees("module: \"main\"\nx = @param:x -> float_type, {40, 50}, {50, 1}\n"
                 "@1 = relu(x)\n@2 = exp(@1)\n@3 = nonzero(@2)\n"
                 "@4 = dimensions_of[start=1,end=2](@3)\n@5 = reshape[dims={}](@2,@4)\n"
                 "@6 = neg(x)\n@7 = exp(@6)\n@8 = tanh(@7)\n@9 = softmax[axis=1](@8)\n"
                 "@10 = @return(@9,@5)\n"));
}

CASE(two_threads_run_one_program)
{
    struct mgx_program *p = program_compile(
        "module: \"main\"\n" X23
        "@1 = relu(x)\n@2 = tanh(x)\n@3 = concat[axis=1](@1,@2)\n@4 = exp(@3)\n@5 = @return(@4)\n",
        "cpu", 0);
    CHECK(p != NULL);
    struct shared a = {p, true}, b = {p, true};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, run_often, &a), 0);
    run_often(&b);
    pthread_join(thread, NULL);
    mgx_program_destroy(p);
    CHECK(a.good && b.good);
}

TEST_MAIN(ROW(results_that_are_inputs_views_and_twice_the_same) ROW(concat_in_place)
              ROW(convolution_with_bias_residual_and_activation)
                  ROW(factors_and_terms_behind_the_activation) ROW(attention_without_scale_or_mask)
                      ROW(products_with_batches_and_transposes) ROW(sizes_known_only_at_run_time)
                          ROW(in_place) ROW(products_of_nothing) ROW(views_that_outlive_their_bytes)
                              ROW(two_threads_run_one_program))
