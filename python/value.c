// SPDX-License-Identifier: MIT
// Python values as arguments and back, where a shape may say what is wanted.
//
//   in    an argument; an array (array.c); numbers, strings and nested lists of them, which take
//   the
//         wanted type; a list for a sequence, a tuple for a tuple; None for an absent optional, and
//         anything else for one that is there
//   out   a tensor stays an argument; a sequence becomes a list, a tuple of several members a
//         tuple, an optional its value or None
//
// Recursion follows nesting, which is bounded by the interpreter's own limit.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 64 };

static const_migraphx_argument_t handle_of(PyObject *argument)
{
    return ((struct py_argument *)argument)->handle;
}

bool py_is_argument(PyObject *value)
{
    return Py_TYPE(value) == (PyTypeObject *)py.argument;
}

// --- what is wanted ---

enum want { WANT_ANYTHING, WANT_TENSOR, WANT_SEQUENCE, WANT_TUPLE };

static enum want kind_of(const_migraphx_shape_t shape)
{
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (!shape || !OK(migraphx_shape_type(&type, shape)))
        return WANT_ANYTHING;
    if (type == migraphx_shape_tuple_type)
        return WANT_TUPLE;
    migraphx_type_name(&name, type);
    return strcmp(name, "sequence_type") == 0 ? WANT_SEQUENCE : WANT_TENSOR;
}

// The member shapes of a tuple, the element shape of a sequence; an empty list where there is none.
struct members {
    migraphx_shapes_t shapes;
    size_t count;
    bool sequence;
};

static int find_members(const_migraphx_shape_t want, struct members *out)
{
    *out = (struct members){.sequence = kind_of(want) == WANT_SEQUENCE};
    if (kind_of(want) < WANT_SEQUENCE)
        return 0;
    if (OK(migraphx_shape_sub_shapes(&out->shapes, want)) &&
        OK(migraphx_shapes_size(&out->count, out->shapes)))
        return 0;
    py_fail();
    return -1;
}

static const_migraphx_shape_t member_shape(const struct members *m, size_t i)
{
    const_migraphx_shape_t shape = NULL;
    if (m->sequence)
        i = 0;
    return i < m->count && OK(migraphx_shapes_get(&shape, m->shapes, i)) ? shape : NULL;
}

// --- groups ---

static PyObject *join(PyObject *arguments, bool sequence)
{
    const Py_ssize_t count = PyList_Size(arguments);
    const_migraphx_argument_t *handles = calloc((size_t)count + 1, sizeof *handles);
    migraphx_argument_t group = NULL;
    if (!handles)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        handles[i] = handle_of(PyList_GetItem(arguments, i));
    const migraphx_status status =
        migraphx_argument_create_group(&group, handles, (size_t)count, sequence);
    free(handles);
    return OK(status) ? py_wrap_argument(group, 0) : py_fail();
}

static PyObject *convert(PyObject *value, const_migraphx_shape_t want, int depth);

static PyObject *group_of(PyObject *items, const struct members *wanted, bool sequence, int depth)
{
    const Py_ssize_t count = PySequence_Size(items);
    PyObject *arguments = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; arguments && i < count; i++) {
        PyObject *item = PySequence_GetItem(items, i);
        PyObject *argument = item ? convert(item, member_shape(wanted, (size_t)i), depth) : NULL;
        if (item && !argument)
            py_prefix_error("member %zd", i);
        if (!argument || PyList_Append(arguments, argument) < 0)
            Py_CLEAR(arguments);
        Py_XDECREF(argument);
        Py_XDECREF(item);
    }
    PyObject *result = arguments ? join(arguments, sequence) : NULL;
    Py_XDECREF(arguments);
    return result;
}

// An optional that is there: a tuple of one.
static PyObject *present(PyObject *value, const struct members *wanted, int depth)
{
    PyObject *single = PyTuple_New(1);
    if (!single)
        return NULL;
    Py_INCREF(value);
    PyTuple_SetItem(single, 0, value);
    PyObject *result = group_of(single, wanted, false, depth);
    Py_DECREF(single);
    return result;
}

static bool is_list(PyObject *value)
{
    return PyList_Check(value) || PyTuple_Check(value);
}

static PyObject *to_tuple(PyObject *value, const_migraphx_shape_t want, int depth)
{
    struct members wanted;
    if (find_members(want, &wanted) < 0)
        return NULL;
    PyObject *none = value == Py_None ? PyTuple_New(0) : NULL;
    const bool whole = none || (PyTuple_Check(value) && wanted.count != 1);
    PyObject *result = whole ? group_of(none ? none : value, &wanted, false, depth)
                             : present(value, &wanted, depth);
    Py_XDECREF(none);
    migraphx_shapes_destroy(wanted.shapes);
    return result;
}

static PyObject *to_sequence(PyObject *value, const_migraphx_shape_t want, int depth)
{
    struct members wanted;
    if (!is_list(value)) {
        PyErr_Format(PyExc_TypeError, "a sequence is given as a list, not as %R", Py_TYPE(value));
        return NULL;
    }
    if (find_members(want, &wanted) < 0)
        return NULL;
    PyObject *result = group_of(value, &wanted, true, depth);
    migraphx_shapes_destroy(wanted.shapes);
    return result;
}

// --- in ---

// Is this a number or a text, or lists of such alone? Lists of arrays are sequences instead.
static bool is_nested(PyObject *value, int depth)
{
    if (is_list(value) && depth < MAX_NESTING) {
        if (PySequence_Size(value) == 0)
            return depth > 0;
        PyObject *first = PySequence_GetItem(value, 0);
        const bool yes = first && is_nested(first, depth + 1);
        Py_XDECREF(first);
        PyErr_Clear();
        return yes;
    }
    return py_is_number(value) || PyUnicode_Check(value) || (depth && PyBytes_Check(value));
}

// An argument where a sequence or an optional is wanted may be that already, or its only member.
static PyObject *convert_argument(PyObject *value, const_migraphx_shape_t want, int depth)
{
    const_migraphx_shape_t shape = NULL;
    if (kind_of(want) == WANT_TUPLE && OK(migraphx_argument_shape(&shape, handle_of(value))) &&
        kind_of(shape) != WANT_TUPLE)
        return to_tuple(value, want, depth);
    Py_INCREF(value);
    return value;
}

static PyObject *convert_free(PyObject *value, const_migraphx_shape_t want, int depth)
{
    const struct members any = {0};
    if (is_nested(value, 0) || (want && is_list(value)))
        return py_argument_from_nested(value, want);
    if (want && PyBytes_Check(value) && py_wants_strings(want))
        return py_argument_from_nested(value, want);
    if (is_list(value))
        return group_of(value, &any, PyList_Check(value), depth);
    if (value == Py_None && !want)
        return to_tuple(value, NULL, depth);
    return py_argument_from_array(value);
}

static PyObject *convert(PyObject *value, const_migraphx_shape_t want, int depth)
{
    if (depth > MAX_NESTING) {
        PyErr_SetString(PyExc_ValueError, "lists are nested too deeply");
        return NULL;
    }
    if (py_is_argument(value))
        return convert_argument(value, want, depth + 1);
    switch (kind_of(want)) {
    case WANT_TUPLE:
        return to_tuple(value, want, depth + 1);
    case WANT_SEQUENCE:
        return to_sequence(value, want, depth + 1);
    case WANT_TENSOR:
    case WANT_ANYTHING:
        break;
    }
    return convert_free(value, want, depth + 1);
}

PyObject *py_to_argument(PyObject *value, const_migraphx_shape_t want)
{
    return convert(value, want, 0);
}

PyObject *py_group(PyObject *items)
{
    const struct members any = {0};
    return group_of(items, &any, PyList_Check(items), 0);
}

// --- out ---

static PyObject *list_members(PyObject *argument, size_t count, bool tuple)
{
    PyObject *list = tuple ? PyTuple_New((Py_ssize_t)count) : PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_argument_t member;
        PyObject *copy = OK(migraphx_argument_member(&member, handle_of(argument), i))
                             ? py_copy_argument(member)
                             : py_fail();
        PyObject *item = copy ? py_from_argument(copy) : NULL;
        if (!item || (tuple ? PyTuple_SetItem(list, (Py_ssize_t)i, item)
                            : PyList_SetItem(list, (Py_ssize_t)i, item)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *py_from_argument(PyObject *take)
{
    const_migraphx_shape_t shape;
    size_t count = 0;
    PyObject *result = NULL;
    if (!OK(migraphx_argument_shape(&shape, handle_of(take)))) {
        Py_DECREF(take);
        return py_fail();
    }
    const enum want kind = kind_of(shape);
    if (kind < WANT_SEQUENCE)
        return take;
    if (!OK(migraphx_argument_members_size(&count, handle_of(take))))
        py_fail();
    else if (kind == WANT_SEQUENCE || count > 1)
        result = list_members(take, count, kind == WANT_TUPLE);
    else if (count == 0)
        Py_INCREF(result = Py_None);
    else if ((result = list_members(take, 1, false))) {
        PyObject *only = PyList_GetItem(result, 0);
        Py_INCREF(only);
        Py_DECREF(result);
        result = only;
    }
    Py_DECREF(take);
    return result;
}
