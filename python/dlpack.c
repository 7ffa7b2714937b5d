// SPDX-License-Identifier: MIT
// DLPack of migraphx.argument, both ways, without copies: how torch, jax, cupy and numpy hand
// arrays to each other. Host memory alone.
//
// Out: a capsule that keeps the argument's bytes; read-only ones only to who asks for version 1,
// which can say so. In: the argument keeps the producer's tensor until nothing needs its bytes.
// Types narrower than a byte are packed in DLPack and are not here, so they have none.
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

// --- the protocol's own structs ---

enum { DL_CPU = 1 };
enum { DL_READ_ONLY = 1 }; // flag of a versioned tensor

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; // in elements; NULL strides: row-major
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
};

struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

static const char plain_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

// --- types ---

struct dl_type {
    const char *name;
    uint8_t code, bits;
};

static const struct dl_type types[] = {
    {"int8_type", 0, 8},         {"int16_type", 0, 16},       {"int32_type", 0, 32},
    {"int64_type", 0, 64},       {"uint8_type", 1, 8},        {"uint16_type", 1, 16},
    {"uint32_type", 1, 32},      {"uint64_type", 1, 64},      {"half_type", 2, 16},
    {"float_type", 2, 32},       {"double_type", 2, 64},      {"bf16_type", 4, 16},
    {"complex64_type", 5, 64},   {"complex128_type", 5, 128}, {"bool_type", 6, 8},
    {"fp8e4m3fn_type", 10, 8},   {"fp8e4m3fnuz_type", 11, 8}, {"fp8e5m2_type", 12, 8},
    {"fp8e5m2fnuz_type", 13, 8}, {"fp8e8m0_type", 14, 8}};

enum { TYPES = sizeof types / sizeof *types };

// --- out ---

// What a capsule owns: a handle that shares the bytes, and the arrays that the tensor points to.
struct lent {
    migraphx_argument_t argument;
    int64_t lens[MAX_RANK], strides[MAX_RANK];
    union {
        struct dl_managed plain;
        struct dl_versioned versioned;
    } as;
};

static void end_loan(struct lent *lent)
{
    migraphx_argument_destroy(lent->argument);
    free(lent);
}

static void delete_plain(struct dl_managed *m)
{
    end_loan(m->context);
}

static void delete_versioned(struct dl_versioned *m)
{
    end_loan(m->context);
}

// A capsule that nobody took has its first name still.
static void drop_plain(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, plain_name))
        delete_plain(PyCapsule_GetPointer(capsule, plain_name));
}

static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, versioned_name))
        delete_versioned(PyCapsule_GetPointer(capsule, versioned_name));
}

static int set_type(struct dl_tensor *t, const_migraphx_shape_t shape)
{
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (OK(migraphx_shape_type(&type, shape)))
        migraphx_type_name(&name, type);
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            t->code = types[i].code;
            t->bits = types[i].bits;
            t->lanes = 1;
            return 0;
        }
    PyErr_Format(PyExc_BufferError, "an argument of %s has no DLPack form", name);
    return -1;
}

static int describe(struct lent *lent, struct dl_tensor *t)
{
    const_migraphx_shape_t shape;
    const size_t *lens, *strides;
    size_t rank, shown;
    char *data;
    if (!OK(migraphx_argument_shape(&shape, lent->argument)) || set_type(t, shape) < 0 ||
        !OK(migraphx_argument_buffer(&data, lent->argument)) ||
        !OK(migraphx_shape_rank(&rank, shape)) ||
        !OK(migraphx_shape_lengths(&lens, &shown, shape)) ||
        !OK(migraphx_shape_strides(&strides, &shown, shape))) {
        if (!PyErr_Occurred())
            py_fail();
        return -1;
    }
    t->data = data;
    t->device_type = DL_CPU;
    t->ndim = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        lent->lens[i] = (int64_t)lens[i];
        lent->strides[i] = (int64_t)strides[i];
    }
    t->shape = lent->lens;
    t->strides = lent->strides;
    return 0;
}

static PyObject *lend(PyObject *self, bool versioned)
{
    struct lent *lent = calloc(1, sizeof *lent);
    PyObject *capsule = NULL;
    if (!lent)
        return PyErr_NoMemory();
    lent->argument = py_share_argument(((struct py_argument *)self)->handle);
    struct dl_tensor *tensor = versioned ? &lent->as.versioned.tensor : &lent->as.plain.tensor;
    if (!lent->argument)
        py_fail();
    else if (describe(lent, tensor) == 0 && versioned) {
        lent->as.versioned.major = 1;
        lent->as.versioned.context = lent;
        lent->as.versioned.deleter = delete_versioned;
        lent->as.versioned.flags = ((struct py_argument *)self)->readonly ? DL_READ_ONLY : 0;
        capsule = PyCapsule_New(&lent->as.versioned, versioned_name, drop_versioned);
    } else if (!PyErr_Occurred()) {
        lent->as.plain.context = lent;
        lent->as.plain.deleter = delete_plain;
        capsule = PyCapsule_New(&lent->as.plain, plain_name, drop_plain);
    }
    if (!capsule)
        end_loan(lent);
    return capsule;
}

// Does the consumer take version 1?
static int takes_versions(PyObject *max_version)
{
    if (max_version == Py_None)
        return 0;
    PyObject *major = PySequence_GetItem(max_version, 0);
    const long number = major ? PyLong_AsLong(major) : -1;
    Py_XDECREF(major);
    return PyErr_Occurred() ? -1 : number >= 1;
}

static bool is_host(PyObject *device)
{
    PyObject *type = device == Py_None ? NULL : PySequence_GetItem(device, 0);
    const bool yes = device == Py_None || (type && PyLong_AsLong(type) == DL_CPU);
    Py_XDECREF(type);
    PyErr_Clear();
    return yes;
}

PyObject *py_argument_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
                                     &max_version, &device, &copy))
        return NULL;
    const int versioned = takes_versions(max_version);
    if (versioned < 0)
        return NULL;
    if (!is_host(device) || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "an argument is lent where it lies, in host memory, "
                                           "without a copy");
        return NULL;
    }
    if (!versioned && ((struct py_argument *)self)->readonly) {
        PyErr_SetString(PyExc_BufferError, "the argument is read-only, which DLPack says from "
                                           "version 1 on");
        return NULL;
    }
    return lend(self, versioned);
}

PyObject *py_argument_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

// --- in ---

// Called by the engine from any thread; a deleter may need the interpreter.
static void release_plain(void *owner)
{
    struct dl_managed *m = owner;
    if (!m->deleter || !Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    m->deleter(m);
    PyGILState_Release(state);
}

static void release_versioned(void *owner)
{
    struct dl_versioned *m = owner;
    if (!m->deleter || !Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    m->deleter(m);
    PyGILState_Release(state);
}

static int find_type(const struct dl_tensor *t, migraphx_shape_datatype_t *out)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].code == t->code && types[i].bits == t->bits && t->lanes == 1)
            return OK(migraphx_type_find(out, types[i].name)) ? 0 : -1;
    PyErr_Format(PyExc_TypeError, "no element type for DLPack code %d of %d bits in %d lanes",
                 t->code, t->bits, t->lanes);
    return -1;
}

static int check(const struct dl_tensor *t)
{
    if (t->device_type != DL_CPU)
        PyErr_Format(PyExc_BufferError,
                     "the array lies on a device (DLPack type %d), not in host memory; copy it "
                     "there first",
                     t->device_type);
    else if (t->ndim < 0 || t->ndim > MAX_RANK)
        PyErr_Format(PyExc_ValueError, "an argument has %d axes at most, not %d", MAX_RANK,
                     t->ndim);
    return PyErr_Occurred() ? -1 : 0;
}

static migraphx_status make_shape(migraphx_shape_t *out, const struct dl_tensor *t,
                                  migraphx_shape_datatype_t type)
{
    size_t lens[MAX_RANK], strides[MAX_RANK];
    for (int i = 0; i < t->ndim; i++) {
        lens[i] = (size_t)t->shape[i];
        strides[i] = t->strides ? (size_t)t->strides[i] : 0;
    }
    const size_t rank = (size_t)t->ndim;
    return t->strides ? migraphx_shape_create_with_strides(out, type, lens, rank, strides, rank)
                      : migraphx_shape_create(out, type, lens, rank);
}

static PyObject *borrow(const struct dl_tensor *t, void (*release)(void *), void *owner,
                        int readonly)
{
    migraphx_shape_datatype_t type;
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    if (check(t) < 0 || find_type(t, &type) < 0)
        return NULL;
    char *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    const int made = OK(make_shape(&shape, t, type)) &&
                     OK(migraphx_argument_create_owned(&argument, shape, data, release, owner));
    migraphx_shape_destroy(shape);
    return made ? py_wrap_argument(argument, readonly) : py_fail();
}

// The capsule of a producer of either version; older ones know no max_version.
static PyObject *ask(PyObject *source)
{
    PyObject *method = PyObject_GetAttrString(source, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *options = none ? Py_BuildValue("{s(ii)}", "max_version", 1, 0) : NULL;
    PyObject *capsule = options ? PyObject_Call(method, none, options) : NULL;
    if (!capsule && options && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

PyObject *py_argument_from_dlpack(PyObject *source)
{
    PyObject *capsule = ask(source), *result = NULL;
    if (!capsule)
        return NULL;
    if (PyCapsule_IsValid(capsule, versioned_name)) {
        struct dl_versioned *m = PyCapsule_GetPointer(capsule, versioned_name);
        if (m->major == 1)
            result = borrow(&m->tensor, release_versioned, m, (m->flags & DL_READ_ONLY) != 0);
        else
            PyErr_Format(PyExc_BufferError, "DLPack version %d is not known", (int)m->major);
        if (result)
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else {
        struct dl_managed *m = PyCapsule_GetPointer(capsule, plain_name);
        result = m ? borrow(&m->tensor, release_plain, m, 0) : NULL;
        if (result)
            PyCapsule_SetName(capsule, "used_dltensor");
    }
    Py_DECREF(capsule);
    return result;
}
