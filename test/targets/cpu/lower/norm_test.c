// SPDX-License-Identifier: MIT
// Normalisations and activations as exporters spell them: every spelling becomes one step, with the
// reference's values.
#include "targets/cpu/program.h"

// One step, and the reference's values.
static bool is_one_step(const char *text)
{
    return program_agrees(text, 1, 2e-5);
}

#define HEAD                                                                                       \
    "module: \"main\"\n"                                                                           \
    "x = @param:x -> float_type, {2, 5, 24}, {120, 24, 1}\n"                                       \
    "w = @param:w -> float_type, {24}, {1}\n"                                                      \
    "u = @param:u -> float_type, {24}, {1}\n"                                                      \
    "@e = @literal{1e-05} -> float_type, {1}, {1}\n"                                               \
    "@2 = @literal{2} -> float_type, {1}, {1}\n"                                                   \
    "@eps = multibroadcast[out_lens={2, 5, 1}](@e)\n"                                              \
    "@two = multibroadcast[out_lens={2, 5, 24}](@2)\n"                                             \
    "@w = multibroadcast[out_lens={2, 5, 24}](w)\n"                                                \
    "@u = multibroadcast[out_lens={2, 5, 24}](u)\n"
#define MEAN(of) "reduce_mean[axes={2}](" of ")\n"
#define SPREAD(of) "multibroadcast[out_lens={2, 5, 24}](" of ")\n"
#define CENTRED "@m = " MEAN("x") "@ms = " SPREAD("@m") "@d = sub(x,@ms)\n"
#define SCALED "@s = mul(@n,@w)\n@t = add(@s,@u)\n@r = @return(@t)\n"

CASE(layer_normalisation)
{
    CHECK(is_one_step(
        HEAD CENTRED
        "@q = sqdiff(x,@ms)\n@v = " MEAN("@q") "@a = add(@v,@eps)\n@i = rsqrt(@a)\n@is = " SPREAD(
            "@i") "@n = mul(@d,@is)\n" SCALED));
    CHECK(is_one_step(
        HEAD CENTRED
        "@q = mul(@d,@d)\n@v = " MEAN("@q") "@a = add(@eps,@v)\n@i = rsqrt(@a)\n@is = " SPREAD(
            "@i") "@n = mul(@is,@d)\n" SCALED));
    CHECK(is_one_step(HEAD CENTRED "@q = pow(@d,@two)\n@v = " MEAN(
        "@q") "@a = add(@v,@eps)\n@i = sqrt(@a)\n@is = " SPREAD("@i") "@n = div(@d,@is)\n" SCALED));
}

CASE(root_mean_square_normalisation)
{
    CHECK(is_one_step(HEAD "@q = mul(x,x)\n@v = " MEAN(
        "@q") "@a = add(@v,@eps)\n@i = rsqrt(@a)\n"
              "@is = " SPREAD("@i") "@n = mul(x,@is)\n@s = mul(@w,@n)\n"
                                    "@r = @return(@s)\n"));
    CHECK(is_one_step(HEAD "@q = pow(x,@two)\n@v = " MEAN(
        "@q") "@a = add(@v,@eps)\n@i = sqrt(@a)\n"
              "@is = " SPREAD("@i") "@n = div(x,@is)\n" SCALED));
    CHECK(is_one_step(HEAD "@q = mul(x,x)\n@v = " MEAN("@q") "@a = add(@v,@eps)\n@k = sqrt(@a)\n"
                                                             "@i = recip(@k)\n@is = " SPREAD(
                                                                 "@i") "@n = mul(x,@is)\n"
                                                                       "@r = @return(@n)\n"));
}

// Such a group is no pass's, but a file may have it: the kernel declines, the body is run.
CASE(a_group_without_a_square_is_no_norm)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> float_type, {4, 8}, {8, 1}\n"
                               "@0 = exp(x)\n"
                               "@1 = group[tag=rms_norm](@0), [body]\n"
                               "@2 = @return(@1)\n"
                               "module: \"body\"\n"
                               "body:x0 = @param:x0 -> float_type, {4, 8}, {8, 1}\n"
                               "body:@1 = reduce_mean[axes={1}](body:x0)\n"
                               "body:@2 = sqrt(body:@1)\n"
                               "body:@3 = multibroadcast[out_lens={4, 8}](body:@2)\n"
                               "body:@4 = div(body:x0,body:@3)\n"
                               "body:@5 = @return(body:@4)\n";
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = program_compile(text, "ref", 0),
                       *cpu = program_compile(text, "cpu", 0);
    CHECK(ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual));
    CHECK(program_distance(&actual, &expected).largest < 2e-5);
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
}

CASE(rows_over_two_axes)
{
#define BOTH(mean, root)                                                                           \
    "module: \"main\"\n"                                                                           \
    "x = @param:x -> float_type, {3, 5, 7}, {35, 7, 1}\n"                                          \
    "w = @param:w -> float_type, {5, 7}, {7, 1}\n"                                                 \
    "@e = @literal{1e-05} -> float_type, {1}, {1}\n"                                               \
    "@eps = multibroadcast[out_lens={3, 1, 1}](@e)\n"                                              \
    "@w = multibroadcast[out_lens={3, 5, 7}](w)\n" mean                                            \
    "@v = reduce_mean[axes={1, 2}](@q)\n@a = add(@v,@eps)\n@i = rsqrt(@a)\n"                       \
    "@is = multibroadcast[out_lens={3, 5, 7}](@i)\n" root "@s = mul(@n,@w)\n@r = @return(@s)\n"
    CHECK(is_one_step(BOTH("@m = reduce_mean[axes={1, 2}](x)\n"
                           "@ms = multibroadcast[out_lens={3, 5, 7}](@m)\n"
                           "@d = sub(x,@ms)\n@q = mul(@d,@d)\n",
                           "@n = mul(@d,@is)\n")));
    CHECK(is_one_step(BOTH("@q = mul(x,x)\n", "@n = mul(x,@is)\n")));
}

// The same constant everywhere in a tensor like x.
#define ALL(name, value)                                                                           \
    "@" name "0 = @literal{" value "} -> float_type, {1}, {1}\n"                                   \
    "@" name " = multibroadcast[out_lens={4, 33}](@" name "0)\n"
#define ACT_HEAD                                                                                   \
    "module: \"main\"\nx = @param:x -> float_type, {4, 33}, {33, 1}\n" ALL("half", "0.5")          \
        ALL("one", "1") ALL("r2", "1.4142135") ALL("i2", "0.70710678") ALL("three", "3")           \
            ALL("c", "0.044715") ALL("k", "0.79788456") ALL("g", "1.702")

CASE(gelu)
{
    CHECK(is_one_step(ACT_HEAD "@a = div(x,@r2)\n@b = erf(@a)\n@d = add(@b,@one)\n@f = mul(x,@d)\n"
                               "@h = mul(@f,@half)\n@r = @return(@h)\n"));
    CHECK(is_one_step(ACT_HEAD "@a = mul(x,@i2)\n@b = erf(@a)\n@d = add(@one,@b)\n"
                               "@f = mul(x,@half)\n@h = mul(@f,@d)\n@r = @return(@h)\n"));
    CHECK(is_one_step(ACT_HEAD "@a = pow(x,@three)\n@b = mul(@a,@c)\n@d = add(x,@b)\n"
                               "@f = mul(@d,@k)\n@h = tanh(@f)\n@i = add(@h,@one)\n"
                               "@j = mul(x,@half)\n@l = mul(@j,@i)\n@r = @return(@l)\n"));
    CHECK(is_one_step(ACT_HEAD "@a = mul(x,@g)\n@b = sigmoid(@a)\n@d = mul(x,@b)\n"
                               "@r = @return(@d)\n"));
}

#define ROWS_HEAD "module: \"main\"\nx = @param:x -> float_type, {3, 4, 9}, {36, 9, 1}\n"
#define WIDE(of) "multibroadcast[out_lens={3, 4, 9}](" of ")\n"
#define LESS_MAX "@m = reduce_max[axes={2}](x)\n@ms = " WIDE("@m") "@d = sub(x,@ms)\n@e = exp(@d)\n"
#define SUM "@s = reduce_sum[axes={2}](@e)\n"

CASE(softmax)
{
    CHECK(is_one_step(ROWS_HEAD LESS_MAX SUM "@ss = " WIDE("@s") "@y = div(@e,@ss)\n"
                                                                 "@r = @return(@y)\n"));
    CHECK(is_one_step(ROWS_HEAD LESS_MAX SUM
                      "@i = recip(@s)\n@is = " WIDE("@i") "@y = mul(@e,@is)\n@r = @return(@y)\n"));
    CHECK(is_one_step(ROWS_HEAD "@e = exp(x)\n" SUM "@ss = " WIDE("@s") "@y = div(@e,@ss)\n"
                                                                        "@r = @return(@y)\n"));
}

CASE(logarithm_of_softmax)
{
    CHECK(is_one_step(ROWS_HEAD LESS_MAX SUM
                      "@l = log(@s)\n@ls = " WIDE("@l") "@y = sub(@d,@ls)\n@r = @return(@y)\n"));
    CHECK(is_one_step(ROWS_HEAD "@e = exp(x)\n" SUM "@l = log(@s)\n@ls = " WIDE(
        "@l") "@y = sub(x,@ls)\n@r = @return(@y)\n"));
    CHECK(is_one_step(ROWS_HEAD "@f = softmax[axis=2](x)\n@y = log(@f)\n@r = @return(@y)\n"));
}

TEST_MAIN(ROW(layer_normalisation) ROW(root_mean_square_normalisation) ROW(rows_over_two_axes)
              ROW(a_group_without_a_square_is_no_norm) ROW(gelu) ROW(softmax)
                  ROW(logarithm_of_softmax))
