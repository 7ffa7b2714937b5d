// SPDX-License-Identifier: MIT
// Pieces of graph that the rules of all importers emit: arithmetic with broadcasting, views,
// reductions, literals and the canonical forms of normalisations, so that a pass finds every layer
// normalisation in the same shape whichever operator it came from.
//
// Everything here is sticky as emitting is: NULL in gives NULL out, and the failure stays in the
// program. Functions that only ask never fail on what a model may contain; those whose names end in
// `_axis` or `_axes` report an axis that is out of range.
#pragma once

#include "import/node.h"

// --- emitting (each result carries the node's name as origin) ---
struct mgx_ins *mgx_build_emit(struct mgx_node *n, const struct mgx_op *op,
                               const struct mgx_attr *attrs, struct mgx_ins_list in);
struct mgx_ins *mgx_build_emit_n(struct mgx_node *n, const struct mgx_op *op,
                                 const struct mgx_attr *attrs, struct mgx_ins *const *in,
                                 int count);
struct mgx_ins *mgx_build_emit_body(struct mgx_node *n, const struct mgx_op *op,
                                    const struct mgx_attr *attrs, struct mgx_ins *const *in,
                                    int count, struct mgx_module *const *mod, int mod_count);
struct mgx_ins *mgx_build_scalar(struct mgx_node *n, enum mgx_type type,
                                 double value); // rank 0 literal
struct mgx_ins *mgx_build_literal_ints(struct mgx_node *n, const int64_t *values, int count);
// Room for a literal of numbers that a rule fills, within the import's budget: sizes come from the
// model.
enum mgx_status mgx_build_create(struct mgx_node *n, const struct mgx_shape *shape,
                                 struct mgx_tensor *out) MGX_NODISCARD;
struct mgx_ins *mgx_build_undefined(struct mgx_node *n);
struct mgx_ins *mgx_build_convert(struct mgx_node *n, struct mgx_ins *x,
                                  enum mgx_type type); // x if it has it
// Numpy broadcasting of all to their common shape (multibroadcast only where needed).
enum mgx_status mgx_build_broadcast(struct mgx_node *n, struct mgx_ins **v,
                                    int count) MGX_NODISCARD;
// Element-wise operator with numpy broadcasting; a scalar may be made with mgx_build_scalar.
struct mgx_ins *mgx_build_binary(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                                 struct mgx_ins *b);
struct mgx_ins *mgx_build_unary(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x);
struct mgx_ins *mgx_build_reshape(struct mgx_node *n, struct mgx_ins *x, const int64_t *dims,
                                  int rank); // -1, 0 allowed
struct mgx_ins *mgx_build_transpose(struct mgx_node *n, struct mgx_ins *x, const int64_t *perm,
                                    int rank);
// Member i of a tuple result.
struct mgx_ins *mgx_build_member(struct mgx_node *n, struct mgx_ins *tuple, int64_t i);

// --- arithmetic with numpy broadcasting: mgx_build_add(n, a, b), mgx_build_exp(n, x) ---
#define MGX_BUILD_BINARY(X)                                                                        \
    X(add) X(sub) X(mul) X(div) X(pow) X(max) X(min) X(sqdiff) X(mod) X(fmod)
#define MGX_BUILD_COMPARE(X) X(equal) X(less) X(greater) X(logical_and) X(logical_or) X(logical_xor)
#define MGX_BUILD_UNARY(X)                                                                         \
    X(abs)                                                                                         \
    X(ceil)                                                                                        \
    X(cos)                                                                                         \
    X(erf)                                                                                         \
    X(exp)                                                                                         \
    X(floor)                                                                                       \
    X(log) X(neg) X(nearbyint) X(recip) X(relu) X(rsqrt) X(sigmoid) X(sign) X(sin) X(sqrt) X(tanh)

#define X(name)                                                                                    \
    static inline struct mgx_ins *mgx_build_##name(struct mgx_node *n, struct mgx_ins *a,          \
                                                   struct mgx_ins *b)                              \
    {                                                                                              \
        return mgx_build_binary(n, &mgx_op_##name, a, b);                                          \
    }
MGX_BUILD_BINARY(X)
#undef X

// Comparisons and logic give bool whatever the IR operator's own result type is.
#define X(name)                                                                                    \
    static inline struct mgx_ins *mgx_build_##name(struct mgx_node *n, struct mgx_ins *a,          \
                                                   struct mgx_ins *b)                              \
    {                                                                                              \
        return mgx_build_convert(n, mgx_build_binary(n, &mgx_op_##name, a, b), MGX_BOOL);          \
    }
MGX_BUILD_COMPARE(X)
#undef X

#define X(name)                                                                                    \
    static inline struct mgx_ins *mgx_build_##name(struct mgx_node *n, struct mgx_ins *x)          \
    {                                                                                              \
        return mgx_build_unary(n, &mgx_op_##name, x);                                              \
    }
MGX_BUILD_UNARY(X)
#undef X

// Numbers of several types become the one that holds them all: floats before integers, the wider
// before the narrower, signed where one is. The standard wants one type, exporters write others.
void mgx_build_unify(struct mgx_node *n, struct mgx_ins **v, int count);
struct mgx_ins *mgx_build_not(struct mgx_node *n, struct mgx_ins *x); // of a bool, to a bool
struct mgx_ins *mgx_build_where(struct mgx_node *n, struct mgx_ins *condition, struct mgx_ins *yes,
                                struct mgx_ins *no);
struct mgx_ins *mgx_build_dot(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b);
// numpy.matmul: vectors, batch broadcasting; ranks must be known.
struct mgx_ins *mgx_build_matmul(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                                 struct mgx_ins *b);
// The same of v[0] and v[1]; what follows them are inputs of the product as they are.
struct mgx_ins *mgx_build_matmul_of(struct mgx_node *n, const struct mgx_op *op,
                                    struct mgx_ins *const *v, int count);

// --- literals ---
// A scalar of x's type.
struct mgx_ins *mgx_build_like(struct mgx_node *n, const struct mgx_ins *x, double value);
// `op` of x and a scalar of x's type.
struct mgx_ins *mgx_build_with(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                               double value);
// Row-major values as a packed literal.
struct mgx_ins *mgx_build_doubles(struct mgx_node *n, const struct mgx_shape *shape,
                                  const double *values);
struct mgx_ins *mgx_build_ints(struct mgx_node *n, const struct mgx_shape *shape,
                               const int64_t *values);
// 0, 1, 2, ... count-1.
struct mgx_ins *mgx_build_iota(struct mgx_node *n, enum mgx_type type, int64_t count);
// 0, 1, 2, ... as many as the axis of x is long, also where that is known at run time only.
struct mgx_ins *mgx_build_indices(struct mgx_node *n, struct mgx_ins *x, int axis);
// 0, 1, 2, ... as many as an int64 vector of one says.
struct mgx_ins *mgx_build_indices_to(struct mgx_node *n, struct mgx_ins *length);
// One value over all these lengths, without storing it more than once.
struct mgx_ins *mgx_build_filled(struct mgx_node *n, enum mgx_type type, int rank,
                                 const int64_t *lens, double value);

// --- views and movement ---
struct mgx_ins *mgx_build_squeeze(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                  int count);
struct mgx_ins *mgx_build_unsqueeze(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                    int count);
struct mgx_ins *mgx_build_slice(struct mgx_node *n, struct mgx_ins *x, int64_t axis, int64_t start,
                                int64_t end);
struct mgx_ins *mgx_build_concat(struct mgx_node *n, int64_t axis, struct mgx_ins *const *in,
                                 int count);
struct mgx_ins *mgx_build_gather(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *indices,
                                 int64_t axis);
struct mgx_ins *mgx_build_expand(struct mgx_node *n, struct mgx_ins *x, int rank,
                                 const int64_t *lens); // multibroadcast; x itself if equal
struct mgx_ins *mgx_build_reshape_like(struct mgx_node *n, struct mgx_ins *x,
                                       const struct mgx_shape *like); // static `like`
// A length that may be known at run time only: that of an axis of a tensor, times and over
// constants.
struct mgx_build_len {
    struct mgx_ins *of; // NULL: the length is `times` itself
    int axis;
    int64_t times, over; // 0 stands for 1 where `of` is given
};
// The length of an axis as an int64 vector of one: a literal, or read at run time.
struct mgx_ins *mgx_build_dim(struct mgx_node *n, struct mgx_ins *x, int axis);
// x with these lengths; only where several of them are unknown do they become an operand.
struct mgx_ins *mgx_build_reshape_to(struct mgx_node *n, struct mgx_ins *x,
                                     const struct mgx_build_len *lens, int rank);
struct mgx_ins *mgx_build_pad(struct mgx_node *n, struct mgx_ins *x, const int64_t *pads,
                              double value); // 2*rank pads >= 0; x itself if all are 0
// A vector, one value per index of `axis`, ready to broadcast against rank `rank`: (C) to (C,1,1).
struct mgx_ins *mgx_build_per_axis(struct mgx_node *n, struct mgx_ins *v, int axis, int rank);
// Numpy broadcasting of two static shapes; false if they do not match.
bool mgx_build_common_lens(const struct mgx_shape *a, const struct mgx_shape *b, int *rank,
                           int64_t *lens);

// --- reductions and normalisations ---
// `op` is one of reduce_*; axes are normalised; keep = false drops them.
struct mgx_ins *mgx_build_reduce(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                                 const int64_t *axes, int count, bool keep);
// Zero mean and unit variance over axes: (x - mean) * rsqrt(mean(sqdiff) + epsilon). The parts are
// handed out when the pointers are not NULL.
struct mgx_ins *mgx_build_standardize(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                      int count, double epsilon, struct mgx_ins **mean,
                                      struct mgx_ins **inv_std);
// x * rsqrt(mean(x * x) + epsilon).
struct mgx_ins *mgx_build_rms(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes, int count,
                              double epsilon);
struct mgx_ins *mgx_build_gelu(struct mgx_node *n, struct mgx_ins *x, bool tanh_form);
struct mgx_ins *mgx_build_softplus(struct mgx_node *n, struct mgx_ins *x);
struct mgx_ins *mgx_build_clamp(struct mgx_node *n, struct mgx_ins *x, double low,
                                double high); // clip with bounds of x's type

// --- attention ---
// (batch, tokens, heads * size) to (batch, heads, tokens, size), and back. Batch and tokens may be
// ranges; the last axis must be known and divisible.
struct mgx_ins *mgx_build_split_heads(struct mgx_node *n, struct mgx_ins *x, int64_t heads);
struct mgx_ins *mgx_build_merge_heads(struct mgx_node *n, struct mgx_ins *x);
// Queries over caches k and v (batch, shared, keys, size), which are `past` and as many new tokens
// as there are queries: causal.
struct mgx_build_cached {
    struct mgx_ins *past; // whose axis has the tokens before
    int axis;
    double scale, cap; // 0: no cap
    int64_t window;    // keys that a query sees; 0: all up to its own
};
struct mgx_ins *mgx_build_cache_attention(struct mgx_node *n, struct mgx_ins *q, struct mgx_ins *k,
                                          struct mgx_ins *v, const struct mgx_build_cached *c);
// Queries whose heads share keys, `group` heads in a row one head of keys: (batch, tokens, shared *
// group * size) or (batch, shared * group, tokens, size) to (batch, shared, group, tokens, size).
// merge_heads takes what comes of it too, merge_groups makes (batch, shared * group, tokens, size).
struct mgx_ins *mgx_build_split_groups(struct mgx_node *n, struct mgx_ins *x, int64_t shared,
                                       int64_t group);
struct mgx_ins *mgx_build_merge_groups(struct mgx_node *n, struct mgx_ins *x);
// Scores and a mask that is repeated to fit them, never they to fit it: so the sum has their
// lengths, with their names. A table is (tokens, keys), of their lengths beyond doubt.
struct mgx_ins *mgx_build_add_mask(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *mask,
                                   bool table);
// Keys or values (batch, shared, ...) for such queries q: a view that repeats them, no copy.
struct mgx_ins *mgx_build_for_groups(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *q);
// Every head `times` in a row: (b, h, ...) to (b, h * times, ...); heads and, of four axes, the
// last must be known.
struct mgx_ins *mgx_build_repeat_heads(struct mgx_node *n, struct mgx_ins *x, int64_t times);

// Turns pairs among the first `part` entries of every head of x {batch, heads, tokens, size} by
// angles whose cosines c and sines s are {batch, 1, tokens, part / 2}: neighbours when interleaved,
// else the two halves.
struct mgx_ins *mgx_build_rotate(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *c,
                                 struct mgx_ins *s, int64_t part, bool interleaved);

// --- larger pieces ---
// numpy.einsum over all inputs of the node, to out[0]; *later: lengths are needed that are not
// known, and nothing was set.
enum mgx_status mgx_build_einsum(struct mgx_node *n, const char *equation,
                                 bool *later) MGX_NODISCARD;
// numpy.tile of a static x.
enum mgx_status mgx_build_tile(struct mgx_node *n, struct mgx_ins *x, struct mgx_ints repeats,
                               struct mgx_ins **out) MGX_NODISCARD;

// --- values that a loop carries ---
// A shape for a body's parameter: how the first value happens to be laid out (it may be broadcast)
// says nothing of the later ones.
struct mgx_shape mgx_build_plain(const struct mgx_shape *s);
enum { MGX_WIDENINGS = 4 }; // more are of no use: ranges join to [0, any] at the third
// Shapes wide enough for a value and what the body makes of it; *changed when that is news.
enum mgx_status mgx_build_widen(struct mgx_node *n, const struct mgx_shape *result, bool last,
                                struct mgx_shape *shape, bool *changed) MGX_NODISCARD;

// --- asking ---
bool mgx_build_is_static(const struct mgx_ins *ins); // shape fully known
int mgx_build_rank(const struct mgx_ins *ins);       // -1 when unranked
// Of all inputs that are present.
bool mgx_build_ranked(const struct mgx_node *n);
bool mgx_build_static(const struct mgx_node *n);
// A negative axis counts from the end; out of range fails.
enum mgx_status mgx_build_axis(struct mgx_node *n, int64_t axis, int rank, int *out) MGX_NODISCARD;
// The same for a list, in place; duplicates fail.
enum mgx_status mgx_build_axes(struct mgx_node *n, struct mgx_ints axes, int rank,
                               int64_t *out) MGX_NODISCARD;
// True when every length of the axis is known.
bool mgx_build_fixed_dim(const struct mgx_ins *x, int axis);
// Could the axes be equally long?
bool mgx_build_may_agree(const struct mgx_ins *a, int i, const struct mgx_ins *b, int j);
// Refuses two values whose shapes disagree: "labels {4, 2} do not fit scores {4, 3, 5}".
enum mgx_status mgx_build_misfit(struct mgx_node *n, const char *what, const struct mgx_ins *a,
                                 const char *other, const struct mgx_ins *b);
// The value of a scalar (or one-element) constant input; false if it is not constant.
bool mgx_build_constant_double(struct mgx_node *n, int i, double *out);
bool mgx_build_constant_int(struct mgx_node *n, int i, int64_t *out);
