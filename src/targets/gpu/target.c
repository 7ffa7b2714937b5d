// SPDX-License-Identifier: MIT
// target("gpu"): what it brings to the plan, and the passes it runs first. docs/gpu.md.
//
// A target that cannot find a card fails to compile; it never runs on the CPU instead. What no
// kernel here takes, and sizes known only at run time, go to the kernels that target("cpu") lends.
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/region.h"
#include "plan/fold.h"
#include "plan/plan.h"
#include "targets/gpu/lower/cache.h"
#include "targets/gpu/lower/few.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/row_also.h"
#include "targets/gpu/lower/side.h"
#include "targets/gpu/vendor/vendor.h"
#include "targets/stages.h"

enum { GPU_COMPILE_THREADS = 16 };
#define WIDEST_TABLE ((size_t)1 << 30)

static void release(struct mgx_plan_machine *machine)
{
    struct gpu_machine *m = gpu_machine(machine);
    for (int i = 0; i < m->unit_count; i++)
        gpu_unit_drop(m->units[i]);
    free(m->units);
    if (machine->host)
        machine->host->target->release(machine->host);
    gpu_device_close(m->device);
    free(m);
}

static void print(const struct mgx_plan_machine *machine, struct mgx_str *out)
{
    const struct gpu_device *d = gpu_machine(machine)->device;
    mgx_str_printf(out, "gpu %s %s", d->api->name, d->properties.arch);
}

static void explain(const struct mgx_plan_machine *machine, struct mgx_str *out)
{
    const struct gpu_machine *m = gpu_machine(machine);
    const struct gpu_code_counts counts = gpu_code_counts();
    mgx_str_printf(out, "device: %s %s, %s, kernels: %d (%d compiled, %d from disk, %d from files)",
                   m->device->api->name, m->device->properties.name, m->device->properties.arch,
                   m->unit_count, counts.compiled, counts.loaded, counts.carried);
    if (machine->host) {
        mgx_str_put(out, ", on the host: ");
        machine->host->target->print(machine->host, out);
    }
}

// By the host's threads: packing, mostly.
static void spread(const struct mgx_plan_machine *machine, int tasks, mgx_plan_task fn, void *user)
{
    if (machine->host)
        mgx_plan_spread(machine->host, tasks, fn, user);
    for (int i = 0; i < tasks && !machine->host; i++)
        fn(user, i, 0);
}

static enum mgx_status finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    TRY(gpu_finish(plan, diag));
    TRY(gpu_few_bundles_finish(plan, diag));
    TRY(gpu_row_bundles_finish(plan, diag));
    TRY(gpu_range_bundles_finish(plan, diag));
    TRY(gpu_side_bundles_finish(plan, diag));
    return gpu_cache_bundles_finish(plan, diag);
}

// Which steps are one call.
static enum mgx_status gather(struct mgx_plan *plan, struct mgx_diag *diag)
{
    gpu_side_settle(plan);
    TRY(gpu_cache_bundles(plan, diag));
    TRY(gpu_few_bundles(plan, diag));
    TRY(gpu_row_bundles(plan, diag));
    TRY(gpu_range_bundles(plan, diag));
    return gpu_side_bundles(plan, diag);
}

static const struct mgx_plan_target gpu_plan_target = {
    .target = &mgx_target_gpu,
    .kernels = gpu_kernels,
    .copy = &gpu_kernel_copy,
    .spread = spread,
    .gather = gather,
    .finish = finish,
    .any_order = true,
    .line_bytes = 16,
    .release = release,
    .print = print,
    .explain = explain,
};

static enum mgx_status read_provider(struct gpu_machine *m, const char *name, struct mgx_diag *diag)
{
    const bool any = !name || !*name || strcmp(name, "auto") == 0;
    m->own_products = !any && strcmp(name, "own") == 0;
    if (any || m->own_products)
        return MGX_OK;
    const struct gpu_vendor *vendor = gpu_vendor_find(name);
    struct mgx_str known = {0};
    if (vendor) {
        m->provider = vendor->name;
        return MGX_OK;
    }
    for (int i = 0; gpu_vendors[i]; i++)
        mgx_str_printf(&known, ", %s", gpu_vendors[i]->name);
    mgx_fail(diag, MGX_INVALID, "\"%s\" provides no products: auto, own%s do", name,
             mgx_str_text(&known));
    mgx_str_fini(&known);
    return diag->status;
}

// Settings of its own:
//
//     device         "cuda", "hip", "opencl", maybe with ":n"; by default what there is
//     device_id      which card, where `device` does not say
//     tf32           products of floats may be TF32
//     tf32_convolutions  convolutions of floats may be, other products not
//     gemm_provider  "own": no vendor's library is used; its name: that one makes products, or
//                    convolutions; by default libraries are candidates where something is measured
//     kernel_folder  where compiled kernels are kept; by default nowhere
static enum mgx_status create_machine(const struct mgx_compile_options *options,
                                      struct mgx_plan_machine **out, struct mgx_diag *diag)
{
    struct gpu_machine *m = calloc(1, sizeof *m);
    if (!m)
        return mgx_fail_memory(diag);
    m->base.target = &gpu_plan_target;
    m->base.threads = 1;
    const struct mgx_settings *own = &options->own;
    enum mgx_status status = read_provider(m, mgx_setting(own, "gemm_provider"), diag);
    if (status == MGX_OK)
        status = gpu_device_open(mgx_setting(own, "device"), mgx_setting_int(own, "device_id"),
                                 &m->device, diag);
    if (status == MGX_OK && !(m->memory = gpu_memory_of(m->device)))
        status = mgx_fail_memory(diag);
    const struct mgx_target *cpu = mgx_target_find("cpu");
    struct mgx_compile_options lent = *options; // ... which copies for this card while others' copy
    if (status == MGX_OK)
        lent.team = m->device->index;
    if (status == MGX_OK && cpu && cpu->lend)
        status = cpu->lend(&lent, &m->base.host, diag);
    if (status != MGX_OK) {
        release(&m->base);
        return status;
    }
    if (m->base.host)
        m->base.threads = m->base.host->threads;
    m->base.memory = &m->memory->base;
    m->tf32 = mgx_setting_is_on(own, "tf32");
    m->tf32_convolutions = mgx_setting_is_on(own, "tf32_convolutions");
    m->exchange = (const struct gpu_exchange *)options->exchange;
    if (m->device->properties.features & GPU_GRAPHS)
        m->base.recorder = &gpu_recorder;
    m->code =
        (struct gpu_code){.device = m->device,
                          .folder = mgx_setting(own, "kernel_folder"),
                          .threads = options->threads ? options->threads : GPU_COMPILE_THREADS};
    *out = &m->base;
    return MGX_OK;
}

static enum mgx_status memory(const char *device, const struct mgx_memory **out,
                              struct mgx_diag *diag)
{
    struct gpu_device *d;
    TRY(gpu_device_open(device, 0, &d, diag));
    struct gpu_memory *m = gpu_memory_of(d); // with a share of its own in the card
    gpu_device_close(d);
    if (!m)
        return mgx_fail_memory(diag);
    *out = &m->base;
    return MGX_OK;
}

// Is the list of all that there may be short enough to be brought to the host as it is? Boxes are
// counted class by class, at most as many as a constant says.
static bool is_bounded(const struct mgx_ins *ins)
{
    enum { MOST = 1 << 17, MOST_SORTED = 2048 }; // numbers of eight bytes
    const struct mgx_shape *x = &ins->in[0]->shape;
    const int64_t elements = mgx_shape_elements(x);
    double each = (double)x->lens[1];
    if (mgx_is(ins, &mgx_op_nonzero))
        return elements * mgx_max_i64(x->rank, 1) <= MOST;
    if (mgx_is(ins, &mgx_op_unique))
        return mgx_type_is_number(x->type) && elements <= MOST_SORTED;
    if (ins->in_count > 2 && ins->in[2]->literal && mgx_splat_value(ins->in[2], &each))
        each = each < (double)x->lens[1] ? each : (double)x->lens[1];
    const struct mgx_shape *scores = &ins->in[1]->shape;
    return 3.0 * (double)(scores->lens[0] * scores->lens[1]) * each <= MOST;
}

// A kernel has one place for what it computes in the instruction behind it.
static bool reads_once(const struct mgx_region *region)
{
    const struct mgx_ins *last = region->ins[region->count - 1];
    for (int i = 0; i < last->in_count; i++)
        for (int k = 0; k < i; k++)
            for (int r = 0; r < region->count && last->in[i] == last->in[k]; r++)
                if (region->ins[r] == last->in[i])
                    return false;
    return true;
}

// Groups that a kernel here computes; the rest stays in pieces, each of which has its own.
static bool supports(void *user, const char *tag, const struct mgx_region *region)
{
    if (strcmp(tag, "attention") == 0)
        return gpu_attention_supports(user, region->ins[0], region->ins[region->count - 1]);
    if (strcmp(tag, "byte_attention") == 0)
        return mgx_type_is_fp8(region->ins[0]->in[0]->shape.type)
                   ? gpu_attention_supports(user, region->ins[0], region->ins[1])
                   : gpu_attention_bytes_supports(user, region->ins[0], region->ins[1]);
    if (strcmp(tag, "attention_bytes") == 0)
        return gpu_attention_bytes_reads(region->ins[1], region->ins[region->count - 1]);
    if (strcmp(tag, "packed_weights") == 0)
        return gpu_few_supports(region->ins[0]);
    if (strcmp(tag, "bounded") == 0)
        return is_bounded(region->ins[0]);
    if (strcmp(tag, "member") == 0)
        return region->ins[0]->op == &mgx_op_topk ||
               region->ins[0]->op == &mgx_op_linear_attention ||
               region->ins[0]->op == &mgx_op_max_pool_indices;
    if (strcmp(tag, "cache") == 0)
        return gpu_cache_supports(user, region->ins[0]);
    if (strcmp(tag, "experts") == 0)
        return gpu_experts_supports(region->ins[0]);
    return strcmp(tag, "epilogue") == 0 && reads_once(region);
}

// A few rows are multiplied by packed weights as they are.
static const struct mgx_pass *const first[] = {&mgx_pass_pack_weights,
                                               &mgx_pass_rewrite_quantization, NULL};

// Models that come quantised: bytes are seen where an exporter wrote them, with their scales beside
// them ...
static const struct mgx_pass *const seen[] = {&mgx_pass_find_byte_range, &mgx_pass_simplify_qdq,
                                              &mgx_pass_pack_weights, NULL};

// ... and again when views and constants have moved out of their way. Then products lose what kernels
// do not do, and the rest is spelled out.
static const struct mgx_pass *const bytes[] = {&mgx_pass_simplify_qdq,
                                               &mgx_pass_requantize_first,
                                               &mgx_pass_fold_dequantize,
                                               &mgx_pass_optimize_module,
                                               &mgx_pass_part_windows,
                                               &mgx_pass_rewrite_backwards,
                                               &mgx_pass_propagate_constant,
                                               &mgx_pass_requantize_first, // with known factors
                                               &mgx_pass_bare_products,
                                               &mgx_pass_propagate_constant,
                                               &mgx_pass_scale_once,
                                               &mgx_pass_join_bytes,
                                               &mgx_pass_rewrite_quantization,
                                               &mgx_pass_optimize_module,
                                               &mgx_pass_scale_once, // what views had parted
                                               NULL};

// The caller gives results their places before the run.
static const struct mgx_pass *const placed[] = {&mgx_pass_settle_caches, NULL};

// What the host will compute first of all.
static const struct mgx_pass *const pipeline[] = {&mgx_pass_compute_wide_late,
                                                  &mgx_pass_narrow_moves,
                                                  &mgx_pass_eliminate_common_subexpression,
                                                  &mgx_pass_propagate_constant,
                                                  &mgx_pass_eliminate_convert,
                                                  &mgx_pass_find_known_rotary,
                                                  &mgx_pass_find_activation,
                                                  &mgx_pass_find_softmax,
                                                  &mgx_pass_part_windows,
                                                  &mgx_pass_gather_rolls,
                                                  &mgx_pass_split_groups,
                                                  &mgx_pass_eliminate_common_subexpression,
                                                  &mgx_pass_reduce_bytes,
                                                  &mgx_pass_repeat_dequantize,
                                                  &mgx_pass_spread_byte_range,
                                                  &mgx_pass_compute_twice,
                                                  &mgx_pass_fuse_reduce,
                                                  &mgx_pass_fuse_pointwise,
                                                  &mgx_pass_fuse_attention,
                                                  &mgx_pass_fuse_epilogue,
                                                  NULL};

// What has no kernel here, in operators that have.
static const struct mgx_pass *const spelled[] = {
    &mgx_pass_find_rotary,     &mgx_pass_attend_kept,       &mgx_pass_attend_in_place,
    &mgx_pass_rewrite_pages,   &mgx_pass_rewrite_cache,     &mgx_pass_rewrite_steps,
    &mgx_pass_rewrite_experts, &mgx_pass_rewrite_dft,       &mgx_pass_bound_sizes,
    &mgx_pass_split_members,   &mgx_pass_rewrite_backwards, NULL};

static const struct mgx_pass *const rounds[] = {&mgx_pass_unroll, NULL};

// Loops within loops show what they are from the outside inwards, or from the inside outwards. What
// a table becomes when it is narrowed may be as large as WIDEST_TABLE.
static const struct mgx_stage stages[] = {
    {"first", first, .none = MGX_QUANTIZED | MGX_INTEGER},
    {"seen", seen, .any = MGX_QUANTIZED | MGX_INTEGER},
    {"placed", placed, .all = MGX_RESULTS_PLACED},
    {"simplify", mgx_pipeline_simplify, .shared = true},
    {"bytes", bytes, .any = MGX_QUANTIZED | MGX_INTEGER},
    {"unroll", rounds, .all = MGX_ROUNDS, .rounds = 3, .between = mgx_pipeline_simplify},
    {"spell", spelled},
    {"fuse", pipeline, .fold_limit_bytes = WIDEST_TABLE},
    {NULL}};

static enum mgx_status run_passes(struct mgx_program *p, const struct mgx_plan_machine *machine,
                                  const struct mgx_compile_options *options, struct mgx_diag *diag)
{
    const unsigned facts =
        mgx_facts_of(p) | (options->offload_copy ? 0 : (unsigned)MGX_RESULTS_PLACED);
    struct mgx_pass_options pass = options->pass;
    pass.target.supports = supports;
    pass.target.takes = gpu_takes;
    pass.target.user = gpu_machine(machine)->device;
    pass.target.multiplies_fp8 = true;
    pass.target.leaves_ranges = gpu_machine(machine)->device->properties.features & GPU_TENSOR_MAPS;
    pass.target.multiplies_bytes = facts & (MGX_QUANTIZED | MGX_INTEGER);
    struct mgx_plan_folder *folder = NULL;
    if (machine->host && !(folder = mgx_plan_folder_create(p, machine->host, &pass)))
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_run_stages(p, stages, facts, &pass, options, diag);
    mgx_plan_folder_destroy(folder);
    return status;
}

static enum mgx_status compile(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag)
{
    static const struct mgx_planned_target target = {create_machine, run_passes};
    return mgx_compile_planned(p, &target, options, diag);
}

// Hopper's matrix units alone have a model of time (lower/wgmma_tile.c).
static bool has_model(const struct mgx_compile_options *options)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    struct gpu_device *device;
    if (gpu_device_open(mgx_setting(&options->own, "device"),
                        mgx_setting_int(&options->own, "device_id"), &device, &quiet) != MGX_OK)
        return false;
    const bool has = device->properties.features & GPU_TENSOR_MAPS;
    gpu_device_close(device);
    return has;
}

static enum mgx_status weigh(struct mgx_program *p, const struct mgx_compile_options *options,
                             mgx_weight_told *tell, void *to, struct mgx_diag *diag)
{
    struct mgx_compile_options own = *options;
    own.only_steps = true;
    if (!has_model(options))
        return MGX_OK;
    TRY(compile(p, &own, diag));
    mgx_plan_weigh(p, tell, to);
    return MGX_OK;
}

// --- saved programs ---

static void put_kind(const struct gpu_device *device, struct mgx_str *out)
{
    mgx_str_printf(out, "gpu %s %s", device->api->name, device->properties.arch);
}

static enum mgx_status kind(const struct mgx_compile_options *options, struct mgx_str *out,
                            struct mgx_diag *diag)
{
    struct gpu_device *device;
    TRY(gpu_device_open(mgx_setting(&options->own, "device"),
                        mgx_setting_int(&options->own, "device_id"), &device, diag));
    put_kind(device, out);
    gpu_device_close(device);
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}

// With the kernels for this card, and the kind of the card that it was compiled for.
static enum mgx_status carry(const struct mgx_program *p, struct mgx_carry *out,
                             struct mgx_diag *diag)
{
    const struct gpu_machine *m = gpu_machine(((const struct mgx_plan *)p->executable)->machine);
    struct mgx_str code = {0}, text = {0};
    TRY(mgx_plan_carry(p, out, diag));
    gpu_units_carry(m->units, m->unit_count, &code);
    put_kind(m->device, &text);
    out->kind = mgx_arena_strdup(&out->arena, mgx_str_text(&text));
    out->code = code.size ? mgx_arena_memdup(&out->arena, code.text, code.size) : NULL;
    out->code_size = out->code ? code.size : 0;
    const bool good = !code.failed && !text.failed && !out->arena.failed;
    mgx_str_fini(&code);
    mgx_str_fini(&text);
    return good ? MGX_OK : mgx_fail_memory(diag);
}

static const char *const keeps[] = {"tf32", "tf32_convolutions", "gemm_provider", NULL};

const struct mgx_target mgx_target_gpu = {.name = "gpu",
                                          .usable = gpu_device_usable,
                                          .memory = memory,
                                          .card = gpu_device_name,
                                          .exchange = gpu_exchange_create,
                                          .compile = compile,
                                          .bytes = mgx_plan_bytes,
                                          .sees_values = true,
                                          .run = mgx_plan_run,
                                          .destroy = mgx_plan_destroy,
                                          .print = gpu_print_program,
                                          .explain = mgx_plan_explain,
                                          .plan = mgx_plan_list,
                                          .weigh = weigh,
                                          .kind = kind,
                                          .stages = stages,
                                          .keeps = keeps,
                                          .carry = carry};
