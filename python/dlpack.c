// SPDX-License-Identifier: MIT
// DLPack of migraphx.argument, both ways, without copies: how torch, jax, cupy and numpy hand
// arrays to each other, in host memory and in that of cards.
//
// Whoever takes a card's bytes must know that they are there. Out: the card is waited for, unless
// the consumer says that it need not be (stream -1). In: the producer is told the stream that the
// run will be on, and orders its work before it; where there is no such stream the card is waited
// for.
//
// Out: a capsule that keeps the argument's bytes; read-only ones only to who asks for version 1,
// which can say so. In: the argument keeps the producer's tensor until nothing needs its bytes.
// Types narrower than a byte are packed in DLPack and are not here, so they have none.
#include "pymgx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- the protocol's own structs ---

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_OPENCL = 4, DL_ROCM = 10, DL_ROCM_HOST = 11 };
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

// --- devices ---

static const struct {
    int type;
    const char *name; // of cards as MIGRAPHX_GPU_DEVICE has them
} cards[] = {{DL_CUDA, "cuda:"}, {DL_ROCM, "hip:"}, {DL_OPENCL, "opencl:"}};

enum { CARDS = sizeof cards / sizeof *cards };

static void find_device(PyObject *self, int32_t *type, int32_t *id)
{
    const char *device = "";
    *type = DL_CPU;
    *id = 0;
    migraphx_argument_device(&device, ((struct py_argument *)self)->handle);
    for (int i = 0; i < CARDS; i++) {
        const size_t size = strlen(cards[i].name);
        if (strncmp(device, cards[i].name, size) == 0) {
            *type = cards[i].type;
            *id = (int32_t)strtol(device + size, NULL, 10);
        }
    }
}

// "cuda:0" into a caller's text; false for the host.
static bool name_device(int type, int id, char text[32])
{
    for (int i = 0; i < CARDS; i++)
        if (cards[i].type == type) {
            snprintf(text, 32, "%s%d", cards[i].name, id);
            return true;
        }
    return false;
}

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
    find_device(self, &tensor->device_type, &tensor->device_id);
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

// Is it where the argument lies, or is nothing asked for?
static bool is_here(PyObject *self, PyObject *device)
{
    int32_t own_type, own_id;
    int type, id;
    find_device(self, &own_type, &own_id);
    const bool given = device != Py_None && PyArg_ParseTuple(device, "ii", &type, &id);
    PyErr_Clear();
    return device == Py_None || (given && type == own_type && id == own_id);
}

// The consumer may read at once, on whatever stream.
static int wait_for(PyObject *self, PyObject *stream)
{
    const char *device = "";
    migraphx_status status = migraphx_status_success;
    const bool ready = PyLong_Check(stream) && PyLong_AsLong(stream) == -1;
    PyErr_Clear(); // a handle may be larger than a long
    migraphx_argument_device(&device, ((struct py_argument *)self)->handle);
    if (ready || strcmp(device, "host") == 0)
        return 0;
    PY_WORK(status, migraphx_device_wait(device));
    return OK(status) ? 0 : (py_fail(), -1);
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
    if (!is_here(self, device) || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "an argument is lent where it lies, without a copy; "
                                           "to_gpu and from_gpu copy");
        return NULL;
    }
    if (!versioned && ((struct py_argument *)self)->readonly) {
        PyErr_SetString(PyExc_BufferError, "the argument is read-only, which DLPack says from "
                                           "version 1 on");
        return NULL;
    }
    return wait_for(self, stream) < 0 ? NULL : lend(self, versioned);
}

PyObject *py_argument_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    int32_t type, id;
    find_device(self, &type, &id);
    return Py_BuildValue("(ii)", (int)type, (int)id);
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
    char name[32];
    const bool host = t->device_type == DL_CPU || t->device_type == DL_CUDA_HOST ||
                      t->device_type == DL_ROCM_HOST;
    if (!host && !name_device(t->device_type, t->device_id, name))
        PyErr_Format(PyExc_BufferError,
                     "the array lies on a device that is not known here (DLPack type %d); copy it "
                     "to host memory first",
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
    char *data = t->data ? (char *)t->data + t->byte_offset : NULL, device[32];
    const bool card = name_device(t->device_type, t->device_id, device);
    const int made =
        OK(make_shape(&shape, t, type)) &&
        OK(card ? migraphx_device_argument(&argument, shape, data, device, release, owner)
                : migraphx_argument_create_owned(&argument, shape, data, release, owner));
    migraphx_shape_destroy(shape);
    return made ? py_wrap_argument(argument, readonly) : py_fail();
}

// Type of the device that a producer says its bytes lie on; the host where it says nothing.
static int device_of(PyObject *source, char name[32])
{
    int type = DL_CPU, id = 0;
    PyObject *pair = PyObject_CallMethod(source, "__dlpack_device__", NULL);
    PyObject *two =
        pair ? PyObject_CallFunctionObjArgs((PyObject *)&PyTuple_Type, pair, NULL) : NULL;
    if (two) // torch's type is an enumeration
        PyArg_ParseTuple(two, "ii", &type, &id);
    PyErr_Clear();
    Py_XDECREF(two);
    Py_XDECREF(pair);
    return name_device(type, id, name) ? type : DL_CPU;
}

// What to tell the producer of a card's bytes: CUDA's default stream has the number 1 there.
static PyObject *stream_for(int type, const struct py_stream *stream)
{
    const uintptr_t handle = stream ? (uintptr_t)stream->handle : 0;
    return PyLong_FromVoidPtr((void *)(!handle && type == DL_CUDA ? 1 : handle));
}

// The capsule of a producer of either version; older ones know no max_version.
static PyObject *ask(PyObject *source, int type, const struct py_stream *stream)
{
    PyObject *method = PyObject_GetAttrString(source, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *options = none ? PyDict_New() : NULL, *capsule = NULL;
    PyObject *number =
        options && type != DL_CPU && type != DL_OPENCL ? stream_for(type, stream) : NULL;
    PyObject *version = options ? Py_BuildValue("(ii)", 1, 0) : NULL;
    if (version && (!number || PyDict_SetItemString(options, "stream", number) == 0) &&
        PyDict_SetItemString(options, "max_version", version) == 0)
        capsule = PyObject_Call(method, none, options);
    if (!capsule && version && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyObject *dropped = PyObject_CallMethod(options, "pop", "s", "max_version");
        capsule = dropped ? PyObject_Call(method, none, options) : NULL;
        Py_XDECREF(dropped);
    }
    Py_XDECREF(version);
    Py_XDECREF(number);
    Py_XDECREF(options);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

PyObject *py_argument_from_dlpack(PyObject *source)
{
    char device[32];
    const int type = device_of(source, device);
    const struct py_stream *stream = py_current_stream();
    PyObject *capsule = ask(source, type, stream), *result = NULL;
    migraphx_status status = migraphx_status_success;
    if (!capsule)
        return NULL;
    if (type != DL_CPU && !stream)
        PY_WORK(status, migraphx_device_wait(device));
    if (!OK(status)) {
        Py_DECREF(capsule);
        return py_fail();
    }
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
