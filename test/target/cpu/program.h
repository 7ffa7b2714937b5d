// SPDX-License-Identifier: MIT
// Programs as text, run on the reference and on cpu with the same generated parameters.
#pragma once

#include "check.h"
#include "op/op.h"
#include "target/target.h"

// NULL, and why on stdout, when the text or the target refuses.
static inline struct mgx_program *program_compile(const char *text, const char *target)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {.fast_math = true, .pass.fast_math = true};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// Of up to four parameters; one result, row by row.
static inline bool program_run(const struct mgx_program *p, struct mgx_tensor *result)
{
    struct mgx_ins *params[4];
    struct mgx_named_tensor named[4];
    struct mgx_diag diag = {0};
    const int count = mgx_module_parameters(mgx_program_main(p), params, 4);
    int made = 0;
    for (; made < count; made++) {
        named[made].name = mgx_parameter_name(params[made]);
        if (mgx_tensor_create(&named[made].tensor, &params[made]->shape, &diag) != MGX_OK)
            break;
        mgx_tensor_generate(&named[made].tensor, (uint64_t)made + 1);
    }
    struct mgx_tensor own = {.data = NULL};
    struct mgx_run r = {.params = named, .param_count = count, .results = &own, .result_count = 1};
    const bool good = made == count && mgx_program_run(p, &r, &diag) == MGX_OK &&
                      mgx_tensor_pack(result, &own, &diag) == MGX_OK;
    mgx_tensor_release(&own);
    for (int i = 0; i < made; i++)
        mgx_tensor_release(&named[i].tensor);
    return good;
}

// The largest difference of two results of floats; NaN where one has one.
static inline double program_worst(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    double most = 0;
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double off = fabs((double)((const float *)a->data)[i] - ((const float *)b->data)[i]);
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

// The plan's explanation, which the caller frees (mgx_str_fini).
static inline struct mgx_str program_explanation(const struct mgx_program *p)
{
    struct mgx_str text = {0};
    mgx_target_cpu.explain(p, &text);
    return text;
}

// The reference's values within `most`, from `steps` steps none of which is the reference's.
static inline bool program_agrees(const char *text, int steps, double most)
{
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = program_compile(text, "ref"), *cpu = program_compile(text, "cpu");
    bool good = ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual) &&
                program_worst(&actual, &expected) < most;
    if (cpu) {
        struct mgx_str plan = program_explanation(cpu);
        const char *all = mgx_str_text(&plan), *at = strstr(all, "steps: ");
        good &= at && atoi(at + 7) == steps && !strstr(all, ": ref (");
        if (!good)
            printf("%s%s", text, all);
        mgx_str_fini(&plan);
    }
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}
