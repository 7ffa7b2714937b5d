// SPDX-License-Identifier: MIT
// Saving programs and reading them back. Other Python threads go on meanwhile.
#include "pymgx.h"

#include <string.h>

static migraphx_status make_options(migraphx_file_options_t *out, const char *format)
{
    const migraphx_status status = migraphx_file_options_create(out);
    return OK(status) ? migraphx_file_options_set_file_format(*out, format) : status;
}

// What load and load_buffer may be asked for.
static bool set_wish(migraphx_status *status, migraphx_file_options_t options, const char *target,
                     int portable, int trusted)
{
    if (OK(*status))
        *status = migraphx_file_options_set_target(options, target);
    if (OK(*status))
        *status = migraphx_file_options_set_portable(options, portable != 0);
    if (OK(*status))
        *status = migraphx_file_options_set_trusted(options, trusted != 0);
    return OK(*status);
}

// Programs that were compiled from the one that is saved; the caller keeps the tuple.
static bool add_forms(migraphx_status *status, migraphx_file_options_t options, PyObject *forms)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(forms); i++) {
        PyObject *form = PyTuple_GetItem(forms, i); // borrowed
        if (!form || PyObject_IsInstance(form, (PyObject *)py.program) != 1) {
            PyErr_SetString(PyExc_TypeError, "forms: a list of programs");
            return false;
        }
        if (OK(*status))
            *status = migraphx_file_options_add_form(options, py_program_handle(form));
    }
    return true;
}

static PyObject *load(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename", "format", "target", "portable", "trusted", NULL};
    PyObject *path;
    const char *format = "msgpack", *target = NULL;
    int portable = 0, trusted = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|s$zpp:load", names, PyUnicode_FSConverter,
                                     &path, &format, &target, &portable, &trusted))
        return NULL;
    migraphx_file_options_t options = NULL;
    migraphx_program_t program = NULL;
    const char *name = PyBytes_AsString(path);
    migraphx_status status = make_options(&options, format);
    if (set_wish(&status, options, target, portable, trusted)) {
        PY_WORK(status, migraphx_load(&program, name, options));
    }
    migraphx_file_options_destroy(options);
    if (!OK(status))
        migraphx_program_destroy(program);
    PyObject *result = OK(status) ? py_wrap_program(program) : py_fail_reading(path);
    Py_DECREF(path);
    return result;
}

static PyObject *save_forms(PyObject *program, PyObject *path, const char *format, PyObject *forms)
{
    migraphx_file_options_t options = NULL;
    const char *name = PyBytes_AsString(path);
    const migraphx_program_t handle = py_program_handle(program);
    migraphx_status status = make_options(&options, format);
    PyObject *result = NULL;
    if (add_forms(&status, options, forms)) {
        if (OK(status)) {
            PY_WORK(status, migraphx_save(handle, name, options));
        }
        result = OK(status) ? Py_None : py_fail_writing(path);
        Py_XINCREF(OK(status) ? result : NULL);
    }
    migraphx_file_options_destroy(options);
    return result;
}

static PyObject *save(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"p", "filename", "format", "forms", NULL};
    PyObject *program, *path, *forms = NULL;
    const char *format = "msgpack";
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&|s$O:save", names, py.program, &program,
                                     PyUnicode_FSConverter, &path, &format, &forms))
        return NULL;
    PyObject *kept = forms ? PySequence_Tuple(forms) : PyTuple_New(0); // whatever others do to it
    PyObject *result = kept ? save_forms(program, path, format, kept) : NULL;
    Py_XDECREF(kept);
    Py_DECREF(path);
    return result;
}

static migraphx_status load_bytes(migraphx_program_t *out, const Py_buffer *bytes)
{
    static const char nothing[1];
    const void *data = bytes->buf ? bytes->buf : nothing;
    const size_t size = (size_t)bytes->len;
    migraphx_file_options_t options = NULL;
    migraphx_status status = make_options(&options, "msgpack");
    if (OK(status)) {
        PY_WORK(status, migraphx_load_buffer(out, data, size, options));
    }
    migraphx_file_options_destroy(options);
    return status;
}

static PyObject *load_buffer(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"b", NULL};
    PyObject *source;
    Py_buffer bytes;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:load_buffer", names, &source) ||
        PyObject_GetBuffer(source, &bytes, 0) < 0)
        return NULL;
    migraphx_program_t program = NULL;
    const migraphx_status status = load_bytes(&program, &bytes);
    PyBuffer_Release(&bytes);
    if (OK(status))
        return py_wrap_program(program);
    migraphx_program_destroy(program);
    return py_fail();
}

static PyObject *save_buffer(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"p", NULL};
    PyObject *program;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:save_buffer", names, py.program, &program))
        return NULL;
    migraphx_file_options_t options = NULL;
    char *bytes = NULL;
    size_t size = 0;
    const migraphx_program_t handle = py_program_handle(program);
    migraphx_status status = make_options(&options, "msgpack");
    if (OK(status)) {
        PY_WORK(status, migraphx_save_buffer(&bytes, &size, handle, options));
    }
    migraphx_file_options_destroy(options);
    PyObject *result = OK(status) ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size) : py_fail();
    migraphx_string_destroy(bytes);
    return result;
}

PyMethodDef py_file_functions[] = {
    {"load", WITH_KEYWORDS(load),
     "load($module, /, filename, format='msgpack', *, target=None, portable=False, "
     "trusted=False)\n--\n\n"
     "A program that save has written; \"msgpack\" or \"json\". What was compiled comes back "
     "compiled: of several forms the best for this machine, or for a target; with portable the "
     "program that is not compiled. Compiled kernels in it are run if it is trusted."},
    {"save", WITH_KEYWORDS(save),
     "save($module, /, p, filename, format='msgpack', *, forms=())\n--\n\n"
     "Writes a program to a file, as \"msgpack\" (an .mxr file) or \"json\". With forms, programs "
     "that were compiled from copies of it, one file serves several machines."},
    {"load_buffer", WITH_KEYWORDS(load_buffer),
     "load_buffer($module, /, b)\n--\n\nAs load, from the bytes of a file."},
    {"save_buffer", WITH_KEYWORDS(save_buffer),
     "save_buffer($module, /, p)\n--\n\nAs save, to bytes."},
    {NULL, NULL, 0, NULL}};
