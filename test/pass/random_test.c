// SPDX-License-Identifier: MIT
// Passes on random programs: every pass alone, the whole pipeline, and the pipeline with each pass
// left out must compute what the program computed before.
//
//     random_test                 a few hundred seeds
//     random_test --seeds 0 9999  those
//     random_test --show 17       prints the program of a seed and what each pass makes of it
#include "pass/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_program.h"
#include "rounds.h"

enum { QUICK = 250 };

static void print_program(const char *title, const struct mgx_program *p)
{
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    printf("--- %s ---\n%s", title, mgx_str_text(&text));
    mgx_str_fini(&text);
}

struct plan { // what to run
    const char *name;
    const struct mgx_pass *const *passes;
    struct mgx_pass_options options;
};

static bool check(struct mgx_program *p, const struct random_program *r, const struct plan *plan,
                  char *why, size_t size)
{
    struct mgx_diag diag = {0};
    struct mgx_tensor results[RANDOM_MAX_RESULTS] = {0};
    bool ok = false;
    if (mgx_run_passes(p, plan->passes, &plan->options, &diag) != MGX_OK ||
        random_program_run(p, r, results, &diag) != MGX_OK)
        snprintf(why, size, "%.900s", diag.text);
    else
        ok = random_program_agrees(r, results, why, size);
    for (int i = 0; i < r->result_count; i++)
        mgx_tensor_release(&results[i]);
    return ok;
}

static bool try_plan(uint64_t seed, const struct random_program *r, const struct plan *plan,
                     bool show)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    char why[1024] = "";
    if (mgx_program_clone(&p, r->program, &diag) != MGX_OK) {
        printf("seed %llu: %s\n", (unsigned long long)seed, diag.text);
        return false;
    }
    const bool ok = check(p, r, plan, why, sizeof why);
    if (!ok)
        printf("seed %llu, %s: %s\n", (unsigned long long)seed, plan->name, why);
    if (!ok && !show)
        print_program("before", r->program);
    if (!ok || show)
        print_program(plan->name, p);
    mgx_program_destroy(p);
    return ok;
}

static bool try_passes(uint64_t seed, const struct random_program *r, bool show)
{
    int count;
    const struct mgx_pass *const *all = mgx_pass_all(&count);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        const struct mgx_pass *const alone[] = {all[i], NULL};
        const struct plan one = {all[i]->name, alone, {.verify = true}};
        char title[128];
        const char *const disabled[] = {all[i]->name};
        snprintf(title, sizeof title, "pipeline without %s", all[i]->name);
        const struct plan rest = {title,
                                  mgx_pipeline_simplify,
                                  {.disabled = disabled, .disabled_count = 1, .verify = true}};
        ok = ok && try_plan(seed, r, &one, show) && (show || try_plan(seed, r, &rest, false));
    }
    return ok;
}

static bool try_seed(uint64_t seed, bool show)
{
    struct random_program r;
    struct mgx_diag diag = {0};
    if (random_program_make(&r, seed, NULL, &diag) != MGX_OK ||
        mgx_program_verify(r.program, &diag) != MGX_OK) {
        printf("seed %llu: no program: %s\n", (unsigned long long)seed, diag.text);
        return false;
    }
    if (show)
        print_program("before", r.program);
    const struct plan same = {"as it is", (const struct mgx_pass *const[]){NULL}, {0}};
    const struct plan whole = {"the pipeline", mgx_pipeline_simplify, {.verify = true}};
    static const struct mgx_pass *const all[] = {&mgx_pass_optimize_module,
                                                 &mgx_pass_fuse_pointwise_reduce,
                                                 &mgx_pass_auto_contiguous, NULL};
    const struct plan fused = {"the pipeline and fusion", all, {.verify = true}};
    const bool ok = try_plan(seed, &r, &same, false) && try_passes(seed, &r, show) &&
                    try_plan(seed, &r, &whole, show) && try_plan(seed, &r, &fused, show);
    random_program_free(&r);
    return ok;
}

int main(int argc, char **argv)
{
    uint64_t first = 0, last = (uint64_t)check_rounds(QUICK) - 1, failed = 0;
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        first = strtoull(argv[2], NULL, 10);
        last = strtoull(argv[3], NULL, 10);
    }
    if (argc == 3 && strcmp(argv[1], "--show") == 0)
        return !try_seed(strtoull(argv[2], NULL, 10), true);
    for (uint64_t seed = first; seed <= last && failed < 5; seed++)
        failed += !try_seed(seed, false);
    printf("%llu seeds, %llu failed\n", (unsigned long long)(last - first + 1),
           (unsigned long long)failed);
    return failed != 0;
}
