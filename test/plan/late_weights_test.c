// SPDX-License-Identifier: MIT
// Weights of products whose sizes are known only at run time stay in the few bits that the model
// has: compiling makes no floats of them, the steps for any size give what the reference gives, and
// so does what no kernel takes.
#include "base/size.h"
#include "targets/cpu/program.h"

enum { ROWS = 96, DEPTH = 384, BLOCK = 32 };

enum kind { BLOCKS, WIDENED };

// {DEPTH, ROWS} of `type`: numbers of 4 bits and their scales, or of 16 bits that are widened.
static struct mgx_ins *weights(struct mgx_module *m, enum kind kind, enum mgx_type type)
{
    static const int64_t swap[] = {1, 0};
    const int64_t blocks = DEPTH / BLOCK;
    const struct mgx_shape q = mgx_shape_make(MGX_UINT8, 3,
                                              (const int64_t[]){ROWS, blocks, BLOCK / 2}),
                           s = mgx_shape_make(type, 2, (const int64_t[]){ROWS, blocks}),
                           h = mgx_shape_make(MGX_HALF, 2, (const int64_t[]){ROWS, DEPTH});
    struct mgx_ins *w = kind == BLOCKS
                            ? mgx_emit(m, &mgx_op_dequantize_blocks,
                                       MGX_ATTRS(mgx_int("bits", 4), mgx_int("columns", DEPTH)),
                                       MGX_IN(program_literal(m, &q, 1), program_literal(m, &s, 2)))
                            : mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", type)),
                                       MGX_IN(program_literal(m, &h, 3)));
    return mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", swap, 2)), MGX_IN(w));
}

// x w of any number of rows; with batches both are open, and the weights are seen through a view
// whose size is, too.
static struct mgx_program *build(enum kind kind, enum mgx_type type, bool batches)
{
    static const struct mgx_dim open = {.min = 1, .max = 100}, depth = {DEPTH, DEPTH};
    const struct mgx_dim dims[] = {open, batches ? open : depth, depth};
    const struct mgx_shape in = mgx_shape_dynamic(type, batches ? 3 : 2, dims);
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in), *w = weights(m, kind, type);
    if (batches)
        w = mgx_emit(m, &mgx_op_broadcast_for_dot, NULL, MGX_IN(w, x));
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, w));
    mgx_add_return(m, &y, 1);
    return p;
}

static bool compile(struct mgx_program *p, const char *target)
{
    const struct mgx_compile_options options = {
        .fast_math = true, .threads = 1, .specialise = MGX_SPECIALISE_NEVER};
    struct mgx_diag diag = {0};
    const bool good =
        p && mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

static bool run(const struct mgx_program *p, enum mgx_type type, bool batches, int64_t rows,
                struct mgx_tensor *y)
{
    const struct mgx_shape in = mgx_shape_make(type, batches ? 3 : 2,
                                               batches ? (const int64_t[]){2, rows, DEPTH}
                                                       : (const int64_t[]){rows, DEPTH});
    struct mgx_diag diag = {0};
    struct mgx_named_tensor x = {.name = "x"};
    if (mgx_tensor_create(&x.tensor, &in, &diag) != MGX_OK)
        return false;
    mgx_tensor_generate(&x.tensor, (uint64_t)rows);
    struct mgx_run r = {.params = &x, .param_count = 1, .results = y, .result_count = 1};
    const bool good = mgx_program_run(p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    mgx_tensor_release(&x.tensor);
    return good;
}

// Twice at each of some sizes. Kernels of few bits round what they multiply to 16 bits.
static bool agrees(enum kind kind, enum mgx_type type, bool batches)
{
    static const int64_t rows[] = {1, 7, 7, 1, 40, 40};
    struct mgx_program *ref = build(kind, type, batches), *cpu = build(kind, type, batches);
    bool good = compile(ref, "ref") && compile(cpu, "cpu");
    for (int i = 0; good && i < MGX_COUNT(rows); i++) {
        struct mgx_tensor want = {.data = NULL}, got = {.data = NULL};
        good = run(ref, type, batches, rows[i], &want) && run(cpu, type, batches, rows[i], &got) &&
               program_distance(&got, &want).relative <= 1e-4;
        mgx_tensor_release(&want);
        mgx_tensor_release(&got);
    }
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

CASE(steps_for_any_size_give_what_the_reference_gives)
{
    for (int batches = 0; batches < 2; batches++) {
        CHECK(agrees(BLOCKS, MGX_FLOAT, batches));
        CHECK(agrees(WIDENED, MGX_FLOAT, batches));
    }
}

// No kernel multiplies doubles.
CASE(the_reference_reads_them_too)
{
    CHECK(agrees(BLOCKS, MGX_DOUBLE, false));
    CHECK(agrees(BLOCKS, MGX_DOUBLE, true));
}

CASE(compiling_makes_no_floats_of_them)
{
    for (enum kind kind = BLOCKS; kind <= WIDENED; kind++)
        for (int batches = 0; batches < 2; batches++) {
            struct mgx_program *p = build(kind, MGX_FLOAT, batches);
            CHECK(compile(p, "cpu"));
            for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
                CHECK(!ins->literal || mgx_shape_bytes(&ins->shape) <= ROWS * DEPTH * 2);
            mgx_program_destroy(p);
        }
}

static enum mgx_status look(void *user, const struct mgx_ins *ins, const struct mgx_tensor *value,
                            struct mgx_diag *diag)
{
    (void)diag;
    bool *seen = user;
    if (ins->op == &mgx_op_broadcast_for_dot)
        for (int64_t i = 0; i < mgx_shape_elements(&value->shape) && !*seen; i++)
            *seen = mgx_load_double(MGX_FLOAT, value->data, mgx_shape_index(&value->shape, i)) != 0;
    return MGX_OK;
}

CASE(a_trace_shows_their_values)
{
    struct mgx_program *p = build(BLOCKS, MGX_FLOAT, true);
    const struct mgx_shape in = mgx_shape_make(MGX_FLOAT, 3, (const int64_t[]){1, 2, DEPTH});
    struct mgx_named_tensor x = {.name = "x"};
    struct mgx_tensor y = {.data = NULL};
    struct mgx_diag diag = {0};
    bool seen = false;
    CHECK(compile(p, "cpu") && mgx_tensor_create(&x.tensor, &in, &diag) == MGX_OK);
    mgx_tensor_generate(&x.tensor, 1);
    struct mgx_run r = {.params = &x,
                        .param_count = 1,
                        .results = &y,
                        .result_count = 1,
                        .trace = look,
                        .trace_user = &seen};
    CHECK(mgx_program_run(p, &r, &diag) == MGX_OK);
    CHECK(seen);
    mgx_tensor_release(&x.tensor);
    mgx_tensor_release(&y);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(steps_for_any_size_give_what_the_reference_gives) ROW(the_reference_reads_them_too)
              ROW(compiling_makes_no_floats_of_them) ROW(a_trace_shows_their_values))
