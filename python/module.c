// SPDX-License-Identifier: MIT
// The Python module migraphx: its types, its functions on files, targets and quantization, and its
// beginning.
#include "pymgx.h"

#include <string.h>

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static migraphx_program_t program_of(PyObject *program)
{
    return ((struct py_program *)program)->handle;
}

// For what changes the program: it cannot be read again after that.
static migraphx_program_t changing(PyObject *program)
{
    py_forget_source(program);
    return program_of(program);
}

static PyObject *none_or_error(migraphx_status status)
{
    if (!OK(status))
        return py_fail();
    Py_RETURN_NONE;
}

// --- targets ---

static PyObject *get_target(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", NULL};
    const char *name;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s:get_target", names, &name))
        return NULL;
    migraphx_target_t target = NULL;
    if (!OK(migraphx_target_create(&target, name)))
        return py_fail();
    struct py_target *self = py_new(py.target);
    if (self)
        self->handle = target;
    else
        migraphx_target_destroy(target);
    return (PyObject *)self;
}

static PyObject *get_targets(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    size_t count;
    if (!OK(migraphx_get_targets_size(&count)))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const char *name;
        PyObject *item = OK(migraphx_get_target_name_at_index(&name, i))
                             ? PyUnicode_FromString(name)
                             : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

// --- files ---

static migraphx_status make_file_options(migraphx_file_options_t *out, const char *format)
{
    const migraphx_status status = migraphx_file_options_create(out);
    return OK(status) ? migraphx_file_options_set_file_format(*out, format) : status;
}

static PyObject *load(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename", "format", NULL};
    PyObject *path;
    const char *format = "msgpack";
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|s:load", names, PyUnicode_FSConverter, &path,
                                     &format))
        return NULL;
    migraphx_file_options_t options = NULL;
    migraphx_program_t program = NULL;
    migraphx_status status = make_file_options(&options, format);
    if (OK(status))
        status = migraphx_load(&program, PyBytes_AsString(path), options);
    migraphx_file_options_destroy(options);
    Py_DECREF(path);
    return OK(status) ? py_wrap_program(program) : py_fail();
}

static PyObject *save(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"p", "filename", "format", NULL};
    PyObject *program, *path;
    const char *format = "msgpack";
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&|s:save", names, py.program, &program,
                                     PyUnicode_FSConverter, &path, &format))
        return NULL;
    migraphx_file_options_t options = NULL;
    migraphx_status status = make_file_options(&options, format);
    if (OK(status))
        status = migraphx_save(program_of(program), PyBytes_AsString(path), options);
    migraphx_file_options_destroy(options);
    Py_DECREF(path);
    return none_or_error(status);
}

static PyObject *load_buffer(PyObject *unused, PyObject *source)
{
    (void)unused;
    static const char nothing[1];
    Py_buffer bytes;
    if (PyObject_GetBuffer(source, &bytes, 0) < 0)
        return NULL;
    migraphx_file_options_t options = NULL;
    migraphx_program_t program = NULL;
    migraphx_status status = make_file_options(&options, "msgpack");
    if (OK(status))
        status = migraphx_load_buffer(&program, bytes.buf ? bytes.buf : nothing, (size_t)bytes.len,
                                      options);
    migraphx_file_options_destroy(options);
    PyBuffer_Release(&bytes);
    return OK(status) ? py_wrap_program(program) : py_fail();
}

static PyObject *save_buffer(PyObject *unused, PyObject *program)
{
    (void)unused;
    if (PyObject_IsInstance(program, py.program) != 1) {
        PyErr_SetString(PyExc_TypeError, "save_buffer: not a program");
        return NULL;
    }
    migraphx_file_options_t options = NULL;
    char *bytes = NULL;
    size_t size = 0;
    migraphx_status status = make_file_options(&options, "msgpack");
    if (OK(status))
        status = migraphx_save_buffer(&bytes, &size, program_of(program), options);
    migraphx_file_options_destroy(options);
    PyObject *result = OK(status) ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size) : py_fail();
    migraphx_string_destroy(bytes);
    return result;
}

// --- quantization ---

typedef migraphx_status (*quantize_named)(migraphx_program_t, migraphx_quantize_op_names_t);

static int add_names(PyObject *sequence, migraphx_quantize_op_names_t names)
{
    const Py_ssize_t count = sequence ? PySequence_Size(sequence) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *bytes = item ? PyUnicode_AsUTF8String(item) : NULL;
        Py_XDECREF(item);
        if (!bytes)
            return -1;
        const migraphx_status status =
            migraphx_quantize_op_names_add(names, PyBytes_AsString(bytes));
        Py_DECREF(bytes);
        if (!OK(status)) {
            py_fail();
            return -1;
        }
    }
    return count < 0 ? -1 : 0;
}

static PyObject *quantize_float(PyObject *args, PyObject *kwargs, quantize_named quantize)
{
    static char *names[] = {"prog", "ins_names", NULL};
    PyObject *program, *sequence = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O:quantize", names, py.program, &program,
                                     &sequence))
        return NULL;
    migraphx_quantize_op_names_t list = NULL;
    if (!OK(migraphx_quantize_op_names_create(&list)))
        return py_fail();
    PyObject *result = NULL;
    if (add_names(sequence, list) == 0)
        result = none_or_error(quantize(changing(program), list));
    migraphx_quantize_op_names_destroy(list);
    return result;
}

static PyObject *quantize_fp16(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    (void)unused;
    return quantize_float(args, kwargs, migraphx_quantize_fp16_with_op_names);
}

static PyObject *quantize_bf16(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    (void)unused;
    return quantize_float(args, kwargs, migraphx_quantize_bf16_with_op_names);
}

// Calls `add` with one sample after the other.
static int each_sample(PyObject *calibration, void *options,
                       migraphx_status (*add)(void *, migraphx_program_parameters_t))
{
    const Py_ssize_t count = calibration ? PySequence_Size(calibration) : 0;
    int result = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *sample = PySequence_GetItem(calibration, i);
        migraphx_program_parameters_t params = NULL;
        result = sample && PyDict_Check(sample) && OK(migraphx_program_parameters_create(&params))
                     ? py_add_parameters(sample, params)
                     : -1;
        if (result == 0 && !OK(add(options, params))) {
            py_fail();
            result = -1;
        }
        migraphx_program_parameters_destroy(params);
        Py_XDECREF(sample);
    }
    if (result < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "calibration must be a list of dicts");
    return result;
}

static migraphx_status add_int8(void *options, migraphx_program_parameters_t data)
{
    return migraphx_quantize_int8_options_add_calibration_data(options, data);
}

static migraphx_status add_fp8(void *options, migraphx_program_parameters_t data)
{
    return migraphx_quantize_fp8_options_add_calibration_data(options, data);
}

static int add_int8_names(PyObject *iterable, migraphx_quantize_int8_options_t options)
{
    PyObject *list = iterable ? PySequence_List(iterable) : PyList_New(0);
    const Py_ssize_t count = list ? PyList_Size(list) : -1;
    int result = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *bytes = PyUnicode_AsUTF8String(PyList_GetItem(list, i));
        result = bytes ? 0 : -1;
        if (bytes &&
            !OK(migraphx_quantize_int8_options_add_op_name(options, PyBytes_AsString(bytes)))) {
            py_fail();
            result = -1;
        }
        Py_XDECREF(bytes);
    }
    Py_XDECREF(list);
    return result;
}

static PyObject *quantize_int8(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", "t", "calibration", "ins_names", NULL};
    PyObject *program, *target, *calibration = NULL, *ins_names = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|OO:quantize_int8", names, py.program,
                                     &program, py.target, &target, &calibration, &ins_names))
        return NULL;
    migraphx_quantize_int8_options_t options = NULL;
    if (!OK(migraphx_quantize_int8_options_create(&options)))
        return py_fail();
    PyObject *result = NULL;
    if (add_int8_names(ins_names, options) == 0 && each_sample(calibration, options, add_int8) == 0)
        result = none_or_error(migraphx_quantize_int8(
            changing(program), ((struct py_target *)target)->handle, options));
    migraphx_quantize_int8_options_destroy(options);
    return result;
}

static PyObject *quantize_fp8(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", "t", "calibration", NULL};
    PyObject *program, *target, *calibration = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|O:quantize_fp8", names, py.program,
                                     &program, py.target, &target, &calibration))
        return NULL;
    migraphx_quantize_fp8_options_t options = NULL;
    if (!OK(migraphx_quantize_fp8_options_create(&options)))
        return py_fail();
    PyObject *result = NULL;
    if (each_sample(calibration, options, add_fp8) == 0)
        result = none_or_error(migraphx_quantize_fp8(
            changing(program), ((struct py_target *)target)->handle, options));
    migraphx_quantize_fp8_options_destroy(options);
    return result;
}

static PyObject *autocast_fp8(PyObject *unused, PyObject *program)
{
    const char *const passes[] = {"autocast_fp8"};
    (void)unused;
    if (PyObject_IsInstance(program, py.program) != 1) {
        PyErr_SetString(PyExc_TypeError, "autocast_fp8: not a program");
        return NULL;
    }
    return none_or_error(migraphx_program_run_passes(changing(program), passes, 1));
}

static PyMethodDef functions[] = {
    {"get_target", WITH_KEYWORDS(get_target), "get_target(name) -> target"},
    {"get_targets", get_targets, METH_NOARGS, "Names of the targets built in."},
    {"load", WITH_KEYWORDS(load), "load(filename, format='msgpack') -> program"},
    {"save", WITH_KEYWORDS(save), "save(p, filename, format='msgpack')"},
    {"load_buffer", load_buffer, METH_O, "load_buffer(bytes) -> program"},
    {"save_buffer", save_buffer, METH_O, "save_buffer(p) -> bytes"},
    {"quantize_fp16", WITH_KEYWORDS(quantize_fp16), "quantize_fp16(prog, ins_names=['all'])"},
    {"quantize_bf16", WITH_KEYWORDS(quantize_bf16), "quantize_bf16(prog, ins_names=['all'])"},
    {"quantize_int8", WITH_KEYWORDS(quantize_int8),
     "quantize_int8(prog, t, calibration=[], ins_names={'dot', 'convolution'})"},
    {"quantize_fp8", WITH_KEYWORDS(quantize_fp8), "quantize_fp8(prog, t, calibration=[])"},
    {"autocast_fp8", autocast_fp8, METH_O,
     "autocast_fp8(prog): float parameters and results around fp8 ones"},
    {NULL, NULL, 0, NULL}};

// --- beginning ---

static int add_types(PyObject *module)
{
    PyObject *json = PyImport_ImportModule("json");
    py.loads = json ? PyObject_GetAttrString(json, "loads") : NULL;
    Py_XDECREF(json);
    return py.loads && (py.dim = py_make_dim_type(module)) &&
                   (py.shape = py_make_shape_type(module)) &&
                   (py.argument = py_make_argument_type(module)) &&
                   (py.target = py_make_target_type(module)) && (py.op = py_make_op_type(module)) &&
                   (py.program = py_make_program_type(module)) &&
                   (py.module = py_make_module_type(module)) && (py.ins = py_make_ins_type(module))
               ? 0
               : -1;
}

PyMODINIT_FUNC PyInit_migraphx(void); // called by name

PyMODINIT_FUNC PyInit_migraphx(void)
{
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "migraphx",
                                            "Compiles and runs neural networks.",
                                            -1,
                                            functions,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
    const char *version = "";
    PyObject *module = PyModule_Create(&definition);
    migraphx_get_version(&version);
    if (module && add_types(module) == 0 &&
        PyModule_AddFunctions(module, py_parse_functions) == 0 &&
        PyModule_AddFunctions(module, py_argument_functions) == 0 &&
        PyModule_AddStringConstant(module, "__version__", version) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
