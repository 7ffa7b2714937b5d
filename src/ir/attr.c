// SPDX-License-Identifier: MIT
// Attribute structs driven by their field tables: making, copying, comparing, hashing, reading.
// Writing is attr_print.c, reading text attr_parse.c. Every function is one walk over the table
// with a switch over the kind; lists add their length.
#include "ir/attr.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "ir/op.h"

#define EACH_FIELD(f, op)                                                                          \
    for (const struct mgx_field *f = (op)->fields; f && f->kind != MGX_FIELD_END; f++)

static void *slot_of(void *attr, const struct mgx_field *f)
{
    return (char *)attr + f->offset;
}

static const void *value_of(const void *attr, const struct mgx_field *f)
{
    return (const char *)attr + f->offset;
}

const struct mgx_field *mgx_field_find(const struct mgx_op *op, const char *name)
{
    assert(op && name);
    EACH_FIELD(f, op)
    if (strcmp(f->name, name) == 0)
        return f;
    return NULL;
}

// --- deep copies of values ---

static bool copy_bytes(struct mgx_arena *arena, const void **list, int count, size_t size)
{
    assert(count >= 0 && (*list || !count));
    *list = count ? mgx_arena_memdup(arena, *list, (size_t)count * size) : NULL;
    return !count || *list;
}

static bool copy_strings(struct mgx_arena *arena, struct mgx_strings *list)
{
    assert(list->count >= 0 && (list->v || !list->count));
    const char **copy = MGX_NEW_ARRAY(arena, const char *, list->count);
    for (int i = 0; copy && i < list->count; i++)
        if (!(copy[i] = mgx_arena_strdup(arena, list->v[i])))
            return false;
    list->v = copy;
    return copy != NULL;
}

static bool copy_shapes(struct mgx_arena *arena, struct mgx_shapes *list)
{
    assert(list->count >= 0 && (list->v || !list->count));
    struct mgx_shape *copy = MGX_NEW_ARRAY(arena, struct mgx_shape, list->count);
    for (int i = 0; copy && i < list->count; i++)
        if (!mgx_shape_copy(arena, &list->v[i], &copy[i]))
            return false;
    list->v = copy;
    return copy != NULL;
}

// Ranges are copied by the one function that knows how: as the dims of shapes.
static bool copy_dims(struct mgx_arena *arena, struct mgx_dims *list)
{
    assert(list->count >= 0 && (list->v || !list->count));
    struct mgx_dim *copy = MGX_NEW_ARRAY(arena, struct mgx_dim, list->count);
    for (int i = 0; copy && i < list->count; i++) {
        const struct mgx_shape one = {.type = MGX_BOOL, .rank = 1, .dims = &list->v[i]};
        struct mgx_shape twin;
        if (!mgx_shape_copy(arena, &one, &twin))
            return false;
        copy[i] = twin.dims[0];
    }
    list->v = copy;
    return copy != NULL;
}

// Replaces what the value at `slot` points to by copies. False when out of memory.
static bool deepen(struct mgx_arena *arena, enum mgx_field_kind kind, void *slot)
{
    switch (kind) {
    case MGX_FIELD_STRING: {
        const char **text = slot;
        return !*text || (*text = mgx_arena_strdup(arena, *text));
    }
    case MGX_FIELD_INTS: {
        struct mgx_ints *list = slot;
        return copy_bytes(arena, (const void **)&list->v, list->count, sizeof *list->v);
    }
    case MGX_FIELD_FLOATS: {
        struct mgx_doubles *list = slot;
        return copy_bytes(arena, (const void **)&list->v, list->count, sizeof *list->v);
    }
    case MGX_FIELD_STRINGS:
        return copy_strings(arena, slot);
    case MGX_FIELD_SHAPES:
        return copy_shapes(arena, slot);
    case MGX_FIELD_DIMS:
        return copy_dims(arena, slot);
    case MGX_FIELD_SHAPE: {
        const struct mgx_shape shape = *(const struct mgx_shape *)slot;
        return mgx_shape_copy(arena, &shape, slot);
    }
    default:
        return true;
    }
}

enum mgx_status mgx_attr_copy(const struct mgx_op *op, const void *attr, struct mgx_arena *arena,
                              void **out, struct mgx_diag *diag)
{
    *out = NULL;
    if (!op->attr_size || !attr)
        return MGX_OK;
    void *copy = mgx_arena_memdup(arena, attr, op->attr_size);
    if (!copy)
        return mgx_fail_memory(diag);
    EACH_FIELD(f, op)
    if (!deepen(arena, f->kind, slot_of(copy, f)))
        return mgx_fail_memory(diag);
    assert(mgx_attr_equal(op, attr, copy) && copy != attr);
    assert(mgx_attr_hash(op, attr, 0) == mgx_attr_hash(op, copy, 0)); // equal ones hash alike
    *out = copy;
    return MGX_OK;
}

bool mgx_ints_all(struct mgx_ints list, int64_t value)
{
    for (int i = 0; i < list.count; i++)
        if (list.v[i] != value)
            return false;
    return true;
}

// --- making ---

static enum mgx_status wrong_kind(const struct mgx_op *op, const struct mgx_field *f,
                                  struct mgx_diag *diag)
{
    assert(!"an attribute is set with a value of another kind");
    return mgx_fail(diag, MGX_INTERNAL, "attribute '%s' of %s is set with a value of another kind",
                    f->name, op->name);
}

static enum mgx_status set_enum(const struct mgx_op *op, const struct mgx_field *f,
                                const char *name, int64_t *out, struct mgx_diag *diag)
{
    assert(f->names);
    for (int i = 0; f->names[i]; i++)
        if (*name && strcmp(f->names[i], name) == 0) {
            *out = i;
            return MGX_OK;
        }
    return mgx_fail(diag, MGX_INVALID, "attribute '%s' of %s has no value '%s'", f->name, op->name,
                    name);
}

bool mgx_field_admits(const struct mgx_field *f, int64_t value)
{
    if (f->kind == MGX_FIELD_TYPE)
        return (f->names && value == MGX_NONE) || (value >= 0 && value < MGX_TYPE_COUNT &&
                                                   value != MGX_TUPLE && value != MGX_SEQUENCE);
    for (int64_t i = 0; f->kind == MGX_FIELD_ENUM && f->names[i]; i++)
        if (i == value)
            return f->names[i][0] != '\0';
    return f->kind != MGX_FIELD_ENUM;
}

static enum mgx_status set_number(const struct mgx_op *op, const struct mgx_field *f, int64_t value,
                                  int64_t *out, struct mgx_diag *diag)
{
    if (!mgx_field_admits(f, value))
        return mgx_fail(diag, MGX_INVALID, "attribute '%s' of %s has no value %lld", f->name,
                        op->name, (long long)value);
    *out = value;
    return MGX_OK;
}

// The conversions: int -> float, bool, enum, type; string -> enum.
static enum mgx_status convert(const struct mgx_op *op, const struct mgx_field *f,
                               const struct mgx_attr *from, void *slot, struct mgx_diag *diag)
{
    const bool integer = from->kind == MGX_FIELD_INT;
    if (f->kind == MGX_FIELD_FLOAT && integer)
        *(double *)slot = (double)from->as.i;
    else if (f->kind == MGX_FIELD_BOOL && integer)
        *(bool *)slot = from->as.i != 0;
    else if ((f->kind == MGX_FIELD_ENUM || f->kind == MGX_FIELD_TYPE) && integer)
        return set_number(op, f, from->as.i, slot, diag);
    else if (f->kind == MGX_FIELD_ENUM && from->kind == MGX_FIELD_STRING)
        return set_enum(op, f, from->as.s ? from->as.s : "", slot, diag);
    else
        return wrong_kind(op, f, diag);
    return MGX_OK;
}

// Bytes of a value that is set as it is given; 0 of the kinds that others are converted to.
static size_t given_bytes(enum mgx_field_kind kind)
{
    static const uint8_t bytes[] = {[MGX_FIELD_INT] = sizeof(int64_t),
                                    [MGX_FIELD_FLOAT] = sizeof(double),
                                    [MGX_FIELD_STRING] = sizeof(const char *),
                                    [MGX_FIELD_INTS] = sizeof(struct mgx_ints),
                                    [MGX_FIELD_FLOATS] = sizeof(struct mgx_doubles),
                                    [MGX_FIELD_STRINGS] = sizeof(struct mgx_strings),
                                    [MGX_FIELD_SHAPES] = sizeof(struct mgx_shapes),
                                    [MGX_FIELD_DIMS] = sizeof(struct mgx_dims)};
    return kind == MGX_FIELD_SHAPE       ? sizeof(struct mgx_shape)
           : (size_t)kind < sizeof bytes ? bytes[kind]
                                         : 0;
}

static enum mgx_status set(const struct mgx_op *op, const struct mgx_field *f,
                           const struct mgx_attr *from, struct mgx_arena *arena, void *slot,
                           struct mgx_diag *diag)
{
    if (f->kind != from->kind)
        return convert(op, f, from, slot, diag);
    const size_t bytes = given_bytes(f->kind);
    if (!bytes)
        return wrong_kind(op, f, diag);
    memcpy(slot, f->kind == MGX_FIELD_SHAPE ? (const void *)from->as.shape : &from->as, bytes);
    return deepen(arena, f->kind, slot) ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status mgx_attr_make(const struct mgx_op *op, const struct mgx_attr *list,
                              struct mgx_arena *arena, void **out, struct mgx_diag *diag)
{
    *out = NULL;
    void *attr = NULL;
    if (op->attr_size) {
        attr = mgx_arena_alloc(arena, op->attr_size);
        if (!attr)
            return mgx_fail_memory(diag);
        if (op->defaults)
            memcpy(attr, op->defaults, op->attr_size);
    }
    for (; list && list->name; list++) {
        const struct mgx_field *f = mgx_field_find(op, list->name);
        if (!f)
            return mgx_fail(diag, MGX_INVALID, "No key '%s' in %s", list->name, op->name);
        TRY(set(op, f, list, arena, slot_of(attr, f), diag));
    }
    *out = attr;
    return MGX_OK;
}

// --- comparing and hashing ---

static bool strings_equal(const char *a, const char *b) // no string is an empty one
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool bytes_equal(const void *a, const void *b, int count, int other_count, size_t size)
{
    return count == other_count && (count == 0 || memcmp(a, b, (size_t)count * size) == 0);
}

static bool string_lists_equal(struct mgx_strings a, struct mgx_strings b)
{
    bool equal = a.count == b.count;
    for (int i = 0; equal && i < a.count; i++)
        equal = strings_equal(a.v[i], b.v[i]);
    return equal;
}

static bool shape_lists_equal(struct mgx_shapes a, struct mgx_shapes b)
{
    bool equal = a.count == b.count;
    for (int i = 0; equal && i < a.count; i++)
        equal = mgx_shape_equal(&a.v[i], &b.v[i]);
    return equal;
}

static bool dim_lists_equal(struct mgx_dims a, struct mgx_dims b)
{
    bool equal = a.count == b.count;
    for (int i = 0; equal && i < a.count; i++)
        equal = mgx_dim_equal(&a.v[i], &b.v[i]) && strings_equal(a.v[i].name, b.v[i].name);
    return equal;
}

static bool field_equal(enum mgx_field_kind kind, const void *a, const void *b)
{
#define LIST(type) const struct type *x = a, *y = b
    switch (kind) {
    case MGX_FIELD_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case MGX_FIELD_FLOAT: // bits: -0 is not 0, and a NaN is itself
        return memcmp(a, b, sizeof(double)) == 0;
    case MGX_FIELD_STRING:
        return strings_equal(*(const char *const *)a, *(const char *const *)b);
    case MGX_FIELD_INTS: {
        LIST(mgx_ints);
        return bytes_equal(x->v, y->v, x->count, y->count, sizeof *x->v);
    }
    case MGX_FIELD_FLOATS: {
        LIST(mgx_doubles);
        return bytes_equal(x->v, y->v, x->count, y->count, sizeof *x->v);
    }
    case MGX_FIELD_STRINGS:
        return string_lists_equal(*(const struct mgx_strings *)a, *(const struct mgx_strings *)b);
    case MGX_FIELD_SHAPE:
        return mgx_shape_equal(a, b);
    case MGX_FIELD_SHAPES:
        return shape_lists_equal(*(const struct mgx_shapes *)a, *(const struct mgx_shapes *)b);
    case MGX_FIELD_DIMS:
        return dim_lists_equal(*(const struct mgx_dims *)a, *(const struct mgx_dims *)b);
    default:
        return *(const int64_t *)a == *(const int64_t *)b;
    }
#undef LIST
}

bool mgx_attr_equal(const struct mgx_op *op, const void *a, const void *b)
{
    if (a == b)
        return true;
    EACH_FIELD(f, op)
    if (!field_equal(f->kind, value_of(a, f), value_of(b, f)))
        return false;
    return true;
}

static uint64_t hash_string(const char *text, uint64_t seed)
{
    return mgx_hash_bytes(text ? text : "", text ? strlen(text) : 0, seed);
}

static uint64_t hash_dim(const struct mgx_dim *d, uint64_t seed)
{
    const int64_t range[] = {d->min, d->max};
    return mgx_hash_bytes(range, sizeof range, seed);
}

static uint64_t hash_shape(const struct mgx_shape *s, uint64_t seed)
{
    const int64_t head[] = {s->type, s->rank, s->sub_count, s->dims != NULL};
    seed = mgx_hash_bytes(head, sizeof head, seed);
    seed = mgx_hash_bytes(s->lens, (size_t)s->rank * sizeof *s->lens, seed);
    if (!s->dims)
        seed = mgx_hash_bytes(s->strides, (size_t)s->rank * sizeof *s->strides, seed);
    for (int i = 0; i < s->sub_count; i++)
        seed = hash_shape(&s->sub[i], seed);
    return seed;
}

static uint64_t hash_strings(const struct mgx_strings *list, uint64_t seed)
{
    for (int i = 0; i < list->count; i++)
        seed = hash_string(list->v[i], seed);
    return seed;
}

static uint64_t hash_shapes(const struct mgx_shapes *list, uint64_t seed)
{
    for (int i = 0; i < list->count; i++)
        seed = hash_shape(&list->v[i], seed);
    return seed;
}

static uint64_t hash_dims(const struct mgx_dims *list, uint64_t seed)
{
    for (int i = 0; i < list->count; i++)
        seed = hash_dim(&list->v[i], seed);
    return seed;
}

// Of numbers of eight bytes each.
static uint64_t hash_numbers(const void *v, int count, uint64_t seed)
{
    return mgx_hash_bytes(v, (size_t)count * sizeof(int64_t), seed);
}

static uint64_t field_hash(enum mgx_field_kind kind, const void *value, uint64_t seed)
{
    const struct mgx_ints *ints = value;
    const struct mgx_doubles *doubles = value;
    switch (kind) {
    case MGX_FIELD_BOOL:
        return mgx_hash_bytes(value, sizeof(bool), seed);
    case MGX_FIELD_STRING:
        return hash_string(*(const char *const *)value, seed);
    case MGX_FIELD_INTS:
        return hash_numbers(ints->v, ints->count, seed);
    case MGX_FIELD_FLOATS:
        return hash_numbers(doubles->v, doubles->count, seed);
    case MGX_FIELD_STRINGS:
        return hash_strings(value, seed);
    case MGX_FIELD_SHAPE:
        return hash_shape(value, seed);
    case MGX_FIELD_SHAPES:
        return hash_shapes(value, seed);
    case MGX_FIELD_DIMS:
        return hash_dims(value, seed);
    default: // an integer or double
        return hash_numbers(value, 1, seed);
    }
}

uint64_t mgx_attr_hash(const struct mgx_op *op, const void *attr, uint64_t seed)
{
    assert(op->name);
    seed = hash_string(op->name, seed);
    EACH_FIELD(f, op)
    if (attr)
        seed = field_hash(f->kind, value_of(attr, f), seed + 1);
    return seed;
}

// --- reading by name ---

static const void *read_field(const struct mgx_op *op, const void *attr, const char *name,
                              unsigned kinds)
{
    const struct mgx_field *f = mgx_field_find(op, name);
    assert(f && attr && (kinds >> f->kind & 1));
    (void)kinds;
    return value_of(attr, f);
}

int64_t mgx_attr_int(const struct mgx_op *op, const void *attr, const char *name)
{
    const void *value = read_field(op, attr, name,
                                   1u << MGX_FIELD_INT | 1u << MGX_FIELD_BOOL |
                                       1u << MGX_FIELD_ENUM | 1u << MGX_FIELD_TYPE);
    if (mgx_field_find(op, name)->kind == MGX_FIELD_BOOL)
        return *(const bool *)value;
    return *(const int64_t *)value;
}

double mgx_attr_real(const struct mgx_op *op, const void *attr, const char *name)
{
    return *(const double *)read_field(op, attr, name, 1u << MGX_FIELD_FLOAT);
}

const char *mgx_attr_text(const struct mgx_op *op, const void *attr, const char *name)
{
    const char *text = *(const char *const *)read_field(op, attr, name, 1u << MGX_FIELD_STRING);
    return text ? text : "";
}

struct mgx_ints mgx_attr_ints(const struct mgx_op *op, const void *attr, const char *name)
{
    return *(const struct mgx_ints *)read_field(op, attr, name, 1u << MGX_FIELD_INTS);
}

struct mgx_doubles mgx_attr_reals(const struct mgx_op *op, const void *attr, const char *name)
{
    return *(const struct mgx_doubles *)read_field(op, attr, name, 1u << MGX_FIELD_FLOATS);
}
