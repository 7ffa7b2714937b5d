// SPDX-License-Identifier: MIT
// Memory of a card: what programs compiled for target "gpu" without offload_copy take and give.
//
// The functions have MIGraphX's names; `device`, where it may be given, is a card as
// MIGRAPHX_GPU_DEVICE names it, and the card that target "gpu" takes where it is not. Without a
// card each is a RuntimeError that says what every driver lacked.
#include "pymgx.h"

#include <string.h>

static PyObject *finish(migraphx_status status, migraphx_argument_t argument)
{
    return OK(status) ? py_wrap_argument(argument, 0) : py_fail();
}

// MIGraphX's `host` asks for memory that both sides can touch; here that is the host's.
static const char *choose(int host, const char *device)
{
    return host ? "host" : device;
}

static PyObject *copy(PyObject *value, const char *device)
{
    PyObject *source = py_is_argument(value) ? value : py_to_argument(value, NULL);
    migraphx_argument_t argument = NULL;
    migraphx_status status;
    if (!source)
        return NULL;
    if (source == value)
        Py_INCREF(source);
    const_migraphx_argument_t from = ((struct py_argument *)source)->handle;
    PY_WORK(status, migraphx_device_copy(&argument, from, device));
    PyObject *result = finish(status, argument);
    Py_DECREF(source);
    return result;
}

static PyObject *to_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"arg", "host", "device", NULL};
    PyObject *value;
    int host = 0;
    const char *device = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pz:to_gpu", names, &value, &host, &device))
        return NULL;
    return copy(value, choose(host, device));
}

static PyObject *from_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"arg", NULL};
    PyObject *value;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:from_gpu", names, &value))
        return NULL;
    return copy(value, "host");
}

static PyObject *allocate_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "host", "device", NULL};
    PyObject *shape;
    int host = 0;
    const char *device = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|pz:allocate_gpu", names, py.shape, &shape,
                                     &host, &device))
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_device_allocate(
        &argument, ((struct py_shape *)shape)->handle, choose(host, device));
    return finish(status, argument);
}

static PyObject *gpu_sync(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", NULL};
    const char *device = NULL;
    migraphx_status status;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:gpu_sync", names, &device))
        return NULL;
    PY_WORK(status, migraphx_device_wait(device));
    if (!OK(status))
        return py_fail();
    Py_RETURN_NONE;
}

static PyObject *gpudata_to_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "address", "device", NULL};
    PyObject *shape, *address;
    const char *device = NULL;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|z:gpudata_to_argument", names, py.shape,
                                     &shape, &address, &device))
        return NULL;
    void *data = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    migraphx_argument_t argument = NULL;
    const migraphx_status status = migraphx_device_argument(
        &argument, ((struct py_shape *)shape)->handle, data, device, NULL, NULL);
    return finish(status, argument);
}

PyMethodDef py_device_functions[] = {
    {"to_gpu", WITH_KEYWORDS(to_gpu),
     "to_gpu($module, /, arg, host=False, device=None)\n--\n\nA copy in a card's memory; with "
     "`host` in the host's."},
    {"from_gpu", WITH_KEYWORDS(from_gpu),
     "from_gpu($module, /, arg)\n--\n\nA copy in host memory, when the card is done with what it "
     "was given."},
    {"allocate_gpu", WITH_KEYWORDS(allocate_gpu),
     "allocate_gpu($module, /, s, host=False, device=None)\n--\n\nAn argument in a card's memory, "
     "with whatever bytes are there; with `host` in the host's."},
    {"gpu_sync", WITH_KEYWORDS(gpu_sync),
     "gpu_sync($module, /, device=None)\n--\n\nWaits until the card has done all that it was "
     "given."},
    {"gpudata_to_argument", WITH_KEYWORDS(gpudata_to_argument),
     "gpudata_to_argument($module, /, shape, address, device=None)\n--\n\nAn argument over memory "
     "of a card at an address, which must outlive it."},
    {NULL, NULL, 0, NULL}};
