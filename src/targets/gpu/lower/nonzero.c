// SPDX-License-Identifier: MIT
// nonzero_list: the places of what is not zero, in order, and how many there are (kernel/nonzero.gpu).
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/chain.h"

enum { PART = 1024 };

// Coordinates of element i, a row of the result for every axis.
static void put_coordinates(struct mgx_str *out, const struct mgx_shape *x, int64_t elements)
{
    int64_t inner = 1;
    mgx_str_put(out, "#define PUT(i) do { ");
    for (int k = x->rank - 1; k >= 0; k--) {
        mgx_str_printf(out, "out[(i64)%" PRId64 " + k] = (i) / %" PRId64 " %% %" PRId64 "; ",
                       k * elements, inner, x->lens[k]);
        inner *= x->lens[k];
    }
    mgx_str_put(out, "} while (0)\n");
}

static void emit(struct mgx_str *out, const struct mgx_shape *x)
{
    const int64_t elements = mgx_shape_elements(x);
    mgx_str_printf(out,
                   "#define E %" PRId64 "\n#define PARTS %" PRId64 "\n#define AXES %d\n"
                   "#define PARAMETERS GLOBAL i64 *out, GLOBAL u8 *work, const GLOBAL %s *in0\n",
                   elements, (elements + PART - 1) / PART, x->rank, gpu_type_memory(x->type));
    mgx_str_put(out, "#define IS(at) (");
    gpu_emit_load(out, x->type, "in0", "at");
    mgx_str_put(out, " != 0)\n");
    put_coordinates(out, x, elements);
    gpu_emit_entry(out, "place_in", x, x->rank, -1);
    GPU_PUT(out, nonzero);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_nonzero_list)
        return gpu_decline(c, "no places of what is not zero");
    const int64_t elements = mgx_shape_elements(&c->in[0]), parts = (elements + PART - 1) / PART;
    if (!gpu_computes(c, c->in[0].type) || !elements || elements > INT32_MAX - PART)
        return gpu_decline(c, "a type that kernels do not compute, or too many elements, or none");
    emit(&text, &c->in[0]);
    const struct gpu_launch each = {.grid = {(unsigned)parts, 1, 1}, .block = {GPU_THREADS, 1, 1}};
    const struct gpu_launch one = {.grid = {1, 1, 1}, .block = {GPU_THREADS, 1, 1}};
    const struct gpu_launch how[] = {each, one, each};
    c->workspace = (size_t)parts * sizeof(int32_t);
    c->detail = "counted, added up, written";
    return gpu_take_chain(c, &text, how, 3, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_nonzero = {
    .name = "gpu::nonzero", .prepare = prepare, .run = gpu_run_chain, .more = &gpu_chain_family};
