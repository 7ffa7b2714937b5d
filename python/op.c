// SPDX-License-Identifier: MIT
// migraphx.op: an operator and its attributes; Python values as relaxed JSON.
#include "pymgx.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_VALUES = 1 << 20 }; // of one list

// --- JSON: `parts` is a list of str that is joined at the end ---

static int put(PyObject *parts, const char *text)
{
    PyObject *part = PyUnicode_FromString(text);
    const int result = part ? PyList_Append(parts, part) : -1;
    Py_XDECREF(part);
    return result;
}

static int put_value(PyObject *parts, PyObject *value, int depth);

static int put_string(PyObject *parts, PyObject *value)
{
    PyObject *json = PyImport_ImportModule("json");
    PyObject *text = json ? PyObject_CallMethod(json, "dumps", "O", value) : NULL;
    const int result = text ? PyList_Append(parts, text) : -1;
    Py_XDECREF(text);
    Py_XDECREF(json);
    return result;
}

static int put_number(PyObject *parts, PyObject *value)
{
    const double number = PyFloat_AsDouble(value);
    char text[32];
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (isnan(number))
        return put(parts, "nan");
    if (isinf(number))
        return put(parts, number > 0 ? "inf" : "-inf");
    snprintf(text, sizeof text, "%.17g", number);
    return put(parts, text);
}

static int put_integer(PyObject *parts, PyObject *value)
{
    char text[32];
    const long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    snprintf(text, sizeof text, "%lld", number);
    return put(parts, text);
}

static int put_list(PyObject *parts, PyObject *value, int depth)
{
    const Py_ssize_t count = PySequence_Size(value);
    if (count > MAX_VALUES)
        PyErr_Format(PyExc_ValueError, "op: an attribute of %zd values is too long", count);
    int result = count < 0 || count > MAX_VALUES ? -1 : put(parts, "[");
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        result = item ? (i ? put(parts, ", ") : 0) : -1;
        if (result == 0)
            result = put_value(parts, item, depth + 1);
        Py_XDECREF(item);
    }
    return result == 0 ? put(parts, "]") : -1;
}

static int put_dict(PyObject *parts, PyObject *value, int depth)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;
    int result = put(parts, "{"), first = 1;
    while (result == 0 && PyDict_Next(value, &at, &key, &item)) {
        result = first ? 0 : put(parts, ", ");
        first = 0;
        if (result == 0)
            result = put_string(parts, key);
        if (result == 0)
            result = put(parts, ": ");
        if (result == 0)
            result = put_value(parts, item, depth + 1);
    }
    return result == 0 ? put(parts, "}") : -1;
}

static int put_dim(PyObject *parts, PyObject *value)
{
    size_t min, max, count;
    const size_t *optimals;
    char text[96];
    const migraphx_dynamic_dimension_t dim = ((struct py_dim *)value)->handle;
    if (!OK(migraphx_dynamic_dimension_range(&min, &max, dim)) ||
        !OK(migraphx_dynamic_dimension_optimals(&optimals, &count, dim))) {
        py_fail();
        return -1;
    }
    snprintf(text, sizeof text, "{\"min\": %zu, \"max\": %zu, \"optimals\": [", min, max);
    int result = put(parts, text);
    for (size_t i = 0; result == 0 && i < count; i++) {
        snprintf(text, sizeof text, "%s%zu", i ? ", " : "", optimals[i]);
        result = put(parts, text);
    }
    return result == 0 ? put(parts, "]}") : -1;
}

// Modes go by name; element types are the numbers they are.
static int put_enum_name(PyObject *parts, PyObject *value)
{
    PyObject *name = PyObject_GetAttrString(value, "name");
    const int result = name ? put_string(parts, name) : -1;
    Py_XDECREF(name);
    return result;
}

static int put_value(PyObject *parts, PyObject *value, int depth)
{
    if (depth > MAX_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "op: attributes are nested too deeply");
        return -1;
    }
    if (value == Py_None)
        return put(parts, "null");
    if (PyBool_Check(value))
        return put(parts, value == Py_True ? "true" : "false");
    if (PyObject_IsInstance(value, py.pooling_mode) == 1 ||
        PyObject_IsInstance(value, py.rnn_direction) == 1)
        return put_enum_name(parts, value);
    if (PyObject_IsInstance(value, py.dim) == 1)
        return put_dim(parts, value);
    if (PyUnicode_Check(value))
        return put_string(parts, value);
    if (PyLong_Check(value))
        return put_integer(parts, value);
    if (PyDict_Check(value))
        return put_dict(parts, value, depth);
    if (PyFloat_Check(value))
        return put_number(parts, value);
    if (PySequence_Check(value))
        return put_list(parts, value, depth);
    if (PyIndex_Check(value)) { // numpy integers
        PyObject *number = PyNumber_Index(value);
        const int result = number ? put_integer(parts, number) : -1;
        Py_XDECREF(number);
        return result;
    }
    return put_number(parts, value);
}

PyObject *py_json(PyObject *dict)
{
    PyObject *parts = PyList_New(0);
    PyObject *empty = PyUnicode_FromString("");
    PyObject *result = NULL;
    if (parts && empty && put_value(parts, dict, 0) == 0)
        result = PyUnicode_Join(empty, parts);
    Py_XDECREF(empty);
    Py_XDECREF(parts);
    return result;
}

// --- the type ---

static PyObject *op_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *name;
    (void)type;
    if (!PyArg_ParseTuple(args, "s:op", &name))
        return NULL;
    PyObject *text = kwargs && PyDict_Size(kwargs) ? py_json(kwargs) : NULL;
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    Py_XDECREF(text);
    if (PyErr_Occurred()) {
        Py_XDECREF(bytes);
        return NULL;
    }
    migraphx_operation_t op = NULL;
    const migraphx_status status =
        migraphx_operation_create_json(&op, name, bytes ? PyBytes_AsString(bytes) : NULL);
    Py_XDECREF(bytes);
    return OK(status) ? py_wrap_op(op) : py_fail();
}

static void op_dealloc(PyObject *self)
{
    migraphx_operation_destroy(((struct py_op *)self)->handle);
    py_free(self);
}

static PyObject *op_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    char name[256];
    if (!OK(migraphx_operation_name(name, sizeof name, ((struct py_op *)self)->handle)))
        return py_fail();
    return PyUnicode_FromString(name);
}

static PyObject *op_values(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text;
    if (!OK(migraphx_operation_attributes(&text, ((struct py_op *)self)->handle)))
        return py_fail();
    PyObject *json = py_take_text(text);
    PyObject *result = json ? PyObject_CallFunctionObjArgs(py.loads, json, NULL) : NULL;
    Py_XDECREF(json);
    return result;
}

static PyObject *op_repr(PyObject *self)
{
    char *text;
    return OK(migraphx_operation_to_string(&text, ((struct py_op *)self)->handle))
               ? py_take_text(text)
               : py_fail();
}

static PyObject *op_getnewargs(PyObject *self, PyObject *unused)
{
    PyObject *values = op_values(self, unused), *name = values ? op_name(self, unused) : NULL;
    PyObject *result = name ? Py_BuildValue("(O)O", name, values) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(values);
    return result;
}

static Py_hash_t op_hash(PyObject *self)
{
    return py_hash_text(op_repr(self));
}

// Equal ones print alike: the name and all attributes.
static PyObject *op_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.op, op);
    if (no)
        return no;
    PyObject *left = op_repr(a), *right = left ? op_repr(b) : NULL;
    const char *l = left ? PyUnicode_AsUTF8AndSize(left, NULL) : NULL;
    const char *r = right ? PyUnicode_AsUTF8AndSize(right, NULL) : NULL;
    PyObject *result = l && r ? py_compared(op, strcmp(l, r) == 0) : NULL;
    Py_XDECREF(right);
    Py_XDECREF(left);
    return result;
}

static PyObject *make_mode(const char *name, const char *qualname, const char *doc,
                           const char *const *values)
{
    PyObject *members = PyList_New(0);
    for (int i = 0; members && values[i]; i++) {
        PyObject *pair = Py_BuildValue("(si)", values[i], i);
        if (!pair || PyList_Append(members, pair) < 0)
            Py_CLEAR(members);
        Py_XDECREF(pair);
    }
    PyObject *result = members ? py_make_enum(name, qualname, doc, members) : NULL;
    Py_XDECREF(members);
    return result;
}

PyObject *py_make_op_type(PyObject *module)
{
    static const char *const pooling[] = {"average", "max", "lpnorm", NULL};
    static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
    static PyMethodDef methods[] = {
        {"name", op_name, METH_NOARGS, "name($self, /)\n--\n\nThe operator's name."},
        {"values", op_values, METH_NOARGS, "values($self, /)\n--\n\nAll attributes as a dict."},
        {"__getnewargs_ex__", op_getnewargs, METH_NOARGS,
         "__getnewargs_ex__($self, /)\n--\n\nFor pickling and copying."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)op_new},
        {Py_tp_dealloc, (void *)op_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)op_repr},
        {Py_tp_hash, (void *)op_hash},
        {Py_tp_richcompare, (void *)op_compare},
        {Py_tp_doc,
         "op(name, /, **kwargs)\n--\n\nAn operator with its attributes: op(\"concat\", axis=1)."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.op", sizeof(struct py_op), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *type = py_add_type(module, &spec);
    py.pooling_mode = type ? make_mode("pooling_mode", "op.pooling_mode",
                                       "What pooling makes of a window.", pooling)
                           : NULL;
    py.rnn_direction = py.pooling_mode
                           ? make_mode("rnn_direction", "op.rnn_direction",
                                       "How recurrent operators walk a sequence.", directions)
                           : NULL;
    if (!py.rnn_direction || PyObject_SetAttrString(type, "pooling_mode", py.pooling_mode) < 0 ||
        PyObject_SetAttrString(type, "rnn_direction", py.rnn_direction) < 0)
        return NULL;
    return type;
}
