// SPDX-License-Identifier: MIT
// Caches in few bits: q = round(x / scale) in int8, in a byte of uint8 two numbers of 4 bits that
// are 8 more than what they stand for, the first one in the lower half; or x / scale as a float of
// 8 bits. Scales are positive numbers of the model, one for all or one per head and entry.
//
// Cost: a step of a decoder makes floats of the whole cache, where no kernel reads it as it lies
// (pass/attend_kept.c).
#include "onnx/kv_cache.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "onnx/build.h"

enum { HALF_BYTE = 8 }; // what is added to a number of 4 bits

// --- what is kept ---

static enum mgx_status read_scale(struct mgx_node *n, const char *how, int i, int64_t heads,
                                  struct mgx_kv_kept *out)
{
    struct mgx_ins *scale = mgx_node_in(n, i);
    const bool each = strcmp(mgx_onnx_text(n, how, "NONE"), "PER_CHANNEL") == 0;
    const int64_t wanted = each ? heads * out->size : 1;
    if (!scale || !mgx_build_is_static(scale))
        return mgx_node_invalid(n, "%s %s without a scale of known lengths", how,
                                mgx_onnx_text(n, how, "NONE"));
    if (mgx_shape_elements(&scale->shape) != wanted)
        return mgx_node_invalid(n, "%s %s with %lld scales, not %lld", how,
                                mgx_onnx_text(n, how, "NONE"),
                                (long long)mgx_shape_elements(&scale->shape), (long long)wanted);
    const int64_t lens[4] = {1, each ? heads : 1, 1, each ? out->size : 1};
    scale = mgx_build_convert(n, scale, MGX_FLOAT);
    out->scale = mgx_build_reshape(n, scale, lens, 4);
    return mgx_node_status(n);
}

static enum mgx_status check_type(struct mgx_node *n, enum mgx_type type, int64_t bits)
{
    const bool known = mgx_type_is_byte(type) || type == MGX_FP8E4M3FN;
    if (!known)
        return mgx_node_invalid(n, "a quantized cache of type %s", mgx_type_name(type));
    if (bits != (type == MGX_UINT8 ? 4 : 8))
        return mgx_node_invalid(n, "kv_cache_bit_width is %lld with a cache of type %s",
                                (long long)bits, mgx_type_name(type));
    return MGX_OK;
}

enum mgx_status mgx_kv_read(struct mgx_node *n, const char *how, int scale,
                            const struct mgx_ins *past, int64_t heads, int64_t size,
                            struct mgx_kv_kept *out)
{
    const char *kind = mgx_onnx_text(n, how, "NONE");
    *out = (struct mgx_kv_kept){.size = size};
    if (strcmp(kind, "NONE") == 0)
        return MGX_OK;
    if (strcmp(kind, "PER_TENSOR") != 0 && strcmp(kind, "PER_CHANNEL") != 0)
        return mgx_node_invalid(n, "%s is %s, not NONE, PER_TENSOR or PER_CHANNEL", how, kind);
    const int64_t asked = mgx_onnx_int(n, "kv_cache_bit_width", 0);
    out->type = past ? past->shape.type : asked == 4 ? MGX_UINT8 : MGX_INT8;
    TRY(check_type(n, out->type, asked ? asked : out->type == MGX_UINT8 ? 4 : 8));
    return read_scale(n, how, scale, heads, out);
}

// --- to few bits and back ---

// Two numbers a byte; a head of odd size is filled up.
static struct mgx_ins *pack_halves(struct mgx_node *n, const struct mgx_kv_kept *kept,
                                   struct mgx_ins *x)
{
    int64_t pads[8] = {0};
    pads[7] = kept->size % 2;
    x = mgx_build_convert(n, mgx_build_with(n, &mgx_op_add, x, HALF_BYTE), MGX_UINT8);
    x = mgx_build_pad(n, x, pads, HALF_BYTE);
    return mgx_build_emit(n, &mgx_op_pack_int4, MGX_ATTRS(mgx_int("axis", 3)), MGX_IN(x));
}

struct mgx_ins *mgx_kv_pack(struct mgx_node *n, const struct mgx_kv_kept *kept, struct mgx_ins *x)
{
    if (!kept->scale || !x)
        return x;
    x = mgx_build_div(n, mgx_build_convert(n, x, MGX_FLOAT), kept->scale);
    if (kept->type == MGX_FP8E4M3FN)
        return mgx_build_convert(n, mgx_build_clamp(n, x, -448, 448), kept->type);
    const double high = kept->type == MGX_UINT8 ? HALF_BYTE - 1 : INT8_MAX;
    x = mgx_build_clamp(n, mgx_build_nearbyint(n, x), -high - 1, high);
    return kept->type == MGX_UINT8 ? pack_halves(n, kept, x) : mgx_build_convert(n, x, kept->type);
}

struct mgx_ins *mgx_kv_unpack(struct mgx_node *n, const struct mgx_kv_kept *kept,
                              struct mgx_ins *cache, enum mgx_type type)
{
    if (!kept->scale || !cache)
        return cache;
    if (kept->type == MGX_UINT8) {
        cache =
            mgx_build_emit(n, &mgx_op_unpack_nbits, MGX_ATTRS(mgx_int("bits", 4)), MGX_IN(cache));
        cache = kept->size % 2 ? mgx_build_slice(n, cache, 3, 0, kept->size) : cache;
    }
    struct mgx_ins *x = mgx_build_convert(n, cache, MGX_FLOAT);
    if (kept->type == MGX_UINT8)
        x = mgx_build_with(n, &mgx_op_sub, x, HALF_BYTE);
    return mgx_build_convert(n, mgx_build_mul(n, x, kept->scale), type);
}

// --- scores ---

// {batch, 1, tokens, keys}: which keys a query sees.
static struct mgx_ins *seen(struct mgx_node *n, const struct mgx_kv_scores *s)
{
    const int64_t tokens = s->q->shape.lens[2], keys = s->k->shape.lens[2];
    struct mgx_ins *ends = mgx_build_convert(n, s->ends, MGX_INT64);
    struct mgx_ins *at = mgx_build_with(n, &mgx_op_sub, ends, s->whole ? 1 : (double)tokens);
    at = mgx_build_with(n, &mgx_op_max, at, 0);
    at = at ? mgx_build_per_axis(n, at, 0, 4) : NULL;
    struct mgx_ins *i = mgx_build_iota(n, MGX_INT64, tokens);
    if (!s->whole)
        at = mgx_build_add(n, at, i ? mgx_build_per_axis(n, i, 0, 2) : NULL);
    struct mgx_ins *behind = mgx_build_sub(n, at, mgx_build_iota(n, MGX_INT64, keys));
    struct mgx_ins *zero = mgx_build_scalar(n, MGX_INT64, 0);
    struct mgx_ins *y = mgx_build_not(n, mgx_build_less(n, behind, zero));
    if (s->window <= 0)
        return y;
    struct mgx_ins *window = mgx_build_scalar(n, MGX_INT64, (double)s->window);
    return mgx_build_logical_and(n, y, mgx_build_less(n, behind, window));
}

// The softmax of scores, a sink's share left out.
static struct mgx_ins *shares_of(struct mgx_node *n, const struct mgx_kv_scores *s,
                                 struct mgx_ins *x)
{
    const int64_t *lens = s->q->shape.lens, keys = s->k->shape.lens[2];
    const int64_t one[4] = {lens[0], lens[1], lens[2], 1};
    if (s->sink) {
        struct mgx_ins *sink = mgx_build_per_axis(n, s->sink, 1, 4);
        struct mgx_ins *const both[2] = {x, mgx_build_expand(n, sink, 4, one)};
        x = mgx_build_concat(n, 3, both, 2);
    }
    x = mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", 3)), MGX_IN(x));
    return s->sink ? mgx_build_slice(n, x, 3, 0, keys) : x;
}

struct mgx_ins *mgx_kv_scores(struct mgx_node *n, const struct mgx_kv_scores *s, bool shares)
{
    assert(mgx_build_is_static(s->q) && mgx_build_is_static(s->k));
    const enum mgx_type type = s->q->shape.type;
    const int64_t group = s->q->shape.lens[1] / s->k->shape.lens[1], keys = s->k->shape.lens[2];
    struct mgx_ins *k = mgx_build_repeat_heads(n, s->k, group);
    k = mgx_build_transpose(n, k, (int64_t[]){0, 1, 3, 2}, 4);
    struct mgx_ins *x = mgx_build_matmul(n, &mgx_op_dot, s->q, k);
    x = mgx_build_with(n, &mgx_op_mul, x, s->scale);
    if (s->cap > 0)
        x = mgx_build_with(n, &mgx_op_mul,
                           mgx_build_tanh(n, mgx_build_with(n, &mgx_op_div, x, s->cap)), s->cap);
    if (s->bias)
        x = mgx_build_add(n, x, mgx_build_slice(n, s->bias, 3, 0, keys));
    struct mgx_ins *visible = seen(n, s);
    if (shares) {
        x = mgx_build_where(n, visible, x, mgx_build_scalar(n, type, -INFINITY));
        x = shares_of(n, s, x);
    }
    return mgx_build_where(n, visible, x, mgx_build_scalar(n, type, 0));
}
