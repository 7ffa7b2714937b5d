// SPDX-License-Identifier: MIT
// migraphx.argument, and the functions that make arguments.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

static const_migraphx_argument_t of(PyObject *self)
{
    return ((struct py_argument *)self)->handle;
}

PyObject *py_to_argument(PyObject *value)
{
    if (PyObject_IsInstance(value, py.argument) == 1) {
        Py_INCREF(value);
        return value;
    }
    PyErr_Clear();
    return py_argument_from_buffer(value);
}

// --- groups: a list of arguments is a sequence, a tuple a tuple ---

static PyObject *make_group(PyObject *items, bool sequence)
{
    const Py_ssize_t count = PySequence_Size(items);
    PyObject *arguments = count < 0 ? NULL : PyList_New(0);
    const_migraphx_argument_t *handles =
        calloc((size_t)(count < 0 ? 0 : count) + 1, sizeof *handles);
    for (Py_ssize_t i = 0; arguments && handles && i < count; i++) {
        PyObject *item = PySequence_GetItem(items, i);
        PyObject *argument = item ? py_to_argument(item) : NULL;
        Py_XDECREF(item);
        if (!argument || PyList_Append(arguments, argument) < 0)
            Py_CLEAR(arguments);
        else
            handles[i] = of(argument);
        Py_XDECREF(argument);
    }
    migraphx_argument_t group = NULL;
    PyObject *result = NULL;
    if (arguments && handles)
        result = OK(migraphx_argument_create_group(&group, handles, (size_t)count, sequence))
                     ? py_wrap_argument(group, 0)
                     : py_fail();
    free(handles);
    Py_XDECREF(arguments);
    return result;
}

static PyObject *argument_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"buffer", NULL};
    PyObject *source;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:argument", names, &source))
        return NULL;
    if (PyList_Check(source) || PyTuple_Check(source))
        return make_group(source, PyList_Check(source));
    return py_argument_from_buffer(source);
}

static void argument_dealloc(PyObject *self)
{
    migraphx_argument_destroy(((struct py_argument *)self)->handle);
    py_free(self);
}

// --- asking ---

static PyObject *get_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    const_migraphx_shape_t shape;
    return OK(migraphx_argument_shape(&shape, of(self))) ? py_copy_shape(shape) : py_fail();
}

static PyObject *data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *data;
    return OK(migraphx_argument_buffer(&data, of(self))) ? PyLong_FromVoidPtr(data) : py_fail();
}

static bool is_integral(migraphx_shape_datatype_t type)
{
    const char *name = "";
    migraphx_type_name(&name, type);
    return strncmp(name, "int", 3) == 0 || strncmp(name, "uint", 4) == 0;
}

static PyObject *number(migraphx_shape_datatype_t type, const double *real, const int64_t *integer)
{
    if (type == migraphx_shape_bool_type)
        return PyBool_FromLong(*integer != 0);
    if (type == migraphx_shape_uint64_type)
        return PyLong_FromUnsignedLongLong((unsigned long long)*integer);
    if (is_integral(type))
        return PyLong_FromLongLong(*integer);
    return PyFloat_FromDouble(*real);
}

static PyObject *list_numbers(PyObject *self, migraphx_shape_datatype_t type, size_t count)
{
    double *reals = calloc(count + 1, sizeof *reals);
    int64_t *integers = calloc(count + 1, sizeof *integers);
    PyObject *list = NULL;
    if (!reals || !integers)
        PyErr_NoMemory();
    else if (!OK(migraphx_argument_values(reals, count, of(self))) ||
             !OK(migraphx_argument_integers(integers, count, of(self))))
        py_fail();
    else
        list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = number(type, &reals[i], &integers[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    free(reals);
    free(integers);
    return list;
}

static PyObject *list_strings(PyObject *self, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const char *text;
        size_t size;
        PyObject *value = OK(migraphx_argument_string(&text, &size, of(self), i))
                              ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape")
                              : py_fail();
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *members(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t count;
    if (!OK(migraphx_argument_members_size(&count, of(self))))
        return py_fail();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_argument_t member;
        PyObject *value = OK(migraphx_argument_member(&member, of(self), i))
                              ? py_copy_argument(member)
                              : py_fail();
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name;
    size_t count;
    if (!OK(migraphx_argument_shape(&shape, of(self))) || !OK(migraphx_shape_type(&type, shape)) ||
        !OK(migraphx_type_name(&name, type)) || !OK(migraphx_shape_elements(&count, shape)))
        return py_fail();
    if (strcmp(name, "string_type") == 0)
        return list_strings(self, count);
    if (type == migraphx_shape_tuple_type || strcmp(name, "sequence_type") == 0)
        return members(self, unused);
    return list_numbers(self, type, count);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.argument, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_argument_equal(&same, of(a), of(b))))
        return py_fail();
    return py_compared(op, same);
}

static PyObject *repr(PyObject *self)
{
    char *text;
    return OK(migraphx_argument_to_string(&text, of(self))) ? py_take_text(text) : py_fail();
}

// --- files ---

static PyObject *path_bytes(PyObject *path)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

static PyObject *save(PyObject *unused, PyObject *args)
{
    PyObject *argument, *path;
    (void)unused;
    if (!PyArg_ParseTuple(args, "O!O:save", py.argument, &argument, &path))
        return NULL;
    PyObject *bytes = path_bytes(path);
    if (!bytes)
        return NULL;
    const migraphx_status status = migraphx_argument_save(of(argument), PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (!OK(status))
        return py_fail();
    Py_RETURN_NONE;
}

static PyObject *load(PyObject *unused, PyObject *path)
{
    (void)unused;
    PyObject *bytes = path_bytes(path);
    if (!bytes)
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_load(&argument, PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return OK(status) ? py_wrap_argument(argument, 0) : py_fail();
}

PyObject *py_make_argument_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"get_shape", get_shape, METH_NOARGS, "The shape."},
        {"data_ptr", data_ptr, METH_NOARGS, "Address of the first element."},
        {"tolist", tolist, METH_NOARGS, "All elements as a flat list, row-major."},
        {"members", members, METH_NOARGS, "Members of a tuple or sequence."},
        {"save", save, METH_VARARGS | METH_STATIC, "save(argument, filename)"},
        {"load", load, METH_O | METH_STATIC, "load(filename) -> argument"},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)argument_new},
        {Py_tp_dealloc, (void *)argument_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)repr},
        {Py_tp_richcompare, (void *)compare},
        {Py_bf_getbuffer, (void *)py_argument_getbuffer},
        {Py_bf_releasebuffer, (void *)py_argument_releasebuffer},
        {Py_tp_doc, "argument(buffer)\n\nAn array over the bytes of any object with a buffer, "
                    "without a copy; keeps the object alive. numpy.asarray(argument) shares the "
                    "bytes in turn."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.argument", sizeof(struct py_argument), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return py_add_type(module, &spec);
}

// --- functions that make arguments ---

static const_migraphx_shape_t shape_of(PyObject *shape)
{
    return ((struct py_shape *)shape)->handle;
}

static PyObject *finish(migraphx_status status, migraphx_argument_t argument)
{
    return OK(status) ? py_wrap_argument(argument, 0) : py_fail();
}

static PyObject *generate_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "seed", NULL};
    PyObject *shape;
    Py_ssize_t seed = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|n:generate_argument", names, py.shape,
                                     &shape, &seed))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status =
        migraphx_argument_generate(&argument, shape_of(shape), (size_t)seed);
    return finish(status, argument);
}

static PyObject *fill_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "value", NULL};
    PyObject *shape;
    double value;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!d:fill_argument", names, py.shape, &shape,
                                     &value))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_fill(&argument, shape_of(shape), value);
    return finish(status, argument);
}

static PyObject *create_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "values", NULL};
    PyObject *shape, *values;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:create_argument", names, py.shape, &shape,
                                     &values))
        return NULL;
    const Py_ssize_t count = PySequence_Size(values);
    double *numbers = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(values, i);
        numbers[i] = item ? PyFloat_AsDouble(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            free(numbers);
            return NULL;
        }
    }
    migraphx_argument_t argument = NULL;
    const migraphx_status status =
        migraphx_argument_create_values(&argument, shape_of(shape), numbers, (size_t)count);
    free(numbers);
    return finish(status, argument);
}

static PyObject *argument_from_pointer(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "address", NULL};
    PyObject *shape, *address;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:argument_from_pointer", names, py.shape,
                                     &shape, &address))
        return NULL;
    void *data = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_create(&argument, shape_of(shape), data);
    return finish(status, argument);
}

PyMethodDef py_argument_functions[] = {
    {"generate_argument", (PyCFunction)(void (*)(void))generate_argument,
     METH_VARARGS | METH_KEYWORDS,
     "generate_argument(s, seed=0)\n\nReproducible pseudo-random values."},
    {"fill_argument", (PyCFunction)(void (*)(void))fill_argument, METH_VARARGS | METH_KEYWORDS,
     "fill_argument(s, value)"},
    {"create_argument", (PyCFunction)(void (*)(void))create_argument, METH_VARARGS | METH_KEYWORDS,
     "create_argument(s, values)\n\nOne value per element, row-major."},
    {"argument_from_pointer", (PyCFunction)(void (*)(void))argument_from_pointer,
     METH_VARARGS | METH_KEYWORDS,
     "argument_from_pointer(shape, address)\n\nBorrows memory at an address."},
    {NULL, NULL, 0, NULL}};
