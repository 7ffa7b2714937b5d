// SPDX-License-Identifier: MIT
// How often a loop runs by what was asked for at import: the default trip count, the limit, and
// the lengths that results then have or may have.
#include "import.h"
#include "targets/target.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

// Body (i, c, s) to (c, s, s): what is carried, and a row. `ends`: the condition is false at last.
static struct pb body_of(bool ends)
{
    struct pb b = {0}, s = {0};
    pb_input(&b, "i", INT64, 0, NULL);
    pb_input(&b, "c", BOOL, 0, NULL);
    pb_text(&s, 1, "s");
    pb_message(&b, 11, &s);
    if (ends) {
        struct pb last = pb_tensor_raw("last", INT64, 0, NULL, (int64_t[]){19}, sizeof(int64_t));
        pb_initializer(&b, &last);
        pb_node(&b, "Less", "i,last", "go", NULL);
    } else {
        pb_node(&b, "Identity", "c", "go", NULL);
    }
    pb_node(&b, "Identity", "s", "t", NULL);
    pb_node(&b, "Identity", "s", "row", NULL);
    pb_output(&b, "go");
    pb_output(&b, "t");
    pb_output(&b, "row");
    return b;
}

enum trip { ABSENT, INPUT, CONSTANT };

static struct pb model_of(enum trip trip, int64_t count, bool ends)
{
    struct pb g = {0}, attrs = {0}, body = body_of(ends);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){1});
    if (trip == INPUT)
        pb_input(&g, "m", INT64, 1, (int64_t[]){1});
    if (trip == CONSTANT) {
        struct pb m = pb_tensor_raw("m", INT64, 0, NULL, &count, sizeof count);
        pb_initializer(&g, &m);
    }
    pb_attr_graph(&attrs, "body", &body);
    pb_node(&g, "Loop", trip == ABSENT ? ",,x" : "m,,x", "y,rows", &attrs);
    pb_output(&g, "rows");
    return pb_model(&g, 17);
}

struct outcome {
    int64_t least, most; // rounds that the imported program announces
    int64_t rounds;      // that it makes; -1: fails
};

static int64_t run(struct mgx_program *p, int64_t count)
{
    static const float one[] = {1};
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, 1);
    const struct mgx_named_tensor params[] = {{"x", floats(one, 1, (int64_t[]){1})},
                                              {"m", mgx_tensor_borrow(&shape, &count)}};
    struct mgx_tensor result = {0};
    struct mgx_run r = {.params = params, .param_count = 2, .results = &result, .result_count = 1};
    struct mgx_diag diag = {0};
    if (mgx_program_run(p, &r, &diag) != MGX_OK)
        return -1;
    const int64_t rounds = result.shape.lens[0];
    mgx_tensor_release(&result);
    return rounds;
}

// 0 leaves an option at its default; `count` is the trip count where there is one.
static struct outcome loop(enum trip trip, int64_t count, bool ends, int64_t rounds, int64_t limit)
{
    const struct mgx_onnx_options options = {.max_loop_iterations = rounds,
                                             .limit_loop_iterations = limit};
    struct mgx_diag diag;
    struct pb model = model_of(trip, count, ends);
    struct mgx_program *p = import_model(&model, &options, &diag);
    if (!p)
        return (struct outcome){-1, -1, -1};
    const struct mgx_dim dim = mgx_shape_dim(&mgx_module_result(mgx_program_main(p), 0)->shape, 0);
    const struct outcome out = {dim.min, dim.max, run(p, count)};
    mgx_program_destroy(p);
    return out;
}

#define CHECK_LOOP(call, least_, most_, rounds_)                                                   \
    do {                                                                                           \
        const struct outcome o_ = call;                                                            \
        if (o_.least != (least_) || o_.most != (most_) || o_.rounds != (rounds_))                  \
            CHECK_FAIL("%s: [%lld..%lld], makes %lld", #call, (long long)o_.least,                 \
                       (long long)o_.most, (long long)o_.rounds);                                  \
    } while (0)

CASE(by_default_the_model_says)
{
    CHECK_LOOP(loop(ABSENT, 0, true, 0, 0), 0, MGX_ONNX_LIMIT_LOOP, 20);
    CHECK_LOOP(loop(INPUT, 17, true, 0, 0), 0, MGX_DIM_ANY, 17);
    CHECK_LOOP(loop(CONSTANT, 17, true, 0, 0), 0, 17, 17);
    CHECK_LOOP(loop(CONSTANT, 70000, true, 0, 0), 0, 70000, 20);
    CHECK_LOOP(loop(CONSTANT, 17, false, 0, 0), 0, 17, 17);
}

CASE(a_default_count_is_for_loops_without_a_known_one)
{
    CHECK_LOOP(loop(ABSENT, 0, true, 15, 0), 0, 15, 15);
    CHECK_LOOP(loop(ABSENT, 0, false, 15, 0), 0, 15, 15);
    CHECK_LOOP(loop(INPUT, 17, true, 15, 0), 0, 15, 15);
    CHECK_LOOP(loop(INPUT, 3, true, 15, 0), 0, 15, 3);
    CHECK_LOOP(loop(CONSTANT, 17, true, 15, 0), 0, 17, 17);
}

CASE(a_limit_is_for_all)
{
    CHECK_LOOP(loop(ABSENT, 0, false, 15, 10), 0, 10, 10);
    CHECK_LOOP(loop(INPUT, 17, true, 15, 10), 0, 10, 10);
    CHECK_LOOP(loop(INPUT, 17, true, 0, 10), 0, 10, 10);
    CHECK_LOOP(loop(CONSTANT, 17, true, 0, 10), 0, 10, 10);
    CHECK_LOOP(loop(CONSTANT, 17, false, 0, 10), 0, 10, 10);
    CHECK_LOOP(loop(ABSENT, 0, true, 0, 10), 0, 10, -1); // it would run on
}

TEST_MAIN(ROW(by_default_the_model_says) ROW(a_default_count_is_for_loops_without_a_known_one)
              ROW(a_limit_is_for_all))
