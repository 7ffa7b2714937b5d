// SPDX-License-Identifier: MIT
// See chain.h.
#include "targets/gpu/lower/chain.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "targets/gpu/emit/type.h"

void gpu_emit_chain_head(struct mgx_str *out, int number, enum mgx_type result,
                         const enum mgx_type *in, int in_count)
{
    assert(number >= 0 && number < GPU_CHAIN_MOST && in_count <= GPU_CALL_INPUTS);
    mgx_str_printf(out, "KERNEL void run%d(GLOBAL %s *out, GLOBAL u8 *work", number,
                   gpu_type_memory(result));
    for (int i = 0; i < in_count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(in[i]), i);
    mgx_str_put(out, ")\n");
}

enum mgx_plan_answer gpu_take_chain(struct mgx_plan_offer *c, struct mgx_str *text,
                                    const struct gpu_launch *how, int count, const int *in,
                                    int in_count)
{
    struct gpu_chain *chain = MGX_NEW(c->arena, struct gpu_chain);
    assert(count > 0 && count <= GPU_CHAIN_MOST && c->workspace);
    if (!chain) {
        mgx_str_fini(text);
        return mgx_plan_no_memory(c);
    }
    chain->count = count;
    memcpy(chain->how, how, (size_t)count * sizeof *how);
    const enum mgx_plan_answer answer = gpu_take_call(c, &chain->base, text, how, in, in_count);
    for (int i = 0; i < count; i++)
        chain->how[i].dependent = chain->base.how.dependent;
    return answer;
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct gpu_chain *chain = step->state;
    (void)plan;
    for (int i = 0; i < chain->count; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d", i);
        TRY(gpu_unit_kernel(chain->base.unit, name, chain->how[i].shared, &chain->kernel[i], diag));
    }
    return MGX_OK;
}

const struct gpu_family gpu_chain_family = {finish};

enum mgx_status gpu_run_chain(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                              struct mgx_diag *diag)
{
    const struct gpu_chain *chain = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 2];
    list[0] = (struct gpu_arg){&args->out, sizeof(void *), true};
    list[1] = (struct gpu_arg){&args->workspace, sizeof(void *), true};
    for (int i = 0; i < chain->base.in_count; i++)
        list[i + 2] = (struct gpu_arg){&args->in[chain->base.in[i]], sizeof(void *), true};
    for (int i = 0; i < chain->count; i++)
        if (chain->how[i].grid[0])
            TRY(d->api->launch(d, gpu_queue_stream(args->queue), chain->kernel[i], &chain->how[i],
                               list, chain->base.in_count + 2, diag));
    return MGX_OK;
}
