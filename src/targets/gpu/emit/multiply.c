// SPDX-License-Identifier: MIT
#include "targets/gpu/emit/multiply.h"

#include <string.h>

void gpu_emit_multiply(struct mgx_str *out, const struct gpu_multiply *m)
{
    const bool tf32 = strcmp(m->type, "tf32") == 0;
    const int sums = m->columns / 2, a = m->registers ? 4 : 1;
    mgx_str_printf(out,
                   "FUNCTION void %s(float (&d)[%d], %s a, u64 b, int more)\n{\n"
                   "    asm volatile(\"{.reg .pred p; setp.ne.b32 p, %%%d, 0; "
                   "wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {",
                   m->name, sums, m->registers ? "const u32 *" : "u64", sums + a + 1, m->columns,
                   tf32 ? 8 : 16, m->type, m->type);
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s%%%d", i ? "," : "", i);
    if (m->registers)
        mgx_str_printf(out, "}, {%%%d,%%%d,%%%d,%%%d}, %%%d, p, 1, 1", sums, sums + 1, sums + 2,
                       sums + 3, sums + 4);
    else
        mgx_str_printf(out, "}, %%%d, %%%d, p, 1, 1%s", sums, sums + 1, tf32 ? "" : ", 0");
    mgx_str_printf(out, "%s;}\"\n        : ", tf32 ? "" : m->turned ? ", 1" : ", 0");
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s\"+f\"(d[%d])", i ? "," : "", i);
    mgx_str_put(out, "\n        : ");
    mgx_str_put(out,
                m->registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
    mgx_str_put(out, ", \"l\"(b), \"r\"(more));\n}\n");
}
