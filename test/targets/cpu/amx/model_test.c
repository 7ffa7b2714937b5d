// SPDX-License-Identifier: MIT
// A small network, quantised to 8 bits and in bfloat16, compiled for AMX and run on the tile unit in
// software: against the reference, and against what AVX-512 makes of it, which is the same bits for
// bytes. And tuning finds out that tiles are slow here.
#include "quant/quant.h"
#include "targets/cpu/amx/emulator.h"
#include "targets/cpu/machine/cpuid.h"
#include "targets/cpu/program.h"

static const char MODEL[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {2, 16, 14, 14}, {3136, 196, 14, 1}\n"
    "w0 = @param:w0 -> float_type, {40, 16, 3, 3}, {144, 9, 3, 1}\n"
    "w1 = @param:w1 -> float_type, {40, 40, 3, 3}, {360, 9, 3, 1}\n"
    "w2 = @param:w2 -> float_type, {72, 40, 1, 1}, {40, 1, 1, 1}\n"
    "w3 = @param:w3 -> float_type, {72, 48}, {48, 1}\n"
    "@0 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1}](x,w0)\n"
    "@1 = relu(@0)\n"
    "@2 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1}](@1,w1)\n"
    "@3 = add(@2,@1)\n"
    "@4 = relu(@3)\n"
    "@5 = pooling[mode=max,padding={0, 0},stride={2, 2},lengths={2, 2}](@4)\n"
    "@6 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1}](@5,w2)\n"
    "@7 = relu(@6)\n"
    "@8 = transpose[permutation={0, 2, 3, 1}](@7)\n"
    "@9 = reshape[dims={98, 72}](@8)\n"
    "@10 = dot(@9,w3)\n"
    "@11 = @return(@10)\n";

enum { WEIGHTS = 4 };

// Weights become literals, small enough for values to stay of one size.
static struct mgx_program *build(void)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, MODEL, strlen(MODEL), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        return NULL;
    }
    for (int i = 0; i < WEIGHTS; i++) {
        const char name[] = {'w', (char)('0' + i), 0};
        struct mgx_ins *w = mgx_find_parameter(mgx_program_main(p), name);
        mgx_replace_uses(w, program_literal(mgx_program_main(p), &w->shape, (uint64_t)i + 9));
        mgx_remove(w);
    }
    return p;
}

static enum mgx_status compile_for_samples(void *user, struct mgx_program *p, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.threads = 1};
    (void)user;
    return mgx_program_compile(p, mgx_target_find("ref"), &options, diag);
}

static enum mgx_status run_sample(void *user, const struct mgx_program *p, int sample,
                                  struct mgx_tensor *results, int count, struct mgx_diag *diag)
{
    (void)user, (void)sample, (void)count;
    return program_run(p, results) ? MGX_OK : mgx_fail(diag, MGX_INVALID, "it did not run");
}

static bool narrow(struct mgx_program *p, bool bytes)
{
    const struct mgx_quant_runner runner = {
        .samples = 1, .compile = compile_for_samples, .run = run_sample};
    const struct mgx_quant_options options = {
        .type = MGX_INT8, .asymmetric = true, .percentile = 99.99, .budget = -1};
    struct mgx_diag diag = {0};
    const enum mgx_status status = bytes ? mgx_quantize(p, &options, &runner, NULL, NULL, &diag)
                                         : mgx_quantize_float(p, MGX_BF16, NULL, 0, &diag);
    if (status != MGX_OK)
        printf("%s\n", diag.text);
    return status == MGX_OK;
}

// Results of the model, and how many products on tiles they took.
static bool result(bool bytes, const char *target, const char *isa, bool tune,
                   struct mgx_tensor *out, int64_t *products, struct mgx_str *plan)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = build();
    const struct mgx_compile_options options = {
        .threads = 2, .exhaustive_tune = tune, .own = MGX_SETTINGS({"isa", isa})};
    bool good = p && narrow(p, bytes) &&
                mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK;
    const int64_t before = amx_counts().products;
    good = good && program_run(p, out);
    *products = amx_counts().products - before;
    if (!good)
        printf("%s\n", diag.text);
    else if (plan)
        mgx_target_cpu.explain(p, plan);
    mgx_program_destroy(p);
    return good;
}

static void check_model(bool bytes, double most, double most_apart)
{
    struct mgx_tensor expected = {.data = NULL}, tiles = {.data = NULL}, vectors = {.data = NULL};
    struct mgx_str plan = {0};
    int64_t products, none;
    CHECK(result(bytes, "ref", NULL, false, &expected, &none, NULL));
    CHECK(result(bytes, "cpu", "native", false, &tiles, &products, &plan));
    CHECK(products > 0 && amx_counts().in_use == 0);
    CHECK(strstr(mgx_str_text(&plan), "isa: amx"));
    CHECK(!strstr(mgx_str_text(&plan), ": ref ("));
    CHECK(result(bytes, "cpu", "native-amx_tile", false, &vectors, &none, NULL));
    CHECK_INT(none, 0);
    const double from_reference = program_distance(&tiles, &expected).relative,
                 apart = program_distance(&tiles, &vectors).relative;
    if (!(from_reference <= most && apart <= most_apart))
        CHECK_FAIL("%g from the reference, %g from AVX-512\n%s", from_reference, apart,
                   mgx_str_text(&plan));
    mgx_str_fini(&plan);
    mgx_tensor_release(&expected);
    mgx_tensor_release(&tiles);
    mgx_tensor_release(&vectors);
}

// A byte that is rounded the other way is a step of some hundred, in a few of many values.
CASE(a_model_of_bytes_gives_what_avx512_gives)
{
    check_model(true, 0x1p-8, 0);
}

// Four roundings to bf16 in a row; the other order of sums turns one here and there.
CASE(a_model_of_bf16_is_the_references)
{
    check_model(false, 4 * 0x1p-8, 0x1p-8);
}

// On this unit a product is a thousand times slower than it is; whoever measures leaves it.
CASE(tuning_may_leave_the_tiles)
{
    struct mgx_tensor tuned = {.data = NULL};
    struct mgx_str plan = {0};
    int64_t products;
    CHECK(result(true, "cpu", "native", true, &tuned, &products, &plan));
    CHECK(strstr(mgx_str_text(&plan), "isa: amx"));
    CHECK(strstr(mgx_str_text(&plan), "s8_gemm_14x32__avx512_vnni") &&
          !strstr(mgx_str_text(&plan), "s8_gemm_32x32"));
    mgx_str_fini(&plan);
    mgx_tensor_release(&tuned);
}

int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    static const struct check_case cases[] = {ROW(a_model_of_bytes_gives_what_avx512_gives) //
                                              ROW(a_model_of_bf16_is_the_references)        //
                                              ROW(tuning_may_leave_the_tiles)               //
                                              {NULL, NULL}};
    if (!mgx_isa_holds(mgx_cpu()->isa, MGX_ISA_AMX)) {
        printf("skipped: this machine has no AVX-512 with BF16\n");
        return SKIPPED;
    }
    return check_run(cases, argc, argv);
}
