// SPDX-License-Identifier: MIT
// Parameters of a model's configuration, and of the backend for all its models
// (--backend-config=migraphx,NAME=VALUE). Names are those of the C interface.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "backend.h"
#include "words.h"

struct row {
    const char *name;
    enum { FLAG, SIZE, TEXT } kind;
    size_t at, room; // in struct options
};

#define AT(member) offsetof(struct options, member), sizeof(((struct options *)0)->member)

static const struct row rows[] = {
    {"target", TEXT, AT(target)},
    {"threads", SIZE, AT(threads)},
    {"fp16", FLAG, AT(fp16)},
    {"bf16", FLAG, AT(bf16)},
    {"int8", TEXT, AT(int8)},
    {"int4_weights", SIZE, AT(int4_weights)},
    {"exhaustive_tune", FLAG, AT(exhaustive_tune)},
    {"tuning_cache", TEXT, AT(tuning_cache)},
    {"fast_math", FLAG, AT(fast_math)},
    {"tf32", FLAG, AT(tf32)},
    {"gemm_provider", TEXT, AT(gemm_provider)},
    {"isa", TEXT, AT(isa)},
    {"specialise", FLAG, AT(specialise)},
    {"run_memory", SIZE, AT(run_memory)},
    {"cache_dir", TEXT, AT(cache_dir)},
    {"batches", TEXT, AT(batches)},
    {"nhwc", FLAG, AT(nhwc)},
    {"generate", FLAG, AT(generate)},
    {"context", SIZE, AT(context)},
    {"texts", SIZE, AT(texts)},
    // as ONNX Runtime's backend calls them
    {"intra_op_thread_count", SIZE, AT(threads)},
    {"fp16_enable", FLAG, AT(fp16)},
    {"bf16_enable", FLAG, AT(bf16)},
    {"mem_limit", SIZE, AT(run_memory)},
    {"model_cache_dir", TEXT, AT(cache_dir)},
    {"compile_batches", TEXT, AT(batches)},
};
enum { ROWS = sizeof rows / sizeof *rows, OWN_ROWS = 20 };

void options_default(struct options *out)
{
    *out = (struct options){.fast_math = true, .specialise = true, .texts = 16};
}

void options_names(char *out, size_t room)
{
    size_t at = 0;
    *out = '\0';
    for (size_t i = 0; i < OWN_ROWS && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%s", i ? ", " : "", rows[i].name);
}

static TritonError *set(struct options *o, const struct row *row, const char *value)
{
    char *to = (char *)o + row->at;
    const char *want = "0 or 1";
    bool good = false;
    switch (row->kind) {
    case FLAG:
        good = words_flag(value, (bool *)(void *)to);
        break;
    case SIZE:
        good = words_size(value, (size_t *)(void *)to);
        want = "a number";
        break;
    case TEXT:
        good = strlen(value) < row->room;
        want = "a shorter text";
        if (good)
            strcpy(to, value);
        break;
    }
    return good ? NULL
                : fail(TRITON_INVALID_ARGUMENT, "migraphx: parameter %s is \"%s\", not %s",
                       row->name, value, want);
}

TritonError *options_set(struct options *o, const char *name, const char *value, bool *known)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcasecmp(rows[i].name, name) == 0) {
            *known = true;
            return set(o, &rows[i], value);
        }
    *known = false;
    return NULL;
}
