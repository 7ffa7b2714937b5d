// SPDX-License-Identifier: MIT
// roialign: a bin of a region and a channel a thread, which sums or compares the corners of its samples.
//
//     x {n, c, h, w}, rois {r, 4}, batch {r}  ->  y {r, c, oh, ow}
//
// Places are worked out in double where the card has it and rounded as the regions' type rounds, so
// that there are as many samples as the reference takes. A region of an image that there is not, or of
// more samples than the reference takes, gives zeros: the host, which could complain, does not see it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "op/reference/roi.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

static const char *refuses(const struct mgx_plan_offer *c)
{
    const enum gpu_class batch = gpu_type_class(c->in[2].type);
    if (gpu_type_class(c->in[0].type) != GPU_REAL || gpu_type_class(c->in[1].type) != GPU_REAL ||
        !gpu_computes(c, c->in[0].type) || !gpu_computes(c, c->in[1].type))
        return "values that are not read as float";
    if (batch != GPU_SIGNED && batch != GPU_UNSIGNED)
        return "images named by what is no integer";
    return mgx_shape_elements(c->out) && mgx_shape_elements(&c->in[0]) ? NULL : "empty";
}

static void emit_modes(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_roialign *a = c->ins->attr;
    const bool single = c->in[1].type != MGX_DOUBLE, wide = gpu_has_double(c);
    mgx_str_printf(out, "#define PLACE %s\n#define ROUND(x) %s\n", wide ? "double" : "float",
                   single && wide ? "((double)(float)(x))" : "(x)");
    mgx_str_printf(out, "#define SCALE %.17e%s\n",
                   single ? (double)(float)a->spatial_scale : a->spatial_scale, wide ? "" : "f");
    mgx_str_printf(out, "#define ALIGNED %d\n#define RATIO %" PRId64 "\n#define MOST %d\n",
                   strcmp(a->coordinate_transformation_mode, "half_pixel") == 0, a->sampling_ratio,
                   MGX_ROI_SAMPLES_MAX);
    mgx_str_put(out, gpu_text_roialign);
}

// "in1" of region o0, number k.
static void emit_corner(struct mgx_str *out, const struct mgx_plan_offer *c, int k)
{
    char at[64];
    const struct mgx_shape *s = &c->in[1];
    snprintf(at, sizeof at, "(i64)o0 * %" PRId64 " + %" PRId64, s->strides[0], k * s->strides[1]);
    mgx_str_put(out, "(PLACE)");
    gpu_emit_load(out, s->type, "in1", at);
}

static void emit_spans(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    static const char *const names[] = {"h", "v"};
    for (int axis = 0; axis < 2; axis++) {
        const int along = 3 - axis;
        mgx_str_printf(out, "    const struct span %s = span_of(", names[axis]);
        emit_corner(out, c, axis);
        mgx_str_put(out, ", ");
        emit_corner(out, c, axis + 2);
        mgx_str_printf(out, ", %" PRId64 ", %" PRId64 ");\n", c->out->lens[along],
                       c->in[0].lens[along]);
    }
}

// Corner (low or high row, low or high column) of the sample, weighted.
static void emit_corners(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    static const char *const ends[] = {"low", "high"};
    for (int k = 0; k < 4; k++) {
        char at[96];
        snprintf(at, sizeof at, "base + (i64)y.%s * %" PRId64 " + (i64)z.%s * %" PRId64,
                 ends[k / 2], x->strides[2], ends[k % 2], x->strides[3]);
        mgx_str_printf(out, "        corner = (%s)(y.%s_weight * z.%s_weight) * ",
                       gpu_type_value(x->type), ends[k / 2], ends[k % 2]);
        gpu_emit_load(out, x->type, "in0", at);
        mgx_str_put(out, ";\n        sum += corner;\n"
                         "        best = first || corner > best ? corner : best;\n"
                         "        first = false;\n");
    }
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const enum mgx_type types[] = {x->type, c->in[1].type, c->in[2].type};
    const char *value = gpu_type_value(x->type);
    emit_modes(out, c);
    gpu_emit_start(out, c->out, types, 3);
    mgx_str_printf(out,
                   "    const i64 image = (i64)in2[(i64)o0 * %" PRId64 "];\n"
                   "    %s sum = 0, best = 0, corner;\n    bool first = true;\n",
                   c->in[2].strides[0], value);
    emit_spans(out, c);
    mgx_str_printf(out,
                   "    const bool good = image >= 0 && image < %" PRId64
                   " && (i64)v.grid * h.grid <= MOST;\n"
                   "    const i64 base = image * %" PRId64 " + (i64)o1 * %" PRId64 ";\n",
                   x->lens[0], x->strides[0], x->strides[1]);
    mgx_str_put(out,
                "    for (int i0 = 0; good && i0 < v.grid; i0++)\n"
                "        for (int i1 = 0; i1 < h.grid; i1++) {\n"
                "        const struct pair y = sample_of(v, o2, i0), z = sample_of(h, o3, i1);\n");
    emit_corners(out, c);
    mgx_str_printf(out,
                   "        }\n    const i64 count = (i64)v.grid * h.grid;\n"
                   "    sum /= (%s)(count > 1 ? count : 1);\n    ",
                   value);
    gpu_emit_store(out, c->out->type, "out", "at0",
                   mgx_ins_int(c->ins, "mode") == MGX_ROI_MAX ? "best" : "sum");
    mgx_str_put(out, "\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_roialign)
        return gpu_decline(c, "no regions of interest");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    emit(&text, c);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "a bin a thread";
    return gpu_take(c, &text, &how, NULL, 3);
}

const struct mgx_plan_kernel gpu_kernel_roialign = {
    .name = "gpu::roialign", .prepare = prepare, .run = gpu_run_call};
