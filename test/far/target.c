// SPDX-License-Identifier: MIT
// The far target; see far.h. All that a compiled target must bring, and nothing else.
#include "far/far.h"

#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/product.h"
#include "pass/engine/region.h"
#include "plan/plan.h"

bool far_outputs, far_borrows;

static void release(struct mgx_plan_machine *machine)
{
    if (machine->host)
        machine->host->target->release(machine->host);
    free(machine);
}

static void print(const struct mgx_plan_machine *machine, struct mgx_str *out)
{
    (void)machine;
    mgx_str_put(out, "far");
}

static const struct mgx_plan_target brings = {.target = &far_target,
                                              .kernels = far_kernels,
                                              .copy = &far_kernel_copy,
                                              .release = release,
                                              .print = print,
                                              .explain = print};

// Of the regions that fusion finds, products with what follows them.
static bool supports(void *user, const char *tag, const struct mgx_region *region)
{
    (void)user;
    bool product = false;
    for (int i = 0; i < region->count; i++)
        product |= region->ins[i]->op == &mgx_op_dot;
    return product && strcmp(tag, "epilogue") == 0;
}

static bool takes(void *user, const struct mgx_product_roles *roles)
{
    return !user && !roles->factor && !roles->make && !roles->pad &&
           roles->product->op == &mgx_op_dot;
}

static enum mgx_status compile(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag)
{
    static const struct mgx_pass *const pipeline[] = {
        &mgx_pass_fuse_norm,     &mgx_pass_fuse_pointwise, &mgx_pass_fuse_attention,
        &mgx_pass_fuse_epilogue, &mgx_pass_fuse_expand,    NULL};
    const struct mgx_plan_settings settings = {.offload_copy = options->offload_copy,
                                               .output_params = far_outputs};
    struct mgx_pass_options pass = options->pass;
    pass.target.supports = supports;
    pass.target.takes = takes;
    TRY(mgx_run_passes(p, mgx_pipeline_simplify, &pass, diag));
    TRY(mgx_run_passes(p, pipeline, &pass, diag));
    struct mgx_plan_machine *machine = calloc(1, sizeof *machine);
    if (!machine)
        return mgx_fail_memory(diag);
    *machine = (struct mgx_plan_machine){
        .target = &brings, .memory = &far_memory, .recorder = &far_recorder, .threads = 1};
    if (far_borrows && mgx_target_find("cpu")->lend(options, &machine->host, diag) != MGX_OK) {
        release(machine);
        return diag->status;
    }
    return mgx_plan_compile(p, machine, &settings, diag);
}

const struct mgx_target far_target = {.name = "far",
                                      .compile = compile,
                                      .run = mgx_plan_run,
                                      .destroy = mgx_plan_destroy,
                                      .explain = mgx_plan_explain};
