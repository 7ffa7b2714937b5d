// SPDX-License-Identifier: MIT
// Results whose sizes a run finds out: each keeps the bytes it shows alive, whoever they belong to,
// and a run that fails while results are handed out keeps none of them.
#include "check.h"
#include "op/op.h"
#include "targets/target.h"
#include "test_malloc.h"

// One branch's first result shows the parameter, the other's a constant, the second result is
// another result; which it is the run tells, as the lengths differ.
static const char SHOWN[] = "module: \"main\"\n"
                            "c = @param:c -> bool_type, {1}, {1}\n"
                            "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                            "@0 = @literal{7, 8, 9} -> float_type, {1, 3}, {3, 1}\n"
                            "@1 = exp(x)\n"
                            "@2 = if(c), [yes, no]\n"
                            "@3 = get_tuple_elem[index=0](@2)\n"
                            "@4 = get_tuple_elem[index=1](@2)\n"
                            "@5 = @return(@1,@3,@4)\n"
                            "module: \"yes\"\n"
                            "yes:@0 = slice[axes={0},starts={1},ends={2}](@1)\n"
                            "yes:@1 = @return(x,yes:@0)\n"
                            "module: \"no\"\n"
                            "no:@0 = @return(@0,@1)\n";
// Numbers of late sizes, then texts, whose bytes are copied out.
static const char TEXTS[] = "module: \"main\"\n"
                            "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                            "@0 = nonzero(x)\n"
                            "@1 = convert[target_type=%d](@0)\n"
                            "@2 = relu(x)\n"
                            "@3 = @return(@2,@0,@1,@0)\n";

enum { RESULTS = 4, ELEMENTS = 6 };

static struct mgx_program *compile(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

// x is 0.5 and up; the parameters that the program has are given, and given up afterwards, their
// bytes overwritten, unless a result has a share in them.
static enum mgx_status run(const struct mgx_program *p, bool choice, struct mgx_tensor *results,
                           int count, struct mgx_diag *diag)
{
    struct mgx_named_tensor named[2] = {{.name = "c"}, {.name = "x"}};
    const struct mgx_shape c = mgx_shape_make(MGX_BOOL, 1, (int64_t[]){1});
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){2, 3});
    const bool has_choice = count == 3;
    struct mgx_run call = {.params = named + !has_choice,
                           .param_count = 1 + has_choice,
                           .results = results,
                           .result_count = count};
    enum mgx_status status = mgx_tensor_create(&named[0].tensor, &c, diag);
    if (status == MGX_OK)
        status = mgx_tensor_create(&named[1].tensor, &x, diag);
    if (status == MGX_OK) {
        *(bool *)named[0].tensor.data = choice;
        for (int i = 0; i < ELEMENTS; i++)
            ((float *)named[1].tensor.data)[i] = 0.5f + (float)i;
        status = mgx_program_run(p, &call, diag);
    }
    mgx_tensor_release(&named[0].tensor);
    mgx_tensor_release(&named[1].tensor);
    return status;
}

static void release(struct mgx_tensor *results)
{
    for (int i = 0; i < RESULTS; i++)
        mgx_tensor_release(&results[i]);
}

static bool holds(const struct mgx_tensor *t, int64_t count, double first, bool exponential)
{
    bool good = t->storage && mgx_shape_elements(&t->shape) == count;
    for (int64_t i = 0; i < count && good; i++) {
        const double v = first + (double)i, want = exponential ? exp(v) : v;
        good = fabs(mgx_load_double(MGX_FLOAT, t->data, mgx_shape_index(&t->shape, i)) - want) <=
               1e-5 * want;
    }
    return good;
}

CASE(late_results_keep_what_they_show)
{
    struct mgx_tensor yes[RESULTS] = {{.data = NULL}}, no[RESULTS] = {{.data = NULL}};
    struct mgx_diag diag = {0};
    struct mgx_program *p = compile(SHOWN);
    CHECK(p != NULL);
    CHECK_OK(run(p, true, yes, 3, &diag), diag);
    CHECK_OK(run(p, false, no, 3, &diag), diag);
    mgx_tensor_release(&yes[0]); // the result that others show parts of
    mgx_tensor_release(&no[0]);
    mgx_program_destroy(p);
    CHECK(holds(&yes[1], 6, 0.5, false));
    CHECK(holds(&yes[2], 3, 3.5, true));
    CHECK(holds(&no[1], 3, 7, false));
    CHECK(holds(&no[2], 6, 0.5, true));
    release(yes);
    release(no);
}

CASE(a_failure_while_results_are_handed_out_loses_none)
{
    char text[sizeof TEXTS + 8];
    snprintf(text, sizeof text, TEXTS, MGX_STRING);
    struct mgx_program *p = compile(text);
    CHECK(p != NULL);
    struct mgx_tensor results[RESULTS] = {{.data = NULL}};
    struct mgx_diag diag = {0};
    CHECK_OK(run(p, false, results, RESULTS, &diag), diag); // what the program keeps is there now
    release(results);
    const long before = test_malloc_live();
    bool failed = true;
    for (int n = 0; failed && n < 1000; n++) {
        memset(results, 0, sizeof results);
        mgx_diag_clear(&diag);
        test_malloc_fail_after(n);
        const enum mgx_status status = run(p, false, results, RESULTS, &diag);
        failed = test_malloc_failed();
        test_malloc_fail_after(-1);
        CHECK_INT(status, failed ? MGX_NO_MEMORY : MGX_OK);
        if (!failed)
            release(results);
        CHECK_INT(test_malloc_live(), before);
    }
    CHECK(!failed);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(late_results_keep_what_they_show)
              ROW(a_failure_while_results_are_handed_out_loses_none))
