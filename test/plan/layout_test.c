// SPDX-License-Identifier: MIT
// Pixels a multiple of 2 KiB apart get a line between them where convolutions alone read them, as
// input or residual, and nowhere else; results are the reference's.
#include "targets/cpu/program.h"

enum { CHANNELS = 512, FEW = 8, SIDE = 6, BATCH = 2 };

enum reader { CONVOLUTIONS, A_SLICE_TOO, THE_CALLER_TOO };

static struct mgx_ins *weights(struct mgx_module *m, int64_t in, uint64_t seed)
{
    const struct mgx_shape shape =
        mgx_shape_make(MGX_FLOAT, 4, (const int64_t[]){CHANNELS, in, 1, 1});
    return program_literal(m, &shape, seed);
}

// relu(conv(a) + a), a = relu(conv(x)); and who else reads a.
static struct mgx_program *build(enum reader reader)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape in =
        mgx_shape_make(MGX_FLOAT, 4, (const int64_t[]){BATCH, FEW, SIDE, SIDE});
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in);
    struct mgx_ins *a = mgx_emit(m, &mgx_op_convolution, NULL, MGX_IN(x, weights(m, FEW, 1)));
    a = mgx_emit(m, &mgx_op_relu, NULL, MGX_IN(a));
    struct mgx_ins *b = mgx_emit(m, &mgx_op_convolution, NULL, MGX_IN(a, weights(m, CHANNELS, 2)));
    b = mgx_emit(m, &mgx_op_add, NULL, MGX_IN(b, a));
    struct mgx_ins *out[] = {mgx_emit(m, &mgx_op_relu, NULL, MGX_IN(b)), a};
    const int64_t axis = 1, first = 0, end = CHANNELS / 2;
    if (reader == A_SLICE_TOO)
        out[1] = mgx_emit(m, &mgx_op_slice,
                          MGX_ATTRS(mgx_ints("axes", &axis, 1), mgx_ints("starts", &first, 1),
                                    mgx_ints("ends", &end, 1)),
                          MGX_IN(a));
    mgx_add_return(m, out, reader == CONVOLUTIONS ? 1 : 2);
    return p;
}

// Sums of 512 products: relative RMS far below 1e-5.
static bool agrees(enum reader reader, bool apart)
{
    struct mgx_tensor expected[2] = {{.data = NULL}}, actual[2] = {{.data = NULL}};
    struct mgx_program *ref = build(reader), *cpu = build(reader);
    bool good = ref && cpu && program_run_on(ref, "ref", 2, expected) &&
                program_run_on(cpu, "cpu", 2, actual);
    for (int i = 0; i < 2; i++) {
        good = good &&
               (!expected[i].data || program_distance(&actual[i], &expected[i]).relative <= 1e-5);
        mgx_tensor_release(&expected[i]);
        mgx_tensor_release(&actual[i]);
    }
    if (good) {
        struct mgx_str plan = {0};
        mgx_target_cpu.explain(cpu, &plan);
        good = (strstr(mgx_str_text(&plan), "{19008, 1, 3168, 528}") != NULL) == apart;
        if (!good)
            printf("%s", mgx_str_text(&plan));
        mgx_str_fini(&plan);
    }
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

CASE(pixels_that_convolutions_alone_read_lie_apart)
{
    CHECK(agrees(CONVOLUTIONS, true));
}

CASE(pixels_that_others_read_lie_side_by_side)
{
    CHECK(agrees(A_SLICE_TOO, false));
    CHECK(agrees(THE_CALLER_TOO, false));
}

TEST_MAIN(ROW(pixels_that_convolutions_alone_read_lie_apart)
              ROW(pixels_that_others_read_lie_side_by_side))
