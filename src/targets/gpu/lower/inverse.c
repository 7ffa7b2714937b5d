// SPDX-License-Identifier: MIT
// inverse: a matrix a block (kernel/inverse.gpu), in double where the card has it.
//
// Matrices of up to MOST rows, which fit the shared memory with their inverses; larger ones are the host's.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { MOST = 48 };

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    const int last = x->rank - 1;
    gpu_emit_entry(out, "matrix_in", x, last - 1, -1);
    gpu_emit_entry(out, "matrix_out", y, last - 1, -1);
    mgx_str_printf(out,
                   "#define N %" PRId64 "\n#define SUM %s\n#define ROW %" PRId64
                   "\n#define COLUMN %" PRId64 "\n#define ROW_OUT %" PRId64
                   "\n#define COLUMN_OUT %" PRId64 "\n#define A_TYPE %s\n#define C_TYPE %s\n",
                   x->lens[last], gpu_has_double(c) ? "double" : "float", x->strides[last - 1],
                   x->strides[last], y->strides[last - 1], y->strides[last],
                   gpu_type_memory(x->type), gpu_type_memory(y->type));
    mgx_str_put(out, "#define LOAD(at) ");
    gpu_emit_load(out, x->type, "in0", "at");
    mgx_str_put(out, "\n#define STORE(at, x) ");
    gpu_emit_store(out, y->type, "out", "at", "x");
    mgx_str_put(out, "\n");
    GPU_PUT(out, inverse);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_inverse)
        return gpu_decline(c, "no inverse");
    const int64_t n = c->out->lens[c->out->rank - 1], elements = mgx_shape_elements(c->out);
    if (gpu_type_class(c->out->type) != GPU_REAL || !gpu_computes(c, c->out->type))
        return gpu_decline(c, "a type that kernels do not compute");
    if (!elements || n > MOST || elements / (n * n) > INT32_MAX)
        return gpu_decline(c, "matrices too large for a block, or none");
    emit(&text, c);
    const struct gpu_launch how = {.grid = {(unsigned)(elements / (n * n)), 1, 1},
                                   .block = {n * n > GPU_THREADS / 4 ? GPU_THREADS : 32, 1, 1}};
    c->detail = "a matrix a block";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_inverse = {
    .name = "gpu::inverse", .prepare = prepare, .run = gpu_run_call};
