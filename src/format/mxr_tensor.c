// SPDX-License-Identifier: MIT
// Shapes and tensors out of a tree of values; see mxr_read.h.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/mxr_read.h"

enum { MAX_DEPTH = 64, ALIGN = 64 };

enum mgx_status mgx_mxr_missing(const char *what, const char *of, struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INVALID, "%s without a proper \"%s\"", of, what);
}

enum mgx_status mgx_mxr_need(const struct mgx_value *map, const char *key, enum mgx_value_kind kind,
                             const char *of, const struct mgx_value **out, struct mgx_diag *diag)
{
    *out = mgx_value_find(map, key);
    return mgx_value_is(*out, kind) ? MGX_OK : mgx_mxr_missing(key, of, diag);
}

// --- shapes ---

static enum mgx_status read_sizes(const struct mgx_value *list, int64_t *out, int *count,
                                  struct mgx_diag *diag)
{
    *count = 0;
    for (const struct mgx_value *v = list->first; v; v = v->next) {
        if (v->kind != MGX_VALUE_INT || *count == MGX_MAX_RANK)
            return mgx_fail(diag, MGX_INVALID,
                            "a shape with more than %d axes, or with other "
                            "things than integers",
                            MGX_MAX_RANK);
        out[(*count)++] = v->i;
    }
    return MGX_OK;
}

static enum mgx_status read_optimals(struct mgx_arena *arena, const struct mgx_value *list,
                                     struct mgx_dim *dim, struct mgx_diag *diag)
{
    assert(!dim->optimal_count && !dim->optimals);
    if (!mgx_value_is(list, MGX_VALUE_LIST) || !list->count)
        return MGX_OK;
    int64_t *optimals = MGX_NEW_ARRAY(arena, int64_t, list->count);
    if (!optimals)
        return mgx_fail_memory(diag);
    for (const struct mgx_value *v = list->first; v && dim->optimal_count < MGX_MXR_MAX_LIST;
         v = v->next)
        if (v->kind == MGX_VALUE_INT)
            optimals[dim->optimal_count++] = v->i;
    dim->optimals = optimals;
    return MGX_OK;
}

// {range: {min, max}, optimals, sym}, or {min, max, optimals} as older files have it.
static enum mgx_status read_dim(struct mgx_arena *arena, const struct mgx_value *v,
                                struct mgx_dim *out, struct mgx_diag *diag)
{
    const struct mgx_value *range = mgx_value_find(v, "range"), *min, *max;
    if (!range)
        range = v;
    TRY(mgx_mxr_need(range, "min", MGX_VALUE_INT, "a dynamic dimension", &min, diag));
    TRY(mgx_mxr_need(range, "max", MGX_VALUE_INT, "a dynamic dimension", &max, diag));
    if (min->i < 0 || min->i > max->i)
        return mgx_fail(diag, MGX_INVALID, "a dynamic dimension of %lld to %lld", (long long)min->i,
                        (long long)max->i);
    *out = (struct mgx_dim){.min = min->i, .max = max->i};
    const struct mgx_value *name = mgx_value_find(v, "sym");
    if (mgx_value_is(name, MGX_VALUE_TEXT) && name->size)
        out->name = name->data;
    return read_optimals(arena, mgx_value_find(v, "optimals"), out, diag);
}

static enum mgx_status read_dims(struct mgx_arena *arena, enum mgx_type type,
                                 const struct mgx_value *list, struct mgx_shape *out,
                                 struct mgx_diag *diag)
{
    if (list->count > MGX_MAX_RANK)
        return mgx_fail(diag, MGX_INVALID, "a shape of %zu axes", list->count);
    struct mgx_dim *dims = MGX_NEW_ARRAY(arena, struct mgx_dim, list->count);
    int rank = 0;
    if (!dims)
        return mgx_fail_memory(diag);
    for (const struct mgx_value *v = list->first; v; v = v->next)
        TRY(read_dim(arena, v, &dims[rank++], diag));
    *out = mgx_shape_dynamic(type, rank, dims);
    return MGX_OK;
}

static enum mgx_status read_group(struct mgx_arena *arena, enum mgx_type type,
                                  const struct mgx_value *v, int depth, struct mgx_shape *out,
                                  struct mgx_diag *diag)
{
    assert(type == MGX_TUPLE || type == MGX_SEQUENCE);
    const struct mgx_value *list;
    TRY(mgx_mxr_need(v, "sub_shapes", MGX_VALUE_LIST, "a tuple", &list, diag));
    if (list->count > MGX_MXR_MAX_LIST)
        return mgx_fail(diag, MGX_LIMIT, "a tuple of %zu members", list->count);
    struct mgx_shape *sub = MGX_NEW_ARRAY(arena, struct mgx_shape, list->count);
    int count = 0;
    if (!sub)
        return mgx_fail_memory(diag);
    for (const struct mgx_value *item = list->first; item; item = item->next)
        TRY(mgx_mxr_read_shape(arena, item, depth + 1, &sub[count++], diag));
    if (type == MGX_SEQUENCE && count != 1)
        return mgx_fail(diag, MGX_INVALID, "a sequence of %d member shapes", count);
    *out = type == MGX_SEQUENCE ? mgx_shape_sequence(sub) : mgx_shape_tuple(sub, count);
    return MGX_OK;
}

static enum mgx_status read_static(enum mgx_type type, const struct mgx_value *v,
                                   struct mgx_shape *out, struct mgx_diag *diag)
{
    const struct mgx_value *lens, *strides;
    int64_t l[MGX_MAX_RANK], s[MGX_MAX_RANK];
    int rank, again;
    TRY(mgx_mxr_need(v, "lens", MGX_VALUE_LIST, "a shape", &lens, diag));
    TRY(read_sizes(lens, l, &rank, diag));
    const struct mgx_value *zero = mgx_value_find(v, "rank");
    if (rank == 0 || (zero && zero->i == 0)) {
        *out = mgx_shape_scalar(type);
        return MGX_OK;
    }
    strides = mgx_value_find(v, "strides");
    if (!mgx_value_is(strides, MGX_VALUE_LIST)) {
        *out = mgx_shape_make(type, rank, l);
        return MGX_OK;
    }
    TRY(read_sizes(strides, s, &again, diag));
    if (again != rank)
        return mgx_fail(diag, MGX_INVALID, "a shape of %d lengths and %d strides", rank, again);
    *out = mgx_shape_strided(type, rank, l, s);
    return MGX_OK;
}

enum mgx_status mgx_mxr_read_shape(struct mgx_arena *arena, const struct mgx_value *v, int depth,
                                   struct mgx_shape *out, struct mgx_diag *diag)
{
    const struct mgx_value *name, *dims = mgx_value_find(v, "dynamic_dimensions");
    enum mgx_type type;
    if (depth > MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "shapes are nested deeper than %d", MAX_DEPTH);
    TRY(mgx_mxr_need(v, "type", MGX_VALUE_TEXT, "a shape", &name, diag));
    if (!mgx_type_find(name->data, name->size, &type))
        return mgx_fail(diag, MGX_INVALID, "unknown type \"%.40s\"", (const char *)name->data);
    if (type == MGX_TUPLE || type == MGX_SEQUENCE)
        TRY(read_group(arena, type, v, depth, out, diag));
    else if (mgx_value_find(v, "unranked"))
        *out = mgx_shape_unranked(type);
    else if (mgx_value_is(dims, MGX_VALUE_LIST) && dims->count)
        TRY(read_dims(arena, type, dims, out, diag));
    else
        TRY(read_static(type, v, out, diag));
    return mgx_shape_check(out, diag);
}

// --- tensors ---

// The content of a bin or of a list of them; copied together only if there are several.
static enum mgx_status join_bytes(struct mgx_arena *arena, const struct mgx_value *v,
                                  const uint8_t **out, size_t *size, struct mgx_diag *diag)
{
    const struct mgx_value *only = v;
    size_t parts = 0;
    *size = 0;
    for (const struct mgx_value *c = v->first; c; c = c->next) {
        if (c->kind != MGX_VALUE_BYTES)
            return mgx_mxr_missing("data", "a tensor", diag);
        if (c->size || !parts)
            only = c;
        parts += c->size > 0;
        *size += c->size;
    }
    if (v->kind == MGX_VALUE_BYTES || parts <= 1) {
        *out = only->data;
        *size = only->kind == MGX_VALUE_BYTES ? only->size : 0;
        return MGX_OK;
    }
    uint8_t *all = mgx_arena_alloc(arena, *size);
    if (!all)
        return mgx_fail_memory(diag);
    *out = all;
    for (const struct mgx_value *c = v->first; c; all += c->size, c = c->next)
        if (c->size)
            memcpy(all, c->data, c->size);
    return MGX_OK;
}

static bool inside(const struct mgx_storage *file, const uint8_t *data, size_t size)
{
    const uint8_t *begin = file ? file->data : NULL;
    return begin && data >= begin && size <= file->bytes &&
           data - begin <= (ptrdiff_t)(file->bytes - size);
}

static enum mgx_status read_data(struct mgx_arena *arena, struct mgx_storage *file,
                                 const struct mgx_value *v, const struct mgx_shape *shape,
                                 struct mgx_tensor *out, struct mgx_diag *diag)
{
    const uint8_t *data;
    size_t size;
    if (!mgx_value_is(v, MGX_VALUE_BYTES) && !mgx_value_is(v, MGX_VALUE_LIST))
        return mgx_mxr_missing("data", "a tensor", diag);
    TRY(join_bytes(arena, v, &data, &size, diag));
    assert(data || !size);
    if (size != mgx_shape_bytes(shape))
        return mgx_fail(diag, MGX_INVALID, "a tensor of %zu bytes, but its shape has %zu", size,
                        mgx_shape_bytes(shape));
    if (size && inside(file, data, size) && (uintptr_t)data % ALIGN == 0) {
        *out = mgx_tensor_borrow(shape, data);
        assert(mgx_tensor_is_aligned(out));
        out->storage = mgx_storage_retain(file);
        return MGX_OK;
    }
    TRY(mgx_tensor_create(out, shape, diag));
    if (size)
        memcpy(out->data, data, size);
    return MGX_OK;
}

static enum mgx_status read_strings(const struct mgx_value *list, const struct mgx_shape *shape,
                                    struct mgx_tensor *out, struct mgx_diag *diag)
{
    assert(shape->type == MGX_STRING);
    const int64_t count = mgx_shape_elements(shape);
    if (!mgx_value_is(list, MGX_VALUE_LIST) || (int64_t)list->count != count ||
        !mgx_shape_is_standard(shape))
        return mgx_mxr_missing("strings", "a tensor", diag);
    struct mgx_string *v = calloc((size_t)count + 1, sizeof *v);
    struct mgx_arena arena;
    if (!v)
        return mgx_fail_memory(diag);
    mgx_arena_init(&arena);
    enum mgx_status status = MGX_OK;
    int64_t at = 0;
    for (const struct mgx_value *c = list->first; c && status == MGX_OK; c = c->next, at++) {
        const uint8_t *bytes = NULL;
        status = c->kind == MGX_VALUE_BYTES || c->kind == MGX_VALUE_LIST
                     ? join_bytes(&arena, c, &bytes, &v[at].size, diag)
                     : mgx_mxr_missing("strings", "a tensor", diag);
        v[at].text = (const char *)bytes;
    }
    const struct mgx_tensor lent = mgx_tensor_borrow(shape, v);
    if (status == MGX_OK)
        status = mgx_tensor_clone(out, &lent, diag);
    mgx_arena_fini(&arena);
    free(v);
    return status;
}

static enum mgx_status read_members(struct mgx_arena *arena, struct mgx_storage *file,
                                    const struct mgx_value *list, bool sequence, int depth,
                                    struct mgx_tensor *out, struct mgx_diag *diag)
{
    if (!mgx_value_is(list, MGX_VALUE_LIST) || list->count > MGX_MXR_MAX_LIST)
        return mgx_mxr_missing("sub", "a tensor", diag);
    struct mgx_tensor *members = calloc(list->count + 1, sizeof *members);
    if (!members)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    int count = 0;
    for (const struct mgx_value *c = list->first; c && status == MGX_OK; c = c->next) {
        status = mgx_mxr_read_tensor(arena, file, c, depth + 1, &members[count], diag);
        count += status == MGX_OK;
    }
    if (status == MGX_OK)
        status = mgx_tensor_group(out, members, count, sequence, diag);
    else
        for (int i = 0; i < count; i++)
            mgx_tensor_release(&members[i]);
    free(members);
    return status;
}

enum mgx_status mgx_mxr_read_tensor(struct mgx_arena *arena, struct mgx_storage *file,
                                    const struct mgx_value *v, int depth, struct mgx_tensor *out,
                                    struct mgx_diag *diag)
{
    const struct mgx_value *of_shape;
    struct mgx_shape shape;
    *out = (struct mgx_tensor){0};
    if (depth > MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "tensors are nested deeper than %d", MAX_DEPTH);
    TRY(mgx_mxr_need(v, "shape", MGX_VALUE_MAP, "a tensor", &of_shape, diag));
    TRY(mgx_mxr_read_shape(arena, of_shape, 0, &shape, diag));
    if (!mgx_shape_is_static(&shape))
        return mgx_fail(diag, MGX_INVALID, "a tensor without a static shape");
    if (shape.type == MGX_TUPLE || shape.type == MGX_SEQUENCE)
        return read_members(arena, file, mgx_value_find(v, "sub"), shape.type == MGX_SEQUENCE,
                            depth, out, diag);
    if (shape.type == MGX_STRING)
        return read_strings(mgx_value_find(v, "strings"), &shape, out, diag);
    return read_data(arena, file, mgx_value_find(v, "data"), &shape, out, diag);
}
