// SPDX-License-Identifier: MIT
// The order of steps: a program written in layers runs branch by branch, in less memory, with the
// results it had; one that is in good order stays as it is.
#include "plan/plan.h"
#include "targets/cpu/program.h"

// Four products of 16 KiB, of which only one reduction each is needed later.
#define PARAM(n) n " = @param:" n " -> float_type, {64, 64}, {64, 1}\n"
#define PARAMS "module: \"main\"\n" PARAM("a") PARAM("b") PARAM("c") PARAM("d")
#define DOT(to, x, y) "@" to " = dot(" x "," y ")\n"
#define SUM(to, x) "@" to " = reduce_sum[axes={1}](@" x ")\n"
#define TAIL "@8 = concat[axis=1](@4,@5,@6,@7)\n@9 = @return(@8)\n"

static const char LAYERS[] = PARAMS DOT("0", "a", "b") DOT("1", "b", "c") DOT("2", "c", "d")
    DOT("3", "d", "a") SUM("4", "0") SUM("5", "1") SUM("6", "2") SUM("7", "3") TAIL;

static const char BRANCHES[] = PARAMS DOT("0", "a", "b") SUM("4", "0") DOT("1", "b", "c")
    SUM("5", "1") DOT("2", "c", "d") SUM("6", "2") DOT("3", "d", "a") SUM("7", "3") TAIL;

enum { PRODUCT = 64 * 64 * 4, SIDE = 64 };

static bool run(const struct mgx_program *p, float *data, float out[SIDE * 4])
{
    const int64_t lens[] = {SIDE, SIDE};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, lens);
    struct mgx_named_tensor params[4];
    for (int i = 0; i < 4; i++)
        params[i] =
            (struct mgx_named_tensor){(const char *[]){"a", "b", "c", "d"}[i],
                                      mgx_tensor_borrow(&shape, data + (ptrdiff_t)i * SIDE * SIDE)};
    struct mgx_tensor result = {.data = NULL};
    struct mgx_run r = {.params = params, .param_count = 4, .results = &result, .result_count = 1};
    struct mgx_diag diag = {0};
    if (!p || mgx_program_run(p, &r, &diag) != MGX_OK)
        return false;
    memcpy(out, result.data, sizeof(float) * SIDE * 4);
    mgx_tensor_release(&result);
    return true;
}

static const struct mgx_plan *plan_of(const struct mgx_program *p)
{
    return (const struct mgx_plan *)p->executable;
}

CASE(layers_become_branches)
{
    struct mgx_program *p = program_compile(LAYERS, "cpu", 1);
    const struct mgx_plan *plan = plan_of(p);
    CHECK(plan->given_peak_bytes >= 4 * PRODUCT);
    CHECK(plan->order_peak_bytes < 2 * PRODUCT);
    CHECK(plan->block[MGX_PLAN_HOST].lower_bound_bytes <
          2 * PRODUCT); // what the planner of memory finds
    mgx_program_destroy(p);
}

CASE(a_good_order_stays)
{
    struct mgx_program *p = program_compile(BRANCHES, "cpu", 1);
    const struct mgx_plan *plan = plan_of(p);
    CHECK(plan->given_peak_bytes == plan->order_peak_bytes);
    for (int s = 1; s < plan->step_count; s++)
        CHECK(plan->steps[s - 1].ins->index < plan->steps[s].ins->index);
    mgx_program_destroy(p);
}

CASE(results_do_not_depend_on_the_order)
{
    static float data[4 * SIDE * SIDE], ours[SIDE * 4], other[SIDE * 4], ref[SIDE * 4];
    for (int i = 0; i < 4 * SIDE * SIDE; i++)
        data[i] = (float)(i * 37 % 101 - 50) / 16.0f;
    struct mgx_program *layers = program_compile(LAYERS, "cpu", 1);
    struct mgx_program *branches = program_compile(BRANCHES, "cpu", 1);
    struct mgx_program *oracle = program_compile(LAYERS, "ref", 1);
    CHECK(run(layers, data, ours) && run(branches, data, other) && run(oracle, data, ref));
    CHECK(memcmp(ours, other, sizeof ours) == 0);
    for (int i = 0; i < SIDE * 4; i++) // sums of 64 products of exact sixteenths are exact
        CHECK(ours[i] == ref[i]);
    mgx_program_destroy(layers);
    mgx_program_destroy(branches);
    mgx_program_destroy(oracle);
}

// The first product is read as a slice of the concat too, maybe behind the second one's slice.
static const char SLICES[] = PARAMS DOT("0", "a", "b") DOT("1", "@0", "d")
    DOT("2", "c", "d") "@3 = concat[axis=0](@0,@2)\n" SUM("4", "3")
        SUM("5", "1") "@6 = concat[axis=0](@4,@5,@5)\n@7 = @return(@6)\n";

CASE(a_slice_is_read_behind_the_writer_of_another)
{
    static float data[4 * SIDE * SIDE], ours[SIDE * 4], ref[SIDE * 4];
    for (int i = 0; i < 4 * SIDE * SIDE; i++)
        data[i] = (float)(i * 53 % 9 - 4) / 4.0f;
    struct mgx_program *oracle = program_compile(SLICES, "ref", 1);
    CHECK(run(oracle, data, ref));
    for (int round = 0; round < 3; round++) {
        struct mgx_program *p = program_compile(SLICES, "cpu", 1);
        CHECK(run(p, data, ours));
        for (int i = 0; i < SIDE * 4; i++)
            CHECK(ours[i] == ref[i]);
        mgx_program_destroy(p);
    }
    mgx_program_destroy(oracle);
}

TEST_MAIN(ROW(layers_become_branches) ROW(a_good_order_stays)
              ROW(results_do_not_depend_on_the_order)
                  ROW(a_slice_is_read_behind_the_writer_of_another))
