// SPDX-License-Identifier: MIT
// Programs and arguments in files.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "format/mxr.h"

struct migraphx_file_options {
    bool json; // else msgpack
};

static void file_options_fini(struct migraphx_file_options *o)
{
    (void)o;
}

static enum mgx_status file_options_copy(struct migraphx_file_options *out,
                                         const struct migraphx_file_options *in,
                                         struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(file_options)

migraphx_status migraphx_file_options_create(migraphx_file_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_file_options *o = API_NEW(struct migraphx_file_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = o;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_file_format(migraphx_file_options_t file_options,
                                                      const char *format)
{
    API_NEED(file_options);
    API_NEED(format);
    if (strcmp(format, "json") != 0 && strcmp(format, "msgpack") != 0)
        return mgx_api_bad("Unknown format: %s", format);
    file_options->json = format[0] == 'j';
    return migraphx_status_success;
}

static enum mgx_file_form form_of(const struct migraphx_file_options *o)
{
    return o->json ? MGX_FORM_JSON : MGX_FORM_MSGPACK;
}

static const char *target_of(const struct mgx_program *p)
{
    return p->executable ? p->executable->target->name : NULL;
}

// A program that was saved compiled is compiled when it is loaded; takes it over, also on failure.
static enum mgx_status finish(migraphx_program_t *out, struct mgx_program *take, const char *target,
                              struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    if (target[0]) {
        const struct mgx_target *t = mgx_target_find(target);
        status =
            t ? mgx_api_compile(take, t, NULL, diag)
              : mgx_fail(diag, MGX_NOT_FOUND,
                         "the program is compiled for target '%s', which is not built in", target);
    }
    if (status == MGX_OK)
        return mgx_api_program_new(out, take, diag);
    mgx_program_destroy(take);
    return status;
}

migraphx_status migraphx_load(migraphx_program_t *out, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p;
    char target[MGX_TARGET_NAME];
    enum mgx_status status = mgx_mxr_load(&p, &mgx_api_ops, name, form_of(options), target, &diag);
    if (status == MGX_OK)
        status = finish(out, p, target, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_save(migraphx_program_t p, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(p);
    API_NEED(name);
    API_NEED(options);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(p->p, &diag);
    if (status == MGX_OK)
        status = mgx_mxr_save(p->p, target_of(p->p), name, form_of(options), &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_load_buffer(migraphx_program_t *out, const void *data, size_t size,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(data);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p;
    char target[MGX_TARGET_NAME];
    enum mgx_status status =
        mgx_mxr_load_buffer(&p, &mgx_api_ops, data, size, form_of(options), target, &diag);
    if (status == MGX_OK)
        status = finish(out, p, target, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_save_buffer(char **out, size_t *out_size, const_migraphx_program_t program,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(program);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_str bytes = {0};
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status =
            mgx_mxr_save_buffer(program->p, target_of(program->p), form_of(options), &bytes, &diag);
    if (status == MGX_OK) {
        *out_size = bytes.size;
        status = mgx_api_take_text(&bytes, out, &diag);
    } else
        mgx_str_fini(&bytes);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_save(const_migraphx_argument_t a, const char *filename)
{
    API_NEED(a);
    API_NEED(filename);
    API_DIAG(diag);
    return mgx_api_leave(mgx_tensor_save(&a->value, filename, &diag), &diag);
}

migraphx_status migraphx_argument_load(migraphx_argument_t *out, const char *filename)
{
    API_NEED(out);
    API_NEED(filename);
    API_DIAG(diag);
    struct mgx_tensor t;
    enum mgx_status status = mgx_tensor_load(&t, filename, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, &t, &diag);
    return mgx_api_leave(status, &diag);
}
