// SPDX-License-Identifier: MIT
// What the reference refuses before it begins: work without end, and results no memory holds.
#include "targets/target.h"

#include "check.h"
#include "op/op.h"

// Compiles `body` over one float x, runs it, and says how that ended.
static enum mgx_status run(const char *body, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    struct mgx_program *p = NULL;
    float value = 1;
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 1);
    const struct mgx_named_tensor x = {"x", mgx_tensor_borrow(&shape, &value)};
    struct mgx_tensor result = {.data = NULL};
    struct mgx_run r = {.params = &x, .param_count = 1, .results = &result, .result_count = 1};
    mgx_str_put(&text, "module: \"main\"\nx = @param:x -> float_type, {1}, {1}\n");
    mgx_str_put(&text, body);
    const char *all = mgx_str_text(&text);
    enum mgx_status status = mgx_program_parse(&p, &mgx_ops, all, strlen(all), diag);
    if (status == MGX_OK)
        status = mgx_program_compile(p, mgx_target_find("ref"), NULL, diag);
    if (status == MGX_OK)
        status = mgx_program_run(p, &r, diag);
    mgx_tensor_release(&result);
    mgx_program_destroy(p);
    mgx_str_fini(&text);
    return status;
}

// 2^40 values that take no memory and give one.
CASE(views_that_take_hours_to_read)
{
    struct mgx_diag diag = {0};
    CHECK_INT(run("@1 = multibroadcast[out_lens={1048576, 1048576}](x)\n"
                  "@2 = reduce_sum[axes={0, 1}](@1)\n@3 = @return(@2)\n",
                  &diag),
              MGX_LIMIT);
    CHECK(strstr(diag.text, "an input of 1099511627776 elements"));
    CHECK_INT(run("@1 = multibroadcast[out_lens={1024, 1024}](x)\n"
                  "@2 = reduce_sum[axes={0, 1}](@1)\n@3 = @return(@2)\n",
                  &diag),
              MGX_OK);
}

// The last of the products is refused before the first, of 2^28 values, is made.
CASE(results_that_no_memory_holds)
{
    struct mgx_diag diag = {0};
    CHECK_INT(run("@1 = multibroadcast[out_lens={16384, 1}](x)\n"
                  "@2 = multibroadcast[out_lens={1, 16384}](x)\n"
                  "@3 = dot(@1,@2)\n"
                  "@4 = reshape[dims={268435456, 1}](@3)\n"
                  "@5 = reshape[dims={1, 268435456}](@3)\n"
                  "@6 = dot(@4,@5)\n"
                  "@7 = reduce_sum[axes={0, 1}](@6)\n@8 = @return(@7)\n",
                  &diag),
              MGX_NO_MEMORY);
    CHECK(strstr(diag.text, "dot makes a tensor of 288230376151711744 bytes"));
    CHECK(strstr(diag.text, "in main:@6 = dot"));
}

TEST_MAIN(ROW(views_that_take_hours_to_read) ROW(results_that_no_memory_holds))
