// SPDX-License-Identifier: MIT
// A device: memory, streams, events, modules, launches and graphs of one card, whoever made it.
//
//   struct gpu_api        cuda, hip, opencl: one const object each, its library opened on first use
//     struct gpu_device   one card, opened once per process and shared by everybody
//       stream, event     plain pointers: the driver's own handles, so that a caller's fit too
//       module, kernel    what gpu_compile made of source text, loaded
//       graph             a captured run, launched as one
//
// Memory is an address on all three: OpenCL's comes from shared virtual memory, so a view is an
// address plus an offset there as well. The host never touches such an address; copies do.
//
// Holds: every function may be called from any thread; a stream takes work from one thread at a
// time. The current context of the calling thread is afterwards what it was before. A failure is a
// status with one sentence that names the call and, for memory, the bytes asked for and free.
// Cost: a call is the driver's own plus some 50 ns to make the device current.
#pragma once

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum gpu_feature {
    GPU_GRAPHS = 1 << 0,      // capture and launch of whole runs
    GPU_CLUSTERS = 1 << 1,    // blocks that share memory: gpu_launch.cluster
    GPU_DEPENDENT = 1 << 2,   // a kernel may start before the one ahead ends: gpu_launch.dependent
    GPU_DOUBLE = 1 << 3,      // 64-bit floats
    GPU_HALF_MATH = 1 << 4,   // arithmetic on 16-bit floats, not only their storage
    GPU_HOST_MEMORY = 1 << 5, // the device is a CPU: bytes do not cross a bus
    GPU_TENSOR_MAPS = 1 << 6  // a copy engine that takes boxes of tensors: tensor_map
};

enum { GPU_NAME_SIZE = 128, GPU_ARCH_SIZE = 64, GPU_CARD_SIZE = 24 };

struct gpu_properties {
    char name[GPU_NAME_SIZE]; // "NVIDIA H200"
    char arch[GPU_ARCH_SIZE]; // what a compiler is told: "sm_90a", "gfx90a:sramecc+:xnack-";
                              // OpenCL: version of the device and of its driver
    int version;              // of cuda: 90 for sm_90; 0 elsewhere
    int units;                // multiprocessors, compute units
    int warp;                 // threads that run in step; 1 where nobody promises any
    int max_threads;          // of a block
    size_t shared_bytes;      // most that a block may have
    size_t l2_bytes, memory_bytes;
    unsigned features; // enum gpu_feature
};

struct gpu_api;

struct gpu_device { // first member of an API's own struct
    const struct gpu_api *api;
    int index;
    struct gpu_properties properties;
    int users;               // device.c
    struct gpu_device *next; // device.c
};

// One argument of a kernel. OpenCL must be told which ones are addresses.
struct gpu_arg {
    const void *value;
    size_t size;
    bool is_address; // *value is an address of device memory
};

struct gpu_launch {
    unsigned grid[3], block[3]; // blocks, and threads of one
    size_t shared;              // bytes of memory a block has beyond what the source declares
    unsigned cluster;           // blocks along x that form one; 0 and 1: none
    bool dependent;             // may start early; the source waits for what comes before it
};

// Source text for the device's compiler, and what came of it.
struct gpu_source {
    const char *name; // for messages and traces
    const char *text;
    const char *const *options; // ends with NULL; those that name the device are added
};

enum gpu_map_type {
    GPU_MAP_HALF,
    GPU_MAP_BF16,
    GPU_MAP_FLOAT,
    GPU_MAP_BYTE,
    GPU_MAP_TF32, // floats that are rounded to 10 bits behind the point as they arrive
};

// A tensor for the copy engine, innermost axis first; boxes of `box` rows of 128 bytes (with
// `narrow`: 64) arrive with the 16 bytes of each row swapped by the row's number.
struct gpu_tensor_map {
    void *address; // a multiple of 16
    enum gpu_map_type type;
    bool narrow;
    int rank;
    uint64_t lens[5], strides[5]; // strides in bytes, multiples of 16, of axes 1 and up
    unsigned box;                 // rows of a box; of an image: places
    // An image of one to three axes (channels, width, height, depth, images) that taps are gathered from:
    bool image;
    int low[3], high[3]; // width first: first corner, and last one from the end
    unsigned step[3];
};

enum { GPU_TENSOR_MAP_BYTES = 128 };

struct gpu_api {
    const char *name;
    // Cards there are. A missing library or driver is MGX_NOT_FOUND with a sentence.
    enum mgx_status (*count)(int *count, struct mgx_diag *diag);
    enum mgx_status (*open)(int index, struct gpu_device **out, struct mgx_diag *diag);
    void (*close)(struct gpu_device *d);

    enum mgx_status (*alloc)(struct gpu_device *d, size_t bytes, void **out, struct mgx_diag *diag);
    void (*free)(struct gpu_device *d, void *address); // waits for work that uses it
    // Is this an address of the device's memory, whoever allocated it? Of OpenCL: allocated here.
    bool (*holds)(struct gpu_device *d, const void *address);
    // Memory that kernels of other cards may write while one of this card reads it; freed as any other.
    // From now on kernels of `d` may read and write what lies on `other`, a card of the same API;
    // MGX_UNSUPPORTED where no link leads there. Both NULL: no card reaches another one's memory.
    enum mgx_status (*alloc_reached)(struct gpu_device *d, size_t bytes, void **out,
                                     struct mgx_diag *diag);
    enum mgx_status (*reach)(struct gpu_device *d, const struct gpu_device *other,
                             struct mgx_diag *diag);
    // Host memory that copies run from without the driver's own buffer. Ordinary loads and stores.
    enum mgx_status (*alloc_host)(struct gpu_device *d, size_t bytes, void **out,
                                  struct mgx_diag *diag);
    void (*free_host)(struct gpu_device *d, void *host);
    // Is it such memory, whoever allocated it? NULL where no memory is better than other.
    bool (*pinned)(struct gpu_device *d, const void *host);

    // Streams are the driver's handles. `default_stream`: NULL is one too.
    bool default_stream;
    enum mgx_status (*stream_create)(struct gpu_device *d, void **out, struct mgx_diag *diag);
    void (*stream_destroy)(struct gpu_device *d, void *stream);
    enum mgx_status (*stream_wait)(struct gpu_device *d, void *stream, struct mgx_diag *diag);

    // Waits for all that was given to the device; of OpenCL, to streams made here.
    enum mgx_status (*settle)(struct gpu_device *d, struct mgx_diag *diag);

    // Later work of `stream` waits for what `event` recorded.
    enum mgx_status (*event_create)(struct gpu_device *d, void **out, struct mgx_diag *diag);
    void (*event_destroy)(struct gpu_device *d, void *event);
    enum mgx_status (*event_record)(struct gpu_device *d, void *event, void *stream,
                                    struct mgx_diag *diag);
    enum mgx_status (*event_follow)(struct gpu_device *d, void *stream, void *event,
                                    struct mgx_diag *diag);
    // With `pinned`: what the event recorded is done.
    enum mgx_status (*event_wait)(struct gpu_device *d, void *event, struct mgx_diag *diag);
    // Milliseconds between two recorded events; waits for the later one.
    enum mgx_status (*event_elapsed)(struct gpu_device *d, void *from, void *to, float *ms,
                                     struct mgx_diag *diag);

    // Enqueued. Host memory must stay as it is until the stream was waited for.
    enum mgx_status (*copy_in)(struct gpu_device *d, void *stream, void *to, const void *host,
                               size_t bytes, struct mgx_diag *diag);
    enum mgx_status (*copy_out)(struct gpu_device *d, void *stream, void *host, const void *from,
                                size_t bytes, struct mgx_diag *diag);
    enum mgx_status (*copy)(struct gpu_device *d, void *stream, void *to, const void *from,
                            size_t bytes, struct mgx_diag *diag);
    enum mgx_status (*fill)(struct gpu_device *d, void *stream, void *to, unsigned char byte,
                            size_t bytes, struct mgx_diag *diag);

    // The binary for this card, appended to *out; the compiler's remarks to *log (NULL: dropped).
    // Needs no context, so threads may compile side by side.
    enum mgx_status (*compile)(struct gpu_device *d, const struct gpu_source *source,
                               struct mgx_str *out, struct mgx_str *log, struct mgx_diag *diag);
    enum mgx_status (*module_load)(struct gpu_device *d, const void *binary, size_t size,
                                   void **out, struct mgx_diag *diag);
    void (*module_unload)(struct gpu_device *d, void *module);
    // A kernel lives as long as its module. `shared`: most bytes it will be launched with.
    enum mgx_status (*kernel_find)(struct gpu_device *d, void *module, const char *name,
                                   size_t shared, void **out, struct mgx_diag *diag);
    // Gives the first cache all that the kernel leaves of what it shares with shared memory, whatever
    // the kernel in front had: one that streams has its loads' room there. NULL: not to be chosen.
    enum mgx_status (*kernel_streams)(struct gpu_device *d, void *kernel, struct mgx_diag *diag);
    enum mgx_status (*launch)(struct gpu_device *d, void *stream, void *kernel,
                              const struct gpu_launch *how, const struct gpu_arg *args,
                              int arg_count, struct mgx_diag *diag);

    // With GPU_TENSOR_MAPS: writes GPU_TENSOR_MAP_BYTES, aligned to 64, that are an argument of a
    // kernel. NULL elsewhere.
    enum mgx_status (*tensor_map)(struct gpu_device *d, const struct gpu_tensor_map *tensor,
                                  void *out, struct mgx_diag *diag);

    // With GPU_GRAPHS. What is enqueued between begin and end is kept instead of run. An update
    // takes another capture of the same shape; MGX_UNSUPPORTED says that a new graph is needed.
    enum mgx_status (*capture_begin)(struct gpu_device *d, void *stream, struct mgx_diag *diag);
    enum mgx_status (*capture_end)(struct gpu_device *d, void *stream, void **graph,
                                   struct mgx_diag *diag);
    enum mgx_status (*capture_update)(struct gpu_device *d, void *stream, void *graph,
                                      struct mgx_diag *diag);
    enum mgx_status (*graph_launch)(struct gpu_device *d, void *graph, void *stream,
                                    struct mgx_diag *diag);
    void (*graph_destroy)(struct gpu_device *d, void *graph);
};

extern const struct gpu_api gpu_api_cuda, gpu_api_hip, gpu_api_opencl;

// The APIs in the order in which they are tried; ends with NULL.
extern const struct gpu_api *const gpu_apis[];

// Opens a card, or shares the one already open. `choice` is "cuda", "hip" or "opencl", may end with
// ":n" for card n, and NULL or "" tries all: the first API that has a card. Card n of a choice that
// names none is `index`; ":n" alone is card n of the first API that has it. When nothing is found the sentence says for each API what it lacked.
enum mgx_status gpu_device_open(const char *choice, int index, struct gpu_device **out,
                                struct mgx_diag *diag) MGX_NODISCARD;
void gpu_device_close(struct gpu_device *d); // NULL is allowed
// Whether such a call would find a card, asked without opening one: CUDA takes a quarter of a second
// to open one and close it again. Of OpenCL's alone, where no API is named, properties tell a CPU.
enum mgx_status gpu_device_usable(const char *choice, struct mgx_diag *diag) MGX_NODISCARD;
// Name of card `number` among those that a choice stands for, "cuda:0", asked as above; MGX_NOT_FOUND
// behind the last one. A choice with ":n" stands for that card alone.
enum mgx_status gpu_device_name(const char *choice, int number, char name[GPU_CARD_SIZE],
                                struct mgx_diag *diag) MGX_NODISCARD;
