// SPDX-License-Identifier: MIT
// What goes into and comes out of a program: lists of arguments and shapes, named shapes, named
// arguments.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

// --- arguments ---

static void arguments_fini(struct migraphx_arguments *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgx_api_argument_fini(&list->items[i]);
    free(list->items);
}

// Takes the tensors over, also on failure.
static enum mgx_status arguments_fill(struct migraphx_arguments *out, struct mgx_tensor *take,
                                      size_t count, struct mgx_diag *diag)
{
    *out = (struct migraphx_arguments){calloc(count + 1, sizeof *out->items), 0};
    enum mgx_status status = out->items ? MGX_OK : mgx_fail_memory(diag);
    for (size_t i = 0; i < count; i++) {
        if (status == MGX_OK)
            status = mgx_api_argument_init(&out->items[i], &take[i], diag);
        if (status == MGX_OK)
            out->count++;
        else
            mgx_tensor_release(&take[i]);
    }
    if (status != MGX_OK) {
        arguments_fini(out);
        *out = (struct migraphx_arguments){0};
    }
    return status;
}

static enum mgx_status arguments_copy(struct migraphx_arguments *out,
                                      const struct migraphx_arguments *in, struct mgx_diag *diag)
{
    struct mgx_tensor *shares = calloc(in->count + 1, sizeof *shares);
    if (!shares)
        return mgx_fail_memory(diag);
    for (size_t i = 0; i < in->count; i++)
        shares[i] = mgx_tensor_share(mgx_api_argument_value(&in->items[i]));
    const enum mgx_status status = arguments_fill(out, shares, in->count, diag);
    free(shares);
    return status;
}

API_HANDLE(arguments)

enum mgx_status mgx_api_arguments_new(migraphx_arguments_t *out, struct mgx_tensor *take,
                                      size_t count, struct mgx_diag *diag)
{
    assert(out && (take || !count));
    struct migraphx_arguments list;
    TRY(arguments_fill(&list, take, count, diag));
    struct migraphx_arguments *handle = API_NEW(struct migraphx_arguments);
    if (!handle) {
        arguments_fini(&list);
        return mgx_fail_memory(diag);
    }
    *handle = list;
    *out = handle;
    return MGX_OK;
}

migraphx_status migraphx_arguments_size(size_t *out, migraphx_arguments_t arguments)
{
    API_NEED(out);
    API_NEED(arguments);
    *out = arguments->count;
    return migraphx_status_success;
}

migraphx_status migraphx_arguments_get(const_migraphx_argument_t *out,
                                       migraphx_arguments_t arguments, size_t idx)
{
    API_NEED(out);
    API_NEED(arguments);
    if (idx >= arguments->count)
        return mgx_api_bad("%s: index %zu, but there are %zu arguments", __func__, idx,
                           arguments->count);
    *out = &arguments->items[idx];
    return migraphx_status_success;
}

migraphx_status migraphx_arguments_take(migraphx_argument_t *out, migraphx_arguments_t arguments,
                                        size_t idx)
{
    API_NEED(out);
    API_NEED(arguments);
    if (idx >= arguments->count)
        return mgx_api_bad("%s: index %zu, but there are %zu arguments", __func__, idx,
                           arguments->count);
    API_DIAG(diag);
    struct migraphx_argument *taken = malloc(sizeof *taken);
    if (!taken)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *taken = arguments->items[idx];
    arguments->items[idx] = (struct migraphx_argument){0};
    mgx_arena_init(&arguments->items[idx].shape.arena);
    *out = taken;
    return migraphx_status_success;
}

// --- shapes ---

static void shapes_fini(struct migraphx_shapes *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgx_api_shape_fini(&list->items[i]);
    free(list->items);
}

static enum mgx_status shapes_copy(struct migraphx_shapes *out, const struct migraphx_shapes *in,
                                   struct mgx_diag *diag)
{
    *out = (struct migraphx_shapes){calloc(in->count + 1, sizeof *out->items), 0};
    enum mgx_status status = out->items ? MGX_OK : mgx_fail_memory(diag);
    for (; status == MGX_OK && out->count < in->count; out->count += status == MGX_OK)
        status = mgx_api_shape_init(&out->items[out->count], &in->items[out->count].value, diag);
    if (status != MGX_OK)
        shapes_fini(out);
    return status;
}

API_HANDLE(shapes)

enum mgx_status mgx_api_shapes_new(migraphx_shapes_t *out, const struct mgx_shape *values,
                                   size_t count, struct mgx_diag *diag)
{
    assert(out && (values || !count));
    struct migraphx_shapes *list = API_NEW(struct migraphx_shapes);
    if (list)
        list->items = calloc(count + 1, sizeof *list->items);
    enum mgx_status status = list && list->items ? MGX_OK : mgx_fail_memory(diag);
    for (size_t i = 0; i < count && status == MGX_OK; i++) {
        status = mgx_api_shape_init(&list->items[i], &values[i], diag);
        list->count += status == MGX_OK;
    }
    if (status == MGX_OK)
        *out = list;
    else
        migraphx_shapes_destroy(list);
    return status;
}

migraphx_status migraphx_shapes_size(size_t *out, migraphx_shapes_t shapes)
{
    API_NEED(out);
    API_NEED(shapes);
    *out = shapes->count;
    return migraphx_status_success;
}

migraphx_status migraphx_shapes_get(const_migraphx_shape_t *out, migraphx_shapes_t shapes,
                                    size_t idx)
{
    API_NEED(out);
    API_NEED(shapes);
    if (idx >= shapes->count)
        return mgx_api_bad("%s: index %zu, but there are %zu shapes", __func__, idx, shapes->count);
    *out = &shapes->items[idx];
    return migraphx_status_success;
}

// --- named shapes ---

static void program_parameter_shapes_fini(struct migraphx_program_parameter_shapes *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgx_api_shape_fini(&list->shapes[i]);
    free(list->shapes);
    mgx_map_fini(&list->by_name);
    mgx_arena_fini(&list->arena);
}

// The shape of the i-th name.
static enum mgx_status named_shape_add(struct migraphx_program_parameter_shapes *list, size_t i,
                                       const char *name, const struct mgx_shape *shape,
                                       struct mgx_diag *diag)
{
    list->names[i] = mgx_arena_strdup(&list->arena, name);
    if (!list->names[i] || !mgx_map_put(&list->by_name, list->names[i], &list->shapes[i]))
        return mgx_fail_memory(diag);
    TRY(mgx_api_shape_init(&list->shapes[i], shape, diag));
    list->count++;
    return MGX_OK;
}

static enum mgx_status named_shapes_fill(struct migraphx_program_parameter_shapes *out,
                                         const char *const *names,
                                         const struct mgx_shape *const *shapes, size_t count,
                                         struct mgx_diag *diag)
{
    *out = (struct migraphx_program_parameter_shapes){0};
    mgx_arena_init(&out->arena);
    out->names = MGX_NEW_ARRAY(&out->arena, const char *, count);
    out->shapes = calloc(count + 1, sizeof *out->shapes);
    enum mgx_status status = out->names && out->shapes ? MGX_OK : mgx_fail_memory(diag);
    for (size_t i = 0; i < count && status == MGX_OK; i++)
        status = named_shape_add(out, i, names[i], shapes[i], diag);
    if (status != MGX_OK)
        program_parameter_shapes_fini(out);
    return status;
}

static enum mgx_status
program_parameter_shapes_copy(struct migraphx_program_parameter_shapes *out,
                              const struct migraphx_program_parameter_shapes *in,
                              struct mgx_diag *diag)
{
    const struct mgx_shape **shapes = calloc(in->count + 1, sizeof *shapes);
    if (!shapes)
        return mgx_fail_memory(diag);
    for (size_t i = 0; i < in->count; i++)
        shapes[i] = &in->shapes[i].value;
    const enum mgx_status status = named_shapes_fill(out, in->names, shapes, in->count, diag);
    free(shapes);
    return status;
}

API_HANDLE(program_parameter_shapes)

enum mgx_status mgx_api_named_shapes_new(migraphx_program_parameter_shapes_t *out,
                                         const char *const *names,
                                         const struct mgx_shape *const *shapes, size_t count,
                                         struct mgx_diag *diag)
{
    assert(out && ((names && shapes) || !count));
    struct migraphx_program_parameter_shapes *list =
        API_NEW(struct migraphx_program_parameter_shapes);
    if (!list)
        return mgx_fail_memory(diag);
    const enum mgx_status status = named_shapes_fill(list, names, shapes, count, diag);
    if (status == MGX_OK)
        *out = list;
    else
        free(list);
    return status;
}

migraphx_status
migraphx_program_parameter_shapes_size(size_t *out,
                                       migraphx_program_parameter_shapes_t program_parameter_shapes)
{
    API_NEED(out);
    API_NEED(program_parameter_shapes);
    *out = program_parameter_shapes->count;
    return migraphx_status_success;
}

migraphx_status
migraphx_program_parameter_shapes_get(const_migraphx_shape_t *out,
                                      migraphx_program_parameter_shapes_t program_parameter_shapes,
                                      const char *name)
{
    API_NEED(out);
    API_NEED(program_parameter_shapes);
    API_NEED(name);
    const struct migraphx_shape *found = mgx_map_find(&program_parameter_shapes->by_name, name);
    if (!found)
        return mgx_api_bad("%s: there is no parameter \"%s\"", __func__, name);
    *out = found;
    return migraphx_status_success;
}

migraphx_status migraphx_program_parameter_shapes_names(
    const char **out, migraphx_program_parameter_shapes_t program_parameter_shapes)
{
    API_NEED(out);
    API_NEED(program_parameter_shapes);
    for (size_t i = 0; i < program_parameter_shapes->count; i++)
        out[i] = program_parameter_shapes->names[i];
    return migraphx_status_success;
}

// --- named arguments ---

static void drop_items(struct migraphx_program_parameters *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        free((void *)list->v[i].name);
        mgx_tensor_release(&list->v[i].tensor);
    }
    list->count = 0;
    mgx_map_fini(&list->by_name);
}

static void program_parameters_fini(struct migraphx_program_parameters *list)
{
    drop_items(list);
    free(list->v);
}

enum { FEW = 16 }; // names that are faster compared than hashed, and need no memory

static struct mgx_named_tensor *find_param(const struct migraphx_program_parameters *list,
                                           const char *name)
{
    if (list->count > FEW) {
        const size_t place = (size_t)(uintptr_t)mgx_map_find(&list->by_name, name);
        return place ? &list->v[place - 1] : NULL;
    }
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return &list->v[i];
    return NULL;
}

// With the item behind the last one all names can be found by hash. False when out of memory.
static bool hash_names(struct migraphx_program_parameters *list)
{
    for (int64_t i = list->by_name.count; list->count >= FEW && i <= list->count; i++)
        if (!mgx_map_put(&list->by_name, list->v[i].name, (void *)(uintptr_t)(i + 1)))
            return false;
    return true;
}

// The item of a name, a new and empty one if there is none.
static enum mgx_status place(struct migraphx_program_parameters *list, const char *name,
                             struct mgx_named_tensor **out, struct mgx_diag *diag)
{
    *out = find_param(list, name);
    if (*out)
        return MGX_OK;
    if (!mgx_array_reserve(&list->array, 1, sizeof *list->v, NULL))
        return mgx_fail_memory(diag);
    struct mgx_named_tensor *item = &list->v[list->count];
    *item = (struct mgx_named_tensor){.name = strdup(name)};
    if (!item->name || !hash_names(list)) {
        free((void *)item->name);
        return mgx_fail_memory(diag);
    }
    list->count++;
    *out = item;
    return MGX_OK;
}

static enum mgx_status put(struct migraphx_program_parameters *list, const char *name,
                           const struct mgx_tensor *tensor, struct mgx_diag *diag)
{
    struct mgx_named_tensor *item;
    TRY(place(list, name, &item, diag));
    struct mgx_tensor old = item->tensor;
    item->tensor = mgx_tensor_share(tensor);
    mgx_tensor_release(&old);
    return MGX_OK;
}

static enum mgx_status program_parameters_copy(struct migraphx_program_parameters *out,
                                               const struct migraphx_program_parameters *in,
                                               struct mgx_diag *diag)
{
    *out = (struct migraphx_program_parameters){0};
    for (int64_t i = 0; i < in->count; i++) {
        const enum mgx_status status = put(out, in->v[i].name, &in->v[i].tensor, diag);
        if (status != MGX_OK) {
            program_parameters_fini(out);
            return status;
        }
    }
    return MGX_OK;
}

API_HANDLE(program_parameters)

migraphx_status migraphx_program_parameters_create(migraphx_program_parameters_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_program_parameters *list = API_NEW(struct migraphx_program_parameters);
    if (!list)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = list;
    return migraphx_status_success;
}

migraphx_status migraphx_program_parameters_add(migraphx_program_parameters_t program_parameters,
                                                const char *name,
                                                const_migraphx_argument_t argument)
{
    API_NEED(program_parameters);
    API_NEED(name);
    API_NEED(argument);
    API_DIAG(diag);
    return mgx_api_leave(put(program_parameters, name, mgx_api_argument_value(argument), &diag),
                         &diag);
}

migraphx_status
migraphx_program_parameters_add_owned(migraphx_program_parameters_t program_parameters,
                                      const char *name, const_migraphx_shape_t shape, void *buffer,
                                      void (*release)(void *owner), void *owner)
{
    API_NEED(program_parameters);
    API_NEED(name);
    API_NEED(shape);
    API_NEED(release);
    API_DIAG(diag);
    struct mgx_named_tensor *item = NULL;
    struct mgx_tensor t = {0}, old;
    enum mgx_status status = mgx_api_tensor_own(&t, &shape->value, buffer, release, owner, &diag);
    if (status == MGX_OK && (status = place(program_parameters, name, &item, &diag)) != MGX_OK)
        mgx_api_tensor_disown(&t);
    if (status == MGX_OK) {
        old = item->tensor;
        item->tensor = t;
        mgx_tensor_release(&old);
    }
    return mgx_api_leave(status, &diag);
}

// The room stays.
migraphx_status migraphx_program_parameters_clear(migraphx_program_parameters_t program_parameters)
{
    API_NEED(program_parameters);
    drop_items(program_parameters);
    return migraphx_status_success;
}

migraphx_status migraphx_shape_sub_shapes(migraphx_shapes_t *out, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    const enum mgx_status status =
        mgx_api_shapes_new(out, shape->value.sub, (size_t)shape->value.sub_count, &diag);
    return mgx_api_leave(status, &diag);
}
