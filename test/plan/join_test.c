// SPDX-License-Identifier: MIT
// Joined weights stay in pieces until they are packed, and 16-bit weights that are widened stay in
// 16 bits: no literal of their size is made, results are those of the reference, and other readers
// get their values too.
#include <string.h>

#include "base/size.h"
#include "format/mxr.h"
#include "targets/cpu/program.h"

enum { SIZE = 384, PIECES = 3, MAX_RESULTS = 4 };

enum kind { DOTS, CONVOLUTIONS, OTHER_READER };

// Products of one input, which are joined; or one product of a concat that a sum reads as well.
static struct mgx_program *build(enum kind kind, enum mgx_type type)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const bool conv = kind == CONVOLUTIONS;
    const struct mgx_op *op = conv ? &mgx_op_convolution : &mgx_op_dot;
    const struct mgx_shape w =
        mgx_shape_make(type, conv ? 4 : 2, (const int64_t[]){SIZE, SIZE, 1, 1});
    const int64_t rows[] = {5, kind == OTHER_READER ? PIECES * SIZE : SIZE};
    const struct mgx_shape in =
        mgx_shape_make(MGX_FLOAT, conv ? 4 : 2, conv ? (const int64_t[]){1, SIZE, 3, 3} : rows);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in);
    struct mgx_ins *piece[PIECES], *out[PIECES];
    for (int i = 0; i < PIECES; i++) {
        piece[i] = program_literal(m, &w, (uint64_t)i + 1);
        if (type != MGX_FLOAT)
            piece[i] = mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", MGX_FLOAT)),
                                MGX_IN(piece[i]));
    }
    for (int i = 0; i < PIECES && kind != OTHER_READER; i++)
        out[i] =
            mgx_emit(m, &mgx_op_tanh, NULL, MGX_IN(mgx_emit(m, op, NULL, MGX_IN(x, piece[i]))));
    if (kind == OTHER_READER) {
        const int64_t axes[] = {0, 1}, lens[] = {PIECES * SIZE, SIZE};
        struct mgx_ins *joined = mgx_emit(m, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", 0)),
                                          MGX_IN(piece[0], piece[1], piece[2]));
        struct mgx_ins *sum =
            mgx_emit(m, &mgx_op_reduce_sum, MGX_ATTRS(mgx_ints("axes", axes, 2)), MGX_IN(x));
        struct mgx_ins *wide = mgx_emit(m, &mgx_op_multibroadcast,
                                        MGX_ATTRS(mgx_ints("out_lens", lens, 2)), MGX_IN(sum));
        out[0] = mgx_emit(m, op, NULL, MGX_IN(x, joined));
        out[1] = mgx_emit(m, &mgx_op_add, NULL, MGX_IN(joined, wide));
    }
    mgx_add_return(m, out, kind == OTHER_READER ? 2 : PIECES);
    return p;
}

// Both targets sum up products of SIZE or PIECES * SIZE numbers: relative RMS far below 1e-5.
static bool agrees(enum kind kind, enum mgx_type type)
{
    struct mgx_tensor expected[MAX_RESULTS] = {{.data = NULL}},
                      actual[MAX_RESULTS] = {{.data = NULL}};
    struct mgx_program *ref = build(kind, type), *cpu = build(kind, type);
    bool good = ref && cpu && program_run_on(ref, "ref", 0, expected) &&
                program_run_on(cpu, "cpu", 0, actual);
    for (int i = 0; i < MAX_RESULTS; i++) {
        good = good &&
               (!expected[i].data || program_distance(&actual[i], &expected[i]).relative <= 1e-5);
        mgx_tensor_release(&expected[i]);
        mgx_tensor_release(&actual[i]);
    }
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

static size_t largest_literal(const struct mgx_program *p)
{
    size_t most = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (ins->literal && mgx_shape_bytes(&ins->shape) > most)
            most = mgx_shape_bytes(&ins->shape);
    return most;
}

static int count(const struct mgx_program *p, const struct mgx_op *op)
{
    int found = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        found += ins->op == op;
    return found;
}

static const enum mgx_type types[] = {MGX_FLOAT, MGX_HALF, MGX_BF16};

CASE(results_are_those_of_the_reference)
{
    for (int i = 0; i < MGX_COUNT(types); i++) {
        CHECK(agrees(DOTS, types[i]));
        CHECK(agrees(CONVOLUTIONS, types[i]));
        CHECK(agrees(OTHER_READER, types[i]));
    }
}

CASE(joining_copies_no_weights)
{
    for (enum kind kind = DOTS; kind <= CONVOLUTIONS; kind++) {
        struct mgx_diag diag = {0};
        struct mgx_program *p = build(kind, MGX_FLOAT);
        CHECK(p && mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag) == MGX_OK);
        CHECK_INT(count(p, &mgx_op_concat), 1);
        CHECK_INT(largest_literal(p), (size_t)SIZE * SIZE * sizeof(float));
        mgx_program_destroy(p);
    }
}

CASE(widening_copies_no_weights)
{
    for (enum kind kind = DOTS; kind <= CONVOLUTIONS; kind++)
        for (int i = 1; i < MGX_COUNT(types); i++) {
            const struct mgx_compile_options options = {.threads = 1};
            struct mgx_diag diag = {0};
            struct mgx_program *p = build(kind, types[i]);
            CHECK(p && mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK);
            CHECK_INT(largest_literal(p), (size_t)SIZE * SIZE * 2);
            mgx_program_destroy(p);
        }
}

// A mask of 16 bits in the order that its transpose left, which a sum reads: the order stays, so that
// what a file says of the broadcast is what its operator makes of the mask.
static struct mgx_program *turned(enum mgx_type type)
{
    const int64_t lens[] = {2, 6, 64, 64};
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape in = mgx_shape_make(MGX_FLOAT, 4, lens);
    struct mgx_shape order = mgx_shape_make(type, 3, lens + 1);
    memcpy(order.strides, (const int64_t[]){1, 384, 6}, 3 * sizeof *order.strides);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in),
                   *mask =
                       mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", MGX_FLOAT)),
                                MGX_IN(program_literal(m, &order, 1))),
                   *wide = mgx_emit(m, &mgx_op_multibroadcast,
                                    MGX_ATTRS(mgx_ints("out_lens", lens, 4)), MGX_IN(mask));
    mgx_add_return(m, (struct mgx_ins *[]){mgx_emit(m, &mgx_op_add, NULL, MGX_IN(x, wide))}, 1);
    return p;
}

CASE(what_lies_turned_is_saved_and_read_again)
{
    for (int i = 0; i < MGX_COUNT(types); i++) {
        struct mgx_diag diag = {0};
        struct mgx_tensor expected = {0}, actual = {0};
        struct mgx_str file = {0};
        struct mgx_program *ref = turned(types[i]), *cpu = turned(types[i]), *read = NULL;
        CHECK(ref && cpu && program_run_on(ref, "ref", 1, &expected));
        CHECK(program_run_on(cpu, "cpu", 1, &actual));
        CHECK(program_distance(&actual, &expected).largest == 0);
        CHECK_OK(mgx_mxr_save_buffer(cpu, NULL, MGX_FORM_MSGPACK, &file, &diag), diag);
        CHECK_OK(mgx_mxr_load_buffer(&read, &mgx_ops, file.text, file.size, MGX_FORM_MSGPACK, NULL,
                                     &diag),
                 diag);
        mgx_tensor_release(&expected);
        mgx_tensor_release(&actual);
        mgx_str_fini(&file);
        mgx_program_destroy(ref);
        mgx_program_destroy(cpu);
        mgx_program_destroy(read);
    }
}

TEST_MAIN(ROW(results_are_those_of_the_reference) ROW(joining_copies_no_weights)
              ROW(widening_copies_no_weights) ROW(what_lies_turned_is_saved_and_read_again))
