// SPDX-License-Identifier: MIT
// TensorFlow: the options of an import, and the import.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "tf/tf.h"

struct migraphx_tf_options {
    struct mgx_arena arena; // of everything below
    bool nhwc;
    size_t batch;
    struct mgx_tf_dims *inputs;
    size_t input_count;
    const char **outputs;
    size_t output_count;
};

static void tf_options_fini(struct migraphx_tf_options *o)
{
    mgx_arena_fini(&o->arena);
}

static enum mgx_status put_input(struct migraphx_tf_options *o, const char *name,
                                 const size_t *dims, size_t dims_size, struct mgx_diag *diag)
{
    struct mgx_tf_dims *list = MGX_NEW_ARRAY(&o->arena, struct mgx_tf_dims, o->input_count + 1);
    char *own = mgx_arena_strdup(&o->arena, name);
    size_t *copy = MGX_NEW_ARRAY(&o->arena, size_t, dims_size);
    if (!list || !own || !copy)
        return mgx_fail_memory(diag);
    if (dims_size)
        memcpy(copy, dims, dims_size * sizeof *dims);
    size_t kept = 0;
    for (size_t i = 0; i < o->input_count; i++)
        if (strcmp(o->inputs[i].name, name) != 0)
            list[kept++] = o->inputs[i];
    list[kept++] = (struct mgx_tf_dims){own, copy, dims_size};
    o->inputs = list;
    o->input_count = kept;
    return MGX_OK;
}

static enum mgx_status put_outputs(struct migraphx_tf_options *o, const char *const *names,
                                   size_t count, struct mgx_diag *diag)
{
    const char **list = MGX_NEW_ARRAY(&o->arena, const char *, count);
    for (size_t i = 0; list && i < count; i++)
        list[i] = mgx_arena_strdup(&o->arena, names[i]);
    if (o->arena.failed)
        return mgx_fail_memory(diag);
    o->outputs = list;
    o->output_count = count;
    return MGX_OK;
}

static enum mgx_status copy_lists(struct migraphx_tf_options *out,
                                  const struct migraphx_tf_options *in, struct mgx_diag *diag)
{
    for (size_t i = 0; i < in->input_count; i++)
        TRY(put_input(out, in->inputs[i].name, in->inputs[i].dims, in->inputs[i].count, diag));
    return put_outputs(out, in->outputs, in->output_count, diag);
}

static enum mgx_status tf_options_copy(struct migraphx_tf_options *out,
                                       const struct migraphx_tf_options *in, struct mgx_diag *diag)
{
    *out = (struct migraphx_tf_options){.nhwc = in->nhwc, .batch = in->batch};
    mgx_arena_init(&out->arena);
    const enum mgx_status status = copy_lists(out, in, diag);
    if (status != MGX_OK)
        tf_options_fini(out);
    return status;
}

API_HANDLE(tf_options)

migraphx_status migraphx_tf_options_create(migraphx_tf_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_tf_options *o = API_NEW(struct migraphx_tf_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    mgx_arena_init(&o->arena);
    o->batch = 1;
    *out = o;
    return migraphx_status_success;
}

migraphx_status migraphx_tf_options_set_nhwc(migraphx_tf_options_t tf_options, bool is_nhwc)
{
    API_NEED(tf_options);
    tf_options->nhwc = is_nhwc;
    return migraphx_status_success;
}

migraphx_status migraphx_tf_options_set_default_dim_value(migraphx_tf_options_t tf_options,
                                                          size_t value)
{
    API_NEED(tf_options);
    tf_options->batch = value;
    return migraphx_status_success;
}

migraphx_status migraphx_tf_options_set_input_parameter_shape(migraphx_tf_options_t tf_options,
                                                              const char *name, size_t *dims,
                                                              size_t dims_size)
{
    API_NEED(tf_options);
    API_NEED(name);
    if (dims_size)
        API_NEED(dims);
    if (dims_size > MGX_MAX_RANK)
        return mgx_api_bad("%s: rank %zu is above %d", __func__, dims_size, MGX_MAX_RANK);
    API_DIAG(diag);
    return mgx_api_leave(put_input(tf_options, name, dims, dims_size, &diag), &diag);
}

migraphx_status migraphx_tf_options_set_output_names(migraphx_tf_options_t tf_options,
                                                     const char **names, size_t names_size)
{
    API_NEED(tf_options);
    if (names_size)
        API_NEED(names);
    for (size_t i = 0; i < names_size; i++)
        API_NEED(names[i]);
    API_DIAG(diag);
    return mgx_api_leave(put_outputs(tf_options, names, names_size, &diag), &diag);
}

static struct mgx_tf_options import_options(const struct migraphx_tf_options *o)
{
    return (struct mgx_tf_options){.nhwc = o->nhwc,
                                   .batch = o->batch,
                                   .inputs = o->inputs,
                                   .input_count = o->input_count,
                                   .outputs = o->outputs,
                                   .output_count = o->output_count};
}

migraphx_status migraphx_parse_tf(migraphx_program_t *out, const char *name,
                                  migraphx_tf_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    const struct mgx_tf_options values = import_options(options);
    enum mgx_status status = mgx_tf_import_file(&p, name, &values, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_parse_tf_buffer(migraphx_program_t *out, const void *data, size_t size,
                                         migraphx_tf_options_t options)
{
    API_NEED(out);
    API_NEED(data);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    const struct mgx_tf_options values = import_options(options);
    enum mgx_status status = mgx_tf_import_buffer(&p, data, size, true, &values, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}
