// SPDX-License-Identifier: MIT
// Weights in 4 bits, by blocks, as a blocked DequantizeLinear of ONNX is imported:
//
//     w   =>   dequantizelinear(q, s, z)     s, z: one per block along what is summed, repeated
//
//     asymmetric   s = (high - low) / 15, z = round(-low / s), q = round(w / s) + z, uint4
//     symmetric    s = largest |w| / 7, q = round(w / s), int4
//
// Activations stay as they are, so nothing is calibrated. Products whose weights are not known, or
// are fewer than a block, stay wide.
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "pass/engine/emit.h"
#include "quant/quant.h"
#include "quant/site.h"
#include "quant/weights.h"

// The weights cut into blocks along the axis that is summed: element i is of block
// (outer * blocks + k / block) * inner + rest.
struct blocks {
    int axis;
    int64_t length, size, count; // of the axis; of a block; blocks along the axis
    int64_t inner;               // elements behind the axis
    bool symmetric;
};

static int64_t block_of(const struct blocks *b, int64_t i)
{
    const int64_t outer = i / b->inner / b->length, k = i / b->inner % b->length;
    return (outer * b->count + k / b->size) * b->inner + i % b->inner;
}

static struct mgx_shape block_shape(const struct mgx_weights *w, const struct blocks *b,
                                    enum mgx_type type)
{
    struct mgx_shape s = mgx_shape_retype(&w->value.shape, type);
    s.lens[b->axis] = b->count;
    return mgx_shape_make(type, s.rank, s.lens);
}

// --- rounding ---

static void find_extremes(const struct mgx_weights *w, const struct blocks *b, double *low,
                          double *high)
{
    const int64_t count = mgx_shape_elements(&w->value.shape);
    for (int64_t i = 0; i < count; i++) {
        const double v = mgx_load_double(w->value.shape.type, w->value.data, i);
        const int64_t k = block_of(b, i);
        if (!isfinite(v))
            continue;
        low[k] = fmin(low[k], v);
        high[k] = fmax(high[k], v);
    }
}

static void find_steps(const struct blocks *b, const double *low, const double *high,
                       struct mgx_tensor *scale, struct mgx_tensor *zero)
{
    const int64_t count = mgx_shape_elements(&scale->shape);
    for (int64_t k = 0; k < count; k++) {
        const double step = b->symmetric ? fmax(-low[k], high[k]) / 7 : (high[k] - low[k]) / 15;
        const enum mgx_type type = scale->shape.type;
        mgx_store_double(type, scale->data, k, step > 0 ? fmax(step, mgx_least_scale(type)) : 1);
        if (zero->data)
            mgx_store_double(MGX_UINT4, zero->data, k,
                             fmin(nearbyint(-low[k] / mgx_load_double(type, scale->data, k)), 15));
    }
}

static void round_all(const struct mgx_weights *w, const struct blocks *b,
                      const struct mgx_tensor *scale, const struct mgx_tensor *zero,
                      struct mgx_tensor *out)
{
    const int64_t count = mgx_shape_elements(&w->value.shape);
    const double low = b->symmetric ? -7 : 0, high = b->symmetric ? 7 : 15;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = block_of(b, i);
        const double z = zero->data ? mgx_load_double(MGX_UINT4, zero->data, k) : 0;
        const double q = nearbyint(mgx_load_double(w->value.shape.type, w->value.data, i) /
                                   mgx_load_double(scale->shape.type, scale->data, k)) +
                         z;
        mgx_store_double(out->shape.type, out->data, i, isnan(q) ? z : fmin(fmax(q, low), high));
    }
}

// --- emitting ---

// One value per block to one per element: {.., blocks, ..} => {.., blocks, size, ..} => {..,
// length, ..}.
static struct mgx_ins *spread(const struct mgx_weights *w, const struct blocks *b,
                              struct mgx_ins *v)
{
    const struct mgx_shape *like = &w->value.shape;
    int64_t lens[MGX_MAX_RANK];
    if (!v || b->size == 1)
        return v;
    if (b->count == 1)
        return mgx_emit_multibroadcast(w->at, v, like->lens, like->rank);
    if (like->rank == MGX_MAX_RANK)
        return NULL;
    int rank = 0;
    for (int d = 0; d < like->rank; d++) {
        lens[rank++] = d == b->axis ? b->count : like->lens[d];
        if (d == b->axis)
            lens[rank++] = 1;
    }
    v = mgx_emit_reshape(w->at, v, lens, rank);
    lens[b->axis + 1] = b->size;
    v = mgx_emit_multibroadcast(w->at, v, lens, rank);
    struct mgx_shape merged = *like;
    merged.lens[b->axis] = b->count * b->size;
    v = mgx_emit_before(w->at, &mgx_op_reshape,
                        MGX_ATTRS(mgx_ints("dims", merged.lens, like->rank)), MGX_IN(v));
    return mgx_emit_slice(w->at, v, b->axis, 0, b->length);
}

static struct mgx_ins *emit(const struct mgx_weights *w, const struct blocks *b,
                            struct mgx_tensor *q, const struct mgx_tensor *scale,
                            const struct mgx_tensor *zero, struct mgx_diag *diag)
{
    struct mgx_ins *narrow = mgx_weights_literal(w, q, diag);
    struct mgx_ins *s = spread(w, b, mgx_add_literal(w->at->owner, scale));
    if (!narrow || !s)
        return NULL;
    if (!zero->data)
        return mgx_emit_binary(w->at, &mgx_op_dequantizelinear, narrow, s);
    struct mgx_ins *z = spread(w, b, mgx_add_literal(w->at->owner, zero));
    return mgx_emit_before(w->at, &mgx_op_dequantizelinear, NULL, MGX_IN(narrow, s, z));
}

// --- one product ---

static enum mgx_status narrow_open(struct mgx_weights *w, const struct blocks *b,
                                   struct mgx_ins **out, struct mgx_diag *diag)
{
    const struct mgx_shape scales = block_shape(w, b, w->value.shape.type);
    const struct mgx_shape zeros = block_shape(w, b, MGX_UINT4);
    const struct mgx_shape narrow =
        mgx_shape_retype(&w->value.shape, b->symmetric ? MGX_INT4 : MGX_UINT4);
    const int64_t count = mgx_shape_elements(&scales);
    struct mgx_tensor scale = {0}, zero = {0}, q = {0};
    double *extremes = calloc(2 * (size_t)count + 1, sizeof *extremes);
    enum mgx_status status =
        extremes ? mgx_tensor_create(&scale, &scales, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK && !b->symmetric)
        status = mgx_tensor_create(&zero, &zeros, diag);
    if (status == MGX_OK)
        status = mgx_tensor_create(&q, &narrow, diag);
    if (status == MGX_OK) {
        find_extremes(w, b, extremes, extremes + count);
        find_steps(b, extremes, extremes + count, &scale, &zero);
        round_all(w, b, &scale, &zero, &q);
        struct mgx_ins *core = emit(w, b, &q, &scale, &zero, diag);
        *out = core ? mgx_weights_dress(w, core) : NULL;
        status = *out ? MGX_OK : mgx_fail_memory(diag);
    }
    free(extremes);
    mgx_tensor_release(&scale);
    mgx_tensor_release(&zero);
    mgx_tensor_release(&q);
    return status;
}

static enum mgx_status narrow_site(const struct mgx_site *site, int input, int64_t block,
                                   bool symmetric, struct mgx_diag *diag)
{
    struct mgx_weights w;
    struct mgx_ins *by = NULL;
    enum mgx_status status = mgx_weights_open(&w, site, input, diag);
    if (status == MGX_OK && mgx_shape_elements(&w.value.shape) > 0) {
        const struct mgx_weights_walk walk = mgx_weights_walk(&w);
        struct blocks b = {.axis = w.in_axis,
                           .length = walk.ins,
                           .size = block ? mgx_min_i64(block, walk.ins) : walk.ins,
                           .inner = walk.in_inner,
                           .symmetric = symmetric};
        b.count = mgx_ceil_div(b.length, b.size);
        if (walk.ins >= block)
            status = narrow_open(&w, &b, &by, diag);
    }
    if (status == MGX_OK && by)
        mgx_set_input(site->ins, input, by);
    mgx_weights_close(&w);
    return status == MGX_OK && by ? mgx_update_shape(site->ins, diag) : status;
}

static enum mgx_status narrow_all(struct mgx_program *p, int64_t block, bool symmetric,
                                  struct mgx_arena *arena, struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {
        &mgx_pass_normalize_ops, &mgx_pass_optimize_module, &mgx_pass_dead_code_elimination, NULL};
    static const struct mgx_pass_options options = {.fast_math = false};
    struct mgx_sites sites;
    TRY(mgx_run_passes(p, passes, &options, diag));
    TRY(mgx_sites_find(p, NULL, 0, arena, &sites, diag));
    for (int64_t i = 0; i < sites.count; i++)
        for (int k = 0; k < 2; k++)
            if (sites.v[i].constant[k])
                TRY(narrow_site(&sites.v[i], k, block, symmetric, diag));
    TRY(mgx_program_status(p, diag));
    TRY(mgx_run_passes(p, passes + 2, &options, diag)); // the wide weights go
    TRY(mgx_program_check_files(p, diag));
    return mgx_program_verify(p, diag);
}

enum mgx_status mgx_quantize_weights4(struct mgx_program *p, int64_t block, bool symmetric,
                                      struct mgx_diag *diag)
{
    assert(!p->executable && block >= 0);
    struct mgx_program *backup = NULL;
    struct mgx_arena arena;
    TRY(mgx_program_backup(&backup, p, diag));
    mgx_arena_init(&arena);
    const enum mgx_status status = narrow_all(p, block, symmetric, &arena, diag);
    mgx_arena_fini(&arena);
    if (status == MGX_OK)
        mgx_program_destroy(backup);
    else
        mgx_program_restore(p, backup);
    return status;
}
