// SPDX-License-Identifier: MIT
// How a failure leaves the library: a status for the caller, the text kept per thread.
//
// The one piece of mutable state of the interface besides the table of custom operators. A text
// stays until the next failure of the same thread; successful calls leave it alone.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <migraphx/version.h>

#include "api/api.h"
#include "base/number.h"
#include "base/version.h"

static _Thread_local char last_error[MGX_DIAG_TEXT_SIZE];
static _Thread_local int last_errno;

void mgx_api_keep_error(const char *text)
{
    assert(text);
    last_errno = 0;
    snprintf(last_error, sizeof last_error, "%s", text);
}

migraphx_status mgx_api_null(const char *function, const char *what)
{
    assert(function && what);
    return mgx_api_bad("%s: %s is NULL", function, what);
}

migraphx_status mgx_api_bad(const char *fmt, ...)
{
    va_list args;
    last_errno = 0;
    va_start(args, fmt);
    mgx_number_vformat(last_error, sizeof last_error, fmt, args);
    va_end(args);
    return migraphx_status_bad_param;
}

migraphx_status mgx_api_leave(enum mgx_status status, const struct mgx_diag *diag)
{
    if (status == MGX_OK)
        return migraphx_status_success;
    mgx_api_keep_error(diag->status == MGX_OK ? mgx_status_text(status) : diag->text);
    last_errno = diag->os_error;
    return status == MGX_CANCELLED ? migraphx_status_cancelled : migraphx_status_unknown_error;
}

migraphx_status migraphx_get_last_error(const char **out)
{
    API_NEED(out);
    *out = last_error;
    return migraphx_status_success;
}

const char *migraphx_last_error(void)
{
    return last_error;
}

migraphx_status migraphx_get_last_errno(int *out)
{
    API_NEED(out);
    *out = last_errno;
    return migraphx_status_success;
}

// --- texts handed to the caller ---

enum mgx_status mgx_api_take_text(struct mgx_str *text, char **out, struct mgx_diag *diag)
{
    assert(text && out);
    mgx_str_put(text, ""); // so that there is something to take
    char *taken = mgx_str_take(text);
    if (!taken)
        return mgx_fail_memory(diag);
    *out = taken;
    return MGX_OK;
}

migraphx_status migraphx_string_destroy(char *text)
{
    free(text);
    return migraphx_status_success;
}

_Static_assert(MIGRAPHX_VERSION_MAJOR == MGX_VERSION_MAJOR &&
                   MIGRAPHX_VERSION_MINOR == MGX_VERSION_MINOR &&
                   MIGRAPHX_VERSION_PATCH == MGX_VERSION_PATCH,
               "files and callers learn the same version");

migraphx_status migraphx_get_version(const char **out)
{
    API_NEED(out);
    *out = MGX_VERSION "." MIGRAPHX_VERSION_TWEAK;
    return migraphx_status_success;
}
