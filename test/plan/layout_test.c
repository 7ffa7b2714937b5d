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

// A group with more inputs than a pass would make, the last of which is a convolution's image and
// itself one's result. Is its place among the inputs looked up inside of what is listed? (A
// sanitizer sees; without one, the results are the reference's.)
CASE(groups_of_many_inputs_are_looked_through)
{
    enum { ADDED = 11 };
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\n"
                       "x = @param:x -> float_type, {2, 8, 6, 6}, {288, 36, 6, 1}\n"
                       "v = @param:v -> float_type, {512, 8, 1, 1}, {8, 1, 1, 1}\n"
                       "w = @param:w -> float_type, {512, 512, 1, 1}, {512, 1, 1, 1}\n");
    for (int i = 0; i < ADDED; i++)
        mgx_str_printf(&text, "e%d = @param:e%d -> float_type, {2, 512, 6, 6}, {18432, 36, 6, 1}\n",
                       i, i);
    mgx_str_put(&text, "@1 = convolution(x,v)\n@2 = relu(@1)\n@3 = group[tag=epilogue](");
    for (int i = 0; i < ADDED; i++)
        mgx_str_printf(&text, "e%d,", i);
    mgx_str_put(&text, "w,@2), [body]\n@4 = @return(@3)\nmodule: \"body\"\n");
    mgx_str_put(&text, "body:x = @param:x -> float_type, {2, 512, 6, 6}, {18432, 36, 6, 1}\n"
                       "body:w = @param:w -> float_type, {512, 512, 1, 1}, {512, 1, 1, 1}\n");
    for (int i = ADDED; i-- > 0;) // the last made comes first
        mgx_str_printf(&text,
                       "body:y%d = @param:y%d -> float_type, {2, 512, 6, 6}, {18432, 36, 6, 1}\n",
                       i, i);
    mgx_str_put(&text, "body:@0 = convolution(body:x,body:w)\n");
    for (int i = 0; i < ADDED; i++)
        mgx_str_printf(&text, "body:@%d = add(body:@%d,body:y%d)\n", i + 1, i, i);
    mgx_str_printf(&text, "body:@%d = @return(body:@%d)\n", ADDED + 1, ADDED);
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = program_compile(mgx_str_text(&text), "ref", 0),
                       *cpu = program_compile(mgx_str_text(&text), "cpu", 0);
    CHECK(ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual));
    CHECK(program_distance(&actual, &expected).relative <= 1e-5); // sums of 512 products
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    mgx_str_fini(&text);
}

// An image's patches behind a class token: the convolution writes them where the concat wants them,
// though a reshape and a transpose lie between. Two images leave gaps: there they are copied.
static bool patches_agree(int batch, int copies)
{
    struct mgx_str text = {0}, plan = {0};
    mgx_str_printf(&text,
                   "module: \"main\"\n"
                   "x = @param:x -> float_type, {%d, 3, 8, 8}, {192, 64, 8, 1}\n"
                   "w = @param:w -> float_type, {16, 3, 2, 2}, {12, 4, 2, 1}\n"
                   "t = @param:t -> float_type, {%d, 1, 16}, {16, 16, 1}\n"
                   "@1 = convolution[stride={2, 2}](x,w)\n"
                   "@2 = relu(@1)\n"
                   "@3 = reshape[dims={%d, 16, 16}](@2)\n"
                   "@4 = transpose[permutation={0, 2, 1}](@3)\n"
                   "@5 = concat[axis=1](t,@4)\n"
                   "@6 = softmax[axis=2](@5)\n"
                   "@7 = @return(@6)\n",
                   batch, batch, batch);
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = program_compile(mgx_str_text(&text), "ref", 0),
                       *cpu = program_compile(mgx_str_text(&text), "cpu", 1);
    bool good = ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual) &&
                program_distance(&actual, &expected).relative <= 1e-5; // sums of 12 products
    int found = 0;
    if (good)
        mgx_target_cpu.explain(cpu, &plan);
    for (const char *at = mgx_str_text(&plan); (at = strstr(at, " concat: ")); at++)
        found++;
    good = good && found == copies;
    if (!good)
        printf("%d copies\n%s", found, mgx_str_text(&plan));
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    mgx_str_fini(&plan);
    mgx_str_fini(&text);
    return good;
}

CASE(a_view_is_computed_in_its_place_of_a_concat)
{
    CHECK(patches_agree(1, 1));
    CHECK(patches_agree(2, 2));
}

TEST_MAIN(ROW(a_view_is_computed_in_its_place_of_a_concat)
              ROW(pixels_that_convolutions_alone_read_lie_apart)
                  ROW(pixels_that_others_read_lie_side_by_side)
                      ROW(groups_of_many_inputs_are_looked_through))
