// SPDX-License-Identifier: MIT
// A shared library opened at run time into a table of functions.
//
// The ordinary build knows no GPU toolkit: what a driver offers is looked up by name, with our own
// declarations. Holds: an open library stays open to the end of the process, as drivers demand.
#pragma once

#include "base/status.h"

struct gpu_symbol {
    const char *name;
    size_t offset; // of the function pointer in the table
    bool optional; // NULL where an older library lacks it
};

// Opens the first of `names` (ends with NULL) that is there and fills `table`. MGX_NOT_FOUND with a
// sentence that says which library, or which function of it, is missing. A table whose first
// function is set counts as open already.
enum mgx_status gpu_library_open(const char *what, const char *const *names,
                                 const struct gpu_symbol *symbols, int count, void *table,
                                 struct mgx_diag *diag) MGX_NODISCARD;
