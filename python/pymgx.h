// SPDX-License-Identifier: MIT
// What the files of the Python module share.
//
// The module uses CPython's stable ABI of 3.9 (abi3.h), so one binary serves 3.9 and every later
// version.
//
// Holds: an object owns its handle; modules and instructions keep their program alive; arguments
// made from a buffer keep the buffer. Failures of the C interface become RuntimeError with its
// text; a file that cannot be opened is an OSError of the fitting kind too.
#pragma once

#include <migraphx/extensions.h>

#include "abi3.h"

enum { MAX_RANK = 16 };

// --- objects ---

struct py_shape {
    PyObject_HEAD migraphx_shape_t handle;
};

struct py_dim {
    PyObject_HEAD migraphx_dynamic_dimension_t handle;
};

struct py_argument {
    PyObject_HEAD migraphx_argument_t handle;
    int readonly;
    int raw; // its buffer shows the bits of a type that has no letter
};

struct py_target {
    PyObject_HEAD migraphx_target_t handle;
};

struct py_op {
    PyObject_HEAD migraphx_operation_t handle;
};

struct py_macro {
    PyObject_HEAD migraphx_macro_t handle;
    PyObject *given; // dict of the options that were given
};

struct py_generator {
    PyObject_HEAD migraphx_generator_t handle;
};

struct py_program {
    PyObject_HEAD migraphx_program_t handle;
    // For reshape, NULL until known: (function, args, kwargs) it was parsed with, (args, kwargs) of
    // its compilation, changes made in between, the lengths of inputs it stands at, a list of
    // (lengths, program), lengths that were asked for since, and the program with open axes.
    PyObject *source, *settings, *changes, *dims, *others, *pending, *open;
    bool lent, shares;    // modules of the handle's program were handed out; its weights are open's
    bool told;            // that it runs without being compiled
    struct py_plan *plan; // what runs look up once; NULL until the first run of a compiled program
};

struct py_module {
    PyObject_HEAD migraphx_module_t handle; // borrowed from the program
    PyObject *program;
};

struct py_ins {
    PyObject_HEAD migraphx_instruction_t handle;
    PyObject *program;
};

// The types, made when the module is imported.
struct py_types {
    PyObject *shape, *dim, *argument, *target, *op, *macro, *program, *module, *ins;
    PyObject *generator;
    PyObject *type_t, *pooling_mode, *rnn_direction; // enumerations
    PyObject *loads;                                 // json.loads
    PyObject *results, *names; // the list that run gives, and the name of its attribute
    PyObject *failures;        // dict: OSError's kinds to the same that are RuntimeErrors too
};
extern struct py_types py;

PyObject *py_make_shape_type(PyObject *module);
PyObject *py_make_dim_type(PyObject *module);
PyObject *py_make_argument_type(PyObject *module);
PyObject *py_make_target_type(PyObject *module);
PyObject *py_make_op_type(PyObject *module);
PyObject *py_make_macro_type(PyObject *module);
PyObject *py_make_program_type(PyObject *module);
PyObject *py_make_module_type(PyObject *module);
PyObject *py_make_ins_type(PyObject *module);
PyObject *py_make_generator_type(PyObject *module);
PyObject *py_make_enum(const char *name, const char *qualname, const char *doc, PyObject *members);

// --- helpers ---

// RuntimeError with the text of the last failed call; NULL.
PyObject *py_fail(void);
// The same for calls that read or write a file (its path as bytes).
PyObject *py_fail_reading(PyObject *path);
PyObject *py_fail_writing(PyObject *path);
// Puts "<where>: " before the text of the exception that is set.
void py_prefix_error(const char *format, ...);
#define OK(call) ((call) == migraphx_status_success)
// A new object of a type made by PyType_FromSpec, zeroed.
void *py_new(PyObject *type);
// Frees the object itself, after its handle.
void py_free(PyObject *self);
// A C string as str, released.
PyObject *py_take_text(char *text);
// A type from a spec, also put into the module under its name.
PyObject *py_add_type(PyObject *module, PyType_Spec *spec);
PyObject *py_wrap_shape(migraphx_shape_t take);
PyObject *py_copy_shape(const_migraphx_shape_t shape);
PyObject *py_wrap_dim(migraphx_dynamic_dimension_t take);
PyObject *py_wrap_argument(migraphx_argument_t take, int readonly);
PyObject *py_copy_argument(const_migraphx_argument_t argument); // shares the bytes
migraphx_argument_t py_share_argument(const_migraphx_argument_t argument);
PyObject *py_wrap_program(migraphx_program_t take);
PyObject *py_wrap_module(migraphx_module_t module, PyObject *program);
PyObject *py_wrap_ins(migraphx_instruction_t take, PyObject *program);
PyObject *py_wrap_op(migraphx_operation_t take);
PyObject *py_size_list(const size_t *values, size_t count);
// A sequence of non-negative integers into a caller's array; -1 with an exception set.
Py_ssize_t py_sizes(PyObject *sequence, size_t *out, Py_ssize_t capacity, const char *what);
// A sequence of dynamic_dimension objects (or plain integers) as a list handle.
int py_dims(PyObject *sequence, migraphx_dynamic_dimensions_t *out);
// One dynamic_dimension or integer as a new handle.
int py_dim(PyObject *value, migraphx_dynamic_dimension_t *out);
// A sequence of instruction_ref or module objects as a handle; -1 with an exception set.
int py_instructions(PyObject *sequence, migraphx_instructions_t *out);
int py_modules(PyObject *sequence, migraphx_modules_t *out);
// A dict of attributes as relaxed JSON.
PyObject *py_json(PyObject *dict);
// == and !=: NotImplemented (a new reference) unless `b` is of the type; then the answer.
PyObject *py_not_comparable(PyObject *b, PyObject *type, int op); // NULL: comparable
PyObject *py_compared(int op, bool same);
// The hash of a text, which is released; -1 if it is NULL.
Py_hash_t py_hash_text(PyObject *take);
// tp_new of a type whose objects come from elsewhere.
PyObject *py_not_made(PyTypeObject *type, PyObject *args, PyObject *kwargs);
// A target or a target's name as a new reference to a target.
PyObject *py_to_target(PyObject *value);
// reshape.c: what a program needs to be read again for other lengths. -1 with an exception set.
int py_remember_source(PyObject *program, const char *function, PyObject *args, PyObject *kwargs);
// A change that reshape makes again: a function of the module, and its argument or NULL.
int py_remember_change(PyObject *program, const char *function, PyObject *argument);
int py_remember_compile(PyObject *program, PyObject *args, PyObject *kwargs);
void py_forget_source(PyObject *program); // it is no longer what was parsed
void py_drop_reshaped(struct py_program *self);
PyObject *py_program_reshape(PyObject *program, PyObject *args, PyObject *kwargs);

// --- values as arguments: new references, NULL with an exception set ---

// value.c. `want` may be NULL.
bool py_is_argument(PyObject *value);
PyObject *py_to_argument(PyObject *value, const_migraphx_shape_t want);
PyObject *py_group(PyObject *items);        // a list as a sequence, a tuple as a tuple
PyObject *py_from_argument(PyObject *take); // lists, tuples and None for what is no tensor
// nested.c
bool py_is_number(PyObject *value);
bool py_wants_strings(const_migraphx_shape_t want);
PyObject *py_argument_from_nested(PyObject *value, const_migraphx_shape_t want);
// buffer.c. `as`: the element type whatever the buffer says; NULL: what it says.
int py_require_host(PyObject *argument); // 0, or -1 with BufferError
int py_argument_getbuffer(PyObject *self, Py_buffer *view, int flags);
void py_argument_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *py_argument_from_buffer(PyObject *source, const migraphx_shape_datatype_t *as);
void py_gather(char *to, const Py_buffer *view); // row-major
// The shape of the buffer that a parameter had last; the next one's is most often the same.
struct py_seen {
    migraphx_shape_t shape; // NULL: none yet
    int ndim;
    Py_ssize_t itemsize, lens[MAX_RANK], strides[MAX_RANK];
    char format[4];
};
// Makes a buffer a parameter. 1: done; 0: not that way, perhaps with an exception; -1: failed.
int py_add_buffer(migraphx_program_parameters_t params, const char *name, PyObject *source,
                  struct py_seen *seen);
// array.c
PyObject *py_argument_from_array(PyObject *source);
PyObject *py_argument_of_strings(PyObject *texts, const size_t *lens, size_t rank); // list of bytes
PyObject *py_restore_strings(PyObject *shape, PyObject *texts);                     // list of str
PyObject *py_numpy_of(PyObject *argument);
PyObject *py_argument_array(PyObject *self, PyObject *args, PyObject *kwargs); // __array__
// dlpack.c
struct py_stream {
    void *handle;
};
PyObject *py_argument_from_dlpack(PyObject *source);
PyObject *py_argument_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_argument_dlpack_device(PyObject *self, PyObject *unused);

// numpy's name of a type (ml_dtypes' for the narrow ones), or the engine's where it has none.
const char *py_dtype_name(migraphx_shape_datatype_t type);
PyObject *py_argument_dtype(PyObject *self, void *unused); // numpy's

// --- texts for people: show.c. repr is short, str is MIGraphX's printed form ---

PyObject *py_argument_repr(PyObject *self);
PyObject *py_argument_str(PyObject *self);
PyObject *py_argument_html(PyObject *self, PyObject *unused);
PyObject *py_program_repr(PyObject *self);
PyObject *py_program_str(PyObject *self);
PyObject *py_program_html(PyObject *self, PyObject *unused);
PyObject *py_module_repr(PyObject *self);

// --- work of the engine, without the interpreter lock: interrupt.c ---

// Lets Ctrl-C end this thread's calls, if it is the one that handles signals.
void py_watch_signals(void);
// What a call gave, or `cancelled` with the exception set that a signal's handler raised.
migraphx_status py_settle(migraphx_status status);

#define PY_WORK(status, call)                                                                      \
    do {                                                                                           \
        py_watch_signals();                                                                        \
        PyThreadState *const thread_ = PyEval_SaveThread();                                        \
        (status) = (call);                                                                         \
        PyEval_RestoreThread(thread_);                                                             \
        (status) = py_settle(status);                                                              \
    } while (0)

// --- running: run.c ---

struct py_plan;
size_t py_plan_count(const struct py_plan *plan);             // of parameters
PyObject *py_plan_name(const struct py_plan *plan, size_t i); // borrowed
const_migraphx_shape_t py_plan_want(const struct py_plan *plan, size_t i);
bool py_plan_is_tensor(const struct py_plan *plan, size_t i); // of numbers
// The stream that the run whose parameters this thread is converting will be on; NULL: none.
const struct py_stream *py_current_stream(void);
void py_plan_release(struct py_plan *plan); // NULL is allowed
PyObject *py_program_run(PyObject *self, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords);
PyObject *py_program_call(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *py_program_run_async(PyObject *self, PyObject *args, PyObject *kwargs);
// Brings a program to the lengths that reshape noted; -1 with an exception set.
int py_reach(PyObject *program);
// The handle of a settled program; NULL with an exception set.
migraphx_program_t py_program_handle(PyObject *program);
// A dict of named arguments into a handle; -1 with an exception set. `program` may be NULL.
int py_add_parameters(PyObject *program, PyObject *dict, migraphx_program_parameters_t params);
// Names and shapes: a list of str, or a dict of both.
PyObject *py_named_shapes(migraphx_program_parameter_shapes_t shapes, bool with_shapes);
PyObject *py_make_results_type(PyObject *module);
// source.c: of a generator's texts.
PyObject *py_generator_set_source(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_generator_source_shapes(PyObject *self, PyObject *unused);
// call.c: inputs in any form as a dict (a new reference); the values of `keywords` follow args.
PyObject *py_inputs(const struct py_plan *plan, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords);
int py_warn_of_extras(const struct py_plan *plan, PyObject *dict);
// To the exception that says that a value has another type, the call that converts it.
void py_advise(const struct py_plan *plan, PyObject *dict);

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

extern PyMethodDef py_parse_functions[];
extern PyMethodDef py_argument_functions[];
extern PyMethodDef py_macro_functions[];
extern PyMethodDef py_target_functions[];
extern PyMethodDef py_file_functions[];
extern PyMethodDef py_quantize_functions[];
extern PyMethodDef py_device_functions[];
