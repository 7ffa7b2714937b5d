// SPDX-License-Identifier: MIT
// Small models to try the tool with, written in the text form.
#include "driver.h"

struct model {
    const char *name, *text;
};

static const struct model models[] = {
    {"gemm", "module: \"main\"\n"
             "b = @param:b -> float_type, {5, 3}, {3, 1}\n"
             "a = @param:a -> float_type, {4, 5}, {5, 1}\n"
             "main:@2 = dot(a,b) -> float_type, {4, 3}, {3, 1}\n"
             "main:@3 = @return(main:@2)\n"},
    {"conv", "module: \"main\"\n"
             "w = @param:w -> float_type, {8, 3, 3, 3}, {27, 9, 3, 1}\n"
             "x = @param:x -> float_type, {1, 3, 32, 32}, {3072, 1024, 32, 1}\n"
             "main:@2 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1},group=1,"
             "padding_mode=0,use_dynamic_same_auto_pad=0](x,w) -> float_type, {1, 8, 32, 32}, "
             "{8192, 1024, 32, 1}\n"
             "main:@3 = relu(main:@2) -> float_type, {1, 8, 32, 32}, {8192, 1024, 32, 1}\n"
             "main:@4 = @return(main:@3)\n"},
    {"mlp", "module: \"main\"\n"
            "w2 = @param:w2 -> float_type, {64, 10}, {10, 1}\n"
            "w1 = @param:w1 -> float_type, {32, 64}, {64, 1}\n"
            "x = @param:x -> float_type, {16, 32}, {32, 1}\n"
            "main:@3 = dot(x,w1) -> float_type, {16, 64}, {64, 1}\n"
            "main:@4 = relu(main:@3) -> float_type, {16, 64}, {64, 1}\n"
            "main:@5 = dot(main:@4,w2) -> float_type, {16, 10}, {10, 1}\n"
            "main:@6 = softmax[axis=1](main:@5) -> float_type, {16, 10}, {10, 1}\n"
            "main:@7 = @return(main:@6)\n"},
    {"attention", "module: \"main\"\n"
                  "v = @param:v -> float_type, {4, 16, 8}, {128, 8, 1}\n"
                  "k = @param:k -> float_type, {4, 16, 8}, {128, 8, 1}\n"
                  "q = @param:q -> float_type, {4, 16, 8}, {128, 8, 1}\n"
                  "main:@3 = transpose[permutation={0, 2, 1}](k) -> float_type, {4, 8, 16}, "
                  "{128, 1, 8}\n"
                  "main:@4 = dot(q,main:@3) -> float_type, {4, 16, 16}, {256, 16, 1}\n"
                  "main:@5 = softmax[axis=2](main:@4) -> float_type, {4, 16, 16}, {256, 16, 1}\n"
                  "main:@6 = dot(main:@5,v) -> float_type, {4, 16, 8}, {128, 8, 1}\n"
                  "main:@7 = @return(main:@6)\n"},
};

enum { COUNT = sizeof models / sizeof *models };

const char *builtin_model_name(int index)
{
    return index >= 0 && index < COUNT ? models[index].name : NULL;
}

bool builtin_model(const char *name, migraphx_program_t *out)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(models[i].name, name) == 0)
            return OK(migraphx_program_parse(out, models[i].text, strlen(models[i].text)));
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++)
        names[i] = models[i].name;
    const char *near = suggest(name, names, COUNT);
    log_error("there is no built-in model '%s'%s%s%s", name, near ? ", did you mean '" : "",
              near ? near : "", near ? "'?" : "");
    return false;
}
