// SPDX-License-Identifier: MIT
// program.reshape(inputs): the same model for other lengths of its inputs.
//
// A program read by parse_onnx remembers how it was read, quantized and compiled. reshape only
// notes the lengths; whatever looks at the program next finds it with them:
//
//     compiled, and the model leaves these axes open:   the model is read once more, with open
//                   axes, and compiled; every size is a plan of that, and all share their weights
//     else:         it is read again with the lengths
//
// What it was for the last few lengths is kept, so that going back and forth costs nothing.
//
// Holds: programs that handles of modules point into are kept as long as this one.
#include "pymgx.h"

enum { KEPT = 8 }; // programs for other lengths

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
    Py_CLEAR(self->open);
    Py_XDECREF(self->settings);
    self->settings = settings;
    return settings ? 0 : -1;
}

int py_remember_change(PyObject *program, const char *function, PyObject *argument)
{
    struct py_program *self = (struct py_program *)program;
    if (!self->source || (!self->changes && !(self->changes = PyList_New(0))))
        return self->source ? -1 : 0;
    Py_CLEAR(self->open);
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
    Py_CLEAR(self->pending);
    Py_CLEAR(self->open);
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

static int set_item(PyObject *dict, const char *name, PyObject *take)
{
    const int status = take ? PyDict_SetItemString(dict, name, take) : -1;
    Py_XDECREF(take);
    return status;
}

// The keywords of the parse, with these lengths; NULL: with all that the model leaves open.
static PyObject *keywords_for(PyObject *before, PyObject *dims)
{
    PyObject *keywords = copy_of_dict(before);
    int status = keywords ? 0 : -1;
    Py_XINCREF(dims);
    if (status == 0)
        status = set_item(keywords, "map_input_dims", dims ? dims : PyDict_New());
    if (status == 0 && !dims)
        status = set_item(keywords, "default_dim_value", PyLong_FromLong(0)) |
                 set_item(keywords, "dim_params", PyDict_New()) |
                 set_item(keywords, "dynamic_dims", PyBool_FromLong(1));
    if (status < 0)
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

// The open program itself runs nothing: it needs no plans but those that it is asked for.
static int compile_again(struct py_program *self, PyObject *program, bool open)
{
    if (!self->settings)
        return 0;
    PyObject *method = PyObject_GetAttrString(program, "compile");
    PyObject *keywords = copy_of_dict(PyTuple_GetItem(self->settings, 1));
    if (keywords && open && set_item(keywords, "specialise", PyUnicode_FromString("never")) < 0)
        Py_CLEAR(keywords);
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

// Programs that nobody needs: the oldest beyond KEPT, and, where plans share weights by now, those
// that have their own. Not those that modules were handed out of.
static int drop_old(struct py_program *self)
{
    for (Py_ssize_t i = 0, count = PyList_Size(self->others); i < count;) {
        const struct py_program *other =
            (struct py_program *)PyTuple_GetItem(PyList_GetItem(self->others, i), 1);
        const bool old = count > KEPT || (self->shares && !other->shares);
        if (other->lent || !old) {
            i++;
            continue;
        }
        if (PySequence_DelItem(self->others, i) < 0)
            return -1;
        count--;
    }
    return 0;
}

// Exchanges what the two run; the other one is kept under the lengths it has, as the newest.
static int exchange(struct py_program *self, PyObject *program, PyObject *dims, Py_ssize_t at)
{
    struct py_program *other = (struct py_program *)program;
    PyObject *pair = Py_BuildValue("(OO)", self->dims, program);
    const int kept = pair ? PyList_Append(self->others, pair) : -1;
    Py_XDECREF(pair);
    if (kept < 0 || (at >= 0 && PySequence_DelItem(self->others, at) < 0))
        return -1;
    const struct py_program mine = *self;
    self->handle = other->handle;
    self->plan = other->plan;
    self->lent = other->lent;
    self->shares = other->shares;
    other->handle = mine.handle;
    other->plan = mine.plan;
    other->lent = mine.lent;
    other->shares = mine.shares;
    Py_DECREF(self->dims);
    Py_INCREF(dims);
    self->dims = dims;
    return drop_old(self);
}

static bool is_compiled(PyObject *program)
{
    bool compiled = false;
    migraphx_program_is_compiled(&compiled, ((struct py_program *)program)->handle);
    return compiled;
}

// --- plans of a program with open axes ---

static int make_open(struct py_program *self)
{
    PyObject *program = parse_again(self, NULL);
    if (program && (change_all_again(self, program) < 0 || compile_again(self, program, true) < 0))
        Py_CLEAR(program);
    self->open = program;
    return program ? 0 : -1;
}

// As a Python integer, whatever kind of integer it is; NULL with an exception set.
static PyObject *length_at(PyObject *list, Py_ssize_t i)
{
    PyObject *item = PySequence_GetItem(list, i);
    PyObject *length = item ? PyNumber_Index(item) : NULL;
    Py_XDECREF(item);
    return length;
}

// The lengths of all inputs named, one after the other. False with an exception set.
struct lengths {
    PyObject *texts[64]; // keep the names alive
    const char *names[64];
    size_t ranks[64], lens[512], count, total;
};

static bool gather(PyObject *dims, struct lengths *out)
{
    PyObject *name, *list;
    Py_ssize_t at = 0;
    while (PyDict_Next(dims, &at, &name, &list)) {
        const Py_ssize_t rank = PySequence_Size(list);
        if (rank < 0 || out->count == 64 || out->total + (size_t)rank > 512)
            return false;
        for (Py_ssize_t i = 0; i < rank; i++) {
            PyObject *length = length_at(list, i);
            out->lens[out->total++] = length ? PyLong_AsSize_t(length) : 0;
            Py_XDECREF(length);
        }
        PyObject *text = PyUnicode_AsUTF8String(name);
        if (!text || PyErr_Occurred()) {
            Py_XDECREF(text);
            return false;
        }
        out->texts[out->count] = text;
        out->names[out->count] = PyBytes_AsString(text);
        out->ranks[out->count++] = (size_t)rank;
    }
    return true;
}

// A plan of the open program for these lengths; NULL if it is not to be had so.
static PyObject *plan_for(struct py_program *self, PyObject *dims)
{
    struct lengths given = {.count = 0};
    migraphx_program_t program = NULL;
    migraphx_status status = migraphx_status_unknown_error;
    if (!self->settings)
        return NULL;
    if ((self->open || make_open(self) == 0) && gather(dims, &given)) {
        const migraphx_program_t open = ((struct py_program *)self->open)->handle;
        PY_WORK(status, migraphx_program_specialise(&program, open, given.names, given.lens,
                                                    given.ranks, given.count));
    }
    for (size_t i = 0; i < given.count; i++)
        Py_DECREF(given.texts[i]);
    PyErr_Clear(); // reading it again will say what is wrong
    PyObject *made = OK(status) ? py_wrap_program(program) : NULL;
    if (made)
        ((struct py_program *)made)->shares = true;
    return made;
}

// --- the exchange ---

static PyObject *make_for(struct py_program *self, PyObject *dims)
{
    PyObject *program = plan_for(self, dims);
    if (program || PyErr_Occurred())
        return program;
    program = parse_again(self, dims);
    if (program && change_all_again(self, program) < 0)
        Py_CLEAR(program);
    return program;
}

static int to_dims(struct py_program *self, PyObject *dims)
{
    const Py_ssize_t at = find_kept(self, dims);
    PyObject *program = NULL;
    if (at >= 0) {
        program = PyTuple_GetItem(PyList_GetItem(self->others, at), 1);
        Py_INCREF(program);
    } else if (at == -1) {
        program = make_for(self, dims);
    }
    if (program && !is_compiled(program) && compile_again(self, program, false) < 0)
        Py_CLEAR(program);
    const int done = program ? exchange(self, program, dims, at) : -1;
    Py_XDECREF(program);
    return done;
}

static int is_equal(PyObject *a, PyObject *b)
{
    PyObject *same = PyObject_CallMethod(a, "__eq__", "O", b);
    const int is_same = same ? PyObject_IsTrue(same) : -1;
    Py_XDECREF(same);
    return is_same;
}

// Lengths that were refused are forgotten: the program stays what it was.
int py_reach(PyObject *program)
{
    struct py_program *self = (struct py_program *)program;
    PyObject *dims = self->pending;
    if (!dims)
        return 0;
    self->pending = NULL;
    const int same = is_equal(dims, self->dims);
    const int status = same ? (same < 0 ? -1 : 0) : to_dims(self, dims);
    Py_DECREF(dims);
    return status;
}

migraphx_program_t py_program_handle(PyObject *program)
{
    return py_reach(program) == 0 ? ((struct py_program *)program)->handle : NULL;
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

// {name: lengths}, and nothing else.
static int check_inputs(PyObject *inputs)
{
    PyObject *name, *list;
    Py_ssize_t at = 0;
    while (PyDict_Next(inputs, &at, &name, &list)) {
        const Py_ssize_t rank = PyUnicode_Check(list) ? -1 : PySequence_Size(list);
        bool good = rank >= 0 && PyUnicode_Check(name);
        for (Py_ssize_t i = 0; good && i < rank; i++) {
            PyObject *length = length_at(list, i);
            good = length != NULL;
            Py_XDECREF(length);
        }
        if (good)
            continue;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "reshape: %R of %R is not a list of lengths", list, name);
        return -1;
    }
    return 0;
}

PyObject *py_program_reshape(PyObject *program, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs", NULL};
    struct py_program *self = (struct py_program *)program;
    PyObject *inputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:reshape", names, &PyDict_Type, &inputs) ||
        check_inputs(inputs) < 0 || begin(self) < 0)
        return NULL;
    PyObject *dims = copy_of_dict(self->pending ? self->pending : self->dims);
    if (!dims || update(dims, inputs) < 0) {
        Py_XDECREF(dims);
        return NULL;
    }
    Py_XDECREF(self->pending);
    self->pending = dims;
    Py_RETURN_NONE;
}
