// SPDX-License-Identifier: MIT
// Writes the models that the guides' programs read, under the guides' names, into the directory
// given: a convolution, a ReLU, a global average and a product. Small, so that reading, compiling
// and running them takes no time; the weights are simple fractions.
#include <stdio.h>

#include "onnx/writer.h"

enum { FLOAT = 1, CHANNELS = 8, MAX_CLASSES = 1000 };

static void weights(struct pb *graph, const char *name, int rank, const int64_t *dims, int period)
{
    static float values[CHANNELS * MAX_CLASSES];
    int count = 1;
    for (int i = 0; i < rank; i++)
        count *= (int)dims[i];
    for (int i = 0; i < count; i++)
        values[i] = (float)(i % period - period / 2) / 16;
    struct pb t = pb_tensor(name, FLOAT, rank, dims);
    pb_bytes(&t, 9, values, (size_t)count * sizeof *values);
    pb_message(graph, 5, &t);
}

static void convolution(struct pb *graph, const char *input, int64_t stride)
{
    struct pb attributes = {0};
    weights(graph, "conv.weight", 4, (int64_t[]){CHANNELS, 3, 3, 3}, 7);
    pb_attr_ints(&attributes, "strides", (int64_t[]){stride, stride}, 2);
    pb_attr_ints(&attributes, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s,conv.weight", input);
    pb_node(graph, "Conv", inputs, "features", &attributes);
    pb_node(graph, "Relu", "features", "positive", NULL);
}

static int write_file(const char *directory, const char *file, struct pb *take_graph)
{
    struct pb model = pb_model(take_graph, 13);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *out = fopen(path, "wb");
    const int ok = out && fwrite(model.data, 1, model.size, out) == model.size;
    if (out)
        fclose(out);
    pb_free(&model);
    return ok;
}

static int write_model(const char *directory, const char *file, const char *input,
                       const int64_t *dims, int64_t stride, int64_t classes)
{
    struct pb graph = {0};
    convolution(&graph, input, stride);
    pb_node(&graph, "GlobalAveragePool", "positive", "averages", NULL);
    pb_node(&graph, "Flatten", "averages", "flat", NULL);
    weights(&graph, "fc.weight", 2, (int64_t[]){CHANNELS, classes}, 11);
    weights(&graph, "fc.bias", 1, (int64_t[]){classes}, 5);
    pb_node(&graph, "Gemm", "flat,fc.weight,fc.bias", "output", NULL);
    pb_input(&graph, input, FLOAT, 4, dims);
    pb_output(&graph, "output");
    return write_file(directory, file, &graph);
}

// "0" of bytes plus a scalar "1".
static int write_add(const char *directory)
{
    struct pb graph = {0};
    pb_node(&graph, "Add", "0,1", "2", NULL);
    pb_input(&graph, "0", 2, 4, (int64_t[]){2, 3, 4, 5});
    pb_input(&graph, "1", 2, 0, NULL);
    pb_output(&graph, "2");
    return write_file(directory, "add.onnx", &graph);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    const int64_t image[] = {2, 3, 32, 32}, open[] = {2, 3, -1, -1}, large[] = {1, 3, 299, 299};
    return !(write_add(directory) &&
             write_model(directory, "resnet50.onnx", "input", image, 2, 10) &&
             write_model(directory, "ResNet50.onnx", "input", image, 2, 10) &&
             write_model(directory, "Test.onnx", "input", open, 2, 4) &&
             write_model(directory, "inceptioni1.onnx", "x.1", large, 8, MAX_CLASSES));
}
