// SPDX-License-Identifier: MIT
// Shapes: handles over struct mgx_shape. Inside, a scalar has rank 0; outside it shows itself as
// lengths {1}, strides {0}.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

_Static_assert(sizeof(size_t) == sizeof(int64_t), "lengths are shown without a copy");

// --- types: the public numbering differs from the internal one, and ends with the public types ---

static const enum mgx_type inside[] = {
    MGX_TUPLE,       MGX_FP4X2,     MGX_BOOL,    MGX_HALF,  MGX_FLOAT,      MGX_DOUBLE, MGX_UINT8,
    MGX_INT8,        MGX_UINT16,    MGX_INT16,   MGX_INT32, MGX_INT64,      MGX_UINT32, MGX_UINT64,
    MGX_FP8E4M3FNUZ, MGX_FP8E4M3FN, MGX_FP8E5M2, MGX_BF16,  MGX_FP8E5M2FNUZ};

bool mgx_api_type_in(migraphx_shape_datatype_t type, enum mgx_type *out)
{
    const unsigned number = (unsigned)type;
    if (number >= MGX_TYPE_COUNT)
        return false;
    *out = number < MGX_COUNT(inside) ? inside[number] : (enum mgx_type)number;
    return true;
}

migraphx_shape_datatype_t mgx_api_type_out(enum mgx_type type)
{
    for (unsigned i = 0; i < MGX_COUNT(inside); i++)
        if (inside[i] == type)
            return (migraphx_shape_datatype_t)i;
    return (migraphx_shape_datatype_t)type;
}

migraphx_status migraphx_type_name(const char **out, migraphx_shape_datatype_t type)
{
    API_NEED(out);
    enum mgx_type t;
    if (!mgx_api_type_in(type, &t))
        return mgx_api_bad("%s: unknown type %d", __func__, (int)type);
    *out = mgx_type_name(t);
    return migraphx_status_success;
}

migraphx_status migraphx_type_size(size_t *out, migraphx_shape_datatype_t type)
{
    API_NEED(out);
    enum mgx_type t;
    if (!mgx_api_type_in(type, &t))
        return mgx_api_bad("%s: unknown type %d", __func__, (int)type);
    *out = mgx_type_size(t);
    return migraphx_status_success;
}

migraphx_status migraphx_type_find(migraphx_shape_datatype_t *out, const char *name)
{
    API_NEED(out);
    API_NEED(name);
    enum mgx_type t;
    if (!mgx_type_find(name, strlen(name), &t))
        return mgx_api_bad("unknown type \"%s\"", name);
    *out = mgx_api_type_out(t);
    return migraphx_status_success;
}

migraphx_status migraphx_type_attribute_number(size_t *out, migraphx_shape_datatype_t type)
{
    API_NEED(out);
    enum mgx_type t;
    if (!mgx_api_type_in(type, &t))
        return mgx_api_bad("%s: unknown type %d", __func__, (int)type);
    *out = (size_t)t;
    return migraphx_status_success;
}

// --- making ---

enum mgx_status mgx_api_shape_init(struct migraphx_shape *out, const struct mgx_shape *value,
                                   struct mgx_diag *diag)
{
    mgx_arena_init(&out->arena);
    if (mgx_shape_copy(&out->arena, value, &out->value))
        return MGX_OK;
    mgx_arena_fini(&out->arena);
    return mgx_fail_memory(diag);
}

void mgx_api_shape_fini(struct migraphx_shape *shape)
{
    mgx_arena_fini(&shape->arena);
}

enum mgx_status mgx_api_shape_new(migraphx_shape_t *out, const struct mgx_shape *value,
                                  struct mgx_diag *diag)
{
    TRY(mgx_shape_check(value, diag));
    struct migraphx_shape *shape = API_NEW(struct migraphx_shape);
    if (!shape)
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_api_shape_init(shape, value, diag);
    if (status == MGX_OK)
        *out = shape;
    else
        free(shape);
    return status;
}

static void shape_fini(struct migraphx_shape *shape)
{
    mgx_api_shape_fini(shape);
}

static enum mgx_status shape_copy(struct migraphx_shape *out, const struct migraphx_shape *in,
                                  struct mgx_diag *diag)
{
    return mgx_api_shape_init(out, &in->value, diag);
}

API_HANDLE(shape)

static migraphx_status create(migraphx_shape_t *out, const char *who,
                              migraphx_shape_datatype_t type, const size_t *lengths,
                              const size_t *strides, size_t rank)
{
    enum mgx_type t;
    if (!mgx_api_type_in(type, &t) || t == MGX_TUPLE || t == MGX_SEQUENCE)
        return mgx_api_bad("%s: type %d has no lengths", who, (int)type);
    if (rank > MGX_MAX_RANK)
        return mgx_api_bad("%s: rank %zu is above %d", who, rank, MGX_MAX_RANK);
    for (size_t i = 0; i < rank; i++)
        if (lengths[i] > INT64_MAX || (strides && strides[i] > INT64_MAX))
            return mgx_api_bad("%s: length or stride of axis %zu is too large", who, i);
    API_DIAG(diag);
    const struct mgx_shape value =
        rank == 0 ? mgx_shape_scalar(t)
        : strides
            ? mgx_shape_strided(t, (int)rank, (const int64_t *)lengths, (const int64_t *)strides)
            : mgx_shape_make(t, (int)rank, (const int64_t *)lengths);
    return mgx_api_leave(mgx_api_shape_new(out, &value, &diag), &diag);
}

migraphx_status migraphx_shape_create(migraphx_shape_t *out, migraphx_shape_datatype_t type,
                                      size_t *lengths, size_t lengths_size)
{
    API_NEED(out);
    if (lengths_size)
        API_NEED(lengths);
    return create(out, __func__, type, lengths, NULL, lengths_size);
}

migraphx_status migraphx_shape_create_with_strides(migraphx_shape_t *out,
                                                   migraphx_shape_datatype_t type, size_t *lengths,
                                                   size_t lengths_size, size_t *strides,
                                                   size_t strides_size)
{
    API_NEED(out);
    if (lengths_size)
        API_NEED(lengths);
    if (strides_size)
        API_NEED(strides);
    if (lengths_size != strides_size)
        return mgx_api_bad("%s: %zu lengths but %zu strides", __func__, lengths_size, strides_size);
    return create(out, __func__, type, lengths, strides, lengths_size);
}

migraphx_status migraphx_shape_create_scalar(migraphx_shape_t *out, migraphx_shape_datatype_t type)
{
    API_NEED(out);
    return create(out, __func__, type, NULL, NULL, 0);
}

migraphx_status migraphx_shape_create_dynamic(migraphx_shape_t *out, migraphx_shape_datatype_t type,
                                              migraphx_dynamic_dimensions_t dims)
{
    API_NEED(out);
    API_NEED(dims);
    enum mgx_type t;
    if (!mgx_api_type_in(type, &t) || t == MGX_TUPLE || t == MGX_SEQUENCE)
        return mgx_api_bad("%s: type %d has no dimensions", __func__, (int)type);
    API_DIAG(diag);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_dim *v;
    enum mgx_status status = mgx_api_dims_gather(&arena, dims, &v, &diag);
    if (status == MGX_OK) {
        const struct mgx_shape value = mgx_shape_dynamic(t, (int)dims->count, v);
        status = mgx_api_shape_new(out, &value, &diag);
    }
    mgx_arena_fini(&arena);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_shape_create_tuple(migraphx_shape_t *out,
                                            const const_migraphx_shape_t *ptr, size_t size)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    for (size_t i = 0; i < size; i++)
        API_NEED(ptr[i]);
    if (size > INT16_MAX)
        return mgx_api_bad("%s: a tuple of %zu members is too long", __func__, size);
    API_DIAG(diag);
    struct mgx_shape *sub = calloc(size + 1, sizeof *sub);
    if (!sub)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    for (size_t i = 0; i < size; i++)
        sub[i] = ptr[i]->value;
    const struct mgx_shape value = mgx_shape_tuple(sub, (int)size);
    const enum mgx_status status = mgx_api_shape_new(out, &value, &diag);
    free(sub);
    return mgx_api_leave(status, &diag);
}

// --- asking ---

static migraphx_status refuse_dynamic(const char *who)
{
    mgx_api_bad("%s: called on a dynamic shape", who);
    return migraphx_status_unknown_error;
}

// A dynamic shape whose ranges all end answers for the largest tensor it allows: programs of a time
// before dynamic shapes make room by it. `lens` of a dynamic shape are those bounds.
static bool has_bounds(const struct mgx_shape *s)
{
    bool bounded = !s->unranked;
    for (int i = 0; i < s->rank && bounded; i++)
        bounded = s->lens[i] < MGX_DIM_ANY;
    return bounded;
}

static migraphx_status refuse_unbounded(const char *who)
{
    mgx_api_bad("%s: called on a dynamic shape without upper bounds", who);
    return migraphx_status_unknown_error;
}

// A tuple has no lengths and counts as static here: it shows an empty list.
static bool has_ranges(const struct mgx_shape *s)
{
    return s->dims || s->unranked;
}

static migraphx_status show(const size_t **out, size_t *out_size, const struct mgx_shape *s,
                            const int64_t *values, const size_t *of_scalar)
{
    const bool scalar = s->rank == 0 && !s->sub;
    *out = scalar ? of_scalar : (const size_t *)values;
    *out_size = scalar ? 1 : (size_t)s->rank;
    return migraphx_status_success;
}

migraphx_status migraphx_shape_lengths(const size_t **out, size_t *out_size,
                                       const_migraphx_shape_t shape)
{
    static const size_t one[] = {1};
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(shape);
    if (!has_bounds(&shape->value))
        return refuse_unbounded(__func__);
    return show(out, out_size, &shape->value, shape->value.lens, one);
}

migraphx_status migraphx_shape_strides(const size_t **out, size_t *out_size,
                                       const_migraphx_shape_t shape)
{
    static const size_t zero[] = {0};
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(shape);
    if (has_ranges(&shape->value))
        return refuse_dynamic(__func__);
    return show(out, out_size, &shape->value, shape->value.strides, zero);
}

static enum mgx_status dimensions_of(struct migraphx_dynamic_dimensions *out,
                                     const struct mgx_shape *s, struct mgx_diag *diag)
{
    const struct mgx_dim one = {.min = 1, .max = 1};
    const bool scalar = s->rank == 0 && !s->sub;
    const size_t count = scalar ? 1 : (size_t)s->rank;
    out->items = calloc(count + 1, sizeof *out->items);
    if (!out->items)
        return mgx_fail_memory(diag);
    for (; out->count < count; out->count++) {
        const struct mgx_dim dim = scalar ? one : mgx_shape_dim(s, (int)out->count);
        TRY(mgx_api_dim_copy(&out->items[out->count], &dim, diag));
    }
    return MGX_OK;
}

migraphx_status migraphx_shape_dyn_dims(migraphx_dynamic_dimensions_t *out,
                                        const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    if (shape->value.unranked)
        return mgx_api_bad("%s: the number of dimensions is not known", __func__);
    API_DIAG(diag);
    struct migraphx_dynamic_dimensions *dims = API_NEW(struct migraphx_dynamic_dimensions);
    const enum mgx_status status =
        dims ? dimensions_of(dims, &shape->value, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = dims;
    else
        migraphx_dynamic_dimensions_destroy(dims);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_shape_type(migraphx_shape_datatype_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    *out = mgx_api_type_out(shape->value.type);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_elements(size_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    if (!has_bounds(&shape->value))
        return refuse_unbounded(__func__);
    *out = shape->value.sub ? 1 : (size_t)mgx_shape_elements(&shape->value);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_bytes(size_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    if (!has_bounds(&shape->value)) // of a dynamic shape: of its largest lengths
        return refuse_unbounded(__func__);
    *out = mgx_shape_bytes(&shape->value);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_ndim(size_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    const struct mgx_shape *s = &shape->value;
    if (s->unranked)
        return mgx_api_bad("%s: the number of dimensions is not known", __func__);
    *out = s->rank == 0 && !s->sub ? 1 : (size_t)s->rank;
    return migraphx_status_success;
}

migraphx_status migraphx_shape_rank(size_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    if (shape->value.unranked)
        return mgx_api_bad("%s: the number of dimensions is not known", __func__);
    *out = (size_t)shape->value.rank;
    return migraphx_status_success;
}

// A scalar equals what it shows itself as.
static bool shown_equal(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (a->rank == b->rank || a->sub || b->sub || a->dims || b->dims)
        return mgx_shape_equal(a, b);
    const struct mgx_shape *full = a->rank ? a : b, *scalar = a->rank ? b : a;
    return scalar->rank == 0 && full->rank == 1 && full->lens[0] == 1 && full->strides[0] == 0 &&
           full->type == scalar->type && full->unranked == scalar->unranked;
}

migraphx_status migraphx_shape_equal(bool *out, const_migraphx_shape_t shape,
                                     const_migraphx_shape_t x)
{
    API_NEED(out);
    API_NEED(shape);
    API_NEED(x);
    *out = shown_equal(&shape->value, &x->value);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_dynamic(bool *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    *out = !mgx_shape_is_static(&shape->value);
    return migraphx_status_success;
}

// Questions about layout: a dynamic shape has none, and answers no.
#define LAYOUT(question)                                                                           \
    migraphx_status migraphx_shape_##question(bool *out, const_migraphx_shape_t shape)             \
    {                                                                                              \
        API_NEED(out);                                                                             \
        API_NEED(shape);                                                                           \
        *out = !has_ranges(&shape->value) && !shape->value.sub &&                                  \
               mgx_shape_is_##question(&shape->value);                                             \
        return migraphx_status_success;                                                            \
    }
LAYOUT(standard)
LAYOUT(packed)
LAYOUT(transposed)
LAYOUT(broadcasted)
LAYOUT(scalar)

migraphx_status migraphx_shape_index(size_t *out, const_migraphx_shape_t shape, size_t i)
{
    API_NEED(out);
    API_NEED(shape);
    if (!mgx_shape_is_static(&shape->value))
        return refuse_dynamic(__func__);
    if (shape->value.sub || i >= (size_t)mgx_shape_elements(&shape->value))
        return mgx_api_bad("%s: there is no element %zu", __func__, i);
    *out = (size_t)mgx_shape_index(&shape->value, (int64_t)i);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_to_string(char **out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_shape_print(&text, &shape->value);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}
