// SPDX-License-Identifier: MIT
// Buffers of a contest; see trial.h.
#include "targets/cpu/lower/trial.h"

#include <stdlib.h>

static void *buffer_like(const struct mgx_shape *shape)
{
    return mgx_plan_tune_buffer(mgx_shape_bytes(shape));
}

bool cpu_trial_init(struct cpu_trial *t, const struct mgx_plan_offer *c,
                    const struct cpu_epilogue *e, int64_t columns, size_t w_bytes, size_t workspace,
                    struct mgx_diag *diag)
{
    const size_t row = (size_t)columns * sizeof(float);
    *t = (struct cpu_trial){
        .x = buffer_like(&c->in[e->main_in[0]]),
        .w = mgx_plan_tune_buffer(w_bytes),
        .y = buffer_like(c->out),
        .bias = mgx_plan_tune_buffer(row),
        .scale = mgx_plan_tune_buffer(row),
        .workspace = mgx_plan_tune_buffer(workspace),
        .residual = e->residual >= 0 ? buffer_like(&c->in[e->residual]) : NULL,
    };
    if (t->x && t->w && t->y && t->bias && t->scale && t->workspace &&
        (e->residual < 0 || t->residual))
        return true;
    mgx_fail_memory(diag);
    return false;
}

void cpu_trial_fini(struct cpu_trial *t)
{
    void *const buffers[] = {t->x, t->w, t->y, t->bias, t->scale, t->workspace, t->residual};
    for (int i = 0; i < MGX_COUNT(buffers); i++)
        free(buffers[i]);
    *t = (struct cpu_trial){NULL};
}
