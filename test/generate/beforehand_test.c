// SPDX-License-Identifier: MIT
// What a program computes of given inputs alone: told beforehand it means the same, and nothing
// else is taken out.
#include "generate/beforehand.h"

#include "check.h"
#include "op/op.h"
#include "pass/pass.h"
#include "targets/target.h"

static const char *const given[] = {"g", "h"};

static struct mgx_program *parse(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    return p;
}

static bool has(const struct mgx_program *p, const char *parameter)
{
    return mgx_find_parameter(mgx_program_main(p), parameter) != NULL;
}

static int count_of(const struct mgx_program *p, const struct mgx_op *op)
{
    int count = 0;
    MGX_EACH (ins, mgx_program_main(p))
        count += ins->op == op;
    return count;
}

// Result 0 for parameters that are all {2, 2}, in this order.
static void run(const struct mgx_program *p, const char *const *names, const float (*values)[4],
                int count, float *out)
{
    struct mgx_diag diag;
    const int64_t lens[2] = {2, 2};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, lens);
    struct mgx_named_tensor params[4];
    struct mgx_tensor results[2] = {{.data = NULL}};
    for (int i = 0; i < count; i++)
        params[i] = (struct mgx_named_tensor){names[i], mgx_tensor_borrow(&shape, values[i])};
    struct mgx_run r = {.params = params,
                        .param_count = count,
                        .results = results,
                        .result_count = mgx_module_result_count(mgx_program_main(p))};
    mgx_diag_clear(&diag);
    if (mgx_program_run(p, &r, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    memcpy(out, results[0].data, sizeof values[0]);
    for (int i = 0; i < r.result_count; i++)
        mgx_tensor_release(&results[i]);
}

CASE(work_on_given_inputs_is_done_beforehand)
{
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "x = @param:x -> float_type, {2, 2}, {2, 1}\n"
                                  "g = @param:g -> float_type, {2, 2}, {2, 1}\n"
                                  "w = @literal{1, -2, 3, 0.5} -> float_type, {2, 2}, {2, 1}\n"
                                  "k = dot(g,w)\n"
                                  "t = transpose[permutation={1, 0}](k)\n"
                                  "y = dot(x,t)\n"
                                  "z = @return(y)\n");
    static const char *const both[] = {"x", "g"}, *const later[] = {"x", "told:0"},
                             *const first[] = {"g"};
    static const float values[2][4] = {{1, 2, 3, 4}, {-1, 0.5, 2, 7}};
    struct mgx_program *before = NULL;
    struct mgx_diag diag;
    float want[4], got[4], told[2][4];
    int count;
    mgx_diag_clear(&diag);
    run(p, both, values, 2, want);
    CHECK(mgx_take_beforehand(p, given, 2, &before, &count, &diag) == MGX_OK);
    CHECK(count == 1 && before && has(p, "told:0"));
    CHECK(mgx_module_result_count(mgx_program_main(p)) == 1);
    static const struct mgx_pass *const tidy[] = {&mgx_pass_dead_code_elimination, NULL};
    CHECK(mgx_run_passes(p, tidy, NULL, &diag) == MGX_OK);
    CHECK(mgx_run_passes(before, tidy, NULL, &diag) == MGX_OK);
    CHECK(count_of(p, &mgx_op_dot) == 1 && count_of(before, &mgx_op_dot) == 1);
    mgx_remove(mgx_find_parameter(mgx_program_main(p), "g"));
    mgx_remove(mgx_find_parameter(mgx_program_main(before), "x"));
    memcpy(told[0], values[0], sizeof told[0]);
    for (int i = 0; i < 3; i++) {
        run(before, first, &values[1], 1, told[1]);
        run(p, later, told, 2, got);
        CHECK(memcmp(got, want, sizeof want) == 0);
    }
    mgx_program_destroy(before);
    mgx_program_destroy(p);
}

CASE(views_lengths_and_what_depends_on_more_stay)
{
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "x = @param:x -> float_type, {2, 2}, {2, 1}\n"
                                  "g = @param:g -> dynamic, float_type, {2, s[0..]}\n"
                                  "h = @param:h -> float_type, {2, 2}, {2, 1}\n"
                                  "t = transpose[permutation={1, 0}](g)\n"
                                  "d = dimensions_of[start=0,end=2](g)\n"
                                  "m = add(x,h)\n"
                                  "z = @return(t,d,m)\n");
    struct mgx_program *before = NULL;
    struct mgx_diag diag;
    int count;
    mgx_diag_clear(&diag);
    CHECK(mgx_take_beforehand(p, given, 2, &before, &count, &diag) == MGX_OK);
    CHECK(count == 0 && !before && has(p, "g") && has(p, "h") && !has(p, "told:0"));
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(work_on_given_inputs_is_done_beforehand)
              ROW(views_lengths_and_what_depends_on_more_stay))
