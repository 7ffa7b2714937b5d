// SPDX-License-Identifier: MIT
// What every fuzzer of models does with one that imports: it runs on zeros and small numbers, as it
// is and compiled for the CPU, verifies and simplifies.
#pragma once

#include <string.h>

#include "op/eval/eval.h"
#include "outcome.h"
#include "pass/pass.h"
#include "targets/target.h"

// --- running ---

enum { MOST = 16, BYTES = 1 << 20 };

static enum mgx_status fill(struct mgx_tensor *t, const struct mgx_shape *shape, uint8_t value)
{
    struct mgx_shape s = *shape;
    if (s.unranked)
        s = mgx_shape_vector(s.type, 3);
    if (s.type == MGX_TUPLE || s.type == MGX_SEQUENCE || s.type == MGX_STRING)
        return MGX_UNSUPPORTED;
    if (s.dims) { // any size within the range will do
        int64_t lens[MGX_MAX_RANK];
        for (int i = 0; i < s.rank; i++)
            lens[i] = s.dims[i].min > 2 ? s.dims[i].min : s.dims[i].max < 2 ? s.dims[i].max : 2;
        s = mgx_shape_make(s.type, s.rank, lens);
    }
    if (mgx_shape_check(&s, NULL) != MGX_OK || mgx_shape_bytes(&s) > BYTES)
        return MGX_LIMIT;
    TRY(mgx_tensor_create(t, &s, NULL));
    if (mgx_type_is_number(s.type))
        for (int64_t i = 0; i < mgx_shape_elements(&s); i++)
            mgx_store_double(s.type, t->data, i, value);
    else
        memset(t->data, 0, mgx_shape_bytes(&s));
    return MGX_OK;
}

// On the arguments of a run that went well, and so within the limits; what it gives is not
// compared.
static void run_compiled(struct mgx_program *p, const struct mgx_tensor *args, int count)
{
    const struct mgx_compile_options options = {.offload_copy = true, .threads = 1};
    struct mgx_named_tensor named[MOST];
    struct mgx_tensor results[MOST] = {0};
    struct mgx_ins *params[MOST];
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    enum mgx_status status = mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag);
    mgx_module_parameters(mgx_program_main(p), params, count);
    for (int i = 0; i < count; i++)
        named[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]), args[i]};
    struct mgx_run call = {.params = named,
                           .param_count = count,
                           .results = results,
                           .result_count = mgx_module_result_count(mgx_program_main(p))};
    if (status == MGX_OK)
        status = mgx_program_run(p, &call, &diag);
    require(status == MGX_OK || diag.text[0]);
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&results[i]);
}

// As it is and, when that goes well and `compile` is set, compiled.
static void run(struct mgx_program *p, uint8_t value, bool compile)
{
    struct mgx_ins *params[MOST];
    struct mgx_tensor args[MOST] = {0}, results[MOST] = {0};
    const struct mgx_module *m = mgx_program_main(p);
    const int count = mgx_module_parameters(m, params, MOST);
    struct mgx_diag diag;
    struct mgx_arena strings;
    mgx_diag_clear(&diag);
    mgx_arena_init(&strings);
    bool ok = count <= MOST && mgx_module_result_count(m) <= MOST;
    for (int i = 0; ok && i < count; i++)
        ok = fill(&args[i], &params[i]->shape, value) == MGX_OK;
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = BYTES};
    if (ok) {
        ok = mgx_eval_module(&e, m, args, count, results, &diag) == MGX_OK;
        require(ok || diag.text[0]);
    }
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&results[i]);
    if (ok && compile)
        run_compiled(p, args, count);
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&args[i]);
    mgx_arena_fini(&strings);
}

// Everything there is to do with a program that was imported; takes it.
static void exercise(struct mgx_program *take_program, uint8_t value)
{
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    require(mgx_program_verify(take_program, NULL) == MGX_OK);
    run(take_program, value % 3, false);
    const struct mgx_pass_options passes = {.fold_limit_bytes = BYTES, .fold_total_bytes = BYTES};
    if (mgx_run_passes(take_program, mgx_pipeline_simplify, &passes, &diag) == MGX_OK) {
        require(mgx_program_verify(take_program, NULL) == MGX_OK);
        run(take_program, value % 5, true);
    }
    mgx_program_destroy(take_program);
}
