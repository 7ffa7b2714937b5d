// SPDX-License-Identifier: MIT
// The DCU guide's classification: parse_onnx, quantize_fp16, compile, eval, softmax.
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

typedef struct _ResultOfPrediction {
    float confidence;
    int label;
    _ResultOfPrediction() : confidence(0.0f), label(0)
    {
    }
} ResultOfPrediction;

std::vector<float> ComputeSoftmax(const std::vector<float> &results)
{
    float maxValue = -3.40e+38F;
    for (int i = 0; i < results.size(); ++i) {
        if (results[i] > maxValue) {
            maxValue = results[i];
        }
    }
    std::vector<float> softmaxResults(results.size());
    float sum = 0.0;
    for (int i = 0; i < results.size(); ++i) {
        softmaxResults[i] = exp((float)(results[i] - maxValue));
        sum += softmaxResults[i];
    }
    for (int i = 0; i < results.size(); ++i) {
        softmaxResults[i] = softmaxResults[i] / sum;
    }
    return softmaxResults;
}

int main(int argc, char *argv[])
{
    migraphx::program net = migraphx::parse_onnx("resnet50.onnx");

    std::pair<std::string, migraphx::shape> inputAttribute = *(net.get_parameter_shapes().begin());
    string inputName = inputAttribute.first;
    migraphx::shape inputShape = inputAttribute.second;
    int N = inputShape.lens()[0];
    int C = inputShape.lens()[1];
    int H = inputShape.lens()[2];
    int W = inputShape.lens()[3];
    printf("input name:%s\n", inputName.c_str());
    printf("input shape:%d,%d,%d,%d\n", N, C, H, W);

    migraphx::quantize_fp16(net);

    migraphx::compile_options options;
    options.device_id = 0;
    options.offload_copy = true;
    net.compile(migraphx::gpu::target{}, options);

    int batchSize = N;
    Mat srcImage = imread("Test.jpg");
    vector<Mat> srcImages;
    for (int i = 0; i < batchSize; ++i) {
        srcImages.push_back(srcImage);
    }
    Mat inputBlob;
    blobFromImages(srcImages, inputBlob, 0.0078125, cv::Size(W, H), cv::Scalar(127.5, 127.5, 127.5),
                   false, false);

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
        std::vector<float> logit;
        for (int j = 0; j < numberOfPerImage; ++j) {
            printf("%f,", resultData[startIndex + j]);
            logit.push_back(resultData[startIndex + j]);
        }
        printf("\n");
        std::vector<float> probs;
        probs = ComputeSoftmax(logit);
        std::vector<ResultOfPrediction> resultOfPredictions;
        for (int j = 0; j < numberOfPerImage; ++j) {
            ResultOfPrediction prediction;
            prediction.label = j;
            prediction.confidence = probs[j];
            resultOfPredictions.push_back(prediction);
        }
        printf("========== %d result ==========\n", i);
        for (int j = 0; j < resultOfPredictions.size(); ++j) {
            ResultOfPrediction prediction = resultOfPredictions[j];
            printf("label:%d,confidence:%f\n", prediction.label, prediction.confidence);
        }
    }
    return 0;
}
