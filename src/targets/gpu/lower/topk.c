// SPDX-License-Identifier: MIT
// topk: a block sorts a line in shared memory (kernel/topk.gpu), and its first k leave, their values
// or their places.
//
// Keys are integers of 64 bits that ascend as the values do: all NaNs above everything, -0 as 0.
// Lines of up to MOST; longer ones, and places that an input names, are the host's.
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/member.h"

enum { MOST = 2048 };

static void emit_key(struct mgx_str *out, enum mgx_type type, bool largest)
{
    const enum gpu_class class = gpu_type_class(type);
    mgx_str_printf(out, "FUNCTION u64 key_of(const GLOBAL %s *in0, i64 at)\n{\n    const %s x = ",
                   gpu_type_memory(type), gpu_type_value(type));
    gpu_emit_load(out, type, "in0", "at");
    mgx_str_put(out, ";\n");
    if (class == GPU_REAL)
        mgx_str_put(
            out, "    const u32 b = BITS_OF_FLOAT(x == 0 ? 0.0f : (float)x);\n"
                 "    const u64 up = x == x ? (b >> 31 ? ~b : b | 0x80000000u) : 0xffffffffu;\n");
    else
        mgx_str_printf(out, "    const u64 up = (u64)x%s;\n",
                       class == GPU_SIGNED ? " ^ ((u64)1 << 63)" : "");
    mgx_str_printf(out, "    return %sup;\n}\n\n", largest ? "~" : "");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct gpu_member *m,
                 int axis, int size)
{
    const struct mgx_shape *x = &c->in[m->in[0]], *y = c->out;
    emit_key(out, x->type, mgx_ins_int(m->ins, "largest") != 0);
    gpu_emit_entry(out, "line_in", x, x->rank, axis);
    gpu_emit_entry(out, "line_out", y, y->rank, axis);
    mgx_str_printf(out,
                   "#define N %" PRId64 "\n#define K %" PRId64 "\n#define SIZE %d\n"
                   "#define STEP_IN %" PRId64 "\n#define STEP_OUT %" PRId64
                   "\n#define A_TYPE %s\n#define C_TYPE %s\n",
                   x->lens[axis], y->lens[axis], size, x->strides[axis], y->strides[axis],
                   gpu_type_memory(x->type), gpu_type_memory(y->type));
    mgx_str_printf(out, "#define PUT(to, from, place) out[to] = %s\n",
                   m->which == 0 ? "in0[from]" : "(place)");
    GPU_PUT(out, topk);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_member m;
    struct mgx_str text = {0};
    if (!gpu_member_read(c, &mgx_op_topk, &m))
        return gpu_decline(c, "not the largest of lines");
    const struct mgx_shape *x = &c->in[m.in[0]];
    const int axis = mgx_wrap_axis(mgx_ins_int(m.ins, "axis"), x->rank);
    const int64_t lines = mgx_shape_elements(c->out) / mgx_max_i64(1, c->out->lens[axis]);
    if (gpu_type_class(x->type) == GPU_NONE || x->type == MGX_DOUBLE || m.in_count != 1)
        return gpu_decline(c, "lines of doubles, or whose places are named");
    if (x->lens[axis] > MOST || !mgx_shape_elements(c->out) || lines > INT32_MAX)
        return gpu_decline(c, "lines too long to be sorted by a block, or none");
    int size = 2;
    while (size < x->lens[axis])
        size *= 2;
    emit(&text, c, &m, axis, size);
    const unsigned threads = size / 2 < 32            ? 32
                             : size / 2 < GPU_THREADS ? (unsigned)size / 2
                                                      : GPU_THREADS;
    const struct gpu_launch how = {.grid = {(unsigned)lines, 1, 1}, .block = {threads, 1, 1}};
    c->detail = "a block a line";
    return gpu_take(c, &text, &how, m.in, 1);
}

const struct mgx_plan_kernel gpu_kernel_topk = {
    .name = "gpu::topk", .prepare = prepare, .run = gpu_run_call};
