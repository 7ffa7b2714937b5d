// SPDX-License-Identifier: MIT
// Scores of the last tokens alone: the same numbers as without, and programs of another look stay
// what they are.
#include "generate/last.h"

#include "base/size.h"
#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { TOKENS = 20, WORDS = 3, FEW = 16 };

static const char head[] =
    "module: \"main\"\n"
    "ids = @param:ids -> dynamic, int64_type, {b[0..], t[0..]}\n"
    "table = @literal{1, 0, 2, -1, 0.5, 1, -2, 1, -1, 2, 1, 0, 0.25, -1, 0.75, 2} -> float_type, "
    "{4, 4}, {4, 1}\n"
    "w = @literal{1, 2, 3, 4, 5, 6, -1, -2, -3, 0.5, 1, 0} -> float_type, {4, 3}, {3, 1}\n"
    "bias = @literal{0.25, -0.5, 4} -> float_type, {3}, {1}\n"
    "x = gather[axis=0](table,ids)\n"
    "l = broadcast_for_dot(x,w)\n"
    "r = broadcast_for_dot(w,x)\n"
    "d = dot(l,r)\n"
    "bb = multibroadcast[out_lens={},out_dyn_dims={}](bias,d)\n";

static struct mgx_program *parse(const char *tail)
{
    char text[4096];
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    snprintf(text, sizeof text, "%s%s", head, tail);
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    return p;
}

// The last FEW rows of what the program gives for so many tokens; how many rows it gave.
static int64_t run(const struct mgx_program *p, int64_t tokens, float *out)
{
    int64_t ids[TOKENS];
    struct mgx_diag diag;
    const int64_t lens[2] = {1, tokens};
    const struct mgx_shape shape = mgx_shape_make(MGX_INT64, 2, lens);
    const struct mgx_named_tensor param = {"ids", mgx_tensor_borrow(&shape, ids)};
    struct mgx_tensor results[2] = {{.data = NULL}};
    struct mgx_run r = {.params = &param, .param_count = 1, .results = results};
    for (int i = 0; i < tokens; i++)
        ids[i] = i * i % 4;
    mgx_diag_clear(&diag);
    r.result_count = mgx_module_result_count(mgx_program_main(p));
    if (mgx_program_run(p, &r, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    const int64_t rows = results[0].shape.lens[1], few = mgx_min_i64(rows, FEW);
    memcpy(out, (float *)results[0].data + (rows - few) * WORDS,
           (size_t)(few * WORDS) * sizeof *out);
    for (int i = 0; i < r.result_count; i++)
        mgx_tensor_release(&results[i]);
    return rows;
}

CASE(the_last_scores_are_what_they_were)
{
    static const char *const tails[] = {
        "z = @return(d)\n", "y = add(d,bb)\nz = @return(y)\n",
        "y = add(d,bb)\nt = tanh(y)\nu = mul(bb,t)\nz = @return(u,x)\n"};
    for (int i = 0; i < MGX_COUNT(tails); i++) {
        struct mgx_program *whole = parse(tails[i]), *last = parse(tails[i]);
        struct mgx_diag diag;
        bool done = false;
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_keep_last_scores(last, 0, FEW, &done, &diag), diag);
        CHECK(done);
        CHECK_OK(mgx_program_verify(last, &diag), diag);
        CHECK_OK(mgx_program_compile(last, mgx_target_find("cpu"), NULL, &diag), diag);
        for (int64_t tokens = 1; tokens <= TOKENS; tokens++) {
            float expected[FEW * WORDS] = {0}, got[FEW * WORDS] = {0};
            CHECK_INT(run(whole, tokens, expected), tokens);
            CHECK_INT(run(last, tokens, got), mgx_min_i64(tokens, FEW));
            for (int k = 0; k < FEW * WORDS; k++)
                CHECK_NEAR(got[k], expected[k], 1e-5);
        }
        mgx_program_destroy(whole);
        mgx_program_destroy(last);
    }
}

CASE(other_programs_stay_as_they_are)
{
    static const char *const tails[] = {
        "z = @return(x)\n",                                        // no product
        "y = add(d,bb)\ns = softmax[axis=1](y)\nz = @return(s)\n", // over the tokens
        "y = mul(d,d)\nu = add(y,d)\nz = @return(u)\n",            // the product is read twice
        "y = add(d,bb)\nz = @return(y,d)\n"};                      // and is a result itself
    for (int i = 0; i < MGX_COUNT(tails); i++) {
        struct mgx_program *p = parse(tails[i]), *as_it_was = parse(tails[i]);
        struct mgx_diag diag;
        bool done = true;
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_keep_last_scores(p, 0, FEW, &done, &diag), diag);
        CHECK(!done && mgx_program_equal(p, as_it_was));
        mgx_program_destroy(p);
        mgx_program_destroy(as_it_was);
    }
}

TEST_MAIN(ROW(the_last_scores_are_what_they_were) ROW(other_programs_stay_as_they_are))
