// SPDX-License-Identifier: MIT
// Reading models: parse_onnx, parse_onnx_buffer, parse_tf, and the lists of supported operators.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// --- options ---

static int set_input_dims(migraphx_onnx_options_t options, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value)) {
        size_t dims[MAX_RANK];
        const Py_ssize_t rank = py_sizes(value, dims, MAX_RANK, "map_input_dims");
        PyObject *name = rank < 0 ? NULL : PyUnicode_AsUTF8String(key);
        if (!name)
            return -1;
        const migraphx_status status = migraphx_onnx_options_set_input_parameter_shape(
            options, PyBytes_AsString(name), dims, (size_t)rank);
        Py_DECREF(name);
        if (!OK(status)) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

static int set_dyn_input_dims(migraphx_onnx_options_t options, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value)) {
        migraphx_dynamic_dimensions_t dims = NULL;
        PyObject *name = PyUnicode_AsUTF8String(key);
        if (!name || py_dims(value, &dims) < 0) {
            Py_XDECREF(name);
            return -1;
        }
        const migraphx_status status = migraphx_onnx_options_set_dyn_input_parameter_shape(
            options, PyBytes_AsString(name), dims);
        migraphx_dynamic_dimensions_destroy(dims);
        Py_DECREF(name);
        if (!OK(status)) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

static int set_dim_params(migraphx_onnx_options_t options, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value)) {
        migraphx_dynamic_dimension_t dim = NULL;
        PyObject *name = PyUnicode_AsUTF8String(key);
        if (!name || py_dim(value, &dim) < 0) {
            Py_XDECREF(name);
            return -1;
        }
        const migraphx_status status =
            migraphx_onnx_options_set_dim_param(options, PyBytes_AsString(name), dim);
        migraphx_dynamic_dimension_destroy(dim);
        Py_DECREF(name);
        if (!OK(status)) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

struct onnx_settings {
    size_t default_dim_value;
    PyObject *default_dyn_dim, *dim_params, *input_dims, *dyn_input_dims, *external_path;
    int skip_unknown, print_on_error, debug_symbols, dynamic_dims;
    Py_ssize_t loop_iterations, limit_iterations;
};

static int set_scalars(migraphx_onnx_options_t options, const struct onnx_settings *s)
{
    const int good =
        OK(migraphx_onnx_options_set_default_dim_value(options, s->default_dim_value)) &&
        OK(migraphx_onnx_options_set_default_loop_iterations(options, s->loop_iterations)) &&
        OK(migraphx_onnx_options_set_limit_loop_iterations(options, s->limit_iterations)) &&
        OK(migraphx_onnx_options_set_use_debug_symbols(options, s->debug_symbols)) &&
        OK(migraphx_onnx_options_set_dynamic_dims(options, s->dynamic_dims)) &&
        OK(migraphx_onnx_options_set_skip_unknown_operators(options, s->skip_unknown));
    if (!good)
        py_fail();
    return good ? 0 : -1;
}

static int set_default_dyn_dim(migraphx_onnx_options_t options, PyObject *value)
{
    migraphx_dynamic_dimension_t dim = NULL;
    if (!value || value == Py_None)
        return 0;
    if (py_dim(value, &dim) < 0)
        return -1;
    const migraphx_status status = migraphx_onnx_options_set_default_dyn_dim_value(options, dim);
    migraphx_dynamic_dimension_destroy(dim);
    if (!OK(status))
        py_fail();
    return OK(status) ? 0 : -1;
}

static int set_external_path(migraphx_onnx_options_t options, PyObject *path)
{
    PyObject *bytes = NULL;
    if (!path || (PyUnicode_Check(path) && PyUnicode_GetLength(path) == 0))
        return 0;
    if (!PyUnicode_FSConverter(path, &bytes))
        return -1;
    const migraphx_status status =
        migraphx_onnx_options_set_external_data_path(options, PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (!OK(status))
        py_fail();
    return OK(status) ? 0 : -1;
}

static int set_all(migraphx_onnx_options_t options, const struct onnx_settings *s)
{
    if (set_scalars(options, s) < 0 || set_default_dyn_dim(options, s->default_dyn_dim) < 0 ||
        set_dim_params(options, s->dim_params) < 0 || set_input_dims(options, s->input_dims) < 0 ||
        set_dyn_input_dims(options, s->dyn_input_dims) < 0)
        return -1;
    return set_external_path(options, s->external_path);
}

// --- import ---

static PyObject *finish(migraphx_status status, migraphx_program_t program)
{
    if (OK(status))
        return py_wrap_program(program);
    migraphx_program_destroy(program); // complete when Ctrl-C came at its very end
    return py_fail();
}

static PyObject *parse_file(PyObject *path, migraphx_onnx_options_t options)
{
    migraphx_program_t program = NULL;
    migraphx_status status;
    const char *name = PyBytes_AsString(path);
    PY_WORK(status, migraphx_parse_onnx(&program, name, options));
    if (OK(status))
        return py_wrap_program(program);
    migraphx_program_destroy(program);
    return py_fail_reading(path);
}

static PyObject *parse_bytes(const Py_buffer *bytes, migraphx_onnx_options_t options)
{
    static const char nothing[1];
    migraphx_program_t program = NULL;
    migraphx_status status;
    const void *data = bytes->buf ? bytes->buf : nothing;
    const size_t size = (size_t)bytes->len;
    PY_WORK(status, migraphx_parse_onnx_buffer(&program, data, size, options));
    return finish(status, program);
}

// A misspelt input leaves the model's own sizes in force, as in MIGraphX; a warning says so.
static int warn_of_unknown(PyObject *dict, const char *what, PyObject *program)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    PyObject *names = dict && PyDict_Size(dict)
                          ? PyObject_CallMethod(program, "get_parameter_names", NULL)
                          : NULL;
    int status = PyErr_Occurred() ? -1 : 0;
    while (names && status == 0 && PyDict_Next(dict, &at, &key, &value)) {
        status = PySequence_Contains(names, key);
        if (status >= 0)
            status = status ? 0
                            : PyErr_WarnFormat(PyExc_UserWarning, 1,
                                               "%s: the model has no input %R; it has %R", what,
                                               key, names);
    }
    Py_XDECREF(names);
    return status;
}

static PyObject *checked(PyObject *take_program, const struct onnx_settings *s)
{
    if (take_program &&
        (warn_of_unknown(s->input_dims, "map_input_dims", take_program) < 0 ||
         warn_of_unknown(s->dyn_input_dims, "map_dyn_input_dims", take_program) < 0))
        Py_CLEAR(take_program);
    return take_program;
}

// --- where the model comes from ---

// A path has no NUL, no control character in front and an end; the bytes of a model have.
static bool is_path(PyObject *source)
{
    enum { LONGEST_PATH = 4096 };
    char *bytes;
    Py_ssize_t size;
    if (!PyBytes_Check(source))
        return PyUnicode_Check(source) || PyObject_HasAttrString(source, "__fspath__");
    if (PyBytes_AsStringAndSize(source, &bytes, &size) < 0) {
        PyErr_Clear();
        return true; // the converter of paths says what is wrong
    }
    return size < LONGEST_PATH && !memchr(bytes, 0, (size_t)size) &&
           (size == 0 || (unsigned char)bytes[0] >= ' ');
}

// A path as it is; what is or gives the bytes of a model (a ModelProto, an open file) as a
// memoryview of them, which stays the same when reshape reads the model again.
static PyObject *find_source(PyObject *given)
{
    PyObject *bytes = NULL;
    if (is_path(given)) {
        Py_INCREF(given);
        return given;
    }
    if (PyObject_HasAttrString(given, "SerializeToString"))
        bytes = PyObject_CallMethod(given, "SerializeToString", NULL);
    else if (PyObject_HasAttrString(given, "read"))
        bytes = PyObject_CallMethod(given, "read", NULL);
    else
        Py_INCREF(bytes = given);
    PyObject *view = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    if (bytes && !view && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "a model is given by its path, as bytes, as an onnx.ModelProto or as a file "
                     "that is open for reading bytes, not as %R",
                     Py_TYPE(given));
    }
    Py_XDECREF(bytes);
    return view;
}

// The arguments of the call with another source in the place of the first.
static int with_source(PyObject *source, PyObject **args, PyObject **kwargs)
{
    PyObject *list = PySequence_List(*args);
    PyObject *named = *kwargs ? PyObject_CallMethod(*kwargs, "copy", NULL) : NULL;
    int status = list && (named || !*kwargs) ? 0 : -1;
    if (status == 0 && PyList_Size(list)) {
        Py_INCREF(source);
        status = PyList_SetItem(list, 0, source);
    } else if (status == 0)
        status = PyDict_SetItemString(named, "filename", source);
    *args = status == 0 ? PySequence_Tuple(list) : NULL;
    *kwargs = named;
    Py_XDECREF(list);
    return *args ? 0 : -1;
}

static PyObject *parse(PyObject *source, const struct onnx_settings *s)
{
    migraphx_onnx_options_t options = NULL;
    PyObject *result = NULL, *path = NULL;
    Py_buffer bytes;
    if (!OK(migraphx_onnx_options_create(&options)))
        return py_fail();
    if (set_all(options, s) == 0) {
        if (is_path(source) && PyUnicode_FSConverter(source, &path)) {
            result = parse_file(path, options);
            Py_DECREF(path);
        } else if (!is_path(source) && PyObject_GetBuffer(source, &bytes, 0) == 0) {
            result = parse_bytes(&bytes, options);
            PyBuffer_Release(&bytes);
        }
    }
    migraphx_onnx_options_destroy(options);
    return checked(result, s);
}

// Parses, and notes the call for reshape.
static PyObject *parse_noted(PyObject *given, const struct onnx_settings *s, const char *function,
                             PyObject *args, PyObject *kwargs)
{
    PyObject *source = find_source(given);
    PyObject *program =
        source && with_source(source, &args, &kwargs) == 0 ? parse(source, s) : NULL;
    if (!source)
        return NULL;
    if (program && py_remember_source(program, function, args, kwargs) < 0)
        Py_CLEAR(program);
    Py_DECREF(source);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return program;
}

static PyObject *parse_onnx(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename",
                            "default_dim_value",
                            "default_dyn_dim_value",
                            "dim_params",
                            "map_input_dims",
                            "map_dyn_input_dims",
                            "skip_unknown_operators",
                            "print_program_on_error",
                            "max_loop_iterations",
                            "limit_max_iterations",
                            "use_debug_symbols",
                            "external_data_path",
                            "dynamic_dims",
                            NULL};
    PyObject *source;
    Py_ssize_t default_dim = 0;
    struct onnx_settings s = {.loop_iterations = 10, .limit_iterations = 65535};
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O|nOO!O!O!ppnnpOp:parse_onnx", names, &source, &default_dim,
            &s.default_dyn_dim, &PyDict_Type, &s.dim_params, &PyDict_Type, &s.input_dims,
            &PyDict_Type, &s.dyn_input_dims, &s.skip_unknown, &s.print_on_error, &s.loop_iterations,
            &s.limit_iterations, &s.debug_symbols, &s.external_path, &s.dynamic_dims))
        return NULL;
    s.default_dim_value = default_dim < 0 ? (size_t)0 : (size_t)default_dim;
    return parse_noted(source, &s, "parse_onnx", args, kwargs);
}

static PyObject *parse_onnx_buffer(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename",
                            "default_dim_value",
                            "default_dyn_dim_value",
                            "map_input_dims",
                            "map_dyn_input_dims",
                            "skip_unknown_operators",
                            "print_program_on_error",
                            "external_data_path",
                            "use_debug_symbols",
                            "dim_params",
                            "max_loop_iterations",
                            "limit_max_iterations",
                            "dynamic_dims",
                            NULL};
    PyObject *source;
    Py_ssize_t default_dim = 0;
    struct onnx_settings s = {.loop_iterations = 10, .limit_iterations = 65535};
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O|nOO!O!ppOpO!nnp:parse_onnx_buffer", names, &source, &default_dim,
            &s.default_dyn_dim, &PyDict_Type, &s.input_dims, &PyDict_Type, &s.dyn_input_dims,
            &s.skip_unknown, &s.print_on_error, &s.external_path, &s.debug_symbols, &PyDict_Type,
            &s.dim_params, &s.loop_iterations, &s.limit_iterations, &s.dynamic_dims))
        return NULL;
    s.default_dim_value = default_dim < 0 ? (size_t)0 : (size_t)default_dim;
    if (PyUnicode_Check(source))
        return PyErr_Format(PyExc_TypeError,
                            "parse_onnx_buffer takes the bytes of a model; "
                            "parse_onnx reads the file %R",
                            source);
    PyObject *view = PyBytes_Check(source) ? PyMemoryView_FromObject(source) : NULL; // no path
    PyObject *program =
        PyErr_Occurred() ? NULL
                         : parse_noted(view ? view : source, &s, "parse_onnx_buffer", args, kwargs);
    Py_XDECREF(view);
    return program;
}

// --- TensorFlow ---

static migraphx_status set_tf(migraphx_tf_options_t options, int nhwc, size_t batch)
{
    const migraphx_status status = migraphx_tf_options_set_nhwc(options, nhwc);
    return OK(status) ? migraphx_tf_options_set_default_dim_value(options, batch) : status;
}

static int set_tf_dims(migraphx_tf_options_t options, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value)) {
        size_t dims[MAX_RANK];
        const Py_ssize_t rank = py_sizes(value, dims, MAX_RANK, "map_input_dims");
        PyObject *name = rank < 0 ? NULL : PyUnicode_AsUTF8String(key);
        if (!name)
            return -1;
        const migraphx_status status = migraphx_tf_options_set_input_parameter_shape(
            options, PyBytes_AsString(name), dims, (size_t)rank);
        Py_DECREF(name);
        if (!OK(status)) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

static migraphx_status set_tf_outputs(migraphx_tf_options_t options, PyObject *list)
{
    const Py_ssize_t count = list ? PyList_Size(list) : 0;
    const char **names = count ? malloc((size_t)count * sizeof *names) : NULL;
    migraphx_status status = migraphx_status_success;
    for (Py_ssize_t i = 0; names && i < count; i++) {
        names[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!names[i])
            status = migraphx_status_bad_param;
    }
    if (names && OK(status))
        status = migraphx_tf_options_set_output_names(options, names, (size_t)count);
    free(names);
    return status;
}

// A SavedModel is one, and what is wrong is inside.
static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static PyObject *parse_tf(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"filename",       "is_nhwc",      "batch_size",
                            "map_input_dims", "output_names", NULL};
    PyObject *path, *dims = NULL, *outputs = NULL;
    int nhwc = 1;
    Py_ssize_t batch = 1;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|pnO!O!:parse_tf", names,
                                     PyUnicode_FSConverter, &path, &nhwc, &batch, &PyDict_Type,
                                     &dims, &PyList_Type, &outputs))
        return NULL;
    migraphx_tf_options_t options = NULL;
    migraphx_program_t program = NULL;
    migraphx_status status = migraphx_tf_options_create(&options);
    if (OK(status))
        status = set_tf(options, nhwc, batch < 0 ? 0 : (size_t)batch);
    PyObject *result = NULL;
    if (!OK(status) || set_tf_dims(options, dims) == 0) {
        const char *name = PyBytes_AsString(path);
        if (OK(status))
            status = set_tf_outputs(options, outputs);
        if (OK(status))
            PY_WORK(status, migraphx_parse_tf(&program, name, options));
        if (OK(status))
            result = py_wrap_program(program);
        else if (!PyErr_Occurred())
            result = is_folder(name) ? py_fail() : py_fail_reading(path);
    }
    migraphx_tf_options_destroy(options);
    Py_DECREF(path);
    return result;
}

// --- lists of operators ---

// A list of names from a pair of functions that count and name.
static PyObject *list_names(migraphx_status counted, size_t count,
                            migraphx_status (*name_at)(const char **, size_t))
{
    if (!OK(counted))
        return py_fail();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const char *name;
        PyObject *item = OK(name_at(&name, i)) ? PyUnicode_FromString(name) : py_fail();
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static migraphx_status onnx_name_at(const char **out, size_t index)
{
    char *name = NULL; // the type is MIGraphX's; the text constant
    const migraphx_status status = migraphx_get_onnx_operator_name_at_index(&name, index);
    *out = name;
    return status;
}

static PyObject *get_onnx_operators(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    size_t count = 0;
    const migraphx_status status = migraphx_get_onnx_operators_size(&count);
    return list_names(status, count, onnx_name_at);
}

static PyObject *get_tf_operators(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    size_t count = 0;
    const migraphx_status status = migraphx_get_tf_operators_size(&count);
    return list_names(status, count, migraphx_get_tf_operator_name_at_index);
}

PyMethodDef py_parse_functions[] = {
    {"parse_onnx", WITH_KEYWORDS(parse_onnx),
     "parse_onnx($module, /, filename, default_dim_value=0, default_dyn_dim_value=None, "
     "dim_params={}, map_input_dims={}, map_dyn_input_dims={}, skip_unknown_operators=False, "
     "print_program_on_error=False, max_loop_iterations=10, limit_max_iterations=65535, "
     "use_debug_symbols=False, external_data_path='', dynamic_dims=False)\n--\n\n"
     "Reads an ONNX model: from a file, or from its bytes, an onnx.ModelProto or an open file.\n\n"
     "Lengths that the model leaves open are 1, default_dim_value, or a range where\n"
     "default_dyn_dim_value (a dynamic_dimension), dim_params ({name: range}) or\n"
     "dynamic_dims=True says so. map_input_dims and map_dyn_input_dims give the\n"
     "lengths of inputs by name."},
    {"parse_onnx_buffer", WITH_KEYWORDS(parse_onnx_buffer),
     "parse_onnx_buffer($module, /, filename, default_dim_value=0, default_dyn_dim_value=None, "
     "map_input_dims={}, map_dyn_input_dims={}, skip_unknown_operators=False, "
     "print_program_on_error=False, external_data_path='', use_debug_symbols=False, dim_params={}, "
     "max_loop_iterations=10, limit_max_iterations=65535, dynamic_dims=False)\n--\n\n"
     "As parse_onnx, from the bytes of a model (in `filename`, as MIGraphX has it)."},
    {"parse_tf", WITH_KEYWORDS(parse_tf),
     "parse_tf($module, /, filename, is_nhwc=True, batch_size=1, map_input_dims={}, "
     "output_names=[])\n--\n\nReads a frozen TensorFlow graph or a SavedModel (its folder).\n\n"
     "With is_nhwc inputs of rank 4 become parameters in the order N, C, H, W, and results\n"
     "of rank 4 have that order too. Lengths that the graph leaves open are batch_size;\n"
     "map_input_dims gives those of inputs by name. Without output_names the results are\n"
     "all nodes that feed nothing."},
    {"get_onnx_operators", get_onnx_operators, METH_NOARGS,
     "get_onnx_operators($module, /)\n--\n\nNames of the ONNX operators that are supported."},
    {"get_tf_operators", get_tf_operators, METH_NOARGS,
     "get_tf_operators($module, /)\n--\n\nNames of the TensorFlow operators that are supported."},
    {NULL, NULL, 0, NULL}};
