// SPDX-License-Identifier: MIT
// Sites: the products of a program that may be quantized, in the order of its modules.
//
// Holds: two programs of one structure (a program and its clone) have the same sites in the same
// order with the same names; a site's name counts all products of its operator in its module, those
// that are no sites too, so that it stays when others are quantized.
#pragma once

#include "ir/module.h"

struct mgx_site {
    struct mgx_ins *ins;
    const char *name;   // "main:convolution:0"
    const char *origin; // what the model calls it, or NULL
    int axis[2];        // of its inputs: along which channels of input 0 and of the result lie
    bool constant[2];   // its inputs are known
};

struct mgx_sites {
    MGX_ARRAY(struct mgx_site);
};

// All products of float types whose operators are named (none: all) and that read no quantized
// value. Names lie in the arena.
enum mgx_status mgx_sites_find(struct mgx_program *p, const char *const *names, size_t count,
                               struct mgx_arena *arena, struct mgx_sites *out,
                               struct mgx_diag *diag) MGX_NODISCARD;
