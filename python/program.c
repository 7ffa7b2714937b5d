// SPDX-License-Identifier: MIT
// migraphx.program and migraphx.target.
//
// Compiling and running release the interpreter lock, so one program runs in several Python threads
// at once.
#include "pymgx.h"

#include <stdlib.h>

static migraphx_program_t of(PyObject *self)
{
    return py_program_handle(self);
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
    py_plan_release(((struct py_program *)self)->plan);
    py_drop_reshaped((struct py_program *)self);
    migraphx_program_destroy(of(self));
    py_free(self);
}

// --- parameters and results ---

PyObject *py_named_shapes(migraphx_program_parameter_shapes_t shapes, bool with_shapes)
{
    size_t count = 0;
    if (!OK(migraphx_program_parameter_shapes_size(&count, shapes)))
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
    return result;
}

// Names and shapes: a list of str, or a dict of both.
static PyObject *parameters(PyObject *self, bool with_shapes)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    if (!OK(migraphx_program_get_parameter_shapes(&shapes, of(self))))
        return py_fail();
    PyObject *result = py_named_shapes(shapes, with_shapes);
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
    migraphx_target_t target;
    int offload_copy, fast_math, exhaustive_tune, compute_double, device_id, tf32,
        tf32_convolutions;
    Py_ssize_t threads, plan_bytes;
    double tuning_seconds;
    const char *isa;        // NULL: the best there is
    const char *provider;   // of products; NULL: the one that measuring prefers
    const char *specialise; // as given; `mode` is what it says
    migraphx_specialise_t mode;
};

// The modes by the names they have in C.
static int mode_of(const char *name, migraphx_specialise_t *mode)
{
    static const char *const names[] = {[migraphx_specialise_auto] = "auto",
                                        [migraphx_specialise_never] = "never",
                                        [migraphx_specialise_in_call] = "in_call",
                                        [migraphx_specialise_background] = "background"};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) {
            *mode = (migraphx_specialise_t)i;
            return 0;
        }
    if (name)
        PyErr_Format(PyExc_ValueError,
                     "compile: specialise is \"%s\", not one of auto, never, in_call, background",
                     name);
    return name ? -1 : 0;
}

static migraphx_status compile_with(PyObject *self, const struct compile_settings *s,
                                    migraphx_compile_options_t options)
{
    migraphx_compile_options_set_offload_copy(options, s->offload_copy);
    migraphx_compile_options_set_fast_math(options, s->fast_math);
    migraphx_compile_options_set_exhaustive_tune_flag(options, s->exhaustive_tune);
    migraphx_compile_options_set_compute_double(options, s->compute_double);
    migraphx_compile_options_set_tf32(options, s->tf32);
    migraphx_compile_options_set_tf32_convolutions(options, s->tf32_convolutions);
    migraphx_status status =
        migraphx_compile_options_set_threads(options, s->threads > 0 ? (size_t)s->threads : 0);
    if (OK(status))
        status = migraphx_compile_options_set_device_id(options, (size_t)s->device_id);
    if (OK(status))
        status = migraphx_compile_options_set_tuning_seconds(options, s->tuning_seconds);
    if (OK(status))
        status = migraphx_compile_options_set_isa(options, s->isa);
    if (OK(status))
        status = migraphx_compile_options_set_gemm_provider(options, s->provider);
    if (!OK(status))
        return status;
    migraphx_compile_options_set_specialise(options, s->mode);
    migraphx_compile_options_set_plan_bytes(options, s->plan_bytes > 0 ? (size_t)s->plan_bytes : 0);
    const migraphx_program_t program = of(self);
    const migraphx_target_t target = s->target;
    PY_WORK(status, migraphx_program_compile(program, target, options));
    return status;
}

static int parse_compile(PyObject *args, PyObject *kwargs, PyObject **target,
                         struct compile_settings *s)
{
    static char *names[] = {"t",
                            "offload_copy",
                            "fast_math",
                            "exhaustive_tune",
                            "device_id",
                            "threads",
                            "compute_double",
                            "specialise",
                            "plan_bytes",
                            "tf32",
                            "tuning_seconds",
                            "isa",
                            "gemm_provider",
                            "tf32_convolutions",
                            NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppinpsnpdzzp:compile", names, target,
                                     &s->offload_copy, &s->fast_math, &s->exhaustive_tune,
                                     &s->device_id, &s->threads, &s->compute_double, &s->specialise,
                                     &s->plan_bytes, &s->tf32, &s->tuning_seconds, &s->isa,
                                     &s->provider, &s->tf32_convolutions) ||
        mode_of(s->specialise, &s->mode) < 0)
        return -1;
    return 0;
}

static PyObject *compile(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct compile_settings s = {.offload_copy = 1, .fast_math = 1};
    PyObject *target;
    if (parse_compile(args, kwargs, &target, &s) < 0 || !(target = py_to_target(target)))
        return NULL;
    s.target = ((struct py_target *)target)->handle;
    migraphx_compile_options_t options = NULL;
    migraphx_status status = migraphx_compile_options_create(&options);
    if (OK(status))
        status = compile_with(self, &s, options);
    migraphx_compile_options_destroy(options);
    Py_DECREF(target);
    if (!OK(status))
        return py_fail();
    if (py_remember_compile(self, args, kwargs) < 0)
        return NULL;
    Py_RETURN_NONE;
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

static PyObject *set_seed(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"seed", NULL};
    unsigned long long seed;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "K:set_seed", names, &seed))
        return NULL;
    if (!OK(migraphx_program_set_seed(of(self), seed)))
        return py_fail();
    Py_RETURN_NONE;
}

static PyObject *set_run_memory(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"bytes", NULL};
    Py_ssize_t bytes;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "n:set_run_memory", names, &bytes))
        return NULL;
    if (bytes < 0)
        return PyErr_Format(PyExc_ValueError, "set_run_memory: %zd bytes", bytes);
    if (!OK(migraphx_program_set_run_memory(of(self), (size_t)bytes)))
        return py_fail();
    Py_RETURN_NONE;
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

static PyObject *plan(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text;
    return OK(migraphx_program_plan(&text, of(self))) ? py_take_text(text) : py_fail();
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

// A compiled program comes back compiled.
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyImport_ImportModule("migraphx");
    PyObject *load = module ? PyObject_GetAttrString(module, "load_buffer") : NULL;
    PyObject *bytes = load ? PyObject_CallMethod(module, "save_buffer", "O", self) : NULL;
    PyObject *result = bytes ? Py_BuildValue("O(O)", load, bytes) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(load);
    Py_XDECREF(module);
    return result;
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

static PyMethodDef methods[] = {
    {"get_parameter_names", get_parameter_names, METH_NOARGS,
     "get_parameter_names($self, /)\n--\n\nNames of the parameters, in the model's order."},
    {"get_parameter_shapes", get_parameter_shapes, METH_NOARGS,
     "get_parameter_shapes($self, /)\n--\n\nShapes of the parameters by name."},
    {"get_output_shapes", get_output_shapes, METH_NOARGS,
     "get_output_shapes($self, /)\n--\n\nShapes of the results."},
    {"get_output_names", get_output_names, METH_NOARGS,
     "get_output_names($self, /)\n--\n\nThe model's names of the results; empty for a program "
     "built "
     "by hand."},
    {"is_compiled", is_compiled, METH_NOARGS,
     "is_compiled($self, /)\n--\n\nTrue once compile has been called."},
    {"compile", WITH_KEYWORDS(compile),
     "compile($self, /, t, offload_copy=True, fast_math=True, exhaustive_tune=False, device_id=0, "
     "threads=0, compute_double=False, specialise='auto', plan_bytes=0, tf32=False, "
     "tuning_seconds=0, isa=None, gemm_provider=None, tf32_convolutions=False)\n--\n\n"
     "Compiles for a target, given as such or by name.\n\n"
     "exhaustive_tune measures the kernels that there are for every instruction\n"
     "instead of guessing, for tuning_seconds (0: as long as it takes) after which\n"
     "it guesses again; threads is how many a run uses, 0 for all there are;\n"
     "compute_double makes the target \"ref\" compute floats as doubles; tf32 lets\n"
     "the target \"gpu\" round what products of floats multiply to 10 bits, and\n"
     "tf32_convolutions what convolutions alone do; isa is the\n"
     "set of instructions for the target \"cpu\", \"generic\", \"avx2\", \"avx512\", None for all\n"
     "that the machine has; gemm_provider is who computes products on the target \"gpu\":\n"
     "\"own\", or the name of a library, \"cublaslt\", \"hipblaslt\", \"rocblas\", \"cudnn\" or\n"
     "\"miopen\"; None measures them too where kernels are measured.\n\n"
     "Sizes that the model leaves open and that come again get plans of their own:\n"
     "made beside the runs ('background'), by a run ('in_call'), or 'never'; 'auto'\n"
     "is 'background' with several threads. They take plan_bytes at most (0: 256 MiB)."},
    {"run", (PyCFunction)(void (*)(void))py_program_run, METH_FASTCALL | METH_KEYWORDS,
     "run($self, /, params, *inputs, **named)\n--\n\n"
     "Runs with a dict from the parameters' names to their values, or with the values\n"
     "in the order of get_parameter_names or by name: run({\"x\": a, \"y\": b}), run(a, b),\n"
     "run([a, b]), run(x=a, y=b). program(...) is the same. Gives a list, which the\n"
     "model's names of the results index as well.\n\n"
     "A value is an argument, an array (numpy, torch, anything with a buffer,\n"
     "__dlpack__ or __array__), a number or a list of them, a string or an array\n"
     "of them; a list of these for a sequence, None for an absent optional.\n"
     "Results come as arguments, which numpy.asarray takes; sequences as lists,\n"
     "an absent optional as None."},
    {"run_async", WITH_KEYWORDS(py_program_run_async),
     "run_async($self, /, params, stream, stream_name)\n--\n\nAs run, in order with a device's "
     "stream; on host targets there is nothing to order."},
    {"get_main_module", get_main_module, METH_NOARGS,
     "get_main_module($self, /)\n--\n\nThe module that runs."},
    {"create_module", WITH_KEYWORDS(create_module),
     "create_module($self, /, name)\n--\n\nA further module, for the bodies of `if` and `loop`."},
    {"to_py", to_py, METH_NOARGS, "to_py($self, /)\n--\n\nPython code that builds the program."},
    {"sort", sort, METH_NOARGS,
     "sort($self, /)\n--\n\nPuts the instructions into a canonical order."},
    {"set_seed", WITH_KEYWORDS(set_seed),
     "set_seed($self, /, seed)\n--\n\n"
     "Every later run gives random operators that have no seed of their own the same\n"
     "numbers. Without it they differ from run to run."},
    {"set_run_memory", WITH_KEYWORDS(set_run_memory),
     "set_run_memory($self, /, bytes)\n--\n\n"
     "No later run holds more than so many bytes of the host's memory at a time; one\n"
     "that would raises MemoryError. 0 sets no limit. Packed weights do not count."},
    {"print", print, METH_NOARGS, "print($self, /)\n--\n\nWrites the program to stdout."},
    {"explain", explain, METH_NOARGS,
     "explain($self, /)\n--\n\nKernel, layout and threads of every instruction, once compiled."},
    {"plan", plan, METH_NOARGS,
     "plan($self, /)\n--\n\nThe steps of a compiled program for programs to read: a line each, "
     "fields "
     "separated by tabs, as extensions.h lists them."},
    {"clone", clone, METH_NOARGS, "clone($self, /)\n--\n\nA copy that is not compiled."},
    {"reshape", WITH_KEYWORDS(py_program_reshape),
     "reshape($self, /, inputs)\n--\n\nMakes it the model for other lengths of its inputs, "
     "{name: lengths}; compiled as it was."},
    {"_repr_html_", py_program_html, METH_NOARGS,
     "_repr_html_($self, /)\n--\n\nFor notebooks: inputs, results and the first instructions."},
    {"__reduce__", reduce, METH_NOARGS,
     "__reduce__($self, /)\n--\n\nFor pickling and copying: the bytes of a saved program."},
    {NULL, NULL, 0, NULL}};

PyObject *py_make_program_type(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_new, (void *)program_new},
                                  {Py_tp_dealloc, (void *)program_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_repr, (void *)py_program_repr},
                                  {Py_tp_str, (void *)py_program_str},
                                  {Py_tp_call, (void *)py_program_call},
                                  {Py_tp_richcompare, (void *)compare},
                                  {Py_tp_doc, "program()\n--\n\nA graph, to be compiled and run."},
                                  {0, NULL}};
    static PyType_Spec spec = {"migraphx.program", sizeof(struct py_program), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}
