// SPDX-License-Identifier: MIT
// migraphx.shape and migraphx.shape.dynamic_dimension.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

// --- dynamic_dimension ---

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

static PyObject *dim_repr(PyObject *self)
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

static Py_hash_t dim_hash(PyObject *self)
{
    return py_hash_text(dim_repr(self));
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

// --- shape: making ---

static int find_type(PyObject *value, migraphx_shape_datatype_t *out)
{
    PyObject *name = value;
    Py_INCREF(name);
    if (PyObject_IsInstance(value, py.type_t) == 1) {
        Py_DECREF(name);
        name = PyObject_GetAttrString(value, "name");
    }
    PyObject *bytes = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;
    Py_XDECREF(name);
    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "shape: type must be a string");
        return -1;
    }
    const char *text = PyBytes_AsString(bytes);
    if (strncmp(text, "migraphx::fp8::", 15) == 0)
        text += 15;
    const migraphx_status status = migraphx_type_find(out, text);
    Py_DECREF(bytes);
    if (OK(status))
        return 0;
    py_fail();
    return -1;
}

// Strides that put the axes into memory in the order of `permutation`, slowest first.
static int strides_of_permutation(const size_t *lens, const size_t *permutation, Py_ssize_t rank,
                                  size_t *strides)
{
    bool seen[MAX_RANK] = {false};
    size_t step = 1;
    for (Py_ssize_t i = rank - 1; i >= 0; i--) {
        if (permutation[i] >= (size_t)rank || seen[permutation[i]]) {
            PyErr_SetString(PyExc_ValueError, "shape: not a permutation");
            return -1;
        }
        seen[permutation[i]] = true;
        strides[permutation[i]] = step;
        step *= lens[permutation[i]];
    }
    return 0;
}

static PyObject *make_static(migraphx_shape_datatype_t type, PyObject *lens, PyObject *strides,
                             PyObject *permutation)
{
    size_t l[MAX_RANK] = {1}, s[MAX_RANK], p[MAX_RANK];
    const Py_ssize_t rank = lens ? py_sizes(lens, l, MAX_RANK, "lens") : 1;
    Py_ssize_t others = rank;
    if (rank < 0)
        return NULL;
    if (strides)
        others = py_sizes(strides, s, MAX_RANK, "strides");
    else if (permutation)
        others = py_sizes(permutation, p, MAX_RANK, "permutation");
    if (others < 0)
        return NULL;
    if (others != rank) {
        PyErr_Format(PyExc_ValueError, "shape: %zd lens but %zd %s", rank, others,
                     strides ? "strides" : "axes in permutation");
        return NULL;
    }
    if (!strides && permutation && strides_of_permutation(l, p, rank, s) < 0)
        return NULL;
    migraphx_shape_t shape = NULL;
    const migraphx_status status =
        strides || permutation
            ? migraphx_shape_create_with_strides(&shape, type, l, (size_t)rank, s, (size_t)rank)
            : migraphx_shape_create(&shape, type, l, (size_t)rank);
    return OK(status) ? py_wrap_shape(shape) : py_fail();
}

static PyObject *make_dynamic(migraphx_shape_datatype_t type, PyObject *dims)
{
    migraphx_dynamic_dimensions_t list = NULL;
    if (py_dims(dims, &list) < 0)
        return NULL;
    migraphx_shape_t shape = NULL;
    const migraphx_status status = migraphx_shape_create_dynamic(&shape, type, list);
    migraphx_dynamic_dimensions_destroy(list);
    return OK(status) ? py_wrap_shape(shape) : py_fail();
}

static PyObject *make_tuple(PyObject *members)
{
    const Py_ssize_t count = PySequence_Size(members);
    const_migraphx_shape_t *shapes =
        count < 0 || count > INT16_MAX ? NULL : calloc((size_t)count + 1, sizeof *shapes);
    migraphx_shape_t shape = NULL;
    for (Py_ssize_t i = 0; shapes && i < count; i++) {
        PyObject *item = PySequence_GetItem(members, i); // the list keeps it
        if (item && PyObject_IsInstance(item, py.shape) == 1)
            shapes[i] = ((struct py_shape *)item)->handle;
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "shape: sub_shapes are shapes");
        Py_XDECREF(item);
    }
    if (!shapes && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "shape: %zd sub_shapes are too many", count);
    if (!PyErr_Occurred() && !OK(migraphx_shape_create_tuple(&shape, shapes, (size_t)count)))
        py_fail();
    free(shapes);
    return shape ? py_wrap_shape(shape) : NULL;
}

static PyObject *or_null(PyObject *value)
{
    return value == Py_None ? NULL : value;
}

static PyObject *shape_new(PyTypeObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"type",     "lens",       "strides", "permutation",
                            "dyn_dims", "sub_shapes", NULL};
    PyObject *type_name = Py_None, *lens = Py_None, *strides = Py_None, *permutation = Py_None;
    PyObject *dims = Py_None, *members = Py_None;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOOOO:shape", names, &type_name, &lens,
                                     &strides, &permutation, &dims, &members))
        return NULL;
    migraphx_shape_datatype_t type = migraphx_shape_float_type;
    if (type_name != Py_None && find_type(type_name, &type) < 0)
        return NULL;
    if (members != Py_None)
        return make_tuple(members);
    if (dims != Py_None)
        return make_dynamic(type, dims);
    return make_static(type, or_null(lens), or_null(strides), or_null(permutation));
}

static void shape_dealloc(PyObject *self)
{
    migraphx_shape_destroy(((struct py_shape *)self)->handle);
    py_free(self);
}

// --- shape: asking ---

static const_migraphx_shape_t of(PyObject *self)
{
    return ((struct py_shape *)self)->handle;
}

static PyObject *shape_type(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shape_datatype_t type;
    const char *name;
    if (!OK(migraphx_shape_type(&type, of(self))) || !OK(migraphx_type_name(&name, type)))
        return py_fail();
    PyObject *value = PyObject_GetAttrString(py.type_t, name);
    if (value)
        return value;
    PyErr_Clear(); // tuple_type and types of our own are not in the enumeration
    return PyUnicode_FromString(name);
}

static PyObject *shape_type_string(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shape_datatype_t type;
    const char *name;
    if (!OK(migraphx_shape_type(&type, of(self))) || !OK(migraphx_type_name(&name, type)))
        return py_fail();
    return PyUnicode_FromString(name);
}

static PyObject *shape_type_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shape_datatype_t type;
    size_t size;
    if (!OK(migraphx_shape_type(&type, of(self))) || !OK(migraphx_type_size(&size, type)))
        return py_fail();
    return PyLong_FromSize_t(size);
}

#define LIST(name)                                                                                 \
    static PyObject *shape_##name(PyObject *self, PyObject *unused)                                \
    {                                                                                              \
        (void)unused;                                                                              \
        const size_t *values;                                                                      \
        size_t count;                                                                              \
        if (!OK(migraphx_shape_##name(&values, &count, of(self))))                                 \
            return py_fail();                                                                      \
        return py_size_list(values, count);                                                        \
    }
LIST(lengths)
LIST(strides)

#define SIZE(name)                                                                                 \
    static PyObject *shape_##name(PyObject *self, PyObject *unused)                                \
    {                                                                                              \
        (void)unused;                                                                              \
        size_t value;                                                                              \
        if (!OK(migraphx_shape_##name(&value, of(self))))                                          \
            return py_fail();                                                                      \
        return PyLong_FromSize_t(value);                                                           \
    }
SIZE(elements)
SIZE(bytes)
SIZE(ndim)
SIZE(rank)

#define YES_NO(name)                                                                               \
    static PyObject *shape_##name(PyObject *self, PyObject *unused)                                \
    {                                                                                              \
        (void)unused;                                                                              \
        bool value;                                                                                \
        if (!OK(migraphx_shape_##name(&value, of(self))))                                          \
            return py_fail();                                                                      \
        return PyBool_FromLong(value);                                                             \
    }
YES_NO(standard)
YES_NO(packed)
YES_NO(transposed)
YES_NO(broadcasted)
YES_NO(scalar)
YES_NO(dynamic)

static PyObject *copy_dim(const_migraphx_dynamic_dimension_t dim)
{
    migraphx_dynamic_dimension_t copy = NULL;
    if (OK(migraphx_dynamic_dimension_create_min_max(&copy, 1, 1)) &&
        OK(migraphx_dynamic_dimension_assign_to(copy, dim)))
        return py_wrap_dim(copy);
    migraphx_dynamic_dimension_destroy(copy);
    return py_fail();
}

static PyObject *shape_dyn_dims(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_dynamic_dimensions_t dims = NULL;
    size_t count = 0;
    if (!OK(migraphx_shape_dyn_dims(&dims, of(self))) ||
        !OK(migraphx_dynamic_dimensions_size(&count, dims)))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_dynamic_dimension_t dim;
        PyObject *item =
            OK(migraphx_dynamic_dimensions_get(&dim, dims, i)) ? copy_dim(dim) : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    migraphx_dynamic_dimensions_destroy(dims);
    return list;
}

static PyObject *shape_sub_shapes(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shapes_t shapes = NULL;
    size_t count = 0;
    if (!OK(migraphx_shape_sub_shapes(&shapes, of(self))) ||
        !OK(migraphx_shapes_size(&count, shapes)))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_shape_t shape;
        PyObject *item =
            OK(migraphx_shapes_get(&shape, shapes, i)) ? py_copy_shape(shape) : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    migraphx_shapes_destroy(shapes);
    return list;
}

static PyObject *shape_repr(PyObject *self)
{
    char *text = NULL;
    return OK(migraphx_shape_to_string(&text, of(self))) ? py_take_text(text) : py_fail();
}

static PyObject *shape_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.shape, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_shape_equal(&same, of(a), of(b))))
        return py_fail();
    return py_compared(op, same);
}

// Keywords that make it again; NULL without an exception for a sequence, which has no constructor.
static PyObject *shape_keywords(PyObject *self)
{
    bool dynamic = false;
    migraphx_shape_datatype_t type;
    if (!OK(migraphx_shape_dynamic(&dynamic, of(self))) ||
        !OK(migraphx_shape_type(&type, of(self))))
        return py_fail();
    PyObject *name = shape_type_string(self, NULL);
    if (!name)
        return NULL;
    if (PyUnicode_CompareWithASCIIString(name, "sequence_type") == 0) {
        PyErr_SetString(PyExc_TypeError, "cannot pickle the shape of a sequence");
        Py_DECREF(name);
        return NULL;
    }
    if (type == migraphx_shape_tuple_type)
        return Py_BuildValue("{sNsN}", "type", name, "sub_shapes", shape_sub_shapes(self, NULL));
    if (dynamic)
        return Py_BuildValue("{sNsN}", "type", name, "dyn_dims", shape_dyn_dims(self, NULL));
    size_t rank = 1;
    if (OK(migraphx_shape_rank(&rank, of(self))) && rank == 0)
        return Py_BuildValue("{sNs[]}", "type", name, "lens");
    return Py_BuildValue("{sNsNsN}", "type", name, "lens", shape_lengths(self, NULL), "strides",
                         shape_strides(self, NULL));
}

static PyObject *shape_getnewargs(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *keywords = shape_keywords(self);
    return keywords ? Py_BuildValue("()N", keywords) : NULL;
}

static Py_hash_t shape_hash(PyObject *self)
{
    return py_hash_text(shape_repr(self));
}

static PyMethodDef shape_methods[] = {
    {"type", shape_type, METH_NOARGS, "type($self, /)\n--\n\nThe element type, of shape.type_t."},
    {"lens", shape_lengths, METH_NOARGS,
     "lens($self, /)\n--\n\nLengths of the axes; [1] for a scalar."},
    {"strides", shape_strides, METH_NOARGS,
     "strides($self, /)\n--\n\nStrides in elements; [0] for a scalar."},
    {"ndim", shape_ndim, METH_NOARGS, "ndim($self, /)\n--\n\nNumber of axes; 1 for a scalar."},
    {"rank", shape_rank, METH_NOARGS, "rank($self, /)\n--\n\nNumber of axes; 0 for a scalar."},
    {"elements", shape_elements, METH_NOARGS, "elements($self, /)\n--\n\nNumber of elements."},
    {"bytes", shape_bytes, METH_NOARGS, "bytes($self, /)\n--\n\nBytes that the elements span."},
    {"type_string", shape_type_string, METH_NOARGS,
     "type_string($self, /)\n--\n\nName of the element type."},
    {"type_size", shape_type_size, METH_NOARGS, "type_size($self, /)\n--\n\nBytes of one element."},
    {"dyn_dims", shape_dyn_dims, METH_NOARGS, "dyn_dims($self, /)\n--\n\nThe axes as ranges."},
    {"sub_shapes", shape_sub_shapes, METH_NOARGS,
     "sub_shapes($self, /)\n--\n\nThe members of a tuple, the element of a sequence."},
    {"packed", shape_packed, METH_NOARGS, "packed($self, /)\n--\n\nThe elements fill their space."},
    {"transposed", shape_transposed, METH_NOARGS,
     "transposed($self, /)\n--\n\nStrides are not in descending order."},
    {"broadcasted", shape_broadcasted, METH_NOARGS,
     "broadcasted($self, /)\n--\n\nSome stride is 0."},
    {"standard", shape_standard, METH_NOARGS, "standard($self, /)\n--\n\nPacked and row-major."},
    {"scalar", shape_scalar, METH_NOARGS, "scalar($self, /)\n--\n\nOne value for all elements."},
    {"dynamic", shape_dynamic, METH_NOARGS, "dynamic($self, /)\n--\n\nSome length is a range."},
    {"__getnewargs_ex__", shape_getnewargs, METH_NOARGS,
     "__getnewargs_ex__($self, /)\n--\n\nFor pickling."},
    {NULL, NULL, 0, NULL}};

// shape.type_t: the scalar types with the numbers that attributes use.
static PyObject *make_type_enum(void)
{
    static const migraphx_shape_datatype_t types[] = {
        MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES)};
    PyObject *members = PyList_New(0);
    for (size_t i = 0; members && i < sizeof types / sizeof *types; i++) {
        const char *name = "";
        size_t number = 0;
        migraphx_type_name(&name, types[i]);
        migraphx_type_attribute_number(&number, types[i]);
        PyObject *pair = Py_BuildValue("(sn)", name, (Py_ssize_t)number);
        if (!pair || PyList_Append(members, pair) < 0)
            Py_CLEAR(members);
        Py_XDECREF(pair);
    }
    PyObject *result =
        members ? py_make_enum("type_t", "shape.type_t", "The element types of tensors.", members)
                : NULL;
    Py_XDECREF(members);
    return result;
}

PyObject *py_make_shape_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)shape_new},
        {Py_tp_dealloc, (void *)shape_dealloc},
        {Py_tp_methods, shape_methods},
        {Py_tp_repr, (void *)shape_repr},
        {Py_tp_richcompare, (void *)shape_compare},
        {Py_tp_hash, (void *)shape_hash},
        {Py_tp_doc, "shape(*, type='float', lens=[1], strides=None, permutation=None, "
                    "dyn_dims=None, sub_shapes=None)\n--\n\n"
                    "Type, lengths and strides of an array. Strides are row-major, as given, or in "
                    "the\norder of `permutation`; dyn_dims are lengths that may be ranges; "
                    "sub_shapes are the\nmembers of a tuple."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.shape", sizeof(struct py_shape), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    PyObject *type = py_add_type(module, &spec);
    py.type_t = type ? make_type_enum() : NULL;
    if (!py.type_t || PyObject_SetAttrString(type, "type_t", py.type_t) < 0 ||
        PyObject_SetAttrString(type, "dynamic_dimension", py.dim) < 0)
        return NULL;
    return type;
}
