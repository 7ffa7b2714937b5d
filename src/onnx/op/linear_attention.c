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

// Batch and steps may be open; what is split into heads may not.
static bool is_known(const struct mgx_node *n)
{
    if (!mgx_build_ranked(n))
        return false;
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] && i != 3 && n->in[i]->shape.rank == 3 && !mgx_build_fixed_dim(n->in[i], 2))
            return false;
    return true;
}

struct counts {
    int64_t queries, keys, values, size; // heads of each, which share in order; of a key
};

// There may be fewer heads of queries and keys than of values, or fewer of keys and values.
static enum mgx_status count_heads(struct mgx_node *n, struct counts *c)
{
    *c = (struct counts){.queries = mgx_onnx_int(n, "q_num_heads", 0),
                         .values = mgx_onnx_int(n, "kv_num_heads", 0)};
    const struct mgx_shape *q = &n->in[0]->shape, *k = &n->in[1]->shape;
    if (q->rank != 3 || k->rank != 3 || c->queries < 1 || c->values < 1 ||
        q->lens[2] < c->queries || q->lens[2] % c->queries != 0)
        return mgx_node_invalid(n, "queries of rank %d and keys of rank %d for %lld heads", q->rank,
                                k->rank, (long long)c->queries);
    c->size = q->lens[2] / c->queries;
    c->keys = k->lens[2] / c->size;
    const int64_t more = c->queries > c->values ? c->queries : c->values;
    if (c->keys < 1 || k->lens[2] % c->size != 0 || c->values % c->keys != 0 ||
        more % c->queries != 0 || more % c->values != 0)
        return mgx_node_invalid(n, "%lld heads of queries, %lld of keys and %lld of values",
                                (long long)c->queries, (long long)c->keys, (long long)c->values);
    return MGX_OK;
}

static enum mgx_status read_operands(struct mgx_node *n, const struct counts *c,
                                     struct mgx_ins **in)
{
    const int64_t heads[3] = {c->queries, c->keys, c->values};
    for (int i = 0; i < 3; i++)
        TRY(split(n, n->in[i], heads[i], &in[i]));
    for (int i = 0; i < 2; i++)
        if (heads[i] < c->values)
            in[i] = mgx_build_repeat_heads(n, in[i], c->values / heads[i]);
    in[3] = mgx_node_in(n, 3) ? n->in[3] : mgx_build_undefined(n);
    in[4] = in[5] = mgx_build_undefined(n);
    return mgx_node_status(n);
}

static enum mgx_status import(struct mgx_node *n)
{
    bool gated = false, delta = false;
    struct mgx_ins *in[6] = {NULL};
    struct counts c;
    TRY(mgx_node_need(n, 3, 6));
    if (!is_known(n))
        return mgx_onnx_defer(n);
    if (mgx_onnx_int(n, "state_window", 0))
        return mgx_node_unsupported(n, "state_window");
    TRY(rule(n, &gated, &delta));
    TRY(count_heads(n, &c));
    TRY(read_operands(n, &c, in));
    if (gated)
        TRY(split(n, n->in[4], c.values, &in[4]));
    if (delta && n->in[5]->shape.rank != 3)
        return mgx_node_invalid(n, "beta has rank %d, not 3", n->in[5]->shape.rank);
    if (delta) // one rate per head, or one for all of them
        TRY(split(n, n->in[5], n->in[5]->shape.lens[2], &in[5]));
    const double given = mgx_onnx_real(n, "scale", 0);
    struct mgx_ins *both =
        mgx_build_emit_n(n, &mgx_op_linear_attention,
                         MGX_ATTRS(mgx_real("scale", given ? given : 1 / sqrt((double)c.size)),
                                   mgx_int("delta", delta)),
                         in, 6);
    n->out[0] = mgx_build_merge_heads(n, mgx_build_member(n, both, 0));
    if (n->out_count > 1)
        n->out[1] = mgx_build_member(n, both, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_linear_attention = {
    .name = "LinearAttention", .import = import, .result = "03?0"};
const struct mgx_onnx_op mgx_onnx_ms_linear_attention = {
    .name = "LinearAttention", .domain = "com.microsoft", .import = import, .result = "03?0"};
