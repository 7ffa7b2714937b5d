// SPDX-License-Identifier: MIT
// The DCU guide's inference on data of the device, target included.
#include <migraphx/generate.hpp>
#include <migraphx/gpu/hip.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <opencv2/opencv.hpp>
#include <string>
#include <vector>

using namespace std;
using namespace cv;
using namespace cv::dnn;
using namespace migraphx;

migraphx::parameter_map CreateParameterMap(migraphx::program &p)
{
    migraphx::parameter_map parameterMap;
    for (std::pair<std::string, migraphx::shape> x : p.get_parameter_shapes()) {
        parameterMap[x.first] = migraphx::gpu::to_gpu(migraphx::generate_argument(x.second));
    }
    return parameterMap;
}
int main(int argc, char *argv[])
{
    migraphx::program net = migraphx::parse_onnx("ResNet50.onnx");
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
    options.offload_copy = false;
    net.compile(migraphx::gpu::target{}, options);
    migraphx::parameter_map parameterMap = CreateParameterMap(net);
    int batchSize = N;
    cv::Mat srcImage = cv::imread("Test.jpg");
    std::vector<cv::Mat> srcImages;
    for (int i = 0; i < batchSize; ++i) {
        srcImages.push_back(srcImage);
    }
    cv::Mat inputBlob;
    cv::dnn::blobFromImages(srcImages, inputBlob, 0.0078125, cv::Size(W, H),
                            cv::Scalar(127.5, 127.5, 127.5), false, false);
    migraphx::argument inputData =
        migraphx::gpu::to_gpu(migraphx::argument{inputShape, (float *)inputBlob.data});
    parameterMap[inputName] = migraphx::argument{inputShape, inputData.data()};
    std::vector<migraphx::argument> results = net.eval(parameterMap);
    migraphx::argument result = migraphx::gpu::from_gpu(results[0]);
    migraphx::shape outputShape = result.get_shape();
    std::vector<std::size_t> outputSize = outputShape.lens();
    int numberOfOutput = outputShape.elements();
    float *resultData = (float *)result.data();
    int numberOfPerImage = numberOfOutput / N;
    printf("output size:%d\n", numberOfPerImage);
    for (int i = 0; i < N; ++i) {
        printf("==========%d image output=============\n", i);
        int startIndex = numberOfPerImage * i;
        for (int j = 0; j < numberOfPerImage; ++j) {
            printf("%f,", resultData[startIndex + j]);
        }
        printf("\n");
    }
    return 0;
}
