// SPDX-License-Identifier: MIT
// What a generator's texts are about: inputs of the model's encoder, as arrays.
#include "pymgx.h"

static migraphx_generator_t of(PyObject *self)
{
    return ((struct py_generator *)self)->handle;
}

PyObject *py_generator_source_shapes(PyObject *self, PyObject *unused)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    (void)unused;
    if (!OK(migraphx_generator_source_shapes(&shapes, of(self))))
        return py_fail();
    PyObject *result = py_named_shapes(shapes, true);
    migraphx_program_parameter_shapes_destroy(shapes);
    return result;
}

// A value as the encoder's input of that name wants it; as it comes, where there is none.
static int add_input(migraphx_program_parameters_t params, PyObject *key, PyObject *value,
                     migraphx_program_parameter_shapes_t shapes)
{
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
    const_migraphx_shape_t want = NULL;
    if (!name) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "names of inputs must be str, not %R", Py_TYPE(key));
        return -1;
    }
    if (!OK(migraphx_program_parameter_shapes_get(&want, shapes, name)))
        want = NULL;
    PyObject *argument = py_to_argument(value, want);
    if (!argument)
        return py_prefix_error("input \"%U\"", key), -1;
    const bool added =
        OK(migraphx_program_parameters_add(params, name, ((struct py_argument *)argument)->handle));
    Py_DECREF(argument);
    if (!added)
        py_fail();
    return added ? 0 : -1;
}

static int add_inputs(migraphx_program_parameters_t params, PyObject *inputs,
                      migraphx_program_parameter_shapes_t shapes)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(inputs, &at, &key, &value)) {
        Py_INCREF(key); // converting may run code that changes the dict
        Py_INCREF(value);
        const int status = add_input(params, key, value, shapes);
        Py_DECREF(key);
        Py_DECREF(value);
        if (status < 0)
            return -1;
    }
    return 0;
}

PyObject *py_generator_set_source(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "inputs", NULL};
    migraphx_program_parameter_shapes_t shapes = NULL;
    migraphx_program_parameters_t params = NULL;
    PyObject *inputs, *result = NULL;
    Py_ssize_t text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO!:set_source", names, &text, &PyDict_Type,
                                     &inputs))
        return NULL;
    if (!OK(migraphx_generator_source_shapes(&shapes, of(self))) ||
        !OK(migraphx_program_parameters_create(&params)))
        result = py_fail();
    else if (add_inputs(params, inputs, shapes) == 0) {
        migraphx_status status;
        PY_WORK(status, migraphx_generator_set_source(of(self), (size_t)text, params));
        result = OK(status) ? Py_None : py_fail();
        if (result)
            Py_INCREF(result);
    }
    migraphx_program_parameters_destroy(params);
    migraphx_program_parameter_shapes_destroy(shapes);
    return result;
}
