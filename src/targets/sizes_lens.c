// SPDX-License-Identifier: MIT
// A size that is asked for by name: the lengths of all free axes from those of some inputs.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "targets/sizes_own.h"

int mgx_sizes_axes(const struct mgx_sizes *s)
{
    return s->len_count;
}

static const struct mgx_named_lens *find_lens(const struct mgx_named_lens *given, int count,
                                              const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(given[i].name, name) == 0)
            return &given[i];
    return NULL;
}

static enum mgx_status check_axis(const struct mgx_ins *param, int axis, int64_t length,
                                  struct mgx_diag *diag)
{
    const struct mgx_dim d = mgx_shape_dim(&param->shape, axis);
    if (length >= d.min && length <= d.max)
        return MGX_OK;
    return mgx_fail(
        diag, MGX_INVALID, "axis %d of parameter %s: length %lld, allowed are %lld..%lld", axis,
        mgx_parameter_name(param), (long long)length, (long long)d.min, (long long)d.max);
}

static enum mgx_status check_given(const struct mgx_ins *param, const struct mgx_named_lens *given,
                                   struct mgx_diag *diag)
{
    if (given && given->rank != param->shape.rank)
        return mgx_fail(diag, MGX_INVALID, "parameter %s has %d axes, but %d lengths are given",
                        mgx_parameter_name(param), param->shape.rank, given->rank);
    for (int axis = 0; given && axis < given->rank; axis++)
        TRY(check_axis(param, axis, given->lens[axis], diag));
    return MGX_OK;
}

// The length that is given for an axis of this name; -1 if none is.
static int64_t length_of_name(struct mgx_ins *const *params, int param_count, const char *name,
                              const struct mgx_named_lens *given, int count)
{
    for (int i = 0; name && i < param_count; i++) {
        const struct mgx_named_lens *g = find_lens(given, count, mgx_parameter_name(params[i]));
        for (int axis = 0; g && axis < g->rank; axis++) {
            const char *own = mgx_shape_dim(&params[i]->shape, axis).name;
            if (own && strcmp(own, name) == 0)
                return g->lens[axis];
        }
    }
    return -1;
}

enum mgx_status mgx_sizes_lens(const struct mgx_sizes *s, const struct mgx_named_lens *given,
                               int count, int64_t *lens, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(s->simplified);
    const int param_count = mgx_module_parameters(m, NULL, 0);
    struct mgx_ins **params = calloc((size_t)param_count + 1, sizeof(struct mgx_ins *));
    if (!params)
        return mgx_fail_memory(diag);
    mgx_module_parameters(m, params, param_count);
    for (int i = 0; i < param_count && diag->status == MGX_OK; i++)
        (void)!check_given(params[i], find_lens(given, count, mgx_parameter_name(params[i])), diag);
    for (int i = 0; i < s->len_count && diag->status == MGX_OK; i++) {
        const struct mgx_ins *param = params[s->axes[i].param];
        const int axis = s->axes[i].axis;
        const struct mgx_named_lens *g = find_lens(given, count, mgx_parameter_name(param));
        lens[i] = g ? g->lens[axis]
                    : length_of_name(params, param_count, mgx_shape_dim(&param->shape, axis).name,
                                     given, count);
        if (lens[i] < 0)
            mgx_fail(diag, MGX_INVALID, "axis %d of parameter %s has no length", axis,
                     mgx_parameter_name(param));
        else
            (void)!check_axis(param, axis, lens[i], diag);
    }
    free(params);
    return diag->status;
}

enum mgx_status mgx_sizes_fix(const struct mgx_sizes *s, const int64_t *lens, bool offload_copy,
                              struct mgx_program **out, struct mgx_diag *diag)
{
    struct mgx_compile_options options = s->options;
    options.offload_copy = offload_copy;
    return mgx_specialise(out, s->simplified, s->target, &options, NULL, lens, diag);
}
