// SPDX-License-Identifier: MIT
// An import with every allocation failing in turn. For one file of a test program, as test_malloc.h
// is.
#pragma once

#include <stdio.h>

#include "ir/module.h"
#include "test_malloc.h"

// Imports a model; `copy` says whether its bytes are copied.
typedef enum mgx_status (*import_fn)(const void *model, bool copy, struct mgx_program **out,
                                     struct mgx_diag *diag);

// Allocation number 0, 1, 2, ... fails: MGX_NO_MEMORY (or success, where a lack of memory only costs
// an optimisation), nothing leaked. The last import, in which none fails, works.
static inline bool import_survives(import_fn import, const void *model)
{
    bool ok = true, again = true;
    for (long n = 0; ok && again; n++) {
        struct mgx_program *p = NULL;
        struct mgx_diag diag;
        mgx_diag_clear(&diag);
        const long live = test_malloc_live();
        test_malloc_fail_after(n);
        const enum mgx_status status = import(model, n % 2 == 0, &p, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        mgx_program_destroy(p);
        const bool said = status == MGX_OK || (status == MGX_NO_MEMORY && again && diag.text[0]);
        ok = said && test_malloc_live() == live && (again || status == MGX_OK);
        if (!ok)
            printf("allocation %ld: status %s, %ld blocks left: %s\n", n, mgx_status_text(status),
                   test_malloc_live() - live, diag.text);
    }
    return ok;
}
