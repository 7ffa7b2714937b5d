// SPDX-License-Identifier: MIT
// Making a convolution plan, ordinary or transposed: choosing a method, preparing it.
#include "targets/cpu/kernel/image/conv_plan.h"

#include <assert.h>

int mgx_conv_choices(const struct mgx_conv_desc *desc, struct mgx_conv_choice *choices)
{
    assert(desc && choices);
    struct mgx_conv_plan plan = {.d = *desc};
    if (mgx_conv_check(desc, NULL) != MGX_OK)
        return 0;
    if (desc->transposed) { // there is one method, and it takes no feed
        choices[0] = (struct mgx_conv_choice){MGX_CONV_PHASES, 0};
        return desc->feed ? 0 : 1;
    }
    mgx_conv_plan_derive(&plan);
    return mgx_conv_plan_choices(&plan, choices);
}

// Weights that no chunks can hold, or too many, are widened; another method may be better then.
static bool lacks_chunks(const struct mgx_conv_plan *plan)
{
    return mgx_gemm_in_chunks(plan->kernel) && !plan->panel_chunks;
}

static enum mgx_status create_without_weights(const struct mgx_conv_desc *desc,
                                              enum mgx_conv_method method,
                                              struct mgx_conv_plan **out, struct mgx_diag *diag)
{
    struct mgx_conv_desc d = *desc;
    d.weights = NULL;
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(&d, choices);
    bool fits = false;
    for (int i = 0; i < count; i++)
        fits |= choices[i].method == method;
    return mgx_conv_plan_create(&d, fits ? method : MGX_CONV_METHOD_COUNT, out, diag);
}

static enum mgx_status prepare(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                               struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    if (method == MGX_CONV_METHOD_COUNT)
        method = d->feed         ? MGX_CONV_DEPTHWISE
                 : d->transposed ? MGX_CONV_PHASES
                                 : mgx_conv_plan_choose(plan);
    return method == MGX_CONV_PHASES && d->transposed
               ? mgx_conv_plan_use(plan, method, &mgx_conv_phases, diag)
               : mgx_conv_plan_prepare(plan, method, diag);
}

enum mgx_status mgx_conv_plan_create(const struct mgx_conv_desc *desc, enum mgx_conv_method method,
                                     struct mgx_conv_plan **out, struct mgx_diag *diag)
{
    struct mgx_conv_plan *plan;
    *out = NULL;
    TRY(mgx_conv_plan_start(desc, &plan, diag));
    const enum mgx_status status = prepare(plan, desc->feed ? MGX_CONV_METHOD_COUNT : method, diag);
    if (status != MGX_OK) {
        mgx_conv_plan_destroy(plan);
        return status;
    }
    if (lacks_chunks(plan)) {
        mgx_conv_plan_destroy(plan);
        return create_without_weights(desc, method, out, diag);
    }
    *out = plan;
    return MGX_OK;
}
