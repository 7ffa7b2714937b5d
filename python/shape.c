// SPDX-License-Identifier: MIT
// migraphx.shape.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

// --- making ---

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

// --- asking ---

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

// As the engine prints it.
static PyObject *shape_str(PyObject *self)
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

// What makes it again; of a sequence, which nothing makes, what it prints.
static PyObject *shape_repr(PyObject *self)
{
    PyObject *keywords = shape_keywords(self), *parts = keywords ? PyList_New(0) : NULL;
    PyObject *key, *value, *text = NULL;
    bool standard = false;
    Py_ssize_t at = 0;
    if (!keywords) {
        PyErr_Clear();
        return shape_str(self);
    }
    migraphx_shape_standard(&standard, of(self));
    while (parts && PyDict_Next(keywords, &at, &key, &value)) {
        if (standard && PyUnicode_CompareWithASCIIString(key, "strides") == 0)
            continue; // they follow from the lengths
        PyObject *part = PyUnicode_FromFormat("%U=%R", key, value);
        if (!part || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
    }
    PyObject *comma = PyUnicode_FromString(", ");
    PyObject *inside = parts && comma ? PyUnicode_Join(comma, parts) : NULL;
    if (inside)
        text = PyUnicode_FromFormat("migraphx.shape(%U)", inside);
    Py_XDECREF(inside);
    Py_XDECREF(comma);
    Py_XDECREF(parts);
    Py_DECREF(keywords);
    return text;
}

static PyObject *shape_getnewargs(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *keywords = shape_keywords(self);
    return keywords ? Py_BuildValue("()N", keywords) : NULL;
}

static Py_hash_t shape_hash(PyObject *self)
{
    return py_hash_text(shape_str(self));
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
        {Py_tp_str, (void *)shape_str},
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
