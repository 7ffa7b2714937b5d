// SPDX-License-Identifier: MIT
// Attributes: an operator lists the fields of its attribute struct once; printing, parsing,
// comparing, hashing, setting by name, serialising and the documentation follow from that table.
//
//     struct concat { int64_t axis; };
//     static const struct mgx_field fields[] = {MGX_INT(struct concat, axis), {0}};
//
// Holds: an attribute struct is plain memory in the program's arena, immutable once its instruction
// is linked; what it points to lies in the same arena. A struct without a row in `defaults` starts
// as all zeros.
#pragma once

#include "ir/shape.h"

struct mgx_ints {
    const int64_t *v;
    int count;
};

struct mgx_doubles {
    const double *v;
    int count;
};

struct mgx_strings {
    const char *const *v;
    int count;
};

struct mgx_shapes {
    const struct mgx_shape *v;
    int count;
};

struct mgx_dims { // a list of dynamic dimensions
    const struct mgx_dim *v;
    int count;
};

enum mgx_field_kind {
    MGX_FIELD_END,
    MGX_FIELD_INT,     // int64_t                 axis=1
    MGX_FIELD_BOOL,    // bool                    largest=1
    MGX_FIELD_FLOAT,   // double                  alpha=0.01 (6 significant digits)
    MGX_FIELD_STRING,  // const char *            tag=attention
    MGX_FIELD_INTS,    // struct mgx_ints         padding={0, 0}
    MGX_FIELD_FLOATS,  // struct mgx_doubles      scales={1, 2}
    MGX_FIELD_STRINGS, // struct mgx_strings      actv_func={sigmoid, tanh}
    MGX_FIELD_ENUM,    // int64_t, printed by name  mode=average
    MGX_FIELD_TYPE,    // int64_t holding an enum mgx_type, printed as its number
    MGX_FIELD_SHAPE,   // struct mgx_shape        shape=float_type, {2, 3}, {3, 1}
    MGX_FIELD_SHAPES,  // struct mgx_shapes
    MGX_FIELD_DIMS,    // struct mgx_dims         out_dyn_dims={[1..4], 3}
};

struct mgx_field {
    const char *name;
    enum mgx_field_kind kind;
    size_t offset;
    // Of an enum: NULL-terminated, index is value; "" for a gap. Of an integer or type: not NULL
    // when it is optional.
    const char *const *names;
};

// clang-format off
#define MGX_FIELD_(struct_, member, kind_) {#member, kind_, offsetof(struct_, member), NULL}
// clang-format on
#define MGX_INT(s, m) MGX_FIELD_(s, m, MGX_FIELD_INT)
#define MGX_FLAG(s, m) MGX_FIELD_(s, m, MGX_FIELD_BOOL)
#define MGX_REAL(s, m) MGX_FIELD_(s, m, MGX_FIELD_FLOAT)
#define MGX_TEXT(s, m) MGX_FIELD_(s, m, MGX_FIELD_STRING)
#define MGX_INTS(s, m) MGX_FIELD_(s, m, MGX_FIELD_INTS)
#define MGX_REALS(s, m) MGX_FIELD_(s, m, MGX_FIELD_FLOATS)
#define MGX_TEXTS(s, m) MGX_FIELD_(s, m, MGX_FIELD_STRINGS)
#define MGX_TYPE(s, m) MGX_FIELD_(s, m, MGX_FIELD_TYPE)
#define MGX_SHAPE(s, m) MGX_FIELD_(s, m, MGX_FIELD_SHAPE)
#define MGX_SHAPES(s, m) MGX_FIELD_(s, m, MGX_FIELD_SHAPES)
#define MGX_DIMS(s, m) MGX_FIELD_(s, m, MGX_FIELD_DIMS)
// clang-format off
#define MGX_ENUM(s, m, names_) {#m, MGX_FIELD_ENUM, offsetof(s, m), names_}
// clang-format on

// An integer or type that need not be given; absent it is MGX_NONE and prints as "nullopt".
#define MGX_NONE INT64_MIN
extern const char *const mgx_optional[];
// clang-format off
#define MGX_OPTIONAL_INT(s, m) {#m, MGX_FIELD_INT, offsetof(s, m), mgx_optional}
#define MGX_OPTIONAL_TYPE(s, m) {#m, MGX_FIELD_TYPE, offsetof(s, m), mgx_optional}
// clang-format on

struct mgx_op;

// --- giving attributes by name ---
// An argument list for mgx_emit and friends:
//     MGX_ATTRS(mgx_int("axis", 1), mgx_ints("dims", dims, rank))
// Is each of them this value?
bool mgx_ints_all(struct mgx_ints list, int64_t value);

// The list and what it points to are copied; setting a field of another kind converts int -> float,
// int -> bool, int/string -> enum and nothing else (anything else is asserted: it is a mistake in
// our own code).
struct mgx_attr {
    const char *name;
    enum mgx_field_kind kind;
    union {
        int64_t i;
        double f;
        const char *s;
        struct mgx_ints ints;
        struct mgx_doubles doubles;
        struct mgx_strings strings;
        struct mgx_shapes shapes;
        struct mgx_dims dims;
        const struct mgx_shape *shape;
    } as;
};

#define MGX_ATTRS(...) ((const struct mgx_attr[]){__VA_ARGS__, {0}})

static inline struct mgx_attr mgx_int(const char *name, int64_t value)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_INT, .as.i = value};
}

static inline struct mgx_attr mgx_real(const char *name, double value)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_FLOAT, .as.f = value};
}

static inline struct mgx_attr mgx_text(const char *name,
                                       const char *value) // also names an enum's value
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_STRING, .as.s = value};
}

static inline struct mgx_attr mgx_ints(const char *name, const int64_t *values, int count)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_INTS, .as.ints = {values, count}};
}

static inline struct mgx_attr mgx_reals(const char *name, const double *values, int count)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_FLOATS, .as.doubles = {values, count}};
}

static inline struct mgx_attr mgx_texts(const char *name, const char *const *values, int count)
{
    return (struct mgx_attr){
        .name = name, .kind = MGX_FIELD_STRINGS, .as.strings = {values, count}};
}

static inline struct mgx_attr mgx_shape_attr(const char *name, const struct mgx_shape *value)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_SHAPE, .as.shape = value};
}

static inline struct mgx_attr mgx_dims_attr(const char *name, const struct mgx_dim *values,
                                            int count)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_DIMS, .as.dims = {values, count}};
}

static inline struct mgx_attr mgx_shapes_attr(const char *name, const struct mgx_shape *values,
                                              int count)
{
    return (struct mgx_attr){.name = name, .kind = MGX_FIELD_SHAPES, .as.shapes = {values, count}};
}

// A fresh attribute struct in `arena`: the operator's defaults, then the list (NULL = none). *out
// is NULL for an operator without attributes. Unknown name: MGX_INVALID, "No key 'x' in op".
enum mgx_status mgx_attr_make(const struct mgx_op *op, const struct mgx_attr *list,
                              struct mgx_arena *arena, void **out,
                              struct mgx_diag *diag) MGX_NODISCARD;
// The same from text: "axis=1,mode=average" (printed form) or relaxed JSON "{axis: 1, padding: [0,
// 0]}" (quotes optional, # and // comments). Enums by name or number, types by number or name.
enum mgx_status mgx_attr_parse(const struct mgx_op *op, const char *text, size_t size,
                               struct mgx_arena *arena, void **out,
                               struct mgx_diag *diag) MGX_NODISCARD;
// Copy of `attr` in another arena, deep.
enum mgx_status mgx_attr_copy(const struct mgx_op *op, const void *attr, struct mgx_arena *arena,
                              void **out, struct mgx_diag *diag) MGX_NODISCARD;

bool mgx_attr_equal(const struct mgx_op *op, const void *a, const void *b);
uint64_t mgx_attr_hash(const struct mgx_op *op, const void *attr, uint64_t seed);
// "name[attr=value,attr=value]", as section "text form" of docs/ir.md has it.
void mgx_op_print(struct mgx_str *out, const struct mgx_op *op, const void *attr);
// {"axis":1,...}: one JSON object of all attributes (enums by name, shapes as objects).
void mgx_attr_print_json(struct mgx_str *out, const struct mgx_op *op, const void *attr);
// The value of one field of it.
void mgx_field_print_json(struct mgx_str *out, const struct mgx_field *f, const void *attr);

// Is the number a value of this field? Of an enum, it must have a name; of a type,
// be one of tensors.
bool mgx_field_admits(const struct mgx_field *f, int64_t value);

// --- reading attributes by name (asserts that the field exists and has that kind) ---
const struct mgx_field *mgx_field_find(const struct mgx_op *op, const char *name); // NULL if absent
int64_t mgx_attr_int(const struct mgx_op *op, const void *attr,
                     const char *name); // int, bool, enum, type
double mgx_attr_real(const struct mgx_op *op, const void *attr, const char *name);
const char *mgx_attr_text(const struct mgx_op *op, const void *attr, const char *name);
struct mgx_ints mgx_attr_ints(const struct mgx_op *op, const void *attr, const char *name);
struct mgx_doubles mgx_attr_reals(const struct mgx_op *op, const void *attr, const char *name);
