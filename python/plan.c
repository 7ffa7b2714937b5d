// SPDX-License-Identifier: MIT
// Plans of runs: made once for a compiled program, with names as Python strings and wanted shapes.
#include "plan.h"

#include <stdlib.h>
#include <string.h>

void py_plan_release(struct py_plan *plan)
{
    if (!plan || --plan->refs)
        return;
    for (size_t i = 0; plan->slots && i < plan->count; i++) {
        Py_XDECREF(plan->slots[i].name);
        migraphx_shape_destroy(plan->slots[i].seen.shape);
    }
    while (plan->spare_count)
        migraphx_program_parameters_destroy(plan->spares[--plan->spare_count]);
    free(plan->slots);
    migraphx_program_parameter_shapes_destroy(plan->shapes);
    Py_XDECREF(plan->names);
    free(plan);
}

size_t py_plan_count(const struct py_plan *plan)
{
    return plan->count;
}

PyObject *py_plan_name(const struct py_plan *plan, size_t i)
{
    return plan->slots[i].name;
}

const_migraphx_shape_t py_plan_want(const struct py_plan *plan, size_t i)
{
    return plan->slots[i].want;
}

bool py_plan_is_tensor(const struct py_plan *plan, size_t i)
{
    return plan->slots[i].tensor;
}

static bool is_plain(const_migraphx_shape_t shape)
{
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (OK(migraphx_shape_type(&type, shape)))
        migraphx_type_name(&name, type);
    return strcmp(name, "string_type") != 0 && strcmp(name, "tuple_type") != 0 &&
           strcmp(name, "sequence_type") != 0;
}

static int fill_slot(struct py_plan *plan, struct py_slot *slot, const char *name)
{
    slot->name = PyUnicode_InternFromString(name);
    slot->text = slot->name ? PyUnicode_AsUTF8AndSize(slot->name, NULL) : NULL;
    if (!slot->text)
        return -1;
    if (!OK(migraphx_program_parameter_shapes_get(&slot->want, plan->shapes, name))) {
        py_fail();
        return -1;
    }
    slot->tensor = is_plain(slot->want);
    return 0;
}

static int fill_slots(struct py_plan *plan, migraphx_program_t program)
{
    if (!OK(migraphx_program_get_parameter_shapes(&plan->shapes, program)) ||
        !OK(migraphx_program_parameter_shapes_size(&plan->count, plan->shapes))) {
        py_fail();
        return -1;
    }
    const char **names = calloc(plan->count + 1, sizeof *names);
    plan->slots = calloc(plan->count + 1, sizeof *plan->slots);
    int status = names && plan->slots ? 0 : -1;
    if (status < 0)
        PyErr_NoMemory();
    else
        migraphx_program_parameter_shapes_names(names, plan->shapes);
    for (size_t i = 0; i < plan->count && status == 0; i++)
        status = fill_slot(plan, &plan->slots[i], names[i]);
    free(names);
    return status;
}

struct py_plan *py_plan_make(PyObject *self)
{
    struct py_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        PyErr_NoMemory();
        return NULL;
    }
    plan->refs = 1;
    PyObject *names = PyObject_CallMethod(self, "get_output_names", NULL);
    plan->names =
        names ? PyObject_CallFunctionObjArgs((PyObject *)&PyTuple_Type, names, NULL) : NULL;
    Py_XDECREF(names);
    if (plan->names && fill_slots(plan, py_program_handle(self)) == 0)
        return plan;
    py_plan_release(plan);
    return NULL;
}
