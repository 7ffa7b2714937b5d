// SPDX-License-Identifier: MIT
// What every importer's tests ask: is it refused, and for the right reason.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/module.h"

// The status, the program and the diagnosis must say the same.
static inline void import_agrees(enum mgx_status status, const struct mgx_program *p,
                                 const struct mgx_diag *diag)
{
    if ((status == MGX_OK) == (p != NULL) && status == diag->status)
        return;
    printf("import returned %d with program %p and status %d\n", status, (const void *)p,
           diag->status);
    abort();
}

// Refused with this status and a message that contains this text? Destroys what was imported.
static inline bool import_refused(struct mgx_program *take_program, const struct mgx_diag *diag,
                                  enum mgx_status status, const char *text)
{
    const bool ok = !take_program && diag->status == status && strstr(diag->text, text);
    if (!ok)
        printf("status %s, expected %s with \"%s\": %s\n", mgx_status_text(diag->status),
               mgx_status_text(status), text, take_program ? "(imported)" : diag->text);
    mgx_program_destroy(take_program);
    return ok;
}
