// SPDX-License-Identifier: MIT
// ONNX: the options of an import, and the import of files and buffers.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

struct migraphx_onnx_options {
    struct mgx_onnx_options values; // lists and texts in the arena
    struct mgx_arena arena;
    bool has_static, has_dynamic; // which kinds of input shapes were given
};

static void onnx_options_fini(struct migraphx_onnx_options *o)
{
    mgx_arena_fini(&o->arena);
}

// --- lists: a name given twice keeps the later value ---

static enum mgx_status copy_dims(struct mgx_arena *arena, const struct mgx_dim *dims, int count,
                                 struct mgx_dim **out, struct mgx_diag *diag)
{
    struct mgx_dim *copy = MGX_NEW_ARRAY(arena, struct mgx_dim, count);
    for (int i = 0; copy && i < count; i++) {
        copy[i] = dims[i];
        copy[i].name = mgx_arena_strdup(arena, dims[i].name);
        copy[i].optimals = mgx_arena_memdup(arena, dims[i].optimals,
                                            (size_t)dims[i].optimal_count * sizeof(int64_t));
    }
    *out = copy;
    return arena->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static enum mgx_status put_input(struct migraphx_onnx_options *o, const char *name,
                                 const struct mgx_dim *dims, int count, struct mgx_diag *diag)
{
    struct mgx_dim *copy;
    TRY(copy_dims(&o->arena, dims, count, &copy, diag));
    struct mgx_onnx_dims *list =
        MGX_NEW_ARRAY(&o->arena, struct mgx_onnx_dims, o->values.input_count + 1);
    char *own = mgx_arena_strdup(&o->arena, name);
    if (!list || !own)
        return mgx_fail_memory(diag);
    int at = 0;
    for (; at < o->values.input_count; at++) {
        list[at] = o->values.inputs[at];
        if (strcmp(list[at].name, name) == 0)
            break;
    }
    for (int i = at + 1; i < o->values.input_count; i++)
        list[i] = o->values.inputs[i];
    list[at] = (struct mgx_onnx_dims){own, copy, count};
    o->values.inputs = list;
    o->values.input_count += at == o->values.input_count;
    return MGX_OK;
}

static enum mgx_status put_dim_param(struct migraphx_onnx_options *o, const char *name,
                                     const struct mgx_dim *dim, struct mgx_diag *diag)
{
    struct mgx_dim *copy;
    TRY(copy_dims(&o->arena, dim, 1, &copy, diag));
    struct mgx_onnx_dim_param *list =
        MGX_NEW_ARRAY(&o->arena, struct mgx_onnx_dim_param, o->values.dim_param_count + 1);
    char *own = mgx_arena_strdup(&o->arena, name);
    if (!list || !own)
        return mgx_fail_memory(diag);
    int kept = 0;
    for (int i = 0; i < o->values.dim_param_count; i++)
        if (strcmp(o->values.dim_params[i].name, name) != 0)
            list[kept++] = o->values.dim_params[i];
    list[kept++] = (struct mgx_onnx_dim_param){own, *copy};
    o->values.dim_params = list;
    o->values.dim_param_count = kept;
    return MGX_OK;
}

static enum mgx_status copy_lists(struct migraphx_onnx_options *out,
                                  const struct migraphx_onnx_options *in, struct mgx_diag *diag)
{
    for (int i = 0; i < in->values.input_count; i++) {
        const struct mgx_onnx_dims *d = &in->values.inputs[i];
        TRY(put_input(out, d->name, d->dims, d->count, diag));
    }
    for (int i = 0; i < in->values.dim_param_count; i++) {
        const struct mgx_onnx_dim_param *d = &in->values.dim_params[i];
        TRY(put_dim_param(out, d->name, &d->dim, diag));
    }
    struct mgx_dim *range;
    TRY(copy_dims(&out->arena, &in->values.default_dyn_dim, 1, &range, diag));
    out->values.default_dyn_dim = *range;
    out->values.external_data_path = mgx_arena_strdup(&out->arena, in->values.external_data_path);
    return out->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}

static enum mgx_status onnx_options_copy(struct migraphx_onnx_options *out,
                                         const struct migraphx_onnx_options *in,
                                         struct mgx_diag *diag)
{
    *out = *in;
    mgx_arena_init(&out->arena);
    out->values.inputs = NULL;
    out->values.input_count = 0;
    out->values.dim_params = NULL;
    out->values.dim_param_count = 0;
    const enum mgx_status status = copy_lists(out, in, diag);
    if (status != MGX_OK)
        onnx_options_fini(out);
    return status;
}

API_HANDLE(onnx_options)

// --- options ---

migraphx_status migraphx_onnx_options_create(migraphx_onnx_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_onnx_options *o = API_NEW(struct migraphx_onnx_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    mgx_arena_init(&o->arena);
    *out = o;
    return migraphx_status_success;
}

migraphx_status
migraphx_onnx_options_set_input_parameter_shape(migraphx_onnx_options_t onnx_options,
                                                const char *name, size_t *dims, size_t dims_size)
{
    API_NEED(onnx_options);
    API_NEED(name);
    if (dims_size)
        API_NEED(dims);
    if (dims_size > MGX_MAX_RANK)
        return mgx_api_bad("%s: rank %zu is above %d", __func__, dims_size, MGX_MAX_RANK);
    struct mgx_dim fixed[MGX_MAX_RANK];
    for (size_t i = 0; i < dims_size; i++) {
        if (dims[i] > MGX_DIM_ANY)
            return mgx_api_bad("%s: length %zu is too large", __func__, dims[i]);
        fixed[i] = (struct mgx_dim){.min = (int64_t)dims[i], .max = (int64_t)dims[i]};
    }
    API_DIAG(diag);
    onnx_options->has_static = true;
    return mgx_api_leave(put_input(onnx_options, name, fixed, (int)dims_size, &diag), &diag);
}

migraphx_status migraphx_onnx_options_set_dyn_input_parameter_shape(
    migraphx_onnx_options_t onnx_options, const char *name, migraphx_dynamic_dimensions_t dims)
{
    API_NEED(onnx_options);
    API_NEED(name);
    API_NEED(dims);
    API_DIAG(diag);
    struct mgx_dim *v;
    enum mgx_status status = mgx_api_dims_gather(&onnx_options->arena, dims, &v, &diag);
    if (status == MGX_OK)
        status = put_input(onnx_options, name, v, (int)dims->count, &diag);
    onnx_options->has_dynamic = true;
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_onnx_options_set_default_dim_value(migraphx_onnx_options_t onnx_options,
                                                            size_t value)
{
    API_NEED(onnx_options);
    if (value > MGX_DIM_ANY)
        return mgx_api_bad("%s: length %zu is too large", __func__, value);
    onnx_options->values.default_dim_value = (int64_t)value;
    return migraphx_status_success;
}

migraphx_status
migraphx_onnx_options_set_default_dyn_dim_value(migraphx_onnx_options_t onnx_options,
                                                const_migraphx_dynamic_dimension_t dd)
{
    API_NEED(onnx_options);
    API_NEED(dd);
    API_DIAG(diag);
    struct mgx_dim *copy;
    const enum mgx_status status = copy_dims(&onnx_options->arena, &dd->dim, 1, &copy, &diag);
    if (status == MGX_OK)
        onnx_options->values.default_dyn_dim = *copy;
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_onnx_options_set_dim_param(migraphx_onnx_options_t onnx_options,
                                                    const char *name,
                                                    const_migraphx_dynamic_dimension_t dd)
{
    API_NEED(onnx_options);
    API_NEED(name);
    API_NEED(dd);
    API_DIAG(diag);
    return mgx_api_leave(put_dim_param(onnx_options, name, &dd->dim, &diag), &diag);
}

migraphx_status migraphx_onnx_options_set_external_data_path(migraphx_onnx_options_t onnx_options,
                                                             const char *external_data_path)
{
    API_NEED(onnx_options);
    API_NEED(external_data_path);
    API_DIAG(diag);
    char *copy = mgx_arena_strdup(&onnx_options->arena, external_data_path);
    if (!copy)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    onnx_options->values.external_data_path = copy;
    return migraphx_status_success;
}

// Options that are one value; `bad` says when it is refused.
#define VALUE(name, type, member, bad)                                                             \
    migraphx_status migraphx_onnx_options_set_##name(migraphx_onnx_options_t onnx_options,         \
                                                     type value)                                   \
    {                                                                                              \
        API_NEED(onnx_options);                                                                    \
        if (bad)                                                                                   \
            return mgx_api_bad("%s: the value must not be negative", __func__);                    \
        onnx_options->values.member = value;                                                       \
        return migraphx_status_success;                                                            \
    }
VALUE(default_loop_iterations, int64_t, max_loop_iterations, value < 0)
VALUE(limit_loop_iterations, int64_t, limit_loop_iterations, value < 0)
VALUE(use_debug_symbols, bool, debug_symbols, false)
VALUE(skip_unknown_operators, bool, skip_unknown_operators, false)
VALUE(dynamic_dims, bool, dynamic_dims, false)
VALUE(limit_bytes, size_t, limit_bytes, false)
VALUE(limit_seconds, double, limit_seconds, !(value >= 0))

// --- import ---

// None are the defaults.
static enum mgx_status check_options(migraphx_onnx_options_t *options, struct mgx_diag *diag)
{
    static struct migraphx_onnx_options defaults;
    const struct migraphx_onnx_options *o = *options = *options ? *options : &defaults;
    const struct mgx_dim *range = &o->values.default_dyn_dim;
    const bool has_range = range->max > 0 && !(range->min == 1 && range->max == 1);
    if (o->values.default_dim_value && has_range)
        return mgx_fail(diag, MGX_INVALID,
                        "both a default dimension value and a default dynamic dimension are set");
    if (o->has_static && o->has_dynamic)
        return mgx_fail(diag, MGX_INVALID,
                        "both static and dynamic input shapes are set; give static ones as fixed "
                        "ranges");
    return MGX_OK;
}

enum mgx_status mgx_api_onnx_options(migraphx_onnx_options_t options,
                                     const struct mgx_onnx_options **out, struct mgx_diag *diag)
{
    assert(out);
    const enum mgx_status status = check_options(&options, diag);
    *out = &options->values;
    return status;
}

migraphx_status migraphx_parse_onnx(migraphx_program_t *out, const char *name,
                                    migraphx_onnx_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    enum mgx_status status = check_options(&options, &diag);
    if (status == MGX_OK)
        status = mgx_onnx_import_file(&p, name, &options->values, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_parse_onnx_buffer(migraphx_program_t *out, const void *data, size_t size,
                                           migraphx_onnx_options_t options)
{
    API_NEED(out);
    API_NEED(data);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    enum mgx_status status = check_options(&options, &diag);
    if (status == MGX_OK)
        status = mgx_onnx_import_buffer(&p, data, size, true, &options->values, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}
