// SPDX-License-Identifier: MIT
// The element-wise instruction behind a product that a library has made: a kernel of ours that reads
// it, packed row by row, and takes neighbours along a row at once where the result lies so.
//
//     KERNEL void run(GLOBAL Y *out, const GLOBAL T *product, const GLOBAL E0 *e0, ...)
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/tail.h"
#include "targets/gpu/lower/vendor.h"

enum { WIDEST = 8 };

static struct gpu_tail tail_of(const struct gpu_product *p)
{
    struct gpu_tail t = {.ins = p->ins,
                         .last = p->tail,
                         .operand = {p->operand[0], p->operand[1]},
                         .extra_count = p->extra_count,
                         .place = p->place};
    memcpy(t.extra, p->extra, sizeof t.extra);
    return t;
}

static void emit_head(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_vendor_view *v)
{
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *product",
                   gpu_type_memory(c->out->type), gpu_type_memory(v->whole.type));
    for (int e = 0; e < v->p.extra_count; e++)
        mgx_str_printf(out, ", const GLOBAL %s *e%d", gpu_type_memory(c->in[v->p.extra[e]].type),
                       e);
    mgx_str_put(out, ")\n");
}

static void emit_sums(struct mgx_str *out, const struct mgx_shape *packed, int width)
{
    const struct gpu_chunk chunk = {"x", gpu_type_memory(packed->type), width,
                                    (int)mgx_type_size(packed->type)};
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, packed, 0, packed->rank, "o");
    mgx_str_put(out, ";\n");
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "product", "from");
    mgx_str_printf(out,
                   "    float sum[%d];\n#pragma unroll\n    for (int k = 0; k < %d; k++)\n"
                   "        sum[k] = ",
                   width, width);
    gpu_emit_widened(out, packed->type, "x.v[k]");
    mgx_str_put(out, ";\n");
}

const char *gpu_vendor_emit_tail(struct mgx_str *out, const struct mgx_plan_offer *c,
                                 const struct gpu_vendor_view *v, struct gpu_launch *how)
{
    const struct gpu_tail t = tail_of(&v->p);
    const struct mgx_shape packed = gpu_vendor_packed(c, v);
    const int64_t elements = mgx_shape_elements(c->out);
    const int64_t most = mgx_min_i64(gpu_vector_for(elements), WIDEST);
    const int width = gpu_move_vector(c->out, v->column_axis, &packed, v->column_axis,
                                      mgx_min_i64(most, 16 / (int64_t)mgx_type_size(packed.type)));
    const char *why = gpu_emit_tail_body(out, c, &t);
    if (why)
        return why;
    emit_head(out, c, v);
    mgx_str_printf(out,
                   "{\n    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n"
                   "    if (i >= %" PRId64 ")\n        return;\n",
                   width, elements);
    gpu_emit_place(out, c->out);
    emit_sums(out, &packed, width);
    gpu_emit_tail(out, c, &t, v->column_axis, width);
    mgx_str_put(out, "}\n");
    *how = gpu_launch_for(elements / width);
    return NULL;
}
