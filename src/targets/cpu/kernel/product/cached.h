// SPDX-License-Identifier: MIT
// Attention of the last tokens of a text over a cache that has the keys and values of all of it.
//
//     for every entry of the batch, token i sees keys [from, to), the last of which is its own
//
//     few tokens:   up to 4 heads that share keys, one token: scores = K q, powers, y = V' p
//                   K and V are read once for these, where they lie
//     many tokens:  blocks of queries by attention.h, over the keys that one of them sees
//
// scores = cap tanh(scale q k / cap) + bias, or scale q k + bias where cap is 0. A sink is a score
// of its own in the sum of powers. Who sees nothing gets 0.
//
// Cost: of few tokens that of reading K and V as far as they are seen; scratch per thread is 4 rows
// of scores. The result does not depend on the number of threads.
#pragma once

#include "targets/cpu/kernel/product/attention.h"

// Strides are in elements, of batch, heads and tokens in this order; sizes and columns are
// contiguous. Those of a bias may be 0.
struct mgx_cached_desc {
    mgx_isa isa;
    int threads; // the pool's
    int64_t batch, heads, shared, tokens, keys, depth, columns;
    int64_t q[3], k[3], v[3], y[3], bias[3];
    float scale, cap;
    int64_t window; // keys that a token sees; 0: all up to its own
    bool whole;     // up to the entry's last one instead
    bool biased, sunk;
};

struct mgx_cached_plan {
    struct mgx_cached_desc desc;
    const struct mgx_attention_kernel *rows;
    const struct mgx_gemm_kernel *products;
    int64_t together;        // heads at once
    int64_t stride;          // floats from one row of scores to the next
    size_t thread_workspace; // of few tokens
    size_t many_workspace;   // of all threads; 0: many tokens are taken one by one
};

struct mgx_cached_args {
    const float *q, *k, *v, *bias, *sink;
    const int64_t *ends; // by batch entry: its tokens with the new ones
    float *y;
    void *workspace; // mgx_cached_workspace() bytes, aligned to 64
};

// MGX_INVALID for negative sizes, MGX_LIMIT when a size does not fit.
enum mgx_status mgx_cached_plan_init(struct mgx_cached_plan *plan,
                                     const struct mgx_cached_desc *desc,
                                     struct mgx_diag *diag) MGX_NODISCARD;
size_t mgx_cached_workspace(const struct mgx_cached_plan *plan);
enum mgx_status mgx_cached_run(const struct mgx_cached_plan *plan,
                               const struct mgx_cached_args *args, struct mgx_pool *pool,
                               struct mgx_diag *diag) MGX_NODISCARD;
