// SPDX-License-Identifier: MIT
// Writing source text; see source.h.
//
// A row becomes a function per kind of numbers it is used with, a body a sequence of calls. What
// the reference does when it stores a value (narrow floats round, integers wrap, floats beyond an
// integer saturate) is said by `open_store` and the helpers below.
#include "op/source.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/text.h"
#include "op/op.h"
#include "op/rule/rule.h"

enum kind { REAL, DOUBLE, SINT, UINT, NONE };

static const char *const kind_type[] = {"pw_real", "double", "i64", "u64"};
static const char *const kind_name[] = {"real", "double", "sint", "uint"};

static enum kind kind_of(enum mgx_type type)
{
    switch (type) {
    case MGX_FLOAT:
    case MGX_HALF:
    case MGX_BF16:
    case MGX_FP8E4M3FN:
    case MGX_FP8E4M3FNUZ:
    case MGX_FP8E5M2:
    case MGX_FP8E5M2FNUZ:
    case MGX_FP4:
    case MGX_FP8E8M0:
        return REAL;
    case MGX_DOUBLE:
        return DOUBLE;
    case MGX_BOOL:
    case MGX_INT8:
    case MGX_INT16:
    case MGX_INT32:
    case MGX_INT64:
    case MGX_INT4:
    case MGX_INT2:
        return SINT;
    case MGX_UINT8:
    case MGX_UINT16:
    case MGX_UINT32:
    case MGX_UINT64:
    case MGX_UINT4:
    case MGX_UINT2:
        return UINT;
    default:
        return NONE;
    }
}

const char *mgx_source_type(enum mgx_type type)
{
    const enum kind kind = kind_of(type);
    return kind == NONE ? NULL : kind_type[kind];
}

// --- helpers of the text ---

// Floats to integers: towards zero, saturating, NaN as 0. Integers to floats that are narrower than
// a float: what does not fit 24 bits is folded into the last of them, so that rounding once more is
// rounding once.
#define TRUNCATIONS(type)                                                                          \
    "PW_FN i64 pw_fix_" #type "(pw_" #type " x)\n"                                                 \
    "{\n"                                                                                          \
    "    const pw_" #type " end = (pw_" #type ")(1u << 31) * (pw_" #type ")(1u << 31) * 2;\n"      \
    "    const i64 most = (i64)(((u64)0 - 1) >> 1);\n"                                             \
    "    return x != x ? 0 : x >= end ? most : x < -end ? -most - 1 : (i64)x;\n"                   \
    "}\n"                                                                                          \
    "PW_FN u64 pw_ufix_" #type "(pw_" #type " x)\n"                                                \
    "{\n"                                                                                          \
    "    const pw_" #type " end = (pw_" #type ")(1u << 31) * (pw_" #type ")(1u << 31) * 4;\n"      \
    "    return !(x > 0) ? 0 : x >= end ? (u64)0 - 1 : (u64)x;\n"                                  \
    "}\n"

static const char helpers[] =
    "#if !defined(PW_LOOK_UP)\n#define PW_LOOK_UP(table, i) table[i]\n#endif\n"
    "PW_FN i64 pw_clamp(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }\n"
    "PW_FN u64 pw_uclamp(u64 x, u64 high) { return x > high ? high : x; }\n"
    "PW_FN u64 pw_few(pw_real x, int high)\n"
    "{\n"
    "    return !(x > 0) ? 0 : (u64)(unsigned)(int)(x < (pw_real)high ? x : (pw_real)high);\n"
    "}\n"
    "PW_FN i64 pw_wrap(i64 x, int bits)\n"
    "{\n"
    "    const u64 sign = (u64)1 << (bits - 1), mask = (sign << 1) - 1;\n"
    "    return (i64)((((u64)x & mask) ^ sign) - sign);\n"
    "}\n"
    "PW_FN pw_real pw_odd(u64 x, int negative)\n"
    "{\n"
    "    u64 lost = 0;\n"
    "    int shift = 0;\n"
    "    for (; x >> 24; shift++, x >>= 1)\n"
    "        lost |= x & 1;\n"
    "    pw_real y = (pw_real)(x | lost);\n"
    "    for (; shift; shift--)\n"
    "        y *= 2;\n"
    "    return negative ? -y : y;\n"
    "}\n"
    "PW_FN pw_real pw_sodd(i64 x) { return pw_odd(x < 0 ? 0 - (u64)x : (u64)x, x < 0); }\n"
    "PW_FN pw_real pw_uodd(u64 x) { return pw_odd(x, 0); }\n"
    "#if !defined(PW_QUANTIZES)\n"
    "PW_FN pw_real pw_rounded(pw_real q, pw_real low, pw_real high)\n"
    "{\n"
    "    q = rint(q);\n"
    "    return q > low ? q < high ? q : high : low;\n"
    "}\n"
    "PW_FN pw_real pw_quantized(pw_real q, pw_real zero, pw_real low, pw_real high)\n"
    "{\n"
    "    return pw_rounded(q, low - zero, high - zero) + zero;\n"
    "}\n"
    "#define pw_last_share pw_quantized_share\n"
    "#define pw_quantized_share(q, scale, low, high) pw_quantized((q) / (scale), low, low, high)\n"
    "#define pw_rounded_share(q, scale, low, high, zero) \\\n"
    "    (pw_quantized((q) / (scale), low, low, high) - (zero))\n"
    "#endif\n" TRUNCATIONS(real);

// Only where doubles are asked for: there are cards without them.
static const char double_helpers[] = "typedef double pw_double;\n" TRUNCATIONS(double);

void mgx_source_begin(struct mgx_source *s, struct mgx_str *out)
{
    *s = (struct mgx_source){.out = out};
    mgx_str_put(out, mgx_pointwise_prelude);
    mgx_str_put(out, "\n");
    mgx_str_put(out, helpers);
}

// --- the function of a row ---

static const char *text_of(const struct mgx_pointwise *row, enum kind kind)
{
    return kind == SINT && !row->wraps    ? row->sint
           : kind == SINT || kind == UINT ? row->uint
                                          : row->real;
}

static void put_operands(struct mgx_str *out, int arity, const char *type, const char *prefix)
{
    for (int i = 0; i < arity; i++)
        mgx_str_printf(out, "%s%s %s%c", i ? ", " : "", type, prefix, 'x' + i);
}

// pw_<row>_<name>: integers, of which as many bits are computed as the types have.
static void put_wrapped(struct mgx_str *out, const struct mgx_op *op,
                        const struct mgx_pointwise *row, const char *name, const char *types[2])
{
    mgx_str_printf(out, "PW_FN i64 pw_%s_%s(", op->name, name);
    put_operands(out, row->arity, "i64", "s");
    mgx_str_printf(out, ")\n{\n    const %s ", types[0]);
    for (int i = 0; i < row->arity; i++)
        mgx_str_printf(out, "%s%c = (%s)s%c", i ? ", " : "", 'x' + i, types[0], 'x' + i);
    mgx_str_printf(out, ";\n    return (%s)(%s);\n}\n", types[1], row->uint);
}

// Signed operands of a row that may overflow are computed on as unsigned ones; those of 32 bits
// whose results have as many in 32, since compilers do not see that the others are not needed.
static void put_wrapping(struct mgx_str *out, const struct mgx_op *op,
                         const struct mgx_pointwise *row)
{
    put_wrapped(out, op, row, "sint", (const char *[]){"u64", "i64"});
    put_wrapped(out, op, row, "int", (const char *[]){"unsigned", "int"});
}

// A row's text. A constant with a point would widen a float to double: it takes the operands' type.
static void put_text(struct mgx_str *out, const char *text, const char *type)
{
    for (const char *at = text; *at;) {
        const bool word = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const size_t size = word ? 0 : strspn(at, "0123456789.");
        if (size && memchr(at, '.', size))
            mgx_str_printf(out, "(%s)", type);
        mgx_str_putn(out, at, size ? size : 1);
        at += size ? size : 1;
    }
}

static void put_row(struct mgx_source *s, const struct mgx_op *op, enum kind kind)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(op);
    assert(row && text_of(row, kind));
    bool *done = &s->done[row->code][kind];
    if (*done)
        return;
    *done = true;
    if (kind == SINT && row->wraps) {
        put_wrapping(s->out, op, row);
        return;
    }
    const char *type = kind_type[kind];
    mgx_str_printf(s->out, "PW_FN %s pw_%s_%s(", type, op->name, kind_name[kind]);
    put_operands(s->out, row->arity, type, "");
    for (int i = 0; i < row->attrs; i++)
        mgx_str_printf(s->out, ", pw_real %c", 'a' + i);
    mgx_str_printf(s->out, ") { return (%s)(", type);
    put_text(s->out, text_of(row, kind), type);
    mgx_str_put(s->out, "); }\n");
}

// The kind that an operator computes in for operands of a type: integers without a text of their
// own go through floats.
static enum kind row_kind(const struct mgx_pointwise *row, enum mgx_type type)
{
    const enum kind kind = kind_of(type);
    return (kind == SINT || kind == UINT) && !row->sint ? DOUBLE : kind;
}

// --- names ---

struct function {
    struct mgx_source *s;
    struct mgx_ins *const *params;
    int param_count;
    const struct mgx_ins *first;
    const struct mgx_ins *end; // behind the last; NULL: the module's end
};

static bool is_line(const struct mgx_ins *ins)
{
    return !ins->literal && ins->op != &mgx_op_param && ins->op != &mgx_op_return &&
           ins->op != &mgx_op_comment;
}

static void put_real(struct mgx_str *out, const char *type, double x)
{
    mgx_str_printf(out, "(%s)", type);
    mgx_text_print_exact(out, x);
}

static void put_number(struct mgx_str *out, const struct mgx_tensor *t)
{
    const enum mgx_type type = t->shape.type;
    const int64_t i = mgx_load_int(type, t->data, 0);
    const double x = mgx_load_double(type, t->data, 0);
    if (kind_of(type) == UINT)
        mgx_str_printf(out, "(u64)%" PRIu64 "u", (uint64_t)i);
    else if (kind_of(type) == SINT && i == INT64_MIN)
        mgx_str_printf(out, "(-(i64)%" PRId64 " - 1)", INT64_MAX);
    else if (kind_of(type) == SINT)
        mgx_str_printf(out, "(i64)%" PRId64, i);
    else if (isnan(x))
        mgx_str_printf(out, "((%s)0 / (%s)0)", mgx_source_type(type), mgx_source_type(type));
    else if (isinf(x))
        mgx_str_printf(out, "((%s)%d / (%s)0)", mgx_source_type(type), x < 0 ? -1 : 1,
                       mgx_source_type(type));
    else
        put_real(out, mgx_source_type(type), x);
}

static void put_name(const struct function *f, const struct mgx_ins *ins)
{
    for (int i = 0; i < f->param_count; i++)
        if (f->params[i] == ins) {
            mgx_str_printf(f->s->out, "x%d", i);
            return;
        }
    if (ins->literal) {
        put_number(f->s->out, ins->literal);
        return;
    }
    int at = 0;
    for (const struct mgx_ins *other = f->first; other != ins; other = other->next)
        at += is_line(other);
    mgx_str_printf(f->s->out, "v%d", at);
}

// --- storing: a value of a kind as one of a type ---

// The dialect's function that rounds to a narrow float; NULL for other types.
static const char *rounding_to(enum mgx_type type)
{
    static const char *const names[MGX_TYPE_COUNT] = {
        [MGX_HALF] = "pw_half",        [MGX_BF16] = "pw_bf16",
        [MGX_FP8E4M3FN] = "pw_e4m3fn", [MGX_FP8E4M3FNUZ] = "pw_e4m3fnuz",
        [MGX_FP8E5M2] = "pw_e5m2",     [MGX_FP8E5M2FNUZ] = "pw_e5m2fnuz",
        [MGX_FP4] = "pw_e2m1",         [MGX_FP8E8M0] = "pw_e8m0"};
    return names[type];
}

// Bytes of floats, and what else has no sign and few bits, need no integers of 64 bits on the way.
static bool is_few(enum kind from, enum mgx_type to)
{
    return from == REAL && kind_of(to) == UINT && mgx_type_bits(to) <= 16;
}

// What stands before and behind an expression of a floating kind.
static void open_real(struct mgx_str *out, enum kind from, enum mgx_type to)
{
    const bool is_unsigned = kind_of(to) == UINT;
    if (to == MGX_FLOAT || to == MGX_DOUBLE)
        mgx_str_printf(out, "(%s)(", to == MGX_FLOAT ? "float" : "double");
    else if (is_few(from, to))
        mgx_str_put(out, "pw_few(");
    else if (rounding_to(to))
        mgx_str_printf(out, "%s(", rounding_to(to));
    else if (to == MGX_BOOL)
        mgx_str_put(out, "(i64)(0 != (");
    else
        mgx_str_printf(out, "%s(pw_%sfix_%s(", is_unsigned ? "pw_uclamp" : "pw_clamp",
                       is_unsigned ? "u" : "", from == DOUBLE ? "double" : "real");
}

static void close_real(struct mgx_str *out, enum kind from, enum mgx_type to)
{
    if (mgx_type_is_float(to)) {
        mgx_str_put(out, ")");
    } else if (is_few(from, to)) {
        mgx_str_printf(out, ", %d)", (1 << mgx_type_bits(to)) - 1);
    } else if (to == MGX_BOOL) {
        mgx_str_put(out, "))");
    } else if (kind_of(to) == UINT) {
        mgx_str_printf(out, "), ((u64)0 - 1) >> %d)", 64 - mgx_type_bits(to));
    } else {
        const int spare = 64 - mgx_type_bits(to);
        mgx_str_printf(out, "), -(i64)(((u64)0 - 1) >> %d) - 1, (i64)(((u64)0 - 1) >> %d))",
                       spare + 1, spare + 1);
    }
}

static void open_int(struct mgx_str *out, enum kind from, enum mgx_type to)
{
    if (to == MGX_FLOAT || to == MGX_DOUBLE)
        mgx_str_printf(out, "(%s)(", to == MGX_FLOAT ? "float" : "double");
    else if (rounding_to(to))
        mgx_str_printf(out, "%s(pw_%s(", rounding_to(to), from == UINT ? "uodd" : "sodd");
    else if (to == MGX_BOOL)
        mgx_str_put(out, "(i64)(0 != (");
    else
        mgx_str_put(out, kind_of(to) == UINT ? "((u64)(" : "pw_wrap((i64)(");
}

static void close_int(struct mgx_str *out, enum mgx_type to)
{
    if (to == MGX_FLOAT || to == MGX_DOUBLE)
        mgx_str_put(out, ")");
    else if (mgx_type_is_float(to) || to == MGX_BOOL)
        mgx_str_put(out, "))");
    else if (kind_of(to) == UINT)
        mgx_str_printf(out, ") & ((u64)0 - 1) >> %d)", 64 - mgx_type_bits(to));
    else
        mgx_str_printf(out, "), %d)", mgx_type_bits(to));
}

static void open_store(struct mgx_str *out, enum kind from, enum mgx_type to)
{
    if (from == REAL || from == DOUBLE)
        open_real(out, from, to);
    else
        open_int(out, from, to);
}

static void close_store(struct mgx_str *out, enum kind from, enum mgx_type to)
{
    if (from == REAL || from == DOUBLE)
        close_real(out, from, to);
    else
        close_int(out, to);
}

// --- lines ---

// Integers of 32 bits that become such, by a row that may overflow?
static bool is_narrow(const struct mgx_ins *ins, const struct mgx_pointwise *row)
{
    bool narrow = row && row->wraps && ins->shape.type == MGX_INT32;
    for (int i = 0; i < ins->in_count; i++)
        narrow = narrow && ins->in[i]->shape.type == MGX_INT32;
    return narrow;
}

static void put_call(const struct function *f, const struct mgx_ins *ins, enum kind kind)
{
    struct mgx_str *out = f->s->out;
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    mgx_str_printf(out, "pw_%s_%s(", ins->op->name, is_narrow(ins, row) ? "int" : kind_name[kind]);
    for (int i = 0; i < ins->in_count; i++) {
        mgx_str_printf(out, "%s(%s)", i ? ", " : "", kind_type[kind]);
        put_name(f, ins->in[i]);
    }
    const struct mgx_line_attr *attr = ins->attr;
    for (int i = 0; i < row->attrs; i++) {
        mgx_str_put(out, ", ");
        put_real(out, "pw_real", i ? attr->beta : attr->alpha);
    }
    mgx_str_put(out, ")");
}

// --- quantizing: of floats, to integers of 16 bits and less ---

static bool is_quantizing(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quantizelinear || ins->op == &mgx_op_dequantizelinear;
}

static void put_as_real(const struct function *f, const struct mgx_ins *ins)
{
    mgx_str_put(f->s->out, "(pw_real)(");
    put_name(f, ins);
    mgx_str_put(f->s->out, ")");
}

static bool is_zero(const struct mgx_ins *ins)
{
    return ins->literal && mgx_load_double(ins->shape.type, ins->literal->data, 0) == 0;
}

static void put_zero(const struct function *f, const struct mgx_ins *ins)
{
    if (ins->in_count == 3)
        put_as_real(f, ins->in[2]);
    else
        mgx_str_put(f->s->out, "(pw_real)0");
}

// x / 1 is x.
static void put_quotient(const struct function *f, const struct mgx_ins *ins)
{
    struct mgx_str *out = f->s->out;
    const struct mgx_ins *scale = ins->in[1];
    const bool one =
        scale->literal && mgx_load_double(scale->shape.type, scale->literal->data, 0) == 1;
    mgx_str_put(out, "(float)(");
    put_as_real(f, ins->in[0]);
    mgx_str_put(out, one ? "" : " / ");
    if (!one)
        put_as_real(f, scale);
    mgx_str_put(out, ")");
}

// Does 1 stand for the highest byte and 0 for the lowest?
static bool is_share(const struct mgx_ins *q)
{
    const struct mgx_ins *scale = q->in[1], *zero = q->in_count == 3 ? q->in[2] : NULL;
    const enum mgx_type type = q->shape.type;
    const double steps = mgx_type_highest(type) - mgx_type_lowest(type);
    const double at =
        zero && zero->literal ? mgx_load_double(zero->shape.type, zero->literal->data, 0) : 0;
    return scale->literal && (!zero || zero->literal) && mgx_type_bits(type) == 8 &&
           mgx_load_double(scale->shape.type, scale->literal->data, 0) == (float)(1 / steps) &&
           at == mgx_type_lowest(type);
}

// Is it the function's result alone?
static bool is_last(const struct function *f, const struct mgx_ins *ins)
{
    for (const struct mgx_ins *other = f->first; other != f->end; other = other->next)
        for (int i = 0; i < other->in_count; i++)
            if (other->in[i] == ins && other->op != &mgx_op_return)
                return false;
    return true;
}

static void put_share(const struct function *f, const struct mgx_ins *q)
{
    const enum mgx_type type = q->shape.type;
    mgx_str_put(f->s->out, "_share((float)(");
    put_name(f, q->in[0]);
    mgx_str_put(f->s->out, "), ");
    put_as_real(f, q->in[1]);
    mgx_str_printf(f->s->out, ", (pw_real)%d, (pw_real)%d", (int)mgx_type_lowest(type),
                   (int)mgx_type_highest(type));
}

static void put_quantized(const struct function *f, const struct mgx_ins *ins)
{
    struct mgx_str *out = f->s->out;
    const enum mgx_type type = ins->shape.type;
    if (is_share(ins)) {
        mgx_str_printf(out, "(%s)%s", kind_type[kind_of(type)],
                       is_last(f, ins) ? "pw_last" : "pw_quantized");
        put_share(f, ins);
        mgx_str_put(out, ")");
        return;
    }
    mgx_str_printf(out, "(%s)pw_quantized(", kind_type[kind_of(type)]);
    put_quotient(f, ins);
    mgx_str_put(out, ", ");
    put_zero(f, ins);
    mgx_str_printf(out, ", %d, %d)", (int)mgx_type_lowest(type), (int)mgx_type_highest(type));
}

static void put_shares(const struct function *f, const char *name, const struct mgx_ins *q,
                       const struct mgx_ins *dq)
{
    mgx_str_put(f->s->out, name);
    put_share(f, q);
    mgx_str_put(f->s->out, ", ");
    put_zero(f, dq);
    mgx_str_put(f->s->out, ")");
}

// What is quantized and dequantized again stays a pw_real: the integer without dq's zero point.
static void put_pair(const struct function *f, const struct mgx_ins *q, const struct mgx_ins *dq)
{
    struct mgx_str *out = f->s->out;
    if (is_share(q)) {
        put_shares(f, "pw_rounded", q, dq);
        return;
    }
    mgx_str_put(out, "(pw_rounded(");
    put_quotient(f, q);
    for (int i = 0; i < 2; i++) {
        mgx_str_printf(out, ", (pw_real)%d - ",
                       (int)(i ? mgx_type_highest(q->shape.type) : mgx_type_lowest(q->shape.type)));
        put_zero(f, q);
    }
    mgx_str_put(out, "))");
}

// Is it an integer of the text, which narrows between floats?
static bool is_quantized_here(const struct function *f, const struct mgx_ins *ins)
{
    for (int i = 0; i < f->param_count; i++)
        if (f->params[i] == ins)
            return false;
    return ins->op == &mgx_op_quantizelinear;
}

// Does the table give it, on the way to the result?
static bool is_found(const struct function *f, const struct mgx_ins *ins)
{
    return f->s->table && ins == f->s->found;
}

// Do both have the same zero point, one value or none?
static bool same_zero(const struct mgx_ins *q, const struct mgx_ins *dq)
{
    double zero[2] = {0, 0};
    const struct mgx_ins *const both[] = {q, dq};
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *z = both[i]->in_count == 3 ? both[i]->in[2] : NULL;
        if (z && !z->literal)
            return q->in_count == 3 && dq->in_count == 3 && q->in[2] == dq->in[2];
        zero[i] = z ? mgx_load_double(z->shape.type, z->literal->data, 0) : 0;
    }
    return zero[0] == zero[1];
}

static void put_dequantized(const struct function *f, const struct mgx_ins *ins)
{
    struct mgx_str *out = f->s->out;
    const bool pair = !is_found(f, ins->in[0]) && is_quantized_here(f, ins->in[0]) &&
                      (is_share(ins->in[0]) || same_zero(ins->in[0], ins));
    const bool shifts = !pair && ins->in_count == 3 && !is_zero(ins->in[2]);
    mgx_str_put(out, shifts ? "(float)((" : "(float)(");
    if (pair)
        put_pair(f, ins->in[0], ins);
    else
        put_as_real(f, ins->in[0]);
    if (shifts) {
        mgx_str_put(out, " - ");
        put_as_real(f, ins->in[2]);
        mgx_str_put(out, ")");
    }
    mgx_str_put(out, " * ");
    put_as_real(f, ins->in[1]);
    mgx_str_put(out, ")");
}

// The byte's place in the table and what is there, with its sign.
static void put_looked_up(const struct function *f, const char *name, const struct mgx_ins *result)
{
    struct mgx_str *out = f->s->out;
    const bool sign = result->shape.type == MGX_INT8;
    mgx_str_printf(out, sign ? "(i64)(PW_LOOK_UP(%s_table, (int)(" : "PW_LOOK_UP(%s_table, (int)(",
                   name);
    put_name(f, f->s->byte);
    mgx_str_put(out, sign ? ") & 255) ^ 128) - 128" : ") & 255)");
}

static enum mgx_status check_quantizing(const struct mgx_ins *ins, struct mgx_diag *diag)
{
    const bool to = ins->op == &mgx_op_quantizelinear;
    const enum mgx_type narrow = to ? ins->shape.type : ins->in[0]->shape.type;
    const enum mgx_type wide = to ? ins->in[0]->shape.type : ins->shape.type;
    const bool fits = mgx_type_bits(narrow) <= (to ? 16 : 32);
    if (!mgx_type_is_integral(narrow) || narrow == MGX_BOOL || !fits || wide != MGX_FLOAT ||
        ins->in[1]->shape.type != MGX_FLOAT)
        return mgx_fail(diag, MGX_UNSUPPORTED, "%s: no source text for %s and %s", ins->op->name,
                        mgx_type_name(wide), mgx_type_name(narrow));
    return MGX_OK;
}

// --- ends that are left to whoever stores the result ---

static const struct mgx_ins *last_of(const struct mgx_ins *ins)
{
    const bool body = ins->op == &mgx_op_pointwise && mgx_module_result_count(ins->mod[0]) == 1;
    return body ? mgx_module_result(ins->mod[0], 0) : ins;
}

static bool is_number(const struct mgx_ins *ins, double value)
{
    return ins->literal && mgx_load_double(ins->shape.type, ins->literal->data, 0) == value;
}

static enum mgx_source_end end_of(const struct mgx_ins *last)
{
    const enum mgx_type type = last->shape.type;
    if (last->op != &mgx_op_convert || (type != MGX_FP8E4M3FN && type != MGX_FP8E5M2) ||
        kind_of(last->in[0]->shape.type) != REAL)
        return MGX_END_PLAIN;
    const struct mgx_ins *x = last->in[0];
    return x->op == &mgx_op_clip && is_number(x->in[1], mgx_type_lowest(type)) &&
                   is_number(x->in[2], mgx_type_highest(type))
               ? MGX_END_CUT
               : MGX_END_ROUNDED;
}

enum mgx_source_end mgx_source_end(const struct mgx_ins *ins)
{
    return end_of(last_of(ins));
}

static double step_of(const struct mgx_ins *last)
{
    const struct mgx_ins *q = last->in_count ? last->in[0] : NULL;
    return last->op == &mgx_op_dequantizelinear && q->op == &mgx_op_quantizelinear && is_share(q) &&
                   last->in[1]->literal
               ? mgx_load_double(last->in[1]->shape.type, last->in[1]->literal->data, 0)
               : 0;
}

double mgx_source_step(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise ? step_of(last_of(ins)) : 0;
}

// Writes what remains of the function's result where its end is left; false where nothing is.
static bool put_left(const struct function *f, const struct mgx_ins *ins)
{
    const bool alone = f->first == ins && f->end == ins->next;
    const bool result =
        alone || !ins->uses || (ins->uses->user->op == &mgx_op_return && !ins->uses->next);
    const enum mgx_source_end end = f->s->leaves && result ? end_of(ins) : MGX_END_PLAIN;
    if (f->s->leaves_step && result && step_of(ins) > 0) {
        put_shares(f, "pw_steps", ins->in[0], ins);
        return true;
    }
    if (end != MGX_END_PLAIN)
        put_name(f, end == MGX_END_CUT && f->s->leaves_cut ? ins->in[0]->in[0] : ins->in[0]);
    return end != MGX_END_PLAIN;
}

static void put_value(const struct function *f, const char *name, const struct mgx_ins *ins)
{
    struct mgx_str *out = f->s->out;
    if (put_left(f, ins))
        return;
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    if (is_found(f, ins)) {
        put_looked_up(f, name, ins);
        return;
    }
    if (is_quantizing(ins)) {
        if (ins->op == &mgx_op_quantizelinear)
            put_quantized(f, ins);
        else
            put_dequantized(f, ins);
        return;
    }
    if (ins->op == &mgx_op_where) { // moves values: nothing to round
        put_name(f, ins->in[0]);
        mgx_str_put(out, " != 0 ? ");
        put_name(f, ins->in[1]);
        mgx_str_put(out, " : ");
        put_name(f, ins->in[2]);
        return;
    }
    if (ins->op == &mgx_op_identity) {
        put_name(f, ins->in[0]);
        return;
    }
    const enum mgx_type from = ins->in[0]->shape.type;
    const enum kind kind = row ? row_kind(row, from) : kind_of(from);
    if (is_narrow(ins, row)) {
        put_call(f, ins, kind);
        return;
    }
    open_store(out, kind, ins->shape.type);
    if (!row && from == MGX_INT32)
        mgx_str_put(out, "(int)");
    if (row)
        put_call(f, ins, kind);
    else
        put_name(f, ins->in[0]); // convert
    close_store(out, kind, ins->shape.type);
}

static enum mgx_status check(const struct mgx_ins *ins, struct mgx_diag *diag)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(ins->op);
    if (is_quantizing(ins))
        TRY(check_quantizing(ins, diag));
    else if (!row && ins->op != &mgx_op_convert && ins->op != &mgx_op_identity)
        return mgx_fail(diag, MGX_UNSUPPORTED, "%s has no source text", ins->op->name);
    for (int i = -1; i < ins->in_count; i++) {
        const enum mgx_type type = i < 0 ? ins->shape.type : ins->in[i]->shape.type;
        if (!mgx_source_type(type))
            return mgx_fail(diag, MGX_UNSUPPORTED, "%s: no source text for type %s", ins->op->name,
                            mgx_type_name(type));
    }
    return MGX_OK;
}

static void put_lines(const struct function *f, const char *name)
{
    int at = 0;
    for (const struct mgx_ins *ins = f->first; ins != f->end; ins = ins->next) {
        if (!is_line(ins))
            continue;
        mgx_str_printf(f->s->out, "    const %s v%d = ", mgx_source_type(ins->shape.type), at++);
        put_value(f, name, ins);
        mgx_str_put(f->s->out, ";\n");
    }
}

static bool computes_doubles(const struct function *f)
{
    for (const struct mgx_ins *ins = f->first; ins != f->end; ins = ins->next) {
        const struct mgx_pointwise *row = is_line(ins) ? mgx_pointwise_find(ins->op) : NULL;
        if (is_line(ins) && (kind_of(ins->in[0]->shape.type) == DOUBLE ||
                             (row && row_kind(row, ins->in[0]->shape.type) == DOUBLE)))
            return true;
    }
    return false;
}

static void put_rows(const struct function *f)
{
    if (!f->s->doubles && computes_doubles(f)) {
        mgx_str_put(f->s->out, double_helpers);
        f->s->doubles = true;
    }
    for (const struct mgx_ins *ins = f->first; ins != f->end; ins = ins->next) {
        const struct mgx_pointwise *row = is_line(ins) ? mgx_pointwise_find(ins->op) : NULL;
        if (row && ins->op != &mgx_op_where)
            put_row(f->s, ins->op, row_kind(row, ins->in[0]->shape.type));
    }
}

static void put_head(const struct function *f, const char *name,
                     const struct mgx_ins *const *results, int count)
{
    struct mgx_str *out = f->s->out;
    mgx_str_printf(out, "PW_FN void %s(", name);
    for (int i = 0; i < f->param_count; i++)
        mgx_str_printf(
            out, "%s x%d, ",
            f->s->real >> i & 1 ? kind_type[REAL] : mgx_source_type(f->params[i]->shape.type), i);
    for (int i = 0; i < count; i++)
        mgx_str_printf(out, "%s%s *y%d", i ? ", " : "", mgx_source_type(results[i]->shape.type), i);
    mgx_str_put(out, ")\n{\n");
}

static void put_table(const struct function *f, const char *name)
{
    struct mgx_str *out = f->s->out;
    mgx_str_printf(out, "PW_TABLE %s_table[256] = {", name);
    for (int i = 0; i < 256; i++)
        mgx_str_printf(out, "%s%d", i ? "," : "", f->s->table[i]);
    mgx_str_put(out, "};\n");
}

static enum mgx_status put_function(const struct function *f, const char *name,
                                    const struct mgx_ins *const *results, int count,
                                    struct mgx_diag *diag)
{
    for (const struct mgx_ins *ins = f->first; ins != f->end; ins = ins->next)
        if (is_line(ins))
            TRY(check(ins, diag));
    for (int i = 0; i < f->param_count + count; i++) {
        const struct mgx_ins *ins = i < count ? results[i] : f->params[i - count];
        if (!mgx_source_type(ins->shape.type))
            return mgx_fail(diag, MGX_UNSUPPORTED, "no source text for type %s",
                            mgx_type_name(ins->shape.type));
    }
    put_rows(f);
    if (f->s->table)
        put_table(f, name);
    put_head(f, name, results, count);
    put_lines(f, name);
    for (int i = 0; i < count; i++) {
        mgx_str_printf(f->s->out, "    *y%d = ", i);
        if (f->s->table && !f->s->found)
            put_looked_up(f, name, results[i]);
        else
            put_name(f, results[i]);
        mgx_str_put(f->s->out, ";\n");
    }
    mgx_str_put(f->s->out, "}\n");
    return MGX_OK;
}

enum mgx_status mgx_source_body(struct mgx_source *s, const char *name,
                                const struct mgx_module *body, struct mgx_diag *diag)
{
    enum { MOST = 64 };
    struct mgx_ins *params[MOST];
    const struct mgx_ins *results[MOST];
    const int param_count = mgx_module_parameters(body, params, MOST);
    const int count = mgx_module_result_count(body);
    if (param_count > MOST || count > MOST)
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "a body of %d parameters and %d results, more than %d", param_count, count,
                        MOST);
    for (int i = 0; i < count; i++)
        results[i] = mgx_module_result(body, i);
    struct function f = {s, params, param_count, body->first, NULL};
    if (s->table && !s->found) { // the rest is in it
        assert(count == 1 && s->byte);
        f.end = is_line(s->byte) ? s->byte->next : body->first;
    }
    return put_function(&f, name, results, count, diag);
}

bool mgx_source_takes_real(const struct mgx_ins *ins, int operand)
{
    enum { MOST = 64 };
    struct mgx_ins *params[MOST];
    if (ins->op == &mgx_op_dequantizelinear)
        return operand == 0;
    if (ins->op != &mgx_op_pointwise || mgx_module_parameters(ins->mod[0], params, MOST) > MOST)
        return false;
    for (const struct mgx_use *use = params[operand]->uses; use; use = use->next)
        if (use->user->op != &mgx_op_dequantizelinear || use->slot != 0)
            return false;
    return true;
}

enum mgx_status mgx_source_ins(struct mgx_source *s, const char *name, const struct mgx_ins *ins,
                               struct mgx_diag *diag)
{
    const struct function f = {s, ins->in, ins->in_count, ins, ins->next};
    return put_function(&f, name, (const struct mgx_ins *const[]){ins}, 1, diag);
}
