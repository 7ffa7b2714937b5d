// SPDX-License-Identifier: MIT
// Arrays that the buffer protocol does not carry, both ways.
//
// In: arrays whose exporter refuses (ml_dtypes' bfloat16, fp8 and 4-bit types) are seen through
// view(), arrays of texts become string tensors, and what has __dlpack__ or __array__ is asked for
// it. Out: __array__ gives ml_dtypes' types where that package is there, else the bits as unsigned
// integers; strings are an array of objects. numpy is looked for when it is needed.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

// Types by the names that numpy and ml_dtypes have for them.
static const char *const narrow[][2] = {{"bfloat16", "bf16_type"},
                                        {"float8_e4m3fn", "fp8e4m3fn_type"},
                                        {"float8_e4m3fnuz", "fp8e4m3fnuz_type"},
                                        {"float8_e5m2", "fp8e5m2_type"},
                                        {"float8_e5m2fnuz", "fp8e5m2fnuz_type"},
                                        {"float8_e8m0fnu", "fp8e8m0_type"},
                                        {"float4_e2m1fn", "fp4e2m1_type"},
                                        {"int4", "int4_type"},
                                        {"uint4", "uint4_type"},
                                        {"int2", "int2_type"},
                                        {"uint2", "uint2_type"}};

enum { NARROW = sizeof narrow / sizeof *narrow };

// --- in: strings ---

PyObject *py_argument_of_strings(PyObject *texts, const size_t *lens, size_t rank)
{
    const Py_ssize_t count = PyList_Size(texts);
    const char **starts = calloc((size_t)count + 1, sizeof *starts);
    size_t *sizes = calloc((size_t)count + 1, sizeof *sizes);
    migraphx_shape_datatype_t type;
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    int made = starts && sizes && OK(migraphx_type_find(&type, "string_type"));
    for (Py_ssize_t i = 0; made && i < count; i++) {
        char *text;
        Py_ssize_t size;
        made = PyBytes_AsStringAndSize(PyList_GetItem(texts, i), &text, &size) == 0;
        starts[i] = text;
        sizes[i] = (size_t)size;
    }
    made = made && OK(migraphx_shape_create(&shape, type, (size_t *)lens, rank)) &&
           OK(migraphx_argument_create_strings(&argument, shape, starts, sizes, (size_t)count));
    migraphx_shape_destroy(shape);
    free(starts);
    free(sizes);
    if (made)
        return py_wrap_argument(argument, 0);
    return PyErr_Occurred() ? NULL : py_fail();
}

// A list of str or bytes as a list of bytes.
static PyObject *encode_all(PyObject *list)
{
    PyObject *result = PyList_New(0);
    for (Py_ssize_t i = 0; result && i < PyList_Size(list); i++) {
        PyObject *item = PyList_GetItem(list, i), *bytes = NULL;
        if (PyUnicode_Check(item))
            bytes = PyObject_CallMethod(item, "encode", "ss", "utf-8", "surrogateescape");
        else if (PyBytes_Check(item))
            Py_INCREF(bytes = item);
        else
            PyErr_Format(PyExc_TypeError, "an array of objects holds strings, not %R",
                         Py_TYPE(item));
        if (!bytes || PyList_Append(result, bytes) < 0)
            Py_CLEAR(result);
        Py_XDECREF(bytes);
    }
    return result;
}

static PyObject *import_strings(PyObject *source)
{
    size_t lens[MAX_RANK];
    PyObject *shape = PyObject_GetAttrString(source, "shape");
    PyObject *flat = PyObject_CallMethod(source, "ravel", NULL);
    PyObject *list = flat ? PyObject_CallMethod(flat, "tolist", NULL) : NULL;
    PyObject *texts = list && PyList_Check(list) ? encode_all(list) : NULL;
    const Py_ssize_t rank = shape && texts ? py_sizes(shape, lens, MAX_RANK, "shape") : -1;
    PyObject *result = rank < 0 ? NULL : py_argument_of_strings(texts, lens, (size_t)rank);
    Py_XDECREF(texts);
    Py_XDECREF(list);
    Py_XDECREF(flat);
    Py_XDECREF(shape);
    return result;
}

PyObject *py_restore_strings(PyObject *shape, PyObject *texts)
{
    size_t lens[MAX_RANK];
    PyObject *list = PyObject_CallMethod(shape, "lens", NULL);
    PyObject *rank = list ? PyObject_CallMethod(shape, "rank", NULL) : NULL;
    PyObject *bytes = rank && PyList_Check(texts) ? encode_all(texts) : NULL;
    PyObject *result = NULL;
    if (bytes && py_sizes(list, lens, MAX_RANK, "lens") >= 0)
        result = py_argument_of_strings(bytes, lens, PyLong_AsSize_t(rank));
    Py_XDECREF(bytes);
    Py_XDECREF(rank);
    Py_XDECREF(list);
    if (!result && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "strings are given as a list");
    return result;
}

// --- in: by the name of the element type ---

static PyObject *import_viewed(PyObject *source, const char *dtype)
{
    migraphx_shape_datatype_t type;
    int at = 0;
    while (at < NARROW && strcmp(narrow[at][0], dtype) != 0)
        at++;
    if (at == NARROW)
        return NULL;
    if (!OK(migraphx_type_find(&type, narrow[at][1])))
        return py_fail();
    PyObject *bits = PyObject_CallMethod(source, "view", "s",
                                         type == migraphx_shape_bf16_type ? "uint16" : "uint8");
    PyObject *result = bits ? py_argument_from_buffer(bits, &type) : NULL;
    Py_XDECREF(bits);
    return result;
}

// NULL without an exception: nothing is known of this dtype.
static PyObject *import_by_dtype(PyObject *source)
{
    PyObject *dtype = PyObject_GetAttrString(source, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    PyObject *kind = name ? PyObject_GetAttrString(dtype, "kind") : NULL;
    PyErr_Clear();
    const char *n = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *k = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    PyObject *result = NULL;
    if (n && k && k[0])
        result = strchr("OUST", k[0]) ? import_strings(source) : import_viewed(source, n);
    Py_XDECREF(kind);
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    return result;
}

// What its __array__ gives, if that is something else.
static PyObject *import_array(PyObject *source)
{
    PyObject *array = PyObject_CallMethod(source, "__array__", NULL);
    PyObject *result = NULL;
    if (array && array != source && Py_TYPE(array) != Py_TYPE(source))
        result = py_argument_from_array(array);
    else if (array)
        PyErr_Format(PyExc_TypeError, "__array__ of %R gives nothing new", Py_TYPE(source));
    Py_XDECREF(array);
    return result;
}

static void no_array(PyObject *source)
{
    PyErr_Format(
        PyExc_TypeError,
        "an argument is made of an array (numpy, torch, anything with a buffer, __dlpack__ "
        "or __array__), of numbers or strings in lists, not of %R",
        Py_TYPE(source));
}

PyObject *py_argument_from_array(PyObject *source)
{
    PyObject *result = py_argument_from_buffer(source, NULL), *type, *value, *trace;
    if (result || PyErr_ExceptionMatches(PyExc_MemoryError))
        return result;
    PyErr_Fetch(&type, &value, &trace); // the better message if nothing helps
    const bool no_buffer = PyErr_GivenExceptionMatches(type, PyExc_TypeError);
    result = import_by_dtype(source);
    if (!result && !PyErr_Occurred() && no_buffer) {
        if (PyObject_HasAttrString(source, "__dlpack__"))
            result = py_argument_from_dlpack(source);
        else if (PyObject_HasAttrString(source, "__array__"))
            result = import_array(source);
    }
    if (!result && !PyErr_Occurred()) {
        if (!no_buffer) {
            PyErr_Restore(type, value, trace);
            return NULL;
        }
        no_array(source);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return result;
}

// --- out ---

static const char *type_name(PyObject *self)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (OK(migraphx_argument_shape(&shape, ((struct py_argument *)self)->handle)) &&
        OK(migraphx_shape_type(&type, shape)))
        migraphx_type_name(&name, type);
    return name;
}

static PyObject *numpy_asarray(PyObject *numpy, PyObject *value)
{
    return PyObject_CallMethod(numpy, "asarray", "O", value);
}

// Seen through ml_dtypes where that is installed and knows the type.
static PyObject *view_narrow(PyObject *take_bits, const char *dtype)
{
    PyObject *package = PyImport_ImportModule("ml_dtypes");
    PyObject *type = package ? PyObject_GetAttrString(package, dtype) : NULL;
    Py_XDECREF(package);
    if (!type) {
        if (PyErr_ExceptionMatches(PyExc_ImportError) ||
            PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            return take_bits;
        }
        Py_DECREF(take_bits);
        return NULL;
    }
    PyObject *array = PyObject_CallMethod(take_bits, "view", "O", type);
    Py_DECREF(type);
    Py_DECREF(take_bits);
    return array;
}

static PyObject *array_of_bits(PyObject *numpy, PyObject *self, const char *dtype)
{
    PyObject *raw = py_copy_argument(((struct py_argument *)self)->handle);
    if (!raw)
        return NULL;
    ((struct py_argument *)raw)->raw = 1;
    ((struct py_argument *)raw)->readonly = ((struct py_argument *)self)->readonly;
    PyObject *bits = numpy_asarray(numpy, raw);
    Py_DECREF(raw);
    return bits ? view_narrow(bits, dtype) : NULL;
}

const char *py_dtype_name(migraphx_shape_datatype_t type)
{
    static const char *const plain[][2] = {{"bool", "bool_type"},
                                           {"float16", "half_type"},
                                           {"float32", "float_type"},
                                           {"float64", "double_type"},
                                           {"int8", "int8_type"},
                                           {"uint8", "uint8_type"},
                                           {"int16", "int16_type"},
                                           {"uint16", "uint16_type"},
                                           {"int32", "int32_type"},
                                           {"uint32", "uint32_type"},
                                           {"int64", "int64_type"},
                                           {"uint64", "uint64_type"},
                                           {"object", "string_type"},
                                           {"complex64", "complex64_type"},
                                           {"complex128", "complex128_type"}};
    const char *name = "";
    migraphx_type_name(&name, type);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(plain[i][1], name) == 0)
            return plain[i][0];
    for (int i = 0; i < NARROW; i++)
        if (strcmp(narrow[i][1], name) == 0)
            return narrow[i][0];
    return name;
}

// What an array of a narrow type has: ml_dtypes' where it is, else unsigned integers.
static PyObject *narrow_dtype(PyObject *numpy, const char *name, size_t size)
{
    PyObject *bits = PyObject_CallMethod(numpy, "empty", "is", 0, size == 2 ? "uint16" : "uint8");
    PyObject *array = bits ? view_narrow(bits, name) : NULL;
    PyObject *dtype = array ? PyObject_GetAttrString(array, "dtype") : NULL;
    Py_XDECREF(array);
    return dtype;
}

PyObject *py_argument_dtype(PyObject *self, void *unused)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name = type_name(self);
    size_t size = 1;
    (void)unused;
    if (!OK(migraphx_argument_shape(&shape, ((struct py_argument *)self)->handle)) ||
        !OK(migraphx_shape_type(&type, shape)))
        return py_fail();
    migraphx_type_size(&size, type);
    if (strcmp(name, "tuple_type") == 0 || strcmp(name, "sequence_type") == 0)
        return PyErr_Format(PyExc_AttributeError, "an argument of %s has no dtype", name);
    PyObject *numpy = PyImport_ImportModule("numpy"), *dtype = NULL;
    for (int i = 0; numpy && !dtype && !PyErr_Occurred() && i < NARROW; i++)
        if (strcmp(narrow[i][1], name) == 0)
            dtype = narrow_dtype(numpy, narrow[i][0], size);
    if (numpy && !dtype && !PyErr_Occurred())
        dtype = PyObject_CallMethod(numpy, "dtype", "s", py_dtype_name(type));
    Py_XDECREF(numpy);
    return dtype;
}

static PyObject *lengths_of(PyObject *self)
{
    const_migraphx_shape_t shape;
    const size_t *lens;
    size_t rank, shown;
    if (!OK(migraphx_argument_shape(&shape, ((struct py_argument *)self)->handle)) ||
        !OK(migraphx_shape_rank(&rank, shape)) || !OK(migraphx_shape_lengths(&lens, &shown, shape)))
        return py_fail();
    return py_size_list(lens, rank);
}

static PyObject *array_of_strings(PyObject *numpy, PyObject *self)
{
    PyObject *texts = PyObject_CallMethod(self, "tolist", NULL), *lens = lengths_of(self);
    PyObject *flat =
        texts && lens ? PyObject_CallMethod(numpy, "array", "Os", texts, "object") : NULL;
    PyObject *array = flat ? PyObject_CallMethod(flat, "reshape", "O", lens) : NULL;
    Py_XDECREF(flat);
    Py_XDECREF(lens);
    Py_XDECREF(texts);
    return array;
}

static PyObject *plain_array(PyObject *numpy, PyObject *self)
{
    const char *type = type_name(self);
    if (strcmp(type, "string_type") == 0)
        return array_of_strings(numpy, self);
    if (strcmp(type, "tuple_type") == 0 || strcmp(type, "sequence_type") == 0) {
        PyErr_Format(PyExc_TypeError, "an argument of %s is no array; its members are", type);
        return NULL;
    }
    for (int i = 0; i < NARROW; i++)
        if (strcmp(type, narrow[i][1]) == 0)
            return array_of_bits(numpy, self, narrow[i][0]);
    return numpy_asarray(numpy, self);
}

PyObject *py_numpy_of(PyObject *argument)
{
    PyObject *numpy = py_require_host(argument) < 0 ? NULL : PyImport_ImportModule("numpy");
    PyObject *array = numpy ? plain_array(numpy, argument) : NULL;
    Py_XDECREF(numpy);
    return array;
}

// numpy's protocol: with `copy=True` an array of its own, with `dtype` one of that type.
PyObject *py_argument_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyObject *array = py_numpy_of(self);
    PyObject *other = NULL;
    if (array && dtype != Py_None)
        other = PyObject_CallMethod(array, "astype", "O", dtype);
    else if (array && copy == Py_True)
        other = PyObject_CallMethod(array, "copy", NULL);
    else
        return array;
    Py_XDECREF(array);
    return other;
}
