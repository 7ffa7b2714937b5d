// SPDX-License-Identifier: MIT
// ResNet50 built in code through the C API, compiled for the CPU and timed: resnet50 [target]
// [runs]
//
// The weights are random (from a fixed seed, scaled so that activations neither grow nor vanish),
// since the point is how a graph is built by hand and how long it takes, not what it sees.
#include <math.h>
#include <string.h>
#include <time.h>

#include "example.h"

static migraphx_module_t module; // the graph under construction

// --- small helpers: an operator with its inputs, a literal of random numbers ---

static migraphx_instruction_t add(const char *name, const char *attributes,
                                  const migraphx_instruction_t *in, size_t count)
{
    migraphx_operation_t operation;
    migraphx_instructions_t inputs;
    migraphx_instruction_t result;
    const_migraphx_instruction_t list[2];
    for (size_t i = 0; i < count; i++)
        list[i] = in[i];
    DO(migraphx_operation_create(&operation, name, attributes));
    DO(migraphx_instructions_create(&inputs, list, count));
    DO(migraphx_module_add_instruction(&result, module, operation, inputs));
    migraphx_instructions_destroy(inputs);
    migraphx_operation_destroy(operation);
    return result;
}

static migraphx_instruction_t unary(const char *name, const char *attributes,
                                    migraphx_instruction_t x)
{
    return add(name, attributes, &x, 1);
}

static migraphx_instruction_t binary(const char *name, const char *attributes,
                                     migraphx_instruction_t x, migraphx_instruction_t y)
{
    const migraphx_instruction_t in[] = {x, y};
    return add(name, attributes, in, 2);
}

static float uniform(void) // -1..1
{
    static unsigned long long state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 40) / (double)(1 << 23) - 1.0);
}

static migraphx_instruction_t random_literal(size_t *lengths, size_t rank, float scale)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= lengths[i];
    float *values = malloc(count * sizeof *values);
    if (!values)
        exit(1);
    for (size_t i = 0; i < count; i++)
        values[i] = scale * uniform();
    migraphx_shape_t shape;
    migraphx_instruction_t result;
    DO(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, rank));
    DO(migraphx_module_add_literal(&result, module, shape, (const char *)values)); // copies
    migraphx_shape_destroy(shape);
    free(values);
    return result;
}

// --- layers ---

struct tensor {
    migraphx_instruction_t value;
    size_t channels, size; // height and width
};

// Convolution with bias; kernels of 1, 3 and 7 keep the size at stride 1.
static struct tensor convolution(struct tensor x, size_t channels, size_t kernel, size_t stride)
{
    char text[128];
    const size_t pad = kernel / 2;
    snprintf(text, sizeof text,
             "{padding: [%zu, %zu], stride: [%zu, %zu], dilation: [1, 1], group: 1}", pad, pad,
             stride, stride);
    size_t lengths[] = {channels, x.channels, kernel, kernel};
    migraphx_instruction_t weights =
        random_literal(lengths, 4, sqrtf(3.0f / (float)(x.channels * kernel * kernel)));
    struct tensor y = {binary("convolution", text, x.value, weights), channels,
                       (x.size + 2 * pad - kernel) / stride + 1};
    snprintf(text, sizeof text, "{axis: 1, out_lens: [1, %zu, %zu, %zu]}", channels, y.size,
             y.size);
    migraphx_instruction_t bias = unary("broadcast", text, random_literal(&channels, 1, 0.1f));
    y.value = binary("add", NULL, y.value, bias);
    return y;
}

static struct tensor relu(struct tensor x)
{
    x.value = unary("relu", NULL, x.value);
    return x;
}

// 1x1, 3x3, 1x1 with a shortcut around them.
static struct tensor bottleneck(struct tensor x, size_t width, size_t stride)
{
    struct tensor y = relu(convolution(x, width, 1, 1));
    y = relu(convolution(y, width, 3, stride));
    y = convolution(y, 4 * width, 1, 1);
    if (stride != 1 || x.channels != 4 * width)
        x = convolution(x, 4 * width, 1, stride);
    y.value = binary("add", NULL, y.value, x.value);
    return relu(y);
}

static void build(migraphx_program_t program)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t lengths[] = {1, 3, 224, 224}, classes[] = {2048, 1000};
    migraphx_shape_t shape;
    struct tensor x = {NULL, 3, 224};
    DO(migraphx_program_get_main_module(&module, program));
    DO(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 4));
    DO(migraphx_module_add_parameter(&x.value, module, "image", shape));
    migraphx_shape_destroy(shape);
    x = relu(convolution(x, 64, 7, 2));
    x.value =
        unary("pooling", "{mode: max, padding: [1, 1], stride: [2, 2], lengths: [3, 3]}", x.value);
    x.size /= 2;
    for (size_t stage = 0; stage < 4; stage++)
        for (size_t i = 0; i < blocks[stage]; i++)
            x = bottleneck(x, (size_t)64 << stage, i == 0 && stage > 0 ? 2 : 1);
    x.value = unary("reduce_mean", "{axes: [2, 3]}", x.value);
    x.value = unary("flatten", "{axis: 1}", x.value);
    x.value = binary("dot", NULL, x.value, random_literal(classes, 2, 0.02f));
    migraphx_instructions_t result;
    migraphx_instruction_t unused;
    const_migraphx_instruction_t last = x.value;
    DO(migraphx_instructions_create(&result, &last, 1));
    DO(migraphx_module_add_return(&unused, module, result));
    migraphx_instructions_destroy(result);
}

static double now(void) // milliseconds
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_runs(migraphx_program_t program, int runs)
{
    size_t lengths[] = {1, 3, 224, 224};
    double time[1000];
    migraphx_shape_t shape;
    migraphx_argument_t image;
    migraphx_program_parameters_t parameters;
    DO(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 4));
    DO(migraphx_argument_generate(&image, shape, 1));
    DO(migraphx_program_parameters_create(&parameters));
    DO(migraphx_program_parameters_add(parameters, "image", image));
    for (int i = -1; i < runs; i++) { // one to warm up
        migraphx_arguments_t results;
        const double start = now();
        DO(migraphx_program_run(&results, program, parameters));
        if (i >= 0)
            time[i] = now() - start;
        migraphx_arguments_destroy(results);
    }
    migraphx_program_parameters_destroy(parameters);
    migraphx_argument_destroy(image);
    migraphx_shape_destroy(shape);
    qsort(time, (size_t)runs, sizeof *time, by_value);
    return time[runs / 2];
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    int runs = argc > 2 ? atoi(argv[2]) : 10;
    runs = runs < 1 ? 1 : runs > 1000 ? 1000 : runs;
    migraphx_program_t program;
    migraphx_target_t target;
    migraphx_compile_options_t options;
    DO(migraphx_program_create(&program));
    build(program);
    DO(migraphx_target_create(&target, name));
    DO(migraphx_compile_options_create(&options));
    const double start = now();
    DO(migraphx_program_compile(program, target, options));
    printf("compiled for %s in %.0f ms\n", name, now() - start);
    const double median = median_of_runs(program, runs);
    printf("one image in %.1f ms (median of %d runs): %.1f images/s\n", median, runs, 1e3 / median);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_program_destroy(program);
    return 0;
}
