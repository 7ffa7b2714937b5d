// SPDX-License-Identifier: MIT
// Programs as text, run on the reference and on cpu with the same generated parameters.
#pragma once

#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { PROGRAM_PARAMS = 16 };

// For `threads` threads, 0: as many as there are. NULL, and why on stdout, when the text or the
// target refuses.
static inline struct mgx_program *program_compile(const char *text, const char *target, int threads)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {
        .fast_math = true, .pass.fast_math = true, .threads = threads};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// A program that was built by hand, compiled for one thread of the CPU. NULL, and why on stdout, when
// the target refuses; p is gone then.
static inline struct mgx_program *program_ready(struct mgx_program *p)
{
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1};
    if (mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// A literal of generated values; NULL when out of memory.
static inline struct mgx_ins *program_literal(struct mgx_module *m, const struct mgx_shape *shape,
                                              uint64_t seed)
{
    struct mgx_diag diag = {0};
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, shape, &diag) != MGX_OK)
        return NULL;
    mgx_tensor_generate(&t, seed);
    struct mgx_ins *ins = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return ins;
}

// All results, on parameters that depend on their number alone.
static inline bool program_run(const struct mgx_program *p, struct mgx_tensor *results)
{
    struct mgx_ins *params[PROGRAM_PARAMS];
    struct mgx_named_tensor named[PROGRAM_PARAMS];
    struct mgx_diag diag = {0};
    const int count = mgx_module_parameters(mgx_program_main(p), params, PROGRAM_PARAMS);
    int made = 0;
    for (; made < count && made < PROGRAM_PARAMS; made++) {
        named[made].name = mgx_parameter_name(params[made]);
        if (mgx_tensor_create(&named[made].tensor, &params[made]->shape, &diag) != MGX_OK)
            break;
        mgx_tensor_generate(&named[made].tensor, (uint64_t)made + 1);
    }
    struct mgx_run r = {.params = named,
                        .param_count = count,
                        .results = results,
                        .result_count = mgx_module_result_count(mgx_program_main(p))};
    const bool good = made == count && mgx_program_run(p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    for (int i = 0; i < made; i++)
        mgx_tensor_release(&named[i].tensor);
    return good;
}

// Compiles a program that was built by hand, and runs it.
static inline bool program_run_on(struct mgx_program *p, const char *target, int threads,
                                  struct mgx_tensor *results)
{
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.fast_math = true, .threads = threads};
    if (mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return program_run(p, results);
    printf("%s: %s\n", target, diag.text);
    return false;
}

// How far `a` is from `b`, whatever orders of memory they lie in: the largest difference of two
// values, and the root of the mean square difference over that of `b`. Infinity where types or
// lengths differ, NaN where a value is.
struct program_distance {
    double largest, relative;
};

static inline struct program_distance program_distance(const struct mgx_tensor *a,
                                                       const struct mgx_tensor *b)
{
    double largest = 0, difference = 0, size = 0;
    if (!mgx_shape_same_lens(&a->shape, &b->shape) || a->shape.type != b->shape.type)
        return (struct program_distance){INFINITY, INFINITY};
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double x = mgx_load_double(a->shape.type, a->data, mgx_shape_index(&a->shape, i));
        const double y = mgx_load_double(b->shape.type, b->data, mgx_shape_index(&b->shape, i));
        largest = fabs(x - y) > largest || isnan(x - y) ? fabs(x - y) : largest;
        difference += (x - y) * (x - y);
        size += y * y;
    }
    return (struct program_distance){largest, difference == 0 ? 0 : sqrt(difference / size)};
}

// Steps of a plan as it is explained; -1: it does not say.
static inline int program_steps_in(const char *plan)
{
    const char *at = strstr(plan, "steps: ");
    return at ? atoi(at + 7) : -1;
}

// The same of a program; -1 when it does not compile.
static inline int program_steps(const char *text)
{
    struct mgx_program *p = program_compile(text, "cpu", 0);
    if (!p)
        return -1;
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(p, &plan);
    const int steps = program_steps_in(mgx_str_text(&plan));
    mgx_str_fini(&plan);
    mgx_program_destroy(p);
    return steps;
}

// The reference's values within `most`, from `steps` steps none of which is the reference's.
static inline bool program_agrees(const char *text, int steps, double most)
{
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = program_compile(text, "ref", 0),
                       *cpu = program_compile(text, "cpu", 0);
    bool good = ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual) &&
                program_distance(&actual, &expected).largest < most;
    if (cpu) {
        struct mgx_str plan = {0};
        mgx_target_cpu.explain(cpu, &plan);
        const char *all = mgx_str_text(&plan);
        good &= program_steps_in(all) == steps && !strstr(all, ": ref (");
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
