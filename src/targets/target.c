// SPDX-License-Identifier: MIT
// The registry of targets, and what is common to compiling for and running on any of them.
//
// A run is checked here once, so targets see parameters in order of creation, complete and in
// layout (params.h).
#include "targets/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/size.h"
#include "plan/carried.h"
#include "plan/shared.h"
#include "targets/params.h"
#include "targets/sizes.h"
#include "targets/specialise.h"

static const struct mgx_target *const targets[] = {
#define TARGET(name) &mgx_target_##name,
#include "target_list.inc"
#undef TARGET
    NULL};

const struct mgx_target *mgx_target_find(const char *name)
{
    for (int i = 0; targets[i]; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

const struct mgx_target *const *mgx_target_all(int *count)
{
    *count = MGX_COUNT(targets) - 1;
    return targets;
}

static void destroy(struct mgx_executable *executable)
{
    mgx_sizes_destroy(executable->sizes);
    mgx_params_destroy(executable->params);
    executable->target->destroy(executable);
}

// What compiling it again takes, when it was saved.
static bool note_options(struct mgx_program *p, const struct mgx_compile_options *options)
{
    struct mgx_executable *e = p->executable;
    bool good = true;
    e->options = (struct mgx_carry_options){.offload_copy = options->offload_copy,
                                            .fast_math = options->fast_math,
                                            .threads = options->threads};
    for (const char *const *name = e->target->keeps; name && *name; name++) {
        const char *value = mgx_setting(&options->own, *name);
        good = good && (!value || mgx_settings_put(&e->options.own, &p->arena, *name, value));
    }
    return good;
}

// No pass looks at a saved program that fits, so plans for single sizes are made from the graph
// that the file has; they read all its literals.
static enum mgx_status copy_saved(const struct mgx_program *p, struct mgx_program **out,
                                  struct mgx_diag *diag)
{
    if (!mgx_program_is_settled(p))
        return MGX_OK;
    mgx_carry_mark_literals(p->carry); // checked with what the plan reads
    return mgx_program_clone(out, p, diag);
}

// The executable is complete when this succeeds.
static enum mgx_status compile(struct mgx_program *p, const struct mgx_target *target,
                               const struct mgx_compile_options *options, struct mgx_diag *diag)
{
    struct mgx_compile_options own = *options;
    struct mgx_program *simplified = NULL;
    const bool host = !target->memory || options->offload_copy; // where what sizes follow from lies
    if (target->bytes && host &&
        (mgx_has_free_sizes(p) || (target->sees_values && mgx_values_any(p)))) {
        TRY(copy_saved(p, &simplified, diag));
        own.simplified = &simplified;
        own.shared = mgx_plan_shared_create();
    }
    const double start = mgx_clock_seconds();
    mgx_cancel_enter();
    enum mgx_status status = target->compile(p, &own, diag);
    if (status == MGX_OK)
        status = mgx_program_status(p, diag);
    if (status == MGX_OK)
        status = mgx_cancel_check(diag);
    mgx_cancel_leave();
    if (status == MGX_OK &&
        !((p->executable->params = mgx_params_create(p)) && note_options(p, options)))
        status = mgx_fail_memory(diag);
    if (status == MGX_OK && simplified)
        status = mgx_sizes_create(&p->executable->sizes, simplified, target, &own,
                                  (mgx_clock_seconds() - start) / 2, diag);
    else
        mgx_program_destroy(simplified);
    mgx_plan_shared_release(own.shared); // the plans keep it
    return status;
}

enum mgx_status mgx_program_compile(struct mgx_program *p, const struct mgx_target *target,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag)
{
    static const struct mgx_compile_options plain = {.fast_math = true, .pass.fast_math = true};
    options = options ? options : &plain;
    TRY(mgx_program_status(p, diag));
    if (p->executable)
        return mgx_fail(diag, MGX_INVALID, "the program is compiled already, for target \"%s\"",
                        p->executable->target->name);
    struct mgx_program *backup = NULL;
    if (!mgx_program_is_settled(p))
        TRY(mgx_program_backup(&backup, p, diag));
    const enum mgx_status status = compile(p, target, options, diag);
    if (status != MGX_OK) {
        mgx_where(diag, "compiling for target \"%s\"", target->name);
        if (p->executable)
            destroy(p->executable);
        p->executable = NULL;
        p->destroy_executable = NULL;
        if (backup)
            mgx_program_restore(p, backup);
        return status;
    }
    mgx_program_destroy(backup);
    p->destroy_executable = destroy;
    return MGX_OK;
}

enum mgx_status mgx_program_fix(struct mgx_program **out, const struct mgx_program *p,
                                const struct mgx_named_lens *given, int count, bool offload_copy,
                                struct mgx_diag *diag)
{
    const struct mgx_sizes *sizes = p->executable ? p->executable->sizes : NULL;
    struct mgx_program *fixed;
    if (!sizes)
        return mgx_fail(diag, MGX_INVALID, "the program is not compiled with free sizes%s%s",
                        p->executable ? " on target " : "",
                        p->executable ? p->executable->target->name : "");
    int64_t *lens = calloc((size_t)mgx_sizes_axes(sizes) + 1, sizeof *lens);
    enum mgx_status status =
        lens ? mgx_sizes_lens(sizes, given, count, lens, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = mgx_sizes_fix(sizes, lens, offload_copy, &fixed, diag);
    free(lens);
    TRY(status);
    struct mgx_executable *e = fixed->executable;
    e->options = p->executable->options;
    e->options.offload_copy = offload_copy;
    if (!mgx_settings_copy(&e->options.own, &fixed->arena, &p->executable->options.own) ||
        !(e->params = mgx_params_create(fixed))) {
        mgx_program_destroy(fixed);
        return mgx_fail_memory(diag);
    }
    fixed->destroy_executable = destroy;
    *out = fixed;
    return MGX_OK;
}

// --- results ---

static enum mgx_status pack_values(struct mgx_run *run, struct mgx_diag *diag)
{
    for (int i = 0; i < run->result_count; i++) {
        struct mgx_tensor *t = &run->results[i];
        const bool grows = run->takes_growing && t->storage && t->storage->grows;
        if (t->sub || grows || mgx_is_row_major(&t->shape))
            continue;
        struct mgx_tensor packed;
        TRY(mgx_tensor_pack(&packed, t, diag));
        mgx_tensor_release(t);
        *t = packed;
    }
    return MGX_OK;
}

// --- runs ---

static enum mgx_status run_uncompiled(const struct mgx_program *p, struct mgx_run *run,
                                      struct mgx_diag *diag)
{
    struct mgx_program *copy = NULL;
    TRY(mgx_program_clone(&copy, p, diag));
    enum mgx_status status = mgx_program_compile(copy, mgx_target_find("ref"), NULL, diag);
    if (status == MGX_OK)
        status = mgx_program_run(copy, run, diag);
    mgx_program_destroy(copy);
    return status;
}

// Within what it may hold of memory, and until somebody ends it.
static enum mgx_status run_within(const struct mgx_program *p, struct mgx_run *run,
                                  struct mgx_diag *diag)
{
    struct mgx_budget budget = {.limit = run->limit_bytes};
    if (budget.limit)
        mgx_budget_enter(&budget);
    mgx_cancel_enter();
    const enum mgx_status status = p->executable->target->run(p, run, diag);
    mgx_cancel_leave();
    if (budget.limit)
        mgx_budget_leave(&budget);
    if (status != MGX_OK && budget.refused)
        mgx_where(diag, "a run that may hold %zu bytes", budget.limit);
    return status;
}

static enum mgx_status pack_inputs(const struct mgx_sizes *sizes, const struct mgx_size *held,
                                   struct mgx_params_room *room, struct mgx_diag *diag)
{
    int count;
    const struct mgx_named_tensor *list = mgx_params_list(room, &count);
    for (int i = 0; i < count; i++)
        if (list[i].tensor.storage && list[i].tensor.storage->grows &&
            mgx_sizes_fix_input(sizes, held, i))
            TRY(mgx_params_pack(room, i, diag));
    return MGX_OK;
}

// On a plan for just these sizes where there is one; who traces wants to see the instructions he
// knows.
static enum mgx_status run_sized(const struct mgx_program *p, struct mgx_run *run,
                                 struct mgx_params_room *room, struct mgx_diag *diag)
{
    struct mgx_sizes *sizes = run->trace ? NULL : p->executable->sizes;
    struct mgx_size *held = NULL;
    const struct mgx_program *own = sizes ? mgx_sizes_take(sizes, run->params, &held) : NULL;
    const double start = held ? mgx_clock_seconds() : 0;
    enum mgx_status status = own ? pack_inputs(sizes, held, room, diag) : MGX_OK;
    if (status == MGX_OK)
        status = run_within(own ? own : p, run, diag);
    if (held)
        mgx_sizes_give(sizes, held, own, status == MGX_OK ? mgx_clock_seconds() - start : -1);
    return status;
}

// Weights may lie in a mapped model file. If that was truncated meanwhile, the run read zeros where
// it ended, and its results are void.
static enum mgx_status finish_results(const struct mgx_program *p, struct mgx_run *run,
                                      struct mgx_diag *diag)
{
    enum mgx_status status = mgx_program_check_files(p, diag);
    if (status == MGX_OK)
        status = pack_values(run, diag);
    for (int i = 0; status != MGX_OK && i < run->result_count; i++)
        mgx_tensor_release(&run->results[i]);
    return status;
}

enum mgx_status mgx_program_run(const struct mgx_program *p, struct mgx_run *run,
                                struct mgx_diag *diag)
{
    const struct mgx_module *main = mgx_program_main(p);
    if (!p->executable)
        return run_uncompiled(p, run, diag);
    if (run->result_count != mgx_module_result_count(main))
        return mgx_fail(diag, MGX_INVALID, "room for %d results, but the program has %d",
                        run->result_count, mgx_module_result_count(main));
    struct mgx_params_room *room = NULL;
    TRY(mgx_params_take(p->executable->params, run, &room, diag));
    struct mgx_run checked = *run;
    checked.params = mgx_params_list(room, &checked.param_count);
    enum mgx_status status = run_sized(p, &checked, room, diag);
    if (status == MGX_OK)
        status = finish_results(p, run, diag);
    mgx_params_give(p->executable->params, room);
    return status;
}
