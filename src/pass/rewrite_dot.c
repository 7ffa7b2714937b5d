// SPDX-License-Identifier: MIT
// Convolutions of one point are products of matrices.
//
//     convolution[1 x 1](x {n, c, h, w}, w {o, c, 1, 1})
//         =>  reshape(dot(multibroadcast(reshape(w) {o, c}) {n, o, c}, reshape(x) {n, c, h w}))
//
// For step 1, one group and no padding, on static shapes. For targets whose products are better
// than their convolutions; no pipeline of ours needs it.
#include "base/size.h"
#include "op/reference/window.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static bool is_one_point(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    const struct mgx_shape *w = &ins->in[1]->shape;
    (void)r, (void)m;
    if (!mgx_shape_is_static(w) || !mgx_shape_is_static(&ins->in[0]->shape) || w->rank < 3)
        return false;
    for (int d = 2; d < w->rank; d++)
        if (w->lens[d] != 1)
            return false;
    const struct mgx_window_attr window = mgx_window_of(ins);
    return window.group == 1 && mgx_ints_all(window.stride, 1) && mgx_window_is_unpadded(&window);
}

static struct mgx_ins *multiply(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    const struct mgx_shape *y = &ins->shape;
    const int64_t batch = y->lens[0], in = ins->in[0]->shape.lens[1], out = y->lens[1];
    const int64_t points = mgx_product(y->lens + 2, y->rank - 2);
    (void)r;
    struct mgx_ins *w = mgx_emit_reshape(ins, mgx_var(m, 'w'), (int64_t[]){out, in}, 2);
    w = mgx_emit_multibroadcast(ins, w, (int64_t[]){batch, out, in}, 3);
    struct mgx_ins *x = mgx_emit_reshape(ins, mgx_var(m, 'x'), (int64_t[]){batch, in, points}, 3);
    struct mgx_ins *product = mgx_emit_binary(ins, &mgx_op_dot, w, x);
    return mgx_emit_reshape(ins, product, y->lens, y->rank);
}

static const struct mgx_rule rules[] = {
    {"convolution(x, w) ~> reshape(dot(w, reshape(x))), of one point", MGX_IF_FLOAT | MGX_IF_STATIC,
     .guard = is_one_point, .rewrite = multiply},
};

const struct mgx_pass mgx_pass_rewrite_dot = {
    .name = "rewrite_dot",
    .meaning = "makes convolutions of one point products of matrices",
    .rules = {rules, MGX_COUNT(rules)},
};
