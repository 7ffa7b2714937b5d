// SPDX-License-Identifier: MIT
// Attributes as text: the printed form "name[axis=1,dims={2, 3}]" and JSON. Both are read back by
// attr_parse.c; the printed form keeps six digits of floats, JSON all of them.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "ir/text.h"

// How the two forms write lists and leaves.
struct style {
    const char *open, *close, *separator;
    const char *none; // of an optional field
    void (*real)(struct mgx_str *out, double value);
    void (*string)(struct mgx_str *out, const char *text);
    void (*shape)(struct mgx_str *out, const struct mgx_shape *s);
    void (*dim)(struct mgx_str *out, const struct mgx_dim *d);
};

#define PRINT_LIST(out, style, list, print_item)                                                   \
    do {                                                                                           \
        mgx_str_put(out, (style)->open);                                                           \
        for (int i = 0; i < (list)->count; i++) {                                                  \
            if (i)                                                                                 \
                mgx_str_put(out, (style)->separator);                                              \
            print_item;                                                                            \
        }                                                                                          \
        mgx_str_put(out, (style)->close);                                                          \
    } while (0)

static void put_int(struct mgx_str *out, int64_t value)
{
    mgx_str_printf(out, "%lld", (long long)value);
}

static void put_ints(struct mgx_str *out, const struct style *style, const struct mgx_ints *list)
{
    PRINT_LIST(out, style, list, put_int(out, list->v[i]));
}

// The name of an enum's value, NULL where it has none.
static const char *enum_name(const struct mgx_field *f, int64_t value)
{
    assert(f->names);
    for (int64_t i = 0; f->names[i]; i++)
        if (i == value && *f->names[i])
            return f->names[i];
    return NULL;
}

static void put_list(struct mgx_str *out, const struct style *style, enum mgx_field_kind kind,
                     const void *value)
{
    if (kind == MGX_FIELD_INTS) {
        put_ints(out, style, value);
    } else if (kind == MGX_FIELD_FLOATS) {
        const struct mgx_doubles *list = value;
        PRINT_LIST(out, style, list, style->real(out, list->v[i]));
    } else if (kind == MGX_FIELD_STRINGS) {
        const struct mgx_strings *list = value;
        PRINT_LIST(out, style, list, style->string(out, *list->v[i] ? list->v[i] : NULL));
    } else if (kind == MGX_FIELD_SHAPES) {
        const struct mgx_shapes *list = value;
        PRINT_LIST(out, style, list, style->shape(out, &list->v[i]));
    } else {
        assert(kind == MGX_FIELD_DIMS); // the last kind of list
        const struct mgx_dims *list = value;
        PRINT_LIST(out, style, list, style->dim(out, &list->v[i]));
    }
}

static void put_optional(struct mgx_str *out, const struct style *style, const struct mgx_field *f,
                         int64_t value)
{
    if (f->names && value == MGX_NONE)
        mgx_str_put(out, style->none);
    else
        put_int(out, value);
}

static void put_enum(struct mgx_str *out, const struct style *style, const struct mgx_field *f,
                     int64_t value)
{
    const char *name = enum_name(f, value);
    if (name)
        style->string(out, name);
    else
        put_int(out, value);
}

static void put_value(struct mgx_str *out, const struct style *style, const struct mgx_field *f,
                      const void *value)
{
    const char *const *text = value;
    switch (f->kind) {
    case MGX_FIELD_INT:
    case MGX_FIELD_TYPE:
        put_optional(out, style, f, *(const int64_t *)value);
        break;
    case MGX_FIELD_FLOAT:
        style->real(out, *(const double *)value);
        break;
    case MGX_FIELD_STRING:
        style->string(out, *text ? *text : "");
        break;
    case MGX_FIELD_ENUM:
        put_enum(out, style, f, *(const int64_t *)value);
        break;
    case MGX_FIELD_SHAPE:
        style->shape(out, value);
        break;
    default:
        put_list(out, style, f->kind, value);
        break;
    }
}

// --- printed form ---

static void plain_string(struct mgx_str *out, const char *text)
{
    if (text)
        mgx_text_print(out, text);
    else
        mgx_str_put(out, "\"\""); // an empty member of a list has to be seen
}

const char *const mgx_optional[] = {NULL};

static const struct style plain = {.open = "{",
                                   .close = "}",
                                   .separator = ", ",
                                   .none = "nullopt",
                                   .real = mgx_text_print_double,
                                   .string = plain_string,
                                   .shape = mgx_shape_print,
                                   .dim = mgx_text_print_dim};

void mgx_op_print(struct mgx_str *out, const struct mgx_op *op, const void *attr)
{
    mgx_str_put(out, op->name);
    if (!op->fields || op->fields->kind == MGX_FIELD_END || !attr)
        return;
    for (const struct mgx_field *f = op->fields; f->kind != MGX_FIELD_END; f++) {
        const void *value = (const char *)attr + f->offset;
        mgx_str_printf(out, "%c%s=", f == op->fields ? '[' : ',', f->name);
        if (f->kind == MGX_FIELD_BOOL)
            mgx_str_putc(out, *(const bool *)value ? '1' : '0');
        else
            put_value(out, &plain, f, value);
    }
    mgx_str_putc(out, ']');
}

// --- JSON ---

static void json_string(struct mgx_str *out, const char *text)
{
    mgx_text_quote(out, text ? text : "", text ? strlen(text) : 0);
}

static void json_real(struct mgx_str *out, double value) // as Python's json writes and reads them
{
    if (isnan(value))
        mgx_str_put(out, "NaN");
    else if (isinf(value))
        mgx_str_put(out, value > 0 ? "Infinity" : "-Infinity");
    else
        mgx_text_print_exact(out, value);
}

static void json_shape(struct mgx_str *out, const struct mgx_shape *s);
static void json_dim(struct mgx_str *out, const struct mgx_dim *d);

static const struct style json = {.open = "[",
                                  .close = "]",
                                  .separator = ",",
                                  .none = "null",
                                  .real = json_real,
                                  .string = json_string,
                                  .shape = json_shape,
                                  .dim = json_dim};

static void json_dim(struct mgx_str *out, const struct mgx_dim *d)
{
    const struct mgx_ints optimals = {d->optimals, d->optimal_count};
    mgx_str_printf(out, "{\"min\":%lld,\"max\":%lld,\"optimals\":", (long long)d->min,
                   (long long)d->max);
    put_ints(out, &json, &optimals);
    if (d->name) {
        mgx_str_put(out, ",\"name\":");
        json_string(out, d->name);
    }
    mgx_str_putc(out, '}');
}

// Recursion follows the nesting of tuples, which mgx_shape_check bounds.
static void json_shape(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_printf(out, "{\"type\":\"%s\"", mgx_type_name(s->type));
    if (s->unranked)
        mgx_str_put(out, ",\"unranked\":true");
    else if (s->dims) {
        const struct mgx_dims dims = {s->dims, s->rank};
        mgx_str_put(out, ",\"dynamic_dimensions\":");
        put_list(out, &json, MGX_FIELD_DIMS, &dims);
    } else if (s->type == MGX_TUPLE || s->type == MGX_SEQUENCE) {
        const struct mgx_shapes sub = {s->sub, s->sub_count};
        mgx_str_put(out, ",\"sub_shapes\":");
        put_list(out, &json, MGX_FIELD_SHAPES, &sub);
    } else {
        static const int64_t one = 1, zero = 0; // how a scalar is shown
        const struct mgx_ints lens =
            s->rank ? (struct mgx_ints){s->lens, s->rank} : (struct mgx_ints){&one, 1};
        const struct mgx_ints strides =
            s->rank ? (struct mgx_ints){s->strides, s->rank} : (struct mgx_ints){&zero, 1};
        mgx_str_put(out, ",\"lens\":");
        put_ints(out, &json, &lens);
        mgx_str_put(out, ",\"strides\":");
        put_ints(out, &json, &strides);
    }
    mgx_str_putc(out, '}');
}

void mgx_field_print_json(struct mgx_str *out, const struct mgx_field *f, const void *attr)
{
    const void *value = (const char *)attr + f->offset;
    if (f->kind == MGX_FIELD_BOOL)
        mgx_str_put(out, *(const bool *)value ? "true" : "false");
    else
        put_value(out, &json, f, value);
}

void mgx_attr_print_json(struct mgx_str *out, const struct mgx_op *op, const void *attr)
{
    mgx_str_putc(out, '{');
    for (const struct mgx_field *f = op->fields; attr && f && f->kind != MGX_FIELD_END; f++) {
        mgx_str_printf(out, "%s\"%s\":", f == op->fields ? "" : ",", f->name);
        mgx_field_print_json(out, f, attr);
    }
    mgx_str_putc(out, '}');
}
