// SPDX-License-Identifier: MIT
// Chunks; wide.h says how.
#include "targets/gpu/emit/wide.h"

// The type that moves so many bytes at once; 0: there is none.
static int width(const struct gpu_chunk *c)
{
    const int bytes = c->v * c->bytes;
    return c->v > 1 && (bytes == 4 || bytes == 8 || bytes == 16) ? bytes : 0;
}

void gpu_emit_chunk(struct mgx_str *out, const struct gpu_chunk *c)
{
    mgx_str_put(out, "    union { ");
    if (width(c))
        mgx_str_printf(out, "wide%d w; ", width(c));
    mgx_str_printf(out, "%s v[%d]; } %s;\n", c->element, c->v, c->name);
}

void gpu_emit_chunk_load(struct mgx_str *out, const struct gpu_chunk *c, const char *array,
                         const char *at)
{
    const int bytes = width(c);
    if (bytes)
        mgx_str_printf(out,
                       "    if ((ADDRESS(%s) & %d) == 0)\n"
                       "        %s.w = *(const GLOBAL wide%d *)(%s + %s);\n    else\n",
                       array, bytes - 1, c->name, bytes, array, at);
    for (int k = 0; k < c->v; k++)
        mgx_str_printf(out, "%s%s.v[%d] = %s[%s + %d]%s",
                       k       ? " "
                       : bytes ? "        "
                               : "    ",
                       c->name, k, array, at, k, k + 1 < c->v ? "," : ";\n");
}

void gpu_emit_chunk_store(struct mgx_str *out, const struct gpu_chunk *c, const char *array,
                          const char *at)
{
    const int bytes = width(c);
    if (bytes)
        mgx_str_printf(out,
                       "    if ((ADDRESS(%s) & %d) == 0)\n"
                       "        *(GLOBAL wide%d *)(%s + %s) = %s.w;\n    else\n",
                       array, bytes - 1, bytes, array, at, c->name);
    for (int k = 0; k < c->v; k++)
        mgx_str_printf(out, "%s%s[%s + %d] = %s.v[%d]%s",
                       k       ? " "
                       : bytes ? "        "
                               : "    ",
                       array, at, k, c->name, k, k + 1 < c->v ? "," : ";\n");
}
