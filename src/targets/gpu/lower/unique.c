// SPDX-License-Identifier: MIT
// unique_list: up to MOST numbers or slices sorted by a block (kernel/unique.gpu); more are the host's.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { MOST = 2048, LEAST = 32 };

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int axis, int size)
{
    const struct mgx_shape *x = &c->in[0];
    const int64_t elements = mgx_shape_elements(x), n = axis < 0 ? elements : x->lens[axis];
    mgx_str_printf(out,
                   "#define N %" PRId64 "\n#define SIZE %d\n#define COUNT %" PRId64
                   "\n#define SORTED %d\n#define A_TYPE %s\n#define VALUE_TYPE %s\n",
                   n, size, elements / n, (int)mgx_ins_int(c->ins, "sorted"),
                   gpu_type_memory(x->type), gpu_type_value(x->type));
    mgx_str_put(out, "#define VALUE(at) ");
    gpu_emit_load(out, x->type, "in0", "at");
    mgx_str_put(out, "\n");
    if (axis < 0) {
        gpu_emit_entry(out, "slice_in", x, x->rank, -1);
        mgx_str_put(out, "#define element_in(e) 0\n");
    } else {
        mgx_str_printf(out, "#define slice_in(i) ((i64)(i) * %" PRId64 ")\n", x->strides[axis]);
        gpu_emit_entry(out, "element_in", x, x->rank, axis);
    }
    GPU_PUT(out, unique);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_unique_list)
        return gpu_decline(c, "no distinct numbers");
    const struct mgx_shape *x = &c->in[0];
    const int64_t given = mgx_ins_int(c->ins, "axis"), elements = mgx_shape_elements(x);
    const int axis = given == MGX_NONE ? -1 : mgx_wrap_axis(given, x->rank);
    const int64_t n = axis < 0 ? elements : x->lens[axis];
    if (!gpu_computes(c, x->type))
        return gpu_decline(c, "a type that kernels do not compute");
    if (!elements || n > MOST || elements / n > INT32_MAX)
        return gpu_decline(c, "too many to be sorted by a block, or none");
    int size = LEAST;
    while (size < n)
        size *= 2;
    emit(&text, c, axis, size);
    const struct gpu_launch how = {
        .grid = {1, 1, 1}, .block = {size < GPU_THREADS ? (unsigned)size : GPU_THREADS, 1, 1}};
    c->detail = "sorted by a block";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_unique = {
    .name = "gpu::unique", .prepare = prepare, .run = gpu_run_call};
