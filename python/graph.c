// SPDX-License-Identifier: MIT
// migraphx.module and migraphx.instruction_ref: building and walking a graph. Both keep their
// program alive.
#include "pymgx.h"

#include <stdlib.h>

// --- lists of handles ---

int py_instructions(PyObject *sequence, migraphx_instructions_t *out)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    const_migraphx_instruction_t *items =
        count < 0 ? NULL : calloc((size_t)count + 1, sizeof *items);
    int result = items ? 0 : -1;
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i); // kept alive by the sequence's program
        if (item && PyObject_IsInstance(item, py.ins) == 1)
            items[i] = ((struct py_ins *)item)->handle;
        else
            result = -1;
        Py_XDECREF(item);
    }
    if (result < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "arguments must be a list of instructions of the program");
    if (result == 0 && !OK(migraphx_instructions_create(out, items, (size_t)count))) {
        py_fail();
        result = -1;
    }
    free(items);
    return result;
}

int py_modules(PyObject *sequence, migraphx_modules_t *out)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    migraphx_module_t *items = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *items);
    int result = items ? 0 : -1;
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        if (item && PyObject_IsInstance(item, py.module) == 1)
            items[i] = ((struct py_module *)item)->handle;
        else
            result = -1;
        Py_XDECREF(item);
    }
    if (result < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "module arguments must be modules");
    if (result == 0 && !OK(migraphx_modules_create(out, items, (size_t)count))) {
        py_fail();
        result = -1;
    }
    free(items);
    return result;
}

// A handle of instructions as a Python list; released.
static PyObject *list_of(migraphx_instructions_t take, PyObject *program)
{
    size_t count = 0;
    migraphx_instructions_size(&count, take);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        migraphx_instruction_t ins = NULL;
        PyObject *item =
            OK(migraphx_instructions_get(&ins, take, i)) ? py_wrap_ins(ins, program) : py_fail();
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    migraphx_instructions_destroy(take);
    return list;
}

// --- instruction_ref ---

static const_migraphx_instruction_t ins_of(PyObject *self)
{
    return ((struct py_ins *)self)->handle;
}

static void ins_dealloc(PyObject *self)
{
    migraphx_instruction_destroy(((struct py_ins *)self)->handle);
    Py_XDECREF(((struct py_ins *)self)->program);
    py_free(self);
}

static PyObject *ins_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_shape_t shape = NULL;
    return OK(migraphx_instruction_shape(&shape, ins_of(self))) ? py_wrap_shape(shape) : py_fail();
}

static PyObject *ins_op(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_operation_t op = NULL;
    return OK(migraphx_instruction_operation(&op, ins_of(self))) ? py_wrap_op(op) : py_fail();
}

static PyObject *ins_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *name;
    return OK(migraphx_instruction_name(&name, ins_of(self))) ? PyUnicode_FromString(name)
                                                              : py_fail();
}

static PyObject *ins_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_instructions_t list = NULL;
    return OK(migraphx_instruction_inputs(&list, ins_of(self)))
               ? list_of(list, ((struct py_ins *)self)->program)
               : py_fail();
}

static PyObject *ins_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_instructions_t list = NULL;
    return OK(migraphx_instruction_outputs(&list, ins_of(self)))
               ? list_of(list, ((struct py_ins *)self)->program)
               : py_fail();
}

static PyObject *ins_literal(PyObject *self, PyObject *unused)
{
    (void)unused;
    migraphx_argument_t literal = NULL;
    return OK(migraphx_instruction_literal(&literal, ins_of(self))) ? py_wrap_argument(literal, 1)
                                                                    : py_fail();
}

static PyObject *ins_repr(PyObject *self)
{
    char *text;
    return OK(migraphx_instruction_to_string(&text, ins_of(self))) ? py_take_text(text) : py_fail();
}

static Py_hash_t ins_hash(PyObject *self)
{
    size_t hash = 0;
    migraphx_instruction_hash(&hash, ins_of(self));
    return (Py_hash_t)(hash >> 1); // never -1
}

static PyObject *ins_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.ins, op);
    if (no)
        return no;
    bool same;
    if (!OK(migraphx_instruction_equal(&same, ins_of(a), ins_of(b))))
        return py_fail();
    return py_compared(op, same);
}

PyObject *py_make_ins_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"shape", ins_shape, METH_NOARGS, "shape($self, /)\n--\n\nShape of the result."},
        {"op", ins_op, METH_NOARGS, "op($self, /)\n--\n\nThe operator with its attributes."},
        {"name", ins_name, METH_NOARGS, "name($self, /)\n--\n\nName of the operator."},
        {"inputs", ins_inputs, METH_NOARGS, "inputs($self, /)\n--\n\nThe instructions it reads."},
        {"outputs", ins_outputs, METH_NOARGS,
         "outputs($self, /)\n--\n\nThe instructions that read it."},
        {"get_literal", ins_literal, METH_NOARGS,
         "get_literal($self, /)\n--\n\nThe value of a literal, as an argument."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)py_not_made},
        {Py_tp_dealloc, (void *)ins_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)ins_repr},
        {Py_tp_hash, (void *)ins_hash},
        {Py_tp_richcompare, (void *)ins_compare},
        {Py_tp_doc, "instruction_ref()\n--\n\nAn instruction; modules make them."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.instruction_ref", sizeof(struct py_ins), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return py_add_type(module, &spec);
}

// --- module ---

static migraphx_module_t module_of(PyObject *self)
{
    return ((struct py_module *)self)->handle;
}

static void module_dealloc(PyObject *self)
{
    Py_XDECREF(((struct py_module *)self)->program);
    py_free(self);
}

static PyObject *finish(PyObject *self, migraphx_status status, migraphx_instruction_t ins)
{
    return OK(status) ? py_wrap_ins(ins, ((struct py_module *)self)->program) : py_fail();
}

static PyObject *add_instruction(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op", "args", "mod_args", NULL};
    PyObject *op, *inputs, *bodies = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:add_instruction", names, py.op, &op,
                                     &inputs, &bodies))
        return NULL;
    migraphx_instructions_t in = NULL;
    migraphx_modules_t mods = NULL;
    migraphx_instruction_t ins = NULL;
    if (py_instructions(inputs, &in) < 0)
        return NULL;
    if (bodies && py_modules(bodies, &mods) < 0) {
        migraphx_instructions_destroy(in);
        return NULL;
    }
    const migraphx_operation_t operation = ((struct py_op *)op)->handle;
    const migraphx_status status =
        mods ? migraphx_module_add_instruction_with_mod_args(&ins, module_of(self), operation, in,
                                                             mods)
             : migraphx_module_add_instruction(&ins, module_of(self), operation, in);
    migraphx_instructions_destroy(in);
    migraphx_modules_destroy(mods);
    return finish(self, status, ins);
}

// `before` is NULL for the end of the module.
static PyObject *place_macro(PyObject *self, PyObject *before, PyObject *macro, PyObject *args,
                             PyObject *bodies)
{
    migraphx_instructions_t in = NULL, out = NULL;
    migraphx_modules_t mods = NULL;
    if (py_instructions(args, &in) < 0)
        return NULL;
    if (bodies && py_modules(bodies, &mods) < 0) {
        migraphx_instructions_destroy(in);
        return NULL;
    }
    const const_migraphx_macro_t handle = ((struct py_macro *)macro)->handle;
    const migraphx_status status =
        before
            ? migraphx_module_insert_macro(&out, module_of(self), ins_of(before), handle, in, mods)
            : migraphx_module_add_macro(&out, module_of(self), handle, in, mods);
    migraphx_instructions_destroy(in);
    migraphx_modules_destroy(mods);
    return OK(status) ? list_of(out, ((struct py_module *)self)->program) : py_fail();
}

static PyObject *add_macro(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"macro", "args", "mod_args", NULL};
    PyObject *macro, *inputs, *bodies = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:add_macro", names, py.macro, &macro,
                                     &inputs, &bodies))
        return NULL;
    return place_macro(self, NULL, macro, inputs, bodies);
}

static PyObject *insert_macro(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ins", "macro", "args", "mod_args", NULL};
    PyObject *before, *macro, *inputs, *bodies = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O|O:insert_macro", names, py.ins, &before,
                                     py.macro, &macro, &inputs, &bodies))
        return NULL;
    return place_macro(self, before, macro, inputs, bodies);
}

static PyObject *add_literal(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", NULL};
    PyObject *data;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:add_literal", names, &data))
        return NULL;
    PyObject *argument = py_to_argument(data, NULL);
    if (!argument)
        return NULL;
    migraphx_instruction_t ins = NULL;
    const migraphx_status status = migraphx_module_add_literal_argument(
        &ins, module_of(self), ((struct py_argument *)argument)->handle);
    Py_DECREF(argument);
    return finish(self, status, ins);
}

static PyObject *add_parameter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "shape", NULL};
    const char *name;
    PyObject *shape;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO!:add_parameter", names, &name, py.shape,
                                     &shape))
        return NULL;
    migraphx_instruction_t ins = NULL;
    const migraphx_status status = migraphx_module_add_parameter(
        &ins, module_of(self), name, ((struct py_shape *)shape)->handle);
    return finish(self, status, ins);
}

static PyObject *add_return(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"args", NULL};
    PyObject *results;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:add_return", names, &results))
        return NULL;
    migraphx_instructions_t in = NULL;
    migraphx_instruction_t ins = NULL;
    if (py_instructions(results, &in) < 0)
        return NULL;
    const migraphx_status status = migraphx_module_add_return(&ins, module_of(self), in);
    migraphx_instructions_destroy(in);
    return finish(self, status, ins);
}

static PyObject *module_print(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!OK(migraphx_module_print(module_of(self))))
        return py_fail();
    Py_RETURN_NONE;
}

static PyObject *module_str(PyObject *self)
{
    char *text;
    return OK(migraphx_module_to_string(&text, module_of(self))) ? py_take_text(text) : py_fail();
}

static PyObject *module_iter(PyObject *self)
{
    migraphx_instructions_t list = NULL;
    if (!OK(migraphx_module_instructions(&list, module_of(self))))
        return py_fail();
    PyObject *items = list_of(list, ((struct py_module *)self)->program);
    PyObject *iterator = items ? PyObject_GetIter(items) : NULL;
    Py_XDECREF(items);
    return iterator;
}

static Py_ssize_t module_length(PyObject *self)
{
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    if (!OK(migraphx_module_instructions(&list, module_of(self)))) {
        py_fail();
        return -1;
    }
    migraphx_instructions_size(&count, list);
    migraphx_instructions_destroy(list);
    return (Py_ssize_t)count;
}

static Py_hash_t module_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)module_of(self) >> 4); // never -1
}

// The same module of the same program.
static PyObject *module_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *no = py_not_comparable(b, py.module, op);
    return no ? no : py_compared(op, module_of(a) == module_of(b));
}

PyObject *py_make_module_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"add_instruction", WITH_KEYWORDS(add_instruction),
         "add_instruction($self, /, op, args, mod_args=[])\n--\n\n"
         "Appends an operator over a list of instructions (and of modules for its bodies)."},
        {"add_macro", WITH_KEYWORDS(add_macro),
         "add_macro($self, /, macro, args, mod_args=[])\n--\n\n"
         "Appends what a macro stands for; gives the list of its results."},
        {"insert_macro", WITH_KEYWORDS(insert_macro),
         "insert_macro($self, /, ins, macro, args, mod_args=[])\n--\n\n"
         "The same in front of an instruction."},
        {"add_literal", WITH_KEYWORDS(add_literal),
         "add_literal($self, /, data)\n--\n\n"
         "Appends a constant: an argument, an array, a number or lists of numbers."},
        {"add_parameter", WITH_KEYWORDS(add_parameter),
         "add_parameter($self, /, name, shape)\n--\n\nAppends a parameter: a value that run gets."},
        {"add_return", WITH_KEYWORDS(add_return),
         "add_return($self, /, args)\n--\n\nAppends the list of results."},
        {"replace_return", WITH_KEYWORDS(add_return),
         "replace_return($self, /, args)\n--\n\nMakes these the results."},
        {"print", module_print, METH_NOARGS,
         "print($self, /)\n--\n\nWrites the lines of the module to stdout."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)py_not_made},
        {Py_tp_dealloc, (void *)module_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_repr, (void *)py_module_repr},
        {Py_tp_str, (void *)module_str},
        {Py_tp_iter, (void *)module_iter},
        {Py_mp_length, (void *)module_length},
        {Py_tp_hash, (void *)module_hash},
        {Py_tp_richcompare, (void *)module_compare},
        {Py_tp_doc, "module()\n--\n\nA graph of instructions in order; programs make them."},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.module", sizeof(struct py_module), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    return py_add_type(module, &spec);
}
