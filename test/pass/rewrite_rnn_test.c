// SPDX-License-Identifier: MIT
#include "check.h"
#include "pass/pass.h"

static const char before[] = "module: \"main\"\n"
                             "x = @param:x -> float_type, {3, 2, 4}, {8, 4, 1}\n"
                             "w = @param:w -> float_type, {1, 8, 4}, {32, 4, 1}\n"
                             "r = @param:r -> float_type, {1, 8, 2}, {16, 2, 1}\n"
                             "b = @param:b -> float_type, {1, 16}, {16, 1}\n"
                             "n = @param:n -> int32_type, {2}, {1}\n"
                             "@5 = lstm[hidden_size=2,direction=reverse](x,w,r%s)\n"
                             "@6 = rnn_last_hs_output(@5)\n"
                             "@7 = rnn_last_cell_output(@5)\n"
                             "@8 = convert[target_type=1](@5)\n"
                             "@9 = rnn_last_hs_output(@8)\n"
                             "@10 = @return(@6,@7,@9)\n";

static struct mgx_program *rewritten(const char *more_inputs, struct mgx_diag *diag)
{
    char text[1024];
    snprintf(text, sizeof text, before, more_inputs);
    struct mgx_program *p = NULL;
    static const struct mgx_pass *const passes[] = {&mgx_pass_rewrite_rnn, NULL};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), diag) == MGX_OK &&
        mgx_run_passes(p, passes, NULL, diag) == MGX_OK && mgx_program_verify(p, diag) == MGX_OK)
        return p;
    mgx_program_destroy(p);
    return NULL;
}

// {dirs, batch, hidden} of one step of {steps, dirs, batch, hidden}, looked at where it lies.
static bool is_step(const struct mgx_ins *ins, int64_t step)
{
    const struct mgx_ins *slice = ins->in_count ? ins->in[0] : NULL;
    return slice && mgx_is(slice, &mgx_op_slice) && slice->shape.rank == 4 &&
           slice->shape.lens[0] == 1 && ins->shape.rank == 3 &&
           memcmp(ins->shape.lens, slice->shape.lens + 1, 3 * sizeof *ins->shape.lens) == 0 &&
           mgx_ins_ints(slice, "starts").v[0] == step && mgx_ins_ints(slice, "axes").v[0] == 0;
}

CASE(the_end_is_read_by_direction)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = rewritten("", &diag);
    CHECK_TEXT(diag.text, "");
    const struct mgx_module *m = mgx_program_main(p);
    const struct mgx_ins *hidden = mgx_module_result(m, 0), *cell = mgx_module_result(m, 1);
    CHECK(is_step(hidden, 0));
    CHECK(is_step(mgx_module_result(m, 2), 0));       // behind a conversion
    const struct mgx_ins *layer = cell->in[0]->in[0]; // behind a reshape and a slice
    CHECK(mgx_is(layer, &mgx_op_lstm_states));
    CHECK_INT(layer->in_count, 3);
    CHECK_INT(mgx_ins_int(layer, "direction"), 1);
    mgx_program_destroy(p);
}

CASE(lengths_are_read_too)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = rewritten(",b,n", &diag);
    CHECK_TEXT(diag.text, "");
    const struct mgx_module *m = mgx_program_main(p);
    const struct mgx_ins *hidden = mgx_module_result(m, 0), *cell = mgx_module_result(m, 1);
    CHECK_INT(hidden->in_count, 2);
    CHECK_TEXT(mgx_parameter_name(hidden->in[1]), "n");
    const struct mgx_ins *layer = cell->in[0]->in[0];
    CHECK_INT(layer->in_count, 5);
    CHECK(layer->in[4] == hidden->in[1]);
    mgx_program_destroy(p);
}

// An absent operand is none; of two directions each ends at another step.
CASE(without_lengths_the_last_step_is_looked_at)
{
    static const char text[] = "module: \"main\"\n"
                               "y = @param:y -> float_type, {3, 1, 2, 4}, {8, 8, 4, 1}\n"
                               "z = @param:z -> float_type, {3, 2, 2, 4}, {16, 8, 4, 1}\n"
                               "n = @param:n -> int32_type, {2}, {1}\n"
                               "u = undefined()\n"
                               "@4 = rnn_var_sl_last_output(y,u)\n"
                               "@5 = rnn_var_sl_last_output[direction=reverse](y)\n"
                               "@6 = rnn_var_sl_last_output(y,n)\n"
                               "@7 = rnn_var_sl_last_output[direction=bidirectional](z,u)\n"
                               "@8 = @return(@4,@5,@6,@7)\n";
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    static const struct mgx_pass *const passes[] = {&mgx_pass_rewrite_rnn, NULL};
    CHECK(mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
          mgx_run_passes(p, passes, NULL, &diag) == MGX_OK &&
          mgx_program_verify(p, &diag) == MGX_OK);
    CHECK_TEXT(diag.text, "");
    const struct mgx_module *m = mgx_program_main(p);
    CHECK(is_step(mgx_module_result(m, 0), 2));
    CHECK(is_step(mgx_module_result(m, 1), 0));
    CHECK(mgx_is(mgx_module_result(m, 2), &mgx_op_rnn_var_sl_last_output));
    CHECK(mgx_is(mgx_module_result(m, 3), &mgx_op_rnn_var_sl_last_output));
    mgx_program_destroy(p);
}

// All hidden states and the last cell states of one layer, whichever is asked for first; and not of
// another one.
CASE(a_layer_asked_for_both_runs_once)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> float_type, {3, 2, 4}, {8, 4, 1}\n"
                               "w = @param:w -> float_type, {1, 8, 4}, {32, 4, 1}\n"
                               "r = @param:r -> float_type, {1, 8, 2}, {16, 2, 1}\n"
                               "@3 = lstm_last_cell[hidden_size=2](x,w,r)\n"
                               "@4 = lstm[hidden_size=2](x,w,r)\n"
                               "@5 = lstm_last_cell[hidden_size=2,direction=reverse](x,w,r)\n"
                               "@6 = @return(@3,@4,@5)\n";
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    static const struct mgx_pass *const passes[] = {&mgx_pass_rewrite_rnn, NULL};
    CHECK(mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
          mgx_run_passes(p, passes, NULL, &diag) == MGX_OK &&
          mgx_program_verify(p, &diag) == MGX_OK);
    const struct mgx_module *m = mgx_program_main(p);
    const struct mgx_ins *cell = mgx_module_result(m, 0), *hidden = mgx_module_result(m, 1);
    CHECK(mgx_is(hidden, &mgx_op_slice) && mgx_is(hidden->in[0], &mgx_op_lstm_states));
    CHECK(mgx_is(cell->in[0], &mgx_op_slice) && cell->in[0]->in[0] == hidden->in[0]);
    CHECK(mgx_is(mgx_module_result(m, 2), &mgx_op_lstm_last_cell));
    int layers = 0;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        layers += mgx_is(ins, &mgx_op_lstm) || mgx_is(ins, &mgx_op_lstm_states);
    CHECK_INT(layers, 1);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(the_end_is_read_by_direction) ROW(lengths_are_read_too)
              ROW(without_lengths_the_last_step_is_looked_at) ROW(a_layer_asked_for_both_runs_once))
