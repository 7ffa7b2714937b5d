// SPDX-License-Identifier: MIT
// if: one of two bodies, chosen by a boolean; the result is the tuple of the body's results.
//
//     y = cond ? then(args...) : else(args...)
//
// Branches may differ in shape: what is declared is what is true of both. Only the chosen branch
// runs. The arguments go by name: as many as the two bodies have different parameters, in the
// alphabet's order, each body taking those it knows. Where there are as many as each body has
// parameters, whatever they are called, both take all in order.
// Cost: sorting the names, once per shape rule and run.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/rule/body.h"

static int by_name(const void *a, const void *b)
{
    assert(*(const char *const *)a && *(const char *const *)b);
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The names of both bodies' parameters, sorted, each once.
static const char **parameter_names(struct mgx_arena *arena, struct mgx_module *const *mod,
                                    int *count)
{
    assert(mod && mod[0]);
    int taken[2], total = 0;
    for (int i = 0; i < 2; i++)
        total += taken[i] = mgx_module_parameters(mod[i], NULL, 0);
    struct mgx_ins **params = MGX_NEW_ARRAY(arena, struct mgx_ins *, total);
    const char **names = MGX_NEW_ARRAY(arena, const char *, total);
    if (!params || !names)
        return NULL;
    mgx_module_parameters(mod[0], params, taken[0]);
    mgx_module_parameters(mod[1], params + taken[0], taken[1]);
    for (int i = 0; i < total; i++)
        names[i] = mgx_parameter_name(params[i]);
    if (total)
        qsort(names, (size_t)total, sizeof *names, by_name);
    *count = 0;
    for (int i = 0; i < total; i++)
        if (!*count || strcmp(names[*count - 1], names[i]) != 0)
            names[(*count)++] = names[i];
    return names;
}

int *mgx_if_arguments(struct mgx_arena *arena, struct mgx_module *const *mod, int which, int given,
                      int *count)
{
    assert((which == 0 || which == 1) && given >= 0);
    int known;
    const char **names = parameter_names(arena, mod, &known);
    *count = mgx_module_parameters(mod[which], NULL, 0);
    struct mgx_ins **params = MGX_NEW_ARRAY(arena, struct mgx_ins *, *count);
    int *position = MGX_NEW_ARRAY(arena, int, *count);
    if (!names || !params || !position)
        return NULL;
    mgx_module_parameters(mod[which], params, *count);
    for (int i = 0; i < *count; i++) {
        const char *const name = mgx_parameter_name(params[i]);
        const char **at = bsearch(&name, names, (size_t)known, sizeof *names, by_name);
        position[i] = known == given ? (int)(at - names) : i;
    }
    *count = known == given ? *count : given;
    return position;
}

// A body is handed what it takes of the inputs behind the condition.
static enum mgx_status body_fits(struct mgx_shape_call *c, int which)
{
    assert(which == 0 || which == 1);
    int count;
    const int given = c->in_count - 1;
    const int *position = mgx_if_arguments(c->arena, c->mod, which, given, &count);
    const struct mgx_shape **shapes = MGX_NEW_ARRAY(c->arena, const struct mgx_shape *, count);
    if (!position || !shapes)
        return mgx_fail_memory(c->diag);
    const bool fits = mgx_module_parameters(c->mod[which], NULL, 0) == count;
    for (int i = 0; fits && i < count; i++)
        shapes[i] = c->in[1 + position[i]];
    return mgx_body_takes(c, c->mod[which], fits ? shapes : c->in + 1, count);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->mod_count != 2)
        return mgx_fail(c->diag, MGX_INVALID, "if: takes two modules, given %d", c->mod_count);
    for (int i = 0; i < 2; i++)
        TRY(body_fits(c, i));
    const int count = mgx_module_result_count(c->mod[0]),
              other = mgx_module_result_count(c->mod[1]);
    if (count != other)
        return mgx_fail(c->diag, MGX_INVALID, "if: one branch has %d results, the other %d", count,
                        other);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *a = mgx_body_result(c->mod[0], i),
                               *b = mgx_body_result(c->mod[1], i);
        if (a->type != b->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "if: result %d is %s in one branch, %s in the other", i,
                            mgx_type_name(a->type), mgx_type_name(b->type));
        if (!mgx_shape_join(c->arena, a, b, &sub[i]))
            return mgx_fail_memory(c->diag);
    }
    *out = mgx_shape_tuple(sub, count);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    if (mgx_shape_elements(&c->in[0]->shape) != 1)
        return mgx_fail(c->diag, MGX_INVALID, "if: condition has %lld elements, not one",
                        (long long)mgx_shape_elements(&c->in[0]->shape));
    const int which = mgx_load_int(c->in[0]->shape.type, c->in[0]->data, 0) == 0;
    int taken, count;
    const int *position = mgx_if_arguments(c->scratch, c->mod, which, c->in_count - 1, &taken);
    struct mgx_tensor *args = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, taken), *results;
    if (!position || !args)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < taken; i++)
        args[i] = *c->in[1 + position[i]];
    TRY(mgx_body_run(c, which, args, taken, &results, &count));
    return mgx_body_give(c, results, count);
}

const struct mgx_op mgx_op_if = {
    .name = "if",
    .meaning = "results of the first body where the condition holds, else of the second",
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_first,
};
