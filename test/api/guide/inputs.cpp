// SPDX-License-Identifier: MIT
// The DCU guide's smaller pieces: other lengths for a model's input, random values for it, and
// tensors from and to cv::Mat.
#include <migraphx/cpu/target.hpp>
#include <migraphx/generate.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/onnx.hpp>
#include <opencv2/opencv.hpp>

#define gpu cpu // no GPU here

int main(int argc, char *argv[])
{
    migraphx::onnx_options onnx_options;
    onnx_options.map_input_dims["input"] = {4, 3, 32, 32};
    migraphx::program net = migraphx::parse_onnx("resnet50.onnx", onnx_options);
    migraphx::shape inputShape = net.get_parameter_shapes()["input"];
    printf("input shape:%d,%d,%d,%d\n", (int)inputShape.lens()[0], (int)inputShape.lens()[1],
           (int)inputShape.lens()[2], (int)inputShape.lens()[3]);
    net.compile(migraphx::gpu::target{}, migraphx::compile_options{});
    migraphx::argument data = migraphx::generate_argument(inputShape);
    migraphx::parameter_map random;
    random["input"] = data;
    printf("random output size:%d\n", (int)net.eval(random)[0].get_shape().elements());

    int sizes[] = {1, 3, 8, 8};
    cv::Mat inputData(4, sizes, CV_32F);
    for (int i = 0; i < 192; i++)
        ((float *)inputData.data)[i] = i;
    inputShape = migraphx::shape{migraphx::shape::float_type, {1, 3, 8, 8}};
    migraphx::argument input = migraphx::argument{inputShape, (float *)inputData.data};
    migraphx::argument result = input;
    int shapeOfResult[] = {(int)result.get_shape().lens()[0], (int)result.get_shape().lens()[1],
                           (int)result.get_shape().lens()[2], (int)result.get_shape().lens()[3]};
    cv::Mat output(4, shapeOfResult, CV_32F, (void *)(result.data()));
    int index[] = {0, 2, 7, 7};
    printf("last:%g\n", output.at<float>(index));
    return 0;
}
