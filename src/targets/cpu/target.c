// SPDX-License-Identifier: MIT
// target("cpu"): what it brings to the plan, and the passes it runs first. docs/cpu.md.
#include <assert.h>
#include <stdlib.h>

#include "plan/contest.h"
#include "plan/fold.h"
#include "plan/plan.h"
#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/lower/integer.h"
#include "targets/cpu/lower/lower.h"
#include "targets/cpu/machine/cpus.h"
#include "targets/stages.h"

// --- hooks ---

static void spread(const struct mgx_plan_machine *machine, int tasks, mgx_plan_task fn, void *user)
{
    mgx_pool_run(cpu_machine(machine)->pool, tasks, fn, user);
}

static void begin(const struct mgx_plan_machine *machine)
{
    mgx_pool_begin(cpu_machine(machine)->pool);
}

static void end(const struct mgx_plan_machine *machine)
{
    mgx_pool_end(cpu_machine(machine)->pool);
}

static void release(struct mgx_plan_machine *machine)
{
    mgx_pool_release(cpu_machine(machine)->pool);
    free(machine);
}

static void print(const struct mgx_plan_machine *machine, struct mgx_str *out)
{
    mgx_str_printf(out, "cpu %s %d ", mgx_isa_name(cpu_machine(machine)->isa), machine->threads);
    for (const char *c = mgx_cpu()->name; *c; c++) // one word
        if (*c > ' ' && *c <= '~')
            mgx_str_putc(out, *c);
}

static void explain(const struct mgx_plan_machine *machine, struct mgx_str *out)
{
    mgx_str_printf(out, "threads: %d, isa: %s", machine->threads,
                   mgx_isa_name(cpu_machine(machine)->isa));
}

// Operators that size their result themselves, or give several.
static enum mgx_status late(const struct mgx_plan_machine *machine, struct mgx_plan_blocks *blocks,
                            struct mgx_compute_call *c, bool *done)
{
    if (c->op == &mgx_op_concat)
        return cpu_concat_append(blocks, c, done);
    if (c->op == &mgx_op_cache_append)
        return cpu_cache_append(blocks, c, done);
    if (c->op == &mgx_op_linear_attention)
        return cpu_linear_attention(machine, c, done);
    if (c->op == &mgx_op_topk)
        return cpu_topk(c, done);
    if (c->op == &mgx_op_nonzero)
        return cpu_nonzero(c, done);
    if (c->op == &mgx_op_nonmaxsuppression)
        return cpu_nonmaxsuppression(cpu_machine(machine)->isa, c, done);
    return MGX_OK;
}

static enum mgx_status finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    TRY(cpu_look_ahead(plan, diag));
    return cpu_bundle(plan, diag);
}

const struct mgx_plan_target cpu_plan_target = {
    .target = &mgx_target_cpu,
    .kernels = cpu_kernels,
    .late_kernels = cpu_late_kernels,
    .copy = &cpu_kernel_copy,
    .late = late,
    .spread = spread,
    .finish = finish,
    .begin = begin,
    .end = end,
    .after = cpu_grow,
    .stop = cpu_grow_end,
    .release = release,
    .print = print,
    .explain = explain,
};

// --- compile ---

// Settings of its own: "isa", a set of instructions as machine/isa.h names them; by default the
// best that the machine has.

static enum mgx_status create_machine(const struct mgx_compile_options *options,
                                      struct mgx_plan_machine **out, struct mgx_diag *diag)
{
    mgx_isa isa;
    TRY(mgx_isa_require(mgx_setting(&options->own, "isa"), &isa, diag));
    struct cpu_machine *machine = calloc(1, sizeof *machine);
    if (!machine)
        return mgx_fail_memory(diag);
    machine->isa = isa;
    machine->fast_math = options->fast_math;
    const enum mgx_status status =
        mgx_pool_acquire_team(options->team, options->threads, &machine->pool, diag);
    machine->base.target = &cpu_plan_target;
    machine->base.threads = mgx_pool_threads(machine->pool);
    if (status == MGX_OK)
        *out = &machine->base;
    else
        release(&machine->base);
    return status;
}

// --- passes ---

static const struct mgx_pass *const scales[] = {&mgx_pass_compute_wide_early,
                                                &mgx_pass_propagate_constant, NULL};
static const struct mgx_pass *const integers[] = {&mgx_pass_simplify_qdq, NULL};
static const struct mgx_pass *const pack[] = {&mgx_pass_pack_weights, &mgx_pass_float_products,
                                              NULL};
static const struct mgx_pass *const pages[] = {&mgx_pass_rewrite_pages, NULL};
static const struct mgx_pass *const integers_again[] = {
    &mgx_pass_simplify_qdq, &mgx_pass_fold_dequantize, &mgx_pass_optimize_module,
    &mgx_pass_repeat_dequantize, NULL};
static const struct mgx_pass *const move[] = {
    &mgx_pass_narrow_moves, &mgx_pass_eliminate_common_subexpression, &mgx_pass_propagate_constant,
    &mgx_pass_eliminate_convert, NULL};
static const struct mgx_pass *const widen[] = {&mgx_pass_compute_wide, &mgx_pass_rewrite_gelu,
                                               &mgx_pass_optimize_module, NULL};
static const struct mgx_pass *const fuse[] = {&mgx_pass_find_activation, &mgx_pass_find_softmax,
                                              &mgx_pass_fuse_norm,       &mgx_pass_repeat_totals,
                                              &mgx_pass_fuse_pointwise,  &mgx_pass_fuse_totals,
                                              &mgx_pass_fuse_attention,  &mgx_pass_fuse_epilogue,
                                              &mgx_pass_fuse_expand,     NULL};

// Quantized models of halves with scales in float are those of floats. Integers are seen where an
// exporter wrote them, with their scales beside them; then again, when views and constants have
// moved out of their way. Weights are packed before folding: what their scales were broadcast from
// is small. Where products of bfloat16 stay, what is moved from one to the next moves in 16 bits.
// Half and bfloat16 are computed in float but for products of bfloat16 where the machine has an
// instruction for them: none multiplies halves faster than it converts. Normalisations are fused
// before element-wise chains take their pieces, totals around that, attention after, epilogues when
// chains are whole, and what feeds a depthwise convolution last.
static const struct mgx_stage stages[] = {
    {"scales", scales, .all = MGX_QUANTIZED, .any = MGX_HALVES | MGX_BRAINS, .early = true},
    {"integers", integers, .all = MGX_QUANTIZED},
    {"pack", pack},
    {"simplify", mgx_pipeline_simplify, .shared = true},
    {"pages", pages},
    {"integers again", integers_again, .all = MGX_QUANTIZED},
    {"move", move, .all = MGX_BRAINS | MGX_MULTIPLIES_BF16},
    {"widen", widen, .any = MGX_HALVES | MGX_BRAINS},
    {"fuse", fuse},
    {NULL}};

static enum mgx_status run_passes(struct mgx_program *p, const struct mgx_plan_machine *machine,
                                  const struct mgx_compile_options *options, struct mgx_diag *diag)
{
    const mgx_isa isa = cpu_machine(machine)->isa;
    struct cpu_floats floats = {
        .isa = isa, .threads = machine->threads, .fast_math = options->fast_math};
    struct mgx_pass_options pass = options->pass;
    struct mgx_plan_folder *folder = mgx_plan_folder_create(p, machine, &pass);
    if (!folder)
        return mgx_fail_memory(diag);
    pass.target.multiplies_bf16 = mgx_gemm_kernel(MGX_KERNEL_BF16, isa) != NULL;
    pass.target.floats_pay = cpu_floats_pay;
    pass.target.takes_bytes = cpu_integer_takes;
    pass.target.takes = cpu_takes;
    pass.target.user = &floats;
    pass.target.threads = options->threads ? options->threads : mgx_cpus_usable();
    pass.target.near_bytes = mgx_cpu_l2();
    const unsigned facts =
        mgx_facts_of(p) | (pass.target.multiplies_bf16 ? MGX_MULTIPLIES_BF16 : 0);
    const enum mgx_status status = mgx_run_stages(p, stages, facts, &pass, options, diag);
    mgx_plan_folder_destroy(folder);
    return status;
}

static enum mgx_status kind(const struct mgx_compile_options *options, struct mgx_str *out,
                            struct mgx_diag *diag)
{
    mgx_isa isa;
    TRY(mgx_isa_require(mgx_setting(&options->own, "isa"), &isa, diag));
    mgx_str_printf(out, "cpu %s", mgx_isa_name(isa));
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static uint64_t worth(const struct mgx_compile_options *options)
{
    mgx_isa isa;
    struct mgx_diag quiet = {.status = MGX_OK};
    return mgx_isa_require(mgx_setting(&options->own, "isa"), &isa, &quiet) == MGX_OK ? isa : 0;
}

static enum mgx_status compile(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag)
{
    static const struct mgx_planned_target target = {create_machine, run_passes};
    return mgx_compile_planned(p, &target, options, diag);
}

static const char *const keeps[] = {"isa", NULL};

const struct mgx_target mgx_target_cpu = {.name = "cpu",
                                          .compile = compile,
                                          .bytes = mgx_plan_bytes,
                                          .run = mgx_plan_run,
                                          .destroy = mgx_plan_destroy,
                                          .explain = mgx_plan_explain,
                                          .plan = mgx_plan_list,
                                          .kind = kind,
                                          .worth = worth,
                                          .stages = stages,
                                          .keeps = keeps,
                                          .lend = create_machine,
                                          .carry = mgx_plan_carry};
