// SPDX-License-Identifier: MIT
// Weights of one shape that lie in one storage, as in a mapped model: each is packed under a name of
// its own, so that none is taken for the other.
#include "base/size.h"
#include "targets/cpu/program.h"

enum { SIZE = 48 };

// x W0 W1, both weights views of one storage.
static struct mgx_program *build(void)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    struct mgx_tensor both = {.data = NULL};
    const struct mgx_shape w = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){SIZE, SIZE}),
                           all = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){2 * SIZE, SIZE}),
                           in = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){5, SIZE});
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK ||
        mgx_tensor_create(&both, &all, &diag) != MGX_OK)
        return NULL;
    mgx_tensor_generate(&both, 1);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *y = mgx_add_parameter(m, "x", &in);
    for (int i = 0; i < 2; i++) {
        struct mgx_tensor part = mgx_tensor_view(&both, &w, i * (int64_t)mgx_shape_bytes(&w));
        y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(y, mgx_add_literal(m, &part)));
        mgx_tensor_release(&part);
    }
    mgx_tensor_release(&both);
    mgx_add_return(m, &y, 1);
    return p;
}

// Two sums of SIZE products each: relative RMS far below 1e-5.
CASE(weights_of_one_storage_are_told_apart)
{
    struct mgx_tensor expected[1] = {{.data = NULL}}, actual[1] = {{.data = NULL}};
    struct mgx_program *ref = build(), *cpu = build();
    CHECK(ref && cpu && program_run_on(ref, "ref", 0, expected) &&
          program_run_on(cpu, "cpu", 0, actual));
    CHECK(program_distance(&actual[0], &expected[0]).relative <= 1e-5);
    mgx_tensor_release(&expected[0]);
    mgx_tensor_release(&actual[0]);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
}

TEST_MAIN(ROW(weights_of_one_storage_are_told_apart))
