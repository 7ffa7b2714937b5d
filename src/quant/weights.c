// SPDX-License-Identifier: MIT
// Rounding weights; see weights.h.
//
// The views looked through are those under which a channel stays one: what a batch repeats, axes in
// another order. Anything else in front of the site (a joined constant, say) is evaluated.
//
//     scale[c] = largest |w[c]| / highest of the type;  w' = round(w / scale[c])
//
// int8 uses -127 to 127, so that a weight and its negative lose the same.
#include "quant/weights.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/eval/eval.h"
#include "pass/engine/emit.h"

enum { DEPTH = 32 }; // of constant instructions behind a site

// --- finding ---

// The axis of the view's input that an axis of its result shows; -1 if there is none.
static int through(const struct mgx_ins *view, int axis)
{
    const struct mgx_shape *from = &view->in[0]->shape;
    if (view->op == &mgx_op_contiguous || view->op == &mgx_op_identity)
        return axis;
    if (view->op == &mgx_op_transpose)
        return (int)mgx_ins_ints(view, "permutation").v[axis];
    if (view->op != &mgx_op_multibroadcast)
        return -1;
    const int at = axis - (view->shape.rank - from->rank);
    return at >= 0 && from->lens[at] == view->shape.lens[axis] ? at : -1;
}

static enum mgx_status evaluate(const struct mgx_ins *ins, struct mgx_arena *arena, int depth,
                                struct mgx_tensor *out, struct mgx_diag *diag)
{
    *out = (struct mgx_tensor){0};
    if (ins->literal) {
        *out = mgx_tensor_share(ins->literal);
        return MGX_OK;
    }
    if (depth == 0)
        return mgx_fail(diag, MGX_LIMIT, "constants of %s are nested too deep", ins->op->name);
    struct mgx_tensor *values = MGX_NEW_ARRAY(arena, struct mgx_tensor, ins->in_count);
    const struct mgx_tensor **in = MGX_NEW_ARRAY(arena, const struct mgx_tensor *, ins->in_count);
    enum mgx_status status = values && in ? MGX_OK : mgx_fail_memory(diag);
    struct mgx_eval eval = {.strings = arena};
    for (int i = 0; status == MGX_OK && i < ins->in_count; i++) {
        status = evaluate(ins->in[i], arena, depth - 1, &values[i], diag);
        in[i] = &values[i];
    }
    if (status == MGX_OK)
        status = mgx_eval_op(&eval, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape,
                             out, diag);
    for (int i = 0; values && i < ins->in_count; i++)
        mgx_tensor_release(&values[i]);
    return status;
}

enum mgx_status mgx_weights_open(struct mgx_weights *w, const struct mgx_site *site, int input,
                                 struct mgx_diag *diag)
{
    assert((input == 0 || input == 1) && site->constant[input]);
    const bool dot = site->ins->op == &mgx_op_dot;
    struct mgx_ins *ins = site->ins->in[input];
    const int rank = ins->shape.rank;
    *w = (struct mgx_weights){.at = site->ins, .input = input};
    w->out_axis = !dot ? 0 : input == 0 ? rank - 2 : rank - 1;
    w->in_axis = !dot ? 1 : input == 0 ? rank - 1 : rank - 2;
    while (!ins->literal && ins->in_count == 1 && w->view_count < MGX_WEIGHTS_VIEWS) {
        const int out = through(ins, w->out_axis), in = through(ins, w->in_axis);
        if (out < 0 || in < 0)
            break;
        w->views[w->view_count++] = ins;
        w->out_axis = out;
        w->in_axis = in;
        ins = ins->in[0];
    }
    struct mgx_arena arena;
    struct mgx_tensor value = {0};
    mgx_arena_init(&arena);
    enum mgx_status status = evaluate(ins, &arena, DEPTH, &value, diag);
    if (status == MGX_OK) {
        w->like = value.shape;
        status = mgx_tensor_pack(&w->value, &value, diag);
    }
    mgx_tensor_release(&value);
    mgx_arena_fini(&arena);
    return status;
}

void mgx_weights_close(struct mgx_weights *w)
{
    mgx_tensor_release(&w->value);
}

struct mgx_weights_walk mgx_weights_walk(const struct mgx_weights *w)
{
    assert(w->out_axis >= 0 && w->in_axis >= 0 && w->out_axis != w->in_axis);
    const struct mgx_shape *s = &w->value.shape;
    const int out = w->out_axis, in = w->in_axis;
    return (struct mgx_weights_walk){mgx_product(s->lens + out + 1, s->rank - out - 1),
                                     s->lens[out], mgx_product(s->lens + in + 1, s->rank - in - 1),
                                     s->lens[in]};
}

// --- putting back ---

struct mgx_ins *mgx_weights_dress(const struct mgx_weights *w, struct mgx_ins *core)
{
    assert(w->view_count >= 0 && w->view_count <= MGX_WEIGHTS_VIEWS);
    for (int i = w->view_count - 1; core && i >= 0; i--)
        core = mgx_emit_again(w->at, w->views[i], &core, 1);
    return core;
}

struct mgx_ins *mgx_weights_literal(const struct mgx_weights *w, struct mgx_tensor *take,
                                    struct mgx_diag *diag)
{
    struct mgx_tensor t = {0};
    struct mgx_shape shape =
        mgx_shape_strided(take->shape.type, take->shape.rank, take->shape.lens, w->like.strides);
    struct mgx_ins *literal = NULL;
    if (!mgx_shape_is_packed(&shape) || mgx_shape_is_standard(&shape))
        literal = mgx_add_literal(w->at->owner, take);
    else if (mgx_tensor_create(&t, &shape, diag) == MGX_OK) {
        mgx_tensor_copy(take, &t);
        literal = mgx_add_literal(w->at->owner, &t);
    }
    mgx_tensor_release(&t);
    mgx_tensor_release(take);
    return literal;
}

// --- rounding ---

double mgx_least_scale(enum mgx_type type)
{
    return type == MGX_HALF ? 0x1p-14 : type == MGX_DOUBLE ? DBL_MIN : FLT_MIN;
}

static double weight(const struct mgx_weights *w, const struct mgx_weights_how *how,
                     const struct mgx_weights_walk *walk, int64_t i)
{
    const double v = mgx_load_double(w->value.shape.type, w->value.data, i);
    return how->smooth.count ? v * how->smooth.v[mgx_weights_in(walk, i)] : v;
}

// A scale per channel of the result, or one for all, rounded to the weights' type.
static enum mgx_status find_scales(const struct mgx_weights *w, const struct mgx_weights_how *how,
                                   struct mgx_tensor *out, struct mgx_diag *diag)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(w);
    const enum mgx_type type = w->value.shape.type;
    const struct mgx_shape shape =
        how->per_tensor ? mgx_shape_scalar(type) : mgx_shape_vector(type, walk.outs);
    const int64_t count = mgx_shape_elements(&w->value.shape), scales = mgx_shape_elements(&shape);
    double *largest = calloc((size_t)scales + 1, sizeof *largest);
    const enum mgx_status status =
        largest ? mgx_tensor_create(out, &shape, diag) : mgx_fail_memory(diag);
    for (int64_t i = 0; status == MGX_OK && i < count; i++) {
        double *at = &largest[how->per_tensor ? 0 : mgx_weights_out(&walk, i)];
        const double size = fabs(weight(w, how, &walk, i));
        *at = size > *at && isfinite(size) ? size : *at;
    }
    const double highest = how->type == MGX_INT8 ? 127 : mgx_type_highest(how->type);
    for (int64_t c = 0; status == MGX_OK && c < scales; c++) {
        const double scale = largest[c] > 0 ? largest[c] / highest : 1;
        mgx_store_double(type, out->data, c, fmax(scale, mgx_least_scale(type)));
    }
    free(largest);
    return status;
}

static void round_all(const struct mgx_weights *w, const struct mgx_weights_how *how,
                      const struct mgx_tensor *scales, struct mgx_tensor *out, float *lost)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(w);
    const int64_t count = mgx_shape_elements(&w->value.shape);
    const double highest = how->type == MGX_INT8 ? 127 : mgx_type_highest(how->type);
    for (int64_t i = 0; i < count; i++) {
        const double v = weight(w, how, &walk, i);
        const double scale = mgx_load_double(scales->shape.type, scales->data,
                                             how->per_tensor ? 0 : mgx_weights_out(&walk, i));
        double q = how->type == MGX_INT8 ? nearbyint(v / scale) : v / scale;
        q = isnan(q) ? 0 : fmin(fmax(q, -highest), highest);
        mgx_store_double(how->type, out->data, i, q);
        if (lost)
            lost[i] = (float)(mgx_load_double(how->type, out->data, i) * scale - v);
    }
}

// The rounded weights times their scales, behind the views again.
static struct mgx_ins *emit(const struct mgx_weights *w, const struct mgx_weights_how *how,
                            struct mgx_tensor *take, const struct mgx_tensor *scales,
                            struct mgx_diag *diag)
{
    struct mgx_ins *q = mgx_weights_literal(w, take, diag);
    struct mgx_ins *scale = q ? mgx_add_literal(w->at->owner, scales) : NULL;
    if (!scale)
        return NULL;
    scale = how->per_tensor ? mgx_emit_multibroadcast(w->at, scale, q->shape.lens, q->shape.rank)
                            : mgx_emit_spread(w->at, scale, w->out_axis, &q->shape);
    return mgx_weights_dress(w, mgx_emit_binary(w->at, &mgx_op_dequantizelinear, q, scale));
}

enum mgx_status mgx_weights_round(struct mgx_weights *w, const struct mgx_weights_how *how,
                                  float *lost, struct mgx_ins **out, struct mgx_diag *diag)
{
    assert(how && w->value.data);
    struct mgx_tensor scales = {0}, rounded = {0};
    const struct mgx_shape shape = mgx_shape_retype(&w->value.shape, how->type);
    enum mgx_status status = find_scales(w, how, &scales, diag);
    if (status == MGX_OK)
        status = mgx_tensor_create(&rounded, &shape, diag);
    if (status == MGX_OK) {
        round_all(w, how, &scales, &rounded, lost);
        *out = emit(w, how, &rounded, &scales, diag);
        if (!*out)
            status = mgx_program_status(w->at->owner->program, diag) == MGX_OK
                         ? mgx_fail_memory(diag)
                         : diag->status;
    }
    mgx_tensor_release(&scales);
    mgx_tensor_release(&rounded);
    return status;
}
