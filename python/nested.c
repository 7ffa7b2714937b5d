// SPDX-License-Identifier: MIT
// Numbers, strings and nested lists of them as tensors, without numpy.
//
// The lists are walked twice: for the lengths and the kind of what is in them, then for the values.
// Without a wanted type, texts make string_type, booleans bool_type, integers int64_type and
// numbers float_type.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

// What the leaves are; a mixture is the widest of them, and texts mix with nothing.
enum leaf { LEAF_NONE, LEAF_BOOL, LEAF_INT, LEAF_FLOAT, LEAF_TEXT };

struct nested {
    size_t lens[MAX_RANK];
    int rank; // -1: not known yet
    enum leaf leaf;
    size_t count, at; // of leaves; the next one
    int64_t *integers;
    double *reals;
    PyObject *texts; // list of bytes
};

bool py_is_number(PyObject *value)
{
    return PyLong_Check(value) || PyFloat_Check(value) || PyBool_Check(value) ||
           (!PyList_Check(value) && !PyTuple_Check(value) && !PyUnicode_Check(value) &&
            PyIndex_Check(value) && !PyObject_HasAttrString(value, "shape"));
}

static enum leaf leaf_of(PyObject *value)
{
    if (PyUnicode_Check(value) || PyBytes_Check(value))
        return LEAF_TEXT;
    if (PyBool_Check(value))
        return LEAF_BOOL;
    if (PyFloat_Check(value))
        return LEAF_FLOAT;
    if (PyLong_Check(value) || PyIndex_Check(value))
        return LEAF_INT;
    return PyObject_HasAttrString(value, "__float__") ? LEAF_FLOAT : LEAF_NONE;
}

static int wrong(const char *what, PyObject *value)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s, not %R", what, Py_TYPE(value));
    return -1;
}

// --- the first walk ---

static int measure(struct nested *n, PyObject *value, int depth);

static int measure_list(struct nested *n, PyObject *list, int depth)
{
    const Py_ssize_t length = PySequence_Size(list);
    if (length < 0)
        return -1;
    if (depth == MAX_RANK || (n->rank >= 0 && depth >= n->rank)) {
        PyErr_Format(PyExc_ValueError, "a list lies %d deep where numbers or fewer lists belong",
                     depth + 1);
        return -1;
    }
    if (n->lens[depth] == SIZE_MAX)
        n->lens[depth] = (size_t)length;
    if (n->lens[depth] != (size_t)length) {
        PyErr_Format(PyExc_ValueError, "lists of one depth have lengths %zu and %zd",
                     n->lens[depth], length);
        return -1;
    }
    if (length == 0 && n->rank < 0)
        n->rank = depth + 1;
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        const int status = item ? measure(n, item, depth + 1) : -1;
        Py_XDECREF(item);
        if (status < 0)
            return -1;
    }
    return 0;
}

static int measure(struct nested *n, PyObject *value, int depth)
{
    if (PyList_Check(value) || PyTuple_Check(value))
        return measure_list(n, value, depth);
    if (n->rank < 0)
        n->rank = depth;
    if (n->rank != depth) {
        PyErr_Format(PyExc_ValueError, "values lie %d and %d lists deep", n->rank, depth);
        return -1;
    }
    const enum leaf leaf = leaf_of(value);
    if (leaf == LEAF_NONE)
        return wrong("a list for a tensor holds numbers or strings", value);
    if (n->leaf != LEAF_NONE && (n->leaf == LEAF_TEXT) != (leaf == LEAF_TEXT))
        return wrong("a list holds numbers or strings alone", value);
    n->leaf = leaf > n->leaf ? leaf : n->leaf;
    n->count++;
    return 0;
}

// --- the second walk ---

static int take_text(struct nested *n, PyObject *value)
{
    PyObject *bytes = NULL;
    if (PyUnicode_Check(value))
        bytes = PyUnicode_AsUTF8String(value);
    else if (PyBytes_Check(value))
        Py_INCREF(bytes = value);
    const int status =
        bytes ? PyList_Append(n->texts, bytes) : wrong("a string_type tensor holds strings", value);
    Py_XDECREF(bytes);
    return status;
}

static int take_integer(struct nested *n, PyObject *value)
{
    PyObject *number = PyNumber_Index(value);
    const long long integer = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    n->integers[n->at] = integer;
    return integer == -1 && PyErr_Occurred() ? -1 : 0;
}

static int take(struct nested *n, PyObject *value)
{
    if (n->at >= n->count)
        return wrong("a list changed while it was read", value);
    int status = 0;
    if (n->texts)
        status = take_text(n, value);
    else if (n->integers)
        status = take_integer(n, value);
    else
        n->reals[n->at] = PyFloat_AsDouble(value);
    n->at++;
    return PyErr_Occurred() ? -1 : status;
}

static int collect(struct nested *n, PyObject *value, int depth)
{
    if (depth == n->rank)
        return take(n, value);
    const Py_ssize_t length = PySequence_Size(value);
    if (length < 0 || (size_t)length != n->lens[depth])
        return wrong("a list changed while it was read", value);
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        const int status = item ? collect(n, item, depth + 1) : -1;
        Py_XDECREF(item);
        if (status < 0)
            return -1;
    }
    return 0;
}

// --- both ---

static int room(struct nested *n)
{
    if (n->leaf == LEAF_TEXT)
        n->texts = PyList_New(0);
    else if (n->leaf == LEAF_FLOAT)
        n->reals = calloc(n->count + 1, sizeof *n->reals);
    else
        n->integers = calloc(n->count + 1, sizeof *n->integers);
    if (n->texts || n->reals || n->integers)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

static migraphx_status find_type(const struct nested *n, const_migraphx_shape_t want,
                                 migraphx_shape_datatype_t *out)
{
    static const char *const names[] = {"float_type", "bool_type", "int64_type", "float_type",
                                        "string_type"};
    return want ? migraphx_shape_type(out, want) : migraphx_type_find(out, names[n->leaf]);
}

static PyObject *make(const struct nested *n, migraphx_shape_datatype_t type)
{
    if (n->texts)
        return py_argument_of_strings(n->texts, n->lens, (size_t)n->rank);
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    migraphx_status status =
        migraphx_shape_create(&shape, type, (size_t *)n->lens, (size_t)n->rank);
    if (OK(status) && n->integers)
        status = migraphx_argument_create_integers(&argument, shape, n->integers, n->count);
    else if (OK(status))
        status = migraphx_argument_create_values(&argument, shape, n->reals, n->count);
    migraphx_shape_destroy(shape);
    return OK(status) ? py_wrap_argument(argument, 0) : py_fail();
}

bool py_wants_strings(const_migraphx_shape_t want)
{
    migraphx_shape_datatype_t type;
    const char *name = "";
    return OK(migraphx_shape_type(&type, want)) && OK(migraphx_type_name(&name, type)) &&
           strcmp(name, "string_type") == 0;
}

PyObject *py_argument_from_nested(PyObject *value, const_migraphx_shape_t want)
{
    struct nested n = {.rank = -1};
    migraphx_shape_datatype_t type;
    for (int i = 0; i < MAX_RANK; i++)
        n.lens[i] = SIZE_MAX;
    if (measure(&n, value, 0) < 0)
        return NULL;
    if (want && n.leaf != LEAF_NONE && py_wants_strings(want) != (n.leaf == LEAF_TEXT)) {
        PyErr_SetString(PyExc_TypeError, n.leaf == LEAF_TEXT ? "numbers are wanted, not strings"
                                                             : "strings are wanted, not numbers");
        return NULL;
    }
    if (n.count == 0 && want && py_wants_strings(want))
        n.leaf = LEAF_TEXT;
    PyObject *result = NULL;
    if (!OK(find_type(&n, want, &type)))
        py_fail();
    else if (room(&n) == 0 && collect(&n, value, 0) == 0)
        result = make(&n, type);
    Py_XDECREF(n.texts);
    free(n.integers);
    free(n.reals);
    return result;
}
