// SPDX-License-Identifier: MIT
// The forms in which a program is given its inputs, and what is said of wrong ones.
//
//     run({"x": a, "y": b})     a dict, as in MIGraphX; names that the program has not are ignored
//                               there, so here they only bring a warning
//     run(a, b)   run([a, b])   in the order of get_parameter_names
//     run(x=a, y=b)   run(a, y=b)   by name; a name that the program has not is refused
//
// A single list is the list of inputs where there are several, or where it holds the one array; else
// it is the value of the one input. Cost beside a dict's: a dict.
#include "pymgx.h"

#include <string.h>

// --- names that are nearly right ---

// "; did you mean \"input\"?", or "". NULL with an exception.
static PyObject *near_name(PyObject *name, PyObject *names)
{
    PyObject *module = PyImport_ImportModule("difflib");
    PyObject *near =
        module ? PyObject_CallMethod(module, "get_close_matches", "OOi", name, names, 1) : NULL;
    PyObject *text = NULL;
    if (near && PyList_Size(near) > 0)
        text = PyUnicode_FromFormat("; did you mean \"%S\"?", PyList_GetItem(near, 0));
    else if (near)
        text = PyUnicode_FromString("");
    Py_XDECREF(near);
    Py_XDECREF(module);
    return text;
}

static PyObject *names_of(const struct py_plan *plan)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < py_plan_count(plan); i++)
        if (PyList_Append(list, py_plan_name(plan, i)) < 0)
            Py_CLEAR(list);
    return list;
}

static bool has_name(const struct py_plan *plan, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    PyErr_Clear(); // lone surrogates are no name
    for (size_t i = 0; text && i < py_plan_count(plan); i++)
        if (strcmp(PyUnicode_AsUTF8AndSize(py_plan_name(plan, i), NULL), text) == 0)
            return true;
    return false;
}

int py_warn_of_extras(const struct py_plan *plan, PyObject *dict)
{
    PyObject *key, *value, *names = names_of(plan);
    Py_ssize_t at = 0;
    int status = names ? 0 : -1;
    while (status == 0 && PyDict_Next(dict, &at, &key, &value)) {
        if (has_name(plan, key))
            continue;
        Py_INCREF(key); // a filter of warnings may run anything
        PyObject *near = near_name(key, names);
        status =
            near ? PyErr_WarnFormat(PyExc_UserWarning, 1,
                                    "the program has no input \"%S\": it is ignored%U", key, near)
                 : -1;
        Py_XDECREF(near);
        Py_DECREF(key);
        break; // one is enough to look at the call
    }
    Py_XDECREF(names);
    return status;
}

static int refuse_name(const struct py_plan *plan, PyObject *name)
{
    PyObject *names = names_of(plan), *near = names ? near_name(name, names) : NULL;
    if (near)
        PyErr_Format(PyExc_TypeError,
                     "run() got \"%U\", and the program has no such input; it has %R%U", name,
                     names, near);
    Py_XDECREF(near);
    Py_XDECREF(names);
    return -1;
}

// --- by position ---

static bool is_list(PyObject *value)
{
    return PyList_Check(value) || PyTuple_Check(value);
}

// Is this the list of all inputs, not the value of one?
static bool is_list_of_inputs(const struct py_plan *plan, PyObject *value)
{
    if (!is_list(value) || py_plan_count(plan) != 1)
        return is_list(value);
    PyObject *only = PySequence_Size(value) == 1 ? PySequence_GetItem(value, 0) : NULL;
    const bool yes = only && py_plan_is_tensor(plan, 0) && !is_list(only) && !py_is_number(only) &&
                     !PyUnicode_Check(only) && !PyBytes_Check(only);
    Py_XDECREF(only);
    PyErr_Clear();
    return yes;
}

static int refuse_count(const struct py_plan *plan, Py_ssize_t count)
{
    PyObject *names = names_of(plan);
    if (names)
        PyErr_Format(PyExc_TypeError,
                     "run() takes a dict from the parameters' names to their values, or its %zu "
                     "input%s in this order: %R; %zd given",
                     py_plan_count(plan), py_plan_count(plan) == 1 ? "" : "s", names, count);
    Py_XDECREF(names);
    return -1;
}

static int put_positional(const struct py_plan *plan, PyObject *const *args, Py_ssize_t count,
                          bool all, PyObject *dict)
{
    PyObject *list =
        count == 1 && is_list_of_inputs(plan, args[0]) ? PySequence_List(args[0]) : NULL;
    const Py_ssize_t given = list ? PyList_Size(list) : count;
    int status = PyErr_Occurred() ? -1 : 0;
    if (status == 0 &&
        ((size_t)given > py_plan_count(plan) || (all && (size_t)given < py_plan_count(plan))))
        status = refuse_count(plan, given);
    for (Py_ssize_t i = 0; status == 0 && i < given; i++)
        status = PyDict_SetItem(dict, py_plan_name(plan, (size_t)i),
                                list ? PyList_GetItem(list, i) : args[i]);
    Py_XDECREF(list);
    return status;
}

// --- by name ---

static int put_named(const struct py_plan *plan, PyObject *const *args, PyObject *keywords,
                     PyObject *dict)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(keywords); i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        if (!has_name(plan, name))
            return refuse_name(plan, name);
        if (PyDict_GetItemWithError(dict, name)) {
            PyErr_Format(PyExc_TypeError, "run() got \"%U\" twice, by position and by name", name);
            return -1;
        }
        if (PyDict_SetItem(dict, name, args[i]) < 0)
            return -1;
    }
    return 0;
}

PyObject *py_inputs(const struct py_plan *plan, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords)
{
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    const bool by_params =
        count == 0 && named == 1 && PyDict_Check(args[0]) &&
        PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "params") == 0;
    if (by_params || (count == 1 && named == 0 && PyDict_Check(args[0]))) {
        Py_INCREF(args[0]);
        return args[0];
    }
    PyObject *dict = PyDict_New();
    if (dict && (put_positional(plan, args, count, named == 0, dict) < 0 ||
                 (named && put_named(plan, args + count, keywords, dict) < 0)))
        Py_CLEAR(dict);
    return dict;
}

// --- values of another type ---

static bool is_torch(PyObject *value)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__module__");
    const char *text =
        module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    const bool yes = text && strncmp(text, "torch", 5) == 0;
    Py_XDECREF(module);
    PyErr_Clear();
    return yes;
}

// The call that gives a value the type that is wanted.
static PyObject *conversion(PyObject *value, PyObject *name, const_migraphx_shape_t want)
{
    migraphx_shape_datatype_t type;
    if (!OK(migraphx_shape_type(&type, want)))
        return py_fail();
    const char *dtype = py_dtype_name(type);
    if (is_torch(value))
        return PyUnicode_FromFormat("%U.to(torch.%s)", name, dtype);
    const bool narrow = strncmp(dtype, "bfloat", 6) == 0 || strncmp(dtype, "float8", 6) == 0;
    return PyUnicode_FromFormat(narrow ? "%U%s.astype(ml_dtypes.%s)" : "%U%s.astype(\"%s\")", name,
                                py_is_argument(value) ? ".numpy()" : "", dtype);
}

static bool differs(PyObject *value, const_migraphx_shape_t want)
{
    PyObject *argument = py_to_argument(value, want);
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t is, wanted;
    const bool yes =
        argument && OK(migraphx_argument_shape(&shape, ((struct py_argument *)argument)->handle)) &&
        OK(migraphx_shape_type(&is, shape)) && OK(migraphx_shape_type(&wanted, want)) &&
        is != wanted;
    Py_XDECREF(argument);
    PyErr_Clear();
    return yes;
}

void py_advise(const struct py_plan *plan, PyObject *dict)
{
    PyObject *type, *value, *trace, *advice = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    for (size_t i = 0;
         said && strstr(said, "convert them before the run") && !advice && i < py_plan_count(plan);
         i++) {
        PyObject *given = PyDict_GetItemWithError(dict, py_plan_name(plan, i));
        if (given && differs(given, py_plan_want(plan, i)))
            advice = conversion(given, py_plan_name(plan, i), py_plan_want(plan, i));
    }
    if (advice)
        PyErr_Format(type, "%U, as in %U", text, advice);
    else
        PyErr_Restore(type, value, trace);
    if (advice) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    Py_XDECREF(advice);
    Py_XDECREF(text);
}
