// SPDX-License-Identifier: MIT
// Caches of keys or values whose numbers are kept in 8 or 4 bits, and what a query's scores are.
#pragma once

#include "onnx/node.h"

struct mgx_kv_kept {
    struct mgx_ins *scale; // one, or {1, heads, 1, size}; NULL: numbers are kept as they come
    enum mgx_type type;    // of the cache's elements
    int64_t size;          // of a head; two numbers of 4 bits share a byte of uint8
};

// `past` (NULL: none) and the scale at input `scale`, by the attribute `how`: NONE, PER_TENSOR or
// PER_CHANNEL of heads of this size.
enum mgx_status mgx_kv_read(struct mgx_node *n, const char *how, int scale,
                            const struct mgx_ins *past, int64_t heads, int64_t size,
                            struct mgx_kv_kept *out) MGX_NODISCARD;
// Keys or values as the cache keeps them, and back as floats of `type`.
struct mgx_ins *mgx_kv_pack(struct mgx_node *n, const struct mgx_kv_kept *kept, struct mgx_ins *x);
struct mgx_ins *mgx_kv_unpack(struct mgx_node *n, const struct mgx_kv_kept *kept,
                              struct mgx_ins *cache, enum mgx_type type);

// Scores {batch, heads, tokens, keys} of queries q over the keys k of a cache, all of known
// lengths.
struct mgx_kv_scores {
    struct mgx_ins *q, *k;       // {batch, heads, tokens, size}, {batch, shared, keys, size}
    struct mgx_ins *ends;        // {batch}
    struct mgx_ins *bias, *sink; // NULL: none
    double scale, cap;
    int64_t window;
    bool whole;
};
// 0 where a query sees no key; with `shares` behind the softmax.
struct mgx_ins *mgx_kv_scores(struct mgx_node *n, const struct mgx_kv_scores *s, bool shares);
