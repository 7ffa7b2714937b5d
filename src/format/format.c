// SPDX-License-Identifier: MIT
// The table of forms that a program is printed in; see format.h.
#include "format/format.h"

#include <string.h>

#include "base/size.h"

static enum mgx_status text(struct mgx_str *out, const struct mgx_program *p, struct mgx_diag *diag)
{
    (void)diag;
    mgx_program_print(out, p);
    return MGX_OK;
}

static const struct mgx_format rows[] = {{"text", text},
                                         {"py", mgx_format_py},
                                         {"cpp", mgx_format_cpp},
                                         {"graphviz", mgx_format_graphviz},
                                         {"graphviz-brief", mgx_format_graphviz_brief}};

static const struct mgx_format *const table[] = {&rows[0], &rows[1], &rows[2], &rows[3], &rows[4]};
_Static_assert(MGX_COUNT(table) == MGX_COUNT(rows), "every row is listed");

const struct mgx_format *mgx_format_find(const char *name)
{
    for (int i = 0; i < MGX_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct mgx_format *const *mgx_format_all(int *count)
{
    *count = MGX_COUNT(table);
    return table;
}
