// SPDX-License-Identifier: MIT
// The table of forms, and what printers of source code share.
#include "format/format.h"

#include <ctype.h>
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

void mgx_format_put_identifier(struct mgx_str *out, const char *name)
{
    for (const char *c = name; *c; c++)
        mgx_str_putc(out, isalnum((unsigned char)*c) && !(*c & 0x80) ? *c : '_');
}

void mgx_format_put_name(struct mgx_str *out, const struct mgx_ins *ins)
{
    const bool main = ins->owner == mgx_program_main(ins->owner->program);
    mgx_str_put(out, ins->op == &mgx_op_param ? "p_" : "x_");
    if (!main) {
        mgx_format_put_identifier(out, ins->owner->name);
        mgx_str_putc(out, '_');
    }
    if (ins->op == &mgx_op_param)
        mgx_format_put_identifier(out, mgx_parameter_name(ins));
    else
        mgx_str_printf(out, "%d", ins->index);
}

void mgx_format_put_lens(struct mgx_str *out, const struct mgx_shape *s, bool strides,
                         const char *open, const char *close)
{
    const int64_t *values = strides ? s->strides : s->lens;
    mgx_str_put(out, open);
    if (s->rank == 0)
        mgx_str_putc(out, strides ? '0' : '1');
    for (int i = 0; i < s->rank; i++)
        mgx_str_printf(out, "%s%lld", i ? ", " : "", (long long)values[i]);
    mgx_str_put(out, close);
}
