// SPDX-License-Identifier: MIT
// Pieces of graph that many rules emit; see build.h. Cost: O(instructions emitted), literals
// O(elements).
#include "import/build.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

// --- arithmetic ---

// What holds numbers of both types; of a signed and an unsigned one of 64 bits, the signed.
static enum mgx_type common_type(enum mgx_type a, enum mgx_type b)
{
    assert(mgx_type_is_number(a) && mgx_type_is_number(b));
    static const enum mgx_type wider[] = {
        [1] = MGX_INT16, [2] = MGX_INT32, [4] = MGX_INT64, [8] = MGX_INT64};
    const size_t x = mgx_type_size(a), y = mgx_type_size(b);
    if (mgx_type_is_float(a) != mgx_type_is_float(b))
        return mgx_type_is_float(a) ? a : b;
    if (mgx_type_is_float(a))
        return x == y ? MGX_FLOAT : x > y ? a : b; // half and bf16 hold neither the other
    if (a == MGX_BOOL || b == MGX_BOOL)
        return a == MGX_BOOL ? b : a;
    if (mgx_type_is_unsigned(a) == mgx_type_is_unsigned(b))
        return x >= y ? a : b;
    const bool signed_wins = mgx_type_is_unsigned(a) ? y > x : x > y;
    return signed_wins ? (mgx_type_is_unsigned(a) ? b : a) : wider[x > y ? x : y];
}

void mgx_build_unify(struct mgx_node *n, struct mgx_ins **v, int count)
{
    assert(count > 0);
    enum mgx_type type = MGX_BOOL;
    for (int i = 0; i < count; i++) {
        if (!v[i] || !mgx_type_is_number(v[i]->shape.type))
            return;
        type = i == 0 || v[i]->shape.type == type ? v[i]->shape.type
                                                  : common_type(type, v[i]->shape.type);
    }
    for (int i = 0; i < count; i++)
        v[i] = mgx_build_convert(n, v[i], type);
}

struct mgx_ins *mgx_build_not(struct mgx_node *n, struct mgx_ins *x)
{
    return mgx_build_convert(n, mgx_build_unary(n, &mgx_op_not, x), MGX_BOOL);
}

static struct mgx_ins *ternary(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                               struct mgx_ins *b, struct mgx_ins *c)
{
    struct mgx_ins *v[3] = {a, b, c};
    if (!a || !b || !c || mgx_build_broadcast(n, v, 3) != MGX_OK)
        return NULL;
    return mgx_build_emit_n(n, op, NULL, v, 3);
}

struct mgx_ins *mgx_build_where(struct mgx_node *n, struct mgx_ins *condition, struct mgx_ins *yes,
                                struct mgx_ins *no)
{
    return ternary(n, &mgx_op_where, condition, yes, no);
}

struct mgx_ins *mgx_build_clamp(struct mgx_node *n, struct mgx_ins *x, double low, double high)
{
    return ternary(n, &mgx_op_clip, x, mgx_build_like(n, x, low), mgx_build_like(n, x, high));
}

struct mgx_ins *mgx_build_dot(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b)
{
    return mgx_build_emit(n, &mgx_op_dot, NULL, MGX_IN(a, b));
}

// True when the axis has the same length in both at every run.
static bool same_dim(const struct mgx_shape *a, int i, const struct mgx_shape *b, int j)
{
    const struct mgx_dim x = mgx_shape_dim(a, i), y = mgx_shape_dim(b, j);
    if (x.min == x.max && y.min == y.max)
        return x.min == y.min;
    return x.name && y.name && strcmp(x.name, y.name) == 0;
}

static bool same_batch(const struct mgx_shape *a, const struct mgx_shape *b)
{
    assert(a->rank >= 2 && b->rank >= 2);
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank - 2; i++)
        if (!same_dim(a, i, b, i))
            return false;
    return true;
}

// x with batch lengths `lens` of rank - 2 axes before its own two.
static struct mgx_ins *expand_batch(struct mgx_node *n, struct mgx_ins *x, int rank,
                                    const int64_t *lens)
{
    assert(rank >= 2 && rank <= MGX_MAX_RANK && x->shape.rank >= 2);
    int64_t full[MGX_MAX_RANK];
    memcpy(full, lens, (size_t)rank * sizeof *full);
    memcpy(full + rank - 2, x->shape.lens + x->shape.rank - 2, 2 * sizeof *full);
    return mgx_build_expand(n, x, rank, full);
}

// The product of operands that have lost or got axes.
static struct mgx_ins *dot_of(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                              struct mgx_ins *b, struct mgx_ins *const *v, int count)
{
    assert(count >= 2 && count <= 4);
    struct mgx_ins *in[4] = {a, b};
    for (int i = 2; i < count; i++)
        in[i] = v[i];
    return mgx_build_emit_n(n, op, NULL, in, count);
}

static struct mgx_ins *dot_broadcast(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                                     struct mgx_ins *b, struct mgx_ins *const *v, int count)
{
    if (same_batch(&a->shape, &b->shape))
        return dot_of(n, op, a, b, v, count);
    if (!mgx_build_is_static(a) || !mgx_build_is_static(b)) {
        struct mgx_ins *wide_a = mgx_build_emit(n, &mgx_op_broadcast_for_dot, NULL, MGX_IN(a, b));
        struct mgx_ins *wide_b = mgx_build_emit(n, &mgx_op_broadcast_for_dot, NULL, MGX_IN(b, a));
        return dot_of(n, op, wide_a, wide_b, v, count);
    }
    struct mgx_shape batch_a = a->shape, batch_b = b->shape;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    int rank = 0;
    int64_t lens[MGX_MAX_RANK];
    if (!mgx_build_common_lens(&batch_a, &batch_b, &rank, lens))
        return dot_of(n, op, a, b, v, count); // whose rule says what disagrees
    return dot_of(n, op, expand_batch(n, a, rank + 2, lens), expand_batch(n, b, rank + 2, lens), v,
                  count);
}

struct mgx_ins *mgx_build_matmul_of(struct mgx_node *n, const struct mgx_op *op,
                                    struct mgx_ins *const *v, int count)
{
    struct mgx_ins *a = v[0], *b = v[1];
    if (!a || !b)
        return NULL;
    const bool row = a->shape.rank == 1, column = b->shape.rank == 1;
    if (row)
        a = mgx_build_unsqueeze(n, a, (int64_t[]){0}, 1);
    if (column)
        b = mgx_build_unsqueeze(n, b, (int64_t[]){1}, 1);
    if (!a || !b)
        return NULL;
    struct mgx_ins *y = dot_broadcast(n, op, a, b, v, count);
    if (!y)
        return NULL;
    const int64_t last = y->shape.rank - 1;
    if (row && column)
        return mgx_build_squeeze(n, y, (int64_t[]){last - 1, last}, 2);
    if (row || column)
        return mgx_build_squeeze(n, y, (int64_t[]){row ? last - 1 : last}, 1);
    return y;
}

struct mgx_ins *mgx_build_matmul(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                                 struct mgx_ins *b)
{
    return mgx_build_matmul_of(n, op, (struct mgx_ins *const[]){a, b}, 2);
}

// --- literals ---

struct mgx_ins *mgx_build_like(struct mgx_node *n, const struct mgx_ins *x, double value)
{
    return x ? mgx_build_scalar(n, x->shape.type, value) : NULL;
}

struct mgx_ins *mgx_build_with(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                               double value)
{
    return mgx_build_binary(n, op, x, mgx_build_like(n, x, value));
}

// A literal that `fill` writes; the failure of a refused allocation is recorded.
static struct mgx_ins *literal(struct mgx_node *n, const struct mgx_shape *shape,
                               void (*fill)(struct mgx_tensor *t, const void *values),
                               const void *values)
{
    struct mgx_tensor t = {0};
    if (mgx_build_create(n, shape, &t) != MGX_OK)
        return NULL;
    fill(&t, values);
    struct mgx_ins *ins = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    return ins;
}

static void fill_doubles(struct mgx_tensor *t, const void *values)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int64_t i = 0; i < count; i++)
        mgx_store_double(t->shape.type, t->data, i, ((const double *)values)[i]);
}

static void fill_ints(struct mgx_tensor *t, const void *values)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int64_t i = 0; i < count; i++)
        mgx_store_int(t->shape.type, t->data, i, ((const int64_t *)values)[i]);
}

static void fill_iota(struct mgx_tensor *t, const void *unused)
{
    assert(t->shape.rank == 1);
    (void)unused;
    for (int64_t i = 0; i < t->shape.lens[0]; i++)
        mgx_store_int(t->shape.type, t->data, i, i);
}

struct mgx_ins *mgx_build_doubles(struct mgx_node *n, const struct mgx_shape *shape,
                                  const double *values)
{
    return literal(n, shape, fill_doubles, values);
}

struct mgx_ins *mgx_build_ints(struct mgx_node *n, const struct mgx_shape *shape,
                               const int64_t *values)
{
    return literal(n, shape, fill_ints, values);
}

struct mgx_ins *mgx_build_iota(struct mgx_node *n, enum mgx_type type, int64_t count)
{
    const struct mgx_shape shape = mgx_shape_vector(type, count);
    return literal(n, &shape, fill_iota, NULL);
}

struct mgx_ins *mgx_build_indices(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    if (!x)
        return NULL;
    if (mgx_build_fixed_dim(x, axis))
        return mgx_build_iota(n, MGX_INT64, x->shape.lens[axis]);
    return mgx_build_indices_to(n, mgx_build_dim(n, x, axis));
}

struct mgx_ins *mgx_build_indices_to(struct mgx_node *n, struct mgx_ins *length)
{
    length = mgx_build_squeeze(n, length, (int64_t[]){0}, 1);
    return mgx_build_emit(
        n, &mgx_op_dynamic_range, MGX_ATTRS(mgx_int("max_output", MGX_DIM_ANY)),
        MGX_IN(mgx_build_scalar(n, MGX_INT64, 0), length, mgx_build_scalar(n, MGX_INT64, 1)));
}

struct mgx_ins *mgx_build_filled(struct mgx_node *n, enum mgx_type type, int rank,
                                 const int64_t *lens, double value)
{
    return mgx_build_expand(n, mgx_build_scalar(n, type, value), rank, lens);
}

// --- views and movement ---

struct mgx_ins *mgx_build_squeeze(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                  int count)
{
    assert(count >= 0 && count <= MGX_MAX_RANK);
    return mgx_build_emit(n, &mgx_op_squeeze, MGX_ATTRS(mgx_ints("axes", axes, count)), MGX_IN(x));
}

struct mgx_ins *mgx_build_unsqueeze(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                    int count)
{
    assert(count >= 0 && count <= MGX_MAX_RANK);
    return mgx_build_emit(n, &mgx_op_unsqueeze, MGX_ATTRS(mgx_ints("axes", axes, count)),
                          MGX_IN(x));
}

struct mgx_ins *mgx_build_slice(struct mgx_node *n, struct mgx_ins *x, int64_t axis, int64_t start,
                                int64_t end)
{
    struct mgx_ins *y =
        mgx_build_emit(n, &mgx_op_slice,
                       MGX_ATTRS(mgx_ints("axes", &axis, 1), mgx_ints("starts", &start, 1),
                                 mgx_ints("ends", &end, 1)),
                       MGX_IN(x));
    assert(!y || start < 0 || end < start || !mgx_build_fixed_dim(x, (int)axis) ||
           end > x->shape.lens[axis] || y->shape.lens[axis] == end - start);
    return y;
}

struct mgx_ins *mgx_build_concat(struct mgx_node *n, int64_t axis, struct mgx_ins *const *in,
                                 int count)
{
    assert(count > 0);
    struct mgx_ins *y =
        mgx_build_emit_n(n, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", axis)), in, count);
    assert(!y || y->shape.unranked || y->shape.rank == in[0]->shape.rank);
    return y;
}

struct mgx_ins *mgx_build_gather(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *indices,
                                 int64_t axis)
{
    return mgx_build_emit(n, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x, indices));
}

struct mgx_ins *mgx_build_expand(struct mgx_node *n, struct mgx_ins *x, int rank,
                                 const int64_t *lens)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    if (!x)
        return NULL;
    if (mgx_build_is_static(x) && x->shape.rank == rank &&
        memcmp(x->shape.lens, lens, (size_t)rank * sizeof *lens) == 0)
        return x;
    return mgx_build_emit(n, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", lens, rank)),
                          MGX_IN(x));
}

struct mgx_ins *mgx_build_reshape_like(struct mgx_node *n, struct mgx_ins *x,
                                       const struct mgx_shape *like)
{
    if (!x)
        return NULL;
    if (mgx_shape_elements(like) > 0)
        return mgx_build_reshape(n, x, like->lens, like->rank);
    // A 0 among reshape's dims means "as before"; no elements are the same wherever they come from.
    const struct mgx_shape empty = mgx_shape_make(x->shape.type, like->rank, like->lens);
    return mgx_build_doubles(n, &empty, NULL);
}

struct mgx_ins *mgx_build_dim(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    if (!x)
        return NULL;
    if (mgx_build_fixed_dim(x, axis))
        return mgx_build_literal_ints(n, &x->shape.lens[axis], 1);
    return mgx_build_emit(n, &mgx_op_dimensions_of,
                          MGX_ATTRS(mgx_int("start", axis), mgx_int("end", axis + 1)), MGX_IN(x));
}

// The length if it is known, else -1.
static int64_t known_len(const struct mgx_build_len *l)
{
    assert(!l->of || (l->axis >= 0 && l->axis < l->of->shape.rank));
    if (!l->of)
        return l->times;
    if (!mgx_build_fixed_dim(l->of, l->axis))
        return -1;
    return l->of->shape.lens[l->axis] * (l->times ? l->times : 1) / (l->over ? l->over : 1);
}

static struct mgx_ins *run_time_len(struct mgx_node *n, const struct mgx_build_len *l)
{
    const int64_t known = known_len(l);
    if (known >= 0)
        return mgx_build_literal_ints(n, &known, 1);
    struct mgx_ins *y = mgx_build_dim(n, l->of, l->axis);
    if (l->times > 1)
        y = mgx_build_with(n, &mgx_op_mul, y, (double)l->times);
    return l->over > 1 ? mgx_build_with(n, &mgx_op_div, y, (double)l->over) : y;
}

struct mgx_ins *mgx_build_reshape_to(struct mgx_node *n, struct mgx_ins *x,
                                     const struct mgx_build_len *lens, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    if (!x)
        return NULL;
    int64_t dims[MGX_MAX_RANK];
    int unknown = 0;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        if (lens[i].of && !known_len(&lens[i]))
            zero = true;
        dims[i] = known_len(&lens[i]);
        const bool kept = lens[i].of == x && lens[i].axis == i && lens[i].times <= 1 &&
                          lens[i].over <= 1 && dims[i] < 0;
        if (kept)
            dims[i] = 0; // reshape copies it
        unknown += dims[i] < 0;
    }
    if (unknown == 0 && mgx_build_is_static(x)) {
        const struct mgx_shape like = mgx_shape_make(x->shape.type, rank, dims);
        return mgx_build_reshape_like(n, x, &like);
    }
    if (unknown <= 1 && !zero)
        return mgx_build_reshape(n, x, dims, rank);
    struct mgx_ins *parts[MGX_MAX_RANK];
    for (int i = 0; i < rank; i++)
        parts[i] = run_time_len(n, &lens[i]);
    return mgx_build_emit(n, &mgx_op_reshape, NULL, MGX_IN(x, mgx_build_concat(n, 0, parts, rank)));
}

struct mgx_ins *mgx_build_pad(struct mgx_node *n, struct mgx_ins *x, const int64_t *pads,
                              double value)
{
    assert(!x || !x->shape.unranked);
    if (!x)
        return NULL;
    const int count = 2 * x->shape.rank;
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= pads[i] != 0;
    if (!any)
        return x;
    return mgx_build_emit(n, &mgx_op_pad,
                          MGX_ATTRS(mgx_ints("pads", pads, count), mgx_real("value", value)),
                          MGX_IN(x));
}

struct mgx_ins *mgx_build_per_axis(struct mgx_node *n, struct mgx_ins *v, int axis, int rank)
{
    int64_t axes[MGX_MAX_RANK];
    const int count = rank - axis - 1;
    assert(axis >= 0 && count >= 0 && count <= MGX_MAX_RANK);
    for (int i = 0; i < count; i++)
        axes[i] = i + 1;
    return count > 0 ? mgx_build_unsqueeze(n, v, axes, count) : v;
}

bool mgx_build_common_lens(const struct mgx_shape *a, const struct mgx_shape *b, int *rank,
                           int64_t *lens)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < *rank; i++) {
        const int at_a = i - (*rank - a->rank), at_b = i - (*rank - b->rank);
        const int64_t x = at_a >= 0 ? a->lens[at_a] : 1, y = at_b >= 0 ? b->lens[at_b] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        lens[i] = x == 1 ? y : x;
        assert((lens[i] == x || x == 1) && (lens[i] == y || y == 1));
    }
    return true;
}

// --- reductions and normalisations ---

struct mgx_ins *mgx_build_reduce(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                                 const int64_t *axes, int count, bool keep)
{
    struct mgx_ins *y = mgx_build_emit(n, op, MGX_ATTRS(mgx_ints("axes", axes, count)), MGX_IN(x));
    return keep || !count ? y : mgx_build_squeeze(n, y, axes, count);
}

struct mgx_ins *mgx_build_standardize(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes,
                                      int count, double epsilon, struct mgx_ins **mean,
                                      struct mgx_ins **inv_std)
{
    struct mgx_ins *m = mgx_build_reduce(n, &mgx_op_reduce_mean, x, axes, count, true);
    struct mgx_ins *centred = mgx_build_sub(n, x, m);
    struct mgx_ins *variance =
        mgx_build_reduce(n, &mgx_op_reduce_mean, mgx_build_sqdiff(n, x, m), axes, count, true);
    struct mgx_ins *r = mgx_build_rsqrt(n, mgx_build_with(n, &mgx_op_add, variance, epsilon));
    if (mean)
        *mean = m;
    if (inv_std)
        *inv_std = r;
    return mgx_build_mul(n, centred, r);
}

struct mgx_ins *mgx_build_rms(struct mgx_node *n, struct mgx_ins *x, const int64_t *axes, int count,
                              double epsilon)
{
    struct mgx_ins *square = mgx_build_mul(n, x, x);
    struct mgx_ins *mean = mgx_build_reduce(n, &mgx_op_reduce_mean, square, axes, count, true);
    return mgx_build_mul(n, x, mgx_build_rsqrt(n, mgx_build_with(n, &mgx_op_add, mean, epsilon)));
}

// x/2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)) for the erf.
struct mgx_ins *mgx_build_gelu(struct mgx_node *n, struct mgx_ins *x, bool tanh_form)
{
    struct mgx_ins *inner;
    if (tanh_form) {
        struct mgx_ins *cube = mgx_build_mul(n, mgx_build_mul(n, x, x), x);
        struct mgx_ins *sum = mgx_build_add(n, x, mgx_build_with(n, &mgx_op_mul, cube, 0.044715));
        inner = mgx_build_tanh(n, mgx_build_with(n, &mgx_op_mul, sum, sqrt(M_2_PI)));
    } else {
        inner = mgx_build_erf(n, mgx_build_with(n, &mgx_op_mul, x, M_SQRT1_2));
    }
    struct mgx_ins *half = mgx_build_with(n, &mgx_op_mul, x, 0.5);
    return mgx_build_mul(n, half, mgx_build_with(n, &mgx_op_add, inner, 1));
}

// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which no x overflows.
struct mgx_ins *mgx_build_softplus(struct mgx_node *n, struct mgx_ins *x)
{
    struct mgx_ins *small = mgx_build_exp(n, mgx_build_neg(n, mgx_build_abs(n, x)));
    struct mgx_ins *tail = mgx_build_log(n, mgx_build_with(n, &mgx_op_add, small, 1));
    return mgx_build_add(n, mgx_build_with(n, &mgx_op_max, x, 0), tail);
}

// --- attention ---

// One token, the batch open: every view is a step of the run, and tokens and heads may change
// places without one.
static bool is_one_token(const struct mgx_ins *x, int tokens)
{
    return !mgx_build_is_static(x) && mgx_build_fixed_dim(x, tokens) && x->shape.lens[tokens] == 1;
}

struct mgx_ins *mgx_build_split_heads(struct mgx_node *n, struct mgx_ins *x, int64_t heads)
{
    if (!x)
        return NULL;
    if (is_one_token(x, 1))
        return mgx_build_reshape(n, x, (int64_t[]){0, heads, 1, x->shape.lens[2] / heads}, 4);
    const int64_t dims[4] = {0, 0, heads, x->shape.lens[2] / heads}, perm[4] = {0, 2, 1, 3};
    return mgx_build_transpose(n, mgx_build_reshape(n, x, dims, 4), perm, 4);
}

struct mgx_ins *mgx_build_merge_heads(struct mgx_node *n, struct mgx_ins *x)
{
    if (!x)
        return NULL;
    assert(x->shape.rank == 4 || x->shape.rank == 5);
    const int rank = x->shape.rank;
    const int64_t swap[4] = {0, 2, 1, 3}, front[5] = {0, 3, 1, 2, 4};
    int64_t dims[3] = {0, 0, 1}; // 0 copies batch and tokens
    for (int i = 1; i < rank; i++)
        if (i != rank - 2)
            dims[2] *= x->shape.lens[i];
    if (!mgx_build_fixed_dim(x, rank - 1))
        dims[2] = -1;
    dims[1] = is_one_token(x, rank - 2);
    if (dims[1])
        return mgx_build_reshape(n, x, dims, 3);
    return mgx_build_reshape(n, mgx_build_transpose(n, x, rank == 4 ? swap : front, rank), dims, 3);
}

struct mgx_ins *mgx_build_split_groups(struct mgx_node *n, struct mgx_ins *x, int64_t shared,
                                       int64_t group)
{
    if (!x)
        return NULL;
    assert(shared > 0 && group > 0 && (x->shape.rank == 3 || x->shape.rank == 4));
    const int64_t size = x->shape.lens[x->shape.rank - 1];
    if (x->shape.rank == 4) // -1 stands for the tokens
        return mgx_build_reshape(n, x, (int64_t[]){0, shared, group, -1, size}, 5);
    struct mgx_ins *y =
        mgx_build_reshape(n, x, (int64_t[]){0, 0, shared, group, size / (shared * group)}, 5);
    return mgx_build_transpose(n, y, (int64_t[]){0, 2, 3, 1, 4}, 5);
}

// How many tokens every entry of the batch has with the new ones, as a dense vector.
static struct mgx_ins *count_tokens(struct mgx_node *n, struct mgx_ins *q,
                                    const struct mgx_build_cached *c)
{
    struct mgx_ins *batch = mgx_build_dim(n, q, 0), *both[2];
    for (int i = 0; i < 2; i++)
        both[i] = mgx_build_emit(
            n, &mgx_op_broadcast_with_dims, NULL,
            MGX_IN(i ? mgx_build_dim(n, q, 2) : mgx_build_dim(n, c->past, c->axis), batch));
    return mgx_build_add(n, both[0], both[1]);
}

struct mgx_ins *mgx_build_cache_attention(struct mgx_node *n, struct mgx_ins *q, struct mgx_ins *k,
                                          struct mgx_ins *v, const struct mgx_build_cached *c)
{
    return mgx_build_emit(n, &mgx_op_cache_attention,
                          MGX_ATTRS(mgx_real("scale", c->scale), mgx_real("cap", c->cap),
                                    mgx_int("window", c->window)),
                          MGX_IN(q, k, v, count_tokens(n, q, c)));
}

struct mgx_ins *mgx_build_merge_groups(struct mgx_node *n, struct mgx_ins *x)
{
    if (!x)
        return NULL;
    assert(x->shape.rank == 5);
    const int64_t heads = x->shape.lens[1] * x->shape.lens[2];
    const struct mgx_build_len lens[4] = {
        {x, 0, 0, 0}, {NULL, 0, heads, 0}, {x, 3, 0, 0}, {x, 4, 0, 0}};
    return mgx_build_reshape_to(n, x, lens, 4);
}

struct mgx_ins *mgx_build_add_mask(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *mask,
                                   bool table)
{
    if (!x || !mask || mgx_build_is_static(x) || mask->shape.rank > x->shape.rank)
        return mgx_build_add(n, x, mask);
    const int64_t axis = x->shape.rank - 2;
    struct mgx_ins *wide = table ? mgx_build_emit(n, &mgx_op_broadcast,
                                                  MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(mask, x))
                                 : mgx_build_emit(n, &mgx_op_multibroadcast, NULL, MGX_IN(mask, x));
    return mgx_build_emit(n, &mgx_op_add, NULL, MGX_IN(x, wide));
}

struct mgx_ins *mgx_build_for_groups(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *q)
{
    struct mgx_ins *one = mgx_build_unsqueeze(n, x, (int64_t[]){2}, 1);
    return mgx_build_emit(n, &mgx_op_broadcast_for_dot, NULL, MGX_IN(one, q));
}

// Lengths unknown: copies are joined on an axis of their own, which then merges with the heads.
static struct mgx_ins *repeat_ranges(struct mgx_node *n, struct mgx_ins *x, int64_t times)
{
    struct mgx_ins **copies = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, times);
    struct mgx_ins *one = mgx_build_unsqueeze(n, x, (int64_t[]){2}, 1);
    if (!copies) {
        mgx_fail_memory(n->diag);
        return NULL;
    }
    for (int64_t i = 0; i < times; i++)
        copies[i] = one;
    struct mgx_ins *y = mgx_build_concat(n, 2, copies, (int)times);
    struct mgx_build_len lens[MGX_MAX_RANK];
    for (int i = 0; y && i < x->shape.rank; i++)
        lens[i] = (struct mgx_build_len){y, i < 2 ? i : i + 1, i == 1 ? times : 1};
    return mgx_build_reshape_to(n, y, lens, x->shape.rank);
}

struct mgx_ins *mgx_build_repeat_heads(struct mgx_node *n, struct mgx_ins *x, int64_t times)
{
    if (!x || times == 1)
        return x;
    if (!mgx_build_is_static(x))
        return repeat_ranges(n, x, times);
    const struct mgx_shape s = x->shape;
    int64_t wide[MGX_MAX_RANK] = {s.lens[0], s.lens[1], times};
    struct mgx_shape merged = s;
    merged.lens[1] *= times;
    memcpy(wide + 3, s.lens + 2, (size_t)(s.rank - 2) * sizeof *wide);
    struct mgx_ins *y = mgx_build_unsqueeze(n, x, (int64_t[]){2}, 1);
    return mgx_build_reshape_like(n, mgx_build_expand(n, y, s.rank + 1, wide), &merged);
}

static struct mgx_ins *every_second(struct mgx_node *n, struct mgx_ins *x, int64_t from)
{
    struct mgx_ins *y = from ? mgx_build_slice(n, x, 3, from, x->shape.lens[3]) : x;
    return mgx_build_emit(
        n, &mgx_op_step,
        MGX_ATTRS(mgx_ints("axes", (int64_t[]){3}, 1), mgx_ints("steps", (int64_t[]){2}, 1)),
        MGX_IN(y));
}

static struct mgx_ins *rotate_whole(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *c,
                                    struct mgx_ins *s, bool interleaved)
{
    assert(!x || (x->shape.rank == 4 && mgx_build_fixed_dim(x, 3)));
    if (!x)
        return NULL;
    const int64_t size = x->shape.lens[3];
    struct mgx_ins *x1 =
        interleaved ? every_second(n, x, 0) : mgx_build_slice(n, x, 3, 0, size / 2);
    struct mgx_ins *x2 =
        interleaved ? every_second(n, x, 1) : mgx_build_slice(n, x, 3, size / 2, size);
    struct mgx_ins *parts[2] = {mgx_build_sub(n, mgx_build_mul(n, c, x1), mgx_build_mul(n, s, x2)),
                                mgx_build_add(n, mgx_build_mul(n, s, x1), mgx_build_mul(n, c, x2))};
    if (!interleaved)
        return mgx_build_concat(n, 3, parts, 2);
    for (int i = 0; i < 2; i++)
        parts[i] = mgx_build_unsqueeze(n, parts[i], (int64_t[]){4}, 1);
    // 0 keeps batch, heads and tokens, which may be ranges.
    return mgx_build_reshape(n, mgx_build_concat(n, 4, parts, 2), (int64_t[]){0, 0, 0, size}, 4);
}

struct mgx_ins *mgx_build_rotate(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *c,
                                 struct mgx_ins *s, int64_t part, bool interleaved)
{
    assert(!x || (x->shape.rank == 4 && part > 0 && part <= x->shape.lens[3]));
    if (!x)
        return NULL;
    const int64_t size = x->shape.lens[3];
    if (part == size)
        return rotate_whole(n, x, c, s, interleaved);
    struct mgx_ins *turned = rotate_whole(n, mgx_build_slice(n, x, 3, 0, part), c, s, interleaved);
    struct mgx_ins *rest = mgx_build_slice(n, x, 3, part, size);
    return mgx_build_concat(n, 3, (struct mgx_ins *const[]){turned, rest}, 2);
}

// --- asking ---

int mgx_build_rank(const struct mgx_ins *ins)
{
    return ins->shape.unranked ? -1 : ins->shape.rank;
}

bool mgx_build_ranked(const struct mgx_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] && mgx_build_rank(n->in[i]) < 0)
            return false;
    return true;
}

bool mgx_build_static(const struct mgx_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] && !mgx_build_is_static(n->in[i]))
            return false;
    return true;
}

enum mgx_status mgx_build_axis(struct mgx_node *n, int64_t axis, int rank, int *out)
{
    assert(rank <= MGX_MAX_RANK);
    *out = 0;
    if (rank < 0)
        return mgx_node_unsupported(n, "an axis of a tensor whose rank is not known");
    if (axis < -rank || axis >= rank)
        return mgx_node_invalid(n, "axis %lld is out of range for rank %d", (long long)axis, rank);
    *out = mgx_wrap_axis(axis, rank);
    return MGX_OK;
}

enum mgx_status mgx_build_axes(struct mgx_node *n, struct mgx_ints axes, int rank, int64_t *out)
{
    assert(axes.count >= 0 && (axes.v || !axes.count));
    bool seen[MGX_MAX_RANK] = {false};
    if (rank < 0)
        return mgx_node_unsupported(n, "axes of a tensor whose rank is not known");
    if (axes.count > rank)
        return mgx_node_invalid(n, "%d axes given for rank %d", axes.count, rank);
    for (int i = 0; i < axes.count; i++) {
        int axis = 0;
        TRY(mgx_build_axis(n, axes.v[i], rank, &axis));
        if (seen[axis])
            return mgx_node_invalid(n, "axis %d is given twice", axis);
        seen[axis] = true;
        out[i] = axis;
    }
    return MGX_OK;
}

bool mgx_build_fixed_dim(const struct mgx_ins *x, int axis)
{
    if (x->shape.unranked)
        return false;
    const struct mgx_dim d = mgx_shape_dim(&x->shape, axis);
    return mgx_dim_is_fixed(&d);
}

bool mgx_build_constant_double(struct mgx_node *n, int i, double *out)
{
    const struct mgx_tensor *t = mgx_node_constant(n, i);
    if (!t || !mgx_type_is_number(t->shape.type) || mgx_shape_elements(&t->shape) != 1)
        return false;
    *out = mgx_load_double(t->shape.type, t->data, 0);
    return true;
}

bool mgx_build_constant_int(struct mgx_node *n, int i, int64_t *out)
{
    assert(n->fold && out);
    const struct mgx_tensor *t = mgx_node_constant(n, i);
    if (!t || !mgx_type_is_number(t->shape.type) || mgx_shape_elements(&t->shape) != 1)
        return false;
    *out = mgx_load_int(t->shape.type, t->data, 0);
    return true;
}
