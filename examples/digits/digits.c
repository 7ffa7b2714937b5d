// SPDX-License-Identifier: MIT
// Reads handwritten digits with a small network: digits <digits.onnx> <test.csv>
//
// Every picture is drawn as characters with what the network takes it for (a star marks a mistake),
// then the accuracy over all of them is printed. Exit status 1 when it is below 98 %. train.py made
// both files.
#include <string.h>

#include "../example.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, PER_LINE = 8 };

struct digit {
    int label, read;
    float pixels[PIXELS]; // 0..1
};

// One line of the file; 0 at its end, -1 if it cannot be read.
static int read_digit(FILE *file, struct digit *digit)
{
    char line[1024];
    do
        if (!fgets(line, sizeof line, file))
            return 0;
    while (line[0] == '#');
    char *at = line, *end;
    digit->label = (int)strtol(at, &end, 10);
    for (int i = 0; i < PIXELS; i++) {
        if (*end != ',')
            return -1;
        at = end + 1;
        digit->pixels[i] = (float)strtod(at, &end) / 16;
    }
    return 1;
}

static migraphx_program_t load(const char *path)
{
    migraphx_onnx_options_t onnx;
    migraphx_compile_options_t options;
    migraphx_target_t target;
    migraphx_program_t program;
    DO(migraphx_onnx_options_create(&onnx));
    DO(migraphx_parse_onnx(&program, path, onnx)); // the free batch size becomes 1
    DO(migraphx_target_create(&target, "cpu"));
    DO(migraphx_compile_options_create(&options));
    DO(migraphx_program_compile(program, target, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_onnx_options_destroy(onnx);
    return program;
}

static int classify(migraphx_program_t program, float *pixels)
{
    size_t lengths[] = {1, 1, SIDE, SIDE};
    migraphx_shape_t shape;
    migraphx_argument_t image;
    migraphx_program_parameters_t parameters;
    migraphx_arguments_t results;
    const_migraphx_argument_t logits;
    char *data;
    DO(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 4));
    DO(migraphx_argument_create(&image, shape, pixels)); // borrows the pixels
    DO(migraphx_program_parameters_create(&parameters));
    DO(migraphx_program_parameters_add(parameters, "image", image));
    DO(migraphx_program_run(&results, program, parameters));
    DO(migraphx_arguments_get(&logits, results, 0));
    DO(migraphx_argument_buffer(&data, logits));
    const float *score = (const float *)(const void *)data;
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        best = score[i] > score[best] ? i : best;
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(parameters);
    migraphx_argument_destroy(image);
    migraphx_shape_destroy(shape);
    return best;
}

// A row of pictures side by side, a line of answers under them.
static void draw(const struct digit *digits, int count)
{
    static const char ink[] = " .:-=+*#%@";
    for (int y = 0; y < SIDE; y++) {
        for (int i = 0; i < count; i++) {
            for (int x = 0; x < SIDE; x++)
                putchar(ink[(int)(digits[i].pixels[y * SIDE + x] * 9.0f + 0.5f)]);
            printf("  ");
        }
        putchar('\n');
    }
    for (int i = 0; i < count; i++)
        printf("   %d %c    ", digits[i].read, digits[i].read == digits[i].label ? ' ' : '*');
    printf("\n\n");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s <digits.onnx> <test.csv>\n", argv[0]);
        return 2;
    }
    FILE *file = fopen(argv[2], "r");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", argv[2]);
        return 1;
    }
    migraphx_program_t program = load(argv[1]);
    struct digit line[PER_LINE];
    int count = 0, right = 0, in_line = 0, more;
    while ((more = read_digit(file, &line[in_line])) > 0) {
        struct digit *digit = &line[in_line++];
        digit->read = classify(program, digit->pixels);
        right += digit->read == digit->label;
        count++;
        if (in_line == PER_LINE) {
            draw(line, in_line);
            in_line = 0;
        }
    }
    if (in_line)
        draw(line, in_line);
    fclose(file);
    migraphx_program_destroy(program);
    if (more < 0 || count == 0) {
        fprintf(stderr, "%s: line %d is not a label and %d pixels\n", argv[2], count + 1, PIXELS);
        return 1;
    }
    printf("%d of %d digits read correctly: %.2f %%\n", right, count, 100.0 * right / count);
    return 100 * right < 98 * count;
}
