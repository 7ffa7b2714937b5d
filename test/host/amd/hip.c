// SPDX-License-Identifier: MIT
// Stand-ins of HIP's runtime, for AMD's build of ONNX Runtime on a machine without one: the 24 calls that
// it makes itself, and none more.
//
// Holds: memory is the processor's, which OpenCL on a processor takes as the card's own. There is one
// stream, none; what orders work with the engine's is waiting for that, at every call that reads,
// frees or waits.
#include <stdlib.h>
#include <string.h>

#include <migraphx/extensions.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, NO_MEMORY = 2, PROPERTIES = 1472, ARCHITECTURE = 1160 };

static int wait_for_engine(void)
{
    return migraphx_device_wait(NULL) ? 1 : OK;
}

static int allocate(void **out, size_t size)
{
    enum { APART = 256 };
    *out = aligned_alloc(APART, (size + APART) / APART * APART);
    return *out ? OK : NO_MEMORY;
}

// --- devices ---

API int hipGetDeviceCount(int *out);
API int hipGetDeviceCount(int *out)
{
    *out = 1;
    return OK;
}

API int hipGetDevice(int *out);
API int hipGetDevice(int *out)
{
    *out = 0;
    return OK;
}

API int hipSetDevice(int device);
API int hipSetDevice(int device)
{
    return device;
}

API int hipGetDevicePropertiesR0600(void *out, int device);
API int hipGetDevicePropertiesR0600(void *out, int device)
{
    memset(out, 0, PROPERTIES);
    strcpy(out, "stand-in");
    strcpy((char *)out + ARCHITECTURE, "gfx90a");
    return device;
}

API int hipDeviceSynchronize(void);
API int hipDeviceSynchronize(void)
{
    return wait_for_engine();
}

API int hipGetLastError(void);
API int hipGetLastError(void)
{
    return OK;
}

API const char *hipGetErrorString(int error);
API const char *hipGetErrorString(int error)
{
    return error ? "a stand-in failed" : "no error";
}

// --- memory ---

API int hipMalloc(void **out, size_t size);
API int hipMalloc(void **out, size_t size)
{
    return allocate(out, size);
}

API int hipHostMalloc(void **out, size_t size, unsigned flags);
API int hipHostMalloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(out, size);
}

API int hipFree(void *at);
API int hipFree(void *at)
{
    const int status = wait_for_engine();
    free(at);
    return status;
}

API int hipHostFree(void *at);
API int hipHostFree(void *at)
{
    return hipFree(at);
}

API int hipMemcpy(void *to, const void *from, size_t size, int way);
API int hipMemcpy(void *to, const void *from, size_t size, int way)
{
    (void)way;
    const int status = wait_for_engine();
    memmove(to, from, size);
    return status;
}

API int hipMemcpyAsync(void *to, const void *from, size_t size, int way, void *stream);
API int hipMemcpyAsync(void *to, const void *from, size_t size, int way, void *stream)
{
    (void)stream;
    return hipMemcpy(to, from, size, way);
}

API int hipMemcpyWithStream(void *to, const void *from, size_t size, int way, void *stream);
API int hipMemcpyWithStream(void *to, const void *from, size_t size, int way, void *stream)
{
    (void)stream;
    return hipMemcpy(to, from, size, way);
}

// --- streams and events ---

API int hipStreamCreateWithFlags(void **out, unsigned flags);
API int hipStreamCreateWithFlags(void **out, unsigned flags)
{
    (void)flags;
    *out = NULL;
    return OK;
}

API int hipStreamDestroy(void *stream);
API int hipStreamDestroy(void *stream)
{
    (void)stream;
    return OK;
}

API int hipStreamQuery(void *stream);
API int hipStreamQuery(void *stream)
{
    (void)stream;
    return wait_for_engine();
}

API int hipStreamSynchronize(void *stream);
API int hipStreamSynchronize(void *stream)
{
    (void)stream;
    return wait_for_engine();
}

API int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
API int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return wait_for_engine();
}

API int hipEventCreateWithFlags(void **out, unsigned flags);
API int hipEventCreateWithFlags(void **out, unsigned flags)
{
    (void)flags;
    return allocate(out, 1);
}

API int hipEventDestroy(void *event);
API int hipEventDestroy(void *event)
{
    free(event);
    return OK;
}

API int hipEventRecord(void *event, void *stream);
API int hipEventRecord(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return OK;
}

API int hipEventSynchronize(void *event);
API int hipEventSynchronize(void *event)
{
    (void)event;
    return wait_for_engine();
}

API int hipLaunchHostFunc(void *stream, void (*call)(void *), void *data);
API int hipLaunchHostFunc(void *stream, void (*call)(void *), void *data)
{
    (void)stream;
    const int status = wait_for_engine();
    call(data);
    return status;
}
