// SPDX-License-Identifier: MIT
// What a model takes and gives, and whether its first axis is a batch.
#include <stdio.h>
#include <string.h>

#include "backend.h"

static TritonError *read_axis(struct value *v, size_t axis, const_migraphx_dynamic_dimension_t dim)
{
    bool fixed = false;
    size_t least, most;
    const char *name = "";
    ENGINE_TRY(v->name, migraphx_dynamic_dimension_is_fixed(&fixed, dim));
    ENGINE_TRY(v->name, migraphx_dynamic_dimension_range(&least, &most, dim));
    ENGINE_TRY(v->name, migraphx_dynamic_dimension_name(&name, dim));
    v->lens[axis] = fixed ? (int64_t)most : -1;
    if (axis == 0 && !fixed && *name && !(v->axis = strdup(name)))
        return no_memory();
    return NULL;
}

static TritonError *read_open(struct value *v, const_migraphx_shape_t shape)
{
    migraphx_dynamic_dimensions_t dims = NULL;
    ENGINE_TRY(v->name, migraphx_shape_dyn_dims(&dims, shape));
    TritonError *error = NULL;
    if (migraphx_dynamic_dimensions_size(&v->rank, dims) || v->rank > MOST_RANK)
        error = fail(TRITON_UNSUPPORTED, "migraphx: %s has more than %d axes", v->name, MOST_RANK);
    for (size_t i = 0; !error && i < v->rank; i++) {
        const_migraphx_dynamic_dimension_t dim = NULL;
        const migraphx_status status = migraphx_dynamic_dimensions_get(&dim, dims, i);
        error = status ? pass_on(v->name, status) : read_axis(v, i, dim);
    }
    migraphx_dynamic_dimensions_destroy(dims);
    return error;
}

static TritonError *read_value(struct value *v, const char *name, const_migraphx_shape_t shape)
{
    migraphx_shape_datatype_t type;
    bool open = false;
    const size_t *lens;
    size_t shown;
    v->name = strdup(name);
    if (!v->name)
        return no_memory();
    ENGINE_TRY(name, migraphx_shape_type(&type, shape));
    v->type = type_server(type);
    if (v->type == TRITON_NO_TYPE)
        return fail(TRITON_UNSUPPORTED, "migraphx: the server has no type for %s", name);
    ENGINE_TRY(name, migraphx_shape_dynamic(&open, shape));
    if (open)
        return read_open(v, shape);
    ENGINE_TRY(name, migraphx_shape_rank(&v->rank, shape));
    ENGINE_TRY(name, migraphx_shape_lengths(&lens, &shown, shape));
    if (v->rank > MOST_RANK)
        return fail(TRITON_UNSUPPORTED, "migraphx: %s has more than %d axes", name, MOST_RANK);
    for (size_t i = 0; i < v->rank; i++)
        v->lens[i] = (int64_t)lens[i];
    return NULL;
}

static TritonError *read_inputs(struct model *m, migraphx_program_parameter_shapes_t shapes)
{
    ENGINE_TRY(m->name, migraphx_program_parameter_shapes_size(&m->input_count, shapes));
    m->inputs = calloc(m->input_count + 1, sizeof *m->inputs);
    const char **names = calloc(m->input_count + 1, sizeof *names);
    TritonError *error = m->inputs && names ? NULL : no_memory();
    if (!error && migraphx_program_parameter_shapes_names(names, shapes))
        error = pass_on(m->name, migraphx_status_unknown_error);
    for (size_t i = 0; !error && i < m->input_count; i++) {
        const_migraphx_shape_t shape = NULL;
        const migraphx_status status =
            migraphx_program_parameter_shapes_get(&shape, shapes, names[i]);
        error = status ? pass_on(m->name, status) : read_value(&m->inputs[i], names[i], shape);
    }
    free(names);
    return error;
}

static TritonError *read_results(struct model *m, const_migraphx_program_t program,
                                 migraphx_shapes_t shapes)
{
    size_t named = 0;
    ENGINE_TRY(m->name, migraphx_shapes_size(&m->result_count, shapes));
    ENGINE_TRY(m->name, migraphx_program_output_names_size(&named, program));
    m->results = calloc(m->result_count + 1, sizeof *m->results);
    if (!m->results)
        return no_memory();
    for (size_t i = 0; i < m->result_count; i++) {
        char number[32];
        const char *name = number;
        const_migraphx_shape_t shape = NULL;
        snprintf(number, sizeof number, "output_%zu", i);
        if (i < named)
            ENGINE_TRY(m->name, migraphx_program_output_name(&name, program, i));
        ENGINE_TRY(m->name, migraphx_shapes_get(&shape, shapes, i));
        TRY(read_value(&m->results[i], name, shape));
    }
    return NULL;
}

// Open axes in front of everything, of one name where they have names.
static bool find_batch(const struct model *m)
{
    const char *name = NULL;
    for (size_t i = 0; i < m->input_count + m->result_count; i++) {
        const struct value *v =
            i < m->input_count ? &m->inputs[i] : &m->results[i - m->input_count];
        if (!v->rank || v->lens[0] >= 0)
            return false;
        if (i >= m->input_count && !v->axis)
            continue;
        if (name && v->axis && strcmp(name, v->axis) != 0)
            return false;
        name = name ? name : v->axis;
    }
    return m->input_count > 0;
}

TritonError *shapes_read(struct model *m, migraphx_program_t program)
{
    migraphx_program_parameter_shapes_t inputs = NULL;
    migraphx_shapes_t results = NULL;
    ENGINE_TRY(m->name, migraphx_program_get_parameter_shapes(&inputs, program));
    TritonError *error = read_inputs(m, inputs);
    migraphx_program_parameter_shapes_destroy(inputs);
    if (error)
        return error;
    ENGINE_TRY(m->name, migraphx_program_get_output_shapes(&results, program));
    error = read_results(m, program, results);
    migraphx_shapes_destroy(results);
    m->opens = !error && find_batch(m);
    return error;
}

static void values_fini(struct value *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        free(values[i].name);
        free(values[i].axis);
    }
    free(values);
}

void shapes_fini(struct model *m)
{
    values_fini(m->inputs, m->input_count);
    values_fini(m->results, m->result_count);
}

struct value *model_find(struct value *values, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return &values[i];
    return NULL;
}
