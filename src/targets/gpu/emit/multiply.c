// SPDX-License-Identifier: MIT
#include "targets/gpu/emit/multiply.h"

#include <string.h>

// Behind the operands: scales of floats, and how they lie in shared memory.
static const char *flags(const struct gpu_multiply *m, bool tf32)
{
    if (m->of_b)
        return m->whole ? "" : ", 1, 1";
    if (m->registers && !tf32)
        return m->turned ? ", 1, 1, 1" : ", 1, 1, 0";
    return tf32 ? ", 1, 1" : m->turned ? ", 1, 1, 0, 1" : ", 1, 1, 0, 0";
}

void gpu_emit_multiply(struct mgx_str *out, const struct gpu_multiply *m)
{
    const bool tf32 = strcmp(m->type, "tf32") == 0, bytes = m->of_b;
    const int sums = m->columns / 2, a = m->registers ? 4 : 1;
    mgx_str_printf(out,
                   "FUNCTION void %s(%s (&d)[%d], %s a, u64 b, int more)\n{\n"
                   "    asm volatile(\"{.reg .pred p; setp.ne.b32 p, %%%d, 0; "
                   "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {",
                   m->name, m->whole ? "i32" : "float", sums, m->registers ? "const u32 *" : "u64",
                   sums + a + 1, m->columns,
                   bytes  ? 32
                   : tf32 ? 8
                          : 16,
                   m->whole ? "s32" : "f32", m->type, bytes ? m->of_b : m->type);
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s%%%d", i ? "," : "", i);
    if (m->registers)
        mgx_str_printf(out, "}, {%%%d,%%%d,%%%d,%%%d}, %%%d, p", sums, sums + 1, sums + 2, sums + 3,
                       sums + 4);
    else
        mgx_str_printf(out, "}, %%%d, %%%d, p", sums, sums + 1);
    mgx_str_printf(out, "%s;}\"\n        : ", flags(m, tf32));
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s\"+%s\"(d[%d])", i ? "," : "", m->whole ? "r" : "f", i);
    mgx_str_put(out, "\n        : ");
    mgx_str_put(out,
                m->registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
    mgx_str_put(out, ", \"l\"(b), \"r\"(more));\n}\n");
}
