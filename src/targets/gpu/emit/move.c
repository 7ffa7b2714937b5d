// SPDX-License-Identifier: MIT
// The text of moving elements; move.h says what.
#include "targets/gpu/emit/move.h"

#include <inttypes.h>

#include "targets/gpu/emit/wide.h"

const char *gpu_word(size_t size)
{
    return size == 1 ? "u8" : size == 2 ? "u16" : size == 4 ? "u32" : size == 8 ? "u64" : NULL;
}

void gpu_emit_place(struct mgx_str *out, const struct mgx_shape *s)
{
    int order[MGX_MAX_RANK];
    const char *word = mgx_shape_elements(s) < INT32_MAX ? "int" : "i64";
    mgx_shape_permutation(s, order);
    mgx_str_printf(out, "    %s rest = (%s)i;\n", word, word);
    for (int k = s->rank - 1; k >= 0; k--) {
        if (s->lens[order[k]] == 1) {
            mgx_str_printf(out, "    const int o%d = 0;\n", order[k]);
            continue;
        }
        mgx_str_printf(out, "    const int o%d = (int)(rest %% %" PRId64 ");\n", order[k],
                       s->lens[order[k]]);
        mgx_str_printf(out, "    rest /= %" PRId64 ";\n", s->lens[order[k]]);
    }
    mgx_str_put(out, "    const i64 at0 = ");
    gpu_emit_sum(out, s, 0, s->rank, "o");
    mgx_str_put(out, ";\n");
}

void gpu_emit_sum(struct mgx_str *out, const struct mgx_shape *s, int first, int end,
                  const char *prefix)
{
    mgx_str_put(out, "(i64)0");
    for (int axis = first; axis < end; axis++)
        if (s->strides[axis] && s->lens[axis] > 1)
            mgx_str_printf(out, " + (i64)%s%d * %" PRId64, prefix, axis, s->strides[axis]);
}

void gpu_emit_entry(struct mgx_str *out, const char *name, const struct mgx_shape *s, int end,
                    int skip)
{
    mgx_str_printf(out, "FUNCTION i64 %s(int number)\n{\n    i64 at = 0;\n", name);
    for (int k = end - 1; k >= 0; k--)
        if (k != skip)
            mgx_str_printf(out,
                           "    at += (i64)(number %% %" PRId64 ") * %" PRId64
                           ";\n    number /= %" PRId64 ";\n",
                           s->lens[k], s->strides[k], s->lens[k]);
    mgx_str_put(out, "    return at;\n}\n\n");
}

static bool groups_fit(const struct mgx_shape *s, int axis, int64_t v)
{
    for (int k = 0; k < s->rank; k++)
        if (k != axis && s->lens[k] > 1 && s->strides[k] % v != 0)
            return false;
    return s->strides[axis] == 1 && s->lens[axis] % v == 0;
}

int gpu_move_vector(const struct mgx_shape *to, int to_axis, const struct mgx_shape *from,
                    int from_axis, int64_t most)
{
    int64_t v = 16 / (int64_t)mgx_type_size(to->type);
    v = v < most ? v : most;
    while (v > 1 && !(groups_fit(to, to_axis, v) && groups_fit(from, from_axis, v)))
        v /= 2;
    return v < 1 ? 1 : (int)v;
}

void gpu_emit_move(struct mgx_str *out, size_t size, int v, const char *fill)
{
    const struct gpu_chunk chunk = {"c", gpu_word(size), v, (int)size};
    gpu_emit_chunk(out, &chunk);
    if (fill)
        mgx_str_put(out, "    if (from >= 0) {\n");
    gpu_emit_chunk_load(out, &chunk, "in0", "from");
    if (fill)
        mgx_str_printf(out,
                       "    } else {\n    for (int k = 0; k < %d; k++)\n        c.v[k] = %s;\n"
                       "    }\n",
                       v, fill);
    gpu_emit_chunk_store(out, &chunk, "out", "at0");
    mgx_str_put(out, "}\n");
}
