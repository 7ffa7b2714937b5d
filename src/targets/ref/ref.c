// SPDX-License-Identifier: MIT
// The reference target: the meaning of a program, and the measure of every other target.
//
// It rewrites nothing that has a reference (except, on request, floats to doubles) and evaluates
// the instructions in order by their operators' own compute. No SIMD, no threads, no plan. An
// executable is only a mark, so any number of threads may run one program. Cost: every intermediate
// is allocated when it is made and freed after its last reader.
#include <stdlib.h>

#include "base/memory.h"
#include "op/eval/eval.h"
#include "pass/pass.h"
#include "targets/target.h"

const struct mgx_target mgx_target_ref;

static enum mgx_status widen(struct mgx_program *p, const struct mgx_compile_options *options,
                             struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_fp_to_double, NULL};
    return mgx_run_passes(p, passes, &options->pass, diag);
}

// Its only setting, "compute_double": floats are computed as doubles.
static enum mgx_status compile(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag)
{
    // Reading the end of a recurrent layer has no reference as MIGraphX writes it.
    static const struct mgx_pass *const passes[] = {&mgx_pass_rewrite_rnn, NULL};
    TRY(mgx_run_passes(p, passes, &options->pass, diag));
    if (mgx_setting_is_on(&options->own, "compute_double"))
        TRY(widen(p, options, diag));
    TRY(mgx_program_pack_results(p, diag));
    TRY(mgx_program_align(p, diag)); // once, not in every run
    struct mgx_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return mgx_fail_memory(diag);
    executable->target = &mgx_target_ref;
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    p->executable = executable;
    return MGX_OK;
}

// The bytes of strings live as long as the run unless a result takes a copy of its own.
static enum mgx_status keep_strings(struct mgx_tensor *t, struct mgx_diag *diag)
{
    if (t->shape.type != MGX_STRING && !t->sub)
        return MGX_OK;
    struct mgx_tensor own;
    TRY(mgx_tensor_clone(&own, t, diag));
    mgx_tensor_release(t);
    *t = own;
    return MGX_OK;
}

static enum mgx_status evaluate(struct mgx_eval *eval, const struct mgx_module *m,
                                const struct mgx_tensor *args, struct mgx_run *r,
                                struct mgx_diag *diag)
{
    TRY(mgx_eval_module(eval, m, args, r->param_count, r->results, diag));
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < r->result_count && status == MGX_OK; i++)
        status = keep_strings(&r->results[i], diag);
    for (int i = 0; i < r->result_count && status != MGX_OK; i++)
        mgx_tensor_release(&r->results[i]);
    return status;
}

static size_t result_bytes(const struct mgx_ins *ins)
{
    const bool makes = !(ins->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_BUILTIN)) &&
                       mgx_type_is_number(ins->shape.type) && mgx_shape_is_static(&ins->shape);
    return makes ? mgx_shape_bytes(&ins->shape) : 0;
}

// What no memory holds is refused before the work that leads there, which may take hours.
static enum mgx_status check_memory(const struct mgx_program *p, struct mgx_diag *diag)
{
    enum { LARGE = 1 << 30 };
    const struct mgx_ins *most = mgx_program_main(p)->first;
    for (const struct mgx_ins *ins = most; ins; ins = ins->next)
        if (result_bytes(ins) > result_bytes(most))
            most = ins;
    if (!most || result_bytes(most) < LARGE || result_bytes(most) <= mgx_memory_available())
        return MGX_OK;
    const enum mgx_status status =
        mgx_fail(diag, MGX_NO_MEMORY, "out of memory: %s makes a tensor of %zu bytes",
                 most->op->name, result_bytes(most));
    mgx_ins_blame(most, diag);
    return status;
}

static enum mgx_status run(const struct mgx_program *p, struct mgx_run *r, struct mgx_diag *diag)
{
    TRY(check_memory(p, diag));
    struct mgx_tensor *args = calloc((size_t)r->param_count + 1, sizeof *args);
    if (!args)
        return mgx_fail_memory(diag);
    for (int i = 0; i < r->param_count; i++)
        args[i] = r->params[i].tensor; // lent for the call
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    struct mgx_eval eval = {
        .strings = &strings, .seed = r->seed, .trace = r->trace, .trace_user = r->trace_user};
    const enum mgx_status status = evaluate(&eval, mgx_program_main(p), args, r, diag);
    mgx_arena_fini(&strings);
    free(args);
    return status;
}

static void destroy(struct mgx_executable *executable)
{
    free(executable);
}

static void explain(const struct mgx_program *p, struct mgx_str *out)
{
    const struct mgx_module *m = mgx_program_main(p);
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        mgx_ins_print(out, ins);
        mgx_str_put(out, "\n    reference compute, one thread\n");
    }
}

static const char *const keeps[] = {"compute_double", NULL};

const struct mgx_target mgx_target_ref = {.name = "ref",
                                          .compile = compile,
                                          .run = run,
                                          .destroy = destroy,
                                          .explain = explain,
                                          .keeps = keeps};
