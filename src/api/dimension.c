// SPDX-License-Identifier: MIT
// Dynamic dimensions: handles over struct mgx_dim, each owning its name and optimals.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

// --- optimals ---

static void optimals_fini(struct migraphx_optimals *o)
{
    free(o->values);
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum mgx_status optimals_fill(struct migraphx_optimals *out, const int64_t *values,
                                     size_t count, struct mgx_diag *diag)
{
    int64_t *copy = calloc(count + 1, sizeof *copy);
    if (!copy)
        return mgx_fail_memory(diag);
    if (count)
        memcpy(copy, values, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, ascending);
    size_t kept = 0; // a set: no duplicates
    for (size_t i = 0; i < count; i++)
        if (i == 0 || copy[i] != copy[kept - 1])
            copy[kept++] = copy[i];
    *out = (struct migraphx_optimals){copy, kept};
    return MGX_OK;
}

static enum mgx_status optimals_copy(struct migraphx_optimals *out,
                                     const struct migraphx_optimals *in, struct mgx_diag *diag)
{
    return optimals_fill(out, in->values, in->count, diag);
}

API_HANDLE(optimals)

migraphx_status migraphx_optimals_create(migraphx_optimals_t *out, const size_t *ptr, size_t size)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    if (size > INT32_MAX)
        return mgx_api_bad("%s: %zu optimals are too many", __func__, size);
    for (size_t i = 0; i < size; i++)
        if (ptr[i] > MGX_DIM_ANY)
            return mgx_api_bad("%s: optimal %zu is too large", __func__, ptr[i]);
    API_DIAG(diag);
    struct migraphx_optimals *o = API_NEW(struct migraphx_optimals);
    enum mgx_status status = o ? MGX_OK : mgx_fail_memory(&diag);
    if (status == MGX_OK) // size_t and int64_t may alias, and the values fit both
        status = optimals_fill(o, (const int64_t *)ptr, size, &diag);
    if (status == MGX_OK)
        *out = o;
    else
        free(o);
    return mgx_api_leave(status, &diag);
}

// --- one dimension ---

static void dim_fini(struct migraphx_dynamic_dimension *dim)
{
    free((void *)dim->dim.name);
    free((void *)dim->dim.optimals);
    dim->dim = (struct mgx_dim){0};
}

enum mgx_status mgx_api_dim_copy(struct migraphx_dynamic_dimension *out, const struct mgx_dim *dim,
                                 struct mgx_diag *diag)
{
    assert(out && dim);
    struct migraphx_optimals optimals = {0};
    char *name = NULL;
    if (dim->name && !(name = strdup(dim->name)))
        return mgx_fail_memory(diag);
    if (dim->optimal_count) {
        const enum mgx_status status =
            optimals_fill(&optimals, dim->optimals, (size_t)dim->optimal_count, diag);
        if (status != MGX_OK) {
            free(name);
            return status;
        }
    }
    out->dim = (struct mgx_dim){.min = dim->min,
                                .max = dim->max,
                                .name = name,
                                .optimals = optimals.values,
                                .optimal_count = (int)optimals.count};
    return MGX_OK;
}

static void dynamic_dimension_fini(struct migraphx_dynamic_dimension *dim)
{
    dim_fini(dim);
}

static enum mgx_status dynamic_dimension_copy(struct migraphx_dynamic_dimension *out,
                                              const struct migraphx_dynamic_dimension *in,
                                              struct mgx_diag *diag)
{
    return mgx_api_dim_copy(out, &in->dim, diag);
}

API_HANDLE(dynamic_dimension)

static migraphx_status create_dimension(migraphx_dynamic_dimension_t *out, size_t min, size_t max,
                                        const struct migraphx_optimals *optimals)
{
    if (min > max)
        return mgx_api_bad("dynamic dimension: min %zu is above max %zu", min, max);
    if (max > MGX_DIM_ANY)
        max = MGX_DIM_ANY; // "any length" is often written SIZE_MAX
    if (min > max)
        return mgx_api_bad("dynamic dimension: min %zu is too large", min);
    API_DIAG(diag);
    struct mgx_dim dim = {.min = (int64_t)min, .max = (int64_t)max};
    if (optimals) {
        dim.optimals = optimals->values;
        dim.optimal_count = (int)optimals->count;
    }
    struct migraphx_dynamic_dimension *d = API_NEW(struct migraphx_dynamic_dimension);
    enum mgx_status status = d ? mgx_api_dim_copy(d, &dim, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = d;
    else
        free(d);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_dynamic_dimension_create_min_max(migraphx_dynamic_dimension_t *out,
                                                          size_t min, size_t max)
{
    API_NEED(out);
    return create_dimension(out, min, max, NULL);
}

migraphx_status
migraphx_dynamic_dimension_create_min_max_optimals(migraphx_dynamic_dimension_t *out, size_t min,
                                                   size_t max, migraphx_optimals_t optimals)
{
    API_NEED(out);
    API_NEED(optimals);
    return create_dimension(out, min, max, optimals);
}

migraphx_status
migraphx_dynamic_dimension_is_fixed(bool *out, const_migraphx_dynamic_dimension_t dynamic_dimension)
{
    API_NEED(out);
    API_NEED(dynamic_dimension);
    *out = mgx_dim_is_fixed(&dynamic_dimension->dim);
    return migraphx_status_success;
}

migraphx_status
migraphx_dynamic_dimension_equal(bool *out, const_migraphx_dynamic_dimension_t dynamic_dimension,
                                 const_migraphx_dynamic_dimension_t x)
{
    API_NEED(out);
    API_NEED(dynamic_dimension);
    API_NEED(x);
    *out = mgx_dim_equal(&dynamic_dimension->dim, &x->dim);
    return migraphx_status_success;
}

migraphx_status
migraphx_dynamic_dimension_range(size_t *min, size_t *max,
                                 const_migraphx_dynamic_dimension_t dynamic_dimension)
{
    API_NEED(min);
    API_NEED(max);
    API_NEED(dynamic_dimension);
    *min = (size_t)dynamic_dimension->dim.min;
    *max = (size_t)dynamic_dimension->dim.max;
    return migraphx_status_success;
}

migraphx_status
migraphx_dynamic_dimension_optimals(const size_t **out, size_t *out_size,
                                    const_migraphx_dynamic_dimension_t dynamic_dimension)
{
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(dynamic_dimension);
    *out = (const size_t *)dynamic_dimension->dim.optimals;
    *out_size = (size_t)dynamic_dimension->dim.optimal_count;
    return migraphx_status_success;
}

migraphx_status
migraphx_dynamic_dimension_name(const char **out,
                                const_migraphx_dynamic_dimension_t dynamic_dimension)
{
    API_NEED(out);
    API_NEED(dynamic_dimension);
    *out = dynamic_dimension->dim.name ? dynamic_dimension->dim.name : "";
    return migraphx_status_success;
}

migraphx_status migraphx_dynamic_dimension_set_name(migraphx_dynamic_dimension_t dynamic_dimension,
                                                    const char *name)
{
    API_NEED(dynamic_dimension);
    API_NEED(name);
    API_DIAG(diag);
    char *copy = name[0] ? strdup(name) : NULL;
    if (name[0] && !copy)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    free((void *)dynamic_dimension->dim.name);
    dynamic_dimension->dim.name = copy;
    return migraphx_status_success;
}

// --- lists of dimensions ---

static void dynamic_dimensions_fini(struct migraphx_dynamic_dimensions *dims)
{
    for (size_t i = 0; i < dims->count; i++)
        dim_fini(&dims->items[i]);
    free(dims->items);
}

static enum mgx_status dynamic_dimensions_copy(struct migraphx_dynamic_dimensions *out,
                                               const struct migraphx_dynamic_dimensions *in,
                                               struct mgx_diag *diag)
{
    *out = (struct migraphx_dynamic_dimensions){calloc(in->count + 1, sizeof *out->items), 0};
    enum mgx_status status = out->items ? MGX_OK : mgx_fail_memory(diag);
    for (; status == MGX_OK && out->count < in->count; out->count += status == MGX_OK)
        status = mgx_api_dim_copy(&out->items[out->count], &in->items[out->count].dim, diag);
    if (status != MGX_OK)
        dynamic_dimensions_fini(out);
    return status;
}

API_HANDLE(dynamic_dimensions)

static enum mgx_status collect(struct migraphx_dynamic_dimensions *out,
                               const const_migraphx_dynamic_dimension_t *ptr, size_t size,
                               struct mgx_diag *diag)
{
    out->items = calloc(size + 1, sizeof *out->items);
    if (!out->items)
        return mgx_fail_memory(diag);
    for (; out->count < size; out->count++)
        TRY(mgx_api_dim_copy(&out->items[out->count], &ptr[out->count]->dim, diag));
    return MGX_OK;
}

migraphx_status migraphx_dynamic_dimensions_create(migraphx_dynamic_dimensions_t *out,
                                                   const const_migraphx_dynamic_dimension_t *ptr,
                                                   size_t size)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    if (size > MGX_MAX_RANK)
        return mgx_api_bad("%s: rank %zu is above %d", __func__, size, MGX_MAX_RANK);
    for (size_t i = 0; i < size; i++)
        API_NEED(ptr[i]);
    API_DIAG(diag);
    struct migraphx_dynamic_dimensions *dims = API_NEW(struct migraphx_dynamic_dimensions);
    const enum mgx_status status = dims ? collect(dims, ptr, size, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = dims;
    else
        migraphx_dynamic_dimensions_destroy(dims);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_dynamic_dimensions_size(size_t *out,
                                                 migraphx_dynamic_dimensions_t dynamic_dimensions)
{
    API_NEED(out);
    API_NEED(dynamic_dimensions);
    *out = dynamic_dimensions->count;
    return migraphx_status_success;
}

migraphx_status migraphx_dynamic_dimensions_get(const_migraphx_dynamic_dimension_t *out,
                                                migraphx_dynamic_dimensions_t dynamic_dimensions,
                                                size_t idx)
{
    API_NEED(out);
    API_NEED(dynamic_dimensions);
    if (idx >= dynamic_dimensions->count)
        return mgx_api_bad("%s: index %zu, but there are %zu dimensions", __func__, idx,
                           dynamic_dimensions->count);
    *out = &dynamic_dimensions->items[idx];
    return migraphx_status_success;
}

enum mgx_status mgx_api_dims_gather(struct mgx_arena *arena,
                                    const struct migraphx_dynamic_dimensions *dims,
                                    struct mgx_dim **out, struct mgx_diag *diag)
{
    assert(arena && dims && out);
    struct mgx_dim *v = MGX_NEW_ARRAY(arena, struct mgx_dim, dims->count);
    for (size_t i = 0; v && i < dims->count; i++) {
        const struct mgx_dim *d = &dims->items[i].dim;
        v[i] = *d;
        v[i].name = mgx_arena_strdup(arena, d->name);
        v[i].optimals = d->optimal_count
                            ? mgx_arena_memdup(arena, d->optimals,
                                               (size_t)d->optimal_count * sizeof *d->optimals)
                            : NULL;
    }
    *out = v;
    return arena->failed ? mgx_fail_memory(diag) : MGX_OK;
}
