// SPDX-License-Identifier: MIT
// Programs and arguments in files.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

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

static migraphx_status not_built_in(void)
{
    API_DIAG(diag);
    return mgx_api_leave(mgx_fail(&diag, MGX_UNSUPPORTED,
                                  "files of programs and arguments are not part of this build"),
                         &diag);
}

migraphx_status migraphx_load(migraphx_program_t *out, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_NEED(options);
    return not_built_in();
}

migraphx_status migraphx_save(migraphx_program_t p, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(p);
    API_NEED(name);
    API_NEED(options);
    return not_built_in();
}

migraphx_status migraphx_argument_save(const_migraphx_argument_t a, const char *filename)
{
    API_NEED(a);
    API_NEED(filename);
    return not_built_in();
}

migraphx_status migraphx_argument_load(migraphx_argument_t *out, const char *filename)
{
    API_NEED(out);
    API_NEED(filename);
    return not_built_in();
}
