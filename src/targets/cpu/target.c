// SPDX-License-Identifier: MIT
// target("cpu"): a program becomes a plan of kernel calls; cpu.h draws the stages.
#include <stdlib.h>

#include "base/file.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "targets/cpu/blocks.h"
#include "targets/cpu/choice.h"
#include "targets/cpu/cpus.h"

void cpu_plan_destroy(struct cpu_plan *plan)
{
    cpu_grow_end(plan);
    while (plan->pool_of_contexts) {
        struct cpu_context *next = plan->pool_of_contexts->next;
        cpu_context_destroy(plan->pool_of_contexts);
        plan->pool_of_contexts = next;
    }
    cpu_choices_destroy(plan);
    cpu_blocks_close(plan->blocks);
    for (struct cpu_end *end = plan->ends; end; end = end->next)
        end->fn(end->user);
    for (int64_t i = 0; i < plan->packed.count; i++)
        mgx_storage_release(plan->packed.v[i]);
    mgx_map_fini(&plan->packs);
    mgx_map_fini(&plan->literals);
    mgx_tuning_fini(&plan->tuning);
    mgx_pool_release(plan->pool);
    pthread_mutex_destroy(&plan->lock);
    mgx_arena_fini(&plan->arena);
    free(plan);
}

static void destroy(struct mgx_executable *executable)
{
    if (executable)
        cpu_plan_destroy((struct cpu_plan *)executable);
}

// Results leave row-major, whatever views made them.
static enum mgx_status pack_results(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_ins *ret = mgx_module_return(mgx_program_main(p));
    for (int i = 0; ret && i < ret->in_count; i++) {
        struct mgx_ins *ins = ret->in[i];
        if (mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_TUPLE &&
            ins->shape.type != MGX_SEQUENCE && !mgx_shape_is_standard(&ins->shape))
            mgx_set_input(ret, i, mgx_emit_before(ret, &mgx_op_contiguous, NULL, MGX_IN(ins)));
    }
    return mgx_program_status(p, diag);
}

// Weights of the main module are read where they lie in the model's file; what steps with sizes
// known only at run time read, and what bodies hold, is not.
static bool is_planned(const struct mgx_program *p, const struct mgx_ins *ins)
{
    bool planned = ins->owner == mgx_program_main(p) && mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count; i++)
        planned = planned && mgx_shape_is_static(&ins->in[i]->shape);
    return planned;
}

static enum mgx_status align_literals(struct mgx_program *p, struct mgx_diag *diag)
{
    enum { LARGE = 1 << 20 }; // from there on whoever takes it packs or aligns it (choice.c)
    for (int m = 0; m < p->module_count; m++)
        for (struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            for (int i = 0; !is_planned(p, ins) && i < ins->in_count; i++) {
                const struct mgx_ins *from = mgx_strip_views(ins->in[i]);
                if (from->literal && mgx_shape_bytes(&from->shape) < LARGE)
                    TRY(mgx_literal_align((struct mgx_ins *)from, diag));
            }
    return MGX_OK;
}

// What the passes looked at of the model's file: packing reads it once more, piece by piece.
static void forget_files(const struct mgx_program *p)
{
    const struct mgx_storage *last = NULL;
    for (int64_t i = 0; i < p->literals.count; i++) {
        const struct mgx_storage *s = p->literals.v[i];
        if (!last || s->data != last->data)
            mgx_file_forget_at(s->data, s->bytes);
        last = s;
    }
}

static enum mgx_status number_modules(struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    return MGX_OK;
}

// Where the planned values are, as the steps need it.
static void resolve(struct cpu_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        struct cpu_step *step = &plan->steps[s];
        for (int i = 0; i <= step->in_count; i++) {
            struct cpu_value *v = i < step->in_count ? step->in_value[i] : step->out_value;
            struct cpu_ref *ref = i < step->in_count ? &step->in[i] : &step->out;
            int64_t offset;
            const struct cpu_value *root = cpu_root(v, &offset);
            *ref = (struct cpu_ref){root->place, root->index, offset, root->data};
            if (root->place == CPU_SCRATCH)
                ref->offset += (int64_t)root->scratch;
        }
    }
}

// Literals of all modules by address: at run time a tensor that lies there is a constant.
static bool note_literals(struct cpu_plan *plan)
{
    const struct mgx_program *p = plan->program;
    for (int i = 0; i < p->module_count; i++)
        for (const struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            if (ins->literal && mgx_shape_elements(&ins->shape) > 0 &&
                !mgx_map_put_pointer(&plan->literals, ins->literal->data, ins->literal->data))
                return false;
    return true;
}

static enum mgx_status build(struct cpu_plan *plan, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(plan->program);
    plan->value_count = m->count;
    plan->values = MGX_NEW_ARRAY(&plan->arena, struct cpu_value, m->count);
    plan->blocks = cpu_blocks_create();
    if (!plan->values || !plan->blocks || !note_literals(plan))
        return mgx_fail_memory(diag);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        plan->values[ins->index].ins = ins;
    TRY(cpu_choose_layouts(plan, diag));
    plan->fill_later = true;
    TRY(cpu_build_steps(plan, diag));
    TRY(cpu_align_constants(plan, diag));
    TRY(cpu_fill_all(plan, diag));
    plan->fill_later = false;
    TRY(cpu_plan_memory(plan, diag));
    TRY(cpu_look_ahead(plan, diag));
    resolve(plan);
    return MGX_OK;
}

// A cache that cannot be written is no reason to fail: explain says so.
static enum mgx_status build_tuned(struct cpu_plan *plan, const char *cache, struct mgx_diag *diag)
{
    if (cache)
        TRY(mgx_tuning_load(&plan->tuning, cache, diag));
    const enum mgx_status status = build(plan, diag);
    if (status != MGX_OK &&
        status != MGX_CANCELLED) // whoever loses patience keeps what he waited for
        return status;
    struct mgx_diag quiet = {.status = MGX_OK};
    if (cache && mgx_tuning_save(&plan->tuning, cache, &quiet) != MGX_OK)
        plan->tuning_lost = mgx_arena_strdup(&plan->arena, quiet.text);
    return quiet.status == MGX_NO_MEMORY ? mgx_fail_memory(diag) : status;
}

enum mgx_status cpu_plan_create(const struct mgx_program *p,
                                const struct mgx_compile_options *options, struct cpu_plan **out,
                                struct mgx_diag *diag)
{
    enum mgx_isa isa;
    TRY(mgx_isa_require(options->isa, &isa, diag));
    struct cpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return mgx_fail_memory(diag);
    plan->base.target = &mgx_target_cpu;
    plan->program = p;
    plan->isa = isa;
    plan->fast_math = options->fast_math;
    plan->exhaustive_tune = options->exhaustive_tune;
    mgx_arena_init(&plan->arena);
    mgx_tuning_init(&plan->tuning);
    pthread_mutex_init(&plan->lock, NULL);
    const enum mgx_status status = mgx_pool_acquire(options->threads, &plan->pool, diag);
    plan->threads = mgx_pool_threads(plan->pool);
    if (status != MGX_OK) {
        cpu_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return MGX_OK;
}

static enum mgx_status run_passes(struct mgx_program *p, const struct mgx_compile_options *options,
                                  struct mgx_diag *diag)
{
    struct mgx_pass_options pass = options->pass;
    struct cpu_folder *folder = cpu_folder_create(p, options, &pass);
    if (!folder)
        return mgx_fail_memory(diag);
    enum mgx_status status = mgx_run_passes(p, mgx_pipeline_simplify, &pass, diag);
    pass.threads = options->threads ? options->threads : mgx_cpus_usable();
    if (status == MGX_OK)
        status = mgx_run_passes(p, cpu_pipeline, &pass, diag);
    cpu_folder_destroy(folder);
    return status;
}

static enum mgx_status compile(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag)
{
    TRY(run_passes(p, options, diag));
    TRY(pack_results(p, diag));
    TRY(cpu_settle_joins(p, diag));
    TRY(mgx_program_compact(p, diag));
    TRY(align_literals(p, diag));
    forget_files(p);
    TRY(number_modules(p));
    struct cpu_plan *plan = NULL;
    TRY(cpu_plan_create(p, options, &plan, diag));
    const enum mgx_status status = build_tuned(plan, options->tuning_cache, diag);
    if (status != MGX_OK) {
        cpu_plan_destroy(plan);
        return status;
    }
    p->executable = &plan->base;
    p->destroy_executable = destroy;
    return MGX_OK;
}

// --- what the plan says of itself ---

static void explain_step(const struct cpu_step *step, struct mgx_str *out)
{
    mgx_str_printf(out, "%s:@%d %s: %s", step->ins->owner->name, step->ins->index,
                   step->ins->op->name, step->kernel->name);
    if (step->detail)
        mgx_str_printf(out, " (%s)", step->detail);
    mgx_str_put(out, " -> ");
    mgx_shape_print(out, &step->out_value->shape);
    if (step->why)
        mgx_str_printf(out, "; not %s", step->why);
    mgx_str_putc(out, '\n');
}

static void explain(const struct mgx_program *p, struct mgx_str *out)
{
    const struct cpu_plan *plan = (const struct cpu_plan *)p->executable;
    double flops = 0;
    for (int i = 0; i < plan->step_count; i++) {
        explain_step(&plan->steps[i], out);
        flops += plan->steps[i].flops;
    }
    mgx_str_printf(out, "steps: %d, threads: %d, isa: %s\n", plan->step_count, plan->threads,
                   mgx_isa_name(plan->isa));
    mgx_str_printf(out, "products: %.4g GFLOP\n", flops * 1e-9);
    mgx_str_printf(out, "tuned: %d steps, %d problems measured\n", plan->tuned_count,
                   plan->measured_count);
    if (plan->tuning_lost)
        mgx_str_printf(out, "warning: %s\n", plan->tuning_lost);
    mgx_str_printf(out, "order: %zu bytes alive at most, %zu in the program's\n",
                   plan->order_peak_bytes, plan->given_peak_bytes);
    mgx_str_printf(out, "packed constants: %zu bytes\n", plan->packed_bytes);
    mgx_str_printf(out, "scratch: %zu bytes, lower bound %zu, ratio %.4f\n", plan->scratch_bytes,
                   plan->lower_bound_bytes,
                   plan->lower_bound_bytes
                       ? (double)plan->scratch_bytes / (double)plan->lower_bound_bytes
                       : 1.0);
}

const struct mgx_target mgx_target_cpu = {
    .name = "cpu", .compile = compile, .run = cpu_run, .destroy = destroy, .explain = explain};
