// SPDX-License-Identifier: MIT
// migraphx.target: what compiles and runs programs. Wherever one is taken its name will do.
#include "pymgx.h"

#include <string.h>

static const char *name_of(PyObject *self)
{
    const char *name = "";
    migraphx_target_name(&name, ((struct py_target *)self)->handle);
    return name;
}

static PyObject *make(const char *name)
{
    migraphx_target_t target = NULL;
    if (!OK(migraphx_target_create(&target, name)))
        return py_fail();
    struct py_target *self = py_new(py.target);
    if (self)
        self->handle = target;
    else
        migraphx_target_destroy(target);
    return (PyObject *)self;
}

PyObject *py_to_target(PyObject *value)
{
    if (PyUnicode_Check(value)) {
        const char *name = PyUnicode_AsUTF8AndSize(value, NULL);
        return name ? make(name) : NULL;
    }
    if (PyObject_IsInstance(value, py.target) == 1) {
        Py_INCREF(value);
        return value;
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "a target or the name of one is wanted, not %R",
                     Py_TYPE(value));
    return NULL;
}

// --- module functions ---

static PyObject *get_target(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", NULL};
    const char *name;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s:get_target", names, &name))
        return NULL;
    return make(name);
}

static PyObject *get_targets(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    size_t count;
    if (!OK(migraphx_get_targets_size(&count)))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const char *name;
        PyObject *item = OK(migraphx_get_target_name_at_index(&name, i))
                             ? PyUnicode_FromString(name)
                             : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyMethodDef py_target_functions[] = {
    {"get_target", WITH_KEYWORDS(get_target),
     "get_target($module, /, name)\n--\n\n"
     "The target of a name: \"cpu\" is the fast one, \"gpu\" runs on a card, \"ref\" is the\n"
     "plain one that says what programs mean."},
    {"get_targets", get_targets, METH_NOARGS,
     "get_targets($module, /)\n--\n\nNames of the targets that there are."},
    {NULL, NULL, 0, NULL}};

// --- the type ---

static PyObject *target_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    return get_target(NULL, args, kwargs);
}

static void target_dealloc(PyObject *self)
{
    migraphx_target_destroy(((struct py_target *)self)->handle);
    py_free(self);
}

static PyObject *target_repr(PyObject *self)
{
    return PyUnicode_FromString(name_of(self));
}

static Py_hash_t target_hash(PyObject *self)
{
    return py_hash_text(target_repr(self));
}

static PyObject *target_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.target, op);
    return no ? no : py_compared(op, strcmp(name_of(a), name_of(b)) == 0);
}

static PyObject *target_getnewargs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(s)", name_of(self));
}

PyObject *py_make_target_type(PyObject *module)
{
    static PyMethodDef methods[] = {{"__getnewargs__", target_getnewargs, METH_NOARGS,
                                     "__getnewargs__($self, /)\n--\n\nFor pickling."},
                                    {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)target_new},
        {Py_tp_dealloc, (void *)target_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)target_repr},
        {Py_tp_hash, (void *)target_hash},
        {Py_tp_richcompare, (void *)target_compare},
        {Py_tp_doc, "target(name)\n--\n\nWhat compiles and runs programs; see get_target."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.target", sizeof(struct py_target), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}
