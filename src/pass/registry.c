// SPDX-License-Identifier: MIT
// The table of all passes, made from the folder.
#include <string.h>

#include "base/size.h"
#include "pass/pass.h"

static const struct mgx_pass *const table[] = {
#define PASS(name) &mgx_pass_##name,
#include "pass_list.inc"
#undef PASS
};

const struct mgx_pass *const *mgx_pass_all(int *count)
{
    *count = MGX_COUNT(table);
    return table;
}

const struct mgx_pass *mgx_pass_find(const char *name)
{
    if (strcmp(name, "eliminate_dead_code") == 0) // the driver knows it by this name too
        name = mgx_pass_dead_code_elimination.name;
    for (int i = 0; i < MGX_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
