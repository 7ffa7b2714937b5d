// SPDX-License-Identifier: MIT
// Recurrent layers whose weights lie in memory in another order than their axes: what folding a
// transpose leaves; and those of whose operands some are left out. The reference says what is right,
// and computes none of it for the CPU.
#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { STEPS = 3, BATCH = 2, IN = 5, HIDDEN = 4, GATES = 4 * HIDDEN };

// {1, GATES, width}, the last two axes turned in memory.
static struct mgx_ins *turned_weights(struct mgx_module *m, int64_t width, int seed)
{
    struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){1, GATES, width});
    struct mgx_tensor t;
    shape.strides[1] = 1;
    shape.strides[2] = GATES;
    if (mgx_tensor_create(&t, &shape, NULL) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < GATES * width; i++)
        ((float *)t.data)[i] = (float)((i * 7 + seed) % 13 - 6) / 8;
    struct mgx_ins *ins = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return ins;
}

static bool takes_lstm(const struct mgx_program *p)
{
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(p, &plan);
    const bool good = !strstr(mgx_str_text(&plan), "lstm: ref (") &&
                      !strstr(mgx_str_text(&plan), "lstm: copy"); // constants lie as they should
    mgx_str_fini(&plan);
    return good;
}

// The last hidden state in `out`; x is whatever was computed from the parameter. `left_out`: bias,
// lengths and both states are written down as missing.
static bool run(const char *target, bool left_out, float *out)
{
    static float x[STEPS * BATCH * IN];
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){STEPS, BATCH, IN});
    struct mgx_program *p;
    struct mgx_diag diag = {0};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return false;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *in = mgx_add_parameter(m, "x", &shape);
    struct mgx_ins *w = turned_weights(m, IN, 1), *r = turned_weights(m, HIDDEN, 5),
                   *none = mgx_emit(m, &mgx_op_undefined, NULL, (struct mgx_ins_list){NULL, 0});
    struct mgx_ins *y = left_out
                            ? mgx_emit(m, &mgx_op_lstm, MGX_ATTRS(mgx_int("hidden_size", HIDDEN)),
                                       MGX_IN(in, w, r, none, none, none, none))
                            : mgx_emit(m, &mgx_op_lstm, MGX_ATTRS(mgx_int("hidden_size", HIDDEN)),
                                       MGX_IN(in, w, r));
    mgx_add_return(m, &y, 1);
    for (int i = 0; i < STEPS * BATCH * IN; i++)
        x[i] = (float)(i % 7 - 3) / 4;
    const struct mgx_named_tensor given = {"x", mgx_tensor_borrow(&shape, x)};
    struct mgx_tensor results[1] = {0};
    struct mgx_run call = {
        .params = &given, .param_count = 1, .results = results, .result_count = 1};
    const struct mgx_compile_options options = {.offload_copy = true};
    bool ok = mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK &&
              (strcmp(target, "cpu") != 0 || takes_lstm(p)) &&
              mgx_program_run(p, &call, &diag) == MGX_OK;
    if (ok)
        memcpy(out, results[0].data, STEPS * BATCH * HIDDEN * sizeof *out);
    else
        printf("%s: %s\n", target, diag.text);
    mgx_tensor_release(&results[0]);
    mgx_program_destroy(p);
    return ok;
}

static void check(bool left_out)
{
    float want[STEPS * BATCH * HIDDEN], got[STEPS * BATCH * HIDDEN];
    CHECK(run("ref", false, want) && run("cpu", left_out, got));
    for (int i = 0; i < STEPS * BATCH * HIDDEN; i++)
        CHECK_NEAR(got[i], want[i], 1e-5);
}

CASE(weights_in_another_order)
{
    check(false);
}

CASE(operands_that_are_left_out)
{
    check(true);
}

TEST_MAIN(ROW(weights_in_another_order) ROW(operands_that_are_left_out))
