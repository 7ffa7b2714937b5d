// SPDX-License-Identifier: MIT
// The scalar operators as objects: what the reference makes of the table in pointwise_rows.h.
//
// A row becomes functions over double, int64_t and uint64_t, its texts, and the operator object
// mgx_op_<name> with a shape rule and a compute that all rows share. Cost of the reference: one
// call per element.
#include "op/pointwise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/rule/rule.h"

// --- what a row becomes ---

typedef int64_t i64;
typedef uint64_t u64;
#define PW_FN static

static enum mgx_status row_shape(struct mgx_shape_call *c, struct mgx_shape *out);
static enum mgx_status row_compute(struct mgx_compute_call *c);
static enum mgx_status where_shape(struct mgx_shape_call *c, struct mgx_shape *out);
static enum mgx_status where_compute(struct mgx_compute_call *c);
static enum mgx_type row_unranked(const struct mgx_shape_call *c);

enum { ORDERED = 0, SWAPS = MGX_OP_COMMUTATIVE, TRUTH = MGX_OP_TRUTH, STEP = MGX_OP_STEP };

static const struct mgx_field line_fields[] = {
    MGX_REAL(struct mgx_line_attr, alpha), MGX_REAL(struct mgx_line_attr, beta), {0}};
static const struct mgx_field alpha_fields[] = {MGX_REAL(struct mgx_line_attr, alpha), {0}};

#define REAL_FN(name, e)                                                                           \
    static double name##_real(double x, double y, double z, double a, double b)                    \
    {                                                                                              \
        (void)x, (void)y, (void)z, (void)a, (void)b;                                               \
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
#define ROW_OF(name, n, ...)                                                                       \
    static const struct mgx_pointwise name##_row = {.code = MGX_PW_##name, .arity = n, __VA_ARGS__};
#define INT_FNS(name) .sint_fn = name##_sint, .uint_fn = name##_uint

// Every row has a shape rule and a compute of the table's own; `where` passes others.
#define OBJECT(name_, text_, n, order_, ...)                                                       \
    const struct mgx_op mgx_op_##name_ = {.name = #name_,                                          \
                                          .meaning = text_,                                        \
                                          .in_min = n,                                             \
                                          .in_max = n,                                             \
                                          .flags = MGX_OP_POINTWISE | (order_),                    \
                                          .unranked_type = row_unranked,                           \
                                          .user = &name_##_row,                                    \
                                          __VA_ARGS__};
#define RULES .shape = row_shape, .compute = row_compute

#define PRELUDE(...)                                                                               \
    __VA_ARGS__                                                                                    \
    const char mgx_pointwise_prelude[] = #__VA_ARGS__;
#define ROW_REAL(name, n, e)                                                                       \
    REAL_FN(name, e)                                                                               \
    ROW_OF(name, n, .real = #e, .real_fn = name##_real)                                            \
    OBJECT(name, #e, n, ORDERED, RULES)
#define ROW_ALL(name, n, order, result_, e, s, u)                                                  \
    REAL_FN(name, e)                                                                               \
    SINT_FN(name, s)                                                                               \
    UINT_FN(name, u)                                                                               \
    ROW_OF(name, n, .result = MGX_PW_##result_, .real = #e, .sint = #s, .uint = #u,                \
           .real_fn = name##_real, INT_FNS(name))                                                  \
    OBJECT(name, #e, n, order, RULES)
#define ROW_WRAP(name, n, order, e)                                                                \
    REAL_FN(name, e)                                                                               \
    UINT_FN(name, e)                                                                               \
    WRAP_FN(name)                                                                                  \
    ROW_OF(name, n, .wraps = true, .real = #e, .sint = #e, .uint = #e, .real_fn = name##_real,     \
           INT_FNS(name))                                                                          \
    OBJECT(name, #e, n, order, RULES)
#define ROW_INT(name, n, order, s, u)                                                              \
    SINT_FN(name, s)                                                                               \
    UINT_FN(name, u)                                                                               \
    ROW_OF(name, n, .sint = #s, .uint = #u, INT_FNS(name))                                         \
    OBJECT(name, #u, n, order, RULES)
#define WITH_ATTRS(name, e, count, fields_, ...)                                                   \
    REAL_FN(name, e)                                                                               \
    static const struct mgx_line_attr name##_defaults = {__VA_ARGS__};                             \
    ROW_OF(name, 1, .attrs = count, .real = #e, .real_fn = name##_real)                            \
    OBJECT(name, #e, 1, ORDERED, RULES, .fields = fields_,                                         \
           .attr_size = sizeof(struct mgx_line_attr), .defaults = &name##_defaults)
#define ROW_ALPHA(name, alpha, e) WITH_ATTRS(name, e, 1, alpha_fields, alpha)
#define ROW_LINE(name, alpha, beta, e) WITH_ATTRS(name, e, 2, line_fields, alpha, beta)
// `where` reads a condition of another type: its own shape rule and compute.
#define ROW_WHERE(name_, e)                                                                        \
    REAL_FN(name_, e)                                                                              \
    ROW_OF(name_, 3, .real = #e, .sint = #e, .uint = #e, .real_fn = name_##_real)                  \
    OBJECT(name_, #e, 3, ORDERED, .shape = where_shape, .compute = where_compute)

#include "op/pointwise_rows.h"

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
    struct mgx_line_attr attr;
    struct mgx_walk w; // the output is tensor 0, operands follow
};

enum { SOME = 256 };

// Elements of the current run, some at a time.
static void run_real(struct row_run *r)
{
    static const double none[SOME]; // where the operator has fewer operands
    double x[3][SOME];
    const double *y = r->row->arity > 1 ? x[1] : none, *z = r->row->arity > 2 ? x[2] : none;
    for (int64_t done = 0; done < r->w.run; done += SOME) {
        const int64_t count = mgx_min_i64(SOME, r->w.run - done);
        for (int k = 0; k < r->row->arity; k++)
            mgx_load_doubles(r->in[k]->shape.type, r->in[k]->data,
                             r->w.offset[k + 1] + done * r->w.step[k + 1], r->w.step[k + 1], count,
                             x[k]);
        for (int64_t i = 0; i < count; i++)
            x[0][i] = r->row->real_fn(x[0][i], y[i], z[i], r->attr.alpha, r->attr.beta);
        mgx_store_doubles(r->out->shape.type, r->out->data, r->w.offset[0] + done * r->w.step[0],
                          r->w.step[0], count, x[0]);
    }
}

// Operand k of element i of the current run, 0 when the operator has fewer operands.
static int64_t operand(const struct row_run *r, int k, int64_t i)
{
    if (k >= r->row->arity)
        return 0;
    return mgx_load_int(r->in[k]->shape.type, r->in[k]->data,
                        r->w.offset[k + 1] + i * r->w.step[k + 1]);
}

static void run_int(struct row_run *r)
{
    const enum mgx_type type = r->out->shape.type;
    const bool is_unsigned = mgx_type_is_unsigned(r->in[0]->shape.type);
    for (int64_t i = 0; i < r->w.run; i++) {
        const int64_t x = operand(r, 0, i);
        const int64_t y = operand(r, 1, i);
        const int64_t z = operand(r, 2, i);
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
    if (r.row->attrs)
        r.attr = *(const struct mgx_line_attr *)c->attr;
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
