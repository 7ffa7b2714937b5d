// SPDX-License-Identifier: MIT
// Transposed convolutions are convolutions whose outputs are dealt out to pixels.
//
//     convolution_backwards[s](x, w#)        =>  slice(interleaved(convolution(x, v)))
//     quant_convolution_backwards[s](x, w#)  =>  likewise, with x's zero point
//     op(slice(interleaved(y)), a#)          =>  slice(interleaved(op(y, a')))      a one value, or one a channel
//
// With strides s pixel i s + r of the result is the sum over taps j of x[i - j] w[r + j s]: for
// every r a convolution of the image itself, with ceil(k / s) taps. Its results for all r are its
// channels,
// {n, r.., m, h, w}, and lie as {n, m, h, r0, w, r1} afterwards; in groups {n, g, r.., m, h, w}.
// What reads the result goes before that, so that it ends the product.
//
// Holds: no dilation, constant weights without zero points; not each channel its own group, which
// is no product. Taps beyond the kernel are zeros: at most s - 1 an axis. Where the kernel is no
// larger than s nothing is computed twice and nothing is cut off. The GPU target runs it: a product
// for its matrix units.
#include <assert.h>
#include <string.h>

#include "op/reference/window.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

struct dealt {
    int spatial;
    int64_t s[MGX_MAX_RANK], taps[MGX_MAX_RANK], begin[MGX_MAX_RANK]; // by spatial axis
    int64_t phases, outputs; // product of s; channels of a group
    int64_t group;
    int more; // axes of groups: none, or one
};

static bool read_geometry(struct mgx_ins *ins, struct dealt *d)
{
    const struct mgx_shape *w = &ins->in[1]->shape;
    const struct mgx_window_attr window = mgx_window_of(ins);
    const int spatial = ins->shape.rank - 2;
    *d = (struct dealt){.spatial = spatial,
                        .phases = 1,
                        .outputs = w->lens[1],
                        .group = window.group,
                        .more = window.group > 1};
    if (spatial < 1 || 2 * spatial + 4 > MGX_MAX_RANK ||
        (window.group == w->lens[0] && d->outputs == 1 && window.group > 1) ||
        !mgx_window_is_explicit(&window, spatial) || !mgx_ints_all(window.dilation, 1))
        return false;
    for (int i = 0; i < spatial; i++) {
        d->s[i] = window.stride.v[i];
        d->taps[i] = (w->lens[i + 2] + d->s[i] - 1) / d->s[i];
        d->begin[i] = window.padding.v[i];
        d->phases *= d->s[i];
    }
    return d->phases > 1 && mgx_shape_elements(&ins->shape) > 0;
}

static bool is_bare(const struct mgx_ins *zero)
{
    return mgx_is_splat(zero, 0);
}

static bool can_deal(struct mgx_module *m, struct mgx_ins *ins, struct dealt *d)
{
    const bool quantized = ins->op == &mgx_op_quant_convolution_backwards;
    return mgx_shape_is_static(&ins->in[0]->shape) && mgx_shape_is_static(&ins->in[1]->shape) &&
           ins->in[1]->owner == m && mgx_is_constant(m, ins->in[1]) && ins->in_count <= 4 &&
           (!quantized || ins->in_count < 4 || is_bare(ins->in[3])) && read_geometry(ins, d);
}

// w {g c, m, k..} as {g r.. m, c, taps..}, taps from the last one to the first.
static struct mgx_ins *weights(struct mgx_ins *at, const struct dealt *d)
{
    struct mgx_ins *w = at->in[1];
    const int n = d->spatial, g = d->more, wide = 2 * n + 2 + g;
    int64_t pads[2 * MGX_MAX_RANK] = {0}, apart[MGX_MAX_RANK], whole[MGX_MAX_RANK],
                     axes[MGX_MAX_RANK];
    int order[MGX_MAX_RANK];
    apart[0] = d->group;
    apart[g] = whole[1] = w->shape.lens[0] / d->group;
    apart[1 + g] = w->shape.lens[1];
    whole[0] = d->group * d->phases * d->outputs;
    order[0] = 0;
    order[n + g] = 1 + g;
    order[n + 1 + g] = g;
    for (int i = 0; i < n; i++) {
        pads[n + 2 + i + 2] = d->taps[i] * d->s[i] - w->shape.lens[i + 2];
        apart[2 + g + 2 * i] = whole[2 + i] = d->taps[i];
        apart[3 + g + 2 * i] = d->s[i];
        order[i + g] = 3 + g + 2 * i;
        order[n + 2 + g + i] = 2 + g + 2 * i;
        axes[i] = i + 2;
    }
    w = mgx_emit_before(at, &mgx_op_pad,
                        MGX_ATTRS(mgx_ints("pads", pads, 2 * (n + 2)), mgx_real("value", 0)),
                        MGX_IN(w));
    w = mgx_emit_transpose(at, mgx_emit_reshape(at, w, apart, wide), order, wide);
    w = mgx_emit_reshape(at, w, whole, n + 2);
    return mgx_emit_before(at, &mgx_op_reverse, MGX_ATTRS(mgx_ints("axes", axes, n)), MGX_IN(w));
}

static struct mgx_ins *product(struct mgx_ins *at, const struct dealt *d)
{
    const bool quantized = at->op == &mgx_op_quant_convolution_backwards;
    int64_t pads[2 * MGX_MAX_RANK], ones[MGX_MAX_RANK];
    for (int i = 0; i < d->spatial; i++) {
        pads[i] = pads[i + d->spatial] = d->taps[i] - 1;
        ones[i] = 1;
    }
    struct mgx_ins *in[] = {at->in[0], weights(at, d), NULL};
    if (at->in_count > 2)
        in[2] = at->in[2];
    return in[1] ? mgx_emit_before(at, quantized ? &mgx_op_quant_convolution : &mgx_op_convolution,
                                   MGX_ATTRS(mgx_ints("padding", pads, 2 * d->spatial),
                                             mgx_ints("stride", ones, d->spatial),
                                             mgx_ints("dilation", ones, d->spatial),
                                             mgx_int("group", d->group)),
                                   (struct mgx_ins_list){in, at->in_count > 2 ? 3 : 2})
                 : NULL;
}

// y {n, g r.. m, h..} as {n, g m, h s..}, from `begin` on as long as `like` is.
static struct mgx_ins *interleave(struct mgx_ins *at, struct mgx_ins *y, const struct dealt *d,
                                  const struct mgx_shape *like)
{
    const int n = d->spatial, g = d->more, wide = 2 * n + 2 + g;
    int64_t apart[MGX_MAX_RANK], whole[MGX_MAX_RANK];
    int order[MGX_MAX_RANK];
    if (!y)
        return NULL;
    apart[0] = whole[0] = y->shape.lens[0];
    apart[1] = d->group;
    apart[n + 1 + g] = d->outputs;
    whole[1] = d->group * d->outputs;
    order[0] = 0;
    order[1] = 1;
    order[1 + g] = n + 1 + g;
    for (int i = 0; i < n; i++) {
        apart[1 + g + i] = d->s[i];
        apart[n + 2 + g + i] = y->shape.lens[i + 2];
        whole[i + 2] = d->s[i] * y->shape.lens[i + 2];
        order[2 + g + 2 * i] = n + 2 + g + i;
        order[3 + g + 2 * i] = 1 + g + i;
    }
    y = mgx_emit_transpose(at, mgx_emit_reshape(at, y, apart, wide), order, wide);
    y = mgx_emit_reshape(at, y, whole, n + 2);
    for (int i = 0; i < n && y; i++)
        if (d->begin[i] > 0 || like->lens[i + 2] < whole[i + 2])
            y = mgx_emit_slice(at, y, i + 2, d->begin[i], d->begin[i] + like->lens[i + 2]);
    return y;
}

// --- what reads the result ---

// An operand of all pixels in y's place: one value, or one a channel, for every r.
static struct mgx_ins *operand(struct mgx_ins *at, struct mgx_ins *v, const struct dealt *d,
                               const struct mgx_shape *like)
{
    double value;
    const int64_t all = d->group * d->phases * d->outputs;
    if (mgx_splat_value(v, &value)) {
        struct mgx_ins *one = mgx_literal_double(at->owner, v->shape.type, value);
        return mgx_emit_multibroadcast(at, one, like->lens, like->rank);
    }
    struct mgx_ins *vector = mgx_emit_along(at, v, 1);
    const int64_t narrow[] = {d->group, 1, d->outputs};
    const int64_t lens[] = {d->group, d->phases, d->outputs};
    const int one = !d->more;
    if (d->more)
        vector = mgx_emit_reshape(at, vector, narrow, 3);
    vector = mgx_emit_multibroadcast(at, vector, lens + one, 3 - one);
    return mgx_emit_spread(at, mgx_emit_reshape(at, vector, &all, 1), 1, like);
}

static bool can_go_before(struct mgx_ins *op, const struct mgx_ins *y)
{
    double value;
    if (!(op->op->flags & MGX_OP_POINTWISE) || op->mod_count || op->owner != y->owner ||
        op->in_count > 4 || !mgx_is_pure(op) || !mgx_shape_same_lens(&op->shape, &y->shape))
        return false;
    for (int i = 0; i < op->in_count; i++)
        if (op->in[i] != y && !mgx_splat_value(op->in[i], &value) &&
            !(mgx_is_along(op->in[i], 1) && mgx_is_constant(op->owner, op->in[i])))
            return false;
    return true;
}

static struct mgx_ins *go_before(struct mgx_ins *op, const struct mgx_ins *old, struct mgx_ins *y,
                                 const struct dealt *d)
{
    struct mgx_ins *in[4];
    const struct mgx_shape like = y->shape;
    for (int i = 0; i < op->in_count; i++)
        if (!(in[i] = op->in[i] == old ? y : operand(op, op->in[i], d, &like)))
            return NULL;
    return mgx_emit_again(op, op, in, op->in_count);
}

static enum mgx_status deal_out(struct mgx_pass_call *c, struct mgx_ins *ins, const struct dealt *d)
{
    enum { MOST = 24 };
    struct mgx_ins *y = product(ins, d), *last = ins;
    for (int i = 0; i < MOST && y && mgx_used_once(last); i++) {
        struct mgx_ins *reader = last->uses->user;
        if (!can_go_before(reader, last))
            break;
        y = go_before(reader, last, y, d);
        last = reader;
    }
    const struct mgx_shape like = last->shape;
    struct mgx_ins *all = interleave(last, y, d, &like);
    if (!all)
        return mgx_program_status(c->program, c->diag);
    mgx_replace_uses(last, all);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_mark_constants(m);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        struct dealt d;
        if ((ins->op == &mgx_op_convolution_backwards ||
             ins->op == &mgx_op_quant_convolution_backwards) &&
            ins->uses && can_deal(m, ins, &d))
            TRY(deal_out(c, ins, &d));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_rewrite_backwards = {
    .name = "rewrite_backwards",
    .meaning = "transposed convolutions become convolutions whose outputs are dealt out to pixels",
    .module = run,
};
