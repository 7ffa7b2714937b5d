// SPDX-License-Identifier: MIT
// resize: every element of the result is a weighted sum of a few of the input's, along each axis
// that changes; nearest takes one.
//
//     out[o2, o3] = sum over t2, t3 of w2[o2][t2] * w3[o3][t3] * in0[s2[o2][t2], s3[o3][t3]]
//
// Sources and weights along an axis are tables in the text, worked out by the reference's own
// functions, so places agree to the last bit; where they are `o * in / out`, that is written. A
// thread takes neighbouring channels where images lie channels last.
#include "op/reference/resize.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "op/op.h"
#include "op/reference/sample.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/lower.h"

enum { TABLE = 1 << 14 }; // entries of an axis

struct axis {
    struct mgx_resize_axis what;
    int taps;    // of an output; 0: the axis stays as it is
    bool scaled; // nearest, and the source is o * in / out
    int *source;
    float *weight;
};

struct resize {
    struct mgx_resize_how how;
    struct axis axes[MGX_MAX_RANK];
    int rank, v, vector_axis;
    bool blends;
};

// --- tables ---

static int clamp(double at, int64_t length)
{
    return !(at > 0) ? 0 : at < (double)(length - 1) ? (int)at : (int)(length - 1);
}

static void fill_nearest(const struct resize *r, struct axis *a)
{
    a->scaled = true;
    for (int64_t o = 0; o < a->what.out; o++) {
        a->source[o] = clamp(r->how.round(r->how.place(&a->what, o)), a->what.in);
        a->weight[o] = 1;
        a->scaled &= a->source[o] == o * a->what.in / a->what.out;
    }
}

static double weigh(const struct resize *r, double t)
{
    return r->how.mode == MGX_RESIZE_CUBIC ? mgx_cubic_weight(t, r->how.attr->cubic_coeff_a)
           : fabs(t) < 1                   ? 1 - fabs(t)
                                           : 0;
}

static void fill_blend(const struct resize *r, struct axis *a)
{
    const double in = (double)a->what.in;
    for (int64_t o = 0; o < a->what.out; o++) {
        const double place = fmax(-4, fmin(r->how.place(&a->what, o), in + 4));
        const double first = ceil(place) - a->taps / 2;
        double sum = 0;
        for (int t = 0; t < a->taps; t++) {
            const double at = first + t;
            const bool drop = r->how.attr->exclude_outside && (at < 0 || at >= in);
            const double w = drop ? 0 : weigh(r, at - place);
            a->source[o * a->taps + t] = clamp(at, a->what.in);
            a->weight[o * a->taps + t] = (float)w;
            sum += w;
        }
        for (int t = 0; t < a->taps && r->how.attr->exclude_outside && sum != 0; t++)
            a->weight[o * a->taps + t] = (float)((double)a->weight[o * a->taps + t] / sum);
    }
}

static bool stays(const struct resize *r, const struct axis *a)
{
    for (int64_t o = 0; o < a->what.out && a->what.in == a->what.out; o++) {
        const double x = r->how.place(&a->what, o);
        if (r->how.mode == MGX_RESIZE_NEAREST ? clamp(r->how.round(x), a->what.in) != o
                                              : x != (double)o)
            return false;
    }
    return a->what.in == a->what.out;
}

static bool make_axis(struct resize *r, struct axis *a)
{
    if (stays(r, a))
        return true;
    a->taps = r->how.mode == MGX_RESIZE_NEAREST ? 1 : r->how.mode == MGX_RESIZE_LINEAR ? 2 : 4;
    const size_t entries = (size_t)a->what.out * (size_t)a->taps;
    a->source = malloc(entries * sizeof *a->source);
    a->weight = malloc(entries * sizeof *a->weight);
    if (!a->source || !a->weight)
        return false;
    if (r->blends)
        fill_blend(r, a);
    else
        fill_nearest(r, a);
    return true;
}

// --- the offer ---

static const char *read(const struct mgx_plan_offer *c, struct resize *r)
{
    const struct mgx_resize *a = c->ins->attr;
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    const char *wrong;
    if (c->in_count != 1)
        return "sizes come from an input";
    if (!mgx_resize_how_find(a, x->type, &r->how, &wrong) || r->how.crops || a->antialias)
        return "antialias or a crop";
    r->blends = r->how.mode != MGX_RESIZE_NEAREST;
    if (r->blends ? gpu_type_class(x->type) != GPU_REAL || x->type == MGX_DOUBLE
                  : !gpu_word(mgx_type_size(x->type)))
        return "a type that kernels do not compute";
    if (!mgx_shape_elements(x) || !mgx_shape_elements(y))
        return "empty";
    r->rank = x->rank;
    for (int i = 0; i < r->rank; i++) {
        r->axes[i].what = (struct mgx_resize_axis){
            .in = x->lens[i],
            .out = y->lens[i],
            .up = a->scales.count ? (double)(float)a->scales.v[i] : (double)y->lens[i],
            .down = a->scales.count ? 1 : (double)x->lens[i]};
        if (y->lens[i] > TABLE || x->lens[i] >= INT32_MAX)
            return "an axis too long for a table";
    }
    return NULL;
}

// --- text ---

static void emit_tables(struct mgx_str *out, const struct resize *r)
{
    for (int i = 0; i < r->rank; i++) {
        const struct axis *a = &r->axes[i];
        if (!a->taps || a->scaled)
            continue;
        const int64_t entries = a->what.out * a->taps;
        mgx_str_printf(out, "CONSTANT int s%d[%" PRId64 "] = {", i, entries);
        for (int64_t k = 0; k < entries; k++)
            mgx_str_printf(out, "%d,%s", a->source[k], k % 16 == 15 ? "\n" : " ");
        mgx_str_put(out, "};\n");
        if (!r->blends)
            continue;
        mgx_str_printf(out, "CONSTANT float w%d[%" PRId64 "] = {", i, entries);
        for (int64_t k = 0; k < entries; k++) {
            gpu_emit_real(out, (double)a->weight[k]);
            mgx_str_put(out, k % 8 == 7 ? ",\n" : ", ");
        }
        mgx_str_put(out, "};\n");
    }
}

static const char *element_type(const struct resize *r, enum mgx_type type)
{
    return r->blends ? gpu_type_memory(type) : gpu_word(mgx_type_size(type));
}

// x<axis> of an axis that has one source.
static void emit_single(struct mgx_str *out, const struct axis *a, int i)
{
    if (!a->taps)
        mgx_str_printf(out, "    const int x%d = o%d;\n", i, i);
    else if (a->scaled)
        mgx_str_printf(out, "    const int x%d = (int)((i64)o%d * %" PRId64 " / %" PRId64 ");\n", i,
                       i, a->what.in, a->what.out);
    else
        mgx_str_printf(out, "    const int x%d = s%d[o%d];\n", i, i, i);
}

static void emit_blend(struct mgx_str *out, const struct mgx_plan_offer *c, const struct resize *r)
{
    const enum mgx_type type = c->in[0].type;
    const struct gpu_chunk from = {"f", gpu_type_memory(type), r->v, (int)mgx_type_size(type)};
    const struct gpu_chunk to = {"c", gpu_type_memory(type), r->v, (int)mgx_type_size(type)};
    int loops = 0;
    mgx_str_printf(out,
                   "    float sum[%d];\n#pragma unroll\n    for (int k = 0; k < %d; k++)\n"
                   "        sum[k] = 0;\n    const float weight = 1;\n",
                   r->v, r->v);
    for (int i = 0; i < r->rank; i++) {
        const struct axis *a = &r->axes[i];
        if (!a->taps)
            continue;
        mgx_str_printf(out,
                       "    const float above%d = weight;\n#pragma unroll\n"
                       "    for (int t%d = 0; t%d < %d; t%d++) {\n"
                       "    const int x%d = s%d[o%d * %d + t%d];\n"
                       "    const float weight = above%d * w%d[o%d * %d + t%d];\n",
                       loops, i, i, a->taps, i, i, i, i, a->taps, i, loops, i, i, a->taps, i);
        loops++;
    }
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, &c->in[0], 0, r->rank, "x");
    mgx_str_put(out, ";\n");
    gpu_emit_chunk(out, &from);
    gpu_emit_chunk_load(out, &from, "in0", "from");
    mgx_str_printf(
        out, "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        sum[k] += weight * ", r->v);
    gpu_emit_widened(out, type, "f.v[k]");
    mgx_str_put(out, ";\n");
    for (int i = 0; i < loops; i++)
        mgx_str_put(out, "    }\n");
    gpu_emit_chunk(out, &to);
    mgx_str_printf(out,
                   "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        c.v[k] = ", r->v);
    gpu_emit_narrowed(out, type, "sum[k]");
    mgx_str_put(out, ";\n");
    gpu_emit_chunk_store(out, &to, "out", "at0");
    mgx_str_put(out, "}\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct resize *r)
{
    const char *element = element_type(r, c->in[0].type);
    emit_tables(out, r);
    mgx_str_printf(out,
                   "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *in0)\n{\n"
                   "    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n"
                   "    if (i >= %" PRId64 ")\n        return;\n",
                   element, element, r->v, mgx_shape_elements(c->out));
    gpu_emit_place(out, c->out);
    for (int i = 0; i < r->rank; i++)
        if (!r->blends || !r->axes[i].taps)
            emit_single(out, &r->axes[i], i);
    if (r->blends) {
        emit_blend(out, c, r);
        return;
    }
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, &c->in[0], 0, r->rank, "x");
    mgx_str_put(out, ";\n");
    gpu_emit_move(out, mgx_type_size(c->out->type), r->v, NULL);
}

// Neighbours along the result's innermost axis, when that stays as it is.
static int vector_of(const struct mgx_plan_offer *c, const struct resize *r)
{
    int v = 1;
    for (int i = 0; i < r->rank; i++)
        if (!r->axes[i].taps && c->out->strides[i] == 1 && c->out->lens[i] > 1)
            v = gpu_move_vector(c->out, i, &c->in[0], i,
                                gpu_vector_for(mgx_shape_elements(c->out)));
    return v;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct resize r = {.v = 1};
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_resize)
        return gpu_decline(c, "not a resize");
    const char *why = read(c, &r);
    if (why)
        return gpu_decline(c, why);
    bool good = true;
    for (int i = 0; i < r.rank && good; i++)
        good = make_axis(&r, &r.axes[i]);
    if (good) {
        r.v = vector_of(c, &r);
        emit(&text, c, &r);
    }
    for (int i = 0; i < r.rank; i++) {
        free(r.axes[i].source);
        free(r.axes[i].weight);
    }
    if (!good)
        return mgx_plan_no_memory(c);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out) / r.v);
    c->detail = r.blends ? "blended" : "nearest";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_resize = {
    .name = "gpu::resize", .prepare = prepare, .run = gpu_run_call};
