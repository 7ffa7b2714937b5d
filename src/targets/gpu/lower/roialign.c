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
    gpu_define(out, "LARGEST", mgx_ins_int(c->ins, "mode") == MGX_ROI_MAX);
    gpu_define(out, "ROW", c->in[0].strides[2]);
    gpu_define(out, "COLUMN", c->in[0].strides[3]);
    mgx_str_printf(out, "#define VALUE %s\n", gpu_type_value(c->in[0].type));
    gpu_define_load(out, "A_TYPE", "LOAD", c->in[0].type, "in0");
    GPU_PUT(out, roialign);
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

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    const enum mgx_type types[] = {x->type, c->in[1].type, c->in[2].type};
    emit_modes(out, c);
    gpu_emit_start(out, c->out, types, 3);
    mgx_str_printf(out, "    const i64 image = (i64)in2[(i64)o0 * %" PRId64 "];\n",
                   c->in[2].strides[0]);
    emit_spans(out, c);
    mgx_str_printf(out,
                   "    const bool good = image >= 0 && image < %" PRId64
                   " && (i64)v.grid * h.grid <= MOST;\n"
                   "    const i64 base = image * %" PRId64 " + (i64)o1 * %" PRId64 ";\n"
                   "    const VALUE y = good ? bin_of(in0, v, h, base, o2, o3) : (VALUE)0;\n    ",
                   x->lens[0], x->strides[0], x->strides[1]);
    gpu_emit_store(out, c->out->type, "out", "at0", "y");
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
