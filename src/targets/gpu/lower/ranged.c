// SPDX-License-Identifier: MIT
// What kernels ask and write that leave ranges of their results; ranged.h says how.
#include "targets/gpu/lower/ranged.h"

#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/kernel/text.h"

static bool is_moved(const struct mgx_ins *ins)
{
    return ins->op->flags & MGX_OP_VIEW || ins->op == &mgx_op_concat;
}

static bool has_range(const struct mgx_ins *ins, int depth)
{
    for (const struct mgx_use *use = ins->uses; use && depth > 0; use = use->next)
        if (use->user->op == &mgx_op_byte_range ||
            (is_moved(use->user) && has_range(use->user, depth - 1)))
            return true;
    return false;
}

bool gpu_is_ranged(const struct mgx_plan_offer *c)
{
    enum { DEEPEST = 4 };
    return !c->copy_only && !c->dynamic && !c->late && c->out->type == MGX_FLOAT &&
           c->ins->shape.type == MGX_FLOAT && has_range(c->ins, DEEPEST);
}

static bool is_read_else(const struct mgx_ins *ins, int depth)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op != &mgx_op_byte_range &&
            (!(use->user->op->flags & MGX_OP_VIEW) || depth == 0 ||
             is_read_else(use->user, depth - 1)))
            return true;
    return !ins->uses;
}

bool gpu_is_range_alone(const struct mgx_plan_offer *c)
{
    enum { DEEPEST = 4 };
    return gpu_is_ranged(c) && !is_read_else(c->ins, DEEPEST);
}

void gpu_emit_range_head(struct mgx_str *out, int width, enum mgx_type result,
                         const enum mgx_type *in, int in_count)
{
    assert(width >= 0);
    if (width) {
        mgx_str_printf(out, "#define WIDTH %d\n", width);
        GPU_PUT(out, ordered_bits);
        GPU_PUT(out, extremes);
    }
    gpu_emit_parameters(out, result, in, in_count);
    mgx_str_put(out, width ? ", GLOBAL float *ranges)\n" : ")\n");
}

void gpu_emit_range_begin(struct mgx_str *out, int width)
{
    assert(width >= 0);
    if (width)
        mgx_str_put(out, "    SHARED float lows[WIDTH], highs[WIDTH];\n"
                         "    float low = 0.0f, high = 0.0f;\n");
}

void gpu_emit_range_threads(struct mgx_str *out, int width, int each, int64_t results)
{
    assert(each > 0 && results >= 0);
    mgx_str_put(out, "{\n");
    gpu_emit_range_begin(out, width);
    mgx_str_printf(out, "    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n", each);
    mgx_str_printf(out,
                   width ? "    if (i < %" PRId64 ") {\n"
                         : "    if (i >= %" PRId64 ")\n        return;\n",
                   results);
}

void gpu_emit_range_value(struct mgx_str *out, int width, const char *value)
{
    assert(value && *value);
    if (width)
        mgx_str_printf(out, "    low = lower(low, %s);\n    high = higher(high, %s);\n", value,
                       value);
}

void gpu_emit_range_end(struct mgx_str *out, int width)
{
    assert(width >= 0);
    if (width)
        mgx_str_put(out, "    fold_range(lows, highs, low, high);\n"
                         "    if (THREAD == 0) {\n        ranges[2 * BLOCK] = lows[0];\n"
                         "        ranges[2 * BLOCK + 1] = highs[0];\n    }\n");
}

void gpu_emit_range_macros(struct mgx_str *out, int width)
{
    assert(width >= 0);
    if (!width) {
        mgx_str_put(out, "#define RANGE_BEGIN()\n#define RANGE_END()\n");
        return;
    }
    mgx_str_printf(out, "#define WIDTH %d\n", width);
    GPU_PUT(out, ordered_bits);
    GPU_PUT(out, extremes);
    mgx_str_put(
        out, "#define RANGE_BEGIN() SHARED float lows[WIDTH], highs[WIDTH]; float lowest = 0.0f, "
             "highest = 0.0f, *low = &lowest, *high = &highest; "
             "if ((const GLOBAL char *)out == (const GLOBAL char *)ranges) out = 0;\n"
             "#define RANGE_END() fold_range(lows, highs, lowest, highest); if (THREAD == 0) { "
             "ranges[2 * (BLOCK_Y * BLOCKS + BLOCK)] = lows[0]; "
             "ranges[2 * (BLOCK_Y * BLOCKS + BLOCK) + 1] = highs[0]; }\n");
}

void gpu_leave_ranges(struct mgx_plan_offer *c, int64_t count)
{
    struct gpu_call *call = c->state;
    assert(call && count > 0 && count <= GPU_RANGES_MOST);
    call->ranges = (int)count;
    call->ranges_alone = gpu_is_range_alone(c);
    call->ranges_at = mgx_align64(c->workspace);
    c->workspace = call->ranges_at + (size_t)count * 2 * sizeof(float);
}
