// SPDX-License-Identifier: MIT
// Instructions whose sizes are known only at run time: a kernel is chosen for the sizes that came.
//
// Choosing is what the planner does ahead of time, here done once per set of input shapes and
// remembered with the step: a few microseconds the first time, a comparison of shapes afterwards.
// Weights are packed once and found again, since packing depends on sizes of weights alone. Inputs
// and results live as tensors of the context. What no kernel takes, small work, and sizes beyond
// the bound of the cache go to the reference.
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "target/cpu/lower/dynamic.h"

enum { MAX_CHOICES = 64, SMALL = 512 };

struct choice {
    struct choice *next;
    struct mgx_shape *in; // the key
    struct mgx_shape out;
    const struct cpu_kernel *kernel; // NULL: the reference
    void *state;
    size_t workspace;
    bool *skip;
};

struct cpu_dynamic {
    struct choice *choices; // under the plan's lock; rows are immutable once listed
    int count;
    const struct mgx_tensor **constant;
};

struct cpu_dynamic *cpu_dynamic_create(struct cpu_prepare *c)
{
    struct cpu_dynamic *d = MGX_NEW(&c->plan->arena, struct cpu_dynamic);
    if (!d)
        return NULL;
    d->constant = MGX_NEW_ARRAY(&c->plan->arena, const struct mgx_tensor *, c->in_count);
    for (int i = 0; d->constant && i < c->in_count; i++)
        d->constant[i] = c->constant[i];
    return d->constant ? d : NULL;
}

static bool is_key(const struct choice *choice, const struct mgx_tensor *const *in, int count)
{
    for (int i = 0; i < count; i++)
        if (!mgx_shape_equal(&choice->in[i], &in[i]->shape))
            return false;
    return true;
}

static bool plain(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE &&
           s->type != MGX_STRING;
}

// The true result, from the actual inputs.
static bool result_shape(const struct cpu_step *step, const struct mgx_tensor *const *in,
                         struct mgx_arena *arena, struct mgx_shape *out)
{
    const struct mgx_shape **shapes =
        MGX_NEW_ARRAY(arena, const struct mgx_shape *, step->own_count);
    struct mgx_diag diag = {0}; // the reference will say what is wrong
    if (!shapes)
        return false;
    for (int i = 0; i < step->own_count; i++)
        shapes[i] = &in[i]->shape;
    struct mgx_shape_call call = {.op = step->ins->op,
                                  .attr = step->ins->attr,
                                  .in = shapes,
                                  .in_count = step->own_count,
                                  .values = in,
                                  .mod = step->ins->mod,
                                  .mod_count = step->ins->mod_count,
                                  .arena = arena,
                                  .diag = &diag};
    return mgx_op_shape(&call, out) == MGX_OK && plain(out);
}

static bool ask(struct cpu_prepare *c, struct choice *choice)
{
    for (int i = 0; cpu_kernels[i]; i++) {
        const struct cpu_kernel *kernel = cpu_kernels[i];
        if (kernel == &cpu_kernel_ref)
            break;
        c->state = NULL;
        c->workspace = 0;
        memset(c->skip_in, 0, (size_t)c->in_count);
        memset(c->want_in, 0, (size_t)c->in_count);
        if (kernel->prepare(c)) {
            choice->kernel = kernel;
            choice->state = c->state;
            choice->workspace = c->workspace;
            return true;
        }
        if (c->diag->status != MGX_OK)
            return false;
    }
    return false;
}

// A new row for these shapes; under the lock, in the plan's arena. NULL when out of memory.
static struct choice *choose(struct cpu_plan *plan, const struct cpu_step *step,
                             struct cpu_dynamic *d, const struct mgx_tensor *const *in,
                             const struct mgx_shape *out)
{
    const int count = step->own_count;
    struct mgx_arena *arena = &plan->arena;
    struct choice *choice = MGX_NEW(arena, struct choice);
    unsigned char *want = MGX_NEW_ARRAY(arena, unsigned char, count);
    struct mgx_diag diag = {0};
    if (!choice || !want || !(choice->in = MGX_NEW_ARRAY(arena, struct mgx_shape, count)) ||
        !(choice->skip = MGX_NEW_ARRAY(arena, bool, count)))
        return NULL;
    for (int i = 0; i < count; i++)
        choice->in[i] = in[i]->shape;
    choice->out = cpu_natural_layout(step->ins, out, choice->in, count);
    struct cpu_prepare c = {.plan = plan,
                            .ins = step->ins,
                            .in = choice->in,
                            .in_count = count,
                            .constant = d->constant,
                            .out = &choice->out,
                            .skip_in = choice->skip,
                            .want_in = want,
                            .diag = &diag};
    ask(&c, choice);
    choice->next = d->choices;
    d->choices = choice;
    d->count++;
    return choice;
}

static const struct choice *find(struct cpu_plan *plan, const struct cpu_step *step,
                                 const struct mgx_tensor *const *in)
{
    struct cpu_dynamic *d = step->state;
    struct choice *choice;
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    pthread_mutex_lock(&plan->lock);
    for (choice = d->choices; choice && !is_key(choice, in, step->own_count); choice = choice->next)
        ;
    struct mgx_shape out;
    if (!choice && d->count < MAX_CHOICES && result_shape(step, in, &arena, &out))
        choice = choose(plan, step, d, in, &out);
    pthread_mutex_unlock(&plan->lock);
    mgx_arena_fini(&arena);
    return choice && choice->kernel ? choice : NULL;
}

static bool suits(const struct cpu_step *step, const struct mgx_tensor *const *in)
{
    if (!step->state || step->ins->mod_count > 1 || step->own_count < 1 || step->own_count > 8)
        return false;
    int64_t elements = 0;
    for (int i = 0; i < step->own_count; i++) {
        if (!plain(&in[i]->shape))
            return false;
        elements += mgx_shape_elements(&in[i]->shape);
    }
    return elements >= SMALL;
}

enum mgx_status cpu_dynamic_run(const struct cpu_step *step, const struct cpu_args *args,
                                const struct mgx_tensor *const *in, struct mgx_tensor *out,
                                bool *done, struct mgx_diag *diag)
{
    *done = false;
    const struct choice *choice = suits(step, in) ? find(args->context->plan, step, in) : NULL;
    if (!choice)
        return MGX_OK;
    void *pointers[8], *workspace = NULL;
    for (int i = 0; i < step->own_count; i++)
        pointers[i] = in[i]->data;
    TRY(mgx_tensor_create(out, &choice->out, diag));
    if (choice->workspace && posix_memalign(&workspace, 64, choice->workspace)) {
        mgx_tensor_release(out);
        return mgx_fail_memory(diag);
    }
    const struct cpu_step prepared = {
        .kernel = choice->kernel, .ins = step->ins, .state = choice->state};
    const struct cpu_args a = {
        .in = pointers, .out = out->data, .workspace = workspace, .context = args->context};
    const enum mgx_status status = choice->kernel->run(&prepared, &a, diag);
    free(workspace);
    if (status != MGX_OK)
        mgx_tensor_release(out);
    *done = status == MGX_OK;
    return status;
}
