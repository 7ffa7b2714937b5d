// SPDX-License-Identifier: MIT
// A HIP runtime without a card: the calls that hip.c makes, on the heap, in order, with errors on
// demand. The test device_hip loads it as libamdhip64.
//
// Work runs at once, so order among streams is trivially right; what the stand-in proves is that
// every call gets arguments of the right kind, that handles are used while they live, and that
// errors come back as statuses. What becomes of kernels is standin.h's matter.
//
//     standin_fail(call, after)   the call named fails from its `after`-th use on, with status 2
//     standin_live()              handles and blocks of memory not given back
//     standin_enqueue(stream, work, data, bytes)
//                                 a library's: work(a copy of data), now or in a captured run
#include "standin.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, COUNT = 2, ALREADY = 704 };
#ifndef STANDIN_ARCH_OPTION
#define STANDIN_ARCH_OPTION "--offload-arch="
#endif

API void standin_fail(const char *call, int after);
API int standin_live(void);
API int standin_enqueue(void *stream, void (*work)(void *data), const void *data, size_t bytes);

static char failing[64];
static int fail_after;
static _Atomic int live;
static _Thread_local int current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of memory and of launches
static size_t used;

API void standin_fail(const char *call, int after)
{
    snprintf(failing, sizeof failing, "%s", call ? call : "");
    fail_after = after;
}

API int standin_live(void)
{
    return live;
}

static bool fails(const char *call)
{
    return strcmp(call, failing) == 0 && fail_after-- <= 0;
}

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (fails(__func__))                                                                       \
            return NO_MEMORY;                                                                      \
    } while (0)

// What the structure of properties has held since ROCm 4, as far as it is read.
struct properties {
    char name[256];
    size_t memory, shared;
    int registers, warp, threads, block[3], grid[3], clock, memory_clock, bus;
    size_t constant;
    int major, minor, units, l2, unit_threads, mode, instruction_clock;
    unsigned features;
    int concurrent, pci[3];
    size_t unit_shared;
    int several, maps, number;
    char arch[256];
};
_Static_assert(offsetof(struct properties, arch) == 396, "gcnArchName of hipDeviceProp_t");

struct block {
    struct block *next;
    size_t bytes;
    unsigned magic, spare[11]; // a line of the cache: what follows is aligned as a driver's memory
};
static struct block *blocks;

enum { BLOCK = 0x600d, STREAM = 0x57, EVENT = 0xe7, MODULE = 0x30d, GRAPH = 0x96a };

struct handle {
    unsigned magic;
    int device;
    char *text, *log; // of a program: its source, or the code, and what the compiler said
    size_t size;
    void *module;
    struct command *commands, **end;
    struct handle *capture;
};

struct command { // of a captured run: a fill, a copy, a launch, or work of a library's
    struct command *next;
    void *to;
    const void *from;
    unsigned char byte;
    size_t bytes;
    void *kernel, **params;
    struct standin_dims dims;
    void (*work)(void *data);
    void *data; // `bytes` of them
};

API int hipInit(unsigned flags);
API int hipInit(unsigned flags)
{
    MAY_FAIL();
    return flags ? INVALID : OK;
}

API int hipGetDeviceCount(int *count);
API int hipGetDeviceCount(int *count)
{
    MAY_FAIL();
    *count = COUNT;
    return OK;
}

API int hipGetDeviceProperties(struct properties *p, int device);
API int hipGetDeviceProperties(struct properties *p, int device)
{
    MAY_FAIL();
    snprintf(p->name, sizeof p->name, "Stand-in %d", device);
    snprintf(p->arch, sizeof p->arch, "%s", standin_card()->arch);
    p->memory = standin_card()->memory;
    p->shared = 64 << 10;
    p->warp = standin_card()->warp;
    p->threads = 1024;
    p->units = standin_card()->units;
    p->l2 = 8 << 20;
    return device < COUNT ? OK : INVALID;
}

API int hipGetDevice(int *device);
API int hipGetDevice(int *device)
{
    *device = current;
    return OK;
}

API int hipSetDevice(int device);
API int hipSetDevice(int device)
{
    MAY_FAIL();
    current = device;
    return device < COUNT ? OK : INVALID;
}

API const char *hipGetErrorString(int status);
API const char *hipGetErrorString(int status)
{
    return status == NO_MEMORY ? "out of memory" : status == INVALID ? "invalid argument" : "other";
}

// --- memory ---

API int hipMemGetInfo(size_t *free_bytes, size_t *total);
API int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    *total = standin_card()->memory;
    *free_bytes = *total - used;
    return OK;
}

API int hipMalloc(void **address, size_t bytes);
API int hipMalloc(void **address, size_t bytes)
{
    MAY_FAIL();
    pthread_mutex_lock(&lock);
    const bool fits = bytes <= standin_card()->memory - used;
    struct block *b = fits ? aligned_alloc(64, (sizeof *b + bytes + 63) / 64 * 64) : NULL;
    if (b) {
        *b = (struct block){.next = blocks, .bytes = bytes, .magic = BLOCK};
        blocks = b;
        used += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!b)
        return NO_MEMORY;
    memset(b + 1, 0xcd, bytes);
    live++;
    *address = b + 1;
    return OK;
}

API int hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags);
API int hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags)
{
    MAY_FAIL();
    return flags == 1 ? hipMalloc(address, bytes) : INVALID;
}

API int hipDeviceCanAccessPeer(int *can, int device, int other);
API int hipDeviceCanAccessPeer(int *can, int device, int other)
{
    MAY_FAIL();
    *can = device != other;
    return device < COUNT && other < COUNT ? OK : INVALID;
}

API int hipDeviceEnablePeerAccess(int other, unsigned flags);
API int hipDeviceEnablePeerAccess(int other, unsigned flags)
{
    static _Atomic unsigned reached[COUNT];
    MAY_FAIL();
    if (flags || other == current || other >= COUNT)
        return INVALID;
    return atomic_fetch_or(&reached[current], 1u << other) >> other & 1 ? ALREADY : OK;
}

API int hipFree(void *address);
API int hipFree(void *address)
{
    struct block *b = (struct block *)address - 1;
    if (b->magic != BLOCK)
        abort();
    pthread_mutex_lock(&lock);
    struct block **at = &blocks;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    used -= b->bytes;
    pthread_mutex_unlock(&lock);
    b->magic = 0;
    live--;
    free(b);
    return OK;
}

API int hipHostMalloc(void **host, size_t bytes, unsigned flags);
API int hipHostMalloc(void **host, size_t bytes, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    return hipMalloc(host, bytes);
}

API int hipHostFree(void *host);
API int hipHostFree(void *host)
{
    return hipFree(host);
}

static bool is(const void *handle, unsigned magic)
{
    const struct handle *h = handle;
    if (!h || h->magic != magic)
        abort(); // what a driver would answer by chance
    return true;
}

void standin_pause(void)
{
    pthread_mutex_unlock(&lock);
    sched_yield();
    pthread_mutex_lock(&lock);
}

static int play(const struct command *c)
{
    if (c->work) {
        c->work(c->data);
        return OK;
    }
    if (c->kernel)
        return standin_launch(c->kernel, &c->dims, c->params);
    if (c->from)
        memcpy(c->to, c->from, c->bytes);
    else
        memset(c->to, c->byte, c->bytes);
    return OK;
}

static int note(struct handle *graph, const struct command *what)
{
    struct command *c = malloc(sizeof *c);
    if (!c)
        return NO_MEMORY;
    *c = *what;
    c->next = NULL;
    if (c->kernel && !(c->params = standin_keep(c->kernel, what->params))) {
        free(c);
        return NO_MEMORY;
    }
    if (c->work && (c->data = malloc(c->bytes)))
        memcpy(c->data, what->data, c->bytes);
    *graph->end = c;
    graph->end = &c->next;
    return OK;
}

// At once, or kept where the stream is being captured.
static int enqueue(void *stream, const struct command *c)
{
    struct handle *graph = is(stream, STREAM) ? ((struct handle *)stream)->capture : NULL;
    if (graph)
        return note(graph, c);
    pthread_mutex_lock(&lock);
    const int status = play(c);
    pthread_mutex_unlock(&lock);
    return status;
}

API int standin_enqueue(void *stream, void (*work)(void *data), const void *data, size_t bytes)
{
    const struct command c = {.work = work, .data = (void *)data, .bytes = bytes};
    return enqueue(stream, &c);
}

static int move(void *to, const void *from, size_t bytes, void *stream)
{
    if (is(stream, STREAM) && ((struct handle *)stream)->device != current)
        return INVALID;
    return enqueue(stream, &(struct command){.to = to, .from = from, .bytes = bytes});
}

#define COPY(name)                                                                                 \
    API int name(void *to, const void *from, size_t bytes, void *stream);                          \
    API int name(void *to, const void *from, size_t bytes, void *stream)                           \
    {                                                                                              \
        MAY_FAIL();                                                                                \
        return move(to, from, bytes, stream);                                                      \
    }
COPY(hipMemcpyHtoDAsync)
COPY(hipMemcpyDtoHAsync)
COPY(hipMemcpyDtoDAsync)

API int hipMemsetD8Async(void *to, unsigned char byte, size_t bytes, void *stream);
API int hipMemsetD8Async(void *to, unsigned char byte, size_t bytes, void *stream)
{
    MAY_FAIL();
    return enqueue(stream, &(struct command){.to = to, .byte = byte, .bytes = bytes});
}

// --- streams, events, graphs: handles with a magic number ---

static int make(void **out, unsigned magic)
{
    struct handle *h = calloc(1, sizeof *h);
    if (!h)
        return NO_MEMORY;
    h->magic = magic;
    h->device = current;
    h->end = &h->commands;
    live++;
    *out = h;
    return OK;
}

static void drop_commands(struct handle *h)
{
    while (h->commands) {
        struct command *next = h->commands->next;
        free(h->commands->params);
        free(h->commands->data);
        free(h->commands);
        h->commands = next;
    }
    h->end = &h->commands;
}

static int unmake(void *handle, unsigned magic)
{
    struct handle *h = handle;
    is(h, magic);
    drop_commands(h);
    if (h->capture) // a stream that goes while it captures
        unmake(h->capture, GRAPH);
    if (h->module)
        standin_unload(h->module);
    h->magic = 0;
    live--;
    free(h->text);
    free(h->log);
    free(h);
    return OK;
}

#define MAKER(create, destroy, magic)                                                              \
    API int create(void **out, unsigned flags);                                                    \
    API int create(void **out, unsigned flags)                                                     \
    {                                                                                              \
        (void)flags;                                                                               \
        MAY_FAIL();                                                                                \
        return make(out, magic);                                                                   \
    }                                                                                              \
    API int destroy(void *handle);                                                                 \
    API int destroy(void *handle)                                                                  \
    {                                                                                              \
        return unmake(handle, magic);                                                              \
    }
MAKER(hipStreamCreateWithFlags, hipStreamDestroy, STREAM)
MAKER(hipEventCreateWithFlags, hipEventDestroy, EVENT)

#define USER(name, ...)                                                                            \
    API int name(__VA_ARGS__);                                                                     \
    API int name(__VA_ARGS__)
API int hipDeviceSynchronize(void);
API int hipDeviceSynchronize(void)
{
    MAY_FAIL();
    return OK;
}

API int hipMemGetAddressRange(void **base, size_t *bytes, void *address);
API int hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
    MAY_FAIL();
    pthread_mutex_lock(&lock);
    const struct block *b = blocks;
    while (b && ((const char *)address < (const char *)(b + 1) ||
                 (const char *)address >= (const char *)(b + 1) + b->bytes))
        b = b->next;
    pthread_mutex_unlock(&lock);
    *base = b ? (void *)(b + 1) : NULL;
    *bytes = b ? b->bytes : 0;
    return b ? OK : INVALID;
}

// Of pinned memory and the card's, which are one kind here; counts nothing.
API int hipHostGetFlags(unsigned *flags, void *host);
API int hipHostGetFlags(unsigned *flags, void *host)
{
    void *base;
    size_t bytes;
    *flags = 0;
    return hipMemGetAddressRange(&base, &bytes, host);
}

USER(hipStreamSynchronize, void *stream)
{
    MAY_FAIL();
    return is(stream, STREAM) ? OK : INVALID;
}

USER(hipStreamWaitEvent, void *stream, void *event, unsigned flags)
{
    MAY_FAIL();
    return is(stream, STREAM) && is(event, EVENT) && !flags ? OK : INVALID;
}

USER(hipEventRecord, void *event, void *stream)
{
    MAY_FAIL();
    return is(stream, STREAM) && is(event, EVENT) ? OK : INVALID;
}

USER(hipEventSynchronize, void *event)
{
    return is(event, EVENT) ? OK : INVALID;
}

USER(hipEventElapsedTime, float *ms, void *from, void *to)
{
    *ms = 0.5f;
    return is(from, EVENT) && is(to, EVENT) ? OK : INVALID;
}

USER(hipStreamBeginCapture, void *stream, int mode)
{
    MAY_FAIL();
    is(stream, STREAM);
    return mode == 1 ? make((void **)&((struct handle *)stream)->capture, GRAPH) : INVALID;
}

USER(hipStreamEndCapture, void *stream, void **graph)
{
    struct handle *s = stream;
    *graph = s->capture;
    s->capture = NULL;
    return *graph ? OK : INVALID;
}

static int copy_commands(struct handle *to, const struct handle *from)
{
    int status = OK;
    for (const struct command *c = from->commands; c && status == OK; c = c->next)
        status = note(to, c);
    return status;
}

USER(hipGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)
{
    MAY_FAIL();
    const int status = flags ? INVALID : make(executable, GRAPH);
    return status != OK ? status : copy_commands(*executable, graph);
}

USER(hipGraphExecUpdate, void *executable, void *graph, void **node, int *result)
{
    struct handle *e = executable;
    is(e, GRAPH);
    drop_commands(e);
    *node = NULL;
    *result = 0;
    return copy_commands(e, graph);
}

USER(hipGraphLaunch, void *executable, void *stream)
{
    MAY_FAIL();
    is(stream, STREAM);
    is(executable, GRAPH);
    int status = OK;
    pthread_mutex_lock(&lock);
    for (const struct command *c = ((struct handle *)executable)->commands; c && !status;
         c = c->next)
        status = play(c);
    pthread_mutex_unlock(&lock);
    return status;
}

USER(hipGraphDestroy, void *graph)
{
    return unmake(graph, GRAPH);
}

USER(hipGraphExecDestroy, void *executable)
{
    return unmake(executable, GRAPH);
}

// --- modules ---

USER(hipModuleLoadData, void **module, const void *image)
{
    MAY_FAIL();
    int status = make(module, MODULE);
    if (status != OK)
        return status;
    status = standin_load(image, &((struct handle *)*module)->module);
    if (status != OK)
        unmake(*module, MODULE);
    return status;
}

USER(hipModuleUnload, void *module)
{
    return unmake(module, MODULE);
}

USER(hipModuleGetFunction, void **function, void *module, const char *name)
{
    MAY_FAIL();
    is(module, MODULE);
    return standin_find(((struct handle *)module)->module, name, function);
}

USER(hipModuleLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    MAY_FAIL();
    is(stream, STREAM);
    const struct standin_dims dims = {{gx, gy, gz}, {bx, by, bz}, shared};
    const struct command c = {.kernel = function, .params = params, .dims = dims};
    return extra ? INVALID : enqueue(stream, &c);
}

// --- hiprtc ---

USER(hiprtcCreateProgram, void **program, const char *text, const char *name, int count,
     const char *const *headers, const char *const *names)
{
    (void)name, (void)headers, (void)names;
    MAY_FAIL();
    const int status = count ? INVALID : make(program, MODULE);
    if (status == OK)
        ((struct handle *)*program)->text = strdup(text);
    return status;
}

USER(hiprtcCompileProgram, void *program, int count, const char *const *options)
{
    static const char option[] = STANDIN_ARCH_OPTION;
    struct handle *p = program;
    MAY_FAIL();
    if (!count || strncmp(options[0], option, sizeof option - 1) != 0)
        return INVALID;
    char *text = p->text;
    const int status =
        standin_compile(text, options[0] + sizeof option - 1, &p->text, &p->size, &p->log);
    free(text);
    return status;
}

USER(hiprtcGetProgramLogSize, void *program, size_t *size)
{
    const struct handle *p = program;
    *size = p->log ? strlen(p->log) + 1 : 0;
    return OK;
}

USER(hiprtcGetProgramLog, void *program, char *text)
{
    strcpy(text, ((struct handle *)program)->log);
    return OK;
}

USER(hiprtcGetCodeSize, void *program, size_t *size)
{
    *size = ((struct handle *)program)->size;
    return OK;
}

USER(hiprtcGetCode, void *program, char *code)
{
    memcpy(code, ((struct handle *)program)->text, ((struct handle *)program)->size);
    return OK;
}

USER(hiprtcDestroyProgram, void **program)
{
    return unmake(*program, MODULE);
}

API const char *hiprtcGetErrorString(int status);
API const char *hiprtcGetErrorString(int status)
{
    return status == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR";
}
