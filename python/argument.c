// SPDX-License-Identifier: MIT
// migraphx.argument, and the functions that make arguments.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

static const_migraphx_argument_t of(PyObject *self)
{
    return ((struct py_argument *)self)->handle;
}

static PyObject *argument_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"buffer", NULL};
    PyObject *source;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:argument", names, &source))
        return NULL;
    return py_is_argument(source) ? py_copy_argument(of(source)) : py_to_argument(source, NULL);
}

static void argument_dealloc(PyObject *self)
{
    migraphx_argument_destroy(((struct py_argument *)self)->handle);
    py_free(self);
}

// --- asking ---

static PyObject *get_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    const_migraphx_shape_t shape;
    return OK(migraphx_argument_shape(&shape, of(self))) ? py_copy_shape(shape) : py_fail();
}

static bool is_group(PyObject *self)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (OK(migraphx_argument_shape(&shape, of(self))) && OK(migraphx_shape_type(&type, shape)))
        migraphx_type_name(&name, type);
    return strcmp(name, "tuple_type") == 0 || strcmp(name, "sequence_type") == 0;
}

// As numpy has it: a tuple, () for a scalar. Groups are no arrays, and have none.
static PyObject *shape_tuple(PyObject *self, void *unused)
{
    const_migraphx_shape_t shape;
    const size_t *lens;
    size_t rank, shown;
    (void)unused;
    if (is_group(self))
        return PyErr_Format(PyExc_AttributeError, "an argument of several members has no shape; "
                                                  "members() gives them");
    if (!OK(migraphx_argument_shape(&shape, of(self))) || !OK(migraphx_shape_rank(&rank, shape)) ||
        !OK(migraphx_shape_lengths(&lens, &shown, shape)))
        return py_fail();
    PyObject *list = py_size_list(lens, rank);
    PyObject *tuple = list ? PySequence_Tuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *numpy_array(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_numpy_of(self);
}

static PyObject *data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *data;
    return OK(migraphx_argument_buffer(&data, of(self))) ? PyLong_FromVoidPtr(data) : py_fail();
}

static bool is_integral(migraphx_shape_datatype_t type)
{
    const char *name = "";
    migraphx_type_name(&name, type);
    return strncmp(name, "int", 3) == 0 || strncmp(name, "uint", 4) == 0;
}

static PyObject *number(migraphx_shape_datatype_t type, const double *real, const int64_t *integer)
{
    if (type == migraphx_shape_bool_type)
        return PyBool_FromLong(*integer != 0);
    if (type == migraphx_shape_uint64_type)
        return PyLong_FromUnsignedLongLong((unsigned long long)*integer);
    if (is_integral(type))
        return PyLong_FromLongLong(*integer);
    return PyFloat_FromDouble(*real);
}

static PyObject *list_numbers(PyObject *self, migraphx_shape_datatype_t type, size_t count)
{
    double *reals = calloc(count + 1, sizeof *reals);
    int64_t *integers = calloc(count + 1, sizeof *integers);
    PyObject *list = NULL;
    if (!reals || !integers)
        PyErr_NoMemory();
    else if (!OK(migraphx_argument_values(reals, count, of(self))) ||
             !OK(migraphx_argument_integers(integers, count, of(self))))
        py_fail();
    else
        list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = number(type, &reals[i], &integers[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    free(reals);
    free(integers);
    return list;
}

static PyObject *list_strings(PyObject *self, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const char *text;
        size_t size;
        PyObject *value = OK(migraphx_argument_string(&text, &size, of(self), i))
                              ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape")
                              : py_fail();
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

// --- as a sequence ---

static PyObject *members(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t count;
    if (!OK(migraphx_argument_members_size(&count, of(self))))
        return py_fail();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_argument_t member;
        PyObject *value = OK(migraphx_argument_member(&member, of(self), i))
                              ? py_copy_argument(member)
                              : py_fail();
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name;
    size_t count;
    if (!OK(migraphx_argument_shape(&shape, of(self))) || !OK(migraphx_shape_type(&type, shape)) ||
        !OK(migraphx_type_name(&name, type)) || !OK(migraphx_shape_elements(&count, shape)))
        return py_fail();
    if (strcmp(name, "string_type") == 0)
        return list_strings(self, count);
    if (type == migraphx_shape_tuple_type || strcmp(name, "sequence_type") == 0)
        return members(self, unused);
    return list_numbers(self, type, count);
}

// What indexing and iterating see: the members of a group, numpy's array of a tensor, or, where
// there is no numpy, a memoryview.
static PyObject *items_of(PyObject *self)
{
    if (is_group(self))
        return members(self, NULL);
    PyObject *array = py_numpy_of(self);
    if (array || !PyErr_ExceptionMatches(PyExc_ImportError))
        return array;
    PyErr_Clear();
    return PyMemoryView_FromObject(self);
}

static Py_ssize_t length(PyObject *self)
{
    const_migraphx_shape_t shape;
    const size_t *lens;
    size_t count = 0, rank;
    if (is_group(self)) {
        migraphx_argument_members_size(&count, of(self));
        return (Py_ssize_t)count;
    }
    if (!OK(migraphx_argument_shape(&shape, of(self))) || !OK(migraphx_shape_rank(&rank, shape)) ||
        !OK(migraphx_shape_lengths(&lens, &count, shape)))
        py_fail();
    else if (rank)
        return (Py_ssize_t)lens[0];
    else
        PyErr_SetString(PyExc_TypeError, "a scalar has no length");
    return -1;
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
    PyObject *items = items_of(self);
    PyObject *item = items ? PyObject_GetItem(items, key) : NULL;
    Py_XDECREF(items);
    return item;
}

static PyObject *iterate(PyObject *self)
{
    PyObject *items = items_of(self);
    PyObject *iterator = items ? PyObject_GetIter(items) : NULL;
    Py_XDECREF(items);
    return iterator;
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.argument, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_argument_equal(&same, of(a), of(b))))
        return py_fail();
    return py_compared(op, same);
}

// --- pickling ---

// A packed copy of the bytes.
static PyObject *bytes_of(PyObject *self)
{
    PyObject *raw = py_copy_argument(of(self)), *bytes = NULL;
    Py_buffer view;
    if (!raw)
        return NULL;
    ((struct py_argument *)raw)->raw = 1;
    if (PyObject_GetBuffer(raw, &view, PyBUF_RECORDS_RO) == 0) {
        bytes = PyBytes_FromStringAndSize(NULL, view.len);
        if (bytes)
            py_gather(PyBytes_AsString(bytes), &view);
        PyBuffer_Release(&view);
    }
    Py_DECREF(raw);
    return bytes;
}

// Of a group its members, in a tuple or a list as it is one; the shape follows from them.
static PyObject *reduce_group(PyObject *self)
{
    PyObject *items = members(self, NULL), *tuple = NULL;
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    if (items && OK(migraphx_argument_shape(&shape, of(self))) &&
        OK(migraphx_shape_type(&type, shape)) && type == migraphx_shape_tuple_type) {
        tuple = PyObject_CallFunctionObjArgs((PyObject *)&PyTuple_Type, items, NULL);
        Py_DECREF(items);
        items = tuple;
    }
    return items ? Py_BuildValue("(ON)", Py_None, items) : NULL;
}

static PyObject *reduce_tensor(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL), *values = NULL;
    PyObject *name = shape ? PyObject_CallMethod(shape, "type_string", NULL) : NULL;
    if (name)
        values = PyUnicode_CompareWithASCIIString(name, "string_type") == 0 ? tolist(self, NULL)
                                                                            : bytes_of(self);
    PyObject *result = values ? Py_BuildValue("(OO)", shape, values) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(name);
    Py_XDECREF(shape);
    return result;
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyImport_ImportModule("migraphx");
    PyObject *make = module ? PyObject_GetAttrString(module, "_restore_argument") : NULL;
    PyObject *args = make ? is_group(self) ? reduce_group(self) : reduce_tensor(self) : NULL;
    PyObject *result = args ? Py_BuildValue("(OO)", make, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(make);
    Py_XDECREF(module);
    return result;
}

static PyObject *restore_bytes(PyObject *shape, PyObject *bytes)
{
    const_migraphx_shape_t old = ((struct py_shape *)shape)->handle;
    migraphx_shape_datatype_t type;
    const size_t *lens;
    size_t rank, shown, size = 0;
    migraphx_shape_t packed = NULL;
    migraphx_argument_t argument = NULL;
    char *data = NULL;
    const int made = OK(migraphx_shape_type(&type, old)) && OK(migraphx_shape_rank(&rank, old)) &&
                     OK(migraphx_shape_lengths(&lens, &shown, old)) &&
                     OK(migraphx_shape_create(&packed, type, (size_t *)lens, rank)) &&
                     OK(migraphx_shape_bytes(&size, packed)) &&
                     OK(migraphx_argument_create_empty(&argument, packed)) &&
                     OK(migraphx_argument_buffer(&data, argument));
    migraphx_shape_destroy(packed);
    if (made && size == (size_t)PyBytes_Size(bytes)) {
        if (size)
            memcpy(data, PyBytes_AsString(bytes), size);
        return py_wrap_argument(argument, 0);
    }
    migraphx_argument_destroy(argument);
    if (!made)
        return py_fail();
    PyErr_Format(PyExc_ValueError, "%zd bytes for an argument of %zu", PyBytes_Size(bytes), size);
    return NULL;
}

static PyObject *restore_argument(PyObject *unused, PyObject *args)
{
    PyObject *shape, *values;
    (void)unused;
    if (!PyArg_ParseTuple(args, "OO:_restore_argument", &shape, &values))
        return NULL;
    if (shape == Py_None && (PyList_Check(values) || PyTuple_Check(values)))
        return py_group(values);
    if (PyObject_IsInstance(shape, py.shape) == 1)
        return PyBytes_Check(values) ? restore_bytes(shape, values)
                                     : py_restore_strings(shape, values);
    PyErr_SetString(PyExc_TypeError, "_restore_argument: not what pickling an argument gave");
    return NULL;
}

// --- files ---

static PyObject *save(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"argument", "filename", NULL};
    PyObject *argument, *path;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&:save", names, py.argument, &argument,
                                     PyUnicode_FSConverter, &path))
        return NULL;
    const migraphx_status status = migraphx_argument_save(of(argument), PyBytes_AsString(path));
    PyObject *result = OK(status) ? Py_None : py_fail_writing(path);
    Py_XINCREF(result);
    Py_DECREF(path);
    return result;
}

static PyObject *load(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename", NULL};
    PyObject *path;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:load", names, PyUnicode_FSConverter, &path))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_load(&argument, PyBytes_AsString(path));
    PyObject *result = OK(status) ? py_wrap_argument(argument, 0) : py_fail_reading(path);
    Py_DECREF(path);
    return result;
}

static PyMethodDef methods[] = {
    {"get_shape", get_shape, METH_NOARGS, "get_shape($self, /)\n--\n\nThe shape."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nAddress of the first element."},
    {"tolist", tolist, METH_NOARGS,
     "tolist($self, /)\n--\n\nAll elements as a flat list, row-major."},
    {"members", members, METH_NOARGS, "members($self, /)\n--\n\nMembers of a tuple or sequence."},
    {"numpy", numpy_array, METH_NOARGS,
     "numpy($self, /)\n--\n\nnumpy's array over the same bytes, strides included. bf16, fp8 and "
     "4-bit types are\nml_dtypes' where that package is there, else their bits as unsigned "
     "integers; strings are\nobjects. What lies on a card is refused: from_gpu copies it."},
    {"_repr_html_", py_argument_html, METH_NOARGS,
     "_repr_html_($self, /)\n--\n\nFor notebooks: as repr."},
    {"save", WITH_KEYWORDS(save) | METH_STATIC,
     "save(argument, filename)\n--\n\nWrites an argument to a file."},
    {"load", WITH_KEYWORDS(load) | METH_STATIC,
     "load(filename)\n--\n\nAn argument that save has written."},
    {"__array__", WITH_KEYWORDS(py_argument_array),
     "__array__($self, /, dtype=None, copy=None)\n--\n\nFor numpy.asarray: shares the bytes; bf16, "
     "fp8 and 4-bit types are ml_dtypes' where\nthat package is there, strings are objects."},
    {"__dlpack__", WITH_KEYWORDS(py_argument_dlpack),
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "For torch.from_dlpack and its like: shares the bytes."},
    {"__dlpack_device__", py_argument_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nType and number of the device, as DLPack counts."},
    {"__reduce__", reduce, METH_NOARGS,
     "__reduce__($self, /)\n--\n\nFor pickling and copying: shape and values, packed."},
    {NULL, NULL, 0, NULL}};

PyObject *py_make_argument_type(PyObject *module)
{
    static PyGetSetDef attributes[] = {
        {"shape", shape_tuple, NULL, "lengths of the axes, a tuple as numpy's", NULL},
        {"dtype", py_argument_dtype, NULL, "numpy's dtype, that of numpy()", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)argument_new},
        {Py_tp_dealloc, (void *)argument_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {Py_tp_repr, (void *)py_argument_repr},
        {Py_tp_str, (void *)py_argument_str},
        {Py_tp_richcompare, (void *)compare},
        {Py_bf_getbuffer, (void *)py_argument_getbuffer},
        {Py_bf_releasebuffer, (void *)py_argument_releasebuffer},
        {Py_mp_length, (void *)length},
        {Py_mp_subscript, (void *)subscript},
        {Py_tp_iter, (void *)iterate},
        {Py_tp_doc,
         "argument(buffer)\n--\n\nA value of a program. An array (numpy, torch, anything with a "
         "buffer, __dlpack__ or\n__array__) is not copied and kept alive; numbers and strings in "
         "lists become a\ntensor, lists of arrays a sequence, tuples of them a tuple. "
         "numpy.asarray(argument)\nshares the bytes in turn."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.argument", sizeof(struct py_argument), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return py_add_type(module, &spec);
}

// --- functions that make arguments ---

static const_migraphx_shape_t shape_of(PyObject *shape)
{
    return ((struct py_shape *)shape)->handle;
}

static PyObject *finish(migraphx_status status, migraphx_argument_t argument)
{
    return OK(status) ? py_wrap_argument(argument, 0) : py_fail();
}

static PyObject *generate_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "seed", NULL};
    PyObject *shape;
    Py_ssize_t seed = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|n:generate_argument", names, py.shape,
                                     &shape, &seed))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status =
        migraphx_argument_generate(&argument, shape_of(shape), (size_t)seed);
    return finish(status, argument);
}

static PyObject *fill_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "value", NULL};
    PyObject *shape;
    double value;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!d:fill_argument", names, py.shape, &shape,
                                     &value))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_fill(&argument, shape_of(shape), value);
    return finish(status, argument);
}

static int read_numbers(PyObject *values, double *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(values, i);
        out[i] = item ? PyFloat_AsDouble(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *create_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "values", NULL};
    PyObject *shape, *values, *result = NULL;
    size_t elements;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:create_argument", names, py.shape, &shape,
                                     &values))
        return NULL;
    const Py_ssize_t count = PySequence_Size(values);
    if (count < 0)
        return NULL;
    if (!OK(migraphx_shape_elements(&elements, shape_of(shape))))
        return py_fail();
    if ((size_t)count != elements) {
        PyErr_Format(PyExc_RuntimeError, "Values and shape elements do not match: %zd and %zu",
                     count, elements);
        return NULL;
    }
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return PyErr_NoMemory();
    if (read_numbers(values, numbers, count) == 0) {
        migraphx_argument_t argument = NULL;
        const migraphx_status status =
            migraphx_argument_create_values(&argument, shape_of(shape), numbers, (size_t)count);
        result = finish(status, argument);
    }
    free(numbers);
    return result;
}

static PyObject *argument_from_pointer(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "address", NULL};
    PyObject *shape, *address;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:argument_from_pointer", names, py.shape,
                                     &shape, &address))
        return NULL;
    void *data = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_argument_create(&argument, shape_of(shape), data);
    return finish(status, argument);
}

PyMethodDef py_argument_functions[] = {
    {"generate_argument", WITH_KEYWORDS(generate_argument),
     "generate_argument($module, /, s, seed=0)\n--\n\nAn argument of reproducible pseudo-random "
     "values."},
    {"fill_argument", WITH_KEYWORDS(fill_argument),
     "fill_argument($module, /, s, value)\n--\n\nAn argument whose elements are all `value`."},
    {"create_argument", WITH_KEYWORDS(create_argument),
     "create_argument($module, /, s, values)\n--\n\nAn argument of one value per element, "
     "row-major."},
    {"argument_from_pointer", WITH_KEYWORDS(argument_from_pointer),
     "argument_from_pointer($module, /, shape, address)\n--\n\nAn argument over the memory at an "
     "address, which must outlive it."},
    {"_restore_argument", restore_argument, METH_VARARGS,
     "_restore_argument($module, shape, values, /)\n--\n\nFor unpickling."},
    {NULL, NULL, 0, NULL}};
