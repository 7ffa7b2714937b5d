// SPDX-License-Identifier: MIT
// A plan is explained, and its bytes are counted, while runs meet sizes that are new to it and pack
// constants for them. (The thread sanitizer sees who reads what another writes.)
#include <pthread.h>

#include "targets/cpu/program.h"

enum { ROWS = 24, LOOKS = 200 };

// As many rows as x has numbers that are not 0, times a constant.
static struct mgx_program *build(void)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 1, (int64_t[]){ROWS});
    const struct mgx_shape w = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){ROWS, ROWS});
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *weights = program_literal(m, &w, 1);
    struct mgx_ins *found =
        mgx_emit(m, &mgx_op_nonzero, NULL, MGX_IN(mgx_add_parameter(m, "x", &x)));
    struct mgx_ins *rows =
        mgx_emit(m, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", 0)), MGX_IN(weights, found));
    const int64_t axis = 0;
    rows = mgx_emit(m, &mgx_op_squeeze, MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(rows));
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(rows, weights));
    mgx_add_return(m, &y, 1);
    return program_ready(p);
}

struct runner {
    const struct mgx_program *p;
    int good;
};

static void *run_all(void *argument)
{
    struct runner *r = argument;
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 1, (int64_t[]){ROWS});
    for (int count = 1; count <= ROWS; count++) {
        float values[ROWS] = {0};
        for (int i = 0; i < count; i++)
            values[i] = 1;
        struct mgx_diag diag = {0};
        struct mgx_tensor result = {.data = NULL};
        const struct mgx_named_tensor x = {"x", mgx_tensor_borrow(&s, values)};
        struct mgx_run run = {
            .params = &x, .param_count = 1, .results = &result, .result_count = 1};
        r->good += mgx_program_run(r->p, &run, &diag) == MGX_OK && result.shape.lens[0] == count &&
                   result.shape.lens[1] == ROWS;
        mgx_tensor_release(&result);
    }
    return NULL;
}

CASE(plans_are_explained_while_they_run)
{
    struct runner r = {.p = build()};
    pthread_t thread;
    CHECK(r.p != NULL);
    CHECK_INT(pthread_create(&thread, NULL, run_all, &r), 0);
    size_t bytes = 0;
    for (int i = 0; i < LOOKS; i++) {
        struct mgx_str text = {0};
        mgx_target_cpu.explain(r.p, &text);
        bytes += strstr(mgx_str_text(&text), "packed constants: ") != NULL;
        bytes += mgx_target_cpu.bytes(r.p) > 0;
        mgx_str_fini(&text);
    }
    pthread_join(thread, NULL);
    CHECK_INT(bytes, 2 * LOOKS);
    CHECK_INT(r.good, ROWS);
    mgx_program_destroy((struct mgx_program *)r.p);
}

// A run's results are the plan's own: they are counted.
CASE(results_are_counted)
{
    enum { LENGTH = 1 << 18 };
    struct mgx_program *p = program_compile("module: \"main\"\n"
                                            "x = @param:x -> float_type, {262144}, {1}\n"
                                            "y = exp(x)\n@2 = @return(y)\n",
                                            "cpu", 1);
    CHECK(p && mgx_target_cpu.bytes(p) >= LENGTH * sizeof(float));
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(plans_are_explained_while_they_run) ROW(results_are_counted))
