// SPDX-License-Identifier: MIT
// migraphx.dynamic_dimension, which is shape.dynamic_dimension too: a length that is a range.
#include "pymgx.h"

int py_dim(PyObject *value, migraphx_dynamic_dimension_t *out)
{
    if (PyObject_IsInstance(value, py.dim) == 1) {
        if (OK(migraphx_dynamic_dimension_create_min_max(out, 1, 1)) &&
            OK(migraphx_dynamic_dimension_assign_to(*out, ((struct py_dim *)value)->handle)))
            return 0;
        py_fail();
        return -1;
    }
    PyErr_Clear();
    const size_t fixed = PyLong_AsSize_t(value);
    if (fixed == (size_t)-1 && PyErr_Occurred())
        return -1;
    if (OK(migraphx_dynamic_dimension_create_min_max(out, fixed, fixed)))
        return 0;
    py_fail();
    return -1;
}

int py_dims(PyObject *sequence, migraphx_dynamic_dimensions_t *out)
{
    migraphx_dynamic_dimension_t dims[MAX_RANK] = {NULL};
    const Py_ssize_t count = PySequence_Size(sequence);
    int result = count < 0 ? -1 : 0;
    if (count > MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions are too many", count);
        result = -1;
    }
    for (Py_ssize_t i = 0; i < count && result == 0; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        result = item ? py_dim(item, &dims[i]) : -1;
        Py_XDECREF(item);
    }
    if (result == 0 && !OK(migraphx_dynamic_dimensions_create(
                           out, (const const_migraphx_dynamic_dimension_t *)dims, (size_t)count))) {
        py_fail();
        result = -1;
    }
    for (int i = 0; i < MAX_RANK; i++)
        migraphx_dynamic_dimension_destroy(dims[i]);
    return result;
}

static PyObject *collect(PyObject *values) // any iterable as a list
{
    return PyObject_CallFunctionObjArgs((PyObject *)&PyList_Type, values, NULL);
}

static int make_optimals(PyObject *values, migraphx_optimals_t *out)
{
    size_t sizes[256];
    PyObject *list = collect(values);
    const Py_ssize_t count = list ? py_sizes(list, sizes, 256, "optimals") : -1;
    Py_XDECREF(list);
    if (count < 0)
        return -1;
    if (OK(migraphx_optimals_create(out, sizes, (size_t)count)))
        return 0;
    py_fail();
    return -1;
}

static int set_name(migraphx_dynamic_dimension_t dim, const char *name)
{
    if (!name || OK(migraphx_dynamic_dimension_set_name(dim, name)))
        return 0;
    py_fail();
    return -1;
}

static PyObject *make_dim(size_t min, size_t max, PyObject *optimals, const char *name)
{
    migraphx_dynamic_dimension_t dim = NULL;
    migraphx_optimals_t set = NULL;
    if (optimals && optimals != Py_None && make_optimals(optimals, &set) < 0)
        return NULL;
    const migraphx_status status =
        set ? migraphx_dynamic_dimension_create_min_max_optimals(&dim, min, max, set)
            : migraphx_dynamic_dimension_create_min_max(&dim, min, max);
    migraphx_optimals_destroy(set);
    if (!OK(status))
        return py_fail();
    if (set_name(dim, name) == 0)
        return py_wrap_dim(dim);
    migraphx_dynamic_dimension_destroy(dim);
    return NULL;
}

static PyObject *dim_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"min", "max", "optimals", "name", NULL};
    Py_ssize_t min = 0;
    PyObject *last = Py_None, *optimals = NULL;
    const char *name = NULL;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|nOOz:dynamic_dimension", names, &min, &last,
                                     &optimals, &name))
        return NULL;
    const long long max = last == Py_None ? min : PyLong_AsLongLong(last);
    if (PyErr_Occurred())
        return NULL;
    if (min < 0 || max < 0) {
        PyErr_SetString(PyExc_ValueError, "dynamic_dimension: sizes must not be negative");
        return NULL;
    }
    return make_dim((size_t)min, (size_t)max, optimals, name);
}

static void dim_dealloc(PyObject *self)
{
    migraphx_dynamic_dimension_destroy(((struct py_dim *)self)->handle);
    py_free(self);
}

static PyObject *dim_bound(PyObject *self, void *which)
{
    size_t min, max;
    if (!OK(migraphx_dynamic_dimension_range(&min, &max, ((struct py_dim *)self)->handle)))
        return py_fail();
    return PyLong_FromSize_t(which ? max : min);
}

static PyObject *dim_optimals(PyObject *self, void *unused)
{
    (void)unused;
    const size_t *values;
    size_t count;
    if (!OK(migraphx_dynamic_dimension_optimals(&values, &count, ((struct py_dim *)self)->handle)))
        return py_fail();
    PyObject *list = py_size_list(values, count);
    PyObject *set = list ? PySet_New(list) : NULL;
    Py_XDECREF(list);
    return set;
}

static PyObject *dim_name(PyObject *self, void *unused)
{
    (void)unused;
    const char *name;
    if (!OK(migraphx_dynamic_dimension_name(&name, ((struct py_dim *)self)->handle)))
        return py_fail();
    return PyUnicode_FromString(name);
}

static PyObject *dim_is_fixed(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool fixed;
    if (!OK(migraphx_dynamic_dimension_is_fixed(&fixed, ((struct py_dim *)self)->handle)))
        return py_fail();
    return PyBool_FromLong(fixed);
}

static PyObject *dim_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.dim, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_dynamic_dimension_equal(&same, ((struct py_dim *)a)->handle,
                                             ((struct py_dim *)b)->handle)))
        return py_fail();
    return py_compared(op, same);
}

// As the engine prints it.
static PyObject *dim_str(PyObject *self)
{
    size_t min, max;
    if (!OK(migraphx_dynamic_dimension_range(&min, &max, ((struct py_dim *)self)->handle)))
        return py_fail();
    PyObject *optimals = dim_optimals(self, NULL);
    if (!optimals)
        return NULL;
    PyObject *text = PySet_Size(optimals)
                         ? PyUnicode_FromFormat("[%zu..%zu, %R]", min, max, optimals)
                         : PyUnicode_FromFormat("[%zu..%zu]", min, max);
    Py_DECREF(optimals);
    return text;
}

// What makes it again.
static PyObject *dim_repr(PyObject *self)
{
    size_t min, max;
    PyObject *optimals = dim_optimals(self, NULL), *name = optimals ? dim_name(self, NULL) : NULL;
    PyObject *text = NULL;
    if (!name || !OK(migraphx_dynamic_dimension_range(&min, &max, ((struct py_dim *)self)->handle)))
        text = PyErr_Occurred() ? NULL : py_fail();
    else if (PyUnicode_GetLength(name))
        text = PyUnicode_FromFormat("migraphx.dynamic_dimension(%zu, %zu, %R, name=%R)", min, max,
                                    optimals, name);
    else if (PySet_Size(optimals))
        text = PyUnicode_FromFormat("migraphx.dynamic_dimension(%zu, %zu, %R)", min, max, optimals);
    else
        text = PyUnicode_FromFormat("migraphx.dynamic_dimension(%zu, %zu)", min, max);
    Py_XDECREF(name);
    Py_XDECREF(optimals);
    return text;
}

static Py_hash_t dim_hash(PyObject *self)
{
    return py_hash_text(dim_str(self));
}

static PyObject *dim_getnewargs(PyObject *self, PyObject *unused)
{
    PyObject *optimals = dim_optimals(self, NULL), *name = optimals ? dim_name(self, NULL) : NULL;
    PyObject *result = NULL;
    (void)unused;
    if (name)
        result = Py_BuildValue("(NNOO)", dim_bound(self, NULL), dim_bound(self, (void *)1),
                               optimals, name);
    Py_XDECREF(name);
    Py_XDECREF(optimals);
    return result;
}

PyObject *py_make_dim_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"is_fixed", dim_is_fixed, METH_NOARGS,
         "is_fixed($self, /)\n--\n\nTrue when min and max are the same."},
        {"__getnewargs__", dim_getnewargs, METH_NOARGS,
         "__getnewargs__($self, /)\n--\n\nFor pickling."},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef members[] = {{"min", dim_bound, NULL, "smallest length", NULL},
                                    {"max", dim_bound, NULL, "largest length", (void *)1},
                                    {"optimals", dim_optimals, NULL, "set of lengths", NULL},
                                    {"name", dim_name, NULL, "the model's name, or ''", NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)dim_new},
        {Py_tp_dealloc, (void *)dim_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, members},
        {Py_tp_repr, (void *)dim_repr},
        {Py_tp_str, (void *)dim_str},
        {Py_tp_richcompare, (void *)dim_compare},
        {Py_tp_hash, (void *)dim_hash},
        {Py_tp_doc, "dynamic_dimension(min=0, max=None, optimals=None, name='')\n--\n\n"
                    "A length that is a range, or fixed without `max`; axes of one name have one "
                    "length."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.dynamic_dimension", sizeof(struct py_dim), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return py_add_type(module, &spec);
}
