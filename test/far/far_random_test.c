// SPDX-License-Identifier: MIT
// Random valid programs on the far target against the reference: with results copied, with both
// ends in far memory, and with steps of the host done by kernels that the CPU's target lends. Each is
// run three times, and results must be the same to the bit (again.h).
//
//     far_random_test                 some hundred seeds
//     far_random_test --seeds 0 9999  those
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "again.h"
#include "far/run.h"
#include "random_program.h"
#include "rounds.h"

enum { QUICK = 300 };

static bool runs_again(const struct mgx_program *p, const struct random_program *r, bool offload,
                       const struct mgx_tensor *first, char *why, size_t size)
{
    bool same = true;
    for (int round = 1; round < AGAIN_ROUNDS && same; round++) {
        struct mgx_diag diag = {0};
        struct mgx_tensor results[RANDOM_MAX_RESULTS] = {{.data = NULL}};
        again_disturb(round);
        same = far_run(p, offload, r->args, r->arg_count, results, &diag) == MGX_OK;
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

static bool try_one(const struct random_program *r, unsigned long long seed, bool offload,
                    bool borrow)
{
    struct mgx_diag diag = {0};
    struct mgx_tensor results[RANDOM_MAX_RESULTS] = {{.data = NULL}};
    char why[1024] = "";
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {.offload_copy = offload};
    far_borrows = borrow;
    again_disturb(0);
    bool ok = mgx_program_clone(&p, r->program, &diag) == MGX_OK &&
              mgx_program_compile(p, &far_target, &options, &diag) == MGX_OK &&
              far_run(p, offload, r->args, r->arg_count, results, &diag) == MGX_OK;
    if (!ok)
        snprintf(why, sizeof why, "%.900s", diag.text);
    else
        ok = random_program_agrees(r, results, why, sizeof why) &&
             runs_again(p, r, offload, results, why, sizeof why);
    if (!ok)
        printf("seed %llu, results %s%s: %s\n", seed, offload ? "copied" : "left",
               borrow ? ", kernels borrowed" : "", why);
    for (int i = 0; i < r->result_count; i++)
        mgx_tensor_release(&results[i]);
    mgx_program_destroy(p);
    return ok;
}

static bool try_seed(unsigned long long seed)
{
    struct random_program r;
    struct mgx_diag diag = {0};
    if (random_program_make(&r, seed, NULL, &diag) != MGX_OK) {
        printf("seed %llu: %s\n", seed, diag.text);
        return false;
    }
    const bool copied = try_one(&r, seed, true, false), left = try_one(&r, seed, false, false),
               borrowed = try_one(&r, seed, seed % 2, true);
    random_program_free(&r);
    return copied && left && borrowed;
}

int main(int argc, char **argv)
{
    unsigned long long first = 0, last = (unsigned long long)check_rounds(QUICK) - 1;
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        first = strtoull(argv[2], NULL, 10);
        last = strtoull(argv[3], NULL, 10);
    }
    int passed = 0, failed = 0;
    for (unsigned long long seed = first; seed <= last; seed++)
        *(try_seed(seed) ? &passed : &failed) += 1;
    printf("%d passed, %d failed, %zu bytes left\n", passed, failed, far_memory_live());
    return failed != 0 || far_memory_live() != 0;
}
