// SPDX-License-Identifier: MIT
// Quantization: quantize_fp16 and its kin change a program before it is compiled.
#include <stdlib.h>

#include "pymgx.h"

static migraphx_program_t program_of(PyObject *program)
{
    return py_program_handle(program);
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

// What reshape keeps for other lengths follows.
static migraphx_status quantize_all(PyObject *program, migraphx_quantize_op_names_t list,
                                    quantize_named quantize)
{
    PyObject *others = ((struct py_program *)program)->others;
    migraphx_status status = quantize(program_of(program), list);
    for (Py_ssize_t i = 0; others && i < PyList_Size(others) && OK(status); i++)
        status = quantize(program_of(PyTuple_GetItem(PyList_GetItem(others, i), 1)), list);
    return status;
}

static PyObject *quantize_float(const char *name, PyObject *args, PyObject *kwargs,
                                quantize_named quantize)
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
        result = none_or_error(quantize_all(program, list, quantize));
    migraphx_quantize_op_names_destroy(list);
    if (result && py_remember_change(program, name, sequence) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *quantize_fp16(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    (void)unused;
    return quantize_float("quantize_fp16", args, kwargs, migraphx_quantize_fp16_with_op_names);
}

static PyObject *quantize_bf16(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    (void)unused;
    return quantize_float("quantize_bf16", args, kwargs, migraphx_quantize_bf16_with_op_names);
}

// Calls `add` with one sample after the other.
static int each_sample(PyObject *program, PyObject *calibration, void *options,
                       migraphx_status (*add)(void *, migraphx_program_parameters_t))
{
    const Py_ssize_t count = calibration ? PySequence_Size(calibration) : 0;
    int result = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *sample = PySequence_GetItem(calibration, i);
        migraphx_program_parameters_t params = NULL;
        result = sample && PyDict_Check(sample) && OK(migraphx_program_parameters_create(&params))
                     ? py_add_parameters(program, sample, params)
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
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|OO:quantize_int8", names, py.program,
                                     &program, &target, &calibration, &ins_names) ||
        !(target = py_to_target(target)))
        return NULL;
    migraphx_quantize_int8_options_t options = NULL;
    migraphx_status status;
    PyObject *result = NULL;
    if (!OK(migraphx_quantize_int8_options_create(&options)))
        py_fail();
    else if (add_int8_names(ins_names, options) == 0 &&
             each_sample(program, calibration, options, add_int8) == 0) {
        const migraphx_program_t handle = changing(program);
        PY_WORK(status,
                migraphx_quantize_int8(handle, ((struct py_target *)target)->handle, options));
        result = none_or_error(status);
    }
    migraphx_quantize_int8_options_destroy(options);
    Py_DECREF(target);
    return result;
}

static PyObject *quantize_fp8(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", "t", "calibration", NULL};
    PyObject *program, *target, *calibration = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:quantize_fp8", names, py.program,
                                     &program, &target, &calibration) ||
        !(target = py_to_target(target)))
        return NULL;
    migraphx_quantize_fp8_options_t options = NULL;
    migraphx_status status;
    PyObject *result = NULL;
    if (!OK(migraphx_quantize_fp8_options_create(&options)))
        py_fail();
    else if (each_sample(program, calibration, options, add_fp8) == 0) {
        const migraphx_program_t handle = changing(program);
        PY_WORK(status,
                migraphx_quantize_fp8(handle, ((struct py_target *)target)->handle, options));
        result = none_or_error(status);
    }
    migraphx_quantize_fp8_options_destroy(options);
    Py_DECREF(target);
    return result;
}

// --- everything that can be chosen ---

static migraphx_status add_any(void *options, migraphx_program_parameters_t data)
{
    return migraphx_quantize_options_add_calibration_data(options, data);
}

struct choices {
    PyObject *type, *ins_names, *ranges;
    const char *method, *metric;
    double percentile;
    PyObject *budget;
    int asymmetric, per_tensor, correct_bias, smooth, reckon_time;
};

static bool add_any_names(PyObject *iterable, migraphx_quantize_options_t options)
{
    PyObject *list = iterable ? PySequence_List(iterable) : PyList_New(0);
    const Py_ssize_t count = list ? PyList_Size(list) : -1;
    bool good = count >= 0;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *bytes = PyUnicode_AsUTF8String(PyList_GetItem(list, i));
        good = bytes && OK(migraphx_quantize_options_add_op_name(options, PyBytes_AsString(bytes)));
        Py_XDECREF(bytes);
    }
    Py_XDECREF(list);
    return good;
}

static bool set_type(PyObject *name, migraphx_quantize_options_t options)
{
    PyObject *bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
    migraphx_shape_datatype_t type;
    const bool good = !name || (bytes && OK(migraphx_type_find(&type, PyBytes_AsString(bytes))) &&
                                OK(migraphx_quantize_options_set_type(options, type)));
    Py_XDECREF(bytes);
    return good;
}

static bool set_ranges(PyObject *text, migraphx_quantize_options_t options)
{
    PyObject *bytes = text && text != Py_None ? PyUnicode_AsUTF8String(text) : NULL;
    const bool good =
        !text || text == Py_None ||
        (bytes && OK(migraphx_quantize_options_set_ranges(options, PyBytes_AsString(bytes),
                                                          (size_t)PyBytes_Size(bytes))));
    Py_XDECREF(bytes);
    return good;
}

static bool set_budget(const struct choices *c, migraphx_quantize_options_t options)
{
    const double budget = c->budget && c->budget != Py_None ? PyFloat_AsDouble(c->budget) : -1;
    return !PyErr_Occurred() &&
           OK(migraphx_quantize_options_set_budget(options, c->metric, budget));
}

static bool set_choices(const struct choices *c, migraphx_quantize_options_t options)
{
    return set_type(c->type, options) && set_ranges(c->ranges, options) && set_budget(c, options) &&
           OK(migraphx_quantize_options_set_method(options, c->method)) &&
           OK(migraphx_quantize_options_set_percentile(options, c->percentile)) &&
           OK(migraphx_quantize_options_set_asymmetric(options, c->asymmetric)) &&
           OK(migraphx_quantize_options_set_per_tensor(options, c->per_tensor)) &&
           OK(migraphx_quantize_options_set_correct_bias(options, c->correct_bias)) &&
           OK(migraphx_quantize_options_set_smooth(options, c->smooth)) &&
           OK(migraphx_quantize_options_set_reckon_time(options, c->reckon_time)) &&
           add_any_names(c->ins_names, options);
}

static PyObject *taken_text(char *text)
{
    PyObject *result = PyUnicode_FromString(text);
    migraphx_string_destroy(text);
    return result;
}

static PyObject *quantize(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog",       "t",          "calibration", "type",
                            "method",     "budget",     "metric",      "ranges",
                            "percentile", "asymmetric", "smooth",      "correct_bias",
                            "per_tensor", "ins_names",  "reckon_time", NULL};
    struct choices c = {.method = "max", .metric = "relative", .percentile = 99.99};
    PyObject *program, *target, *calibration = NULL, *result = NULL;
    migraphx_status status = migraphx_status_unknown_error;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|OOsOsOdppppOp:quantize", names, py.program,
                                     &program, &target, &calibration, &c.type, &c.method, &c.budget,
                                     &c.metric, &c.ranges, &c.percentile, &c.asymmetric, &c.smooth,
                                     &c.correct_bias, &c.per_tensor, &c.ins_names,
                                     &c.reckon_time) ||
        !(target = py_to_target(target)))
        return NULL;
    migraphx_quantize_options_t options = NULL;
    char *text = NULL;
    const bool set = OK(migraphx_quantize_options_create(&options)) && set_choices(&c, options);
    if (set && each_sample(program, calibration, options, add_any) == 0) {
        const migraphx_program_t handle = changing(program);
        PY_WORK(status,
                migraphx_quantize(&text, handle, ((struct py_target *)target)->handle, options));
    }
    if (OK(status))
        result = taken_text(text);
    else if (!PyErr_Occurred())
        py_fail();
    migraphx_quantize_options_destroy(options);
    Py_DECREF(target);
    return result;
}

static PyObject *quantize_int4_weights(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", "block", "symmetric", NULL};
    PyObject *program;
    Py_ssize_t block = 32;
    int symmetric = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|np:quantize_int4_weights", names, py.program,
                                     &program, &block, &symmetric))
        return NULL;
    if (block < 0) {
        PyErr_SetString(PyExc_ValueError, "quantize_int4_weights: block is negative");
        return NULL;
    }
    return none_or_error(
        migraphx_quantize_int4_weights(changing(program), (size_t)block, symmetric));
}

// A sequence of numbers, to be freed; NULL for None, and with an exception set.
static double *read_factors(PyObject *sequence, Py_ssize_t *count)
{
    *count = 0;
    if (!sequence || sequence == Py_None)
        return NULL;
    PyObject *list = PySequence_List(sequence);
    *count = list ? PyList_Size(list) : 0;
    double *out = list ? malloc(((size_t)*count + 1) * sizeof *out) : NULL;
    if (list && !out)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; out && i < *count; i++)
        out[i] = PyFloat_AsDouble(PyList_GetItem(list, i));
    Py_XDECREF(list);
    return out;
}

static PyObject *take_bytes(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", "name", "scale", "offset", "channels_last", NULL};
    PyObject *program, *scales = NULL, *offsets = NULL, *done = NULL;
    Py_ssize_t count = 0, others = 0;
    const char *name;
    int channels_last = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!s|OOp:take_bytes", names, py.program,
                                     &program, &name, &scales, &offsets, &channels_last))
        return NULL;
    double *scale = read_factors(scales, &count);
    double *offset = PyErr_Occurred() ? NULL : read_factors(offsets, &others);
    if (!PyErr_Occurred() && scale && offset && count != others)
        PyErr_SetString(PyExc_ValueError, "take_bytes: scale and offset are not as long");
    if (!PyErr_Occurred())
        done = none_or_error(migraphx_take_bytes(changing(program), name, scale, offset,
                                                 (size_t)(scale ? count : others), channels_last));
    free(scale);
    free(offset);
    return done;
}

static PyObject *quantization(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", NULL};
    PyObject *program;
    char *text;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:quantization", names, py.program, &program))
        return NULL;
    if (!OK(migraphx_program_quantization(&text, program_of(program))))
        return py_fail();
    return taken_text(text);
}

static PyObject *autocast_fp8(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"prog", NULL};
    const char *const passes[] = {"autocast_fp8"};
    PyObject *program;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:autocast_fp8", names, py.program, &program))
        return NULL;
    return none_or_error(migraphx_program_run_passes(changing(program), passes, 1));
}

PyMethodDef py_quantize_functions[] = {
    {"quantize_fp16", WITH_KEYWORDS(quantize_fp16),
     "quantize_fp16($module, /, prog, ins_names=['all'])\n--\n\n"
     "Makes the named operators compute in half_type, before compile."},
    {"quantize_bf16", WITH_KEYWORDS(quantize_bf16),
     "quantize_bf16($module, /, prog, ins_names=['all'])\n--\n\n"
     "Makes the named operators compute in bf16_type, before compile."},
    {"quantize_int8", WITH_KEYWORDS(quantize_int8),
     "quantize_int8($module, /, prog, t, calibration=[], ins_names={'dot', 'convolution'})\n--\n\n"
     "Makes the named operators compute in int8_type; `calibration` is a list of what run takes."},
    {"quantize_fp8", WITH_KEYWORDS(quantize_fp8),
     "quantize_fp8($module, /, prog, t, calibration=[])\n--\n\n"
     "Makes products compute in an 8-bit float; `calibration` as with quantize_int8."},
    {"quantize", WITH_KEYWORDS(quantize),
     "quantize($module, /, prog, t, calibration=[], type='int8', method='max', budget=None,"
     " metric='relative', ranges=None, percentile=99.99, asymmetric=False, smooth=False,"
     " correct_bias=False, per_tensor=False, ins_names=[], reckon_time=False)\n--\n\n"
     "quantize_int8 with everything that can be chosen; gives the ranges as text."},
    {"quantize_int4_weights", WITH_KEYWORDS(quantize_int4_weights),
     "quantize_int4_weights($module, /, prog, block=32, symmetric=False)\n--\n\n"
     "Makes weights 4-bit integers, with a scale for every block."},
    {"take_bytes", WITH_KEYWORDS(take_bytes),
     "take_bytes($module, /, prog, name, scale=None, offset=None, channels_last=False)\n--\n\n"
     "An input of floats comes as bytes, and the program makes scale * x + offset of them (numbers "
     "for each"
     " channel, or one); channels_last: as (n, ..., c), where the model has (n, c, ...)."},
    {"quantization", WITH_KEYWORDS(quantization),
     "quantization($module, /, prog)\n--\n\n"
     "The ranges that quantize left in the program, as text."},
    {"autocast_fp8", WITH_KEYWORDS(autocast_fp8),
     "autocast_fp8($module, /, prog)\n--\n\n"
     "Gives a program of fp8 parameters and results float ones."},
    {NULL, NULL, 0, NULL}};
