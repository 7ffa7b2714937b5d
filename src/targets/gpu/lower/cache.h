// SPDX-License-Identifier: MIT
// What the texts of a decoder's caches share: how elements are read, and where rows begin.
#pragma once

#include "targets/gpu/lower/lower.h"

// Floats that are summed in float: half, bfloat16, float.
bool gpu_cache_computes(enum mgx_type type);
// LOAD(p, i) and STORE(p, i, x) of floats of that type, and A_TYPE.
void gpu_emit_cache_type(struct mgx_str *out, enum mgx_type type);
// `name(b, h, t)`: where a row of {batch, heads, tokens, size} begins.
void gpu_emit_cache_row(struct mgx_str *out, const char *name, const struct mgx_shape *s);
// HALF, ROWS, COSINE_ROW, SINE_ROW, INTERLEAVED and position_of: how a head is turned by tables.
void gpu_emit_cache_turn(struct mgx_str *out, const struct mgx_shape *cosines,
                         const struct mgx_shape *sines, const struct mgx_shape *at, int64_t tokens,
                         bool interleaved);
// From one entry, head and row of {batch, heads, rows, size} to the next.
void gpu_cache_strides(const struct mgx_shape *s, int64_t stride[3]);
// Are these integers in order that the texts read?
bool gpu_cache_reads_ends(const struct mgx_shape *s);
// Declines, wishing for the first of the inputs in `mask` whose last axis does not lie side by side
// to be row-major; false if there is none.
bool gpu_cache_wishes(struct mgx_plan_offer *c, unsigned mask);

// --- cache_attention, which may do what comes before it as well (cache_bundle.c) ---

struct gpu_cached {
    struct gpu_call call; // of the parts
    struct gpu_launch last;
    void *join;
    int keys;
    int64_t k[3], v[3]; // from one entry, head and row to the next
    int blocks, pages;  // of paged_attention: blocks of a cache, blocks of a text; else 0
    int bias, sink;     // inputs, -1: none
    bool direct;        // the parts' kernel writes the result
    bool kept;          // the last two inputs are scales of keys and values
};

struct gpu_cached_args { // addresses; of those behind `out` the first that is NULL is the last
    void *work, *q, *k, *v, *ends, *bias, *sink, *out;
    void *new_k, *new_v, *cosines, *sines, *at;
    void *past, *table;      // of pages
    void *k_scale, *v_scale; // of caches in few bits
};

// Where queries, keys and values are before they are turned and appended.
struct gpu_cache_before {
    struct mgx_shape q, k, v;
    const struct mgx_shape *cosines, *sines, *at; // NULL: nothing is turned
    int64_t tokens;
    bool interleaved;
};

// The text for what a step of cache_attention is offered; false if it takes no such thing.
bool gpu_cache_attention_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                              const struct gpu_cache_before *before);
enum mgx_status gpu_cached_find(struct gpu_cached *g, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_cached_launch(const struct gpu_cached *g, const struct gpu_cached_args *a,
                                  const struct mgx_plan_machine *machine, struct mgx_queue *queue,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// Makes bundles of cache_attention and what comes before it; and, when steps have their places and
// units are made, finds kernels.
enum mgx_status gpu_cache_bundles(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_cache_bundles_finish(struct mgx_plan *plan,
                                         struct mgx_diag *diag) MGX_NODISCARD;
