// SPDX-License-Identifier: MIT
// Helpers of the Python module; see pymgx.h.
#include "pymgx.h"

#include <string.h>

struct py_types py;

PyObject *py_fail(void)
{
    const char *text = "";
    migraphx_get_last_error(&text);
    PyErr_SetString(strcmp(text, "out of memory") == 0 ? PyExc_MemoryError : PyExc_RuntimeError,
                    text);
    return NULL;
}

void *py_new(PyObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    return alloc((PyTypeObject *)type, 0);
}

void py_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *py_take_text(char *text)
{
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    migraphx_string_destroy(text);
    return result;
}

PyObject *py_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return NULL;
    const char *dot = strrchr(spec->name, '.');
    Py_INCREF(type); // the module's reference
    if (PyModule_AddObject(module, dot ? dot + 1 : spec->name, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return type;
}

// Each wrapper takes its handle over, also when there is no memory for the object.
#define WRAP(function, struct_, type, handle_type, destroy)                                        \
    PyObject *function(handle_type take)                                                           \
    {                                                                                              \
        struct struct_ *self = py_new(type);                                                       \
        if (self)                                                                                  \
            self->handle = take;                                                                   \
        else                                                                                       \
            destroy(take);                                                                         \
        return (PyObject *)self;                                                                   \
    }
WRAP(py_wrap_shape, py_shape, py.shape, migraphx_shape_t, migraphx_shape_destroy)
WRAP(py_wrap_dim, py_dim, py.dim, migraphx_dynamic_dimension_t, migraphx_dynamic_dimension_destroy)
WRAP(py_wrap_program, py_program, py.program, migraphx_program_t, migraphx_program_destroy)
WRAP(py_wrap_op, py_op, py.op, migraphx_operation_t, migraphx_operation_destroy)

PyObject *py_wrap_argument(migraphx_argument_t take, int readonly)
{
    struct py_argument *self = py_new(py.argument);
    if (!self) {
        migraphx_argument_destroy(take);
        return NULL;
    }
    self->handle = take;
    self->readonly = readonly;
    return (PyObject *)self;
}

PyObject *py_copy_shape(const_migraphx_shape_t shape)
{
    size_t one = 1;
    migraphx_shape_t copy = NULL;
    if (!OK(migraphx_shape_create(&copy, migraphx_shape_float_type, &one, 1)))
        return py_fail();
    if (!OK(migraphx_shape_assign_to(copy, shape))) {
        migraphx_shape_destroy(copy);
        return py_fail();
    }
    return py_wrap_shape(copy);
}

PyObject *py_copy_argument(const_migraphx_argument_t argument)
{
    migraphx_shape_t none = NULL;
    migraphx_argument_t copy = NULL;
    const int made = OK(migraphx_shape_create_scalar(&none, migraphx_shape_bool_type)) &&
                     OK(migraphx_argument_create_empty(&copy, none)) &&
                     OK(migraphx_argument_assign_to(copy, argument));
    migraphx_shape_destroy(none);
    if (made)
        return py_wrap_argument(copy, 0);
    migraphx_argument_destroy(copy);
    return py_fail();
}

PyObject *py_wrap_module(migraphx_module_t module, PyObject *program)
{
    struct py_module *self = py_new(py.module);
    if (!self)
        return NULL;
    self->handle = module;
    Py_INCREF(program);
    self->program = program;
    return (PyObject *)self;
}

PyObject *py_wrap_ins(migraphx_instruction_t take, PyObject *program)
{
    struct py_ins *self = py_new(py.ins);
    if (!self) {
        migraphx_instruction_destroy(take);
        return NULL;
    }
    self->handle = take;
    Py_INCREF(program);
    self->program = program;
    return (PyObject *)self;
}

PyObject *py_size_list(const size_t *values, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = PyLong_FromSize_t(values[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

Py_ssize_t py_sizes(PyObject *sequence, size_t *out, Py_ssize_t capacity, const char *what)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return -1;
    if (count > capacity) {
        PyErr_Format(PyExc_ValueError, "%s: %zd values are too many", what, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *number = item ? PyNumber_Index(item) : NULL;
        out[i] = number ? PyLong_AsSize_t(number) : (size_t)-1;
        Py_XDECREF(number);
        Py_XDECREF(item);
        if (out[i] == (size_t)-1 && PyErr_Occurred())
            return -1;
    }
    return count;
}

PyObject *py_not_comparable(PyObject *b, PyObject *type, int op)
{
    if ((op == Py_EQ || op == Py_NE) && PyObject_IsInstance(b, type) == 1)
        return NULL;
    PyErr_Clear();
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

PyObject *py_compared(int op, bool same)
{
    return PyBool_FromLong(same == (op == Py_EQ));
}

PyObject *py_make_enum(const char *name, const char *qualname, PyObject *members)
{
    PyObject *module = PyImport_ImportModule("enum");
    PyObject *base = module ? PyObject_GetAttrString(module, "IntEnum") : NULL;
    PyObject *args = base ? Py_BuildValue("(sO)", name, members) : NULL;
    PyObject *options =
        args ? Py_BuildValue("{ssss}", "module", "migraphx", "qualname", qualname) : NULL;
    PyObject *result = options ? PyObject_Call(base, args, options) : NULL;
    Py_XDECREF(options);
    Py_XDECREF(args);
    Py_XDECREF(base);
    Py_XDECREF(module);
    return result;
}
