// SPDX-License-Identifier: MIT
// The DCU guide's dynamic shapes: one program, reshaped to the lengths that come.
#include <migraphx/cpu/target.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <opencv2/opencv.hpp>
#include <string>
#include <vector>

#define gpu cpu // no GPU here

using namespace std;
using namespace cv;
using namespace cv::dnn;
using namespace migraphx;

int main(int argc, char *argv[])
{
    migraphx::onnx_options onnx_options;
    onnx_options.map_input_dims["input"] = {2, 3, 512, 512};
    migraphx::program net = migraphx::parse_onnx("Test.onnx", onnx_options);
    std::pair<std::string, migraphx::shape> inputAttribute = *(net.get_parameter_shapes().begin());
    std::string inputName = inputAttribute.first;
    migraphx::shape inputShape = inputAttribute.second;
    int N = inputShape.lens()[0];
    int C = inputShape.lens()[1];
    int H = inputShape.lens()[2];
    int W = inputShape.lens()[3];
    printf("input name:%s\n", inputName.c_str());
    printf("input shape:%d,%d,%d,%d\n", N, C, H, W);
    migraphx::compile_options options;
    options.device_id = 0;
    options.offload_copy = true;
    net.compile(migraphx::gpu::target{}, options);
    std::vector<std::vector<std::size_t>> inputShapes;
    inputShapes.push_back({2, 3, 16, 16});
    inputShapes.push_back({2, 3, 32, 32});
    cv::Mat srcImage = cv::imread("Test.jpg", 1);
    for (int i = 0; i < inputShapes.size(); ++i) {
        std::unordered_map<std::string, std::vector<std::size_t>> inputShapeMap;
        inputShapeMap[inputName] = inputShapes[i];
        net.reshape(inputShapeMap);
        std::vector<cv::Mat> srcImages;
        for (int j = 0; j < inputShapes[i][0]; ++j) {
            srcImages.push_back(srcImage);
        }
        cv::Mat inputBlob;
        cv::dnn::blobFromImages(srcImages, inputBlob, 0.0078125,
                                cv::Size(inputShapes[i][3], inputShapes[i][2]),
                                cv::Scalar(127.5, 127.5, 127.5), false, false);
        migraphx::parameter_map inputData;
        inputData[inputName] = migraphx::argument{
            migraphx::shape(inputShape.type(), inputShapes[i]), (float *)inputBlob.data};
        std::vector<migraphx::argument> results = net.eval(inputData);
        migraphx::argument result = results[0];
        migraphx::shape outputShape = result.get_shape();
        std::vector<std::size_t> outputSize = outputShape.lens();
        int numberOfOutput = outputShape.elements();
        float *resultData = (float *)result.data();
        printf("output size:%d\n", numberOfOutput);
        for (int i = 0; i < numberOfOutput; ++i) {
            printf("%f,", resultData[i]);
        }
        printf("\n");
    }
    return 0;
}
