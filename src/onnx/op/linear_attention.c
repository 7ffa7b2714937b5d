// SPDX-License-Identifier: MIT
// LinearAttention: heads are taken apart, the IR's linear_attention does the recurrence.
#include <math.h>
#include <string.h>

#include "onnx/build.h"

static enum mgx_status rule(struct mgx_node *n, bool *gated, bool *delta)
{
    const char *name = mgx_onnx_text(n, "update_rule", "gated_delta");
    *gated = strncmp(name, "gated", 5) == 0;
    *delta = strcmp(name, "delta") == 0 || strcmp(name, "gated_delta") == 0;
    if (!*gated && !*delta && strcmp(name, "linear") != 0)
        return mgx_node_invalid(n, "update_rule \"%s\" is unknown", name);
    if ((*gated && !mgx_node_in(n, 4)) || (*delta && !mgx_node_in(n, 5)))
        return mgx_node_invalid(n, "update_rule \"%s\" lacks decay or beta", name);
    return MGX_OK;
}

// (batch, steps, heads * size) to (batch, heads, steps, size).
static enum mgx_status split(struct mgx_node *n, struct mgx_ins *x, int64_t heads,
                             struct mgx_ins **out)
{
    if (x->shape.rank != 3 || heads < 1 || x->shape.lens[2] % heads != 0)
        return mgx_node_invalid(n, "an input of rank %d does not split into %lld heads",
                                x->shape.rank, (long long)heads);
    *out = mgx_build_split_heads(n, x, heads);
    return MGX_OK;
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 6));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const int64_t query_heads = mgx_onnx_int(n, "q_num_heads", 0);
    const int64_t heads = mgx_onnx_int(n, "kv_num_heads", 0);
    bool gated = false, delta = false;
    struct mgx_ins *in[6] = {NULL};
    TRY(rule(n, &gated, &delta));
    for (int i = 0; i < 3; i++)
        TRY(split(n, n->in[i], i ? heads : query_heads, &in[i]));
    in[3] = mgx_node_in(n, 3) ? n->in[3] : mgx_build_undefined(n);
    in[4] = in[5] = mgx_build_undefined(n);
    if (gated)
        TRY(split(n, n->in[4], heads, &in[4]));
    if (delta && n->in[5]->shape.rank != 3)
        return mgx_node_invalid(n, "beta has rank %d, not 3", n->in[5]->shape.rank);
    if (delta) // one rate per head, or one for all of them
        TRY(split(n, n->in[5], n->in[5]->shape.lens[n->in[5]->shape.rank - 1], &in[5]));
    const double given = mgx_onnx_real(n, "scale", 0);
    const double size = (double)(n->in[0]->shape.lens[2] / query_heads);
    struct mgx_ins *both = mgx_build_emit_n(
        n, &mgx_op_linear_attention,
        MGX_ATTRS(mgx_real("scale", given ? given : 1 / sqrt(size)), mgx_int("delta", delta)), in,
        6);
    n->out[0] = mgx_build_merge_heads(n, mgx_build_member(n, both, 0));
    if (n->out_count > 1)
        n->out[1] = mgx_build_member(n, both, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_linear_attention = {
    .name = "LinearAttention", .import = import, .result = "03?0"};
