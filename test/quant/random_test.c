// SPDX-License-Identifier: MIT
// Random programs of all operators and types, quantized in every way: what comes out is valid, runs,
// on the reference and on the CPU, and gives results of the types and lengths it had.
#include "world.h"

#include "random_program.h"

enum { SEEDS = 120 };

static const struct random_program *current;

static enum mgx_status run(void *user, const struct mgx_program *p, int sample,
                           struct mgx_tensor *results, int count, struct mgx_diag *diag)
{
    struct mgx_named_tensor params[RANDOM_MAX_ARGS];
    struct mgx_ins *ins[RANDOM_MAX_ARGS];
    const int given =
        mgx_module_parameters(mgx_program_main(current->program), ins, RANDOM_MAX_ARGS);
    (void)user, (void)sample;
    for (int i = 0; i < given; i++)
        params[i] = (struct mgx_named_tensor){mgx_parameter_name(ins[i]), current->args[i]};
    struct mgx_run r = {
        .params = params, .param_count = given, .results = results, .result_count = count};
    return mgx_program_run(p, &r, diag);
}

static struct mgx_quant_options options_of(int way)
{
    struct mgx_quant_options o = world_options();
    o.type = way == 5 ? MGX_FP8E5M2 : MGX_INT8;
    o.method = (enum mgx_quant_method)(way % MGX_QUANT_METHODS);
    o.asymmetric = way & 1;
    o.smooth = o.correct_bias = way & 2;
    o.keep = way & 4;
    return o;
}

static bool quantize(const struct random_program *r, int way, struct mgx_program **out)
{
    struct world w = {.target = mgx_target_find("cpu")};
    struct mgx_diag diag = {0};
    struct mgx_quant_runner runner = world_runner(&w);
    const struct mgx_quant_options options = options_of(way);
    runner.samples = 1;
    runner.run = run;
    if (mgx_program_clone(out, r->program, &diag) != MGX_OK)
        return false;
    const enum mgx_status status = way == 6
                                       ? mgx_quantize_weights4(*out, 2, true, &diag)
                                       : mgx_quantize(*out, &options, &runner, NULL, NULL, &diag);
    if (status != MGX_OK)
        printf("%s\n", diag.text);
    return status == MGX_OK && mgx_program_verify(*out, &diag) == MGX_OK;
}

// Runs a copy on a target; the results must have the shapes of the original's.
static bool run_on(const struct random_program *r, const struct mgx_program *p, const char *target,
                   struct mgx_tensor *results)
{
    struct world w = {.target = mgx_target_find(target)};
    struct mgx_program *copy = NULL;
    struct mgx_diag diag = {0};
    enum mgx_status status = mgx_program_clone(&copy, p, &diag);
    if (status == MGX_OK)
        status = world_compile(&w, copy, &diag);
    if (status == MGX_OK)
        status = run(&w, copy, 0, results, r->result_count, &diag);
    mgx_program_destroy(copy);
    if (status != MGX_OK) {
        printf("%s: %s\n", target, diag.text);
        return false;
    }
    for (int i = 0; i < r->result_count; i++)
        if (results[i].shape.type != r->results[i].shape.type ||
            !mgx_shape_same_lens(&results[i].shape, &r->results[i].shape))
            return false;
    return true;
}

CASE(whatever_the_program)
{
    int narrow = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random_program r;
        struct mgx_diag diag = {0};
        struct mgx_program *p = NULL;
        if (random_program_make(&r, seed, NULL, &diag) != MGX_OK)
            continue;
        current = &r;
        CHECK(quantize(&r, (int)(seed % 7), &p));
        static const char *const targets[] = {"ref", "cpu"};
        for (int t = 0; t < 2; t++) {
            struct mgx_tensor results[RANDOM_MAX_RESULTS] = {0};
            const bool good = run_on(&r, p, targets[t], results);
            for (int i = 0; i < RANDOM_MAX_RESULTS; i++)
                mgx_tensor_release(&results[i]);
            if (!good)
                CHECK_FAIL("seed %llu", (unsigned long long)seed);
        }
        narrow += world_count(p, "dequantizelinear") > 0;
        mgx_program_destroy(p);
        random_program_free(&r);
    }
    CHECK(narrow > SEEDS / 20); // some have products
}

TEST_MAIN(ROW(whatever_the_program))
