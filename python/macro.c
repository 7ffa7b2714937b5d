// SPDX-License-Identifier: MIT
// migraphx.macro: a name and options that stand for several instructions; module.add_macro and
// insert_macro take it.
#include "pymgx.h"

static const_migraphx_macro_t of(PyObject *self)
{
    return ((struct py_macro *)self)->handle;
}

static PyObject *macro_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *name;
    (void)type;
    if (!PyArg_ParseTuple(args, "s:macro", &name))
        return NULL;
    PyObject *given = PyDict_New();
    PyObject *done = given && kwargs ? PyObject_CallMethod(given, "update", "O", kwargs) : NULL;
    PyObject *text = given && (done || !kwargs) ? py_json(given) : NULL;
    const char *options = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    migraphx_macro_t macro = NULL;
    struct py_macro *self = NULL;
    if (options && !OK(migraphx_macro_create(&macro, name, options)))
        py_fail();
    if (macro && !(self = py_new(py.macro)))
        migraphx_macro_destroy(macro);
    if (self) {
        self->handle = macro;
        Py_INCREF(self->given = given);
    }
    Py_XDECREF(text);
    Py_XDECREF(done);
    Py_XDECREF(given);
    return (PyObject *)self;
}

static void macro_dealloc(PyObject *self)
{
    migraphx_macro_destroy(((struct py_macro *)self)->handle);
    Py_XDECREF(((struct py_macro *)self)->given);
    py_free(self);
}

static PyObject *macro_name(PyObject *self, PyObject *unused)
{
    const char *name;
    (void)unused;
    return OK(migraphx_macro_name(&name, of(self))) ? PyUnicode_FromString(name) : py_fail();
}

static PyObject *macro_options(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_CallMethod(((struct py_macro *)self)->given, "copy", NULL);
}

static PyObject *macro_repr(PyObject *self)
{
    PyObject *name = macro_name(self, NULL);
    PyObject *text =
        name ? PyUnicode_FromFormat("macro(%R, **%R)", name, ((struct py_macro *)self)->given)
             : NULL;
    Py_XDECREF(name);
    return text;
}

static PyObject *macro_getnewargs(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *name = "";
    migraphx_macro_name(&name, of(self));
    return Py_BuildValue("(s)O", name, ((struct py_macro *)self)->given);
}

PyObject *py_make_macro_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"name", macro_name, METH_NOARGS, "name($self, /)\n--\n\nThe macro's name."},
        {"options", macro_options, METH_NOARGS,
         "options($self, /)\n--\n\nThe options that were given, as a dict."},
        {"__getnewargs_ex__", macro_getnewargs, METH_NOARGS,
         "__getnewargs_ex__($self, /)\n--\n\nFor pickling and copying."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)macro_new},
        {Py_tp_dealloc, (void *)macro_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)macro_repr},
        {Py_tp_doc,
         "macro(name, /, **kwargs)\n--\n\nA name and options that stand for several instructions, "
         "for module.add_macro:\nmacro(\"gemm\", alpha=2.0, transB=True). A name that no macro has "
         "is an operator's."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.macro", sizeof(struct py_macro), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}

// --- module functions ---

static PyObject *get_macros(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    size_t count;
    if (!OK(migraphx_get_macros_size(&count)))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const char *name;
        PyObject *item =
            OK(migraphx_get_macro_name_at_index(&name, i)) ? PyUnicode_FromString(name) : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *has_op_builder(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", NULL};
    PyObject *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:has_op_builder", names, &name))
        return NULL;
    PyObject *list = get_macros(unused, NULL);
    const int found = list ? PySequence_Contains(list, name) : -1;
    Py_XDECREF(list);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

PyMethodDef py_macro_functions[] = {
    {"get_macros", get_macros, METH_NOARGS,
     "get_macros($module, /)\n--\n\nNames of the macros that there are."},
    {"has_op_builder", WITH_KEYWORDS(has_op_builder),
     "has_op_builder($module, /, name)\n--\n\nIs there a macro of this name?"},
    {NULL, NULL, 0, NULL}};
