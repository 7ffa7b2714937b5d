// SPDX-License-Identifier: MIT
// Attention:  Y = softmax(f(Q K)) V  over the last axis, batched, with no score ever leaving the
// cache.
//
//             keys (a block of up to 2048)
//            +---------------------+
//     depth  | K, packed in panels |        for each block of keys, packed once:
//            +---------------------+          for each tile of rows (14 on AVX-512):
//     +---+  +---------------------+            scores = f(tile Q * K)
//     | Q |  | scores  14 x keys   |            high, sum = maximum and sum of exp(scores - high)
//     +---+  +---------------------+            Y = Y * exp(old high - high) + exp(...) * V
//                    V: keys x columns, panels   after the last block: Y = Y / sum
//
// With all keys in one block, the usual case, there is one pass and nothing is rescaled.
//
// f is scores * scale + mask, the mask with any strides, or whatever a hook makes of a tile. A row
// whose scores are all -infinity gives NaN, as the definition does. Q has contiguous depth, Y
// contiguous columns; K and V lie anyhow, since packing reads them.
//
// Of bfloat16, where the machine multiplies it: Q, K and V lie so, powers are rounded to it, scores
// and sums stay floats, and Y is rounded once if it is bfloat16 too.
//
// Cost: packing is 1 / rows of the products' work; scratch per thread holds a block of K and V and
// one tile of scores. The result depends on shape and instruction set, never on the number of
// threads.
#pragma once

#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/machine/pool.h"

enum { MGX_ATTENTION_BATCH = 6 }; // batch axes at most

// Changes a tile of scores in place: tile->row is the query, tile->col the key it begins with; `at`
// has the place of its batch.
typedef void (*mgx_attention_hook)(void *user, const int64_t *at, const struct mgx_tile *tile);

// Strides are in elements; those of batches may be 0.
struct mgx_attention_desc {
    mgx_isa isa;
    enum mgx_kernel_type type, y_type;     // of Q, K and V: F32, or BF16; F32 or BF16 of Y
    int threads;                           // the pool's
    int64_t queries, keys, depth, columns; // depth of Q K, columns of V
    int batch_rank;
    int64_t batch[MGX_ATTENTION_BATCH];
    int64_t q_row, q_batch[MGX_ATTENTION_BATCH];
    int64_t k_row, k_col, k_batch[MGX_ATTENTION_BATCH]; // K is depth x keys
    int64_t v_row, v_col, v_batch[MGX_ATTENTION_BATCH]; // V is keys x columns
    int64_t y_row, y_batch[MGX_ATTENTION_BATCH];
    float scale;
    bool guarded; // queries that see no key give zeros, not NaN
    bool masked;
    int64_t mask_row, mask_col, mask_batch[MGX_ATTENTION_BATCH]; // mask_col is 0 or 1
    mgx_attention_hook hook; // NULL: none; comes before scale and mask
};

struct mgx_attention_plan {
    struct mgx_attention_desc desc;
    const struct mgx_gemm_kernel *kernel;
    const struct mgx_attention_kernel *rows;
    int64_t batches, parts; // runs of rows of one batch
    int tasks;
    int64_t block, stride;            // keys at once; floats from score row to score row
    size_t k_bytes, v_bytes, s_bytes; // of scratch: packed K and V, scores
    size_t q_bytes, p_bytes, y_bytes; // ... and of bfloat16: Q of odd depth, powers, sums
    int64_t k_groups;                 // of 32 bits along the depth
    size_t thread_workspace;          // a multiple of 64
};

struct mgx_attention_args {
    const void *q, *k, *v;
    const float *mask;
    void *y;
    void *workspace; // mgx_attention_workspace() bytes, aligned to 64
    void *hook_user;
};

// MGX_INVALID for negative sizes, MGX_LIMIT when a size does not fit.
enum mgx_status mgx_attention_plan_init(struct mgx_attention_plan *plan,
                                        const struct mgx_attention_desc *desc,
                                        struct mgx_diag *diag) MGX_NODISCARD;
size_t mgx_attention_workspace(const struct mgx_attention_plan *plan);
void mgx_attention_run(const struct mgx_attention_plan *plan, const struct mgx_attention_args *args,
                       struct mgx_pool *pool);

// --- the loops over scores, per instruction set ---

// Of a tile its data, stride, rows and columns count. Rows of scores are readable and writable up
// to a whole vector. `high` and `sum` have an entry per row.
struct mgx_attention_kernel {
    struct mgx_kernel base;
    // s = s * scale + mask (NULL: none); the rest of the last vector becomes -infinity. high:
    // maximum of itself and the row.
    void (*scale)(const struct mgx_tile *s, float scale, const float *mask, int64_t mask_row,
                  int64_t mask_col, float *high);
    // s = exp(s - high); sum: the row's sum.
    void (*exp)(const struct mgx_tile *s, const float *high, float *sum);
    // y *= factor of the row.
    void (*multiply)(const struct mgx_tile *y, const float *factor);
    // s = cap * tanh(s * scale / cap); the rest of the last vector is anything.
    void (*cap)(const struct mgx_tile *s, float scale, float cap);
    // y[i] = factor[i] * (sum over columns j of p[i][j] v[j]) for as many rows of both, 4 at most;
    // vectors v are v_row floats apart.
    void (*weigh)(const struct mgx_tile *p, const float *v, int64_t v_row, const struct mgx_tile *y,
                  const float *factor);
};

MGX_KERNEL_KIND(attention)
