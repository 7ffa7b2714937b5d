// SPDX-License-Identifier: MIT
// Average, maximum and norm over sliding windows, one result a thread, or those of a few neighbouring
// channels where images lie channels last.
//
//     out[n, c, o...] = fold over taps of in0[n, c, o * stride - padding + tap * dilation]
//
// Neighbouring threads take neighbouring elements of the result's memory: channels when those lie
// last, places otherwise. Cost: each input is read once for every window it lies in, mostly from a
// cache.
#include <inttypes.h>

#include "op/op.h"
#include "op/reference/pool.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/ranged.h"

enum mode { AVERAGE, MAXIMUM, NORM };

// The windows along the spatial axes, as the reference has them.
static bool read_windows(const struct mgx_plan_offer *c, struct mgx_pool_walk *w)
{
    const struct mgx_pool_attr a = mgx_pool_of(c->ins);
    if (mgx_shape_elements(&c->in[0]) == 0 || mgx_shape_elements(c->out) == 0)
        return false;
    mgx_pool_walk_init(w, &a, &c->in[0], c->out);
    return true;
}

// May a tap beyond the image be the nearest one in it? A maximum does not change by it, if that one is
// in the window too.
static bool may_repeat(const struct mgx_pool_walk *w, int rank, enum mode mode)
{
    bool may = mode == MAXIMUM;
    for (int i = 0; i < rank - 2; i++) {
        const struct mgx_window *x = &w->axis[i];
        may = may && x->dilation == 1 && x->begin < x->kernel &&
              (x->out - 1) * x->stride - x->begin < x->in;
    }
    return may;
}

static bool is_short(const struct mgx_pool_walk *w, int rank)
{
    int64_t taps = 1;
    for (int i = 0; i < rank - 2; i++)
        taps *= w->axis[i].kernel;
    return taps <= 25;
}

// What is taken of places beside the image.
enum beside { NOTHING, ZEROS, REPEATED };

static void emit_taps(struct mgx_str *out, const struct mgx_shape *in,
                      const struct mgx_pool_walk *w, enum beside beside)
{
    const bool padded = beside == ZEROS;
    mgx_str_printf(out, "    const i64 base = (i64)o0 * %" PRId64 " + (i64)o1 * %" PRId64 ";\n",
                   in->strides[0], in->strides[1]);
    for (int axis = 2; axis < in->rank; axis++) {
        const struct mgx_window *x = &w->axis[axis - 2];
        mgx_str_put(out, is_short(w, in->rank) ? "#pragma unroll\n" : "");
        mgx_str_printf(out, "    for (int t%d = 0; t%d < %" PRId64 "; t%d++) {\n", axis, axis,
                       x->kernel, axis);
        mgx_str_printf(out, "    int x%d = o%d * %" PRId64 " - %" PRId64 " + t%d * %" PRId64 ";\n",
                       axis, axis, x->stride, x->begin, axis, x->dilation);
        if (beside == REPEATED)
            mgx_str_printf(out, "    x%d = x%d < 0 ? 0 : x%d >= %" PRId64 " ? %" PRId64 " : x%d;\n",
                           axis, axis, axis, x->in, x->in - 1, axis);
        else if (padded)
            mgx_str_printf(out, "    if (x%d >= %" PRId64 ")\n        continue;\n", axis,
                           x->in + x->end);
        else
            mgx_str_printf(out, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", axis,
                           axis, x->in);
    }
    if (padded)
        mgx_str_put(out, "    count++;\n");
    for (int axis = 2; axis < in->rank && padded; axis++)
        mgx_str_printf(out, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", axis,
                       axis, w->axis[axis - 2].in);
    mgx_str_put(out, "    const i64 from = base");
    for (int axis = 2; axis < in->rank; axis++)
        mgx_str_printf(out, " + (i64)x%d * %" PRId64, axis, in->strides[axis]);
    mgx_str_put(out, ";\n");
}

// Maxima of bytes: two of a word at a time, as the tops of 16 bits, then the two beside them.
static bool takes_words(const struct mgx_plan_offer *c, enum mode mode, int v)
{
    const enum mgx_type type = c->in[0].type;
    return mode == MAXIMUM && mgx_type_is_byte(type) && v % 4 == 0;
}

static void emit_words(struct mgx_str *out, const struct mgx_plan_offer *c, int v)
{
    const enum mgx_type type = c->in[0].type;
    const char *larger = type == MGX_INT8 ? "larger_i8" : "larger_u8";
    const struct gpu_chunk chunk = {"c", gpu_type_memory(type), v, 1};
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "in0", "from");
    mgx_str_printf(out,
                   "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n    const u32 word = "
                   "(u32)(u8)c.v[4 * k] | (u32)(u8)c.v[4 * k + 1] << 8 | (u32)(u8)c.v[4 * k + 2] "
                   "<< 16 | (u32)(u8)c.v[4 * k + 3] << 24;\n"
                   "    odd[k] = %s(odd[k], word);\n    even[k] = %s(even[k], word << 8);\n    }\n",
                   v / 4, larger, larger);
}

static void emit_result_words(struct mgx_str *out, const struct mgx_plan_offer *c, int v)
{
    const struct gpu_chunk chunk = {"c", gpu_type_memory(c->out->type), v, 1};
    gpu_emit_chunk(out, &chunk);
    mgx_str_printf(
        out,
        "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n"
        "    c.v[k] = (%s)((k %% 2 ? odd : even)[k / 4] >> (k %% 4 / 2 * 16 + 8));\n    }\n",
        v, chunk.element);
    gpu_emit_chunk_store(out, &chunk, "out", "at0");
}

// One tap of v channels: x.v[k] joins acc[k].
static void emit_join(struct mgx_str *out, const struct mgx_plan_offer *c, enum mode mode, int v)
{
    const enum mgx_type type = c->in[0].type;
    const int64_t order = mgx_ins_int(c->ins, "lp_order");
    const struct gpu_chunk chunk = {"c", gpu_type_memory(type), v, (int)mgx_type_size(type)};
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "in0", "from");
    mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n    const %s x = ", v,
                   gpu_type_class(type) == GPU_REAL ? "float" : "int");
    gpu_emit_widened(out, type, "c.v[k]");
    mgx_str_put(out, ";\n    acc[k] ");
    if (gpu_type_class(type) != GPU_REAL)
        mgx_str_put(out, "= x > acc[k] ? x : acc[k];\n");
    else if (mode == NORM && order == 2)
        mgx_str_put(out, "+= x * x;\n");
    else if (mode == NORM)
        mgx_str_printf(out, "+= pow(fabs(x), (float)%" PRId64 ");\n", order);
    else
        mgx_str_put(out, mode == AVERAGE ? "+= x;\n"
                                         : "= count == 0 || x > acc[k] || x != x ? x : acc[k];\n");
    mgx_str_put(out, "    }\n");
}

static void emit_results(struct mgx_str *out, const struct mgx_plan_offer *c, enum mode mode, int v,
                         int ranged)
{
    const enum mgx_type type = c->out->type;
    const int64_t order = mgx_ins_int(c->ins, "lp_order");
    const struct gpu_chunk chunk = {"c", gpu_type_memory(type), v, (int)mgx_type_size(type)};
    gpu_emit_chunk(out, &chunk);
    mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n", v);
    if (mode == AVERAGE)
        mgx_str_put(out, "    acc[k] = count ? acc[k] / (float)count : 0;\n");
    else if (mode == NORM && order == 2)
        mgx_str_put(out, "    acc[k] = sqrt(acc[k]);\n");
    else if (mode == NORM)
        mgx_str_printf(out, "    acc[k] = pow(acc[k], 1.0f / (float)%" PRId64 ");\n", order);
    mgx_str_put(out, "    c.v[k] = ");
    gpu_emit_narrowed(out, type, "acc[k]");
    mgx_str_put(out, ";\n");
    gpu_emit_range_value(out, ranged, "acc[k]");
    mgx_str_put(out, "    }\n");
    gpu_emit_chunk_store(out, &chunk, "out", "at0");
}

static void emit_sums(struct mgx_str *out, enum mgx_type type, enum mode mode, int v)
{
    mgx_str_printf(out, "    %s acc[%d];\n    for (int k = 0; k < %d; k++)\n        acc[k] = ",
                   gpu_type_class(type) == GPU_REAL ? "float" : "int", v, v);
    gpu_emit_real(out, mode == MAXIMUM ? mgx_type_lowest(type) : 0);
    mgx_str_put(out, ";\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct mgx_pool_walk *w,
                 enum mode mode, int v, int ranged)
{
    const struct mgx_shape *in = &c->in[0];
    const bool padded = mode == AVERAGE && mgx_ins_int(c->ins, "count_include_pad") != 0;
    const bool words = takes_words(c, mode, v);
    gpu_emit_range_head(out, ranged, c->out->type, &in->type, 1);
    gpu_emit_range_threads(out, ranged, v, mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
    if (words)
        mgx_str_printf(out,
                       "    u32 odd[%d], even[%d];\n    for (int k = 0; k < %d; k++)\n"
                       "        odd[k] = even[k] = %s;\n",
                       v / 4, v / 4, v / 4, in->type == MGX_INT8 ? "0x80008000u" : "0");
    else
        emit_sums(out, in->type, mode, v);
    mgx_str_put(out, "    int count = 0;\n");
    emit_taps(out, in, w, padded ? ZEROS : may_repeat(w, in->rank, mode) ? REPEATED : NOTHING);
    if (words)
        emit_words(out, c, v);
    else
        emit_join(out, c, mode, v);
    if (!padded)
        mgx_str_put(out, "    count++;\n");
    for (int axis = 2; axis < in->rank; axis++)
        mgx_str_put(out, "    }\n");
    if (words)
        emit_result_words(out, c, v);
    else
        emit_results(out, c, mode, v, ranged);
    mgx_str_put(out, ranged ? "    }\n" : "");
    gpu_emit_range_end(out, ranged);
    mgx_str_put(out, "}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_pool_walk w;
    struct mgx_str text = {0};
    if (c->ins->op != &mgx_op_pooling || c->copy_only || c->dynamic)
        return gpu_decline(c, "not a pooling");
    const int64_t mode = mgx_ins_int(c->ins, "mode");
    const enum mgx_type type = c->in[0].type;
    if (mode == NORM && mgx_ins_int(c->ins, "lp_order") < 1)
        return gpu_decline(c, "a norm of order 0");
    const bool exact = mode == MAXIMUM && mgx_type_size(type) <= 2; // integers, in float
    if ((gpu_type_class(type) != GPU_REAL && !exact) || gpu_type_class(type) == GPU_NONE ||
        type == MGX_DOUBLE || c->out->type != type)
        return gpu_decline(c, "values that are not folded in float");
    if (c->out->rank < 3 || !read_windows(c, &w))
        return gpu_decline(c, "nothing to fold");
    const int64_t elements = mgx_shape_elements(c->out);
    const int v = gpu_move_vector(c->out, 1, &c->in[0], 1, gpu_vector_for(elements));
    const struct gpu_launch how = gpu_launch_for(elements / v);
    const bool ranged = gpu_is_ranged(c) && how.grid[0] && how.grid[0] <= GPU_RANGES_MOST;
    emit(&text, c, &w, (enum mode)mode, v, ranged ? GPU_THREADS : 0);
    c->detail = v > 1 ? "windows of neighbouring channels a thread" : "one window a thread";
    const enum mgx_plan_answer answer = gpu_take(c, &text, &how, NULL, 1);
    if (answer == MGX_PLAN_TAKEN && ranged)
        gpu_leave_ranges(c, how.grid[0]);
    return answer;
}

const struct mgx_plan_kernel gpu_kernel_pooling = {
    .name = "gpu::pooling", .prepare = prepare, .run = gpu_run_call};
