// SPDX-License-Identifier: MIT
// program.reshape(inputs): the same model for other lengths of its inputs.
//
// A program read by parse_onnx remembers how it was read, quantized and compiled. reshape reads it
// again with the new lengths, compiles it the same way, and takes its place; what it was before is
// kept, so that going back and forth between shapes costs nothing. Every shape has a compiled
// program of its own: for many shapes leave the dimension open instead (dynamic_dims=True).
//
// Holds: handles of modules point into programs that are kept as long as this one.
#include "pymgx.h"

int py_remember_source(PyObject *program, const char *function, PyObject *args, PyObject *kwargs)
{
    struct py_program *self = (struct py_program *)program;
    self->source = Py_BuildValue("(sOO)", function, args, kwargs ? kwargs : Py_None);
    return self->source ? 0 : -1;
}

int py_remember_compile(PyObject *program, PyObject *args, PyObject *kwargs)
{
    struct py_program *self = (struct py_program *)program;
    PyObject *settings = Py_BuildValue("(OO)", args, kwargs ? kwargs : Py_None);
    Py_XDECREF(self->settings);
    self->settings = settings;
    return settings ? 0 : -1;
}

int py_remember_change(PyObject *program, const char *function, PyObject *argument)
{
    struct py_program *self = (struct py_program *)program;
    if (!self->source || (!self->changes && !(self->changes = PyList_New(0))))
        return self->source ? -1 : 0;
    PyObject *change = Py_BuildValue("(sO)", function, argument ? argument : Py_None);
    const int status = change ? PyList_Append(self->changes, change) : -1;
    Py_XDECREF(change);
    return status;
}

void py_forget_source(PyObject *program)
{
    Py_CLEAR(((struct py_program *)program)->source);
}

void py_drop_reshaped(struct py_program *self)
{
    Py_CLEAR(self->source);
    Py_CLEAR(self->settings);
    Py_CLEAR(self->changes);
    Py_CLEAR(self->dims);
    Py_CLEAR(self->others);
}

static PyObject *copy_of_dict(PyObject *dict)
{
    return dict && dict != Py_None ? PyObject_CallMethod(dict, "copy", NULL) : PyDict_New();
}

static int update(PyObject *dict, PyObject *by)
{
    PyObject *none = PyObject_CallMethod(dict, "update", "O", by);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

// The keywords of the parse, with these lengths.
static PyObject *keywords_for(PyObject *before, PyObject *dims)
{
    PyObject *keywords = copy_of_dict(before);
    if (keywords && PyDict_SetItemString(keywords, "map_input_dims", dims) < 0)
        Py_CLEAR(keywords);
    return keywords;
}

static PyObject *member(PyObject *module, PyObject *name)
{
    PyObject *bytes = PyUnicode_AsUTF8String(name);
    PyObject *found = bytes ? PyObject_GetAttrString(module, PyBytes_AsString(bytes)) : NULL;
    Py_XDECREF(bytes);
    return found;
}

static PyObject *parse_again(struct py_program *self, PyObject *dims)
{
    PyObject *name = PyTuple_GetItem(self->source, 0), *args = PyTuple_GetItem(self->source, 1);
    PyObject *module = PyImport_ImportModule("migraphx");
    PyObject *parse = module ? member(module, name) : NULL;
    PyObject *keywords = keywords_for(PyTuple_GetItem(self->source, 2), dims);
    PyObject *program = parse && keywords ? PyObject_Call(parse, args, keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(parse);
    Py_XDECREF(module);
    return program;
}

// module.function(program[, argument])
static int change_again(PyObject *module, PyObject *program, PyObject *change)
{
    PyObject *argument = PyTuple_GetItem(change, 1);
    PyObject *function = member(module, PyTuple_GetItem(change, 0));
    PyObject *args = argument == Py_None ? Py_BuildValue("(O)", program)
                                         : Py_BuildValue("(OO)", program, argument);
    PyObject *none = function && args ? PyObject_Call(function, args, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(function);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

static int change_all_again(struct py_program *self, PyObject *program)
{
    const Py_ssize_t count = self->changes ? PyList_Size(self->changes) : 0;
    PyObject *module = PyImport_ImportModule("migraphx");
    int status = module ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && status == 0; i++)
        status = change_again(module, program, PyList_GetItem(self->changes, i));
    Py_XDECREF(module);
    return status;
}

static int compile_again(struct py_program *self, PyObject *program)
{
    if (!self->settings)
        return 0;
    PyObject *method = PyObject_GetAttrString(program, "compile");
    PyObject *keywords = copy_of_dict(PyTuple_GetItem(self->settings, 1));
    PyObject *none = method && keywords
                         ? PyObject_Call(method, PyTuple_GetItem(self->settings, 0), keywords)
                         : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(method);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

// The place among the kept pairs (lengths, program) of these lengths; -1 if there is none, -2 with
// an exception set.
static Py_ssize_t find_kept(struct py_program *self, PyObject *dims)
{
    for (Py_ssize_t i = 0; i < PyList_Size(self->others); i++) {
        PyObject *pair = PyList_GetItem(self->others, i);
        PyObject *same = PyObject_CallMethod(PyTuple_GetItem(pair, 0), "__eq__", "O", dims);
        const int is_same = same ? PyObject_IsTrue(same) : -1;
        Py_XDECREF(same);
        if (is_same)
            return is_same < 0 ? -2 : i;
    }
    return -1;
}

// Exchanges what the two run; the other one is kept under the lengths it has.
static int exchange(struct py_program *self, PyObject *program, PyObject *dims, Py_ssize_t at)
{
    struct py_program *other = (struct py_program *)program;
    PyObject *pair = Py_BuildValue("(OO)", self->dims, program);
    const int kept = !pair     ? -1
                     : at >= 0 ? PyList_SetItem(self->others, at, pair)
                               : PyList_Append(self->others, pair);
    if (pair && at < 0)
        Py_DECREF(pair);
    if (kept < 0)
        return -1;
    const migraphx_program_t handle = self->handle;
    struct py_plan *const plan = self->plan;
    self->handle = other->handle;
    self->plan = other->plan;
    other->handle = handle;
    other->plan = plan;
    Py_DECREF(self->dims);
    Py_INCREF(dims);
    self->dims = dims;
    return 0;
}

static bool is_compiled(PyObject *program)
{
    bool compiled = false;
    migraphx_program_is_compiled(&compiled, ((struct py_program *)program)->handle);
    return compiled;
}

static PyObject *to_dims(struct py_program *self, PyObject *dims)
{
    const Py_ssize_t at = find_kept(self, dims);
    PyObject *program = NULL;
    if (at >= 0) {
        program = PyTuple_GetItem(PyList_GetItem(self->others, at), 1);
        Py_INCREF(program);
    } else if (at == -1) {
        program = parse_again(self, dims);
        if (program && change_all_again(self, program) < 0)
            Py_CLEAR(program);
    }
    if (program && !is_compiled(program) && compile_again(self, program) < 0)
        Py_CLEAR(program);
    const int done = program ? exchange(self, program, dims, at) : -1;
    Py_XDECREF(program);
    if (done < 0)
        return NULL;
    Py_RETURN_NONE;
}

// The lengths it was read with; made when first asked for.
static int begin(struct py_program *self)
{
    if (!self->source) {
        PyErr_SetString(PyExc_RuntimeError,
                        "reshape: only what parse_onnx gave, and nothing has changed since, can be "
                        "read again; leave the dimension open instead (dynamic_dims=True)");
        return -1;
    }
    if (!self->others)
        self->others = PyList_New(0);
    if (!self->dims) {
        PyObject *keywords = PyTuple_GetItem(self->source, 2);
        self->dims = copy_of_dict(
            PyDict_Check(keywords) ? PyDict_GetItemString(keywords, "map_input_dims") : NULL);
    }
    return self->others && self->dims ? 0 : -1;
}

PyObject *py_program_reshape(PyObject *program, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs", NULL};
    struct py_program *self = (struct py_program *)program;
    PyObject *inputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:reshape", names, &PyDict_Type, &inputs) ||
        begin(self) < 0)
        return NULL;
    PyObject *dims = copy_of_dict(self->dims), *result = NULL;
    if (dims && update(dims, inputs) == 0) {
        PyObject *same = PyObject_CallMethod(dims, "__eq__", "O", self->dims);
        const int is_same = same ? PyObject_IsTrue(same) : -1;
        Py_XDECREF(same);
        if (is_same > 0) {
            Py_INCREF(Py_None);
            result = Py_None;
        } else if (is_same == 0) {
            result = to_dims(self, dims);
        }
    }
    Py_XDECREF(dims);
    return result;
}
