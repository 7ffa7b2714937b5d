// SPDX-License-Identifier: MIT
// What must hold of every import: a program that verifies, or a refusal with a text.
#pragma once

#include <stdlib.h>

#include "ir/module.h"

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

static inline void require_outcome(enum mgx_status status, const struct mgx_program *p,
                                   const struct mgx_diag *diag)
{
    require((status == MGX_OK) == (p != NULL));
    require(status == diag->status && (p || diag->text[0]));
    if (p)
        require(mgx_program_verify(p, NULL) == MGX_OK);
}
