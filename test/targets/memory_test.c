// SPDX-License-Identifier: MIT
// Compiling and running with every allocation failing in turn: MGX_NO_MEMORY, nothing left over, no
// crash; and a steady run of the cpu target allocates nothing at all.
#include "test_malloc.h"

#include "check.h"
#include "op/op.h"
#include "targets/target.h"

static const char network[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {1, 3, 8, 8}, {192, 64, 8, 1}\n"
    "@1 = @literal{1, 2, 3, 4, 5, 6} -> float_type, {2, 3, 1, 1}, {3, 1, 1, 1}\n"
    "@2 = @literal{1, 2} -> float_type, {2}, {1}\n"
    "@3 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](x,@1)\n"
    "@4 = broadcast[axis=1,out_lens={1, 2, 8, 8}](@2)\n"
    "@5 = add(@3,@4)\n@6 = relu(@5)\n@7 = tanh(@6)\n@8 = concat[axis=1](@6,@7)\n"
    "@9 = pooling[mode=max,padding={0, 0},stride={2, 2},lengths={2, 2}](@8)\n"
    "@10 = reshape[dims={1, 64}](@9)\n@11 = softmax[axis=1](@10)\n@12 = @return(@11)\n";

static enum mgx_status build(const char *target, struct mgx_program **out, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.threads = 1, .fast_math = true};
    TRY(mgx_program_parse(out, &mgx_ops, network, strlen(network), diag));
    return mgx_program_compile(*out, mgx_target_find(target), &options, diag);
}

static enum mgx_status run(const struct mgx_program *p, float *pixels, struct mgx_diag *diag)
{
    const int64_t lens[] = {1, 3, 8, 8};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 4, lens);
    const struct mgx_named_tensor param = {"x", mgx_tensor_borrow(&shape, pixels)};
    struct mgx_tensor result = {.data = NULL};
    struct mgx_run r = {.params = &param, .param_count = 1, .results = &result, .result_count = 1};
    TRY(mgx_program_run(p, &r, diag));
    mgx_tensor_release(&result);
    return MGX_OK;
}

// A program whose compilation failed is what it was, and compiles.
static bool is_intact(struct mgx_program *p, const char *target)
{
    struct mgx_diag diag = {0};
    struct mgx_program *fresh = NULL;
    if (p->executable)
        return true; // it was a run that failed
    struct mgx_str is = {0}, was = {0};
    mgx_program_print(&is, p);
    if (mgx_program_parse(&fresh, &mgx_ops, network, strlen(network), &diag) == MGX_OK)
        mgx_program_print(&was, fresh);
    bool good = strcmp(mgx_str_text(&is), mgx_str_text(&was)) == 0 &&
                mgx_program_verify(p, &diag) == MGX_OK &&
                mgx_program_compile(p, mgx_target_find(target), NULL, &diag) == MGX_OK;
    if (!good)
        printf("%s\n%s\n", diag.text, mgx_str_text(&is));
    mgx_program_destroy(fresh);
    mgx_str_fini(&is);
    mgx_str_fini(&was);
    return good;
}

static bool survives(const char *target)
{
    static float pixels[3 * 8 * 8];
    bool again = true;
    for (long n = 0; again; n++) {
        struct mgx_diag diag = {0};
        struct mgx_program *p = NULL;
        const long live = test_malloc_live();
        test_malloc_fail_after(n);
        enum mgx_status status = build(target, &p, &diag);
        if (status == MGX_OK)
            status = run(p, pixels, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        if (p && !is_intact(p, target))
            return false;
        mgx_program_destroy(p);
        if (!(status == MGX_OK || (again && status == MGX_NO_MEMORY)) ||
            test_malloc_live() != live) {
            printf("%s, allocation %ld: status %s, %ld blocks left: %s\n", target, n,
                   mgx_status_text(status), test_malloc_live() - live, diag.text);
            return false;
        }
    }
    return true;
}

CASE(compiling_and_running_without_memory)
{
    CHECK(survives("ref"));
    CHECK(survives("cpu"));
}

CASE(a_steady_run_allocates_nothing)
{
    static float pixels[3 * 8 * 8];
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    CHECK_OK(build("cpu", &p, &diag), diag);
    CHECK_OK(run(p, pixels, &diag), diag);
    test_malloc_fail_after(0); // the next allocation fails, if there is one
    const enum mgx_status status = run(p, pixels, &diag);
    const bool failed = test_malloc_failed();
    test_malloc_fail_after(-1);
    mgx_program_destroy(p);
    CHECK_OK(status, diag);
    CHECK(!failed);
}

// p0 + p1 + ... of {2} each, given in reverse, behind a stranger and before a second p0.
enum { MANY = 40 };

static enum mgx_status build_many(const char *target, struct mgx_program **out,
                                  struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\n");
    for (int i = 0; i < MANY; i++)
        mgx_str_printf(&text, "p%d = @param:p%d -> float_type, {2}, {1}\n", i, i);
    for (int i = 1; i < MANY; i++)
        mgx_str_printf(&text, "@%d = add(%s%d,p%d)\n", MANY + i, i == 1 ? "p" : "@",
                       i == 1 ? 0 : MANY + i - 1, i);
    mgx_str_printf(&text, "@%d = @return(@%d)\n", 2 * MANY, 2 * MANY - 1);
    const struct mgx_compile_options options = {.threads = 1, .fast_math = true};
    enum mgx_status status = mgx_program_parse(out, &mgx_ops, mgx_str_text(&text), text.size, diag);
    mgx_str_fini(&text);
    return status == MGX_OK ? mgx_program_compile(*out, mgx_target_find(target), &options, diag)
                            : status;
}

static enum mgx_status run_many(const struct mgx_program *p, float sum[2], struct mgx_diag *diag)
{
    static char names[MANY][8];
    static float values[MANY + 1][2];
    static struct mgx_named_tensor params[MANY + 2];
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 2);
    struct mgx_tensor result = {.data = NULL};
    for (int i = 0; i <= MANY; i++) {
        values[i][0] = (float)(i + 1);
        values[i][1] = (float)(i * i);
    }
    params[0] = (struct mgx_named_tensor){"stranger", mgx_tensor_borrow(&shape, values[MANY])};
    for (int i = 0; i < MANY; i++) {
        names[i][0] = 'p';
        names[i][1] = (char)(i < 10 ? '0' + i : '0' + i / 10);
        names[i][2] = (char)(i < 10 ? '\0' : '0' + i % 10);
        params[MANY - i] =
            (struct mgx_named_tensor){names[i], mgx_tensor_borrow(&shape, values[i])};
    }
    params[MANY + 1] = (struct mgx_named_tensor){"p0", mgx_tensor_borrow(&shape, values[MANY])};
    struct mgx_run r = {
        .params = params, .param_count = MANY + 2, .results = &result, .result_count = 1};
    TRY(mgx_program_run(p, &r, diag));
    memcpy(sum, result.data, 2 * sizeof *sum);
    mgx_tensor_release(&result);
    return MGX_OK;
}

CASE(parameters_are_found_by_name_whatever_their_number)
{
    for (int k = 0; k < 2; k++) {
        const char *target = k ? "cpu" : "ref";
        struct mgx_diag diag = {0};
        struct mgx_program *p = NULL;
        float sum[2];
        CHECK_OK(build_many(target, &p, &diag), diag);
        CHECK_OK(run_many(p, sum, &diag), diag);
        CHECK_NEAR(sum[0], MANY * (MANY + 1) / 2, 0);
        CHECK_NEAR(sum[1], (MANY - 1) * MANY * (2 * MANY - 1) / 6, 0);
        test_malloc_fail_after(k ? 0 : -1); // of cpu the second run makes nothing
        const enum mgx_status status = run_many(p, sum, &diag);
        const bool failed = test_malloc_failed();
        test_malloc_fail_after(-1);
        mgx_program_destroy(p);
        CHECK_OK(status, diag);
        CHECK(!failed);
        CHECK_NEAR(sum[0], MANY * (MANY + 1) / 2, 0);
    }
}

TEST_MAIN(ROW(compiling_and_running_without_memory) ROW(a_steady_run_allocates_nothing)
              ROW(parameters_are_found_by_name_whatever_their_number))
