// SPDX-License-Identifier: MIT
// The DCU guide's network made by hand: compiled, run, its graph printed before.
#include <migraphx/cpu/target.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/make_op.hpp>
#include <migraphx/program.hpp>

#include <iostream>

#define gpu cpu // no GPU here

migraphx::program CreateNet()
{
    migraphx::program net;
    migraphx::module *mainModule = net.get_main_module();
    migraphx::instruction_ref input = mainModule->add_parameter(
        "input", migraphx::shape{migraphx::shape::float_type, {1, 1, 4, 6}});
    std::vector<float> weightData(1 * 1 * 1 * 1);
    for (int i = 0; i < weightData.size(); ++i)
        weightData[i] = 1.0;
    migraphx::shape weightShape{migraphx::shape::float_type, {1, 1, 1, 1}};
    migraphx::literal convweight{weightShape, weightData};
    migraphx::instruction_ref convKernel = mainModule->add_literal(convweight);
    migraphx::instruction_ref conv = mainModule->add_instruction(
        migraphx::make_json_op(
            "convolution", "{padding:[0,0],stride:[1,1],dilation:[1,1],group:1,padding_mode:0}"),
        input, convKernel);
    migraphx::instruction_ref slice = mainModule->add_instruction(
        migraphx::make_json_op("slice", "{axes:[2,3], starts:[0,2],ends:[4,5]}"), conv);
    migraphx::instruction_ref contiguous =
        mainModule->add_instruction(migraphx::make_op("contiguous"), slice);
    migraphx::instruction_ref flatten =
        mainModule->add_instruction(migraphx::make_op("flatten"), contiguous);
    mainModule->add_return({flatten});
    return net;
}

int main(int argc, char *argv[])
{
    migraphx::program net = CreateNet();
    std::cout << net << std::endl;
    migraphx::compile_options options;
    options.device_id = 0;
    options.offload_copy = true;
    net.compile(migraphx::gpu::target{}, options);
    std::vector<float> inputData(1 * 1 * 4 * 6);
    for (int i = 0; i < inputData.size(); ++i)
        inputData[i] = i;
    migraphx::shape inputShape(migraphx::shape::float_type, {1, 1, 4, 6});
    migraphx::argument data{inputShape, inputData.data()};
    migraphx::parameter_map inputDataMap;
    inputDataMap["input"] = data;
    std::vector<migraphx::argument> results = net.eval(inputDataMap);
    migraphx::argument result = results[0];
    migraphx::shape outputShape = result.get_shape();
    int numberOfOutput = outputShape.elements();
    float *resultData = (float *)result.data();
    for (int i = 0; i < numberOfOutput; ++i)
        printf("%g,", resultData[i]);
    printf("\n");
    return 0;
}
