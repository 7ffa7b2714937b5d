// SPDX-License-Identifier: MIT
// Status and diagnosis; see status.h.
#include "base/status.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

void mgx_diag_clear(struct mgx_diag *diag)
{
    diag->status = MGX_OK;
    diag->os_error = 0;
    diag->text[0] = '\0';
}

enum mgx_status mgx_vfail(struct mgx_diag *diag, enum mgx_status status, const char *fmt,
                          va_list args)
{
    if (diag && diag->status == MGX_OK) {
        diag->status = status;
        diag->os_error = 0;
        mgx_number_vformat(diag->text, sizeof diag->text, fmt, args);
    }
    return status;
}

enum mgx_status mgx_fail(struct mgx_diag *diag, enum mgx_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_vfail(diag, status, fmt, args);
    va_end(args);
    return status;
}

enum mgx_status mgx_fail_os(struct mgx_diag *diag, int os_error, const char *what)
{
    const bool first = diag && diag->status == MGX_OK;
    const enum mgx_status status = mgx_fail(diag, os_error == ENOENT ? MGX_NOT_FOUND : MGX_IO,
                                            "%s: %s", what, strerror(os_error));
    if (first)
        diag->os_error = os_error;
    return status;
}

enum mgx_status mgx_fail_memory(struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_NO_MEMORY, "out of memory");
}

void mgx_where(struct mgx_diag *diag, const char *fmt, ...)
{
    if (!diag || diag->status == MGX_OK)
        return;
    static const char lead[] = "\n  in ";
    const size_t used = strlen(diag->text);
    if (used + sizeof lead >= sizeof diag->text)
        return;
    memcpy(diag->text + used, lead, sizeof lead);
    va_list args;
    va_start(args, fmt);
    mgx_number_vformat(diag->text + used + sizeof lead - 1,
                       sizeof diag->text - used - sizeof lead + 1, fmt, args);
    va_end(args);
}

const char *mgx_status_text(enum mgx_status status)
{
    static const char *const texts[] = {
#define X(name, text) text,
        MGX_STATUS_LIST(X)
#undef X
    };
    return (size_t)status < sizeof texts / sizeof *texts ? texts[status] : "unknown status";
}
