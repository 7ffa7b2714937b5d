// SPDX-License-Identifier: MIT
// See transfer.h. A transfer is a step like others: its kernel gives the copy to the queue.
#include "plan/transfer.h"

#include <assert.h>

#include "plan/context.h"

static size_t bytes_of(const struct mgx_shape *s)
{
    return (size_t)mgx_shape_space(s) * mgx_type_size(s->type);
}

static enum mgx_status run_in(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                              struct mgx_diag *diag)
{
    const size_t bytes = bytes_of(&step->out_value->shape);
    return bytes ? args->machine->memory->copy_in(args->queue, args->out, args->in[0], bytes, diag)
                 : MGX_OK;
}

static enum mgx_status run_out(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                               struct mgx_diag *diag)
{
    const size_t bytes = bytes_of(&step->out_value->shape);
    return bytes ? args->machine->memory->copy_out(args->queue, args->out, args->in[0], bytes, diag)
                 : MGX_OK;
}

static const struct mgx_plan_kernel copy_in = {.name = "copy_in", .run = run_in};
static const struct mgx_plan_kernel copy_out = {.name = "copy_out", .run = run_out};

bool mgx_plan_is_transfer(const struct mgx_plan_step *step)
{
    return step->kernel == &copy_in || step->kernel == &copy_out;
}

enum mgx_status mgx_plan_build_transfer(struct mgx_build *b, const struct mgx_ins *ins,
                                        struct mgx_plan_value *from, struct mgx_plan_value *to,
                                        struct mgx_diag *diag)
{
    assert(from->root == from && to->root == to && from->side != to->side);
    assert(from->shape.type == to->shape.type && !from->dynamic && !to->dynamic);
    assert(mgx_shape_space(&from->shape) == mgx_shape_space(&to->shape));
    struct mgx_plan_step *step = mgx_plan_build_step(b, ins, 1, to);
    if (!step)
        return mgx_fail_memory(diag);
    step->in_value[0] = from;
    step->kernel = to->side == MGX_PLAN_DEVICE ? &copy_in : &copy_out;
    step->side = MGX_PLAN_DEVICE; // it goes through the queue
    return MGX_OK;
}

// A root's `first` is the last step that wrote it so far, `last` that step if it was a transfer.
bool mgx_plan_twins_are_fresh(const struct mgx_build *b)
{
    bool fresh = true;
    for (int64_t i = 0; i < b->all.count; i++)
        b->all.v[i]->first = b->all.v[i]->last = -1;
    for (int s = 0; s < b->plan->step_count; s++) {
        const struct mgx_plan_step *step = &b->plan->steps[s];
        for (int i = 0; i < step->in_count; i++) {
            const struct mgx_plan_value *twin = mgx_plan_root(step->in_value[i], NULL);
            if (step->skip[i] || twin->last < 0)
                continue;
            const struct mgx_plan_step *fill = &b->plan->steps[twin->last];
            fresh = fresh && mgx_plan_root(fill->in_value[0], NULL)->first < twin->last;
        }
        struct mgx_plan_value *root = mgx_plan_root(step->out_value, NULL);
        root->first = s;
        root->last = mgx_plan_is_transfer(step) ? s : -1;
    }
    for (int64_t i = 0; i < b->all.count; i++)
        b->all.v[i]->first = b->all.v[i]->last = 0;
    return fresh;
}

// --- twins: a root's bytes on the other side ---

// The root's bytes on the other side, as they are now.
static enum mgx_status find_twin(struct mgx_build *b, const struct mgx_ins *ins,
                                 struct mgx_plan_value *root, struct mgx_plan_value **out,
                                 struct mgx_diag *diag)
{
    const bool constant = root->place == MGX_PLAN_CONST;
    assert(!constant || root->side == MGX_PLAN_HOST);
    if (root->twin && root->twin_age == root->writes) {
        *out = root->twin;
        return MGX_OK;
    }
    *out = mgx_plan_build_value(b, root->ins, &root->shape,
                                root->side == MGX_PLAN_HOST ? MGX_PLAN_DEVICE : MGX_PLAN_HOST);
    if (!*out)
        return mgx_fail_memory(diag);
    if (constant)
        (*out)->place = MGX_PLAN_CONST; // its bytes are there before any run
    else
        TRY(mgx_plan_build_transfer(b, ins, root, *out, diag));
    root->twin = *out;
    root->twin_age = root->writes;
    return MGX_OK;
}

enum mgx_status mgx_plan_build_on(struct mgx_build *b, const struct mgx_ins *ins,
                                  struct mgx_plan_value *v, enum mgx_plan_side side,
                                  struct mgx_plan_value **out, struct mgx_diag *diag)
{
    int64_t offset;
    struct mgx_plan_value *root = mgx_plan_root(v, &offset), *twin;
    *out = v;
    if (root->side == side)
        return MGX_OK;
    assert(b->plan->machine->memory && !root->dynamic);
    TRY(find_twin(b, ins, root, &twin, diag));
    assert(twin == root->twin && root->twin_age == root->writes && twin->side == side);
    assert(twin->root == twin && mgx_shape_equal(&twin->shape, &root->shape));
    *out = v == root ? twin : mgx_plan_build_slice(b, v->ins, &v->shape, twin, offset);
    assert(!*out || v == root || (*out)->offset == offset);
    return *out ? MGX_OK : mgx_fail_memory(diag);
}

// --- on the host ---

static enum mgx_plan_answer prepare_copy(struct mgx_plan_offer *c)
{
    return c->copy_only ? MGX_PLAN_TAKEN : MGX_PLAN_DECLINED;
}

static enum mgx_status run_copy(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                struct mgx_diag *diag)
{
    (void)diag;
    const struct mgx_tensor from = mgx_tensor_borrow(&step->in_value[0]->shape, args->in[0]);
    struct mgx_tensor to = mgx_tensor_borrow(&step->out_value->shape, args->out);
    if (mgx_shape_elements(&to.shape))
        mgx_tensor_copy(&from, &to);
    return MGX_OK;
}

const struct mgx_plan_kernel mgx_plan_host_copy = {
    .name = "copy", .host = true, .prepare = prepare_copy, .run = run_copy};
