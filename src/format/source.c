// SPDX-License-Identifier: MIT
// What printers of source code share: names that compilers take, lists of lengths; see format.h.
#include <ctype.h>

#include "format/format.h"

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
