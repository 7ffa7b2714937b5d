// SPDX-License-Identifier: MIT
// program.run and run_async.
//
// What every run would look up again is in a plan, made at the first run of a compiled program: the
// names of parameters and results as Python strings, the wanted shapes, and lists of parameters
// that runs take and give back. A run then costs a lookup in the caller's dict, a buffer and an
// argument for each parameter, and an object for each result. The interpreter lock is released
// while the engine runs.
//
// Holds: what changes in a plan (spare lists, shapes last seen) changes under the interpreter lock
// alone, and nothing that may run Python code lies between a look and a change.
#include "plan.h"

#include <stdlib.h>
#include <string.h>

// --- plans ---

// The program's plan, with a reference of its own; kept once nothing can change any more.
static struct py_plan *find_plan(struct py_program *self)
{
    bool compiled = false;
    if (py_reach((PyObject *)self) < 0)
        return NULL;
    if (!self->plan) {
        struct py_plan *plan = py_plan_make((PyObject *)self);
        if (!plan || !OK(migraphx_program_is_compiled(&compiled, self->handle)) || !compiled)
            return plan;
        self->plan = plan;
    }
    self->plan->refs++;
    return self->plan;
}

// --- parameters ---

static migraphx_program_parameters_t take_list(struct py_plan *plan)
{
    migraphx_program_parameters_t params = NULL;
    if (plan->spare_count)
        return plan->spares[--plan->spare_count];
    if (!OK(migraphx_program_parameters_create(&params)))
        py_fail();
    return params;
}

static void give_list(struct py_plan *plan, migraphx_program_parameters_t params)
{
    enum { ROOM = sizeof plan->spares / sizeof *plan->spares };
    if (params && plan->spare_count < ROOM && OK(migraphx_program_parameters_clear(params)))
        plan->spares[plan->spare_count++] = params;
    else
        migraphx_program_parameters_destroy(params);
}

// Most values are arrays: asking for the buffer first spares looking at what they are.
static int add_value(struct py_slot *slot, PyObject *value, migraphx_program_parameters_t params)
{
    if (slot->tensor && !py_is_argument(value) && !PyList_Check(value) && value != Py_None) {
        const int added = py_add_buffer(params, slot->text, value, &slot->seen);
        if (added || PyErr_ExceptionMatches(PyExc_MemoryError))
            return added > 0 ? 0 : -1;
        PyErr_Clear();
    }
    PyObject *argument = py_to_argument(value, slot->want);
    if (!argument)
        return -1;
    const bool added = OK(migraphx_program_parameters_add(
        params, slot->text, ((struct py_argument *)argument)->handle));
    Py_DECREF(argument);
    if (!added)
        py_fail();
    return added ? 0 : -1;
}

// Says so in the engine's words; the engine does not see the names that no parameter has.
static void say_missing(const struct py_slot *slot, PyObject *dict)
{
    PyObject *key, *value, *text = PyUnicode_FromFormat("Parameter not found: %U", slot->name);
    Py_ssize_t at = 0;
    const char *between = "; given: ";
    while (text && PyDict_Next(dict, &at, &key, &value)) {
        PyObject *longer = PyUnicode_FromFormat("%U%s\"%S\"", text, between, key);
        Py_DECREF(text);
        text = longer;
        between = ", ";
    }
    if (text && !at)
        PyErr_Format(PyExc_RuntimeError, "%U; none was given", text);
    else if (text)
        PyErr_SetObject(PyExc_RuntimeError, text);
    Py_XDECREF(text);
}

static int add_slot(struct py_slot *slot, PyObject *dict, migraphx_program_parameters_t params)
{
    PyObject *value = PyDict_GetItemWithError(dict, slot->name);
    if (!value) {
        if (!PyErr_Occurred())
            say_missing(slot, dict);
        return -1;
    }
    Py_INCREF(value); // converting may run code that changes the dict
    const int status = add_value(slot, value, params);
    Py_DECREF(value);
    if (status < 0)
        py_prefix_error("parameter \"%U\"", slot->name);
    return status;
}

// Names that no parameter has are ignored, but they are names.
static int check_keys(PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value))
        if (!PyUnicode_Check(key)) {
            PyErr_Format(PyExc_TypeError, "run: parameter names must be str, not %R", Py_TYPE(key));
            return -1;
        }
    return 0;
}

static int add_slots(struct py_plan *plan, PyObject *dict, migraphx_program_parameters_t params)
{
    if ((size_t)PyDict_Size(dict) != plan->count && check_keys(dict) < 0)
        return -1;
    for (size_t i = 0; i < plan->count; i++)
        if (add_slot(&plan->slots[i], dict, params) < 0)
            return -1;
    if ((size_t)PyDict_Size(dict) <= plan->count || plan->told)
        return 0;
    plan->told = true;
    return py_warn_of_extras(plan, dict);
}

int py_add_parameters(PyObject *program, PyObject *dict, migraphx_program_parameters_t params)
{
    struct py_plan *plan = find_plan((struct py_program *)program);
    const int status = plan ? add_slots(plan, dict, params) : -1;
    py_plan_release(plan);
    return status;
}

// --- results ---

static PyObject *list_results(migraphx_arguments_t take, PyObject *names)
{
    size_t count = 0;
    migraphx_arguments_size(&count, take);
    PyObject *list = PyObject_CallFunctionObjArgs(py.results, NULL);
    for (size_t i = 0; list && i < count; i++) {
        migraphx_argument_t argument = NULL;
        PyObject *object = OK(migraphx_arguments_take(&argument, take, i))
                               ? py_wrap_argument(argument, 0)
                               : py_fail();
        PyObject *item = object ? py_from_argument(object) : NULL;
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    migraphx_arguments_destroy(take);
    if (list && PyObject_SetAttr(list, py.names, names) < 0)
        Py_CLEAR(list);
    return list;
}

static _Thread_local const struct py_stream *current_stream;

const struct py_stream *py_current_stream(void)
{
    return current_stream;
}

// Arrays of a card are asked to be ready on the stream.
static int add_slots_for(const struct py_stream *stream, struct py_plan *plan, PyObject *dict,
                         migraphx_program_parameters_t params)
{
    const struct py_stream *before = current_stream;
    current_stream = stream;
    const int status = add_slots(plan, dict, params);
    current_stream = before;
    return status;
}

static PyObject *run_planned(struct py_program *self, struct py_plan *plan, PyObject *dict,
                             void *stream, const char *stream_name)
{
    const struct py_stream on = {stream};
    migraphx_program_parameters_t params = take_list(plan);
    migraphx_arguments_t results = NULL;
    PyObject *list = NULL;
    if (params && add_slots_for(stream_name ? &on : NULL, plan, dict, params) == 0) {
        const migraphx_program_t program = self->handle;
        migraphx_status status;
        PY_WORK(status, stream_name ? migraphx_program_run_async(&results, program, params, stream,
                                                                 stream_name)
                                    : migraphx_program_run(&results, program, params));
        if (!OK(status))
            migraphx_arguments_destroy(results);
        list = OK(status) ? list_results(results, plan->names) : py_fail();
        if (!list)
            py_advise(plan, dict);
    }
    give_list(plan, params);
    return list;
}

// Who forgets to compile sees right results, late.
static int tell_uncompiled(struct py_program *self)
{
    if (self->plan || self->told)
        return 0;
    self->told = true;
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "the program is not compiled: the reference runs it, slowly; "
                            "compile(\"cpu\") or compile(\"gpu\") comes first");
}

PyObject *py_program_run(PyObject *self, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords)
{
    struct py_program *p = (struct py_program *)self;
    struct py_plan *plan = find_plan(p);
    PyObject *dict = plan ? py_inputs(plan, args, count, keywords) : NULL, *list = NULL;
    if (dict && tell_uncompiled(p) == 0)
        list = run_planned(p, plan, dict, NULL, NULL);
    Py_XDECREF(dict);
    py_plan_release(plan);
    return list;
}

// program(...): the arguments in a tuple, keywords in a dict.
PyObject *py_program_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *run = PyObject_GetAttrString(self, "run");
    PyObject *list = run ? PyObject_Call(run, args, keywords) : NULL;
    Py_XDECREF(run);
    return list;
}

PyObject *py_program_run_async(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"params", "stream", "stream_name", NULL};
    PyObject *dict, *stream, *list = NULL;
    const char *stream_name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOs:run_async", names, &dict, &stream,
                                     &stream_name))
        return NULL;
    void *pointer = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred())
        return NULL;
    if (!PyDict_Check(dict))
        return PyErr_Format(PyExc_TypeError,
                            "run_async() takes a dict from the parameters' names to their values, "
                            "not %R",
                            Py_TYPE(dict));
    struct py_plan *plan = find_plan((struct py_program *)self);
    if (plan && tell_uncompiled((struct py_program *)self) == 0)
        list = run_planned((struct py_program *)self, plan, dict, pointer, stream_name);
    py_plan_release(plan);
    return list;
}

// --- the list of results ---

// Position of a name; -1 with KeyError set.
static Py_ssize_t find_name(PyObject *self, PyObject *name)
{
    PyObject *names = PyObject_GetAttr(self, py.names);
    const Py_ssize_t count = names && PyTuple_Check(names) ? PyTuple_Size(names) : 0;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    Py_ssize_t found = -1;
    for (Py_ssize_t i = 0; text && found < 0 && i < count; i++) {
        const char *other = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
        if (other && strcmp(other, text) == 0)
            found = i;
    }
    if (found < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_KeyError, "no result is named %R; the names are %R", name, names);
    Py_XDECREF(names);
    return found;
}

static PyObject *get_item(PyObject *self, PyObject *key)
{
    if (!PyUnicode_Check(key))
        return PyObject_CallMethod((PyObject *)&PyList_Type, "__getitem__", "OO", self, key);
    const Py_ssize_t at = find_name(self, key);
    PyObject *item = at < 0 ? NULL : PyList_GetItem(self, at);
    Py_XINCREF(item);
    return item;
}

// A list with a place for names: made by calling `type`, for the layout of lists is not in the
// stable ABI.
PyObject *py_make_results_type(PyObject *module)
{
    static PyMethodDef subscript = {
        "__getitem__", get_item, METH_O,
        "__getitem__($self, key, /)\n--\n\nA result by position or by the model's name."};
    py.names = PyUnicode_InternFromString("names");
    PyObject *type =
        py.names ? PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s(O)ssss}", "results",
                                         &PyList_Type, "__slots__", py.names, "__module__",
                                         "migraphx", "__doc__",
                                         "The results of a run: a list that the model's names of "
                                         "the results index too.\n\nnames: those names, a tuple")
                 : NULL;
    PyObject *method = type ? PyDescr_NewMethod((PyTypeObject *)type, &subscript) : NULL;
    if (!method || PyObject_SetAttrString(type, "__getitem__", method) < 0)
        Py_CLEAR(type);
    Py_XDECREF(method);
    if (type) {
        Py_INCREF(type); // the module's reference
        if (PyModule_AddObject(module, "results", type) < 0) {
            Py_DECREF(type);
            Py_CLEAR(type);
        }
    }
    return type;
}
