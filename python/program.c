// SPDX-License-Identifier: MIT
// migraphx.program and migraphx.target.
//
// Compiling and running release the interpreter lock, so one program runs in several Python threads
// at once.
#include "pymgx.h"

#include <stdlib.h>

static migraphx_program_t of(PyObject *self)
{
    return ((struct py_program *)self)->handle;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":program", names))
        return NULL;
    migraphx_program_t program = NULL;
    return OK(migraphx_program_create(&program)) ? py_wrap_program(program) : py_fail();
}

static void program_dealloc(PyObject *self)
{
    py_drop_reshaped((struct py_program *)self);
    migraphx_program_destroy(of(self));
    py_free(self);
}

// --- parameters and results ---

// Names and shapes: a list of str, or a dict of both.
static PyObject *parameters(PyObject *self, bool with_shapes)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    if (!OK(migraphx_program_get_parameter_shapes(&shapes, of(self))) ||
        !OK(migraphx_program_parameter_shapes_size(&count, shapes)))
        return py_fail();
    const char **names = calloc(count + 1, sizeof *names);
    PyObject *result = with_shapes ? PyDict_New() : PyList_New(0);
    if (names)
        migraphx_program_parameter_shapes_names(names, shapes);
    for (size_t i = 0; names && result && i < count; i++) {
        const_migraphx_shape_t shape;
        PyObject *item = !with_shapes ? PyUnicode_FromString(names[i])
                         : OK(migraphx_program_parameter_shapes_get(&shape, shapes, names[i]))
                             ? py_copy_shape(shape)
                             : py_fail();
        if (!item || (with_shapes ? PyDict_SetItemString(result, names[i], item)
                                  : PyList_Append(result, item)) < 0)
            Py_CLEAR(result);
        Py_XDECREF(item);
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return result;
}

static PyObject *get_parameter_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    return parameters(self, false);
}

static PyObject *get_parameter_shapes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return parameters(self, true);
}

static PyObject *get_output_shapes(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shapes_t shapes = NULL;
    size_t count = 0;
    if (!OK(migraphx_program_get_output_shapes(&shapes, of(self))) ||
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

static PyObject *get_output_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t count;
    if (!OK(migraphx_program_output_names_size(&count, of(self))))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const char *name;
        PyObject *item = OK(migraphx_program_output_name(&name, of(self), i))
                             ? PyUnicode_FromString(name)
                             : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *is_compiled(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool compiled;
    return OK(migraphx_program_is_compiled(&compiled, of(self))) ? PyBool_FromLong(compiled)
                                                                 : py_fail();
}

// --- compile ---

struct compile_settings {
    PyObject *target;
    int offload_copy, fast_math, exhaustive_tune, compute_double;
    Py_ssize_t threads;
};

static migraphx_status compile_with(PyObject *self, const struct compile_settings *s,
                                    migraphx_compile_options_t options)
{
    migraphx_compile_options_set_offload_copy(options, s->offload_copy);
    migraphx_compile_options_set_fast_math(options, s->fast_math);
    migraphx_compile_options_set_exhaustive_tune_flag(options, s->exhaustive_tune);
    migraphx_compile_options_set_compute_double(options, s->compute_double);
    migraphx_status status =
        migraphx_compile_options_set_threads(options, s->threads > 0 ? (size_t)s->threads : 0);
    if (!OK(status))
        return status;
    const migraphx_program_t program = of(self);
    const migraphx_target_t target = ((struct py_target *)s->target)->handle;
    Py_BEGIN_ALLOW_THREADS
    status = migraphx_program_compile(program, target, options);
    Py_END_ALLOW_THREADS
    return status;
}

static PyObject *compile(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"t",         "offload_copy", "fast_math",      "exhaustive_tune",
                            "device_id", "threads",      "compute_double", NULL};
    struct compile_settings s = {.offload_copy = 1, .fast_math = 1};
    int device_id = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|pppinp:compile", names, py.target, &s.target,
                                     &s.offload_copy, &s.fast_math, &s.exhaustive_tune, &device_id,
                                     &s.threads, &s.compute_double))
        return NULL;
    if (device_id != 0) {
        PyErr_Format(PyExc_RuntimeError, "compile: there is no device %d", device_id);
        return NULL;
    }
    migraphx_compile_options_t options = NULL;
    migraphx_status status = migraphx_compile_options_create(&options);
    if (OK(status))
        status = compile_with(self, &s, options);
    migraphx_compile_options_destroy(options);
    if (!OK(status))
        return py_fail();
    if (py_remember_compile(self, args, kwargs) < 0)
        return NULL;
    Py_RETURN_NONE;
}

// --- run ---

int py_add_parameters(PyObject *dict, migraphx_program_parameters_t params)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        PyObject *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8String(key) : NULL;
        PyObject *argument = name ? py_to_argument(value) : NULL;
        int added = 0;
        if (argument)
            added = OK(migraphx_program_parameters_add(params, PyBytes_AsString(name),
                                                       ((struct py_argument *)argument)->handle));
        if (argument && !added)
            py_fail();
        if (!name && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "run: parameter names must be str");
        Py_XDECREF(argument);
        Py_XDECREF(name);
        if (!added)
            return -1;
    }
    return 0;
}

static PyObject *list_results(migraphx_arguments_t take)
{
    size_t count = 0;
    migraphx_arguments_size(&count, take);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const_migraphx_argument_t argument;
        PyObject *item =
            OK(migraphx_arguments_get(&argument, take, i)) ? py_copy_argument(argument) : py_fail();
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    migraphx_arguments_destroy(take);
    return list;
}

static PyObject *run_with(PyObject *self, PyObject *dict, void *stream, const char *stream_name)
{
    migraphx_program_parameters_t params = NULL;
    migraphx_arguments_t results = NULL;
    if (!OK(migraphx_program_parameters_create(&params)))
        return py_fail();
    PyObject *list = NULL;
    if (py_add_parameters(dict, params) == 0) {
        const migraphx_program_t program = of(self);
        migraphx_status status;
        Py_BEGIN_ALLOW_THREADS
        status = stream_name
                     ? migraphx_program_run_async(&results, program, params, stream, stream_name)
                     : migraphx_program_run(&results, program, params);
        Py_END_ALLOW_THREADS
        list = OK(status) ? list_results(results) : py_fail();
    }
    migraphx_program_parameters_destroy(params);
    return list;
}

static PyObject *run(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"params", NULL};
    PyObject *dict;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:run", names, &PyDict_Type, &dict))
        return NULL;
    return run_with(self, dict, NULL, NULL);
}

static PyObject *run_async(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"params", "stream", "stream_name", NULL};
    PyObject *dict, *stream;
    const char *stream_name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!Os:run_async", names, &PyDict_Type, &dict,
                                     &stream, &stream_name))
        return NULL;
    void *pointer = PyLong_AsVoidPtr(stream);
    return PyErr_Occurred() ? NULL : run_with(self, dict, pointer, stream_name);
}

// --- graph and text ---

// Who holds a module may change it.
static PyObject *get_main_module(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool compiled = false;
    if (!OK(migraphx_program_is_compiled(&compiled, of(self))))
        return py_fail();
    if (!compiled)
        py_forget_source(self);
    migraphx_module_t module = NULL;
    return OK(migraphx_program_get_main_module(&module, of(self))) ? py_wrap_module(module, self)
                                                                   : py_fail();
}

static PyObject *create_module(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", NULL};
    const char *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s:create_module", names, &name))
        return NULL;
    migraphx_module_t module = NULL;
    return OK(migraphx_program_create_module(&module, of(self), name))
               ? py_wrap_module(module, self)
               : py_fail();
}

static PyObject *to_py(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text;
    return OK(migraphx_program_format(&text, of(self), "py")) ? py_take_text(text) : py_fail();
}

static PyObject *sort(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!OK(migraphx_program_sort(of(self))))
        return py_fail();
    Py_INCREF(self);
    return self;
}

static PyObject *print(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!OK(migraphx_program_print(of(self))))
        return py_fail();
    Py_RETURN_NONE;
}

static PyObject *explain(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text;
    return OK(migraphx_program_explain(&text, of(self))) ? py_take_text(text) : py_fail();
}

static PyObject *clone(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_program_t copy = NULL;
    if (OK(migraphx_program_create(&copy)) && OK(migraphx_program_assign_to(copy, of(self))))
        return py_wrap_program(copy);
    migraphx_program_destroy(copy);
    return py_fail();
}

static PyObject *repr(PyObject *self)
{
    char *text;
    return OK(migraphx_program_to_string(&text, of(self))) ? py_take_text(text) : py_fail();
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.program, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_program_equal(&same, of(a), of(b))))
        return py_fail();
    return py_compared(op, same);
}

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"get_parameter_names", get_parameter_names, METH_NOARGS, "Names, in the model's order."},
    {"get_parameter_shapes", get_parameter_shapes, METH_NOARGS, "Shapes by name."},
    {"get_output_shapes", get_output_shapes, METH_NOARGS, "Shapes of the results."},
    {"get_output_names", get_output_names, METH_NOARGS, "The model's names of the results."},
    {"is_compiled", is_compiled, METH_NOARGS, "True after compile()."},
    {"compile", WITH_KEYWORDS(compile),
     "compile(t, offload_copy=True, fast_math=True, exhaustive_tune=False, device_id=0, "
     "threads=0, compute_double=False)"},
    {"run", WITH_KEYWORDS(run),
     "run(params) -> list of argument\n\nparams: dict from name to argument, or to anything with "
     "a buffer"},
    {"run_async", WITH_KEYWORDS(run_async), "run_async(params, stream, stream_name)"},
    {"get_main_module", get_main_module, METH_NOARGS, "The module that runs."},
    {"create_module", WITH_KEYWORDS(create_module), "create_module(name) -> module"},
    {"to_py", to_py, METH_NOARGS, "Python code that builds the program."},
    {"sort", sort, METH_NOARGS, "Puts the instructions into a canonical order."},
    {"print", print, METH_NOARGS, "Writes the program to stdout."},
    {"explain", explain, METH_NOARGS, "Kernel, layout and threads of every instruction."},
    {"clone", clone, METH_NOARGS, "A copy that is not compiled."},
    {"reshape", WITH_KEYWORDS(py_program_reshape),
     "reshape(inputs)\n\nThe model for other lengths of its inputs: {name: lengths}; compiled as "
     "it "
     "was."},
    {NULL, NULL, 0, NULL}};

PyObject *py_make_program_type(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_new, (void *)program_new},
                                  {Py_tp_dealloc, (void *)program_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_repr, (void *)repr},
                                  {Py_tp_richcompare, (void *)compare},
                                  {Py_tp_doc, "program()\n\nA graph, to be compiled and run."},
                                  {0, NULL}};
    static PyType_Spec spec = {"migraphx.program", sizeof(struct py_program), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}

// --- target ---

static void target_dealloc(PyObject *self)
{
    migraphx_target_destroy(((struct py_target *)self)->handle);
    py_free(self);
}

static PyObject *target_repr(PyObject *self)
{
    const char *name;
    return OK(migraphx_target_name(&name, ((struct py_target *)self)->handle))
               ? PyUnicode_FromString(name)
               : py_fail();
}

PyObject *py_make_target_type(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)target_dealloc},
                                  {Py_tp_repr, (void *)target_repr},
                                  {Py_tp_doc, "What compiles and runs programs; see get_target."},
                                  {0, NULL}};
    static PyType_Spec spec = {"migraphx.target", sizeof(struct py_target), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}
