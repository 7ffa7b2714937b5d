// SPDX-License-Identifier: MIT
// What the tests of quantizing share: programs from text, samples, and a runner over a target.
#pragma once

#include "quant/quant.h"
#include "targets/target.h"

#include "check.h"

enum { WORLD_SAMPLES = 8 };

struct world {
    const struct mgx_target *target;
    struct mgx_named_tensor params[WORLD_SAMPLES][2];
    int param_count, samples;
};

static inline enum mgx_status world_compile(void *user, struct mgx_program *p,
                                            struct mgx_diag *diag)
{
    const struct world *w = user;
    const struct mgx_compile_options options = {.threads = 1};
    return mgx_program_compile(p, w->target, &options, diag);
}

static inline enum mgx_status world_run(void *user, const struct mgx_program *p, int sample,
                                        struct mgx_tensor *results, int count,
                                        struct mgx_diag *diag)
{
    const struct world *w = user;
    struct mgx_run r = {.params = w->params[sample],
                        .param_count = w->param_count,
                        .results = results,
                        .result_count = count};
    return mgx_program_run(p, &r, diag);
}

static inline struct mgx_quant_runner world_runner(struct world *w)
{
    return (struct mgx_quant_runner){
        .user = w, .samples = w->samples, .compile = world_compile, .run = world_run};
}

static inline struct mgx_quant_options world_options(void)
{
    return (struct mgx_quant_options){.type = MGX_INT8, .percentile = 99.99, .budget = -1};
}

static inline struct mgx_program *world_parse(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    return p;
}

// Quantizes; false, with the message printed, if that fails.
static inline bool world_quantize(struct world *w, struct mgx_program *p,
                                  const struct mgx_quant_options *options, struct mgx_recipe *out)
{
    struct mgx_diag diag = {0};
    const struct mgx_quant_runner runner = world_runner(w);
    if (mgx_quantize(p, options, &runner, NULL, out, &diag) == MGX_OK)
        return true;
    printf("%s\n", diag.text);
    return false;
}

// The first result of a copy of the program on a sample, as doubles.
static inline bool world_result(struct world *w, const struct mgx_program *p, int sample,
                                double *out)
{
    struct mgx_program *copy = NULL;
    struct mgx_tensor results[4] = {0};
    struct mgx_diag diag = {0};
    const int count = mgx_module_result_count(mgx_program_main(p));
    enum mgx_status status = mgx_program_clone(&copy, p, &diag);
    if (status == MGX_OK)
        status = world_compile(w, copy, &diag);
    if (status == MGX_OK)
        status = world_run(w, copy, sample, results, count, &diag);
    if (status == MGX_OK)
        mgx_tensor_to_doubles(&results[0], out);
    else
        printf("%s\n", diag.text);
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&results[i]);
    mgx_program_destroy(copy);
    return status == MGX_OK;
}

static inline void world_give(struct world *w, const char *name, const struct mgx_shape *shape,
                              const void *data)
{
    w->params[w->samples++][0] = (struct mgx_named_tensor){name, mgx_tensor_borrow(shape, data)};
    w->param_count = 1;
}

static inline int world_count(const struct mgx_program *p, const char *name)
{
    int count = 0;
    for (int i = 0; i < p->module_count; i++)
        MGX_EACH (ins, p->modules[i])
            count += strcmp(ins->op->name, name) == 0;
    return count;
}

static inline double world_random(uint64_t *state) // [-1, 1)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(int64_t)*state * 0x1p-63;
}
