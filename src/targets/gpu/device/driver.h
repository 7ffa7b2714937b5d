// SPDX-License-Identifier: MIT
// What CUDA's driver and HIP's runtime have in common, which is nearly all: the same calls under
// two names. cuda.c and hip.c fill the tables and do what differs; driver.c does the rest once.
//
// Holds: handles (stream, event, module, function, graph) are the driver's own pointers; statuses
// are 0 for success and otherwise numbers that both share where they are named here.
#pragma once

#include "targets/gpu/device/device.h"
#include "targets/gpu/device/library.h"

enum { // of both
    DRIVER_NO_MEMORY = 2,
    DRIVER_NO_DEVICE = 100,
    DRIVER_INVALID_DEVICE = 101, // what HIP says of counting where there is none
    DRIVER_REACHED_ALREADY = 704,
    DRIVER_NOT_SUPPORTED = 801,
    DRIVER_STREAM_NON_BLOCKING = 1,
    DRIVER_CAPTURE_THREAD_LOCAL = 1,
};

// Table of the driver's functions. Signatures are those of 64-bit systems, where an address is a
// pointer for either API. The member that says that the table is filled comes first.
struct driver_calls {
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*memory_info)(size_t *free, size_t *total);
    int (*alloc)(void **address, size_t bytes);
    int (*alloc_reached)(void **address, size_t bytes, unsigned flags); // NULL: any memory will do
    int (*free)(void *address);
    int (*find_range)(void **base, size_t *bytes, const void *address);
    int (*alloc_host)(void **host, size_t bytes, unsigned flags);
    int (*free_host)(void *host);
    int (*host_flags)(unsigned *flags, void *host); // NULL: the driver does not tell
    int (*copy_in)(void *to, const void *from, size_t bytes, void *stream);
    int (*copy_out)(void *to, const void *from, size_t bytes, void *stream);
    int (*copy)(void *to, const void *from, size_t bytes, void *stream);
    int (*fill)(void *to, unsigned char byte, size_t bytes, void *stream);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*device_wait)(void);
    int (*stream_follow)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *ms, void *from, void *to);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **params, void **extra);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_make)(void **executable, void *graph, unsigned long long flags);
    int (*graph_update)(void *executable, void *graph, void **node, int *result);
    int (*graph_launch)(void *executable, void *stream);
    int (*graph_free)(void *graph);
    int (*graph_unmake)(void *executable);
    int (*can_reach)(int *can, int device, int other); // NULL: the driver does not know
};

// What the two do differently.
struct driver {
    struct driver_calls *calls;
    const char *(*error_text)(int status);
    // Makes the device current for this thread, and what was current before again.
    int (*enter)(struct gpu_device *d, void **before);
    void (*leave)(struct gpu_device *d, void *before);
    // The current device's kernels may use the other's memory; NULL as can_reach.
    int (*reach)(const struct gpu_device *other);
    int (*allow_shared)(void *function, size_t bytes);
    int (*prefer_cache)(void *function); // to shared memory
    int (*launch_extended)(void *function, void *stream, const struct gpu_launch *how,
                           void **params); // clusters, dependence; NULL: there are none
};

struct driver_device { // first member of cuda's and hip's own
    struct gpu_device base;
    const struct driver *driver;
};

enum mgx_status driver_fail(const struct driver *driver, const char *api, const char *what,
                            int status, struct mgx_diag *diag);

// The functions of gpu_api that the tables suffice for.
#define DRIVER_API                                                                                 \
    .alloc = driver_alloc, .free = driver_free, .holds = driver_holds,                             \
    .alloc_reached = driver_alloc_reached, .reach = driver_reach, .alloc_host = driver_alloc_host, \
    .free_host = driver_free_host, .pinned = driver_pinned, .event_wait = driver_event_wait,       \
    .stream_create = driver_stream_create, .stream_destroy = driver_stream_destroy,                \
    .stream_wait = driver_stream_wait, .default_stream = true, .settle = driver_settle,            \
    .event_create = driver_event_create, .event_destroy = driver_event_destroy,                    \
    .event_record = driver_event_record, .event_follow = driver_event_follow,                      \
    .event_elapsed = driver_event_elapsed, .copy_in = driver_copy_in, .copy_out = driver_copy_out, \
    .copy = driver_copy, .fill = driver_fill, .module_load = driver_module_load,                   \
    .module_unload = driver_module_unload, .kernel_find = driver_kernel_find,                      \
    .launch = driver_launch, .capture_begin = driver_capture_begin,                                \
    .capture_end = driver_capture_end, .capture_update = driver_capture_update,                    \
    .graph_launch = driver_graph_launch, .graph_destroy = driver_graph_destroy

enum mgx_status driver_alloc(struct gpu_device *d, size_t bytes, void **out, struct mgx_diag *diag);
enum mgx_status driver_alloc_reached(struct gpu_device *d, size_t bytes, void **out,
                                     struct mgx_diag *diag);
enum mgx_status driver_reach(struct gpu_device *d, const struct gpu_device *other,
                             struct mgx_diag *diag);
void driver_free(struct gpu_device *d, void *address);
bool driver_holds(struct gpu_device *d, const void *address);
enum mgx_status driver_alloc_host(struct gpu_device *d, size_t bytes, void **out,
                                  struct mgx_diag *diag);
void driver_free_host(struct gpu_device *d, void *host);
bool driver_pinned(struct gpu_device *d, const void *host);
enum mgx_status driver_stream_create(struct gpu_device *d, void **out, struct mgx_diag *diag);
void driver_stream_destroy(struct gpu_device *d, void *stream);
enum mgx_status driver_stream_wait(struct gpu_device *d, void *stream, struct mgx_diag *diag);
enum mgx_status driver_settle(struct gpu_device *d, struct mgx_diag *diag);
enum mgx_status driver_event_create(struct gpu_device *d, void **out, struct mgx_diag *diag);
void driver_event_destroy(struct gpu_device *d, void *event);
enum mgx_status driver_event_record(struct gpu_device *d, void *event, void *stream,
                                    struct mgx_diag *diag);
enum mgx_status driver_event_follow(struct gpu_device *d, void *stream, void *event,
                                    struct mgx_diag *diag);
enum mgx_status driver_event_wait(struct gpu_device *d, void *event, struct mgx_diag *diag);
enum mgx_status driver_event_elapsed(struct gpu_device *d, void *from, void *to, float *ms,
                                     struct mgx_diag *diag);
enum mgx_status driver_copy_in(struct gpu_device *d, void *stream, void *to, const void *host,
                               size_t bytes, struct mgx_diag *diag);
enum mgx_status driver_copy_out(struct gpu_device *d, void *stream, void *host, const void *from,
                                size_t bytes, struct mgx_diag *diag);
enum mgx_status driver_copy(struct gpu_device *d, void *stream, void *to, const void *from,
                            size_t bytes, struct mgx_diag *diag);
enum mgx_status driver_fill(struct gpu_device *d, void *stream, void *to, unsigned char byte,
                            size_t bytes, struct mgx_diag *diag);
enum mgx_status driver_module_load(struct gpu_device *d, const void *binary, size_t size,
                                   void **out, struct mgx_diag *diag);
void driver_module_unload(struct gpu_device *d, void *module);
enum mgx_status driver_kernel_find(struct gpu_device *d, void *module, const char *name,
                                   size_t shared, void **out, struct mgx_diag *diag);
enum mgx_status driver_kernel_streams(struct gpu_device *d, void *kernel, struct mgx_diag *diag);
enum mgx_status driver_launch(struct gpu_device *d, void *stream, void *kernel,
                              const struct gpu_launch *how, const struct gpu_arg *args,
                              int arg_count, struct mgx_diag *diag);
enum mgx_status driver_capture_begin(struct gpu_device *d, void *stream, struct mgx_diag *diag);
enum mgx_status driver_capture_end(struct gpu_device *d, void *stream, void **graph,
                                   struct mgx_diag *diag);
enum mgx_status driver_capture_update(struct gpu_device *d, void *stream, void *graph,
                                      struct mgx_diag *diag);
enum mgx_status driver_graph_launch(struct gpu_device *d, void *graph, void *stream,
                                    struct mgx_diag *diag);
void driver_graph_destroy(struct gpu_device *d, void *graph);
