// SPDX-License-Identifier: MIT
// Helpers of the Python module; see pymgx.h.
#include "pymgx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct py_types py;

PyObject *py_fail(void)
{
    if (PyErr_Occurred()) // raised by a signal's handler
        return NULL;
    const char *text = "";
    migraphx_get_last_error(&text);
    static const char no_memory[] = "out of memory"; // and maybe what for, and where
    PyErr_SetString(strncmp(text, no_memory, sizeof no_memory - 1) == 0 ? PyExc_MemoryError
                                                                        : PyExc_RuntimeError,
                    text);
    return NULL;
}

// The exception that opening the path gives, if it gives one: an OSError of the fitting kind that
// is a RuntimeError as well, for that is what programs written for MIGraphX catch.
static PyObject *type_of_failure(PyObject *error)
{
    PyObject *kind = (PyObject *)Py_TYPE(error);
    PyObject *type = PyDict_GetItemWithError(py.failures, kind);
    if (type)
        Py_INCREF(type);
    if (type || PyErr_Occurred())
        return type;
    PyObject *name = PyObject_GetAttrString(kind, "__name__");
    if (name)
        type = PyObject_CallFunction((PyObject *)&PyType_Type, "O(OO){ss}", name, kind,
                                     PyExc_RuntimeError, "__module__", "migraphx");
    if (type && PyDict_SetItem(py.failures, kind, type) < 0)
        Py_CLEAR(type);
    Py_XDECREF(name);
    return type;
}

static PyObject *fail_system(int number, PyObject *path)
{
    PyObject *text = PyUnicode_FromString(strerror(number));
    PyObject *error = text ? PyObject_CallFunction(PyExc_OSError, "iOO", number, text, path) : NULL;
    PyObject *type = error ? type_of_failure(error) : NULL;
    PyObject *both = type ? PyObject_CallFunction(type, "iOO", number, text, path) : NULL;
    if (both)
        PyErr_SetObject(type, both);
    Py_XDECREF(both);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(text);
    return NULL;
}

// What is wrong with the file itself; 0 if nothing is.
static int trouble(const char *path)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    const int number = fstat(fd, &info) < 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    close(fd);
    return number;
}

PyObject *py_fail_reading(PyObject *path)
{
    const int number = PyErr_Occurred() ? 0 : trouble(PyBytes_AsString(path));
    PyObject *name = number ? PyUnicode_DecodeFSDefault(PyBytes_AsString(path)) : NULL;
    if (!name)
        return py_fail();
    fail_system(number, name);
    Py_DECREF(name);
    return NULL;
}

PyObject *py_fail_writing(PyObject *path)
{
    const char *text = PyBytes_AsString(path), *slash = strrchr(text, '/');
    PyObject *folder = slash ? PyBytes_FromStringAndSize(text, slash - text + 1) : NULL;
    struct stat info;
    const bool lost = folder && !PyErr_Occurred() && stat(PyBytes_AsString(folder), &info) < 0;
    const int number = lost ? errno : 0;
    Py_XDECREF(folder);
    PyObject *name = number ? PyUnicode_DecodeFSDefault(text) : NULL;
    if (!name)
        return py_fail();
    fail_system(number, name);
    Py_DECREF(name);
    return NULL;
}

// The kinds of exception that take a text alone.
static PyObject *plain_type(PyObject *type)
{
    PyObject *const kinds[] = {PyExc_TypeError, PyExc_BufferError, PyExc_OverflowError,
                               PyExc_ValueError, PyExc_RuntimeError};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyErr_GivenExceptionMatches(type, kinds[i]))
            return kinds[i];
    return NULL;
}

void py_prefix_error(const char *format, ...)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *plain = plain_type(type);
    PyObject *text = plain && value ? PyObject_Str(value) : NULL;
    va_list args;
    va_start(args, format);
    PyObject *where = text ? PyUnicode_FromFormatV(format, args) : NULL;
    va_end(args);
    if (where) {
        PyErr_Format(plain, "%U: %U", where, text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(where);
    Py_XDECREF(text);
}

void *py_new(PyObject *type)
{
    return PyType_GenericAlloc((PyTypeObject *)type, 0);
}

void py_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *py_take_text(char *text)
{
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    migraphx_string_destroy(text);
    return result;
}

PyObject *py_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return NULL;
    const char *dot = strrchr(spec->name, '.');
    Py_INCREF(type); // the module's reference
    if (PyModule_AddObject(module, dot ? dot + 1 : spec->name, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return type;
}

// Each wrapper takes its handle over, also when there is no memory for the object.
#define WRAP(function, struct_, type, handle_type, destroy)                                        \
    PyObject *function(handle_type take)                                                           \
    {                                                                                              \
        struct struct_ *self = py_new(type);                                                       \
        if (self)                                                                                  \
            self->handle = take;                                                                   \
        else                                                                                       \
            destroy(take);                                                                         \
        return (PyObject *)self;                                                                   \
    }
WRAP(py_wrap_shape, py_shape, py.shape, migraphx_shape_t, migraphx_shape_destroy)
WRAP(py_wrap_dim, py_dim, py.dim, migraphx_dynamic_dimension_t, migraphx_dynamic_dimension_destroy)
WRAP(py_wrap_program, py_program, py.program, migraphx_program_t, migraphx_program_destroy)
WRAP(py_wrap_op, py_op, py.op, migraphx_operation_t, migraphx_operation_destroy)

PyObject *py_wrap_argument(migraphx_argument_t take, int readonly)
{
    struct py_argument *self = py_new(py.argument);
    if (!self) {
        migraphx_argument_destroy(take);
        return NULL;
    }
    self->handle = take;
    self->readonly = readonly;
    return (PyObject *)self;
}

PyObject *py_copy_shape(const_migraphx_shape_t shape)
{
    size_t one = 1;
    migraphx_shape_t copy = NULL;
    if (!OK(migraphx_shape_create(&copy, migraphx_shape_float_type, &one, 1)))
        return py_fail();
    if (!OK(migraphx_shape_assign_to(copy, shape))) {
        migraphx_shape_destroy(copy);
        return py_fail();
    }
    return py_wrap_shape(copy);
}

migraphx_argument_t py_share_argument(const_migraphx_argument_t argument)
{
    migraphx_argument_t share = NULL;
    return OK(migraphx_argument_share(&share, argument)) ? share : NULL;
}

PyObject *py_copy_argument(const_migraphx_argument_t argument)
{
    migraphx_argument_t share = py_share_argument(argument);
    return share ? py_wrap_argument(share, 0) : py_fail();
}

PyObject *py_wrap_module(migraphx_module_t module, PyObject *program)
{
    struct py_module *self = py_new(py.module);
    if (!self)
        return NULL;
    self->handle = module;
    Py_INCREF(program);
    self->program = program;
    ((struct py_program *)program)->lent = true;
    return (PyObject *)self;
}

PyObject *py_wrap_ins(migraphx_instruction_t take, PyObject *program)
{
    struct py_ins *self = py_new(py.ins);
    if (!self) {
        migraphx_instruction_destroy(take);
        return NULL;
    }
    self->handle = take;
    Py_INCREF(program);
    self->program = program;
    return (PyObject *)self;
}

PyObject *py_size_list(const size_t *values, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = PyLong_FromSize_t(values[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

Py_ssize_t py_sizes(PyObject *sequence, size_t *out, Py_ssize_t capacity, const char *what)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return -1;
    if (count > capacity) {
        PyErr_Format(PyExc_ValueError, "%s: %zd values are too many", what, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *number = item ? PyNumber_Index(item) : NULL;
        out[i] = number ? PyLong_AsSize_t(number) : (size_t)-1;
        Py_XDECREF(number);
        Py_XDECREF(item);
        if (out[i] == (size_t)-1 && PyErr_Occurred())
            return -1;
    }
    return count;
}

PyObject *py_not_comparable(PyObject *b, PyObject *type, int op)
{
    if ((op == Py_EQ || op == Py_NE) && PyObject_IsInstance(b, type) == 1)
        return NULL;
    PyErr_Clear();
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

PyObject *py_compared(int op, bool same)
{
    return PyBool_FromLong(same == (op == Py_EQ));
}

Py_hash_t py_hash_text(PyObject *take)
{
    const Py_hash_t hash = take ? PyObject_Hash(take) : -1;
    Py_XDECREF(take);
    return hash;
}

PyObject *py_not_made(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError, "%R is not made by calling it", type);
    return NULL;
}

// --- enumerations ---

// "type_t.float_type": what IntEnum prints depends on the version of Python.
static PyObject *enum_str(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__name__");
    PyObject *name = PyObject_GetAttrString(self, "name");
    PyObject *text = type && name ? PyUnicode_FromFormat("%U.%U", type, name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(type);
    return text;
}

static PyObject *enum_format(PyObject *self, PyObject *spec)
{
    PyObject *text = enum_str(self, NULL);
    PyObject *result = text ? PyObject_CallMethod(text, "__format__", "O", spec) : NULL;
    Py_XDECREF(text);
    return result;
}

static int add_printing(PyObject *type)
{
    static PyMethodDef methods[] = {{"__str__", enum_str, METH_NOARGS, NULL},
                                    {"__format__", enum_format, METH_O, NULL}};
    for (int i = 0; i < 2; i++) {
        PyObject *method = PyDescr_NewMethod((PyTypeObject *)type, &methods[i]);
        const int status = method ? PyObject_SetAttrString(type, methods[i].ml_name, method) : -1;
        Py_XDECREF(method);
        if (status < 0)
            return -1;
    }
    return 0;
}

PyObject *py_make_enum(const char *name, const char *qualname, const char *doc, PyObject *members)
{
    PyObject *module = PyImport_ImportModule("enum");
    PyObject *base = module ? PyObject_GetAttrString(module, "IntEnum") : NULL;
    PyObject *args = base ? Py_BuildValue("(sO)", name, members) : NULL;
    PyObject *options =
        args ? Py_BuildValue("{ssss}", "module", "migraphx", "qualname", qualname) : NULL;
    PyObject *result = options ? PyObject_Call(base, args, options) : NULL;
    Py_XDECREF(options);
    Py_XDECREF(args);
    Py_XDECREF(base);
    Py_XDECREF(module);
    PyObject *text = result ? PyUnicode_FromString(doc) : NULL;
    if (result &&
        (!text || PyObject_SetAttrString(result, "__doc__", text) < 0 || add_printing(result) < 0))
        Py_CLEAR(result);
    Py_XDECREF(text);
    return result;
}
