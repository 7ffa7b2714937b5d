// SPDX-License-Identifier: MIT
// Random valid programs compiled for cpu against the reference, every instruction set this machine
// has; each is run three times, and results must be the same to the bit (again.h).
//
//     random_test                 some hundred seeds, of drawn types, of half and of bfloat16
//     random_test --seeds 0 9999  those
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "again.h"
#include "base/size.h"
#include "random_program.h"
#include "rounds.h"
#include "targets/cpu/kernel/kernel.h"
#include "targets/target.h"

enum { QUICK = 200, MAX_PARAMS = RANDOM_MAX_ARGS };

static enum mgx_status compile(struct mgx_program *p, const char *isa, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.threads = 2, .own = MGX_SETTINGS({"isa", isa})};
    again_disturb(0);
    return mgx_program_compile(p, mgx_target_find("cpu"), &options, diag);
}

static enum mgx_status run(struct mgx_program *p, const struct random_program *r, int round,
                           struct mgx_tensor *results, struct mgx_diag *diag)
{
    struct mgx_ins *params[MAX_PARAMS];
    struct mgx_named_tensor named[MAX_PARAMS];
    again_disturb(round);
    mgx_module_parameters(mgx_program_main(p), params, MAX_PARAMS);
    for (int i = 0; i < r->arg_count; i++)
        named[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]), r->args[i]};
    struct mgx_run call = {.params = named,
                           .param_count = r->arg_count,
                           .results = results,
                           .result_count = r->result_count};
    return mgx_program_run(p, &call, diag);
}

// The runs after the first, whose results are at hand.
static bool runs_again(struct mgx_program *p, const struct random_program *r,
                       const struct mgx_tensor *first, char *why, size_t size)
{
    bool same = true;
    for (int round = 1; round < AGAIN_ROUNDS && same; round++) {
        struct mgx_diag diag = {0};
        struct mgx_tensor results[RANDOM_MAX_RESULTS] = {{.data = NULL}};
        same = run(p, r, round, results, &diag) == MGX_OK;
        snprintf(why, size, "run %d: %.900s", round + 1, diag.text);
        for (int i = 0; i < r->result_count && same; i++) {
            same = again_same(&first[i], &results[i]);
            snprintf(why, size, "run %d: result %d is another one", round + 1, i);
        }
        for (int i = 0; i < r->result_count; i++)
            mgx_tensor_release(&results[i]);
    }
    return same;
}

static bool try_isa(const struct random_program *r, unsigned long long seed, const char *isa)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    struct mgx_tensor results[RANDOM_MAX_RESULTS] = {{.data = NULL}};
    char why[1024] = "";
    bool ok = mgx_program_clone(&p, r->program, &diag) == MGX_OK &&
              compile(p, isa, &diag) == MGX_OK && run(p, r, 0, results, &diag) == MGX_OK;
    if (!ok)
        snprintf(why, sizeof why, "%.900s", diag.text);
    else
        ok = random_program_agrees(r, results, why, sizeof why) &&
             runs_again(p, r, results, why, sizeof why);
    if (!ok)
        printf("seed %llu, %s: %s\n", seed, isa, why);
    for (int i = 0; i < r->result_count; i++)
        mgx_tensor_release(&results[i]);
    mgx_program_destroy(p);
    return ok;
}

static bool try_seed(unsigned long long seed, const struct random_options *options)
{
    struct random_program r;
    struct mgx_diag diag = {0};
    if (random_program_make(&r, seed, options, &diag) != MGX_OK) {
        printf("seed %llu: %s\n", seed, diag.text);
        return false;
    }
    bool ok = true;
    mgx_isa isa;
    for (int i = 0; mgx_kernel_isa(i, &isa); i++)
        ok &= try_isa(&r, seed, mgx_isa_name(isa));
    random_program_free(&r);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned long long first = 0, last = (unsigned long long)check_rounds(QUICK) - 1;
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        first = strtoull(argv[2], NULL, 10);
        last = strtoull(argv[3], NULL, 10);
    }
    static const struct random_options half = {.fixed_type = true, .type = MGX_HALF},
                                       bf16 = {.fixed_type = true, .type = MGX_BF16};
    static const struct random_options *const options[] = {NULL, &half, &bf16};
    int passed = 0, failed = 0;
    for (unsigned long long seed = first; seed <= last; seed++)
        for (int i = 0; i < MGX_COUNT(options); i++)
            *(try_seed(seed, options[i]) ? &passed : &failed) += 1;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
