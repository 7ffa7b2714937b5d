// SPDX-License-Identifier: MIT
// The DCU guide's quantization to int8: what its text adds to the classification before compile().
#include <migraphx/cpu/target.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <opencv2/opencv.hpp>

#define gpu cpu // no GPU here

using namespace cv;
using namespace cv::dnn;

int main(int argc, char *argv[])
{
    migraphx::program net = migraphx::parse_onnx("resnet50.onnx");
    std::pair<std::string, migraphx::shape> inputAttribute = *(net.get_parameter_shapes().begin());
    std::string inputName = inputAttribute.first;
    migraphx::shape inputShape = inputAttribute.second;
    int H = inputShape.lens()[2];
    int W = inputShape.lens()[3];

    Mat srcImage = imread("CalibrationData.jpg", 1);
    std::vector<cv::Mat> srcImages;
    for (int i = 0; i < inputShape.lens()[0]; ++i) {
        srcImages.push_back(srcImage);
    }
    Mat inputBlob;
    blobFromImages(srcImages, inputBlob, 0.0078125, cv::Size(W, H), cv::Scalar(127.5, 127.5, 127.5),
                   false, false);
    migraphx::parameter_map inputData;
    inputData[inputName] = migraphx::argument{inputShape, (float *)inputBlob.data};

    std::vector<migraphx::parameter_map> calibrationData = {inputData};
    migraphx::quantize_int8(net, migraphx::gpu::target{}, calibrationData);

    net.compile(migraphx::gpu::target{});
    printf("output size:%d\n", (int)net.eval(inputData)[0].get_shape().elements());
    return 0;
}
