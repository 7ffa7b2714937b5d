// SPDX-License-Identifier: MIT
// The buffer protocol of migraphx.argument, both ways, without copies.
//
// Out: an argument shows its bytes with its own strides. Types that the protocol has no letter for
// (bfloat16, fp8) show their bits as unsigned integers of the same size.
// In: any exporter. The argument holds the buffer until nothing needs the bytes any more, also when
// only a result that shares them is left. Arrays whose exporter refuses (ml_dtypes' bfloat16 and
// fp8) are seen through view(), arrays of Python strings become string tensors, and buffers with
// negative or odd strides are copied.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

struct letter {
    migraphx_shape_datatype_t type;
    const char *format;
};

static const struct letter letters[] = {
    {migraphx_shape_bool_type, "?"},   {migraphx_shape_half_type, "e"},
    {migraphx_shape_float_type, "f"},  {migraphx_shape_double_type, "d"},
    {migraphx_shape_uint8_type, "B"},  {migraphx_shape_int8_type, "b"},
    {migraphx_shape_uint16_type, "H"}, {migraphx_shape_int16_type, "h"},
    {migraphx_shape_uint32_type, "I"}, {migraphx_shape_int32_type, "i"},
    {migraphx_shape_uint64_type, "Q"}, {migraphx_shape_int64_type, "q"},
    {migraphx_shape_bf16_type, "H"}};

enum { LETTERS = sizeof letters / sizeof *letters };

// --- out ---

static int is(migraphx_shape_datatype_t type, const char *name)
{
    const char *text = "";
    migraphx_type_name(&text, type);
    return strcmp(text, name) == 0;
}

static const char *format_of(migraphx_shape_datatype_t type, size_t size)
{
    for (int i = 0; i < LETTERS; i++)
        if (letters[i].type == type)
            return letters[i].format;
    if (is(type, "complex64_type"))
        return "Zf";
    if (is(type, "complex128_type"))
        return "Zd";
    if (is(type, "int4_type") || is(type, "int2_type"))
        return "b";
    return size == 1 && !is(type, "tuple_type") ? "B" : NULL;
}

// Shape and strides of a view, in one block.
struct layout {
    Py_ssize_t lens[MAX_RANK], strides[MAX_RANK];
};

static int describe(const_migraphx_shape_t shape, Py_buffer *view, struct layout *layout)
{
    const size_t *lens, *strides;
    size_t rank, again, size, elements;
    migraphx_shape_datatype_t type;
    if (!OK(migraphx_shape_lengths(&lens, &rank, shape)) ||
        !OK(migraphx_shape_strides(&strides, &again, shape)) ||
        !OK(migraphx_shape_type(&type, shape)) || !OK(migraphx_type_size(&size, type)) ||
        !OK(migraphx_shape_elements(&elements, shape))) {
        py_fail();
        return -1;
    }
    const char *format = format_of(type, size);
    if (!format) {
        const char *name = "";
        migraphx_type_name(&name, type);
        PyErr_Format(PyExc_BufferError, "an argument of %s has no buffer", name);
        return -1;
    }
    for (size_t i = 0; i < rank; i++) {
        layout->lens[i] = (Py_ssize_t)lens[i];
        layout->strides[i] = (Py_ssize_t)(strides[i] * size);
    }
    view->format = (char *)format;
    view->itemsize = (Py_ssize_t)size;
    view->len = (Py_ssize_t)(elements * size);
    view->ndim = (int)rank;
    return 0;
}

int py_argument_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    const struct py_argument *a = (const struct py_argument *)self;
    const_migraphx_shape_t shape;
    char *data;
    bool standard;
    memset(view, 0, sizeof *view);
    if (!OK(migraphx_argument_shape(&shape, a->handle)) ||
        !OK(migraphx_argument_buffer(&data, a->handle)) ||
        !OK(migraphx_shape_standard(&standard, shape))) {
        py_fail();
        return -1;
    }
    if (((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !standard) ||
        ((flags & PyBUF_WRITABLE) && a->readonly)) {
        PyErr_SetString(PyExc_BufferError, standard || (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                                               ? "the argument is read-only"
                                               : "the argument is not contiguous");
        return -1;
    }
    struct layout *layout = calloc(1, sizeof *layout);
    if (!layout || describe(shape, view, layout) < 0) {
        free(layout);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    static char empty[1];
    view->buf = data ? data : empty;
    view->readonly = a->readonly;
    view->shape = (flags & PyBUF_ND) ? layout->lens : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? layout->strides : NULL;
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    view->internal = layout;
    Py_INCREF(self);
    view->obj = self;
    return 0;
}

void py_argument_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    free(view->internal);
}

// --- in ---

// The type of a format letter; native sizes are taken from the item size.
static int type_of(const Py_buffer *view, migraphx_shape_datatype_t *out)
{
    const char *f = view->format ? view->format : "B";
    if (*f == '@' || *f == '=' || *f == '<')
        f++;
    if (strcmp(f, "l") == 0 || strcmp(f, "n") == 0)
        f = view->itemsize == 8 ? "q" : "i";
    if (strcmp(f, "L") == 0 || strcmp(f, "N") == 0)
        f = view->itemsize == 8 ? "Q" : "I";
    for (int i = 0; i < LETTERS; i++)
        if (strcmp(letters[i].format, f) == 0) {
            *out = letters[i].type;
            return 0;
        }
    if (strcmp(f, "Zf") == 0 && OK(migraphx_type_find(out, "complex64_type")))
        return 0;
    if (strcmp(f, "Zd") == 0 && OK(migraphx_type_find(out, "complex128_type")))
        return 0;
    PyErr_Format(PyExc_RuntimeError, "argument: no element type for buffer format '%s'",
                 view->format);
    return -1;
}

struct held {
    Py_buffer view;
};

// Called by the engine from any thread, with or without the interpreter lock.
static void release_held(void *owner)
{
    struct held *held = owner;
    if (Py_IsInitialized()) {
        const PyGILState_STATE state = PyGILState_Ensure();
        PyBuffer_Release(&held->view);
        PyGILState_Release(state);
    }
    free(held);
}

static migraphx_status make_shape(migraphx_shape_t *out, migraphx_shape_datatype_t type,
                                  const Py_buffer *view, bool with_strides)
{
    size_t lens[MAX_RANK], strides[MAX_RANK];
    for (int i = 0; i < view->ndim; i++) {
        lens[i] = (size_t)view->shape[i];
        strides[i] = with_strides ? (size_t)(view->strides[i] / view->itemsize) : 0;
    }
    const size_t rank = (size_t)view->ndim;
    if (with_strides)
        return migraphx_shape_create_with_strides(out, type, lens, rank, strides, rank);
    return migraphx_shape_create(out, type, lens, rank);
}

// Can the strides be said in whole, non-negative elements?
static bool expressible(const Py_buffer *view)
{
    for (int i = 0; i < view->ndim; i++)
        if (view->strides[i] < 0 || view->strides[i] % view->itemsize)
            return false;
    return true;
}

static void gather(char *to, const Py_buffer *view)
{
    Py_ssize_t at[MAX_RANK] = {0};
    for (Py_ssize_t left = view->len / view->itemsize; left > 0; left--) {
        const char *from = view->buf;
        for (int i = 0; i < view->ndim; i++)
            from += at[i] * view->strides[i];
        memcpy(to, from, (size_t)view->itemsize);
        to += view->itemsize;
        for (int i = view->ndim - 1; i >= 0 && ++at[i] == view->shape[i]; i--)
            at[i] = 0;
    }
}

static PyObject *copy_in(migraphx_shape_datatype_t type, Py_buffer *view)
{
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    char *data;
    const int made = OK(make_shape(&shape, type, view, false)) &&
                     OK(migraphx_argument_create_empty(&argument, shape)) &&
                     OK(migraphx_argument_buffer(&data, argument));
    migraphx_shape_destroy(shape);
    if (made)
        gather(data, view);
    PyBuffer_Release(view);
    return made ? py_wrap_argument(argument, 0) : py_fail();
}

// Takes the view over.
static PyObject *hold(migraphx_shape_datatype_t type, Py_buffer *view)
{
    struct held *held = calloc(1, sizeof *held);
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    if (held)
        held->view = *view;
    const int readonly = view->readonly;
    const int made =
        held && OK(make_shape(&shape, type, view, true)) &&
        OK(migraphx_argument_create_owned(&argument, shape, view->buf, release_held, held));
    migraphx_shape_destroy(shape);
    if (made)
        return py_wrap_argument(argument, readonly);
    if (!held)
        PyErr_NoMemory();
    else
        py_fail();
    free(held);
    PyBuffer_Release(view);
    return NULL;
}

static PyObject *import_buffer(PyObject *source, const migraphx_shape_datatype_t *as)
{
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_RECORDS_RO) < 0)
        return NULL;
    migraphx_shape_datatype_t type = as ? *as : migraphx_shape_float_type;
    if (view.ndim > MAX_RANK)
        PyErr_Format(PyExc_RuntimeError, "argument: %d axes are too many", view.ndim);
    if (view.ndim > MAX_RANK || (!as && type_of(&view, &type) < 0)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    return expressible(&view) ? hold(type, &view) : copy_in(type, &view);
}

// --- arrays whose exporter refuses ---

// dtype names of ml_dtypes, and the type numbers behind them.
static int type_of_dtype(const char *name, migraphx_shape_datatype_t *out)
{
    static const char *const names[][2] = {{"bfloat16", "bf16_type"},
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0)
            return OK(migraphx_type_find(out, names[i][1])) ? 0 : -1;
    return -1;
}

static PyObject *import_viewed(PyObject *source, const char *dtype)
{
    migraphx_shape_datatype_t type;
    if (type_of_dtype(dtype, &type) < 0)
        return NULL;
    PyErr_Clear();
    PyObject *bits = PyObject_CallMethod(source, "view", "s",
                                         type == migraphx_shape_bf16_type ? "uint16" : "uint8");
    PyObject *result = bits ? import_buffer(bits, &type) : NULL;
    Py_XDECREF(bits);
    return result;
}

static PyObject *make_strings(PyObject *texts, const size_t *lens, size_t rank)
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
        PyObject *item = PyList_GetItem(list, i);
        PyObject *bytes =
            PyUnicode_Check(item) ? PyUnicode_AsUTF8String(item) : PyBytes_FromObject(item);
        if (!bytes || PyList_Append(result, bytes) < 0)
            Py_CLEAR(result);
        Py_XDECREF(bytes);
    }
    return result;
}

static PyObject *import_strings(PyObject *source)
{
    size_t lens[MAX_RANK];
    PyErr_Clear();
    PyObject *shape = PyObject_GetAttrString(source, "shape");
    PyObject *flat = PyObject_CallMethod(source, "ravel", NULL);
    PyObject *list = flat ? PyObject_CallMethod(flat, "tolist", NULL) : NULL;
    PyObject *texts = list && PyList_Check(list) ? encode_all(list) : NULL;
    const Py_ssize_t rank = shape && texts ? py_sizes(shape, lens, MAX_RANK, "shape") : -1;
    PyObject *result = rank < 0 ? NULL : make_strings(texts, lens, (size_t)rank);
    Py_XDECREF(texts);
    Py_XDECREF(list);
    Py_XDECREF(flat);
    Py_XDECREF(shape);
    return result;
}

// kind: 'V' for ml_dtypes, 'O', 'U', 'S', 'T' for strings.
static PyObject *import_by_dtype(PyObject *source, PyObject *dtype)
{
    PyObject *name = PyObject_GetAttrString(dtype, "name");
    PyObject *kind = PyObject_GetAttrString(dtype, "kind");
    PyObject *name_bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
    PyObject *kind_bytes = kind ? PyUnicode_AsUTF8String(kind) : NULL;
    PyObject *result = NULL;
    if (name_bytes && kind_bytes) {
        const char *k = PyBytes_AsString(kind_bytes);
        result = strchr("OUST", k[0]) ? import_strings(source)
                                      : import_viewed(source, PyBytes_AsString(name_bytes));
    }
    Py_XDECREF(kind_bytes);
    Py_XDECREF(name_bytes);
    Py_XDECREF(kind);
    Py_XDECREF(name);
    return result;
}

static bool has_strings(PyObject *dtype)
{
    PyObject *kind = PyObject_GetAttrString(dtype, "kind");
    PyObject *bytes = kind ? PyUnicode_AsUTF8String(kind) : NULL;
    const bool yes = bytes && strchr("OUST", PyBytes_AsString(bytes)[0]);
    Py_XDECREF(bytes);
    Py_XDECREF(kind);
    PyErr_Clear();
    return yes;
}

PyObject *py_argument_from_buffer(PyObject *source)
{
    PyObject *dtype = PyObject_GetAttrString(source, "dtype");
    PyErr_Clear();
    const bool strings = dtype && has_strings(dtype);
    PyObject *result = strings ? import_strings(source) : import_buffer(source, NULL);
    if (!result && dtype && !strings) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace); // the better message if nothing helps
        result = import_by_dtype(source, dtype);
        if (result || PyErr_Occurred()) {
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
        } else
            PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(dtype);
    return result;
}
