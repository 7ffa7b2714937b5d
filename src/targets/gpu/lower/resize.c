// SPDX-License-Identifier: MIT
// resize: every element of the result is a weighted sum of a few of the input's, along each axis
// that changes; nearest takes one.
//
//     out[o2, o3] = sum over t2, t3 of w2[o2][t2] * w3[o3][t3] * in0[s2[o2][t2], s3[o3][t3]]
//
// Sources and weights along an axis are tables in the text, worked out by the reference's own
// functions, so places agree to the last bit; where they are `o * in / out`, that is written. What a
// crop has outside of the image is told by a table too. A thread takes neighbouring channels where
// images lie channels last.
#include "op/reference/resize.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/lower.h"

enum { TABLE = 1 << 14, ENTRIES = 1 << 16, UNROLLED = 8 }; // outputs of an axis, their taps

struct axis {
    struct mgx_resize_axis what;
    int taps;     // of an output; 0: the axis stays as it is
    bool scaled;  // nearest, and the source is o * in / out
    bool outside; // for some outputs
    int *source;
    float *weight;
};

struct resize {
    struct mgx_resize_how how;
    struct axis axes[MGX_MAX_RANK];
    int rank, v;
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

static void fill_blend(const struct resize *r, struct axis *a, double *weights)
{
    for (int64_t o = 0; o < a->what.out; o++) {
        struct mgx_resize_taps t = {.weights = weights};
        mgx_resize_weigh(&r->how, &a->what, o, &t);
        assert(t.count == a->taps);
        for (int k = 0; k < a->taps; k++) {
            a->source[o * a->taps + k] = clamp((double)(t.first + k), a->what.in);
            a->weight[o * a->taps + k] = (float)t.weights[k];
        }
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
    a->taps = r->blends ? (int)mgx_resize_tap_count(&r->how, &a->what) : 1;
    for (int64_t o = 0; o < a->what.out && r->how.crops; o++)
        a->outside |= mgx_resize_is_outside(&r->how, &a->what, o);
    const size_t entries = (size_t)a->what.out * (size_t)a->taps;
    a->source = malloc(entries * sizeof *a->source);
    a->weight = malloc(entries * sizeof *a->weight);
    double *weights = malloc((size_t)a->taps * sizeof *weights);
    const bool good = a->source && a->weight && weights;
    if (good && r->blends)
        fill_blend(r, a, weights);
    else if (good)
        fill_nearest(r, a);
    free(weights);
    return good;
}

// --- the offer ---

// Numbers that an input brings, else an attribute; false where they come with the run.
static bool numbers(const struct mgx_plan_offer *c, int input, struct mgx_doubles given, double *v,
                    int *count)
{
    const bool brought = c->in_count > input && !mgx_shape_is_absent(&c->in[input]);
    const struct mgx_tensor *t = brought ? c->constant[input] : NULL;
    *count = brought && t ? (int)mgx_shape_elements(&t->shape) : brought ? 0 : given.count;
    if ((brought && !t) || *count > 2 * MGX_MAX_RANK)
        return false;
    for (int i = 0; i < *count; i++)
        v[i] = brought ? mgx_load_double(t->shape.type, t->data, mgx_shape_index(&t->shape, i))
                       : given.v[i];
    return true;
}

// As find_axes of the operator has them.
static const char *read_axes(const struct mgx_plan_offer *c, struct resize *r)
{
    const struct mgx_resize *a = c->ins->attr;
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    const bool sizes = c->in_count > 1 && mgx_type_is_integral(c->in[1].type);
    double scales[2 * MGX_MAX_RANK], roi[2 * MGX_MAX_RANK];
    int scaled = 0, regions = 0;
    if ((!sizes && !numbers(c, 1, a->scales, scales, &scaled)) ||
        (r->how.crops && !numbers(c, 2, a->roi, roi, &regions)))
        return "factors that come with the run";
    if ((scaled && scaled != x->rank) || (r->how.crops && regions != 2 * x->rank))
        return "factors of another rank";
    for (int i = 0; i < x->rank; i++) {
        struct mgx_resize_axis *to = &r->axes[i].what;
        *to = (struct mgx_resize_axis){.in = x->lens[i], .out = y->lens[i]};
        to->up = scaled ? (double)(float)scales[i] : (double)y->lens[i];
        to->down = scaled ? 1 : (double)x->lens[i];
        if (r->how.crops) {
            to->start = roi[i];
            to->end = roi[x->rank + i];
            to->up *= scaled ? to->end - to->start : 1;
        }
        if (y->lens[i] > TABLE || x->lens[i] >= INT32_MAX ||
            mgx_resize_tap_count(&r->how, to) * y->lens[i] > ENTRIES)
            return "an axis too long for a table";
    }
    return NULL;
}

static const char *read(const struct mgx_plan_offer *c, struct resize *r)
{
    const struct mgx_resize *a = c->ins->attr;
    const struct mgx_shape *x = &c->in[0];
    const char *wrong;
    if (!mgx_resize_how_find(a, x->type, &r->how, &wrong))
        return "a mode that is not known";
    r->blends = r->how.mode != MGX_RESIZE_NEAREST;
    if (r->blends ? gpu_type_class(x->type) != GPU_REAL || x->type == MGX_DOUBLE
                  : !gpu_word(mgx_type_size(x->type)))
        return "a type that kernels do not compute";
    if (!mgx_shape_elements(x) || !mgx_shape_elements(c->out))
        return "empty";
    r->rank = x->rank;
    return read_axes(c, r);
}

// --- text ---

// e<axis>[o]: is it outside?
static void emit_outside(struct mgx_str *out, const struct resize *r)
{
    for (int i = 0; i < r->rank; i++) {
        const struct axis *a = &r->axes[i];
        if (!a->outside)
            continue;
        mgx_str_printf(out, "CONSTANT u8 e%d[%" PRId64 "] = {", i, a->what.out);
        for (int64_t o = 0; o < a->what.out; o++)
            mgx_str_printf(out, "%d,%s", mgx_resize_is_outside(&r->how, &a->what, o),
                           o % 16 == 15 ? "\n" : " ");
        mgx_str_put(out, "};\n");
    }
}

static void emit_tables(struct mgx_str *out, const struct resize *r)
{
    emit_outside(out, r);
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
                       "    const float above%d = weight;\n%s"
                       "    for (int t%d = 0; t%d < %d; t%d++) {\n"
                       "    const int x%d = s%d[o%d * %d + t%d];\n"
                       "    const float weight = above%d * w%d[o%d * %d + t%d];\n",
                       loops, a->taps <= UNROLLED ? "#pragma unroll\n" : "", i, i, a->taps, i, i, i,
                       i, a->taps, i, loops, i, i, a->taps, i);
        loops++;
    }
    mgx_str_put(out, "    const i64 from = ");
    gpu_emit_sum(out, &c->in[0], 0, r->rank, "x");
    mgx_str_put(out, ";\n");
    gpu_emit_chunk(out, &from);
    gpu_emit_chunk_load(out, &from, "in0", "from");
    mgx_str_printf(out,
                   "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        sum[k] += weight != "
                   "0 ? weight * ",
                   r->v);
    gpu_emit_widened(out, type, "f.v[k]");
    mgx_str_put(out, " : 0;\n");
    for (int i = 0; i < loops; i++)
        mgx_str_put(out, "    }\n");
    gpu_emit_chunk(out, &to);
    mgx_str_printf(out,
                   "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        c.v[k] = ", r->v);
    gpu_emit_narrowed(out, type, r->how.crops ? "(outside ? beyond : sum[k])" : "sum[k]");
    mgx_str_put(out, ";\n");
    gpu_emit_chunk_store(out, &to, "out", "at0");
    mgx_str_put(out, "}\n");
}

// extrapolation_value as it lies in memory.
static uint64_t beyond_bits(enum mgx_type type, const struct mgx_resize *a)
{
    uint64_t bits = 0;
    if (mgx_computes_as_int(type))
        mgx_store_int(type, &bits, 0, (int64_t)fmax(-0x1p62, fmin(0x1p62, a->extrapolation_value)));
    else
        mgx_store_double(type, &bits, 0, a->extrapolation_value);
    return bits;
}

static void emit_crop(struct mgx_str *out, const struct resize *r)
{
    if (!r->how.crops)
        return;
    mgx_str_put(out, "    const bool outside = false");
    for (int i = 0; i < r->rank; i++)
        if (r->axes[i].outside)
            mgx_str_printf(out, " || e%d[o%d]", i, i);
    mgx_str_put(out, ";\n    const float beyond = ");
    gpu_emit_real(out, (double)(float)r->how.attr->extrapolation_value);
    mgx_str_put(out, ";\n    (void)beyond;\n");
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
    emit_crop(out, r);
    for (int i = 0; i < r->rank; i++)
        if (!r->blends || !r->axes[i].taps)
            emit_single(out, &r->axes[i], i);
    if (r->blends) {
        emit_blend(out, c, r);
        return;
    }
    mgx_str_printf(out, "    const i64 from = %s", r->how.crops ? "outside ? -1 : " : "");
    gpu_emit_sum(out, &c->in[0], 0, r->rank, "x");
    mgx_str_put(out, ";\n");
    char fill[48];
    snprintf(fill, sizeof fill, "%" PRIu64 "ull", beyond_bits(c->out->type, r->how.attr));
    gpu_emit_move(out, mgx_type_size(c->out->type), r->v, r->how.crops ? fill : NULL);
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
    for (int i = 1; i < c->in_count; i++)
        c->skip_in[i] = true;
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_resize = {
    .name = "gpu::resize", .prepare = prepare, .run = gpu_run_call};
