// SPDX-License-Identifier: MIT
// The functions that MIGraphX has in builds for a GPU. Programs find them here too and are told why
// they do nothing: every target of this build computes in host memory.
#include "pymgx.h"

static PyObject *no_device(const char *function)
{
    PyErr_Format(PyExc_RuntimeError,
                 "%s: memory of a device is not part of this build; its targets take arguments in "
                 "host memory as they are",
                 function);
    return NULL;
}

static PyObject *to_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"arg", "host", NULL};
    PyObject *argument;
    int host = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:to_gpu", names, &argument, &host))
        return NULL;
    return no_device("to_gpu");
}

static PyObject *from_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"arg", NULL};
    PyObject *argument;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:from_gpu", names, &argument))
        return NULL;
    return no_device("from_gpu");
}

static PyObject *allocate_gpu(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"s", "host", NULL};
    PyObject *shape;
    int host = 0;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p:allocate_gpu", names, py.shape, &shape,
                                     &host))
        return NULL;
    return no_device("allocate_gpu");
}

static PyObject *gpu_sync(PyObject *unused, PyObject *none)
{
    (void)unused;
    (void)none;
    return no_device("gpu_sync");
}

static PyObject *gpudata_to_argument(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "address", NULL};
    PyObject *shape, *address;
    (void)unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:gpudata_to_argument", names, &shape,
                                     &address))
        return NULL;
    return no_device("gpudata_to_argument");
}

PyMethodDef py_device_functions[] = {
    {"to_gpu", WITH_KEYWORDS(to_gpu),
     "to_gpu($module, /, arg, host=False)\n--\n\nA copy in a device's memory; not part of this "
     "build."},
    {"from_gpu", WITH_KEYWORDS(from_gpu),
     "from_gpu($module, /, arg)\n--\n\nA copy in host memory; not part of this build."},
    {"allocate_gpu", WITH_KEYWORDS(allocate_gpu),
     "allocate_gpu($module, /, s, host=False)\n--\n\nMemory of a device; not part of this build."},
    {"gpu_sync", gpu_sync, METH_NOARGS,
     "gpu_sync($module, /)\n--\n\nWaits for a device; not part of this build."},
    {"gpudata_to_argument", WITH_KEYWORDS(gpudata_to_argument),
     "gpudata_to_argument($module, /, shape, address)\n--\n\nAn argument over a device's memory; "
     "not "
     "part of this build."},
    {NULL, NULL, 0, NULL}};
