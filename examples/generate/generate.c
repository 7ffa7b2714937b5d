// SPDX-License-Identifier: MIT
// Writes on from a prompt with the model in a folder, and says how many tokens per second that gives.
// From the root of the sources, after make:
//
//   python examples/generate/decoder.py decoder
//   build/bin/generate decoder [steps [token ...]]
//
// The folder is one that ONNX Runtime GenAI's builder, Optimum or mobius writes; decoder.py writes one
// with made-up weights. Tokens are numbers: text takes a tokenizer (generate.py).
#include <migraphx/extensions.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1024 }; // tokens of a prompt

// Every call returns a status; the text of the last failure says what, where and why.
static void check(migraphx_status status)
{
    if (status == migraphx_status_success)
        return;
    fprintf(stderr, "error: %s\n", migraphx_last_error());
    exit(1);
}

static double statistic(migraphx_generator_t generator, const char *name)
{
    double value;
    check(migraphx_generator_statistic(&value, generator, name));
    return value;
}

int main(int argc, char **argv)
{
    const int steps = argc > 2 ? atoi(argv[2]) : 200;
    int64_t prompt[MOST] = {1}, token;
    size_t text, size = 1;
    bool ends = false;
    migraphx_generator_t generator;
    for (int i = 3; i < argc && i < MOST + 3; i++, size = (size_t)i - 3)
        prompt[i - 3] = atoll(argv[i]);

    check(migraphx_generator_load(&generator, argc > 1 ? argv[1] : "decoder", NULL));
    check(migraphx_generator_add(&text, generator));
    check(migraphx_generator_append(generator, text, prompt, size));
    for (int i = 0; i < steps && !ends; i++) {
        check(migraphx_generator_next(&token, generator, &text, 1));
        check(migraphx_generator_is_end(&ends, generator, token));
        if (!ends)
            printf(i ? " %lld" : "%lld", (long long)token);
        fflush(stdout);
    }
    printf("\n");
    fprintf(stderr, "%.1f tokens per second\n",
            statistic(generator, "answer_tokens") / statistic(generator, "answer_seconds"));
    migraphx_generator_destroy(generator); // with its texts
    return 0;
}
