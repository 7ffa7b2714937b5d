// SPDX-License-Identifier: MIT
// What a row's kernel writes that leaves its results once more: row_bundle.c says when.
#include "targets/gpu/lower/row_also.h"

#include <assert.h>

#include "op/op.h"
#include "op/source.h"

const char *gpu_row_also_body(struct mgx_source *s, const struct mgx_ins *also)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    s->real = false;
    s->leaves = true; // storing it rounds it
    const enum mgx_status status = also->op == &mgx_op_pointwise
                                       ? mgx_source_body(s, "also_body", also->mod[0], &quiet)
                                       : mgx_source_ins(s, "also_body", also, &quiet);
    return status == MGX_OK ? NULL : "an operator or a type that has no scalar code";
}

void gpu_row_also_head(struct mgx_str *out, const struct mgx_ins *also, enum mgx_type result,
                       const enum mgx_type *in, int in_count)
{
    assert(also->in_count == 1);
    gpu_emit_parameters(out, result, in, in_count);
    mgx_str_printf(out, ", GLOBAL %s *also)\n", gpu_type_memory(also->shape.type));
}

void gpu_row_also_value(struct mgx_str *out, const struct mgx_ins *also, enum mgx_type result)
{
    mgx_str_printf(out, "    const %s v0 = ", gpu_type_value(result));
    gpu_emit_widened(out, result, "c.v[k]");
    mgx_str_put(out, ";\n");
    gpu_emit_call(out, "also_body", also->shape.type, 1);
    mgx_str_put(out, "    d.v[k] = ");
    gpu_emit_narrowed(out, also->shape.type, "y");
    mgx_str_put(out, ";\n");
}
