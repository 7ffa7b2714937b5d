// SPDX-License-Identifier: MIT
// The DCU guide's loading of a compiled program, from the device whose number is given (the guide's
// is 1).
#include <migraphx/gpu/target.hpp>
#include <migraphx/load_save.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <opencv2/opencv.hpp>
#include <string>
#include <vector>

using namespace std;
using namespace cv;
using namespace cv::dnn;
using namespace migraphx;

int main(int argc, char *argv[])
{
    migraphx::file_options options;
    options.device_id = argc > 1 ? atoi(argv[1]) : 1;
    migraphx::program net = migraphx::load("ResNet50.mxr", options);
    std::pair<std::string, migraphx::shape> inputAttribute = *(net.get_parameter_shapes().begin());
    std::string inputName = inputAttribute.first;
    migraphx::shape inputShape = inputAttribute.second;
    int N = inputShape.lens()[0];
    int C = inputShape.lens()[1];
    int H = inputShape.lens()[2];
    int W = inputShape.lens()[3];
    printf("input name:%s\n", inputName.c_str());
    printf("input shape:%d,%d,%d,%d\n", N, C, H, W);
    int batchSize = N;
    cv::Mat srcImage = cv::imread("Test.jpg");
    std::vector<cv::Mat> srcImages;
    for (int i = 0; i < batchSize; ++i) {
        srcImages.push_back(srcImage);
    }
    cv::Mat inputBlob;
    cv::dnn::blobFromImages(srcImages, inputBlob, 0.0078125, cv::Size(W, H),
                            cv::Scalar(127.5, 127.5, 127.5), false, false);
    migraphx::parameter_map inputData;
    inputData[inputName] = migraphx::argument{inputShape, (float *)inputBlob.data};
    std::vector<migraphx::argument> results = net.eval(inputData);
    migraphx::argument result = results[0];
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
