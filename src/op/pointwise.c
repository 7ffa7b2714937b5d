// SPDX-License-Identifier: MIT
// The scalar operators, one row each: the expression is the meaning.
//
// A row makes three things that cannot disagree: the reference functions over double, int64_t and
// uint64_t, the source text for code generators, and the operator object mgx_op_<name>. NaN passes
// through selections as in numpy (write the comparison so that NaN falls into the branch that hands
// it on); integers wrap; dividing an integer by zero gives 0 and never traps.
//
// Kinds of rows:
//     UNARY / BINARY (name, real)             integers are computed in double and converted
//     ..._ALL  (name, real, signed, unsigned) a text of its own for each class of numbers
//     ..._SAME (name, text)                   one text that is right for all three
//     ..._WRAP (name, text)                   the same, where integers may overflow: modulo 2^64
//     ..._INT  (name, signed, unsigned)       integers and bool only
//     ..._BOOL (name, text)                   like _SAME with a bool result
//     ..._ALPHA(name, default, real)          with an attribute alpha, `a` in the text
// x, y, z are the operands. Of two operands a row says whether they may be swapped: SWAPS, ORDERED.
// Cost of the reference: one call per element.
#include "op/pointwise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "op/rule/rule.h"

// --- helpers of the texts, compiled here and handed to generators as source ---

typedef int64_t i64;
typedef uint64_t u64;
#define PW_FN static
#define PRELUDE(...)                                                                               \
    __VA_ARGS__                                                                                    \
    const char mgx_pointwise_prelude[] = #__VA_ARGS__;

// clang-format off
PRELUDE(
PW_FN i64 pw_neg(i64 x) { return (i64)(0 - (u64)x); }
PW_FN i64 pw_div(i64 x, i64 y) { return y == 0 ? 0 : y == -1 ? pw_neg(x) : x / y; }
PW_FN i64 pw_rem(i64 x, i64 y) { return y == 0 || y == -1 ? 0 : x % y; }
PW_FN i64 pw_mod(i64 x, i64 y)
{
    i64 r = pw_rem(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
PW_FN u64 pw_upow(u64 x, u64 y)
{
    u64 r = 1;
    for (; y; y >>= 1) {
        if (y & 1)
            r *= x;
        x *= x;
    }
    return r;
}
PW_FN i64 pw_pow(i64 x, i64 y)
{
    if (y >= 0)
        return (i64)pw_upow((u64)x, (u64)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
}
)
// clang-format on

// --- the machinery of a row ---

static enum mgx_status row_shape(struct mgx_shape_call *c, struct mgx_shape *out);
static enum mgx_status row_compute(struct mgx_compute_call *c);
static enum mgx_status where_shape(struct mgx_shape_call *c, struct mgx_shape *out);
static enum mgx_status where_compute(struct mgx_compute_call *c);
static enum mgx_type row_unranked(const struct mgx_shape_call *c);

enum { ORDERED = 0, SWAPS = MGX_OP_COMMUTATIVE };

static const struct mgx_field alpha_fields[] = {MGX_REAL(struct mgx_alpha_attr, alpha), {0}};

#define REAL_FN(name, e)                                                                           \
    static double name##_real(double x, double y, double z, double a)                              \
    {                                                                                              \
        (void)x, (void)y, (void)z, (void)a;                                                        \
        return (double)(e);                                                                        \
    }
#define SINT_FN(name, e)                                                                           \
    static int64_t name##_sint(int64_t x, int64_t y, int64_t z)                                    \
    {                                                                                              \
        (void)x, (void)y, (void)z;                                                                 \
        return (int64_t)(e);                                                                       \
    }
#define UINT_FN(name, e)                                                                           \
    static uint64_t name##_uint(uint64_t x, uint64_t y, uint64_t z)                                \
    {                                                                                              \
        (void)x, (void)y, (void)z;                                                                 \
        return (uint64_t)(e);                                                                      \
    }
// Signed operands, computed modulo 2^64.
#define WRAP_FN(name)                                                                              \
    static int64_t name##_sint(int64_t x, int64_t y, int64_t z)                                    \
    {                                                                                              \
        return (int64_t)name##_uint((uint64_t)x, (uint64_t)y, (uint64_t)z);                        \
    }
// MGX_PW_ code by the operator's own name, so that rows need not repeat it in capitals.
enum {
#define PW(name, upper) code_of_##name = MGX_PW_##upper,
#include "pointwise_list.inc"
#undef PW
};

// Every row has a shape rule and a compute of the table's own; `where` passes others.
#define OBJECT(name_, text_, n, order_, row_, ...)                                                 \
    const struct mgx_op mgx_op_##name_ = {.name = #name_,                                          \
                                          .meaning = text_,                                        \
                                          .in_min = n,                                             \
                                          .in_max = n,                                             \
                                          .flags = MGX_OP_POINTWISE | (order_),                    \
                                          .unranked_type = row_unranked,                           \
                                          .user = &row_,                                           \
                                          __VA_ARGS__};
#define RULES .shape = row_shape, .compute = row_compute

#define ROW_REAL(name, n, e, te)                                                                   \
    REAL_FN(name, e)                                                                               \
    static const struct mgx_pointwise name##_row = {                                               \
        .code = (enum mgx_pw)code_of_##name, .arity = n, .real = te, .real_fn = name##_real};      \
    OBJECT(name, te, n, ORDERED, name##_row, RULES)
#define ROW_ALL(name, n, order, result_, wraps_, te, ts, tu)                                       \
    static const struct mgx_pointwise name##_row = {.code = (enum mgx_pw)code_of_##name,           \
                                                    .arity = n,                                    \
                                                    .result = result_,                             \
                                                    .real = te,                                    \
                                                    .sint = ts,                                    \
                                                    .uint = tu,                                    \
                                                    .wraps = wraps_,                               \
                                                    .real_fn = name##_real,                        \
                                                    .sint_fn = name##_sint,                        \
                                                    .uint_fn = name##_uint};                       \
    OBJECT(name, te, n, order, name##_row, RULES)
#define ROW_INT(name, n, order, s, u, ts, tu)                                                      \
    SINT_FN(name, s)                                                                               \
    UINT_FN(name, u)                                                                               \
    static const struct mgx_pointwise name##_row = {.code = (enum mgx_pw)code_of_##name,           \
                                                    .arity = n,                                    \
                                                    .sint = ts,                                    \
                                                    .uint = tu,                                    \
                                                    .sint_fn = name##_sint,                        \
                                                    .uint_fn = name##_uint};                       \
    OBJECT(name, tu, n, order, name##_row, RULES)

// The texts are stringised where the row stands: one level down isnan(x) would be expanded.
#define ALL_(name, n, order, result, wraps, e, s, u, te, ts, tu)                                   \
    REAL_FN(name, e)                                                                               \
    SINT_FN(name, s) UINT_FN(name, u) ROW_ALL(name, n, order, result, wraps, te, ts, tu)
#define WRAP_(name, n, order, e, t)                                                                \
    REAL_FN(name, e)                                                                               \
    UINT_FN(name, e) WRAP_FN(name) ROW_ALL(name, n, order, MGX_PW_SAME, true, t, t, t)

#define UNARY(name, e) ROW_REAL(name, 1, e, #e)
#define UNARY_ALL(name, e, s, u) ALL_(name, 1, ORDERED, MGX_PW_SAME, false, e, s, u, #e, #s, #u)
#define UNARY_BOOL(name, e, s, u) ALL_(name, 1, ORDERED, MGX_PW_BOOL, false, e, s, u, #e, #s, #u)
#define UNARY_INT(name, s, u) ROW_INT(name, 1, ORDERED, s, u, #s, #u)
#define UNARY_ALPHA(name, default_, e)                                                             \
    REAL_FN(name, e)                                                                               \
    static const struct mgx_alpha_attr name##_defaults = {default_};                               \
    static const struct mgx_pointwise name##_row = {.code = (enum mgx_pw)code_of_##name,           \
                                                    .arity = 1,                                    \
                                                    .alpha = true,                                 \
                                                    .real = #e,                                    \
                                                    .real_fn = name##_real};                       \
    OBJECT(name, #e, 1, ORDERED, name##_row, RULES, .fields = alpha_fields,                        \
           .attr_size = sizeof(struct mgx_alpha_attr), .defaults = &name##_defaults)
#define BINARY_ALL(name, order, e, s, u)                                                           \
    ALL_(name, 2, order, MGX_PW_SAME, false, e, s, u, #e, #s, #u)
#define BINARY_SAME(name, order, e) ALL_(name, 2, order, MGX_PW_SAME, false, e, e, e, #e, #e, #e)
#define BINARY_BOOL(name, order, e) ALL_(name, 2, order, MGX_PW_BOOL, false, e, e, e, #e, #e, #e)
#define BINARY_WRAP(name, order, e) WRAP_(name, 2, order, e, #e)
#define BINARY_INT(name, order, s, u) ROW_INT(name, 2, order, s, u, #s, #u)
#define TERNARY_SAME(name, e) ALL_(name, 3, ORDERED, MGX_PW_SAME, false, e, e, e, #e, #e, #e)
// `where` reads a condition of another type: its own shape rule and compute.
#define TERNARY_WHERE(name_, e)                                                                    \
    REAL_FN(name_, e)                                                                              \
    static const struct mgx_pointwise name_##_row = {.code = (enum mgx_pw)code_of_##name_,         \
                                                     .arity = 3,                                   \
                                                     .real = #e,                                   \
                                                     .sint = #e,                                   \
                                                     .uint = #e,                                   \
                                                     .real_fn = name_##_real};                     \
    OBJECT(name_, #e, 3, ORDERED, name_##_row, .shape = where_shape, .compute = where_compute)

// --- the table ---
// clang-format off
UNARY_ALL(abs, fabs(x), x < 0 ? pw_neg(x) : x, x)
UNARY(acos, acos(x))
UNARY(acosh, acosh(x))
UNARY(asin, asin(x))
UNARY(asinh, asinh(x))
UNARY(atan, atan(x))
UNARY(atanh, atanh(x))
UNARY_INT(bitwise_not, ~x, ~x)
UNARY_ALL(ceil, ceil(x), x, x)
UNARY(cos, cos(x))
UNARY(cosh, cosh(x))
UNARY(erf, erf(x))
UNARY(exp, exp(x))
UNARY_ALL(floor, floor(x), x, x)
UNARY_BOOL(isinf, isinf(x), 0, 0)
UNARY_BOOL(isnan, isnan(x), 0, 0)
UNARY(log, log(x))
UNARY(log2, log2(x))
UNARY_ALL(nearbyint, rint(x), x, x)
UNARY_ALL(neg, -x, pw_neg(x), 0 - x)
UNARY_BOOL(not, x == 0, x == 0, x == 0)
UNARY(recip, 1 / x)
UNARY_ALL(relu, x < 0 ? 0 : x, x < 0 ? 0 : x, x)
UNARY(rsqrt, 1 / sqrt(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY_ALL(sign, x != x ? x : (x > 0) - (x < 0), (x > 0) - (x < 0), x > 0)
UNARY(sin, sin(x))
UNARY(sinh, sinh(x))
UNARY(sqrt, sqrt(x))
UNARY(tan, tan(x))
UNARY(tanh, tanh(x))
UNARY_ALL(trunc, trunc(x), x, x)

UNARY_ALPHA(elu, 1, x > 0 ? x : a * expm1(x))
UNARY_ALPHA(leaky_relu, 0.01, x > 0 ? x : a * x)

BINARY_WRAP(add, SWAPS, x + y)
BINARY_INT(bit_shift_left, ORDERED, y < 0 || y > 63 ? 0 : (i64)((u64)x << y), y > 63 ? 0 : x << y)
BINARY_INT(bit_shift_right, ORDERED, y < 0 || y > 63 ? (x < 0 ? -1 : 0) : x >> y,
           y > 63 ? 0 : x >> y)
BINARY_INT(bitwise_and, SWAPS, x & y, x & y)
BINARY_INT(bitwise_or, SWAPS, x | y, x | y)
BINARY_INT(bitwise_xor, SWAPS, x ^ y, x ^ y)
BINARY_ALL(div, ORDERED, x / y, pw_div(x, y), y == 0 ? 0 : x / y)
BINARY_SAME(equal, SWAPS, x == y)
BINARY_ALL(fmod, ORDERED, fmod(x, y), pw_rem(x, y), y == 0 ? 0 : x % y)
BINARY_SAME(greater, ORDERED, x > y)
BINARY_SAME(less, ORDERED, x < y)
BINARY_BOOL(logical_and, SWAPS, x != 0 && y != 0)
BINARY_BOOL(logical_or, SWAPS, x != 0 || y != 0)
BINARY_BOOL(logical_xor, SWAPS, (x != 0) != (y != 0))
BINARY_SAME(max, SWAPS, x != x || x > y ? x : y)
BINARY_SAME(min, SWAPS, x != x || x < y ? x : y)
BINARY_ALL(mod, ORDERED,
           fmod(x, y) == 0                ? copysign(fmod(x, y), y)
           : (fmod(x, y) < 0) != (y < 0)  ? fmod(x, y) + y
                                          : fmod(x, y),
           pw_mod(x, y), y == 0 ? 0 : x % y)
BINARY_WRAP(mul, SWAPS, x * y)
BINARY_ALL(pow, ORDERED, pow(x, y), pw_pow(x, y), pw_upow(x, y))
BINARY_ALL(prelu, ORDERED, x < 0 ? x * y : x, x < 0 ? (i64)((u64)x * (u64)y) : x, x)
BINARY_WRAP(sqdiff, SWAPS, (x - y) * (x - y))
BINARY_WRAP(sub, ORDERED, x - y)

TERNARY_SAME(clip, (x < y ? y : x) > z ? z : x < y ? y : x)
TERNARY_WHERE(where, x != 0 ? y : z)
// clang-format on

const struct mgx_pointwise *mgx_pointwise_find(const struct mgx_op *op)
{
    return op->shape == row_shape || op->shape == where_shape ? op->user : NULL;
}

// --- shape rules ---

// `equal` is the one operator that compares strings; its result is then bool.
static bool compares_strings(const struct mgx_op *op, enum mgx_type type)
{
    return type == MGX_STRING && op == &mgx_op_equal;
}

static enum mgx_type result_type(const struct mgx_op *op, enum mgx_type type)
{
    const struct mgx_pointwise *row = op->user;
    return row->result == MGX_PW_BOOL || compares_strings(op, type) ? MGX_BOOL : type;
}

static enum mgx_type row_unranked(const struct mgx_shape_call *c)
{
    if (c->op == &mgx_op_where)
        return c->in[1]->type;
    return result_type(c->op, c->in[0]->type);
}

static enum mgx_status row_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_pointwise *row = c->op->user;
    const enum mgx_type type = c->in[0]->type;
    TRY(mgx_require_same_type(c));
    TRY(mgx_require_same_lens(c));
    const bool fits = row->real ? mgx_type_is_number(type) : mgx_computes_as_int(type);
    if (!fits && !compares_strings(c->op, type))
        return mgx_fail(c->diag, MGX_INVALID, "%s: type %s is not supported, only %s", c->op->name,
                        mgx_type_name(type), row->real ? "numbers are" : "integers are");
    *out = mgx_pointwise_shape(c, result_type(c->op, type));
    return MGX_OK;
}

static enum mgx_status where_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    struct mgx_shape_call branches = *c;
    branches.in = c->in + 1;
    branches.in_count = 2;
    TRY(mgx_require_same_lens(c));
    TRY(mgx_require_same_type(&branches));
    if (!mgx_type_is_number(c->in[0]->type))
        return mgx_fail(c->diag, MGX_INVALID, "where: condition has type %s",
                        mgx_type_name(c->in[0]->type));
    // The layout is that of the branches; a range may be narrowed by the condition too.
    const bool all_static = mgx_shape_is_static(c->in[0]) && mgx_shape_is_static(c->in[1]) &&
                            mgx_shape_is_static(c->in[2]);
    *out = mgx_pointwise_shape(all_static ? &branches : c, c->in[1]->type);
    if (all_static && c->in[0]->rank > out->rank) // {1} beside scalars
        *out = mgx_shape_vector(out->type, 1);
    return MGX_OK;
}

// --- reference ---

struct row_run {
    const struct mgx_pointwise *row;
    const struct mgx_tensor *const *in;
    struct mgx_tensor *out;
    double alpha;
    struct mgx_walk w; // the output is tensor 0, operands follow
};

// Operand k of element i of the current run, 0 when the operator has fewer operands.
#define OPERAND(r, load, k, i)                                                                     \
    ((k) < (r)->row->arity ? load((r)->in[k]->shape.type, (r)->in[k]->data,                        \
                                  (r)->w.offset[(k) + 1] + (i) * (r)->w.step[(k) + 1])             \
                           : 0)

static void run_real(struct row_run *r)
{
    const enum mgx_type type = r->out->shape.type;
    for (int64_t i = 0; i < r->w.run; i++) {
        const double x = OPERAND(r, mgx_load_double, 0, i);
        const double y = OPERAND(r, mgx_load_double, 1, i);
        const double z = OPERAND(r, mgx_load_double, 2, i);
        mgx_store_double(type, r->out->data, r->w.offset[0] + i * r->w.step[0],
                         r->row->real_fn(x, y, z, r->alpha));
    }
}

static void run_int(struct row_run *r)
{
    const enum mgx_type type = r->out->shape.type;
    const bool is_unsigned = mgx_type_is_unsigned(r->in[0]->shape.type);
    for (int64_t i = 0; i < r->w.run; i++) {
        const int64_t x = OPERAND(r, mgx_load_int, 0, i);
        const int64_t y = OPERAND(r, mgx_load_int, 1, i);
        const int64_t z = OPERAND(r, mgx_load_int, 2, i);
        const int64_t v = is_unsigned
                              ? (int64_t)r->row->uint_fn((uint64_t)x, (uint64_t)y, (uint64_t)z)
                              : r->row->sint_fn(x, y, z);
        mgx_store_int(type, r->out->data, r->w.offset[0] + i * r->w.step[0], v);
    }
}

static void run_strings(struct row_run *r)
{
    const struct mgx_string *a = r->in[0]->data, *b = r->in[1]->data;
    bool *out = r->out->data;
    for (int64_t i = 0; i < r->w.run; i++) {
        const struct mgx_string *x = &a[r->w.offset[1] + i * r->w.step[1]];
        const struct mgx_string *y = &b[r->w.offset[2] + i * r->w.step[2]];
        out[r->w.offset[0] + i * r->w.step[0]] =
            x->size == y->size && (x->size == 0 || memcmp(x->text, y->text, x->size) == 0);
    }
}

static enum mgx_status row_compute(struct mgx_compute_call *c)
{
    struct row_run r = {.row = c->op->user, .in = c->in, .out = c->out};
    const enum mgx_type type = c->in[0]->shape.type;
    if (r.row->alpha)
        r.alpha = ((const struct mgx_alpha_attr *)c->attr)->alpha;
    void (*run)(struct row_run *) = run_real;
    if (type == MGX_STRING)
        run = run_strings;
    else if (r.row->sint_fn && mgx_computes_as_int(type))
        run = run_int;
    const struct mgx_shape *shapes[4] = {&c->out->shape};
    for (int i = 0; i < c->in_count; i++)
        shapes[i + 1] = &c->in[i]->shape;
    for (mgx_walk_start(&r.w, shapes, c->in_count + 1); !r.w.done; mgx_walk_next(&r.w))
        run(&r);
    return MGX_OK;
}

// Moves bytes, so that every type goes through unchanged.
static enum mgx_status where_compute(struct mgx_compute_call *c)
{
    const size_t size = mgx_type_size(c->out->shape.type);
    const struct mgx_shape *shapes[4] = {&c->out->shape, &c->in[0]->shape, &c->in[1]->shape,
                                         &c->in[2]->shape};
    struct mgx_walk w;
    for (mgx_walk_start(&w, shapes, 4); !w.done; mgx_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const bool take = mgx_load_double(c->in[0]->shape.type, c->in[0]->data,
                                              w.offset[1] + i * w.step[1]) != 0;
            const int k = take ? 1 : 2;
            const int64_t from = w.offset[k + 1] + i * w.step[k + 1];
            const int64_t to = w.offset[0] + i * w.step[0];
            memcpy((char *)c->out->data + (size_t)to * size,
                   (const char *)c->in[k]->data + (size_t)from * size, size);
        }
    return MGX_OK;
}
