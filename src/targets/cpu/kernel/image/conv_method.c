// SPDX-License-Identifier: MIT
// The methods of an ordinary convolution, and the best of them for a description. A transposed one
// is several ordinary ones: conv_phases.c.
#include <assert.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_plan.h"

static const struct mgx_conv_ops *const methods[] = {
    [MGX_CONV_DIRECT] = &mgx_conv_direct,
    [MGX_CONV_STRIP] = &mgx_conv_strip,
    [MGX_CONV_UNROLLED] = &mgx_conv_unrolled,
    [MGX_CONV_WINOGRAD2] = &mgx_conv_winograd2,
    [MGX_CONV_WINOGRAD4] = &mgx_conv_winograd4,
    [MGX_CONV_WINOGRAD_BYTES] = &mgx_conv_winograd_bytes,
    [MGX_CONV_DEPTHWISE] = &mgx_conv_depthwise,
    [MGX_CONV_DEPTHWISE_BYTES] = &mgx_conv_depthwise_bytes,
};
enum { ORDINARY = MGX_COUNT(methods) };

static bool method_fits(const struct mgx_conv_plan *plan, enum mgx_conv_method method)
{
    return !plan->d.transposed && methods[method]->fits(plan) &&
           (!plan->d.x_scaled || method <= MGX_CONV_UNROLLED) &&
           (!plan->d.feed || method == MGX_CONV_DEPTHWISE);
}

int mgx_conv_plan_choices(const struct mgx_conv_plan *plan, struct mgx_conv_choice *choices)
{
    int count = 0;
    for (int m = 0; m < ORDINARY; m++) {
        if (!method_fits(plan, (enum mgx_conv_method)m))
            continue;
        const struct mgx_conv_choice choice = {(enum mgx_conv_method)m, methods[m]->cost(plan)};
        int at = count++;
        for (; at > 0 && choices[at - 1].seconds > choice.seconds; at--)
            choices[at] = choices[at - 1];
        choices[at] = choice;
    }
    assert(count > 0 || plan->d.feed); // strip takes all others
    return count;
}

enum mgx_conv_method mgx_conv_plan_choose(const struct mgx_conv_plan *plan)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    mgx_conv_plan_choices(plan, choices);
    return choices[0].method;
}

enum mgx_status mgx_conv_plan_prepare(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                                      struct mgx_diag *diag)
{
    if ((int)method >= ORDINARY || !method_fits(plan, method))
        return mgx_fail(diag, MGX_UNSUPPORTED, "convolution method %s does not fit",
                        mgx_conv_method_name(method));
    return mgx_conv_plan_use(plan, method, methods[method], diag);
}
