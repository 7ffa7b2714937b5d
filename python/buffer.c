// SPDX-License-Identifier: MIT
// The buffer protocol of migraphx.argument, both ways, without copies.
//
// Out: an argument shows its bytes with its own strides. Types that the protocol has no letter for
// (bfloat16, fp8, 4-bit, strings) have no buffer; numpy then asks for __array__ (array.c), which
// looks at a raw copy of the handle: that one shows bits as unsigned integers of the same size.
// In: any exporter. The argument holds the buffer until nothing needs the bytes any more, also when
// only a result that shares them is left. Buffers with negative or odd strides are copied.
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
    {migraphx_shape_uint64_type, "Q"}, {migraphx_shape_int64_type, "q"}};

enum { LETTERS = sizeof letters / sizeof *letters };

// --- out ---

static bool is(migraphx_shape_datatype_t type, const char *name)
{
    const char *text = "";
    migraphx_type_name(&text, type);
    return strcmp(text, name) == 0;
}

// Of the type itself, or of its bits; NULL where there is none.
static const char *format_of(migraphx_shape_datatype_t type, size_t size, bool raw)
{
    for (int i = 0; i < LETTERS; i++)
        if (letters[i].type == type)
            return letters[i].format;
    if (is(type, "complex64_type"))
        return "Zf";
    if (is(type, "complex128_type"))
        return "Zd";
    if (!raw || is(type, "tuple_type") || is(type, "sequence_type") || is(type, "string_type"))
        return NULL;
    return size == 2 ? "H" : size == 1 ? "B" : NULL;
}

// Shape and strides of a view, in one block.
struct layout {
    Py_ssize_t lens[MAX_RANK], strides[MAX_RANK];
};

static int describe(const struct py_argument *a, const_migraphx_shape_t shape, Py_buffer *view,
                    struct layout *layout)
{
    const size_t *lens, *strides;
    size_t rank, shown, size, elements; // a scalar shows an axis of length 1, which it has not
    migraphx_shape_datatype_t type;
    if (!OK(migraphx_shape_rank(&rank, shape)) ||
        !OK(migraphx_shape_lengths(&lens, &shown, shape)) ||
        !OK(migraphx_shape_strides(&strides, &shown, shape)) ||
        !OK(migraphx_shape_type(&type, shape)) || !OK(migraphx_type_size(&size, type)) ||
        !OK(migraphx_shape_elements(&elements, shape))) {
        py_fail();
        return -1;
    }
    const char *format = format_of(type, size, a->raw);
    if (!format) {
        const char *name = "";
        migraphx_type_name(&name, type);
        PyErr_Format(PyExc_BufferError, "an argument of %s has no buffer; numpy.asarray takes it",
                     name);
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

// The host cannot look at a card's memory.
int py_require_host(PyObject *argument)
{
    const struct py_argument *a = (const struct py_argument *)argument;
    const char *device = "";
    if (OK(migraphx_argument_device(&device, a->handle)) && strcmp(device, "host") == 0)
        return 0;
    PyErr_Format(PyExc_BufferError, "the argument lies in memory of %s: from_gpu copies it",
                 device);
    return -1;
}

int py_argument_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    const struct py_argument *a = (const struct py_argument *)self;
    const_migraphx_shape_t shape;
    char *data;
    bool standard;
    memset(view, 0, sizeof *view);
    if (py_require_host(self) < 0)
        return -1;
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
    if (!layout || describe(a, shape, view, layout) < 0) {
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

// Called by the engine from any thread, with or without the interpreter lock.
static void release_held(void *owner)
{
    Py_buffer *held = owner;
    if (Py_IsInitialized()) {
        const PyGILState_STATE state = PyGILState_Ensure();
        PyBuffer_Release(held);
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

void py_gather(char *to, const Py_buffer *view)
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

static PyObject *copy_in(migraphx_shape_datatype_t type, const Py_buffer *view)
{
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    char *data;
    const int made = OK(make_shape(&shape, type, view, false)) &&
                     OK(migraphx_argument_create_empty(&argument, shape)) &&
                     OK(migraphx_argument_buffer(&data, argument));
    migraphx_shape_destroy(shape);
    if (made)
        py_gather(data, view);
    return made ? py_wrap_argument(argument, 0) : py_fail();
}

// Takes the view over, which is on the heap.
static PyObject *hold(migraphx_shape_datatype_t type, Py_buffer *view)
{
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    const int readonly = view->readonly;
    const int made =
        OK(make_shape(&shape, type, view, true)) &&
        OK(migraphx_argument_create_owned(&argument, shape, view->buf, release_held, view));
    migraphx_shape_destroy(shape);
    if (made)
        return py_wrap_argument(argument, readonly);
    py_fail();
    PyBuffer_Release(view);
    free(view);
    return NULL;
}

// A buffer with its lengths and strides; some exporters leave out what they were asked for.
static int get_buffer(PyObject *source, Py_buffer *view)
{
    if (PyObject_GetBuffer(source, view, PyBUF_RECORDS_RO) < 0)
        return -1;
    if (view->ndim == 0 || (view->shape && view->strides))
        return 0;
    PyBuffer_Release(view);
    PyErr_Format(PyExc_TypeError, "the buffer of %R has no lengths or strides", Py_TYPE(source));
    return -1;
}

PyObject *py_argument_from_buffer(PyObject *source, const migraphx_shape_datatype_t *as)
{
    migraphx_shape_datatype_t type = as ? *as : migraphx_shape_float_type;
    Py_buffer *view = malloc(sizeof *view);
    if (!view)
        return PyErr_NoMemory();
    if (get_buffer(source, view) < 0) {
        free(view);
        return NULL;
    }
    if (view->ndim > MAX_RANK)
        PyErr_Format(PyExc_ValueError, "an argument has %d axes at most, not %d", MAX_RANK,
                     view->ndim);
    const bool good = view->ndim <= MAX_RANK && (as || type_of(view, &type) == 0);
    if (good && expressible(view))
        return hold(type, view);
    PyObject *result = good ? copy_in(type, view) : NULL;
    PyBuffer_Release(view);
    free(view);
    return result;
}

// --- in, as a parameter of a run ---

static bool was_seen(const struct py_seen *seen, const Py_buffer *view)
{
    const size_t size = (size_t)view->ndim * sizeof *view->shape;
    return seen->shape && view->ndim == seen->ndim && view->itemsize == seen->itemsize &&
           (!size || (memcmp(view->shape, seen->lens, size) == 0 && // a scalar's are NULL
                      memcmp(view->strides, seen->strides, size) == 0)) &&
           view->format && strcmp(view->format, seen->format) == 0;
}

// Replaces the shape by that of another buffer; false, with or without an exception, where it has
// none.
static bool look(struct py_seen *seen, const Py_buffer *view)
{
    migraphx_shape_datatype_t type;
    migraphx_shape_t shape = NULL;
    if (view->ndim > MAX_RANK || !view->format || strlen(view->format) >= sizeof seen->format ||
        type_of(view, &type) < 0 || !expressible(view) || !OK(make_shape(&shape, type, view, true)))
        return false;
    migraphx_shape_destroy(seen->shape);
    *seen = (struct py_seen){.shape = shape, .ndim = view->ndim, .itemsize = view->itemsize};
    if (view->ndim) { // a scalar's are NULL
        memcpy(seen->lens, view->shape, (size_t)view->ndim * sizeof *view->shape);
        memcpy(seen->strides, view->strides, (size_t)view->ndim * sizeof *view->strides);
    }
    strcpy(seen->format, view->format);
    return true;
}

int py_add_buffer(migraphx_program_parameters_t params, const char *name, PyObject *source,
                  struct py_seen *seen)
{
    Py_buffer *view = malloc(sizeof *view);
    if (!view) {
        PyErr_NoMemory();
        return -1;
    }
    if (get_buffer(source, view) < 0) {
        free(view);
        return 0;
    }
    const bool known = was_seen(seen, view) || look(seen, view);
    if (known && OK(migraphx_program_parameters_add_owned(params, name, seen->shape, view->buf,
                                                          release_held, view)))
        return 1;
    PyBuffer_Release(view);
    free(view);
    if (known)
        py_fail();
    return known ? -1 : 0;
}
