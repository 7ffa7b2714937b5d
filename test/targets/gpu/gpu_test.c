// SPDX-License-Identifier: MIT
// Programs on a card against the reference, family by family.
//
// The card is MGX_TEST_DEVICE, or whatever OpenCL has: PoCL where there is none. Without any there
// is nothing to test.
#include "targets/gpu/device/device.h"
#include "targets/target.h"

#include "targets/cpu/program.h"

static const char *choice(void)
{
    const char *named = getenv("MGX_TEST_DEVICE");
    return named ? named : "opencl";
}

static bool has_device(void)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    const bool there = gpu_device_open(choice(), 0, &d, &diag) == MGX_OK;
    if (there)
        gpu_device_close(d);
    return there;
}

static struct mgx_program *compile(const char *text, bool gpu, struct mgx_diag *diag)
{
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {.fast_math = true,
                                                .pass.fast_math = true,
                                                .offload_copy = true,
                                                .own = MGX_SETTINGS({"device", choice()})};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(gpu ? "gpu" : "ref"), &options, diag) == MGX_OK)
        return p;
    mgx_program_destroy(p);
    return NULL;
}

// Largest distance of the first results, relative to the largest value; no step may have gone
// through the reference.
static double distance(const char *text)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct mgx_tensor on_gpu = {0}, on_ref = {0};
    struct mgx_program *gpu = compile(text, true, &diag), *ref = compile(text, false, &diag);
    double worst = INFINITY;
    struct mgx_str said = {0};
    if (!gpu || !ref)
        printf("%s\n", diag.text);
    else if (program_run(gpu, &on_gpu) && program_run(ref, &on_ref)) {
        struct program_distance d = program_distance(&on_gpu, &on_ref);
        worst = d.largest;
        gpu->executable->target->explain(gpu, &said);
        if (strstr(mgx_str_text(&said), ": ref (")) {
            printf("%s", mgx_str_text(&said));
            worst = INFINITY;
        }
    }
    mgx_str_fini(&said);
    mgx_tensor_release(&on_gpu);
    mgx_tensor_release(&on_ref);
    mgx_program_destroy(gpu);
    mgx_program_destroy(ref);
    return worst;
}

#define X "x = @param:x -> float_type, {2, 3, 5}, {15, 5, 1}\n"
#define WITHIN(most, text) CHECK_NEAR(distance("module: \"main\"\n" text), 0, most)

CASE(copies_between_layouts)
{
    if (!has_device())
        return;
    WITHIN(0,
           X "@1 = transpose[permutation={2, 0, 1}](x)\n@2 = contiguous(@1)\n@3 = @return(@2)\n");
    WITHIN(0, X "@1 = relu(x)\n@2 = concat[axis=1](@1,x,@1)\n@3 = @return(@2)\n");
    WITHIN(0, "x = @param:x -> int8_type, {7, 5}, {5, 1}\n@1 = transpose[permutation={1, 0}](x)\n"
              "@2 = contiguous(@1)\n@3 = @return(@2)\n");
}

CASE(element_wise_chains)
{
    if (!has_device())
        return;
    WITHIN(1e-6, X "@1 = tanh(x)\n@2 = mul(@1,x)\n@3 = sigmoid(@2)\n@4 = @return(@3)\n");
    WITHIN(1e-5, X "b = @param:b -> float_type, {3}, {1}\n"
                   "@2 = broadcast[axis=1,out_lens={2, 3, 5}](b)\n@3 = add(x,@2)\n"
                   "@4 = exp(@3)\n@5 = @return(@4)\n");
    WITHIN(0, "x = @param:x -> int32_type, {40}, {1}\ny = @param:y -> int32_type, {40}, {1}\n"
              "@2 = div(x,y)\n@3 = sub(@2,x)\n@4 = convert[target_type=7](@3)\n@5 = @return(@4)\n");
    WITHIN(2e-3, "x = @param:x -> half_type, {300}, {1}\n@1 = exp(x)\n@2 = add(@1,x)\n"
                 "@3 = @return(@2)\n");
}

CASE(reductions)
{
    if (!has_device())
        return;
    WITHIN(1e-5, X "@1 = reduce_sum[axes={1}](x)\n@2 = @return(@1)\n");
    WITHIN(1e-5, X "@1 = reduce_mean[axes={0, 2}](x)\n@2 = @return(@1)\n");
    WITHIN(0, X "@1 = reduce_max[axes={2}](x)\n@2 = @return(@1)\n");
    WITHIN(0, "x = @param:x -> int64_type, {4, 600}, {600, 1}\n@1 = reduce_sum[axes={1}](x)\n"
              "@2 = @return(@1)\n");
}

CASE(softmax_along_any_axis)
{
    if (!has_device())
        return;
    WITHIN(1e-6, X "@1 = softmax[axis=1](x)\n@2 = @return(@1)\n");
    WITHIN(1e-5, "x = @param:x -> float_type, {3, 700}, {700, 1}\n@1 = logsoftmax[axis=-1](x)\n"
                 "@2 = @return(@1)\n");
}

CASE(products_with_tails)
{
    if (!has_device())
        return;
    WITHIN(1e-4, "a = @param:a -> float_type, {2, 37, 70}, {2590, 70, 1}\n"
                 "b = @param:b -> float_type, {2, 70, 45}, {3150, 45, 1}\n"
                 "c = @param:c -> float_type, {45}, {1}\n@3 = dot(a,b)\n"
                 "@4 = broadcast[axis=2,out_lens={2, 37, 45}](c)\n@5 = add(@3,@4)\n@6 = tanh(@5)\n"
                 "@7 = @return(@6)\n");
    WITHIN(1e-4, "a = @param:a -> float_type, {1, 200}, {200, 1}\n"
                 "b = @param:b -> float_type, {30, 200}, {200, 1}\n"
                 "@2 = transpose[permutation={1, 0}](b)\n@3 = dot(a,@2)\n@4 = @return(@3)\n");
}

CASE(convolutions_with_tails)
{
    if (!has_device())
        return;
    WITHIN(1e-4, "x = @param:x -> float_type, {2, 6, 9, 7}, {378, 63, 7, 1}\n"
                 "w = @param:w -> float_type, {8, 3, 3, 3}, {27, 9, 3, 1}\n"
                 "r = @param:r -> float_type, {2, 8, 5, 4}, {160, 20, 4, 1}\n"
                 "@3 = convolution[padding={1, 1},stride={2, 2},dilation={1, 1},group=2](x,w)\n"
                 "@4 = add(@3,r)\n@5 = relu(@4)\n@6 = @return(@5)\n");
    WITHIN(1e-4, "x = @param:x -> float_type, {1, 4, 30}, {120, 30, 1}\n"
                 "w = @param:w -> float_type, {70, 4, 3}, {12, 3, 1}\n"
                 "@2 = convolution[padding={2},stride={1},dilation={2},group=1](x,w)\n"
                 "@3 = @return(@2)\n");
}

CASE(poolings)
{
    if (!has_device())
        return;
    WITHIN(
        0,
        "x = @param:x -> float_type, {2, 3, 9, 8}, {216, 72, 8, 1}\n"
        "@1 = pooling[mode=max,padding={1, 1},stride={2, 2},lengths={3, 3},dilations={1, 1}](x)\n"
        "@2 = @return(@1)\n");
    WITHIN(1e-6, "x = @param:x -> float_type, {2, 3, 9, 8}, {216, 72, 8, 1}\n"
                 "@1 = pooling[mode=average,padding={1, 0},stride={2, 1},lengths={3, 2},"
                 "dilations={1, 1},count_include_pad=1](x)\n@2 = @return(@1)\n");
}

CASE(reshapes_that_copy)
{
    if (!has_device())
        return;
    WITHIN(0, X "@1 = transpose[permutation={0, 2, 1}](x)\n@2 = reshape[dims={30}](@1)\n"
                "@3 = relu(@2)\n@4 = @return(@3)\n");
    WITHIN(0, "x = @param:x -> float_type, {4, 6}, {6, 1}\n@1 = transpose[permutation={1, 0}](x)\n"
              "@2 = reshape[dims={8, 3}](@1)\n@3 = relu(@2)\n@4 = @return(@3)\n");
    WITHIN(0, "x = @param:x -> half_type, {2, 96, 65}, {6240, 65, 1}\n"
              "@1 = transpose[permutation={0, 2, 1}](x)\n@2 = reshape[dims={130, 96}](@1)\n"
              "@3 = @return(@2)\n");
    WITHIN(0, "x = @param:x -> float_type, {40, 12, 16}, {192, 16, 1}\n"
              "@1 = transpose[permutation={1, 0, 2}](x)\n@2 = reshape[dims={12, 640}](@1)\n"
              "@3 = @return(@2)\n");
}

CASE(gathers)
{
    if (!has_device())
        return;
    WITHIN(0, "x = @param:x -> float_type, {9, 8}, {8, 1}\n"
              "i = @literal{3, -1, 0, 8} -> int64_type, {2, 2}, {2, 1}\n"
              "@2 = gather[axis=0](x,i)\n@3 = relu(@2)\n@4 = @return(@3)\n");
    WITHIN(0, "x = @param:x -> half_type, {5, 7}, {7, 1}\n"
              "i = @literal{3, -1, 0} -> int32_type, {3}, {1}\n"
              "@2 = gather[axis=1](x,i)\n@3 = @return(@2)\n");
    WITHIN(0, "x = @param:x -> int8_type, {3, 4, 5}, {20, 5, 1}\n"
              "i = @literal{0, 1, 2, -1} -> int64_type, {2, 2}, {2, 1}\n"
              "@2 = gathernd[batch_dims=0](x,i)\n@3 = @return(@2)\n");
}

#define NORM(type, lens, strides, reduced, axes)                                                   \
    "x = @param:x -> " type ", " lens ", " strides "\n"                                            \
    "e = @literal{0.001} -> " type ", {1}, {0}\n"                                                  \
    "@1 = reduce_mean[axes=" axes "](x)\n@2 = multibroadcast[out_lens=" lens "](@1)\n"             \
    "@3 = sub(x,@2)\n@4 = mul(@3,@3)\n@5 = reduce_mean[axes=" axes "](@4)\n"                       \
    "@6 = multibroadcast[out_lens=" reduced "](e)\n@7 = add(@5,@6)\n@8 = rsqrt(@7)\n"              \
    "@9 = multibroadcast[out_lens=" lens "](@8)\n@10 = mul(@3,@9)\n@11 = tanh(@10)\n"              \
    "@12 = @return(@11)\n"

CASE(normalisations_are_one_kernel)
{
    if (!has_device())
        return;
    WITHIN(1e-5, NORM("float_type", "{6, 64}", "{64, 1}", "{6, 1}", "{1}"));
    WITHIN(1e-5, NORM("float_type", "{1100, 37}", "{37, 1}", "{1100, 1}", "{1}"));
    WITHIN(1e-5, NORM("float_type", "{3, 2500}", "{2500, 1}", "{3, 1}", "{1}"));
    WITHIN(1e-5,
           NORM("float_type", "{2, 40, 5, 7}", "{1400, 1, 280, 40}", "{2, 40, 1, 1}", "{2, 3}"));
    WITHIN(2e-3, NORM("half_type", "{6, 64}", "{64, 1}", "{6, 1}", "{1}"));
    WITHIN(2e-2, "a = @param:a -> half_type, {8, 384}, {384, 1}\n"
                 "b = @param:b -> float_type, {8, 384}, {384, 1}\n"
                 "c = @param:c -> half_type, {8, 1}, {1, 1}\n@3 = convert[target_type=1](b)\n"
                 "@4 = sub(@3,a)\n@5 = reduce_sum[axes={1}](@4)\n@6 = add(@5,c)\n"
                 "@7 = multibroadcast[out_lens={8, 384}](@6)\n@8 = mul(@7,a)\n@9 = @return(@8)\n");
    WITHIN(2e-2, NORM("bf16_type", "{2, 3, 40}", "{120, 40, 1}", "{2, 1, 1}", "{1, 2}"));
}

CASE(direct_convolutions)
{
    if (!has_device())
        return;
    WITHIN(4e-3, "x = @param:x -> half_type, {1, 16, 9, 7}, {1008, 63, 7, 1}\n"
                 "w = @param:w -> half_type, {16, 1, 3, 3}, {9, 9, 3, 1}\n"
                 "@3 = convolution[padding={1, 1},stride={2, 2},dilation={1, 1},group=16](x,w)\n"
                 "@4 = @return(@3)\n");
    WITHIN(1e-5, "x = @param:x -> float_type, {2, 8, 9, 7}, {504, 63, 7, 1}\n"
                 "w = @param:w -> float_type, {8, 1, 3, 3}, {9, 9, 3, 1}\n"
                 "r = @param:r -> float_type, {2, 8, 9, 7}, {504, 63, 7, 1}\n"
                 "@3 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1},group=8](x,w)\n"
                 "@4 = add(@3,r)\n@5 = relu(@4)\n@6 = @return(@5)\n");
    WITHIN(1e-4, "x = @param:x -> float_type, {1, 6, 4, 5}, {120, 20, 5, 1}\n"
                 "w = @param:w -> float_type, {6, 4, 3, 2}, {24, 6, 2, 1}\n"
                 "b = @param:b -> float_type, {8}, {1}\n"
                 "@3 = convolution_backwards[padding={1, 0},stride={2, 2},dilation={1, 1},"
                 "group=2](x,w)\n@4 = broadcast[axis=1,out_lens={1, 8, 7, 10}](b)\n"
                 "@5 = add(@3,@4)\n@6 = @return(@5)\n");
    WITHIN(4e-3, "x = @param:x -> half_type, {2, 16, 5, 7}, {560, 1, 112, 16}\n"
                 "w = @param:w -> half_type, {16, 1, 4, 3}, {12, 12, 3, 1}\n"
                 "@3 = convolution_backwards[padding={1, 0},stride={2, 3},dilation={1, 1},"
                 "group=16](x,w)\n@4 = relu(@3)\n@5 = @return(@4)\n");
    WITHIN(1e-4, "x = @param:x -> float_type, {1, 12, 5, 4}, {240, 1, 48, 12}\n"
                 "w = @param:w -> float_type, {12, 1, 3, 3}, {9, 9, 3, 1}\n"
                 "@3 = convolution_backwards[padding={1, 2},stride={2, 2},dilation={2, 1},"
                 "group=12](x,w)\n@4 = @return(@3)\n");
    WITHIN(1e-4, "x = @param:x -> float_type, {2, 6, 5, 7}, {210, 35, 7, 1}\n"
                 "w = @param:w -> float_type, {6, 4, 3, 2}, {24, 6, 2, 1}\n"
                 "r = @param:r -> float_type, {2, 8, 4, 8}, {256, 32, 8, 1}\n"
                 "@3 = convolution_backwards[padding={3, 0, 2, 1},stride={1, 1},dilation={2, 2},"
                 "group=2](x,w)\n@4 = add(@3,r)\n@5 = relu(@4)\n@6 = @return(@5)\n");
}

CASE(a_factor_on_the_input_of_a_convolution)
{
    if (!has_device())
        return;
    WITHIN(1e-5, "x = @param:x -> float_type, {1, 8, 9, 7}, {504, 63, 7, 1}\n"
                 "f = @param:f -> float_type, {1, 8, 1, 1}, {8, 1, 1, 1}\n"
                 "w = @param:w -> float_type, {4, 8, 1, 1}, {8, 1, 1, 1}\n"
                 "@3 = multibroadcast[out_lens={1, 8, 9, 7}](f)\n@4 = mul(x,@3)\n"
                 "@5 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1](@4,w)\n"
                 "@6 = relu(@5)\n@7 = @return(@6)\n");
}

TEST_MAIN(ROW(direct_convolutions) ROW(a_factor_on_the_input_of_a_convolution)
              ROW(reshapes_that_copy) ROW(gathers) ROW(normalisations_are_one_kernel)
                  ROW(copies_between_layouts) ROW(element_wise_chains) ROW(reductions)
                      ROW(softmax_along_any_axis) ROW(products_with_tails)
                          ROW(convolutions_with_tails) ROW(poolings))
