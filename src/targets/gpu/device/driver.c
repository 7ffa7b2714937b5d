// SPDX-License-Identifier: MIT
// The calls that CUDA and HIP share; driver.h draws the line.
//
// Every call makes the device current, calls, and puts back what was current. A destroying call
// that fails has nobody to tell: what it was to free is then lost with the context.
#include "targets/gpu/device/driver.h"

#include <assert.h>

enum { DRIVER_MAX_ARGS = 64 };

static const struct driver *driver_of(const struct gpu_device *d)
{
    return ((const struct driver_device *)d)->driver;
}

enum mgx_status driver_fail(const struct driver *driver, const char *api, const char *what,
                            int status, struct mgx_diag *diag)
{
    const char *text = driver->error_text(status);
    return mgx_fail(diag, status == DRIVER_NO_MEMORY ? MGX_NO_MEMORY : MGX_DEVICE,
                    "%s: %s: %s (%d)", api, what, text ? text : "unknown error", status);
}

// One call with the device current. `CALL` sees the table as `calls`.
#define IN_DEVICE(d, status, CALL)                                                                 \
    do {                                                                                           \
        const struct driver *driver_ = driver_of(d);                                               \
        const struct driver_calls *calls = driver_->calls;                                         \
        void *before_ = NULL;                                                                      \
        status = driver_->enter(d, &before_);                                                      \
        if (status == 0) {                                                                         \
            status = calls->CALL;                                                                  \
            driver_->leave(d, before_);                                                            \
        }                                                                                          \
    } while (0)

static enum mgx_status said(const struct gpu_device *d, const char *what, int status,
                            struct mgx_diag *diag)
{
    return status == 0 ? MGX_OK : driver_fail(driver_of(d), d->api->name, what, status, diag);
}

// --- memory ---

static enum mgx_status fail_alloc(struct gpu_device *d, size_t bytes, struct mgx_diag *diag)
{
    size_t free_bytes = 0, total = 0;
    int status;
    IN_DEVICE(d, status, memory_info(&free_bytes, &total));
    (void)status; // both stay 0 where the driver does not know
    return mgx_fail(diag, MGX_NO_MEMORY, "%s: no room for %zu bytes on %s, %zu of %zu are free",
                    d->api->name, bytes, d->properties.name, free_bytes, total);
}

enum mgx_status driver_alloc(struct gpu_device *d, size_t bytes, void **out, struct mgx_diag *diag)
{
    int status;
    *out = NULL;
    IN_DEVICE(d, status, alloc(out, bytes ? bytes : 1));
    if (status == DRIVER_NO_MEMORY)
        return fail_alloc(d, bytes, diag);
    return said(d, "allocating memory", status, diag);
}

enum mgx_status driver_alloc_reached(struct gpu_device *d, size_t bytes, void **out,
                                     struct mgx_diag *diag)
{
    enum { FINE_GRAINED = 1 }; // what one card writes, a running kernel of another one sees
    int status;
    if (!driver_of(d)->calls->alloc_reached)
        return driver_alloc(d, bytes, out, diag);
    *out = NULL;
    IN_DEVICE(d, status, alloc_reached(out, bytes ? bytes : 1, FINE_GRAINED));
    return said(d, "allocating memory that other cards reach", status, diag);
}

enum mgx_status driver_reach(struct gpu_device *d, const struct gpu_device *other,
                             struct mgx_diag *diag)
{
    const struct driver *driver = driver_of(d);
    void *before = NULL;
    int can = 0, status = 0;
    if (driver->calls->can_reach)
        IN_DEVICE(d, status, can_reach(&can, d->index, other->index));
    if (status == 0 && !can)
        return mgx_fail(diag, MGX_UNSUPPORTED, "%s: no link leads from card %d to card %d",
                        d->api->name, d->index, other->index);
    if (status == 0)
        status = driver->enter(d, &before);
    if (status == 0) {
        status = driver->reach(other);
        driver->leave(d, before);
    }
    return said(d, "reaching another card", status == DRIVER_REACHED_ALREADY ? 0 : status, diag);
}

void driver_free(struct gpu_device *d, void *address)
{
    int status;
    if (address)
        IN_DEVICE(d, status, free(address));
}

bool driver_holds(struct gpu_device *d, const void *address)
{
    void *base = NULL;
    size_t bytes = 0;
    int status;
    IN_DEVICE(d, status, find_range(&base, &bytes, address));
    return status == 0;
}

enum mgx_status driver_alloc_host(struct gpu_device *d, size_t bytes, void **out,
                                  struct mgx_diag *diag)
{
    int status;
    *out = NULL;
    IN_DEVICE(d, status, alloc_host(out, bytes ? bytes : 1, 0));
    return said(d, "allocating pinned host memory", status, diag);
}

void driver_free_host(struct gpu_device *d, void *host)
{
    int status;
    if (host)
        IN_DEVICE(d, status, free_host(host));
}

bool driver_pinned(struct gpu_device *d, const void *host)
{
    unsigned flags = 0;
    int status;
    if (!driver_of(d)->calls->host_flags) // nobody can tell
        return false;
    IN_DEVICE(d, status, host_flags(&flags, (void *)host));
    return status == 0;
}

enum mgx_status driver_copy_in(struct gpu_device *d, void *stream, void *to, const void *host,
                               size_t bytes, struct mgx_diag *diag)
{
    int status = 0;
    if (bytes)
        IN_DEVICE(d, status, copy_in(to, host, bytes, stream));
    return said(d, "copying to the device", status, diag);
}

enum mgx_status driver_copy_out(struct gpu_device *d, void *stream, void *host, const void *from,
                                size_t bytes, struct mgx_diag *diag)
{
    int status = 0;
    if (bytes)
        IN_DEVICE(d, status, copy_out(host, from, bytes, stream));
    return said(d, "copying from the device", status, diag);
}

enum mgx_status driver_copy(struct gpu_device *d, void *stream, void *to, const void *from,
                            size_t bytes, struct mgx_diag *diag)
{
    int status = 0;
    if (bytes)
        IN_DEVICE(d, status, copy(to, from, bytes, stream));
    return said(d, "copying on the device", status, diag);
}

enum mgx_status driver_fill(struct gpu_device *d, void *stream, void *to, unsigned char byte,
                            size_t bytes, struct mgx_diag *diag)
{
    int status = 0;
    if (bytes)
        IN_DEVICE(d, status, fill(to, byte, bytes, stream));
    return said(d, "filling memory", status, diag);
}

// --- streams and events ---

enum mgx_status driver_stream_create(struct gpu_device *d, void **out, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, stream_create(out, DRIVER_STREAM_NON_BLOCKING));
    return said(d, "creating a stream", status, diag);
}

void driver_stream_destroy(struct gpu_device *d, void *stream)
{
    int status;
    if (stream)
        IN_DEVICE(d, status, stream_destroy(stream));
}

enum mgx_status driver_stream_wait(struct gpu_device *d, void *stream, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, stream_wait(stream));
    return said(d, "waiting for a stream", status, diag);
}

enum mgx_status driver_settle(struct gpu_device *d, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, device_wait());
    return said(d, "waiting for the device", status, diag);
}

enum mgx_status driver_event_create(struct gpu_device *d, void **out, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, event_create(out, 0));
    return said(d, "creating an event", status, diag);
}

void driver_event_destroy(struct gpu_device *d, void *event)
{
    int status;
    if (event)
        IN_DEVICE(d, status, event_destroy(event));
}

enum mgx_status driver_event_record(struct gpu_device *d, void *event, void *stream,
                                    struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, event_record(event, stream));
    return said(d, "recording an event", status, diag);
}

enum mgx_status driver_event_follow(struct gpu_device *d, void *stream, void *event,
                                    struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, stream_follow(stream, event, 0));
    return said(d, "waiting for an event", status, diag);
}

enum mgx_status driver_event_wait(struct gpu_device *d, void *event, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, event_wait(event));
    return said(d, "waiting for an event", status, diag);
}

enum mgx_status driver_event_elapsed(struct gpu_device *d, void *from, void *to, float *ms,
                                     struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, event_wait(to));
    if (status == 0)
        IN_DEVICE(d, status, event_elapsed(ms, from, to));
    return said(d, "timing events", status, diag);
}

// --- modules and launches ---

enum mgx_status driver_module_load(struct gpu_device *d, const void *binary, size_t size,
                                   void **out, struct mgx_diag *diag)
{
    (void)size; // the image says how long it is
    int status;
    IN_DEVICE(d, status, module_load(out, binary));
    return said(d, "loading a module", status, diag);
}

void driver_module_unload(struct gpu_device *d, void *module)
{
    int status;
    if (module)
        IN_DEVICE(d, status, module_unload(module));
}

// More than 48 KiB of shared memory must be asked for.
enum mgx_status driver_kernel_find(struct gpu_device *d, void *module, const char *name,
                                   size_t shared, void **out, struct mgx_diag *diag)
{
    const struct driver *driver = driver_of(d);
    int status;
    IN_DEVICE(d, status, module_function(out, module, name));
    if (status == 0 && shared > 48 << 10 && driver->allow_shared) {
        void *before = NULL;
        status = driver->enter(d, &before);
        if (status == 0) {
            status = driver->allow_shared(*out, shared);
            driver->leave(d, before);
        }
    }
    enum mgx_status result = said(d, "finding a kernel", status, diag);
    if (result != MGX_OK)
        mgx_where(diag, "kernel %s, %zu bytes of shared memory", name, shared);
    return result;
}

static int launch(const struct driver *driver, void *stream, void *kernel,
                  const struct gpu_launch *how, void **params)
{
    if (driver->launch_extended && (how->cluster > 1 || how->dependent))
        return driver->launch_extended(kernel, stream, how, params);
    return driver->calls->launch(kernel, how->grid[0], how->grid[1], how->grid[2], how->block[0],
                                 how->block[1], how->block[2], (unsigned)how->shared, stream,
                                 params, NULL);
}

enum mgx_status driver_kernel_streams(struct gpu_device *d, void *kernel, struct mgx_diag *diag)
{
    const struct driver *driver = driver_of(d);
    int status;
    assert(driver->prefer_cache && kernel);
    void *before = NULL;
    status = driver->enter(d, &before);
    if (status == 0) {
        status = driver->prefer_cache(kernel);
        driver->leave(d, before);
    }
    return said(d, "preferring the first cache", status, diag);
}

enum mgx_status driver_launch(struct gpu_device *d, void *stream, void *kernel,
                              const struct gpu_launch *how, const struct gpu_arg *args,
                              int arg_count, struct mgx_diag *diag)
{
    assert(arg_count <= DRIVER_MAX_ARGS);
    assert(how->cluster <= 1 || (d->properties.features & GPU_CLUSTERS));
    const struct driver *driver = driver_of(d);
    void *params[DRIVER_MAX_ARGS], *before = NULL;
    for (int i = 0; i < arg_count; i++)
        params[i] = (void *)args[i].value;
    int status = driver->enter(d, &before);
    if (status == 0) {
        status = launch(driver, stream, kernel, how, params);
        driver->leave(d, before);
    }
    return said(d, "launching a kernel", status, diag);
}

// --- graphs ---

enum mgx_status driver_capture_begin(struct gpu_device *d, void *stream, struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, capture_begin(stream, DRIVER_CAPTURE_THREAD_LOCAL));
    return said(d, "beginning a capture", status, diag);
}

enum mgx_status driver_capture_end(struct gpu_device *d, void *stream, void **graph,
                                   struct mgx_diag *diag)
{
    int status;
    void *captured = NULL;
    *graph = NULL;
    IN_DEVICE(d, status, capture_end(stream, &captured));
    if (status == 0)
        IN_DEVICE(d, status, graph_make(graph, captured, 0));
    int freed = 0;
    if (captured)
        IN_DEVICE(d, freed, graph_free(captured));
    return said(d, "making a graph", status ? status : freed, diag);
}

enum mgx_status driver_capture_update(struct gpu_device *d, void *stream, void *graph,
                                      struct mgx_diag *diag)
{
    int status, freed = 0, result = 0;
    void *captured = NULL, *node = NULL;
    IN_DEVICE(d, status, capture_end(stream, &captured));
    TRY(said(d, "ending a capture", status, diag));
    IN_DEVICE(d, status, graph_update(graph, captured, &node, &result));
    IN_DEVICE(d, freed, graph_free(captured));
    if (status != 0 && result != 0)
        return mgx_fail(diag, MGX_UNSUPPORTED, "the graph has another shape");
    return said(d, "updating a graph", status ? status : freed, diag);
}

enum mgx_status driver_graph_launch(struct gpu_device *d, void *graph, void *stream,
                                    struct mgx_diag *diag)
{
    int status;
    IN_DEVICE(d, status, graph_launch(graph, stream));
    return said(d, "launching a graph", status, diag);
}

void driver_graph_destroy(struct gpu_device *d, void *graph)
{
    int status;
    if (graph)
        IN_DEVICE(d, status, graph_unmake(graph));
}
