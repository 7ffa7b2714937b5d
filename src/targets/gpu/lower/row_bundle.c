// SPDX-License-Identifier: MIT
// A row's kernel that leaves its results twice, where the next step makes them narrow:
//
//     y = fused_reduce(...)          for a residual, in half
//     q = quantizelinear(y)     =>   one launch: each thread makes its q's of the y's that it stores
//
// Holds: q is made of what is stored, so its bits are those of the two steps. Both lie alike, densely. Cost: y is not
// read again, and one launch is saved.
#include <string.h>

#include "op/op.h"
#include "plan/context.h"
#include "targets/gpu/lower/row_also.h"

struct pair {
    struct gpu_call base;
    const struct mgx_plan *plan;
    const struct mgx_plan_step *row, *also;
};

// --- finding the steps ---

static bool is_alone(const struct mgx_plan *plan, int s)
{
    const struct mgx_plan_step *step = &plan->steps[s];
    return gpu_step_is_plain(step) && !step->bundle && mgx_plan_bundle_first(plan, s) == s;
}

static bool lies_as(const struct mgx_shape *a, const struct mgx_shape *b)
{
    return mgx_shape_is_standard(a) && mgx_shape_is_standard(b) &&
           mgx_shape_elements(a) == mgx_shape_elements(b);
}

// Does step s + 1 make step s's results narrow, each by itself?
static bool is_pair(const struct mgx_plan *plan, int s)
{
    const struct mgx_plan_step *row = &plan->steps[s], *also = row + 1;
    if (s + 1 >= plan->step_count || row->kernel != &gpu_kernel_fused_reduce ||
        also->kernel != &gpu_kernel_pointwise || also->in_count != 1 || also->ins->in_count != 1 ||
        row->in_count + 2 > GPU_CALL_INPUTS || !is_alone(plan, s) || !is_alone(plan, s + 1))
        return false;
    const struct mgx_shape *y = &row->out_value->shape, *q = &also->out_value->shape;
    int64_t at = 0, begin = 0;
    return mgx_plan_root(also->in_value[0], &at) == mgx_plan_root(row->out_value, &begin) &&
           at == begin && mgx_type_size(q->type) < mgx_type_size(y->type) && lies_as(y, q) &&
           lies_as(y, &also->in_value[0]->shape);
}

// --- the call ---

static enum mgx_status run(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag)
{
    const struct pair *k = state;
    struct gpu_device *d = gpu_machine(k->plan->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 2];
    void *at[GPU_CALL_INPUTS + 2];
    const int count = k->base.in_count + 2;
    *done = true;
    at[0] = mgx_context_address(x, &k->row->out);
    for (int i = 0; i < k->base.in_count; i++)
        at[i + 1] = mgx_context_address(x, &k->row->in[i]);
    at[count - 1] = mgx_context_address(x, &k->also->out);
    for (int i = 0; i < count; i++)
        list[i] = (struct gpu_arg){&at[i], sizeof at[i], true};
    return d->api->launch(d, gpu_queue_stream(x->queue), k->base.kernel, &k->base.how, list, count,
                          diag);
}

// The row's step, offered once more.
struct again {
    struct mgx_plan_offer offer;
    struct mgx_shape in[GPU_CALL_INPUTS];
    const struct mgx_tensor *constant[GPU_CALL_INPUTS];
    int64_t offset[GPU_CALL_INPUTS];
};

static void offer_again(struct mgx_plan *plan, const struct mgx_plan_step *row, struct again *a,
                        struct mgx_diag *diag)
{
    static const struct mgx_tensor known;
    memset(a, 0, sizeof *a);
    a->offer = gpu_offer_of(plan, row, a->in);
    for (int i = 0; i < row->in_count; i++)
        if (mgx_plan_root(row->in_value[i], &a->offset[i])->place == MGX_PLAN_CONST)
            a->constant[i] = &known;
    a->offer.constant = a->constant;
    a->offer.in_offset = a->offset;
    a->offer.arena = &plan->store.arena;
    a->offer.store = &plan->store;
    a->offer.diag = diag;
}

static enum mgx_status bundle(struct mgx_plan *plan, int s, struct mgx_diag *diag)
{
    struct mgx_plan_step *row = &plan->steps[s];
    struct mgx_arena *arena = &plan->store.arena;
    struct again a;
    offer_again(plan, row, &a, diag);
    if (gpu_row_take_twice(&a.offer, row[1].ins) != MGX_PLAN_TAKEN)
        return diag->status;
    struct pair *k = MGX_NEW(arena, struct pair);
    struct mgx_plan_bundle *bundle = MGX_NEW(arena, struct mgx_plan_bundle);
    if (!k || !bundle)
        return mgx_fail_memory(diag);
    *k = (struct pair){*(const struct gpu_call *)a.offer.state, plan, row, row + 1};
    *bundle = (struct mgx_plan_bundle){2, run, k};
    row->bundle = bundle;
    row->detail = mgx_arena_printf(arena, "%s; one call with the next", row->detail);
    return row->detail ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status gpu_row_bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s + 1 < plan->step_count; s++)
        if (is_pair(plan, s))
            TRY(bundle(plan, s++, diag));
    return MGX_OK;
}

enum mgx_status gpu_row_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    return gpu_bundles_find(plan, run, diag);
}
