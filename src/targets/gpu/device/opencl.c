// SPDX-License-Identifier: MIT
// Any other card, and PoCL's CPU for tests: OpenCL 2.0 and newer, by the ICD loader, declared here
// and opened at run time.
//
// Addresses come from shared virtual memory of the coarse kind, which is ordinary device memory
// with an address that host and kernels agree on; the host does not touch it here either. A stream
// is an in-order queue. An event is a marker in one. Devices are chosen by kind: cards first, CPUs
// last, wherever their platform stands in the list.
//
// Holds: arguments of a kernel object are set and launched under its lock, as OpenCL keeps them in
// the object. Freeing memory waits for the queues made here; a caller's own queue is the caller's.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/device.h"
#include "targets/gpu/device/library.h"

enum {
    DEVICE_NOT_FOUND = -1,
    ALLOCATION_FAILURE = -4,
    OUT_OF_RESOURCES = -5,
    OUT_OF_HOST_MEMORY = -6,
    BUILD_FAILURE = -11,
    PLATFORM_NOT_FOUND = -1001,
    TYPE_CPU = 1 << 1,
    TYPE_GPU = 1 << 2,
    TYPE_ACCELERATOR = 1 << 3,
    DEVICE_TYPE = 0x1000,
    DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    DEVICE_CACHE_SIZE = 0x101e,
    DEVICE_MEMORY_SIZE = 0x101f,
    DEVICE_LOCAL_SIZE = 0x1023,
    DEVICE_NAME = 0x102b,
    DRIVER_VERSION = 0x102d,
    DEVICE_VERSION = 0x102f,
    DEVICE_EXTENSIONS = 0x1030,
    DEVICE_SVM = 0x1053,
    SVM_COARSE = 1 << 0,
    QUEUE_PROPERTIES = 0x1093,
    QUEUE_PROFILING = 1 << 1,
    PROGRAM_BINARY_SIZES = 0x1165,
    PROGRAM_BINARIES = 0x1166,
    BUILD_LOG = 0x1183,
    COMMAND_END = 0x1283,
    MEMORY_READ_WRITE = 1 << 0,
    MAX_DEVICES = 64,
    EXTENSIONS_SIZE = 8192,
    OPTIONS_SIZE = 1024,
    INFO_SIZE = 256,
    QUOTED_LOG = 1200,
};

static struct opencl_calls {
    int (*platforms)(unsigned room, void **platforms, unsigned *count);
    int (*devices)(void *platform, uint64_t type, unsigned room, void **devices, unsigned *count);
    int (*device_info)(void *device, unsigned what, size_t room, void *value, size_t *size);
    void *(*context_make)(const intptr_t *properties, unsigned count, void *const *devices,
                          void *notify, void *user, int *status);
    int (*context_release)(void *context);
    void *(*queue_make)(void *context, void *device, const uint64_t *properties, int *status);
    int (*queue_release)(void *queue);
    int (*finish)(void *queue);
    int (*flush)(void *queue);
    void *(*alloc)(void *context, uint64_t flags, size_t bytes, unsigned align);
    void (*free)(void *context, void *address);
    int (*copy)(void *queue, unsigned blocking, void *to, const void *from, size_t bytes,
                unsigned wait_count, void *const *wait, void **event);
    int (*fill)(void *queue, void *to, const void *pattern, size_t pattern_bytes, size_t bytes,
                unsigned wait_count, void *const *wait, void **event);
    int (*marker)(void *queue, unsigned wait_count, void *const *wait, void **event);
    int (*barrier)(void *queue, unsigned wait_count, void *const *wait, void **event);
    int (*event_wait)(unsigned count, void *const *events);
    int (*event_release)(void *event);
    int (*event_time)(void *event, unsigned what, size_t room, void *value, size_t *size);
    void *(*program_from_text)(void *context, unsigned count, const char **texts,
                               const size_t *sizes, int *status);
    void *(*program_from_binary)(void *context, unsigned count, void *const *devices,
                                 const size_t *sizes, const unsigned char **binaries, int *each,
                                 int *status);
    int (*program_build)(void *program, unsigned count, void *const *devices, const char *options,
                         void *notify, void *user);
    int (*program_info)(void *program, unsigned what, size_t room, void *value, size_t *size);
    int (*build_info)(void *program, void *device, unsigned what, size_t room, void *value,
                      size_t *size);
    int (*program_release)(void *program);
    void *(*kernel_make)(void *program, const char *name, int *status);
    int (*kernel_release)(void *kernel);
    int (*set_value)(void *kernel, unsigned index, size_t size, const void *value);
    int (*set_address)(void *kernel, unsigned index, const void *address);
    int (*launch)(void *queue, void *kernel, unsigned rank, const size_t *offset,
                  const size_t *global, const size_t *local, unsigned wait_count, void *const *wait,
                  void **event);
} cl;

#define AT(member) offsetof(struct opencl_calls, member)
static const struct gpu_symbol symbols[] = {
    {"clGetPlatformIDs", AT(platforms), false},
    {"clGetDeviceIDs", AT(devices), false},
    {"clGetDeviceInfo", AT(device_info), false},
    {"clCreateContext", AT(context_make), false},
    {"clReleaseContext", AT(context_release), false},
    {"clCreateCommandQueueWithProperties", AT(queue_make), false},
    {"clReleaseCommandQueue", AT(queue_release), false},
    {"clFinish", AT(finish), false},
    {"clFlush", AT(flush), false},
    {"clSVMAlloc", AT(alloc), false},
    {"clSVMFree", AT(free), false},
    {"clEnqueueSVMMemcpy", AT(copy), false},
    {"clEnqueueSVMMemFill", AT(fill), false},
    {"clEnqueueMarkerWithWaitList", AT(marker), false},
    {"clEnqueueBarrierWithWaitList", AT(barrier), false},
    {"clWaitForEvents", AT(event_wait), false},
    {"clReleaseEvent", AT(event_release), false},
    {"clGetEventProfilingInfo", AT(event_time), false},
    {"clCreateProgramWithSource", AT(program_from_text), false},
    {"clCreateProgramWithBinary", AT(program_from_binary), false},
    {"clBuildProgram", AT(program_build), false},
    {"clGetProgramInfo", AT(program_info), false},
    {"clGetProgramBuildInfo", AT(build_info), false},
    {"clReleaseProgram", AT(program_release), false},
    {"clCreateKernel", AT(kernel_make), false},
    {"clReleaseKernel", AT(kernel_release), false},
    {"clSetKernelArg", AT(set_value), false},
    {"clSetKernelArgSVMPointer", AT(set_address), false},
    {"clEnqueueNDRangeKernel", AT(launch), false},
};
#undef AT

struct queue {
    struct queue *next;
    void *handle;
};

struct extent {
    struct extent *next;
    char *at;
    size_t bytes;
};

struct cl_device {
    struct gpu_device base;
    void *device, *context;
    pthread_mutex_t lock; // of the lists
    struct queue *queues;
    struct extent *extents; // of memory that is allocated
};

struct cl_kernel {
    struct cl_kernel *next;
    void *handle;
    pthread_mutex_t lock; // of its arguments
};

struct cl_module {
    void *program;
    pthread_mutex_t lock; // of the list
    struct cl_kernel *kernels;
};

static struct cl_device *own(struct gpu_device *d)
{
    return (struct cl_device *)d;
}

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    if (status == 0)
        return MGX_OK;
    const bool memory = status == ALLOCATION_FAILURE || status == OUT_OF_HOST_MEMORY;
    const char *text = memory                       ? ": out of memory"
                       : status == OUT_OF_RESOURCES ? ": out of resources"
                                                    : "";
    return mgx_fail(diag, memory ? MGX_NO_MEMORY : MGX_DEVICE, "opencl: %s: status %d%s", what,
                    status, text);
}

// --- devices, by kind ---

static const int kinds[] = {TYPE_GPU, TYPE_ACCELERATOR, TYPE_CPU};

static enum mgx_status list_devices(void **devices, int *count, struct mgx_diag *diag)
{
    static const char *const libraries[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
    TRY(gpu_library_open("OpenCL's loader", libraries, symbols, MGX_COUNT(symbols), &cl, diag));
    void *platforms[MAX_DEVICES];
    unsigned platform_count = 0;
    const int status = cl.platforms(MAX_DEVICES, platforms, &platform_count);
    *count = 0;
    if (status == PLATFORM_NOT_FOUND || (status == 0 && platform_count == 0))
        return mgx_fail(diag, MGX_NOT_FOUND, "opencl has no platform (no driver is installed)");
    TRY(check(status, "listing platforms", diag));
    for (int k = 0; k < MGX_COUNT(kinds); k++)
        for (unsigned p = 0; p < platform_count && p < MAX_DEVICES && *count < MAX_DEVICES; p++) {
            unsigned found = 0;
            if (cl.devices(platforms[p], (uint64_t)kinds[k], (unsigned)(MAX_DEVICES - *count),
                           devices + *count, &found) == 0)
                *count += (int)found < MAX_DEVICES - *count ? (int)found : MAX_DEVICES - *count;
        }
    if (*count == 0)
        return mgx_fail(diag, MGX_NOT_FOUND, "opencl has no device");
    return MGX_OK;
}

static enum mgx_status count(int *count, struct mgx_diag *diag)
{
    void *devices[MAX_DEVICES];
    return list_devices(devices, count, diag);
}

static uint64_t number(void *device, unsigned what, size_t size)
{
    uint64_t value = 0;
    return cl.device_info(device, what, size, &value, NULL) == 0 ? value : 0;
}

static bool has_extension(void *device, const char *name)
{
    char *text = calloc(1, EXTENSIONS_SIZE);
    const bool has =
        text && cl.device_info(device, DEVICE_EXTENSIONS, EXTENSIONS_SIZE - 1, text, NULL) == 0 &&
        strstr(text, name);
    free(text);
    return has;
}

static void read_properties(void *device, struct gpu_properties *p)
{
    char version[INFO_SIZE] = "", driver[INFO_SIZE] = "";
    cl.device_info(device, DEVICE_NAME, sizeof p->name, p->name, NULL);
    cl.device_info(device, DEVICE_VERSION, sizeof version, version, NULL);
    cl.device_info(device, DRIVER_VERSION, sizeof driver, driver, NULL);
    snprintf(p->arch, sizeof p->arch, "%.30s, %.30s", version, driver);
    p->units = (int)number(device, DEVICE_MAX_COMPUTE_UNITS, sizeof(unsigned));
    p->max_threads = (int)number(device, DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    p->warp = 1;
    p->shared_bytes = number(device, DEVICE_LOCAL_SIZE, sizeof(uint64_t));
    p->l2_bytes = number(device, DEVICE_CACHE_SIZE, sizeof(uint64_t));
    p->memory_bytes = number(device, DEVICE_MEMORY_SIZE, sizeof(uint64_t));
    if (has_extension(device, "cl_khr_fp64"))
        p->features |= GPU_DOUBLE;
    if (has_extension(device, "cl_khr_fp16"))
        p->features |= GPU_HALF_MATH;
    if (number(device, DEVICE_TYPE, sizeof(uint64_t)) & TYPE_CPU)
        p->features |= GPU_HOST_MEMORY;
}

static void forget_extent(struct cl_device *c, const void *address);

static void close_device(struct gpu_device *d)
{
    struct cl_device *c = own(d);
    while (c->queues) {
        struct queue *next = c->queues->next;
        free(c->queues);
        c->queues = next;
    }
    while (c->extents)
        forget_extent(c, c->extents->at);
    if (c->context)
        cl.context_release(c->context);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static enum mgx_status open_device(int index, struct gpu_device **out, struct mgx_diag *diag)
{
    void *devices[MAX_DEVICES];
    int device_count, status;
    TRY(list_devices(devices, &device_count, diag));
    if (index >= device_count)
        return mgx_fail(diag, MGX_NOT_FOUND, "opencl has lost device %d", index);
    struct cl_device *c = calloc(1, sizeof *c);
    if (!c)
        return mgx_fail_memory(diag);
    pthread_mutex_init(&c->lock, NULL);
    c->device = devices[index];
    read_properties(c->device, &c->base.properties);
    enum mgx_status result = MGX_OK;
    if (!(number(c->device, DEVICE_SVM, sizeof(uint64_t)) & SVM_COARSE))
        result = mgx_fail(diag, MGX_UNSUPPORTED, "opencl: %s has no shared virtual memory",
                          c->base.properties.name);
    else {
        c->context = cl.context_make(NULL, 1, &c->device, NULL, NULL, &status);
        result = check(status, "opening the device", diag);
    }
    if (result != MGX_OK)
        close_device(&c->base);
    else
        *out = &c->base;
    return result;
}

// --- memory ---

static enum mgx_status alloc(struct gpu_device *d, size_t bytes, void **out, struct mgx_diag *diag)
{
    struct cl_device *c = own(d);
    struct extent *e = malloc(sizeof *e);
    *out = e ? cl.alloc(c->context, MEMORY_READ_WRITE, bytes ? bytes : 1, 0) : NULL;
    if (!*out) {
        free(e);
        return mgx_fail(diag, MGX_NO_MEMORY, "opencl: no room for %zu bytes on %s, of %zu", bytes,
                        d->properties.name, d->properties.memory_bytes);
    }
    pthread_mutex_lock(&c->lock);
    *e = (struct extent){c->extents, *out, bytes ? bytes : 1};
    c->extents = e;
    pthread_mutex_unlock(&c->lock);
    return MGX_OK;
}

static bool holds(struct gpu_device *d, const void *address)
{
    struct cl_device *c = own(d);
    pthread_mutex_lock(&c->lock);
    const struct extent *e = c->extents;
    while (e && ((uintptr_t)address < (uintptr_t)e->at ||
                 (uintptr_t)address - (uintptr_t)e->at >= e->bytes))
        e = e->next;
    pthread_mutex_unlock(&c->lock);
    return e != NULL;
}

static void forget_extent(struct cl_device *c, const void *address)
{
    pthread_mutex_lock(&c->lock);
    struct extent **at = &c->extents;
    while (*at && (*at)->at != address)
        at = &(*at)->next;
    struct extent *e = *at;
    if (e)
        *at = e->next;
    pthread_mutex_unlock(&c->lock);
    free(e);
}

static enum mgx_status settle(struct gpu_device *d, struct mgx_diag *diag)
{
    struct cl_device *c = own(d);
    int status = 0;
    pthread_mutex_lock(&c->lock);
    for (struct queue *q = c->queues; q; q = q->next) {
        const int one = cl.finish(q->handle);
        status = status ? status : one;
    }
    pthread_mutex_unlock(&c->lock);
    return check(status, "waiting for the device", diag);
}

static void free_memory(struct gpu_device *d, void *address)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!address)
        return;
    (void)!settle(d, &quiet);
    forget_extent(own(d), address);
    cl.free(own(d)->context, address);
}

// There is no way to pin plain memory; page-aligned memory is what drivers copy from best.
static enum mgx_status alloc_host(struct gpu_device *d, size_t bytes, void **out,
                                  struct mgx_diag *diag)
{
    (void)d;
    *out = NULL;
    return posix_memalign(out, 4096, bytes ? bytes : 1) == 0 ? MGX_OK : mgx_fail_memory(diag);
}

static void free_host(struct gpu_device *d, void *host)
{
    (void)d;
    free(host);
}

static enum mgx_status copy(struct gpu_device *d, void *stream, void *to, const void *from,
                            size_t bytes, struct mgx_diag *diag)
{
    (void)d;
    if (bytes == 0)
        return MGX_OK;
    return check(cl.copy(stream, 0, to, from, bytes, 0, NULL, NULL), "copying", diag);
}

static enum mgx_status fill(struct gpu_device *d, void *stream, void *to, unsigned char byte,
                            size_t bytes, struct mgx_diag *diag)
{
    (void)d;
    if (bytes == 0)
        return MGX_OK;
    return check(cl.fill(stream, to, &byte, 1, bytes, 0, NULL, NULL), "filling memory", diag);
}

// --- streams and events ---

static enum mgx_status stream_create(struct gpu_device *d, void **out, struct mgx_diag *diag)
{
    static const uint64_t profiled[] = {QUEUE_PROPERTIES, QUEUE_PROFILING, 0};
    struct cl_device *c = own(d);
    struct queue *q = calloc(1, sizeof *q);
    if (!q)
        return mgx_fail_memory(diag);
    int status;
    q->handle = cl.queue_make(c->context, c->device, profiled, &status);
    if (status != 0) {
        free(q);
        return check(status, "creating a queue", diag);
    }
    pthread_mutex_lock(&c->lock);
    q->next = c->queues;
    c->queues = q;
    pthread_mutex_unlock(&c->lock);
    *out = q->handle;
    return MGX_OK;
}

static void stream_destroy(struct gpu_device *d, void *stream)
{
    struct cl_device *c = own(d);
    if (!stream)
        return;
    pthread_mutex_lock(&c->lock);
    struct queue **at = &c->queues;
    while (*at && (*at)->handle != stream)
        at = &(*at)->next;
    struct queue *q = *at;
    if (q)
        *at = q->next;
    pthread_mutex_unlock(&c->lock);
    cl.finish(stream);
    cl.queue_release(stream);
    free(q);
}

static enum mgx_status stream_wait(struct gpu_device *d, void *stream, struct mgx_diag *diag)
{
    (void)d;
    return check(cl.finish(stream), "waiting for a queue", diag);
}

// An event is a place for the marker that recording makes.
static enum mgx_status event_create(struct gpu_device *d, void **out, struct mgx_diag *diag)
{
    (void)d;
    *out = calloc(1, sizeof(void *));
    return *out ? MGX_OK : mgx_fail_memory(diag);
}

static void event_destroy(struct gpu_device *d, void *event)
{
    (void)d;
    if (event && *(void **)event)
        cl.event_release(*(void **)event);
    free(event);
}

static enum mgx_status event_record(struct gpu_device *d, void *event, void *stream,
                                    struct mgx_diag *diag)
{
    (void)d;
    void **marker = event;
    if (*marker)
        cl.event_release(*marker);
    *marker = NULL;
    TRY(check(cl.marker(stream, 0, NULL, marker), "recording an event", diag));
    return check(cl.flush(stream), "recording an event", diag); // another queue may wait for it
}

static enum mgx_status event_follow(struct gpu_device *d, void *stream, void *event,
                                    struct mgx_diag *diag)
{
    (void)d;
    if (!*(void **)event)
        return MGX_OK;
    return check(cl.barrier(stream, 1, event, NULL), "waiting for an event", diag);
}

static enum mgx_status event_elapsed(struct gpu_device *d, void *from, void *to, float *ms,
                                     struct mgx_diag *diag)
{
    (void)d;
    uint64_t begin = 0, end = 0;
    TRY(check(cl.event_wait(1, to), "waiting for an event", diag));
    TRY(check(cl.event_time(*(void **)from, COMMAND_END, sizeof begin, &begin, NULL),
              "timing events", diag));
    TRY(check(cl.event_time(*(void **)to, COMMAND_END, sizeof end, &end, NULL), "timing events",
              diag));
    *ms = (float)((double)(end - begin) * 1e-6);
    return MGX_OK;
}

// --- programs ---

static void join_options(const struct gpu_source *source, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; source->options && source->options[i]; i++) {
        const int wrote =
            snprintf(text + used, OPTIONS_SIZE - used, "%s%s", i ? " " : "", source->options[i]);
        used += (size_t)wrote < OPTIONS_SIZE - used ? (size_t)wrote : 0;
    }
}

static void read_log(struct cl_device *c, void *program, struct mgx_str *log)
{
    size_t size = 0;
    if (cl.build_info(program, c->device, BUILD_LOG, 0, NULL, &size) != 0 || size <= 1)
        return;
    char *text = calloc(1, size + 1);
    if (text && cl.build_info(program, c->device, BUILD_LOG, size, text, NULL) == 0)
        mgx_str_put(log, text);
    free(text);
}

static enum mgx_status build(struct cl_device *c, void *program, const char *name,
                             const char *options, struct mgx_str *log, struct mgx_diag *diag)
{
    const int status = cl.program_build(program, 1, &c->device, options, NULL, NULL);
    struct mgx_str unwanted = {0};
    struct mgx_str *to = log ? log : &unwanted;
    const size_t from = to->size;
    read_log(c, program, to);
    if (status == BUILD_FAILURE)
        mgx_fail(diag, MGX_DEVICE, "opencl: %s: %.*s", name, QUOTED_LOG, mgx_str_text(to) + from);
    mgx_str_fini(&unwanted);
    return check(status, name, diag);
}

static enum mgx_status read_binary(void *program, struct mgx_str *out, struct mgx_diag *diag)
{
    size_t size = 0;
    TRY(check(cl.program_info(program, PROGRAM_BINARY_SIZES, sizeof size, &size, NULL),
              "reading a binary", diag));
    char *bytes = malloc(size ? size : 1);
    if (!bytes)
        return mgx_fail_memory(diag);
    const int status = cl.program_info(program, PROGRAM_BINARIES, sizeof bytes, &bytes, NULL);
    if (status == 0)
        mgx_str_putn(out, bytes, size);
    free(bytes);
    return out->failed ? mgx_fail_memory(diag) : check(status, "reading a binary", diag);
}

static enum mgx_status compile(struct gpu_device *d, const struct gpu_source *source,
                               struct mgx_str *out, struct mgx_str *log, struct mgx_diag *diag)
{
    struct cl_device *c = own(d);
    const char *text = source->text;
    char options[OPTIONS_SIZE];
    int status;
    void *program = cl.program_from_text(c->context, 1, &text, NULL, &status);
    TRY(check(status, source->name, diag));
    join_options(source, options);
    enum mgx_status result = build(c, program, source->name, options, log, diag);
    if (result == MGX_OK)
        result = read_binary(program, out, diag);
    cl.program_release(program);
    return result;
}

static enum mgx_status load_program(struct cl_device *c, const unsigned char *binary, size_t size,
                                    void **out, struct mgx_diag *diag)
{
    int each = 0, status;
    void *program =
        cl.program_from_binary(c->context, 1, &c->device, &size, &binary, &each, &status);
    TRY(check(status ? status : each, "loading a module", diag));
    const enum mgx_status result = build(c, program, "a module", "", NULL, diag);
    if (result != MGX_OK)
        cl.program_release(program);
    else
        *out = program;
    return result;
}

static enum mgx_status module_load(struct gpu_device *d, const void *binary, size_t size,
                                   void **out, struct mgx_diag *diag)
{
    struct cl_module *m = calloc(1, sizeof *m);
    if (!m)
        return mgx_fail_memory(diag);
    const enum mgx_status status = load_program(own(d), binary, size, &m->program, diag);
    if (status != MGX_OK) {
        free(m);
        return status;
    }
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return MGX_OK;
}

static void module_unload(struct gpu_device *d, void *module)
{
    (void)d;
    struct cl_module *m = module;
    if (!m)
        return;
    while (m->kernels) {
        struct cl_kernel *next = m->kernels->next;
        cl.kernel_release(m->kernels->handle);
        pthread_mutex_destroy(&m->kernels->lock);
        free(m->kernels);
        m->kernels = next;
    }
    cl.program_release(m->program);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static enum mgx_status kernel_find(struct gpu_device *d, void *module, const char *name,
                                   size_t shared, void **out, struct mgx_diag *diag)
{
    struct cl_module *m = module;
    if (shared > d->properties.shared_bytes)
        return mgx_fail(diag, MGX_DEVICE,
                        "opencl: kernel %s wants %zu bytes of local memory of %zu", name, shared,
                        d->properties.shared_bytes);
    struct cl_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return mgx_fail_memory(diag);
    int status;
    k->handle = cl.kernel_make(m->program, name, &status);
    if (status != 0) {
        free(k);
        return check(status, name, diag);
    }
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_lock(&m->lock);
    k->next = m->kernels;
    m->kernels = k;
    pthread_mutex_unlock(&m->lock);
    *out = k;
    return MGX_OK;
}

static int set_args(void *kernel, const struct gpu_launch *how, const struct gpu_arg *args,
                    int arg_count)
{
    int status = 0, i = 0;
    for (; i < arg_count && status == 0; i++)
        status = args[i].is_address
                     ? cl.set_address(kernel, (unsigned)i, *(void *const *)args[i].value)
                     : cl.set_value(kernel, (unsigned)i, args[i].size, args[i].value);
    if (status == 0 && how->shared) // local memory is one argument more, behind the others
        status = cl.set_value(kernel, (unsigned)i, how->shared, NULL);
    return status;
}

static enum mgx_status launch(struct gpu_device *d, void *stream, void *kernel,
                              const struct gpu_launch *how, const struct gpu_arg *args,
                              int arg_count, struct mgx_diag *diag)
{
    (void)d;
    struct cl_kernel *k = kernel;
    size_t global[3], local[3];
    for (int i = 0; i < 3; i++) {
        local[i] = how->block[i];
        global[i] = (size_t)how->grid[i] * how->block[i];
    }
    pthread_mutex_lock(&k->lock);
    int status = set_args(k->handle, how, args, arg_count);
    if (status == 0)
        status = cl.launch(stream, k->handle, 3, NULL, global, local, 0, NULL, NULL);
    pthread_mutex_unlock(&k->lock);
    return check(status, "launching a kernel", diag);
}

const struct gpu_api gpu_api_opencl = {.name = "opencl",
                                       .count = count,
                                       .open = open_device,
                                       .close = close_device,
                                       .alloc = alloc,
                                       .free = free_memory,
                                       .holds = holds,
                                       .alloc_host = alloc_host,
                                       .free_host = free_host,
                                       .stream_create = stream_create,
                                       .stream_destroy = stream_destroy,
                                       .stream_wait = stream_wait,
                                       .settle = settle,
                                       .event_create = event_create,
                                       .event_destroy = event_destroy,
                                       .event_record = event_record,
                                       .event_follow = event_follow,
                                       .event_elapsed = event_elapsed,
                                       .copy_in = copy,
                                       .copy_out = copy,
                                       .copy = copy,
                                       .fill = fill,
                                       .compile = compile,
                                       .module_load = module_load,
                                       .module_unload = module_unload,
                                       .kernel_find = kernel_find,
                                       .launch = launch};
